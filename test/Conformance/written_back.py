"""ONNX's node tests, read and written back: written_back.py <folder of binaries> [--every=N] [--only=PART]; `onnx` environment.

Each case that the compiler takes is written as an ONNX model again (--emit=onnx-model, fitted stage), accepted by ONNX's
checker with full shape inference, executed by ONNX Runtime (by ONNX's reference evaluator where that has no kernel), and
computes what the case says: so every op's ONNX form is held against an oracle. Prints case -> [state, reason].
"""

import pathlib
import subprocess
import tempfile

import numpy
import onnx
import onnxruntime
from node_tests import frozen, main, tensors_of
from onnx.reference import ReferenceEvaluator

REFUSALS = {2, 3}


def execute(path, feeds):
    """(results by name, who computed them)."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error) and "Could not find an implementation" not in str(error):
            raise
        session = ReferenceEvaluator(str(path))
        return dict(zip(session.output_names, session.run(None, feeds))), "reference"
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds))), "onnxruntime"


def attempt(binaries, model, arrays, outputs, folder, tolerance):
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    written = folder / "step.onnx"
    command = [binaries / "lowtide", "compile", folder / "model.onnx", "-o", written, "--emit=onnx-model", "--mode=as-is", "--entries=eval"]
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=120)
    if done.returncode:
        said = next((line for line in done.stderr.splitlines() if "error:" in line), done.stderr[-200:])
        unwritten = "cannot be written as ONNX" in said or done.returncode not in REFUSALS
        return ("failed" if unwritten else "refused"), said
    onnx.checker.check_model(str(written), full_check=True)
    produced = onnx.load(written)
    given = {tensor.name for tensor in produced.graph.initializer}
    scalars = {i.name: numpy.array(0, onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)) for i in produced.graph.input}
    feeds = {i.name: arrays.get(i.name, scalars[i.name]) for i in produced.graph.input if i.name not in given}
    try:
        ours, who = execute(written, feeds)
    except Exception as error:
        return "failed", str(error)[:300]
    # A name that an input has already is told apart by a number.
    ours = {next(p.value for p in o.metadata_props if p.key == "lowtide.name"): ours[o.name] for o in produced.graph.output}
    if len(outputs) == 1 and list(ours) == ["loss"]:
        ours = {name: ours["loss"] for name in outputs}
    for name, truth in outputs.items():
        mine = numpy.asarray(ours.get(name))
        if mine.shape != truth.shape:
            return "failed", f"{who}: '{name}' is {mine.shape}, expected {truth.shape}"
        same = numpy.array_equal(mine, truth) if truth.dtype.kind in "iub" else numpy.allclose(mine.astype("f8"), truth.astype("f8"), rtol=tolerance[0], atol=tolerance[1], equal_nan=True)
        if not same:
            return "failed", f"{who}: '{name}' is {mine.ravel()[:6]}, expected {truth.ravel()[:6]}"
    return "passed", who


def judge(case, binaries):
    if "bernoulli" in case.name or ("training_dropout" in case.name and "zero_ratio" not in case.name):
        return "refused", "random numbers of another generator"
    arrays = tensors_of(case)
    if arrays is None:
        return "refused", "not a dense tensor of a type that we compute in"
    graph = case.model.graph
    inputs, outputs = dict(zip((v.name for v in graph.input), arrays[0])), dict(zip((v.name for v in graph.output), arrays[1]))
    tolerance = max(case.rtol or 1e-3, 1e-5), max(case.atol or 1e-7, 1e-6)
    if any(a.dtype == numpy.float16 for a in arrays[1]):
        tolerance = max(tolerance[0], 4e-3), max(tolerance[1], 1e-3)
    with tempfile.TemporaryDirectory(prefix="lowtide-written-") as scratch:
        folder = pathlib.Path(scratch)
        try:
            state, reason = attempt(binaries, case.model, inputs, outputs, folder, tolerance)
            if state == "refused":
                model, left = frozen(case.model, inputs)
                if len(left) < len(inputs):
                    state, reason = attempt(binaries, model, left, outputs, folder, tolerance)
        except Exception as error:
            state, reason = "failed", f"{type(error).__name__}: {error}"[:300]
    return state, reason


if __name__ == "__main__":
    main(judge)
