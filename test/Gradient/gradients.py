"""Gradients against central differences in f64: gradients.py <folder of binaries> [--only=TEXT]; runs in the `onnx` environment.

For an operator f and parameters p the model is: loss(d) = Σ r · f(p + d), r fixed random weights, d a batch input. The
gradient of the loss by p at d = 0 comes from the `gradient` entry; along a random direction v it must be
(loss(h·v) − loss(−h·v)) / 2h, which the `eval` entry gives, one row of data per loss. All in the f64 reference target.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile

import numpy
from onnx import TensorProto, helper, numpy_helper

import cases
import structured_cases

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Conformance"))
from node_tests import call, read_safetensors  # noqa: E402

DIRECTIONS = 4
STEP = 2.0**-12  # a power of two: h·v is exact in f32
TOLERANCE = 2e-5  # relative to |gradient|·|v|: the differences' own error of second order in h


def model_of(opset, nodes, parameters, rng):
    """The loss around the case's nodes; the shape of `out` is found by ONNX's own inference."""
    head = []
    for name, array in parameters.items():
        shape = numpy.array(array.shape, numpy.int64)
        head.append(helper.make_node("Constant", [], [f"{name}_shape"], value=numpy_helper.from_array(shape, f"{name}_shape")))
        head.append(helper.make_node("Reshape", [f"{name}_offset", f"{name}_shape"], [f"{name}_moved_by"]))
        head.append(helper.make_node("Add", [f"{name}_weight", f"{name}_moved_by"], [name]))
    out = infer(opset, nodes, parameters)
    weights = numpy_helper.from_array(rng.uniform(0.5, 1.5, out).astype(numpy.float32), "loss_weights")
    tail = [helper.make_node("Constant", [], ["loss_weights"], value=weights), helper.make_node("Mul", ["out", "loss_weights"], ["weighted"]),
            helper.make_node("ReduceSum", ["weighted"], ["loss"], keepdims=0)]  # fmt: skip
    inputs = [helper.make_tensor_value_info(f"{n}_offset", TensorProto.FLOAT, [1, a.size]) for n, a in parameters.items()]
    initializers = [numpy_helper.from_array(a, f"{n}_weight") for n, a in parameters.items()]
    graph = helper.make_graph([*head, *nodes, *tail], "g", inputs, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def infer(opset, nodes, parameters):
    from onnx import shape_inference

    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in parameters.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("out")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    value = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph.output[0]
    shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
    if all(shape):
        return shape
    # What a body or a list makes is open for the inference.
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model).run(None, parameters)[0].shape


def judge(case, binaries):
    name, opset, nodes, parameters = case
    rng = numpy.random.default_rng(11)
    model = model_of(opset, nodes, parameters, rng)
    directions = [{n: rng.choice([-1.0, -0.5, 0.25, 1.0], a.size) for n, a in parameters.items()} for _ in range(DIRECTIONS)]
    rows = {f"{n}_offset": numpy.zeros((1 + 2 * DIRECTIONS, a.size), numpy.float32) for n, a in parameters.items()}
    for i, direction in enumerate(directions):
        for n, v in direction.items():
            rows[f"{n}_offset"][1 + 2 * i], rows[f"{n}_offset"][2 + 2 * i] = STEP * v, -STEP * v
    with tempfile.TemporaryDirectory(prefix="lowtide-gradient-") as scratch:
        folder = pathlib.Path(scratch)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        numpy.savez(folder / "data.npz", **rows)
        flags = ["--target=reference", "--precision=f64", "--entries=train,eval,gradient", "--mode=as-is", "--optimizer=sgd", "--params=*_weight"]
        status, said = call([binaries / "lowtide", "compile", folder / "model.onnx", "-o", folder / "step.tide", *flags])
        if status != 0:
            return f"compile exit {status}: {said}"
        log, gradients = folder / "run.jsonl", folder / "gradients.safetensors"
        run = [binaries / "lowtide-run", folder / "step.tide", f"--data={folder / 'data.npz'}"]
        status, said = call([*run, "--steps=1", f"--dump-gradients={gradients}"])  # row 0: no offset
        if status != 0:
            return f"run exit {status}: {said}"
        status, said = call([*run, "--entry=eval", f"--steps={1 + 2 * DIRECTIONS}", f"--log-jsonl={log}"])
        if status != 0:
            return f"eval exit {status}: {said}"
        losses = [line["loss"] for line in map(json.loads, log.read_text().splitlines()) if "loss" in line and "step" in line]
        found = read_safetensors(gradients)
    if len(losses) != 1 + 2 * DIRECTIONS or None in losses:
        return f"losses: {losses}"
    for i, direction in enumerate(directions):
        difference = (losses[1 + 2 * i] - losses[2 + 2 * i]) / (2 * STEP)
        product = size = 0.0
        for n, v in direction.items():
            gradient = found.get(f"grad/{n}_weight")
            if gradient is None or gradient.size != v.size:
                return f"no gradient of '{n}'" if gradient is None else f"gradient of '{n}' is {gradient.shape}"
            product += float((gradient.astype("f8").ravel() * v).sum())
            size += float((numpy.abs(gradient.astype("f8").ravel()) * numpy.abs(v)).sum())
        if not abs(product - difference) <= TOLERANCE * max(size, 1e-2):
            return f"along direction {i}: gradient {product:.9g}, central difference {difference:.9g}"
    return ""


def too_few_shapes(every):
    """Operators without cases at three shapes."""
    shapes = collections.defaultdict(set)
    for _, _, nodes, parameters in every:
        for node in nodes:
            if node.op_type != "Constant":
                constants = [n.attribute[0].t.dims for n in nodes if n.op_type == "Constant" and n.attribute[0].name == "value"]
                shapes[node.op_type].add(str([*(a.shape for a in parameters.values()), *constants]))
    return sorted(op for op, found in shapes.items() if len(found) < 3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    every = [*cases.build(), *structured_cases.build()]
    chosen = [c for c in every if options.only in c[0]][:: options.every]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        results = pool.map(lambda c: judge(c, options.binaries.resolve()), chosen)
        rows = [{"name": case[0], "complaint": complaint} for case, complaint in zip(chosen, results)]
    few = too_few_shapes(every)
    rows.append({"name": "three shapes of every operator", "complaint": f"fewer of {', '.join(few)}" if few else ""})
    json.dump(rows, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
