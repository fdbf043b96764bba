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
# For optimizers that look at rows, columns and norms.
MATRIX = np.array([[1.5, -2.0, 0.75], [3.0, 0.5, -1.25]], np.float32)
MATRIX_GRADS = np.array([[[30, -20, 0.5], [40, 4, -6]], [[-10, -25, 8], [35, -3, 12]], [[5, 15, -12], [-45, 9, 2]]], np.float32)
SLOTS = {"sgd": [], "momentum": ["momentum_buffer"], "adagrad": ["sum"], "adam": ["exp_avg", "exp_avg_sq"],
         "adamw": ["exp_avg", "exp_avg_sq"], "rmsprop": ["square_avg", "momentum_buffer", "grad_avg"],
         "nadam": ["mu_product", "exp_avg", "exp_avg_sq"], "radam": ["exp_avg", "exp_avg_sq"], "adamax": ["exp_avg", "exp_inf"],
         "adadelta": ["square_avg", "acc_delta"], "asgd": ["eta", "mu", "ax"], "rprop": ["prev", "step_size"], "lion": ["exp_avg"],
         "lamb": ["exp_avg", "exp_avg_sq"], "adafactor": ["row_var", "col_var", "variance"], "muon": ["momentum_buffer"]}
STARTS = {"mu_product": 1.0, "mu": 1.0}  # other slots start as zeros
DEFAULTS = {
    "sgd": dict(weight_decay=0.0),
    "momentum": dict(momentum=0.9, dampening=0.0, nesterov=0.0, weight_decay=0.0),
    "adagrad": dict(lr_decay=0.0, initial_accumulator_value=0.0, eps=1e-10, weight_decay=0.0),
    "adam": dict(beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0),
    "adamw": dict(beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01),
    "rmsprop": dict(alpha=0.99, eps=1e-8, momentum=0.0, weight_decay=0.0),
    "nadam": dict(beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, momentum_decay=4e-3),
    "radam": dict(beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0),
    "adamax": dict(beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0),
    "adadelta": dict(rho=0.9, eps=1e-6, weight_decay=0.0),
    "asgd": dict(lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0),
    "rprop": dict(etaminus=0.5, etaplus=1.2, step_size_min=1e-6, step_size_max=50.0),
    "lion": dict(beta1=0.9, beta2=0.99, weight_decay=0.0),
    "lamb": dict(beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.0),
    "adafactor": dict(beta2_decay=-0.8, eps1=-1.0, eps2=1e-3, clip_threshold=1.0, weight_decay=0.0),
    "muon": dict(weight_decay=0.1, momentum=0.95, nesterov=1.0, ns_a=3.4445, ns_b=-4.7750, ns_c=2.0315, eps=1e-7, ns_steps=5.0,
                 adjust_lr_fn=0.0),
}
# PyTorch's tuples, and options that it knows by other names.
TUPLES = {"betas": ("beta1", "beta2"), "etas": ("etaminus", "etaplus"), "step_sizes": ("step_size_min", "step_size_max"),
          "ns_coefficients": ("ns_a", "ns_b", "ns_c")}
SWITCHES = ("nesterov", "amsgrad", "maximize", "centered", "decoupled_weight_decay")


def lion(param, state, lr, beta1, beta2, weight_decay, **_):
    """lion-pytorch 0.2.5, update_fn."""
    average = state.setdefault("exp_avg", torch.zeros_like(param))
    param.mul_(1.0 - lr * weight_decay)
    update = average.clone().mul_(beta1).add(param.grad, alpha=1.0 - beta1).sign_()
    param.add_(update, alpha=-lr)
    average.mul_(beta2).add_(param.grad, alpha=1.0 - beta2)


def lamb(param, state, lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay=0.0):
    """pytorch-optimizer 4.1, Lamb.step and Lamb.update."""
    state["step"] = state.get("step", 0) + 1
    average, square = (state.setdefault(name, torch.zeros_like(param)) for name in ("exp_avg", "exp_avg_sq"))
    average.mul_(beta1).add_(param.grad, alpha=1.0 - beta1)
    square.mul_(beta2).addcmul_(param.grad, param.grad, value=1.0 - beta2)
    if decoupled_weight_decay:
        param.mul_(1.0 - lr * weight_decay)
    update = average / square.sqrt().add_(eps)
    if not decoupled_weight_decay and weight_decay > 0:
        update.add_(param, alpha=weight_decay)
    size, length = torch.linalg.norm(param).clamp_(min=0, max=10.0), torch.linalg.norm(update)
    ratio = 1.0 if size == 0 or length == 0 else size / (length + eps)
    param.add_(update, alpha=-lr / (1.0 - beta1 ** state["step"]) * ratio)


PACKAGES = {"lion": lion, "lamb": lamb}


def make_optimizer(kind, param, lr, options):
    """torch.optim's, its arguments named as ours are."""
    options = dict(options)
    for name, parts in TUPLES.items():
        if parts[0] in options:
            options[name] = tuple(options.pop(part) for part in parts)
    for name in SWITCHES:
        if name in options:
            options[name] = bool(options[name])
    if kind == "adafactor":
        eps1 = options.pop("eps1")
        options["eps"] = (None if eps1 < 0 else eps1, options.pop("eps2"))
        options["d"] = options.pop("clip_threshold")
    if kind == "muon":
        options["adjust_lr_fn"] = ("original", "match_rms_adamw", "spectral_unclamped")[int(options["adjust_lr_fn"])]
        options["ns_steps"] = int(options["ns_steps"])
    names = {"sgd": "SGD", "momentum": "SGD", "adamw": "AdamW", "rmsprop": "RMSprop", "nadam": "NAdam", "radam": "RAdam", "asgd": "ASGD"}
    foreach = {} if kind == "muon" else {"foreach": False}
    return getattr(torch.optim, names.get(kind, kind.capitalize()))([param], lr=lr, **foreach, **options)


def torch_updates(kind, options, start, grads):
    options = dict(options)
    lr = LR * options.pop("lr_scale", 1.0)
    param = torch.nn.Parameter(torch.tensor(start))
    state = {}
    optimizer = None if kind in PACKAGES else make_optimizer(kind, param, lr, options)
    for grad in grads:
        param.grad = torch.tensor(grad)
        if optimizer:
            optimizer.step()
            state = optimizer.state[param]
        else:
            with torch.no_grad():
                PACKAGES[kind](param, state, lr, **options)
    return [param.detach().numpy()] + [np.asarray(state[slot]) for slot in SLOTS[kind] + ["max_exp_avg_sq"] if state.get(slot) is not None]


def sparse_updates(kind, options, *_):
    """SparseAdam, every row of whose table has a gradient."""
    param = torch.nn.Parameter(torch.tensor(PARAM)[:, None])
    optimizer = torch.optim.SparseAdam([param], lr=LR, betas=(options["beta1"], options["beta2"]), eps=options["eps"])
    for grad in GRADS:
        param.grad = torch.tensor(grad)[:, None].to_sparse(1)
        optimizer.step()
    state = optimizer.state[param]
    return [param.detach()[:, 0].numpy()] + [state[slot][:, 0].numpy() for slot in SLOTS[kind]]


def onnx_updates(kind, options, *_):
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


def tensor(values):
    return "tensor<" + "".join(f"{extent}x" for extent in values.shape) + "f32>"


def dense(values):
    def text(part):
        return "[" + ", ".join(map(text, part)) + "]" if np.ndim(part) else number(part)

    return f"dense<{text(values)}> : {tensor(values)}"


def function(name, kind, given, convention="torch", tolerances=(), start=PARAM, grads=GRADS):
    """`tolerances`: absolute, by result; the runner's own where there is none."""
    options = {**DEFAULTS[kind], **given}
    expected = {"torch": torch_updates, "onnx": onnx_updates, "rows": sparse_updates}[convention](kind, options, start, grads)
    present = [slot for slot in SLOTS[kind] if slot not in absent(kind, options, start)] + ["max_exp_avg_sq"] * bool(options.get("amsgrad"))
    attributes = ", ".join(f"{k} = {number(v)}" for k, v in {"lr_scale": 1.0, **options}.items())
    if convention == "onnx":
        attributes += ", onnx_convention"
    if convention == "rows":
        attributes += ", rows"
    values = ["w"] + [f"s{i}" for i in range(len(present))]
    kept, type_ = [tensor(value) for value in expected], tensor(start)
    lines = [f"func.func @{name}(%w0: {type_} {{test.value = {dense(start)}}},"]
    for i, grad in enumerate(grads):
        lines.append(f"    %g{i}: {type_} {{test.value = {dense(grad)}}},")
    lines.append(f"    %lr: tensor<f32> {{test.value = dense<{LR}> : tensor<f32>}})")
    bounds = [f", test.tolerance = {number(tolerances[i])}" if tolerances and tolerances[i] else "" for i in range(len(expected))]
    results = [f"{tensor(v)} {{test.value = {dense(v)}{bound}}}" for v, bound in zip(expected, bounds)]
    lines.append("    -> (" + ",\n        ".join(results) + ") {")
    for slot, called, kind_of in zip(values[1:], present, kept[1:], strict=True):
        first = options.get("initial_accumulator_value", STARTS.get(called, 0.0))
        lines.append(f"  %{slot}0 = nn.constant dense<{float(first)}> : {kind_of}")
    for i in range(len(grads)):
        lines.append(f"  %t{i} = nn.constant dense<{i}> : tensor<i64>")
        state = " state " + ", ".join(f"%{s}{i}" for s in values[1:]) if len(values) > 1 else ""
        targets = ", ".join(f"%{v}{i + 1}" for v in values)
        lines.append(f"  {targets} = train.{kind} %w{i} gradient %g{i} lr %lr step %t{i}{state}")
        lines.append(f"      {{{attributes}}} : {type_}, tensor<f32>, tensor<i64>")
    n = len(grads)
    lines.append("  return " + ", ".join(f"%{v}{n}" for v in values) + " : " + ", ".join(kept))
    lines.append("}")
    return "\n".join(lines)


def absent(kind, options, start):
    """Slots that an optimizer has under other options, or for tensors of another rank."""
    if kind == "rmsprop":
        return [slot for slot, option in (("momentum_buffer", "momentum"), ("grad_avg", "centered")) if not options.get(option)]
    if kind == "adafactor":
        return ["variance"] if start.ndim > 1 else ["row_var", "col_var"]
    return []


def write(kind, *functions):
    text = f"// RUN: lowtide-execute %s\n// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).\n\n"
    (FOLDER / f"train-{kind}.mlir").write_text(text + "\n\n".join(functions) + "\n")


def write_all():
    write("sgd", function("plain", "sgd", {}), function("maximize", "sgd", dict(maximize=1.0, weight_decay=0.1)), function("decay", "sgd", dict(weight_decay=0.1)),
          function("group", "sgd", dict(lr_scale=0.5)))
    write("momentum", function("plain", "momentum", {}), function("dampening", "momentum", dict(dampening=0.5)),
          function("nesterov", "momentum", dict(nesterov=1.0, weight_decay=0.05)),
          function("onnx", "momentum", dict(dampening=0.25, weight_decay=0.05), "onnx"),
          function("onnx_nesterov", "momentum", dict(nesterov=1.0), "onnx"))
    write("adagrad", function("plain", "adagrad", {}),
          function("options", "adagrad", dict(lr_decay=0.1, initial_accumulator_value=0.5, eps=1e-3, weight_decay=0.1)),
          function("onnx", "adagrad", dict(lr_decay=0.1, eps=1e-6, weight_decay=0.1), "onnx"))
    write("adam", function("plain", "adam", {}), function("amsgrad", "adam", dict(amsgrad=1.0, maximize=1.0, weight_decay=0.1)),
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
    # grad_avg is g − (g − a) · 0.7 or a + (g − a) · 0.3 and cancels: f32 rounds there g − a (60: 1.9e-6) and what it is added to (1.9e-6).
    lost = (None, None, 4e-6)
    write("rmsprop", function("plain", "rmsprop", {}), function("centered", "rmsprop", dict(centered=1.0, eps=1.0, alpha=0.7), tolerances=lost),
          function("momentum", "rmsprop", dict(momentum=0.9, weight_decay=0.1)),
          function("both", "rmsprop", dict(momentum=0.5, centered=1.0, alpha=0.6, eps=1.0, maximize=1.0)))
    write("nadam", function("plain", "nadam", {}), function("decay", "nadam", dict(weight_decay=0.1, beta2=0.95, momentum_decay=0.1)),
          function("decoupled", "nadam", dict(weight_decay=0.1, decoupled_weight_decay=1.0, eps=1e-3)))
    # Rectified from the third update on, or in none.
    write("radam", function("rectified", "radam", dict(beta2=0.7, eps=1e-3)), function("plain", "radam", dict(weight_decay=0.1)),
          function("decoupled", "radam", dict(beta2=0.7, weight_decay=0.1, decoupled_weight_decay=1.0)))
    write("adamax", function("plain", "adamax", {}), function("decay", "adamax", dict(beta1=0.8, beta2=0.5, eps=1e-3, weight_decay=0.1)))
    write("adadelta", function("plain", "adadelta", {}), function("decay", "adadelta", dict(rho=0.6, eps=0.5, weight_decay=0.1)))
    write("asgd", function("plain", "asgd", dict(lambd=0.1)), function("averaged", "asgd", dict(lambd=0.01, alpha=0.5, t0=1.0, weight_decay=0.1)))
    write("rprop", function("plain", "rprop", {}), function("limits", "rprop", dict(etaminus=0.25, etaplus=2.0, step_size_min=0.1, step_size_max=0.4)))
    write("lion", function("plain", "lion", {}), function("decay", "lion", dict(beta1=0.8, beta2=0.9, weight_decay=0.1, lr_scale=0.5)))
    matrix = dict(start=MATRIX, grads=MATRIX_GRADS)
    write("lamb", function("plain", "lamb", {}, **matrix), function("decay", "lamb", dict(weight_decay=0.1, eps=1e-3), **matrix),
          function("decoupled", "lamb", dict(weight_decay=0.1, decoupled_weight_decay=1.0)),
          # The norm of the parameter counts as 10 at most; of a tensor of zeros it is not a factor.
          function("large", "lamb", {}, start=16 * MATRIX, grads=MATRIX_GRADS), function("zero", "lamb", {}, start=0 * MATRIX, grads=MATRIX_GRADS))
    write("adafactor", function("matrix", "adafactor", {}, **matrix), function("vector", "adafactor", dict(weight_decay=0.1)),
          function("options", "adafactor", dict(beta2_decay=-0.5, eps1=0.1, eps2=2.5, clip_threshold=1.5, weight_decay=0.1), **matrix),
          function("kernels", "adafactor", {}, start=MATRIX.reshape(1, 2, 3, 1).repeat(2, 3), grads=MATRIX_GRADS.reshape(3, 1, 2, 3, 1).repeat(2, 4)))
    # Iterations in bf16 round otherwise in PyTorch: 15 products of an update round by 2⁻⁹ of
    # about 1 each, and what is small at first grows. Whole runs in f64 are compared exactly (EndToEnd/torch_optimizers.py).
    near = dict(tolerances=(LR * 3 * 15 * 2.0**-9, None))
    tall = dict(start=MATRIX.T.copy(), grads=MATRIX_GRADS.transpose(0, 2, 1).copy())
    write("muon", function("wide", "muon", {}, **matrix, **near), function("tall", "muon", dict(nesterov=0.0, weight_decay=0.5), **tall, **near),
          function("adjusted", "muon", dict(adjust_lr_fn=1.0, momentum=0.5, ns_steps=3.0), **tall, **near),
          function("unclamped", "muon", dict(adjust_lr_fn=2.0), **matrix, **near))


if __name__ == "__main__":
    write_all()
