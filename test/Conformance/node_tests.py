"""ONNX's own node tests through our compiler and runtime: node_tests.py <folder of binaries> [options]; runs in the `onnx` environment.

Each case is a model of one node (or of the nodes that define a function) with inputs and outputs. It is compiled as an
evaluation step for the CPU and run once. Inputs that only say a shape, an axis or a pad, as file formats have them, are
constants in every real file; where the compiler asks for that, they are made constants here too.

Prints one JSON object: case -> [state, reason]; states: passed, refused (in words), failed.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnx
from onnx import numpy_helper

warnings.filterwarnings("ignore")
REFUSALS = {2, 3}
SAFETENSORS = {
    "F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1", "U8": "u1", "U16": "u2", "U32": "u4", "U64": "u8", "BOOL": "?",
}  # fmt: skip


def all_cases():
    from onnx.backend.test.loader import load_model_tests

    return {case.name: case for case in load_model_tests(kind="node")}


def tensors_of(case):
    """Inputs and outputs of the case's first data set, or None for sequences, optionals and strings."""
    inputs, outputs = case.data_sets[0]
    arrays = [[numpy.asarray(v) if isinstance(v, (numpy.ndarray, numpy.generic)) else None for v in side] for side in (inputs, outputs)]
    if any(a is None or a.dtype.kind not in "fiub" for side in arrays for a in side):
        return None
    return arrays


# Inputs by operator that steer it and hold no data.
STEERING = {"Resize": (1, 2, 3), "Upsample": (1,), "Dropout": (1, 2), "Pad": (1, 2, 3), "OneHot": (1,), "Range": (0, 1, 2), "ConstantOfShape": (0,), "If": (0,), "HannWindow": (0,), "HammingWindow": (0,), "BlackmanWindow": (0,)}  # fmt: skip


def steers(model, name):
    return any(name == node.input[i] for node in model.graph.node for i in STEERING.get(node.op_type, ()) if i < len(node.input))


def frozen(model, arrays):
    """The model with its integer inputs after the first, and what steers its operators, made constants; the arrays that are left."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    keep, left = [], {}
    for i, value in enumerate(list(model.graph.input)):
        array = arrays[value.name]
        if (i > 0 and array.dtype.kind in "iub" and array.ndim <= 1) or steers(model, value.name):
            model.graph.initializer.append(numpy_helper.from_array(array, value.name))
        else:
            keep.append(value)
            left[value.name] = array
    del model.graph.input[:]
    model.graph.input.extend(keep)
    return model, left


def read_safetensors(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, out = json.loads(data[8 : 8 + length]), {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + o for o in entry["data_offsets"])
            out[name] = numpy.frombuffer(data[begin:end], SAFETENSORS[entry["dtype"]]).reshape(entry["shape"])
    return out


def call(command):
    try:
        done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "timeout", "hung"
    text = done.stderr.decode(errors="replace")
    line = next((part.split("error:", 1)[1].strip() for part in text.splitlines() if "error:" in part), text.strip()[-200:])
    return done.returncode, line


def attempt(binaries, model, arrays, outputs, folder, tolerance):
    """(state, reason) of one compile and run."""
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    numpy.savez(folder / "in.npz", **arrays)
    artifact, result = folder / "step.tide", folder / "out.safetensors"
    flags = ["--mode=as-is", "--entries=eval", "--target=cpu"]
    status, said = call([binaries / "lowtide", "compile", folder / "model.onnx", "-o", artifact, *flags])
    if status != 0:
        return ("refused" if status in REFUSALS else "failed"), f"compile exit {status}: {said}"
    data = [f"--data={folder / 'in.npz'}"] if arrays else []
    status, said = call([binaries / "lowtide-run", artifact, "--entry=eval", *data, "--steps=1", f"--dump-outputs={result}"])
    if status != 0:
        return "failed", f"run exit {status}: {said}"
    ours = read_safetensors(result)
    if len(outputs) == 1 and list(ours) == ["loss"]:  # a scalar result is taken for the loss
        ours = {name: ours["loss"] for name in outputs}
    for name, truth in outputs.items():
        if name not in ours:
            return "failed", f"no output '{name}'"
        if ours[name].shape != truth.shape:
            return "failed", f"output '{name}' is {ours[name].shape}, expected {truth.shape}"
        if truth.dtype.kind in "iub":
            if not numpy.array_equal(ours[name], truth):
                return "failed", f"output '{name}' differs"
        elif not numpy.allclose(ours[name].astype("f8"), truth.astype("f8"), rtol=tolerance[0], atol=tolerance[1], equal_nan=True):
            worst = numpy.nanmax(numpy.abs(ours[name].astype("f8") - truth.astype("f8")))
            return "failed", f"output '{name}' is off by {worst:.2e}"
    return "passed", ""


def judge(case, binaries):
    if "bernoulli" in case.name or ("training_dropout" in case.name and "zero_ratio" not in case.name):
        return "refused", "random numbers of another generator: the recorded values are one draw"
    arrays = tensors_of(case)
    if arrays is None:
        return "refused", "sequence, optional, text or a narrow float: not a dense tensor of a type that we compute in"
    names = [v.name for v in case.model.graph.input], [v.name for v in case.model.graph.output]
    inputs, outputs = dict(zip(names[0], arrays[0])), dict(zip(names[1], arrays[1]))
    tolerance = max(case.rtol or 1e-3, 1e-5), max(case.atol or 1e-7, 1e-6)
    if any(a.dtype == numpy.float16 for a in arrays[1]) and any(n.op_type == "Attention" for n in case.model.graph.node):
        # Both sides round scores (|s| ≤ 2: 2 · 2^-11 of a probability), probabilities and outputs to f16: 4 · 2^-11 each.
        tolerance = max(tolerance[0], 4e-3), max(tolerance[1], 1e-6)
    with tempfile.TemporaryDirectory(prefix="lowtide-node-") as scratch:
        folder = pathlib.Path(scratch)
        state, reason = attempt(binaries, case.model, inputs, outputs, folder, tolerance)
        if state == "refused":
            model, left = frozen(case.model, inputs)
            if len(left) < len(inputs):
                second = attempt(binaries, model, left, outputs, folder, tolerance)
                state, reason = second if second[0] != "refused" else (state, second[1])
    return state, reason


def main(judge=judge):
    """Runs `judge(case, binaries)` on the cases that the command line names; prints case -> [state, reason]."""
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1, help="take only every n-th case")
    parser.add_argument("--only", help="cases whose name holds this")
    options = parser.parse_args()
    cases = {n: c for n, c in sorted(all_cases().items()) if not n.endswith("_expanded") and "_expanded_" not in n}
    names = [n for n in cases if not options.only or options.only in n][:: options.every]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        results = dict(zip(names, pool.map(lambda n: judge(cases[n], options.binaries.resolve()), names)))
    json.dump(results, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
