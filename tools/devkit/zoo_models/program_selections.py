"""Rows that data select: masks as indices, edges without loops, tokens of an expert. Data decide how many there are."""

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import booleans, labels, programs

# Twelve rows of eight numbers, which of them count, and classes.
MASKED = dict(x=(12, 8), m=lambda: booleans(12), y=lambda: labels(5, 12))
PARTS = lambda: dict(a=nn.Linear(8, 8), h=nn.Linear(8, 5))  # noqa: E731


def all_read(forward):
    """The program, of which every input is a part."""
    return lambda m, x, k, y: forward(m, x + 0 * (k.to(x.dtype) + y.to(x.dtype))[:, None], k, y)


def assigned(m, x, k, y):
    z = torch.tanh(m.a(x)).clone()
    z[k] = m.a(z[k]) * 2
    return F.cross_entropy(m.h(z), y)


def overwritten(m, x, k, y):
    z = torch.tanh(m.a(x)).clone()
    z[k] = m.token
    return F.cross_entropy(m.h(z), y)


def written(m, x, k, y):
    """Some places more than once: each update has the gradient of its place."""
    z = torch.tanh(m.a(x)).clone()
    z[y.clamp(max=2)] = m.token
    z[y.clamp(max=2), 1] = m.a(x).mean()
    return F.cross_entropy(m.h(z), y)


def pooled(m, x, k, y):
    rows = x[k]
    weights = torch.softmax(m.a(rows)[:, 0], 0)
    scores = F.log_softmax(m.h(rows), -1)
    return -scores[torch.arange(rows.shape[0]), y[k]].sum() / rows.shape[0] + m.h((weights[:, None] * rows).sum(0)).pow(2).sum()


def boxes(m, x, k, y):
    found, wanted = m.a(x).reshape(-1, 4, 2)[k], x.reshape(-1, 4, 2)[k]
    overlap = torch.minimum(found, wanted).clamp(min=0).sum((1, 2)) / torch.maximum(found, wanted).abs().sum((1, 2))
    return F.smooth_l1_loss(found, wanted, reduction="sum") / k.sum().clamp(min=1) + (1 - overlap).mean() + F.cross_entropy(m.h(x), y)


def covariance(m, x, k, y):
    rows = m.a(x)[k]
    centered = rows - rows.mean(0)
    return (centered.T @ centered / (rows.size(0) - 1)).pow(2).mean() + rows.var(0).sum() + rows.std()


def running(m, x, k, y):
    rows = m.a(x)[k]
    return (torch.cumsum(rows, 0) * torch.arange(rows.shape[0], dtype=x.dtype)[:, None]).mean() + rows[-1].sum() + rows[0].pow(2).sum()


def joined(m, x, k, y):
    h = m.a(x)
    rows = m.h(torch.cat([h[k], x, h[~k]]))
    return rows.pow(2).mean() + rows.softmax(0).pow(2).sum() + torch.cat([x, h[k]]).max()


def grouped(m, x, k, y):
    # The same number in each: the weights of some among them, and the last of each.
    rows = m.a(x)[k].view(3, -1, 8)
    pooled = torch.softmax(rows[..., :1], 1) * rows
    return F.cross_entropy(m.h(rows[:, -1, :] + pooled.sum(1) + rows.mean(1)), y)


def attending(m, x, k, y):
    # Rows of a selection next to each other and below each other: two dimensions of one tensor.
    rows = m.a(x)[k]
    return F.cross_entropy(m.h(torch.softmax(rows @ rows.T / 3, -1) @ rows), y[k])


programs("selections", [
    ("select-labels", PARTS, MASKED, lambda m, x, k, y: F.cross_entropy(m.h(torch.tanh(m.a(x)))[k], y[k])),
    ("select-labels-sum", PARTS, MASKED, lambda m, x, k, y: F.nll_loss(F.log_softmax(m.h(m.a(x)[k]), 1), y[k], reduction="sum")),
    ("select-logarithm", lambda: dict(a=nn.Linear(8, 8)), MASKED, all_read(lambda m, x, k, y: (lambda h, p: (h[p] + 0.5).log().mean() + (h[p] + 0.5).rsqrt().sum())(m.a(x), m.a(x) > 0))),
    ("select-nested", PARTS, MASKED, lambda m, x, k, y: (lambda h, t: m.h(h[t > 1]).pow(2).mean())(m.a(x)[k], y[k])),
    ("select-two-masks", PARTS, MASKED, lambda m, x, k, y: (lambda h: h[k].pow(2).mean() - h[y > 2].mean() + (h[k].mean(0) * h[y > 2].mean(0)).sum())(m.h(m.a(x).tanh()))),
    ("select-none", PARTS, MASKED, all_read(lambda m, x, k, y: m.a(x).pow(2).mean() + m.h(m.a(x)[y > 9]).abs().sum())),
    ("select-assigned", PARTS, MASKED, assigned),
    ("select-written", lambda: PARTS() | dict(token=nn.Parameter(torch.randn(8))), MASKED, all_read(written)),
    ("select-overwritten", lambda: PARTS() | dict(token=nn.Parameter(torch.randn(8))), MASKED, overwritten),
    ("select-elements", PARTS, MASKED, all_read(lambda m, x, k, y: (lambda h: torch.masked_select(h, h > 0.1).pow(2).sum() + torch.masked_select(h, k[:, None]).mean())(m.a(x).tanh()))),
    ("select-places", PARTS, MASKED, lambda m, x, k, y: (lambda i: F.cross_entropy(m.h(m.a(x).index_select(0, i)), y.index_select(0, i)))(torch.nonzero(k).squeeze(1))),
    ("select-largest", PARTS, MASKED, all_read(lambda m, x, k, y: (lambda h: h.amax(0).sum() + h.max(0).values.sum() + h.norm() + torch.logsumexp(h, 0).sum() - h.min())(m.a(x)[k]))),
    ("select-keys", PARTS, MASKED, lambda m, x, k, y: F.cross_entropy(m.h(torch.softmax(m.a(x) @ m.a(x)[k].T / 3, -1) @ m.a(x)[k]), y)),
    ("select-pooled", PARTS, MASKED, pooled),
    ("select-boxes", PARTS, MASKED, boxes),
    ("select-covariance", PARTS, MASKED, all_read(covariance)),
    ("select-running", PARTS, MASKED, all_read(running)),
    ("select-joined", PARTS, MASKED, all_read(joined)),
    ("select-norm", lambda: PARTS() | dict(n=nn.LayerNorm(8)), MASKED, lambda m, x, k, y: F.binary_cross_entropy_with_logits(m.h(F.gelu(m.n(m.a(x)[k]))), F.one_hot(y[k], 5).to(x.dtype))),
    ("select-flat", PARTS, MASKED, lambda m, x, k, y: (lambda h: (h[torch.where(k)[0], y[k]] * h[k][:, 1]).mean() + h[k][:, :3].reshape(-1).pow(2).mean() + h[k].flatten().std())(m.h(m.a(x)))),
    ("select-group", PARTS, dict(x=(3, 6, 8), m=lambda: torch.tensor([[1, 0, 1, 1, 0, 0]] * 3)[:, torch.randperm(6)] > 0, y=lambda: labels(5, 3)), grouped),
    ("select-shares", PARTS, MASKED, lambda m, x, k, y: (lambda h: F.cross_entropy(h.log_softmax(0), y[k]) + h.softmax(0).log().mean())(m.h(m.a(x))[k])),
    ("select-attending", PARTS, MASKED, attending),
    ("select-filled", PARTS, MASKED, lambda m, x, k, y: F.cross_entropy(m.h(torch.masked_scatter(x.tanh(), k[:, None], m.a(x)[:, :6].flatten())), y)),
    ("select-batch-norm", lambda: PARTS() | dict(n=nn.BatchNorm1d(8)), MASKED, lambda m, x, k, y: F.cross_entropy(m.h(m.n(m.a(x)[k])), y[k])),
])  # fmt: skip


def looped(edges, weights, nodes):
    """Edges but loops, and then a loop for each node, as graph convolutions add them."""
    kept, loops = edges[0] != edges[1], torch.arange(nodes)
    return torch.cat([edges[:, kept], torch.stack([loops, loops])], 1), torch.cat([weights[kept], torch.ones(nodes, dtype=weights.dtype)])


def convolved(x, edges, weights):
    (rows, columns), weights = looped(edges, weights, x.shape[0])
    scale = torch.zeros_like(x[:, 0]).scatter_add(0, columns, weights).pow(-0.5)
    scale = scale.masked_fill(scale == float("inf"), 0)
    return torch.zeros_like(x).index_add(0, columns, (scale[rows] * weights * scale[columns])[:, None] * x[rows])


def attended(x, edges, weights):
    (rows, columns), weights = looped(edges, weights, x.shape[0])
    score = F.leaky_relu((x[rows] * x[columns]).sum(1) * weights, 0.2)
    top = torch.full_like(x[:, 0], float("-inf")).scatter_reduce(0, columns, score.detach(), "amax")
    score = (score - top[columns]).exp()
    total = torch.zeros_like(x[:, 0]).scatter_add(0, columns, score)
    return torch.zeros_like(x).index_add(0, columns, (score / (total[columns] + 1e-16))[:, None] * x[rows])


def laplacian(x, edges, weights):
    (rows, columns), weights = looped(edges, weights, x.shape[0])
    weights = weights / weights.max()
    weights[rows == columns] -= 1
    return torch.zeros_like(x).index_add(0, columns, weights[:, None] * x[rows])


def ends():
    edges = labels(10, 2, 30)
    edges[1, :5] = edges[0, :5]
    return edges


def experts(m, x, y):
    rows = x.reshape(-1, x.shape[-1])
    shares, chosen = torch.topk(F.softmax(m.g(rows), 1), 2, dim=-1)
    out, mask = torch.zeros_like(rows), F.one_hot(chosen, 3).permute(2, 1, 0)
    for number, expert in enumerate(m.e):
        which, token = torch.where(mask[number])
        out = out.index_add(0, token, expert(rows[token]) * shares[token, which, None])
    return F.cross_entropy(m.o(out), y.reshape(-1))


GRAPH = dict(x=(10, 8), e=ends, w=lambda: torch.rand(30) + 0.5, y=lambda: labels(5, 10))
EXPERTS = lambda: dict(g=nn.Linear(8, 3, bias=False), e=nn.ModuleList(nn.Sequential(nn.Linear(8, 12), nn.SiLU(), nn.Linear(12, 8)) for _ in range(3)), o=nn.Linear(8, 5))  # noqa: E731

def closed(m, x, e, w, y):
    # Each node has one loop then, so that a mask selects as many edges as there are nodes.
    (rows, columns), weights = looped(e, w, x.shape[0])
    h = m.a(x)
    weights[rows == columns] += h[:, 0]
    return F.cross_entropy(m.h(torch.zeros_like(h).index_add(0, columns, weights[:, None] * h[rows])), y)


programs("selections", [
    ("select-edges-closed", PARTS, GRAPH, closed),
    ("select-edges", PARTS, GRAPH, lambda m, x, e, w, y: F.cross_entropy(convolved(m.h(F.relu(convolved(m.a(x), e, w))), e, w), y)),
    ("select-edges-attended", PARTS, GRAPH, lambda m, x, e, w, y: F.cross_entropy(m.h(attended(m.a(x), e, w)), y)),
    ("select-edges-laplacian", PARTS, GRAPH, lambda m, x, e, w, y: F.cross_entropy(m.h(laplacian(m.a(x), e, w)), y)),
    ("select-experts", EXPERTS, dict(x=(2, 5, 8), y=lambda: labels(5, 2, 5)), experts),
])  # fmt: skip
