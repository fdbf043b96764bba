"""Training graphs in ONNX's own terms: onnx_training.py <folder of binaries>; runs in the `onnx` environment.

Models with `training_info`, and graphs that hold Gradient and an optimizer of ai.onnx.preview.training, are compiled and
trained. The peer is numpy: gradients by hand, updates by ONNX's reference evaluator. Prints a list of {name, complaint}.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

PREVIEW = "ai.onnx.preview.training"
BATCH, WIDTH, CLASSES, STEPS = 8, 5, 3, 6


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def initializer(name, array):
    return numpy_helper.from_array(array, name)


def weights():
    rng = numpy.random.default_rng(7)
    return rng.normal(size=(WIDTH, CLASSES)).astype("f4"), rng.normal(size=CLASSES).astype("f4")


def rows():
    rng = numpy.random.default_rng(8)
    return rng.normal(size=(BATCH * STEPS, WIDTH)).astype("f4"), rng.integers(0, CLASSES, BATCH * STEPS)


def optimizer(kind):
    """(node, names of its state for each parameter): w and b from dw and db."""
    slots = {"Momentum": ["v"], "Adagrad": ["h"], "Adam": ["v", "h"]}[kind]
    tensors = ["w", "b"]
    state = [f"{t}.{s}" for s in slots for t in tensors]
    settings = {
        "Momentum": {"alpha": 0.9, "beta": 0.8, "mode": "nesterov", "norm_coefficient": 0.01},
        "Adagrad": {"epsilon": 1e-6, "decay_factor": 0.1, "norm_coefficient": 0.0},
        "Adam": {"alpha": 0.9, "beta": 0.99, "epsilon": 1e-6, "norm_coefficient": 0.01, "norm_coefficient_post": 0.001},
    }[kind]
    inputs = ["R", "T", *tensors, "dw", "db", *state]
    return helper.make_node(kind, inputs, [f"{t}.new" for t in tensors + state], domain=PREVIEW, **settings), state


FORWARD = [helper.make_node("MatMul", ["x", "w"], ["xw"]), helper.make_node("Add", ["xw", "b"], ["logits"])]
LOSS = [
    helper.make_node("SoftmaxCrossEntropyLoss", ["logits", "y"], ["loss"], reduction="mean"),
    helper.make_node("Gradient", ["w", "b"], ["dw", "db"], domain=PREVIEW, xs=["w", "b"], y="loss"),
]
COUNT = helper.make_node("Add", ["T", "one"], ["T.new"])


def constants(state):
    w, b = weights()
    shapes = {"w": w.shape, "b": b.shape}
    zeros = [initializer(name, numpy.zeros(shapes[name.split(".")[0]], "f4")) for name in state]
    step = [initializer("R", numpy.float32(0.1)), initializer("T", numpy.int64(0)), initializer("one", numpy.int64(1))]
    return [initializer("w", w), initializer("b", b)], zeros + step


def finish(graph):
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(PREVIEW, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def with_training_info(kind):
    node, state = optimizer(kind)
    own, kept = constants(state)
    graph = helper.make_graph(FORWARD, "inference", [value("x", [BATCH, WIDTH])], [value("logits", [BATCH, CLASSES])], own)
    model = finish(graph)
    info = model.training_info.add()
    outputs = [value("loss", [])] + [value(n, None) for n in node.output] + [value("T.new", [], TensorProto.INT64)]
    info.algorithm.CopyFrom(helper.make_graph([*LOSS, node, COUNT], "step", [value("y", [BATCH], TensorProto.INT64)], outputs, kept))
    for name in ["w", "b", *state, "T"]:
        entry = info.update_binding.add()
        entry.key, entry.value = name, f"{name}.new"
    return model


def in_one_graph(kind):
    """The rate is a constant, the step number an input: nothing but the optimizer says what is updated."""
    node, state = optimizer(kind)
    own, kept = constants(state)
    kept = [t for t in kept if t.name not in ("T", "one")]
    inputs = [value("x", [BATCH, WIDTH]), value("y", [BATCH], TensorProto.INT64), value("T", [], TensorProto.INT64)]
    outputs = [value("loss", [])] + [value(n, None) for n in node.output]
    return finish(helper.make_graph([*FORWARD, *LOSS, node], "step", inputs, outputs, own + kept))


def peer(kind):
    """Losses of the same training: the gradient by hand, the update by the reference evaluator."""
    node, state = optimizer(kind)
    single = helper.make_graph([node], "update", [value(n, None) for n in node.input if n != "T"] + [value("T", [], TensorProto.INT64)], [value(n, None) for n in node.output])
    update = ReferenceEvaluator(finish(single))
    w, b = weights()
    kept = {"w": w, "b": b, **{name: numpy.zeros_like({"w": w, "b": b}[name.split(".")[0]]) for name in state}}
    x, y = rows()
    losses = []
    for step in range(STEPS):
        part, labels = x[BATCH * step : BATCH * (step + 1)], y[BATCH * step : BATCH * (step + 1)]
        logits = part @ kept["w"] + kept["b"]
        shifted = logits - logits.max(1, keepdims=True)
        log = shifted - numpy.log(numpy.exp(shifted).sum(1, keepdims=True))
        losses.append(float(-log[range(BATCH), labels].mean()))
        dlogits = (numpy.exp(log) - numpy.eye(CLASSES, dtype="f4")[labels]) / BATCH
        feeds = {"R": numpy.array(0.1, "f4"), "T": numpy.array(step), "dw": part.T @ dlogits, "db": dlogits.sum(0), **kept}
        new = update.run(None, {k: v.astype("f4") if v.dtype == numpy.float64 else v for k, v in feeds.items()})
        kept = {name.removesuffix(".new"): array for name, array in zip(node.output, new)}
    return losses


def trained(binaries, model, folder, *flags):
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    x, y = rows()
    numpy.savez(folder / "data.npz", x=x, y=y)
    artifact, log = folder / "step.tide", folder / "run.jsonl"
    for command in (
        [binaries / "lowtide", "compile", folder / "model.onnx", "-o", artifact, *flags],
        [binaries / "lowtide-run", artifact, f"--data={folder / 'data.npz'}", f"--steps={STEPS}", f"--log-jsonl={log}"],
    ):
        done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        if done.returncode:
            return None, f"{command[0].name} exit {done.returncode}: {done.stderr.strip()[-500:]}"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line and "step" in line], ""


def judge(binaries, model, expected):
    with tempfile.TemporaryDirectory(prefix="lowtide-training-") as scratch:
        losses, complaint = trained(binaries, model, pathlib.Path(scratch))
    if complaint:
        return complaint
    return "" if numpy.allclose(losses, expected, rtol=2e-5) else f"losses {losses}, expected {expected}"


def refused(binaries, model, words, *flags):
    with tempfile.TemporaryDirectory(prefix="lowtide-training-") as scratch:
        _, complaint = trained(binaries, model, pathlib.Path(scratch), *flags)
    return "" if words in complaint else f"not refused with '{words}': {complaint}"


def written(binaries, kind):
    """Our own update operators: what the reference evaluator makes of them is what we train."""
    optimizer_name = {"Momentum": "momentum", "Adagrad": "adagrad", "Adam": "adamw"}[kind]
    graph = helper.make_graph(
        [*FORWARD, LOSS[0]], "g", [value("x", [BATCH, WIDTH]), value("y", [BATCH], TensorProto.INT64)], [value("loss", [])], constants([])[0]
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    flags = [f"--optimizer={optimizer_name}", "--convention=onnx", "--lr=0.1", "--weight-decay=0.01", "--params=*"]
    with tempfile.TemporaryDirectory(prefix="lowtide-training-") as scratch:
        folder = pathlib.Path(scratch)
        losses, complaint = trained(binaries, model, folder, *flags)
        if complaint:
            return complaint
        path = folder / "step.onnx"
        more = ["--emit=onnx-model", "--onnx-stage=train", "--onnx-optimizers=preview", "-o", path]
        subprocess.run([str(c) for c in [binaries / "lowtide", "compile", folder / "model.onnx", *more, *flags]], check=True, capture_output=True)
        onnx.checker.check_model(str(path), full_check=True)
        step = onnx.load(path)
    if kind not in [node.op_type for node in step.graph.node]:
        return f"no {kind} in the file"
    kept = {i.name: numpy.zeros([d.dim_value for d in i.type.tensor_type.shape.dim], "f4") for i in step.graph.input if i.name[1:2] == "."}
    kept |= {t.name: numpy_helper.to_array(t) for t in step.graph.initializer if t.name in ("w", "b", "lr")}
    run, theirs = ReferenceEvaluator(step), []
    x, y = rows()
    for number in range(STEPS):
        part = slice(BATCH * number, BATCH * (number + 1))
        results = dict(zip(run.output_names, run.run(None, {"x": x[part], "y": y[part], "step": numpy.array(number), **kept})))
        theirs.append(float(results["loss"]))
        kept |= {name.removesuffix(".new"): array.astype("f4") for name, array in results.items() if name.endswith(".new")}
    return "" if numpy.allclose(losses, theirs, rtol=2e-5) else f"losses {losses}, the reference evaluator's {theirs}"


def clipped(binaries, build, kind):
    """Clipping to a norm that every gradient exceeds, and a loss scale that changes nothing but by rounding."""
    runs = {}
    with tempfile.TemporaryDirectory(prefix="lowtide-training-") as scratch:
        for flags in ((), ("--clip-norm=0.01",), ("--clip-norm=0.01", "--loss-scale=256"), ("--loss-scale=dynamic",)):
            runs[flags], complaint = trained(binaries, build(kind), pathlib.Path(scratch), *flags)
            if complaint:
                return f"{flags}: {complaint}"
    plain, norm, both, scaled = runs.values()
    if not numpy.allclose(plain, scaled, rtol=1e-5) or not numpy.allclose(norm, both, rtol=1e-5):
        return f"a loss scale changes the losses: {runs}"
    return f"clipping changes nothing: {runs}" if numpy.allclose(plain, norm, rtol=1e-5) else ""


def with_own_gradient():
    """The gradient is written out, so that nothing says it is the loss's."""
    model = in_one_graph("Momentum")
    nodes = [n for n in model.graph.node if n.op_type != "Gradient"]
    update = nodes.pop()
    nodes += [helper.make_node("Mul", ["w", "w"], ["dw"]), helper.make_node("Mul", ["b", "b"], ["db"]), update]
    model.graph.ClearField("node")
    model.graph.node.extend(nodes)
    return model


def unknown_binding():
    model = with_training_info("Momentum")
    model.training_info[0].update_binding[0].key = "nobody"
    return model


def unknown_target():
    model = in_one_graph("Momentum")
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "y":
                attribute.s = b"nothing"
    return model


def main():
    binaries = pathlib.Path(sys.argv[1]).resolve()
    rows_out = []
    for kind in ("Momentum", "Adagrad", "Adam"):
        expected = peer(kind)
        for build in (with_training_info, in_one_graph):
            rows_out.append({"name": f"{kind} {build.__name__}", "complaint": judge(binaries, build(kind), expected)})
            rows_out.append({"name": f"{kind} {build.__name__} clipped and scaled", "complaint": clipped(binaries, build, kind)})
        rows_out.append({"name": f"{kind} written", "complaint": written(binaries, kind)})
    rows_out.append({"name": "unknown binding", "complaint": refused(binaries, unknown_binding(), "is no initializer")})
    rows_out.append({"name": "unknown target", "complaint": refused(binaries, unknown_target(), "nothing")})
    scale = "--loss-scale=dynamic"
    rows_out.append({"name": "own gradient", "complaint": refused(binaries, with_own_gradient(), "would be a guess", scale)})
    for name, build, words, flag in (
        ("own updates", with_training_info, "--optimizer has no effect", "--optimizer=sgd"),
        ("own rate", in_one_graph, "whose learning rate is a constant", "--lr=0.5"),
    ):
        rows_out.append({"name": name, "complaint": refused(binaries, build("Momentum"), words, flag)})
    json.dump(rows_out, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
