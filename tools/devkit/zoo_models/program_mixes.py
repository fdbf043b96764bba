"""Programs of the kinds that random compositions found: exponents, first steps of recurrences, padded tables that are indexed, sums of multiples."""

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import LINEAR, PAIRS, ROWS, labels, programs, weight

IDS = dict(i=lambda: labels(7, 4, 3))
PADDED = lambda: dict(e=nn.Embedding(7, 6, padding_idx=0))  # noqa: E731
STEPS = (4, 3, 5)


def decayed(m, x):
    """A leaky sum, whose first state is zeros."""
    s = torch.zeros(4, 5).to(x)
    for step in m.a(x).unbind(1):
        s = s * m.p.sigmoid() + step
    return s


def exponential(m, x):
    """The same with a decay of several operations, and every state kept."""
    s, all_states = x.new_zeros(4, 5), []
    decay = torch.exp(-F.softplus(m.p))
    for i in range(x.shape[1]):
        s = decay * s + x[:, i]
        all_states.append(s)
    return torch.stack(all_states, 1)


programs(
    "mixes",
    [
        ("mix-exponent", lambda: dict(p=weight(5)), ROWS, lambda m, x: (x.abs() + 0.3) ** m.p),
        ("mix-exponent-number", lambda: LINEAR() | dict(p=nn.Parameter(torch.tensor([3.0]))), ROWS, lambda m, x: m.a(x).clamp(min=1e-3).pow(m.p)),
        ("mix-decay", lambda: dict(a=nn.Linear(5, 5), p=weight(5)), STEPS, decayed),
        ("mix-decay-exponential", lambda: dict(p=weight(5)), STEPS, exponential),
        ("mix-padded-index", PADDED, IDS, lambda m, i: m.e.weight[i]),
        ("mix-padded-select", PADDED, IDS, lambda m, i: m.e.weight.index_select(0, i.reshape(-1)).view(*i.shape, -1)),
        ("mix-padded-both", PADDED, dict(i=lambda: labels(7, 4, 3), j=lambda: labels(7, 4, 3)), lambda m, i, j: m.e(i) * m.e.weight[j]),
        ("mix-add-multiple", lambda: LINEAR() | dict(p=weight(4)), PAIRS, lambda m, x, t: F.mse_loss(torch.add(m.a(x), m.p.expand_as(t), alpha=0.5), t)),
        ("mix-sub-multiple", lambda: LINEAR() | dict(p=weight(4)), ROWS, lambda m, x: torch.sub(m.a(x), m.p, alpha=2)),
        ("mix-take", lambda: dict(w=weight(7, 6)), IDS, lambda m, i: torch.take(m.w, i)),
    ],
)
