"""Small programs: each writes one kind of PyTorch's code around a parameter, so that its file and its gradient are compared.

A program is a name, its parts, what it reads, and its forward pass: a function of the module, which holds the parts, and of
the inputs. It gives its loss, a number, or what a mean of squares compares with a target that is drawn.
"""

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models import Case

CASES = []


class Program(nn.Module):
    def __init__(self, parts, forward):
        super().__init__()
        for name, part in parts.items():
            if isinstance(part, torch.Tensor) and not isinstance(part, nn.Parameter):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)
        self.calls = forward

    def forward(self, *inputs):
        return self.calls(self, *inputs)


def weight(*shape):
    """A parameter of normal numbers."""
    return nn.Parameter(torch.randn(shape) * 0.5)


def labels(high, *shape):
    """Whole numbers from 0 to below `high`."""
    return torch.randint(high, shape)


def booleans(*shape):
    return torch.rand(shape) > 0.5


def made(parts, forward):
    torch.manual_seed(0)
    return Program(parts(), forward)


def fed(parts, reads, forward):
    """Arrays by name, and a target where the program ends at something else than its loss."""
    module = made(parts, forward).train()
    torch.manual_seed(1)
    feeds = {name: torch.randn(shape) if isinstance(shape, tuple) else shape() for name, shape in reads.items()}
    out = module(*feeds.values())
    if out.dim():
        feeds["target"] = torch.randn(out.shape)
    return {name: value.numpy() for name, value in feeds.items()}


def measured(module, *given):
    names = module.reads
    out = module(*given[:names])
    return out if len(given) == names else F.mse_loss(out, given[-1])


def programs(family, table):
    """Adds the rows of a table to CASES: (name, parts, shapes or drawn arrays by input, forward pass)."""
    for name, parts, reads, forward in table:
        reads = reads if isinstance(reads, dict) else {"x": reads}

        def build(parts=parts, forward=forward, reads=reads):
            module = made(parts, forward)
            module.reads = len(reads)
            return module

        CASES.append(Case(f"programs/{name}", family, build, lambda p=parts, r=reads, f=forward: fed(p, r, f), measured, ends_in_loss=True))


# Shapes and layers that many programs begin with.
ROWS = (6, 5)
IMAGE = (2, 4, 6, 7)
LINE = (2, 4, 9)
CLASSES = dict(x=(6, 5), y=lambda: labels(4, 6))
PAIRS = dict(x=(6, 5), t=(6, 4))
LINEAR = lambda: dict(a=nn.Linear(5, 4))  # noqa: E731
CONV = lambda: dict(a=nn.Conv2d(4, 4, 3, padding=1))  # noqa: E731
CONV1 = lambda: dict(a=nn.Conv1d(4, 4, 3, padding=1))  # noqa: E731
