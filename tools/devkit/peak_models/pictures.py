"""Pictures that are read between their pixels: logits interpolated to the picture, a volume of similarities that is looked up."""

import torch
from torch import nn
from torch.nn import functional as F

from devkit.peak_models import Case

BATCH, CLASSES, CHANNELS, SIDE = 4, 21, 16, 192
VOLUME, ROUNDS = 28, 3


class Segments(nn.Module):
    """Classes of all pixels, told of every eighth."""

    def __init__(self):
        super().__init__()
        self.c, self.o = nn.Conv2d(3, CHANNELS, 3, stride=8, padding=1), nn.Conv2d(CHANNELS, CLASSES, 1)

    def features(self, x):
        return F.relu(self.c(x))

    def tell(self, features):
        return F.interpolate(self.o(features), size=(SIDE, SIDE), mode="bilinear", align_corners=False)

    def forward(self, x, labels):
        return F.cross_entropy(self.tell(self.features(x)), labels)


class OneByOne(torch.autograd.Function):
    """Loss and gradients of the classes, one picture after the other."""

    @staticmethod
    def forward(ctx, features, weight, bias, tell, labels):
        parts, sums, total = [], [torch.zeros_like(weight), torch.zeros_like(bias)], features.new_zeros(())
        for picture, label in zip(features, labels):
            given = [value.detach().requires_grad_() for value in (picture[None], weight, bias)]
            with torch.enable_grad():
                loss = F.cross_entropy(tell(*given), label[None]) / len(labels)
            part, *terms = torch.autograd.grad(loss, given)
            parts.append(part)
            for whole, term in zip(sums, terms):
                whole += term
            total += loss.detach()
        ctx.save_for_backward(torch.cat(parts), *sums)
        return total

    @staticmethod
    def backward(ctx, d_total):
        return *(d_total * value for value in ctx.saved_tensors), None, None


def segment_by_hand(module, feeds):
    def tell(features, weight, bias):
        return F.interpolate(F.conv2d(features, weight, bias), size=(SIDE, SIDE), mode="bilinear", align_corners=False)

    return OneByOne.apply(module.features(feeds["x"]), module.o.weight, module.o.bias, tell, feeds["labels"])


class Flow(nn.Module):
    """Similarities of all pixels of two pictures, looked up around where each is thought to have moved."""

    def __init__(self):
        super().__init__()
        self.f, self.m = nn.Conv2d(3, 32, 3, padding=1, stride=2), nn.Conv2d(9, 2, 3, padding=1)
        across = torch.arange(VOLUME, dtype=torch.float32)
        self.register_buffer("base", torch.stack(torch.meshgrid(across, across, indexing="xy"))[None])
        around = torch.arange(-1.0, 2.0)
        self.register_buffer("around", torch.stack(torch.meshgrid(around, around, indexing="xy"), -1)[None])

    def forward(self, x, y, moved):
        a, b = self.f(x).flatten(2), self.f(y).flatten(2)
        volume = (a.transpose(1, 2) @ b / 32**0.5).reshape(-1, 1, VOLUME, VOLUME)
        flow = torch.zeros_like(moved)
        for _ in range(ROUNDS):
            at = (self.base + flow).permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) + self.around
            looked = F.grid_sample(volume, 2 * at / (VOLUME - 1) - 1, align_corners=True)
            flow = flow + self.m(looked.reshape(-1, VOLUME, VOLUME, 9).permute(0, 3, 1, 2))
        return F.l1_loss(flow, moved)


def labelled():
    random = torch.Generator().manual_seed(0)
    x = torch.randn(BATCH, 3, SIDE, SIDE, generator=random)
    return {"x": x, "labels": torch.randint(0, CLASSES, (BATCH, SIDE, SIDE), generator=random)}


def moved():
    random = torch.Generator().manual_seed(0)
    pictures = {name: torch.randn(BATCH, 3, 2 * VOLUME, 2 * VOLUME, generator=random) for name in ("x", "y")}
    return pictures | {"moved": torch.randn(BATCH, 2, VOLUME, VOLUME, generator=random)}


def loss(module, feeds):
    return module(**feeds)


CASES = [
    Case("segmentation", Segments, labelled, loss, hand=segment_by_hand, by_hand="one picture at a time, forward and backward together"),
    Case("optical flow", Flow, moved, loss, inputs=("x", "y", "moved"), hand=loss, by_hand="PyTorch's own step"),
]
