"""A head that is trained on a residual network whose weights and norms are frozen."""

import torch
from torch import nn
from torch.nn import functional as F

from devkit.peak_models import Case

class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.a, self.b = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        return F.relu(self.nb(self.b(F.relu(self.na(self.a(x))))) + self.skip(x))


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(Residual(3, 32, 1), Residual(32, 64, 2), Residual(64, 128, 2))
        self.head = nn.Linear(128, 10)
        self.backbone.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x, labels):
        return F.cross_entropy(self.head(self.backbone(x).mean((2, 3))), labels)


def feeds():
    random = torch.Generator().manual_seed(0)
    return {"x": torch.randn(32, 3, 32, 32, generator=random), "labels": torch.randint(0, 10, (32,), generator=random)}


def loss(module, feeds):
    return module(**feeds)


CASES = [
    Case(
        "ResNet", Frozen, feeds, loss, optimizer="SGD", flags=("--params=head.*", "--mode=as-is", "--optimizer=sgd"), hand=loss,
        by_hand="PyTorch's own step: nothing of the backbone is kept for a backward pass",
    ),
]  # fmt: skip
