"""Programs of reported kinds in further shapes: codes and counters in modules of modules, norms that are frozen, teachers, dropout of SELU."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import CLASSES, IMAGE, LINE, ROWS, labels, programs, weight

TWO = dict(x=ROWS, z=ROWS)
IDS = dict(i=lambda: labels(9, 2, 6))


class Codebook(nn.Module):
    """A codebook that follows its members, with Laplace smoothing."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv1d(4, 4, 1)
        self.register_buffer("codebook", torch.randn(5, 4))
        self.register_buffer("cluster_size", torch.ones(5))
        self.register_buffer("embed_avg", self.codebook.clone())

    def forward(self, x):
        h = self.a(x).transpose(1, 2).reshape(-1, 4)
        at = (h.pow(2).sum(1, keepdim=True) - 2 * h @ self.codebook.t() + self.codebook.pow(2).sum(1)).argmin(1)
        hot = F.one_hot(at, 5).type(h.dtype)
        q = F.embedding(at, self.codebook)
        with torch.no_grad():
            self.cluster_size.mul_(0.9).add_(hot.sum(0), alpha=0.1)
            self.embed_avg.mul_(0.9).add_(hot.t() @ h, alpha=0.1)
            n = self.cluster_size.sum()
            size = (self.cluster_size + 1e-5) / (n + 5 * 1e-5) * n
            self.codebook.copy_(self.embed_avg / size.unsqueeze(1))
        return 0.25 * F.mse_loss(q.detach(), h) + (h + (q - h).detach()).square().mean()


class Entry(nn.Module):
    """A counter and a mean that live in a child of a child."""

    def __init__(self, size):
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.count.add_(1)
        rate = 1.0 / self.count.float()
        self.mean.mul_(1 - rate).add_(rate * x.detach().flatten(0, -2).mean(0))
        return x - self.mean


class TwoStates(nn.Module):
    """Two modules of one class, one in another; buffers by list."""

    def __init__(self):
        super().__init__()
        self.l = nn.ModuleDict({"enc": nn.Sequential(nn.Linear(5, 4), Entry(4)), "dec": nn.Sequential(nn.Linear(4, 4), Entry(4))})

    def forward(self, x):
        return self.l["dec"](torch.tanh(self.l["enc"](x)))


class Critic(nn.Module):
    """Twin critics and their slow copies."""

    def __init__(self):
        super().__init__()
        make = lambda: nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4))  # noqa: E731
        self.q1, self.q2 = make(), make()
        self.t1, self.t2 = copy.deepcopy(self.q1), copy.deepcopy(self.q2)

    def forward(self, x, z, a, r):
        with torch.no_grad():
            best = torch.min(self.t1(z), self.t2(z)).max(1).values
            y = r + 0.9 * best
        q1, q2 = (q(x).gather(1, a[:, None])[:, 0] for q in (self.q1, self.q2))
        return F.mse_loss(q1, y) + F.mse_loss(q2, y)


class Dino(nn.Module):
    """Student and teacher heads with weight norm, and a centre."""

    def __init__(self):
        super().__init__()
        self.student = nn.Sequential(nn.Linear(5, 6), nn.GELU(), nn.Linear(6, 4))
        self.teacher = copy.deepcopy(self.student)
        for p in self.teacher.parameters():
            p.requires_grad_(False)
        self.register_buffer("center", torch.zeros(1, 4))

    def forward(self, x, z):
        s = torch.stack([self.student(v) for v in (x, z)]) / 0.1
        t = torch.stack([self.teacher(v) for v in (x, z)])
        p = F.softmax((t - self.center) / 0.04, -1).detach()
        loss = sum(-(p[i] * s[1 - i].log_softmax(-1)).sum(-1).mean() for i in range(2)) / 2
        self.center.mul_(0.9).add_(t.detach().mean((0, 1), keepdim=False)[None] * 0.1)
        return loss


class Moco(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(5, 4), nn.Linear(5, 4)
        self.k.requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(8, 4), dim=1))

    def forward(self, x, z):
        q = F.normalize(self.q(x), dim=1)
        with torch.no_grad():
            for a, b in zip(self.q.parameters(), self.k.parameters()):
                b.mul_(0.99).add_(a, alpha=0.01)
            k = F.normalize(self.k(z), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ self.queue.T], 1) / 0.07
        return F.cross_entropy(logits, torch.zeros(6, dtype=torch.long))


class Fixed(nn.Module):
    """Frozen batch norms, as detectors write them: buffers, and rsqrt."""

    def __init__(self, n):
        super().__init__()
        for name, value in dict(weight=torch.rand(n) + 0.5, bias=torch.randn(n) * 0.1, running_mean=torch.randn(n) * 0.1, running_var=torch.rand(n) + 0.5).items():
            self.register_buffer(name, value)

    def forward(self, x):
        w, b, v, m = (t.reshape(1, -1, 1, 1) for t in (self.weight, self.bias, self.running_var, self.running_mean))
        scale = w * (v + 1e-5).rsqrt()
        return x * scale + (b - m * scale)


class Quantizer(nn.Module):
    """Learned step sizes for values and weights."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.sw, self.sx = nn.Parameter(torch.tensor(0.1)), nn.Parameter(torch.tensor(0.2))

    def forward(self, x):
        def q(v, s, g):
            s = (s - s * g).detach() + s * g
            u = (v / s).clamp(-8, 7)
            return ((u.round() - u).detach() + u) * s

        return F.linear(q(x, self.sx, 0.05), q(self.a.weight, self.sw, 0.08), self.a.bias)


class Written(nn.Module):
    """A buffer of which each step writes or moves a part."""

    def __init__(self, moves):
        super().__init__()
        self.a, self.moves = nn.Linear(5, 4), moves
        self.register_buffer("kept", torch.zeros(6, 4))

    def forward(self, x):
        h = self.a(x)
        if self.moves:
            self.kept[:3].lerp_(h[:3].detach(), 0.2)
        else:
            self.kept[:, 0] = h[:, 0].detach()
        return h * (self.kept + 1)


class Similar(nn.Module):
    """Products and squares that two blocks average, with types left alone."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)

    def forward(self, x, z):
        h = self.a(x)
        with torch.autocast("cpu", enabled=False):
            means = h.mean(1) * z.mean(1)
        with torch.autocast("cpu", enabled=False):
            squares = h.square().mean(1) + z.square().mean(1)
        return (means + 0.1) / (squares + 0.1)


class Largest(nn.Module):
    """The largest of rounded values, of which several are equal."""

    def __init__(self):
        super().__init__()
        self.a, self.p = nn.Conv2d(4, 4, 1), nn.AdaptiveMaxPool2d(1)

    def forward(self, x):
        h = self.a(x)
        return self.p(h + ((h * 2).round() / 2 - h).detach())


class Tabular(nn.Module):
    """Batch norms of parts of the batch, and sparse gates."""

    def __init__(self):
        super().__init__()
        self.n = nn.BatchNorm1d(5, momentum=0.02)
        self.l = nn.ModuleList(nn.Linear(5, 8, bias=False) for _ in range(2))
        self.v = nn.ModuleList(nn.BatchNorm1d(8, momentum=0.02) for _ in range(2))

    def forward(self, x):
        x = self.n(x)
        out = 0
        for layer, norm in zip(self.l, self.v):
            parts = [norm(p) for p in layer(x).chunk(2)]
            out = out + F.glu(torch.cat(parts)) * 0.5**0.5
        return out


programs("strange", [
    ("strange-codebook", lambda: dict(n=Codebook()), LINE, lambda m, x: m.n(x)),
    ("strange-entry-deep", lambda: dict(n=TwoStates()), ROWS, lambda m, x: m.n(x)),
    ("strange-norm-shared-list", lambda: dict(a=nn.ModuleList(nn.Conv2d(4, 4, 1) for _ in range(3)), n=nn.BatchNorm2d(4, momentum=0.3)), IMAGE, lambda m, x: m.a[2](F.relu(m.n(m.a[1](F.relu(m.n(m.a[0](x)))))))),
    ("strange-dropout-modules", lambda: dict(a=nn.Conv2d(4, 4, 1), d=nn.Dropout2d(0.2), e=nn.Linear(4, 4), f=nn.AlphaDropout(0.1)), IMAGE, lambda m, x: m.f(F.selu(m.e(m.d(m.a(x)).mean((2, 3)))))),
    ("strange-table-two-paddings", lambda: dict(e=nn.Embedding(9, 8, padding_idx=0), f=nn.Embedding(9, 8, padding_idx=1)), IDS, lambda m, i: m.e(i) * m.f(i)),
    ("strange-part-written", lambda: dict(n=Written(False)), ROWS, lambda m, x: m.n(x)),
    ("strange-part-moved", lambda: dict(n=Written(True)), ROWS, lambda m, x: m.n(x)),
    ("strange-two-blocks", lambda: dict(n=Similar()), dict(x=ROWS, z=(6, 4)), lambda m, x, z: m.n(x, z)),
    ("strange-largest", lambda: dict(n=Largest()), IMAGE, lambda m, x: m.n(x)),
    ("strange-net-critics", lambda: dict(n=Critic()), dict(x=ROWS, z=ROWS, a=lambda: labels(4, 6), r=(6,)), lambda m, x, z, a, r: m.n(x, z, a, r)),
    ("strange-net-dino", lambda: dict(n=Dino()), TWO, lambda m, x, z: m.n(x, z)),
    ("strange-net-moco", lambda: dict(n=Moco()), TWO, lambda m, x, z: m.n(x, z)),
    ("strange-net-fixed-norms", lambda: dict(a=nn.Conv2d(4, 4, 3, padding=1, bias=False), n=Fixed(4), b=nn.Conv2d(4, 4, 1, bias=False), o=Fixed(4)), IMAGE, lambda m, x: m.o(m.b(m.n(m.a(x)).relu()))),
    ("strange-net-quantizer", lambda: dict(n=Quantizer()), ROWS, lambda m, x: m.n(x)),
    ("strange-net-tabular", lambda: dict(n=Tabular()), ROWS, lambda m, x: m.n(x)),
    ("strange-net-mobile", lambda: dict(l=nn.Sequential(nn.Conv2d(4, 8, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish(), nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), nn.BatchNorm2d(8), nn.Hardswish()), s=nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 4, 1), nn.ReLU(), nn.Conv2d(4, 8, 1), nn.Hardsigmoid())), IMAGE, lambda m, x: (lambda h: h * m.s(h))(m.l(x))),
    ("strange-net-metric", lambda: dict(a=nn.Linear(5, 4), n=nn.BatchNorm1d(4, affine=False), w=weight(4, 4), s=nn.Parameter(torch.tensor(10.0))), CLASSES, lambda m, x, y: F.cross_entropy(m.s * F.linear(F.normalize(m.n(m.a(x))), F.normalize(m.w)), y, label_smoothing=0.05)),
])  # fmt: skip
