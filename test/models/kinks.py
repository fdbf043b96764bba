"""Points at which a function has no derivative, and what PyTorch gives there: kinks.py prints the table of docs/numerics.md.

In the environment of `tools/dev setup --oracles`. Each case is a name, how docs call it, the point and the function, which works
on rows. The model kinks-tiny is the sum of all of them, each whose parameter begins at their points.
"""

import torch
from torch import nn
from torch.nn import functional as F


def pair(f):
    """A function of two operands on the two halves of a row."""
    return lambda h: f(*h.chunk(2, -1))



CASES = [
    ("relu", "`relu`", [0.0, -0.0], F.relu),
    ("relu6", "`relu6`", [0.0, 6.0], F.relu6),
    ("hardtanh", "`hardtanh`", [-1.0, 1.0], F.hardtanh),
    ("clamp", "`clamp(-1, 1)` and `clip`", [-1.0, 1.0], lambda h: h.clamp(-1, 1)),
    ("clamp_min", "`clamp(min=-1)`", [-1.0, 0.5], lambda h: h.clamp(min=-1)),
    ("clamp_max", "`clamp(max=1)`", [1.0, 0.5], lambda h: h.clamp(max=1)),
    ("clamp_tensor", "`clamp(x, low)` by a tensor: x, then low", [1.0, 2.0, 1.0, 0.5], pair(lambda x, low: torch.clamp(x, low))),
    ("hardsigmoid", "`hardsigmoid`", [-3.0, 3.0], F.hardsigmoid),
    ("hardswish", "`hardswish`", [-3.0, 3.0], F.hardswish),
    ("leaky_relu", "`leaky_relu` of slope 1/4", [0.0], lambda h: F.leaky_relu(h, 0.25)),
    ("elu", "`elu`, `celu`", [0.0], F.elu),
    ("threshold", "`threshold(x, 1, 0)`", [1.0], lambda h: F.threshold(h, 1.0, 0.0)),
    ("hardshrink", "`hardshrink`", [-0.5, 0.5], F.hardshrink),
    ("softshrink", "`softshrink`", [-0.5, 0.5], F.softshrink),
    ("abs", "`abs`, `l1_loss`", [0.0], torch.abs),
    ("smooth_l1", "`smooth_l1_loss`, `huber_loss` at 1", [1.0, -1.0], lambda h: F.smooth_l1_loss(h, torch.zeros_like(h), reduction="none")),
    ("maximum", "`maximum(a, b)`: a, then b", [1.0, 1.0], pair(torch.maximum)),
    ("minimum", "`minimum(a, b)`: a, then b", [1.0, 1.0], pair(torch.minimum)),
    ("max_dim", "`max(dim)`", [1.0, 2.0, 2.0], lambda h: h.max(-1, keepdim=True)[0]),
    ("min_dim", "`min(dim)`", [1.0, 1.0, 2.0], lambda h: h.min(-1, keepdim=True)[0]),
    ("amax", "`amax`", [1.0, 2.0, 2.0], lambda h: h.amax(-1, keepdim=True)),
    ("amin", "`amin`", [1.0, 1.0, 2.0], lambda h: h.amin(-1, keepdim=True)),
    ("max_pool", "`max_pool1d`", [1.0, 1.0, 0.0, 2.0], lambda h: F.max_pool1d(h[:, None], 2)[:, 0]),
    ("norm_1", "norm of order 1", [0.0, 1.0], lambda h: torch.linalg.vector_norm(h, 1, -1, keepdim=True)),
    ("norm_2", "norm of order 2", [0.0, 0.0], lambda h: torch.linalg.vector_norm(h, 2, -1, keepdim=True)),
    ("norm_3", "norm of order 3", [0.0, 0.0], lambda h: torch.linalg.vector_norm(h, 3, -1, keepdim=True)),
    ("norm_half", "norm of order 1/2", [0.0, 1.0], lambda h: torch.linalg.vector_norm(h, 0.5, -1, keepdim=True)),
    ("norm_inf", "norm of order ∞", [1.0, -1.0], lambda h: torch.linalg.vector_norm(h, float("inf"), -1, keepdim=True)),
    ("std", "`std` of equal values", [1.0, 1.0, 1.0], lambda h: h.std(-1, keepdim=True)),
    ("pairwise_distance", "`pairwise_distance(eps=0)` of equal rows", [1.0, 2.0, 1.0, 2.0], pair(lambda a, b: F.pairwise_distance(a, b, eps=0.0, keepdim=True))),
    ("hinge", "`relu(1 - x)`", [1.0], lambda h: F.relu(1 - h)),
    ("hinge_embedding", "`hinge_embedding_loss` at its margin", [1.0], lambda h: F.hinge_embedding_loss(h, -torch.ones_like(h), reduction="none")),
    ("margin_ranking", "`margin_ranking_loss` at its margin", [0.5, 0.0], pair(lambda a, b: F.margin_ranking_loss(a, b, torch.ones_like(a), margin=-0.5, reduction="none"))),
    ("multi_margin", "`multi_margin_loss` at its margin", [1.0, 0.0, 0.0], lambda h: F.multi_margin_loss(h, torch.zeros(h.shape[0], dtype=torch.int64), reduction="none")[:, None]),
    ("triplet", "`triplet_margin_loss` at its margin", [0.0, 0.5], lambda h: F.triplet_margin_loss(h, torch.zeros_like(h), torch.tensor([0.0, 2.0]).to(h) * torch.ones_like(h), margin=1.0, eps=0.0, reduction="none")[:, None]),
]  # fmt: skip


class Kinks(nn.Module):
    """The sum of all cases, each weighed by a number of its own; their points in one parameter, for exporters merge equal ones."""

    def __init__(self):
        super().__init__()
        self.points = nn.Parameter(torch.tensor([value for _, _, point, _ in CASES for value in point]))

    def forward(self, x):
        # The samples are ones: nothing is a constant, and every row is at the point.
        parts = (self.points * x).split([len(point) for _, _, point, _ in CASES], -1)
        return sum((k + 1) / 8 * f(part).sum(-1).mean() for k, (part, (_, _, _, f)) in enumerate(zip(parts, CASES)))


def number(value):
    return f"{value:g}".replace("-", "−")


def rows():
    """(name, how docs call it, point, derivative) of every case, by the PyTorch that runs this."""
    for name, title, point, f in CASES:
        h = torch.tensor([point], dtype=torch.float64, requires_grad=True)
        f(h).sum().backward()
        yield name, title, point, (h.grad[0] + 0.0).tolist()


def table(lines):
    out = ["| function | at | derivative |", "| --- | --- | --- |"]
    for _, title, point, derivative in lines:
        out.append(f"| {title} | {', '.join(map(number, point))} | {', '.join(map(number, derivative))} |")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    print(table(rows()), end="")
