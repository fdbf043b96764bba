"""Adapters of low rank in a small GPT whose own weights are frozen."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from devkit.peak_models import Case

LAYERS, WIDTH, HEADS, WORDS, LENGTH, BATCH, RANK = 4, 128, 4, 2048, 128, 8, 8


class Adapted(nn.Module):
    """A frozen product and one of low rank that is trained."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.base = nn.Linear(inputs, outputs)
        self.down, self.up = nn.Linear(inputs, RANK, bias=False), nn.Linear(RANK, outputs, bias=False)
        self.base.requires_grad_(False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = Adapted(WIDTH, 3 * WIDTH), Adapted(WIDTH, WIDTH)
        self.fc, self.proj = Adapted(WIDTH, 4 * WIDTH), Adapted(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.proj(F.gelu(self.fc(self.n2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)
        for p in (*self.words.parameters(), *self.places.parameters(), *self.norm.parameters()):
            p.requires_grad_(False)
        for block in self.blocks:
            for p in (*block.n1.parameters(), *block.n2.parameters()):
                p.requires_grad_(False)

    def forward(self, x, labels, again=lambda block, h: block(h)):
        h = self.words(x) + self.places.weight
        for block in self.blocks:
            h = again(block, h)
        return F.cross_entropy((self.norm(h) @ self.words.weight.T).reshape(-1, WORDS), labels.reshape(-1))


def feeds():
    random = torch.Generator().manual_seed(0)
    return {name: torch.randint(0, WORDS, (BATCH, LENGTH), generator=random) for name in ("x", "labels")}


def by_hand(module, feeds):
    return module(**feeds, again=lambda block, h: checkpoint(block, h, use_reentrant=False))


CASES = [
    Case(
        "LoRA", Gpt, feeds, lambda module, feeds: module(**feeds), flags=("--params=*.down.weight,*.up.weight",), hand=by_hand,
        by_hand="each block recomputed in the backward pass",
    ),
]  # fmt: skip
