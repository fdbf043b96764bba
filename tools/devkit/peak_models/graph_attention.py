"""Two layers of graph attention over graphs side by side, as torch_geometric writes them."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from devkit.peak_models import Case

GRAPHS, NODES, EDGES, FEATURES, CLASSES = 4, 500, 5000, 64, 16


def summed(values, index, count):
    index = index.view(-1, *[1] * (values.dim() - 1)).expand_as(values)
    return values.new_zeros(count, *values.shape[1:]).scatter_add_(0, index, values)


def largest(values, index, count):
    index = index.view(-1, 1).expand_as(values)
    return values.new_zeros(count, values.shape[1]).scatter_reduce_(0, index, values, "amax", include_self=False)


class Attention(nn.Module):
    def __init__(self, features, width, heads):
        super().__init__()
        self.lin = nn.Linear(features, heads * width)
        self.source, self.target = nn.Parameter(0.3 * torch.randn(heads, width)), nn.Parameter(0.3 * torch.randn(heads, width))

    def attend(self, h, a, b, source, target):
        """h: nodes, heads, width; a and b: heads, width."""
        count = h.shape[0]
        score = (h * a).sum(-1).index_select(0, source) + (h * b).sum(-1).index_select(0, target)
        score = F.leaky_relu(score, 0.2)
        score = (score - largest(score.detach(), target, count).index_select(0, target)).exp()
        share = score / (summed(score, target, count) + 1e-16).index_select(0, target)
        return summed(h.index_select(0, source) * share.unsqueeze(-1), target, count)

    def forward(self, x, source, target, by_heads=False):
        h = self.lin(x).view(x.shape[0], *self.source.shape)
        if not by_heads:
            return self.attend(h, self.source, self.target, source, target).reshape(x.shape[0], -1)
        heads = zip(h.split(1, 1), self.source.split(1), self.target.split(1))
        return torch.cat([checkpoint(self.attend, *head, source, target, use_reentrant=False) for head in heads], 1).flatten(1)


class Graphs(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Attention(FEATURES, 32, 8), Attention(256, CLASSES, 1)

    def forward(self, x, edges, labels, by_heads=False):
        edges = edges + NODES * torch.arange(x.shape[0]).view(-1, 1, 1)
        source, target = edges[:, 0].reshape(-1), edges[:, 1].reshape(-1)
        h = F.elu(self.first(x.reshape(-1, FEATURES), source, target, by_heads))
        return F.cross_entropy(self.second(h, source, target, by_heads), labels.reshape(-1))


def feeds():
    random = torch.Generator().manual_seed(0)
    return {
        "x": torch.randn(GRAPHS, NODES, FEATURES, generator=random),
        "edges": torch.randint(0, NODES, (GRAPHS, 2, EDGES), generator=random),
        "labels": torch.randint(0, CLASSES, (GRAPHS, NODES), generator=random),
    }


CASES = [
    Case(
        "two layers", Graphs, feeds, lambda module, feeds: module(**feeds), inputs=("x", "edges", "labels"), optimizer="SGD",
        flags=("--optimizer=sgd",), hand=lambda module, feeds: module(**feeds, by_heads=True),
        by_hand="one head at a time, recomputed in the backward pass",
    ),
]  # fmt: skip
