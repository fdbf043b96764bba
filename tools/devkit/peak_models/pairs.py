"""Two views of each sample, compared with those of all others by rows and by columns, as CLIP's are."""

import torch
from torch import nn
from torch.nn import functional as F

from devkit.peak_models import Case

PAIRS, WIDTH = 3072, 64
ROWS_AT_A_TIME = 32


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.scale = nn.Linear(32, WIDTH), nn.Linear(48, WIDTH), nn.Parameter(torch.tensor(2.6))

    def views(self, x, z):
        return (F.normalize(layer(given), dim=-1) for layer, given in ((self.a, x), (self.b, z)))

    def forward(self, x, z):
        a, b = self.views(x, z)
        by_a = self.scale.exp() * a @ b.T
        own = torch.arange(x.shape[0])
        return (F.cross_entropy(by_a, own) + F.cross_entropy(by_a.T, own)) / 2


class SomeRows(torch.autograd.Function):
    """Loss and gradients of both, a few rows of similarities at a time."""

    @staticmethod
    def forward(ctx, a, b, scale):
        sums = [torch.zeros_like(value) for value in (a, b, scale)]
        total = a.new_zeros(())
        for rows, others, order in ((a, b, (0, 1)), (b, a, (1, 0))):
            for first in range(0, len(rows), ROWS_AT_A_TIME):
                some = slice(first, first + ROWS_AT_A_TIME)
                given = [value.detach().requires_grad_() for value in (rows[some], others, scale)]
                with torch.enable_grad():
                    logits = given[2] * given[0] @ given[1].T
                    own = torch.arange(first, first + len(logits))
                    loss = F.cross_entropy(logits, own, reduction="sum") / (2 * len(rows))
                d_rows, d_others, d_scale = torch.autograd.grad(loss, given)
                sums[order[0]][some] += d_rows
                sums[order[1]] += d_others
                sums[2] += d_scale
                total += loss.detach()
        ctx.save_for_backward(*sums)
        return total

    @staticmethod
    def backward(ctx, d_total):
        return tuple(d_total * value for value in ctx.saved_tensors)


def by_hand(module, feeds):
    return SomeRows.apply(*module.views(feeds["x"], feeds["z"]), module.scale.exp())


def feeds():
    random = torch.Generator().manual_seed(0)
    return {name: torch.randn(PAIRS, width, generator=random) for name, width in (("x", 32), ("z", 48))}


CASES = [
    Case(
        "rows and columns", Pairs, feeds, lambda module, feeds: module(**feeds), inputs=("x", "z"), hand=by_hand,
        by_hand="32 rows of similarities at a time, by both, forward and backward together",
    ),
]  # fmt: skip
