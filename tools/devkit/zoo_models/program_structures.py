"""Programs whose weights are computed: products, circles, parametrizations, shares, hypernetworks, and what they are trained by."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize
from torch.utils.checkpoint import checkpoint

from devkit.zoo_models.program_places import positive
from devkit.zoo_models.programs import IMAGE, LINE, LINEAR, ROWS, booleans, labels, programs, weight

TOKENS = (2, 5, 8)


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).mT


class Positive(nn.Module):
    def forward(self, w):
        return F.softplus(w)

    def right_inverse(self, w):
        return w.abs().clamp(min=1e-3).expm1().log()


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.tensor(0.7))

    def forward(self, w):
        return w * self.s


def parametrized(layer, *rules, name="weight"):
    for rule in rules:
        parametrize.register_parametrization(layer, name, rule)
    return layer


class Queue(nn.Module):
    """A momentum teacher and a queue of its keys."""

    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(5, 4), nn.Linear(5, 4)
        self.k.load_state_dict(self.q.state_dict())
        self.k.requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(4, 12), dim=0))
        self.register_buffer("at", torch.zeros(1, dtype=torch.long))

    def forward(self, a, b):
        q = F.normalize(self.q(a), dim=1)
        with torch.no_grad():
            for one, other in zip(self.q.parameters(), self.k.parameters()):
                other.mul_(0.9).add_(one, alpha=0.1)
            k = F.normalize(self.k(b), dim=1)
        s = torch.cat([torch.einsum("nc,nc->n", q, k)[:, None], torch.einsum("nc,ck->nk", q, self.queue.clone().detach())], 1) / 0.2
        loss = F.cross_entropy(s, torch.zeros(6, dtype=torch.long))
        with torch.no_grad():
            i = (torch.arange(6) + self.at) % 12
            self.queue.index_copy_(1, i, k.T)
            self.at.copy_((self.at + 6) % 12)
        return loss


class Memory(nn.Module):
    """Class means that follow the data, and a loss against them."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("means", torch.randn(3, 4))
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x, y):
        h = self.a(x)
        loss = F.cross_entropy(-torch.cdist(h, self.means.clone()), y)
        with torch.no_grad():
            hot = F.one_hot(y, 3).to(h.dtype)
            count = hot.sum(0)
            self.seen.add_(count)
            self.means.lerp_(torch.where(count[:, None] > 0, hot.T @ h / count.clamp(min=1)[:, None], self.means), 0.1)
        return loss


class Cells(nn.Module):
    def __init__(self, cell, steps=4):
        super().__init__()
        self.cell, self.h = cell, weight(cell.hidden_size)
        self.c = weight(cell.hidden_size) if isinstance(cell, nn.LSTMCell) else None

    def forward(self, x):
        h, out = self.h.expand(x.size(0), -1), []
        c = None if self.c is None else self.c.expand(x.size(0), -1)
        for t in range(x.size(1)):
            if c is None:
                h = self.cell(x[:, t], h)
            else:
                h, c = self.cell(x[:, t], (h, c))
            out.append(h)
        return torch.stack(out, 1)


class Flagged(nn.Module):
    """Python decides what runs."""

    def __init__(self, residual=True, depth=2):
        super().__init__()
        self.residual, self.layers, self.gate = residual, nn.ModuleList(nn.Linear(5, 5) for _ in range(depth)), weight(1)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            h = F.silu(layer(x))
            x = x + h * self.gate if self.residual and i % 2 == 0 else h if self.training else x
        return x


class Half(nn.Module):
    """One part stays in evaluation form."""

    def __init__(self):
        super().__init__()
        self.a, self.drop, self.n = nn.Linear(5, 4), nn.Dropout(0.3), nn.BatchNorm1d(4)

    def train(self, mode=True):
        super().train(mode)
        self.drop.eval()
        return self

    def forward(self, x):
        return self.n(self.drop(self.a(x)))


def kernel_of_states(m, length):
    """The kernel of a diagonal state space, real parts written out."""
    dt, re, im = m.dt.exp()[:, None], -m.re.exp() * m.dt.exp()[:, None], m.im * m.dt.exp()[:, None]
    t = torch.arange(length)
    grow, turn = (re[..., None] * t).exp(), im[..., None] * t
    return (m.c[..., 0, None] * grow * turn.cos() - m.c[..., 1, None] * grow * turn.sin()).sum(1) * dt


def fourier(n):
    at = torch.arange(n).outer(torch.arange(n // 2 + 1)) * (2 * math.pi / n)
    return at.cos(), -at.sin()


def by_fourier(m, x):
    re, im = fourier(8)
    re, im = re.to(x.dtype), im.to(x.dtype)
    a, b = x @ re, x @ im
    c, d = a * m.f[0] - b * m.f[1], a * m.f[1] + b * m.f[0]
    twice = torch.tensor([1.0, 2, 2, 2, 1]).to(x.dtype) / 8
    return (c * twice) @ re.T + (d * twice) @ im.T


def givens(angles, n):
    r, k = torch.eye(n), 0
    for i in range(n - 1):
        c, s = angles[i].cos(), angles[i].sin()
        g = torch.eye(n).index_put((torch.tensor([i, i + 1, i, i + 1]), torch.tensor([i, i + 1, i + 1, i])), torch.stack([c, c, -s, s]))
        r = r @ g
    return r


def butterfly(m, x):
    for i in range(3):
        h = x.view(6, -1, 2, 2**i)
        x = torch.einsum("bgiw,gwij->bgjw", h, m.w[i].view(-1, 2**i, 2, 2)).reshape(6, 8)
    return x


def sinkhorn(s, turns=4):
    for _ in range(turns):
        s = s - s.logsumexp(1, keepdim=True)
        s = s - s.logsumexp(0, keepdim=True)
    return s.exp()


def straight(s, g):
    y = ((s + g) / 0.7).softmax(-1)
    hard = torch.zeros_like(y).scatter(-1, y.argmax(-1, keepdim=True), 1.0)
    return hard - y.detach() + y


def tied_layers():
    parts = dict(a=nn.Linear(5, 5), b=nn.Linear(5, 5, bias=False))
    parts["b"].weight = parts["a"].weight
    return parts


programs("structures", [
    ("form-tied-kernel", lambda: dict(w=weight(3, 4, 3, 3), b=weight(3), c=weight(4)), IMAGE, lambda m, x: F.conv_transpose2d(F.relu(F.conv2d(x, m.w, m.b, padding=1)), m.w, m.c, padding=1)),
    ("form-tied-square", tied_layers, ROWS, lambda m, x: m.b(F.relu(m.a(x)) @ m.a.weight)),
    ("form-hyper-embedding", lambda: dict(z=weight(3), g=nn.Linear(3, 20), b=nn.Linear(3, 4)), ROWS, lambda m, x: F.linear(x, m.g(m.z).view(4, 5), m.b(m.z))),
    ("form-hyper-of-layers", lambda: dict(z=nn.Embedding(2, 3), g=nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 25))), ROWS, lambda m, x: torch.tanh(x @ m.g(m.z.weight[0]).view(5, 5)) @ m.g(m.z.weight[1]).view(5, 5)),
    ("form-kronecker", lambda: dict(a=weight(2, 2), b=weight(2, 3)), (6, 6), lambda m, x: F.linear(x, torch.kron(m.a, m.b))),
    ("form-kronecker-next", lambda: dict(a=weight(2, 2), b=weight(2, 3)), (6, 6), lambda m, x: F.linear(x, torch.kron(m.a, m.b)) + m.a.flatten()),
    ("form-low-rank-norm", lambda: dict(u=weight(4, 2), v=weight(2, 5)), ROWS, lambda m, x: F.linear(x, m.u @ m.v) + (m.u @ m.v).norm()),
    ("form-low-rank-plus", lambda: dict(LINEAR(), u=weight(4, 2), v=weight(2, 5)), ROWS, lambda m, x: F.linear(x, m.a.weight + 0.5 * m.u @ m.v, m.a.bias)),
    ("form-decomposed", lambda: dict(LINEAR(), u=weight(4, 2), v=weight(2, 5), g=positive(4, 1)), ROWS, lambda m, x: F.linear(x, m.g * F.normalize(m.a.weight + m.u @ m.v, dim=1), m.a.bias)),
    ("form-circulant-index", lambda: dict(c=weight(5)), ROWS, lambda m, x: x @ m.c[(torch.arange(5)[:, None] - torch.arange(5)) % 5]),
    ("form-circulant-rolled", lambda: dict(c=weight(5)), ROWS, lambda m, x: x @ torch.stack([m.c.roll(i) for i in range(5)])),
    ("form-toeplitz-padded", lambda: dict(c=weight(9)), ROWS, lambda m, x: x @ m.c.flip(0).unfold(0, 5, 1)),
    ("form-vandermonde", lambda: dict(p=weight(4)), ROWS, lambda m, x: x @ (m.p[:, None] ** torch.arange(5)).T),
    ("form-state-space", lambda: dict(dt=weight(3), re=weight(3, 2), im=weight(3, 2), c=weight(3, 2, 2)), (2, 3, 6), lambda m, x: F.conv1d(F.pad(x, (5, 0)), kernel_of_states(m, 6).flip(-1)[:, None], groups=3)),
    ("form-fourier-filter", lambda: dict(f=weight(2, 5)), (6, 8), by_fourier),
    ("form-cosine-transform", lambda: dict(f=weight(8)), (6, 8), lambda m, x: (lambda d: (x @ d.T * m.f) @ d)(torch.cos(math.pi / 8 * (torch.arange(8) + 0.5)[None] * torch.arange(8)[:, None]).to(x.dtype))),
    ("form-complex-rotary", lambda: dict(q=nn.Linear(8, 8)), TOKENS, lambda m, x: torch.view_as_real(torch.view_as_complex(m.q(x).view(2, 5, 4, 2)) * torch.polar(torch.ones(5, 4), torch.arange(5.0)[:, None] * 10.0 ** -torch.arange(4.0))).flatten(2)),
    ("form-complex-filter", lambda: dict(f=weight(5, 4, 2)), TOKENS, lambda m, x: torch.view_as_real(torch.view_as_complex(x.view(2, 5, 4, 2).contiguous()) * torch.view_as_complex(m.f)).flatten(2)),
    ("form-givens", lambda: dict(t=weight(3)), (6, 4), lambda m, x: x @ givens(m.t, 4)),
    ("form-reflections", lambda: dict(v=weight(3, 5)), ROWS, lambda m, x: (lambda h: h(h(h(x, 0), 1), 2))(lambda y, i: y - 2 * (y @ m.v[i])[:, None] * m.v[i] / (m.v[i] @ m.v[i]))),
    ("form-butterfly", lambda: dict(w=nn.ParameterList([weight(4, 4) for _ in range(3)])), (6, 8), lambda m, x: butterfly(m, x)),
    ("form-monarch", lambda: dict(l=weight(2, 4, 4), r=weight(4, 2, 2)), (6, 8), lambda m, x: torch.einsum("bkj,jkl->blj", torch.einsum("bki,kij->bkj", x.view(6, 2, 4), m.l), m.r).reshape(6, 8)),
    ("form-blocks", lambda: dict(b=weight(2, 3, 2)), (6, 6), lambda m, x: x @ torch.block_diag(*m.b.unbind(0))),
    ("form-tensor-train", lambda: dict(a=weight(1, 2, 3, 2), b=weight(2, 2, 3, 1)), (6, 9), lambda m, x: x @ torch.einsum("aijb,bklc->jlik", m.a, m.b).reshape(9, 4)),
    ("form-factored-table", lambda: dict(a=weight(3, 2, 4), b=weight(2, 2, 4)), dict(i=lambda: labels(6, 5)), lambda m, i: torch.einsum("arc,brd->abcd", m.a, m.b).reshape(6, 16)[i]),
    ("form-sinkhorn", lambda: dict(s=weight(5, 5)), ROWS, lambda m, x: x @ sinkhorn(m.s / 0.5)),
    ("form-sinkhorn-next", lambda: dict(s=weight(5, 5)), ROWS, lambda m, x: x @ sinkhorn(m.s) + m.s.logsumexp(0)),
    ("form-straight-gumbel", lambda: dict(s=weight(4), e=weight(4, 5)), dict(x=ROWS, g=(6, 4)), lambda m, x, g: x * (straight(m.s, g) @ m.e)),
    ("form-weight-norm-column", lambda: dict(a=parametrizations.weight_norm(nn.Linear(5, 4), dim=1)), ROWS, lambda m, x: m.a(x)),
    ("form-weight-norm-cell", lambda: dict(n=parametrizations.weight_norm(parametrizations.weight_norm(nn.GRU(5, 3), "weight_hh_l0"), "weight_ih_l0")), (4, 2, 5), lambda m, x: m.n(x)[0]),
    ("form-spectral-kernel-transposed", lambda: dict(a=parametrizations.spectral_norm(nn.ConvTranspose1d(4, 3, 2))), LINE, lambda m, x: m.a(x)),
    ("form-spectral-evaluated", lambda: dict(a=parametrizations.spectral_norm(nn.Linear(5, 4)).eval()), ROWS, lambda m, x: m.a.eval()(x)),
    ("form-symmetric", lambda: dict(a=parametrized(nn.Linear(5, 5), Symmetric())), ROWS, lambda m, x: m.a(x)),
    ("form-positive", lambda: dict(a=parametrized(nn.Linear(5, 4), Positive())), ROWS, lambda m, x: m.a(x)),
    ("form-two-rules", lambda: dict(a=parametrized(nn.Linear(5, 5), Symmetric(), Scaled())), ROWS, lambda m, x: m.a(x)),
    ("form-rule-cached", lambda: dict(a=parametrized(nn.Linear(5, 5), Scaled())), ROWS, lambda m, x: cached(m, x)),
    ("form-sliced", lambda: dict(w=weight(8, 8), b=weight(8)), (6, 8), lambda m, x: F.linear(F.relu(F.linear(x, m.w[:4], m.b[:4])), m.w[2:6, 4:], m.b[4:])),
    ("form-kernel-crop", lambda: dict(w=weight(4, 4, 5, 5), t=weight(9, 9)), IMAGE, lambda m, x: F.conv2d(x, m.w, padding=2) + F.conv2d(x, (m.w[:, :, 1:4, 1:4].reshape(16, 9) @ m.t).view(4, 4, 3, 3), padding=1)),
    ("form-sign-kept", lambda: dict(w=weight(4, 5)), ROWS, lambda m, x: F.linear(x, m.w.abs()) + F.linear(x.neg(), m.w.square())),
    ("form-rounded", lambda: dict(w=weight(4, 5), s=positive(4, 1)), ROWS, lambda m, x: F.linear(x, (lambda v: (v + (v.round() - v).detach()).clamp(-2, 1) * m.s)(m.w / m.s))),
    ("form-clamped-ends", lambda: dict(w=nn.Parameter(torch.tensor([0.0, 1.0, 0.5, -0.2, 1.3]))), ROWS, lambda m, x: x * m.w.clamp(0, 1)),
    ("form-safe-where", lambda: dict(w=nn.Parameter(torch.tensor([0.0, 1.0, 0.5, -0.2, 1.3]))), ROWS, lambda m, x: x * torch.where(m.w > 0, torch.where(m.w > 0, m.w, 1.0).log(), 0.0)),
    ("form-power-next", lambda: dict(w=weight(5, 5)), ROWS, lambda m, x: x @ torch.matrix_power(m.w, 3) + x @ m.w),
    ("form-twice-baddbmm", lambda: dict(w=weight(2, 4, 5)), dict(a=(2, 4, 3), b=(2, 3, 5)), lambda m, a, b: torch.baddbmm(m.w, a, b, beta=0.5) * torch.baddbmm(m.w, a, b, alpha=2)),
    ("form-scaled-addmm", lambda: dict(w=weight(4), v=weight(5, 4)), ROWS, lambda m, x: torch.addmm(m.w, x, m.v, beta=0.3, alpha=1.7)),
    ("form-entropy", lambda: dict(w=weight(4), e=weight(4, 5)), ROWS, lambda m, x: (lambda p: (x @ m.e.T * p).square().mean() - 0.1 * (p * p.log()).sum())(m.w.softmax(0))),
    ("form-entropy-positive", lambda: dict(w=positive(5)), ROWS, lambda m, x: (x * m.w).square().mean() + (m.w * m.w.log()).sum()),
    ("form-entropy-bernoulli", lambda: dict(w=weight(5)), ROWS, lambda m, x: (lambda p: (x * p).square().mean() - (p * p.log() + (1 - p) * (1 - p).log()).sum())(m.w.sigmoid())),
    ("form-cosine-embedding", lambda: dict(w=weight(6, 4), a=nn.Linear(5, 4)), dict(x=ROWS, y=lambda: labels(2, 6) * 2 - 1), lambda m, x, y: F.cosine_embedding_loss(m.a(x), m.w, y, margin=0.1)),
    ("form-triplet-learned", lambda: dict(w=weight(3, 4), a=nn.Linear(5, 4)), dict(x=ROWS, y=lambda: labels(3, 6)), lambda m, x, y: F.triplet_margin_loss(m.a(x), m.w[y], m.w[(y + 1) % 3])),
    ("form-contrast-learned", lambda: dict(w=weight(3, 4), a=nn.Linear(5, 4), t=positive(1)), dict(x=ROWS, y=lambda: labels(3, 6)), lambda m, x, y: F.cross_entropy(F.normalize(m.a(x), dim=1) @ F.normalize(m.w, dim=1).T / m.t, y) + m.w.square().mean()),
    ("form-discrepancy", lambda: dict(w=weight(4, 5)), ROWS, lambda m, x: (lambda k: k(x, x).mean() + k(m.w, m.w).mean() - 2 * k(x, m.w).mean())(lambda a, b: torch.exp(-((a[:, None] - b[None]) ** 2).sum(-1) / 4))),
    ("form-sliced-transport", lambda: dict(LINEAR(), p=weight(4, 3), t=weight(6, 4)), ROWS, lambda m, x: ((m.a(x) @ F.normalize(m.p, dim=0)).sort(0).values - (m.t @ F.normalize(m.p, dim=0)).sort(0).values).abs()),
    ("form-uniform-kl", lambda: dict(w=weight(4), e=weight(4, 5)), ROWS, lambda m, x: (x @ m.e.T * m.w.softmax(-1)).square().mean() + F.kl_div(m.w.log_softmax(-1), torch.full((4,), 0.25), reduction="sum")),
    ("form-prior-kl", lambda: dict(m=weight(4, 5), r=weight(4, 5)), dict(x=ROWS, e=(4, 5)), lambda m, x, e: F.linear(x, m.m + F.softplus(m.r) * e).square().mean() + 0.1 * (m.m.square() + F.softplus(m.r).square() - 2 * F.softplus(m.r).log() - 1).mean()),
])  # fmt: skip

programs("states", [
    ("state-queue", lambda: dict(n=Queue()), dict(a=ROWS, b=ROWS), lambda m, a, b: m.n(a, b)),
    ("state-class-means", lambda: dict(n=Memory()), dict(x=ROWS, y=lambda: labels(3, 6)), lambda m, x, y: m.n(x, y)),
    ("state-gru-cell", lambda: dict(n=Cells(nn.GRUCell(5, 3))), (2, 4, 5), lambda m, x: m.n(x)),
    ("state-lstm-cell", lambda: dict(n=Cells(nn.LSTMCell(5, 3))), (2, 4, 5), lambda m, x: m.n(x)),
    ("state-rnn-cell", lambda: dict(n=Cells(nn.RNNCell(5, 3, nonlinearity="relu"))), (2, 4, 5), lambda m, x: m.n(x)),
    ("state-gru-repeated", lambda: dict(n=nn.GRUCell(5, 3), h=weight(1, 3)), (2, 5), lambda m, x: m.n(x, m.n(x, m.h.repeat(2, 1)))),
    ("state-flagged", lambda: dict(n=Flagged(), o=Flagged(residual=False)), ROWS, lambda m, x: m.o(m.n(x))),
    ("state-half-evaluated", lambda: dict(n=Half()), ROWS, lambda m, x: m.n(x)),
    ("state-checkpointed-sums", lambda: dict(LINEAR(), w=weight(4)), ROWS, lambda m, x: checkpoint(lambda h: (m.a(h) * m.w).exp(), x, use_reentrant=False) + m.w.exp()),
    ("state-functional-scaled", lambda: dict(LINEAR(), s=positive(1)), ROWS, lambda m, x: torch.func.functional_call(m.a, {n: p * m.s for n, p in m.a.named_parameters()}, (x,))),
    ("state-mapped-heads", lambda: dict(w=weight(3, 4, 5), b=weight(3, 4)), ROWS, lambda m, x: torch.func.vmap(lambda w, b: F.linear(x, w, b).tanh())(m.w, m.b).prod(0)),
    ("state-packed", lambda: dict(n=nn.GRU(5, 3, batch_first=True), h=weight(1, 1, 3)), dict(x=(3, 4, 5)), lambda m, x: nn.utils.rnn.pad_packed_sequence(m.n(nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 3, 1]), batch_first=True), m.h.repeat(1, 3, 1))[0], batch_first=True)[0]),
    ("state-half-region", lambda: dict(LINEAR(), w=weight(4, 4), s=positive(4)), ROWS, lambda m, x: mixed_region(m, x)),
    ("state-gated-table", lambda: dict(w=weight(4, 5), use=booleans(4, 1)), ROWS, lambda m, x: F.linear(x, torch.where(m.use, m.w, m.w.detach() * 0.5))),
])  # fmt: skip


def cached(m, x):
    with parametrize.cached():
        return m.a(F.relu(m.a(x)))


def mixed_region(m, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = m.a(x) @ m.w
    return F.layer_norm(h.to(x.dtype), (4,)) * m.s
