"""Training scripts as they are published: norms and attention."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.program_blocks import split
from devkit.zoo_models.program_scripts import whole
from devkit.zoo_models.programs import CONV, IMAGE, programs

TOKENS = dict(x=(2, 6, 8))
joined = lambda h: h.transpose(1, 2).flatten(2)  # noqa: E731


class RootMean(nn.Module):
    def __init__(self, n, affine=True):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n)) if affine else 1.0

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class ScaledKernel(nn.Conv2d):
    """A convolution of standardized weights with a gain, as networks without norms have it."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.gain = nn.Parameter(torch.ones(self.out_channels, 1, 1, 1))
        self.scale = 1.7139 * self.weight[0].numel() ** -0.5

    def forward(self, x):
        w = F.batch_norm(self.weight.reshape(1, self.out_channels, -1), None, None, weight=(self.gain * self.scale).view(-1), training=True, momentum=0.0, eps=1e-6).reshape_as(self.weight)
        return F.conv2d(x, w, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Frozen(nn.Module):
    """A batch norm of constants, as detectors have it."""

    def __init__(self, n):
        super().__init__()
        self.register_buffer("weight", torch.rand(n) + 0.5)
        self.register_buffer("bias", torch.randn(n))
        self.register_buffer("running_mean", torch.randn(n))
        self.register_buffer("running_var", torch.rand(n) + 0.5)

    def forward(self, x):
        scale = self.weight * (self.running_var + 1e-5).rsqrt()
        return x * scale.reshape(1, -1, 1, 1) + (self.bias - self.running_mean * scale).reshape(1, -1, 1, 1)


class Switchable(nn.Module):
    """Instance, layer and batch statistics, mixed by softmax."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(1, 4, 1, 1)), nn.Parameter(torch.zeros(1, 4, 1, 1))
        self.mean_weight, self.var_weight = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
        self.register_buffer("running_mean", torch.zeros(1, 4, 1))
        self.register_buffer("running_var", torch.zeros(1, 4, 1))

    def forward(self, x):
        n, c, h, w = x.size()
        x = x.view(n, c, -1)
        mean_in, var_in = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
        temp = var_in + mean_in**2
        mean_ln = mean_in.mean(1, keepdim=True)
        var_ln = temp.mean(1, keepdim=True) - mean_ln**2
        mean_bn = mean_in.mean(0, keepdim=True)
        var_bn = temp.mean(0, keepdim=True) - mean_bn**2
        self.running_mean.mul_(0.9).add_(0.1 * mean_bn.data)
        self.running_var.mul_(0.9).add_(0.1 * var_bn.data)
        a, b = F.softmax(self.mean_weight, 0), F.softmax(self.var_weight, 0)
        mean = a[0] * mean_in + a[1] * mean_ln + a[2] * mean_bn
        var = b[0] * var_in + b[1] * var_ln + b[2] * var_bn
        return ((x - mean) / (var + 1e-5).sqrt()).view(n, c, h, w) * self.weight + self.bias


class Evolved(nn.Module):
    """EvoNorm B0: running variance next to that of the sample."""

    def __init__(self):
        super().__init__()
        self.gamma, self.beta, self.v = nn.Parameter(torch.ones(1, 4, 1, 1)), nn.Parameter(torch.zeros(1, 4, 1, 1)), nn.Parameter(torch.ones(1, 4, 1, 1))
        self.register_buffer("running_var", torch.ones(1, 4, 1, 1))

    def forward(self, x):
        var = torch.var(x, dim=(0, 2, 3), unbiased=False, keepdim=True)
        with torch.no_grad():
            self.running_var.mul_(0.9)
            self.running_var.add_(0.1 * var)
        den = torch.max((var + 1e-5).sqrt(), self.v * x + (x.var(dim=(2, 3), unbiased=False, keepdim=True) + 1e-5).sqrt())
        return x / den * self.gamma + self.beta


class Whitened(nn.Module):
    """Iterative whitening by Newton's method, with running statistics."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(1, 4, 1, 1)), nn.Parameter(torch.zeros(1, 4, 1, 1))
        self.register_buffer("running_mean", torch.zeros(4, 1))
        self.register_buffer("running_wmat", torch.eye(4))

    def forward(self, x):
        h = x.transpose(0, 1).contiguous().view(4, -1)
        mean = h.mean(-1, keepdim=True)
        c = h - mean
        sigma = torch.addmm(1e-3 * torch.eye(4), c, c.t(), alpha=1.0 / c.shape[1])
        r = (sigma * torch.eye(4)).sum(dim=(0, 1), keepdim=True).reciprocal_()
        s, p = sigma * r, torch.eye(4)
        for _ in range(3):
            p = 1.5 * p - 0.5 * torch.matrix_power(p, 3) @ s
        w = p * r.sqrt()
        self.running_mean.copy_(0.1 * mean.detach() + 0.9 * self.running_mean)
        self.running_wmat.copy_(0.1 * w.detach() + 0.9 * self.running_wmat)
        return (w @ c).view(4, 2, 6, 7).transpose(0, 1) * self.weight + self.bias


class Gated(nn.Module):
    """Batch and instance norms mixed by a gate that each step bounds."""

    def __init__(self):
        super().__init__()
        self.bn, self.rho, self.g, self.b = nn.BatchNorm2d(4, affine=False), nn.Parameter(torch.full((1, 4, 1, 1), 0.9)), nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))

    def forward(self, x):
        gate = self.rho.clamp(0, 1)
        return (gate * self.bn(x) + (1 - gate) * F.instance_norm(x)) * self.g[:, None, None] + self.b[:, None, None]


class Initialized(nn.Module):
    """Activation norm whose numbers come from the first batch: a flag tells whether it has been."""

    def __init__(self):
        super().__init__()
        self.loc, self.scale = nn.Parameter(torch.zeros(1, 4, 1, 1)), nn.Parameter(torch.ones(1, 4, 1, 1))
        self.register_buffer("initialized", torch.tensor(1, dtype=torch.uint8))

    def forward(self, x):
        h = self.scale * (x + self.loc)
        return h, 42 * torch.log(self.scale.abs()).sum() * torch.ones(2)


class Spade(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.shared = nn.BatchNorm2d(4, affine=False), nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU())
        self.gamma, self.beta = nn.Conv2d(6, 4, 3, padding=1), nn.Conv2d(6, 4, 3, padding=1)

    def forward(self, x, s):
        h = self.shared(F.interpolate(s, size=x.size()[2:], mode="nearest"))
        return self.norm(x) * (1 + self.gamma(h)) + self.beta(h)


class ByClass(nn.Module):
    """A batch norm with scales and shifts by class, drawn as usual: ones and zeros in one table."""

    def __init__(self):
        super().__init__()
        self.bn, self.embed = nn.BatchNorm2d(4, affine=False, momentum=0.001), nn.Embedding(3, 8)
        self.embed.weight.data[:, :4].fill_(1.0)
        self.embed.weight.data[:, 4:].zero_()

    def forward(self, x, y):
        gamma, beta = self.embed(y).chunk(2, 1)
        return gamma.view(-1, 4, 1, 1) * self.bn(x) + beta.view(-1, 4, 1, 1)


class Domains(nn.Module):
    """A batch norm for each of two domains, both halves of one batch."""

    def __init__(self):
        super().__init__()
        self.bns, self.a = nn.ModuleList([nn.BatchNorm2d(4), nn.BatchNorm2d(4)]), nn.Conv2d(4, 4, 1)

    def forward(self, x, z):
        h = self.a(torch.cat([x, z]))
        return torch.cat([bn(h[i * 2 : i * 2 + 2]) for i, bn in enumerate(self.bns)])


class Fixup(nn.Module):
    """A residual branch with scalar biases of zeros, a multiplier, and a last layer of zeros."""

    def __init__(self):
        super().__init__()
        self.bias1a, self.bias1b, self.bias2a, self.bias2b = (nn.Parameter(torch.zeros(1)) for _ in range(4))
        self.scale = nn.Parameter(torch.ones(1))
        self.conv1, self.conv2 = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.Conv2d(4, 4, 3, padding=1, bias=False)
        nn.init.constant_(self.conv2.weight, 0)

    def forward(self, x):
        out = F.relu(self.conv1(x + self.bias1a) + self.bias1b)
        return F.relu(self.conv2(out + self.bias2a) * self.scale + self.bias2b + x)


class Normed(nn.Module):
    """Pre-norm blocks whose residual branches start closed, sharing the last norm."""

    def __init__(self):
        super().__init__()
        self.norm, self.layers, self.resweight = nn.LayerNorm(8), nn.ModuleList(nn.Linear(8, 8) for _ in range(3)), nn.ParameterList(nn.Parameter(torch.zeros(1)) for _ in range(3))

    def forward(self, x):
        for layer, a in zip(self.layers, self.resweight):
            x = x + a * F.gelu(layer(self.norm(x)))
        return self.norm(x)


class Latent(nn.Module):
    """Attention from a compressed key and value, with a rotated part that heads share."""

    def __init__(self):
        super().__init__()
        self.q, self.kv_down, self.norm, self.kv_up, self.o = nn.Linear(8, 12, bias=False), nn.Linear(8, 5, bias=False), RootMean(3), nn.Linear(3, 16, bias=False), nn.Linear(8, 8, bias=False)
        self.register_buffer("inv_freq", torch.tensor([1.0]), persistent=False)

    def rotate(self, h):
        t = torch.arange(6.0)[:, None] * self.inv_freq
        cos, sin = torch.cat([t, t], -1).cos(), torch.cat([t, t], -1).sin()
        h = h.view(*h.shape[:-1], 1, 2).transpose(-1, -2).reshape(h.shape)
        return h * cos + torch.cat([-h[..., 1:], h[..., :1]], -1) * sin

    def forward(self, x):
        q, qr = split(self.q(x)).split([4, 2], -1)
        c, kr = self.kv_down(x).split([3, 2], -1)
        k, v = split(self.kv_up(self.norm(c))).split([4, 4], -1)
        k = torch.cat([k, self.rotate(kr[:, None]).expand(-1, 2, -1, -1)], -1)
        return self.o(joined(F.scaled_dot_product_attention(torch.cat([q, self.rotate(qr)], -1), k, v, is_causal=True, scale=6**-0.5)))


class Shared(nn.Module):
    """Layers that read keys and values of the first, and one table of positions."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.bias = nn.ModuleList(nn.Linear(8, 8) for _ in range(2)), nn.Linear(8, 4), nn.Linear(8, 4), nn.Embedding(11, 2)

    def forward(self, x):
        at = torch.arange(6)
        bias = self.bias(at[None] - at[:, None] + 5).permute(2, 0, 1)
        k, v = (p(x)[:, None].expand(-1, 2, -1, -1) for p in (self.k, self.v))
        for q in self.q:
            x = x + joined((split(q(x)) @ k.transpose(-1, -2) / 2 + bias).softmax(-1) @ v)
        return x


class Partial(nn.Module):
    """Half of each head turned, groups of heads, norms of queries and keys."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.qn, self.kn = nn.Linear(8, 16), nn.Linear(8, 8), nn.Linear(8, 8), nn.LayerNorm(4, bias=False), nn.LayerNorm(4, bias=False)

    def forward(self, x):
        q, k, v = split(self.q(x), 4), split(self.k(x)), split(self.v(x))
        f = torch.outer(torch.arange(6.0), 1 / 100 ** (torch.arange(0, 2, 2) / 2)).repeat_interleave(2, -1)

        def turn(h):
            r, p = h[..., :2], h[..., 2:]
            return torch.cat([r * f.cos() + torch.stack([-r[..., 1::2], r[..., ::2]], -1).flatten(-2) * f.sin(), p], -1)

        q, k = turn(self.qn(q)), turn(self.kn(k)).repeat_interleave(2, dim=1)
        return joined(F.softmax(q @ k.transpose(-1, -2) / 2 + torch.full((6, 6), -math.inf).triu(1), -1) @ v.repeat_interleave(2, dim=1))


class Favor(nn.Module):
    """Random positive features of queries and keys, stabilized without a gradient."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))
        self.register_buffer("projection_matrix", torch.linalg.qr(torch.randn(4, 4))[0].repeat(2, 1)[:6] * 2)

    def kernel(self, h, query):
        d = torch.einsum("...id,jd->...ij", h * 4**-0.25, self.projection_matrix)
        diag = (h**2).sum(-1, keepdim=True) / 2 * 4**-0.5
        top = torch.amax(d, dim=-1, keepdim=True).detach() if query else torch.amax(d, dim=(-1, -2), keepdim=True).detach()
        return 6**-0.5 * (torch.exp(d - diag - top) + 1e-4)

    def forward(self, x):
        q, k, v = self.kernel(split(self.q(x)), True), self.kernel(split(self.k(x)), False), split(self.v(x))
        inverse = 1.0 / torch.einsum("...nd,...d->...n", q, k.sum(dim=-2))
        return joined(torch.einsum("...de,...nd,...n->...ne", torch.einsum("...nd,...ne->...de", k, v), q, inverse))


class Landmarks(nn.Module):
    """Attention by segment means and an iterated inverse."""

    def __init__(self):
        super().__init__()
        self.qkv, self.res = nn.Linear(8, 24, bias=False), nn.Conv2d(2, 2, (3, 1), padding=(1, 0), groups=2, bias=False)

    def forward(self, x):
        q, k, v = (split(h) for h in self.qkv(x).chunk(3, -1))
        ql, kl = (h.reshape(2, 2, 3, 2, 4).sum(3) / 2 for h in (q, k))
        a1, a2, a3 = ((l @ r.transpose(-1, -2) / 2).softmax(-1) for l, r in ((q, kl), (ql, kl), (ql, k)))
        z = a2.transpose(-1, -2) / (a2.abs().sum(-1).max() * a2.abs().sum(-2).max())
        for _ in range(4):
            az = a2 @ z
            z = 0.25 * z @ (13 * torch.eye(3) - az @ (15 * torch.eye(3) - az @ (7 * torch.eye(3) - az)))
        return joined(a1 @ z @ (a3 @ v) + self.res(v))


class Retention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.g, self.o, self.n = *(nn.Linear(8, 8, bias=False) for _ in range(5)), RootMean(4, False)
        self.register_buffer("decay", torch.log(1 - 2 ** (-5 - torch.arange(2.0))))

    def forward(self, x):
        at = torch.arange(6.0)
        mask = torch.exp((at[:, None] - at[None]).masked_fill(at[:, None] < at[None], float("inf")) * self.decay[:, None, None])
        mask = torch.nan_to_num(mask)
        mask = mask / mask.sum(dim=-1, keepdim=True).sqrt()
        s = split(self.q(x)) @ split(self.k(x) * 0.5).transpose(-1, -2) * mask
        s = s / s.detach().sum(dim=-1, keepdim=True).abs().clamp(min=1)
        return self.o(F.silu(self.g(x)) * joined(self.n(s @ split(self.v(x)))))


class Delta(nn.Module):
    """Fast weights by the delta rule, a step at a time."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.b = nn.Linear(8, 4), nn.Linear(8, 4), nn.Linear(8, 4), nn.Linear(8, 1)

    def forward(self, x):
        q, k, v, b = F.silu(self.q(x)), F.normalize(F.silu(self.k(x)), dim=-1), self.v(x), self.b(x).sigmoid()
        s, out = x.new_zeros(2, 4, 4), []
        for i in range(6):
            s = s + torch.einsum("bd,be->bde", k[:, i], (v[:, i] - torch.einsum("bd,bde->be", k[:, i], s)) * b[:, i])
            out.append(torch.einsum("bd,bde->be", q[:, i], s))
        return torch.stack(out, dim=1)


class Disentangled(nn.Module):
    """Content to position and position to content, gathered from one table of distances."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.rel, self.norm = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Embedding(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        rel = self.norm(self.rel.weight)
        pk, pq = (p(rel).view(8, 2, 4).transpose(0, 1)[None] for p in (self.k, self.q))
        d = (torch.arange(6)[:, None] - torch.arange(6)[None] + 4).clamp(0, 7)
        c2p = torch.gather(q @ pk.transpose(-1, -2), -1, d.expand(2, 2, 6, 6))
        p2c = torch.gather(k @ pq.transpose(-1, -2), -1, d.expand(2, 2, 6, 6)).transpose(-1, -2)
        return joined(((q @ k.transpose(-1, -2) + c2p + p2c) / math.sqrt(12)).softmax(-1) @ v)


class Cached(nn.Module):
    """Segments with a memory in a buffer, and shifted relative scores with two biases."""

    def __init__(self):
        super().__init__()
        self.q, self.kv, self.r, self.u, self.v = nn.Linear(8, 8, bias=False), nn.Linear(8, 16, bias=False), nn.Linear(8, 8, bias=False), nn.Parameter(torch.zeros(2, 4)), nn.Parameter(torch.zeros(2, 4))
        self.register_buffer("mems", torch.zeros(2, 3, 8))

    def forward(self, x):
        h = torch.cat([self.mems, x], 1)
        k, v = self.kv(h).chunk(2, -1)
        at = torch.arange(8, -1, -1.0)[:, None] * (1 / 10000 ** (torch.arange(0, 8, 2) / 8))
        r = self.r(torch.cat([at.sin(), at.cos()], -1)).view(9, 2, 4).transpose(0, 1)
        q = self.q(x).view(2, 6, 2, 4)
        ac = (q + self.u).transpose(1, 2) @ split(k).transpose(-1, -2)
        bd = (q + self.v).transpose(1, 2) @ r.transpose(-1, -2)
        bd = torch.cat([bd.new_zeros(2, 2, 6, 1), bd], -1).view(2, 2, 10, 6)[:, :, 1:].view_as(bd)
        s = ((ac + bd) / 2).masked_fill(torch.ones(6, 9, dtype=torch.bool).triu(4), float("-inf"))
        out = x + joined(s.softmax(-1) @ split(v))
        self.mems.copy_(x[:, -3:].detach())
        return out


class Hashed(nn.Module):
    """Tokens sorted by random rotations; queries and keys are one, and a token hardly sees itself."""

    def __init__(self):
        super().__init__()
        self.qk, self.v = nn.Linear(8, 4), nn.Linear(8, 4)
        self.register_buffer("rotations", torch.randn(4, 2))

    def forward(self, x):
        qk, v = self.qk(x), self.v(x)
        r = qk.detach() @ self.rotations
        bucket = torch.argmax(torch.cat([r, -r], -1), -1)
        order = (bucket * 6 + torch.arange(6)).argsort(-1)
        back = order.argsort(-1)
        take = lambda h, i: h.gather(1, i[..., None].expand(-1, -1, h.shape[-1]))  # noqa: E731
        sq, sv = take(qk, order).view(2, 2, 3, 4), take(v, order).view(2, 2, 3, 4)
        s = sq @ F.normalize(sq, dim=-1).transpose(-1, -2) / 2
        s = s.masked_fill(torch.eye(3, dtype=torch.bool), -5e4)
        return take((s - torch.logsumexp(s, -1, keepdim=True)).exp().matmul(sv).view(2, 6, 4), back)


class Slid(nn.Module):
    """A window of three tokens by unfold, and global tokens with their own projections."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.qg = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        q, k, v = self.q(x) / 8**0.5, F.pad(self.k(x), (0, 0, 1, 1)).unfold(1, 3, 1), F.pad(self.v(x), (0, 0, 1, 1)).unfold(1, 3, 1)
        s = torch.einsum("btd,btdw->btw", q, k)
        edge = torch.zeros(6, 3, dtype=torch.bool)
        edge[0, 0] = edge[-1, -1] = True
        s = torch.cat([s.masked_fill(edge, -math.inf), (q * self.k(x)[:, :1]).sum(-1, keepdim=True)], -1).softmax(-1)
        local = torch.einsum("btw,btdw->btd", s[..., :3], v) + s[..., 3:] * self.v(x)[:, :1]
        first = F.softmax(self.qg(x[:, :1]) @ self.k(x).transpose(-1, -2) / 8**0.5, -1) @ self.v(x)
        return torch.cat([first, local[:, 1:]], 1)


class Cosine(nn.Module):
    """Attention of Swin v2: cosines by a learned scale, biases by a small network of logarithmic distances."""

    def __init__(self):
        super().__init__()
        self.qkv, self.q_bias, self.v_bias = nn.Linear(8, 24, bias=False), nn.Parameter(torch.zeros(8)), nn.Parameter(torch.zeros(8))
        self.logit_scale, self.cpb_mlp = nn.Parameter(torch.log(10 * torch.ones(2, 1, 1))), nn.Sequential(nn.Linear(1, 8), nn.ReLU(inplace=True), nn.Linear(8, 2, bias=False))
        at = torch.arange(-5, 6.0) / 5 * 8
        self.register_buffer("coords", torch.sign(at)[:, None] * torch.log2(at[:, None].abs() + 1.0) / 3, persistent=False)
        self.register_buffer("index", torch.arange(6)[:, None] - torch.arange(6)[None] + 5, persistent=False)

    def forward(self, x):
        bias = torch.cat((self.q_bias, torch.zeros_like(self.v_bias, requires_grad=False), self.v_bias))
        q, k, v = F.linear(x, self.qkv.weight, bias).reshape(2, 6, 3, 2, 4).permute(2, 0, 3, 1, 4)
        s = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * torch.clamp(self.logit_scale, max=math.log(1.0 / 0.01)).exp()
        table = self.cpb_mlp(self.coords)
        return joined((s + 16 * torch.sigmoid(table[self.index.view(-1)].view(6, 6, 2).permute(2, 0, 1))).softmax(-1) @ v)


programs("script", [
    ("script-scaled-kernel", lambda: dict(a=ScaledKernel(4, 6, 3, padding=1), b=ScaledKernel(6, 4, 1), alpha=nn.Parameter(torch.zeros(()))), IMAGE, lambda m, x: x + m.b(F.gelu(m.a(x)) * 1.7) * m.alpha * 0.2),
    ("script-frozen-norms", lambda: dict(CONV(), n=Frozen(4), b=nn.Conv2d(4, 4, 1, bias=False), n2=Frozen(4)), IMAGE, lambda m, x: m.n2(m.b(F.relu(m.n(m.a(x)))))),
    ("script-switchable", lambda: dict(CONV(), n=Switchable()), IMAGE, lambda m, x: m.n(m.a(x))),
    ("script-evolved-norm", lambda: dict(CONV(), n=Evolved()), IMAGE, lambda m, x: m.n(m.a(x))),
    ("script-whitened", lambda: dict(CONV(), n=Whitened()), IMAGE, lambda m, x: m.n(m.a(x))),
    ("script-gated-norms", lambda: dict(CONV(), n=Gated()), IMAGE, lambda m, x: m.n(m.a(x))),
    ("script-initialized-norm", lambda: dict(CONV(), n=Initialized()), IMAGE, lambda m, x: (lambda h, d: h.pow(2).mean() - 0.01 * d.mean())(*m.n(m.a(x)))),
    ("script-spade", lambda: dict(CONV(), n=Spade()), dict(x=IMAGE, s=(2, 3, 3, 4)), lambda m, x, s: m.n(m.a(x), s)),
    ("script-norm-by-class", lambda: dict(CONV(), n=ByClass()), dict(x=IMAGE, y=lambda: torch.tensor([2, 0])), lambda m, x, y: F.relu(m.n(m.a(x), y))),
    ("script-norms-of-domains", lambda: dict(n=Domains()), dict(x=IMAGE, z=IMAGE), whole),
    ("script-fixup", lambda: dict(n=Fixup(), o=Fixup()), IMAGE, lambda m, x: m.o(m.n(x))),
    ("script-closed-residuals", lambda: dict(n=Normed()), TOKENS, whole),
    ("script-cumulative-batch", lambda: dict(a=nn.Conv1d(4, 4, 1), n=nn.BatchNorm1d(4, momentum=None), o=nn.BatchNorm1d(4, track_running_stats=False)), dict(x=(2, 4, 9)), lambda m, x: m.o(F.relu(m.n(m.a(x))))),
    ("script-latent-attention", lambda: dict(n=Latent()), TOKENS, whole),
    ("script-shared-keys", lambda: dict(n=Shared()), TOKENS, whole),
    ("script-partial-rotary", lambda: dict(n=Partial()), TOKENS, whole),
    ("script-random-features", lambda: dict(n=Favor()), TOKENS, whole),
    ("script-landmarks", lambda: dict(n=Landmarks()), TOKENS, whole),
    ("script-retention", lambda: dict(n=Retention()), TOKENS, whole),
    ("script-delta-rule", lambda: dict(n=Delta()), TOKENS, whole),
    ("script-disentangled", lambda: dict(n=Disentangled()), TOKENS, whole),
    ("script-segment-memory", lambda: dict(n=Cached()), TOKENS, whole),
    ("script-hashed-attention", lambda: dict(n=Hashed()), TOKENS, whole),
    ("script-slid-attention", lambda: dict(n=Slid()), TOKENS, whole),
    ("script-cosine-biases", lambda: dict(n=Cosine()), TOKENS, whole),
])  # fmt: skip
