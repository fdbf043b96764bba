"""Programs of indices, buffers, element types and arithmetic."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import LINEAR, ROWS, labels, programs, weight

programs("index", [
    ("advanced-broadcast", LINEAR, ROWS, lambda m, x: m.a(x)[torch.tensor([[0], [2], [-1]]), torch.tensor([1, -4, 1])]),
    ("advanced-apart", lambda: dict(w=weight(3, 4, 5)), (4, 5), lambda m, x: m.w[torch.tensor([0, 2, 2]), :, torch.tensor([1, -1, 3])] * x[0, :4]),
    ("advanced-middle", lambda: dict(w=weight(3, 4, 5)), (2, 3), lambda m, x: m.w[:, torch.tensor([[0, 3], [3, 1]]), torch.tensor([2, 2])] * x.sum()),
    ("advanced-none", LINEAR, ROWS, lambda m, x: m.a(x)[:, None, torch.tensor([3, 0]), ...]),
    ("put", lambda: dict(a=nn.Linear(5, 4), w=weight(3)), ROWS, lambda m, x: torch.index_put(m.a(x), (torch.tensor([0, 2, 5]), torch.tensor([1, 1, -1])), m.w)),
    ("put-accumulate", lambda: dict(a=nn.Linear(5, 4), w=weight(3)), ROWS, lambda m, x: torch.index_put(m.a(x), (torch.tensor([0, 0, 5]), torch.tensor([1, 1, 3])), m.w, accumulate=True)),
    ("assign-slice", lambda: dict(a=nn.Linear(5, 4), w=weight(4)), ROWS, lambda m, x: assigned(m, x)),
    ("assign-mask", LINEAR, ROWS, lambda m, x: assigned_mask(m, x)),
    ("masked-scatter", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4)), ROWS, lambda m, x: m.a(x).masked_scatter(x[:, :4] > 0, m.b(x))),
    ("masked-fill-tensor", lambda: dict(a=nn.Linear(5, 4), w=nn.Parameter(torch.tensor(0.3))), ROWS, lambda m, x: m.a(x).masked_fill(x[:, :1] > 0, m.w)),
    ("where-scalars", LINEAR, ROWS, lambda m, x: torch.where(m.a(x) > 0, 0.5, torch.where(m.a(x) < -0.5, m.a(x) * 2, m.a(x)))),
    ("take-negative", LINEAR, ROWS, lambda m, x: torch.take(m.a(x), torch.tensor([[0, 7], [23, -1]]))),
    ("take-along", LINEAR, dict(x=ROWS, i=lambda: labels(4, 6, 7)), lambda m, x, i: torch.take_along_dim(m.a(x), i, 1)),
    ("columns", lambda: dict(w=weight(4, 4)), dict(x=(4, 6), i=lambda: labels(4, 6)), lambda m, x, i: m.w[:, i] * x),
    ("columns-apart", lambda: dict(w=weight(4, 3, 4)), dict(x=(6, 3), i=lambda: labels(4, 6)), lambda m, x, i: m.w[i, :, i.flip(0)] * x),
    ("rows-added", lambda: dict(w=weight(4, 4)), dict(x=(6, 4), i=lambda: labels(4, 6)), lambda m, x, i: m.w.index_put((i,), x, accumulate=True).tanh()),
    ("experts-turned", lambda: dict(w=weight(3, 4, 4)), (3, 2, 4), lambda m, x: x @ m.w.transpose(1, 2)),
    ("gather-repeated", LINEAR, dict(x=ROWS, i=lambda: labels(6, 9, 4)), lambda m, x, i: m.a(x).gather(0, i)),
    ("index-select-twice", LINEAR, dict(x=ROWS, i=lambda: labels(6, 9)), lambda m, x, i: m.a(x).index_select(0, i).index_select(1, torch.tensor([3, 3, 0]))),
    ("index-add", LINEAR, dict(x=ROWS, i=lambda: labels(3, 6)), lambda m, x, i: torch.zeros(3, 4).index_add(0, i, m.a(x), alpha=0.5)),
    ("index-copy", LINEAR, ROWS, lambda m, x: torch.ones(7, 4).index_copy(0, torch.tensor([6, 1, 2, 0, 3, 4]), m.a(x))),
    ("index-fill", LINEAR, ROWS, lambda m, x: m.a(x).index_fill(1, torch.tensor([0, 2]), 0.25)),
    ("index-reduce", LINEAR, dict(x=ROWS, i=lambda: labels(3, 6)), lambda m, x, i: torch.ones(3, 4).index_reduce(0, i, m.a(x), "mean", include_self=False)),
    ("scatter-value", LINEAR, dict(x=ROWS, i=lambda: labels(4, 6, 2)), lambda m, x, i: m.a(x).scatter(1, i, 0.5)),
    ("scatter-multiply", LINEAR, dict(x=ROWS, i=lambda: labels(4, 6, 4)), lambda m, x, i: torch.ones(6, 4).scatter_reduce(1, i, m.a(x), "prod")),
    ("scatter-amax-out", LINEAR, dict(x=ROWS, i=lambda: labels(4, 6, 4)), lambda m, x, i: torch.zeros(6, 4).scatter_reduce(1, i, m.a(x), "amax", include_self=False)),
    ("scatter-amin", LINEAR, dict(x=ROWS, i=lambda: labels(4, 6, 4)), lambda m, x, i: torch.zeros(6, 4).scatter_reduce(1, i, m.a(x), "amin")),
    ("scatter-mean-in", LINEAR, dict(x=ROWS, i=lambda: labels(4, 6, 4)), lambda m, x, i: torch.ones(6, 4).scatter_reduce(1, i, m.a(x), "mean")),
    ("scatter-shorter", LINEAR, dict(x=ROWS, i=lambda: labels(8, 3, 2)), lambda m, x, i: torch.zeros(8, 4).scatter_add(0, i, m.a(x))),
    ("slice-scatter", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 2)), ROWS, lambda m, x: m.a(x).slice_scatter(m.b(x), 1, 0, 4, 2)),
    ("select-scatter", lambda: dict(a=nn.Linear(5, 4), w=weight(6)), ROWS, lambda m, x: m.a(x).select_scatter(m.w, 1, -1)),
    ("diagonal-scatter", lambda: dict(w=weight(4, 4), d=weight(3)), (2, 4), lambda m, x: x @ m.w.diagonal_scatter(m.d, 1)),
    ("roll-flip", LINEAR, ROWS, lambda m, x: m.a(x).roll((2, -1), (0, 1)).flip(0) + m.a(x).roll(3)),
    ("rot90", LINEAR, ROWS, lambda m, x: torch.rot90(m.a(x), 1, (0, 1)) * 2 + torch.rot90(m.a(x), 3, (0, 1))),
    ("unfold-overlap", LINEAR, ROWS, lambda m, x: m.a(x).unfold(0, 3, 2).unfold(1, 2, 1)),
    ("im2col", lambda: dict(a=nn.Conv2d(1, 2, 1)), (2, 1, 6, 7), lambda m, x: F.fold(F.unfold(m.a(x), 3, dilation=2, padding=1, stride=(1, 2)).tanh(), (6, 7), 3, dilation=2, padding=1, stride=(1, 2))),
    ("triangles", lambda: dict(w=weight(4, 5)), (2, 4), lambda m, x: x @ (m.w.tril(1) + 2 * m.w.triu(-1) + 3 * torch.tril(m.w, -2))),
    ("diagonals", lambda: dict(w=weight(4, 5), d=weight(2, 3)), (2, 4), lambda m, x: torch.diagonal(m.w, -1).sum() + torch.diag_embed(m.d, 1).sum(0) + torch.diag(m.d[0], -1)),
    ("cumulated", LINEAR, ROWS, lambda m, x: m.a(x).cumsum(0) + m.a(x).flip(1).cumsum(1).flip(1) + m.a(x).cumprod(0)),
    ("cumprod-zero", LINEAR, ROWS, lambda m, x: F.relu(m.a(x)).cumprod(1)),
    ("logcumsumexp", LINEAR, ROWS, lambda m, x: torch.logcumsumexp(m.a(x), 1)),
    ("cummax", LINEAR, ROWS, lambda m, x: m.a(x).cummax(0).values + m.a(x).cummin(1)[0]),
    ("sorted", LINEAR, ROWS, lambda m, x: m.a(x).sort(0, descending=True).values * m.a(x).argsort(1).float()),
    ("topk-least", LINEAR, ROWS, lambda m, x: (lambda v: v.values * (v.indices + 1))(m.a(x).topk(2, 0, largest=False))),
    ("order-statistics", LINEAR, ROWS, lambda m, x: m.a(x).kthvalue(2, 1).values + m.a(x).median(1).values),
    ("median-all", LINEAR, ROWS, lambda m, x: m.a(x).median() + m.a(x).max() * m.a(x).min()),
    ("quantile", LINEAR, ROWS, lambda m, x: torch.quantile(m.a(x), 0.3, dim=0)),
    ("searched", lambda: dict(a=nn.Linear(5, 4), w=weight(6, 4)), ROWS, lambda m, x: m.a(x) * m.w[torch.searchsorted(torch.tensor([-1.0, -0.2, 0.3, 0.9]), x[:, 0])] + m.w[torch.bucketize(x[:, 1], torch.tensor([-0.5, 0.0, 0.5]), right=True)]),
    ("one-hot", LINEAR, dict(x=ROWS, y=lambda: labels(4, 6)), lambda m, x, y: m.a(x) * F.one_hot(y, 4) + F.one_hot(y % 3, 4).cumsum(0)),
    ("repeated", LINEAR, ROWS, lambda m, x: m.a(x).repeat_interleave(2, 0).repeat(1, 2) + m.a(x).tile(2, 2)),
    ("repeat-tensor", LINEAR, ROWS, lambda m, x: m.a(x).repeat_interleave(torch.tensor([1, 0, 2, 1, 3, 1]), 0)),
    ("grids", lambda: dict(p=weight(3), q=weight(4)), (2, 4), lambda m, x: (lambda g: x @ (g[0] * g[1].sin()))(torch.meshgrid(m.q, m.p, indexing="ij"))),
    ("products", lambda: dict(p=weight(2, 3), q=weight(3, 2), v=weight(3)), (2, 9), lambda m, x: torch.kron(m.p, m.q).T @ x.T[:6] + torch.linalg.cross(m.q.T, m.v[None]).sum() + torch.outer(m.v, m.v).trace()),
    ("block-diagonal", lambda: dict(p=weight(2, 3), q=weight(3, 2)), (2, 5), lambda m, x: x @ torch.block_diag(m.p, m.q)),
    ("distances", LINEAR, dict(x=ROWS, z=ROWS), lambda m, x, z: torch.cdist(m.a(x), m.a(z), p=1) + torch.cdist(m.a(x), m.a(z), p=2) + torch.cdist(m.a(x), m.a(z), p=3)),
    ("pdist", LINEAR, ROWS, lambda m, x: F.pdist(m.a(x))),
    ("differences", LINEAR, ROWS, lambda m, x: torch.diff(m.a(x), n=2, dim=0) + torch.trapezoid(m.a(x), dim=0)),
    ("tensordot", lambda: dict(w=weight(3, 4, 5)), (2, 5, 4), lambda m, x: torch.tensordot(x, m.w, dims=([1, 2], [2, 1])) + torch.tensordot(m.w, x, dims=([1, 2], [2, 1])).T),
    ("uneven-splits", LINEAR, ROWS, lambda m, x: (lambda c, s: c[0][:2] * c[-1] + s[1][:2] * s[0][:2, :1])(m.a(x).chunk(4, 0), m.a(x).tensor_split(3, 1))),
    ("strided", LINEAR, ROWS, lambda m, x: m.a(x).as_strided((3, 3), (4, 2), 1)),
    ("slices", LINEAR, ROWS, lambda m, x: m.a(x)[-4:-1:2, ::3] + m.a(x)[::5, -1:] + m.a(x).narrow(0, -2, 2)[:, :1]),
    ("unbound", LINEAR, ROWS, lambda m, x: torch.stack([r * i for i, r in enumerate(m.a(x).unbind(1))], -1).movedim(0, -1).swapaxes(0, 1)),
    ("searched-row", LINEAR, ROWS, lambda m, x: m.a(x)[m.a(x).argmax(0), torch.arange(4)] + m.a(x)[m.a(x)[:, 0].argmin()]),
    ("view-dtype-bool", LINEAR, ROWS, lambda m, x: m.a(x) * (x[:, :4] > 0) + (x[:, 1:] > 0).int().cumsum(0)),
    ("nonzero", LINEAR, ROWS, lambda m, x: m.a(x)[x[:, 0] > 0].sum(0)),
    ("unique", LINEAR, dict(x=ROWS, y=lambda: labels(4, 6)), lambda m, x, y: m.a(x).sum(0)[torch.unique(y)[:1]]),
    ("histogram", LINEAR, dict(x=ROWS, y=lambda: labels(4, 6)), lambda m, x, y: m.a(x) * torch.bincount(y, minlength=4)),
    ("renorm", LINEAR, ROWS, lambda m, x: torch.renorm(m.a(x), 2, 0, 0.5)),
    ("scaled-operands", lambda: dict(a=nn.Linear(5, 4), b=weight(4), g=weight(4), s=weight(4)), ROWS, lambda m, x: torch.addcmul(m.b, m.g, m.a(x)) + torch.addcmul(x[:, 1:], m.s, m.a(x), value=0.3)),
    ("lerp", lambda: dict(a=nn.Linear(5, 4), w=nn.Parameter(torch.tensor(0.3))), ROWS, lambda m, x: torch.lerp(m.a(x), x[:, :4], m.w) + torch.addcmul(m.a(x), x[:, :4], x[:, 1:], value=0.3) + torch.addcdiv(m.a(x), x[:, :4], 2 + x[:, 1:].abs(), value=-2)),
    ("baddbmm", lambda: dict(w=weight(2, 3, 4), v=weight(2, 4)), (2, 2, 3), lambda m, x: torch.baddbmm(m.v, x, m.w, beta=0.5, alpha=2.0) + torch.addbmm(m.v, x, m.w) + torch.addmv(m.v[:, 0], m.w[0].T[:2], x[0, 0])[:, None]),
    ("einsum-forms", lambda: dict(w=weight(3, 4), v=weight(4, 4), u=weight(2, 3, 3)), (2, 3, 4), lambda m, x: torch.einsum("bij,ij->b", x, m.w)[:, None] + torch.einsum("ii->i", m.v) + torch.einsum("bii,bij->bj", m.u, x) + torch.einsum("b...j,kj->b...k", x, m.v).sum(1) + torch.einsum("bij,bkj,kl->bl", x, x, m.w)),
    ("einsum-list", lambda: dict(w=weight(3, 4)), (2, 3, 4), lambda m, x: torch.einsum("bij,ij,bij->ji", x, m.w, x)),
])  # fmt: skip


def assigned(m, x):
    h = m.a(x).clone()
    h[:, 1:3] = m.w[:2]
    h[::2, 0] += m.w[2]
    h[-1] *= m.w
    h[:2] = h[1:3].clone()
    return h


def assigned_mask(m, x):
    h = m.a(x).clone()
    h[x[:, :4] > 0.5] = 0.25
    h[x[:, 0] < 0] *= 2
    return h



programs("buffer", [
    ("counter", lambda: dict(a=nn.Linear(5, 4), n=torch.zeros(())), ROWS, lambda m, x: counted(m, x)),
    ("average", lambda: dict(a=nn.Linear(5, 4), e=torch.zeros(4)), ROWS, lambda m, x: averaged(m, x)),
    ("queue", lambda: dict(a=nn.Linear(5, 4), q=torch.randn(9, 4)), ROWS, lambda m, x: queued(m, x)),
    ("running-max", lambda: dict(a=nn.Linear(5, 4), s=torch.ones(4)), ROWS, lambda m, x: scaled(m, x)),
    ("read-only", lambda: dict(a=nn.Linear(5, 4), mean=torch.randn(5), scale=torch.rand(4) + 0.5, table=torch.randn(7, 4)), dict(x=ROWS, i=lambda: labels(7, 6)), lambda m, x, i: m.a(x - m.mean) / m.scale + m.table[i]),
    ("whole-numbers", lambda: dict(a=nn.Linear(5, 4), order=torch.tensor([3, 1, 0, 2]), keep=torch.tensor([True, False, True, True])), ROWS, lambda m, x: m.a(x)[:, m.order] * m.keep),
    ("untrained", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(4, 4).requires_grad_(False)), ROWS, lambda m, x: m.b(m.a(x))),
])  # fmt: skip


def counted(m, x):
    m.n.add_(1)
    return m.a(x) / (1 + m.n)


def averaged(m, x):
    h = m.a(x)
    m.e.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
    return h - m.e


def queued(m, x):
    h = m.a(x)
    loss = F.cross_entropy(h @ m.q.T.clone(), torch.zeros(6, dtype=torch.long))
    m.q.copy_(torch.cat([h.detach(), m.q[:3]]))
    return loss


def scaled(m, x):
    h = m.a(x)
    m.s.copy_(torch.maximum(m.s * 0.9, h.detach().abs().amax(0)))
    return h / m.s


programs("type", [
    ("half", lambda: dict(a=nn.Linear(5, 4)), ROWS, lambda m, x: m.a(x).half().float() * 2),
    ("double", LINEAR, ROWS, lambda m, x: (m.a(x).double() ** 2).float()),
    ("whole-inputs", LINEAR, dict(x=lambda: labels(9, 6, 5)), lambda m, x: m.a(x / 8)),
    ("bytes", LINEAR, dict(x=lambda: labels(255, 6, 5).byte()), lambda m, x: m.a(x.float() / 255)),
    ("floor-divisions", lambda: dict(a=nn.Embedding(9, 4)), dict(i=lambda: labels(21, 6) - 10), lambda m, i: m.a((i // 4) % 9) + m.a(torch.div(i, 4, rounding_mode="trunc") + 4) + m.a(torch.fmod(i, 4) + 4) + m.a(torch.remainder(i, -5) + 4)),
    ("float-divisions", LINEAR, ROWS, lambda m, x: m.a(x) * torch.floor_divide(x[:, :4], 0.7) + torch.remainder(m.a(x), 0.7) + torch.fmod(m.a(x), 0.7) + m.a(x) % -0.3),
    ("rounding", LINEAR, dict(x=lambda: labels(9, 6, 5) / 2 - 2), lambda m, x: m.a(x.round()) + m.a(x.trunc()) + m.a(x.floor()) + m.a(x.ceil()) + m.a(x.frac()) + m.a(x.round(decimals=1))),
    ("shifts", lambda: dict(a=nn.Embedding(16, 4)), dict(i=lambda: labels(16, 6)), lambda m, i: m.a((i << 1) & 15) + m.a(i >> 1) + m.a(i ^ 5) + m.a((i | 3) & 15) + m.a((~i) & 15)),
    ("overflow", lambda: dict(a=nn.Embedding(16, 4)), dict(i=lambda: labels(2**31 - 1, 6)), lambda m, i: m.a((i * 0x5851F42D4C957F2D + 1442695040888963407) & 15) + m.a((i.int() * 747796405).long() & 15)),
    ("to-whole", lambda: dict(a=nn.Embedding(16, 4), b=nn.Linear(5, 4)), ROWS, lambda m, x: m.a((m.b(x)[:, 0] * -2.5).long() + 8) + m.b(x)),
    ("scalar-mix", LINEAR, ROWS, lambda m, x: m.a(x) * torch.tensor(3) + torch.arange(4) * True + m.a(x) / x.shape[0] + (x[:, :4] > 0) * 2),
    ("comparisons", LINEAR, ROWS, lambda m, x: torch.where((m.a(x) >= 0) & ~(x[:, :4] != x[:, 1:]) | (m.a(x) < -0.3), m.a(x), -m.a(x)) * torch.isclose(x[:, :4], x[:, :4]) + m.a(x).sign() * m.a(x).heaviside(torch.tensor(0.5))),
])  # fmt: skip

programs("arithmetic", [
    ("clamp-tensors", lambda: dict(a=nn.Linear(5, 4), low=nn.Parameter(torch.full((4,), -0.3)), high=nn.Parameter(torch.full((4,), 0.4))), ROWS, lambda m, x: torch.clamp(m.a(x), m.low, m.high)),
    ("spreads", LINEAR, ROWS, lambda m, x: m.a(x).std(0, correction=0) + m.a(x).var(0, correction=2) + torch.std_mean(m.a(x), 0)[1] + m.a(x).std() + torch.var_mean(m.a(x), (0, 1), keepdim=True)[0]),
    ("log-sum-exp-minus-infinity", LINEAR, ROWS, lambda m, x: torch.logsumexp(m.a(x).masked_fill(x[:, :4] > 0, -math.inf), 0)),
    ("add-exp", LINEAR, ROWS, lambda m, x: torch.logaddexp(m.a(x), x[:, :4]) + torch.logaddexp2(m.a(x), x[:, 1:])),
    ("powers", LINEAR, ROWS, lambda m, x: m.a(x).abs().pow(x[:, :4]) + m.a(x).pow(3) + m.a(x) ** 2 + 2 ** m.a(x) + m.a(x).abs() ** 0.5 + (1 + m.a(x).abs()) ** -1.5 + torch.float_power(m.a(x), 2).float()),
    ("powers-of-zero", LINEAR, ROWS, lambda m, x: F.relu(m.a(x)).pow(2) + F.relu(m.a(x)) ** 1 + F.relu(m.a(x)) ** 0 + F.relu(m.a(x)).pow(1.5)),
    ("angles", LINEAR, ROWS, lambda m, x: torch.atan2(m.a(x), x[:, :4]) + torch.hypot(m.a(x), x[:, 1:]) + torch.deg2rad(m.a(x)) + torch.copysign(m.a(x), x[:, :4])),
    ("x-log-y", LINEAR, ROWS, lambda m, x: torch.xlogy(F.relu(x[:, :4]), m.a(x).exp()) + torch.special.xlog1py(m.a(x), x[:, 1:].abs())),
    ("extremes", LINEAR, dict(x=ROWS, z=ROWS), lambda m, x, z: torch.fmax(m.a(x), m.a(z)) + torch.minimum(m.a(x), z[:, :4]) + torch.aminmax(m.a(x), dim=0).min + m.a(x).amax((0, 1)) + m.a(x).max(1, keepdim=True)[0]),
    ("norms", LINEAR, ROWS, lambda m, x: m.a(x).norm() + m.a(x).norm(p=1, dim=1)[:, None] + torch.linalg.vector_norm(m.a(x), 3, dim=0) + torch.linalg.vector_norm(m.a(x), math.inf, 0) + torch.linalg.matrix_norm(m.a(x)) + m.a(x).norm(p=0.5, dim=0)),
    ("zero-dimensional", lambda: dict(s=nn.Parameter(torch.tensor(0.5)), t=nn.Parameter(torch.tensor([0.2]))), dict(x=(1,)), lambda m, x: m.s * x + m.t.squeeze() ** 2 + (m.s * m.t)[0].unsqueeze(0)),
    ("one-element", lambda: dict(a=nn.Linear(1, 1)), (1, 1), lambda m, x: m.a(x).squeeze() * m.a(x).mean() + m.a(x).var(unbiased=False)),
    ("empty", lambda: dict(a=nn.Linear(5, 4), e=torch.zeros(0, 4)), ROWS, lambda m, x: torch.cat([m.e, m.a(x), m.a(x)[6:]]) + m.a(x)[:0].sum()),
    ("empty-list", LINEAR, ROWS, lambda m, x: torch.cat([torch.zeros(6, 0), m.a(x)], 1)),
    ("product-of-all", LINEAR, ROWS, lambda m, x: m.a(x).prod(1) + m.a(x).prod() + F.relu(m.a(x)).prod(0).sum()),
    ("reductions", LINEAR, ROWS, lambda m, x: m.a(x).nansum(0) + m.a(x).nanmean(0) + m.a(x).mean((0, 1), keepdim=True) + m.a(x).sum(dim=-1).sum() + torch.all(m.a(x) > -9) * m.a(x)[0] + torch.count_nonzero(m.a(x), 0)),
    ("detached", LINEAR, ROWS, lambda m, x: m.a(x) * m.a(x).detach() + (m.a(x) - m.a(x).detach()) * m.a(x).mean().detach()),
    ("control-flow", LINEAR, ROWS, lambda m, x: m.a(x) if x.shape[0] > 3 and m.training else -m.a(x)),
    ("loop-of-layers", lambda: dict(a=nn.ModuleList([nn.Linear(5, 5) for _ in range(3)])), ROWS, lambda m, x: sum(f(x) * (i + 1) for i, f in enumerate(m.a))),
    ("triangular-solve", lambda: dict(w=weight(4, 4)), (2, 4), lambda m, x: torch.linalg.solve_triangular(m.w.tril() + 3 * torch.eye(4), x.T, upper=False)),
    ("inverse", lambda: dict(w=weight(4, 4)), (2, 4), lambda m, x: x @ torch.linalg.inv(m.w + 3 * torch.eye(4))),
    ("complex-free-rotation", LINEAR, ROWS, lambda m, x: torch.stack([m.a(x)[:, ::2] * x[:, :2].cos() - m.a(x)[:, 1::2] * x[:, :2].sin(), m.a(x)[:, ::2] * x[:, :2].sin() + m.a(x)[:, 1::2] * x[:, :2].cos()], -1).flatten(1)),
    ("spectrum", LINEAR, ROWS, lambda m, x: torch.fft.rfft(m.a(x), dim=0).abs()),
    ("polynomial", lambda: dict(c=weight(4)), (6,), lambda m, x: torch.vander(x, 4) @ m.c + ((m.c[0] * x + m.c[1]) * x + m.c[2]) * x),
])  # fmt: skip
