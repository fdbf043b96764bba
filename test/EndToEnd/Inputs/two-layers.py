"""Writes two-layers.onnx and two-layers.npz, the smallest model that shows every stage of the compiler (needs onnx, numpy).

pixels · hiddenᵀ + bias → ReLU → · headᵀ + bias → cross-entropy, as PyTorch's exporter writes two linear layers.
"""

import pathlib

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).resolve().parent
rng = numpy.random.default_rng(1)


def weight(name, *shape):
    return numpy_helper.from_array(numpy.round(rng.uniform(-0.5, 0.5, shape), 2).astype(numpy.float32), name)


nodes = [
    helper.make_node("Gemm", ["pixels", "hidden.weight", "hidden.bias"], ["hidden"], name="hidden/Gemm", transB=1),
    helper.make_node("Relu", ["hidden"], ["active"], name="Relu"),
    helper.make_node("Gemm", ["active", "head.weight", "head.bias"], ["logits"], name="head/Gemm", transB=1),
    helper.make_node("SoftmaxCrossEntropyLoss", ["logits", "labels"], ["loss"], name="criterion"),
]
inputs = [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 16]), helper.make_tensor_value_info("labels", TensorProto.INT64, ["batch"])]
weights = [weight("hidden.weight", 8, 16), weight("hidden.bias", 8), weight("head.weight", 3, 8), weight("head.bias", 3)]
graph = helper.make_graph(nodes, "two_layers", inputs, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10, producer_name="by hand")
onnx.checker.check_model(model, full_check=True)
onnx.save(model, FOLDER / "two-layers.onnx")

# Three classes, each a noisy pattern of its own.
labels = rng.integers(0, 3, 64)
pixels = rng.normal(0, 0.3, (64, 16)) + rng.choice([-1.0, 1.0], (3, 16))[labels]
numpy.savez_compressed(FOLDER / "two-layers.npz", pixels=numpy.round(pixels, 2).astype(numpy.float32), labels=labels)
