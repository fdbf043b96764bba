"""Losses of 32,000 classes over 4,096 tokens, in the ways in which language models are trained and exported."""

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


def distilling(logits, taught, labels):
    """Half of a teacher's probabilities at temperature 2, and half of the labels."""
    taught = F.kl_div(F.log_softmax(logits / 2, -1), F.softmax(taught / 2, -1), reduction="sum") * 4
    return (taught + F.cross_entropy(logits, labels, reduction="sum")) / 2


class Distilled(nn.Module):
    def __init__(self):
        super().__init__()
        self.m, self.teacher = Words(), Words().requires_grad_(False)

    def forward(self, x, labels):
        with torch.no_grad():
            taught = self.teacher(x)
        rows = (value.reshape(-1, VOCABULARY) for value in (self.m(x), taught))
        return distilling(*rows, labels.reshape(-1)) / labels.numel()


def bounded(logits, labels, old, advantages):
    """Of a policy: the ratio of probabilities within bounds, and a bonus for entropy."""
    logarithms = F.log_softmax(logits, -1)
    ratio = torch.exp(logarithms.gather(-1, labels.unsqueeze(-1)).squeeze(-1) - old)
    gain = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
    return -(gain - 0.01 * (logarithms.exp() * logarithms).sum(-1)).sum()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = Words()

    def forward(self, x, labels, old, advantages):
        return bounded(self.m(x), labels, old, advantages) / labels.numel()


class SomeRows(torch.autograd.Function):
    """Loss and gradients of a head, a few rows at a time; `of_rows`: the loss of logits, added up, given which rows."""

    @staticmethod
    def forward(ctx, hidden, weight, of_rows):
        d_hidden, d_weight, total = torch.empty_like(hidden), torch.zeros_like(weight), hidden.new_zeros(())
        for first in range(0, len(hidden), ROWS_AT_A_TIME):
            rows = slice(first, first + ROWS_AT_A_TIME)
            logits = (hidden[rows] @ weight.T).requires_grad_()
            with torch.enable_grad():
                loss = of_rows(logits, rows) / len(hidden)
            (d_logits,) = torch.autograd.grad(loss, logits)
            d_hidden[rows] = d_logits @ weight
            d_weight.addmm_(d_logits.T, hidden[rows])
            total += loss.detach()
        ctx.save_for_backward(d_hidden, d_weight)
        return total

    @staticmethod
    def backward(ctx, d_total):
        d_hidden, d_weight = ctx.saved_tensors
        return d_hidden.mul_(d_total), d_weight.mul_(d_total), None


def by_hand(words, shift=False, cap=False, select=False):
    def step(module, feeds):
        inner, labels = words(module), feeds["labels"]
        hidden = inner.hidden(feeds["x"])
        if shift:
            hidden, labels = hidden[:, :-1], labels[:, 1:]
        if select:
            rows = has_label(labels)
            hidden, labels = hidden[rows], labels[rows]
        labels = labels.reshape(-1)

        def of_rows(logits, rows):
            return F.cross_entropy(30 * torch.tanh(logits / 30) if cap else logits, labels[rows], reduction="sum")

        return SomeRows.apply(hidden.reshape(-1, WIDTH), inner.h.weight, of_rows)

    return step


def distill_by_hand(module, feeds):
    labels = feeds["labels"].reshape(-1)
    hidden, taught = (words.hidden(feeds["x"]).reshape(-1, WIDTH) for words in (module.m, module.teacher))

    def of_rows(logits, rows):
        return distilling(logits, module.teacher.h(taught[rows]), labels[rows])

    return SomeRows.apply(hidden, module.m.h.weight, of_rows)


def improve_by_hand(module, feeds):
    labels, old, advantages = (feeds[name].reshape(-1) for name in ("labels", "old", "advantages"))

    def of_rows(logits, rows):
        return bounded(logits, labels[rows], old[rows], advantages[rows])

    return SomeRows.apply(module.m.hidden(feeds["x"]).reshape(-1, WIDTH), module.m.h.weight, of_rows)


def feeds():
    random = torch.Generator().manual_seed(0)
    return {name: torch.randint(0, VOCABULARY, (BATCH, LENGTH), generator=random) for name in ("x", "labels")}


def played():
    random = torch.Generator().manual_seed(1)
    old = -torch.rand(BATCH, LENGTH, generator=random) - 10
    return feeds() | {"old": old, "advantages": torch.randn(BATCH, LENGTH, generator=random)}


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
    Case("distilled", Distilled, feeds, returned, flags=("--frozen=teacher.*",), hand=distill_by_hand, by_hand=HAND),
    Case(
        "policy", Policy, played, returned, inputs=("x", "labels", "old", "advantages"), hand=improve_by_hand, by_hand=HAND,
    ),
]  # fmt: skip
