"""Programs whose loss has terms of weights alone, and programs that learn their first states."""

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import PAIRS, ROWS, labels, programs, weight

TOKENS = (3, 4, 5)


class Recurrent(nn.Module):
    """A recurrent network with learned first states, stacked and repeated for each sample."""

    def __init__(self, kind, layers, both=False, batch_first=True, contiguous=False):
        super().__init__()
        self.net = kind(5, 4, layers, bidirectional=both, batch_first=batch_first)
        self.kind, self.batch_first, self.contiguous = kind, batch_first, contiguous
        self.h0 = weight(layers * (1 + both), 1, 4)
        if kind is nn.LSTM:
            self.c0 = weight(layers * (1 + both), 1, 4)
        self.head = nn.Linear(4 * (1 + both), 2)

    def repeat(self, state, x):
        state = state.expand(-1, x.shape[0 if self.batch_first else 1], -1)
        return state.contiguous() if self.contiguous else state

    def forward(self, x):
        h = self.repeat(self.h0, x)
        out, _ = self.net(x, (h, self.repeat(self.c0, x)) if self.kind is nn.LSTM else h)
        return self.head(out)


class Repeated(Recurrent):
    def repeat(self, state, x):
        return state.repeat(1, x.shape[0], 1)


class Vectors(Recurrent):
    """A vector for each layer, with the dimension of samples added."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.h0 = nn.Parameter(self.h0.detach()[:, 0])
        if self.kind is nn.LSTM:
            self.c0 = nn.Parameter(self.c0.detach()[:, 0])

    def repeat(self, state, x):
        return state[:, None].repeat(1, x.shape[0], 1)


class Zeros(Recurrent):
    """States that begin at zero, as most do."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.h0 = nn.Parameter(torch.zeros_like(self.h0))
        if self.kind is nn.LSTM:
            self.c0 = nn.Parameter(torch.zeros_like(self.c0))


class FromContext(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.net, self.kind = kind(5, 4, 2, batch_first=True), kind
        self.start, self.cell, self.head = nn.Linear(3, 8), nn.Linear(3, 8), nn.Linear(4, 2)

    def forward(self, x, z):
        make = lambda layer: layer(z).tanh().view(-1, 2, 4).transpose(0, 1).contiguous()  # noqa: E731
        h = make(self.start)
        return self.head(self.net(x, (h, make(self.cell)) if self.kind is nn.LSTM else h)[0])


class Elastic(nn.Module):
    """Elastic weight consolidation: what an earlier task needs is held in place."""

    def __init__(self, half=False, drift=0.1):
        super().__init__()
        self.net, self.half = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4)), half
        for name, p in self.net.named_parameters():
            self.register_buffer("old_" + name.replace(".", "_"), p.detach().clone() + drift * torch.randn(p.shape))
            self.register_buffer("fisher_" + name.replace(".", "_"), torch.rand(p.shape))

    def forward(self, x, t):
        loss = F.mse_loss(self.net(x), t)
        held = 0
        for name, p in self.net.named_parameters():
            name = name.replace(".", "_")
            fisher, old = getattr(self, "fisher_" + name), getattr(self, "old_" + name)
            held = held + (fisher * (p - old) ** 2).sum()
        return loss + (0.5 * 40.0 if self.half else 10.0) * held


class ElasticList(Elastic):
    def forward(self, x, t):
        terms = []
        for name, p in self.net.named_parameters():
            name = name.replace(".", "_")
            terms.append((getattr(self, "fisher_" + name) * (p - getattr(self, "old_" + name)).pow(2)).sum())
        return F.mse_loss(self.net(x), t) + 5.0 * torch.stack(terms).sum()


class Cross(nn.Module):
    def __init__(self, layers=3, size=5, matrix=False):
        super().__init__()
        self.matrix = matrix
        self.w = nn.ParameterList([weight(size, size if matrix else 1) for _ in range(layers)])
        self.b = nn.ParameterList([nn.Parameter(torch.zeros(size)) for _ in range(layers)])
        self.deep, self.head = nn.Sequential(nn.Linear(size, 6), nn.ReLU()), nn.Linear(size + 6, 1)

    def cross(self, x):
        x0 = x
        for w, b in zip(self.w, self.b):
            x = x0 * (x @ w.T + b) + x if self.matrix else x0 * (x @ w) + b + x
        return x

    def forward(self, x):
        return self.head(torch.cat([self.cross(x), self.deep(x)], 1))


class CrossVectors(Cross):
    def __init__(self):
        super().__init__()
        self.w = nn.ParameterList([weight(5) for _ in range(3)])

    def cross(self, x):
        x0 = x
        for w, b in zip(self.w, self.b):
            x = x0 * (x * w).sum(1, keepdim=True) + b + x
        return x


class CrossColumns(Cross):
    """As DeepCTR writes it: samples as columns."""

    def __init__(self):
        super().__init__()
        self.kernels = nn.Parameter(torch.randn(3, 5, 1) * 0.5)
        self.bias = nn.Parameter(torch.zeros(3, 5, 1))
        del self.w, self.b

    def cross(self, x):
        x0 = x.unsqueeze(2)
        xl = x0
        for i in range(3):
            xw = torch.tensordot(xl, self.kernels[i], dims=([1], [0]))
            xl = torch.matmul(x0, xw) + self.bias[i] + xl
        return xl.squeeze(2)


class CrossColumnsMatrix(CrossColumns):
    def __init__(self):
        super().__init__()
        self.kernels = nn.Parameter(torch.randn(3, 5, 5) * 0.5)

    def cross(self, x):
        x0 = x.unsqueeze(2)
        xl = x0
        for i in range(3):
            xl = x0 * (torch.matmul(self.kernels[i], xl) + self.bias[i]) + xl
        return xl.squeeze(2)


class CrossLinear(Cross):
    """As torchrec writes it: a layer for each."""

    def __init__(self):
        super().__init__()
        self.w, self.b = nn.ModuleList([nn.Linear(5, 5) for _ in range(3)]), None

    def cross(self, x):
        x0 = x
        for layer in self.w:
            x = x0 * layer(x) + x
        return x


class CrossMix(nn.Module):
    """Experts of low rank, chosen by gates."""

    def __init__(self, layers=2, size=5, rank=2, experts=3):
        super().__init__()
        self.u, self.v = weight(layers, experts, size, rank), weight(layers, experts, size, rank)
        self.c = weight(layers, experts, rank, rank)
        self.bias = nn.Parameter(torch.zeros(layers, size, 1))
        self.gates = nn.ModuleList([nn.Linear(size, 1, bias=False) for _ in range(experts)])
        self.head, self.layers, self.experts = nn.Linear(size, 1), layers, experts

    def forward(self, x):
        x0 = x.unsqueeze(2)
        xl = x0
        for i in range(self.layers):
            outs, scores = [], []
            for e in range(self.experts):
                scores.append(self.gates[e](xl.squeeze(2)))
                v = torch.tanh(torch.matmul(self.v[i][e].t(), xl))
                v = torch.tanh(torch.matmul(self.c[i][e], v))
                uv = torch.matmul(self.u[i][e], v)
                outs.append((x0 * (uv + self.bias[i])).squeeze(2))
            outs, scores = torch.stack(outs, 2), torch.stack(scores, 1)
            xl = torch.matmul(outs, scores.softmax(1)) + xl
        return self.head(xl.squeeze(2))


class Tied(nn.Module):
    """A table that is its head's weight, and a batch norm between."""

    def __init__(self):
        super().__init__()
        self.table, self.a, self.norm, self.head = nn.Embedding(7, 5), nn.Linear(5, 5), nn.BatchNorm1d(5), nn.Linear(5, 7, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x):
        return self.head(self.norm(self.a(self.table(x)).relu()))


MLP = lambda: dict(n=nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4)))  # noqa: E731
NORMED = lambda: dict(n=nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.BatchNorm1d(6), nn.Linear(6, 4)))  # noqa: E731
CONVS = lambda: dict(n=nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 3)))  # noqa: E731
IMAGES = dict(x=(2, 3, 6, 6), t=(2, 2, 2, 2))


def penalized(penalty):
    return lambda m, x, t: F.mse_loss(m.n(x), t) + penalty(m)


def named(penalty):
    """A tied model's loss."""
    return lambda m, x, y: F.cross_entropy(m.n(x), y) + penalty(m)


SQUARES = lambda m: 1e-2 * sum(p.pow(2).sum() for p in m.parameters())  # noqa: E731
NORMS = lambda m: 1e-2 * sum(p.norm() for p in m.parameters())  # noqa: E731
SIZES = lambda m: 1e-3 * sum(p.abs().sum() for p in m.parameters())  # noqa: E731
TIED = dict(x=lambda: labels(7, 6), y=lambda: labels(7, 6))

programs("states", [
    (f"states-{name}-{form}", lambda make=make, kind=kind, layers=layers, both=both: dict(n=make(kind, layers, both)), TOKENS, lambda m, x: m.n(x))
    for form, make, layers, both in (("stacked", Recurrent, 2, False), ("both", Recurrent, 2, True), ("repeated", Repeated, 3, False), ("vectors", Vectors, 2, False), ("single", Recurrent, 1, False), ("zeros", Zeros, 2, False))
    for name, kind in (("lstm", nn.LSTM), ("gru", nn.GRU), ("rnn", nn.RNN))
] + [
    ("states-context-lstm", lambda: dict(n=FromContext(nn.LSTM)), dict(x=TOKENS, z=(3, 3)), lambda m, x, z: m.n(x, z)),
    ("states-context-gru", lambda: dict(n=FromContext(nn.GRU)), dict(x=TOKENS, z=(3, 3)), lambda m, x, z: m.n(x, z)),
    ("states-lstm-time-first", lambda: dict(n=Recurrent(nn.LSTM, 2, True, batch_first=False, contiguous=True)), TOKENS, lambda m, x: m.n(x)),
])  # fmt: skip

programs("weights-held", [
    ("weights-held", lambda: dict(n=Elastic()), PAIRS, lambda m, x, t: m.n(x, t)),
    ("weights-held-half", lambda: dict(n=Elastic(half=True)), PAIRS, lambda m, x, t: m.n(x, t)),
    ("weights-held-list", lambda: dict(n=ElasticList()), PAIRS, lambda m, x, t: m.n(x, t)),
    ("weights-held-still", lambda: dict(n=Elastic(drift=0.0)), PAIRS, lambda m, x, t: m.n(x, t)),
])  # fmt: skip

programs("decay", [
    ("decay-squares", MLP, PAIRS, penalized(SQUARES)),
    ("decay-norms", MLP, PAIRS, penalized(NORMS)),
    ("decay-sizes", MLP, PAIRS, penalized(SIZES)),
    ("decay-squares-norm", NORMED, PAIRS, penalized(SQUARES)),
    ("decay-norms-norm", NORMED, PAIRS, penalized(NORMS)),
    ("decay-sizes-norm", NORMED, PAIRS, penalized(SIZES)),
    ("decay-squares-convs", CONVS, IMAGES, penalized(SQUARES)),
    ("decay-norms-convs", CONVS, IMAGES, penalized(NORMS)),
    ("decay-sizes-convs", CONVS, IMAGES, penalized(SIZES)),
    ("decay-squares-tied", lambda: dict(n=Tied()), TIED, named(SQUARES)),
    ("decay-norms-tied", lambda: dict(n=Tied()), TIED, named(NORMS)),
    ("decay-sizes-tied", lambda: dict(n=Tied()), TIED, named(SIZES)),
    ("decay-halves", MLP, PAIRS, penalized(lambda m: 0.5 * 1e-3 * sum((p**2).sum() for p in m.parameters()))),
    ("decay-squared-norms", MLP, PAIRS, penalized(lambda m: 1e-3 * sum(p.norm(2) ** 2 for p in m.parameters()))),
    ("decay-loop", MLP, PAIRS, lambda m, x, t: looped(m, F.mse_loss(m.n(x), t), lambda p: 1e-3 * p.pow(2).sum())),
    ("decay-loop-norms", MLP, PAIRS, lambda m, x, t: looped(m, F.mse_loss(m.n(x), t), lambda p: 1e-3 * torch.norm(p, 2))),
    ("decay-tensor", MLP, PAIRS, lambda m, x, t: F.mse_loss(m.n(x), t) + 1e-3 * looped(m, torch.tensor(0.0), lambda p: p.pow(2).sum())),
    ("decay-elastic-net", MLP, PAIRS, penalized(lambda m: 1e-3 * sum(p.abs().sum() for p in m.parameters()) + 1e-2 * sum(p.pow(2).sum() for p in m.parameters()))),
    ("decay-weights", NORMED, PAIRS, penalized(lambda m: 1e-3 * sum(p.pow(2).sum() for n, p in m.named_parameters() if p.dim() > 1))),
    ("decay-groups", MLP, PAIRS, penalized(lambda m: 1e-3 * m.n[0].weight.pow(2).sum() + 1e-2 * m.n[2].weight.pow(2).sum())),
    ("decay-stack", MLP, PAIRS, penalized(lambda m: 1e-2 * torch.stack([p.norm() for p in m.parameters()]).sum())),
    ("decay-means", MLP, PAIRS, penalized(lambda m: 1e-2 * sum(p.pow(2).mean() for p in m.parameters()))),
    ("decay-joined", MLP, PAIRS, penalized(lambda m: 1e-2 * torch.cat([p.flatten() for p in m.parameters()]).pow(2).sum())),
    ("decay-mean-all", MLP, PAIRS, penalized(lambda m: 1e-2 * torch.cat([p.flatten() for p in m.parameters()]).abs().mean())),
    ("decay-huber", MLP, PAIRS, penalized(lambda m: 1e-2 * sum(F.smooth_l1_loss(p, torch.zeros_like(p)) for p in m.parameters()))),
    ("decay-orthogonal", MLP, PAIRS, penalized(lambda m: 1e-2 * sum((p @ p.T - torch.eye(p.shape[0])).pow(2).sum() for p in m.parameters() if p.dim() > 1))),
    ("decay-orthogonal-norm", MLP, PAIRS, penalized(lambda m: 1e-2 * sum(torch.norm(p.T @ p - torch.eye(p.shape[1])) for p in m.parameters() if p.dim() > 1))),
    ("decay-cosine", lambda: dict(n=nn.Linear(5, 4), o=nn.Linear(5, 4)), PAIRS, lambda m, x, t: F.mse_loss(m.n(x) + m.o(x), t) + 0.1 * F.cosine_similarity(m.n.weight.flatten(), m.o.weight.flatten(), dim=0)),
    ("decay-cosine-rows", lambda: dict(n=nn.Linear(5, 4), o=nn.Linear(5, 4)), PAIRS, lambda m, x, t: F.mse_loss(m.n(x) + m.o(x), t) + 0.1 * F.cosine_similarity(m.n.weight, m.o.weight, dim=1).mean()),
    ("decay-apart", lambda: dict(n=nn.Linear(5, 4), o=nn.Linear(5, 4)), PAIRS, lambda m, x, t: F.mse_loss(m.n(x) + m.o(x), t) + 0.1 * (m.n.weight - m.o.weight).pow(2).sum()),
    ("decay-apart-all", lambda: dict(n=nn.Linear(5, 4), o=nn.Linear(5, 4)), PAIRS, lambda m, x, t: F.mse_loss(m.n(x) + m.o(x), t) + 0.1 * sum((p - q).pow(2).sum() for p, q in zip(m.n.parameters(), m.o.parameters()))),
    ("decay-anchor", lambda: dict(n=nn.Linear(5, 4), w=torch.randn(4, 5)), PAIRS, lambda m, x, t: F.mse_loss(m.n(x), t) + 0.1 * (m.n.weight - m.w).pow(2).sum()),
    ("decay-group-lasso", MLP, PAIRS, penalized(lambda m: 1e-2 * sum(p.norm(dim=1).sum() for p in m.parameters() if p.dim() > 1))),
])  # fmt: skip


class Variational(nn.Module):
    """A layer whose weights are drawn around means; the loss has their divergence from a prior."""

    def __init__(self, softplus=False):
        super().__init__()
        self.mu, self.rho, self.softplus = weight(4, 5), nn.Parameter(-2 + 0.3 * torch.randn(4, 5)), softplus

    def forward(self, x, e, t):
        sigma = F.softplus(self.rho) if self.softplus else self.rho.exp()
        out = F.linear(x, self.mu + sigma * e)
        divergence = 0.5 * (sigma**2 + self.mu**2 - 1 - 2 * sigma.log()).sum()
        return F.mse_loss(out, t) + 1e-2 * divergence


class Gates(nn.Module):
    """Gates of columns, and how many of them are open."""

    def __init__(self):
        super().__init__()
        self.alpha, self.a = weight(5), nn.Linear(5, 4)

    def forward(self, x, t):
        return F.mse_loss(self.a(x * self.alpha.sigmoid()), t) + 0.05 * torch.sigmoid(self.alpha - 0.3).sum()


class Mixed(nn.Module):
    """Candidates of an architecture, and the entropy of their weights."""

    def __init__(self):
        super().__init__()
        self.alpha, self.all = weight(3), nn.ModuleList([nn.Linear(5, 4) for _ in range(3)])

    def forward(self, x, t):
        w = self.alpha.softmax(0)
        out = sum(w[i] * layer(x) for i, layer in enumerate(self.all))
        return F.mse_loss(out, t) - 0.1 * (w * w.log()).sum()


class Tokens(nn.Module):
    """A class token in front, learned places, a scale for each layer, and mask tokens."""

    def __init__(self, zeros=False):
        super().__init__()
        self.cls_token, self.mask_token = nn.Parameter(torch.zeros(1, 1, 8) if zeros else torch.randn(1, 1, 8)), nn.Parameter(torch.zeros(1, 1, 8))
        self.places, self.a = weight(1, 6, 8), nn.Linear(5, 8)
        self.layers, self.scales = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)]), nn.Parameter(torch.ones(3))
        self.gammas = nn.ParameterList([nn.Parameter(1e-4 * torch.ones(8)) for _ in range(3)])

    def forward(self, x, hidden):
        h = self.a(x)
        h = torch.where(hidden[..., None], self.mask_token.expand(h.shape[0], h.shape[1], -1), h)
        h = torch.cat([self.cls_token.expand(h.shape[0], -1, -1), h], 1) + self.places
        for i, layer in enumerate(self.layers):
            h = h + self.gammas[i] * layer(h) * self.scales[i]
        return h


class FirstStep(nn.Module):
    """A cell that begins at learned states, repeated for each sample."""

    def __init__(self, kind, zeros=False):
        super().__init__()
        self.cell, self.kind, self.head = kind(5, 4), kind, nn.Linear(4, 2)
        self.h = nn.Parameter(torch.zeros(4) if zeros else torch.randn(4))
        if kind is nn.LSTMCell:
            self.c = nn.Parameter(torch.zeros(4) if zeros else torch.randn(4))

    def forward(self, x):
        h = self.h.expand(x.shape[0], -1)
        state = (h, self.c.expand(x.shape[0], -1)) if self.kind is nn.LSTMCell else h
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
        return self.head(state[0] if self.kind is nn.LSTMCell else state)


class FromEmbedding(nn.Module):
    """First states by the speaker, from a table."""

    def __init__(self):
        super().__init__()
        self.table, self.net, self.head = nn.Embedding(6, 8), nn.GRU(5, 4, 2, batch_first=True), nn.Linear(4, 2)

    def forward(self, x, who):
        return self.head(self.net(x, self.table(who).view(-1, 2, 4).transpose(0, 1).contiguous())[0])


class Projected(nn.Module):
    """First states that a layer makes of a learned vector."""

    def __init__(self):
        super().__init__()
        self.start, self.map, self.net, self.head = weight(1, 3), nn.Linear(3, 4), nn.GRU(5, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.net(x, self.map(self.start).tanh()[None].expand(-1, x.shape[0], -1).contiguous())[0])


TWO = lambda: dict(n=nn.Linear(5, 4), o=nn.Linear(5, 4))  # noqa: E731


def both(penalty):
    return lambda m, x, t: F.mse_loss(m.n(x) + m.o(x), t) + penalty(m)


programs("decay", [
    ("decay-variational", lambda: dict(n=Variational()), dict(x=ROWS, e=(4, 5), t=(6, 4)), lambda m, x, e, t: m.n(x, e, t)),
    ("decay-variational-softplus", lambda: dict(n=Variational(True)), dict(x=ROWS, e=(4, 5), t=(6, 4)), lambda m, x, e, t: m.n(x, e, t)),
    ("decay-gates", lambda: dict(n=Gates()), PAIRS, lambda m, x, t: m.n(x, t)),
    ("decay-entropy", lambda: dict(n=Mixed()), PAIRS, lambda m, x, t: m.n(x, t)),
    ("decay-to-length", MLP, PAIRS, penalized(lambda m: 1e-2 * (m.n[0].weight.norm() - 1).pow(2))),
    ("decay-to-lengths", MLP, PAIRS, penalized(lambda m: 1e-2 * (m.n[0].weight.norm(dim=1) - 1).pow(2).sum())),
    ("decay-rows-sum", MLP, PAIRS, penalized(lambda m: 1e-2 * (m.n[0].weight.sum(1) - 1).pow(2).mean())),
    ("decay-hinge", MLP, PAIRS, penalized(lambda m: 1e-1 * F.relu(m.n[0].weight.norm() - 1))),
    ("decay-smooth", MLP, PAIRS, penalized(lambda m: 1e-2 * (m.n[0].weight[1:] - m.n[0].weight[:-1]).pow(2).sum())),
    ("decay-variation", CONVS, IMAGES, penalized(lambda m: 1e-2 * (m.n[0].weight[..., 1:] - m.n[0].weight[..., :-1]).abs().mean())),
    ("decay-weighted", MLP, PAIRS, penalized(lambda m: 1e-3 * sum(p.numel() ** 0.5 * p.norm() for p in m.parameters()))),
    ("decay-soft-orthogonal", MLP, PAIRS, penalized(lambda m: 1e-3 * (m.n[0].weight @ m.n[0].weight.T * (1 - torch.eye(6))).pow(2).sum())),
    ("decay-correlation", MLP, PAIRS, penalized(lambda m: 1e-2 * (F.normalize(m.n[0].weight) @ F.normalize(m.n[0].weight).T - torch.eye(6)).pow(2).sum())),
    ("decay-cosine-less", TWO, PAIRS, both(lambda m: 0.1 * (1 - F.cosine_similarity(m.n.weight, m.o.weight, dim=1)).mean())),
    ("decay-apart-norm", TWO, PAIRS, both(lambda m: 0.1 * (m.n.weight - m.o.weight).norm())),
    ("decay-apart-mse", TWO, PAIRS, both(lambda m: 0.5 * F.mse_loss(m.n.weight, m.o.weight))),
    ("decay-product", TWO, PAIRS, both(lambda m: 0.1 * (m.n.weight * m.o.weight).sum())),
    ("decay-cross", TWO, PAIRS, both(lambda m: 0.1 * (m.n.weight @ m.o.weight.T).pow(2).sum())),
    ("decay-three", MLP, PAIRS, penalized(lambda m: 1e-2 * m.n[0].weight.pow(2).sum() + 1e-3 * m.n[2].weight.abs().sum())),
    ("decay-mean-of-all", MLP, PAIRS, penalized(lambda m: 1e-2 * sum(p.pow(2).sum() for p in m.parameters()) / sum(p.numel() for p in m.parameters()))),
    ("decay-root", MLP, PAIRS, penalized(lambda m: 1e-2 * sum(p.pow(2).sum() for p in m.parameters()).sqrt())),
    ("decay-cubes", MLP, PAIRS, penalized(lambda m: 1e-2 * sum(p.abs().pow(3).sum() for p in m.parameters()))),
    ("decay-largest", MLP, PAIRS, penalized(lambda m: 1e-2 * sum(p.abs().max() for p in m.parameters()))),
    ("decay-log", MLP, PAIRS, penalized(lambda m: 1e-2 * sum(torch.log1p(p.pow(2)).sum() for p in m.parameters()))),
    ("decay-tied-lengths", lambda: dict(n=Tied()), TIED, named(lambda m: 1e-2 * m.n.table.weight.norm(dim=1).mean())),
])  # fmt: skip

programs("states", [
    ("states-tokens", lambda: dict(n=Tokens()), dict(x=(3, 5, 5), hidden=lambda: torch.rand(3, 5) > 0.5), lambda m, x, hidden: m.n(x, hidden)),
    ("states-tokens-zeros", lambda: dict(n=Tokens(True)), dict(x=(3, 5, 5), hidden=lambda: torch.rand(3, 5) > 0.5), lambda m, x, hidden: m.n(x, hidden)),
    ("states-cell-lstm", lambda: dict(n=FirstStep(nn.LSTMCell)), TOKENS, lambda m, x: m.n(x)),
    ("states-cell-gru", lambda: dict(n=FirstStep(nn.GRUCell)), TOKENS, lambda m, x: m.n(x)),
    ("states-cell-rnn", lambda: dict(n=FirstStep(nn.RNNCell)), TOKENS, lambda m, x: m.n(x)),
    ("states-cell-lstm-zeros", lambda: dict(n=FirstStep(nn.LSTMCell, True)), TOKENS, lambda m, x: m.n(x)),
    ("states-cell-gru-zeros", lambda: dict(n=FirstStep(nn.GRUCell, True)), TOKENS, lambda m, x: m.n(x)),
    ("states-embedded", lambda: dict(n=FromEmbedding()), dict(x=TOKENS, who=lambda: labels(6, 3)), lambda m, x, who: m.n(x, who)),
    ("states-projected", lambda: dict(n=Projected()), TOKENS, lambda m, x: m.n(x)),
])  # fmt: skip


def looped(m, total, each):
    for p in m.parameters():
        total = total + each(p)
    return total


programs("crosses", [
    ("cross-columns", lambda: dict(n=Cross()), ROWS, lambda m, x: m.n(x)),
    ("cross-matrices", lambda: dict(n=Cross(matrix=True)), ROWS, lambda m, x: m.n(x)),
    ("cross-vectors", lambda: dict(n=CrossVectors()), ROWS, lambda m, x: m.n(x)),
    ("cross-stacked", lambda: dict(n=CrossColumns()), ROWS, lambda m, x: m.n(x)),
    ("cross-stacked-matrices", lambda: dict(n=CrossColumnsMatrix()), ROWS, lambda m, x: m.n(x)),
    ("cross-layers", lambda: dict(n=CrossLinear()), ROWS, lambda m, x: m.n(x)),
    ("cross-mix", lambda: dict(n=CrossMix()), ROWS, lambda m, x: m.n(x)),
])  # fmt: skip
