"""Training scripts as they are published: weights that are quantized, masked, made of factors or by networks."""

import math

import torch
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize
import torch.nn.utils.prune as prune
from torch import nn

from devkit.zoo_models.program_scripts import whole
from devkit.zoo_models.program_scripts_layers import RootMean
from devkit.zoo_models.programs import CONV, IMAGE, ROWS, labels, programs, weight


class ScaledStep(nn.Module):
    """Quantization with a learned step, whose gradient is scaled."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4)
        self.s_w, self.s_a = nn.Parameter(torch.tensor(0.2)), nn.Parameter(torch.tensor(0.3))

    def step(self, v, s, low, high):
        g = 1.0 / math.sqrt(v.numel() * high)
        s = (s - s * g).detach() + s * g
        v = (v / s).clamp(low, high)
        return ((v.round() - v).detach() + v) * s

    def forward(self, x):
        return F.linear(self.step(x, self.s_a, -4, 3), self.step(self.a.weight, self.s_w, -4, 3), self.a.bias)


class Ternary(nn.Module):
    """Weights of three values and activations of eight bits, both straight through."""

    def __init__(self):
        super().__init__()
        self.norm, self.weight = RootMean(5), weight(4, 5)

    def forward(self, x):
        x = self.norm(x)
        s = 127.0 / x.abs().max(dim=-1, keepdim=True).values.clamp_(min=1e-5)
        x = x + ((x * s).round().clamp_(-128, 127) / s - x).detach()
        s = 1.0 / self.weight.abs().mean().clamp_(min=1e-5)
        w = self.weight + ((self.weight * s).round().clamp_(-1, 1) / s - self.weight).detach()
        return F.linear(x, w)


class Adapted(nn.Module):
    """A weight of a frozen layer in length and direction, with a low-rank addition; the length in the norm is detached."""

    def __init__(self, frozen=False):
        super().__init__()
        self.base, self.lora_A, self.lora_B = nn.Linear(5, 4), nn.Parameter(torch.randn(2, 5)), nn.Parameter(torch.zeros(4, 2))
        self.m = nn.Parameter(self.base.weight.detach().norm(p=2, dim=1, keepdim=True))
        self.base.requires_grad_(not frozen)

    def forward(self, x):
        adapted = self.base.weight + 0.5 * self.lora_B @ self.lora_A
        return F.linear(x, self.m * adapted / adapted.norm(p=2, dim=1, keepdim=True).detach(), self.base.bias)


class Masked(nn.Conv2d):
    """A kernel whose hidden half is set to zero in each forward pass, as PixelCNN is written."""

    def __init__(self):
        super().__init__(4, 4, 3, padding=1)
        self.register_buffer("mask", torch.ones_like(self.weight))
        self.mask[:, :, 1, 2:] = 0
        self.mask[:, :, 2:] = 0

    def forward(self, x):
        self.weight.data *= self.mask
        return super().forward(x)


class Triangular(nn.Module):
    """Glow's 1x1 convolution from the factors of a rotation."""

    def __init__(self):
        super().__init__()
        p, lower, upper = torch.linalg.lu(torch.linalg.qr(torch.randn(4, 4))[0])
        self.register_buffer("w_p", p)
        self.register_buffer("u_mask", torch.triu(torch.ones(4, 4), 1))
        self.register_buffer("s_sign", torch.sign(torch.diag(upper)))
        self.register_buffer("l_eye", torch.eye(4))
        self.w_l, self.w_s, self.w_u = nn.Parameter(lower), nn.Parameter(torch.log(torch.diag(upper).abs())), nn.Parameter(torch.triu(upper, 1))

    def forward(self, x):
        w = self.w_p @ (self.w_l * self.u_mask.T + self.l_eye) @ (self.w_u * self.u_mask + torch.diag(self.s_sign * torch.exp(self.w_s)))
        return F.conv2d(x, w[:, :, None, None]) + 42 * self.w_s.sum()


class Pruned(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 8), nn.Linear(8, 4)
        prune.l1_unstructured(self.a, "weight", amount=0.4)
        prune.random_structured(self.b, "weight", amount=0.25, dim=1)
        prune.random_unstructured(self.b, "bias", amount=0.5)
        for part, name in ((self.a, "weight"), (self.b, "weight"), (self.b, "bias")):
            setattr(part, name, getattr(part, name).detach())  # as it can be copied; a hook computes it anew

    def forward(self, x):
        return self.b(F.relu(self.a(x)))


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


class Exponential(nn.Module):
    def forward(self, w):
        return torch.linalg.solve(torch.eye(4) + (w - w.transpose(-1, -2)), torch.eye(4) - (w - w.transpose(-1, -2)))


def parametrized(*rules):
    a = nn.Linear(4, 4)
    for rule in rules:
        parametrize.register_parametrization(a, "weight", rule)
    return dict(i=nn.Linear(5, 4), a=a)


class Hyper(nn.Module):
    """Kernels from embeddings of layers, by two linear maps."""

    def __init__(self):
        super().__init__()
        self.z, self.one, self.two, self.bias = nn.ParameterList(nn.Parameter(torch.randn(3)) for _ in range(2)), nn.Linear(3, 16), nn.Linear(4, 36), nn.ParameterDict({"first": nn.Parameter(torch.zeros(4)), "second": nn.Parameter(torch.zeros(4))})

    def forward(self, x):
        for z, b in zip(self.z, self.bias.values()):
            x = F.relu(F.conv2d(x, self.two(self.one(z).view(4, 4)).view(4, 4, 3, 3), b, padding=1))
        return x


class Kronecker(nn.Module):
    """A weight as a sum of Kronecker products, as hypercomplex layers have it."""

    def __init__(self):
        super().__init__()
        self.rule, self.w = nn.Parameter(torch.randn(2, 2, 2) * 0.5), nn.Parameter(torch.randn(2, 2, 4) * 0.3)
        self.b = nn.Parameter(torch.zeros(4))

    def forward(self, x):
        h = torch.einsum("nij,nkl->nikjl", self.rule, self.w).sum(0).reshape(4, 8)
        return F.linear(x, h, self.b)


class Stretched(nn.Module):
    """Gates of the hard concrete distribution, with their draws given, and the expected count of open ones."""

    def __init__(self):
        super().__init__()
        self.a, self.log_alpha = nn.Linear(5, 4), nn.Parameter(torch.full((4, 5), 0.4))

    def forward(self, x, u):
        s = torch.sigmoid((torch.log(u) - torch.log(1 - u) + self.log_alpha) / 0.66)
        z = F.hardtanh(s * 1.2 - 0.1, min_val=0, max_val=1)
        return F.linear(x, self.a.weight * z, self.a.bias).pow(2).mean() + 0.1 * torch.sigmoid(self.log_alpha - 0.66 * math.log(0.1 / 1.1)).sum()


programs("script", [
    ("script-learned-step", lambda: dict(n=ScaledStep()), ROWS, whole),
    ("script-ternary", lambda: dict(n=Ternary()), ROWS, whole),
    ("script-length-direction", lambda: dict(n=Adapted()), ROWS, whole),
    ("script-length-direction-frozen", lambda: dict(n=Adapted(True)), ROWS, whole),
    ("script-masked-kernel", lambda: dict(n=Masked()), IMAGE, whole),
    ("script-triangular-kernel", lambda: dict(n=Triangular()), IMAGE, whole),
    ("script-pruned", lambda: dict(n=Pruned()), ROWS, whole),
    ("script-symmetric-rule", lambda: parametrized(Symmetric()), ROWS, lambda m, x: m.a(m.i(x))),
    ("script-cayley-rule", lambda: parametrized(Exponential()), ROWS, lambda m, x: m.a(m.i(x))),
    ("script-hyper-kernels", lambda: dict(n=Hyper()), IMAGE, whole),
    ("script-kronecker-sum", lambda: dict(n=Kronecker()), dict(x=(6, 8)), whole),
    ("script-hard-concrete", lambda: dict(n=Stretched()), dict(x=ROWS, u=lambda: torch.rand(4, 5) * 0.9 + 0.05), whole),
    ("script-pact", lambda: dict(a=nn.Linear(5, 4), alpha=nn.Parameter(torch.tensor(0.6))), ROWS, lambda m, x: (lambda y: (lambda k: y + (torch.round(y * k) / k - y).detach())(7 / m.alpha.detach()))(0.5 * (m.a(x).abs() - (m.a(x) - m.alpha).abs() + m.alpha))),
    ("script-rational", lambda: dict(a=nn.Linear(5, 4), p=nn.Parameter(torch.tensor([0.02, 0.5, 1.6, 1.1])), q=nn.Parameter(torch.tensor([0.4, 0.7]))), ROWS, lambda m, x: (lambda h: sum(m.p[i] * h**i for i in range(4)) / (1 + (m.q[0] * h).abs() + (m.q[1] * h**2).abs()))(m.a(x))),
    ("script-acon", lambda: dict(CONV(), p1=weight(1, 4, 1, 1), p2=weight(1, 4, 1, 1), beta=nn.Parameter(torch.ones(1, 4, 1, 1))), IMAGE, lambda m, x: (lambda h: (m.p1 - m.p2) * h * torch.sigmoid(m.beta * (m.p1 - m.p2) * h) + m.p2 * h)(m.a(x))),
    ("script-routed-kernels", lambda: dict(w=weight(3, 4, 4, 3, 3), r=nn.Linear(4, 3)), IMAGE, lambda m, x: (lambda k: F.conv2d(x.reshape(1, 8, 6, 7), k.reshape(8, 4, 3, 3), padding=1, groups=2).view(2, 4, 6, 7))((m.r(x.mean((2, 3))).sigmoid() @ m.w.view(3, -1)).view(2, 4, 4, 3, 3))),
    ("script-tied-decoder", lambda: dict(a=nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False), b=weight(4)), IMAGE, lambda m, x: F.conv_transpose2d(F.relu(m.a(x)), m.a.weight, m.b, stride=2, padding=1, output_padding=(1, 0))),
    ("script-half-tied-embedding", lambda: dict(e=nn.Embedding(9, 4), up=nn.Linear(4, 8, bias=False), bias=nn.Parameter(torch.zeros(9))), dict(i=lambda: labels(9, 3, 5)), lambda m, i: F.cross_entropy((F.linear(m.up(m.e(i)).tanh(), m.up.weight.t()) @ m.e.weight.t() + m.bias).flatten(0, 1), i.flatten())),
    ("script-sketches", lambda: dict(a=nn.Linear(5, 4), b=nn.Linear(5, 4), h1=F.one_hot(torch.tensor([0, 3, 5, 3]), 6).float() * torch.tensor([1.0, -1, 1, -1])[:, None], h2=F.one_hot(torch.tensor([1, 4, 2, 2]), 6).float() * torch.tensor([-1.0, -1, 1, 1])[:, None]), ROWS, lambda m, x: (lambda f: torch.sign(f) * torch.sqrt(torch.abs(f) + 1e-10))(torch.fft.irfft(torch.fft.rfft(m.a(x) @ m.h1) * torch.fft.rfft(m.b(x) @ m.h2), n=6))),
])  # fmt: skip
