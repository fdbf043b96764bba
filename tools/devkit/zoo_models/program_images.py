"""Programs of norms, pools, images and activations."""

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.programs import CONV, CONV1, IMAGE, LINE, LINEAR, ROWS, programs, weight

def with_part(part, base=nn.Conv2d):
    return lambda: dict(a=base(4, 4, 3, padding=1), n=part())


def then(m, x):
    return m.n(m.a(x))


def weight_norm_of(part, **options):
    return torch.nn.utils.parametrizations.weight_norm(part, **options)


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).T


class Halved(nn.Module):
    def forward(self, w):
        return w * 0.5


def parametrized(part, *by):
    for p in by:
        torch.nn.utils.parametrize.register_parametrization(part, "weight", p)
    return part


programs("norm", [
    ("instance", with_part(lambda: nn.InstanceNorm2d(4)), IMAGE, then),
    ("instance-affine", with_part(lambda: nn.InstanceNorm2d(4, affine=True)), IMAGE, then),
    ("instance-tracked", with_part(lambda: nn.InstanceNorm2d(4, affine=True, track_running_stats=True)), IMAGE, then),
    ("instance-1d", with_part(lambda: nn.InstanceNorm1d(4, affine=True, eps=1e-2), nn.Conv1d), LINE, then),
    ("group-no-affine", with_part(lambda: nn.GroupNorm(2, 4, affine=False, eps=1e-3)), IMAGE, then),
    ("group-one", with_part(lambda: nn.GroupNorm(1, 4)), IMAGE, then),
    ("group-each", with_part(lambda: nn.GroupNorm(4, 4)), IMAGE, then),
    ("group-rows", lambda: dict(a=nn.Linear(5, 4), n=nn.GroupNorm(2, 4)), ROWS, then),
    ("layer-no-affine", lambda: dict(a=nn.Linear(5, 4), n=nn.LayerNorm(4, elementwise_affine=False)), ROWS, then),
    ("layer-no-bias", lambda: dict(a=nn.Linear(5, 4), n=nn.LayerNorm(4, bias=False)), ROWS, then),
    ("layer-image", with_part(lambda: nn.LayerNorm((4, 6, 7))), IMAGE, then),
    ("rms", lambda: dict(a=nn.Linear(5, 4), n=nn.RMSNorm(4, eps=1e-3)), ROWS, then),
    ("rms-image", with_part(lambda: nn.RMSNorm((6, 7))), IMAGE, then),
    ("local-response", with_part(lambda: nn.LocalResponseNorm(3, alpha=0.5, beta=0.6, k=2.0)), IMAGE, then),
    ("local-response-even", with_part(lambda: nn.LocalResponseNorm(2, alpha=0.5)), IMAGE, then),
    ("cross-response", with_part(lambda: nn.LocalResponseNorm(2, alpha=0.5), nn.Conv1d), LINE, then),
    ("batch-no-affine", with_part(lambda: nn.BatchNorm2d(4, affine=False)), IMAGE, then),
    ("batch-untracked", with_part(lambda: nn.BatchNorm2d(4, track_running_stats=False)), IMAGE, then),
    ("batch-cumulative", with_part(lambda: nn.BatchNorm2d(4, momentum=None)), IMAGE, then),
    ("batch-momentum-zero", with_part(lambda: nn.BatchNorm2d(4, momentum=0.0)), IMAGE, then),
    ("batch-momentum-one", with_part(lambda: nn.BatchNorm2d(4, momentum=1.0)), IMAGE, then),
    ("batch-rows", lambda: dict(a=nn.Linear(5, 4), n=nn.BatchNorm1d(4), m=nn.BatchNorm1d(4, affine=False)), ROWS, lambda m, x: m.m(m.n(m.a(x)).tanh())),
    ("batch-tokens", lambda: dict(a=nn.Conv1d(4, 4, 1), n=nn.BatchNorm1d(4)), LINE, then),
    ("batch-volume", lambda: dict(a=nn.Conv3d(2, 3, 2), n=nn.BatchNorm3d(3)), (2, 2, 3, 4, 3), then),
    ("batch-one-value", lambda: dict(a=nn.Linear(5, 4), n=nn.BatchNorm1d(4)), (1, 4, 5), lambda m, x: m.n(m.a(x).transpose(1, 2)).sum(-1)),
    ("weight-norm", lambda: dict(a=weight_norm_of(nn.Linear(5, 4)), b=weight_norm_of(nn.Conv1d(4, 4, 3), dim=2)), (3, 6, 5), lambda m, x: m.b(m.a(x).transpose(1, 2))),
    ("weight-norm-whole", lambda: dict(a=weight_norm_of(nn.Linear(5, 4), dim=None)), ROWS, lambda m, x: m.a(x)),
    ("weight-norm-old", lambda: dict(a=torch.nn.utils.weight_norm(nn.Conv2d(4, 4, 3))), IMAGE, lambda m, x: m.a(x)),
    ("spectral", lambda: dict(a=torch.nn.utils.parametrizations.spectral_norm(nn.Linear(5, 4), n_power_iterations=2)), ROWS, lambda m, x: m.a(x)),
    ("symmetric", lambda: dict(a=parametrized(nn.Linear(5, 5), Symmetric())), ROWS, lambda m, x: m.a(x)),
    ("halved-symmetric", lambda: dict(a=parametrized(nn.Linear(5, 5), Symmetric(), Halved())), ROWS, lambda m, x: m.a(x)),
    ("orthogonal", lambda: dict(a=torch.nn.utils.parametrizations.orthogonal(nn.Linear(5, 5), orthogonal_map="cayley")), ROWS, lambda m, x: m.a(x)),
    ("scale-shift", lambda: dict(a=nn.Linear(5, 4), g=nn.Parameter(torch.ones(4)), b=nn.Parameter(torch.zeros(4))), ROWS, lambda m, x: (lambda h: (h - h.mean(0)) / (h.var(0, unbiased=False) + 1e-5).sqrt() * m.g + m.b)(m.a(x))),
    ("response-rms", lambda: dict(a=nn.Conv2d(4, 4, 3, padding=1), g=nn.Parameter(torch.ones(1, 4, 1, 1)), b=nn.Parameter(torch.zeros(1, 4, 1, 1))), IMAGE, lambda m, x: (lambda h, n: m.g * (h * n / (n.mean(1, keepdim=True) + 1e-6)) + m.b + h)(m.a(x), torch.norm(m.a(x), p=2, dim=(2, 3), keepdim=True))),
    ("ada-in", lambda: dict(a=nn.Conv2d(4, 4, 3), s=nn.Linear(5, 8)), dict(x=IMAGE, z=(2, 5)), lambda m, x, z: (lambda h, s: F.instance_norm(h) * (1 + s[:, :4, None, None]) + s[:, 4:, None, None])(m.a(x), m.s(z))),
    ("filter-response", lambda: dict(a=nn.Conv2d(4, 4, 3), t=nn.Parameter(torch.zeros(1, 4, 1, 1)), e=nn.Parameter(torch.full((1,), 1e-4))), IMAGE, lambda m, x: (lambda h: torch.max(h * torch.rsqrt(h.pow(2).mean((2, 3), keepdim=True) + m.e.abs()), m.t))(m.a(x))),
])  # fmt: skip

programs("pool", [
    ("max-ceil", CONV, IMAGE, lambda m, x: F.max_pool2d(m.a(x), 3, 2, 1, ceil_mode=True)),
    ("max-dilated", CONV, IMAGE, lambda m, x: F.max_pool2d(m.a(x), 2, 1, dilation=2)),
    ("average-ceil", CONV, IMAGE, lambda m, x: F.avg_pool2d(m.a(x), 3, 2, 1, ceil_mode=True)),
    ("average-without-padding", CONV, IMAGE, lambda m, x: F.avg_pool2d(m.a(x), 3, 2, 1, ceil_mode=True, count_include_pad=False)),
    ("average-divisor", CONV, IMAGE, lambda m, x: F.avg_pool2d(m.a(x), 2, divisor_override=3)),
    ("average-overlap-1d", CONV1, LINE, lambda m, x: F.avg_pool1d(m.a(x), 4, 3, 2, ceil_mode=True)),
    ("adaptive-average", CONV, IMAGE, lambda m, x: F.adaptive_avg_pool2d(m.a(x), (4, 3))),
    ("adaptive-max", CONV, IMAGE, lambda m, x: F.adaptive_max_pool2d(m.a(x), (3, 1))),
    ("adaptive-divisor", CONV, IMAGE, lambda m, x: F.adaptive_avg_pool2d(m.a(x), (3, None)) + F.adaptive_max_pool2d(m.a(x), (3, 7))),
    ("lp", CONV, IMAGE, lambda m, x: F.lp_pool2d(F.softplus(m.a(x)), 3, 2, 2)),
    ("lp-odd", CONV, IMAGE, lambda m, x: F.lp_pool2d(m.a(x), 1, (2, 3), 1)),
    ("unpool", CONV, (2, 4, 6, 6), lambda m, x: (lambda h: F.max_unpool2d(h[0], h[1], 2))(F.max_pool2d(m.a(x), 2, return_indices=True))),
    ("pool-indices", CONV, (2, 4, 6, 6), lambda m, x: (lambda h: h[0] * (h[1] % 6))(F.max_pool2d(m.a(x), 2, return_indices=True))),
    ("max-negative", CONV, IMAGE, lambda m, x: -F.max_pool2d(-m.a(x), 3, 1, 1)),
    ("max-3d", lambda: dict(a=nn.Conv3d(1, 2, 1)), (1, 1, 4, 5, 4), lambda m, x: F.max_pool3d(m.a(x), (2, 3, 1), (2, 1, 2)) + F.avg_pool3d(m.a(x), (2, 3, 1), (2, 1, 2))),
    ("blur", CONV, IMAGE, lambda m, x: F.conv2d(F.pad(m.a(x), (1, 1, 1, 1), mode="reflect"), (torch.tensor([1.0, 2, 1])[:, None] * torch.tensor([1.0, 2, 1]) / 16)[None, None].repeat(4, 1, 1, 1), stride=2, groups=4)),
    ("global-generalized", lambda: dict(a=nn.Conv2d(4, 4, 3), p=nn.Parameter(torch.tensor([3.0]))), IMAGE, lambda m, x: F.avg_pool2d(m.a(x).clamp(min=1e-6).pow(m.p), (4, 5)).pow(1.0 / m.p)),
])  # fmt: skip

programs("image", [
    ("bilinear", CONV, IMAGE, lambda m, x: F.interpolate(m.a(x), scale_factor=2, mode="bilinear")),
    ("bilinear-corners", CONV, IMAGE, lambda m, x: F.interpolate(m.a(x), (11, 9), mode="bilinear", align_corners=True)),
    ("bilinear-down", CONV, IMAGE, lambda m, x: F.interpolate(m.a(x), (4, 3), mode="bilinear")),
    ("bilinear-factor", CONV, IMAGE, lambda m, x: F.interpolate(m.a(x), scale_factor=(1.3, 0.7), mode="bilinear")),
    ("bilinear-factor-again", CONV, IMAGE, lambda m, x: F.interpolate(m.a(x), scale_factor=1.3, mode="bilinear", recompute_scale_factor=True)),
    ("bilinear-antialias", CONV, IMAGE, lambda m, x: F.interpolate(m.a(x), (3, 3), mode="bilinear", antialias=True)),
    ("bicubic", CONV, IMAGE, lambda m, x: F.interpolate(m.a(x), scale_factor=2, mode="bicubic")),
    ("bicubic-corners", CONV, IMAGE, lambda m, x: F.interpolate(m.a(x), (9, 5), mode="bicubic", align_corners=True)),
    ("nearest", CONV, IMAGE, lambda m, x: F.interpolate(m.a(x), (9, 4))),
    ("nearest-exact", CONV, IMAGE, lambda m, x: F.interpolate(m.a(x), (9, 4), mode="nearest-exact")),
    ("linear", CONV1, LINE, lambda m, x: F.interpolate(m.a(x), 13, mode="linear", align_corners=True) + F.interpolate(m.a(x), 13, mode="linear")),
    ("area", CONV, IMAGE, lambda m, x: F.interpolate(m.a(x), (4, 3), mode="area")),
    ("trilinear", lambda: dict(a=nn.Conv3d(1, 2, 1)), (1, 1, 3, 4, 3), lambda m, x: F.interpolate(m.a(x), (4, 6, 5), mode="trilinear")),
    ("shuffle", CONV, IMAGE, lambda m, x: F.pixel_unshuffle(F.pixel_shuffle(m.a(x), 2).tanh(), (2))),
    ("channel-shuffle", CONV, IMAGE, lambda m, x: F.channel_shuffle(m.a(x), 2)),
    *((f"grid-{mode}-{padding}{'-corners' * corners}", CONV, dict(x=IMAGE, g=lambda: torch.rand(2, 5, 4, 2) * 2.6 - 1.3), lambda m, x, g, k=dict(mode=mode, padding_mode=padding, align_corners=corners): F.grid_sample(m.a(x), g, **k)) for mode, padding, corners in (("bilinear", "zeros", False), ("bilinear", "border", True), ("bilinear", "reflection", False), ("bilinear", "reflection", True), ("nearest", "zeros", False), ("nearest", "border", True), ("bicubic", "zeros", True), ("bicubic", "reflection", False))),
    ("spatial-transformer", lambda: dict(t=nn.Linear(4, 6), a=nn.Conv2d(4, 4, 1)), IMAGE, lambda m, x: F.grid_sample(m.a(x), F.affine_grid(m.t(x.mean((2, 3))).view(2, 2, 3), (2, 4, 5, 6), align_corners=False), align_corners=False)),
    ("warp", lambda: dict(a=nn.Conv2d(4, 2, 3, padding=1)), IMAGE, lambda m, x: F.grid_sample(x, torch.stack(torch.meshgrid(torch.linspace(-1, 1, 6), torch.linspace(-1, 1, 7), indexing="ij")[::-1], -1) + m.a(x).permute(0, 2, 3, 1).tanh(), padding_mode="border", align_corners=True)),
    *((f"pad-{mode}", CONV, IMAGE, lambda m, x, mode=mode: F.pad(m.a(x), (2, 1, 0, 3), mode=mode)) for mode in ("constant", "reflect", "replicate", "circular")),
    ("pad-negative", CONV, IMAGE, lambda m, x: F.pad(m.a(x), (-1, 2, 1, -2), value=0.3)),
    ("padding-same", lambda: dict(a=nn.Conv2d(4, 4, (2, 4), padding="same", dilation=(1, 2)), b=nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular", groups=2)), IMAGE, lambda m, x: m.b(m.a(x))),
    ("transposed", lambda: dict(a=nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=(1, 0), groups=2, dilation=(1, 2))), IMAGE, lambda m, x: m.a(x)),
    ("transposed-size", lambda: dict(a=nn.ConvTranspose1d(4, 3, 4, stride=3)), LINE, lambda m, x: m.a(x, output_size=(29,))),
    ("conv-shared-kernel", lambda: dict(w=weight(1, 1, 3, 3)), IMAGE, lambda m, x: F.conv2d(x, m.w.expand(4, 1, 3, 3), groups=4, stride=(2, 1))),
    ("conv-dynamic-kernel", lambda: dict(k=nn.Linear(4, 4 * 9)), IMAGE, lambda m, x: F.conv2d(x.reshape(1, 8, 6, 7), m.k(x.mean((2, 3))).view(8, 1, 3, 3), padding=1, groups=8).view(2, 4, 6, 7)),
    ("conv-3d", lambda: dict(a=nn.Conv3d(2, 3, (2, 1, 3), stride=(1, 2, 1), padding=(1, 0, 1))), (2, 2, 3, 5, 4), lambda m, x: m.a(x)),
    ("total-variation", CONV, IMAGE, lambda m, x: (m.a(x)[..., 1:] - m.a(x)[..., :-1]).abs().mean() + (m.a(x)[:, :, 1:] - m.a(x)[:, :, :-1]).abs().mean()),
    ("gram", CONV, IMAGE, lambda m, x: (lambda f: f @ f.mT / 42)(m.a(x).flatten(2))),
])  # fmt: skip

programs("activation", [
    *((f"act-{name}", LINEAR, ROWS, lambda m, x, f=f: f(3 * m.a(x))) for name, f in (
        ("glu", lambda h: F.glu(h, 1)), ("mish", F.mish), ("softshrink", lambda h: F.softshrink(h, 0.7)), ("hardshrink", lambda h: F.hardshrink(h, 0.7)),
        ("threshold", lambda h: F.threshold(h, 0.3, -2.0)), ("celu", lambda h: F.celu(h, 0.6)), ("selu", F.selu), ("elu", lambda h: F.elu(h, 1.7)),
        ("rrelu", lambda h: F.rrelu(h, 0.1, 0.3, training=False)), ("logsigmoid", lambda h: F.logsigmoid(30 * h)), ("softplus", lambda h: F.softplus(h, 2.0, 3.0)),
        ("tanhshrink", F.tanhshrink), ("softsign", F.softsign), ("hardtanh", lambda h: F.hardtanh(h, -0.5, 1.5)), ("softmin", lambda h: F.softmin(h, 0)),
        ("gelu-tanh", lambda h: F.gelu(h, approximate="tanh")), ("quick-gelu", lambda h: h * torch.sigmoid(1.702 * h)), ("squared-relu", lambda h: F.relu(h).square()),
        ("relu6", F.relu6), ("hardsigmoid", F.hardsigmoid), ("hardswish", F.hardswish), ("log-softmax-0", lambda h: F.log_softmax(h, 0)),
        ("sinc", torch.sinc), ("special", lambda h: torch.erfc(h) + torch.erf(h) + torch.special.expit(h) + torch.special.log1p(h.abs()) + torch.expm1(h / 3)),
        ("erfinv", lambda h: torch.erfinv(h.tanh() * 0.9)), ("digamma", lambda h: torch.lgamma(1.5 + h.abs())), ("bessel", lambda h: torch.special.i0(h)), ("ndtri", lambda h: torch.special.log_ndtr(h) + torch.special.ndtr(h)),
        ("hyperbolic", lambda h: torch.asinh(h) + torch.acosh(1.5 + h.abs()) + torch.atanh(h.tanh() * 0.9) + torch.sinh(h / 3) + torch.cosh(h / 3)),
        ("trigonometric", lambda h: torch.tan(h / 4) + torch.atan(h) + torch.asin(h.tanh() * 0.9) + torch.acos(h.tanh() * 0.9)),
        ("gumbel-hard", lambda h: (lambda s: F.one_hot(s.argmax(-1), 4) - s.detach() + s)(h.softmax(-1))),
        ("binary", lambda h: (h.sign() - h).detach() + h.clamp(-1, 1)), ("straight-round", lambda h: h + (h.round() - h).detach()), ("swiglu", lambda h: F.silu(h[:, :2]) * h[:, 2:]),
        ("maxout", lambda h: h.view(6, 2, 2).max(-1).values), ("logit", lambda h: torch.logit(h.sigmoid(), eps=1e-3)), ("nan-to-num", lambda h: torch.nan_to_num(h, 0.5, 1.0, -1.0)),
    )),
    ("prelu", lambda: dict(a=nn.Conv2d(4, 4, 3), p=nn.PReLU(4), q=nn.PReLU(init=0.1)), IMAGE, lambda m, x: m.q(m.p(m.a(x)))),
    ("prelu-rows", lambda: dict(a=nn.Linear(5, 4), p=nn.PReLU(4, init=0.0)), ROWS, lambda m, x: m.p(m.a(x))),
    ("snake", lambda: dict(a=nn.Conv1d(4, 4, 3), s=nn.Parameter(torch.ones(1, 4, 1))), LINE, lambda m, x: (lambda h: h + (m.s + 1e-9).reciprocal() * torch.sin(m.s * h).pow(2))(m.a(x))),
    ("kan", lambda: dict(w=weight(4, 5, 6), b=weight(4, 5)), ROWS, lambda m, x: splines(m, x)),
])  # fmt: skip


def splines(m, x):
    grid = torch.linspace(-2, 2, 10)
    x, basis = x[:, :, None], ((x[:, :, None] >= grid[:-1]) & (x[:, :, None] < grid[1:])).to(x.dtype)
    for k in range(1, 4):
        left = (x - grid[: -(k + 1)]) / (grid[k:-1] - grid[: -(k + 1)])
        right = (grid[k + 1 :] - x) / (grid[k + 1 :] - grid[1:-k])
        basis = left * basis[:, :, :-1] + right * basis[:, :, 1:]
    return F.silu(x[:, :, 0]) @ m.b.T + torch.einsum("bik,oik->bo", basis, m.w)
