"""Programs of tables, attention, recurrences, and weights that are shared or computed."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import IMAGE, LINEAR, ROWS, booleans, labels, programs, weight

TOKENS = dict(i=lambda: labels(7, 3, 5))
BAGS = dict(i=lambda: labels(7, 8))
QKV = dict(q=(2, 4, 5, 8), k=(2, 2, 6, 8), v=(2, 2, 6, 8))


def kept(m, q, k, v):
    return m.q(q), m.k(k), m.v(v)


HEADS = lambda: dict(q=nn.Linear(8, 8), k=nn.Linear(8, 8), v=nn.Linear(8, 8))  # noqa: E731
SAME = dict(q=(2, 4, 5, 8), k=(2, 4, 5, 8), v=(2, 4, 5, 8))

programs("table", [
    ("padded", lambda: dict(e=nn.Embedding(7, 4, padding_idx=2)), TOKENS, lambda m, i: m.e(i)),
    ("padded-last", lambda: dict(e=nn.Embedding(7, 4, padding_idx=-1)), TOKENS, lambda m, i: m.e(i).cumsum(1)),
    ("max-norm", lambda: dict(e=nn.Embedding(7, 4, max_norm=0.8)), TOKENS, lambda m, i: m.e(i)),
    *((f"bag-{mode}", lambda mode=mode: dict(e=nn.EmbeddingBag(7, 4, mode=mode)), TOKENS, lambda m, i: m.e(i)) for mode in ("sum", "mean", "max")),
    ("bag-offsets", lambda: dict(e=nn.EmbeddingBag(7, 4, mode="sum")), dict(BAGS, w=(8,)), lambda m, i, w: m.e(i, torch.tensor([0, 3, 3]), per_sample_weights=w)),
    ("bag-offsets-mean", lambda: dict(e=nn.EmbeddingBag(7, 4, mode="mean", include_last_offset=True)), BAGS, lambda m, i: m.e(i, torch.tensor([0, 3, 8]))),
    ("bag-padded", lambda: dict(e=nn.EmbeddingBag(7, 4, mode="mean", padding_idx=0)), TOKENS, lambda m, i: m.e(i)),
    ("tied", lambda: dict(e=nn.Embedding(7, 4), b=nn.Parameter(torch.zeros(7))), dict(i=lambda: labels(7, 3, 5), y=lambda: labels(7, 3, 5)), lambda m, i, y: F.cross_entropy((F.linear(m.e(i).tanh(), m.e.weight) + m.b).mT, y)),
    ("tied-scaled", lambda: dict(e=nn.Embedding(7, 4), p=nn.Embedding(5, 4)), dict(i=lambda: labels(7, 3, 5), y=lambda: labels(7, 3, 5)), lambda m, i, y: F.cross_entropy((m.e(i) * 2 + m.p(torch.arange(5))) .flatten(0, 1) @ m.e.weight.T * 0.5, y.flatten())),
    ("two-tables", lambda: dict(e=nn.Embedding(7, 4), f=nn.Embedding(7, 4)), TOKENS, lambda m, i: m.e(i) * m.f(6 - i) + m.e(i.flip(1))),
    ("hashed", lambda: dict(e=nn.Embedding(7, 4)), TOKENS, lambda m, i: m.e((i * 2654435761 + 12345) % 7) + m.e(torch.remainder(-i, 7)) + m.e((i * -3) // 4 + 6)),
    ("prefix", lambda: dict(e=nn.Embedding(7, 4), p=weight(2, 4)), TOKENS, lambda m, i: torch.cat([m.p.expand(3, -1, -1), m.e(i)], 1)),
])  # fmt: skip

programs("attention", [
    ("sdpa", HEADS, SAME, lambda m, q, k, v: F.scaled_dot_product_attention(*kept(m, q, k, v))),
    ("sdpa-causal", HEADS, SAME, lambda m, q, k, v: F.scaled_dot_product_attention(*kept(m, q, k, v), is_causal=True)),
    ("sdpa-causal-wide", HEADS, dict(SAME, k=(2, 4, 7, 8), v=(2, 4, 7, 8)), lambda m, q, k, v: F.scaled_dot_product_attention(*kept(m, q, k, v), is_causal=True)),
    ("sdpa-scale", HEADS, SAME, lambda m, q, k, v: F.scaled_dot_product_attention(*kept(m, q, k, v), scale=0.25)),
    ("sdpa-groups", HEADS, QKV, lambda m, q, k, v: F.scaled_dot_product_attention(*kept(m, q, k, v), enable_gqa=True)),
    ("sdpa-groups-mask", HEADS, dict(QKV, a=lambda: booleans(2, 1, 5, 6)), lambda m, q, k, v, a: F.scaled_dot_product_attention(*kept(m, q, k, v), attn_mask=a | (torch.arange(6) == 0), enable_gqa=True)),
    ("sdpa-bias", lambda: dict(HEADS(), b=weight(4, 5, 5)), SAME, lambda m, q, k, v: F.scaled_dot_product_attention(*kept(m, q, k, v), attn_mask=m.b)),
    ("sdpa-empty-row", HEADS, dict(SAME, a=lambda: torch.tril(torch.ones(5, 5), -1).bool()), lambda m, q, k, v, a: F.scaled_dot_product_attention(*kept(m, q, k, v), attn_mask=a)),
    ("softmax-empty-row", HEADS, dict(SAME, a=lambda: torch.tril(torch.ones(5, 5), -1).bool()), lambda m, q, k, v, a: torch.nan_to_num((m.q(q) @ m.k(k).mT).masked_fill(~a, -math.inf).softmax(-1)) @ m.v(v)),
    ("lowest-empty-row", HEADS, dict(SAME, a=lambda: torch.tril(torch.ones(5, 5), -1).bool()), lambda m, q, k, v, a: (m.q(q) @ m.k(k).mT).masked_fill(~a, torch.finfo(torch.float32).min).softmax(-1) @ m.v(v)),
    ("multihead", lambda: dict(n=nn.MultiheadAttention(8, 2, batch_first=True)), dict(x=(3, 5, 8), a=lambda: torch.tensor([[0, 0, 0, 1, 1], [0] * 5, [0, 0, 1, 1, 1]]).bool()), lambda m, x, a: m.n(x, x, x, key_padding_mask=a, need_weights=False)[0]),
    ("multihead-weights", lambda: dict(n=nn.MultiheadAttention(8, 2, kdim=6, vdim=4, add_bias_kv=True, add_zero_attn=True)), dict(x=(5, 3, 8), k=(4, 3, 6), v=(4, 3, 4)), lambda m, x, k, v: (lambda r: r[0].mean(-1) + r[1].mean(-1).T)(m.n(x, k, v))),
    ("encoder", lambda: dict(n=nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)), dict(x=(3, 5, 8)), lambda m, x: m.n(x, src_mask=nn.Transformer.generate_square_subsequent_mask(5), is_causal=True)),
    ("decoder", lambda: dict(n=nn.TransformerDecoderLayer(8, 2, 12, dropout=0.0, bias=False)), dict(x=(5, 3, 8), z=(4, 3, 8)), lambda m, x, z: m.n(x, z)),
    ("linear-attention", HEADS, SAME, lambda m, q, k, v: (lambda a, b, c: a @ (b.mT @ c) / (a @ b.sum(-2).unsqueeze(-1)))(F.elu(m.q(q)) + 1, F.elu(m.k(k)) + 1, m.v(v))),
    ("alibi", HEADS, SAME, lambda m, q, k, v: F.scaled_dot_product_attention(*kept(m, q, k, v), attn_mask=-(torch.arange(5)[:, None] - torch.arange(5)).abs() * torch.tensor([0.5, 0.25, 0.125, 0.0625])[:, None, None])),
    ("rotary", HEADS, SAME, lambda m, q, k, v: F.scaled_dot_product_attention(turned(m.q(q)), turned(m.k(k)), m.v(v), is_causal=True)),
    ("relative-shift", lambda: dict(HEADS(), r=weight(9, 8)), SAME, lambda m, q, k, v: (lambda s: (m.q(q) @ m.k(k).mT + F.pad(s, (1, 0)).view(2, 4, 10, 5)[:, :, 1:].view(2, 4, 5, 9)[..., :5]).softmax(-1) @ m.v(v))(m.q(q) @ m.r.T)),
    ("cosine-attention", lambda: dict(HEADS(), s=nn.Parameter(torch.full((4, 1, 1), math.log(10.0)))), SAME, lambda m, q, k, v: (F.normalize(m.q(q), dim=-1) @ F.normalize(m.k(k), dim=-1).mT * m.s.clamp(max=math.log(100.0)).exp()).softmax(-1) @ m.v(v)),
    ("talking-heads", lambda: dict(HEADS(), t=nn.Linear(4, 4, bias=False)), SAME, lambda m, q, k, v: m.t((m.q(q) @ m.k(k).mT).permute(0, 2, 3, 1)).permute(0, 3, 1, 2).softmax(-1) @ m.v(v)),
    ("sinks", lambda: dict(HEADS(), s=weight(4)), SAME, lambda m, q, k, v: (lambda w: torch.cat([w, m.s.view(1, 4, 1, 1).expand(2, -1, 5, 1)], -1).softmax(-1)[..., :-1] @ m.v(v))(m.q(q) @ m.k(k).mT)),
    ("xpos-window", HEADS, SAME, lambda m, q, k, v: F.scaled_dot_product_attention(*kept(m, q, k, v), attn_mask=((torch.arange(5)[:, None] - torch.arange(5)) < 2) & (torch.arange(5)[:, None] >= torch.arange(5)))),
])  # fmt: skip


def turned(h):
    angle = torch.arange(5)[:, None] * 10000 ** (-torch.arange(0, 8, 2) / 8)
    a, b = h.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def unrolled(m, x, cell, state):
    out = []
    for t in range(x.shape[1]):
        state = cell(x[:, t], state)
        out.append(state[0] if isinstance(state, tuple) else state)
    return torch.stack(out, 1)


SEQUENCE = (3, 4, 5)

programs("recurrent", [
    ("lstm-cell", lambda: dict(c=nn.LSTMCell(5, 4)), SEQUENCE, lambda m, x: unrolled(m, x, m.c, (x[:, 0, :4], x[:, 1, :4]))),
    ("lstm-cell-zeros", lambda: dict(c=nn.LSTMCell(5, 4)), SEQUENCE, lambda m, x: unrolled(m, x, m.c, (torch.zeros(3, 4), torch.zeros(3, 4)))),
    ("gru-cell", lambda: dict(c=nn.GRUCell(5, 4)), SEQUENCE, lambda m, x: unrolled(m, x, m.c, x[:, 0, :4])),
    ("rnn-cell", lambda: dict(c=nn.RNNCell(5, 4, nonlinearity="relu")), SEQUENCE, lambda m, x: unrolled(m, x, m.c, x[:, 0, :4])),
    ("lstm-stacked", lambda: dict(n=nn.LSTM(5, 4, 2, batch_first=True, bidirectional=True)), SEQUENCE, lambda m, x: (lambda o: o[0].mean(1) + o[1][0].sum(0).repeat(1, 2) + o[1][1][-1].repeat(1, 2))(m.n(x))),
    ("gru-stacked", lambda: dict(n=nn.GRU(5, 4, 2, bias=False)), SEQUENCE, lambda m, x: m.n(x)[0] + m.n(x)[1][:1]),
    ("rnn-relu", lambda: dict(n=nn.RNN(5, 4, nonlinearity="relu")), dict(x=SEQUENCE, h=(1, 4, 4)), lambda m, x, h: m.n(x, h)[0]),
    ("lstm-twice", lambda: dict(n=nn.LSTM(4, 4, batch_first=True), e=nn.Linear(5, 4)), SEQUENCE, lambda m, x: (lambda o: m.n(o[0].flip(1), o[1])[0])(m.n(m.e(x)))),
    ("minimal-gated", lambda: dict(f=nn.Linear(9, 4), h=nn.Linear(9, 4)), SEQUENCE, lambda m, x: gated(m, x)),
    ("selective-scan", lambda: dict(a=nn.Parameter(torch.log(torch.arange(1.0, 4).repeat(5, 1))), d=nn.Linear(5, 5), b=nn.Linear(5, 3), c=nn.Linear(5, 3), k=nn.Parameter(torch.ones(5))), SEQUENCE, lambda m, x: scanned(m, x)),
    ("returns", LINEAR, dict(x=ROWS, d=lambda: labels(2, 6).float()), lambda m, x, d: returns(m.a(x), d)),
    ("fixed-point", lambda: dict(a=nn.Linear(4, 4), b=nn.Linear(5, 4)), ROWS, lambda m, x: fixed(m, x)),
    ("ode", lambda: dict(a=nn.Linear(5, 5)), ROWS, lambda m, x: runge_kutta(m, x)),
    ("inner-gradient", lambda: dict(w=weight(4, 5), r=nn.Parameter(torch.tensor(0.1))), ROWS, lambda m, x: (lambda h: F.linear(x, m.w - m.r * (2 / 24) * (h - x[:, :4]).T @ x))(F.linear(x, m.w))),
])  # fmt: skip


def gated(m, x):
    h = torch.zeros(3, 4)
    for t in range(4):
        f = torch.sigmoid(m.f(torch.cat([x[:, t], h], 1)))
        h = (1 - f) * h + f * torch.tanh(m.h(torch.cat([x[:, t], f * h], 1)))
    return h


def scanned(m, x):
    rate, state, out = F.softplus(m.d(x)), torch.zeros(3, 5, 3), []
    for t in range(4):
        state = torch.exp(-rate[:, t, :, None] * m.a.exp()) * state + rate[:, t, :, None] * m.b(x)[:, t, None] * x[:, t, :, None]
        out.append((state * m.c(x)[:, t, None]).sum(-1) + m.k * x[:, t])
    return torch.stack(out, 1)


def returns(h, done):
    total, out = torch.zeros(4), []
    for t in reversed(range(6)):
        total = h[t] + 0.9 * (1 - done[t]) * total
        out.insert(0, total)
    return torch.stack(out)


def fixed(m, x):
    z = torch.zeros(6, 4)
    with torch.no_grad():
        for _ in range(3):
            z = torch.tanh(m.a(z) + m.b(x))
    return torch.tanh(m.a(z) + m.b(x))


def runge_kutta(m, x):
    f = lambda v: m.a(v).tanh()  # noqa: E731
    for _ in range(2):
        k1 = f(x)
        k2 = f(x + 0.25 * k1)
        k3 = f(x + 0.25 * k2)
        k4 = f(x + 0.5 * k3)
        x = x + (k1 + 2 * k2 + 2 * k3 + k4) / 12
    return x


class StandardizedConv(nn.Conv2d):
    """Filters of mean zero and deviation one, as timm's BiT computes them."""

    def forward(self, x):
        return F.conv2d(x, F.batch_norm(self.weight.reshape(1, self.out_channels, -1), None, None, training=True, momentum=0.0, eps=1e-8).reshape_as(self.weight), self.bias, padding=1)


def shared(first, second):
    second.weight = first.weight
    return dict(a=first, b=second)


programs("share", [
    ("auto-encoder", lambda: dict(w=weight(3, 5), b=weight(5)), ROWS, lambda m, x: F.linear(torch.tanh(x @ m.w.T), m.w.T, m.b)),
    ("same-layer", lambda: dict(a=nn.Linear(5, 5)), ROWS, lambda m, x: m.a(m.a(m.a(x).tanh()).tanh())),
    ("same-weight", lambda: shared(nn.Linear(5, 5), nn.Linear(5, 5)), ROWS, lambda m, x: m.b(m.a(x).tanh())),
    ("same-kernel", lambda: shared(nn.Conv2d(4, 4, 3), nn.ConvTranspose2d(4, 4, 3)), IMAGE, lambda m, x: m.b(m.a(x).tanh())),
    ("same-norm", lambda: dict(a=nn.Linear(5, 5), n=nn.LayerNorm(5)), ROWS, lambda m, x: m.n(m.a(m.n(x)))),
    ("low-rank", lambda: dict(a=nn.Linear(5, 4), p=weight(2, 5), q=nn.Parameter(torch.zeros(4, 2))), ROWS, lambda m, x: m.a(x) + 2.0 * (x @ m.p.T @ m.q.T)),
    ("low-rank-merged", lambda: dict(w=weight(4, 5), p=weight(2, 5), q=weight(4, 2)), ROWS, lambda m, x: F.linear(x, m.w + 0.5 * m.q @ m.p)),
    ("weight-list", lambda: dict(w=nn.ParameterList([weight(5, 5) for _ in range(3)])), ROWS, lambda m, x: x @ m.w[0] @ m.w[1] + x @ m.w[2]),
    ("weight-dict", lambda: dict(w=nn.ParameterDict(dict(up=weight(5, 3), down=weight(3, 5)))), ROWS, lambda m, x: (x @ m.w["up"]).relu() @ m.w["down"]),
    ("stacked-experts", lambda: dict(w=weight(3, 5, 4), g=nn.Linear(5, 3)), ROWS, lambda m, x: (torch.einsum("bi,eio->beo", x, m.w) * m.g(x).softmax(-1)[..., None]).sum(1)),
    ("routed", lambda: dict(w=weight(3, 5, 4), g=nn.Linear(5, 3)), ROWS, lambda m, x: (lambda t: torch.bmm(x[:, None], m.w[t.indices[:, 0]])[:, 0] * t.values)(m.g(x).softmax(-1).topk(1, -1))),
    ("masked-weight", lambda: dict(w=weight(4, 5), k=booleans(4, 5).float()), ROWS, lambda m, x: F.linear(x, m.w * m.k)),
    ("scaled-layer", lambda: dict(a=nn.Linear(5, 4), g=weight(4), b=nn.Linear(4, 4)), (3, 6, 5), lambda m, x: m.b((m.a(x) * m.g).relu()) * 0.5),
    ("standardized-layer", lambda: dict(c=StandardizedConv(4, 4, 3), d=StandardizedConv(4, 3, 3)), IMAGE, lambda m, x: m.d(m.c(x).relu())),
    ("centred-weight", lambda: dict(w=weight(4, 5)), ROWS, lambda m, x: F.linear(x, m.w - m.w.mean(1, keepdim=True))),
    ("quantized-weight", lambda: dict(w=weight(4, 5), s=nn.Parameter(torch.tensor(0.1))), ROWS, lambda m, x: F.linear(x, (lambda v: (v.round() - v).detach() + v)(m.w / m.s).clamp(-4, 3) * m.s)),
    ("binary-weight", lambda: dict(w=weight(4, 5)), ROWS, lambda m, x: F.linear(x, (m.w.sign() * m.w.abs().mean() - m.w).detach() + m.w)),
    ("positive-weight", lambda: dict(w=weight(4, 5)), ROWS, lambda m, x: F.linear(x, F.softplus(m.w)) + F.linear(x, m.w.square()) + F.linear(x, m.w.abs())),
    ("normalized-rows", lambda: dict(w=weight(4, 5)), ROWS, lambda m, x: F.linear(x, F.normalize(m.w, dim=1))),
    ("soft-weight", lambda: dict(w=weight(4, 5)), ROWS, lambda m, x: F.linear(x, m.w.softmax(1))),
    ("concatenated-weight", lambda: dict(p=weight(2, 5), q=weight(3, 5)), ROWS, lambda m, x: F.linear(x, torch.cat([m.p, m.q])) * F.linear(x, torch.stack([m.p[0], m.q[1]])).sum(1, keepdim=True)),
    ("half-used", lambda: dict(w=weight(6, 5)), ROWS, lambda m, x: F.linear(x, m.w[:3]) + F.linear(x, m.w[3:])),
    ("circulant", lambda: dict(w=weight(5)), ROWS, lambda m, x: x @ torch.stack([m.w.roll(i) for i in range(5)])),
    ("toeplitz", lambda: dict(w=weight(9)), ROWS, lambda m, x: x @ m.w[torch.arange(5)[:, None] - torch.arange(5) + 4]),
    ("skew", lambda: dict(w=weight(5, 5)), ROWS, lambda m, x: x @ (m.w - m.w.T) + x @ torch.matrix_exp(m.w.triu(1))),
    ("determinant", lambda: dict(w=weight(4, 4)), ROWS, lambda m, x: x[:, :4] @ m.w - torch.linalg.slogdet(m.w + 2 * torch.eye(4))[1]),
    ("gates-of-zeros", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4), g=nn.Parameter(torch.zeros(1)), s=nn.Parameter(torch.ones(1))), ROWS, lambda m, x: m.a(x) * m.s + m.b(x) * m.g.tanh()),
    ("layer-scales", lambda: dict(a=nn.Linear(5, 5), b=nn.Linear(5, 5), g=nn.Parameter(torch.full((5,), 1e-5)), s=nn.Parameter(torch.full((5,), 1e-5))), ROWS, lambda m, x: x + m.g * m.a(x) + m.s * m.b(x)),
    ("uncertainty-weights", lambda: dict(a=nn.Linear(5, 4), s=nn.Parameter(torch.zeros(2))), dict(x=ROWS, t=(6, 4)), lambda m, x, t: (torch.exp(-m.s) * torch.stack([F.mse_loss(m.a(x), t), F.l1_loss(m.a(x), t)]) + m.s).sum()),
    ("penalties", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(4, 4)), dict(x=ROWS, t=(6, 4)), lambda m, x, t: F.mse_loss(m.b(m.a(x).relu()), t) + 1e-2 * sum(p.square().sum() for p in m.parameters()) + 1e-3 * m.a.weight.abs().sum()),
])  # fmt: skip
