"""Programs as people report them: attention with positions, recurrences, graphs, flows, experts, recommenders, detectors."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.program_layers import HEADS, SAME, SEQUENCE
from devkit.zoo_models.programs import CLASSES, CONV, CONV1, IMAGE, LINE, LINEAR, PAIRS, ROWS, booleans, labels, programs, weight

SELF = dict(x=(3, 5, 8))
TEXT = dict(i=lambda: labels(9, 3, 5))


class Attention(nn.Module):
    """Heads over one projection, with a causal buffer, as small GPTs write it."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(8, 24), nn.Linear(8, 8)
        self.attn_dropout, self.resid_dropout = nn.Dropout(dropout), nn.Dropout(dropout)
        self.register_buffer("bias", torch.tril(torch.ones(6, 6)).view(1, 1, 6, 6))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.c_attn(x).split(8, dim=2)
        q, k, v = (h.view(b, t, 2, 4).transpose(1, 2) for h in (q, k, v))
        s = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        s = s.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        y = self.attn_dropout(F.softmax(s, dim=-1)) @ v
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c)))


class Window(nn.Module):
    """Attention in a window with a table of relative positions."""

    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(8, 24), nn.Linear(8, 8)
        self.relative_position_bias_table = nn.Parameter(torch.randn(9, 2) * 0.2)
        c = torch.stack(torch.meshgrid(torch.arange(2), torch.arange(2), indexing="ij")).flatten(1)
        r = (c[:, :, None] - c[:, None]).permute(1, 2, 0) + 1
        self.register_buffer("relative_position_index", r[..., 0] * 3 + r[..., 1])

    def forward(self, x):
        q, k, v = self.qkv(x).reshape(-1, 4, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        s = q * 0.5 @ k.transpose(-2, -1) + self.relative_position_bias_table[self.relative_position_index.view(-1)].view(4, 4, -1).permute(2, 0, 1).unsqueeze(0)
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(-1, 4, 8))


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8, bias=False) for _ in range(3))
        self.register_buffer("inv_freq", 1.0 / (10000 ** (torch.arange(0, 4, 2).float() / 4)), persistent=False)

    def forward(self, x):
        q, k, v = (p(x).view(3, 5, 2, 4).transpose(1, 2) for p in (self.q, self.k, self.v))
        f = torch.outer(torch.arange(5, device=x.device).float(), self.inv_freq)
        cos, sin = torch.cat([f, f], -1).cos()[None, None], torch.cat([f, f], -1).sin()[None, None]
        turn = lambda h: h * cos + torch.cat([-h[..., 2:], h[..., :2]], -1) * sin  # noqa: E731
        mask = torch.full((5, 5), float("-inf")).triu(1)
        s = turn(q) @ turn(k).transpose(2, 3) / 2 + mask
        return (F.softmax(s, dim=-1, dtype=torch.float32).to(q.dtype) @ v).transpose(1, 2).reshape(3, 5, 8)


programs("attention", [
    ("report-causal-buffer", lambda: dict(n=Attention()), SELF, lambda m, x: m.n(x)),
    ("report-causal-dropout", lambda: dict(n=Attention(0.1)), SELF, lambda m, x: x + m.n(x)),
    ("report-window", lambda: dict(n=Window()), dict(x=(2, 4, 4, 8)), lambda m, x: unwindowed(m.n(windowed(x)))),
    ("report-window-shifted", lambda: dict(n=Window()), dict(x=(2, 4, 4, 8)), lambda m, x: unwindowed(m.n(windowed(x.roll((-1, -1), (1, 2))))).roll((1, 1), (1, 2))),
    ("report-rotary", lambda: dict(n=Rotary()), SELF, lambda m, x: m.n(x)),
    ("report-decomposed-positions", lambda: dict(q=nn.Linear(8, 8), k=nn.Linear(8, 8), h=weight(3, 8), w=weight(5, 8)), dict(x=(2, 6, 8)), lambda m, x: decomposed(m, x)),
    ("report-bucketed", lambda: dict(HEADS(), b=nn.Embedding(8, 4)), SAME, lambda m, q, k, v: (m.q(q) @ m.k(k).mT + m.b(buckets(5)).permute(2, 0, 1)).softmax(-1) @ m.v(v)),
    ("report-class-token", lambda: dict(t=nn.Parameter(torch.zeros(1, 1, 8)), p=weight(1, 6, 8), n=nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, dropout=0.0)), SELF, lambda m, x: m.n(torch.cat([m.t.expand(3, -1, -1), x], 1) + m.p)[:, 0]),
    ("report-class-token-repeated", lambda: dict(t=weight(1, 1, 8), p=weight(1, 6, 8), n=nn.LayerNorm(8)), SELF, lambda m, x: m.n(torch.cat((m.t.repeat(x.shape[0], 1, 1), x), dim=1) + m.p[:, :6])),
    ("report-latents", lambda: dict(l=weight(3, 8), n=nn.MultiheadAttention(8, 2, batch_first=True)), SELF, lambda m, x: m.n(m.l.unsqueeze(0).repeat(3, 1, 1), x, x)[0]),
    ("report-padding-loss", lambda: dict(e=nn.Embedding(9, 8, padding_idx=0), n=nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, dropout=0.0), a=nn.Linear(8, 9)), dict(i=lambda: torch.tensor([[3, 4, 5, 0, 0], [1, 2, 7, 8, 0]])), lambda m, i: F.cross_entropy(m.a(m.n(m.e(i) * math.sqrt(8), src_key_padding_mask=i == 0)).transpose(1, 2), i, ignore_index=0)),
    ("report-tied-language", lambda: tied_language(), TEXT, lambda m, i: F.cross_entropy(m.h(m.n(m.e(i) + m.p(torch.arange(5)))).flatten(0, 1), i.roll(-1, 1).flatten())),
    ("report-sinusoids", lambda: dict(a=nn.Linear(8, 8), pe=sinusoids()), SELF, lambda m, x: m.a(x) + m.pe[:, : x.size(1)]),
    ("report-linear-elu", HEADS, SAME, lambda m, q, k, v: (lambda a, b: torch.einsum("bhnd,bhde->bhne", a, torch.einsum("bhnd,bhne->bhde", b, m.v(v))) * (1 / (torch.einsum("bhnd,bhd->bhn", a, b.sum(2)) + 1e-6))[..., None])(F.elu(m.q(q)) + 1, F.elu(m.k(k)) + 1)),
    ("report-nonlocal", lambda: dict(t=nn.Conv2d(4, 2, 1), p=nn.Conv2d(4, 2, 1), g=nn.Conv2d(4, 2, 1), o=nn.Conv2d(2, 4, 1), gamma=nn.Parameter(torch.zeros(1))), IMAGE, lambda m, x: x + m.gamma * m.o((torch.bmm(F.softmax(torch.bmm(m.t(x).flatten(2).transpose(1, 2), m.p(x).flatten(2)), -1), m.g(x).flatten(2).transpose(1, 2))).transpose(1, 2).reshape(2, 2, 6, 7))),
    ("report-axial", lambda: dict(n=nn.MultiheadAttention(4, 2, batch_first=True)), IMAGE, lambda m, x: (lambda h: m.n(h, h, h, need_weights=False)[0].view(2, 6, 7, 4).permute(0, 3, 1, 2))(x.permute(0, 2, 3, 1).reshape(12, 7, 4))),
    ("report-slots", lambda: dict(q=nn.Linear(8, 8), k=nn.Linear(8, 8), s=weight(3, 8), c=nn.GRUCell(8, 8)), SELF, lambda m, x: slots(m, x)),
    ("report-routing", lambda: dict(w=weight(4, 2, 3, 5)), dict(x=(2, 4, 5)), lambda m, x: routed(m, x)),
    ("report-additive", lambda: dict(w=nn.Linear(8, 4), u=nn.Linear(8, 4, bias=False), v=nn.Linear(4, 1, bias=False)), dict(x=(3, 5, 8), q=(3, 8), n=lambda: torch.tensor([5, 3, 1])), lambda m, x, q, n: (lambda s: torch.bmm(s.masked_fill(torch.arange(5)[None] >= n[:, None], -1e9).softmax(1)[:, None], x)[:, 0])(m.v(torch.tanh(m.w(x) + m.u(q)[:, None])).squeeze(-1))),
    ("report-grouped-expand", lambda: dict(q=nn.Linear(8, 8), k=nn.Linear(8, 4), v=nn.Linear(8, 4)), SELF, lambda m, x: F.scaled_dot_product_attention(m.q(x).view(3, 5, 4, 2).transpose(1, 2), repeated(m.k(x).view(3, 5, 2, 2).transpose(1, 2)), repeated(m.v(x).view(3, 5, 2, 2).transpose(1, 2)), is_causal=True).transpose(1, 2).reshape(3, 5, 8)),
    ("report-mask-where", HEADS, dict(SAME, k_=lambda: booleans(2, 1, 1, 5) | (torch.arange(5) == 0)), lambda m, q, k, v, k_: torch.where(k_, m.q(q) @ m.k(k).mT, torch.finfo(torch.float32).min).softmax(-1) @ m.v(v)),
    ("report-mask-product", HEADS, dict(SAME, k_=lambda: (torch.rand(2, 5) > 0.3).long()), lambda m, q, k, v, k_: (m.q(q) @ m.k(k).mT / 8**0.5 + (1.0 - k_[:, None, None].float()) * -10000.0).softmax(-1) @ m.v(v)),
    ("report-mask-subtract", HEADS, dict(SAME, k_=lambda: (torch.rand(2, 5) > 0.3).float()), lambda m, q, k, v, k_: (lambda s: s * k_[:, None, None] - 1e10 * (1 - k_[:, None, None]))(m.q(q) @ m.k(k).mT).softmax(-1) @ m.v(v)),
])  # fmt: skip


def windowed(x):
    return x.view(2, 2, 2, 2, 2, 8).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, 8)


def unwindowed(x):
    return x.view(2, 2, 2, 2, 2, 8).permute(0, 1, 3, 2, 4, 5).reshape(2, 4, 4, 8)


def decomposed(m, x):
    q, k = m.q(x), m.k(x)
    rows = m.h[torch.arange(2)[:, None] - torch.arange(2)[None] + 1]
    columns = m.w[torch.arange(3)[:, None] - torch.arange(3)[None] + 2]
    r = q.view(2, 2, 3, 8)
    s = (q @ k.mT).view(2, 2, 3, 2, 3) + torch.einsum("bhwc,hkc->bhwk", r, rows)[..., None] + torch.einsum("bhwc,wkc->bhwk", r, columns)[:, :, :, None]
    return s.view(2, 6, 6).softmax(-1) @ x


def buckets(n):
    r = torch.arange(n)[None] - torch.arange(n)[:, None]
    out = (r > 0).long() * 4
    r = r.abs()
    large = 2 + (torch.log(r.float().clamp(min=1) / 2) / math.log(4 / 2) * 2).long()
    return out + torch.where(r < 2, r, large.clamp(max=3))


def tied_language():
    parts = dict(e=nn.Embedding(9, 8), p=nn.Embedding(5, 8), n=nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, dropout=0.0), h=nn.Linear(8, 9, bias=False))
    parts["h"].weight = parts["e"].weight
    return parts


def sinusoids():
    pe, at = torch.zeros(1, 7, 8), torch.arange(7).unsqueeze(1)
    div = torch.exp(torch.arange(0, 8, 2) * (-math.log(10000.0) / 8))
    pe[0, :, 0::2], pe[0, :, 1::2] = torch.sin(at * div), torch.cos(at * div)
    return pe


def slots(m, x):
    k, s = m.k(x), m.s.expand(3, -1, -1)
    for _ in range(2):
        w = (k @ m.q(s).mT / 8**0.5).softmax(-1) + 1e-8
        u = (w / w.sum(1, keepdim=True)).mT @ x
        s = m.c(u.reshape(-1, 8), s.reshape(-1, 8)).view(3, 3, 8)
    return s


def squash(s):
    n = (s**2).sum(-1, keepdim=True)
    return n / (1 + n) * s / (torch.sqrt(n) + 1e-8)


def routed(m, x):
    u = torch.einsum("iojc,bic->bioj", m.w, x)
    fixed, b = u.detach(), torch.zeros(2, 4, 2, 1)
    for i in range(3):
        c = F.softmax(b, dim=2)
        if i == 2:
            return squash((c * u).sum(1))
        v = squash((c * fixed).sum(1, keepdim=True))
        b = b + (fixed * v).sum(-1, keepdim=True)


def repeated(h):
    b, n, t, d = h.shape
    return h[:, :, None].expand(b, n, 2, t, d).reshape(b, n * 2, t, d)


programs("recurrent", [
    ("report-lengths-gather", lambda: dict(n=nn.LSTM(5, 4, batch_first=True)), dict(x=SEQUENCE, l=lambda: torch.tensor([4, 2, 1])), lambda m, x, l: m.n(x)[0].gather(1, (l - 1).view(-1, 1, 1).expand(3, 1, 4)).squeeze(1)),
    ("report-lengths-index", lambda: dict(n=nn.GRU(5, 4, batch_first=True)), dict(x=SEQUENCE, l=lambda: torch.tensor([4, 2, 1])), lambda m, x, l: m.n(x)[0][torch.arange(3), l - 1]),
    ("report-lengths-masked", lambda: dict(n=nn.GRU(5, 4, batch_first=True, bidirectional=True)), dict(x=SEQUENCE, l=lambda: torch.tensor([4, 2, 1])), lambda m, x, l: (lambda h, k: (h * k).sum(1) / k.sum(1))(m.n(x)[0], (torch.arange(4)[None] < l[:, None]).float()[..., None])),
    ("report-zero-states", lambda: dict(n=nn.LSTM(5, 4, 2, batch_first=True)), SEQUENCE, lambda m, x: m.n(x, (torch.zeros(2, x.size(0), 4), torch.zeros(2, x.size(0), 4)))[0][:, -1]),
    ("report-first-of-both", lambda: dict(n=nn.LSTM(5, 4, batch_first=True, bidirectional=True)), SEQUENCE, lambda m, x: (lambda o: torch.cat((o[:, -1, :4], o[:, 0, 4:]), 1))(m.n(x)[0])),
    ("report-text-classes", lambda: dict(e=nn.Embedding(9, 5), n=nn.LSTM(5, 4, 2, dropout=0.3), d=nn.Dropout(0.5), a=nn.Linear(4, 3)), dict(i=lambda: labels(9, 5, 3), y=lambda: labels(3, 3)), lambda m, i, y: F.cross_entropy(m.a(m.d(m.n(m.e(i))[0][-1])), y)),
    ("report-tagger", lambda: dict(e=nn.Embedding(9, 5), n=nn.LSTM(5, 2, bidirectional=True), a=nn.Linear(4, 3)), dict(i=lambda: labels(9, 5), y=lambda: labels(3, 5)), lambda m, i, y: F.nll_loss(F.log_softmax(m.a(m.n(m.e(i).view(5, 1, -1))[0].view(5, -1)), dim=1), y)),
    ("report-decoder-loop", lambda: dict(e=nn.Embedding(9, 4), c=nn.GRUCell(4, 4), a=nn.Linear(4, 9)), TEXT, lambda m, i: decoder_loop(m, i)),
    ("report-truncated", lambda: dict(c=nn.GRUCell(5, 4)), SEQUENCE, lambda m, x: truncated(m, x)),
    ("report-conv-cell", lambda: dict(g=nn.Conv2d(3 + 2, 8, 3, padding=1)), dict(x=(2, 3, 3, 4, 4)), lambda m, x: conv_cell(m, x)),
    ("report-layer-norm-cell", lambda: dict(i=nn.Linear(5, 16, bias=False), h=nn.Linear(4, 16, bias=False), n=nn.LayerNorm(16), k=nn.LayerNorm(16), o=nn.LayerNorm(4)), SEQUENCE, lambda m, x: normed_cell(m, x)),
    ("report-gru-by-hand", lambda: dict(i=nn.Linear(5, 12), h=nn.Linear(4, 12)), SEQUENCE, lambda m, x: gru_by_hand(m, x)),
    ("report-scan-logs", lambda: dict(z=nn.Linear(5, 4), h=nn.Linear(5, 4)), SEQUENCE, lambda m, x: (lambda c, v: (lambda a: (a + torch.logcumsumexp(v - a, 1)).exp())(c.cumsum(1)))(-F.softplus(m.z(x)), -F.softplus(-m.z(x)) + torch.where(m.h(x) >= 0, (F.relu(m.h(x)) + 0.5).log(), -F.softplus(-m.h(x))))),
    ("report-time-mix", lambda: dict(w=weight(5), u=weight(5), k=nn.Linear(5, 5, bias=False), v=nn.Linear(5, 5, bias=False), t=nn.Parameter(torch.rand(1, 1, 5))), SEQUENCE, lambda m, x: time_mix(m, x)),
    ("report-shift", lambda: dict(a=nn.Linear(5, 4), s=nn.ZeroPad2d((0, 0, 1, -1))), SEQUENCE, lambda m, x: m.a(x + m.s(x))),
    ("report-linear-recurrence", lambda: dict(a=nn.Parameter(torch.linspace(-1, 1, 4)), b=nn.Linear(5, 4)), SEQUENCE, lambda m, x: recurrence(m, x)),
    ("report-ctc-head", lambda: dict(n=nn.GRU(5, 4, bidirectional=True), a=nn.Linear(8, 4)), dict(x=(7, 2, 5), y=lambda: labels(3, 2, 3) + 1), lambda m, x, y: nn.CTCLoss(zero_infinity=True)(m.a(m.n(x)[0]).log_softmax(2), y, torch.tensor([7, 6]), torch.tensor([3, 2]))),
    ("report-weights-flattened", lambda: dict(n=nn.GRU(5, 4, 2, batch_first=True)), SEQUENCE, lambda m, x: (m.n.flatten_parameters(), m.n(x)[0])[1]),
    ("report-two-directions-by-hand", lambda: dict(f=nn.GRU(5, 4, batch_first=True), b=nn.GRU(5, 4, batch_first=True)), SEQUENCE, lambda m, x: torch.cat([m.f(x)[0], m.b(x.flip(1))[0].flip(1)], -1)),
])  # fmt: skip


def decoder_loop(m, i):
    h, out = torch.zeros(3, 4), []
    for t in range(4):
        h = m.c(m.e(i[:, t]), h)
        out.append(m.a(h))
    return sum(F.cross_entropy(o, i[:, t + 1]) for t, o in enumerate(out)) / 4


def truncated(m, x):
    h = torch.zeros(3, 4)
    for t in range(4):
        if t == 2:
            h = h.detach()
        h = m.c(x[:, t], h)
    return h


def conv_cell(m, x):
    h = c = torch.zeros(2, 2, 4, 4)
    for t in range(3):
        i, f, o, g = torch.split(m.g(torch.cat([x[:, t], h], 1)), 2, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
    return h


def normed_cell(m, x):
    h = c = torch.zeros(3, 4)
    for t in range(4):
        i, f, g, o = (m.n(m.i(x[:, t])) + m.k(m.h(h))).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * m.o(c).tanh()
    return h


def gru_by_hand(m, x):
    h = x.new_zeros(3, 4)
    for t in range(4):
        ir, iz, i_n = m.i(x[:, t]).chunk(3, 1)
        hr, hz, hn = m.h(h).chunk(3, 1)
        n = torch.tanh(i_n + torch.sigmoid(ir + hr) * hn)
        z = torch.sigmoid(iz + hz)
        h = n + z * (h - n)
    return h


def time_mix(m, x):
    before = torch.cat([torch.zeros(3, 1, 5), x[:, :-1]], 1)
    h = x * m.t + before * (1 - m.t)
    k, v = m.k(h), m.v(h)
    num = den = torch.zeros(3, 5)
    top, out = torch.full((3, 5), -1e38), []
    for t in range(4):
        q = torch.maximum(top, m.u + k[:, t])
        a, b = torch.exp(top - q), torch.exp(m.u + k[:, t] - q)
        out.append((a * num + b * v[:, t]) / (a * den + b))
        q = torch.maximum(top - m.w.exp(), k[:, t])
        a, b = torch.exp(top - m.w.exp() - q), torch.exp(k[:, t] - q)
        num, den, top = a * num + b * v[:, t], a * den + b, q
    return torch.stack(out, 1)


def recurrence(m, x):
    decay = torch.exp(-F.softplus(m.a))
    t = torch.arange(4)
    kernel = decay[None, None] ** (t[:, None] - t).clamp(min=0)[..., None] * (t[:, None] >= t)[..., None]
    return torch.einsum("tsc,bsc->btc", kernel, m.b(x)) * (1 - decay**2).sqrt()


ADJACENT = lambda: (torch.rand(6, 6) > 0.6).float()  # noqa: E731

programs("system", [
    ("report-graph-layer", LINEAR, dict(x=ROWS, k=ADJACENT), lambda m, x, k: (lambda a: (lambda d: (d[:, None] * a * d) @ m.a(x))(a.sum(1).pow(-0.5)))(k + torch.eye(6))),
    ("report-graph-infinite", LINEAR, dict(x=ROWS, k=ADJACENT), lambda m, x, k: (lambda d: (d[:, None] * k * d) @ m.a(x))((lambda r: r.masked_fill(torch.isinf(r), 0.0))(k.sum(1).pow(-0.5)))),
    ("report-graph-attention", lambda: dict(w=nn.Linear(5, 4, bias=False), a=weight(8, 1)), dict(x=ROWS, k=ADJACENT), lambda m, x, k: (lambda h: torch.where(k + torch.eye(6) > 0, F.leaky_relu(h @ m.a[:4] + (h @ m.a[4:]).T, 0.2), -9e15 * torch.ones(6, 6)).softmax(1) @ h)(m.w(x))),
    ("report-graph-edges", lambda: dict(a=nn.Linear(10, 4)), dict(x=ROWS, e=lambda: labels(6, 2, 9)), lambda m, x, e: torch.zeros(6, 4).index_add_(0, e[1], m.a(torch.cat([x[e[0]], x[e[1]] - x[e[0]]], 1)).relu())),
    ("report-graph-degrees", LINEAR, dict(x=ROWS, e=lambda: labels(6, 2, 9)), lambda m, x, e: (lambda d: (lambda n: torch.zeros(6, 4).scatter_add_(0, e[1][:, None].expand(-1, 4), m.a(x)[e[0]] * n[:, None]))(d[e[0]] * d[e[1]]))(torch.zeros(6).scatter_add_(0, e[1], torch.ones(9)).clamp(min=1).rsqrt())),
    ("report-neighbours", lambda: dict(a=nn.Linear(6, 4)), dict(x=(2, 6, 3)), lambda m, x: neighbours(m, x)),
    ("report-points", lambda: dict(a=nn.Conv1d(4, 4, 1), n=nn.BatchNorm1d(4), b=nn.Linear(4, 3)), LINE, lambda m, x: m.b(torch.max(F.relu(m.n(m.a(x))), 2, keepdim=True)[0].view(-1, 4))),
    ("report-sets", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4)), SEQUENCE, lambda m, x: m.a(x) - m.b(x.max(1, keepdim=True)[0]) + m.b(x.mean(1, keepdim=True))),
    ("report-coupling", lambda: dict(s=nn.Linear(2, 2), t=nn.Linear(2, 2)), (6, 4), lambda m, x: coupled(m, x)),
    ("report-masked-flow", lambda: dict(a=nn.Linear(4, 4), mask=torch.tensor([1.0, 0, 1, 0])), (6, 4), lambda m, x: (lambda s: (0.5 * (x * m.mask + (1 - m.mask) * (x * s.exp() + m.a(-x * m.mask))).pow(2).sum(1) - s.sum(1)).mean())(m.a(x * m.mask).tanh() * (1 - m.mask))),
    ("report-act-norm", lambda: dict(s=nn.Parameter(torch.zeros(1, 4, 1, 1)), b=nn.Parameter(torch.zeros(1, 4, 1, 1)), w=nn.Parameter(torch.linalg.qr(torch.randn(4, 4))[0])), IMAGE, lambda m, x: (lambda h: 0.5 * h.pow(2).mean() - 42 * (m.s.sum() + torch.slogdet(m.w)[1]) / 168)(F.conv2d((x + m.b) * m.s.exp(), m.w.view(4, 4, 1, 1)))),
    ("report-autoregressive", lambda: dict(w=weight(4, 4), b=weight(4), mask=torch.ones(4, 4).tril(-1)), (6, 4), lambda m, x: F.linear(x, m.w * m.mask, m.b)),
    ("report-spline-flow", lambda: dict(w=weight(6), h=weight(6)), (9,), lambda m, x: spline_flow(m, x.tanh())),
    ("report-noise", lambda: dict(a=nn.Linear(5, 5), e=nn.Embedding(20, 5), b=torch.linspace(1e-4, 0.02, 20)), dict(x=ROWS, e=ROWS, t=lambda: labels(20, 6)), lambda m, x, e, t: (lambda ab: F.mse_loss(m.a(ab.gather(0, t)[:, None].sqrt() * x + (1 - ab.gather(0, t)[:, None]).sqrt() * e + m.e(t)), e))(torch.cumprod(1 - m.b, 0))),
    ("report-noise-buffers", lambda: dict(a=nn.Linear(5, 5), sqrt_alphas_cumprod=torch.cumprod(1 - torch.linspace(1e-4, 0.02, 20), 0).sqrt(), sqrt_one_minus_alphas_cumprod=(1 - torch.cumprod(1 - torch.linspace(1e-4, 0.02, 20), 0)).sqrt()), dict(x=ROWS, e=ROWS, t=lambda: labels(20, 6)), lambda m, x, e, t: (m.a(m.sqrt_alphas_cumprod[t][:, None] * x + m.sqrt_one_minus_alphas_cumprod[t][:, None] * e) - e).pow(2).mean()),
    ("report-guided", lambda: dict(a=nn.Linear(5, 5), e=nn.Embedding(4, 5), n=nn.Parameter(torch.zeros(5))), dict(x=ROWS, y=lambda: labels(4, 6), k=lambda: booleans(6)), lambda m, x, y, k: m.a(x) + torch.where(k[:, None], m.e(y), m.n)),
    ("report-quantized", lambda: dict(a=nn.Linear(5, 4), e=weight(7, 4)), ROWS, lambda m, x: quantized(m, x)),
    ("report-quantized-average", lambda: dict(a=nn.Linear(5, 4), embed=torch.randn(4, 7), cluster_size=torch.ones(7), embed_avg=torch.randn(4, 7)), ROWS, lambda m, x: quantized_average(m, x)),
    ("report-lookup-free", lambda: dict(a=nn.Linear(5, 4)), ROWS, lambda m, x: (lambda h: h + (torch.where(h > 0, 1.0, -1.0) - h).detach())(m.a(x))),
    ("report-finite-scalars", lambda: dict(a=nn.Linear(5, 4), l=torch.tensor([8, 5, 5, 3])), ROWS, lambda m, x: (lambda h: h + (h.round() - h).detach())(torch.tanh(m.a(x) + 0.1) * (m.l - 1) * 0.501)),
    ("report-radiance", lambda: dict(a=nn.Linear(9, 4)), dict(x=(2, 4, 3), d=lambda: torch.rand(2, 4)), lambda m, x, d: radiance(m, x, d)),
    ("report-sine-layers", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(4, 3)), ROWS, lambda m, x: m.b(torch.sin(30 * m.a(x)))),
    ("report-cross-network", lambda: dict(w=nn.ParameterList([weight(5, 1), weight(5, 1)]), b=nn.ParameterList([weight(5), weight(5)])), ROWS, lambda m, x: crossed(m, x)),
    ("report-factor-machine", lambda: dict(l=nn.Embedding(9, 1), e=nn.Embedding(9, 4), b=nn.Parameter(torch.zeros(1))), dict(i=lambda: labels(9, 6, 3), y=lambda: labels(2, 6).float()), lambda m, i, y: F.binary_cross_entropy_with_logits((m.b + m.l(i).sum(1) + 0.5 * (m.e(i).sum(1) ** 2 - (m.e(i) ** 2).sum(1)).sum(1, keepdim=True)).squeeze(1), y)),
    ("report-factors", lambda: dict(u=nn.Embedding(5, 4), i=nn.Embedding(9, 4), ub=nn.Embedding(5, 1), ib=nn.Embedding(9, 1), mean=nn.Parameter(torch.tensor(3.5))), dict(u=lambda: labels(5, 6), i=lambda: labels(9, 6), r=(6,)), lambda m, u, i, r: F.mse_loss((m.u(u) * m.i(i)).sum(-1) + m.ub(u).squeeze() + m.ib(i).squeeze() + m.mean, r)),
    ("report-two-towers", lambda: dict(u=nn.EmbeddingBag(9, 4, mode="mean"), i=nn.Embedding(9, 4)), dict(h=lambda: labels(9, 6, 3), i=lambda: labels(9, 6)), lambda m, h, i: F.cross_entropy(F.normalize(m.u(h), dim=-1) @ F.normalize(m.i(i), dim=-1).T / 0.1, torch.arange(6))),
    ("report-tabular", lambda: dict(e=nn.ModuleList([nn.Embedding(n, 2) for n in (4, 5)]), n=nn.BatchNorm1d(3), a=nn.Linear(7, 4), k=nn.BatchNorm1d(4), d=nn.Dropout(0.2), b=nn.Linear(4, 1)), dict(c=lambda: labels(4, 6, 2), x=(6, 3), y=(6,)), lambda m, c, x, y: F.mse_loss(m.b(m.d(m.k(F.relu(m.a(torch.cat([torch.cat([e(c[:, i]) for i, e in enumerate(m.e)], 1), m.n(x)], 1)))))).squeeze(), y)),
    ("report-moving-average", lambda: dict(s=nn.Linear(9, 3), t=nn.Linear(9, 3)), LINE, lambda m, x: (lambda a: m.s(x - a) + m.t(a))(F.avg_pool1d(torch.cat([x[:, :, :1].repeat(1, 1, 2), x, x[:, :, -1:].repeat(1, 1, 2)], -1), 5, 1))),
    ("report-causal-line", lambda: dict(a=nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 4, 3, padding=4, dilation=2)), b=nn.Conv1d(4, 4, 1)), LINE, lambda m, x: F.relu(m.a(x)[:, :, :-4].contiguous()).add(m.b(x)).relu()),
    ("report-gated-line", lambda: dict(a=nn.Conv1d(4, 8, 2, dilation=2), s=nn.Conv1d(4, 4, 1)), LINE, lambda m, x: (lambda h: m.s(torch.tanh(h[:, :4]) * torch.sigmoid(h[:, 4:])))(m.a(F.pad(x, (2, 0)))) + x),
    ("report-patches", lambda: dict(a=nn.Linear(4, 3)), LINE, lambda m, x: m.a(F.pad(x, (0, 2), mode="replicate").unfold(-1, 4, 2))),
    ("report-basis", lambda: dict(a=nn.Linear(9, 5), t=torch.stack([(torch.arange(6) / 6.0) ** i for i in range(5)])), LINE, lambda m, x: m.a(x) @ m.t),
    ("report-unet", lambda: dict(d=nn.Conv2d(4, 6, 3, padding=1), m=nn.Conv2d(6, 6, 3, padding=1), u=nn.ConvTranspose2d(6, 4, 2, stride=2), o=nn.Conv2d(10, 3, 1)), (2, 4, 7, 7), lambda m, x: (lambda d: (lambda u: m.o(torch.cat([d, F.pad(u, [0, 7 - u.shape[3], 0, 7 - u.shape[2]])], 1)))(m.u(m.m(F.max_pool2d(d, 2)).relu())))(m.d(x).relu())),
    ("report-unet-crop", lambda: dict(d=nn.Conv2d(4, 6, 3), u=nn.ConvTranspose2d(6, 6, 2, stride=2), o=nn.Conv2d(12, 3, 3)), (2, 4, 9, 9), lambda m, x: (lambda d: m.o(torch.cat([d[:, :, :6, :6], m.u(F.max_pool2d(d, 2))], 1)))(m.d(x).relu())),
    ("report-attention-gate", lambda: dict(g=nn.Conv2d(4, 2, 1), x=nn.Conv2d(4, 2, 1), p=nn.Sequential(nn.Conv2d(2, 1, 1), nn.BatchNorm2d(1), nn.Sigmoid())), dict(x=IMAGE, g=IMAGE), lambda m, x, g: x * m.p(F.relu(m.g(g) + m.x(x)))),
    ("report-sub-pixel", lambda: dict(a=nn.Conv2d(4, 12, 3, padding=1), s=nn.PixelShuffle(2)), IMAGE, lambda m, x: m.s(m.a(x)) + F.interpolate(x[:, :3], scale_factor=2, mode="bicubic", align_corners=False)),
    ("report-squeeze", lambda: dict(CONV(), f=nn.Linear(4, 2), g=nn.Linear(2, 4)), IMAGE, lambda m, x: (lambda h: h * F.hardsigmoid(m.g(F.relu(m.f(F.adaptive_avg_pool2d(h, 1).view(2, 4))))).view(2, 4, 1, 1).expand_as(h))(m.a(x))),
    ("report-channel-space", lambda: dict(CONV(), f=nn.Sequential(nn.Conv2d(4, 2, 1, bias=False), nn.ReLU(), nn.Conv2d(2, 4, 1, bias=False)), s=nn.Conv2d(2, 1, 7, padding=3, bias=False)), IMAGE, lambda m, x: (lambda h: (lambda c: c * m.s(torch.cat([c.mean(1, keepdim=True), c.max(1, keepdim=True)[0]], 1)).sigmoid())(h * (m.f(F.adaptive_avg_pool2d(h, 1)) + m.f(F.adaptive_max_pool2d(h, 1))).sigmoid()))(m.a(x))),
    ("report-coordinates", lambda: dict(a=nn.Conv2d(6, 4, 3, padding=1)), IMAGE, lambda m, x: m.a(torch.cat([x, (torch.arange(6.0) / 5 * 2 - 1).view(1, 1, 6, 1).expand(2, 1, 6, 7), (torch.arange(7.0) / 6 * 2 - 1).view(1, 1, 1, 7).expand(2, 1, 6, 7)], 1))),
    ("report-involution", lambda: dict(r=nn.Conv2d(4, 2, 1), s=nn.Conv2d(2, 18, 1)), IMAGE, lambda m, x: (m.s(m.r(x)).view(2, 2, 9, 6, 7).unsqueeze(2) * F.unfold(x, 3, padding=1).view(2, 2, 2, 9, 6, 7)).sum(3).view(2, 4, 6, 7)),
    ("report-dynamic-kernels", lambda: dict(w=weight(3, 4, 4, 3, 3), g=nn.Linear(4, 3)), IMAGE, lambda m, x: F.conv2d(x.view(1, 8, 6, 7), (m.g(x.mean((2, 3))).div(30).softmax(1) @ m.w.view(3, -1)).view(8, 4, 3, 3), padding=1, groups=2).view(2, 4, 6, 7)),
    ("report-channel-shuffle", lambda: dict(a=nn.Conv2d(4, 4, 1, groups=2), b=nn.Conv2d(2, 2, 3, padding=1, groups=2)), IMAGE, lambda m, x: (lambda h: torch.cat([h[:, :2], m.b(h[:, 2:])], 1))(m.a(x).view(2, 2, 2, 6, 7).transpose(1, 2).contiguous().view(2, 4, 6, 7))),
    ("report-drop-path", lambda: dict(CONV()), dict(x=IMAGE, k=lambda: torch.tensor([1.0, 0.0]).view(2, 1, 1, 1)), lambda m, x, k: x + m.a(x).div(0.8) * k),
    ("report-boxes", lambda: dict(a=nn.Conv2d(4, 14, 1)), IMAGE, lambda m, x: yolo(m, x)),
    ("report-heads-joined", lambda: dict(a=nn.Conv2d(4, 6, 3, padding=1), b=nn.Conv2d(4, 6, 3, padding=1)), IMAGE, lambda m, x: torch.cat([h(v).permute(0, 2, 3, 1).contiguous().view(2, -1, 3) for h, v in ((m.a, x), (m.b, F.max_pool2d(x, 2)))], 1)),
    ("report-pyramid", lambda: dict(l=nn.Conv2d(4, 4, 1), k=nn.Conv2d(4, 4, 1), o=nn.Conv2d(4, 4, 3, padding=1)), dict(x=(2, 4, 7, 9), z=(2, 4, 4, 5)), lambda m, x, z: m.o(m.l(x) + F.interpolate(m.k(z), size=x.shape[-2:], mode="nearest"))),
    ("report-soft-argmax", CONV, IMAGE, lambda m, x: (lambda p: torch.stack([(p.sum(2) * torch.linspace(-1, 1, 7)).sum(-1), (p.sum(3) * torch.linspace(-1, 1, 6)).sum(-1)], -1))(m.a(x).flatten(2).softmax(-1).view(2, 4, 6, 7))),
    ("report-hyper", lambda: dict(h=nn.Linear(3, 24), z=weight(3)), ROWS, lambda m, x: (lambda w: F.linear(x, w[:20].view(4, 5), w[20:]))(m.h(m.z))),
    ("report-low-rank-scaled", lambda: dict(a=nn.Linear(5, 4).requires_grad_(True), lora_A=weight(2, 5), lora_B=nn.Parameter(torch.zeros(4, 2)), d=nn.Dropout(0.0)), ROWS, lambda m, x: m.a(x) + (m.d(x) @ m.lora_A.T @ m.lora_B.T) * (16 / 2)),
    ("report-magnitudes", lambda: dict(a=nn.Linear(5, 4), p=weight(2, 5), q=weight(4, 2), g=weight(1, 4)), ROWS, lambda m, x: (lambda w: F.linear(x, m.g.T * w / w.norm(dim=1, keepdim=True).detach(), m.a.bias))(m.a.weight + 2 * m.q @ m.p)),
    ("report-bayes-layer", lambda: dict(u=weight(4, 5), r=nn.Parameter(torch.full((4, 5), -3.0))), dict(x=ROWS, e=(4, 5), t=(6, 4)), lambda m, x, e, t: (lambda s: F.mse_loss(F.linear(x, m.u + s * e), t) + 1e-2 * (s.pow(2) / 2 + m.u.pow(2) / 2 - s.log() - 0.5).sum())(torch.log1p(m.r.exp()))),
    ("report-early-exits", lambda: dict(a=nn.Linear(5, 5), b=nn.Linear(5, 5), h=nn.ModuleList([nn.Linear(5, 4), nn.Linear(5, 4)])), CLASSES, lambda m, x, y: (lambda one: F.cross_entropy(m.h[0](one), y) + F.cross_entropy(m.h[1](m.b(one).relu()), y))(m.a(x).relu())),
    ("report-uncertain-tasks", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 1), log_vars=nn.Parameter(torch.zeros(2))), dict(x=ROWS, y=lambda: labels(4, 6), t=(6, 1)), lambda m, x, y, t: torch.exp(-m.log_vars[0]) * F.cross_entropy(m.a(x), y) + m.log_vars[0] + 0.5 * torch.exp(-m.log_vars[1]) * F.mse_loss(m.b(x), t) + 0.5 * m.log_vars[1]),
    ("report-gates-by-index", lambda: dict(a=nn.ModuleList([nn.Linear(5, 5), nn.Linear(5, 5)]), g=nn.Parameter(torch.zeros(2)), s=nn.Parameter(torch.ones(2))), ROWS, lambda m, x: (lambda h: h + m.g[1] * m.a[1](h).relu() * m.s[1])(x + m.g[0] * m.a[0](x).relu() * m.s[0])),
    ("report-gates-listed", lambda: dict(a=nn.ModuleList([nn.Linear(5, 5), nn.Linear(5, 5)]), g=nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(2)])), ROWS, lambda m, x: (lambda h: h + m.g[1] * m.a[1](h))(x + m.g[0] * m.a[0](x))),
    ("report-weighted-pyramid", lambda: dict(CONV(), w=nn.Parameter(torch.ones(3))), dict(x=IMAGE, z=IMAGE), lambda m, x, z: (lambda w: w[0] * x + w[1] * z + w[2] * m.a(x))(F.relu(m.w) / (F.relu(m.w).sum() + 1e-4))),
    ("report-mixed-layers", lambda: dict(a=nn.ModuleList([nn.Linear(5, 5) for _ in range(3)]), w=nn.Parameter(torch.zeros(3)), gamma=nn.Parameter(torch.ones(1))), ROWS, lambda m, x: m.gamma * sum(w * h(x) for w, h in zip(F.softmax(m.w, 0), m.a))),
    ("report-modulated-ada", lambda: dict(n=nn.LayerNorm(5, elementwise_affine=False), c=nn.Linear(3, 15), a=nn.Linear(5, 5), t=nn.Parameter(torch.zeros(1, 3, 5))), dict(x=ROWS, c=(6, 3)), lambda m, x, c: (lambda s: x + (s[2] + m.t[:, 2]) * m.a(m.n(x) * (1 + s[1] + m.t[:, 1]) + s[0] + m.t[:, 0]))(m.c(F.silu(c)).chunk(3, 1))),
    ("report-mix-up", LINEAR, dict(x=ROWS, y=lambda: labels(4, 6), z=lambda: labels(4, 6), l=lambda: torch.rand(1)), lambda m, x, y, z, l: (l * F.cross_entropy(m.a(l * x + (1 - l) * x.flip(0)), y) + (1 - l) * F.cross_entropy(m.a(l * x + (1 - l) * x.flip(0)), z)).squeeze()),
    ("report-pseudo-labels", LINEAR, dict(x=ROWS, z=ROWS), lambda m, x, z: (lambda p: (F.cross_entropy(m.a(x), p.argmax(1), reduction="none") * (p.max(1)[0] >= 0.3).float()).mean())(m.a(z).detach().softmax(-1))),
    ("report-experts-loop", lambda: dict(g=nn.Linear(5, 3), e=nn.ModuleList([nn.Linear(5, 4) for _ in range(3)])), ROWS, lambda m, x: (lambda p: sum(p[:, i : i + 1] * e(x) for i, e in enumerate(m.e)))(F.softmax(m.g(x), -1))),
    ("report-top-experts", lambda: dict(g=nn.Linear(5, 3, bias=False), e=nn.ModuleList([nn.Linear(5, 4) for _ in range(3)])), ROWS, lambda m, x: (lambda t: (lambda w: sum((w * (t.indices == i)).sum(-1, keepdim=True) * e(x) for i, e in enumerate(m.e)))(t.values.softmax(-1)))(m.g(x).topk(2, -1))),
    ("report-ema-teacher", lambda: dict(s=nn.Linear(5, 4), t=nn.Linear(5, 4).requires_grad_(False)), dict(x=ROWS, z=ROWS), lambda m, x, z: F.mse_loss(F.normalize(m.s(x)), F.normalize(m.t(z)).detach())),
    ("report-kalman", lambda: dict(f=weight(2, 2), r=nn.Parameter(torch.tensor(0.1))), (4, 1), lambda m, x: kalman(m, x)),
])  # fmt: skip


def neighbours(m, x):
    inner = -2 * torch.matmul(x, x.transpose(2, 1))
    xx = torch.sum(x**2, dim=2, keepdim=True)
    index = (-xx - inner - xx.transpose(2, 1)).topk(k=3, dim=-1)[1]
    flat = (index + torch.arange(2).view(-1, 1, 1) * 6).view(-1)
    feature = x.reshape(12, 3)[flat].view(2, 6, 3, 3)
    own = x.view(2, 6, 1, 3).repeat(1, 1, 3, 1)
    return F.leaky_relu(m.a(torch.cat((feature - own, own), dim=3)), 0.2).max(dim=2, keepdim=False)[0]


def coupled(m, x):
    a, b = x.chunk(2, 1)
    s = torch.tanh(m.s(a))
    b = b * torch.exp(s) + m.t(a)
    return (0.5 * torch.cat([a, b], 1).pow(2).sum(1) - s.sum(1)).mean()


def spline_flow(m, x):
    widths = 0.05 + 0.7 * F.softmax(m.w, -1)
    left = F.pad(widths.cumsum(-1), (1, 0)) * 2 - 1
    heights = F.pad((0.05 + 0.7 * F.softmax(m.h, -1)).cumsum(-1), (1, 0)) * 2 - 1
    at = (x[:, None] >= left[None]).sum(-1).clamp(1, 6) - 1
    part = (x - left[at]) / (left[at + 1] - left[at])
    return heights[at] + part * (heights[at + 1] - heights[at])


def quantized(m, x):
    z = m.a(x)
    d = z.pow(2).sum(1, keepdim=True) + m.e.pow(2).sum(1) - 2 * z @ m.e.t()
    one = torch.zeros(6, 7).scatter_(1, d.argmin(1).unsqueeze(1), 1)
    q = one @ m.e
    loss = F.mse_loss(q.detach(), z) * 0.25 + F.mse_loss(q, z.detach())
    out = z + (q - z).detach()
    p = one.mean(0)
    return loss + out.pow(2).mean() + 0 * torch.exp(-(p * torch.log(p + 1e-10)).sum())


def quantized_average(m, x):
    z = m.a(x)
    d = z.pow(2).sum(1, keepdim=True) - 2 * z @ m.embed + m.embed.pow(2).sum(0, keepdim=True)
    index = (-d).max(1)[1]
    one = F.one_hot(index, 7).type(z.dtype)
    q = F.embedding(index, m.embed.transpose(0, 1))
    with torch.no_grad():
        m.cluster_size.mul_(0.99).add_(one.sum(0), alpha=0.01)
        m.embed_avg.mul_(0.99).add_(z.transpose(0, 1) @ one, alpha=0.01)
        n = m.cluster_size.sum()
        m.embed.copy_(m.embed_avg / ((m.cluster_size + 1e-5) / (n + 7e-5) * n).unsqueeze(0))
    out = z + (q - z).detach()
    return (q.detach() - z).pow(2).mean() + out.square().mean()


def radiance(m, x, d):
    h = m.a(torch.cat([x, torch.sin(x), torch.cos(x)], -1))
    alpha = 1 - torch.exp(-F.relu(h[..., 3]) * d)
    through = torch.cumprod(torch.cat([torch.ones(2, 1), 1 - alpha + 1e-10], -1), -1)[:, :-1]
    return ((alpha * through)[..., None] * h[..., :3].sigmoid()).sum(-2)


def crossed(m, x):
    first = x
    for w, b in zip(m.w, m.b):
        x = first * (x @ w) + b + x
    return x


def yolo(m, x):
    p = m.a(x).view(2, 2, 7, 6, 7).permute(0, 1, 3, 4, 2).contiguous()
    gy, gx = torch.meshgrid(torch.arange(6), torch.arange(7), indexing="ij")
    centre = p[..., :2].sigmoid() + torch.stack([gx, gy], -1).view(1, 1, 6, 7, 2).float()
    size = torch.exp(p[..., 2:4]) * torch.tensor([[1.0, 2.0], [3.0, 1.5]]).view(1, 2, 1, 1, 2)
    return torch.cat([centre * 8, size * 8, p[..., 4:].sigmoid()], -1).view(2, -1, 7)


def kalman(m, x):
    s, p = torch.zeros(2, 1), torch.eye(2)
    h = torch.tensor([[1.0, 0.0]])
    total = 0.0
    for t in range(4):
        s, p = m.f @ s, m.f @ p @ m.f.T + 0.1 * torch.eye(2)
        v = h @ p @ h.T + m.r.exp()
        e = x[t] - (h @ s).squeeze(1)
        total = total + 0.5 * (e**2 / v.squeeze() + v.squeeze().log())
        k = p @ h.T / v
        s, p = s + k * e, p - k @ h @ p
    return total.mean()
