"""Programs of PyTorch's ways to write code: shared parts, functions of one's own, tables, buffers, types, order, products."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from devkit.zoo_models.program_layers import TOKENS
from devkit.zoo_models.programs import CONV, IMAGE, LINEAR, ROWS, booleans, labels, programs, weight

TEXT = dict(i=lambda: labels(7, 3, 5), y=lambda: labels(7, 3, 5))


class Block(nn.Module):
    def __init__(self, size=5):
        super().__init__()
        self.up, self.down = nn.Linear(size, 7), nn.Linear(7, size)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


class Square(torch.autograd.Function):
    """A backward pass of one's own that is the true one."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0] * gradient


class Hidden(nn.Module):
    """Buffers that no state dictionary holds."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("shift", torch.randn(4), persistent=False)
        self.register_buffer("places", torch.arange(4), persistent=False)
        self.register_buffer("none", None)

    def forward(self, x):
        return self.a(x) * self.shift + self.places


def tied_pair():
    parts = dict(e=nn.Embedding(7, 4), b=nn.Linear(4, 7, bias=False))
    parts["b"].weight = parts["e"].weight
    return parts


def tied_codes():
    parts = dict(a=nn.Linear(5, 3), b=nn.Linear(3, 5))
    parts["b"].weight = nn.Parameter(parts["a"].weight.detach().T.clone())
    return parts


def one_twice():
    layer = nn.Linear(5, 5)
    return dict(n=nn.Sequential(layer, nn.Tanh(), layer, nn.Tanh(), layer))


def tied_blocks():
    parts = dict(a=Block(), b=Block())
    parts["b"].up = parts["a"].up
    parts["b"].down.bias = parts["a"].down.bias
    return parts


programs("share", [
    ("tied-head", tied_pair, TEXT, lambda m, i, y: F.cross_entropy(m.b(m.e(i).tanh()).flatten(0, 1), y.flatten())),
    ("tied-transposed", lambda: dict(e=nn.Embedding(7, 4)), TEXT, lambda m, i, y: F.cross_entropy(torch.matmul(m.e(i), m.e.weight.transpose(0, 1)).mT, y)),
    ("tied-projected", lambda: dict(e=nn.Embedding(7, 4), p=nn.Linear(4, 4, bias=False)), TEXT, lambda m, i, y: F.cross_entropy(torch.einsum("bte,ve->bvt", m.p(m.e(i)), m.e.weight), y)),
    ("tied-both-tables", lambda: dict(e=nn.Embedding(7, 4), f=nn.Embedding(7, 4)), TEXT, lambda m, i, y: F.cross_entropy((m.e(i) @ m.f.weight.T).mT, y) + F.cross_entropy((m.f(i) @ m.e.weight.T).mT, y)),
    ("codes-transposed-apart", tied_codes, ROWS, lambda m, x: m.b(m.a(x).tanh())),
    ("three-calls", one_twice, ROWS, lambda m, x: m.n(x)),
    ("blocks-in-part", tied_blocks, ROWS, lambda m, x: m.b(m.a(x))),
    ("block-repeated", lambda: dict(b=Block()), ROWS, lambda m, x: m.b(m.b(m.b(x)))),
    ("siamese", lambda: dict(b=Block(), h=nn.Linear(5, 1)), dict(x=ROWS, z=ROWS), lambda m, x, z: m.h((m.b(x) - m.b(z)).abs())),
    ("functional-weight", LINEAR, ROWS, lambda m, x: F.linear(m.a(x), m.a.weight.t()) + F.linear(x, m.a.weight[[0, 1, 2, 3, 3]])),
    ("kernel-turned", CONV, IMAGE, lambda m, x: F.conv2d(m.a(x), m.a.weight.flip(2, 3), padding=1) + F.conv2d(x, m.a.weight.transpose(0, 1), padding=1)),
    ("kernel-averaged", CONV, IMAGE, lambda m, x: F.conv2d(x, m.a.weight.mean((2, 3), keepdim=True)) + m.a(x)),
    ("kernel-padded", lambda: dict(a=nn.Conv2d(4, 4, 1), b=nn.Conv2d(4, 4, 3, padding=1)), IMAGE, lambda m, x: F.conv2d(x, m.b.weight + F.pad(m.a.weight, (1, 1, 1, 1)), m.a.bias + m.b.bias, padding=1)),
    ("kernel-standardized", CONV, IMAGE, lambda m, x: F.conv2d(x, (lambda w: (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-5))(m.a.weight), m.a.bias)),
    ("scaled-weight", lambda: dict(a=nn.Linear(5, 4)), ROWS, lambda m, x: F.linear(x, m.a.weight * math.sqrt(2 / 5), m.a.bias * 0.1)),
    ("scaled-rates", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(4, 4)), ROWS, lambda m, x: F.linear(F.leaky_relu(F.linear(x, m.a.weight * 0.3, m.a.bias * 0.01), 0.2) * 1.414, m.b.weight * 0.3)),
    ("low-rank-applied", lambda: dict(a=nn.Linear(5, 4), p=weight(2, 5), q=weight(4, 2), g=weight(4)), ROWS, lambda m, x: F.linear(x, F.normalize(m.a.weight + m.q @ m.p, dim=1) * m.g[:, None])),
    ("mixture-of-kernels", lambda: dict(w=weight(3, 4, 5), g=nn.Linear(5, 3)), ROWS, lambda m, x: torch.einsum("bk,kio,bo->bi", m.g(x).softmax(-1), m.w, x)),
    ("average-of-two", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4)), ROWS, lambda m, x: F.linear(x, (m.a.weight + m.b.weight) / 2, m.a.bias - m.b.bias)),
    ("weight-of-weights", lambda: dict(e=weight(3), n=nn.Linear(3, 20)), ROWS, lambda m, x: F.linear(x, m.n(m.e).view(4, 5))),
    ("householder", lambda: dict(v=weight(5)), ROWS, lambda m, x: x - 2 * (x @ m.v)[:, None] * m.v / m.v.square().sum()),
    ("exponential-map", lambda: dict(w=weight(4, 4)), (2, 4), lambda m, x: x @ torch.matrix_exp(m.w - m.w.T)),
    ("diagonal-plus-rank", lambda: dict(d=weight(5), u=weight(5, 2)), ROWS, lambda m, x: x @ (torch.diag(m.d) + m.u @ m.u.T)),
    ("cholesky-factor", lambda: dict(l=weight(5, 5)), ROWS, lambda m, x: x @ (m.l.tril(-1) + torch.diag_embed(m.l.diagonal().exp()))),
    ("group-of-scalars", lambda: dict(a=nn.Linear(5, 4), s=nn.ParameterList([nn.Parameter(torch.tensor(v)) for v in (0.5, 1.5, 2.5)])), ROWS, lambda m, x: m.a(x) * m.s[0] + m.s[1] * m.a(x) ** 2 + m.s[2]),
    ("nested-lists", lambda: dict(n=nn.ModuleDict(dict(one=nn.ModuleList([nn.Linear(5, 5), nn.Linear(5, 5)]), two=nn.ModuleList([nn.Linear(5, 5)])))), ROWS, lambda m, x: m.n["two"][0](m.n["one"][1](m.n["one"][0](x).relu()))),
    ("same-name-parts", lambda: dict(a=nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 4)), a_0=nn.Linear(4, 4)), ROWS, lambda m, x: m.a_0(m.a(x))),
    ("polyak-teacher", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4).requires_grad_(False)), ROWS, lambda m, x: m.a(x) * m.b(x).detach()),
])  # fmt: skip

programs("form", [
    ("own-backward", LINEAR, ROWS, lambda m, x: Square.apply(m.a(x))),
    ("checkpointed", lambda: dict(b=Block()), ROWS, lambda m, x: checkpoint(m.b, x, use_reentrant=False)),
    ("mapped", lambda: dict(w=weight(5, 4)), ROWS, lambda m, x: torch.vmap(lambda r: r @ m.w)(x)),
    ("mapped-pairs", lambda: dict(w=weight(5, 4)), dict(x=ROWS, z=(6, 4)), lambda m, x, z: torch.vmap(lambda a, b: (a @ m.w * b).sum())(x, z)),
    ("mapped-ensemble", lambda: dict(w=weight(3, 4, 5), b=weight(3, 4)), ROWS, lambda m, x: torch.vmap(lambda w, b: F.linear(x, w, b))(m.w, m.b).mean(0)),
    ("derivative-forward", LINEAR, ROWS, lambda m, x: torch.func.jvp(lambda v: m.a(v).tanh(), (x,), (torch.ones(ROWS),))[1]),
    ("no-grad-part", LINEAR, ROWS, lambda m, x: m.a(x) * no_grad_of(m, x)),
    ("enabled-within", LINEAR, ROWS, lambda m, x: m.a(x) + enabled_of(m, x)),
    ("detached-weight", LINEAR, ROWS, lambda m, x: F.linear(x, m.a.weight.detach(), m.a.bias) * m.a(x)),
    ("detached-bias", LINEAR, ROWS, lambda m, x: F.linear(x, m.a.weight, m.a.bias.detach())),
    ("detached-ratio", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4)), ROWS, lambda m, x: (lambda u, d: d * d * u)(m.a(x), (m.a(x) / m.b(x).exp()).detach())),
    ("detached-target", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4)), ROWS, lambda m, x: (lambda q, p: F.kl_div(q, (p**2 / (p**2).sum(1, keepdim=True)).detach(), reduction="batchmean"))(m.a(x).log_softmax(1), m.b(x).softmax(1))),
    ("stopped-norm", LINEAR, ROWS, lambda m, x: m.a(x) / m.a(x).norm(dim=1, keepdim=True).detach()),
    ("stopped-softmax", LINEAR, ROWS, lambda m, x: (lambda h: (h - h.max(1, keepdim=True).values.detach()).exp() / (h - h.max(1, keepdim=True).values.detach()).exp().sum(1, keepdim=True))(m.a(x))),
    ("stopped-twins", lambda: dict(a=nn.Linear(5, 4), p=nn.Linear(4, 4)), dict(x=ROWS, z=ROWS), lambda m, x, z: -(F.cosine_similarity(m.p(m.a(x)), m.a(z).detach()).mean() + F.cosine_similarity(m.p(m.a(z)), m.a(x).detach()).mean()) / 2),
    ("codebook", lambda: dict(a=nn.Linear(5, 4), e=nn.Embedding(7, 4)), ROWS, lambda m, x: codebook(m, x)),
    ("in-place-chain", LINEAR, ROWS, lambda m, x: m.a(x).mul_(2).add_(1).clamp_(-1, 2).relu_().sub_(0.1)),
    ("in-place-views", LINEAR, ROWS, lambda m, x: views(m.a(x).clone())),
    ("out-of-zeros", LINEAR, ROWS, lambda m, x: filled(m.a(x))),
    ("one-of-many-outputs", LINEAR, ROWS, lambda m, x: (lambda d: d["main"] + d["side"][0])(dict(main=m.a(x), side=(m.a(x) ** 2, x)))),
    ("frozen-first-layer", lambda: dict(a=nn.Linear(5, 4).requires_grad_(False), b=nn.Linear(4, 4)), ROWS, lambda m, x: m.b(m.a(x).relu())),
    ("unused-part", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(3, 3)), ROWS, lambda m, x: m.a(x)),
    ("einsum-trace", lambda: dict(w=weight(5, 5)), ROWS, lambda m, x: torch.einsum("bi,ij,bj->b", x, m.w, x) + torch.einsum("ii", m.w)),
    ("einsum-outer", lambda: dict(v=weight(4), w=weight(3)), ROWS, lambda m, x: torch.einsum("bi,j,k->bjk", x, m.v, m.w)),
    ("einsum-sums", lambda: dict(w=weight(2, 4, 5)), ROWS, lambda m, x: torch.einsum("bi,koi->b", x, m.w) + torch.einsum("koi->", m.w)),
    ("einsum-heads", lambda: dict(q=weight(5, 2, 3), k=weight(5, 2, 3)), (2, 4, 5), lambda m, x: torch.einsum("bthd,bshd->bhts", torch.einsum("bti,ihd->bthd", x, m.q), torch.einsum("bti,ihd->bthd", x, m.k))),
    ("einsum-dots", lambda: dict(w=weight(4, 5)), (2, 3, 5), lambda m, x: torch.einsum("...i,oi->...o", x, m.w) * torch.einsum("...i->...", x)[..., None]),
    ("einsum-transposed", lambda: dict(w=weight(4, 5)), ROWS, lambda m, x: torch.einsum("oi,bi->ob", m.w, x)),
    ("bmm-forms", lambda: dict(w=weight(3, 5, 4), v=weight(5)), (3, 2, 5), lambda m, x: torch.bmm(x, m.w) + torch.matmul(x, m.v)[..., None] + (x @ m.w[0]) + torch.matmul(m.v, m.w)[:, None] + torch.inner(x, m.v)[..., None]),
    ("dot-mv", lambda: dict(w=weight(4, 5), v=weight(5)), (5,), lambda m, x: torch.mv(m.w, x) * torch.dot(m.v, x) + torch.addmm(m.w, m.w[:, :1], m.v[None])[:, 0] + torch.vdot(x, m.v)),
    ("chain", lambda: dict(w=weight(5, 3), v=weight(3, 4)), ROWS, lambda m, x: torch.linalg.multi_dot([x, m.w, m.v]) + torch.chain_matmul(x, m.w, m.v)),
    ("polar", LINEAR, ROWS, lambda m, x: (lambda z: torch.view_as_real(z * torch.polar(torch.ones(6, 2), x[:, :2])).flatten(1))(torch.view_as_complex(m.a(x).view(6, 2, 2)))),
    ("spectrum-filter", lambda: dict(w=weight(4, 4), v=weight(4, 4)), (2, 6, 4), lambda m, x: torch.fft.irfft(torch.fft.rfft(x, dim=1) * torch.complex(m.w, m.v), n=6, dim=1)),
    ("fourier-features", lambda: dict(a=nn.Linear(6, 4), f=torch.randn(5, 3)), ROWS, lambda m, x: m.a(torch.cat([torch.sin(2 * math.pi * x @ m.f), torch.cos(2 * math.pi * x @ m.f)], -1))),
    ("time-embedding", lambda: dict(a=nn.Linear(8, 4)), dict(t=lambda: labels(50, 6)), lambda m, t: m.a((lambda g: torch.cat([g.sin(), g.cos()], 1))(t[:, None] * torch.exp(-math.log(1e4) * torch.arange(4) / 4)))),
])  # fmt: skip


def no_grad_of(m, x):
    with torch.no_grad():
        return m.a(x).sigmoid() + 1


def enabled_of(m, x):
    with torch.set_grad_enabled(False):
        scale = m.a(x).abs().mean()
    return scale * m.a(x).tanh()


def codebook(m, x):
    z = m.a(x)
    i = torch.cdist(z, m.e.weight).argmin(1)
    q = m.e(i)
    loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(q.detach(), z)
    q = z + (q - z).detach()
    return loss + q.square().mean()


def views(h):
    h[1:4].mul_(2)
    h.t()[0].add_(1)
    h.view(-1)[::3] = 0
    return h


def filled(h):
    out = torch.zeros(6, 8)
    out[:, :4] = h
    out[:, 4::2] = h[:, :2].exp()
    out[[0, 2]] += 1
    return out


programs("table", [
    ("max-norm-one", lambda: dict(e=nn.Embedding(7, 4, max_norm=0.5, norm_type=1.0)), TOKENS, lambda m, i: m.e(i)),
    ("scaled-by-frequency", lambda: dict(e=nn.Embedding(7, 4, scale_grad_by_freq=True)), TOKENS, lambda m, i: m.e(i)),
    ("functional", lambda: dict(w=weight(7, 4)), TOKENS, lambda m, i: F.embedding(i, m.w, padding_idx=1)),
    ("from-frozen", lambda: dict(e=nn.Embedding.from_pretrained(torch.randn(7, 4)), a=nn.Linear(4, 4)), TOKENS, lambda m, i: m.a(m.e(i))),
    ("bag-weighted", lambda: dict(e=nn.EmbeddingBag(7, 4, mode="sum")), dict(TOKENS, w=(3, 5)), lambda m, i, w: m.e(i, per_sample_weights=w)),
    ("bag-offsets-given", lambda: dict(e=nn.EmbeddingBag(7, 4, mode="mean")), dict(i=lambda: labels(7, 8), o=lambda: torch.tensor([0, 2, 5])), lambda m, i, o: m.e(i, o)),
    ("bag-offsets-max", lambda: dict(e=nn.EmbeddingBag(7, 4, mode="max")), dict(i=lambda: labels(7, 8)), lambda m, i: m.e(i, torch.tensor([0, 2, 5]))),
    ("bag-empty", lambda: dict(e=nn.EmbeddingBag(7, 4, mode="mean")), dict(i=lambda: labels(7, 8)), lambda m, i: m.e(i, torch.tensor([0, 2, 2, 8]))),
    ("bag-functional", lambda: dict(w=weight(7, 4)), TOKENS, lambda m, i: F.embedding_bag(i, m.w, mode="sum", padding_idx=2)),
    ("several", lambda: dict(e=nn.ModuleList([nn.Embedding(n, 3) for n in (4, 5, 6)]), a=nn.Linear(9, 2)), dict(i=lambda: labels(4, 6, 3)), lambda m, i: m.a(torch.cat([e(i[:, k]) for k, e in enumerate(m.e)], 1))),
    ("offset-tables", lambda: dict(e=nn.Embedding(15, 3), o=torch.tensor([0, 4, 9])), dict(i=lambda: labels(4, 6, 3)), lambda m, i: (lambda h: 0.5 * (h.sum(1) ** 2 - (h**2).sum(1)))(m.e(i + m.o))),
    ("positions", lambda: dict(e=nn.Embedding(7, 4), p=nn.Embedding(9, 4), q=torch.arange(9)[None]), TOKENS, lambda m, i: m.e(i) + m.p(m.q[:, : i.shape[1]]) + m.p.weight[2:7]),
    ("masked-positions", lambda: dict(e=nn.Embedding(7, 4, padding_idx=1), p=nn.Embedding(9, 4, padding_idx=1)), TOKENS, lambda m, i: (lambda k: m.e(i) + m.p((k.cumsum(1) * k).long() + 1))((i != 1).int())),
    ("mean-of-words", lambda: dict(e=nn.Embedding(7, 4, padding_idx=0)), TOKENS, lambda m, i: m.e(i).sum(1) / (i != 0).sum(1, keepdim=True).clamp(min=1)),
    ("one-hot-table", lambda: dict(w=weight(7, 4)), TOKENS, lambda m, i: F.one_hot(i, 7).float() @ m.w),
    ("negative-samples", lambda: dict(e=nn.Embedding(7, 4), c=nn.Embedding(7, 4)), dict(i=lambda: labels(7, 6), k=lambda: labels(7, 6, 3)), lambda m, i, k: -F.logsigmoid((m.e(i)[:, None] * m.c(k)).sum(-1)).mean()),
])  # fmt: skip

programs("buffer", [
    ("not-persistent", lambda: dict(n=Hidden()), ROWS, lambda m, x: m.n(x)),
    ("made-in-forward", LINEAR, ROWS, lambda m, x: m.a(x) * torch.linspace(0.5, 2, 4) + torch.eye(6)[:, :4] + torch.full((4,), 0.3) + torch.tensor([1.0, -1, 2, 0])),
    ("like", LINEAR, ROWS, lambda m, x: m.a(x) + torch.ones_like(x[:, :4]) * 0.5 + torch.zeros_like(m.a(x)) + x.new_full((4,), 2.0) + torch.arange(4, dtype=x.dtype)),
    ("causal-buffer", lambda: dict(a=nn.Linear(5, 4), bias=torch.ones(1, 6, 6).tril()), (2, 6, 5), lambda m, x: (lambda h: (h @ h.mT).masked_fill(m.bias == 0, -1e4).softmax(-1) @ h)(m.a(x))),
    ("schedule", lambda: dict(a=nn.Linear(5, 5), alphas_cumprod=torch.linspace(0.99, 0.1, 20)), dict(x=ROWS, t=lambda: labels(20, 6), e=ROWS), lambda m, x, t, e: F.mse_loss(m.a(m.alphas_cumprod[t].sqrt()[:, None] * x + (1 - m.alphas_cumprod[t]).sqrt()[:, None] * e), e)),
    ("whole-parameter", lambda: dict(a=nn.Linear(5, 4), k=nn.Parameter(torch.tensor([2, 0, 1, 3]), requires_grad=False), on=nn.Parameter(torch.tensor([True, False, True, True]), requires_grad=False)), ROWS, lambda m, x: m.a(x)[:, m.k] * m.on),
    ("momentum-statistics", lambda: dict(a=nn.Linear(5, 4), running_mean=torch.zeros(4)), ROWS, lambda m, x: statistics(m, x)),
    ("step-count", lambda: dict(a=nn.Linear(5, 4), steps=torch.tensor(0)), ROWS, lambda m, x: stepped(m, x)),
    ("centre", lambda: dict(a=nn.Linear(5, 4), c=torch.zeros(1, 4)), dict(x=ROWS, z=ROWS), lambda m, x, z: centred(m, x, z)),
])  # fmt: skip


def statistics(m, x):
    h = m.a(x)
    with torch.no_grad():
        m.running_mean.lerp_(h.mean(0), 0.2)
    return h - m.running_mean


def stepped(m, x):
    m.steps += 1
    return m.a(x) * torch.clamp(m.steps / 10, max=1.0)


def centred(m, x, z):
    target = ((m.a(z) - m.c) / 0.04).softmax(-1).detach()
    loss = -(target * (m.a(x) / 0.1).log_softmax(-1)).sum(-1).mean()
    m.c.mul_(0.9).add_(m.a(z).detach().mean(0, keepdim=True), alpha=0.1)
    return loss


programs("type", [
    ("weights-in-half", lambda: dict(a=nn.Linear(5, 4), w=weight(4, 4)), ROWS, lambda m, x: F.linear(m.a(x).half(), m.w.half()).float()),
    ("weights-in-bfloat", lambda: dict(w=weight(4, 5)), ROWS, lambda m, x: F.linear(x.bfloat16(), m.w.bfloat16()).float()),
    ("norm-in-float", lambda: dict(a=nn.Linear(5, 4), w=weight(4)), ROWS, lambda m, x: (lambda h: m.w * (h * torch.rsqrt(h.float().pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(h))(m.a(x))),
    ("autocast", LINEAR, ROWS, lambda m, x: autocast(m, x)),
    ("autocast-off", LINEAR, ROWS, lambda m, x: without_autocast(lambda h: h.cos() * h + 1, m.a(x))),
    ("autocast-off-norm", lambda: dict(a=nn.Linear(5, 4), w=weight(4)), ROWS, lambda m, x: (lambda h: h + without_autocast(lambda h: m.w * h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6), h))(m.a(x))),
    ("autocast-off-loss", LINEAR, dict(x=(6, 5), y=lambda: labels(4, 6)), lambda m, x, y: without_autocast(lambda h: F.cross_entropy(h.float(), y), m.a(x))),
    ("autocast-off-factor", LINEAR, ROWS, lambda m, x: (lambda h: without_autocast(lambda h: h.softmax(-1), h) * h)(m.a(x))),
    ("double-loss", LINEAR, ROWS, lambda m, x: m.a(x).double().softmax(-1).log().float().mean()),
    ("whole-scale", LINEAR, dict(x=ROWS, n=lambda: labels(5, 6, 1) + 1), lambda m, x, n: m.a(x) / n + m.a(x) * n.int() + n.float().sqrt() + m.a(x).mul(n > 2)),
    ("masks", LINEAR, dict(x=ROWS, b=lambda: booleans(6, 4)), lambda m, x, b: m.a(x) * b + m.a(x).masked_fill(~b, 0.5) + torch.where(b, m.a(x), torch.tensor(2.0)) + b.float().mean() + (m.a(x) * b.double()).float()),
    ("logic", LINEAR, dict(x=ROWS, b=lambda: booleans(6, 4)), lambda m, x, b: m.a(x) * torch.logical_xor(b, x[:, :4] > 0) + m.a(x) * (b.logical_or(x[:, 1:] > 0) & ~b.any(1, keepdim=True)) + m.a(x) * b.all(0)),
    ("selected-rows", LINEAR, dict(x=ROWS, b=lambda: torch.tensor([True, False, True, True, False, True])), lambda m, x, b: m.a(x)[b]),
    ("selected-elements", LINEAR, dict(x=ROWS, b=lambda: booleans(6, 4)), lambda m, x, b: torch.masked_select(m.a(x), b)),
])  # fmt: skip


def without_autocast(function, h):
    """`function` in a block that leaves types alone."""
    with torch.autocast("cpu", enabled=False):
        return function(h)


def autocast(m, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return m.a(x).float()


programs("arithmetic", [
    ("floors", LINEAR, ROWS, lambda m, x: m.a(x) * m.a(x).floor() + m.a(x) * m.a(x).ceil() + m.a(x).trunc() * m.a(x) + m.a(x).round() * m.a(x) + m.a(x).frac() + m.a(x).sgn() * m.a(x)),
    ("floors-alone", LINEAR, ROWS, lambda m, x: m.a(x).floor() + m.a(x)),
    ("remainders", LINEAR, ROWS, lambda m, x: torch.remainder(m.a(x), x[:, :4].abs() + 0.3) + torch.fmod(m.a(x), 0.4) + torch.remainder(m.a(x), -0.6)),
    ("remainder-divisor", lambda: dict(a=nn.Linear(5, 4), w=nn.Parameter(torch.tensor([0.3, 0.5, 0.7, 0.9]))), ROWS, lambda m, x: torch.remainder(m.a(x), m.w) + torch.fmod(x[:, :4], m.w)),
    ("division-modes", LINEAR, ROWS, lambda m, x: torch.div(m.a(x), 0.3, rounding_mode="floor") * m.a(x) + torch.div(m.a(x), 0.3, rounding_mode="trunc") * m.a(x)),
    ("ties", LINEAR, ROWS, lambda m, x: torch.max(m.a(x), m.a(x)) + torch.min(m.a(x).relu(), m.a(x) * 0) + torch.maximum(m.a(x).round(), m.a(x).round().detach() + 0)),
    ("ties-reduced", LINEAR, ROWS, lambda m, x: F.relu(m.a(x)).max(0).values + F.relu(m.a(x)).amin(0) + F.relu(m.a(x)).min() + F.relu(m.a(x)).amax()),
    ("ties-sorted", LINEAR, ROWS, lambda m, x: F.relu(m.a(x)).sort(0, stable=True).values + F.relu(m.a(x)).topk(6, 0).values + F.relu(m.a(x)).median(0).values),
    ("clamp-ties", LINEAR, ROWS, lambda m, x: m.a(x).clamp(0.0, 1.0).clamp(0.0, 1.0) + torch.clamp(m.a(x).relu(), 0.0) + m.a(x).relu().clamp(max=0.0)),
    ("clamp-mixed", LINEAR, ROWS, lambda m, x: torch.clamp(m.a(x), x[:, :4] - 0.5, x[:, :4] + 0.2) + torch.clamp(m.a(x), min=x[:, 1:]) + torch.clamp(m.a(x), 0.5, -0.5)),
    ("absolute-zero", LINEAR, ROWS, lambda m, x: F.relu(m.a(x)).abs() + F.relu(m.a(x)).sign() * m.a(x) + (F.relu(m.a(x)) + 1e-12).sqrt()),
    ("where-infinite", LINEAR, ROWS, lambda m, x: torch.where(m.a(x) > 0, m.a(x).clamp(min=1e-6).log(), m.a(x)) + torch.where(x[:, :4] > 0, x[:, :4].abs().sqrt() * m.a(x), torch.zeros(()))),
    ("nan-to-num-all", LINEAR, ROWS, lambda m, x: torch.nan_to_num(m.a(x) / F.relu(x[:, :4]), nan=0.1, posinf=2.0, neginf=-3.0)),
    ("finite", LINEAR, ROWS, lambda m, x: torch.where(torch.isfinite(m.a(x)), m.a(x), 0.0) + torch.isnan(x[:, :4]).float() + m.a(x).masked_fill(torch.isinf(x[:, :4]), 0)),
    ("mode", LINEAR, ROWS, lambda m, x: (m.a(x) * 2).round().mode(0).values.detach() + m.a(x).mode(1).values[:, None]),
    ("kth", LINEAR, ROWS, lambda m, x: m.a(x).kthvalue(3, dim=0, keepdim=True).values + m.a(x).kthvalue(1)[0][:, None]),
    ("medians", LINEAR, ROWS, lambda m, x: m.a(x).median(0, keepdim=True)[0] + m.a(x).nanmedian(1).values[:, None]),
    ("quantiles", LINEAR, ROWS, lambda m, x: torch.quantile(m.a(x), torch.tensor([0.1, 0.5, 0.9]), dim=0).sum(0) + torch.nanquantile(m.a(x), 0.4) + torch.quantile(m.a(x), 0.25, dim=1, interpolation="lower")[:, None]),
    ("argsort-gather", LINEAR, ROWS, lambda m, x: m.a(x).gather(1, x[:, :4].argsort(1, descending=True)) + m.a(x).sort(1)[0].cumsum(1)),
    ("sort-rank", LINEAR, ROWS, lambda m, x: m.a(x) * m.a(x).argsort(0).argsort(0)),
    ("cumulated-products", LINEAR, ROWS, lambda m, x: m.a(x).cumprod(1) + torch.cumprod(m.a(x).sigmoid(), 0) + m.a(x).exp().cumsum(-1).log()),
    ("log-cumulated", LINEAR, ROWS, lambda m, x: torch.logcumsumexp(m.a(x), 0) + torch.logcumsumexp(m.a(x) * 50, 1)),
    ("cumulated-extremes", LINEAR, ROWS, lambda m, x: torch.cummax(F.relu(m.a(x)), 0).values + torch.cummin(m.a(x), 1).values * torch.cummin(m.a(x), 1).indices),
    ("log-sums", LINEAR, ROWS, lambda m, x: m.a(x).logsumexp((0, 1)) + m.a(x).logsumexp(1, keepdim=True) + m.a(x).exp().sum(0).log() + (m.a(x) * 100).logsumexp(0)),
    ("variances", LINEAR, ROWS, lambda m, x: m.a(x).var(1, keepdim=True, unbiased=True) + m.a(x).std((0, 1), unbiased=False) + torch.cov(m.a(x).T)[0] + torch.corrcoef(m.a(x).T)[1]),
    ("norms-of-zero", LINEAR, ROWS, lambda m, x: (m.a(x) * 0).norm(dim=1, keepdim=True) + F.relu(m.a(x) - 5).norm(p=2) + torch.linalg.norm(m.a(x), "fro") + torch.linalg.vector_norm(m.a(x), -1, dim=0) + torch.linalg.vector_norm(m.a(x), 0, dim=0)),
    ("matrix-norms", LINEAR, ROWS, lambda m, x: torch.linalg.matrix_norm(m.a(x), 1) + torch.linalg.matrix_norm(m.a(x), math.inf) + torch.linalg.norm(m.a(x), 2, dim=0)),
    ("softmax-products", LINEAR, ROWS, lambda m, x: torch.special.softmax(m.a(x), 0) + torch.special.logsumexp(m.a(x), 1)[:, None] + torch.special.exp2(m.a(x)) + torch.special.log_softmax(m.a(x), -1)),
    ("logs", LINEAR, ROWS, lambda m, x: (lambda h: h.log2() + h.log10() + h.log1p() + torch.log(h + 1e-6) + h.rsqrt() + h.reciprocal() + h.square())(m.a(x).abs() + 0.2)),
    ("sum-of-squares", LINEAR, ROWS, lambda m, x: torch.addcmul(m.a(x), m.a(x), x[:, :4], value=-0.5) + torch.add(m.a(x), x[:, 1:], alpha=2) + torch.sub(x[:, :4], m.a(x), alpha=0.3) + torch.rsub(m.a(x), 1.5) + torch.mul(m.a(x), 1 / 3)),
    ("scalars-left", LINEAR, ROWS, lambda m, x: 1 - m.a(x) + 2 / (3 + m.a(x).abs()) + (2.5 - m.a(x)) * 3 + 0.5 ** m.a(x) - (-m.a(x)) + 1.5 // (m.a(x).abs() + 0.1).detach()),
    ("signs", LINEAR, ROWS, lambda m, x: m.a(x).sign() * x[:, :4] + m.a(x).abs() + torch.signbit(m.a(x)) * m.a(x) + torch.copysign(m.a(x), -x[:, 1:]) + m.a(x).neg().positive()),
    ("eigen", lambda: dict(w=weight(4, 4)), (2, 4), lambda m, x: x @ torch.linalg.cholesky(m.w @ m.w.T + 2 * torch.eye(4))),
    ("solve", lambda: dict(w=weight(4, 4)), (2, 4), lambda m, x: torch.linalg.solve(m.w + 3 * torch.eye(4), x.T)),
    ("pinverse", lambda: dict(w=weight(4, 4)), (2, 4), lambda m, x: torch.linalg.det(m.w + 2 * torch.eye(4)) * x),
    ("batch-of-traces", lambda: dict(w=weight(3, 4, 4)), (3, 4), lambda m, x: torch.diagonal(m.w, dim1=1, dim2=2).sum(-1)[:, None] * x + m.w.diagonal(1, 1, 2).prod(-1)[:, None]),
    ("expansions", lambda: dict(v=weight(4), w=weight(4, 1)), ROWS, lambda m, x: x[:, :1] * m.v.expand(6, -1) + m.w.expand_as(torch.ones(4, 5)).T[:1, :4] + m.v.broadcast_to(6, 4) + m.v.repeat(2, 1).sum(0)),
    ("stacks", lambda: dict(v=weight(4), w=weight(4)), ROWS, lambda m, x: torch.hstack([m.v, m.w]) * torch.vstack([m.v, m.w]).flatten() + torch.dstack([m.v, m.w]).flatten() + torch.column_stack([m.v, m.w]).flatten() * x[0, 0]),
    ("permutations", lambda: dict(w=weight(2, 3, 4)), (4, 3), lambda m, x: torch.movedim(m.w, 0, 2)[:, :, 0].T * x + m.w.permute(2, 1, 0)[..., 1] + m.w.swapdims(0, 2)[..., 0] + m.w.mT[0] + m.w.flatten(0, 1).T[:, 2:5] + m.w.unflatten(2, (2, 2))[0, :, 0].T.repeat(2, 1)),
    ("windows", LINEAR, ROWS, lambda m, x: m.a(x).unfold(0, 2, 1).mean(-1) * m.a(x)[:-1] + m.a(x).unfold(1, 4, 1)[:5, 0]),
    ("convolved", lambda: dict(k=weight(3)), (2, 9), lambda m, x: F.conv1d(x[:, None], m.k[None, None], padding=1)[:, 0] + F.conv1d(x[:, None], m.k.flip(0)[None, None].softmax(-1), padding=1)[:, 0]),
    ("scattered", lambda: dict(a=nn.Linear(5, 4), w=weight(6, 4)), dict(x=ROWS, i=lambda: labels(3, 6)), lambda m, x, i: (lambda s, n: s / n.clamp(min=1)[:, None])(torch.zeros(3, 4).index_add(0, i, m.a(x)), torch.zeros(3).index_add(0, i, torch.ones(6)))),
    ("graph", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(4, 1)), dict(x=ROWS, s=lambda: labels(6, 9), d=lambda: labels(6, 9)), lambda m, x, s, d: (lambda h, w: torch.zeros(6, 4).scatter_add(0, d[:, None].expand(9, 4), h[s] * w))(m.a(x), m.b(m.a(x)[s] - m.a(x)[d]).sigmoid())),
    ("segment-softmax", lambda: dict(a=nn.Linear(5, 1)), dict(x=ROWS, i=lambda: torch.tensor([0, 1, 0, 2, 2, 0])), lambda m, x, i: (lambda h: (lambda e: e / torch.zeros(3).index_add(0, i, e)[i])((h - torch.full((3,), -9.0).scatter_reduce(0, i, h, "amax")[i].detach()).exp()))(m.a(x)[:, 0])),
])  # fmt: skip
