"""Programs whose operations read parameters where others read data: queries, keys, mixtures."""

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import ROWS, programs, weight

TOKENS = (2, 5, 8)
HEADS = (2, 2, 5, 4)
KEYS = dict(k=HEADS, v=HEADS)
attention = F.scaled_dot_product_attention


def split(tokens):
    return tokens.unflatten(-1, (2, 4)).transpose(-2, -3)


class Decoder(nn.Module):
    """Learned places of queries that are zeros at first, as in detection with transformers."""

    def __init__(self):
        super().__init__()
        self.places, self.own, self.cross, self.norm = nn.Embedding(3, 8), nn.MultiheadAttention(8, 2), nn.MultiheadAttention(8, 2), nn.LayerNorm(8)

    def forward(self, x):
        places, memory = self.places.weight.unsqueeze(1).repeat(1, 2, 1), x.transpose(0, 1)
        queries = torch.zeros_like(places)
        h = self.norm(queries + self.own(queries + places, queries + places, queries)[0])
        return h + self.cross(h + places, memory, memory)[0]


class Pooled(nn.Module):
    """Learned latents that read tokens, with a norm and a projection of their own."""

    def __init__(self):
        super().__init__()
        self.latents, self.norm, self.q, self.kv, self.out = weight(3, 8), nn.LayerNorm(8), nn.Linear(8, 8, bias=False), nn.Linear(8, 16, bias=False), nn.Linear(8, 8)

    def forward(self, x):
        z = self.latents[None].repeat(x.shape[0], 1, 1)
        k, v = self.kv(x).chunk(2, -1)
        return z + self.out(attention(split(self.q(self.norm(z))), split(k), split(v)).transpose(1, 2).flatten(2))


programs(
    "learned",
    [
        ("learned-query", lambda: dict(q=weight(2, 2, 3, 4)), KEYS, lambda m, k, v: attention(m.q, k, v)),
        ("learned-query-scale", lambda: dict(q=weight(2, 2, 3, 4)), KEYS, lambda m, k, v: attention(m.q, k, v, scale=0.3)),
        ("learned-query-expanded", lambda: dict(q=weight(1, 2, 3, 4)), KEYS, lambda m, k, v: attention(m.q.expand(2, -1, -1, -1), k, v)),
        ("learned-query-repeated", lambda: dict(q=weight(2, 3, 4)), KEYS, lambda m, k, v: attention(m.q.unsqueeze(0).repeat(2, 1, 1, 1), k, v)),
        ("learned-query-split", lambda: dict(q=weight(1, 3, 8)), KEYS, lambda m, k, v: attention(split(m.q).expand(2, -1, -1, -1), k, v)),
        ("learned-query-masked", lambda: dict(q=weight(2, 2, 3, 4)), dict(**KEYS, b=lambda: torch.rand(2, 1, 3, 5) > 0.3), lambda m, k, v, b: attention(m.q, k, v, attn_mask=b)),
        ("learned-query-causal", lambda: dict(q=weight(2, 2, 5, 4)), KEYS, lambda m, k, v: attention(m.q, k, v, is_causal=True)),
        ("learned-query-shared", lambda: dict(q=weight(2, 2, 3, 4), a=nn.Linear(4, 4)), dict(x=HEADS), lambda m, x: attention(m.q, m.a(x), m.a(x)) + attention(m.q * 2, m.a(x), x)),
        ("learned-keys", lambda: dict(k=weight(2, 2, 3, 4)), dict(q=HEADS, v=(2, 2, 3, 4)), lambda m, q, v: attention(q, m.k, v)),
        ("learned-keys-values", lambda: dict(k=weight(2, 3, 4)), dict(q=HEADS), lambda m, q: attention(q, m.k.expand(2, 2, 3, 4), m.k.expand(2, 2, 3, 4))),
        ("constant-mask-empty-row", lambda: dict(a=nn.Linear(4, 4), b=nn.Linear(4, 4)), dict(x=HEADS), lambda m, x: attention(m.a(x), m.b(x), x, attn_mask=torch.arange(5)[:, None] > torch.arange(5))),
        ("learned-states", lambda: dict(n=nn.LSTM(8, 3, batch_first=True, bidirectional=True), h=weight(2, 1, 3), c=weight(2, 1, 3)), TOKENS, lambda m, x: m.n(x, (m.h.expand(2, 2, 3).contiguous(), m.c.expand(2, 2, 3).contiguous()))[0]),
        ("learned-places", lambda: dict(n=Decoder()), TOKENS, lambda m, x: m.n(x)),
        ("learned-latents", lambda: dict(n=Pooled()), TOKENS, lambda m, x: m.n(x)),
        ("learned-heads-expanded", lambda: dict(q=weight(3, 8)), dict(x=(2, 2, 3, 4)), lambda m, x: x * split(m.q)[None].expand(2, -1, -1, -1)),
        ("learned-mixture", lambda: dict(w=weight(4), a=nn.Linear(5, 4)), dict(x=ROWS, y=(6, 4)), lambda m, x, y: torch.lerp(m.a(x), y, m.w)),
        ("learned-mixture-gate", lambda: dict(w=weight(4), a=nn.Linear(5, 4)), dict(x=ROWS, y=(6, 4)), lambda m, x, y: torch.lerp(m.a(x), y, m.w.sigmoid())),
        ("learned-pairs", lambda: dict(w=weight(3), v=weight(4)), (12, 2), lambda m, x: torch.cartesian_prod(m.w, m.v) * x),
        ("learned-powers", lambda: dict(w=weight(4), a=nn.Linear(5, 4)), ROWS, lambda m, x: m.a(x) * m.w + m.a(x) ** 2 * m.w**2 + m.w**3),
        ("learned-gate-rest", lambda: dict(g=weight(4), a=nn.Linear(5, 4), b=nn.Linear(5, 4)), ROWS, lambda m, x: m.g.tanh() * m.a(x) + (1 - m.g.tanh().square()).sqrt() * m.b(x)),
        ("learned-memory", lambda: dict(w=weight(3, 4), a=nn.Linear(5, 4)), ROWS, lambda m, x: F.cosine_similarity(m.a(x)[:, None], m.w[None], dim=-1).softmax(-1) @ m.w),
        ("learned-mixture-number", lambda: dict(w=nn.Parameter(torch.tensor(0.3)), a=nn.Linear(5, 4)), dict(x=ROWS, y=(6, 4)), lambda m, x, y: torch.lerp(m.a(x), y, m.w)),
    ],
)

JOINED = (3, 2, 5)
TOKEN = lambda: dict(w=weight(1, 1, 5), a=nn.Linear(5, 4))  # noqa: E731
ROW = lambda: dict(w=weight(4), a=nn.Linear(5, 4))  # noqa: E731
PAIR = lambda: dict(w=weight(3, 5), o=nn.Linear(6, 4))  # noqa: E731


def led(by):
    """x after rows that a function makes of a parameter, the same for each sample."""
    return lambda m, x: m.a(torch.cat([by(m.w).expand(3, -1, -1), x], 1))


# Functions of a parameter whose results are repeated, joined or moved.
programs("moved", [
    ("moved-tanh-expanded", TOKEN, JOINED, led(torch.tanh)),
    ("moved-negative-repeated", TOKEN, JOINED, lambda m, x: m.a(torch.cat([(-m.w).repeat(3, 1, 1), x], 1))),
    ("moved-normalized-expanded", TOKEN, JOINED, led(lambda w: F.normalize(w, dim=-1))),
    ("moved-scaled-expanded", TOKEN, JOINED, led(lambda w: w * 0.5)),
    ("moved-mean-expanded", lambda: TOKEN() | dict(w=weight(4, 5)), JOINED, led(lambda w: w.mean(0)[None, None])),
    ("moved-flipped-expanded", lambda: TOKEN() | dict(w=weight(2, 5)), JOINED, led(lambda w: w.flip(0)[None])),
    ("moved-silu-expanded", lambda: TOKEN() | dict(w=weight(2, 5)), JOINED, led(lambda w: F.silu(w)[None])),
    ("moved-negative-joined", PAIR, ROWS, lambda m, x: m.o(F.linear(x, torch.cat([m.w, -m.w])).relu())),
    ("moved-negative-joined-next", PAIR, ROWS, lambda m, x: m.o(F.linear(x, torch.cat([m.w, -m.w])).relu())[:, :3] + F.linear(x, m.w)),
    ("moved-stacked-twice", lambda: dict(w=weight(5), a=nn.Linear(2, 4)), ROWS, lambda m, x: m.a(x @ torch.stack([m.w, m.w], 1))),
    ("moved-sigmoid-turned", lambda: dict(w=weight(5, 4)), ROWS, lambda m, x: F.linear(x, m.w.sigmoid().T)),
    ("moved-exponential-turned", lambda: dict(w=weight(2, 3, 4)), (2, 4, 3), lambda m, x: x * m.w.exp().permute(0, 2, 1)),
    ("moved-exponential-first", lambda: ROW() | dict(w=weight(6)), ROWS, lambda m, x: m.a(x) * m.w.exp()[0]),
])  # fmt: skip

# Parameters that are called as buffers often are.
programs("words", [
    ("word-mask", lambda: dict(mask=weight(5), a=nn.Linear(5, 4)), ROWS, lambda m, x: m.a(x * m.mask.sigmoid())),
    ("word-window", lambda: dict(window=weight(4), a=nn.Linear(5, 4)), ROWS, lambda m, x: m.a(x) * m.window),
    ("word-class-weight", lambda: dict(class_weight=weight(4), a=nn.Linear(5, 4)), dict(x=ROWS, y=(6, 4)), lambda m, x, y: -(F.softplus(m.class_weight) * y.softmax(-1) * m.a(x).log_softmax(-1)).sum(-1).mean() + m.class_weight.pow(2).mean()),
])  # fmt: skip

# Wide enough that the exporter evaluates a layer's product and not what follows it.
PLACES = lambda *shape, **more: lambda: dict(b=torch.randn(shape), o=nn.Linear(200, 4), **{name: make() for name, make in more.items()})  # noqa: E731
WIDE = lambda: nn.Linear(2, 200)  # noqa: E731

# Layers that read numbers of the program, as networks of coordinates do.
programs("coordinates", [
    ("coordinates-linear", PLACES(64, 2, a=WIDE), (64, 200), lambda m, x: m.o(m.a(m.b).relu() * x)),
    ("coordinates-like-weight", PLACES(64, 64, a=lambda: nn.Linear(64, 200)), (64, 200), lambda m, x: m.o(m.a(m.b).relu() * x)),
    ("coordinates-counted", PLACES(1, a=WIDE), (64, 200), lambda m, x: m.o(m.a(torch.arange(128.0).view(64, 2)).relu() * x) + m.b),
    ("coordinates-bare", PLACES(64, 2, a=lambda: nn.Linear(2, 200, bias=False)), (64, 200), lambda m, x: m.o(m.a(m.b).relu() * x)),
    ("coordinates-network", PLACES(64, 2, a=lambda: nn.Sequential(WIDE(), nn.ReLU(), nn.Linear(200, 200, bias=False))), (64, 200), lambda m, x: m.o(m.a(m.b).sigmoid() * x)),
    ("coordinates-repeated", PLACES(1, 64, 2, a=WIDE), (2, 64, 200), lambda m, x: m.o(m.a(m.b).repeat(2, 1, 1) + x)),
    ("coordinates-line", PLACES(1, 3, 2000, a=lambda: nn.Conv1d(3, 6, 3, padding=1)), (1, 6, 2000), lambda m, x: (m.a(m.b).relu() * x).mean()),
    ("coordinates-group-norm", PLACES(1, 64, 200, a=lambda: nn.GroupNorm(2, 64)), (1, 64, 200), lambda m, x: m.o(m.a(m.b).relu() * x)),
    ("coordinates-added", PLACES(64, 2, a=lambda: weight(2, 200), c=lambda: weight(200)), (64, 200), lambda m, x: m.o(torch.addmm(m.c, m.b, m.a).relu() * x)),
    ("coordinates-scaled", PLACES(64, 2, a=lambda: weight(2, 200), c=lambda: weight(200)), (64, 200), lambda m, x: m.o(torch.addmm(m.c, m.b, m.a, alpha=0.5).relu() * x)),
    ("coordinates-batched", PLACES(2, 32, 2, a=lambda: weight(2, 2, 200), c=lambda: weight(2, 32, 200)), (2, 32, 200), lambda m, x: m.o(torch.baddbmm(m.c, m.b, m.a).relu() * x)),
    ("coordinates-pairs", PLACES(64, 2, a=lambda: nn.Bilinear(2, 2, 200)), (64, 200), lambda m, x: m.o(m.a(m.b, m.b).relu() * x)),
    ("coordinates-learned", PLACES(1, p=lambda: weight(64, 2), a=WIDE), (64, 200), lambda m, x: m.o(m.a(m.p).relu() * x) + m.b),
])  # fmt: skip
