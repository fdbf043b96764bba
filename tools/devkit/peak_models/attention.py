"""Blocks of a transformer, whose attention sees all, what came before, what a mask leaves, or drops at random."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from devkit.peak_models import Case

LAYERS, WIDTH, HEADS, WORDS, LENGTH, BATCH = 3, 64, 4, 100, 256, 8


class Block(nn.Module):
    def __init__(self, causal, dropout):
        super().__init__()
        self.causal, self.dropout = causal, dropout
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc, self.proj = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, mask):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal, dropout_p=self.dropout)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.proj(F.gelu(self.fc(self.n2(x))))


class Transformer(nn.Module):
    def __init__(self, causal=False, padded=False, dropout=0.0):
        super().__init__()
        self.padded = padded
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.blocks, self.head = nn.ModuleList(Block(causal, dropout) for _ in range(LAYERS)), nn.Linear(WIDTH, WORDS)

    def forward(self, x, labels, again=lambda block, *values: block(*values)):
        mask = (x > 0)[:, None, None, :] if self.padded else None
        h = self.words(x) + self.places
        for block in self.blocks:
            h = again(block, h, mask)
        return F.cross_entropy(self.head(h).flatten(0, 1), labels.flatten())


def feeds():
    random = torch.Generator().manual_seed(0)
    return {name: torch.randint(1, WORDS, (BATCH, LENGTH), generator=random) for name in ("x", "labels")}


def by_hand(module, feeds):
    return module(**feeds, again=lambda block, *values: checkpoint(block, *values, use_reentrant=False))


def case(name, **options):
    return Case(
        name, lambda: Transformer(**options), feeds, lambda module, feeds: module(**feeds), hand=by_hand,
        by_hand="each block recomputed in the backward pass",
    )  # fmt: skip


CASES = [case("full"), case("causal", causal=True), case("padded", padded=True), case("dropout", dropout=0.1)]
