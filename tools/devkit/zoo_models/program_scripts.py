"""Training scripts as they are published: losses by hand, queues and averages in buffers, teachers and targets."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import CLASSES, CONV, IMAGE, LINEAR, PAIRS, ROWS, booleans, labels, programs, weight

TWO = dict(x=ROWS, z=ROWS)
NETS = lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4))  # noqa: E731
MASKED = dict(x=(2, 4, 5), y=lambda: torch.tensor([[1, 3, 0, -100], [2, -100, -100, -100]]))
GROUPS = dict(x=ROWS, y=lambda: torch.tensor([0, 1, 0, 1, 2, 2]))


def whole(m, *given):
    """A program that is one module."""
    return m.n(*given)


def smoothed_ignored(h, y):
    """As transformers' LabelSmoother writes it."""
    logs = -F.log_softmax(h, dim=-1)
    y = y.unsqueeze(-1)
    padding = y.eq(-100)
    y = torch.clamp(y, min=0)
    nll, smooth = logs.gather(dim=-1, index=y), logs.sum(dim=-1, keepdim=True, dtype=torch.float32)
    nll.masked_fill_(padding, 0.0)
    smooth.masked_fill_(padding, 0.0)
    active = padding.numel() - padding.long().sum()
    return 0.9 * nll.sum() / active + 0.1 * smooth.sum() / (active * logs.shape[-1])


def asymmetric(h, y):
    """Asymmetric loss of many labels, whose focus has no gradient."""
    p = torch.sigmoid(h)
    n = (1 - p + 0.05).clamp(max=1)
    loss = y * torch.log(p.clamp(min=1e-8)) + (1 - y) * torch.log(n.clamp(min=1e-8))
    torch.set_grad_enabled(False)
    pt = p * y + n * (1 - y)
    w = torch.pow(1 - pt, 1 * y + 4 * (1 - y))
    torch.set_grad_enabled(True)
    return -(loss * w).sum()


def relations(h, t):
    """Distances and angles of a student's rows as its teacher has them."""

    def pdist(e, eps=1e-12):
        square = e.pow(2).sum(dim=1)
        res = (square.unsqueeze(1) + square.unsqueeze(0) - 2 * (e @ e.t())).clamp(min=eps).sqrt().clone()
        res[range(len(e)), range(len(e))] = 0
        return res

    with torch.no_grad():
        td = pdist(t)
        td = td / (td.sum() / 30)
        sd = F.normalize(t.unsqueeze(0) - t.unsqueeze(1), p=2, dim=2)
        ta = torch.bmm(sd, sd.transpose(1, 2)).view(-1)
    d = pdist(h)
    e = F.normalize(h.unsqueeze(0) - h.unsqueeze(1), p=2, dim=2)
    return F.smooth_l1_loss(d / (d.sum() / 30), td) + 2 * F.smooth_l1_loss(torch.bmm(e, e.transpose(1, 2)).view(-1), ta)


def list_mle(h, y):
    order = y.argsort(dim=1, descending=True)
    s = h.gather(1, order)
    s = s - s.max(dim=1, keepdim=True).values
    sums = torch.cumsum(s.exp().flip(dims=[1]), dim=1).flip(dims=[1])
    return (torch.log(sums + 1e-10) - s).sum(dim=1).mean()


def soft_warp(x, y, gamma=0.5):
    """Soft dynamic time warping of [batch, n] and [batch, m]."""
    d = (x[:, :, None] - y[:, None]) ** 2
    n, m = d.shape[1:]
    r = [[torch.full((d.shape[0],), 1e4) for _ in range(m + 1)] for _ in range(n + 1)]
    r[0][0] = torch.zeros(d.shape[0])
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            near = torch.stack([r[i - 1][j - 1], r[i - 1][j], r[i][j - 1]], -1)
            r[i][j] = d[:, i - 1, j - 1] - gamma * torch.logsumexp(-near / gamma, -1)
    return r[n][m].mean()


def transducer(logs, y):
    """Sum over alignments of [batch, time, tokens + 1, classes], class 0 blank."""
    b, t, u, _ = logs.shape
    blank, emit = logs[..., 0], logs[:, :, :-1].gather(3, y[:, None, :, None].expand(b, t, u - 1, 1)).squeeze(3)
    alpha = torch.zeros(b, 1)
    row = [alpha[:, 0]]
    for j in range(1, u):
        row.append(row[-1] + emit[:, 0, j - 1])
    for i in range(1, t):
        new = [row[0] + blank[:, i - 1, 0]]
        for j in range(1, u):
            new.append(torch.logaddexp(row[j] + blank[:, i - 1, j], new[-1] + emit[:, i, j - 1]))
        row = new
    return -(row[-1] + blank[:, -1, -1]).mean()


def alignments(logs, y):
    """CTC's sum over alignments by hand, blank 0, labels of full length."""
    b, t, _ = logs.shape
    z = torch.zeros(b, 2 * y.shape[1] + 1, dtype=torch.long)
    z[:, 1::2] = y
    skip = torch.zeros_like(z, dtype=torch.bool)
    skip[:, 3::2] = y[:, 1:] != y[:, :-1]
    a = torch.full(z.shape, -1e30)
    p = logs.gather(2, z[:, None].expand(b, t, z.shape[1]))
    a[:, 0], a[:, 1] = p[:, 0, 0], p[:, 0, 1]
    for i in range(1, t):
        one = F.pad(a, (1, 0), value=-1e30)[:, :-1]
        two = F.pad(a, (2, 0), value=-1e30)[:, :-2]
        a = torch.logsumexp(torch.stack([a, one, torch.where(skip, two, torch.full_like(two, -1e30))]), 0) + p[:, i]
    return -torch.logaddexp(a[:, -1], a[:, -2]).mean()


def kernels(x, z):
    """Maximum mean discrepancy of five kernels, whose width is measured without a gradient."""
    t = torch.cat([x, z])
    d = ((t[None] - t[:, None]) ** 2).sum(2)
    width = d.data.sum() / (12**2 - 12) / 4
    k = sum(torch.exp(-d / (width * 2**i)) for i in range(5))
    return torch.mean(k[:6, :6] + k[6:, 6:] - k[:6, 6:] - k[6:, :6])


def tempered(h, y, t1=0.7, t2=1.3):
    """Bi-tempered logistic loss."""
    mu = h.max(-1, keepdim=True).values
    z0 = h - mu
    z = z0
    exp_t = lambda u, t: torch.relu(1.0 + (1.0 - t) * u).pow(1.0 / (1.0 - t))  # noqa: E731
    for _ in range(5):
        z = z0 * exp_t(z, t2).sum(-1, keepdim=True).pow(1.0 - t2)
    total = exp_t(z, t2).sum(-1, keepdim=True)
    p = exp_t(h - (-((1 / total).pow(1.0 - t2) - 1.0) / (1.0 - t2) + mu), t2)
    log_t = lambda u: (u.pow(1.0 - t1) - 1.0) / (1.0 - t1)  # noqa: E731
    q = F.one_hot(y, 4) * 0.9 + 0.025
    return (q * log_t(q + 1e-10) - q * log_t(p) - q.pow(2.0 - t1) / (2.0 - t1) + p.pow(2.0 - t1) / (2.0 - t1)).sum(-1).mean()


def robust(x, alpha, scale):
    """Barron's general robust loss, with its special cases chosen."""
    square = (x / scale) ** 2
    beta = torch.max(torch.tensor(1e-6), (alpha - 2).abs())
    safe = torch.where(alpha >= 0, torch.ones_like(alpha), -torch.ones_like(alpha)) * torch.max(torch.tensor(1e-6), alpha.abs())
    otherwise = (beta / safe) * (torch.pow(square / beta + 1, 0.5 * alpha) - 1)
    return torch.where(alpha == 0, torch.log1p(0.5 * square), torch.where(alpha == 2, 0.5 * square, otherwise))


def focal_distribution(p, t):
    """Distribution focal loss of [boxes, 4, 8]."""
    left = t.long()
    right = left + 1
    wl = right.float() - t
    ce = lambda at: F.cross_entropy(p.view(-1, 8), at.view(-1), reduction="none").view(at.shape)  # noqa: E731
    return (ce(left) * wl + ce(right) * (1 - wl)).mean(-1, keepdim=True).mean() + F.l1_loss(p.softmax(-1) @ torch.arange(8.0), t)


def prototypes(h, y):
    support, query = h[:4], h[4:]
    table = torch.zeros(2, 4).index_add_(0, y[:4], support) / torch.bincount(y[:4], minlength=2).clamp(min=1)[:, None]
    return F.cross_entropy(-torch.cdist(query, table) ** 2, y[4:])


def semi_hard(h, y):
    d = torch.cdist(h, h, compute_mode="donot_use_mm_for_euclid_dist")
    same = y[:, None] == y[None]
    positive = same & ~torch.eye(6, dtype=torch.bool)
    ap = d[:, :, None]
    an = d[:, None]
    valid = positive[:, :, None] & ~same[:, None]
    loss = F.relu(ap - an + 0.5) * valid
    return loss.sum() / ((loss > 1e-16).sum() + 1e-16)


def hungarian(m, x, rows, columns, y, boxes):
    """DETR's loss, with the assignment given."""
    h = m.a(x)
    logits, b = m.c(h), m.b(h).sigmoid()
    target = torch.full(logits.shape[:2], 3, dtype=torch.int64)
    target[rows, columns] = y
    at = b[rows, columns]
    return F.cross_entropy(logits.transpose(1, 2), target, m.empty_weight) + 5 * F.l1_loss(at, boxes, reduction="none").sum() / y.shape[0]


class Momentum(nn.Module):
    """Momentum contrast: a second encoder follows the first, and a queue holds its keys."""

    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(5, 4), nn.Linear(5, 4)
        for a, b in zip(self.q.parameters(), self.k.parameters()):
            b.data.copy_(a.data)
            b.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(4, 12), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    def forward(self, x, z):
        q = F.normalize(self.q(x), dim=1)
        with torch.no_grad():
            for a, b in zip(self.q.parameters(), self.k.parameters()):
                b.mul_(0.9).add_(a, alpha=0.1)
            k = F.normalize(self.k(z), dim=1)
        positive = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        negative = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        loss = F.cross_entropy(torch.cat([positive, negative], dim=1) / 0.2, torch.zeros(6, dtype=torch.long))
        with torch.no_grad():
            self.queue[:, :6] = k.T
        return loss


class Swapped(nn.Module):
    """Assignments to prototypes by three iterations of Sinkhorn and Knopp, without a gradient; prototypes of length one."""

    def __init__(self):
        super().__init__()
        self.a, self.prototypes = nn.Linear(5, 4), nn.Linear(4, 3, bias=False)

    def assign(self, s):
        q = torch.exp(s / 0.5).t()
        q /= torch.sum(q)
        for _ in range(3):
            q /= torch.sum(q, dim=1, keepdim=True)
            q /= 3
            q /= torch.sum(q, dim=0, keepdim=True)
            q /= 6
        return (q * 6).t()

    def forward(self, x, z):
        one, two = (self.prototypes(F.normalize(self.a(v), dim=1)) for v in (x, z))
        with torch.no_grad():
            q1, q2 = self.assign(one), self.assign(two)
        return -0.5 * (torch.mean(torch.sum(q1 * F.log_softmax(two / 0.1, dim=1), dim=1)) + torch.mean(torch.sum(q2 * F.log_softmax(one / 0.1, dim=1), dim=1)))


class Centred(nn.Module):
    """Self-distillation: the teacher's centre is an average of its batches."""

    def __init__(self):
        super().__init__()
        self.student, self.teacher = nn.Linear(5, 4), nn.Linear(5, 4)
        self.register_buffer("center", torch.zeros(1, 4))

    def forward(self, x, z):
        s = self.student(torch.cat([x, z])) / 0.1
        with torch.no_grad():
            t = self.teacher(torch.cat([x, z]))
        p = F.softmax((t - self.center) / 0.04, dim=-1).detach().chunk(2)
        loss = sum(torch.sum(-q * F.log_softmax(s.chunk(2)[1 - i], dim=-1), dim=-1).mean() for i, q in enumerate(p)) / 2
        self.center.copy_(self.center * 0.9 + torch.sum(t, dim=0, keepdim=True) / len(t) * 0.1)
        return loss


class Normalizer(nn.Module):
    """Focal loss over a running count of positives."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("loss_normalizer", torch.tensor(100.0))

    def forward(self, x, y):
        with torch.no_grad():
            self.loss_normalizer.mul_(0.9).add_(0.1 * y.sum().clamp(min=1))
        h = self.a(x)
        p = torch.sigmoid(h)
        ce = F.binary_cross_entropy_with_logits(h, y, reduction="none")
        return ((0.25 * y + 0.75 * (1 - y)) * (1 - (p * y + (1 - p) * (1 - y))) ** 2 * ce).sum() / self.loss_normalizer


class Ensembled(nn.Module):
    """Temporal ensembling: each sample's averaged prediction, by index."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("ema", torch.full((9, 4), 0.25))

    def forward(self, x, i):
        p = self.a(x).softmax(1)
        target = 0.6 * self.ema[i] + 0.4 * p.detach()
        self.ema[i] = target
        return F.mse_loss(p, target) - torch.log(p + 1e-6).mean()


class Elastic(nn.Module):
    """Elastic weight consolidation: importances and old weights in buffers."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 4))
        for name, p in list(self.net.named_parameters()):
            self.register_buffer(name.replace(".", "__") + "_mean", p.detach() + 0.1 * torch.randn(p.shape))
            self.register_buffer(name.replace(".", "__") + "_fisher", torch.rand(p.shape))

    def forward(self, x, y):
        loss = F.cross_entropy(self.net(x), y)
        for name, p in self.net.named_parameters():
            n = name.replace(".", "__")
            loss = loss + 0.5 * (getattr(self, n + "_fisher") * (p - getattr(self, n + "_mean")) ** 2).sum()
        return loss


class Chain(nn.Module):
    """A conditional random field with its own start and end, as pytorch-crf writes it (time first)."""

    def __init__(self):
        super().__init__()
        self.start_transitions, self.end_transitions, self.transitions = nn.Parameter(torch.rand(3) * 0.2 - 0.1), nn.Parameter(torch.rand(3) * 0.2 - 0.1), nn.Parameter(torch.rand(3, 3) * 0.2 - 0.1)
        self.a = nn.Linear(5, 3)

    def forward(self, x, y, mask):
        e, tags, k = self.a(x).transpose(0, 1), y.transpose(0, 1), mask.transpose(0, 1)
        n = torch.arange(2)
        score = self.start_transitions[tags[0]] + e[0, n, tags[0]]
        for i in range(1, 4):
            score = score + self.transitions[tags[i - 1], tags[i]] * k[i] + e[i, n, tags[i]] * k[i]
        last = tags[k.long().sum(0) - 1, n]
        score = score + self.end_transitions[last]
        total = self.start_transitions + e[0]
        for i in range(1, 4):
            nxt = torch.logsumexp(total.unsqueeze(2) + self.transitions + e[i].unsqueeze(1), dim=1)
            total = torch.where(k[i].unsqueeze(1).bool(), nxt, total)
        return -(score - torch.logsumexp(total + self.end_transitions, dim=1)).sum() / k.sum()


class Copied(nn.Module):
    """A pointer-generator's mixture with coverage."""

    def __init__(self):
        super().__init__()
        self.v, self.p, self.s = nn.Linear(8, 9), nn.Linear(8, 1), nn.Linear(8, 5)

    def forward(self, h, source, y):
        vocabulary, switch, attention = F.softmax(self.v(h), -1), torch.sigmoid(self.p(h)), F.softmax(self.s(h), -1)
        extended = torch.cat([switch * vocabulary, torch.zeros(2, 3, 2)], -1)
        final = extended.scatter_add(2, source[:, None].expand(-1, 3, -1), (1 - switch) * attention)
        gold = torch.gather(final, 2, y.unsqueeze(-1)).squeeze(-1)
        coverage = torch.cumsum(attention, 1) - attention
        return (-torch.log(gold + 1e-12) + torch.min(attention, coverage).sum(-1)).mean()


class Harmonized(nn.Module):
    """Gradient harmonizing: bins of gradient lengths, counted over batches."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.register_buffer("edges", torch.arange(6).float() / 5)
        self.register_buffer("acc_sum", torch.zeros(5))

    def forward(self, x, y):
        h = self.a(x)
        g = torch.abs(h.sigmoid().detach() - y)
        w = torch.zeros_like(h)
        for i in range(5):
            inside = (g >= self.edges[i]) & (g < self.edges[i + 1])
            n = inside.sum()
            self.acc_sum[i] = 0.75 * self.acc_sum[i] + 0.25 * n
            w = torch.where(inside, 24 / self.acc_sum[i].clamp(min=1e-3), w)
        return F.binary_cross_entropy_with_logits(h, y, w, reduction="sum") / 24


class Hinted(nn.Module):
    """A student with a teacher in evaluation form, hints by attention maps and a regressor."""

    def __init__(self):
        super().__init__()
        self.student, self.regressor = nn.Conv2d(4, 3, 3, padding=1), nn.Conv2d(3, 4, 1)
        self.teacher = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()).eval()
        for p in self.teacher.parameters():
            p.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, x):
        s = self.student(x)
        with torch.no_grad():
            t = self.teacher(x)
        at = lambda h: F.normalize(h.pow(2).mean(1).view(h.size(0), -1))  # noqa: E731
        return F.mse_loss(self.regressor(s), t) + 10 * (at(s) - at(t)).pow(2).mean()


programs("script", [
    ("script-smoothing-ignored", LINEAR, MASKED, lambda m, x, y: smoothed_ignored(m.a(x), y)),
    ("script-smoothing-shifted", LINEAR, MASKED, lambda m, x, y: smoothed_ignored(m.a(x)[..., :-1, :], y[..., 1:])),
    ("script-focal-tversky", CONV, dict(x=IMAGE, y=lambda: labels(2, 2, 4, 6, 7).float()), lambda m, x, y: (lambda p: (1 - ((p * y).sum((2, 3)) + 1) / ((p * y).sum((2, 3)) + 0.3 * ((1 - y) * p).sum((2, 3)) + 0.7 * (y * (1 - p)).sum((2, 3)) + 1)).pow(0.75).mean())(m.a(x).sigmoid())),
    ("script-asymmetric", LINEAR, dict(x=ROWS, y=lambda: labels(2, 6, 4).float()), lambda m, x, y: asymmetric(m.a(x), y)),
    ("script-momentum-contrast", lambda: dict(n=Momentum()), TWO, whole),
    ("script-swapped-prototypes", lambda: dict(n=Swapped()), TWO, whole),
    ("script-centred-teacher", lambda: dict(n=Centred()), TWO, whole),
    ("script-running-normalizer", lambda: dict(n=Normalizer()), dict(x=ROWS, y=lambda: labels(2, 6, 4).float()), whole),
    ("script-temporal-ensemble", lambda: dict(n=Ensembled()), dict(x=ROWS, i=lambda: torch.tensor([0, 8, 3, 2, 5, 7])), whole),
    ("script-elastic", lambda: dict(n=Elastic()), CLASSES, whole),
    ("script-chain-field", lambda: dict(n=Chain()), dict(x=(2, 4, 5), y=lambda: labels(3, 2, 4), mask=lambda: torch.tensor([[1.0, 1, 1, 1], [1, 1, 0, 0]])), whole),
    ("script-pointer-generator", lambda: dict(n=Copied()), dict(h=(2, 3, 8), source=lambda: torch.tensor([[1, 9, 4, 4, 10], [0, 2, 9, 7, 9]]), y=lambda: labels(9, 2, 3)), whole),
    ("script-harmonized", lambda: dict(n=Harmonized()), dict(x=ROWS, y=lambda: labels(2, 6, 4).float()), whole),
    ("script-hinted", lambda: dict(n=Hinted()), dict(x=IMAGE), whole),
    ("script-relations", NETS, ROWS, lambda m, x: relations(m.a(x), m.b(x))),
    ("script-list-mle", lambda: dict(a=nn.Linear(5, 1)), dict(x=(3, 4, 5), y=(3, 4)), lambda m, x, y: list_mle(m.a(x).squeeze(-1), y)),
    ("script-approximate-gain", lambda: dict(a=nn.Linear(5, 1)), dict(x=(3, 4, 5), y=lambda: labels(4, 3, 4).float()), lambda m, x, y: (lambda s: -((2**y - 1) / torch.log2(0.5 + torch.sigmoid((s[:, None] - s[:, :, None]) / 0.1).sum(-1) + 1.0)).sum(1).mean())(m.a(x).squeeze(-1))),
    ("script-soft-sort", lambda: dict(a=nn.Linear(5, 1)), dict(x=(3, 4, 5), y=(3, 4)), lambda m, x, y: (lambda s: F.mse_loss((F.softmax(-(s.sort(descending=True, dim=1)[0].unsqueeze(2) - s.unsqueeze(1)).abs() / 0.5, -1) @ y[..., None]).squeeze(-1), y.sort(dim=1, descending=True).values))(m.a(x).squeeze(-1))),
    ("script-soft-warp", lambda: dict(a=nn.Linear(5, 4)), dict(x=(2, 5), y=(2, 3)), lambda m, x, y: soft_warp(m.a(x), y)),
    ("script-transducer", lambda: dict(a=nn.Linear(5, 6), b=nn.Embedding(6, 6)), dict(x=(2, 4, 5), y=lambda: labels(5, 2, 3) + 1), lambda m, x, y: transducer((m.a(x)[:, :, None] + m.b(F.pad(y, (1, 0)))[:, None]).log_softmax(-1), y)),
    ("script-alignments", lambda: dict(a=nn.Linear(5, 4)), dict(x=(2, 6, 5), y=lambda: torch.tensor([[1, 1], [2, 3]])), lambda m, x, y: alignments(m.a(x).log_softmax(-1), y)),
    ("script-chamfer", lambda: dict(a=nn.Linear(5, 3)), dict(x=(2, 4, 5), t=(2, 6, 3)), lambda m, x, t: (lambda d: d.min(1)[0].mean() + d.min(2)[0].mean())(((m.a(x)[:, :, None] - t[:, None]) ** 2).sum(-1))),
    ("script-ordered-distance", LINEAR, PAIRS, lambda m, x, t: (m.a(x).sort(0)[0] - t.sort(0)[0]).abs().pow(2).mean(0).pow(0.5).mean()),
    ("script-discrepancy-kernels", LINEAR, TWO, lambda m, x, z: kernels(m.a(x), m.a(z))),
    ("script-covariances", LINEAR, TWO, lambda m, x, z: (lambda cov: ((cov(m.a(x)) - cov(m.a(z))) ** 2).sum() / (4 * 4 * 4))(lambda h: ((h.t() @ h) - (torch.ones(1, 6) @ h).t() @ (torch.ones(1, 6) @ h) / 6) / 5)),
    ("script-independence", NETS, ROWS, lambda m, x: (lambda k, o: torch.trace(k(m.a(x)) @ o @ k(m.b(x)) @ o) / 25)(lambda h: torch.exp(-((h[:, None] - h[None]) ** 2).sum(-1) / 2), torch.eye(6) - torch.ones(6, 6) / 6)),
    ("script-beta-nll", lambda: dict(u=nn.Linear(5, 4), s=nn.Linear(5, 4)), PAIRS, lambda m, x, t: (lambda v: ((0.5 * ((t - m.u(x)) ** 2 / v + v.log())) * v.detach() ** 0.5).sum(-1).mean())(F.softplus(m.s(x)) + 1e-6)),
    ("script-student-t", lambda: dict(u=nn.Linear(5, 4), s=nn.Parameter(torch.zeros(4)), v=nn.Parameter(torch.tensor(1.0))), PAIRS, lambda m, x, t: (lambda v: -(torch.lgamma((v + 1) / 2) - torch.lgamma(v / 2) - 0.5 * torch.log(math.pi * v) - m.s - (v + 1) / 2 * torch.log1p(((t - m.u(x)) / m.s.exp()) ** 2 / v)).mean())(F.softplus(m.v) + 2)),
    ("script-full-covariance", lambda: dict(u=nn.Linear(5, 2), l=nn.Linear(5, 3)), dict(x=ROWS, t=(6, 2)), lambda m, x, t: (lambda h, u: (lambda l: -torch.distributions.MultivariateNormal(u, scale_tril=l, validate_args=False).log_prob(t).mean())(torch.stack([torch.stack([h[:, 0].exp(), torch.zeros(6)], -1), torch.stack([h[:, 1], h[:, 2].exp()], -1)], -2)))(m.l(x), m.u(x))),
    ("script-mixture-of-family", lambda: dict(p=nn.Linear(5, 3), u=nn.Linear(5, 3), s=nn.Linear(5, 3)), dict(x=ROWS, t=(6,)), lambda m, x, t: -torch.distributions.MixtureSameFamily(torch.distributions.Categorical(logits=m.p(x), validate_args=False), torch.distributions.Normal(m.u(x), F.elu(m.s(x)) + 1 + 1e-4, validate_args=False), validate_args=False).log_prob(t).mean()),
    ("script-quantiles-ordered", lambda: dict(a=nn.Linear(5, 3)), dict(x=ROWS, t=(6, 1)), lambda m, x, t: (lambda q: (lambda e: torch.where(e >= 0, torch.tensor([0.1, 0.5, 0.9]) * e, (torch.tensor([0.1, 0.5, 0.9]) - 1) * e).sum(1).mean())(t - q))(torch.cat([m.a(x)[:, :1], m.a(x)[:, :1] + F.softplus(m.a(x)[:, 1:]).cumsum(1)], 1))),
    ("script-tempered", LINEAR, CLASSES, lambda m, x, y: tempered(m.a(x), y)),
    ("script-robust-learned", lambda: dict(LINEAR(), latent_alpha=nn.Parameter(torch.zeros(1, 4)), latent_scale=nn.Parameter(torch.zeros(1, 4))), PAIRS, lambda m, x, t: (lambda alpha, scale: (robust(m.a(x) - t, alpha, scale) + torch.log(scale)).mean())(torch.sigmoid(m.latent_alpha) * (1.999 - 0.001) + 0.001, (1 - 1e-5) * F.softplus(m.latent_scale + math.log(math.expm1(1.0))) + 1e-5)),
    ("script-distribution-focal", lambda: dict(a=nn.Linear(5, 32)), dict(x=ROWS, t=lambda: torch.rand(6, 4) * 6.9), lambda m, x, t: focal_distribution(m.a(x).view(6, 4, 8), t)),
    ("script-varifocal", LINEAR, dict(x=ROWS, q=lambda: torch.rand(6, 4) * booleans(6, 4)), lambda m, x, q: (F.binary_cross_entropy_with_logits(m.a(x), q, reduction="none") * (q * (q > 0).float() + 0.75 * (m.a(x).sigmoid() - q).abs().pow(2.0) * (q <= 0).float())).sum() / q.sum()),
    ("script-poly", LINEAR, CLASSES, lambda m, x, y: (F.cross_entropy(m.a(x), y, reduction="none") + 2.0 * (1 - torch.sum(F.one_hot(y, 4) * F.softmax(m.a(x), 1), -1))).mean()),
    ("script-prototypes", LINEAR, dict(x=ROWS, y=lambda: torch.tensor([0, 1, 1, 0, 0, 1])), lambda m, x, y: prototypes(m.a(x), y)),
    ("script-semi-hard", LINEAR, GROUPS, lambda m, x, y: semi_hard(m.a(x), y)),
    ("script-multi-similarity", LINEAR, GROUPS, lambda m, x, y: (lambda s, same: (torch.log(1 + (torch.exp(-2 * (s - 0.5)) * (same & ~torch.eye(6).bool())).sum(1)) / 2 + torch.log(1 + (torch.exp(40 * (s - 0.5)) * ~same).sum(1)) / 40).mean())(F.normalize(m.a(x)) @ F.normalize(m.a(x)).T, y[:, None] == y[None])),
    ("script-circle", LINEAR, GROUPS, lambda m, x, y: (lambda s, same: F.softplus(torch.logsumexp(torch.where(~same, 8 * F.relu(s.detach() + 0.25) * (s - 0.25), -1e9).flatten(), 0) + torch.logsumexp(torch.where(same & ~torch.eye(6).bool(), -8 * F.relu(1.25 - s.detach()) * (s - 0.75), -1e9).flatten(), 0)))(F.normalize(m.a(x)) @ F.normalize(m.a(x)).T, y[:, None] == y[None])),
    ("script-sub-centres", lambda: dict(a=nn.Linear(5, 4), w=weight(12, 4)), CLASSES, lambda m, x, y: F.cross_entropy(16 * (F.linear(F.normalize(m.a(x)), F.normalize(m.w)).view(-1, 4, 3).max(dim=2)[0] - 0.2 * F.one_hot(y, 4)), y)),
    ("script-ada-face", lambda: dict(a=nn.Linear(5, 4), w=weight(4, 4), batch_mean=torch.ones(1) * 2, batch_std=torch.ones(1)), CLASSES, lambda m, x, y: ada_face(m, m.a(x), y)),
    ("script-hungarian", lambda: dict(a=nn.Linear(5, 8), b=nn.Linear(8, 4), c=nn.Linear(8, 4), empty_weight=torch.tensor([1, 1, 1, 0.1])), dict(x=(2, 6, 5), rows=lambda: torch.tensor([0, 0, 1]), columns=lambda: torch.tensor([4, 1, 5]), y=lambda: torch.tensor([2, 0, 1]), boxes=lambda: torch.rand(3, 4)), hungarian),
    ("script-hinge-game", lambda: dict(g=nn.Linear(5, 4), d=nn.Sequential(nn.Linear(4, 6), nn.LeakyReLU(0.2), nn.Linear(6, 1))), dict(x=ROWS, real=(6, 4)), lambda m, x, real: F.relu(1.0 - m.d(real)).mean() + F.relu(1.0 + m.d(m.g(x).detach())).mean()),
    ("script-relative-game", lambda: dict(d=nn.Linear(5, 1)), TWO, lambda m, x, z: (F.binary_cross_entropy_with_logits(m.d(x) - m.d(z).mean(0, keepdim=True), torch.ones(6, 1)) + F.binary_cross_entropy_with_logits(m.d(z) - m.d(x).mean(0, keepdim=True), torch.zeros(6, 1))) / 2),
    ("script-critic-clipped", lambda: dict(d=nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 1))), TWO, lambda m, x, z: critic(m, x, z)),
    ("script-free-bits", lambda: dict(u=nn.Linear(5, 4), s=nn.Linear(5, 4), o=nn.Linear(4, 5)), dict(x=ROWS, e=(6, 4)), lambda m, x, e: F.mse_loss(m.o(m.u(x) + e * (0.5 * m.s(x)).exp()), x) + (-0.5 * (1 + m.s(x) - m.u(x) ** 2 - m.s(x).exp())).mean(0).clamp(min=0.05).sum()),
    ("script-importance-weighted", lambda: dict(u=nn.Linear(5, 4), s=nn.Linear(5, 4), o=nn.Linear(4, 5)), dict(x=ROWS, e=(3, 6, 4)), lambda m, x, e: (lambda u, s: (lambda z: -(torch.logsumexp(-0.5 * ((m.o(z) - x) ** 2).sum(-1) + (-0.5 * z**2 + s + 0.5 * e**2).sum(-1), 0) - math.log(3)).mean())(u + e * s.exp()))(m.u(x), m.s(x))),
    ("script-noise-estimation", lambda: dict(i=nn.Embedding(9, 4), o=nn.Embedding(9, 4, sparse=False), noise=torch.log(torch.arange(1, 10) / 45.0)), dict(c=lambda: labels(9, 6), y=lambda: labels(9, 6), k=lambda: labels(9, 6, 3)), lambda m, c, y, k: -(F.logsigmoid((m.i(c) * m.o(y)).sum(1) - m.noise[y]) + F.logsigmoid(-(torch.bmm(m.o(k), m.i(c)[:, :, None]).squeeze(2) - m.noise[k])).sum(1)).mean()),
    ("script-gradients-balanced", lambda: dict(a=nn.Linear(5, 4), previous=torch.ones(2), before=torch.ones(2)), CLASSES, lambda m, x, y: averaged_rates(m, x, y)),
    ("script-smooth-ap", LINEAR, GROUPS, lambda m, x, y: (lambda s, same: 1 - (lambda r: ((1 + (r * same[:, None]).sum(-1)) / (1 + r.sum(-1)) * same).sum(1).div(same.sum(1)).mean())(torch.sigmoid((s[:, None] - s[:, :, None]) / 0.1) * (1 - torch.eye(6))))(F.normalize(m.a(x)) @ F.normalize(m.a(x)).T, (y[:, None] == y[None]).float())),
])  # fmt: skip


def ada_face(m, h, y):
    """The margin follows how long a row is next to a running mean; no gradient goes there."""
    norms = torch.norm(h, 2, -1, keepdim=True)
    h = h / norms
    cosine = torch.mm(h, F.normalize(m.w, dim=1).t()).clamp(-1 + 1e-3, 1 - 1e-3)
    safe = torch.clip(norms, min=0.001, max=100).clone().detach()
    with torch.no_grad():
        m.batch_mean.copy_(safe.mean().detach() * 0.1 + 0.9 * m.batch_mean)
        m.batch_std.copy_(safe.std().detach() * 0.1 + 0.9 * m.batch_std)
    scaler = torch.clip((safe - m.batch_mean) / (m.batch_std + 1e-3) * 0.333, -1, 1)
    hot = F.one_hot(y, 4).float()
    theta = torch.clip(cosine.acos() + hot * 0.4 * scaler * -1, min=1e-3, max=math.pi - 1e-3)
    return F.cross_entropy((theta.cos() - hot * (0.4 + 0.4 * scaler)) * 16, y)


def critic(m, x, z):
    """A critic whose weights are clipped before they are used."""
    with torch.no_grad():
        for p in m.d.parameters():
            p.clamp_(-0.3, 0.3)
    return m.d(z).mean() - m.d(x).mean()


def averaged_rates(m, x, y):
    """Dynamic weight average: weights of two tasks by how their losses fell."""
    losses = torch.stack([F.cross_entropy(m.a(x), y), m.a(x).square().mean()])
    w = 2 * F.softmax(m.previous / m.before / 2.0, 0)
    m.before.copy_(m.previous)
    m.previous.copy_(losses.detach())
    return (w * losses).sum()
