"""Training scripts as they are published: recurrences, state spaces, experts, graphs, generators, agents, recommenders."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.program_scripts import whole
from devkit.zoo_models.programs import CLASSES, IMAGE, LINE, LINEAR, ROWS, booleans, labels, programs, weight

TOKENS = dict(x=(2, 6, 8))
EDGES = dict(x=(5, 4), e=lambda: torch.tensor([[0, 1, 2, 3, 4, 0, 2], [1, 2, 0, 4, 3, 2, 1]]))
AGENT = dict(x=ROWS, z=ROWS, y=lambda: labels(3, 6), r=(6,), done=lambda: labels(2, 6).float())


class Structured(nn.Module):
    """A diagonal state space of complex numbers in pairs, as a long convolution by Fourier transforms."""

    def __init__(self):
        super().__init__()
        self.log_dt, self.c = nn.Parameter(torch.rand(4) - 3), nn.Parameter(torch.randn(4, 3, 2))
        self.log_a_real, self.a_imag, self.d = nn.Parameter(torch.log(0.5 * torch.ones(4, 3))), nn.Parameter(math.pi * torch.arange(3.0).repeat(4, 1)), nn.Parameter(torch.randn(4))

    def forward(self, u):
        dt, n = self.log_dt.exp(), u.size(-1)
        real, imag = -self.log_a_real.exp() * dt[:, None], self.a_imag * dt[:, None]
        at = torch.arange(n)
        size, angle = torch.exp(real[..., None] * at), imag[..., None] * at
        k = 2 * (self.c[..., 0, None] * size * angle.cos() - self.c[..., 1, None] * size * angle.sin()).sum(1)
        y = torch.fft.irfft(torch.fft.rfft(k, n=2 * n) * torch.fft.rfft(u, n=2 * n), n=2 * n)[..., :n]
        return F.gelu(y + u * self.d.unsqueeze(-1))


class Selective(nn.Module):
    """A selective scan with its convolution, as minimal Mambas write it."""

    def __init__(self):
        super().__init__()
        self.in_proj, self.conv1d, self.x_proj, self.dt_proj, self.out_proj = nn.Linear(8, 12, bias=False), nn.Conv1d(6, 6, 3, groups=6, padding=2), nn.Linear(6, 8, bias=False), nn.Linear(2, 6), nn.Linear(6, 8, bias=False)
        self.A_log, self.D = nn.Parameter(torch.log(torch.arange(1.0, 4).repeat(6, 1))), nn.Parameter(torch.ones(6))

    def forward(self, x):
        x, gate = self.in_proj(x).split([6, 6], -1)
        x = F.silu(self.conv1d(x.transpose(1, 2))[:, :, :6].transpose(1, 2))
        a = -torch.exp(self.A_log.float())
        dt, b, c = self.x_proj(x).split([2, 3, 3], -1)
        dt = F.softplus(self.dt_proj(dt))
        da, du = torch.exp(torch.einsum("bld,dn->bldn", dt, a)), torch.einsum("bld,bln,bld->bldn", dt, b, x)
        h, out = torch.zeros(2, 6, 3), []
        for i in range(6):
            h = da[:, i] * h + du[:, i]
            out.append(torch.einsum("bdn,bn->bd", h, c[:, i]))
        return self.out_proj((torch.stack(out, 1) + x * self.D) * F.silu(gate))


class Chunked(nn.Module):
    """A state space of chunks, by sums over segments."""

    def __init__(self):
        super().__init__()
        self.p, self.a_log = nn.Linear(8, 4 + 3 + 3 + 2), nn.Parameter(torch.log(torch.tensor([1.0, 3.0])))
        self.dt_bias = nn.Parameter(torch.tensor([0.1, -0.4]))

    def segments(self, a):
        s = a.cumsum(-1)
        return (s[..., :, None] - s[..., None, :]).masked_fill(~torch.ones(3, 3, dtype=torch.bool).tril(), -torch.inf)

    def forward(self, u):
        x, b, c, dt = self.p(u).split([4, 3, 3, 2], -1)
        dt = F.softplus(dt + self.dt_bias)
        x = x.view(2, 2, 3, 2, 2) * dt.view(2, 2, 3, 2, 1)
        a = (-self.a_log.exp() * dt).view(2, 2, 3, 2).permute(0, 3, 1, 2)
        b, c = b.view(2, 2, 3, 3), c.view(2, 2, 3, 3)
        s = a.cumsum(-1)
        inside = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", c, b, torch.exp(self.segments(a)), x)
        states = torch.einsum("bcln,bhcl,bclhp->bchpn", b, torch.exp(s[..., -1:] - s), x)
        before = torch.cat([torch.zeros_like(states[:, :1]), states[:, :1]], 1)
        return (inside + torch.einsum("bcln,bchpn,bhcl->bclhp", c, before, s.exp())).reshape(2, 6, 4)


class Recurrent(nn.Module):
    """A linear recurrent unit: poles by exponentials of exponentials, a norm of its inputs."""

    def __init__(self):
        super().__init__()
        self.nu_log, self.theta_log = nn.Parameter(torch.log(-0.5 * torch.log(torch.rand(4) * 0.5 + 0.4))), nn.Parameter(torch.log(torch.rand(4) * 3 + 0.1))
        self.gamma_log = nn.Parameter(torch.log(torch.sqrt(1 - torch.exp(-torch.exp(self.nu_log.detach())) ** 2)))
        self.b, self.c = weight(8, 8), weight(4, 8)

    def forward(self, x):
        size, angle = torch.exp(-torch.exp(self.nu_log)), torch.exp(self.theta_log)
        re, im = size * angle.cos(), size * angle.sin()
        u = (x @ self.b).view(2, 6, 4, 2) * torch.exp(self.gamma_log)[:, None]
        hr = hi = torch.zeros(2, 4)
        out = []
        for i in range(6):
            hr, hi = re * hr - im * hi + u[:, i, :, 0], re * hi + im * hr + u[:, i, :, 1]
            out.append(torch.cat([hr, hi], -1) @ self.c.T)
        return torch.stack(out, 1)


class Implicit(nn.Module):
    """A long filter that a small network of sines makes, under a decay."""

    def __init__(self):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(3, 6), nn.Linear(6, 4, bias=False))
        self.freq, self.bias = nn.Parameter(10 * torch.ones(1, 6)), nn.Parameter(torch.randn(4))
        t = torch.linspace(0, 1, 9)[:, None]
        self.register_buffer("z", torch.cat([t, (2 * math.pi * t).cos(), (2 * math.pi * t).sin()], -1))
        self.register_buffer("deltas", torch.linspace(math.log(1e-2) / 1.5, math.log(1e-2) / 0.3, 4)[None])

    def forward(self, u):
        h = self.filter[1](torch.sin(self.freq * self.filter[0](self.z)))
        k = (h * (torch.exp(-self.z[:, :1] * self.deltas.abs()) + 0.05)).t()
        y = torch.fft.irfft(torch.fft.rfft(u, n=18) * (torch.fft.rfft(k, n=18) / 18), n=18, norm="forward")[..., :9]
        return y + u * self.bias.unsqueeze(-1)


class Switch(nn.Module):
    """Experts by the best gate, a capacity, and the loss that balances them."""

    def __init__(self):
        super().__init__()
        self.gate, self.w1, self.w2 = nn.Linear(8, 3, bias=False), weight(3, 8, 6), weight(3, 6, 8)

    def forward(self, x):
        h = x.view(-1, 8)
        p = F.softmax(self.gate(h), -1, dtype=torch.float32)
        top, at = p.max(-1)
        hot = F.one_hot(at, 3)
        place = (torch.cumsum(hot, 0) - 1) * hot
        hot = hot * (place < 5)
        dispatch = hot[..., None] * F.one_hot(place.sum(-1).clamp(max=4), 5)[:, None]
        e = torch.einsum("tec,td->ecd", dispatch.to(h.dtype), h)
        e = F.relu(e @ self.w1) @ self.w2
        out = torch.einsum("tec,ecd->td", dispatch * top[:, None, None], e)
        balance = 3 * (p.mean(0) * F.one_hot(at, 3).float().mean(0)).sum()
        return (h + out - 0.1).pow(2).mean() + 0.01 * balance + 1e-3 * torch.logsumexp(self.gate(h), -1).pow(2).mean()


class Biased(nn.Module):
    """Two of four experts by sigmoid and a bias in a buffer, which follows their loads; one expert is shared."""

    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down, self.shared = weight(4, 8), weight(4, 8, 6), weight(4, 6, 8), nn.Linear(8, 8)
        self.register_buffer("e_score_correction_bias", torch.tensor([0.1, 0.0, -0.1, 0.0]))

    def forward(self, x):
        h = x.reshape(-1, 8)
        s = F.linear(h, self.gate).sigmoid()
        at = (s + self.e_score_correction_bias).topk(2, dim=-1, sorted=False)[1]
        w = s.gather(1, at)
        w = w / (w.sum(-1, keepdim=True) + 1e-20) * 2.5
        full = torch.zeros_like(s).scatter(1, at, w)
        out = torch.einsum("te,ted->td", full, torch.einsum("tef,efd->ted", F.silu(torch.einsum("td,edf->tef", h, self.up)), self.down))
        with torch.no_grad():
            load = F.one_hot(at, 4).sum((0, 1)).float()
            self.e_score_correction_bias.add_(0.001 * torch.sign(load.mean() - load))
        return (out + self.shared(h)).view_as(x)


class Noisy(nn.Module):
    """Gates with noise that is learned, the two best, importance and load by their coefficients of variation."""

    def __init__(self):
        super().__init__()
        self.w_gate, self.w_noise = nn.Parameter(torch.zeros(5, 4)), nn.Parameter(torch.zeros(5, 4))
        self.experts = nn.ModuleList(nn.Linear(5, 4) for _ in range(4))

    def forward(self, x, e):
        clean = x @ self.w_gate
        std = F.softplus(x @ self.w_noise) + 1e-2
        noisy = clean + e * std
        top, at = noisy.topk(3, dim=1)
        gates = torch.zeros_like(noisy).scatter(1, at[:, :2], F.softmax(top[:, :2], 1))
        inside = noisy > top[:, 2:3]
        phi = lambda v: 0.5 * (1 + torch.erf(v / math.sqrt(2)))  # noqa: E731
        load = torch.where(inside, phi((clean - top[:, 2:3]) / std), phi((clean - top[:, 1:2]) / std)).sum(0)
        cv = lambda v: v.float().var() / (v.float().mean() ** 2 + 1e-10)  # noqa: E731
        y = sum(gates[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts))
        return y.pow(2).mean() + 0.01 * (cv(gates.sum(0)) + cv(load))


class Splines(nn.Module):
    """Efficient KAN: base and splines, the grid in a buffer, scales of their own."""

    def __init__(self):
        super().__init__()
        self.base_weight, self.spline_weight, self.spline_scaler = weight(4, 5), nn.Parameter(torch.randn(4, 5, 7) * 0.1), weight(4, 5)
        self.register_buffer("grid", (torch.arange(-3, 8) * 0.5 - 1).expand(5, -1).contiguous())

    def forward(self, x):
        g, v = self.grid, x.tanh().unsqueeze(-1)
        b = ((v >= g[:, :-1]) & (v < g[:, 1:])).to(x.dtype)
        for k in range(1, 4):
            b = (v - g[:, : -(k + 1)]) / (g[:, k:-1] - g[:, : -(k + 1)]) * b[:, :, :-1] + (g[:, k + 1 :] - v) / (g[:, k + 1 :] - g[:, 1:-k]) * b[:, :, 1:]
        return F.linear(F.silu(x), self.base_weight) + F.linear(b.view(6, -1), (self.spline_weight * self.spline_scaler.unsqueeze(-1)).view(4, -1))


class Hashes(nn.Module):
    """Two levels of hashed grids, read at corners and mixed by distance."""

    def __init__(self):
        super().__init__()
        self.tables, self.out = nn.ModuleList(nn.Embedding(16, 2) for _ in range(2)), nn.Linear(4, 3)
        for t in self.tables:
            nn.init.uniform_(t.weight, -0.1, 0.1)

    def forward(self, x):
        feats = []
        for level, table in enumerate(self.tables):
            at = x.sigmoid() * (3 * 2**level)
            low = at.floor()
            f, low = at - low, low.long()
            corners = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
            c = low[:, None] + corners
            i = torch.bitwise_xor(c[..., 0], c[..., 1] * 7) % 16
            w = torch.where(corners.bool(), f[:, None], 1 - f[:, None]).prod(-1)
            feats.append((table(i) * w[..., None]).sum(1))
        return self.out(torch.cat(feats, -1))


class Isomorphic(nn.Module):
    """Graph layers with 1 + eps, a norm over nodes, and a virtual node of zeros."""

    def __init__(self):
        super().__init__()
        self.eps, self.mlp, self.virtual = nn.Parameter(torch.zeros(1)), nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 4)), nn.Embedding(1, 4)
        nn.init.constant_(self.virtual.weight, 0)

    def forward(self, x, e):
        x = x + self.virtual(torch.zeros(1, dtype=torch.long))
        h = torch.zeros_like(x).index_add(0, e[1], x[e[0]].relu())
        return self.mlp((1 + self.eps) * x + h)


class Attending(nn.Module):
    """Attention over edges with a softmax by scatter, the second form."""

    def __init__(self):
        super().__init__()
        self.l, self.r, self.att, self.bias = nn.Linear(4, 6), nn.Linear(4, 6), nn.Parameter(torch.randn(1, 2, 3)), nn.Parameter(torch.zeros(6))

    def forward(self, x, e):
        l, r = self.l(x).view(-1, 2, 3), self.r(x).view(-1, 2, 3)
        s = (F.leaky_relu(l[e[0]] + r[e[1]], 0.2) * self.att).sum(-1)
        at = e[1][:, None].expand_as(s)
        top = torch.full((5, 2), -torch.inf).scatter_reduce(0, at, s.detach(), "amax")
        s = (s - top[e[1]]).exp()
        total = torch.zeros(5, 2).scatter_add(0, at, s) + 1e-16
        a = s / total[e[1]]
        return torch.zeros(5, 2, 3).index_add(0, e[1], l[e[0]] * a[..., None]).flatten(1) + self.bias


class Aggregated(nn.Module):
    """Principal neighbourhood aggregation: mean, least, most and deviation, scaled by degrees."""

    def __init__(self):
        super().__init__()
        self.pre, self.post = nn.Linear(8, 4), nn.Linear(4 * 4 * 2 + 4, 4)

    def forward(self, x, e):
        h = self.pre(torch.cat([x[e[1]], x[e[0]]], -1))
        at = e[1][:, None].expand_as(h)
        deg = torch.bincount(e[1], minlength=5).clamp(min=1).float()[:, None]
        mean = torch.zeros(5, 4).scatter_add(0, at, h) / deg
        square = torch.zeros(5, 4).scatter_add(0, at, h * h) / deg
        std = (square - mean * mean).clamp(min=1e-5).sqrt()
        low, high = (torch.zeros(5, 4).scatter_reduce(0, at, h, how, include_self=False) for how in ("amin", "amax"))
        out = torch.cat([mean, low, high, std], -1)
        return self.post(torch.cat([x, out, out * (deg + 1).log() / 1.1], -1))


class Equivariant(nn.Module):
    """Coordinates that move with messages of squared distances."""

    def __init__(self):
        super().__init__()
        self.edge, self.coord, self.node = nn.Sequential(nn.Linear(9, 6), nn.SiLU()), nn.Sequential(nn.Linear(6, 4), nn.SiLU(), nn.Linear(4, 1, bias=False)), nn.Linear(10, 4)

    def forward(self, x, e, p):
        d = p[e[0]] - p[e[1]]
        radial = d.pow(2).sum(1, keepdim=True)
        m = self.edge(torch.cat([x[e[0]], x[e[1]], radial], 1))
        moved = d / (radial.sqrt().detach() + 1e-8) * self.coord(m)
        count = torch.zeros(5, 3).index_add(0, e[0], torch.ones_like(moved)).clamp(min=1)
        p = p + torch.zeros(5, 3).index_add(0, e[0], moved) / count
        return torch.cat([x + self.node(torch.cat([x, torch.zeros(5, 6).index_add(0, e[0], m)], 1)), p], 1)


class Smeared(nn.Module):
    """Continuous filters of Gaussians over distances, under a cosine cutoff."""

    def __init__(self):
        super().__init__()
        self.emb, self.f, self.out = nn.Embedding(6, 4, padding_idx=0), nn.Sequential(nn.Linear(5, 4), nn.Softplus(), nn.Linear(4, 4)), nn.Linear(4, 1)
        self.register_buffer("offset", torch.linspace(0, 4, 5))

    def forward(self, i, p):
        d = (p[:, None] - p[None] + torch.eye(5)[..., None]).norm(dim=-1)
        g = torch.exp(-0.5 * (d[..., None] - self.offset) ** 2)
        c = 0.5 * (torch.cos(d * math.pi / 3.0) + 1.0) * (d < 3.0) * (1 - torch.eye(5))
        h = self.emb(i)
        h = h + (self.f(g) * c[..., None] * h[None]).sum(1)
        return (self.out(F.softplus(h) - math.log(2.0)) * (i > 0)[:, None]).sum()


class Pooled(nn.Module):
    """Assignments to clusters with the losses of links and of entropy."""

    def __init__(self):
        super().__init__()
        self.embed, self.assign = nn.Linear(4, 6), nn.Linear(4, 3)

    def forward(self, x, a):
        deg = a.sum(-1, keepdim=True).clamp(min=1)
        z, s = F.relu(self.embed(a @ x / deg)), F.softmax(self.assign(a @ x / deg), -1)
        pooled = (s.transpose(-2, -1) @ z).pow(2).mean()
        link = torch.norm(a - s @ s.transpose(-2, -1), p=2) / a.numel()
        return pooled + link + (-s * torch.log(s + 1e-15)).sum(dim=-1).mean()


class Style(nn.Module):
    """A layer of StyleGAN 2: equal rates, modulation and demodulation by groups, noise of strength zero, a running mean style."""

    def __init__(self):
        super().__init__()
        self.mapping, self.affine, self.affine_bias = weight(5, 5), weight(4, 5), nn.Parameter(torch.ones(4))
        self.weight, self.noise_strength, self.bias = nn.Parameter(torch.randn(1, 6, 4, 3, 3)), nn.Parameter(torch.zeros([])), nn.Parameter(torch.zeros(6))
        self.register_buffer("w_avg", torch.zeros(5))
        self.register_buffer("noise_const", torch.randn(6, 7))
        k = torch.tensor([1.0, 3, 3, 1])
        self.register_buffer("kernel", (k[:, None] * k[None]) / 64)

    def forward(self, x, z):
        w = F.leaky_relu((z * (z.square().mean(1, keepdim=True) + 1e-8).rsqrt()) @ (self.mapping.t() * (1 / 5**0.5)), 0.2) * 2**0.5
        self.w_avg.copy_(w.detach().mean(dim=0).lerp(self.w_avg, 0.995))
        s = torch.addmm(self.affine_bias[None], w, self.affine.t() * 5**-0.5)
        k = self.weight * (1 / 36**0.5) * s.view(2, 1, 4, 1, 1)
        k = k * torch.rsqrt(k.pow(2).sum([2, 3, 4]) + 1e-8).view(2, 6, 1, 1, 1)
        h = F.conv2d(x.view(1, 8, 6, 7), k.view(12, 4, 3, 3), padding=1, groups=2).view(2, 6, 6, 7)
        h = h + self.noise_const * self.noise_strength
        h = F.leaky_relu(h + self.bias.view(1, -1, 1, 1), 0.2) * 2**0.5
        return F.conv2d(F.pad(h, [2, 1, 2, 1]), self.kernel.flip(0, 1)[None, None].repeat(6, 1, 1, 1), groups=6)


class Partial(nn.Module):
    """Partial convolution: a mask that is renewed without a gradient."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x, k):
        with torch.no_grad():
            count = F.conv2d(k, torch.ones(1, 4, 3, 3), padding=1)
            new = torch.clamp(count, 0, 1)
            ratio = 36 / (count + 1e-8) * new
        raw = self.a(x * k)
        b = self.a.bias.view(1, -1, 1, 1)
        return ((raw - b) * ratio + b) * new


class Planar(nn.Module):
    """Planar flows with the bound that keeps them invertible."""

    def __init__(self):
        super().__init__()
        self.u, self.w, self.b = (nn.ParameterList(nn.Parameter(torch.randn(*s) * 0.5) for _ in range(3)) for s in ((4,), (4,), (1,)))

    def forward(self, z):
        total = 0.0
        for u, w, b in zip(self.u, self.w, self.b):
            uw = torch.dot(w, u)
            u = u + (-1 + F.softplus(uw) - uw) * w / (w @ w)
            h = torch.tanh(z @ w + b)
            total = total + torch.log((1 + ((1 - h**2)[:, None] * w) @ u).abs() + 1e-6)
            z = z + u * h.unsqueeze(-1)
        return (0.5 * z.pow(2).sum(1) - total).mean()


class Flowing(nn.Module):
    """A batch norm between flows, which takes the logarithm of its own scale."""

    def __init__(self):
        super().__init__()
        self.log_gamma, self.beta = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(4))
        self.register_buffer("running_mean", torch.zeros(4))
        self.register_buffer("running_var", torch.ones(4))

    def forward(self, x):
        mean, var = x.mean(0), (x - x.mean(0)).pow(2).mean(0) + 1e-5
        self.running_mean.mul_(0.9)
        self.running_var.mul_(0.9)
        self.running_mean.add_(mean.data * 0.1)
        self.running_var.add_(var.data * 0.1)
        y = torch.exp(self.log_gamma) * ((x - mean) / var.sqrt()) + self.beta
        return (0.5 * y.pow(2).sum(1) - (self.log_gamma - 0.5 * torch.log(var)).sum(-1)).mean()


class Draws(nn.Linear):
    """Noisy layers with their draws in buffers."""

    def __init__(self, i, o):
        super().__init__(i, o)
        self.sigma_weight, self.sigma_bias = nn.Parameter(torch.full((o, i), 0.017)), nn.Parameter(torch.full((o,), 0.017))
        self.register_buffer("epsilon_input", torch.randn(1, i))
        self.register_buffer("epsilon_output", torch.randn(o, 1))

    def forward(self, x):
        f = lambda e: torch.sign(e) * torch.sqrt(torch.abs(e))  # noqa: E731
        i, o = f(self.epsilon_input), f(self.epsilon_output)
        return F.linear(x, self.weight + self.sigma_weight * torch.mul(i, o), self.bias + self.sigma_bias * o.t())


def atoms(m, x, z, y, r, done):
    """C51's projection onto the support, without a gradient."""
    logs = F.log_softmax(m.a(x).view(6, 3, 5), -1)[torch.arange(6), y]
    with torch.no_grad():
        p = F.softmax(m.a(z).view(6, 3, 5), -1)
        p = p[range(6), (p * m.support).sum(-1).argmax(1)]
        t = (r.unsqueeze(1) + 0.99 * (1 - done.unsqueeze(1)) * m.support).clamp(-2, 2)
        b = t + 2
        low, up = b.floor().long(), b.ceil().long()
        low[(up > 0) * (low == up)] -= 1
        up[(low < 4) * (low == up)] += 1
        q = torch.zeros(6, 5)
        offset = torch.arange(0, 30, 5).unsqueeze(1)
        q.view(-1).index_add_(0, (low + offset).view(-1), (p * (up.float() - b)).view(-1))
        q.view(-1).index_add_(0, (up + offset).view(-1), (p * (b - low.float())).view(-1))
    return -(q * logs).sum(1).mean()


def soft_actor(m, x, e):
    u, s = m.a(x).chunk(2, -1)
    s = -5 + 0.5 * (2 + 5) * (torch.tanh(s) + 1)
    a = torch.tanh(u + s.exp() * e)
    logp = (-0.5 * e**2 - s - 0.5 * math.log(2 * math.pi) - torch.log(1 - a.pow(2) + 1e-6)).sum(1)
    q = torch.min(*(c(torch.cat([x, a], 1)) for c in (m.q1, m.q2))).squeeze(-1)
    return (m.log_alpha.exp().detach() * logp - q).mean() - (m.log_alpha * (logp + 2).detach()).mean()


def targets(v, r, done):
    """Generalized advantages by a loop from the end, [time, rows]."""
    out, last = [], torch.zeros(v.shape[1])
    for t in reversed(range(3)):
        delta = r[t] + 0.99 * v[t + 1] * (1 - done[t]) - v[t]
        last = delta + 0.99 * 0.95 * (1 - done[t]) * last
        out.insert(0, last)
    return torch.stack(out)


def advantages(m, x, r, done, y):
    v = m.v(x).squeeze(-1)
    a = targets(v, r, done).detach()
    norm = (a - a.mean()) / (a.std() + 1e-8)
    d = torch.distributions.Categorical(logits=m.p(x[:-1]), validate_args=False)
    return -(d.log_prob(y) * norm).mean() + 0.5 * F.mse_loss(v[:-1], a + v[:-1].detach()) - 0.01 * d.entropy().mean()


def distilled(m, x):
    """Random network distillation: rewards under a running variance."""
    t = m.t(x).detach()
    error = (m.p(x) - t).pow(2).sum(1) / 2
    with torch.no_grad():
        m.count.add_(6)
        delta = error.mean() - m.mean
        m.mean.add_(delta * 6 / m.count)
        m.var.mul_(1 - 6 / m.count).add_(error.var(unbiased=False) * 6 / m.count)
    return (error / torch.sqrt(m.var + 1e-8)).mean()


class Interest(nn.Module):
    """Attention over a history with an activation by batch statistics."""

    def __init__(self):
        super().__init__()
        self.e, self.h, self.bn, self.alpha, self.o = nn.Embedding(9, 4, padding_idx=0), nn.Linear(16, 6), nn.BatchNorm1d(6, eps=1e-8, affine=False), nn.Parameter(torch.zeros(6)), nn.Linear(6, 1)

    def forward(self, i, past):
        q, k = self.e(i)[:, None].expand(-1, 4, -1), self.e(past)
        h = self.h(torch.cat([q, k, q - k, q * k], -1)).view(-1, 6)
        p = torch.sigmoid(self.bn(h))
        s = self.o(p * h + (1 - p) * self.alpha * h).view(-1, 4)
        s = torch.where(past > 0, s, torch.full_like(s, -(2.0**32) + 1)).softmax(-1)
        return (torch.bmm(s[:, None], k).squeeze(1) * self.e(i)).sum(-1)


class Interactions(nn.Module):
    """Bags of features and their pairwise products below the diagonal."""

    def __init__(self):
        super().__init__()
        self.emb, self.bot, self.top = nn.ModuleList(nn.EmbeddingBag(7, 4, mode="sum") for _ in range(2)), nn.Linear(5, 4), nn.Linear(7, 1)

    def forward(self, x, i):
        d = F.relu(self.bot(x))
        t = torch.cat([d] + [e(i[:, k]) for k, e in enumerate(self.emb)], 1).view(6, -1, 4)
        z = torch.bmm(t, t.transpose(1, 2))
        li, lj = torch.tensor([a for a in range(3) for b in range(a)]), torch.tensor([b for a in range(3) for b in range(a)])
        return self.top(torch.cat([d, z[:, li, lj]], 1)).sigmoid().clamp(1e-6, 1 - 1e-6)


class Reversible(nn.Module):
    """Normalization of a series that is undone at its end, with a scale that is learned."""

    def __init__(self):
        super().__init__()
        self.affine_weight, self.affine_bias, self.a = nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4)), nn.Linear(9, 3)

    def forward(self, x):
        mean, std = x.mean(1, keepdim=True).detach(), torch.sqrt(torch.var(x, dim=1, keepdim=True, unbiased=False) + 1e-5).detach()
        h = (x - mean) / std * self.affine_weight + self.affine_bias
        h = self.a(h.transpose(1, 2)).transpose(1, 2)
        return (h - self.affine_bias) / (self.affine_weight + 1e-5 * 1e-5) * std + mean


class Correlated(nn.Module):
    """Auto-correlation: the best delays of the mean, and rolled values."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = (p(x).permute(0, 2, 1) for p in (self.q, self.k, self.v))
        c = torch.fft.irfft(torch.fft.rfft(q, dim=-1) * torch.conj(torch.fft.rfft(k, dim=-1)), n=6, dim=-1)
        w, at = c.mean(1).topk(2, -1)
        w = w.softmax(-1)
        twice = v.repeat(1, 1, 2)
        return sum(torch.gather(twice, -1, (torch.arange(6) + at[:, i, None])[:, None].expand(-1, 8, -1)) * w[:, i, None, None] for i in range(2))


class Solved(nn.Module):
    """A fixed point by iterations without gradients, and one step with them."""

    def __init__(self):
        super().__init__()
        self.u, self.w = nn.Linear(5, 4), nn.Linear(4, 4, bias=False)

    def forward(self, x):
        z = torch.zeros(6, 4)
        with torch.no_grad():
            for _ in range(6):
                z = torch.tanh(self.w(z) + self.u(x))
        return torch.tanh(self.w(z) + self.u(x))


programs("script", [
    ("script-structured-state", lambda: dict(n=Structured()), LINE, whole),
    ("script-selective-scan", lambda: dict(n=Selective()), TOKENS, whole),
    ("script-chunked-state", lambda: dict(n=Chunked()), TOKENS, whole),
    ("script-linear-unit", lambda: dict(n=Recurrent()), TOKENS, whole),
    ("script-implicit-filter", lambda: dict(n=Implicit()), LINE, whole),
    ("script-switch", lambda: dict(n=Switch()), TOKENS, whole),
    ("script-biased-experts", lambda: dict(n=Biased()), TOKENS, whole),
    ("script-noisy-gates", lambda: dict(n=Noisy()), dict(x=ROWS, e=(6, 4)), whole),
    ("script-splines", lambda: dict(n=Splines()), ROWS, whole),
    ("script-hashes", lambda: dict(n=Hashes()), dict(x=(6, 2)), whole),
    ("script-isomorphism", lambda: dict(n=Isomorphic(), o=Isomorphic()), EDGES, lambda m, x, e: m.o(m.n(x, e), e)),
    ("script-edge-softmax", lambda: dict(n=Attending()), EDGES, whole),
    ("script-aggregators", lambda: dict(n=Aggregated()), EDGES, whole),
    ("script-equivariant", lambda: dict(n=Equivariant()), dict(EDGES, p=(5, 3)), whole),
    ("script-smeared", lambda: dict(n=Smeared()), dict(i=lambda: torch.tensor([3, 1, 5, 0, 2]), p=(5, 3)), whole),
    ("script-cluster-pool", lambda: dict(n=Pooled()), dict(x=(2, 5, 4), a=lambda: (lambda b: ((b + b.mT) > 0).float())(booleans(2, 5, 5).float())), whole),
    ("script-style-layer", lambda: dict(n=Style()), dict(x=IMAGE, z=(2, 5)), whole),
    ("script-partial-kernel", lambda: dict(n=Partial()), dict(x=IMAGE, k=lambda: booleans(2, 1, 6, 7).float().expand(2, 4, 6, 7).contiguous()), whole),
    ("script-planar", lambda: dict(n=Planar()), dict(z=(6, 4)), whole),
    ("script-flow-norm", lambda: dict(a=nn.Linear(5, 4), n=Flowing()), ROWS, lambda m, x: m.n(m.a(x))),
    ("script-noisy-layers", lambda: dict(a=Draws(5, 6), b=Draws(6, 4)), ROWS, lambda m, x: m.b(F.relu(m.a(x)))),
    ("script-atoms", lambda: dict(a=nn.Linear(5, 15), support=torch.linspace(-2, 2, 5)), AGENT, atoms),
    ("script-soft-actor", lambda: dict(a=nn.Linear(5, 4), q1=nn.Linear(7, 1), q2=nn.Linear(7, 1), log_alpha=nn.Parameter(torch.zeros(1))), dict(x=ROWS, e=(6, 2)), soft_actor),
    ("script-advantages", lambda: dict(v=nn.Linear(5, 1), p=nn.Linear(5, 3)), dict(x=(4, 2, 5), r=(3, 2), done=lambda: labels(2, 3, 2).float(), y=lambda: labels(3, 3, 2)), advantages),
    ("script-distilled-noise", lambda: dict(p=nn.Linear(5, 4), t=nn.Linear(5, 4), mean=torch.zeros(()), var=torch.ones(()), count=torch.tensor(1e-4)), ROWS, distilled),
    ("script-interest", lambda: dict(n=Interest()), dict(i=lambda: labels(8, 3) + 1, past=lambda: torch.tensor([[3, 4, 0, 0], [8, 0, 0, 0], [1, 2, 5, 8]])), whole),
    ("script-interactions", lambda: dict(n=Interactions()), dict(x=ROWS, i=lambda: labels(7, 6, 2, 3)), whole),
    ("script-reversible-norm", lambda: dict(n=Reversible()), dict(x=(2, 9, 4)), whole),
    ("script-auto-correlation", lambda: dict(n=Correlated()), TOKENS, whole),
    ("script-fixed-point-step", lambda: dict(n=Solved()), ROWS, whole),
    ("script-squeezed-scale", lambda: dict(LINEAR(), s=nn.Parameter(torch.zeros(4)), t=nn.Parameter(torch.zeros(4))), CLASSES, lambda m, x, y: F.cross_entropy(m.a(x) * F.softplus(m.s) / math.log(2) + m.t.tanh(), y)),
])  # fmt: skip
