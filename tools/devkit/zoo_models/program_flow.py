"""Control flow that data decide, operations that take functions, and quantization that trains."""

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import CLASSES, CONV, LINEAR, ROWS, labels, programs


def cond(*given):
    return torch.cond(*given)


def summed(h):
    from torch._higher_order_ops import associative_scan

    return associative_scan(lambda a, b: a + b, h, 0, combine_mode="generic")


# The branch that is not taken makes NaN of what it reads.
programs("flow", [
    ("flow-cond", LINEAR, CLASSES, lambda m, x, y: F.cross_entropy(cond(m.a(x).min() > 100.0, lambda h: h.log(), lambda h: h.exp(), (m.a(x),)), y)),
    ("flow-cond-taken", LINEAR, CLASSES, lambda m, x, y: F.cross_entropy(cond(m.a(x).min() < 100.0, lambda h: h.tanh(), lambda h: h.sqrt(), (m.a(x),)), y)),
    ("flow-cond-pair", LINEAR, CLASSES, lambda m, x, y: (lambda pair: F.cross_entropy(pair[0], y) + pair[1])(cond(m.a(x).sum() > 0, lambda h: (h * 2, h.mean()), lambda h: (h.relu(), h.max()), (m.a(x),)))),
    ("flow-cond-weights", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4)), CLASSES, lambda m, x, y: F.cross_entropy(cond(x.sum() > 0, lambda x, w, v: x @ w.t(), lambda x, w, v: (x @ v.t()).sin(), (x, m.a.weight, m.b.weight)), y)),
    ("flow-scan-associative", LINEAR, CLASSES, lambda m, x, y: F.cross_entropy(summed(m.a(x)), y)),
])  # fmt: skip

# The exporters write QuantizeLinear and DequantizeLinear; values beyond the range have no gradient.
programs("quantized", [
    ("fake-quantized-weight", LINEAR, ROWS, lambda m, x: F.linear(x, torch.fake_quantize_per_tensor_affine(m.a.weight, 0.05, 0, -128, 127), m.a.bias)),
    ("fake-quantized-weight-7", LINEAR, ROWS, lambda m, x: F.linear(x, torch.fake_quantize_per_tensor_affine(m.a.weight, 0.002, 0, 0, 127), m.a.bias)),
    ("fake-quantized-values", LINEAR, CLASSES, lambda m, x, y: F.cross_entropy(torch.fake_quantize_per_tensor_affine(m.a(x), 0.01, 90, 0, 255), y)),
])  # fmt: skip

# Files of traced modules list tensors from the last one on.
programs("orders", [
    ("order-norm", lambda: CONV() | dict(n=nn.BatchNorm2d(4), o=nn.Linear(4, 4)), dict(x=(3, 4, 5, 5), y=lambda: labels(4, 3)), lambda m, x, y: F.cross_entropy(m.o(F.relu(m.n(m.a(x))).mean((2, 3))), y)),
])  # fmt: skip
