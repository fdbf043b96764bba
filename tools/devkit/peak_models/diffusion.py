"""A small diffusion U-Net: group norms, time embedding, attention in the middle, long skips."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from devkit.peak_models import Case

BATCH, SIDE, WIDTH, HEADS = 8, 32, 32, 4


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(8, inputs), nn.Conv2d(inputs, outputs, 3, 1, 1)
        self.n2, self.c2 = nn.GroupNorm(8, outputs), nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.time, self.skip = nn.Linear(WIDTH, outputs), nn.Conv2d(inputs, outputs, 1)

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.time(t)[:, :, None, None]
        return self.c2(F.silu(self.n2(h))) + self.skip(x)


class Middle(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(8, width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, t):
        h = self.norm(x).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(h).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        h = self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + h.transpose(1, 2).unflatten(2, x.shape[2:])


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        w = WIDTH
        self.time, self.enter, self.leave = nn.Linear(w, w), nn.Conv2d(3, w, 3, 1, 1), nn.Conv2d(w, 3, 3, 1, 1)
        self.d1, self.d2, self.d3 = Block(w, w), Block(w, 2 * w), Block(2 * w, 4 * w)
        self.m1, self.m2, self.m3 = Block(4 * w, 4 * w), Middle(4 * w), Block(4 * w, 4 * w)
        self.u3, self.u2, self.u1 = Block(8 * w, 2 * w), Block(4 * w, w), Block(2 * w, w)
        # A model that has trained before: fresh norms would be one tensor of the file.
        for p in self.parameters():
            if p.dim() == 1:
                p.data.add_(0.02 * torch.randn(p.shape))

    def forward(self, x, t, noise, again=lambda block, *values: block(*values)):
        frequencies = torch.exp(-torch.arange(WIDTH // 2) * 0.5)
        t = F.silu(self.time(torch.cat([torch.sin(t * frequencies), torch.cos(t * frequencies)], 1)))
        a = again(self.d1, self.enter(x), t)
        b = again(self.d2, F.avg_pool2d(a, 2), t)
        c = again(self.d3, F.avg_pool2d(b, 2), t)
        h = F.avg_pool2d(c, 2)
        for block in (self.m1, self.m2, self.m3):
            h = again(block, h, t)
        for block, skip in ((self.u3, c), (self.u2, b), (self.u1, a)):
            h = again(block, torch.cat([F.interpolate(h, scale_factor=2.0), skip], 1), t)
        return F.mse_loss(self.leave(h), noise)


def feeds():
    random = torch.Generator().manual_seed(0)
    image = (BATCH, 3, SIDE, SIDE)
    return {"x": torch.randn(image, generator=random), "t": torch.rand(BATCH, 1, generator=random), "noise": torch.randn(image, generator=random)}


def by_hand(module, feeds):
    return module(**feeds, again=lambda block, *values: checkpoint(block, *values, use_reentrant=False))


CASES = [
    Case(
        "32 x 32", UNet, feeds, lambda module, feeds: module(**feeds), inputs=("x", "t", "noise"), hand=by_hand,
        by_hand="each block recomputed in the backward pass",
    ),
]  # fmt: skip
