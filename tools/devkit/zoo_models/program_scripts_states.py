"""Training scripts as they are published: what a module keeps, where gradients stop, and parameters that begin alike."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.program_scripts import NETS, TWO, whole
from devkit.zoo_models.programs import CLASSES, CONV, IMAGE, LINEAR, PAIRS, ROWS, labels, programs, weight

TOKENS = dict(x=(2, 6, 8))
GATED = lambda: dict(a=nn.Linear(5, 4), g=nn.Linear(5, 4))  # noqa: E731


def kept(m, x, name, value):
    """Assigns a buffer and gives x."""
    getattr(m, name).copy_(value)
    return x


class Annealed(nn.Module):
    """A temperature that falls with a counter of whole numbers, after it was raised."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("step", torch.tensor(0))

    def forward(self, x, y):
        self.step.add_(1)
        tau = torch.clamp(torch.exp(-0.1 * self.step.float()), min=0.5)
        return F.cross_entropy(self.a(x) / tau, y)


class Corrected(nn.Module):
    """A running mean that is corrected for its first steps."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("avg", torch.zeros(4))
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        h = self.a(x)
        with torch.no_grad():
            self.steps += 1
            self.avg.lerp_(h.mean(0), 0.1)
        return h - self.avg / (1 - 0.9**self.steps)


class Usage(nn.Module):
    """A codebook of which buffers count the use; what is hardly used weighs more."""

    def __init__(self):
        super().__init__()
        self.a, self.book = nn.Linear(5, 4), nn.Embedding(6, 4)
        self.register_buffer("usage", torch.ones(6))

    def forward(self, x):
        h = self.a(x)
        d = h.pow(2).sum(1, keepdim=True) - 2 * h @ self.book.weight.t() + self.book.weight.pow(2).sum(1)
        at = (d.detach() * self.usage.rsqrt()).argmin(1)
        q = self.book(at)
        loss = F.mse_loss(q, h.detach()) + 0.25 * F.mse_loss(h, q.detach())
        with torch.no_grad():
            self.usage.mul_(0.9).add_(F.one_hot(at, 6).float().sum(0), alpha=0.1)
        return loss + (h + (q - h).detach()).pow(2).mean()


class Moving(nn.Module):
    """A codebook in buffers, moved by averages of what fell to each entry, as VQ-VAE 2 has it."""

    def __init__(self):
        super().__init__()
        self.a, self.o = nn.Linear(5, 4), nn.Linear(4, 5)
        self.register_buffer("embed", torch.randn(4, 6))
        self.register_buffer("cluster_size", torch.ones(6))
        self.register_buffer("embed_avg", self.embed.clone())

    def forward(self, x):
        h = self.a(x)
        d = h.pow(2).sum(1, keepdim=True) - 2 * h @ self.embed + self.embed.pow(2).sum(0, keepdim=True)
        at = (-d).max(1)[1]
        hot = F.one_hot(at, 6).type(h.dtype)
        q = F.embedding(at, self.embed.transpose(0, 1))
        self.cluster_size.data.mul_(0.9).add_(hot.sum(0), alpha=0.1)
        self.embed_avg.data.mul_(0.9).add_(h.detach().transpose(0, 1) @ hot, alpha=0.1)
        n = self.cluster_size.sum()
        size = (self.cluster_size + 1e-5) / (n + 6 * 1e-5) * n
        self.embed.data.copy_(self.embed_avg / size.unsqueeze(0))
        return (q.detach() - h).pow(2).mean() + F.mse_loss(self.o(h + (q - h).detach()), x)


class Powered(nn.Module):
    """A spectral norm by hand: one step of power iteration, kept in a buffer."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = weight(4, 5), weight(4)
        self.register_buffer("u", F.normalize(torch.randn(4), dim=0))

    def forward(self, x):
        with torch.no_grad():
            v = F.normalize(self.weight.t() @ self.u, dim=0)
            u = F.normalize(self.weight @ v, dim=0)
            self.u.copy_(u)
        sigma = torch.dot(u, self.weight @ v)
        return F.linear(x, self.weight / sigma, self.bias)


class History(nn.Module):
    """Losses of the last batches, rolled, whose deviation scales the next."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("past", torch.tensor([1.0, 2.0, 1.5]))

    def forward(self, x, y):
        loss = F.cross_entropy(self.a(x), y)
        scale = 1 / (self.past.std() + 0.1)
        self.past.copy_(torch.cat([self.past[1:], loss.detach().view(1)]))
        return loss * scale


class Observed(nn.Module):
    """Inputs under running statistics in f32 by Welford's method, bounded."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("mean", torch.zeros(5))
        self.register_buffer("var", torch.ones(5))
        self.register_buffer("count", torch.tensor(1e-4))

    def forward(self, x):
        with torch.no_grad():
            m, v, n = x.mean(0), x.var(0, unbiased=False), x.shape[0]
            delta, total = m - self.mean, self.count + n
            m2 = self.var * self.count + v * n + delta**2 * self.count * n / total
            self.mean.add_(delta * n / total)
            self.var.copy_(m2 / total)
            self.count.copy_(total)
        return self.a(((x - self.mean) / torch.sqrt(self.var + 1e-8)).clamp(-2, 2))


class Range(nn.Module):
    """Quantization that observes a running range, straight through."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("low", torch.tensor(-0.5))
        self.register_buffer("high", torch.tensor(0.5))

    def forward(self, x):
        h = self.a(x)
        with torch.no_grad():
            self.low.copy_(torch.min(self.low, h.min()))
            self.high.copy_(torch.max(self.high, h.max()))
            scale = (self.high - self.low) / 15
            q = torch.clamp(torch.round((h - self.low) / scale), 0, 15) * scale + self.low
        return h + (q - h).detach()


class Memory(nn.Module):
    """A bank of normalized rows by index, each a mixture of the old and the new, read before it is written."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("bank", F.normalize(torch.randn(9, 4), dim=1))

    def forward(self, x, i):
        h = F.normalize(self.a(x), dim=1)
        loss = F.cross_entropy(h @ self.bank.clone().t() / 0.5, i)
        with torch.no_grad():
            self.bank.index_copy_(0, i, F.normalize(0.5 * self.bank[i] + 0.5 * h, dim=1))
        return loss


class Twice(nn.Module):
    """One norm for two views, then its running mean as a penalty's target."""

    def __init__(self):
        super().__init__()
        self.a, self.n = nn.Linear(5, 4), nn.BatchNorm1d(4)

    def forward(self, x, z):
        one, two = self.n(self.a(x)), self.n(self.a(z))
        return F.mse_loss(one, two) + (self.a(x).mean(0) - self.n.running_mean).abs().mean()


class Spiking(nn.Module):
    """Leaky units that spike, with a surrogate gradient by detaching, and a learned leak."""

    def __init__(self):
        super().__init__()
        self.a, self.w, self.o = nn.Linear(5, 6), nn.Parameter(torch.tensor(-0.5)), nn.Linear(6, 4)

    def forward(self, x):
        v, total = torch.zeros(2, 6), 0.0
        for t in range(4):
            v = v + (self.a(x[:, t]) - v) * self.w.sigmoid()
            soft = torch.sigmoid(4.0 * (v - 0.3))
            s = ((v >= 0.3).float() - soft).detach() + soft
            v = v * (1 - s.detach())
            total = total + self.o(s)
        return total / 4


programs("script", [
    ("script-spiking", lambda: dict(n=Spiking()), dict(x=(2, 4, 5)), whole),
    ("state-annealed", lambda: dict(n=Annealed()), CLASSES, whole),
    ("state-corrected-mean", lambda: dict(n=Corrected()), ROWS, whole),
    ("state-usage", lambda: dict(n=Usage()), ROWS, whole),
    ("state-moving-codes", lambda: dict(n=Moving()), ROWS, whole),
    ("state-power-iteration", lambda: dict(n=Powered()), ROWS, whole),
    ("state-history", lambda: dict(n=History()), CLASSES, whole),
    ("state-observed-inputs", lambda: dict(n=Observed()), ROWS, whole),
    ("state-range", lambda: dict(n=Range()), ROWS, whole),
    ("state-bank", lambda: dict(n=Memory()), dict(x=ROWS, i=lambda: torch.tensor([0, 8, 3, 2, 5, 7])), whole),
    ("state-norm-of-two-views", lambda: dict(n=Twice()), TWO, whole),
    ("state-read-old", lambda: dict(LINEAR(), c=torch.ones(4)), ROWS, lambda m, x: (lambda h, old: kept(m, h / old, "c", 0.9 * old + 0.1 * h.detach().abs().mean(0)))(m.a(x), m.c.clone())),
    ("state-read-new", lambda: dict(LINEAR(), c=torch.ones(4)), ROWS, lambda m, x: (lambda h: kept(m, h, "c", 0.9 * m.c + 0.1 * h.detach().abs().mean(0)) / m.c)(m.a(x))),
    ("state-assigned-twice", lambda: dict(LINEAR(), c=torch.zeros(4)), TWO, lambda m, x, z: kept(m, m.a(x), "c", 0.5 * m.c + m.a(x).detach().mean(0)) - kept(m, m.a(z), "c", 0.5 * m.c + m.a(z).detach().mean(0)) * m.c),
    ("state-scaled-if-finite", lambda: dict(LINEAR(), scale=torch.tensor(8.0)), CLASSES, lambda m, x, y: (lambda loss: kept(m, loss, "scale", torch.where(torch.isfinite(loss.detach()), m.scale * 2, m.scale / 2)) / 8)(F.cross_entropy(m.a(x), y) * m.scale.clone())),
    ("state-teacher-average", lambda: dict(LINEAR(), ema=torch.zeros(4, 5)), ROWS, lambda m, x: F.linear(x, kept(m, m.ema, "ema", 0.9 * m.ema + 0.1 * m.a.weight.detach())) - m.a(x)),
    ("stop-slice", LINEAR, ROWS, lambda m, x: (lambda h: torch.cat([h[:, :2].detach(), h[:, 2:]], 1) ** 2 + h)(m.a(x))),
    ("stop-twin-slices", LINEAR, ROWS, lambda m, x: (lambda h: h[:, :2] * h[:, :2].detach().exp())(m.a(x))),
    ("stop-where", GATED, ROWS, lambda m, x: (lambda h: torch.where(m.g(x) > 0, h, h.detach()) * 2)(m.a(x))),
    ("stop-decorated", lambda: dict(NETS(), s=nn.LayerNorm(4)), ROWS, lambda m, x: m.a(x) * still(m.s, m.b(x)) + m.s(m.a(x))),
    ("stop-inference", NETS, ROWS, lambda m, x: m.a(x) * inferred(m.b, x)),
    ("stop-table", lambda: dict(e=nn.Embedding(9, 4), a=nn.Linear(4, 9)), dict(i=lambda: labels(9, 6), y=lambda: labels(9, 6)), lambda m, i, y: F.cross_entropy(m.a(m.e(i)), y) + F.cross_entropy(F.linear(m.e(i), m.e.weight.detach()), y)),
    ("stop-weight-both-ways", LINEAR, TWO, lambda m, x, z: F.linear(x, m.a.weight.detach(), m.a.bias) * F.linear(z, m.a.weight, m.a.bias.detach())),
    ("stop-states", lambda: dict(c=nn.GRUCell(5, 4)), dict(x=(4, 3, 5)), lambda m, x: truncated(m, x)),
    ("stop-ratio-of-policies", LINEAR, dict(x=ROWS, y=lambda: labels(4, 6), r=(6,)), lambda m, x, y, r: (lambda lp: -(torch.exp(lp - lp.detach()) * r).mean())(m.a(x).log_softmax(1).gather(1, y[:, None]).squeeze(1))),
    ("stop-normalizer", LINEAR, ROWS, lambda m, x: (lambda h: h / h.norm(dim=1, keepdim=True).detach() + h / h.norm(dim=1, keepdim=True))(m.a(x))),
    ("stop-statistics", LINEAR, ROWS, lambda m, x: (lambda h: (h - h.mean(0).detach()) / (h.std(0).detach() + 1e-3) * h.std(0))(m.a(x))),
    ("stop-softmax-hard", LINEAR, ROWS, lambda m, x: (lambda p: (F.one_hot(p.argmax(-1), 4).to(p.dtype) - p).detach() + p)(m.a(x).softmax(-1)) @ torch.arange(12.0).view(4, 3)),
    ("stop-mixture", GATED, ROWS, lambda m, x: (lambda h: 0.3 * h + 0.7 * h.detach())(m.a(x)) * m.g(x)),
    ("stop-attention-keys", lambda: dict(q=nn.Linear(8, 8), k=nn.Linear(8, 8)), TOKENS, lambda m, x: F.scaled_dot_product_attention(m.q(x), m.k(x).detach(), m.k(x))),
    ("stop-clone", LINEAR, ROWS, lambda m, x: (lambda h: h * h.detach().clone() + h.clone().detach().sigmoid() * 2)(m.a(x))),
    ("stop-sampled-top", LINEAR, ROWS, lambda m, x: (lambda p, k: (p * (p.detach() >= k).float()).sum(1))(m.a(x).softmax(1), m.a(x).softmax(1).detach().topk(2, 1)[0][:, 1:])),
    ("stop-copied-target", lambda: copied(), TWO, lambda m, x, z: 2 - 2 * F.cosine_similarity(m.p(m.a(x)), unmoved(m.t, z), dim=-1)),
    ("begin-low-rank", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(4, 4), a1=weight(2, 5), b1=nn.Parameter(torch.zeros(4, 2)), a2=weight(2, 4), b2=nn.Parameter(torch.zeros(4, 2))), ROWS, lambda m, x: (lambda h: m.b(h) + h @ m.a2.T @ m.b2.T)(F.relu(m.a(x) + x @ m.a1.T @ m.b1.T))),
    ("begin-low-rank-layers", lambda: low_rank(), ROWS, lambda m, x: (lambda h: m.b(h) + 0.5 * m.ub(m.db(h)))(F.relu(m.a(x) + 0.5 * m.ua(m.da(x))))),
    ("begin-closed-kernels", lambda: closed(), IMAGE, lambda m, x: m.z2(F.relu(m.b(x + m.z1(m.a(x))))) + m.z3(m.a(x)) + x),
    ("begin-tables", lambda: dict(q=nn.Linear(8, 8), o=nn.Linear(8, 8), t1=nn.Parameter(torch.zeros(11, 2)), t2=nn.Parameter(torch.zeros(11, 2))), TOKENS, lambda m, x: biased(m.o, biased(m.q, x, m.t1), m.t2)),
    ("begin-tokens", lambda: dict(cls=nn.Parameter(torch.zeros(1, 1, 8)), mask=nn.Parameter(torch.zeros(1, 1, 8)), reg=nn.Parameter(torch.zeros(1, 2, 8)), pos=nn.Parameter(torch.zeros(1, 9, 8)), n=nn.Linear(8, 8)), dict(x=(2, 6, 8), k=lambda: torch.rand(2, 6, 1).round()), lambda m, x, k: m.n(torch.cat([m.cls.expand(2, -1, -1), m.reg.expand(2, -1, -1), x * (1 - k) + m.mask * k], 1) + m.pos).pow(3)),
    ("begin-scales", lambda: dict(a=nn.Linear(8, 8), b=nn.Linear(8, 8), g1=nn.Parameter(1e-5 * torch.ones(8)), g2=nn.Parameter(1e-5 * torch.ones(8)), n1=nn.LayerNorm(8), n2=nn.LayerNorm(8)), TOKENS, lambda m, x: (lambda h: h + m.g2 * m.b(m.n2(h)))(x + m.g1 * m.a(m.n1(x)))),
    ("begin-experts-copied", lambda: upcycled(), ROWS, lambda m, x: (lambda p: p[:, :1] * m.e1(x) + p[:, 1:2] * m.e2(x) + p[:, 2:] * m.e3(x))(m.g(x).softmax(1))),
    ("begin-branches-copied", lambda: upcycled(), TWO, lambda m, x, z: m.e1(x) * 2 + m.e2(z) - m.e3(x + z)),
    ("begin-heads-of-zeros", lambda: heads(), CLASSES, lambda m, x, y: F.cross_entropy(m.h1(F.relu(m.a(x))), y) + 0.4 * F.cross_entropy(m.h2(F.relu(m.a(x))), y)),
    ("begin-residual-norms", lambda: last_norms(), IMAGE, lambda m, x: (lambda h: F.relu(h + m.n2(m.b(h))))(F.relu(x + m.n1(m.a(x))))),
    ("begin-gates", lambda: dict(CONV(), g=nn.Parameter(torch.zeros(1)), h=nn.Parameter(torch.zeros(1)), s=nn.Parameter(torch.ones(1))), IMAGE, lambda m, x: x * m.s + m.g.tanh() * m.a(x) + m.h * F.relu(m.a(x))),
    ("begin-uncertain", lambda: dict(LINEAR(), s=nn.Parameter(torch.zeros(3))), PAIRS, lambda m, x, t: (lambda h: sum(torch.exp(-m.s[i]) * loss + m.s[i] for i, loss in enumerate((F.mse_loss(h, t), (h - t).abs().mean(), h.pow(4).mean()))))(m.a(x))),
    ("begin-temperature", lambda: dict(NETS(), t=nn.Parameter(torch.ones([]) * math.log(1 / 0.07)), b=nn.Parameter(torch.zeros([])), c=nn.Linear(5, 4)), TWO, lambda m, x, z: F.cross_entropy(F.normalize(m.a(x), dim=-1) @ F.normalize(m.c(z), dim=-1).t() * m.t.exp().clamp(max=100) + m.b, torch.arange(6))),
    ("begin-padding-last", lambda: dict(e=nn.Embedding(9, 4, padding_idx=-1), o=nn.Linear(4, 9, bias=False)), dict(i=lambda: torch.tensor([[3, 4, 5, 8, 8], [1, 2, 7, 8, 0]])), lambda m, i: F.cross_entropy(m.o(m.e(i)).flatten(0, 1), i.flatten(), ignore_index=8)),
    ("begin-padding-tied", lambda: padded_tie(), dict(i=lambda: torch.tensor([[3, 4, 5, 0, 0], [1, 2, 7, 8, 0]])), lambda m, i: F.cross_entropy(m.o(m.e(i)).flatten(0, 1), i.roll(-1, 1).flatten(), ignore_index=0)),
])  # fmt: skip


@torch.no_grad()
def still(norm, x):
    return norm(x).tanh()


def inferred(layer, x):
    with torch.no_grad():
        return layer(x).clone().softmax(-1)


def unmoved(layers, x):
    with torch.no_grad():
        return layers(x).detach()


def truncated(m, x):
    """Two steps, a cut, two steps."""
    h, out = torch.zeros(3, 4), 0.0
    for t in range(4):
        h = m.c(x[t], h.detach() if t == 2 else h)
        out = out + h
    return out


def copied():
    a = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4))
    return dict(a=a, p=nn.Linear(4, 4), t=copy.deepcopy(a).requires_grad_(False))


def low_rank():
    parts = dict(a=nn.Linear(5, 4), b=nn.Linear(4, 4), da=nn.Linear(5, 2, bias=False), ua=nn.Linear(2, 4, bias=False), db=nn.Linear(4, 2, bias=False), ub=nn.Linear(2, 4, bias=False))
    for name in ("ua", "ub"):
        nn.init.zeros_(parts[name].weight)
    return parts


def closed():
    parts = dict(a=nn.Conv2d(4, 4, 3, padding=1), b=nn.Conv2d(4, 4, 3, padding=1), **{f"z{i}": nn.Conv2d(4, 4, 1) for i in (1, 2, 3)})
    for name in ("z1", "z2", "z3"):
        nn.init.zeros_(parts[name].weight)
        nn.init.zeros_(parts[name].bias)
    return parts


def biased(layer, x, table):
    at = torch.arange(6)
    h = layer(x).unflatten(-1, (2, 4)).transpose(1, 2)
    s = h @ h.transpose(-1, -2) / 2 + table[at[None] - at[:, None] + 5].permute(2, 0, 1)
    return x + (s.softmax(-1) @ h).transpose(1, 2).flatten(2)


def upcycled():
    e = nn.Sequential(nn.Linear(5, 6), nn.GELU(), nn.Linear(6, 4))
    return dict(g=nn.Linear(5, 3), e1=e, e2=copy.deepcopy(e), e3=copy.deepcopy(e))


def heads():
    parts = dict(a=nn.Linear(5, 6), h1=nn.Linear(6, 4), h2=nn.Linear(6, 4))
    for name in ("h1", "h2"):
        nn.init.zeros_(parts[name].weight)
        nn.init.zeros_(parts[name].bias)
    return parts


def last_norms():
    parts = dict(a=nn.Conv2d(4, 4, 3, padding=1, bias=False), b=nn.Conv2d(4, 4, 3, padding=1, bias=False), n1=nn.BatchNorm2d(4), n2=nn.BatchNorm2d(4))
    for name in ("n1", "n2"):
        nn.init.zeros_(parts[name].weight)
    return parts


def padded_tie():
    parts = dict(e=nn.Embedding(9, 4, padding_idx=0), o=nn.Linear(4, 9, bias=False))
    parts["o"].weight = parts["e"].weight
    return parts
