"""Write the files that other producers make of the recorded models: producers.py <folder of the models>; `oracles` environment.

onnxruntime.onnx  what onnxruntime saves after its extended optimizations: constants folded under the names of values, fused
                  operators of com.microsoft, functions inlined, all notes of the exporter gone
constants.onnx    weights in `Constant` nodes, as Paddle writes them

Each trains to the losses that are recorded beside it.
"""

import json
import pathlib
import sys
import tempfile

import onnx
import onnxruntime

OPTIMIZED = ("gpt-tiny", "bag-tiny", "mlp-digits")
CONSTANTS = ("bag-tiny",)


def optimized(model):
    with tempfile.TemporaryDirectory() as scratch:
        saved = pathlib.Path(scratch) / "optimized.onnx"
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath, options.log_severity_level = str(saved), 4
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(saved)


def constants(model):
    """The model as a producer without initializers and without notes writes it."""
    graph, nodes = model.graph, list(model.graph.node)
    weights = [onnx.helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in graph.initializer]
    model.producer_name = model.producer_version = ""
    del graph.initializer[:], graph.node[:], graph.value_info[:]
    graph.node.extend(weights + nodes)
    for node in graph.node:
        node.name = ""
    onnx.checker.check_model(model)
    return model


def main():
    models = pathlib.Path(sys.argv[1])
    for make, folders in ((optimized, OPTIMIZED), (constants, CONSTANTS)):
        name = {optimized: "onnxruntime.onnx", constants: "constants.onnx"}[make]
        for folder in folders:
            model = make(onnx.load(models / folder / "torchscript.onnx"))
            onnx.save(model, models / folder / name)
            kinds = sorted({n.op_type for n in model.graph.node})
            entry = {"producer": make.__name__, "of": "torchscript.onnx", "file": name, "opset": model.opset_import[0].version, "ir": model.ir_version, "ops": len(model.graph.node), "kinds": kinds}  # fmt: skip
            train = json.loads((models / folder / "train.json").read_text())
            train["files"] = [f for f in train["files"] if f["file"] != name] + [entry]
            (models / folder / "train.json").write_text(json.dumps(train, indent=1) + "\n")


if __name__ == "__main__":
    main()
