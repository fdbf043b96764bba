"""An LSTM over sequences of three lengths."""

import functools
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from devkit.peak_models import Case

FEATURES, WIDTH, CLASSES, BATCH = 32, 64, 10, 8


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(FEATURES, WIDTH, batch_first=True), nn.Linear(WIDTH, CLASSES)

    def forward(self, x, labels):
        return F.cross_entropy(self.head(self.lstm(x)[0][:, -1]), labels)


def feeds(length):
    random = torch.Generator().manual_seed(0)
    return {"x": torch.randn(BATCH, length, FEATURES, generator=random), "labels": torch.randint(0, CLASSES, (BATCH,), generator=random)}


def last_state(lstm, x, h, c):
    return lstm(x, (h, c))[1]


def by_hand(module, feeds):
    x = feeds["x"]
    h = c = x.new_zeros(1, BATCH, WIDTH)
    for part in x.split(math.isqrt(x.shape[1]), 1):
        h, c = checkpoint(last_state, module.lstm, part, h, c, use_reentrant=False)
    return F.cross_entropy(module.head(h[0]), feeds["labels"])


CASES = [
    Case(
        f"{length} steps", Sequence, functools.partial(feeds, length), lambda module, feeds: module(**feeds), hand=by_hand,
        by_hand="the states after every √T steps are kept, the steps between them recomputed in the backward pass",
    )
    for length in (128, 1024, 4096)
]  # fmt: skip
