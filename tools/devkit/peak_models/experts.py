"""A mixture of eight experts that computes all of them for every token, stacked and one by one."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from devkit.peak_models import Case

TOKENS, WIDTH, HIDDEN, EXPERTS, CLASSES = 1024, 128, 512, 8, 16


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.head = nn.Linear(WIDTH, EXPERTS), nn.Linear(WIDTH, CLASSES)
        self.up = nn.Parameter(0.05 * torch.randn(EXPERTS, WIDTH, HIDDEN))
        self.down = nn.Parameter(0.05 * torch.randn(EXPERTS, HIDDEN, WIDTH))

    def shares(self, x):
        p = torch.softmax(self.gate(x), -1)
        share, chosen = torch.topk(p, 2, -1)
        return torch.zeros_like(p).scatter(1, chosen, share / share.sum(-1, keepdim=True))

    def forward(self, x, labels):
        hidden = F.gelu(torch.einsum("bh,eho->beo", x, self.up))
        out = (self.shares(x).unsqueeze(-1) * torch.einsum("beo,eoh->beh", hidden, self.down)).sum(1)
        return F.cross_entropy(self.head(x + out), labels)


class OneByOne(Experts):
    def forward(self, x, labels):
        shares, out = self.shares(x), 0
        for e in range(EXPERTS):
            out = out + (F.gelu(x @ self.up[e]) @ self.down[e]) * shares[:, e : e + 1]
        return F.cross_entropy(self.head(x + out), labels)


def feeds():
    random = torch.Generator().manual_seed(0)
    return {"x": torch.randn(TOKENS, WIDTH, generator=random), "labels": torch.randint(0, CLASSES, (TOKENS,), generator=random)}


def one(x, up, down, share):
    return (F.gelu(x @ up) @ down) * share


def by_hand(module, feeds):
    x, out = feeds["x"], 0
    shares = module.shares(x)
    for e, (up, down) in enumerate(zip(module.up.unbind(), module.down.unbind())):
        out = out + checkpoint(one, x, up, down, shares[:, e : e + 1], use_reentrant=False)
    return F.cross_entropy(module.head(x + out), feeds["labels"])


def loss(module, feeds):
    return module(**feeds)


HAND = "one expert at a time, recomputed in the backward pass"
CASES = [
    Case("stacked", Experts, feeds, loss, optimizer="SGD", flags=("--optimizer=sgd",), hand=by_hand, by_hand=HAND),
    Case("one by one", OneByOne, feeds, loss, optimizer="SGD", flags=("--optimizer=sgd",), hand=by_hand, by_hand=HAND),
]
