"""The models of this folder as PyTorch modules whose forward returns the loss. Small, and each exercises something else."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class MLP(nn.Module):
    """Gemm, ReLU, Tanh, cross-entropy."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.Tanh(), nn.Linear(64, 10))

    def forward(self, x, y):
        return F.cross_entropy(self.body(x), y)


class Logits(nn.Module):
    """Exported without its loss, as most published models are: only `body` is written."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ELU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(72, 32), nn.Softplus(), nn.Linear(32, 10)
        )

    def forward(self, x, y):
        return F.cross_entropy(self.body(x), y)


class CNN(nn.Module):
    """Convolution, batch norm in training form, max pool, mean."""

    def __init__(self):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.c2, self.b2 = nn.Conv2d(16, 32, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(32)
        self.head = nn.Linear(32, 10)

    def forward(self, x, y):
        h = F.max_pool2d(F.relu(self.b1(self.c1(x))), 3, 1, 1)
        h = F.relu(self.b2(self.c2(h)))
        return F.cross_entropy(self.head(h.mean((2, 3))), y)


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout)
        self.conv2, self.bn2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
        self.skip = nn.Identity()
        if stride != 1 or cin != cout:
            self.skip = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))
        nn.init.constant_(self.bn2.weight, 0.2)  # quiet branches: the run is not chaotic and can be compared

    def forward(self, x):
        h = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(h + self.skip(x))


class ResNet(nn.Module):
    """Residual blocks with stride, seven batch norms."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(1, 12, 3, 1, 1, bias=False), nn.BatchNorm2d(12)
        self.stages = nn.Sequential(Residual(12, 12, 1), Residual(12, 20, 2))
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(20, 10)

    def forward(self, x, y):
        h = self.stages(F.relu(self.norm(self.stem(x))))
        return F.cross_entropy(self.fc(torch.flatten(self.pool(h), 1)), y)


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.p = heads, dropout
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).split(c, dim=2)
        q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in (q, k, v))
        a = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0, is_causal=True)
        x = x + self.drop(self.proj(a.transpose(1, 2).reshape(b, t, c)))
        return x + self.drop(self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh")))


class GPT(nn.Module):
    """Causal attention, tied embedding, GELU (tanh), dropout where asked for."""

    def __init__(self, layers, width, heads, vocab, length, dropout=0.0):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(length, width)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocab, bias=False)
        self.lm_head.weight = self.wte.weight
        for name, p in self.named_parameters():
            if p.dim() > 1:
                narrow = math.sqrt(2 * layers) if name.endswith(("proj.weight", "down.weight")) else 1.0
                nn.init.normal_(p, 0.0, 0.02 / narrow)

    def forward(self, tokens, targets):
        x = self.drop(self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1])))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, groups, hidden):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.n1, self.n2 = RMSNorm(width), RMSNorm(width)
        self.q = nn.Linear(width, heads * self.size, bias=False)
        self.k = nn.Linear(width, groups * self.size, bias=False)
        self.v = nn.Linear(width, groups * self.size, bias=False)
        self.o = nn.Linear(heads * self.size, width, bias=False)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def forward(self, x, cos, sin, mask):
        b, t, _ = x.shape
        h = self.n1(x)
        q = self.rotate(self.q(h).view(b, t, self.heads, self.size).transpose(1, 2), cos, sin)
        k = self.rotate(self.k(h).view(b, t, self.groups, self.size).transpose(1, 2), cos, sin)
        v = self.v(h).view(b, t, self.groups, self.size).transpose(1, 2)
        k, v = (z.repeat_interleave(self.heads // self.groups, 1) for z in (k, v))
        a = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(self.size) + mask, -1) @ v
        x = x + self.o(a.transpose(1, 2).reshape(b, t, -1))
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    """RMS norm, rotary embedding, grouped-query attention, SwiGLU, an untied head; buffers that must stay frozen."""

    def __init__(self, layers=2, width=48, heads=4, groups=2, hidden=96, vocab=96, length=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(LlamaBlock(width, heads, groups, hidden) for _ in range(layers))
        self.norm, self.head = RMSNorm(width), nn.Linear(width, vocab, bias=False)
        half = width // heads // 2
        angle = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(half) / half)
        self.register_buffer("cos", torch.cat((angle, angle), 1).cos(), persistent=False)
        self.register_buffer("sin", torch.cat((angle, angle), 1).sin(), persistent=False)
        self.register_buffer("mask", torch.full((length, length), -1e9).triu(1), persistent=False)
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(self, tokens, targets):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, self.mask)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class DLRM(nn.Module):
    """Embeddings, a dense tower, pairwise dot products, a top tower, binary cross-entropy."""

    sizes = (1000, 200, 50, 2000)

    def __init__(self, d=16):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, d) for n in self.sizes)
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, d), nn.ReLU())
        n = len(self.sizes) + 1
        self.register_buffer("pairs", torch.tensor([i * n + j for i in range(n) for j in range(i)]), persistent=False)
        self.top = nn.Sequential(nn.Linear(d + n * (n - 1) // 2, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, dense, sparse, label):
        b = self.bottom(dense)
        z = torch.stack([b] + [t(sparse[:, i]) for i, t in enumerate(self.tables)], 1)
        dots = torch.bmm(z, z.transpose(1, 2)).flatten(1)[:, self.pairs]
        return F.binary_cross_entropy_with_logits(self.top(torch.cat([b, dots], 1)).squeeze(1), label)


class ResBlock(nn.Module):
    def __init__(self, cin, cout, emb):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(4, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.t = nn.Linear(emb, cout)
        self.n2, self.c2 = nn.GroupNorm(4, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, e):
        h = self.c1(F.silu(self.n1(x))) + self.t(F.silu(e))[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(h)))


class UNet(nn.Module):
    """A small denoising U-Net: long skips, group norm, transposed convolution, resize, attention at the bottom."""

    def __init__(self, w=16, emb=32):
        super().__init__()
        self.emb = emb
        self.time = nn.Sequential(nn.Linear(emb, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.inp = nn.Conv2d(1, w, 3, padding=1)
        self.d1, self.down1 = ResBlock(w, w, emb), nn.Conv2d(w, 2 * w, 3, stride=2, padding=1)
        self.d2, self.down2 = ResBlock(2 * w, 2 * w, emb), nn.AvgPool2d(2)
        self.mid = ResBlock(2 * w, 2 * w, emb)
        self.attn = nn.MultiheadAttention(2 * w, 4, batch_first=True)
        self.u2, self.m2 = nn.ConvTranspose2d(2 * w, 2 * w, 4, stride=2, padding=1), ResBlock(4 * w, 2 * w, emb)
        self.m1 = ResBlock(3 * w, w, emb)
        self.out = nn.Sequential(nn.GroupNorm(4, w), nn.SiLU(), nn.Conv2d(w, 1, 3, padding=1))

    def forward(self, noisy, t, noise):
        f = torch.exp(-math.log(1000.0) * torch.arange(self.emb // 2, dtype=noisy.dtype) / (self.emb // 2))
        a = t[:, None] * f[None]
        e = self.time(torch.cat([a.sin(), a.cos()], 1))
        s1 = self.d1(self.inp(noisy), e)
        s2 = self.d2(self.down1(s1), e)
        h = self.mid(self.down2(s2), e)
        b, c, y, x = h.shape
        z = h.flatten(2).transpose(1, 2)
        h = h + self.attn(z, z, z, need_weights=False)[0].transpose(1, 2).reshape(b, c, y, x)
        h = self.m2(torch.cat([self.u2(h), s2], 1), e)
        h = self.m1(torch.cat([F.interpolate(h, scale_factor=2.0, mode="nearest"), s1], 1), e)
        return F.mse_loss(self.out(h), noise)


class Mixture(nn.Module):
    """Experts chosen by top-k, weighted and balanced; einsum, scatter."""

    def __init__(self, width=8, hidden=16, experts=4, classes=5):
        super().__init__()
        self.gate, self.head = nn.Linear(width, experts), nn.Linear(width, classes)
        self.up = nn.Parameter(0.3 * torch.randn(experts, width, hidden))
        self.down = nn.Parameter(0.3 * torch.randn(experts, hidden, width))

    def forward(self, x, y):
        p = torch.softmax(self.gate(x), -1)
        share, chosen = torch.topk(p, 2, -1)
        gate = torch.zeros_like(p).scatter(1, chosen, share / share.sum(-1, keepdim=True))
        h = F.gelu(torch.einsum("bh,eho->beo", x, self.up))
        out = x + (gate.unsqueeze(-1) * torch.einsum("beo,eoh->beh", h, self.down)).sum(1)
        balance = 4 * (p.mean(0) * (gate > 0).to(p.dtype).mean(0)).sum()
        return F.cross_entropy(self.head(out), y) + 0.01 * balance


class Graph(nn.Module):
    """Graphs side by side, as torch_geometric batches them: attention over incoming edges, whose largest score is detached,
    and the largest of neighbours and of each graph, with ties of zeros."""

    def __init__(self, nodes=6, features=5, heads=2, width=4, classes=3):
        super().__init__()
        self.nodes, self.heads, self.width = nodes, heads, width
        self.lin, self.pool, self.head = nn.Linear(features, heads * width), nn.Linear(heads * width, 8), nn.Linear(8, classes)
        self.source, self.target = nn.Parameter(0.3 * torch.randn(heads, width)), nn.Parameter(0.3 * torch.randn(heads, width))

    def summed(self, values, index, count):
        index = index.view(-1, *[1] * (values.dim() - 1)).expand_as(values)
        return values.new_zeros(count, *values.shape[1:]).scatter_add_(0, index, values)

    def largest(self, values, index, count, include_self):
        index = index.view(-1, 1).expand_as(values)
        return values.new_zeros(count, values.shape[1]).scatter_reduce_(0, index, values, "amax", include_self=include_self)

    def forward(self, x, edges, y):
        graphs, count = x.shape[0], x.shape[0] * self.nodes
        edges = edges + self.nodes * torch.arange(graphs).view(-1, 1, 1)
        source, target = edges[:, 0].reshape(-1), edges[:, 1].reshape(-1)
        h = self.lin(x.reshape(count, -1)).view(-1, self.heads, self.width)
        score = F.leaky_relu((h * self.source).sum(-1)[source] + (h * self.target).sum(-1)[target], 0.2)
        score = (score - self.largest(score.detach(), target, count, False).index_select(0, target)).exp()
        share = score / (self.summed(score, target, count) + 1e-16).index_select(0, target)
        h = F.relu(self.summed(h.index_select(0, source) * share.unsqueeze(-1), target, count).reshape(count, -1))
        near = self.pool(h + self.largest(h.index_select(0, source), target, count, True))
        whole = torch.arange(graphs).repeat_interleave(self.nodes)
        return F.cross_entropy(self.head(self.largest(F.relu(near), whole, graphs, False)), y)


class Bag(nn.Module):
    """Means of embeddings, which the TorchScript exporter writes as a Loop; class weights."""

    def __init__(self, vocab=20, width=8, classes=3):
        super().__init__()
        self.words, self.head = nn.EmbeddingBag(vocab, width, mode="mean"), nn.Linear(width, classes)
        self.register_buffer("importance", torch.tensor([0.5, 1.0, 2.0]))

    def forward(self, t, y):
        return F.cross_entropy(self.head(self.words(t)), y, weight=self.importance)


def position_bucket(distance, buckets=32, farthest=128):
    """T5's number of a distance between key and query: exact when near, logarithmic when far, apart by direction."""
    half, exact = buckets // 2, buckets // 4
    near = distance.abs()
    far = exact + (torch.log(near.float() / exact) / math.log(farthest / exact) * (half - exact)).long()
    return (distance > 0).long() * half + torch.where(near < exact, near, far.clamp(max=half - 1))


class RelativeAttention(nn.Module):
    def __init__(self, width, heads, first):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        if first:
            self.relative_attention_bias = nn.Embedding(32, heads)

    def forward(self, x, bias):
        b, t, w = x.shape
        q, k, v = (m(x).view(b, t, self.heads, -1).transpose(1, 2) for m in (self.q, self.k, self.v))
        if bias is None:
            at = torch.arange(t)
            bias = self.relative_attention_bias(position_bucket(at[None, :] - at[:, None])).permute(2, 0, 1).unsqueeze(0)
        y = F.softmax(q @ k.transpose(-1, -2) + bias, -1) @ v
        return self.o(y.transpose(1, 2).reshape(b, t, w)), bias


class T5(nn.Module):
    """Relative positions by buckets, one table for all blocks; no biases, RMS norm, tied head."""

    def __init__(self, depth=2, width=24, heads=3, vocab=48):
        super().__init__()
        self.shared = nn.Embedding(vocab, width)
        self.attention = nn.ModuleList([RelativeAttention(width, heads, i == 0) for i in range(depth)])
        self.norms = nn.ModuleList([RMSNorm(width) for _ in range(2 * depth + 1)])
        self.up = nn.ModuleList([nn.Linear(width, 2 * width, bias=False) for _ in range(depth)])
        self.down = nn.ModuleList([nn.Linear(2 * width, width, bias=False) for _ in range(depth)])

    def forward(self, tokens, targets):
        x, bias = self.shared(tokens), None
        for i, attention in enumerate(self.attention):
            y, bias = attention(self.norms[2 * i](x), bias)
            x = x + y
            x = x + self.down[i](F.relu(self.up[i](self.norms[2 * i + 1](x))))
        logits = F.linear(self.norms[-1](x) * x.shape[-1] ** -0.5, self.shared.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Recurrent(nn.Module):
    """GRU in both directions, LSTM and plain RNN; a head whose bias is zero, a temperature kept as its logarithm."""

    def __init__(self, vocab=32, width=12):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.lstm = nn.LSTM(2 * width, width, num_layers=2, batch_first=True)
        self.rnn = nn.RNN(width, width, batch_first=True)
        self.head = nn.Linear(width, 5)
        nn.init.zeros_(self.head.bias)
        self.log_scale = nn.Parameter(torch.tensor(0.7))

    def forward(self, t, y):
        x = self.rnn(self.lstm(self.gru(self.embedding(t))[0])[0])[0]
        return F.cross_entropy(self.head(x.mean(1)) * self.log_scale.exp(), y)


class Tokens(nn.Module):
    """What the current exporter merges or evaluates although the parameter stays in the file: two tokens of zeros, `1 - mix`,
    a penalty on weights; and a matrix of cosines, which no one trains."""

    def __init__(self, vocabulary=24, width=12, length=8):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.mix = nn.Parameter(torch.rand(1, 1, width))
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.teacher_token = nn.Parameter(torch.zeros(1, 1, width))
        self.norm = nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.head, self.teacher_head = nn.Linear(width, 5), nn.Linear(width, 5)
        angles = 2 * math.pi * torch.outer(torch.arange(length), torch.arange(length)) / length
        self.register_buffer("cosines", torch.cos(angles))

    def forward(self, t, y):
        x = self.embed(t)
        x = x * self.mix + F.pad(x, (0, 0, 1, -1)) * (1 - self.mix)
        x = x + torch.matmul(self.cosines, x) / 8
        rows = x.shape[0]
        x = torch.cat([self.class_token.expand(rows, -1, -1), self.teacher_token.expand(rows, -1, -1), x], 1)
        h = self.norm(x)
        scores = self.query(h) @ self.key(h).transpose(1, 2) / math.sqrt(h.shape[-1])
        x = x + scores.softmax(-1) @ self.value(h)
        loss = F.cross_entropy(self.head(x[:, 0]), y) + 0.5 * F.cross_entropy(self.teacher_head(x[:, 1]), y)
        return loss + 0.001 * self.embed.weight.pow(2).sum()


class Codes(nn.Module):
    """What the current exporter does to detached values and to functions of one parameter: the two sides of a codebook's loss
    become one node, the lengths of its entries a constant; a softplus is evaluated in steps, a weight norm with its transpose,
    a norm without weights reads ones; labels are probabilities, and an unreduced loss is stated to be a scalar."""

    def __init__(self, width=8, codes=6, classes=5):
        super().__init__()
        self.encode, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width, affine=False)
        self.codes = nn.Embedding(codes, width)
        self.mix = nn.utils.parametrizations.weight_norm(nn.Linear(width, width))
        self.raw_scale = nn.Parameter(torch.zeros(width))
        self.decode = nn.Sequential(nn.Linear(width, 16 * width), nn.GELU(), nn.Linear(16 * width, width))
        self.head = nn.Linear(width, classes)

    def forward(self, x, p, y):
        z = self.norm(torch.tanh(self.encode(x)))
        w = self.codes.weight
        distance = (z**2).sum(1, keepdim=True) + (w**2).sum(1) - 2 * z @ w.t()
        q = self.codes(distance.argmin(1))
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(q.detach(), z)
        q = z + (q - z).detach()
        h = torch.tanh(self.mix(torch.stack([q, z], 1)).sum(1)) * F.softplus(self.raw_scale)
        scores = self.head(h)
        soft = F.cross_entropy(scores, p.softmax(1))
        hard = F.cross_entropy(scores, y, reduction="none").mean()
        return loss + F.mse_loss(self.decode(h), x) + soft + 0.5 * hard


class Smooth(nn.Module):
    """Label smoothing, which ONNX's cross-entropy does not have and the current exporter leaves out: with ignored labels at
    each position, once with class weights, and unreduced."""

    def __init__(self, width=8, tags=6, classes=4):
        super().__init__()
        self.embed = nn.Conv1d(width, 96, 3, padding=1)
        self.tag, self.rank, self.head = nn.Conv1d(96, tags, 1), nn.Conv1d(96, tags, 1), nn.Linear(96, classes)
        self.register_buffer("costs", torch.linspace(0.5, 2, tags))

    def forward(self, x, tags, y, worth):
        h = torch.tanh(self.embed(x))
        loss = F.cross_entropy(self.tag(h), tags, weight=self.costs, label_smoothing=0.1)
        loss = loss + F.cross_entropy(self.rank(h), tags.clamp(min=0), label_smoothing=0.3, ignore_index=2)
        each = F.cross_entropy(self.head(h.mean(2)), y, label_smoothing=0.2, reduction="none")
        return loss + (each * worth).mean()


class Counted(nn.Module):
    """What ONNX has no words for and the current exporter leaves out: gradients divided by how often a row is looked up, of an
    embedding with a padding row and of a bag, means of what is scattered to one place, with and without what was there, and
    the divisor of a pooling."""

    def __init__(self, words=12, width=96, places=5):
        super().__init__()
        self.word = nn.Embedding(words, width, padding_idx=3, scale_grad_by_freq=True)
        self.bag = nn.EmbeddingBag(words, width, mode="sum", scale_grad_by_freq=True)
        self.spread, self.head, self.pooled = nn.Linear(width, 2 * places), nn.Linear(places, 3), nn.Linear(18, 3)

    def forward(self, tokens, at, y):
        h = self.spread(torch.tanh(self.word(tokens).mean(1) + self.bag(tokens)))
        empty = h.new_full((h.shape[0], 5), 0.5)
        kept = empty.scatter_reduce(1, at, h, "mean") + (0.1 * h[:, :5]).scatter_reduce(1, at, h, "mean", include_self=False)
        pooled = F.avg_pool2d(h.view(-1, 1, 2, 5), 2, stride=1, padding=1, count_include_pad=False, divisor_override=3)
        return F.cross_entropy(self.head(kept) + self.pooled(pooled.flatten(1)), y)


class Words(nn.Module):
    """A language model whose loss smooths the labels by hand, as trainers of language models do, leaves padding out, and keeps
    the logarithm of the softmax's sum near zero."""

    def __init__(self, vocab=64, width=16):
        super().__init__()
        self.embed, self.before, self.mix = nn.Embedding(vocab, width), nn.Embedding(vocab, width), nn.Linear(width, width)
        self.head = nn.Linear(width, vocab)

    def forward(self, tokens, targets):
        shifted = F.pad(tokens[:, :-1], (1, 0))
        logits = self.head(torch.tanh(self.mix(self.embed(tokens) + self.before(shifted))))
        padding = (targets == -100).unsqueeze(-1)
        surprise = -F.log_softmax(logits, -1)
        hard = surprise.gather(-1, targets.clamp(min=0).unsqueeze(-1)).masked_fill(padding, 0.0)
        spread = surprise.sum(-1, keepdim=True).masked_fill(padding, 0.0)
        count = (~padding).sum()
        loss = 0.9 * hard.sum() / count + 0.1 * spread.sum() / (count * logits.shape[-1])
        return loss + 1e-3 * torch.logsumexp(logits, -1).square().mean()


class Head(nn.Module):
    """A product with many classes and what lies between it and its loss; the embedding is the head's weight."""

    def __init__(self, vocab=1024, width=8):
        super().__init__()
        self.shared = nn.Embedding(vocab, width)
        self.mix = nn.Linear(width, width)

    def product(self, tokens):
        return F.linear(torch.tanh(self.mix(self.shared(tokens))), self.shared.weight)


class Shifted(Head):
    """Each token's successor, by slices of logits and labels."""

    def both(self, tokens, targets):
        logits = self.product(tokens)
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten(), ignore_index=-100), logits

    def forward(self, tokens, targets):
        return self.both(tokens, targets)[0]


class Capped(Head):
    """A soft cap, a temperature that is trained, a bias, classes that are masked out, and a slice."""

    def __init__(self):
        super().__init__()
        vocab = self.shared.weight.shape[0]
        self.temperature, self.bias = nn.Parameter(torch.tensor(0.9)), nn.Parameter(0.1 * torch.randn(vocab))
        self.register_buffer("never", torch.arange(vocab) % 97 == 96)

    def both(self, tokens, targets):
        logits = 3 * torch.tanh((self.product(tokens) + self.bias) / 3)
        masked = torch.where(self.never, -1e4, logits / self.temperature)
        return F.cross_entropy(masked[:, :-1].transpose(1, 2), targets[:, 1:]), logits

    def forward(self, tokens, targets):
        return self.both(tokens, targets)[0]


class Ended(nn.Module):
    """Exported without its loss: the file ends at its logits, after a scale."""

    class Body(Head):
        def forward(self, tokens):
            return 0.5 * self.product(tokens)

    def __init__(self):
        super().__init__()
        self.body = self.Body()

    def forward(self, tokens, targets):
        return F.cross_entropy(self.body(tokens).flatten(0, 1), targets.flatten())


class Hidden(nn.Module):
    """Attention written out, whose scores numbers replace: padding, triangles and both; some rows see nothing."""

    WIDTH, HEADS = 16, 2

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(24, self.WIDTH), nn.Linear(self.WIDTH, 24)
        self.q, self.k, self.v = (nn.ModuleList(nn.Linear(self.WIDTH, self.WIDTH) for _ in range(4)) for _ in range(3))
        self.register_buffer("triangle", torch.tril(torch.ones(1, 1, 12, 12)), persistent=False)

    def hide(self, layer, scores, padding):
        lowest, future = torch.finfo(torch.float32).min, self.triangle == 0
        if layer == 0:
            return scores.masked_fill(padding, -1e9)
        if layer == 1:
            return torch.where(future, lowest, scores).masked_fill(padding, lowest)
        if layer == 2:
            return torch.where(padding | future, -1e9, scores)
        return scores.masked_fill(future, float("-inf"))

    def forward(self, tokens, targets):
        x, padding = self.embed(tokens), (tokens == 0)[:, None, None, :]
        for layer, parts in enumerate(zip(self.q, self.k, self.v)):
            q, k, v = (part(x).unflatten(-1, (self.HEADS, -1)).transpose(1, 2) for part in parts)
            scores = self.hide(layer, q @ k.transpose(-1, -2) * k.shape[-1] ** -0.5, padding)
            x = x + (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())
