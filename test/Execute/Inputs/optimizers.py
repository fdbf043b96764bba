"""Writes test/Execute/train-*.mlir: three updates by PyTorch's optimizers and by ONNX's reference evaluator.

    python optimizers.py    (needs torch, onnx, numpy)
"""

import pathlib

import numpy as np
import onnx.helper as oh
import torch
from onnx.reference import ReferenceEvaluator

FOLDER = pathlib.Path(__file__).resolve().parents[1]
PARAM = np.array([1.5, -2.0, 0.75, 3.0], np.float32)
# Large, so that second moments are not lost in the tolerance.
GRADS = np.array([[30, -20, 0.5, 40], [-10, -25, 8, 35], [5, 15, -12, -45]], np.float32)
LR = 0.25
SLOTS = {"sgd": [], "momentum": ["momentum_buffer"], "adagrad": ["sum"], "adam": ["exp_avg", "exp_avg_sq"],
         "adamw": ["exp_avg", "exp_avg_sq"]}
DEFAULTS = {
    "sgd": dict(weight_decay=0.0),
    "momentum": dict(momentum=0.9, dampening=0.0, nesterov=0.0, weight_decay=0.0),
    "adagrad": dict(lr_decay=0.0, initial_accumulator_value=0.0, eps=1e-10, weight_decay=0.0),
    "adam": dict(beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0),
    "adamw": dict(beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01),
}
TORCH = {"sgd": torch.optim.SGD, "momentum": torch.optim.SGD, "adagrad": torch.optim.Adagrad,
         "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def torch_updates(kind, options):
    options = dict(options)
    lr = LR * options.pop("lr_scale", 1.0)
    if "nesterov" in options:
        options["nesterov"] = bool(options["nesterov"])
    if "beta1" in options:
        options["betas"] = (options.pop("beta1"), options.pop("beta2"))
    param = torch.nn.Parameter(torch.tensor(PARAM))
    optimizer = TORCH[kind]([param], lr=lr, foreach=False, **options)
    for grad in GRADS:
        param.grad = torch.tensor(grad)
        optimizer.step()
    state = optimizer.state[param]
    return [param.detach().numpy()] + [state[slot].numpy() for slot in SLOTS[kind]]


def sparse_updates(kind, options):
    """SparseAdam, every row of whose table has a gradient."""
    param = torch.nn.Parameter(torch.tensor(PARAM)[:, None])
    optimizer = torch.optim.SparseAdam([param], lr=LR, betas=(options["beta1"], options["beta2"]), eps=options["eps"])
    for grad in GRADS:
        param.grad = torch.tensor(grad)[:, None].to_sparse(1)
        optimizer.step()
    state = optimizer.state[param]
    return [param.detach()[:, 0].numpy()] + [state[slot][:, 0].numpy() for slot in SLOTS[kind]]


def onnx_updates(kind, options):
    attributes = {
        "adagrad": dict(decay_factor="lr_decay", epsilon="eps", norm_coefficient="weight_decay"),
        "momentum": dict(alpha="momentum", norm_coefficient="weight_decay"),
        "adam": dict(alpha="beta1", beta="beta2", epsilon="eps", norm_coefficient="weight_decay"),
        "adamw": dict(alpha="beta1", beta="beta2", epsilon="eps", norm_coefficient_post="weight_decay"),
    }[kind]
    attributes = {name: options[ours] for name, ours in attributes.items()}
    if kind == "momentum":
        attributes.update(beta=1 - options["dampening"], mode="nesterov" if options["nesterov"] else "standard")
    slots = [f"s{i}" for i in range(len(SLOTS[kind]))]
    node = oh.make_node(kind.replace("adamw", "adam").capitalize(), ["R", "T", "X", "G", *slots],
                        ["Y", *["n" + s for s in slots]], domain="ai.onnx.preview.training", **attributes)
    value = lambda name, shape, kind=1: oh.make_tensor_value_info(name, kind, shape)
    graph = oh.make_graph([node], "g", [value("R", []), value("T", [], 7)] + [value(n, [4]) for n in ["X", "G", *slots]],
                          [value(n, [4]) for n in ["Y", *["n" + s for s in slots]]])
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("ai.onnx.preview.training", 1)])
    evaluator = ReferenceEvaluator(model)
    values = [PARAM] + [np.full(4, options.get("initial_accumulator_value", 0.0), np.float32) for _ in slots]
    for step, grad in enumerate(GRADS):
        feeds = {"R": np.float32(LR), "T": np.int64(step), "X": values[0], "G": grad, **dict(zip(slots, values[1:]))}
        values = evaluator.run(None, feeds)
    return values


def number(value):
    """A float as MLIR reads it: 1.0e-08."""
    mantissa, _, exponent = repr(float(value)).partition("e")
    return (mantissa if "." in mantissa else mantissa + ".0") + ("e" + exponent if exponent else "")


def dense(values):
    return "dense<[" + ", ".join(map(number, values)) + "]> : tensor<4xf32>"


def function(name, kind, given, convention="torch", tolerances=()):
    options = {**DEFAULTS[kind], **given}
    expected = {"torch": torch_updates, "onnx": onnx_updates, "rows": sparse_updates}[convention](kind, options)
    start = options.get("initial_accumulator_value", 0.0)
    attributes = ", ".join(f"{k} = {number(v)}" for k, v in {"lr_scale": 1.0, **options}.items())
    if convention == "onnx":
        attributes += ", onnx_convention"
    if convention == "rows":
        attributes += ", rows"
    values = ["w"] + [f"s{i}" for i in range(len(SLOTS[kind]))]
    lines = [f"func.func @{name}(%w0: tensor<4xf32> {{test.value = {dense(PARAM)}}},"]
    for i, grad in enumerate(GRADS):
        lines.append(f"    %g{i}: tensor<4xf32> {{test.value = {dense(grad)}}},")
    lines.append(f"    %lr: tensor<f32> {{test.value = dense<{LR}> : tensor<f32>}})")
    bounds = [f", test.tolerance = {number(tolerances[i])}" if tolerances and tolerances[i] else "" for i in range(len(expected))]
    results = [f"tensor<4xf32> {{test.value = {dense(v)}{bound}}}" for v, bound in zip(expected, bounds)]
    lines.append("    -> (" + ",\n        ".join(results) + ") {")
    for slot in values[1:]:
        lines.append(f"  %{slot}0 = nn.constant dense<{float(start)}> : tensor<4xf32>")
    for i in range(len(GRADS)):
        lines.append(f"  %t{i} = nn.constant dense<{i}> : tensor<i64>")
        state = " state " + ", ".join(f"%{s}{i}" for s in values[1:]) if len(values) > 1 else ""
        targets = ", ".join(f"%{v}{i + 1}" for v in values)
        lines.append(f"  {targets} = train.{kind} %w{i} gradient %g{i} lr %lr step %t{i}{state}")
        lines.append(f"      {{{attributes}}} : tensor<4xf32>, tensor<f32>, tensor<i64>")
    n = len(GRADS)
    lines.append("  return " + ", ".join(f"%{v}{n}" for v in values) + " : " + ", ".join(["tensor<4xf32>"] * len(values)))
    lines.append("}")
    return "\n".join(lines)


def write(kind, *functions):
    text = f"// RUN: lowtide-execute %s\n// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).\n\n"
    (FOLDER / f"train-{kind}.mlir").write_text(text + "\n\n".join(functions) + "\n")


write("sgd", function("plain", "sgd", {}), function("decay", "sgd", dict(weight_decay=0.1)),
      function("group", "sgd", dict(lr_scale=0.5)))
write("momentum", function("plain", "momentum", {}), function("dampening", "momentum", dict(dampening=0.5)),
      function("nesterov", "momentum", dict(nesterov=1.0, weight_decay=0.05)),
      function("onnx", "momentum", dict(dampening=0.25, weight_decay=0.05), "onnx"),
      function("onnx_nesterov", "momentum", dict(nesterov=1.0), "onnx"))
write("adagrad", function("plain", "adagrad", {}),
      function("options", "adagrad", dict(lr_decay=0.1, initial_accumulator_value=0.5, eps=1e-3, weight_decay=0.1)),
      function("onnx", "adagrad", dict(lr_decay=0.1, eps=1e-6, weight_decay=0.1), "onnx"))
write("adam", function("plain", "adam", {}),
      function("decay", "adam", dict(beta1=0.4, beta2=0.95, eps=1e-3, weight_decay=0.1),
               # exp_avg is g − (g − m) · 0.4 (torch.lerp's form at the far end) and cancels to 0.93 in one element. f32 rounds
               # there g (15: 0.48e-6, of which 0.6 counts), g − m (35: 1.9e-6, of which 0.4), their product (14: 0.48e-6), the
               # result (0.03e-6), and 0.4 of the step before, m = −20: 0.4 · (0.6 · 0.95 + 0.4 · 0.48 + 0.24 + 0.95) e-6. Together 2.4e-6.
               tolerances=(None, 2.4e-6, None)),
      function("onnx", "adam", dict(beta2=0.95, eps=1e-2, weight_decay=0.1), "onnx"),
      function("rows", "adam", dict(beta1=0.8, beta2=0.95, eps=1e-1), "rows"))
write("adamw", function("plain", "adamw", {}),
      function("options", "adamw", dict(beta2=0.95, eps=1e-3, weight_decay=0.1, lr_scale=0.5)),
      function("onnx", "adamw", dict(beta2=0.95, eps=1e-2, weight_decay=0.1), "onnx"))
