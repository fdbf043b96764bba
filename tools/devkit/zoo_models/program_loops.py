"""Programs whose recurrences are loops in Python: files have them step after step."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import programs, weight

STEPS = (3, 20, 5)


def over_steps(m, x):
    h = c = torch.zeros(3, 4)
    for t in range(20):
        h, c = m.n(x[:, t], (h, c))
    return m.a(torch.cat([h, c], 1))


def both_ways(m, x):
    h = torch.zeros(3, 4)
    forth = [h := m.n(part, h) for part in x.unbind(1)]
    h = torch.zeros(3, 4)
    back = [h := m.d(part, h) for part in reversed(x.unbind(1))]
    return m.a(torch.cat([torch.stack(forth, 1), torch.stack(back[::-1], 1)], -1))


def two_cells(m, x):
    h, c, g, out = torch.zeros(3, 4), torch.zeros(3, 4), torch.zeros(3, 4), []
    for t in range(20):
        h, c = m.n(x[:, t], (h, c))
        g = m.d(h, g)
        out.append(m.a(g))
    return torch.stack(out, 1)


def layers_of_lists(m, x):
    h, rows = torch.zeros(3, 4), []
    for t in range(20):
        h = m.n(x[:, t], h)
        rows.append(h)
    h, out = torch.zeros(3, 4), []
    for row in rows:
        h = m.d(row, h)
        out.append(h)
    return torch.stack(out).mean(0)


def with_attention(m, x):
    memory, h, out = m.m(x), m.h.expand(3, 4), []
    for t in range(20):
        seen = ((memory @ h[..., None]).softmax(1) * memory).sum(1)
        h = m.n(torch.cat([x[:, t], seen], -1), h)
        out.append(h + seen)
    return torch.stack(out, 1)


def selective(m, x):
    """The scan of a state-space layer (Gu and Dao 2023), as its reference code has it."""
    delta, b, c = F.softplus(m.t(x)), m.b(x), m.c(x)
    kept, added = (delta[..., None] * -m.r.exp()).exp(), delta[..., None] * b[:, :, None] * x[..., None]
    h, out = torch.zeros(3, 5, 4), []
    for t in range(20):
        h = kept[:, t] * h + added[:, t]
        out.append((h * c[:, t, None]).sum(-1))
    return torch.stack(out, 1) + m.d * x


def delta_rule(m, x):
    q, k, v, beta = m.q(x), F.normalize(m.k(x), dim=-1), m.v(x), m.b(x).sigmoid()
    s, out = torch.zeros(3, 5, 5), []
    for t in range(20):
        change = v[:, t] - torch.einsum("bij,bj->bi", s, k[:, t])
        s = s + beta[:, t, :, None] * change[:, :, None] * k[:, t, None]
        out.append(torch.einsum("bij,bj->bi", s, q[:, t]))
    return torch.stack(out, 1)


def weighted_mean(m, x):
    """Two sums that decay, and their quotient (RWKV, Peng and others 2023)."""
    k, v, decay = m.k(x), m.v(x), (-m.w).exp()
    over, under, out = torch.zeros(3, 5), torch.zeros(3, 5), []
    for t in range(20):
        now = (m.u + k[:, t]).exp()
        out.append((over + now * v[:, t]) / (under + now))
        over, under = decay * over + k[:, t].exp() * v[:, t], decay * under + k[:, t].exp()
    return torch.stack(out, 1)


def masked_words(m, x):
    ids, mask, h = (x[..., 0].abs() * 3).long().clamp(max=8), (x[..., 1] > -0.5).to(x.dtype), torch.zeros(3, 4)
    for t in range(20):
        part = mask[:, t, None]
        h = m.l(part * m.n(m.e(ids[:, t]), h) + (1 - part) * h)
    return h


def with_penalty(m, x):
    h, penalty, middle = torch.zeros(3, 4), 0.0, None
    for t in range(20):
        following = m.n(x[:, t], h)
        penalty, h = penalty + (following - h).square().mean(), following
        middle = h if t == 7 else middle
    return torch.cat([m.a(h), m.a(middle), penalty.expand(3, 1)], 1)


def over_frames(m, x):
    h, c, out = torch.zeros(3, 2, 5), torch.zeros(3, 2, 5), []
    for t in range(20):
        i, f, g, o = m.f(torch.cat([x[:, t : t + 1], h], 1)).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        out.append(h)
    return torch.stack(out, 1)


def dropped(m, x):
    h = torch.zeros(3, 4)
    for t in range(20):
        h = F.dropout(m.n(x[:, t], h), 0.2, m.training)
    return h


def euler(m, x):
    """An ordinary differential equation that reads the time."""
    h, out = x[:, 0], []
    for t in range(20):
        h = h + 0.05 * m.b(torch.tanh(m.a(torch.cat([h, torch.full((3, 1), t * 0.05)], 1))))
        out.append(h)
    return torch.stack(out, 1)


def denoised(m, x):
    """From the last step of a schedule to the first, with the schedule's numbers and positions computed in Python."""
    h, out = torch.zeros(3, 4), []
    for t in reversed(range(20)):
        place = torch.tensor([math.sin(t / 10 ** (i / 5)) for i in range(5)])
        h = (m.n(x[:, t] + place, h) - 0.1 * h / math.sqrt(1 + t)) * 0.98**t
        out.append(h)
    return torch.stack(out[::-1], 1)


def truncated(m, x):
    """Gradients through six steps at most (truncated backpropagation through time)."""
    h, out = torch.zeros(3, 4), []
    for t in range(20):
        h = m.n(x[:, t], h)
        h = h.detach() if t % 6 == 5 else h
        out.append(h)
    return torch.stack(out, 1)


def two_rows(m, x):
    h, out = torch.zeros(3, 4), []
    for pair in x.split(2, 1):
        h = m.n(pair.flatten(1), h)
        out.append(h)
    return torch.stack(out, 1)


programs("loops", [
    ("loop-lstm", lambda: dict(n=nn.LSTMCell(5, 4), a=nn.Linear(8, 2)), STEPS, over_steps),
    ("loop-both", lambda: dict(n=nn.GRUCell(5, 4), d=nn.GRUCell(5, 4), a=nn.Linear(8, 2)), STEPS, both_ways),
    ("loop-two-cells", lambda: dict(n=nn.LSTMCell(5, 4), d=nn.GRUCell(4, 4), a=nn.Linear(4, 2)), STEPS, two_cells),
    ("loop-layers", lambda: dict(n=nn.RNNCell(5, 4), d=nn.GRUCell(4, 4)), STEPS, layers_of_lists),
    ("loop-attention", lambda: dict(n=nn.GRUCell(9, 4), m=nn.Linear(5, 4), h=weight(4)), STEPS, with_attention),
    ("loop-selective", lambda: dict(t=nn.Linear(5, 5), b=nn.Linear(5, 4), c=nn.Linear(5, 4), r=weight(5, 4), d=weight(5)), STEPS, selective),
    ("loop-delta-rule", lambda: dict(q=nn.Linear(5, 5), k=nn.Linear(5, 5), v=nn.Linear(5, 5), b=nn.Linear(5, 1)), STEPS, delta_rule),
    ("loop-weighted-mean", lambda: dict(k=nn.Linear(5, 5), v=nn.Linear(5, 5), w=weight(5), u=weight(5)), STEPS, weighted_mean),
    ("loop-masked-words", lambda: dict(e=nn.Embedding(9, 5), n=nn.GRUCell(5, 4), l=nn.LayerNorm(4)), STEPS, masked_words),
    ("loop-penalty", lambda: dict(n=nn.GRUCell(5, 4), a=nn.Linear(4, 2)), STEPS, with_penalty),
    ("loop-frames", lambda: dict(f=nn.Conv1d(3, 8, 3, padding=1)), STEPS, over_frames),
    ("loop-dropout", lambda: dict(n=nn.GRUCell(5, 4)), STEPS, dropped),
    ("loop-euler", lambda: dict(a=nn.Linear(6, 4), b=nn.Linear(4, 5)), STEPS, euler),
    ("loop-denoised", lambda: dict(n=nn.RNNCell(5, 4)), STEPS, denoised),
    ("loop-truncated", lambda: dict(n=nn.GRUCell(5, 4)), STEPS, truncated),
    ("loop-two-rows", lambda: dict(n=nn.RNNCell(10, 4)), (3, 40, 5), two_rows),
    ("rnn-long", lambda: dict(n=nn.RNN(5, 4, 2, bidirectional=True)), (20, 3, 5), lambda m, x: m.n(x)[0]),
])  # fmt: skip
