"""As what a step keeps its residual streams, read off the text of its fitted stage.

A residual stream is what an addition reads beside something that was made from it by products: x in x + f(x), and its cotangent.
"""

import copy
import math
import re

LINE = re.compile(r"\s*(?:(%\w+)(?::\d+)? = )?\"?([\w.]+)\"?(.*)")
VALUE = re.compile(r"%\w+(?:#\d+)?")
BINDING = re.compile(r"(%\w+) = (%\w+(?:#\d+)?)")
TENSOR = re.compile(r"tensor<((?:\d+x)*)(\w+)>")
PRODUCT = re.compile(r"nn\.(dot|conv|attention)")
# The same elements in another type or shape.
SAME = {"nn.cast", "nn.reshape", "nn.transpose"}
FLOATS = {"f16", "bf16", "f32", "f64"}
MOST_RESULTS = 64


class Node:
    """A value: bits of all that it is made from, of what of that lies behind a product, and of itself."""

    def __init__(self, number, operands, op, types):
        shape, self.element = TENSOR.findall(types)[-1] if TENSOR.search(types) else ("", "")
        self.size = math.prod(int(dim) for dim in shape.split("x") if dim)
        # A kernel may widen what it reads: `stored` is the type before that.
        self.bit, self.root, self.stored = 1 << number, self, self.element
        if op in SAME and operands:
            self.root, self.stored = operands[0].root, operands[0].stored
        self.made_from = self.behind = 0
        for operand in operands:
            self.made_from |= operand.made_from | operand.bit
            self.behind |= operand.behind
        if PRODUCT.match(op):
            self.behind = self.made_from

    def read(self):
        """The same as a kernel's operand."""
        operand = copy.copy(self)
        operand.stored = self.element
        return operand


def residual_types(text):
    """Element type → how many additions read a residual stream of it, in the order of the step: forward first."""
    nodes, kernels, found, count = {}, [], {}, 0
    for line in text.splitlines():
        matched = LINE.match(line)
        if not matched:
            continue
        name, op, rest = matched.groups()
        operands = [nodes[value] for value in VALUE.findall(rest.split(" : ")[0]) if value in nodes]
        if op == "nn.kernel" and rest.rstrip().endswith("{"):
            nodes.update({inner: nodes[outer].read() for inner, outer in BINDING.findall(rest) if outer in nodes})
            kernels.append(name)
        elif op == "nn.yield" and kernels:
            name = kernels.pop()
            nodes.update({f"{name}#{i}": node for i, node in enumerate(operands)} | ({name: operands[0]} if operands else {}))
        elif name:
            made = nodes[name] = Node(count, operands, op, rest)
            nodes.update({f"{name}#{i}": made for i in range(MOST_RESULTS)})
            count += 1
            if op == "nn.add" and made.element in FLOATS and len(operands) == 2:
                a, b = operands
                skips = [skip for skip, branch in ((a, b), (b, a)) if skip.root.bit & branch.behind and skip.root.size == made.size]
                for skip in skips[:1]:
                    found[skip.stored] = found.get(skip.stored, 0) + 1
    return found
