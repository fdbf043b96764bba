"""As what a step keeps its residual streams, and what it copies of its parameters, read off the text of its fitted stage.

A residual stream is what an addition reads beside something that was made from it by products: x in x + f(x), and its cotangent.
"""

import copy
import math
import re

LINE = re.compile(r"\s*(?:(%[\w:]+(?:, %\w+)*) = )?\"?([\w.]+)\"?(.*)")
PARAMETER = re.compile(r"(%arg\d+): (tensor<\S+>) \{[^}]*#train\.param<")
VALUE = re.compile(r"%\w+(?:#\d+)?")
BINDING = re.compile(r"(%\w+) = (%\w+(?:#\d+)?)")
TENSOR = re.compile(r"tensor<((?:\d+x)*)(\w+)>")
PRODUCT = re.compile(r"nn\.(dot|conv|attention)")
# The same elements in another type or shape.
SAME = {"nn.cast", "nn.reshape", "nn.transpose"}
FLOATS = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
MOST_RESULTS = 64


class Node:
    """A value: bits of all that it is made from, of what of that lies after a product, and of itself."""

    def __init__(self, number, operands, op, shape="", element=""):
        self.element = element
        self.size, self.op = math.prod(int(dim) for dim in shape.split("x") if dim), op
        # A kernel may widen what it reads: `stored` is the type before that.
        self.bit, self.root, self.stored = 1 << number, self, self.element
        if op in SAME and operands:
            self.root, self.stored = operands[0].root, operands[0].stored
        self.made_from = self.after = 0
        for operand in operands:
            self.made_from |= operand.made_from | operand.bit
            self.after |= operand.after
        if PRODUCT.match(op):
            self.after = self.made_from

    def read(self):
        """The same as a kernel's operand."""
        operand = copy.copy(self)
        operand.stored = self.element
        return operand


class StepTypes:
    """`streams`: element type → how many additions read a residual stream of it, in the order of the step: forward first.
    `copied_bytes`: of parameters that kernels write in fewer bits, each counted once."""

    def __init__(self, text):
        self.nodes, self.kernels, self.streams, self.copies, self.count = {}, [], {}, {}, 0
        for line in text.splitlines():
            if line.lstrip().startswith("func.func"):
                for name, types in PARAMETER.findall(line):
                    self._add(name, [], "parameter", *TENSOR.findall(types))
            elif matched := LINE.match(line):
                self._read(*matched.groups())

        self.copied_bytes = sum(self.copies.values())

    def _add(self, name, operands, op, *types):
        made = self.nodes[name] = Node(self.count, operands, op, *(types[-1] if types else ()))
        self.count += 1
        self.nodes.update({f"{name}#{i}": made for i in range(MOST_RESULTS)})
        return made

    def _read(self, names, op, rest):
        names = [name.partition(":")[0] for name in (names or "").split(", ") if name]
        operands = [self.nodes[value] for value in VALUE.findall(rest.split(" : ")[0]) if value in self.nodes]
        if op == "nn.kernel" and rest.rstrip().endswith("{"):
            self.nodes.update({inner: self.nodes[outer].read() for inner, outer in BINDING.findall(rest) if outer in self.nodes})
            self.kernels.append(names[0] if names else "")
        elif op == "nn.yield" and self.kernels:
            name = self.kernels.pop()
            self.nodes.update({f"{name}#{i}": node for i, node in enumerate(operands)} | ({name: operands[0]} if operands else {}))
            for node in operands:
                if node.root.op == "parameter" and FLOATS.get(node.element, 8) < FLOATS.get(node.root.element, 0):
                    self.copies[node.root.bit] = node.size * FLOATS[node.element]
        elif names:
            types = TENSOR.findall(rest)[-len(names) :]
            for i, name in enumerate(names):
                made = self._add(name, operands, op, *types[i : i + 1])
            if op == "nn.add" and made.element in FLOATS and len(operands) == 2:
                self._find_stream(made, *operands)

    def _find_stream(self, made, a, b):
        for skip, branch in ((a, b), (b, a)):
            if skip.root.bit & branch.after and skip.root.size == made.size:
                self.streams[skip.stored] = self.streams.get(skip.stored, 0) + 1
                return
