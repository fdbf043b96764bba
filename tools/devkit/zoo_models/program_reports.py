"""Programs as people report them: values at zero, losses and norms by hand, generative models, parts of detectors."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.program_images import then, with_part
from devkit.zoo_models.programs import CLASSES, CONV, IMAGE, LINE, LINEAR, PAIRS, ROWS, booleans, labels, programs, weight

TWO = dict(x=ROWS, z=ROWS)
WIDE = lambda: dict(a=nn.Linear(5, 8))  # noqa: E731


def dead(m, x):
    """Rows of which the first two are zeros."""
    return m.a(x) * (torch.arange(6) > 1)[:, None]


programs("zero", [
    ("zero-normalize", LINEAR, ROWS, lambda m, x: F.normalize(dead(m, x), dim=1)),
    ("zero-normalize-one", LINEAR, ROWS, lambda m, x: F.normalize(dead(m, x), p=1.0, dim=1, eps=1e-6)),
    ("zero-cosine", LINEAR, TWO, lambda m, x, z: F.cosine_similarity(dead(m, x), m.a(z))),
    ("zero-cosine-module", lambda: dict(a=nn.Linear(5, 4), c=nn.CosineSimilarity(dim=-1, eps=1e-6)), TWO, lambda m, x, z: m.c(dead(m, x), m.a(z)) * 2),
    ("zero-norm-ratio", LINEAR, ROWS, lambda m, x: dead(m, x) / (dead(m, x).norm(dim=1, keepdim=True) + 1e-6)),
    ("zero-norm-bounded", LINEAR, ROWS, lambda m, x: dead(m, x) / dead(m, x).norm(dim=1, keepdim=True).clamp(min=1e-3)),
    ("zero-norm-maximum", LINEAR, ROWS, lambda m, x: dead(m, x) / torch.maximum(dead(m, x).norm(dim=1, keepdim=True), torch.tensor(0.1))),
    ("zero-root-eps", LINEAR, ROWS, lambda m, x: (dead(m, x).pow(2).sum(1) + 1e-8).sqrt()),
    ("zero-root-clamped", LINEAR, ROWS, lambda m, x: dead(m, x).pow(2).sum(1).clamp(min=1e-12).sqrt()),
    ("zero-root-where", LINEAR, ROWS, lambda m, x: (lambda s: torch.where(s > 0, torch.where(s > 0, s, 1.0).sqrt(), 0.0))(dead(m, x).pow(2).sum(1))),
    ("zero-power-half", LINEAR, ROWS, lambda m, x: (dead(m, x).abs() + 1e-4) ** 0.5 + dead(m, x).abs() ** 1.5 + dead(m, x) ** 3),
    ("zero-generalized-mean", lambda: dict(CONV(), p=nn.Parameter(torch.tensor([3.0]))), IMAGE, lambda m, x: F.avg_pool2d(m.a(x).clamp(min=1e-6).pow(m.p), (6, 7)).pow(1.0 / m.p)),
    ("zero-entropy", LINEAR, CLASSES, lambda m, x, y: -(m.a(x).softmax(1) * torch.log(m.a(x).softmax(1) + 1e-10)).sum(1).mean()),
    ("zero-entropy-clamped", LINEAR, ROWS, lambda m, x: -(lambda p: (p * p.clamp(min=1e-8).log()).sum(1))(F.softmax(m.a(x) * 40, 1))),
    ("zero-signed-root", LINEAR, ROWS, lambda m, x: dead(m, x).sign() * (dead(m, x).abs() + 1e-5).sqrt()),
    ("zero-std", LINEAR, ROWS, lambda m, x: (dead(m, x) - dead(m, x).mean(1, keepdim=True)) / (dead(m, x).std(1, keepdim=True) + 1e-3)),
    ("zero-variance", LINEAR, ROWS, lambda m, x: (dead(m, x) - dead(m, x).mean(1, keepdim=True)) / torch.sqrt(dead(m, x).var(1, keepdim=True, unbiased=False) + 1e-5)),
    ("zero-layer-norm", lambda: dict(a=nn.Linear(5, 4), n=nn.LayerNorm(4)), ROWS, lambda m, x: m.n(dead(m, x))),
    ("zero-angle", LINEAR, ROWS, lambda m, x: torch.atan2(dead(m, x)[:, 0] + 1e-3, dead(m, x)[:, 1])),
    ("zero-angle-axis", LINEAR, ROWS, lambda m, x: torch.atan2(x[:, :4].relu(), m.a(x)) + torch.atan2(-x[:, 1:].relu(), m.a(x)) + torch.atan2(m.a(x), x[:, 1:].relu() + 1e-9)),
    ("zero-phase", lambda: dict(a=nn.Linear(5, 4)), ROWS, lambda m, x: torch.atan2(torch.tensor([0.0, 0.5, -0.5, 0.0]), m.a(x)) * m.a(x)),
    ("zero-squash", LINEAR, ROWS, lambda m, x: (lambda h, s: s / (1 + s) * h / (s.sqrt() + 1e-8))(m.a(x), m.a(x).pow(2).sum(-1, keepdim=True))),
    ("zero-huber", LINEAR, ROWS, lambda m, x: F.huber_loss(dead(m, x), torch.zeros(6, 4)) + F.smooth_l1_loss(dead(m, x), torch.zeros(6, 4)) + F.l1_loss(dead(m, x), torch.zeros(6, 4))),
    ("zero-hinge", LINEAR, CLASSES, lambda m, x, y: (lambda s: (s - s.gather(1, y[:, None]) + 1).clamp(min=0).sum(1).mean() - 1)(dead(m, x))),
    ("zero-relu-max", LINEAR, ROWS, lambda m, x: F.relu(dead(m, x)).max(1).values + torch.maximum(dead(m, x), torch.zeros(1)).sum(1) + dead(m, x).clamp(min=0).sum(1) + dead(m, x).abs().sum(1)),
    ("zero-max-pool", CONV, IMAGE, lambda m, x: F.max_pool2d(F.relu(m.a(x) - 0.3), 2) + F.adaptive_max_pool2d(F.relu(m.a(x) - 0.3), (3, 3))),
    ("zero-top", LINEAR, ROWS, lambda m, x: F.relu(m.a(x)).topk(3, 1).values + F.relu(m.a(x)).sort(1).values[:, 1:]),
    ("zero-product", LINEAR, ROWS, lambda m, x: dead(m, x).prod(1) + dead(m, x)[:, :2].prod(1) + (1 - dead(m, x)).prod(0)[0]),
    ("zero-cumulated-product", LINEAR, ROWS, lambda m, x: F.relu(m.a(x)).cumprod(1) + torch.cumprod(torch.cat([torch.ones(6, 1), 1 - m.a(x).sigmoid() + 1e-10], 1), 1)[:, :-1]),
    ("zero-log-safe", LINEAR, ROWS, lambda m, x: torch.log(F.relu(m.a(x)) + 1e-6) + torch.log1p(F.relu(m.a(x))) + torch.log(m.a(x).sigmoid().clamp(1e-7, 1 - 1e-7))),
    ("zero-divide-safe", LINEAR, ROWS, lambda m, x: F.relu(m.a(x)) / (F.relu(m.a(x)).sum(1, keepdim=True) + 1e-8) + F.relu(m.a(x)) / F.relu(m.a(x)).sum(1, keepdim=True).clamp_min(1e-6)),
    ("zero-distances", LINEAR, ROWS, lambda m, x: (lambda h: (h[:, None] - h[None]).pow(2).sum(-1).clamp(min=1e-12).sqrt() + torch.cdist(h, h.detach() + 0.1))(m.a(x))),
    ("zero-pairwise", LINEAR, ROWS, lambda m, x: F.pairwise_distance(m.a(x), m.a(x)) + (m.a(x) - m.a(x).roll(1, 0)).norm(dim=1)),
    ("zero-mahalanobis", LINEAR, ROWS, lambda m, x: (lambda s: (s + s.T) / 2)(m.a(x) @ m.a(x).T).relu().add(1e-6).sqrt()),
    ("zero-masked-softmax", LINEAR, dict(x=ROWS, k=lambda: booleans(6, 4)), lambda m, x, k: (lambda e: e / (e.sum(1, keepdim=True) + 1e-9))(m.a(x).exp() * k)),
    ("zero-masked-mean", LINEAR, dict(x=ROWS, k=lambda: torch.zeros(6, 4).bool()), lambda m, x, k: (m.a(x) * k).sum() / k.sum().clamp(min=1) + m.a(x).mean()),
    ("zero-nan-mean", LINEAR, dict(x=ROWS, t=lambda: torch.where(booleans(6, 4), torch.randn(6, 4), math.nan)), lambda m, x, t: (lambda k: torch.where(k, (m.a(x) - torch.where(k, t, 0.0)) ** 2, 0.0).sum() / k.sum())(~torch.isnan(t))),
])  # fmt: skip

programs("loss", [
    ("report-focal-sigmoid", LINEAR, dict(x=ROWS, y=lambda: labels(2, 6, 4).float()), lambda m, x, y: (lambda p, ce: ((0.25 * y + 0.75 * (1 - y)) * (1 - (p * y + (1 - p) * (1 - y))) ** 2 * ce).mean(1).sum() / 6)(m.a(x).sigmoid(), F.binary_cross_entropy_with_logits(m.a(x), y, reduction="none"))),
    ("report-focal-weights", LINEAR, CLASSES, lambda m, x, y: (lambda lp: -(torch.tensor([0.2, 0.3, 0.4, 0.1])[y] * (1 - lp.exp()).pow(2.0) * lp).mean())(F.log_softmax(m.a(x), 1).gather(1, y[:, None])[:, 0])),
    ("report-smoothing-scatter", LINEAR, CLASSES, lambda m, x, y: smoothed(m.a(x), y)),
    ("report-smoothing-two-terms", LINEAR, CLASSES, lambda m, x, y: (lambda lp: (0.9 * -lp.gather(-1, y[:, None]).squeeze(1) - 0.1 * lp.mean(-1)).mean())(m.a(x).log_softmax(-1))),
    ("report-distillation", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4)), CLASSES, lambda m, x, y: 0.3 * F.cross_entropy(m.a(x), y) + 0.7 * 16 * F.kl_div(F.log_softmax(m.a(x) / 4, 1), F.softmax(m.b(x).detach() / 4, 1), reduction="batchmean")),
    ("report-symmetric-kl", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4)), ROWS, lambda m, x: (lambda p, q: (F.kl_div(p, q.exp(), reduction="batchmean") + F.kl_div(q, p.exp(), reduction="batchmean")) / 2)(m.a(x).log_softmax(-1), m.b(x).log_softmax(-1))),
    ("report-jensen-shannon", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4)), ROWS, lambda m, x: jensen(m.a(x).softmax(1), m.b(x).softmax(1))),
    ("report-arc-face", lambda: dict(a=nn.Linear(5, 4), w=weight(4, 4)), CLASSES, lambda m, x, y: arc_face(F.linear(F.normalize(m.a(x)), F.normalize(m.w)), y)),
    ("report-arc-face-acos", lambda: dict(a=nn.Linear(5, 4), w=weight(4, 4)), CLASSES, lambda m, x, y: F.cross_entropy(16 * torch.cos(torch.acos(F.linear(F.normalize(m.a(x)), F.normalize(m.w)).clamp(-1 + 1e-7, 1 - 1e-7)) + 0.5 * F.one_hot(y, 4)), y)),
    ("report-cos-face", lambda: dict(a=nn.Linear(5, 4), w=weight(4, 4)), CLASSES, lambda m, x, y: F.cross_entropy(30 * (F.linear(F.normalize(m.a(x)), F.normalize(m.w)) - torch.zeros(6, 4).scatter_(1, y[:, None], 0.35)), y)),
    ("report-center", lambda: dict(a=nn.Linear(5, 4), c=weight(4, 4)), CLASSES, lambda m, x, y: F.cross_entropy(m.a(x), y) + 0.5 * ((m.a(x) - m.c[y]) ** 2).sum(1).clamp(1e-12, 1e12).mean()),
    ("report-batch-hard", LINEAR, dict(x=ROWS, y=lambda: torch.tensor([0, 1, 0, 1, 2, 2])), lambda m, x, y: batch_hard(m.a(x), y)),
    ("report-proxy", lambda: dict(a=nn.Linear(5, 4), p=weight(4, 4)), CLASSES, lambda m, x, y: F.cross_entropy(-torch.cdist(F.normalize(m.a(x)) * 3, F.normalize(m.p) * 3).pow(2), y)),
    ("report-clip", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4), logit_scale=nn.Parameter(torch.tensor(math.log(1 / 0.07)))), TWO, lambda m, x, z: (lambda s: (F.cross_entropy(s, torch.arange(6)) + F.cross_entropy(s.t(), torch.arange(6))) / 2)(m.logit_scale.exp() * F.normalize(m.a(x), dim=-1) @ F.normalize(m.b(z), dim=-1).t())),
    ("report-siglip", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4), s=nn.Parameter(torch.tensor(2.3)), o=nn.Parameter(torch.tensor(-10.0))), TWO, lambda m, x, z: -F.logsigmoid((2 * torch.eye(6) - 1) * (F.normalize(m.a(x)) @ F.normalize(m.b(z)).T * m.s.exp() + m.o)).sum() / 6),
    ("report-barlow", LINEAR, TWO, lambda m, x, z: barlow(m.a(x), m.a(z))),
    ("report-simsiam", lambda: dict(a=nn.Linear(5, 4), p=nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 4))), TWO, lambda m, x, z: -(F.cosine_similarity(m.p(m.a(x)), m.a(z).detach(), dim=-1).mean() + F.cosine_similarity(m.p(m.a(z)), m.a(x).detach(), dim=-1).mean()) * 0.5),
    ("report-two-twins", lambda: dict(a=nn.Linear(5, 4)), TWO, lambda m, x, z: (lambda f: F.cross_entropy((f @ f.T / 0.5).masked_fill(torch.eye(12).bool(), -9e15), torch.arange(12).roll(6)))(F.normalize(torch.cat([m.a(x), m.a(z)]), dim=1))),
    ("report-two-twins-cosine", lambda: dict(a=nn.Linear(5, 4)), TWO, lambda m, x, z: twins(torch.cat([m.a(x), m.a(z)]))),
    ("report-quantiles", lambda: dict(a=nn.Linear(5, 3)), dict(x=ROWS, t=(6, 1)), lambda m, x, t: (lambda e: torch.max((torch.tensor([0.1, 0.5, 0.9]) - 1) * e, torch.tensor([0.1, 0.5, 0.9]) * e).sum(1).mean())(t - m.a(x))),
    ("report-quantile-huber", lambda: dict(a=nn.Linear(5, 4)), dict(x=ROWS, t=(6, 4)), lambda m, x, t: (lambda d: (torch.abs((torch.arange(4) + 0.5)[None, None] / 4 - (d.detach() < 0).float()) * torch.where(d.abs() <= 1, 0.5 * d.pow(2), d.abs() - 0.5)).sum(-1).mean())(t[:, None] - m.a(x)[:, :, None])),
    ("report-dice-image", CONV, dict(x=IMAGE, y=lambda: labels(4, 2, 6, 7)), lambda m, x, y: dice_of(m.a(x), y)),
    ("report-dice-ce", CONV, dict(x=IMAGE, y=lambda: labels(4, 2, 6, 7)), lambda m, x, y: F.cross_entropy(m.a(x), y) + dice_of(m.a(x), y)),
    ("report-hard-pixels", CONV, dict(x=IMAGE, y=lambda: labels(4, 2, 6, 7)), lambda m, x, y: F.cross_entropy(m.a(x), y, reduction="none").view(-1).topk(20)[0].mean()),
    ("report-hard-negatives", LINEAR, dict(x=ROWS, y=lambda: labels(2, 6, 4).float()), lambda m, x, y: (lambda c: (c * y).sum() / y.sum() + (c * (1 - y)).view(-1).topk(3).values.mean())(F.binary_cross_entropy_with_logits(m.a(x), y, reduction="none"))),
    ("report-heatmap-focal", CONV, dict(x=IMAGE, y=lambda: torch.rand(2, 4, 6, 7).round(decimals=1).clamp(max=1.0)), lambda m, x, y: heatmap(m.a(x).sigmoid().clamp(1e-4, 1 - 1e-4), y)),
    ("report-ciou", LINEAR, dict(x=ROWS, t=lambda: torch.rand(6, 4) + 0.1), lambda m, x, t: ciou(m.a(x).sigmoid() + 0.05, t)),
    ("report-structure", lambda: dict(a=nn.Conv2d(1, 1, 3, padding=1)), dict(x=(2, 1, 8, 8), t=(2, 1, 8, 8)), lambda m, x, t: structure(m.a(x), t)),
    ("report-gradient-loss", lambda: dict(a=nn.Conv2d(1, 1, 3, padding=1), k=torch.tensor([[[[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]]])), dict(x=(2, 1, 8, 8), t=(2, 1, 8, 8)), lambda m, x, t: F.l1_loss(F.conv2d(m.a(x), m.k), F.conv2d(t, m.k)) + F.l1_loss(F.conv2d(m.a(x), m.k.transpose(2, 3)), F.conv2d(t, m.k.transpose(2, 3)))),
    ("report-ppo", lambda: dict(a=nn.Linear(5, 4), v=nn.Linear(5, 1)), dict(x=ROWS, y=lambda: labels(4, 6), old=lambda: -torch.rand(6) - 0.8, adv=(6,), ret=(6,)), lambda m, x, y, old, adv, ret: ppo(m, x, y, old, adv, ret)),
    ("report-q-learning", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4).requires_grad_(False)), dict(x=ROWS, z=ROWS, y=lambda: labels(4, 6), r=(6,), d=lambda: labels(2, 6).float()), lambda m, x, z, y, r, d: F.smooth_l1_loss(m.a(x).gather(1, y[:, None]).squeeze(1), (r + 0.99 * (1 - d) * m.b(z).max(1)[0]).detach())),
    ("report-double-q", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4)), dict(x=ROWS, z=ROWS, y=lambda: labels(4, 6), r=(6,)), lambda m, x, z, y, r: ((m.a(x).gather(1, y.unsqueeze(1)).squeeze() - (r + 0.9 * m.b(z).gather(1, m.a(z).argmax(1, keepdim=True)).squeeze().detach())) ** 2).mean()),
    ("report-duelling", lambda: dict(v=nn.Linear(5, 1), a=nn.Linear(5, 4)), ROWS, lambda m, x: m.v(x) + m.a(x) - m.a(x).mean(1, keepdim=True)),
    ("report-squashed-normal", lambda: dict(u=nn.Linear(5, 2), s=nn.Linear(5, 2)), dict(x=ROWS, e=(6, 2)), lambda m, x, e: (lambda s: (lambda u: (-0.5 * e.pow(2) - s - 0.9189 - 2 * (math.log(2) - u - F.softplus(-2 * u))).sum(1))(m.u(x) + s.exp() * e))(m.s(x).clamp(-20, 2))),
    ("report-actor-critic", lambda: dict(p=nn.Linear(5, 4), v=nn.Linear(5, 1)), dict(x=ROWS, y=lambda: labels(4, 6), r=(6,)), lambda m, x, y, r: (lambda lp, v: -(lp[torch.arange(6), y] * (r - v.detach())).mean() + 0.5 * (r - v).pow(2).mean() - 0.01 * -(lp.exp() * lp).sum(1).mean())(m.p(x).log_softmax(1), m.v(x).squeeze(-1))),
    ("report-mixture-density", lambda: dict(p=nn.Linear(5, 3), u=nn.Linear(5, 3), s=nn.Linear(5, 3)), dict(x=ROWS, t=(6, 1)), lambda m, x, t: -torch.logsumexp(m.p(x).log_softmax(1) - m.s(x) - 0.5 * ((t - m.u(x)) / m.s(x).exp()) ** 2 - 0.5 * math.log(2 * math.pi), 1).mean()),
    ("report-normal-log-prob", lambda: dict(u=nn.Linear(5, 4), s=nn.Parameter(torch.full((4,), -0.5))), PAIRS, lambda m, x, t: -torch.distributions.Normal(m.u(x), m.s.exp(), validate_args=False).log_prob(t).sum(-1).mean()),
    ("report-normal-kl", lambda: dict(u=nn.Linear(5, 4), s=nn.Linear(5, 4)), ROWS, lambda m, x: torch.distributions.kl_divergence(torch.distributions.Normal(m.u(x), F.softplus(m.s(x)) + 1e-3, validate_args=False), torch.distributions.Normal(0.0, 1.0)).sum(-1).mean()),
    ("report-categorical", LINEAR, CLASSES, lambda m, x, y: (lambda d: -(d.log_prob(y)).mean() - 0.1 * d.entropy().mean())(torch.distributions.Categorical(logits=m.a(x), validate_args=False))),
    ("report-beta", lambda: dict(p=nn.Linear(5, 1), q=nn.Linear(5, 1)), dict(x=ROWS, t=lambda: torch.rand(6, 1) * 0.8 + 0.1), lambda m, x, t: -torch.distributions.Beta(F.softplus(m.p(x)) + 1, F.softplus(m.q(x)) + 1, validate_args=False).log_prob(t).mean()),
    ("report-negative-binomial", lambda: dict(u=nn.Linear(5, 1), r=nn.Parameter(torch.zeros(1))), dict(x=ROWS, y=lambda: labels(9, 6, 1).float()), lambda m, x, y: (lambda u, r: -(torch.lgamma(y + r) - torch.lgamma(r) - torch.lgamma(y + 1) + r * torch.log(r / (r + u)) + y * torch.log(u / (r + u))).mean())(m.u(x).exp(), m.r.exp())),
    ("report-tweedie", lambda: dict(a=nn.Linear(5, 1)), dict(x=ROWS, t=lambda: torch.rand(6, 1)), lambda m, x, t: (lambda u: (-t * torch.pow(u, 1 - 1.5) / (1 - 1.5) + torch.pow(u, 2 - 1.5) / (2 - 1.5)).mean())(m.a(x).exp())),
    ("report-evidential", lambda: dict(a=nn.Linear(5, 4)), CLASSES, lambda m, x, y: (lambda al: (F.one_hot(y, 4) * (torch.digamma(al.sum(1, keepdim=True)) - torch.digamma(al))).sum(1).mean())(F.softplus(m.a(x)) + 1)),
    ("report-ordinal", lambda: dict(a=nn.Linear(5, 1, bias=False), b=nn.Parameter(torch.zeros(3))), dict(x=ROWS, y=lambda: labels(4, 6)), lambda m, x, y: F.binary_cross_entropy_with_logits(m.a(x) + m.b, (y[:, None] > torch.arange(3)).float())),
    ("report-masked-language", lambda: dict(e=nn.Embedding(9, 4), a=nn.Linear(4, 9)), dict(i=lambda: labels(9, 3, 5), y=lambda: torch.where(booleans(3, 5), labels(9, 3, 5), -100)), lambda m, i, y: nn.CrossEntropyLoss()(m.a(m.e(i)).view(-1, 9), y.view(-1))),
    ("report-next-token", lambda: dict(e=nn.Embedding(9, 4), a=nn.Linear(4, 9, bias=False)), dict(i=lambda: labels(9, 3, 5)), lambda m, i: F.cross_entropy(m.a(m.e(i))[..., :-1, :].contiguous().view(-1, 9), i[..., 1:].contiguous().view(-1))),
    ("report-padded-sequences", lambda: dict(e=nn.Embedding(9, 4, padding_idx=0), a=nn.Linear(4, 9)), dict(i=lambda: torch.tensor([[3, 4, 5, 0, 0], [1, 2, 0, 0, 0]])), lambda m, i: (lambda l, k: (l * k).sum(1).div(k.sum(1)).mean())(F.cross_entropy(m.a(m.e(i)).permute(0, 2, 1), i, reduction="none"), (i != 0).float())),
    ("report-z-loss", lambda: dict(a=nn.Linear(5, 4)), CLASSES, lambda m, x, y: F.cross_entropy(m.a(x), y) + 1e-2 * m.a(x).logsumexp(-1).pow(2).mean()),
    ("report-balance", lambda: dict(g=nn.Linear(5, 4), w=weight(4, 5, 5)), ROWS, lambda m, x: balance(m, x)),
    ("report-total-of-three", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(4, 5)), CLASSES, lambda m, x, y: F.cross_entropy(m.a(x), y) + 0.1 * F.mse_loss(m.b(m.a(x)), x) + 0.01 * m.a(x).abs().mean()),
    ("report-orthogonality", LINEAR, PAIRS, lambda m, x, t: F.mse_loss(m.a(x), t) + 0.1 * (m.a.weight @ m.a.weight.T - torch.eye(4)).pow(2).sum()),
    ("report-lasso", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(4, 4)), PAIRS, lambda m, x, t: F.mse_loss(m.b(m.a(x).relu()), t) + 1e-2 * sum(p.abs().sum() for p in m.parameters()) + 1e-2 * sum(torch.norm(p) for p in m.parameters())),
    ("report-lasso-vector", lambda: dict(a=nn.Linear(5, 4)), PAIRS, lambda m, x, t: F.mse_loss(m.a(x), t) + 1e-2 * torch.cat([p.view(-1) for p in m.parameters()]).norm(1) + 1e-2 * torch.cat([p.view(-1) for p in m.parameters()]).norm(2)),
    ("report-group-lasso", lambda: dict(a=nn.Linear(5, 4)), PAIRS, lambda m, x, t: F.mse_loss(m.a(x), t) + 1e-2 * m.a.weight.norm(dim=0).sum() + 1e-2 * m.a.weight.abs().max()),
    ("report-max-norm-penalty", LINEAR, PAIRS, lambda m, x, t: F.mse_loss(m.a(x), t) + (m.a.weight.norm(dim=1) - 0.3).clamp(min=0).sum()),
    ("report-wing", LINEAR, PAIRS, lambda m, x, t: (lambda d: torch.where(d < 1.0, 1.0 * torch.log(1 + d / 0.5), d - (1.0 - math.log(3))).mean())((m.a(x) - t).abs())),
    ("report-rank-pairs", lambda: dict(a=nn.Linear(5, 1)), dict(x=ROWS, y=lambda: labels(3, 6)), lambda m, x, y: (lambda s, k: (F.softplus(-(s[:, None] - s[None])) * k).sum() / k.sum())(m.a(x).squeeze(-1), (y[:, None] > y[None]).float())),
    ("report-bayes-personalized", lambda: dict(u=nn.Embedding(5, 4), i=nn.Embedding(9, 4), b=nn.Embedding(9, 1)), dict(u=lambda: labels(5, 6), p=lambda: labels(9, 6), n=lambda: labels(9, 6)), lambda m, u, p, n: -F.logsigmoid((m.u(u) * m.i(p)).sum(1) + m.b(p).squeeze(1) - (m.u(u) * m.i(n)).sum(1) - m.b(n).squeeze(1)).mean() + 1e-3 * (m.u(u).pow(2).sum() + m.i(p).pow(2).sum())),
])  # fmt: skip


def smoothed(h, y):
    with torch.no_grad():
        truth = torch.zeros_like(h).fill_(0.1 / 3).scatter_(1, y.unsqueeze(1), 0.9)
    return torch.mean(torch.sum(-truth * h.log_softmax(dim=-1), dim=-1))


def jensen(p, q):
    middle = torch.clamp((p + q) / 2, 1e-7, 1).log()
    return (F.kl_div(middle, p, reduction="batchmean") + F.kl_div(middle, q, reduction="batchmean")) / 2


def arc_face(cosine, y):
    sine = torch.sqrt((1.0 - cosine.pow(2)).clamp(0, 1))
    phi = cosine * math.cos(0.5) - sine * math.sin(0.5)
    phi = torch.where(cosine > math.cos(math.pi - 0.5), phi, cosine - math.sin(math.pi - 0.5) * 0.5)
    chosen = torch.zeros(6, 4)
    chosen.scatter_(1, y.view(-1, 1).long(), 1)
    return F.cross_entropy(((chosen * phi) + ((1.0 - chosen) * cosine)) * 16, y)


def batch_hard(h, y):
    dist = torch.pow(h, 2).sum(dim=1, keepdim=True).expand(6, 6)
    dist = dist + dist.t()
    dist = torch.addmm(dist, h, h.t(), beta=1, alpha=-2).clamp(min=1e-12).sqrt()
    same = y[:, None] == y[None]
    positive = torch.where(same, dist, -math.inf).max(1)[0]
    negative = torch.where(same, math.inf, dist).min(1)[0]
    return F.relu(positive - negative + 0.3).mean()


def barlow(a, b):
    a, b = (a - a.mean(0)) / a.std(0), (b - b.mean(0)) / b.std(0)
    c = a.T @ b / 6
    on = torch.diagonal(c).add(-1).pow(2).sum()
    off = c.flatten()[:-1].view(3, 5)[:, 1:].flatten().pow(2).sum()
    return on + 0.005 * off


def twins(h):
    s = F.cosine_similarity(h[:, None], h[None], dim=-1) / 0.5
    s = s[~torch.eye(12).bool()].view(12, 11)
    own = torch.cat([torch.arange(6) + 5, torch.arange(6)])
    return F.cross_entropy(s, own)


def dice_of(logits, y):
    p = logits.softmax(1)
    truth = F.one_hot(y, 4).permute(0, 3, 1, 2).float()
    inner = (p * truth).sum(dim=(0, 2, 3))
    both = (p + truth).sum(dim=(0, 2, 3))
    return 1 - ((2.0 * inner + 1e-6) / (both + 1e-6)).mean()


def heatmap(p, y):
    at, off = y.eq(1).float(), y.lt(1).float()
    positive = (torch.log(p) * torch.pow(1 - p, 2) * at).sum()
    negative = (torch.log(1 - p) * torch.pow(p, 2) * torch.pow(1 - y, 4) * off).sum()
    return -(positive + negative) / at.sum().clamp(min=1)


def ciou(p, t):
    (px, py, pw, ph), (tx, ty, tw, th) = p.chunk(4, -1), t.chunk(4, -1)
    inner = (torch.min(px + pw / 2, tx + tw / 2) - torch.max(px - pw / 2, tx - tw / 2)).clamp(0) * (torch.min(py + ph / 2, ty + th / 2) - torch.max(py - ph / 2, ty - th / 2)).clamp(0)
    iou = inner / (pw * ph + tw * th - inner + 1e-7)
    cw = torch.max(px + pw / 2, tx + tw / 2) - torch.min(px - pw / 2, tx - tw / 2)
    ch = torch.max(py + ph / 2, ty + th / 2) - torch.min(py - ph / 2, ty - th / 2)
    far = ((tx - px) ** 2 + (ty - py) ** 2) / (cw**2 + ch**2 + 1e-7)
    v = (4 / math.pi**2) * (torch.atan(tw / th) - torch.atan(pw / ph)).pow(2)
    with torch.no_grad():
        alpha = v / (v - iou + (1 + 1e-7))
    return (1 - (iou - far - v * alpha)).mean()


def structure(a, b):
    window = torch.ones(1, 1, 3, 3) / 9
    f = lambda v: F.conv2d(v, window, padding=1)  # noqa: E731
    ma, mb = f(a), f(b)
    va, vb, ab = f(a * a) - ma**2, f(b * b) - mb**2, f(a * b) - ma * mb
    s = ((2 * ma * mb + 1e-4) * (2 * ab + 9e-4)) / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4))
    return 1 - s.mean()


def ppo(m, x, y, old, adv, ret):
    log = m.a(x).log_softmax(-1)
    ratio = (log.gather(1, y[:, None]).squeeze(1) - old).exp()
    gain = torch.min(ratio * adv, ratio.clamp(1 - 0.2, 1 + 0.2) * adv).mean()
    value = m.v(x).squeeze(-1)
    bounded = ret * 0.5 + (value - ret * 0.5).clamp(-0.2, 0.2)
    return -gain + 0.5 * torch.max((value - ret).pow(2), (bounded - ret).pow(2)).mean() + 0.01 * (log.exp() * log).sum(-1).mean()


def balance(m, x):
    p = m.g(x).softmax(-1)
    value, index = p.topk(2, -1)
    value = value / value.sum(-1, keepdim=True)
    gates = torch.zeros(6, 4).scatter(1, index, value)
    out = torch.einsum("be,eij,bj->bi", gates, m.w, x)
    share = F.one_hot(index[:, 0], 4).float().mean(0)
    return out.square().mean() + 0.1 * 4 * (share * p.mean(0)).sum()


programs("norm", [
    ("report-rms-float", lambda: dict(a=nn.Linear(5, 4), weight=nn.Parameter(torch.ones(4))), ROWS, lambda m, x: (lambda h: m.weight * (h.float() * torch.rsqrt(h.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(h.dtype))(m.a(x))),
    ("report-rms-root", lambda: dict(a=nn.Linear(5, 4), g=nn.Parameter(torch.ones(4))), ROWS, lambda m, x: (lambda h: h / (h.norm(2, dim=-1, keepdim=True) * 4**-0.5 + 1e-8) * m.g)(m.a(x))),
    ("report-rms-normalize", lambda: dict(a=nn.Linear(5, 4), g=nn.Parameter(torch.ones(4))), ROWS, lambda m, x: F.normalize(m.a(x), dim=-1) * 4**0.5 * (m.g + 1)),
    ("report-filter-response", lambda: dict(CONV(), g=weight(1, 4, 1, 1), b=weight(1, 4, 1, 1), t=weight(1, 4, 1, 1), e=nn.Parameter(torch.full((1, 4, 1, 1), 1e-2))), IMAGE, lambda m, x: (lambda h: torch.max(m.g * h * torch.rsqrt(h.pow(2).mean((2, 3), keepdim=True) + m.e.abs()) + m.b, m.t))(m.a(x))),
    ("report-pixel-norm", CONV, IMAGE, lambda m, x: (lambda h: h * torch.rsqrt(torch.mean(h**2, dim=1, keepdim=True) + 1e-8))(m.a(x))),
    ("report-adaptive-instance", lambda: dict(CONV(), s=nn.Linear(5, 8)), dict(x=IMAGE, c=(2, 5)), lambda m, x, c: (lambda h, s: (1 + s[:, :4, None, None]) * F.instance_norm(h) + s[:, 4:, None, None])(m.a(x), m.s(c))),
    ("report-style", CONV, dict(x=IMAGE, z=IMAGE), lambda m, x, z: restyled(m.a(x), m.a(z))),
    ("report-film", lambda: dict(CONV(), s=nn.Linear(5, 8), n=nn.BatchNorm2d(4, affine=False)), dict(x=IMAGE, c=(2, 5)), lambda m, x, c: (lambda g: m.n(m.a(x)) * (1 + g[0][..., None, None]) + g[1][..., None, None])(m.s(c).chunk(2, 1))),
    ("report-conditional-batch", lambda: dict(CONV(), n=nn.BatchNorm2d(4, affine=False), g=nn.Embedding(3, 4), b=nn.Embedding(3, 4)), dict(x=IMAGE, y=lambda: labels(3, 2)), lambda m, x, y: m.g(y)[:, :, None, None] * m.n(m.a(x)) + m.b(y)[:, :, None, None]),
    ("report-spatial", lambda: dict(CONV(), s=nn.Conv2d(2, 4, 3, padding=1), b=nn.Conv2d(2, 4, 3, padding=1)), dict(x=IMAGE, z=(2, 2, 3, 4)), lambda m, x, z: (lambda k: F.instance_norm(m.a(x)) * (1 + m.s(k)) + m.b(k))(F.interpolate(z, (6, 7), mode="nearest"))),
    ("report-reversible", lambda: dict(a=nn.Linear(9, 9), g=nn.Parameter(torch.ones(4)), b=nn.Parameter(torch.zeros(4))), LINE, lambda m, x: reversible(m, x)),
    ("report-batch-input", lambda: dict(n=nn.BatchNorm1d(5), a=nn.Linear(5, 4)), ROWS, lambda m, x: m.a(m.n(x))),
    ("report-batch-last", lambda: dict(a=nn.Linear(5, 4), n=nn.BatchNorm1d(4)), CLASSES, lambda m, x, y: F.cross_entropy(m.n(m.a(x)), y)),
    ("report-batch-joined", lambda: dict(CONV(), b=nn.Conv2d(4, 3, 1), n=nn.BatchNorm2d(7)), IMAGE, lambda m, x: m.n(torch.cat([m.a(x), m.b(x)], 1)).relu()),
    ("report-batch-before", lambda: dict(n=nn.BatchNorm2d(4), k=nn.BatchNorm2d(4), CONV=nn.Conv2d(4, 4, 3, padding=1), b=nn.Conv2d(4, 4, 1)), IMAGE, lambda m, x: x + m.b(F.relu(m.k(m.CONV(F.relu(m.n(x))))))),
    ("report-batch-tokens-flat", lambda: dict(a=nn.Linear(5, 4), n=nn.BatchNorm1d(4)), (3, 6, 5), lambda m, x: m.n(m.a(x).reshape(-1, 4)).view(3, 6, 4)),
    ("report-batch-tokens-turned", lambda: dict(a=nn.Linear(5, 4), n=nn.BatchNorm1d(4)), (3, 6, 5), lambda m, x: m.n(m.a(x).permute(0, 2, 1)).permute(0, 2, 1)),
    ("report-batch-squeezed", lambda: dict(CONV(), n=nn.BatchNorm1d(4)), IMAGE, lambda m, x: m.n(F.adaptive_avg_pool2d(m.a(x), 1).squeeze(-1).squeeze(-1))),
    ("report-batch-three-calls", lambda: dict(a=nn.Linear(5, 4), n=nn.BatchNorm1d(4)), dict(x=ROWS, p=ROWS, q=ROWS), lambda m, x, p, q: F.triplet_margin_loss(m.n(m.a(x)), m.n(m.a(p)), m.n(m.a(q)))),
    ("report-batch-renorm", lambda: dict(a=nn.Linear(5, 4), mean=torch.zeros(4), std=torch.ones(4)), ROWS, lambda m, x: renormed(m, m.a(x))),
    ("report-ghost", lambda: dict(a=nn.Linear(5, 4), n=nn.BatchNorm1d(4)), ROWS, lambda m, x: torch.cat([m.n(c) for c in m.a(x).chunk(2, 0)])),
    ("report-momentum-small", lambda: dict(CONV(), n=nn.BatchNorm2d(4, eps=1e-3, momentum=0.01)), IMAGE, then),
    ("report-evaluated-in-train", lambda: dict(CONV(), n=nn.BatchNorm2d(4), k=nn.BatchNorm2d(4).eval()), IMAGE, lambda m, x: m.k(m.n(m.a(x)).relu())),
    ("report-group-many", lambda: dict(CONV(), n=nn.ModuleList([nn.GroupNorm(g, 4) for g in (1, 2, 4)])), IMAGE, lambda m, x: sum(n(m.a(x)) for n in m.n)),
    ("report-layer-unit", with_part(lambda: nn.GroupNorm(1, 4, eps=1e-6)), IMAGE, then),
    ("report-layer-first", lambda: dict(CONV(), w=nn.Parameter(torch.ones(4)), b=nn.Parameter(torch.zeros(4))), IMAGE, lambda m, x: (lambda h: m.w[:, None, None] * ((h - h.mean(1, keepdim=True)) / torch.sqrt((h - h.mean(1, keepdim=True)).pow(2).mean(1, keepdim=True) + 1e-6)) + m.b[:, None, None])(m.a(x))),
    ("report-standardized", lambda: dict(CONV(), n=nn.GroupNorm(2, 4)), IMAGE, lambda m, x: (lambda w: m.n(F.conv2d(x, (w - w.mean((1, 2, 3), keepdim=True)) * torch.rsqrt(w.var((1, 2, 3), keepdim=True, unbiased=False) + 1e-5), m.a.bias, padding=1)))(m.a.weight)),
    ("report-equalized", lambda: dict(w=weight(4, 4, 3, 3), b=nn.Parameter(torch.zeros(4))), IMAGE, lambda m, x: F.leaky_relu(F.conv2d(x, m.w * (1 / math.sqrt(36)), m.b, padding=1), 0.2) * math.sqrt(2)),
    ("report-modulated", lambda: dict(w=weight(1, 3, 4, 3, 3), s=nn.Linear(5, 4)), dict(x=IMAGE, c=(2, 5)), lambda m, x, c: modulated(m, x, c)),
    ("report-active", lambda: dict(CONV(), loc=weight(1, 4, 1, 1), s=weight(1, 4, 1, 1)), IMAGE, lambda m, x: (m.a(x) + m.loc) * m.s.exp()),
    ("report-deviations", CONV, IMAGE, lambda m, x: (lambda h: torch.cat([h, (h - h.mean(0)).pow(2).mean(0).add(1e-8).sqrt().mean().view(1, 1, 1, 1).expand(2, 1, 6, 7)], 1))(m.a(x))),
])  # fmt: skip


def restyled(a, b):
    def of(h):
        flat = h.view(2, 4, -1)
        return flat.mean(2).view(2, 4, 1, 1), (flat.var(dim=2) + 1e-5).sqrt().view(2, 4, 1, 1)

    (am, astd), (bm, bstd) = of(a), of(b)
    return (a - am.expand(2, 4, 6, 7)) / astd.expand(2, 4, 6, 7) * bstd.expand(2, 4, 6, 7) + bm.expand(2, 4, 6, 7)


def reversible(m, x):
    mean = x.mean(-1, keepdim=True).detach()
    std = torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5).detach()
    h = (x - mean) / std * m.g[:, None] + m.b[:, None]
    return (m.a(h) - m.b[:, None]) / (m.g[:, None] + 1e-10) * std + mean


def renormed(m, h):
    mean, std = h.mean(0), h.std(0, unbiased=False) + 1e-3
    r = (std.detach() / m.std).clamp(1 / 3, 3)
    d = ((mean.detach() - m.mean) / m.std).clamp(-5, 5)
    out = (h - mean) / std * r + d
    with torch.no_grad():
        m.mean += 0.1 * (mean.detach() - m.mean)
        m.std += 0.1 * (std.detach() - m.std)
    return out


def modulated(m, x, c):
    w = m.w * (m.s(c)[:, None, :, None, None] + 1)
    w = w * torch.rsqrt(w.pow(2).sum([2, 3, 4]) + 1e-8).view(2, 3, 1, 1, 1)
    return F.conv2d(x.reshape(1, 8, 6, 7), w.view(6, 4, 3, 3), padding=1, groups=2).view(2, 3, 6, 7)
