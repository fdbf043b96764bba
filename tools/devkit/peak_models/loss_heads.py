"""A cross-entropy of 32,000 classes over 4,096 tokens, in the ways in which language models are exported."""

import torch
from torch import nn
from torch.nn import functional as F

from devkit.peak_models import Case

VOCABULARY, WIDTH, BATCH, LENGTH = 32000, 64, 16, 256
ROWS_AT_A_TIME = 32


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(VOCABULARY, WIDTH)
        self.l = nn.Linear(WIDTH, WIDTH)
        self.h = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def hidden(self, x):
        return F.gelu(self.l(self.e(x)))

    def forward(self, x):
        return self.h(self.hidden(x))


def plain(logits, labels):
    return F.cross_entropy(logits.reshape(-1, VOCABULARY), labels.reshape(-1))


def shifted(logits, labels):
    return plain(logits[:, :-1], labels[:, 1:])


def has_label(labels):
    """One word in seven, as for masked language models."""
    return labels % 7 == 0


def selected(logits, labels):
    # The current exporter writes no cross_entropy of a number of rows that data decide.
    rows = has_label(labels)
    return -F.log_softmax(logits[rows], dim=-1).gather(1, labels[rows].unsqueeze(1)).mean()


def capped(logits, labels):
    return plain(30 * torch.tanh(logits / 30), labels)


class Inside(nn.Module):
    """The loss in the file; with `both`, the logits too."""

    def __init__(self, loss, both=False):
        super().__init__()
        self.m, self.loss, self.both = Words(), loss, both

    def forward(self, x, labels):
        logits = self.m(x)
        loss = self.loss(logits, labels)
        return (loss, logits) if self.both else loss


class SomeRows(torch.autograd.Function):
    """Loss and gradients of a head, a few rows at a time; `of_rows`: the loss of one row's logits, added up."""

    @staticmethod
    def forward(ctx, hidden, weight, labels, of_rows):
        d_hidden, d_weight, total = torch.empty_like(hidden), torch.zeros_like(weight), hidden.new_zeros(())
        for first in range(0, len(hidden), ROWS_AT_A_TIME):
            rows = slice(first, first + ROWS_AT_A_TIME)
            logits = (hidden[rows] @ weight.T).requires_grad_()
            with torch.enable_grad():
                loss = of_rows(logits, labels[rows]) / len(hidden)
            (d_logits,) = torch.autograd.grad(loss, logits)
            d_hidden[rows] = d_logits @ weight
            d_weight.addmm_(d_logits.T, hidden[rows])
            total += loss.detach()
        ctx.save_for_backward(d_hidden, d_weight)
        return total

    @staticmethod
    def backward(ctx, d_total):
        d_hidden, d_weight = ctx.saved_tensors
        return d_hidden.mul_(d_total), d_weight.mul_(d_total), None, None


def by_hand(words, shift=False, cap=False, select=False):
    def of_rows(logits, labels):
        return F.cross_entropy(30 * torch.tanh(logits / 30) if cap else logits, labels, reduction="sum")

    def step(module, feeds):
        inner, labels = words(module), feeds["labels"]
        hidden = inner.hidden(feeds["x"])
        if shift:
            hidden, labels = hidden[:, :-1], labels[:, 1:]
        if select:
            rows = has_label(labels)
            hidden, labels = hidden[rows], labels[rows]
        return SomeRows.apply(hidden.reshape(-1, WIDTH), inner.h.weight, labels.reshape(-1), of_rows)

    return step


def feeds():
    random = torch.Generator().manual_seed(0)
    return {name: torch.randint(0, VOCABULARY, (BATCH, LENGTH), generator=random) for name in ("x", "labels")}


def returned(module, feeds):
    out = module(**feeds)
    return out[0] if isinstance(out, tuple) else out


HAND = "32 rows of logits at a time, forward and backward together"


def inner(module):
    return module.m


CASES = [
    Case("inside", lambda: Inside(plain), feeds, returned, hand=by_hand(inner), by_hand=HAND),
    Case(
        "logits", Words, feeds, lambda module, feeds: plain(module(feeds["x"]), feeds["labels"]), inputs=("x",), outputs=("logits",),
        flags=("--loss=cross_entropy(logits, labels)",), hand=by_hand(lambda module: module), by_hand=HAND,
    ),
    Case("shift", lambda: Inside(shifted), feeds, returned, hand=by_hand(inner, shift=True), by_hand=HAND),
    Case("both", lambda: Inside(plain, both=True), feeds, returned, outputs=("loss", "logits"), hand=by_hand(inner), by_hand=HAND),
    Case("softcap", lambda: Inside(capped), feeds, returned, hand=by_hand(inner, cap=True), by_hand=HAND),
    Case("selected", lambda: Inside(selected), feeds, returned, hand=by_hand(inner, select=True), by_hand=HAND),
]  # fmt: skip
