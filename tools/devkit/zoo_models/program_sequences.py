"""Networks of several calls in one step: decoders that run cell by cell, critics of three batches, encoders that follow others."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations

from devkit.zoo_models.programs import ROWS, labels, programs

PAIR = dict(x=lambda: labels(11, 4, 5), y=lambda: labels(11, 4, 6))


class Decoder(nn.Module):
    """Token by token with a cell, after an encoder."""

    def __init__(self, cell="GRU", attend=False, layers=1, shared=False, both=False, apart=False, tied=False, start=False, zeros=False, greedy=False):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.target = nn.Embedding(11, 8) if apart else self.embed
        self.one = nn.GRUCell(8 * (1 + attend), 8) if cell == "GRU" else nn.LSTMCell(8 * (1 + attend), 8)
        self.encoder = self.one if shared else (nn.GRU if cell == "GRU" else nn.LSTM)(8, 8, num_layers=layers, bidirectional=both, batch_first=True)
        self.bridge = nn.Linear(16, 8) if both else None
        self.memory = nn.Linear(16, 8) if both else None
        self.query = nn.Linear(8, 8, bias=False) if attend else None
        self.out = nn.Linear(8, 11)
        if tied:
            self.out.weight = self.embed.weight
        self.shared, self.both, self.greedy, self.lstm, self.start, self.zeros = shared, both, greedy, cell != "GRU", start, zeros

    def forward(self, x, y):
        e = self.embed(x)
        if self.shared:
            state = None
            for t in range(x.shape[1]):
                state = self.one(e[:, t], state)
            seen = e
        else:
            seen, state = self.encoder(e)
            if self.both:
                join = lambda h: self.bridge(torch.cat([h[-2], h[-1]], 1)).tanh()  # noqa: E731
                state, seen = tuple(join(h) for h in state) if self.lstm else join(state), self.memory(seen)
            else:
                state = tuple(h[-1] for h in state) if self.lstm else state[-1]
        given, outs = torch.ones(x.shape[0], dtype=torch.long) if self.start else y[:, 0], []
        if self.zeros:
            state = (torch.zeros(4, 8), torch.zeros(4, 8)) if self.lstm else torch.zeros(4, 8)
        for t in range(y.shape[1] - 1):
            z = self.target(given)
            if self.query is not None:
                h = state[0] if self.lstm else state
                w = (seen @ self.query(h).unsqueeze(2)).softmax(1)
                z = torch.cat([z, (w * seen).sum(1)], 1)
            state = self.one(z, state)
            outs.append(self.out(state[0] if self.lstm else state))
            given = outs[-1].argmax(1) if self.greedy else y[:, t + 1]
        return F.cross_entropy(torch.stack(outs, 1).flatten(0, 1), y[:, 1:].flatten())


class Deep(nn.Module):
    """Two layers of cells, from zeros, next to a recurrent encoder of two layers."""

    def __init__(self, kind):
        super().__init__()
        self.embed, self.encoder, self.out = nn.Embedding(11, 8), nn.LSTM(8, 8, 2, batch_first=True, dropout=0.1), nn.Linear(8, 11)
        self.cells, self.kind = nn.ModuleList(nn.LSTMCell(8, 8) for _ in range(2)), kind

    def forward(self, x, y):
        seen, (h, c) = self.encoder(self.embed(x))
        states = [(h[i], c[i]) if self.kind == "states" else (torch.zeros(4, 8), torch.zeros(4, 8)) for i in range(2)]
        outs = []
        for t in range(5):
            z = self.embed(y[:, t]) + seen.mean(1)
            for i, cell in enumerate(self.cells):
                states[i] = cell(z, states[i])
                z = states[i][0]
            outs.append(self.out(z))
        return F.cross_entropy(torch.stack(outs, 1).flatten(0, 1), y[:, 1:].flatten())


def spectral(old):
    return torch.nn.utils.spectral_norm if old else parametrizations.spectral_norm


class Critic(nn.Module):
    """Real rows, generated ones and a penalty: three calls of one critic."""

    def __init__(self, old=False, bias=True, image=False, norm=False):
        super().__init__()
        s = spectral(old)
        self.image = image
        first = s(nn.Conv2d(2, 4, 3, padding=1, bias=bias)) if image else s(nn.Linear(5, 6, bias=bias))
        self.net = nn.Sequential(first, nn.LeakyReLU(0.2), *([nn.Flatten()] if image else [nn.LayerNorm(6)] if norm else []), s(nn.Linear(4 * 16 if image else 6, 1, bias=bias)))

    def forward(self, x, z):
        if self.image:
            x, z = x.view(-1, 2, 4, 4), z.view(-1, 2, 4, 4)
        real, fake = self.net(x), self.net(z)
        third = self.net(0.3 * x + 0.7 * z)
        return F.relu(1 - real).mean() + F.relu(1 + fake).mean() + 0.1 * (third.abs() - 1).square().mean()


class Keys(nn.Module):
    """Momentum contrast as published: the key encoder follows the query encoder in the forward pass."""

    def __init__(self, how="copy", norm=False, queue=True):
        super().__init__()
        make = lambda: nn.Sequential(nn.Linear(5, 8), *([nn.BatchNorm1d(8)] if norm else []), nn.ReLU(), nn.Linear(8, 4))  # noqa: E731
        self.query, self.key, self.how = make(), make(), how
        for q, k in zip(self.query.parameters(), self.key.parameters()):
            k.data.copy_(q.data)
            k.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(4, 6), dim=0))
        self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))

    def forward(self, x, z):
        q = F.normalize(self.query(x), dim=1)
        with torch.no_grad():
            for a, b in zip(self.query.parameters(), self.key.parameters()):
                if self.how == "copy":
                    b.copy_(b * 0.99 + a * 0.01)
                elif self.how == "data":
                    b.data = b.data * 0.99 + a.data * 0.01
                elif self.how == "mul":
                    b.mul_(0.99).add_(a, alpha=0.01)
                else:
                    b.lerp_(a, 0.01)
            k = F.normalize(self.key(z), dim=1)
        positive = (q * k).sum(1, keepdim=True)
        negative = q @ self.queue.clone().detach()
        loss = F.cross_entropy(torch.cat([positive, negative], 1) / 0.2, torch.zeros(6, dtype=torch.long))
        with torch.no_grad():
            self.queue.copy_(k.T)
        return loss


TWO = dict(x=ROWS, z=ROWS)
IMAGES = dict(x=(3, 32), z=(3, 32))
WHOLE = lambda m, x, z: m.n(x, z)  # noqa: E731
BAGS = dict(x=lambda: labels(7, 3, 5))

programs("sequences", [
    *((f"sequence-{name}", lambda o=options: dict(n=Decoder(**o)), PAIR, lambda m, x, y: m.n(x, y)) for name, options in (
        ("gru", {}), ("lstm", dict(cell="LSTM")), ("gru-attended", dict(attend=True)), ("lstm-attended", dict(cell="LSTM", attend=True)), ("gru-two", dict(layers=2)), ("gru-shared", dict(shared=True)), ("lstm-shared", dict(cell="LSTM", shared=True)),
        ("gru-both", dict(both=True)), ("lstm-both", dict(cell="LSTM", both=True, attend=True)), ("gru-apart", dict(apart=True)), ("gru-tied", dict(tied=True)), ("lstm-tied-apart", dict(cell="LSTM", tied=True, apart=True)), ("gru-greedy", dict(greedy=True, attend=True)),
        ("gru-start", dict(start=True)), ("lstm-start", dict(cell="LSTM", start=True)), ("gru-start-attended", dict(start=True, attend=True, greedy=True)), ("gru-start-apart", dict(start=True, apart=True)), ("gru-start-shared", dict(start=True, shared=True)), ("lstm-start-tied", dict(cell="LSTM", start=True, tied=True)), ("gru-zeros", dict(zeros=True, attend=True)), ("lstm-zeros", dict(cell="LSTM", zeros=True, attend=True)), ("gru-zeros-start", dict(zeros=True, start=True, attend=True)), ("lstm-zeros-start", dict(cell="LSTM", zeros=True, start=True, attend=True)))),
    ("sequence-deep-states", lambda: dict(n=Deep("states")), PAIR, lambda m, x, y: m.n(x, y)),
    ("sequence-deep-zeros", lambda: dict(n=Deep("zeros")), PAIR, lambda m, x, y: m.n(x, y)),
    ("critic-thrice", lambda: dict(n=Critic()), TWO, WHOLE),
    ("critic-thrice-old", lambda: dict(n=Critic(old=True)), TWO, WHOLE),
    ("critic-thrice-bare", lambda: dict(n=Critic(bias=False, norm=True)), TWO, WHOLE),
    ("critic-thrice-bare-old", lambda: dict(n=Critic(bias=False, old=True)), TWO, WHOLE),
    ("critic-thrice-image", lambda: dict(n=Critic(image=True)), IMAGES, WHOLE),
    ("critic-thrice-image-old", lambda: dict(n=Critic(image=True, old=True)), IMAGES, WHOLE),
    *((f"bag-padded-{name}", lambda o=o: dict(e=nn.EmbeddingBag(7, 4, **o)), BAGS, lambda m, x: m.e(x)) for name, o in (("sum", dict(mode="sum", padding_idx=2)), ("mean-two", dict(mode="mean", padding_idx=2)), ("max", dict(mode="max", padding_idx=2)), ("last", dict(mode="mean", padding_idx=6)))),
    ("bag-padded-offsets", lambda: dict(e=nn.EmbeddingBag(7, 4, mode="mean", padding_idx=1)), dict(x=lambda: labels(7, 8), o=lambda: torch.tensor([0, 2, 5])), lambda m, x, o: m.e(x, o)),
    ("bag-padded-offsets-fixed", lambda: dict(e=nn.EmbeddingBag(7, 4, mode="mean", padding_idx=1)), dict(x=lambda: labels(7, 8)), lambda m, x: m.e(x, torch.tensor([0, 2, 5]))),
    ("bag-padded-net", lambda: dict(e=nn.EmbeddingBag(7, 4, mode="mean", padding_idx=0), a=nn.Linear(4, 3)), dict(x=lambda: torch.tensor([[1, 2, 0, 0], [3, 0, 0, 0], [0, 0, 0, 0]]), y=lambda: labels(3, 3)), lambda m, x, y: F.cross_entropy(m.a(m.e(x)), y)),
    *((f"keys-{how}{'-norm' if norm else ''}", lambda h=how, n=norm: dict(n=Keys(h, n)), TWO, WHOLE) for how, norm in (("copy", False), ("data", False), ("mul", False), ("lerp", False), ("copy", True), ("mul", True))),
])  # fmt: skip
