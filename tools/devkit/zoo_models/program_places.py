"""Programs that index, order and turn: learned tables, thresholds, points in space, rotations, images that are looked up."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import CONV, IMAGE, LINEAR, ROWS, booleans, labels, programs, weight

POINTS = (6, 3)
PAIR = dict(i=lambda: labels(3, 6), j=lambda: labels(4, 6))


def positive(*shape):
    """A parameter of numbers from 0.5 to 1.5."""
    return nn.Parameter(0.5 + torch.rand(shape))


def lower(v, n):
    """A lower triangle out of a vector."""
    i, j = torch.tril_indices(n, n)
    return torch.zeros(n, n).index_put((i, j), v)


def symmetric(v, n):
    i, j = torch.triu_indices(n, n)
    half = v.new_zeros(n, n)
    half[i, j] = v
    return half + half.T - torch.diag(half.diagonal())


def rotation_of_quaternion(q):
    w, x, y, z = F.normalize(q, dim=-1).unbind(-1)
    rows = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x), 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
    return torch.stack(rows, -1).view(*q.shape[:-1], 3, 3)


def rotation_of_six(d):
    a, b = d[..., :3], d[..., 3:]
    e = F.normalize(a, dim=-1)
    f = F.normalize(b - (e * b).sum(-1, keepdim=True) * e, dim=-1)
    return torch.stack((e, f, torch.linalg.cross(e, f)), -2)


def hat(v):
    x, y, z = v.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack((o, -z, y, z, o, -x, -y, x, o), -1).view(*v.shape[:-1], 3, 3)


def rotation_of_axis(v):
    a = v.norm()
    k = hat(v / a)
    return torch.eye(3) + a.sin() * k + (1 - a.cos()) * (k @ k)


def harmonics(x):
    x, y, z = F.normalize(x, dim=-1).unbind(-1)
    second = [1.0925 * x * y, 1.0925 * y * z, 0.3154 * (3 * z * z - 1), 1.0925 * x * z, 0.5463 * (x * x - y * y)]
    return torch.stack([torch.full_like(x, 0.2821), 0.4886 * y, 0.4886 * z, 0.4886 * x, *second], -1)


def planes(p, x):
    at = torch.stack((x[:, :2], x[:, 1:], x[:, ::2])).unsqueeze(2).tanh()
    return F.grid_sample(p, at, align_corners=True, padding_mode="border")[..., 0].prod(0).T


def corners(m, x):
    at = x.sigmoid() * 2
    base = at.floor().long().clamp(max=1)
    t, out = at - base, 0
    for c in range(4):
        o = torch.tensor([c & 1, c >> 1])
        i = base + o
        out = out + m.t[i[:, 0], i[:, 1]] * torch.where(o.bool(), t, 1 - t).prod(-1, keepdim=True)
    return out


def camera(m):
    y, x = torch.meshgrid(torch.arange(3.0), torch.arange(4.0), indexing="ij")
    rays = torch.stack((x - 1.5, y - 1.0, torch.full_like(x, -2.0)), -1) / m.focal
    return (rays[..., None, :] * rotation_of_axis(m.turn)).sum(-1), m.origin.expand(3, 4, 3)


def turned(w, k):
    return torch.rot90(w, k, (-2, -1)).roll(k, 2)


def lifted(m, x):
    return torch.stack([F.conv2d(x, torch.rot90(m.w, k, (2, 3)), padding=1) for k in range(4)], 2)


programs("places", [
    ("place-table-of-pairs", lambda: dict(w=weight(3, 4, 5)), PAIR, lambda m, i, j: m.w[i, j] + m.w.mean((0, 1))),
    ("place-table-grid", lambda: dict(w=weight(3, 4, 5)), dict(i=lambda: labels(3, 6, 1), j=lambda: labels(4, 2)), lambda m, i, j: m.w[i, j].tanh()),
    ("place-table-last", lambda: dict(w=weight(5, 3, 4)), PAIR, lambda m, i, j: m.w[..., i, j].T * 2),
    ("place-table-two-rooms", lambda: dict(w=weight(3, 4, 5)), PAIR, lambda m, i, j: m.w[i][:, 1] - m.w[:, j].mean(0)),
    ("place-put-learned", lambda: dict(w=weight(6, 4)), dict(i=lambda: labels(3, 6)), lambda m, i: torch.zeros(3, 4).index_put((i,), m.w, accumulate=True).exp()),
    ("place-put-learned-pairs", lambda: dict(w=weight(6), a=nn.Linear(4, 4)), PAIR, lambda m, i, j: m.a(torch.ones(3, 4).index_put((i, j), m.w, accumulate=True))),
    ("place-put-over-table", lambda: dict(LINEAR(), w=weight(7, 4)), dict(x=(3, 5), i=lambda: torch.tensor([4, 0, 2])), lambda m, x, i: m.w.index_put((i,), m.a(x)) @ m.w.T),
    ("place-masked-scatter", lambda: dict(w=weight(30)), dict(x=ROWS, k=lambda: booleans(6, 5)), lambda m, x, k: x.masked_scatter(k, m.w)),
    ("place-scatter-product", lambda: dict(w=positive(6, 4)), dict(i=lambda: labels(3, 6, 4)), lambda m, i: torch.ones(3, 4).scatter_reduce(0, i, m.w, "prod", include_self=False)),
    ("place-scatter-mean-table", lambda: dict(LINEAR(), w=weight(3, 4)), dict(x=ROWS, i=lambda: labels(3, 6, 4)), lambda m, x, i: m.w.scatter_reduce(0, i, m.a(x), "mean", include_self=True) + m.w),
    ("place-scatter-max-learned", lambda: dict(w=weight(6, 4)), dict(x=(3, 4), i=lambda: labels(3, 6, 4)), lambda m, x, i: x.scatter_reduce(0, i, m.w, "amax", include_self=True)),
    ("place-gather-middle", lambda: dict(w=weight(3, 4, 5)), dict(i=lambda: labels(4, 3, 2, 5)), lambda m, i: m.w.gather(1, i).sin() + m.w[:, :2]),
    ("place-along-learned", lambda: dict(w=weight(1, 4, 5)), dict(i=lambda: labels(4, 3, 2, 5)), lambda m, i: torch.take_along_dim(m.w, i, 1)),
    ("place-unfolded-line", lambda: dict(w=weight(9)), (4, 3), lambda m, x: m.w.unfold(0, 3, 2) @ x.T[:, :3]),
    ("place-folded-columns", lambda: dict(w=weight(2, 36, 6)), (2, 4, 4, 5), lambda m, x: F.fold(m.w, (4, 5), 3) * x),
    ("place-planes", lambda: dict(p=weight(3, 4, 5, 5), a=nn.Linear(4, 2)), POINTS, lambda m, x: m.a(planes(m.p, x))),
    ("place-planes-grown", lambda: dict(p=weight(3, 4, 3, 3), a=nn.Linear(4, 2)), POINTS, lambda m, x: m.a(planes(F.interpolate(m.p, (5, 5), mode="bilinear", align_corners=True), x))),
    ("place-positions-resized", lambda: dict(p=weight(1, 4, 4, 4)), IMAGE, lambda m, x: x + F.interpolate(m.p, size=(6, 7), mode="bicubic", align_corners=False)),
    ("place-positions-cropped", lambda: dict(p=weight(1, 9, 4)), (2, 5, 4), lambda m, x: x + torch.cat([m.p[:, :1], m.p[:, 2:6]], 1)),
    ("place-positions-part", lambda: dict(p=weight(1, 9, 4)), (2, 5, 4), lambda m, x: x + m.p[:, :5]),
    ("place-positions-middle", lambda: dict(p=weight(9, 4)), (2, 5, 4), lambda m, x: x * m.p[2:7]),
    ("place-one-of-many", lambda: dict(p=weight(3, 4)), (2, 5, 4), lambda m, x: x + m.p[1]),
    ("place-learned-warp", lambda: dict(t=nn.Parameter(torch.tensor([[[0.9, 0.1, 0.05], [-0.1, 1.1, 0.02]]]))), (1, 2, 5, 5), lambda m, x: F.grid_sample(x, F.affine_grid(m.t, (1, 2, 5, 5), align_corners=False), align_corners=False) * m.t.norm()),
    ("place-learned-flow", lambda: dict(f=weight(1, 5, 5, 2)), (1, 2, 5, 5), lambda m, x: F.grid_sample(x, F.affine_grid(torch.eye(2, 3)[None], (1, 2, 5, 5), align_corners=False) + 0.1 * m.f.tanh(), align_corners=False)),
    ("place-rolled-both", lambda: dict(w=weight(5)), ROWS, lambda m, x: x * m.w + x.square() * m.w.roll(2) + m.w.roll(-1).exp()),
    ("place-turned-kernels", lambda: dict(w=weight(3, 4, 3, 3)), IMAGE, lambda m, x: lifted(m, x).amax(2)),
    ("place-turned-group", lambda: dict(w=weight(3, 2, 4, 3, 3)), (2, 2, 4, 6, 6), lambda m, x: torch.stack([F.conv2d(x.flatten(1, 2), turned(m.w, k).flatten(1, 2)) for k in range(4)], 2).mean(2)),
    ("place-triangle-masked", lambda: dict(w=weight(5, 5)), ROWS, lambda m, x: x @ m.w.tril() + x @ m.w.triu(1).T),
    ("place-triangle-vector", lambda: dict(v=weight(15)), ROWS, lambda m, x: (x @ lower(m.v, 5)).square()),
    ("place-triangle-symmetric", lambda: dict(v=weight(15)), ROWS, lambda m, x: ((x @ symmetric(m.v, 5)) * x).sum(-1)),
    ("place-ordered-thresholds", lambda: dict(a=nn.Linear(5, 1), t=weight(3)), dict(x=ROWS, y=lambda: labels(4, 6)), lambda m, x, y: (lambda c: F.nll_loss((torch.cat([c, torch.ones(6, 1)], 1) - torch.cat([torch.zeros(6, 1), c], 1)).clamp(min=1e-6).log(), y))(torch.sigmoid(torch.cat([m.t[:1], m.t[:1] + F.softplus(m.t[1:]).cumsum(0)]) - m.a(x)))),
    ("place-log-cumulated", lambda: dict(v=weight(5)), ROWS, lambda m, x: x - m.v.logcumsumexp(0) + m.v),
    ("place-cumulated-rates", lambda: dict(v=weight(5, 4)), ROWS, lambda m, x: (x[..., None] * torch.exp(-m.v.exp().cumsum(0))).sum(1)),
    ("place-buckets-learned", lambda: dict(s=weight(5), e=torch.tensor([-1.0, -0.3, 0.3, 1.0])), ROWS, lambda m, x: x * m.s[torch.bucketize(x, m.e)]),
    ("place-soft-bins", lambda: dict(c=nn.Parameter(torch.tensor([-1.0, 0.0, 1.5]))), ROWS, lambda m, x: F.softmax(torch.stack([(x * (i + 1) - m.c.sort().values[:i].sum()) for i in range(4)], -1), -1)),
    ("place-one-hot-learned", lambda: dict(w=weight(4, 5)), dict(x=ROWS, i=lambda: labels(4, 6)), lambda m, x, i: x * (F.one_hot(i, 4).to(x.dtype) @ m.w) + F.one_hot(torch.arange(6) % 4).to(x.dtype) @ m.w),
    ("place-top-learned", lambda: dict(s=weight(6), w=weight(6, 5)), ROWS, lambda m, x: (lambda t: x @ (m.w[t.indices] * t.values.softmax(0)[:, None]).T)(m.s.topk(3))),
    ("place-top-mask-learned", lambda: dict(s=weight(5), w=weight(5, 4)), ROWS, lambda m, x: x @ (m.w * torch.zeros(5).scatter(0, m.s.topk(2).indices, 1.0)[:, None]) * m.s.sum()),
    ("place-sorted-learned", lambda: dict(w=weight(6)), ROWS, lambda m, x: (x.sort(0).values - m.w.sort().values[:, None]).abs()),
    ("place-quantile-learned", lambda: dict(w=weight(7, 5)), ROWS, lambda m, x: x - m.w.quantile(0.3, dim=0)),
    ("place-clipped-range", lambda: dict(w=weight(4, 5)), ROWS, lambda m, x: F.linear(x, m.w.clamp(m.w.quantile(0.1).item(), m.w.quantile(0.9).item()))),
    ("place-einsum-chain", lambda: dict(a=weight(5, 4), b=weight(4, 4)), (3, 5, 5), lambda m, x: torch.einsum("bii,ij,jk,kk->bk", x, m.a, m.b, m.b)),
    ("place-einsum-ellipsis", lambda: dict(a=weight(3, 1, 5, 4)), (3, 2, 6, 5), lambda m, x: torch.einsum("...ti,...ij->...tj", x, m.a)),
    ("place-einsum-diagonal", lambda: dict(a=weight(5, 5)), ROWS, lambda m, x: torch.einsum("bi,ii->bi", x, m.a) + torch.einsum("bi,ji->bj", x, m.a)),
    ("place-centroids-learned", lambda: dict(c=weight(3, 5), d=weight(4, 5)), ROWS, lambda m, x: torch.cdist(x, m.c).neg().softmax(-1) @ torch.cdist(m.c, m.d)),
    ("place-cross-axis", lambda: dict(v=weight(3)), POINTS, lambda m, x: torch.linalg.cross(x, F.normalize(m.v, dim=0).expand_as(x)) + m.v),
    ("place-volume", lambda: dict(w=weight(3, 3)), POINTS, lambda m, x: x @ m.w.T * torch.linalg.det(m.w)),
    ("place-quaternion", lambda: dict(q=weight(4), t=weight(3)), POINTS, lambda m, x: x @ rotation_of_quaternion(m.q).T + m.t),
    ("place-quaternions", lambda: dict(q=weight(6, 4), s=weight(6, 3)), POINTS, lambda m, x: (lambda l: (l @ l.mT @ x[..., None])[..., 0])(rotation_of_quaternion(m.q) @ torch.diag_embed(m.s.exp()))),
    ("place-six-numbers", lambda: dict(d=weight(6)), POINTS, lambda m, x: x @ rotation_of_six(m.d).T),
    ("place-six-numbers-of-data", lambda: dict(a=nn.Linear(5, 6)), dict(x=ROWS, p=POINTS), lambda m, x, p: (rotation_of_six(m.a(x)) @ p[..., None])[..., 0]),
    ("place-axis-angle", lambda: dict(v=weight(3)), POINTS, lambda m, x: x @ rotation_of_axis(m.v).T),
    ("place-homography", lambda: dict(h=nn.Parameter(torch.eye(3) + 0.1 * torch.randn(3, 3))), (6, 2), lambda m, x: (lambda p: p[:, :2] / (p[:, 2:].square() + 0.1))(F.pad(x, (0, 1), value=1.0) @ m.h.T)),
    ("place-harmonics", lambda: dict(c=weight(9, 4)), POINTS, lambda m, x: harmonics(x) @ m.c),
    ("place-harmonics-learned", lambda: dict(v=weight(5, 3)), ROWS, lambda m, x: x @ harmonics(m.v)),
    ("place-camera", lambda: dict(focal=positive(1), turn=weight(3), origin=weight(3)), (3, 4, 3), lambda m, x: (lambda d, o: (o + d * 2 - x).norm(dim=-1))(*camera(m))),
    ("place-grid-corners", lambda: dict(t=weight(3, 3, 4)), (6, 2), corners),
    ("place-deformed", lambda: dict(CONV(), o=weight(2, 1, 6, 7)), IMAGE, lambda m, x: m.a(F.grid_sample(x, torch.stack(torch.meshgrid(torch.linspace(-1, 1, 6), torch.linspace(-1, 1, 7), indexing="ij")[::-1], -1)[None].repeat(2, 1, 1, 1) + m.o.permute(1, 2, 3, 0) * 0.1, align_corners=True))),
    ("place-angles-of-learned", lambda: dict(v=weight(6, 2)), (6, 2), lambda m, x: torch.atan2(m.v[:, 1], m.v[:, 0]) - torch.atan2(x[:, 1], x[:, 0]) + math.pi),
])  # fmt: skip

NEAR = (torch.arange(5)[:, None] - torch.arange(5)).abs()
HEADS = (3, 2, 5, 5)


def in_turn(x, biases):
    """Attention of one head after the other, each with what it adds to its scores."""
    return torch.stack([(x[i] + bias).softmax(-1) @ x[i] for i, bias in enumerate(biases)])


# Values that are made of a parameter once, and of which each reader takes a part.
programs("parts", [
    ("part-heads-in-turn", lambda: dict(t=weight(3, 5), p=NEAR), HEADS, lambda m, x: (lambda b: in_turn(x, [b[0], b[1], b[2]]))(m.t[:, m.p])),
    ("part-heads-unbound", lambda: dict(t=weight(3, 5)), HEADS, lambda m, x: in_turn(x, m.t[:, NEAR].unbind(0))),
    ("part-heads-last", lambda: dict(t=weight(5, 3)), HEADS, lambda m, x: (lambda b: in_turn(x, [b[..., 0], b[..., 1], b[..., 2]]))(m.t[NEAR])),
    ("part-heads-backwards", lambda: dict(t=weight(3, 5)), HEADS, lambda m, x: (lambda b: in_turn(x, [b[2], b[1], b[0]]))(m.t[:, NEAR])),
    ("part-heads-of-more", lambda: dict(t=weight(4, 5)), HEADS, lambda m, x: (lambda b: in_turn(x, [b[3], b[0], b[2]]))(m.t[:, NEAR])),
    ("part-heads-and-whole", lambda: dict(t=weight(3, 5)), HEADS, lambda m, x: (lambda b: in_turn(x, [b[0], b[1], b[2]]) + b[:, None])(m.t[:, NEAR])),
    ("part-heads-of-two", lambda: dict(t=weight(3, 5), u=weight(3, 5)), HEADS, lambda m, x: (lambda b, c: in_turn(x, [b[0], c[1], b[2]]) + in_turn(x, [c[0], b[1], c[2]]))(m.t[:, NEAR], m.u[:, NEAR])),
    ("part-heads-each-place", lambda: dict(t=weight(3, 5)), HEADS, lambda m, x: in_turn(x, [m.t[0][NEAR], m.t[1][NEAR], m.t[2][(NEAR + 1) % 5]])),
    ("part-places-of-two", lambda: dict(t=weight(5, 3)), HEADS, lambda m, x: (x + m.t[NEAR].permute(2, 0, 1)[:, None]).softmax(-1) @ x + m.t[(NEAR[0] + 1) % 5].T[:, None, :, None]),
    ("part-gates-in-turn", lambda: dict(g=weight(3, 5)), (3, 6, 5), lambda m, x: (lambda g: x[0] * g[0] + x[1] * g[1] + x[2] * g[2])(m.g.sigmoid())),
    ("part-gates-of-two", lambda: dict(g=weight(3, 5)), (3, 6, 5), lambda m, x: (lambda g: x[0] * g[0] + (x[1] + x[2]) * g[1:].sum(0))(m.g.exp())),
])  # fmt: skip

# What is joined with a parameter or put in another order, and evaluated: as many elements, and not the parameter.
programs("joins", [
    ("join-buffer", lambda: dict(w=weight(3, 4), k=torch.randn(2, 4)), ROWS, lambda m, x: x @ torch.cat([m.w, m.k])[:, :1]),
    ("join-buffer-whole", lambda: dict(w=weight(3, 4), k=torch.randn(2, 4)), ROWS, lambda m, x: x @ torch.cat([m.w, m.k])),
    ("join-range", lambda: dict(w=weight(3)), ROWS, lambda m, x: x * torch.cat([m.w, torch.arange(2.0)])),
    ("join-numbers", lambda: dict(w=weight(3)), ROWS, lambda m, x: x * torch.cat([m.w, torch.tensor([1.0, -2.0])])),
    ("join-zeros", lambda: dict(w=weight(3)), ROWS, lambda m, x: x * torch.cat([m.w, torch.zeros(2)])),
    ("join-ones", lambda: dict(w=weight(3)), ROWS, lambda m, x: x * torch.cat([torch.ones(2), m.w])),
    ("join-padded", lambda: dict(w=weight(4, 3)), ROWS, lambda m, x: x @ F.pad(m.w, (0, 0, 1, 0))),
    ("join-stacked-buffer", lambda: dict(w=weight(5), k=torch.randn(5)), ROWS, lambda m, x: x @ torch.stack([m.w, m.k], 1)),
    ("join-halves-swapped", lambda: dict(w=weight(6, 5)), ROWS, lambda m, x: x @ torch.cat(m.w.chunk(2)[::-1]).T),
    ("join-rows-reversed", lambda: dict(w=weight(3, 5)), ROWS, lambda m, x: x @ torch.stack(m.w.unbind(0)[::-1], 1)),
    ("join-vector-turned", lambda: dict(w=weight(6)), (4, 6), lambda m, x: x * m.w.view(2, 3).t().reshape(6)),
    ("join-vector-halves", lambda: dict(w=weight(6)), (4, 6), lambda m, x: x * torch.cat([m.w[3:], m.w[:3]])),
    ("join-vector-columns", lambda: dict(w=weight(2, 3)), (4, 6), lambda m, x: x * m.w.t().flatten()),
    ("join-heads-turned", lambda: dict(w=weight(4, 6)), (5, 6), lambda m, x: x @ m.w.view(2, 2, 6).transpose(0, 1).reshape(4, 6).T),
    ("join-masked-rows", lambda: dict(w=weight(6, 4), k=torch.tensor([True, False, True, True, False, True])), dict(x=(3, 4)), lambda m, x: x @ m.w[m.k].T),
    ("join-buffer-index", lambda: dict(w=weight(4, 5), k=torch.tensor([2, 0, 3, 1])), ROWS, lambda m, x: x @ m.w[m.k].T),
    ("join-square-turned-view", lambda: dict(w=weight(4, 4)), (6, 8), lambda m, x: x @ m.w.t().reshape(8, 2)),
    ("join-square-view", lambda: dict(w=weight(4, 4)), (6, 8), lambda m, x: x @ m.w.reshape(8, 2)),
    ("join-two-plain", lambda: dict(w=weight(4), v=weight(4)), (6, 8), lambda m, x: x * torch.cat([m.w, m.v])),
    ("join-two-orders", lambda: dict(w=weight(4), v=weight(4)), (6, 8), lambda m, x: x * torch.stack([m.w, m.v], 1).flatten()),
    ("join-square-of-three", lambda: dict(w=weight(3, 3, 3)), (6, 3), lambda m, x: torch.einsum("bi,ijk->bk", x, m.w.permute(1, 0, 2)) + torch.einsum("bi,ikj->bk", x, m.w.transpose(1, 2))),
])  # fmt: skip
