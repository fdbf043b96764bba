"""Tables of 200,000 rows, of which a batch names a few thousand."""

import torch
from torch import nn
from torch.nn import functional as F

from devkit.peak_models import Case

ROWS, WIDTH, BATCH, NAMED = 200_000, 64, 512, 8


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(ROWS, WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, x, labels, sparse=False):
        rows = F.embedding(x, self.table.weight, sparse=sparse)
        return F.binary_cross_entropy_with_logits(self.head(rows.mean(1)).squeeze(1), labels)


def feeds():
    random = torch.Generator().manual_seed(0)
    return {"x": torch.randint(0, ROWS, (BATCH, NAMED), generator=random), "labels": torch.rand(BATCH, generator=random)}


def by_hand(module, feeds):
    return module(**feeds, sparse=True)


def loss(module, feeds):
    return module(**feeds)


HAND = "gradients of rows alone (sparse=True)"
CASES = [
    Case("sgd", Table, feeds, loss, optimizer="SGD", flags=("--optimizer=sgd",), hand=by_hand, by_hand=HAND),
    Case("adagrad", Table, feeds, loss, optimizer="Adagrad", flags=("--optimizer=adagrad",), hand=by_hand, by_hand=HAND),
]
