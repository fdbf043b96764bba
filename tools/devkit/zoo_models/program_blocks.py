"""Blocks of published models and their losses, as their authors write them."""

import math

import torch
import torch.nn.functional as F
import torch.nn.utils.parametrizations as parametrizations
from torch import nn

from devkit.zoo_models.programs import IMAGE, ROWS, booleans, labels, programs, weight

TOKENS = (2, 5, 8)


def split(tokens, heads=2):
    """[batch, tokens, features] as [batch, heads, tokens, features]."""
    return tokens.unflatten(-1, (heads, -1)).transpose(1, 2)


class Conformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = (nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 8)) for _ in range(2))
        self.attention, self.norms = nn.MultiheadAttention(8, 2, batch_first=True), nn.ModuleList(nn.LayerNorm(8) for _ in range(3))
        self.wide, self.depth, self.batch, self.narrow = nn.Conv1d(8, 16, 1), nn.Conv1d(8, 8, 3, padding=1, groups=8), nn.BatchNorm1d(8), nn.Conv1d(8, 8, 1)

    def forward(self, x):
        x = x + 0.5 * self.first(x)
        h = self.norms[0](x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        x = x + self.narrow(F.silu(self.batch(self.depth(F.glu(self.wide(self.norms[1](x).transpose(1, 2)), dim=1))))).transpose(1, 2)
        return self.norms[2](x + 0.5 * self.last(x))


class Diffusion(nn.Module):
    """A residual block with a time embedding, and the loss of what it predicts, weighted by bounded signal to noise."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.skip = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 4, 3, padding=1), nn.Conv2d(4, 4, 1)
        self.one, self.two, self.time = nn.GroupNorm(2, 4), nn.GroupNorm(4, 8), nn.Sequential(nn.Linear(6, 8), nn.SiLU(), nn.Linear(8, 16))
        self.register_buffer("alphas_cumprod", torch.cumprod(1 - torch.linspace(1e-3, 0.2, 10), 0))

    def forward(self, x, noise, t):
        a = self.alphas_cumprod[t][:, None, None, None]
        noisy = a.sqrt() * x + (1 - a).sqrt() * noise
        angles = t[:, None].float() * torch.exp(-math.log(10000) * torch.arange(3) / 3)
        scale, shift = self.time(torch.cat([angles.sin(), angles.cos()], -1))[:, :, None, None].chunk(2, 1)
        h = self.second(F.silu(self.two(self.first(F.silu(self.one(noisy)))) * (1 + scale) + shift)) + self.skip(noisy)
        ratio = self.alphas_cumprod / (1 - self.alphas_cumprod)
        return (torch.minimum(ratio[t], torch.full_like(ratio[t], 5.0)) / (ratio[t] + 1) * (h - (a.sqrt() * noise - (1 - a).sqrt() * x)).square().mean((1, 2, 3))).mean()


class Modulated(nn.Module):
    """A block whose norms read six modulations, of zeros at first."""

    def __init__(self):
        super().__init__()
        self.make, self.one, self.two = nn.Linear(6, 48), nn.LayerNorm(8, elementwise_affine=False), nn.LayerNorm(8, elementwise_affine=False, eps=1e-6)
        self.joint, self.out, self.mlp = nn.Linear(8, 24), nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 16), nn.GELU(approximate="tanh"), nn.Linear(16, 8))
        nn.init.zeros_(self.make.weight)
        nn.init.zeros_(self.make.bias)

    def forward(self, x, c):
        shift, scale, gate, shift2, scale2, gate2 = self.make(F.silu(c)).unsqueeze(1).chunk(6, -1)
        q, k, v = (split(part) for part in self.joint(self.one(x) * (1 + scale) + shift).chunk(3, -1))
        x = x + gate * self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + gate2 * self.mlp(self.two(x) * (1 + scale2) + shift2)


class Anchors(nn.Module):
    """Boxes by offsets of anchors: a focal loss of classes, and a smooth one of the positive."""

    def __init__(self):
        super().__init__()
        self.tower, self.classes, self.offsets = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 6, 1), nn.Conv2d(4, 8, 1)
        self.register_buffer("anchors", torch.rand(84, 4) + torch.tensor([0.0, 0, 1, 1]))
        nn.init.constant_(self.classes.bias, -math.log(99))

    def forward(self, x, y, boxes):
        h = F.relu(self.tower(x))
        logits = self.classes(h).permute(0, 2, 3, 1).reshape(2, -1, 3)
        offsets = self.offsets(h).permute(0, 2, 3, 1).reshape(2, -1, 4)
        corner, size = self.anchors[:, :2], self.anchors[:, 2:] - self.anchors[:, :2]
        centre = corner + 0.5 * size
        wanted = torch.cat([((boxes[..., :2] - centre) / size) / 0.1, torch.log(boxes[..., 2:].abs() / size) / 0.2], -1)
        positive = y > 0
        hot = F.one_hot(y.clamp(min=0), 4)[..., 1:].float()
        p = logits.sigmoid()
        factor = (0.25 * hot + 0.75 * (1 - hot)) * (1 - (p * hot + (1 - p) * (1 - hot))) ** 2
        count = positive.sum().clamp(min=1)
        focal = (factor.detach() * 0 + factor) * F.binary_cross_entropy_with_logits(logits, hot, reduction="none") * (y >= 0)[..., None]
        return focal.sum() / count + (F.smooth_l1_loss(offsets, wanted, beta=0.11, reduction="none") * positive[..., None]).sum() / count


class Distances(nn.Module):
    """A head without anchors: distances to four sides by exponentials of a learned scale, and how central a place is."""

    def __init__(self):
        super().__init__()
        self.conv, self.scale = nn.Conv2d(4, 5, 3, padding=1), nn.Parameter(torch.ones([]))

    def forward(self, x, t):
        h = self.conv(x)
        p, t = (self.scale * h[:, :4]).exp(), t.abs() + 0.1
        inside = (torch.min(p[:, 0], t[:, 0]) + torch.min(p[:, 2], t[:, 2])) * (torch.min(p[:, 1], t[:, 1]) + torch.min(p[:, 3], t[:, 3]))
        areas = (p[:, 0] + p[:, 2]) * (p[:, 1] + p[:, 3]) + (t[:, 0] + t[:, 2]) * (t[:, 1] + t[:, 3])
        across, down = t[:, [0, 2]], t[:, [1, 3]]
        central = (across.amin(1) / across.amax(1) * down.amin(1) / down.amax(1)).sqrt()
        loss = -((inside + 1) / (areas - inside + 1)).log() * central
        return loss.sum() / central.sum() + F.binary_cross_entropy_with_logits(h[:, 4], central)


class Matched(nn.Module):
    """Queries of a decoder, matched with objects by given indices; nothing weighs a tenth."""

    def __init__(self):
        super().__init__()
        self.queries, self.decoder = nn.Embedding(3, 8), nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.classes, self.boxes = nn.Linear(8, 4), nn.Linear(8, 4)
        self.register_buffer("empty_weight", torch.tensor([1.0, 1, 1, 0.1]))

    def forward(self, x, i, y, t):
        h = self.decoder(self.queries.weight.unsqueeze(0).repeat(2, 1, 1) + x.mean(1, keepdim=True), x)
        wanted = torch.full((2, 3), 3).scatter(1, i, y)
        boxes = self.boxes(h).sigmoid().gather(1, i[..., None].expand(-1, -1, 4))
        return F.cross_entropy(self.classes(h).transpose(1, 2), wanted, self.empty_weight) + 5 * F.l1_loss(boxes, t.sigmoid(), reduction="none").sum() / 4


class Splines(nn.Module):
    """A layer of splines over a grid, next to a weighted activation."""

    def __init__(self):
        super().__init__()
        self.register_buffer("grid", torch.arange(-3, 9).float().mul(0.4).sub(1).expand(5, -1).contiguous())
        self.base, self.spline, self.scaler = weight(4, 5), weight(4, 5, 8), weight(4, 5)

    def forward(self, x):
        g, at = self.grid, x.unsqueeze(-1)
        b = ((at >= g[:, :-1]) & (at < g[:, 1:])).to(x.dtype)
        for k in range(1, 4):
            b = (at - g[:, : -(k + 1)]) / (g[:, k:-1] - g[:, : -(k + 1)]) * b[..., :-1] + (g[:, k + 1 :] - at) / (g[:, k + 1 :] - g[:, 1:-k]) * b[..., 1:]
        return F.linear(F.silu(x), self.base) + F.linear(b.flatten(1), (self.spline * self.scaler.unsqueeze(-1)).flatten(1))


class Radial(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.grid, self.out, self.base = nn.LayerNorm(5), nn.Parameter(torch.linspace(-2, 2, 4), requires_grad=False), nn.Linear(20, 4, bias=False), nn.Linear(5, 4)

    def forward(self, x):
        return self.out(torch.exp(-(((self.norm(x)[..., None] - self.grid) / (4 / 3)) ** 2)).flatten(1)) + self.base(F.silu(x))


class HyperKernels(nn.Module):
    """One network writes another's kernels, from an embedding of each layer."""

    def __init__(self):
        super().__init__()
        self.layers, self.make, self.bias = weight(2, 3), nn.Linear(3, 36), nn.Linear(3, 2)

    def forward(self, x):
        for z in self.layers:
            x = x + F.conv2d(x[:, :2], self.make(z).view(2, 2, 3, 3), self.bias(z), padding=1).repeat(1, 2, 1, 1).tanh()
        return x


class Switch(nn.Module):
    """One expert for each token, of a bounded number of tokens; what does not fit passes by."""

    def __init__(self):
        super().__init__()
        self.router, self.up, self.down = nn.Linear(5, 3, bias=False), weight(3, 5, 7), weight(3, 7, 5)

    def forward(self, x):
        p = self.router(x).softmax(-1)
        gate, chosen = p.max(-1)
        hot = F.one_hot(chosen, 3)
        place = (hot.cumsum(0) - 1) * hot
        kept = hot * (place < 2)
        send = kept[..., None].float() * F.one_hot(place.clamp(max=1), 2) * kept[..., None]
        h = torch.einsum("nec,nd->ecd", send, x)
        y = torch.einsum("nec,ecd->nd", send, torch.bmm(F.gelu(torch.bmm(h, self.up)), self.down)) * gate[:, None]
        return (x + y).square().mean() + 0.1 * 3 * (hot.float().mean(0) * p.mean(0)).sum()


class ExpertsChoose(nn.Module):
    def __init__(self):
        super().__init__()
        self.router, self.experts = nn.Linear(5, 3), weight(3, 5, 5)

    def forward(self, x):
        gates, chosen = self.router(x).softmax(-1).T.topk(2, -1)
        y = torch.einsum("ecd,edf->ecf", x[chosen], self.experts) * gates[..., None]
        return x.index_add(0, chosen.flatten(), y.flatten(0, 1))


class SoftExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi, self.scale, self.experts = weight(8, 3, 2), nn.Parameter(torch.ones(1)), nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        logits = torch.einsum("bnd,des->bnes", F.normalize(x, dim=-1), self.scale * F.normalize(self.phi, dim=0))
        slots = torch.einsum("bnd,bnes->besd", x, logits.softmax(1))
        out = torch.stack([expert(slots[:, i]) for i, expert in enumerate(self.experts)], 1)
        return torch.einsum("besd,bnes->bnd", out, logits.flatten(2).softmax(-1).view_as(logits))


class Distilled(nn.Module):
    """Two views, a teacher without gradients, and a centre that the program moves."""

    def __init__(self):
        super().__init__()
        self.student, self.teacher = nn.Linear(5, 4), nn.Linear(5, 4)
        self.register_buffer("center", torch.zeros(1, 4))

    def forward(self, x, z):
        with torch.no_grad():
            t = self.teacher(torch.cat([x, z]))
            wanted = ((t - self.center) / 0.4).softmax(-1).chunk(2)
            self.center.mul_(0.9).add_(t.mean(0, keepdim=True), alpha=0.1)
        s = (self.student(torch.cat([x, z])) / 0.5).chunk(2)
        return -0.5 * sum((wanted[i] * s[1 - i].log_softmax(-1)).sum(-1).mean() for i in range(2))


class Masked(nn.Module):
    """An auto-encoder of what is hidden: places by an order that is given."""

    def __init__(self):
        super().__init__()
        self.embed, self.token, self.places = nn.Linear(8, 6), nn.Parameter(torch.zeros(1, 1, 6)), nn.Parameter(torch.randn(1, 5, 6) * 0.02, requires_grad=False)
        self.encoder, self.decoder, self.out = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 8)
        nn.init.normal_(self.token, std=0.02)

    def forward(self, x, noise):
        order = noise.argsort(1)
        back, kept = order.argsort(1), order[:, :2]
        h = self.embed(x) + self.places
        h = self.encoder(h.gather(1, kept[..., None].expand(-1, -1, 6))).tanh()
        h = torch.cat([h, self.token.expand(2, 3, -1)], 1).gather(1, back[..., None].expand(-1, -1, 6)) + self.places
        hidden = torch.cat([torch.zeros(2, 2), torch.ones(2, 3)], 1).gather(1, back)
        wanted = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-6) ** 0.5
        return ((self.out(self.decoder(h).relu()) - wanted).square().mean(-1) * hidden).sum() / hidden.sum()


class MovingCodes(nn.Module):
    """A codebook of moving averages, and gradients straight through."""

    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(5, 4), nn.Linear(4, 5)
        self.register_buffer("codes", torch.randn(7, 4))
        self.register_buffer("cluster_size", torch.ones(7))
        self.register_buffer("sums", torch.randn(7, 4))

    def forward(self, x):
        z = self.encode(x)
        flat = z.detach()
        hot = F.one_hot((flat.square().sum(1, keepdim=True) - 2 * flat @ self.codes.T + self.codes.square().sum(1)).argmin(1), 7).float()
        q = hot @ self.codes
        with torch.no_grad():
            self.cluster_size.mul_(0.9).add_(hot.sum(0), alpha=0.1)
            self.sums.mul_(0.9).add_(hot.T @ flat, alpha=0.1)
            n = self.cluster_size.sum()
            self.codes.copy_(self.sums / ((self.cluster_size + 1e-5) / (n + 7e-5) * n).unsqueeze(1))
        return F.mse_loss(self.decode(z + (q - z).detach()), x) + 0.25 * F.mse_loss(z, q.detach())


class Adversary(nn.Module):
    """A critic with spectral norms, hinged, on real rows and on generated ones, which it does not train."""

    def __init__(self):
        super().__init__()
        self.generate, self.critic = nn.Linear(5, 5), nn.Sequential(parametrizations.spectral_norm(nn.Linear(5, 4)), nn.LeakyReLU(0.2), parametrizations.spectral_norm(nn.Linear(4, 1)))

    def forward(self, x, z):
        made = self.generate(z)
        return F.relu(1 - self.critic(x)).mean() + F.relu(1 + self.critic(made.detach())).mean() + made.square().mean()


class Adapted(nn.Module):
    """A frozen layer with low ranks, and a length of its own for each row."""

    def __init__(self):
        super().__init__()
        self.base, self.a, self.b, self.m = nn.Linear(5, 4), weight(2, 5), weight(4, 2), nn.Parameter(torch.rand(4, 1) + 0.5)
        self.base.weight.requires_grad_(False)

    def forward(self, x):
        w = self.base.weight + 2.0 * self.b @ self.a
        return F.linear(x, self.m * w / w.norm(dim=1, keepdim=True).detach(), self.base.bias)


class Steps(nn.Module):
    """A weight rounded to steps that are learned."""

    def __init__(self):
        super().__init__()
        self.layer, self.step = nn.Linear(5, 4), nn.Parameter(torch.rand(4, 1) * 0.1 + 0.05)

    def forward(self, x):
        g = 1 / math.sqrt(20 * 7)
        s = (self.step - self.step * g).detach() + self.step * g
        w = (self.layer.weight / s).clamp(-8, 7)
        return F.linear(x, ((w.round() - w).detach() + w) * s, self.layer.bias)


class Affine(nn.Module):
    """Numbers of eight bits for activations, by ranges that are observed."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 4), nn.Linear(4, 4)
        self.register_buffer("min_val", torch.tensor(-1.0))
        self.register_buffer("max_val", torch.tensor(1.0))

    def forward(self, x):
        h = self.a(x)
        low, high = torch.minimum(self.min_val, h.detach().amin()), torch.maximum(self.max_val, h.detach().amax())
        self.min_val.copy_(low)
        self.max_val.copy_(high)
        scale = (high - low) / 255
        zero = (-low / scale).round()
        q = ((h / scale + zero).round().clamp(0, 255) - zero) * scale
        return self.b(h + (q - h).detach())


class Unaligned(nn.Module):
    """The sum over alignments of labels, step by step."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x, y):
        p = self.layer(x).log_softmax(-1)
        blank, at = p[:, :, 0], p.gather(2, y[:, None].expand(-1, 5, -1))
        a = [blank[:, 0]] + [at[:, 0, 0]] + [torch.full((2,), -1e4)]
        for t in range(1, 5):
            a = [a[0] + blank[:, t], torch.logaddexp(a[1] + blank[:, t], a[0] + at[:, t, 0]), torch.logaddexp(a[2] + blank[:, t], a[1] + at[:, t, 1])]
        return -a[2].mean()


class SoftWarp(nn.Module):
    """The soft least cost of aligning two sequences."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x, z):
        d = (self.layer(x)[:, :, None] - self.layer(z)[:, None]).square().sum(-1)
        far = torch.full((2,), 1e4)
        above = [torch.zeros(2)] + [far] * 5
        for i in range(5):
            row = [far]
            for j in range(5):
                row.append(d[:, i, j] - 0.5 * torch.stack([above[j], above[j + 1], row[j]]).mul(-2).logsumexp(0))
            above = row
        return above[-1].mean()


class Circle(nn.Module):
    """Pairs of one class and of others, each weighted by how far it is from where it should be."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 4)

    def forward(self, x, y):
        h = F.normalize(self.layer(x))
        s = h @ h.T
        same, own = y[:, None] == y, torch.eye(6).bool()
        ap, an = (1.25 - s.detach()).clamp_min(0.0), (s.detach() + 0.25).clamp_min(0.0)
        p = (-8 * ap * (s - 0.75)).masked_fill(~same | own, -1e4).logsumexp(1)
        n = (8 * an * (s - 0.25)).masked_fill(same, -1e4).logsumexp(1)
        return F.softplus(p + n).mean()


class Asymmetric(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 4)

    def forward(self, x, y):
        p = self.layer(x).sigmoid()
        n = (1 - p + 0.05).clamp(max=1)
        loss = y * p.clamp(min=1e-8).log() + (1 - y) * n.clamp(min=1e-8).log()
        with torch.no_grad():
            factor = torch.pow(1 - p * y - n * (1 - y), 1 * y + 4 * (1 - y))
        return -(loss * factor).sum()


def of(part):
    return lambda: dict(net=part())


def call(module, *given):
    return module.net(*given)


BOXES = dict(x=IMAGE, y=lambda: labels(5, 2, 84) - 1, boxes=(2, 84, 4))

programs(
    "blocks",
    [
        ("block-conformer", of(Conformer), TOKENS, call),
        ("block-diffusion", of(Diffusion), dict(x=(2, 4, 6, 7), noise=(2, 4, 6, 7), t=lambda: labels(10, 2)), call),
        ("block-modulated-zeros", of(Modulated), dict(x=TOKENS, c=(2, 6)), call),
        ("block-anchors", of(Anchors), BOXES, call),
        ("block-distances", of(Distances), dict(x=IMAGE, t=(2, 4, 6, 7)), call),
        ("block-matched", of(Matched), dict(x=TOKENS, i=lambda: torch.tensor([[2, 0], [1, 2]]), y=lambda: labels(3, 2, 2), t=(2, 2, 4)), call),
        ("block-splines", of(Splines), ROWS, call),
        ("block-radial", of(Radial), ROWS, call),
        ("block-hyper-kernels", of(HyperKernels), IMAGE, call),
        ("block-switch", of(Switch), ROWS, call),
        ("block-experts-choose", of(ExpertsChoose), ROWS, call),
        ("block-soft-experts", of(SoftExperts), TOKENS, call),
        ("block-distilled", of(Distilled), dict(x=ROWS, z=ROWS), call),
        ("block-masked", of(Masked), dict(x=TOKENS, noise=(2, 5)), call),
        ("block-moving-codes", of(MovingCodes), ROWS, call),
        ("block-adversary", of(Adversary), dict(x=ROWS, z=ROWS), call),
        ("block-adapted", of(Adapted), ROWS, call),
        ("block-steps", of(Steps), ROWS, call),
        ("block-affine", of(Affine), ROWS, call),
        ("block-unaligned", of(Unaligned), dict(x=TOKENS, y=lambda: labels(3, 2, 2) + 1), call),
        ("block-soft-warp", of(SoftWarp), dict(x=TOKENS, z=TOKENS), call),
        ("block-circle", of(Circle), dict(x=ROWS, y=lambda: torch.tensor([0, 1, 0, 2, 1, 2])), call),
        ("block-asymmetric", of(Asymmetric), dict(x=ROWS, y=lambda: booleans(6, 4).float()), call),
    ],
)
