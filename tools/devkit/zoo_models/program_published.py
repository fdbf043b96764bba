"""Whole networks with their losses, as people publish them, in small."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import ROWS, booleans, labels, programs


class Attend(nn.Module):
    """Attention of two heads, by hand, of x to z."""

    def __init__(self, width, memory=None, bias=True):
        super().__init__()
        self.q, self.kv, self.o = nn.Linear(width, width, bias=bias), nn.Linear(memory or width, 2 * width, bias=bias), nn.Linear(width, width)

    def forward(self, x, z=None, mask=None):
        z = x if z is None else z
        k, v = self.kv(z).chunk(2, -1)
        q, k, v = (t.unflatten(-1, (2, -1)).transpose(1, 2) for t in (self.q(x), k, v))
        s = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        if mask is not None:
            s = s.masked_fill(mask, float("-inf"))
        return self.o((s.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Relative(nn.Module):
    """Attention with sinusoids of distances and two learned biases (Transformer-XL)."""

    def __init__(self, width=8):
        super().__init__()
        self.qkv, self.p, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width, bias=False), nn.Linear(width, width)
        self.u, self.v = nn.Parameter(torch.empty(2, 4)), nn.Parameter(torch.empty(2, 4))
        nn.init.xavier_uniform_(self.u)
        nn.init.xavier_uniform_(self.v)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, 2, 4).unbind(2)
        at = torch.arange(t - 1, -t, -1.0)[:, None] * torch.exp(torch.arange(0, d, 2) * -(math.log(10000.0) / d))
        p = self.p(torch.stack([at.sin(), at.cos()], -1).flatten(1)).view(2 * t - 1, 2, 4)
        content = torch.einsum("bthd,bshd->bhts", q + self.u, k)
        place = torch.einsum("bthd,rhd->bhtr", q + self.v, p)
        place = F.pad(place, (1, 0)).view(b, 2, 2 * t, t)[:, :, 1:].reshape(b, 2, t, 2 * t - 1)[..., :t]
        a = ((content + place) / 2).softmax(-1)
        return self.o(torch.einsum("bhts,bshd->bthd", a, v).reshape(b, t, d))


class Conformer(nn.Module):
    def __init__(self):
        super().__init__()
        feed = lambda: nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.SiLU(), nn.Dropout(0.1), nn.Linear(16, 8), nn.Dropout(0.1))  # noqa: E731
        self.a, self.b, self.n, self.m, self.last = feed(), feed(), nn.LayerNorm(8), Relative(), nn.LayerNorm(8)
        self.cn, self.c1, self.dw, self.bn, self.c2 = nn.LayerNorm(8), nn.Conv1d(8, 16, 1), nn.Conv1d(8, 8, 3, padding=1, groups=8, bias=False), nn.BatchNorm1d(8), nn.Conv1d(8, 8, 1)
        self.head = nn.Linear(8, 5)

    def forward(self, x, y):
        x = x + 0.5 * self.a(x)
        x = x + self.m(self.n(x))
        c = F.glu(self.c1(self.cn(x).transpose(1, 2)), 1)
        x = x + self.c2(F.silu(self.bn(self.dw(c)))).transpose(1, 2)
        x = self.last(x + 0.5 * self.b(x))
        p = self.head(x).log_softmax(-1).transpose(0, 1)
        return F.ctc_loss(p, y, torch.full((3,), 7), torch.full((3,), 2), zero_infinity=True)


class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.cls, self.pos = nn.Conv2d(3, 8, 4, 4, bias=False), nn.Parameter(0.3 * torch.randn(8)), nn.Parameter(0.3 * torch.randn(5, 8))
        self.pre, self.see, self.post, self.proj = nn.LayerNorm(8), nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True), nn.LayerNorm(8), nn.Parameter(0.3 * torch.randn(8, 6))
        self.words, self.place, self.read, self.final, self.text = nn.Embedding(12, 8), nn.Parameter(0.1 * torch.randn(5, 8)), nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True), nn.LayerNorm(8), nn.Parameter(0.3 * torch.randn(8, 6))
        self.scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, image, tokens):
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.size(0), 1, -1), x], 1) + self.pos
        x = self.post(self.see(self.pre(x))[:, 0]) @ self.proj
        t = self.read(self.words(tokens) + self.place, src_mask=torch.full((5, 5), float("-inf")).triu(1))
        t = self.final(t)[torch.arange(tokens.size(0)), tokens.argmax(-1)] @ self.text
        x, t = x / x.norm(dim=-1, keepdim=True), t / t.norm(dim=-1, keepdim=True)
        logits = self.scale.exp().clamp(max=100) * x @ t.t()
        at = torch.arange(logits.size(0))
        return (F.cross_entropy(logits, at) + F.cross_entropy(logits.t(), at)) / 2


class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 4, 3, 1, 1)), nn.Sequential(nn.Conv2d(4, 8, 3, 1, 1), nn.ReLU(), nn.ConvTranspose2d(8, 3, 4, 2, 1))
        e = torch.randn(7, 4)
        self.register_buffer("embedding", e)
        self.register_buffer("cluster_size", torch.zeros(7))
        self.register_buffer("ema_w", e.clone())

    def forward(self, x):
        z = self.enc(x)
        flat = z.permute(0, 2, 3, 1).reshape(-1, 4)
        d = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.embedding.t() + self.embedding.pow(2).sum(1)
        index = d.argmin(1)
        one = F.one_hot(index, 7).float()
        with torch.no_grad():
            self.cluster_size.mul_(0.9).add_(one.sum(0), alpha=0.1)
            self.ema_w.mul_(0.9).add_(one.t() @ flat, alpha=0.1)
            n = self.cluster_size.sum()
            size = (self.cluster_size + 1e-5) / (n + 7e-5) * n
            self.embedding.copy_(self.ema_w / size.unsqueeze(1))
        q = (one @ self.embedding).view(z.size(0), z.size(2), z.size(3), 4).permute(0, 3, 1, 2).contiguous()
        commit = F.mse_loss(q.detach(), z)
        q = z + (q - z).detach()
        return F.mse_loss(self.dec(q), x) + 0.25 * commit


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.down = nn.Sequential(nn.Conv2d(3, 6, 3, 2, 1, bias=False), nn.BatchNorm2d(6), nn.ReLU()), nn.Conv2d(6, 8, 1)
        self.row, self.col, self.queries = nn.Embedding(5, 4), nn.Embedding(5, 4), nn.Embedding(3, 8)
        self.t = nn.Transformer(8, 2, 1, 2, 16, 0.0, batch_first=True)
        self.cls, self.box = nn.Linear(8, 5), nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, x, y, b):
        h = self.down(self.body(x))
        r = torch.arange(4)
        pos = torch.cat([self.col(r).unsqueeze(0).repeat(4, 1, 1), self.row(r).unsqueeze(1).repeat(1, 4, 1)], -1).flatten(0, 1)
        o = self.t(h.flatten(2).transpose(1, 2) + pos, self.queries.weight.unsqueeze(0).repeat(x.size(0), 1, 1))
        box = self.box(o).sigmoid()
        corners = lambda v: torch.cat([v[..., :2] - v[..., 2:] / 2, v[..., :2] + v[..., 2:] / 2], -1)  # noqa: E731
        p, q = corners(box), corners(b.sigmoid())
        inner = (torch.min(p[..., 2:], q[..., 2:]) - torch.max(p[..., :2], q[..., :2])).clamp(min=0).prod(-1)
        area = lambda v: (v[..., 2:] - v[..., :2]).prod(-1)  # noqa: E731
        union = area(p) + area(q) - inner
        outer = (torch.max(p[..., 2:], q[..., 2:]) - torch.min(p[..., :2], q[..., :2])).prod(-1)
        giou = inner / union - (outer - union) / outer
        w = torch.ones(5)
        w[-1] = 0.1
        return F.cross_entropy(self.cls(o).transpose(1, 2), y, w) + 5 * F.l1_loss(box, b.sigmoid()) + 2 * (1 - giou).mean()


class Residual(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.n1, self.c1, self.t, self.n2, self.c2 = nn.GroupNorm(2, a), nn.Conv2d(a, b, 3, padding=1), nn.Linear(8, 2 * b), nn.GroupNorm(2, b), nn.Conv2d(b, b, 3, padding=1)
        self.skip = nn.Conv2d(a, b, 1) if a != b else nn.Identity()

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x)))
        s, b = self.t(F.silu(t))[:, :, None, None].chunk(2, 1)
        return self.skip(x) + self.c2(F.silu(self.n2(h) * (1 + s) + b))


class Diffusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.time, self.first = nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 8)), nn.Conv2d(2, 4, 3, padding=1)
        self.d1, self.down, self.mid, self.norm, self.qkv, self.proj = Residual(4, 8), nn.Conv2d(8, 8, 3, 2, 1), Residual(8, 8), nn.GroupNorm(2, 8), nn.Conv1d(8, 24, 1), nn.Conv1d(8, 8, 1)
        self.up, self.u1, self.last = nn.Conv2d(8, 8, 3, padding=1), Residual(16, 4), nn.Sequential(nn.GroupNorm(2, 4), nn.SiLU(), nn.Conv2d(4, 2, 3, padding=1))
        self.register_buffer("alphas", torch.cumprod(1 - torch.linspace(1e-4, 0.02, 50), 0))
        self.classes = nn.Embedding(4, 8)

    def forward(self, x, noise, t, y):
        a = self.alphas[t][:, None, None, None]
        x = a.sqrt() * x + (1 - a).sqrt() * noise
        f = torch.exp(-math.log(10000) * torch.arange(4) / 4)
        e = t[:, None].float() * f[None]
        t = self.time(torch.cat([e.cos(), e.sin()], -1)) + self.classes(y)
        one = self.d1(self.first(x), t)
        h = self.mid(self.down(one), t)
        q, k, v = self.qkv(self.norm(h).flatten(2)).chunk(3, 1)
        h = h + self.proj(torch.einsum("bts,bcs->bct", torch.einsum("bct,bcs->bts", q * 8**-0.25, k * 8**-0.25).softmax(-1), v)).view_as(h)
        h = self.u1(torch.cat([self.up(F.interpolate(h, scale_factor=2, mode="nearest")), one], 1), t)
        return F.mse_loss(self.last(h), noise)


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        mlp = lambda a, b: nn.Sequential(nn.Linear(a, b), nn.GELU(), nn.Dropout(0.1), nn.Linear(b, a))  # noqa: E731
        self.stem, self.n, self.m = nn.Conv2d(3, 8, 4, 4), nn.ModuleList(nn.LayerNorm(8) for _ in range(4)), nn.ModuleList([mlp(4, 6), mlp(8, 12), mlp(4, 6), mlp(8, 12)])
        self.last, self.head = nn.LayerNorm(8), nn.Linear(8, 5)

    def forward(self, x, y):
        x = self.stem(x).flatten(2).transpose(1, 2)
        for i in (0, 2):
            x = x + self.m[i](self.n[i](x).transpose(1, 2)).transpose(1, 2)
            x = x + self.m[i + 1](self.n[i + 1](x))
        return F.cross_entropy(self.head(self.last(x).mean(1)), y, label_smoothing=0.1)


class Perceiver(nn.Module):
    """Latents that attend to the input several times with the same weights."""

    def __init__(self):
        super().__init__()
        self.latents, self.place = nn.Parameter(torch.randn(4, 8) * 0.02), nn.Parameter(torch.randn(1, 7, 5) * 0.02)
        self.nl, self.nx, self.cross, self.nf, self.ff = nn.LayerNorm(8), nn.LayerNorm(5), Attend(8, 5, bias=False), nn.LayerNorm(8), nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        self.ns, self.own = nn.LayerNorm(8), Attend(8)
        self.out, self.query = nn.Linear(8, 5), nn.Parameter(torch.randn(1, 1, 8))
        self.decode = Attend(8)

    def forward(self, x):
        h, z = self.latents.unsqueeze(0).expand(x.size(0), -1, -1), x + self.place
        for _ in range(2):
            h = h + self.cross(self.nl(h), self.nx(z))
            h = h + self.ff(self.nf(h))
            h = h + self.own(self.ns(h))
        return self.out(self.decode(self.query.repeat(x.size(0), 1, 1), h).squeeze(1))


class Whisper(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(6, 8, 3, padding=1), nn.Conv1d(8, 8, 3, stride=2, padding=1)
        a = torch.arange(4)[:, None] * torch.exp(-math.log(10000) / 3 * torch.arange(4))[None]
        self.register_buffer("positional_embedding", torch.cat([a.sin(), a.cos()], 1))
        self.token_embedding, self.place = nn.Embedding(13, 8), nn.Parameter(torch.randn(6, 8) * 0.02)
        part = lambda: nn.ModuleDict(dict(n=nn.LayerNorm(8), a=Attend(8), f=nn.LayerNorm(8), m=nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))))  # noqa: E731
        self.e, self.d, self.ln_post, self.ln = part(), part(), nn.LayerNorm(8), nn.LayerNorm(8)
        self.cn, self.cross = nn.LayerNorm(8), Attend(8)
        self.register_buffer("mask", torch.ones(6, 6).triu(1).bool(), persistent=False)

    def forward(self, x, y):
        x = F.gelu(self.c2(F.gelu(self.c1(x)))).permute(0, 2, 1) + self.positional_embedding
        x = x + self.e["a"](self.e["n"](x))
        x = self.ln_post(x + self.e["m"](self.e["f"](x)))
        t = y[:, :-1]
        h = self.token_embedding(t) + self.place[: t.shape[-1]]
        h = h + self.d["a"](self.d["n"](h), mask=self.mask[: t.shape[1], : t.shape[1]])
        h = h + self.cross(self.cn(h), x)
        h = h + self.d["m"](self.d["f"](h))
        logits = (self.ln(h) @ self.token_embedding.weight.to(h.dtype).T).float()
        return F.cross_entropy(logits.transpose(1, 2), y[:, 1:], ignore_index=0)


class Bags(nn.Module):
    """Gated attention over the instances of a bag."""

    def __init__(self):
        super().__init__()
        self.f, self.v, self.u, self.w = nn.Sequential(nn.Linear(5, 8), nn.ReLU()), nn.Sequential(nn.Linear(8, 6), nn.Tanh()), nn.Sequential(nn.Linear(8, 6), nn.Sigmoid()), nn.Linear(6, 2)
        self.c = nn.ModuleList(nn.Linear(8, 1) for _ in range(2))
        self.inst = nn.Linear(8, 2)

    def forward(self, x, y):
        h = self.f(x)
        a = self.w(self.v(h) * self.u(h)).t().softmax(1)
        m = a @ h
        logits = torch.cat([c(m[i : i + 1]) for i, c in enumerate(self.c)], 1)
        top, low = a[0].topk(2)[1], (-a[0]).topk(2)[1]
        picked = self.inst(torch.cat([h[top], h[low]]))
        return 0.7 * F.cross_entropy(logits, y) + 0.3 * F.cross_entropy(picked, torch.tensor([1, 1, 0, 0]))


class Distilled(nn.Module):
    def __init__(self, wrap=True):
        super().__init__()
        net = lambda w: nn.Sequential(nn.Conv2d(3, w, 3, padding=1), nn.BatchNorm2d(w), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(w, 5))  # noqa: E731
        self.teacher, self.student = net(8).requires_grad_(False), net(4)
        self.hint = nn.Conv2d(4, 8, 1)

    def train(self, mode=True):
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, x, y):
        with torch.no_grad():
            f = self.teacher[:3](x)
            t = self.teacher[3:](f)
        g = self.student[:3](x)
        s = self.student[3:](g)
        soft = F.kl_div((s / 4).log_softmax(1), (t / 4).softmax(1), reduction="batchmean") * 16
        return 0.5 * F.cross_entropy(s, y) + 0.5 * soft + 0.1 * F.mse_loss(self.hint(g), f)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mu, self.v, self.log_std = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh()), nn.Linear(8, 2), nn.Linear(8, 1), nn.Parameter(torch.zeros(2))

    def forward(self, x, a, old, r, done):
        h = self.body(x)
        d = torch.distributions.Normal(self.mu(h), self.log_std.exp().expand(6, 2), validate_args=False)
        v = self.v(h).squeeze(-1)
        with torch.no_grad():
            adv, last = [], torch.zeros(())
            for t in reversed(range(6)):
                nv = v[t + 1] if t < 5 else torch.zeros(())
                last = r[t] + 0.99 * nv * (1 - done[t]) - v[t] + 0.95 * 0.99 * (1 - done[t]) * last
                adv.insert(0, last)
            adv = torch.stack(adv)
            ret = adv + v
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        lp = d.log_prob(a).sum(-1)
        ratio = (lp - old).exp()
        pg = torch.max(-adv * ratio, -adv * ratio.clamp(0.8, 1.2)).mean()
        return pg + 0.5 * F.mse_loss(v, ret) - 0.01 * d.entropy().sum(-1).mean()


class Coupling(nn.Module):
    """Steps of actnorm, an invertible mixing by LU and an affine coupling."""

    def __init__(self):
        super().__init__()
        net = lambda: nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))  # noqa: E731
        self.s, self.b, self.net = nn.ParameterList(torch.randn(4) * 0.1 for _ in range(2)), nn.ParameterList(torch.randn(4) * 0.1 for _ in range(2)), nn.ModuleList(net() for _ in range(2))
        p, low, up = torch.linalg.lu(torch.linalg.qr(torch.randn(4, 4))[0])
        self.register_buffer("p", p)
        self.register_buffer("sign", up.diagonal().sign())
        self.low, self.up, self.log_s = nn.Parameter(low.tril(-1)), nn.Parameter(up.triu(1)), nn.Parameter(up.diagonal().abs().log())
        self.register_buffer("mask", torch.ones(4, 4).tril(-1))

    def forward(self, x):
        total = 0
        for i in range(2):
            x = (x + self.b[i]) * self.s[i].exp()
            w = self.p @ (self.low * self.mask + torch.eye(4)) @ (self.up * self.mask.t() + torch.diag(self.sign * self.log_s.exp()))
            x = x @ w.t()
            a, b = x.chunk(2, 1)
            shift, scale = self.net[i](a).chunk(2, 1)
            scale = torch.sigmoid(scale + 2)
            x = torch.cat([a, (b + shift) * scale], 1)
            total = total + self.s[i].sum() + self.log_s.sum() + scale.log().sum(1)
        return -(torch.distributions.Normal(0.0, 1.0, validate_args=False).log_prob(x).sum(1) + total).mean()


class Twins(nn.Module):
    """Bootstrap: an online network with a predictor, and a target that follows it, both views in one batch."""

    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.predict = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, x, z):
        p = self.predict(self.online(torch.cat([x, z])))
        with torch.no_grad():
            t = self.target(torch.cat([x, z]))
        a, b = p.chunk(2)
        c, d = t.detach().chunk(2)
        return (4 - 2 * F.cosine_similarity(a, d, dim=-1) - 2 * F.cosine_similarity(b, c, dim=-1)).mean()


class Masked(nn.Module):
    """A masked autoencoder whose order of patches is given."""

    def __init__(self):
        super().__init__()
        self.patch, self.cls, self.token = nn.Linear(12, 8), nn.Parameter(torch.randn(1, 1, 8) * 0.02), nn.Parameter(torch.randn(1, 1, 6) * 0.02)
        self.pos, self.dpos = nn.Parameter(torch.randn(1, 10, 8), requires_grad=False), nn.Parameter(torch.randn(1, 10, 6), requires_grad=False)
        self.enc, self.norm, self.to, self.dec, self.pred = nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True), nn.LayerNorm(8), nn.Linear(8, 6), nn.TransformerEncoderLayer(6, 2, 12, 0.0, "gelu", batch_first=True, norm_first=True), nn.Linear(6, 12)

    def forward(self, x, noise):
        order = noise.argsort(1)
        back = order.argsort(1)
        h = self.patch(x) + self.pos[:, 1:]
        h = h.gather(1, order[:, :3].unsqueeze(-1).repeat(1, 1, 8))
        h = torch.cat([(self.cls + self.pos[:, :1]).expand(2, -1, -1), h], 1)
        h = self.to(self.norm(self.enc(h)))
        d = torch.cat([h[:, 1:], self.token.repeat(2, 6, 1)], 1).gather(1, back.unsqueeze(-1).repeat(1, 1, 6))
        d = self.pred(self.dec(torch.cat([h[:, :1], d], 1) + self.dpos))[:, 1:]
        mask = torch.ones(2, 9)
        mask[:, :3] = 0
        mask = mask.gather(1, back)
        target = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-6) ** 0.5
        return (((d - target) ** 2).mean(-1) * mask).sum() / mask.sum()


class Speech(nn.Module):
    """Frame by frame with location-sensitive attention, a prenet and two cells, from a frame of zeros."""

    def __init__(self):
        super().__init__()
        self.embed, self.encoder = nn.Embedding(11, 8), nn.LSTM(8, 4, batch_first=True, bidirectional=True)
        self.prenet, self.first, self.second = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Dropout(0.5)), nn.LSTMCell(14, 8), nn.LSTMCell(16, 8)
        self.q, self.m, self.v, self.conv, self.place = nn.Linear(8, 6, bias=False), nn.Linear(8, 6, bias=False), nn.Linear(6, 1, bias=False), nn.Conv1d(2, 4, 3, padding=1, bias=False), nn.Linear(4, 6, bias=False)
        self.frame, self.stop = nn.Linear(16, 3), nn.Linear(16, 1)

    def forward(self, x, y, stop):
        memory, _ = self.encoder(self.embed(x))
        keys = self.m(memory)
        b, n = x.shape
        h1 = c1 = h2 = c2 = torch.zeros(b, 8)
        w = total = torch.zeros(b, n)
        context = torch.zeros(b, 8)
        frames, stops = [], []
        given = torch.cat([torch.zeros(b, 1, 3), y[:, :-1]], 1)
        given = self.prenet(given)
        for t in range(y.size(1)):
            h1, c1 = self.first(torch.cat([given[:, t], context], 1), (h1, c1))
            place = self.place(self.conv(torch.stack([w, total], 1)).transpose(1, 2))
            e = self.v(torch.tanh(self.q(h1).unsqueeze(1) + keys + place)).squeeze(-1)
            w = e.softmax(1)
            total = total + w
            context = torch.bmm(w.unsqueeze(1), memory).squeeze(1)
            h2, c2 = self.second(torch.cat([h1, context], 1), (h2, c2))
            o = torch.cat([h2, context], 1)
            frames.append(self.frame(o))
            stops.append(self.stop(o).squeeze(1))
        return F.mse_loss(torch.stack(frames, 1), y) + F.binary_cross_entropy_with_logits(torch.stack(stops, 1), stop)


class Cycle(nn.Module):
    """Two generators and what they make of each other's results; two critics that only judge."""

    def __init__(self):
        super().__init__()
        gen = lambda: nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(2, 4, 3), nn.InstanceNorm2d(4), nn.ReLU(True), nn.ConvTranspose2d(4, 4, 3, 2, 1, 1), nn.InstanceNorm2d(4), nn.ReLU(True), nn.AvgPool2d(2), nn.Conv2d(4, 2, 1), nn.Tanh())  # noqa: E731
        self.g, self.f = gen(), gen()
        self.dx, self.dy = (nn.Sequential(nn.Conv2d(2, 4, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(4, 1, 2)) for _ in range(2))

    def forward(self, x, y):
        fy, fx = self.g(x), self.f(y)
        a, b = self.dy(fy), self.dx(fx)
        adv = F.mse_loss(a, torch.ones_like(a)) + F.mse_loss(b, torch.ones_like(b))
        cycle = F.l1_loss(self.f(fy), x) + F.l1_loss(self.g(fx), y)
        return adv + 10 * cycle + 5 * (F.l1_loss(self.g(y), y) + F.l1_loss(self.f(x), x))


class Pointer(nn.Module):
    """A pointer network: a learned first input, glimpses, chosen places masked."""

    def __init__(self):
        super().__init__()
        self.embed, self.enc, self.cell, self.start = nn.Linear(2, 8), nn.LSTM(8, 8, batch_first=True), nn.LSTMCell(8, 8), nn.Parameter(torch.rand(8) - 0.5)
        self.w1, self.w2, self.v = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False), nn.Parameter(torch.rand(8) - 0.5)

    def forward(self, x, y):
        e = self.embed(x)
        seen, (h, c) = self.enc(e)
        h, c, given = h[0], c[0], self.start.expand(x.size(0), 8)
        mask, loss = torch.zeros(x.size(0), 5, dtype=torch.bool), 0.0
        for t in range(4):
            h, c = self.cell(given, (h, c))
            u = (torch.tanh(self.w1(seen) + self.w2(h).unsqueeze(1)) @ self.v).masked_fill(mask, -1e9)
            loss = loss + F.cross_entropy(u, y[:, t])
            mask = mask | F.one_hot(y[:, t], 5).bool()
            given = e[torch.arange(x.size(0)), y[:, t]]
        return loss / 4


class Llama(nn.Module):
    """Grouped keys, rotation of halves, gated feeding, RMS norms, a tied head, masked labels. Each query sees a key: of one
    that sees none, PyTorch 2.15's flash kernel on CPUs gives other gradients than its own math kernel."""

    def __init__(self):
        super().__init__()
        self.embed_tokens, self.n1, self.n2, self.norm = nn.Embedding(13, 8), nn.RMSNorm(8, eps=1e-6), nn.RMSNorm(8, eps=1e-6), nn.RMSNorm(8, eps=1e-6)
        self.q, self.k, self.v, self.o = nn.Linear(8, 8, bias=False), nn.Linear(8, 4, bias=False), nn.Linear(8, 4, bias=False), nn.Linear(8, 8, bias=False)
        self.gate, self.up, self.down = nn.Linear(8, 12, bias=False), nn.Linear(8, 12, bias=False), nn.Linear(12, 8, bias=False)
        self.lm_head = nn.Linear(8, 13, bias=False)
        self.lm_head.weight = self.embed_tokens.weight
        self.register_buffer("inv_freq", 1.0 / (10000 ** (torch.arange(0, 4, 2).float() / 4)), persistent=False)

    def forward(self, ids, mask, y):
        x = self.embed_tokens(ids)
        b, t, _ = x.shape
        place = (mask.cumsum(-1) - 1).clamp(min=0)
        f = place[..., None].float() * self.inv_freq
        cos, sin = torch.cat([f, f], -1).cos()[:, None], torch.cat([f, f], -1).sin()[:, None]
        turn = lambda v: v * cos + torch.cat([-v[..., 2:], v[..., :2]], -1) * sin  # noqa: E731
        h = self.n1(x)
        q, k, v = self.q(h).view(b, t, 2, 4).transpose(1, 2), self.k(h).view(b, t, 1, 4).transpose(1, 2), self.v(h).view(b, t, 1, 4).transpose(1, 2)
        q, k = turn(q), turn(k)
        see = torch.ones(t, t).tril().bool() & mask[:, None, None, :].bool()
        bias = torch.zeros(b, 1, t, t).masked_fill(~see, torch.finfo(torch.float32).min)
        a = F.scaled_dot_product_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), attn_mask=bias)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, 8))
        h = self.n2(x)
        x = self.norm(x + self.down(F.silu(self.gate(h)) * self.up(h)))
        logits = self.lm_head(x)[:, :-1].float()
        return F.cross_entropy(logits.reshape(-1, 13), y[:, 1:].reshape(-1), ignore_index=-100)


class Windows(nn.Module):
    """Two blocks of shifted windows with their bias tables, and a merge of patches."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 2, 2), nn.LayerNorm(8)
        self.qkv, self.o, self.n = nn.ModuleList(nn.Linear(8, 24) for _ in range(2)), nn.ModuleList(nn.Linear(8, 8) for _ in range(2)), nn.ModuleList(nn.LayerNorm(8) for _ in range(2))
        self.relative_position_bias_table = nn.ParameterList(torch.randn(9, 2) * 0.02 for _ in range(2))
        c = torch.stack(torch.meshgrid(torch.arange(2), torch.arange(2), indexing="ij")).flatten(1)
        r = (c[:, :, None] - c[:, None]).permute(1, 2, 0) + 1
        self.register_buffer("relative_position_index", r[..., 0] * 3 + r[..., 1])
        self.reduce, self.rn, self.head = nn.Linear(32, 16, bias=False), nn.LayerNorm(32), nn.Linear(16, 5)
        mask, k = torch.zeros(1, 4, 4, 1), 0
        for h in (slice(0, 2), slice(2, 3), slice(3, None)):
            for w in (slice(0, 2), slice(2, 3), slice(3, None)):
                mask[:, h, w] = k
                k += 1
        m = mask.view(1, 2, 2, 2, 2, 1).permute(0, 1, 3, 2, 4, 5).reshape(4, 4)
        self.register_buffer("attn_mask", (m[:, None] != m[:, :, None]).float() * -100.0)

    def forward(self, x, y):
        x = self.norm(self.stem(x).permute(0, 2, 3, 1))
        for i in range(2):
            h = self.n[i](x)
            h = torch.roll(h, (-1, -1), (1, 2)) if i else h
            w = h.view(2, 2, 2, 2, 2, 8).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, 8)
            q, k, v = self.qkv[i](w).view(-1, 4, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
            a = q * 0.5 @ k.transpose(-2, -1) + self.relative_position_bias_table[i][self.relative_position_index.view(-1)].view(4, 4, 2).permute(2, 0, 1).contiguous().unsqueeze(0)
            if i:
                a = (a.view(2, 4, 2, 4, 4) + self.attn_mask[None, :, None]).view(-1, 2, 4, 4)
            w = self.o[i]((a.softmax(-1) @ v).transpose(1, 2).reshape(-1, 4, 8))
            h = w.view(2, 2, 2, 2, 2, 8).permute(0, 1, 3, 2, 4, 5).reshape(2, 4, 4, 8)
            x = x + (torch.roll(h, (1, 1), (1, 2)) if i else h)
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return F.cross_entropy(self.head(self.reduce(self.rn(x)).mean((1, 2))), y)


class Twin(nn.Module):
    """Twin critics with targets that follow in the forward pass, an actor and a learned temperature."""

    def __init__(self):
        super().__init__()
        q = lambda: nn.Sequential(nn.Linear(7, 8), nn.ReLU(), nn.Linear(8, 1))  # noqa: E731
        self.q1, self.q2, self.actor, self.log_alpha = q(), q(), nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4)), nn.Parameter(torch.tensor(-0.3))
        self.t1, self.t2 = copy.deepcopy(self.q1).requires_grad_(False), copy.deepcopy(self.q2).requires_grad_(False)

    def act(self, x, noise):
        mu, log_std = self.actor(x).chunk(2, -1)
        std = log_std.clamp(-5, 2).exp()
        u = mu + std * noise
        lp = (-0.5 * noise**2 - log_std.clamp(-5, 2) - 0.5 * math.log(2 * math.pi)).sum(-1) - (2 * (math.log(2) - u - F.softplus(-2 * u))).sum(-1)
        return u.tanh(), lp

    def forward(self, x, a, r, z, noise):
        with torch.no_grad():
            b, lp = self.act(z, noise)
            s = torch.cat([z, b], 1)
            target = r + 0.99 * (torch.min(self.t1(s), self.t2(s)).squeeze(1) - self.log_alpha.exp() * lp)
        s = torch.cat([x, a], 1)
        critic = F.mse_loss(self.q1(s).squeeze(1), target) + F.mse_loss(self.q2(s).squeeze(1), target)
        b, lp = self.act(x, noise.flip(0))
        s = torch.cat([x, b], 1)
        actor = (self.log_alpha.exp().detach() * lp - torch.min(self.q1(s), self.q2(s)).squeeze(1)).mean()
        return critic + actor - (self.log_alpha * (lp + 2).detach()).mean()


N = lambda m, *given: m.n(*given)  # noqa: E731
IMAGES = dict(x=(2, 3, 8, 8), y=lambda: labels(5, 2))

programs("published", [
    ("published-conformer", lambda: dict(n=Conformer()), dict(x=(3, 7, 8), y=lambda: labels(4, 3, 2) + 1), N),
    ("published-clip", lambda: dict(n=Clip()), dict(x=(3, 3, 8, 8), y=lambda: labels(12, 3, 5)), N),
    ("published-quantizer", lambda: dict(n=Quantizer()), (2, 3, 8, 8), N),
    ("published-detector", lambda: dict(n=Detector()), dict(x=(2, 3, 8, 8), y=lambda: labels(5, 2, 3), b=(2, 3, 4)), N),
    ("published-diffusion", lambda: dict(n=Diffusion()), dict(x=(2, 2, 8, 8), e=(2, 2, 8, 8), t=lambda: labels(50, 2), y=lambda: labels(4, 2)), N),
    ("published-mixer", lambda: dict(n=Mixer()), IMAGES, N),
    ("published-perceiver", lambda: dict(n=Perceiver()), (2, 7, 5), N),
    ("published-whisper", lambda: dict(n=Whisper()), dict(x=(2, 6, 8), y=lambda: labels(13, 2, 6)), N),
    ("published-bags", lambda: dict(n=Bags()), dict(x=(7, 5), y=lambda: torch.tensor([1])), N),
    ("published-distilled", lambda: dict(n=Distilled()), IMAGES, N),
    ("published-policy", lambda: dict(n=Policy()), dict(x=ROWS, a=(6, 2), o=(6,), r=(6,), d=lambda: labels(2, 6).float()), N),
    ("published-coupling", lambda: dict(n=Coupling()), (6, 4), N),
    ("published-twins", lambda: dict(n=Twins()), dict(x=ROWS, z=ROWS), N),
    ("published-masked", lambda: dict(n=Masked()), dict(x=(2, 9, 12), z=(2, 9)), N),
    ("published-speech", lambda: dict(n=Speech()), dict(x=lambda: labels(11, 2, 5), y=(2, 4, 3), s=lambda: booleans(2, 4).float()), N),
    ("published-cycle", lambda: dict(n=Cycle()), dict(x=(2, 2, 6, 6), y=(2, 2, 6, 6)), N),
    ("published-pointer", lambda: dict(n=Pointer()), dict(x=(3, 5, 2), y=lambda: torch.stack([torch.randperm(5)[:4] for _ in range(3)])), N),
    ("published-llama", lambda: dict(n=Llama()), dict(i=lambda: labels(13, 2, 6), m=lambda: torch.tensor([[1] * 6, [1, 1, 1, 1, 0, 0]]), y=lambda: torch.where(booleans(2, 6), labels(13, 2, 6), -100)), N),
    ("published-windows", lambda: dict(n=Windows()), IMAGES, N),
    ("published-twin-critics", lambda: dict(n=Twin()), dict(x=ROWS, a=(6, 2), r=(6,), z=ROWS, e=(6, 2)), N),
])  # fmt: skip
