"""Programs that end in one of PyTorch's losses, or in one that is written by hand."""

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import CLASSES, LINEAR, PAIRS, booleans, labels, programs, weight

programs("loss", [
    ("ctc", lambda: dict(a=nn.Linear(5, 4)), dict(x=(7, 2, 5), y=lambda: labels(3, 2, 3) + 1), lambda m, x, y: F.ctc_loss(m.a(x).log_softmax(-1), y, (7, 7), (3, 2))),
    ("gaussian-nll", lambda: dict(a=nn.Linear(5, 4), v=nn.Linear(5, 4)), PAIRS, lambda m, x, t: F.gaussian_nll_loss(m.a(x), t, m.v(x).exp(), full=True)),
    ("gaussian-nll-eps", lambda: dict(a=nn.Linear(5, 4), v=nn.Linear(5, 4)), PAIRS, lambda m, x, t: F.gaussian_nll_loss(m.a(x), t, F.relu(m.v(x)), eps=0.2, reduction="sum")),
    ("poisson-nll", LINEAR, PAIRS, lambda m, x, t: F.poisson_nll_loss(m.a(x), t.abs() * 3, full=True)),
    ("poisson-nll-rates", LINEAR, PAIRS, lambda m, x, t: F.poisson_nll_loss(m.a(x).exp(), t.abs(), log_input=False, reduction="sum")),
    ("triplet", LINEAR, dict(x=(6, 5), p=(6, 5), n=(6, 5)), lambda m, x, p, n: F.triplet_margin_loss(m.a(x), m.a(p), m.a(n), margin=0.7, p=3, swap=True)),
    ("triplet-one", LINEAR, dict(x=(6, 5), p=(6, 5), n=(6, 5)), lambda m, x, p, n: nn.TripletMarginLoss(p=1, reduction="none")(m.a(x), m.a(p), m.a(n)).square().sum()),
    ("triplet-cosine", LINEAR, dict(x=(6, 5), p=(6, 5), n=(6, 5)), lambda m, x, p, n: nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: 1 - F.cosine_similarity(a, b), margin=0.5)(m.a(x), m.a(p), m.a(n))),
    ("multi-margin", LINEAR, CLASSES, lambda m, x, y: F.multi_margin_loss(m.a(x), y, p=2, margin=0.6, weight=torch.tensor([1.0, 2.0, 0.5, 3.0]))),
    ("multilabel-margin", LINEAR, dict(x=(3, 5), y=lambda: torch.tensor([[1, 0, -1, 2], [3, -1, 0, 0], [2, 1, 0, 3]])), lambda m, x, y: F.multilabel_margin_loss(m.a(x), y)),
    ("multilabel-soft-margin", lambda: dict(a=nn.Linear(5, 4), loss=nn.MultiLabelSoftMarginLoss(weight=torch.tensor([1.0, 2.0, 0.5, 3.0]))), dict(x=(6, 5), y=lambda: labels(2, 6, 4).float()), lambda m, x, y: m.loss(m.a(x), y)),
    ("cosine-embedding", LINEAR, dict(x=(6, 5), z=(6, 5), y=lambda: labels(2, 6) * 2 - 1), lambda m, x, z, y: F.cosine_embedding_loss(m.a(x), m.a(z), y, margin=0.2)),
    ("cosine-embedding-sum", LINEAR, dict(x=(6, 5), z=(6, 5), y=lambda: labels(2, 6) * 2 - 1), lambda m, x, z, y: nn.CosineEmbeddingLoss(reduction="sum")(m.a(x), m.a(z), y)),
    ("hinge-embedding", LINEAR, dict(x=(6, 5), y=lambda: labels(2, 6, 4) * 2 - 1), lambda m, x, y: F.hinge_embedding_loss(m.a(x), y, margin=0.8)),
    ("soft-margin", LINEAR, dict(x=(6, 5), y=lambda: labels(2, 6, 4).float() * 2 - 1), lambda m, x, y: F.soft_margin_loss(m.a(x), y, reduction="sum")),
    ("margin-ranking", LINEAR, dict(x=(6, 5), z=(6, 5), y=lambda: labels(2, 6, 1).float() * 2 - 1), lambda m, x, z, y: F.margin_ranking_loss(m.a(x), m.a(z), y, margin=0.3)),
    ("kl-log-target", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4)), (6, 5), lambda m, x: F.kl_div(m.a(x).log_softmax(-1), m.b(x).log_softmax(-1), log_target=True, reduction="batchmean")),
    ("kl-target", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4)), (6, 5), lambda m, x: F.kl_div(m.a(x).log_softmax(-1), m.b(x).softmax(-1), reduction="batchmean")),
    ("kl-zeros", LINEAR, dict(x=(6, 5), y=lambda: labels(4, 6)), lambda m, x, y: F.kl_div(m.a(x).log_softmax(-1), F.one_hot(y, 4).float(), reduction="sum")),
    ("huber", LINEAR, PAIRS, lambda m, x, t: F.huber_loss(m.a(x), t, delta=0.5, reduction="sum")),
    ("smooth-l1", LINEAR, PAIRS, lambda m, x, t: F.smooth_l1_loss(m.a(x), t, beta=0.3)),
    ("smooth-l1-zero", LINEAR, PAIRS, lambda m, x, t: F.smooth_l1_loss(m.a(x), t, beta=0.0)),
    ("bce-ends", lambda: dict(a=nn.Linear(5, 4)), dict(x=(6, 5), y=lambda: labels(2, 6, 4).float()), lambda m, x, y: F.binary_cross_entropy(F.hardsigmoid(4 * m.a(x)), y)),
    ("bce-weighted", LINEAR, dict(x=(6, 5), y=lambda: torch.rand(6, 4), w=lambda: torch.rand(6, 4)), lambda m, x, y, w: F.binary_cross_entropy(m.a(x).sigmoid(), y, weight=w, reduction="sum")),
    ("bce-logits", lambda: dict(a=nn.Linear(5, 4), loss=nn.BCEWithLogitsLoss(weight=torch.tensor([1.0, 2.0, 0.5, 3.0]), pos_weight=torch.tensor([2.0, 1.0, 3.0, 0.25]))), dict(x=(6, 5), y=lambda: labels(2, 6, 4).float()), lambda m, x, y: m.loss(m.a(x) * 30, y)),
    ("cross-weights-ignored", lambda: dict(a=nn.Linear(5, 4), loss=nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5, 3.0]), ignore_index=2, label_smoothing=0.1)), CLASSES, lambda m, x, y: m.loss(m.a(x), y)),
    ("cross-none", LINEAR, CLASSES, lambda m, x, y: F.cross_entropy(m.a(x), y, reduction="none", ignore_index=1).pow(2).mean()),
    ("cross-none-weights", LINEAR, CLASSES, lambda m, x, y: (F.cross_entropy(m.a(x), y, reduction="none", label_smoothing=0.2) * (y != 0)).sum() / (y != 0).sum()),
    ("cross-image", lambda: dict(a=nn.Conv2d(2, 4, 3)), dict(x=(2, 2, 6, 6), y=lambda: torch.where(booleans(2, 4, 4), labels(4, 2, 4, 4), 255)), lambda m, x, y: F.cross_entropy(m.a(x), y, ignore_index=255, weight=torch.tensor([1.0, 2.0, 0.5, 3.0]))),
    ("cross-sum", LINEAR, CLASSES, lambda m, x, y: F.cross_entropy(m.a(x), y, reduction="sum", weight=torch.tensor([1.0, 2.0, 0.5, 3.0]))),
    ("nll-weights", LINEAR, CLASSES, lambda m, x, y: F.nll_loss(F.log_softmax(m.a(x), 1), y, weight=torch.tensor([1.0, 2.0, 0.5, 3.0]), ignore_index=0)),
    ("nll-of-logs", LINEAR, CLASSES, lambda m, x, y: F.nll_loss((m.a(x).softmax(1) + 1e-6).log(), y)),
    ("focal", LINEAR, CLASSES, lambda m, x, y: ((1 - torch.exp(-F.cross_entropy(m.a(x), y, reduction="none"))) ** 2 * F.cross_entropy(m.a(x), y, reduction="none")).mean()),
    ("dice", LINEAR, CLASSES, lambda m, x, y: 1 - ((2 * (m.a(x).softmax(1) * F.one_hot(y, 4)).sum(0) + 1) / (m.a(x).softmax(1).sum(0) + F.one_hot(y, 4).sum(0) + 1)).mean()),
    ("info-nce", LINEAR, dict(x=(6, 5), z=(6, 5)), lambda m, x, z: F.cross_entropy(F.normalize(m.a(x), dim=1) @ F.normalize(m.a(z), dim=1).T / 0.07, torch.arange(6))),
    ("nt-xent", LINEAR, (6, 5), lambda m, x: F.cross_entropy((lambda n: (n @ n.T / 0.5).masked_fill(torch.eye(6, dtype=torch.bool), float("-inf")))(F.normalize(m.a(x), dim=1)), torch.arange(6).roll(3))),
    ("arc-face", lambda: dict(a=nn.Linear(5, 4), w=weight(4, 4)), CLASSES, lambda m, x, y: arc_face(m, x, y)),
    ("barlow", LINEAR, dict(x=(6, 5), z=(6, 5)), lambda m, x, z: barlow(m.a(x), m.a(z))),
    ("vicreg", LINEAR, dict(x=(6, 5), z=(6, 5)), lambda m, x, z: vicreg(m.a(x), m.a(z))),
    ("pinball", LINEAR, PAIRS, lambda m, x, t: (lambda d: torch.max(0.9 * d, -0.1 * d).mean())(t - m.a(x))),
    ("lovasz", lambda: dict(a=nn.Linear(5, 1)), dict(x=(9, 5), y=lambda: labels(2, 9)), lambda m, x, y: lovasz(m.a(x)[:, 0], y)),
    ("crf", lambda: dict(a=nn.Linear(5, 4), t=weight(4, 4), s=weight(4)), dict(x=(3, 5, 5), y=lambda: labels(4, 3, 5)), lambda m, x, y: crf(m, x, y)),
    ("mixture", lambda: dict(p=nn.Linear(5, 3), u=nn.Linear(5, 3), s=nn.Linear(5, 3)), dict(x=(6, 5), t=(6, 1)), lambda m, x, t: -torch.logsumexp(m.p(x).log_softmax(-1) + torch.distributions.Normal(m.u(x), F.softplus(m.s(x)) + 1e-3).log_prob(t), -1).mean()),
    ("policy-clip", LINEAR, dict(x=(6, 5), y=lambda: labels(4, 6), old=(6,), adv=(6,)), lambda m, x, y, old, adv: policy(m, x, y, old, adv)),
    ("categorical", LINEAR, CLASSES, lambda m, x, y: (lambda d: -d.log_prob(y).mean() - 0.01 * d.entropy().mean())(torch.distributions.Categorical(logits=m.a(x)))),
    ("projection", lambda: dict(a=nn.Linear(5, 4)), dict(x=(6, 5), r=(6,)), lambda m, x, r: projected(m, x, r)),
    ("td-target", lambda: dict(q=nn.Linear(5, 4)), dict(x=(6, 5), z=(6, 5), y=lambda: labels(4, 6), r=(6,)), lambda m, x, z, y, r: F.smooth_l1_loss(m.q(x).gather(1, y[:, None])[:, 0], r + 0.9 * m.q(z).detach().max(1).values)),
    ("sinkhorn", LINEAR, dict(x=(6, 5), z=(4, 5)), lambda m, x, z: sinkhorn(torch.cdist(m.a(x), m.a(z)))),
    ("giou", lambda: dict(a=nn.Linear(5, 4)), dict(x=(6, 5), t=lambda: torch.rand(6, 4)), lambda m, x, t: giou(m.a(x).sigmoid(), t)),
    ("center", lambda: dict(a=nn.Linear(5, 4), c=weight(3, 4)), dict(x=(6, 5), y=lambda: labels(3, 6)), lambda m, x, y: (m.a(x) - m.c[y]).pow(2).sum(1).clamp(1e-12, 1e12).mean()),
    ("dpo", LINEAR, dict(x=(6, 5), z=(6, 5)), lambda m, x, z: -F.logsigmoid(0.1 * (m.a(x).log_softmax(-1)[:, 0] - m.a(z).log_softmax(-1)[:, 1])).mean()),
    ("entropy", LINEAR, (6, 5), lambda m, x: torch.special.entr(m.a(x).softmax(-1)).sum(-1).mean()),
    ("cross-probabilities", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4)), (6, 5), lambda m, x: F.cross_entropy(m.a(x), m.b(x).softmax(-1).detach(), label_smoothing=0.1)),
    ("all-ignored-sum", LINEAR, dict(x=(6, 5), y=lambda: torch.full((6,), -100)), lambda m, x, y: F.cross_entropy(m.a(x), y, reduction="sum") + m.a(x).square().mean()),
])  # fmt: skip


def arc_face(m, x, y):
    cosine = F.linear(F.normalize(m.a(x)), F.normalize(m.w))
    turned = torch.cos(torch.acos(cosine.clamp(-1 + 1e-7, 1 - 1e-7)) + 0.3)
    return F.cross_entropy(8.0 * torch.where(F.one_hot(y, 4).bool(), turned, cosine), y)


def barlow(a, b):
    a, b = (a - a.mean(0)) / a.std(0), (b - b.mean(0)) / b.std(0)
    c = a.T @ b / 6
    off = c.flatten()[:-1].view(3, 5)[:, 1:].flatten()
    return (torch.diagonal(c) - 1).pow(2).sum() + 0.005 * off.pow(2).sum()


def vicreg(a, b):
    spread = F.relu(1 - torch.sqrt(a.var(dim=0) + 1e-4)).mean()
    c = torch.cov(a.T)
    return F.mse_loss(a, b) + spread + (c.fill_diagonal_(0).pow(2).sum() / 4)


def lovasz(logits, y):
    signs = 2.0 * y.float() - 1.0
    errors = 1.0 - logits * signs
    sorted_errors, order = torch.sort(errors, dim=0, descending=True)
    truth = y[order].float()
    total = truth.sum()
    union = total + (1 - truth).cumsum(0)
    jaccard = 1.0 - (total - truth.cumsum(0)) / union
    jaccard = torch.cat([jaccard[:1], jaccard[1:] - jaccard[:-1]])
    return torch.dot(F.relu(sorted_errors), jaccard)


def crf(m, x, y):
    e = m.a(x)
    score = m.s[y[:, 0]] + e[:, 0].gather(1, y[:, :1])[:, 0]
    alpha = m.s + e[:, 0]
    for t in range(1, 5):
        score = score + m.t[y[:, t - 1], y[:, t]] + e[:, t].gather(1, y[:, t : t + 1])[:, 0]
        alpha = torch.logsumexp(alpha[:, :, None] + m.t + e[:, t][:, None], 1)
    return (torch.logsumexp(alpha, 1) - score).mean()


def policy(m, x, y, old, adv):
    ratio = torch.exp(m.a(x).log_softmax(-1)[torch.arange(6), y] - old)
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    return -torch.min(ratio * adv, torch.clamp(ratio, 0.8, 1.2) * adv).mean()


def projected(m, x, r):
    support = torch.linspace(-1, 0.5, 4)
    place = ((r[:, None] + 0.875 * support).clamp(-1, 0.5) + 1) / 0.5
    low, high = place.floor().long(), place.ceil().long()
    p = m.a(x.roll(1, 0)).softmax(-1).detach()
    target = torch.zeros(6, 4).scatter_add(1, low, p * (high - place)).scatter_add(1, high, p * (place - low))
    return -(target * m.a(x).log_softmax(-1)).sum(-1).mean()


def sinkhorn(cost):
    f, g = torch.zeros(6), torch.zeros(4)
    for _ in range(3):
        f = -0.5 * torch.logsumexp((g[None] - cost) / 0.5, 1)
        g = -0.5 * torch.logsumexp((f[:, None] - cost) / 0.5, 0)
    return (torch.exp((f[:, None] + g[None] - cost) / 0.5) * cost).sum()


def giou(p, t):
    p = torch.cat([p[:, :2], p[:, :2] + p[:, 2:]], 1)
    t = torch.cat([t[:, :2], t[:, :2] + t[:, 2:]], 1)
    inner = (torch.min(p[:, 2:], t[:, 2:]) - torch.max(p[:, :2], t[:, :2])).clamp(min=0).prod(1)
    outer = (torch.max(p[:, 2:], t[:, 2:]) - torch.min(p[:, :2], t[:, :2])).prod(1)
    union = (p[:, 2:] - p[:, :2]).prod(1) + (t[:, 2:] - t[:, :2]).prod(1) - inner
    return (1 - inner / union + (outer - union) / outer).mean()
