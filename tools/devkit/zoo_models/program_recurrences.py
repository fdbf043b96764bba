"""Programs of recurrent layers with their options, and of attention with its."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.program_layers import HEADS, QKV, SAME, SEQUENCE, kept
from devkit.zoo_models.programs import booleans, labels, programs, weight

RNN = dict(LSTM=nn.LSTM, GRU=nn.GRU, RNN=nn.RNN)
STATES = dict(x=SEQUENCE, h=(4, 4, 4), c=(4, 4, 4))
BACKS = dict(bidirectional=True, num_layers=2)


def packed(m, x, lengths, **options):
    out, last = m.n(nn.utils.rnn.pack_padded_sequence(x, lengths, **options))
    return nn.utils.rnn.pad_packed_sequence(out, batch_first=options.get("batch_first", False))[0], last


programs("recurrent", [
    *((f"{name.lower()}-{how}", lambda layer=layer, o=options: dict(n=layer(5, 4, **o)), SEQUENCE, lambda m, x: m.n(x)[0]) for name, layer in RNN.items() for how, options in (
        ("plain", {}), ("first", dict(batch_first=True)), ("both", dict(bidirectional=True)), ("deep", dict(num_layers=2)), ("dropout", dict(num_layers=3, dropout=0.4)), ("bare", dict(bias=False, bidirectional=True)))),
    ("rnn-relu-both", lambda: dict(n=nn.RNN(5, 4, nonlinearity="relu", **BACKS)), SEQUENCE, lambda m, x: m.n(x)[0]),
    ("lstm-projected", lambda: dict(n=nn.LSTM(5, 4, proj_size=3)), SEQUENCE, lambda m, x: m.n(x)[0]),
    ("lstm-states", lambda: dict(n=nn.LSTM(5, 4, **BACKS)), STATES, lambda m, x, h, c: m.n(x, (h, c))[0]),
    ("gru-states", lambda: dict(n=nn.GRU(5, 4, **BACKS)), dict(x=SEQUENCE, h=(4, 4, 4)), lambda m, x, h: (lambda r: r[0].sum(0) + r[1].mean(0).repeat(1, 2))(m.n(x, h))),
    ("lstm-learned-states", lambda: dict(n=nn.LSTM(5, 4, batch_first=True), h=weight(1, 1, 4), c=weight(1, 1, 4)), SEQUENCE, lambda m, x: m.n(x, (m.h.expand(1, 3, 4).contiguous(), m.c.repeat(1, 3, 1)))[0]),
    ("gru-learned-state", lambda: dict(n=nn.GRU(5, 4, batch_first=True), h=weight(4)), SEQUENCE, lambda m, x: m.n(x, m.h.expand(1, 3, 4).contiguous())[1][0]),
    ("lstm-last", lambda: dict(n=nn.LSTM(5, 4, 2), a=nn.Linear(4, 2)), SEQUENCE, lambda m, x: m.a(m.n(x)[1][0][-1])),
    ("lstm-cell-state", lambda: dict(n=nn.LSTM(5, 4, 2, batch_first=True)), SEQUENCE, lambda m, x: m.n(x)[1][1]),
    ("gru-directions", lambda: dict(n=nn.GRU(5, 4, batch_first=True, bidirectional=True)), SEQUENCE, lambda m, x: (lambda h: torch.cat([h[-2], h[-1]], 1))(m.n(x)[1])),
    ("lstm-unbatched", lambda: dict(n=nn.LSTM(5, 4, bidirectional=True)), (4, 5), lambda m, x: m.n(x)[0]),
    ("lstm-packed", lambda: dict(n=nn.LSTM(5, 4)), SEQUENCE, lambda m, x: packed(m, x, torch.tensor([3, 2, 2, 1]))[0]),
    ("gru-packed-both", lambda: dict(n=nn.GRU(5, 4, batch_first=True, bidirectional=True)), SEQUENCE, lambda m, x: packed(m, x, torch.tensor([4, 3, 1]), batch_first=True)[1][1]),
    ("lstm-two-layers-apart", lambda: dict(n=nn.LSTM(5, 4), d=nn.LSTM(4, 3)), SEQUENCE, lambda m, x: m.d(m.n(x)[0].relu())[0]),
    ("lstm-encoder-decoder", lambda: dict(e=nn.LSTM(5, 4, batch_first=True), d=nn.LSTM(5, 4, batch_first=True), a=nn.Linear(4, 5)), SEQUENCE, lambda m, x: m.a(m.d(x.flip(1), m.e(x)[1])[0])),
    ("gru-shared", lambda: dict(n=nn.GRU(5, 4)), dict(x=SEQUENCE, z=SEQUENCE), lambda m, x, z: m.n(x)[0] * m.n(z)[0]),
    ("gru-cell-bare", lambda: dict(c=nn.GRUCell(5, 4, bias=False)), SEQUENCE, lambda m, x: [h := m.c(x[:, t], x[:, 0, :4] if t == 0 else h) for t in range(3)][-1]),  # noqa: F821
    ("attention-over-steps", lambda: dict(n=nn.GRU(5, 4, batch_first=True), q=nn.Linear(4, 1)), SEQUENCE, lambda m, x: (lambda h: (m.q(h).softmax(1) * h).sum(1))(m.n(x)[0])),
    ("lstm-flat-weights", lambda: dict(n=nn.LSTM(5, 4), f=nn.Linear(4, 4)), SEQUENCE, lambda m, x: m.f(m.n(x)[0]) @ m.n.weight_hh_l0[:4]),
])  # fmt: skip

SELF = dict(x=(3, 5, 8))
PADS = lambda: torch.tensor([[0, 0, 0, 1, 1], [0] * 5, [0, 0, 1, 1, 1]]).bool()  # noqa: E731
MULTI = lambda **o: lambda: dict(n=nn.MultiheadAttention(8, 2, batch_first=True, **o))  # noqa: E731
LAYER = dict(d_model=8, nhead=2, dim_feedforward=12, batch_first=True)


def scores(m, q, k):
    return m.q(q) @ m.k(k).mT / math.sqrt(8)


programs("attention", [
    ("multihead-causal", MULTI(), SELF, lambda m, x: m.n(x, x, x, attn_mask=nn.Transformer.generate_square_subsequent_mask(5), is_causal=True, need_weights=False)[0]),
    ("multihead-bool-mask", MULTI(), dict(SELF, a=lambda: torch.ones(5, 5).triu(1).bool()), lambda m, x, a: m.n(x, x, x, attn_mask=a)[0]),
    ("multihead-float-mask", MULTI(), dict(SELF, a=(6, 5, 5)), lambda m, x, a: m.n(x, x, x, attn_mask=a)[0]),
    ("multihead-both-masks", MULTI(), dict(SELF, a=PADS), lambda m, x, a: m.n(x, x, x, key_padding_mask=a, attn_mask=torch.ones(5, 5).triu(1).bool())[0]),
    ("multihead-float-padding", MULTI(), dict(SELF, a=(3, 5)), lambda m, x, a: m.n(x, x, x, key_padding_mask=a)[0]),
    ("multihead-weights-apart", MULTI(), SELF, lambda m, x: m.n(x, x, x, average_attn_weights=False)[1]),
    ("multihead-dropout", MULTI(dropout=0.3), SELF, lambda m, x: m.n(x, x, x, need_weights=False)[0]),
    ("multihead-bare", MULTI(bias=False), SELF, lambda m, x: m.n(x, x.flip(1), x, need_weights=False)[0]),
    ("multihead-bias-kv", MULTI(add_bias_kv=True), SELF, lambda m, x: m.n(x, x, x)[0]),
    ("multihead-zero-attention", MULTI(add_zero_attn=True), SELF, lambda m, x: m.n(x, x, x, need_weights=False)[0]),
    ("multihead-sizes", MULTI(kdim=6, vdim=4), dict(SELF, k=(3, 4, 6), v=(3, 4, 4)), lambda m, x, k, v: m.n(x, k, v)[0]),
    ("multihead-cross", MULTI(), dict(SELF, k=(3, 4, 8)), lambda m, x, k: m.n(x, k, k)[0]),
    ("multihead-unbatched", MULTI(), (5, 8), lambda m, x: m.n(x, x, x)[0]),
    ("multihead-shared", MULTI(), SELF, lambda m, x: m.n(m.n(x, x, x)[0], x, x)[0]),
    ("encoder-post-relu", lambda: dict(n=nn.TransformerEncoderLayer(**LAYER)), SELF, lambda m, x: m.n(x)),
    ("encoder-stack", lambda: dict(n=nn.TransformerEncoder(nn.TransformerEncoderLayer(**LAYER, dropout=0.0), 2, norm=nn.LayerNorm(8), enable_nested_tensor=False)), dict(SELF, a=PADS), lambda m, x, a: m.n(x, src_key_padding_mask=a)),
    ("decoder-masks", lambda: dict(n=nn.TransformerDecoder(nn.TransformerDecoderLayer(**LAYER, norm_first=True), 2)), dict(SELF, z=(3, 4, 8), a=lambda: PADS()[:, :4]), lambda m, x, z, a: m.n(x, z, tgt_mask=nn.Transformer.generate_square_subsequent_mask(5), memory_key_padding_mask=a)),
    ("transformer", lambda: dict(n=nn.Transformer(8, 2, 1, 1, 12, batch_first=True)), dict(SELF, z=(3, 4, 8)), lambda m, x, z: m.n(x, z)),
    ("sdpa-dropout", HEADS, SAME, lambda m, q, k, v: F.scaled_dot_product_attention(*kept(m, q, k, v), dropout_p=0.2)),
    ("sdpa-three", HEADS, dict(q=(2, 5, 8), k=(2, 6, 8), v=(2, 6, 8)), lambda m, q, k, v: F.scaled_dot_product_attention(*kept(m, q, k, v))),
    ("sdpa-one-group", HEADS, dict(QKV, k=(2, 1, 6, 8), v=(2, 1, 6, 8)), lambda m, q, k, v: F.scaled_dot_product_attention(*kept(m, q, k, v), enable_gqa=True)),
    ("sdpa-groups-causal", HEADS, dict(QKV, k=(2, 2, 5, 8), v=(2, 2, 5, 8)), lambda m, q, k, v: F.scaled_dot_product_attention(*kept(m, q, k, v), enable_gqa=True, is_causal=True)),
    ("sdpa-narrow-values", lambda: dict(HEADS(), v=nn.Linear(8, 3)), SAME, lambda m, q, k, v: F.scaled_dot_product_attention(*kept(m, q, k, v))),
    ("sdpa-broadcast-mask", HEADS, dict(SAME, a=lambda: torch.tensor([True, True, False, True, False])), lambda m, q, k, v, a: F.scaled_dot_product_attention(*kept(m, q, k, v), attn_mask=a[None, None, None].expand(2, 1, 5, 5))),
    ("sdpa-infinite-mask", HEADS, SAME, lambda m, q, k, v: F.scaled_dot_product_attention(*kept(m, q, k, v), attn_mask=torch.full((5, 5), -math.inf).triu(1))),
    ("sdpa-padding-rows", HEADS, dict(SAME, a=lambda: torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]).bool()), lambda m, q, k, v, a: F.scaled_dot_product_attention(*kept(m, q, k, v), attn_mask=(a[:, None, :, None] & a[:, None, None, :]))),
    ("groups-by-hand", HEADS, QKV, lambda m, q, k, v: scores(m, q, k.repeat_interleave(2, 1)).softmax(-1) @ m.v(v).repeat_interleave(2, 1)),
    ("groups-by-expand", HEADS, QKV, lambda m, q, k, v: scores(m, q, k[:, :, None].expand(2, 2, 2, 6, 8).reshape(2, 4, 6, 8)).softmax(-1) @ m.v(v)[:, :, None].expand(2, 2, 2, 6, 8).reshape(2, 4, 6, 8)),
    ("rotary-interleaved", HEADS, SAME, lambda m, q, k, v: scores_turned(m, q, k).softmax(-1) @ m.v(v)),
    ("rotary-half", HEADS, SAME, lambda m, q, k, v: F.scaled_dot_product_attention(half_turned(m.q(q)), half_turned(m.k(k)), m.v(v))),
    ("softcap", HEADS, SAME, lambda m, q, k, v: (5 * (scores(m, q, k) / 5).tanh()).softmax(-1) @ m.v(v)),
    ("sigmoid-attention", HEADS, SAME, lambda m, q, k, v: (scores(m, q, k) - math.log(5)).sigmoid() @ m.v(v)),
    ("differential", lambda: dict(HEADS(), l=nn.Parameter(torch.tensor(0.3))), SAME, lambda m, q, k, v: (scores(m, q, k).softmax(-1) - m.l * scores(m, k, q).softmax(-1)) @ m.v(v)),
    ("query-norm", lambda: dict(HEADS(), a=nn.RMSNorm(8), b=nn.LayerNorm(8)), SAME, lambda m, q, k, v: F.scaled_dot_product_attention(m.a(m.q(q)), m.b(m.k(k)), m.v(v), scale=1.0)),
    ("joint-projection", lambda: dict(p=nn.Linear(8, 24, bias=False), o=nn.Linear(8, 8)), SELF, lambda m, x: (lambda h: m.o(F.scaled_dot_product_attention(h[0], h[1], h[2]).transpose(1, 2).reshape(3, 5, 8)))(m.p(x).view(3, 5, 3, 2, 4).permute(2, 0, 3, 1, 4))),
    ("buckets", lambda: dict(HEADS(), r=nn.Embedding(8, 4)), SAME, lambda m, q, k, v: (scores(m, q, k) + m.r((torch.arange(5)[:, None] - torch.arange(5)).clamp(-3, 4) + 3).permute(2, 0, 1)).softmax(-1) @ m.v(v)),
    ("masked-mean", HEADS, dict(SAME, a=lambda: booleans(2, 5)), lambda m, q, k, v, a: (scores(m, q, k).masked_fill(~a[:, None, None], -1e9).softmax(-1) @ m.v(v) * a[:, None, :, None]).sum(2) / a.sum(1).clamp(min=1)[:, None, None]),
    ("cached", HEADS, dict(SAME, q=(2, 4, 1, 8), pk=(2, 4, 3, 8)), lambda m, q, k, v, pk: F.scaled_dot_product_attention(m.q(q), torch.cat([pk, m.k(k)], 2), torch.cat([pk, m.v(v)], 2))),
    ("mean-of-labels", lambda: dict(HEADS(), e=nn.Embedding(9, 8)), dict(i=lambda: labels(9, 2, 5)), lambda m, i: (lambda h: F.scaled_dot_product_attention(m.q(h), m.k(h), m.v(h), attn_mask=(i != 0)[:, None] | torch.eye(5).bool()))(m.e(i))),
])  # fmt: skip


def angles():
    return torch.arange(5)[:, None] * 10000 ** (-torch.arange(0, 8, 2) / 8)


def scores_turned(m, q, k):
    def turn(h):
        pairs = h.unflatten(-1, (4, 2))
        a, b = pairs.unbind(-1)
        return torch.stack([a * angles().cos() - b * angles().sin(), a * angles().sin() + b * angles().cos()], -1).flatten(-2)

    return turn(m.q(q)) @ turn(m.k(k)).mT / 3


def half_turned(h):
    cos, sin = angles().repeat(1, 2).cos(), angles().repeat(1, 2).sin()
    return h * cos + torch.cat([-h[..., 4:], h[..., :4]], -1) * sin
