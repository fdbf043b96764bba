"""Further blocks of published models: recurrences, attention, memories, graphs."""

import math

import torch
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize
from torch import nn

from devkit.zoo_models.programs import IMAGE, ROWS, labels, programs, weight

TOKENS = (2, 5, 8)


def split(tokens, heads=2):
    """[batch, tokens, features] as [batch, heads, tokens, features]."""
    return tokens.unflatten(-1, (heads, -1)).transpose(1, 2)


class Mixed(nn.Module):
    """Tokens mixed with those before by weights of low rank, and a state that decays."""

    def __init__(self):
        super().__init__()
        self.mix, self.a, self.b, self.decay, self.bonus = weight(3, 8), weight(8, 6), weight(3, 2, 8), weight(8), weight(8)
        self.r, self.k, self.v, self.norm = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.GroupNorm(2, 8)

    def forward(self, x):
        d = F.pad(x, (0, 0, 1, -1)) - x
        low = torch.tanh((x + d * self.mix[0]) @ self.a).unflatten(-1, (3, 2)).transpose(1, 2)
        shifts = (low.transpose(1, 2).unsqueeze(-2) @ self.b).squeeze(-2)
        r, k, v = (layer(x + d * (self.mix[i] + shifts[:, :, i])) for i, layer in enumerate((self.r, self.k, self.v)))
        w, state, out = torch.exp(-torch.exp(self.decay)), torch.zeros(2, 8, 8), []
        for t in range(5):
            kv = k[:, t, :, None] * v[:, t, None]
            out.append((r[:, t, None] @ (state + self.bonus[:, None] * kv)).squeeze(1))
            state = state * w[:, None] + kv
        return self.norm(torch.stack(out, 1).flatten(0, 1)).view(2, 5, 8) * F.silu(x)


class GatedRecurrence(nn.Module):
    """A linear recurrence whose decay is learned, and whose input keeps its length."""

    def __init__(self):
        super().__init__()
        self.decay, self.r, self.i = nn.Parameter(torch.rand(8) * 2), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        log_a = -8 * F.softplus(self.decay) * self.r(x).sigmoid()
        h = (self.i(x).sigmoid() * x) * (1 - (2 * log_a).exp() + 1e-6).sqrt()
        state, out = torch.zeros(2, 8), []
        for t in range(5):
            state = log_a[:, t].exp() * state + h[:, t]
            out.append(state)
        return torch.stack(out, 1)


class Segments(nn.Module):
    """A scan as sums over segments: a step of each channel and head, and a decay that is kept as its logarithm."""

    def __init__(self):
        super().__init__()
        self.joint, self.conv, self.A_log, self.D, self.dt_bias = nn.Linear(8, 8 + 3 + 3 + 2, bias=False), nn.Conv1d(14, 14, 3, groups=14, padding=2), nn.Parameter(torch.log(torch.arange(1.0, 3))), nn.Parameter(torch.ones(2)), weight(2)

    def forward(self, x):
        h, dt = self.joint(x).split([14, 2], -1)
        u, b, c = F.silu(self.conv(h.transpose(1, 2))[..., :5].transpose(1, 2)).split([8, 3, 3], -1)
        dt = F.softplus(dt + self.dt_bias)
        sums = (dt * -torch.exp(self.A_log)).transpose(1, 2).cumsum(-1)
        decay = (sums[..., :, None] - sums[..., None, :]).masked_fill(torch.ones(5, 5).triu(1).bool(), -math.inf).exp()
        u = u.unflatten(-1, (2, 4))
        y = torch.einsum("bin,bjn,bhij,bjh,bjhd->bihd", c, b, decay, dt, u) + self.D[:, None] * u
        return y.flatten(2)


class Retention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.g, self.norm = *(nn.Linear(8, 8, bias=False) for _ in range(4)), nn.GroupNorm(2, 8, affine=False)

    def forward(self, x):
        gone = torch.arange(5)[:, None] - torch.arange(5)
        decay = torch.where(gone >= 0, (1 - 2.0 ** (-5 - torch.arange(2)))[:, None, None] ** gone.clamp(min=0), 0.0)
        decay = decay / decay.sum(-1, keepdim=True).sqrt()
        s = split(self.q(x)) @ split(self.k(x)).mT * decay
        y = (s / s.detach().abs().sum(-1, keepdim=True).clamp(min=1)) @ split(self.v(x))
        return self.norm(y.transpose(1, 2).flatten(2).flatten(0, 1)).view(2, 5, 8) * F.silu(self.g(x))


class DeltaRule(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.beta = nn.Linear(8, 4), nn.Linear(8, 4), nn.Linear(8, 4), nn.Linear(8, 1)

    def forward(self, x):
        q, k, v, beta = F.normalize(self.q(x), dim=-1), F.normalize(F.silu(self.k(x)), dim=-1), self.v(x), self.beta(x).sigmoid()
        s, out = torch.zeros(2, 4, 4), []
        for t in range(5):
            s = s + torch.einsum("bk,bv->bkv", k[:, t], beta[:, t] * (v[:, t] - torch.einsum("bkv,bk->bv", s, k[:, t])))
            out.append(torch.einsum("bkv,bk->bv", s, q[:, t]))
        return torch.stack(out, 1)


class ExponentialGates(nn.Module):
    """A cell with exponential gates, kept in range by the largest so far."""

    def __init__(self):
        super().__init__()
        self.w, self.r = nn.Linear(8, 16), nn.Linear(4, 16, bias=False)

    def forward(self, x):
        h = c = n = m = torch.zeros(2, 4)
        for t in range(5):
            z, i, f, o = (self.w(x[:, t]) + self.r(h)).chunk(4, -1)
            f = F.logsigmoid(f)
            top = torch.maximum(f + m, i)
            i, f = (i - top).exp(), (f + m - top).exp()
            c, n, m = f * c + i * z.tanh(), f * n + i, top
            h = o.sigmoid() * c / n
        return h


class Latent(nn.Module):
    """Keys and values of few numbers, with places in a part that all heads share."""

    def __init__(self):
        super().__init__()
        self.q, self.down, self.norm, self.up, self.out = nn.Linear(8, 12), nn.Linear(8, 5), nn.RMSNorm(3), nn.Linear(3, 16, bias=False), nn.Linear(8, 8)

    def turn(self, t):
        angles = torch.outer(torch.arange(5.0), 1 / 10000 ** (torch.arange(0, 2, 2) / 2))
        a, b = t[..., ::2], t[..., 1::2]
        return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1).flatten(-2)

    def forward(self, x):
        q, q_place = split(self.q(x)).split([4, 2], -1)
        low, k_place = self.down(x).split([3, 2], -1)
        k, v = split(self.up(self.norm(low))).split([4, 4], -1)
        k = torch.cat([k, self.turn(k_place.unsqueeze(1)).expand(-1, 2, -1, -1)], -1)
        y = F.scaled_dot_product_attention(torch.cat([q, self.turn(q_place)], -1), k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Windows(nn.Module):
    """Attention to the last three tokens and to the first, with positions by a table that is looked up."""

    def __init__(self):
        super().__init__()
        self.joint, self.slopes = nn.Linear(8, 24), nn.Parameter(torch.tensor([0.5, 0.25]))
        self.register_buffer("cos_cached", torch.outer(torch.arange(9.0), torch.tensor([1.0, 0.01])).repeat(1, 2).cos(), persistent=False)
        self.register_buffer("sin_cached", torch.outer(torch.arange(9.0), torch.tensor([1.0, 0.01])).repeat(1, 2).sin(), persistent=False)

    def forward(self, x, i):
        q, k, v = (split(part) for part in self.joint(x).chunk(3, -1))
        cos, sin = self.cos_cached[i].unsqueeze(1), self.sin_cached[i].unsqueeze(1)
        q, k = (t * cos + torch.cat((-t[..., 2:], t[..., :2]), -1) * sin for t in (q, k))
        gone = torch.arange(5)[:, None] - torch.arange(5)
        seen = (gone >= 0) & ((gone < 3) | (torch.arange(5) == 0))
        bias = -self.slopes[:, None, None] * gone.abs()
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.masked_fill(~seen, -math.inf)).transpose(1, 2).flatten(2)


class Pairs(nn.Module):
    """Two towers, and a temperature that is learned within bounds."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.logit_scale = nn.Linear(5, 4), nn.Linear(5, 4), nn.Parameter(torch.ones([]) * math.log(1 / 0.07))

    def forward(self, x, z):
        s = self.logit_scale.exp().clamp(max=100) * F.normalize(self.a(x), dim=-1) @ F.normalize(self.b(z), dim=-1).T
        y = torch.arange(6)
        return (F.cross_entropy(s, y) + F.cross_entropy(s.T, y)) / 2


class Prototypes(nn.Module):
    """Codes by a balanced assignment, without gradients, predicted from the other view."""

    def __init__(self):
        super().__init__()
        self.layer, self.prototypes = nn.Linear(5, 4), nn.Linear(4, 3, bias=False)

    def forward(self, x, z):
        s = [self.prototypes(F.normalize(self.layer(t), dim=1)) for t in (x, z)]
        with torch.no_grad():
            codes = []
            for scores in s:
                q = (scores / 0.3).exp().T
                q = q / q.sum()
                for _ in range(3):
                    q = q / q.sum(1, keepdim=True) / 3
                    q = q / q.sum(0, keepdim=True) / 6
                codes.append((q * 6).T)
        return -sum((codes[i] * (s[1 - i] / 0.2).log_softmax(1)).sum(1).mean() for i in range(2)) / 2


class InvertibleMap(nn.Module):
    """A convolution of one place, as a product of triangles."""

    def __init__(self):
        super().__init__()
        p, low, up = torch.linalg.lu(torch.randn(4, 4))
        self.register_buffer("p", p)
        self.register_buffer("sign", up.diagonal().sign())
        self.low, self.up, self.log_s = nn.Parameter(low), nn.Parameter(up.triu(1)), nn.Parameter(up.diagonal().abs().log())

    def forward(self, x):
        low = self.low.tril(-1) + torch.eye(4)
        w = self.p @ low @ (self.up.triu(1) + torch.diag(self.sign * self.log_s.exp()))
        y = F.conv2d(x, w[:, :, None, None])
        return y.square().mean() - self.log_s.sum() * 42 * 0.01


class Gates(nn.Module):
    """Weights that are zero or not by stretched draws, and what they cost."""

    def __init__(self):
        super().__init__()
        self.layer, self.log_alpha = nn.Linear(5, 4), weight(5)

    def forward(self, x, u):
        u = u.sigmoid()
        s = ((u.log() - (1 - u).log() + self.log_alpha) / (2 / 3)).sigmoid()
        z = (s * 1.2 - 0.1).clamp(0, 1)
        return self.layer(x * z).square().mean() + 0.01 * (self.log_alpha - 2 / 3 * math.log(0.1 / 1.1)).sigmoid().sum()


class Seeds(nn.Module):
    """Pools a set by attention of learned seeds, written by hand."""

    def __init__(self):
        super().__init__()
        self.seeds, self.q, self.k, self.v, self.o = weight(1, 3, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        s = self.q(self.seeds.repeat(2, 1, 1))
        q, k, v = (torch.cat(t.split(4, 2), 0) for t in (s, self.k(x), self.v(x)))
        h = torch.cat((q + (q @ k.mT / 8**0.5).softmax(-1) @ v).split(2, 0), 2)
        return h + F.relu(self.o(h))


class ProductKeys(nn.Module):
    """A memory whose keys are pairs of half keys; the best of the best are read."""

    def __init__(self):
        super().__init__()
        self.q, self.keys, self.values = nn.Linear(5, 8), weight(2, 4, 4), nn.Embedding(16, 3)

    def forward(self, x):
        s = torch.einsum("nhd,hkd->nhk", self.q(x).view(6, 2, 4), self.keys)
        v, i = s.topk(2, -1)
        both, place = (v[:, 0, :, None] + v[:, 1, None]).flatten(1), (i[:, 0, :, None] * 4 + i[:, 1, None]).flatten(1)
        w, best = both.topk(3, -1)
        return (w.softmax(-1)[..., None] * self.values(place.gather(1, best))).sum(1)


class Addressed(nn.Module):
    """A memory read by content and by shifts, sharpened."""

    def __init__(self):
        super().__init__()
        self.layer, self.memory = nn.Linear(5, 4 + 1 + 1 + 3 + 1), weight(6, 4)

    def forward(self, x):
        k, beta, g, s, gamma = self.layer(x).split([4, 1, 1, 3, 1], -1)
        w = (F.softplus(beta) * F.cosine_similarity(k.tanh()[:, None], self.memory[None], dim=-1, eps=1e-6)).softmax(-1)
        w = g.sigmoid() * w + (1 - g.sigmoid()) / 6
        s = s.softmax(-1)
        w = sum(s[:, j : j + 1] * w.roll(j - 1, 1) for j in range(3)) ** (1 + F.softplus(gamma))
        return (w / (w.sum(1, keepdim=True) + 1e-16)) @ self.memory


class Offsets(nn.Module):
    """A convolution that reads where it is told to, by samples of the image."""

    def __init__(self):
        super().__init__()
        self.where, self.weight = nn.Conv2d(4, 27, 3, padding=1), weight(3, 4, 9)

    def forward(self, x):
        h = self.where(x)
        ys, xs = torch.meshgrid(torch.arange(6.0), torch.arange(7.0), indexing="ij")
        dy, dx = torch.meshgrid(torch.arange(-1.0, 2), torch.arange(-1.0, 2), indexing="ij")
        py = ys + dy.reshape(9, 1, 1) + h[:, 0:18:2]
        px = xs + dx.reshape(9, 1, 1) + h[:, 1:18:2]
        at = torch.stack([2 * px / 6 - 1, 2 * py / 5 - 1], -1).flatten(1, 2)
        v = F.grid_sample(x, at, align_corners=True).view(2, 4, 9, 6, 7) * h[:, None, 18:].sigmoid()
        return torch.einsum("bckhw,ock->bohw", v, self.weight)


class Equivariant(nn.Module):
    """Messages along edges that move nodes by their differences."""

    def __init__(self):
        super().__init__()
        self.edge, self.move, self.node = nn.Sequential(nn.Linear(11, 8), nn.SiLU()), nn.Linear(8, 1, bias=False), nn.Linear(13, 5)

    def forward(self, x, p, i, j):
        d = p[i] - p[j]
        m = self.edge(torch.cat([x[i], x[j], d.square().sum(-1, keepdim=True)], -1))
        count = torch.zeros(6, 1).index_add(0, i, torch.ones(9, 1)).clamp(min=1)
        p = p + torch.zeros(6, 3).index_add(0, i, d / (d.norm(dim=-1, keepdim=True) + 1) * self.move(m)) / count
        return torch.cat([p, x + self.node(torch.cat([x, torch.zeros(6, 8).index_add(0, i, m)], -1))], -1)


class Runge(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5))

    def forward(self, x):
        def f(t, y):
            return self.f(torch.cat([y, torch.full_like(y[:, :1], t)], -1))

        for n in range(3):
            t, h = n / 3, 1 / 3
            a = f(t, x)
            b = f(t + h / 2, x + h / 2 * a)
            c = f(t + h / 2, x + h / 2 * b)
            x = x + h / 6 * (a + 2 * b + 2 * c + f(t + h, x + h * c))
        return x


class Half(nn.Module):
    """The half of a matrix that is trained, as a parametrization."""

    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


class Symmetric(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 5)
        parametrize.register_parametrization(self.layer, "weight", Half())

    def forward(self, x):
        return self.layer(self.layer(x))


class Wavelets(nn.Module):
    """Frames of a wave by a kernel that is written as band passes of learned edges."""

    def __init__(self):
        super().__init__()
        self.low, self.band = nn.Parameter(torch.tensor([[0.05], [0.1], [0.2]])), nn.Parameter(torch.tensor([[0.05], [0.1], [0.1]]))
        self.register_buffer("n", 2 * math.pi * torch.arange(-3, 0.0).view(1, -1))
        self.register_buffer("window_", 0.54 - 0.46 * torch.cos(2 * math.pi * torch.arange(3) / 7))

    def forward(self, x):
        low = 0.01 + self.low.abs()
        high = (low + 0.01 + self.band.abs()).clamp(max=0.5)
        left = ((high @ self.n).sin() - (low @ self.n).sin()) / (self.n / 2) * self.window_
        band = torch.cat([left, 2 * (high - low), left.flip(1)], 1) / (2 * (high - low))
        return F.conv1d(x, band.view(3, 1, 7), padding=3)


def of(part):
    return lambda: dict(net=part())


def call(module, *given):
    return module.net(*given)


programs(
    "blocks",
    [
        ("block-mixed", of(Mixed), TOKENS, call),
        ("block-gated-recurrence", of(GatedRecurrence), TOKENS, call),
        ("block-segments", of(Segments), TOKENS, call),
        ("block-retention", of(Retention), TOKENS, call),
        ("block-delta-rule", of(DeltaRule), TOKENS, call),
        ("block-exponential-gates", of(ExponentialGates), TOKENS, call),
        ("block-latent", of(Latent), TOKENS, call),
        ("block-windows", of(Windows), dict(x=TOKENS, i=lambda: torch.arange(5).expand(2, 5).contiguous()), call),
        ("block-pairs", of(Pairs), dict(x=ROWS, z=ROWS), call),
        ("block-prototypes", of(Prototypes), dict(x=ROWS, z=ROWS), call),
        ("block-invertible-map", of(InvertibleMap), IMAGE, call),
        ("block-gates", of(Gates), dict(x=ROWS, u=(5,)), call),
        ("block-seeds", of(Seeds), TOKENS, call),
        ("block-product-keys", of(ProductKeys), ROWS, call),
        ("block-addressed", of(Addressed), ROWS, call),
        ("block-offsets", of(Offsets), IMAGE, call),
        ("block-equivariant", of(Equivariant), dict(x=ROWS, p=(6, 3), i=lambda: labels(6, 9), j=lambda: labels(6, 9)), call),
        ("block-runge", of(Runge), ROWS, call),
        ("block-symmetric", of(Symmetric), ROWS, call),
        ("block-wavelets", of(Wavelets), (2, 1, 12), call),
    ],
)
