"""Further programs of kinds that were reported: buffers that programs assign, norms that run again, stopped gradients, teachers."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from devkit.zoo_models.programs import CLASSES, CONV, CONV1, IMAGE, LINE, LINEAR, PAIRS, ROWS, labels, programs, weight

TWO = dict(x=ROWS, z=ROWS)
TOKENS = (2, 6, 8)
VOLUME = (2, 4, 3, 4, 5)
NETS = lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4))  # noqa: E731


class Step(nn.Module):
    """A layer that counts its runs and weighs what it gives by them."""

    def __init__(self, size=8):
        super().__init__()
        self.a = nn.Linear(size, size)
        self.register_buffer("runs", torch.tensor(0))

    def forward(self, x):
        self.runs += 1
        return x + torch.tanh(self.a(x)) / (1 + self.runs)


class Debiased(nn.Module):
    """A running mean whose first values are corrected by a power of its decay."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("avg", torch.zeros(4))
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        h = self.a(x)
        with torch.no_grad():
            self.steps.add_(1)
            self.avg.lerp_(h.mean(0), 0.1)
            centre = self.avg / (1 - 0.9**self.steps)
        return h - centre


class Begun(nn.Module):
    """A buffer that takes the first batch and averages the following, by a flag."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("avg", torch.ones(4))
        self.register_buffer("begun", torch.tensor(False))

    def forward(self, x):
        h = self.a(x)
        fresh = h.detach().abs().mean(0)
        self.avg.copy_(torch.where(self.begun, 0.9 * self.avg + 0.1 * fresh, fresh))
        self.begun.fill_(True)
        return h / self.avg


class Queue(nn.Module):
    """Keys in columns, the oldest of which the newest replace at a pointer."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 4), nn.Linear(5, 4)
        self.register_buffer("queue", F.normalize(torch.randn(4, 12), dim=0))
        self.register_buffer("at", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        q = F.normalize(self.a(x), dim=1)
        with torch.no_grad():
            k = F.normalize(self.b(x), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ self.queue.clone().detach()], 1) / 0.2
        loss = F.cross_entropy(logits, torch.zeros(6, dtype=torch.long))
        with torch.no_grad():
            places = (self.at + torch.arange(6)) % 12
            self.queue.index_copy_(1, places, k.T)
            self.at.copy_((self.at + 6) % 12)
        return loss


class Counts(nn.Module):
    """How often each class was seen, which weighs the loss of the next batch."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("seen", torch.ones(4))

    def forward(self, x, y):
        prior = (self.seen / self.seen.sum()).log()
        loss = F.cross_entropy(self.a(x) + prior, y)
        self.seen.scatter_add_(0, y, torch.ones(6))
        return loss


class Scaled(nn.Module):
    """A loss divided by its own running mean, without a gradient through it."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("mean", torch.ones(()))

    def forward(self, x, t):
        loss = F.mse_loss(self.a(x), t)
        self.mean.mul_(0.9).add_(0.1 * loss.detach())
        return loss / self.mean


class Averaged(nn.Module):
    """An average of a layer's own weight, which gives the target."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("weight", self.a.weight.detach().clone() + 0.1)

    def forward(self, x):
        with torch.no_grad():
            target = F.linear(x, self.weight)
        loss = F.mse_loss(self.a(x), target)
        self.weight.mul_(0.9).add_(self.a.weight.detach(), alpha=0.1)
        return loss


class Spread(nn.Module):
    """Welford's count, mean and sum of squares, a batch at a time."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("n", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("m2", torch.zeros(4))

    def forward(self, x):
        h = self.a(x)
        with torch.no_grad():
            for row in h[:3]:
                self.n += 1
                delta = row - self.mean
                self.mean += delta / self.n
                self.m2 += delta * (row - self.mean)
        return (h - self.mean) / (self.m2 / self.n + 1e-3).sqrt()


class HandNorm(nn.Module):
    """A batch norm by hand over images, with running values that only evaluation reads."""

    def __init__(self, dims=(0, 2, 3)):
        super().__init__()
        self.dims = dims
        self.weight, self.bias = nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))
        self.register_buffer("moving_mean", torch.zeros(4))
        self.register_buffer("moving_var", torch.ones(4))

    def forward(self, x):
        mean, var = x.mean(self.dims), x.var(self.dims, unbiased=False)
        self.moving_mean.lerp_(mean.detach(), 0.1)
        self.moving_var.lerp_(var.detach(), 0.1)
        shape = [1, 4] + [1] * (x.dim() - 2)
        return (x - mean.view(shape)) / (var.view(shape) + 1e-5).sqrt() * self.weight.view(shape) + self.bias.view(shape)


class Annealed(nn.Module):
    """A temperature that falls with a counter, down to a bound."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("t", torch.tensor(1.0))

    def forward(self, x):
        p = (self.a(x) / self.t).softmax(1)
        self.t.mul_(0.9).clamp_(min=0.5)
        return p


class Reset(nn.Module):
    """Codes that were seldom used begin again at rows of the batch."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("code", torch.randn(6, 4))
        self.register_buffer("uses", torch.ones(6))

    def forward(self, x):
        h = self.a(x)
        at = torch.cdist(h.detach(), self.code).argmin(1)
        q = self.code[at]
        loss = F.mse_loss(h, q) + (h + (q - h).detach()).square().mean()
        with torch.no_grad():
            self.uses.mul_(0.5).add_(F.one_hot(at, 6).sum(0), alpha=0.5)
            self.code.copy_(torch.where((self.uses < 0.6)[:, None], h, self.code))
        return loss


programs("kind-state", [
    ("kind-state-counted-layers", lambda: dict(l=nn.ModuleList(Step() for _ in range(2))), TOKENS, lambda m, x: m.l[1](m.l[0](x))),
    ("kind-state-counted-twice", lambda: dict(l=nn.Sequential(Step(), nn.Tanh())), TOKENS, lambda m, x: m.l(m.l(x))),
    ("kind-state-debiased", lambda: dict(n=Debiased()), ROWS, lambda m, x: m.n(x)),
    ("kind-state-begun", lambda: dict(n=Begun()), ROWS, lambda m, x: m.n(x)),
    ("kind-state-queue-columns", lambda: dict(n=Queue()), ROWS, lambda m, x: m.n(x)),
    ("kind-state-counts", lambda: dict(n=Counts()), CLASSES, lambda m, x, y: m.n(x, y)),
    ("kind-state-scaled-loss", lambda: dict(n=Scaled()), PAIRS, lambda m, x, t: m.n(x, t)),
    ("kind-state-averaged-weight", lambda: dict(n=Averaged()), ROWS, lambda m, x: m.n(x)),
    ("kind-state-spread", lambda: dict(n=Spread()), ROWS, lambda m, x: m.n(x)),
    ("kind-state-hand-norm", lambda: dict(CONV(), n=HandNorm()), IMAGE, lambda m, x: m.n(m.a(x))),
    ("kind-state-hand-norm-line", lambda: dict(CONV1(), n=HandNorm((0, 2)), o=HandNorm((0, 2))), LINE, lambda m, x: m.o(F.relu(m.n(m.a(x))))),
    ("kind-state-hand-norm-twice", lambda: dict(LINEAR(), n=HandNorm((0,))), TWO, lambda m, x, z: m.n(m.a(x)) - m.n(m.a(z))),
    ("kind-state-annealed", lambda: dict(n=Annealed()), ROWS, lambda m, x: m.n(x)),
    ("kind-state-reset-codes", lambda: dict(n=Reset()), ROWS, lambda m, x: m.n(x)),
    ("kind-state-row-written", lambda: dict(LINEAR(), h=torch.zeros(3, 4), i=torch.tensor(0)), ROWS, lambda m, x: written(m, x)),
])  # fmt: skip


def written(m, x):
    h = m.a(x)
    out = h + m.h.mean(0)
    m.h.index_copy_(0, m.i.view(1), h.detach().mean(0, keepdim=True))
    m.i.add_(1).remainder_(3)
    return out


NORM1 = lambda: dict(CONV1(), n=nn.BatchNorm1d(4))  # noqa: E731

programs("kind-norm", [
    ("kind-norm-twice-line", NORM1, dict(x=LINE, z=LINE), lambda m, x, z: m.n(m.a(x)) - m.n(m.a(z)).relu()),
    ("kind-norm-twice-rows", lambda: dict(LINEAR(), n=nn.BatchNorm1d(4, affine=False)), TWO, lambda m, x, z: m.n(m.a(x)) * m.n(m.a(z))),
    ("kind-norm-twice-volume", lambda: dict(a=nn.Conv3d(4, 4, 1), n=nn.BatchNorm3d(4)), dict(x=VOLUME, z=VOLUME), lambda m, x, z: m.n(m.a(x)) - m.n(m.a(z)).relu()),
    ("kind-norm-twice-cumulative", lambda: dict(LINEAR(), n=nn.BatchNorm1d(4, momentum=None)), TWO, lambda m, x, z: m.n(m.a(x)) - m.n(m.a(z)).relu()),
    ("kind-norm-twice-sequential", lambda: dict(l=nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1d(5), nn.ReLU())), ROWS, lambda m, x: m.l(m.l(x))),
    ("kind-norm-twice-joined", lambda: dict(l=nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4))), TWO, lambda m, x, z: m.l(torch.cat([x, z])).chunk(2)[0] - m.l(z)),
    ("kind-norm-three-views", lambda: dict(CONV(), n=nn.BatchNorm2d(4)), IMAGE, lambda m, x: sum(m.n(m.a(v)).relu() for v in (x, x.flip(3), x.roll(1, 2)))),
    ("kind-norm-loop", lambda: dict(a=nn.Conv1d(4, 4, 1), n=nn.BatchNorm1d(4)), LINE, lambda m, x: stepped(m, x)),
    ("kind-norm-halves", lambda: dict(CONV1(), n=nn.BatchNorm1d(4)), (4, 4, 9), lambda m, x: torch.cat([m.n(part) for part in m.a(x).chunk(2)])),
    ("kind-norm-first-without-gradient", NORM1, dict(x=LINE, z=LINE), lambda m, x, z: m.n(m.a(x)) - without(lambda: m.n(m.a(z)))),
    ("kind-norm-second-detached", NORM1, dict(x=LINE, z=LINE), lambda m, x, z: F.mse_loss(m.n(m.a(x)), m.n(m.a(z)).detach())),
    ("kind-norm-instance-tracked-twice", lambda: dict(CONV1(), n=nn.InstanceNorm1d(4, affine=True, track_running_stats=True)), dict(x=LINE, z=LINE), lambda m, x, z: m.n(m.a(x)) - m.n(m.a(z)).relu()),
    ("kind-norm-evaluated-line", lambda: dict(CONV1(), n=nn.BatchNorm1d(4), o=nn.BatchNorm1d(4)), LINE, lambda m, x: F.batch_norm(m.n(m.a(x)), m.o.running_mean, m.o.running_var, m.o.weight, m.o.bias, False)),
    ("kind-norm-evaluated-instance", lambda: dict(CONV1(), n=nn.InstanceNorm1d(4, affine=True, track_running_stats=True)), LINE, lambda m, x: F.instance_norm(m.a(x), m.n.running_mean, m.n.running_var, m.n.weight, m.n.bias, use_input_stats=False)),
    ("kind-norm-both-forms", NORM1, LINE, lambda m, x: m.n(m.a(x)) + F.batch_norm(m.a(x), m.n.running_mean.clone(), m.n.running_var.clone(), m.n.weight, m.n.bias, False)),
    ("kind-norm-checkpointed-layer", lambda: dict(l=nn.Sequential(nn.Linear(5, 5), nn.LayerNorm(5), nn.GELU())), ROWS, lambda m, x: checkpoint(m.l, checkpoint(m.l, x, use_reentrant=False), use_reentrant=False)),
    ("kind-norm-shared-scale", lambda: dict(LINEAR(), n=nn.BatchNorm1d(4), o=nn.BatchNorm1d(4)), TWO, lambda m, x, z: F.batch_norm(m.n(m.a(x)) - m.a(z), m.o.running_mean, m.o.running_var, m.n.weight, m.n.bias, True, 0.2)),
    ("kind-norm-synced-bias", lambda: dict(a=nn.Linear(5, 4, bias=False), n=nn.BatchNorm1d(4, eps=1e-3, momentum=0.03), b=nn.Linear(4, 4, bias=False), o=nn.BatchNorm1d(4, eps=1e-3, momentum=0.03)), ROWS, lambda m, x: m.o(m.b(F.silu(m.n(m.a(x)))))),
    ("kind-norm-weight-fixed", lambda: dict(LINEAR(), n=nn.BatchNorm1d(4)), ROWS, lambda m, x: F.batch_norm(m.a(x), m.n.running_mean, m.n.running_var, None, m.n.bias, True, 0.1)),
    ("kind-norm-group-shared", lambda: dict(CONV(), n=nn.GroupNorm(2, 4)), dict(x=IMAGE, z=IMAGE), lambda m, x, z: m.n(m.a(x)) - m.n(m.n(z))),
])  # fmt: skip


def stepped(m, x):
    for _ in range(3):
        x = x + 0.3 * F.relu(m.n(m.a(x)))
    return x


def without(function):
    with torch.no_grad():
        return function()


def switched(function):
    torch.set_grad_enabled(False)
    out = function()
    torch.set_grad_enabled(True)
    return out


@torch.no_grad()
def sharpened(p, t=0.5):
    q = p ** (1 / t)
    return q / q.sum(1, keepdim=True)


class Recycled(nn.Module):
    """A block that refines what it gave, of which only the last run has a gradient."""

    def __init__(self):
        super().__init__()
        self.a, self.n = nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        state = torch.zeros_like(x)
        for i in range(3):
            with torch.set_grad_enabled(i == 2):
                state = self.n(x + torch.tanh(self.a(state)))
        return state


class Refined(nn.Module):
    """Offsets that are added up and detached between the steps."""

    def __init__(self):
        super().__init__()
        self.l = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        at, outs = x, []
        for layer in self.l:
            at = at.detach() + torch.tanh(layer(at.detach()))
            outs.append(at)
        return sum(o.square().mean() for o in outs)


class Teacher(nn.Module):
    """A student and a copy of it, which gives centred targets."""

    def __init__(self, make, size=4):
        super().__init__()
        self.student = make()
        self.teacher = copy.deepcopy(self.student)
        self.register_buffer("centre", torch.zeros(1, size))

    def forward(self, x, z):
        with torch.no_grad():
            t = self.teacher(z)
        p = ((t - self.centre) / 0.3).softmax(-1)
        self.centre.mul_(0.9).add_(t.flatten(0, -2).mean(0, keepdim=True), alpha=0.1)
        return -(p * self.student(x).log_softmax(-1)).sum(-1).mean()


def residual_codes(m, x):
    """Two codebooks, each of what the one before left."""
    h = m.a(x)
    rest, total, loss = h, 0, 0
    for book in (m.e, m.f):
        q = book[torch.cdist(rest.detach(), book.detach()).argmin(1)]
        loss = loss + F.mse_loss(q, rest.detach()) + 0.25 * F.mse_loss(rest, q.detach())
        rest = rest - q.detach()
        total = total + q
    total = h + (total - h).detach()
    return loss + total.square().mean()


def straight(x, y):
    return x - (x - y).detach()


programs("kind-stop", [
    ("kind-stop-recycled", lambda: dict(n=Recycled()), TOKENS, lambda m, x: m.n(x)),
    ("kind-stop-refined", lambda: dict(n=Refined()), TOKENS, lambda m, x: m.n(x)),
    ("kind-stop-switched", NETS, ROWS, lambda m, x: m.a(x) * switched(lambda: m.b(x).sigmoid())),
    ("kind-stop-decorated-sharpened", NETS, TWO, lambda m, x, z: (m.a(x).softmax(1) - sharpened(m.a(z).softmax(1))).square().sum(1).mean()),
    ("kind-stop-largest", LINEAR, ROWS, lambda m, x: (lambda h: (h - h.max(1, keepdim=True).values.detach()).exp())(m.a(x))),
    ("kind-stop-scale", LINEAR, ROWS, lambda m, x: (lambda h: h / h.detach().abs().amax(1, keepdim=True))(m.a(x))),
    ("kind-stop-own-mean", LINEAR, ROWS, lambda m, x: (lambda h: (h - h.mean(0).detach()).pow(2))(m.a(x))),
    ("kind-stop-part", LINEAR, ROWS, lambda m, x: (lambda u, v: u * v.detach() + v)(*m.a(x).chunk(2, 1))),
    ("kind-stop-split-three", lambda: dict(a=nn.Linear(8, 24)), TOKENS, lambda m, x: (lambda q, k, v: (q @ k.detach().transpose(1, 2)).softmax(-1).detach() @ v + q)(*m.a(x).split(8, -1))),
    ("kind-stop-recurrent-states", lambda: dict(n=nn.LSTM(8, 8, batch_first=True)), TOKENS, lambda m, x: truncated(m, x)),
    ("kind-stop-index", lambda: dict(LINEAR(), e=weight(6, 4)), ROWS, lambda m, x: (lambda h: h * m.e[(h.detach() @ m.e.detach().T).argmax(1)])(m.a(x))),
    ("kind-stop-advantage", NETS, dict(x=ROWS, i=lambda: labels(4, 6), r=(6,)), lambda m, x, i, r: (lambda v, lp: (-(r - v.detach()) * lp.gather(1, i[:, None])[:, 0]).mean() + F.mse_loss(v, r))(m.b(x)[:, 0], m.a(x).log_softmax(1))),
    ("kind-stop-max-weights", LINEAR, ROWS, lambda m, x: (lambda l: (l * (l.detach() / l.detach().max())).mean())(m.a(x).square().mean(1))),
    ("kind-stop-focal-weight", LINEAR, CLASSES, lambda m, x, y: (lambda ce: ((1 - (-ce).exp()).detach() ** 2 * ce).mean())(F.cross_entropy(m.a(x), y, reduction="none"))),
    ("kind-stop-balanced", lambda: dict(CONV1(), b=nn.Conv1d(4, 4, 1)), LINE, lambda m, x: (lambda u, v: u / u.detach() + v / v.detach() + 0.1 * u * v)(m.a(x).square().mean(), m.b(x).square().mean())),
    ("kind-stop-both-of-loss", NETS, TWO, lambda m, x, z: (lambda p, q: F.kl_div(p, q.detach(), log_target=True, reduction="batchmean") + F.kl_div(q, p.detach(), log_target=True, reduction="batchmean"))(m.a(x).log_softmax(1), m.b(z).log_softmax(1))),
    ("kind-stop-teacher", lambda: dict(n=Teacher(lambda: nn.Linear(5, 4))), TWO, lambda m, x, z: m.n(x, z)),
    ("kind-stop-teacher-same", lambda: dict(n=Teacher(lambda: nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 4)))), ROWS, lambda m, x: m.n(x, x)),
    ("kind-stop-teacher-norm", lambda: dict(n=Teacher(lambda: nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)))), TWO, lambda m, x, z: m.n(x, z)),
    ("kind-stop-teacher-weight-norm", lambda: dict(n=Teacher(lambda: torch.nn.utils.parametrizations.weight_norm(nn.Linear(5, 4, bias=False)))), TWO, lambda m, x, z: m.n(x, z)),
    ("kind-stop-teacher-tokens", lambda: dict(n=Teacher(lambda: nn.Sequential(nn.Embedding(9, 8), nn.LayerNorm(8), nn.Linear(8, 4)))), dict(i=lambda: labels(9, 2, 6), j=lambda: labels(9, 2, 6)), lambda m, i, j: m.n(i, j)),
    ("kind-stop-teacher-line", lambda: dict(n=Teacher(lambda: nn.Sequential(nn.Conv1d(4, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(36, 4)))), dict(x=LINE, z=LINE), lambda m, x, z: m.n(x, z)),
    ("kind-straight-residual", lambda: dict(LINEAR(), e=weight(6, 4), f=weight(6, 4)), ROWS, residual_codes),
    ("kind-straight-reversed", LINEAR, ROWS, lambda m, x: (lambda h: straight(h, (h * 4).round() / 4))(m.a(x).tanh())),
    ("kind-straight-first", LINEAR, ROWS, lambda m, x: (lambda h: (h.sign() - h).detach() + h)(m.a(x).tanh())),
    ("kind-straight-bounded", LINEAR, ROWS, lambda m, x: (lambda h: h + (h.clamp(0, 1).mul(15).round().div(15) - h).detach())(m.a(x).clamp(0, 1))),
    ("kind-straight-where", LINEAR, ROWS, lambda m, x: (lambda h: torch.where(h > 0, 1.0, 0.0) + h - h.detach())(m.a(x).sigmoid() - 0.5)),
    ("kind-straight-mask-of-top", LINEAR, ROWS, lambda m, x: (lambda p: p * ((p >= p.topk(2, 1).values[:, 1:]).float() + p - p.detach()))(m.a(x).softmax(1))),
    ("kind-straight-loss-first", lambda: dict(LINEAR(), e=weight(6, 4)), ROWS, lambda m, x: (lambda h, q: F.mse_loss(q, h.detach()) + 0.25 * F.mse_loss(q.detach(), h) + straight(h, q).square().mean())(*coded(m, x))),
    ("kind-straight-line-cosine", lambda: dict(LINEAR(), e=weight(6, 4)), ROWS, lambda m, x: (lambda h, q: (1 - F.cosine_similarity(q, h.detach())).mean() + (h + (q - h).detach()).square().mean())(*coded(m, x))),
    ("kind-straight-learned-step", lambda: dict(LINEAR(), s=nn.Parameter(torch.tensor(0.2))), ROWS, lambda m, x: (lambda v: (v + (v.round() - v).detach()) * m.s)((m.a(x) / m.s).clamp(-8, 7))),
    ("kind-straight-scaled-gradient", lambda: dict(LINEAR(), s=nn.Parameter(torch.tensor(0.2))), ROWS, lambda m, x: m.a(x) * ((m.s - m.s * 0.1).detach() + m.s * 0.1)),
])  # fmt: skip


def coded(m, x):
    h = m.a(x)
    return h, F.embedding(torch.cdist(h.detach(), m.e.detach()).argmin(1), m.e)


def truncated(m, x):
    out, state = m.n(x[:, :3])
    more, _ = m.n(x[:, 3:], tuple(s.detach() for s in state))
    return torch.cat([out, more], 1)
