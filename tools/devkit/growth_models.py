"""Model files of any size, written op by op: `python -m devkit.growth_models FAMILY SIZE OUT.onnx`. Weights are external and absent."""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Writer:
    def __init__(self):
        self.nodes, self.initializers, self.bytes = [], [], 0

    def weight(self, name, *shape):
        size = 4 * int(np.prod(shape))
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "absent.weights"), ("offset", str(self.bytes)), ("length", str(size))):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, value
        self.bytes += size
        self.initializers.append(tensor)
        return name

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, count=1, **attributes):
        outputs = [f"{op.lower()}_{len(self.nodes)}" + (f"_{i}" if i else "") for i in range(count)]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], **attributes))
        return outputs[0] if count == 1 else outputs

    def linear(self, x, name, width, to):
        product = self.node("MatMul", [x, self.weight(f"{name}.weight", width, to)])
        return self.node("Add", [product, self.weight(f"{name}.bias", to)])

    def norm(self, x, name, width):
        return self.node("LayerNormalization", [x, self.weight(f"{name}.weight", width), self.weight(f"{name}.bias", width)], axis=-1)

    def loss(self, logits, labels):
        self.nodes.append(helper.make_node("SoftmaxCrossEntropyLoss", [logits, labels], ["loss"], name="loss", reduction="mean"))

    def save(self, out, inputs):
        given = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
        graph = helper.make_graph(self.nodes, "grown", given, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], self.initializers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), out)


def transformer(blocks, out, width=64, length=32, heads=4, words=256):
    """A pre-norm transformer; attention and GELU in plain operators."""
    w = Writer()
    split = w.constant("split", np.array([0, length, heads, width // heads], np.int64))
    joined = w.constant("joined", np.array([0, length, width], np.int64))
    scale, half, one = (w.constant(n, np.float32(v)) for n, v in (("scale", (width // heads) ** -0.5), ("half", 0.5), ("one", 1)))
    root = w.constant("root", np.float32(2**0.5))
    mask = w.constant("mask", np.triu(np.full((length, length), -1e9, np.float32), 1))
    x = w.node("Gather", [w.weight("tokens.weight", words, width), "tokens"])
    x = w.node("Add", [x, w.weight("positions.weight", length, width)])
    for block in range(blocks):
        name = f"h.{block}"
        y = w.norm(x, f"{name}.ln_1", width)
        parts = [w.node("Reshape", [w.linear(y, f"{name}.attn.{part}", width, width), split]) for part in "qkv"]
        q, k, v = (w.node("Transpose", [part], perm=[0, 2, 1, 3]) for part in parts)
        scores = w.node("MatMul", [q, w.node("Transpose", [k], perm=[0, 1, 3, 2])])
        scores = w.node("Softmax", [w.node("Add", [w.node("Mul", [scores, scale]), mask])], axis=-1)
        y = w.node("Reshape", [w.node("Transpose", [w.node("MatMul", [scores, v])], perm=[0, 2, 1, 3]), joined])
        x = w.node("Add", [x, w.linear(y, f"{name}.attn.o", width, width)])
        y = w.linear(w.norm(x, f"{name}.ln_2", width), f"{name}.mlp.up", width, 4 * width)
        gate = w.node("Add", [w.node("Erf", [w.node("Div", [y, root])]), one])
        x = w.node("Add", [x, w.linear(w.node("Mul", [w.node("Mul", [y, half]), gate]), f"{name}.mlp.down", 4 * width, width)])
    logits = w.node("MatMul", [w.norm(x, "ln_f", width), w.weight("head.weight", width, words)])
    flat = w.node("Reshape", [logits, w.constant("rows", np.array([-1, words], np.int64))])
    w.loss(flat, w.node("Reshape", ["labels", w.constant("flat", np.array([-1], np.int64))]))
    w.save(out, [(name, TensorProto.INT64, ["batch", length]) for name in ("tokens", "labels")])


def recurrence(steps, out, width=8, hidden=16, classes=5):
    """One LSTM and a layer on its last output."""
    w = Writer()
    gates = [w.weight("lstm.weight_ih", 1, 4 * hidden, width), w.weight("lstm.weight_hh", 1, 4 * hidden, hidden), w.weight("lstm.bias", 1, 8 * hidden)]
    _, last, _ = w.node("LSTM", ["x", *gates], count=3, hidden_size=hidden)
    row = w.node("Squeeze", [last, w.constant("first", np.array([0], np.int64))])
    w.loss(w.linear(row, "head", hidden, classes), "labels")
    w.save(out, [("x", TensorProto.FLOAT, [steps, "batch", width]), ("labels", TensorProto.INT64, ["batch"])])


def convolutions(layers, out, width=16, extent=8, classes=5):
    """Convolutions of three by three with a normalization and an activation each, two of them in a residual block."""
    w = Writer()
    x = w.node("Conv", ["x", w.weight("stem.weight", width, 3, 3, 3)], pads=[1, 1, 1, 1])
    for layer in range(layers):
        if layer % 2 == 0:
            skip = x
        name = f"layer.{layer}"
        x = w.node("Conv", [x, w.weight(f"{name}.weight", width, width, 3, 3)], pads=[1, 1, 1, 1])
        parts = [w.weight(f"{name}.norm.{part}", width) for part in ("scale", "bias", "mean", "variance")]
        outputs = [f"norm_{layer}", f"mean_{layer}", f"variance_{layer}"]
        w.nodes.append(helper.make_node("BatchNormalization", [x, *parts], outputs, name=outputs[0], training_mode=1))
        x = outputs[0]
        x = w.node("Relu", [w.node("Add", [x, skip]) if layer % 2 else x])
    pooled = w.node("Flatten", [w.node("GlobalAveragePool", [x])])
    w.loss(w.linear(pooled, "head", width, classes), "labels")
    w.save(out, [("x", TensorProto.FLOAT, ["batch", 3, extent, extent]), ("labels", TensorProto.INT64, ["batch"])])


def experts(count, out, width=32, classes=5):
    """A mixture of experts that all see every sample, each weighed by its gate."""
    w = Writer()
    gates = w.node("Softmax", [w.linear("x", "gate", width, count)], axis=-1)
    y = "x"
    for expert, gate in enumerate(w.node("Split", [gates], count=count, axis=1, num_outputs=count)):
        hidden = w.node("Relu", [w.linear("x", f"expert.{expert}.up", width, 2 * width)])
        y = w.node("Add", [y, w.node("Mul", [w.linear(hidden, f"expert.{expert}.down", 2 * width, width), gate])])
    w.loss(w.linear(y, "head", width, classes), "labels")
    w.save(out, [("x", TensorProto.FLOAT, ["batch", width]), ("labels", TensorProto.INT64, ["batch"])])


def unrolled(steps, out, width=8, hidden=16, classes=5):
    """A recurrence of plain operators, step by step."""
    w = Writer()
    over, bias, first = w.weight("over.weight", hidden, hidden), w.weight("bias", hidden), w.constant("first", np.array([0], np.int64))
    inputs = w.node("Split", [w.node("MatMul", ["x", w.weight("in.weight", width, hidden)])], count=steps, axis=0, num_outputs=steps)
    h = None
    for part in inputs:
        row = w.node("Add", [w.node("Squeeze", [part, first]), bias])
        h = w.node("Tanh", [w.node("Add", [row, w.node("MatMul", [h, over])]) if h else row])
    w.loss(w.linear(h, "head", hidden, classes), "labels")
    w.save(out, [("x", TensorProto.FLOAT, [steps, "batch", width]), ("labels", TensorProto.INT64, ["batch"])])


def small(tensors, out, width=4, classes=5):
    """One block of small tensors: half of them parameters, half what each makes of the input."""
    w = Writer()
    terms = [w.node("Mul", ["x", w.weight(f"scale.{i}", width)]) for i in range(tensors // 2)]
    while len(terms) > 1:
        terms = [w.node("Sum", terms[i : i + 16]) for i in range(0, len(terms), 16)]
    w.loss(w.linear(terms[0], "head", width, classes), "labels")
    w.save(out, [("x", TensorProto.FLOAT, ["batch", width]), ("labels", TensorProto.INT64, ["batch"])])


FAMILIES = {
    "transformer": transformer, "recurrence": recurrence, "convolutions": convolutions, "experts": experts, "unrolled": unrolled, "small": small,
}  # fmt: skip

if __name__ == "__main__":
    FAMILIES[sys.argv[1]](int(sys.argv[2]), pathlib.Path(sys.argv[3]))
