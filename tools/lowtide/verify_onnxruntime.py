"""Write what ONNX Runtime computes at every node of a model: `lowtide verify --against=onnxruntime` (docs/verify.md).

Runs in the user's Python, which needs onnx, onnxruntime and numpy. One argument: the request as JSON. Exit codes are those of
the tools: 1 usage, 2 the model or its data are not what they should be, 3 what ONNX Runtime cannot do, 8 files.
"""

import json
import sys

USAGE, BAD_INPUT, UNSUPPORTED, IO = 1, 2, 3, 8


def fail(code, message, note=""):
    print(f"error: {message}" + (f"\nnote: {note}" if note else ""), file=sys.stderr)
    sys.exit(code)


def read_batch(request, session, numpy):
    """The first rows of the data, as the model's inputs take them."""
    try:
        with numpy.load(request["data"]) as file:
            data = {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        fail(IO, f"cannot read '{request['data']}': {error}", "--data names an .npz file with the model's inputs by name")
    types = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16", "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(bool)": "bool"}
    batch = {}
    for value in session.get_inputs():
        if value.name not in data:
            fail(BAD_INPUT, f"'{request['data']}' has no array '{value.name}', which the model reads", f"it holds: {', '.join(data)}")
        rows = data[value.name]
        # A dimension that the file leaves open is the batch where it comes first.
        if value.shape and rows.ndim == len(value.shape):
            rows = rows[: value.shape[0] if isinstance(value.shape[0], int) else request["batch"]]
        batch[value.name] = rows.astype(types.get(value.type, rows.dtype))
    return batch


def watched(request, onnx):
    """The model with all results of its nodes as outputs, dropout and batch norms in inference form."""
    model = onnx.load(request["model"])
    known = {output.name for output in model.graph.output}
    for node in model.graph.node:
        if node.op_type == "Dropout" and len(node.input) > 2:
            del node.input[2:]
        for attribute in node.attribute:
            if node.op_type == "BatchNormalization" and attribute.name == "training_mode":
                attribute.i = 0
                del node.output[1:]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name and name not in known)
        known.update(node.output)
    return model


def main(request):
    try:
        import numpy
        import onnx
        import onnxruntime
    except ImportError as error:
        fail(USAGE, f"{sys.executable}: {error}", "name the Python that has onnx, onnxruntime and numpy: --python=path/to/python")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    model = watched(request, onnx)
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        batch = read_batch(request, session, numpy)
        names = [output.name for output in session.get_outputs()]
        values = dict(zip(names, session.run(names, batch)))
    except Exception as error:  # its own exceptions have no base of their own
        fail(UNSUPPORTED, f"ONNX Runtime cannot run the model: {error}")
    order = [name for node in model.graph.node for name in node.output if name in values]
    arrays = {"input/" + name: rows for name, rows in batch.items()}
    arrays |= {"output/" + name: values[name] for name in order if isinstance(values[name], numpy.ndarray) and values[name].dtype.kind == "f"}
    settings = json.dumps({"version": 1, "producer": f"onnxruntime {onnxruntime.__version__}"}).encode()
    numpy.savez(request["record"], **arrays, settings=numpy.frombuffer(settings, dtype=numpy.uint8))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
