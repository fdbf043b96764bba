"""Further programs of kinds that were reported: what weights become, parameters that begin alike, buffers, stopped gradients."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import CONV, CONV1, IMAGE, LINE, LINEAR, PAIRS, ROWS, labels, programs, weight

TOKENS = (2, 6, 8)
VOLUME = (2, 4, 3, 4, 5)
TABLE = lambda: dict(w=weight(4, 5), b=nn.Linear(5, 4))  # noqa: E731
SQUARE = lambda: dict(w=weight(5, 5))  # noqa: E731


def zeros(*shape):
    return nn.Parameter(torch.zeros(shape))


def ones(*shape):
    return nn.Parameter(torch.ones(shape))


def applied(by):
    """x through a linear map whose weight is a function of a parameter."""
    return lambda m, x: F.linear(x, by(m.w)) + m.b(x)


def cut(w):
    """The larger half of each row, by its own median."""
    return torch.where(w >= w.median(1, keepdim=True).values, w, 0.0)


programs("kind-weight", [
    ("kind-weight-layer-norm", TABLE, ROWS, applied(lambda w: F.layer_norm(w, (5,)))),
    ("kind-weight-layer-norm-next", TABLE, ROWS, lambda m, x: F.linear(x, F.layer_norm(m.w, (5,))) + F.linear(x, m.w)),
    ("kind-weight-group-norm", lambda: dict(w=weight(4, 6), b=nn.Linear(6, 4)), (3, 6), applied(lambda w: F.group_norm(w, 2))),
    ("kind-weight-instance-norm", lambda: dict(w=weight(4, 4, 3, 3)), IMAGE, lambda m, x: F.conv2d(x, F.instance_norm(m.w), padding=1)),
    ("kind-weight-batch-norm-1d", lambda: dict(w=weight(4, 4, 3)), LINE, lambda m, x: F.conv1d(x, F.batch_norm(m.w.reshape(1, 4, -1), None, None, training=True, eps=1e-4).reshape_as(m.w), padding=1)),
    ("kind-weight-batch-norm-3d", lambda: dict(w=weight(4, 4, 2, 2, 2)), VOLUME, lambda m, x: F.conv3d(x, F.batch_norm(m.w.view(1, 4, -1), None, None, training=True).view_as(m.w))),
    ("kind-weight-batch-norm-scaled", lambda: dict(w=weight(4, 4, 3, 3), g=weight(4)), IMAGE, lambda m, x: F.conv2d(x, F.batch_norm(m.w.view(1, 4, -1), None, None, weight=m.g * 0.3, training=True).view_as(m.w), padding=1)),
    ("kind-weight-var-mean", TABLE, ROWS, applied(lambda w: (lambda v, mean: (w - mean) / (v + 1e-5).sqrt())(*torch.var_mean(w, 1, keepdim=True)))),
    ("kind-weight-std-mean", lambda: dict(w=weight(4, 4, 3, 3)), IMAGE, lambda m, x: F.conv2d(x, (lambda s, mean: (m.w - mean) / (s + 1e-6))(*torch.std_mean(m.w, (1, 2, 3), keepdim=True)), padding=1)),
    ("kind-weight-standardized-line", lambda: dict(w=weight(4, 4, 3)), LINE, lambda m, x: F.conv1d(x, (m.w - m.w.mean((1, 2), keepdim=True)) / (m.w.std((1, 2), keepdim=True) + 1e-5), padding=1)),
    ("kind-weight-centred-turned", lambda: dict(w=weight(4, 5, 3)), LINE, lambda m, x: F.conv_transpose1d(x, m.w - m.w.mean(dim=(0, 2), keepdim=True))),
    ("kind-weight-sorted", TABLE, ROWS, applied(lambda w: w.sort(1).values)),
    ("kind-weight-top", TABLE, ROWS, lambda m, x: F.linear(x[:, :3], m.w.topk(3, 1).values) + m.b(x)),
    ("kind-weight-range", TABLE, ROWS, applied(lambda w: (lambda low, high: (w - low) / (high - low))(*torch.aminmax(w)))),
    ("kind-weight-max-of-kernels", lambda: dict(w=weight(3, 4, 4, 3, 3)), IMAGE, lambda m, x: F.conv2d(x, m.w.amax(0), padding=1)),
    ("kind-weight-max-dim-line", lambda: dict(w=weight(3, 4, 4, 3)), LINE, lambda m, x: F.conv1d(x, m.w.max(0).values, padding=1)),
    ("kind-weight-pooled", lambda: dict(w=weight(4, 4, 6)), LINE, lambda m, x: F.conv1d(x, F.max_pool1d(m.w, 2), padding=1)),
    ("kind-weight-cumulated-extreme", TABLE, ROWS, applied(lambda w: w.cummax(1).values)),
    ("kind-weight-cumulated", TABLE, ROWS, applied(lambda w: w.cumsum(1))),
    ("kind-weight-median", TABLE, ROWS, applied(cut)),
    ("kind-weight-rms", TABLE, ROWS, applied(lambda w: F.rms_norm(w, (5,), eps=1e-5))),
    ("kind-weight-orthogonal", SQUARE, ROWS, lambda m, x: x @ torch.linalg.qr(m.w).Q),
    ("kind-weight-singular", SQUARE, ROWS, lambda m, x: x @ (m.w / torch.linalg.matrix_norm(m.w, 2))),
    ("kind-weight-soft-max", TABLE, ROWS, applied(lambda w: F.softmax(w, dim=1))),
    ("kind-weight-log-sum", TABLE, ROWS, applied(lambda w: w - w.logsumexp(1, keepdim=True))),
    ("kind-weight-unit-columns", TABLE, ROWS, applied(lambda w: F.normalize(w, dim=0))),
    ("kind-weight-unit-one", TABLE, ROWS, applied(lambda w: F.normalize(w, p=1, dim=1))),
    ("kind-weight-scaled-by-largest", TABLE, ROWS, applied(lambda w: w / w.abs().max())),
    ("kind-weight-scaled-by-largest-stopped", TABLE, ROWS, applied(lambda w: w / w.detach().abs().max())),
    ("kind-weight-quantized-rows", TABLE, ROWS, applied(lambda w: (lambda s: w + ((w / s).round() * s - w).detach())(w.detach().abs().amax(1, keepdim=True) / 7))),
    ("kind-weight-quantized-kernel", lambda: dict(w=weight(4, 4, 3)), LINE, lambda m, x: F.conv1d(x, (lambda q: m.w - (m.w - q).detach())(m.w.mul(4).round().clamp(-8, 7) / 4), padding=1)),
    ("kind-weight-ternary", TABLE, ROWS, applied(lambda w: (lambda s: (((w / s).round().clamp(-1, 1)) * s - w).detach() + w)(w.abs().mean().clamp(min=1e-5)))),
    ("kind-weight-sign-scaled", TABLE, ROWS, applied(lambda w: (w.abs().mean(1, keepdim=True) * w.sign() - w).detach() + w)),
    ("kind-weight-local-response", lambda: dict(w=weight(4, 4, 3)), LINE, lambda m, x: F.conv1d(x, F.local_response_norm(m.w, 2), padding=1)),
    ("kind-weight-gelu", TABLE, ROWS, applied(F.gelu)),
    ("kind-weight-flip-sum", SQUARE, ROWS, lambda m, x: x @ (m.w + m.w.flip(0)) / 2),
    ("kind-weight-interpolated", lambda: dict(w=weight(4, 4, 3)), LINE, lambda m, x: F.conv1d(x, F.interpolate(m.w, size=5, mode="linear", align_corners=True), padding=2)),
    ("kind-weight-unfolded", lambda: dict(w=weight(12)), (3, 4), lambda m, x: x @ m.w.unfold(0, 4, 2).T),
    ("kind-weight-outer", lambda: dict(u=weight(4), v=weight(5), b=nn.Linear(5, 4)), ROWS, lambda m, x: F.linear(x, torch.outer(m.u, m.v)) + m.b(x)),
    ("kind-weight-diagonal", lambda: dict(d=weight(5)), ROWS, lambda m, x: x @ torch.diag(m.d) + x @ torch.diag_embed(m.d).T),
    ("kind-weight-where", TABLE, ROWS, applied(lambda w: torch.where(w.abs() > 0.2, w, torch.zeros_like(w)))),
    ("kind-weight-hard-threshold", TABLE, ROWS, applied(lambda w: w * (w.abs() > 0.2))),
    ("kind-weight-soft-threshold", TABLE, ROWS, applied(lambda w: F.softshrink(w, 0.1))),
])  # fmt: skip


def cloned(make, *names):
    """Layers that are copies of one layer when training begins."""
    first = make()
    return {name: copy.deepcopy(first) for name in names}


class Residual(nn.Module):
    """Weights of the stream and of the first values in every layer, as small language models train them."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.stream, self.first = ones(3), zeros(3)

    def forward(self, x):
        h = F.rms_norm(x, (8,))
        first = h
        for i, layer in enumerate(self.layers):
            h = self.stream[i] * h + self.first[i] * first
            h = h + layer(F.rms_norm(h, (8,))).relu().square()
        return h


class Skips(nn.Module):
    """Connections from the first half to the second, weighed by ones."""

    def __init__(self):
        super().__init__()
        self.layers, self.weights = nn.ModuleList(nn.Linear(8, 8) for _ in range(4)), ones(2)

    def forward(self, x):
        kept = []
        for i, layer in enumerate(self.layers):
            if i >= 2:
                x = x + self.weights[i - 2] * kept.pop()
            x = x + torch.tanh(layer(x))
            if i < 2:
                kept.append(x)
        return x


class Streams(nn.Module):
    """Two streams that layers read and write by learned weights."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        self.read = nn.ParameterList(ones(2) for _ in range(2))
        self.write = nn.ParameterList(ones(2) for _ in range(2))
        self.mix = nn.ParameterList(nn.Parameter(torch.eye(2)) for _ in range(2))

    def forward(self, x):
        h = torch.stack([x, x])
        for layer, read, write, mix in zip(self.layers, self.read, self.write, self.mix):
            out = layer((read.view(2, 1, 1, 1) * h).sum(0)).tanh()
            h = torch.einsum("ij,j...->i...", mix, h) + write.view(2, 1, 1, 1) * out
        return h.sum(0)


class Modulated(nn.Module):
    """Six modulations of which all begin as zeros, and a last layer of zeros."""

    def __init__(self):
        super().__init__()
        self.ada, self.n1, self.n2 = nn.Linear(3, 48), nn.LayerNorm(8, elementwise_affine=False), nn.LayerNorm(8, elementwise_affine=False)
        self.a, self.b, self.last = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        for layer in (self.ada, self.last):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x, c):
        s1, k1, g1, s2, k2, g2 = self.ada(F.silu(c))[:, None].chunk(6, -1)
        x = x + g1 * self.a(self.n1(x) * (1 + k1) + s1)
        x = x + g2 * self.b(self.n2(x) * (1 + k2) + s2)
        return self.last(x)


class Adapted(nn.Module):
    """A prompt whose attention is gated by tanh of zero, for each head."""

    def __init__(self):
        super().__init__()
        self.q, self.kv, self.prompt, self.gate = nn.Linear(8, 8), nn.Linear(8, 16), weight(1, 3, 8), zeros(1, 2, 1, 1)

    def forward(self, x):
        split = lambda t: t.unflatten(-1, (2, 4)).transpose(1, 2)  # noqa: E731
        q, (k, v) = split(self.q(x)), map(split, self.kv(x).chunk(2, -1))
        pk, pv = map(split, self.kv(self.prompt).chunk(2, -1))
        out = (q @ k.mT / 2).softmax(-1) @ v + self.gate.tanh() * ((q @ pk.mT / 2).softmax(-1) @ pv)
        return out.transpose(1, 2).flatten(2)


class Ensemble(nn.Module):
    """Members that share a layer and scale its inputs and outputs."""

    def __init__(self):
        super().__init__()
        self.a, self.r, self.s, self.t = nn.Linear(5, 4), ones(2, 5), ones(2, 4), zeros(2, 4)

    def forward(self, x):
        h = x.view(2, 3, 5)
        return (F.linear(h * self.r[:, None], self.a.weight) * self.s[:, None] + self.t[:, None]).flatten(0, 1) + self.a.bias


class Terms(nn.Module):
    """Losses of several tasks, each under a scale of its own, in a loop over a list of parameters."""

    def __init__(self, first=0.0):
        super().__init__()
        self.a, self.scales = nn.Linear(5, 4), nn.ParameterList(nn.Parameter(torch.tensor(first)) for _ in range(3))

    def forward(self, x, t):
        h = self.a(x)
        losses = (F.mse_loss(h, t), F.l1_loss(h, t), F.smooth_l1_loss(h, t))
        return sum(torch.exp(-s) * loss + s for s, loss in zip(self.scales, losses)) / 3


class Squares(Terms):
    """The same with loss / 2 σ² + log(1 + σ²)."""

    def __init__(self):
        super().__init__(1.0)

    def forward(self, x, t):
        h = self.a(x)
        losses = (F.mse_loss(h, t), F.l1_loss(h, t), F.smooth_l1_loss(h, t))
        return sum(0.5 / s**2 * loss + torch.log(1 + s**2) for s, loss in zip(self.scales, losses))


programs("kind-begin", [
    ("kind-begin-stream", lambda: dict(n=Residual()), TOKENS, lambda m, x: m.n(x)),
    ("kind-begin-skips", lambda: dict(n=Skips()), TOKENS, lambda m, x: m.n(x)),
    ("kind-begin-streams", lambda: dict(n=Streams()), TOKENS, lambda m, x: m.n(x)),
    ("kind-begin-modulated", lambda: dict(n=Modulated()), dict(x=TOKENS, c=(2, 3)), lambda m, x, c: m.n(x, c)),
    ("kind-begin-prompt", lambda: dict(n=Adapted()), TOKENS, lambda m, x: m.n(x)),
    ("kind-begin-ensemble", lambda: dict(n=Ensemble()), ROWS, lambda m, x: m.n(x)),
    ("kind-begin-terms", lambda: dict(n=Terms()), PAIRS, lambda m, x, t: m.n(x, t)),
    ("kind-begin-squares", lambda: dict(n=Squares()), PAIRS, lambda m, x, t: m.n(x, t)),
    ("kind-begin-interpolation", lambda: dict(LINEAR(), b=nn.Linear(5, 4), g=zeros(1)), ROWS, lambda m, x: m.a(x) + m.g * (m.b(x) - m.a(x))),
    ("kind-begin-lerp", lambda: dict(LINEAR(), b=nn.Linear(5, 4), g=zeros(4)), ROWS, lambda m, x: torch.lerp(m.a(x), m.b(x), m.g)),
    ("kind-begin-blend", lambda: dict(LINEAR(), b=nn.Linear(5, 4), g=ones(1)), ROWS, lambda m, x: m.g * m.a(x) + (1 - m.g) * m.b(x)),
    ("kind-begin-sigmoid-blend", lambda: dict(LINEAR(), b=nn.Linear(5, 4), g=zeros(1), k=zeros(1)), ROWS, lambda m, x: m.g.sigmoid() * m.a(x) + (1 - m.g.sigmoid()) * m.k.sigmoid() * m.b(x)),
    ("kind-begin-power-one", lambda: dict(LINEAR(), p=ones(1)), ROWS, lambda m, x: m.a(x).sigmoid() ** m.p),
    ("kind-begin-division-one", lambda: dict(LINEAR(), t=ones(1)), ROWS, lambda m, x: (m.a(x) / m.t).softmax(1)),
    ("kind-begin-shift", lambda: dict(LINEAR(), s=zeros(4)), ROWS, lambda m, x: (m.a(x) - m.s).tanh() + m.s),
    ("kind-begin-image-scale", lambda: dict(CONV(), b=nn.Conv2d(4, 4, 1), g=ones(4), h=ones(4), s=zeros(4)), IMAGE, lambda m, x: m.b(F.relu(m.a(x)) * m.g.view(1, -1, 1, 1)) * m.h.view(1, -1, 1, 1) + m.s.view(1, -1, 1, 1)),
    ("kind-begin-scale-line", lambda: dict(CONV1(), b=nn.Conv1d(4, 4, 1), g=nn.Parameter(torch.full((4, 1), 1e-6)), h=nn.Parameter(torch.full((4, 1), 1e-6))), LINE, lambda m, x: (lambda h: h + m.h * m.b(h))(x + m.g * m.a(x))),
    ("kind-begin-one-plus", lambda: dict(LINEAR(), g=zeros(4), s=zeros(4), b=nn.Linear(4, 4), k=zeros(4)), ROWS, lambda m, x: m.b(m.a(x).tanh() * (1 + m.g) + m.s) * (1 + m.k)),
    ("kind-begin-dynamic-tanh", lambda: dict(a=nn.Linear(8, 8), b=nn.Linear(8, 8), p=nn.Parameter(torch.tensor([0.5])), q=nn.Parameter(torch.tensor([0.5])), g=ones(8), h=ones(8), s=zeros(8), t=zeros(8)), TOKENS, lambda m, x: (lambda h: h + m.b(torch.tanh(m.q * h) * m.h + m.t))(x + m.a(torch.tanh(m.p * x) * m.g + m.s))),
    ("kind-begin-adapters", lambda: dict(a=nn.Linear(8, 8), k=ones(8), v=ones(8), f=ones(8), b=nn.Linear(8, 8)), TOKENS, lambda m, x: m.b(F.relu(m.a(x) * m.k) * m.f) * m.v),
    ("kind-begin-closed-line", lambda: dict(CONV1(), z=nn.Conv1d(4, 4, 1), y=nn.Conv1d(4, 4, 1)), LINE, lambda m, x: m.z(m.a(x) + m.y(x)) + x),
    ("kind-begin-norms-volume", lambda: dict(a=nn.Conv3d(4, 4, 1), n=nn.GroupNorm(2, 4), b=nn.Conv3d(4, 4, 1), o=nn.GroupNorm(2, 4), p=nn.GroupNorm(4, 4)), VOLUME, lambda m, x: m.p(m.b(m.o(F.silu(m.n(m.a(x)))) + x))),
    ("kind-begin-norms-instance", lambda: dict(CONV1(), n=nn.InstanceNorm1d(4, affine=True), b=nn.Conv1d(4, 4, 1), o=nn.InstanceNorm1d(4, affine=True)), LINE, lambda m, x: m.o(m.b(F.relu(m.n(m.a(x))))) + x),
    ("kind-begin-norms-layers", lambda: dict(a=nn.Linear(8, 8), n=nn.LayerNorm(8), o=nn.LayerNorm(8), p=nn.LayerNorm(8, bias=False), q=nn.RMSNorm(8)), TOKENS, lambda m, x: m.q(m.p(m.o(m.n(x)) + m.a(x)))),
    ("kind-begin-slopes", lambda: dict(CONV(), p=nn.PReLU(4), b=nn.Conv2d(4, 4, 1), q=nn.PReLU(4), r=nn.PReLU(), s=nn.PReLU()), IMAGE, lambda m, x: m.s(m.r(m.q(m.b(m.p(m.a(x)))) - 0.1))),
    ("kind-begin-list-of-scales", lambda: dict(l=nn.ModuleList(nn.Linear(8, 8) for _ in range(3)), s=nn.ParameterList(nn.Parameter(torch.tensor(0.1)) for _ in range(3))), TOKENS, lambda m, x: looped(m, x)),
    ("kind-begin-mixed-layers", lambda: dict(l=nn.ModuleList(nn.Linear(8, 8) for _ in range(3)), s=zeros(3), g=ones(1)), TOKENS, lambda m, x: m.g * sum(w * layer(x) for w, layer in zip(m.s.softmax(0), m.l))),
    ("kind-begin-relative-table", lambda: dict(q=nn.Linear(8, 8), t=zeros(2, 11), u=zeros(2, 11)), TOKENS, lambda m, x: relative(m, x)),
    ("kind-begin-heads-zero", lambda: dict(a=nn.Linear(5, 8), h=nn.ModuleList(zeroed(nn.Linear(8, 3)) for _ in range(2))), dict(x=ROWS, y=lambda: labels(3, 6)), lambda m, x, y: sum(F.cross_entropy(h(m.a(x).relu()), y) for h in m.h)),
    ("kind-begin-copied-lines", lambda: cloned(lambda: nn.Conv1d(4, 4, 3, padding=1), "a", "b"), LINE, lambda m, x: m.a(x) - 0.5 * m.b(x).relu()),
    ("kind-begin-copied-norms", lambda: cloned(lambda: nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), "a", "b"), IMAGE, lambda m, x: m.a(x) * 2 + m.b(x).square()),
    ("kind-begin-copied-recurrent", lambda: cloned(lambda: nn.GRU(8, 8, batch_first=True), "a", "b"), TOKENS, lambda m, x: m.a(x)[0] + m.b(x)[0].square()),
    ("kind-begin-copied-tables", lambda: cloned(lambda: nn.Embedding(9, 4), "a", "b"), dict(i=lambda: labels(9, 2, 6)), lambda m, i: m.a(i) * 2 + m.b(i).square()),
    ("kind-begin-uncertain-tasks-list", lambda: dict(LINEAR(), v=nn.ParameterDict({k: zeros(1) for k in ("one", "two")})), PAIRS, lambda m, x, t: (lambda h: sum((l * torch.exp(-m.v[k]) + m.v[k]).sum() for k, l in (("one", F.mse_loss(h, t)), ("two", F.l1_loss(h, t)))))(m.a(x))),
])  # fmt: skip


def looped(m, x):
    for layer, scale in zip(m.l, m.s):
        x = x + scale * torch.tanh(layer(x))
    return x


def zeroed(layer):
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def relative(m, x):
    at = torch.arange(6)[:, None] - torch.arange(6) + 5
    q = m.q(x).unflatten(-1, (2, 4)).transpose(1, 2)
    k = x.unflatten(-1, (2, 4)).transpose(1, 2)
    w = (q @ k.transpose(-1, -2) + m.t[:, at]).softmax(-1) + 0.1 * m.u[:, at].sigmoid()
    return (w @ k).transpose(1, 2).flatten(2)
