"""Programs of layers with options that differ from their defaults: activations, norms, dropout, pools, images, losses."""

import torch
import torch.nn.functional as F
from torch import nn

from devkit.zoo_models.program_images import then, with_part
from devkit.zoo_models.programs import CLASSES, CONV, CONV1, IMAGE, LINE, LINEAR, PAIRS, ROWS, booleans, labels, programs, weight

VOLUME = (2, 2, 4, 5, 4)
SOLID = lambda: dict(a=nn.Conv3d(2, 2, 1))  # noqa: E731

programs("activation", [
    *((f"act-{name}", lambda part=part: dict(a=nn.Linear(5, 4), n=part()), ROWS, lambda m, x: m.n(3 * m.a(x))) for name, part in (
        ("celu-2", lambda: nn.CELU(2.0)), ("elu-half", lambda: nn.ELU(0.5)), ("elu-in-place", lambda: nn.ELU(1.0, inplace=True)), ("softplus-half", lambda: nn.Softplus(0.5, 1.0)),
        ("softplus-20", lambda: nn.Softplus(20.0, 2.0)), ("hardshrink-zero", lambda: nn.Hardshrink(0.0)), ("softshrink-zero", lambda: nn.Softshrink(0.0)), ("threshold-zero", lambda: nn.Threshold(0.0, 1.0)),
        ("threshold-negative", lambda: nn.Threshold(-0.5, 20.0)), ("glu-first", lambda: nn.GLU(0)), ("gelu-exact", nn.GELU), ("leaky", lambda: nn.LeakyReLU(0.3)), ("leaky-zero", lambda: nn.LeakyReLU(0.0)),
        ("leaky-negative", lambda: nn.LeakyReLU(-0.2)), ("softmin-1", lambda: nn.Softmin(1)), ("softmax-0", lambda: nn.Softmax(0)), ("log-softmax-1", lambda: nn.LogSoftmax(-1)), ("silu-in-place", lambda: nn.SiLU(inplace=True)),
        ("hardtanh-in-place", lambda: nn.Hardtanh(0.0, 2.0, inplace=True)), ("relu6-in-place", lambda: nn.ReLU6(inplace=True)), ("rrelu-evaluated", lambda: nn.RReLU(0.2, 0.4).eval()), ("prelu-one", lambda: nn.PReLU(init=-0.3)),
        ("mish-in-place", lambda: nn.Mish(inplace=True)))),
    ("softmax-2d", lambda: dict(CONV(), n=nn.Softmax2d()), IMAGE, lambda m, x: m.n(m.a(x))),
    ("glu-middle", CONV, IMAGE, lambda m, x: F.glu(m.a(x), 1)),
    ("geglu", lambda: dict(a=nn.Linear(5, 8)), ROWS, lambda m, x: (lambda h: h[0] * F.gelu(h[1]))(m.a(x).chunk(2, -1))),
    ("prelu-last", lambda: dict(a=nn.Linear(5, 4), w=nn.Parameter(torch.tensor([0.1, 0.2, -0.3, 1.5]))), (3, 4, 5), lambda m, x: F.prelu(m.a(x).transpose(1, 2), m.w)),
    ("swish-beta", lambda: dict(a=nn.Linear(5, 4), b=nn.Parameter(torch.tensor(1.3))), ROWS, lambda m, x: m.a(x) * torch.sigmoid(m.b * m.a(x))),
    ("softmax-temperature", lambda: dict(a=nn.Linear(5, 4), t=nn.Parameter(torch.tensor(0.7))), ROWS, lambda m, x: (m.a(x) / m.t.clamp(0.1)).softmax(-1)),
    ("softmax-typed", LINEAR, ROWS, lambda m, x: F.softmax(m.a(x), -1, dtype=torch.float64).float() + F.log_softmax(m.a(x), 0, dtype=torch.float32)),
    ("gumbel-shape", LINEAR, dict(x=ROWS, g=lambda: torch.rand(6, 4) * 0.9 + 0.05), lambda m, x, g: ((m.a(x) - (-g.log()).log()) / 0.5).softmax(-1)),
    ("sparsemax", LINEAR, ROWS, lambda m, x: sparsemax(m.a(x))),
    ("relu-max", LINEAR, ROWS, lambda m, x: torch.maximum(m.a(x), torch.zeros(())) + torch.max(m.a(x), torch.tensor(0.25)) + m.a(x).clamp_min(0.1) + m.a(x).clamp_max(-0.1)),
    ("crelu", LINEAR, ROWS, lambda m, x: torch.cat([F.relu(m.a(x)), F.relu(-m.a(x))], 1)),
    ("capsules", LINEAR, ROWS, lambda m, x: (lambda h, n: h * n / (1 + n) / (n + 1e-8).sqrt())(m.a(x), m.a(x).square().sum(-1, keepdim=True))),
])  # fmt: skip


def sparsemax(h):
    ordered = h.sort(-1, descending=True).values
    total, k = ordered.cumsum(-1), torch.arange(1, 5)
    size = (1 + k * ordered > total).sum(-1, keepdim=True)
    return F.relu(h - (total.gather(-1, size - 1) - 1) / size)


programs("norm", [
    ("batch-eps", with_part(lambda: nn.BatchNorm2d(4, eps=0.1, momentum=0.3)), IMAGE, then),
    ("batch-cumulative-rows", lambda: dict(a=nn.Linear(5, 4), n=nn.BatchNorm1d(4, momentum=None)), ROWS, then),
    ("batch-evaluated", with_part(lambda: nn.BatchNorm2d(4).eval()), IMAGE, then),
    ("batch-functional", lambda: dict(CONV(), mean=torch.zeros(4), var=torch.ones(4), w=weight(4)), IMAGE, lambda m, x: F.batch_norm(m.a(x), m.mean, m.var, m.w, training=True, momentum=0.2)),
    ("batch-functional-evaluated", lambda: dict(CONV(), running_mean=torch.randn(4), running_var=torch.rand(4) + 0.5), IMAGE, lambda m, x: F.batch_norm(m.a(x), m.running_mean, m.running_var)),
    ("batch-stateless", lambda: dict(CONV(), w=weight(4), b=weight(4)), IMAGE, lambda m, x: F.batch_norm(m.a(x), None, None, m.w, m.b, training=True)),
    ("batch-twice", lambda: dict(CONV(), n=nn.BatchNorm2d(4)), IMAGE, lambda m, x: m.n(m.n(m.a(x)).relu())),
    ("batch-sync", with_part(lambda: nn.SyncBatchNorm(4).eval()), IMAGE, then),
    ("instance-volume", lambda: dict(SOLID(), n=nn.InstanceNorm3d(2, affine=True)), VOLUME, then),
    ("instance-unbatched", with_part(lambda: nn.InstanceNorm2d(4, affine=True)), (4, 6, 7), then),
    ("instance-tracked-bare", with_part(lambda: nn.InstanceNorm2d(4, track_running_stats=True, momentum=0.3)), IMAGE, then),
    ("instance-tracked-evaluated", with_part(lambda: nn.InstanceNorm2d(4, affine=True, track_running_stats=True).eval()), IMAGE, then),
    ("group-eps", with_part(lambda: nn.GroupNorm(2, 4, eps=0.05)), IMAGE, then),
    ("group-volume", lambda: dict(SOLID(), n=nn.GroupNorm(2, 2)), VOLUME, then),
    ("group-tokens", lambda: dict(a=nn.Conv1d(4, 4, 1), n=nn.GroupNorm(2, 4)), LINE, then),
    ("group-functional", lambda: dict(CONV(), w=weight(4)), IMAGE, lambda m, x: F.group_norm(m.a(x), 2, m.w, None, 1e-3)),
    ("layer-eps", lambda: dict(a=nn.Linear(5, 4), n=nn.LayerNorm(4, eps=0.1)), ROWS, then),
    ("layer-two-axes", lambda: dict(a=nn.Linear(5, 4), n=nn.LayerNorm((3, 4))), (2, 3, 5), then),
    ("layer-channels", with_part(lambda: nn.LayerNorm(4)), IMAGE, lambda m, x: m.n(m.a(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)),
    ("layer-functional", lambda: dict(a=nn.Linear(5, 4), w=weight(4)), ROWS, lambda m, x: F.layer_norm(m.a(x), (4,), weight=m.w)),
    ("layer-by-hand", lambda: dict(a=nn.Linear(5, 4), w=weight(4), b=weight(4)), ROWS, lambda m, x: (lambda h: m.w * (h - h.mean(-1, keepdim=True)) / (h.std(-1, keepdim=True) + 1e-3) + m.b)(m.a(x))),
    ("rms-bare", lambda: dict(a=nn.Linear(5, 4), n=nn.RMSNorm(4, elementwise_affine=False)), ROWS, then),
    ("rms-by-hand", lambda: dict(a=nn.Linear(5, 4), w=weight(4)), ROWS, lambda m, x: (lambda h: m.w * h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6))(m.a(x))),
    ("rms-plus-one", lambda: dict(a=nn.Linear(5, 4), w=nn.Parameter(torch.zeros(4))), ROWS, lambda m, x: (1 + m.w) * F.rms_norm(m.a(x), (4,), eps=1e-5)),
    ("scale-norm", lambda: dict(a=nn.Linear(5, 4), g=nn.Parameter(torch.tensor(2.0))), ROWS, lambda m, x: m.g * F.normalize(m.a(x), dim=-1, eps=1e-3)),
    ("normalize-one", LINEAR, ROWS, lambda m, x: F.normalize(m.a(x), p=1, dim=0) + F.normalize(m.a(x), p=3, dim=1, eps=0.5) + F.normalize(m.a(x), p=float("inf"), dim=1)),
    ("normalize-small", LINEAR, ROWS, lambda m, x: F.normalize(1e-3 * m.a(x), dim=1, eps=1e-2)),
    ("global-response", lambda: dict(CONV(), g=weight(1, 1, 1, 4), b=weight(1, 1, 1, 4)), IMAGE, lambda m, x: (lambda h: (lambda n: m.g * h * n + m.b + h)((lambda s: s / (s.mean(-1, keepdim=True) + 1e-6))(h.norm(p=2, dim=(1, 2), keepdim=True))))(m.a(x).permute(0, 2, 3, 1))),
    ("renorm-rows", LINEAR, ROWS, lambda m, x: torch.renorm(m.a(x), 1, 0, 0.7) + torch.renorm(m.a(x), 2, 1, 10.0)),
    ("spectral-kernel", lambda: dict(a=torch.nn.utils.parametrizations.spectral_norm(nn.Conv2d(4, 4, 3))), IMAGE, lambda m, x: m.a(x)),
    ("spectral-old", lambda: dict(a=torch.nn.utils.spectral_norm(nn.Linear(5, 4))), ROWS, lambda m, x: m.a(x)),
    ("weight-norm-old-linear", lambda: dict(a=torch.nn.utils.weight_norm(nn.Linear(5, 4), dim=None)), ROWS, lambda m, x: m.a(x)),
    ("weight-norm-kernel", lambda: dict(a=nn.utils.parametrizations.weight_norm(nn.ConvTranspose1d(4, 4, 3, groups=2), dim=1)), LINE, lambda m, x: m.a(x)),
    ("weight-norm-shared", lambda: dict(a=nn.utils.parametrizations.weight_norm(nn.Linear(5, 5))), ROWS, lambda m, x: m.a(m.a(x).tanh())),
])  # fmt: skip

programs("dropout", [
    *((f"drop-{name}", lambda part=part, b=base: dict(b(), d=part(0.3)), shape, lambda m, x: m.d(m.a(x)).tanh()) for name, part, base, shape in (
        ("rows", nn.Dropout, LINEAR, ROWS), ("1d", nn.Dropout1d, CONV1, LINE), ("2d", nn.Dropout2d, CONV, IMAGE), ("3d", nn.Dropout3d, SOLID, VOLUME), ("alpha", nn.AlphaDropout, LINEAR, ROWS), ("feature-alpha", nn.FeatureAlphaDropout, CONV, IMAGE))),
    ("drop-attention", lambda: dict(q=nn.Linear(8, 24), o=nn.Linear(8, 8)), (5, 3, 8), lambda m, x: F.multi_head_attention_forward(x, x, x, 8, 2, m.q.weight, m.q.bias, None, None, False, 0.3, m.o.weight, m.o.bias, training=m.training)[0]),
    ("drop-table", lambda: dict(LINEAR(), w=weight(6, 4)), ROWS, lambda m, x: m.a(x) + F.dropout(m.w, 0.5, m.training)),
    ("drop-table-expanded", lambda: dict(LINEAR(), w=weight(1, 4)), ROWS, lambda m, x: m.a(x) + F.dropout(m.w, 0.5, m.training).expand(6, 4)),
    ("drop-table-repeated", lambda: dict(LINEAR(), w=weight(1, 4)), ROWS, lambda m, x: m.a(x) + F.dropout(m.w.expand(6, 4), 0.5, m.training)),
    ("drop-positions", lambda: dict(LINEAR(), p=nn.Embedding(6, 4)), ROWS, lambda m, x: m.a(x) + F.dropout(m.p(torch.arange(6)), 0.5, m.training)),
    ("drop-projected", lambda: dict(LINEAR(), w=weight(6, 3), o=nn.Linear(3, 4)), ROWS, lambda m, x: m.a(x) * m.o(F.dropout(m.w, 0.5, m.training))),
    ("drop-weight", lambda: dict(w=weight(4, 5)), ROWS, lambda m, x: F.linear(x, F.dropout(m.w, 0.5, m.training))),
    ("drop-waves", lambda: dict(LINEAR()), ROWS, lambda m, x: m.a(x) + F.dropout(torch.sin(torch.arange(24.0)).view(6, 4), 0.5, m.training)),
    ("drop-waves-projected", lambda: dict(LINEAR(), o=nn.Linear(4, 4)), ROWS, lambda m, x: m.a(x) * m.o(F.dropout(torch.sin(torch.arange(24.0)).view(6, 4), 0.5, m.training))),
    ("drop-nothing", lambda: dict(LINEAR(), d=nn.Dropout(0.0)), ROWS, lambda m, x: m.d(m.a(x))),
    ("drop-evaluated", lambda: dict(LINEAR(), d=nn.Dropout(0.5).eval()), ROWS, lambda m, x: m.d(m.a(x))),
])  # fmt: skip

programs("pool", [
    *((f"adaptive-{size}", CONV, IMAGE, lambda m, x, s=s: F.adaptive_avg_pool2d(m.a(x), s)) for size, s in (("one", 1), ("five-two", (5, 2)), ("larger", (9, 7)), ("halves", (3, 7)))),
    ("adaptive-line", CONV1, LINE, lambda m, x: F.adaptive_avg_pool1d(m.a(x), 4) + F.adaptive_max_pool1d(m.a(x), 4)),
    ("adaptive-solid", SOLID, VOLUME, lambda m, x: F.adaptive_avg_pool3d(m.a(x), (2, 3, 1)) + F.adaptive_max_pool3d(m.a(x), (2, 1, 1))),
    ("adaptive-indices", CONV, IMAGE, lambda m, x: (lambda r: r[0] * r[1])(F.adaptive_max_pool2d(m.a(x), 2, return_indices=True))),
    ("max-ties", CONV, IMAGE, lambda m, x: F.max_pool2d(F.relu(m.a(x) - 0.4), 3, 2)),
    ("max-uneven", CONV, IMAGE, lambda m, x: F.max_pool2d(m.a(x), (3, 2), (2, 1), (1, 0), dilation=(1, 2), ceil_mode=True)),
    ("max-line", CONV1, LINE, lambda m, x: F.max_pool1d(m.a(x), 3, 2, 1, 2, ceil_mode=True)),
    ("average-uneven", CONV, IMAGE, lambda m, x: F.avg_pool2d(m.a(x), (3, 2), (2, 1), (1, 0), count_include_pad=False)),
    ("average-solid", SOLID, VOLUME, lambda m, x: F.avg_pool3d(m.a(x), 3, 2, 1, ceil_mode=True, count_include_pad=False)),
    ("lp-line", CONV1, LINE, lambda m, x: F.lp_pool1d(m.a(x), 2, 3, 2, ceil_mode=True)),
    ("lp-three", CONV, IMAGE, lambda m, x: F.lp_pool2d(m.a(x), 3, 2)),
    ("unpool-stride", CONV, (2, 4, 6, 6), lambda m, x: (lambda h: F.max_unpool2d(h[0], h[1], 2, 2, output_size=(7, 6)))(F.max_pool2d(m.a(x), 2, return_indices=True))),
    ("unpool-line", CONV1, LINE, lambda m, x: (lambda h: F.max_unpool1d(h[0], h[1], 3, 3))(F.max_pool1d(m.a(x), 3, return_indices=True))),
    ("statistics", CONV, IMAGE, lambda m, x: torch.cat([m.a(x).mean((2, 3)), m.a(x).std((2, 3)), m.a(x).amax((2, 3)), m.a(x).flatten(2).max(2)[0]], 1)),
    ("pyramid", CONV, IMAGE, lambda m, x: torch.cat([F.adaptive_max_pool2d(m.a(x), s).flatten(1) for s in (1, 2, 3)], 1)),
    ("fractional", CONV, dict(x=IMAGE, r=lambda: torch.rand(2, 4, 2)), lambda m, x, r: F.fractional_max_pool2d(m.a(x), 2, output_size=(3, 4), _random_samples=r)),
])  # fmt: skip

programs("image", [
    *((f"resize-{name}", CONV, IMAGE, lambda m, x, o=options: F.interpolate(m.a(x), **o)) for name, options in (
        ("nearest-factor", dict(scale_factor=1.7)), ("nearest-down", dict(scale_factor=0.6)), ("nearest-exact-factor", dict(scale_factor=1.7, mode="nearest-exact")), ("bicubic-down", dict(size=(3, 4), mode="bicubic")),
        ("bicubic-factor", dict(scale_factor=1.3, mode="bicubic")), ("bilinear-corners-factor", dict(scale_factor=1.6, mode="bilinear", align_corners=True)), ("bicubic-antialias", dict(size=(3, 4), mode="bicubic", antialias=True)),
        ("bilinear-antialias-up", dict(size=(9, 3), mode="bilinear", antialias=True)), ("one", dict(size=(1, 1), mode="bilinear", align_corners=True)), ("same", dict(size=(6, 7), mode="bilinear")))),
    ("resize-line", CONV1, LINE, lambda m, x: F.interpolate(m.a(x), scale_factor=2.4) + F.interpolate(m.a(x), 21, mode="linear")),
    ("resize-solid", SOLID, VOLUME, lambda m, x: F.interpolate(m.a(x), (3, 7, 8)) + F.interpolate(m.a(x), (3, 7, 8), mode="trilinear", align_corners=True)),
    ("upsample-module", lambda: dict(CONV(), u=nn.UpsamplingBilinear2d(scale_factor=2), v=nn.UpsamplingNearest2d((12, 14))), IMAGE, lambda m, x: m.u(m.a(x)) + m.v(m.a(x))),
    ("resize-to-other", CONV, dict(x=IMAGE, z=(2, 4, 9, 10)), lambda m, x, z: F.interpolate(m.a(x), z.shape[2:], mode="bilinear") * z),
    *((f"grid-{mode}-{padding}{'-corners' * corners}", CONV, dict(x=IMAGE, g=lambda: torch.rand(2, 5, 4, 2) * 2.6 - 1.3), lambda m, x, g, k=dict(mode=mode, padding_mode=padding, align_corners=corners): F.grid_sample(m.a(x), g, **k)) for mode, padding, corners in (("bilinear", "zeros", True), ("bilinear", "border", False), ("nearest", "reflection", False), ("nearest", "zeros", True), ("bicubic", "border", False), ("bicubic", "zeros", False), ("bicubic", "reflection", True))),
    ("grid-solid", SOLID, dict(x=VOLUME, g=lambda: torch.rand(2, 3, 4, 2, 3) * 2.6 - 1.3), lambda m, x, g: F.grid_sample(m.a(x), g, align_corners=True)),
    ("grid-learned", lambda: dict(CONV(), g=weight(1, 5, 4, 2)), IMAGE, lambda m, x: F.grid_sample(m.a(x), m.g.expand(2, -1, -1, -1), align_corners=False)),
    *((f"padding-{mode}", lambda mode=mode: dict(a=nn.Conv2d(4, 4, 3, padding=2, padding_mode=mode, stride=2)), IMAGE, lambda m, x: m.a(x)) for mode in ("reflect", "replicate", "circular")),
    *((f"pad-solid-{mode}", SOLID, VOLUME, lambda m, x, mode=mode: F.pad(m.a(x), (1, 2, 0, 1, 3, 2), mode=mode)) for mode in ("reflect", "replicate", "circular")),
    ("pad-modules", lambda: dict(CONV(), p=nn.ZeroPad2d((1, 0, 2, 1)), q=nn.ReflectionPad2d(2), r=nn.ReplicationPad2d((1, 2, 3, 0))), IMAGE, lambda m, x: m.p(m.a(x)).sum(-1).sum(-1) + m.q(m.a(x)).mean((2, 3)) + m.r(m.a(x)).mean((2, 3))),
    ("pad-rows", LINEAR, ROWS, lambda m, x: F.pad(m.a(x), (1, -1, 0, 2), value=-1.5)),
    ("transposed-3d", lambda: dict(a=nn.ConvTranspose3d(2, 3, (2, 1, 3), stride=(2, 1, 2), padding=(1, 0, 1), output_padding=(1, 0, 0))), VOLUME, lambda m, x: m.a(x)),
    ("transposed-depthwise", lambda: dict(a=nn.ConvTranspose2d(4, 4, 4, stride=2, padding=1, groups=4, bias=False)), IMAGE, lambda m, x: m.a(x)),
    ("transposed-dilated", lambda: dict(a=nn.ConvTranspose1d(4, 6, 3, stride=3, padding=2, output_padding=2, dilation=2, groups=2)), LINE, lambda m, x: m.a(x)),
    ("depthwise", lambda: dict(a=nn.Conv2d(4, 8, 3, groups=4, padding=(2, 1), dilation=2, stride=(1, 2)), b=nn.Conv2d(8, 4, 1, groups=2)), IMAGE, lambda m, x: m.b(m.a(x))),
    ("conv-unbatched", CONV, (4, 6, 7), lambda m, x: m.a(x)),
    ("conv-valid-same", lambda: dict(a=nn.Conv1d(4, 3, 4, padding="same"), b=nn.Conv1d(3, 2, 2, padding="valid")), LINE, lambda m, x: m.b(m.a(x))),
    ("conv-functional", lambda: dict(w=weight(4, 2, 3, 3), b=weight(4)), IMAGE, lambda m, x: F.conv2d(x, m.w, m.b, stride=(2, 1), padding=(0, 2), groups=2) + F.conv_transpose2d(x[:, :, :3, :7], m.w[:, :1], stride=(1, 1), padding=(0, 0))[:, :, :2, :9].sum(2, keepdim=True)),
    ("bilinear-layer", lambda: dict(a=nn.Bilinear(5, 4, 3)), dict(x=ROWS, z=(6, 4)), lambda m, x, z: m.a(x, z)),
    ("bilinear-bare", lambda: dict(a=nn.Bilinear(5, 4, 3, bias=False)), dict(x=(2, 3, 5), z=(2, 3, 4)), lambda m, x, z: m.a(x, z)),
    ("identity-flatten", lambda: dict(CONV(), i=nn.Identity(), f=nn.Flatten(2), u=nn.Unflatten(1, (2, 2))), IMAGE, lambda m, x: m.u(m.f(m.i(m.a(x))))),
    ("unshuffle", CONV, (2, 4, 6, 4), lambda m, x: F.pixel_unshuffle(m.a(x), 2)),
    ("space-attention", lambda: dict(CONV(), b=nn.Conv2d(2, 1, 3, padding=1)), IMAGE, lambda m, x: (lambda h: h * m.b(torch.cat([h.mean(1, keepdim=True), h.max(1, keepdim=True).values], 1)).sigmoid())(m.a(x))),
    ("soft-argmax", CONV, IMAGE, lambda m, x: (m.a(x).flatten(2).softmax(-1) * torch.linspace(0, 1, 42)).sum(-1)),
])  # fmt: skip

TRIPLE = dict(x=ROWS, p=ROWS, n=ROWS)
SIGNED = dict(x=ROWS, z=ROWS, y=lambda: labels(2, 6) * 2 - 1)

programs("loss", [
    *((f"{name}-{reduction}", LINEAR, PAIRS, lambda m, x, t, f=f, r=reduction: f(m.a(x), t, reduction=r)) for reduction in ("sum", "none") for name, f in (
        ("mse", F.mse_loss), ("l1", F.l1_loss), ("smooth", lambda h, t, reduction: F.smooth_l1_loss(h, t, beta=2.0, reduction=reduction)), ("huber-2", lambda h, t, reduction: F.huber_loss(h, t, delta=2.0, reduction=reduction)),
        ("poisson", lambda h, t, reduction: F.poisson_nll_loss(h, t.abs(), reduction=reduction)), ("gaussian-fixed", lambda h, t, reduction: F.gaussian_nll_loss(h, t, torch.full((6, 1), 0.7), reduction=reduction)))),
    ("mse-broadcast", LINEAR, dict(x=ROWS, t=(6, 1)), lambda m, x, t: F.mse_loss(m.a(x), t.expand(6, 4))),
    ("mse-weighted", LINEAR, dict(x=ROWS, t=(6, 4), w=lambda: torch.rand(6, 4)), lambda m, x, t, w: F.mse_loss(m.a(x), t, weight=w)),
    ("multi-margin-plain", LINEAR, CLASSES, lambda m, x, y: nn.MultiMarginLoss(reduction="sum")(m.a(x), y)),
    ("multilabel-margin-sum", LINEAR, dict(x=(3, 5), y=lambda: torch.tensor([[1, 0, -1, 2], [3, -1, 0, 0], [2, 1, 0, 3]])), lambda m, x, y: nn.MultiLabelMarginLoss(reduction="sum")(m.a(x), y)),
    ("multilabel-soft-sum", LINEAR, dict(x=ROWS, y=lambda: labels(2, 6, 4).float()), lambda m, x, y: F.multilabel_soft_margin_loss(m.a(x), y, reduction="sum")),
    ("triplet-swap", LINEAR, TRIPLE, lambda m, x, p, n: nn.TripletMarginLoss(margin=2.0, swap=True, eps=0.1)(m.a(x), m.a(p), m.a(n))),
    ("triplet-sum", LINEAR, TRIPLE, lambda m, x, p, n: F.triplet_margin_loss(m.a(x), m.a(p), m.a(n), reduction="sum")),
    ("triplet-distance-swap", LINEAR, TRIPLE, lambda m, x, p, n: F.triplet_margin_with_distance_loss(m.a(x), m.a(p), m.a(n), distance_function=nn.PairwiseDistance(), margin=2.0, swap=True)),
    ("ranking-sum", LINEAR, dict(x=ROWS, z=ROWS, y=lambda: labels(2, 6, 1).float() * 2 - 1), lambda m, x, z, y: F.margin_ranking_loss(m.a(x), m.a(z), y, reduction="sum")),
    ("hinge-embedding-sum", LINEAR, dict(x=ROWS, y=lambda: labels(2, 6, 4) * 2 - 1), lambda m, x, y: nn.HingeEmbeddingLoss(margin=2.0, reduction="sum")(m.a(x), y)),
    ("cosine-embedding-none", LINEAR, SIGNED, lambda m, x, z, y: F.cosine_embedding_loss(m.a(x), m.a(z), y, margin=-0.3, reduction="none")),
    ("soft-margin-mean", LINEAR, dict(x=ROWS, y=lambda: labels(2, 6, 4).float() * 2 - 1), lambda m, x, y: nn.SoftMarginLoss()(m.a(x) * 20, y)),
    ("kl-mean", LINEAR, dict(x=ROWS, t=(6, 4)), lambda m, x, t: nn.KLDivLoss(reduction="mean")(m.a(x).log_softmax(1), t.softmax(1))),
    ("kl-none", LINEAR, dict(x=ROWS, t=(6, 4)), lambda m, x, t: F.kl_div(m.a(x).log_softmax(1), t.log_softmax(1), reduction="none", log_target=True)),
    ("bce-none", LINEAR, dict(x=ROWS, y=lambda: labels(2, 6, 4).float()), lambda m, x, y: F.binary_cross_entropy(m.a(x).sigmoid(), y, reduction="none")),
    ("bce-logits-none", LINEAR, dict(x=ROWS, y=lambda: labels(2, 6, 4).float()), lambda m, x, y: F.binary_cross_entropy_with_logits(m.a(x), y, pos_weight=torch.tensor(3.0), reduction="none")),
    ("bce-logits-sum", LINEAR, dict(x=ROWS, y=lambda: torch.rand(6, 4), w=lambda: torch.rand(6, 1)), lambda m, x, y, w: F.binary_cross_entropy_with_logits(m.a(x), y, weight=w, reduction="sum")),
    ("cross-line", lambda: dict(a=nn.Conv1d(4, 3, 1)), dict(x=LINE, y=lambda: labels(3, 2, 9)), lambda m, x, y: F.cross_entropy(m.a(x), y, label_smoothing=0.3)),
    ("cross-one", LINEAR, dict(x=(5,), y=lambda: labels(4, 1)[0]), lambda m, x, y: F.cross_entropy(m.a(x), y)),
    ("cross-soft", LINEAR, dict(x=ROWS, t=(6, 4)), lambda m, x, t: F.cross_entropy(m.a(x), t.softmax(1), weight=torch.tensor([1.0, 2.0, 0.5, 3.0]))),
    ("cross-soft-none", LINEAR, dict(x=ROWS, t=(6, 4)), lambda m, x, t: F.cross_entropy(m.a(x), t.softmax(1), reduction="none")),
    ("cross-soft-image", lambda: dict(a=nn.Conv2d(4, 3, 1)), dict(x=IMAGE, t=(2, 3, 6, 7)), lambda m, x, t: F.cross_entropy(m.a(x), t.softmax(1), reduction="sum", label_smoothing=0.2)),
    ("cross-negative-ignored", LINEAR, dict(x=ROWS, y=lambda: torch.tensor([1, -100, 0, 3, -100, 2])), lambda m, x, y: F.cross_entropy(m.a(x), y)),
    ("cross-minus-one", LINEAR, dict(x=ROWS, y=lambda: torch.tensor([1, -1, 0, 3, -1, 2])), lambda m, x, y: F.cross_entropy(m.a(x), y, ignore_index=-1, reduction="none")),
    ("cross-shifted", lambda: dict(e=nn.Embedding(7, 4), a=nn.Linear(4, 7)), dict(i=lambda: labels(7, 3, 5)), lambda m, i: F.cross_entropy(m.a(m.e(i))[:, :-1].reshape(-1, 7), i[:, 1:].reshape(-1), ignore_index=0)),
    ("nll-image", lambda: dict(a=nn.Conv2d(4, 3, 1)), dict(x=IMAGE, y=lambda: torch.where(booleans(2, 6, 7), labels(3, 2, 6, 7), 1)), lambda m, x, y: F.nll_loss(m.a(x).log_softmax(1), y, weight=torch.tensor([0.2, 1.0, 3.0]), ignore_index=1)),
    ("nll-image-none", lambda: dict(a=nn.Conv2d(4, 3, 1)), dict(x=IMAGE, y=lambda: labels(3, 2, 6, 7)), lambda m, x, y: F.nll_loss(m.a(x).log_softmax(1), y, reduction="none")),
    ("nll-sum", LINEAR, CLASSES, lambda m, x, y: nn.NLLLoss(reduction="sum")(m.a(x).log_softmax(-1), y)),
    ("adaptive-softmax", lambda: dict(s=nn.AdaptiveLogSoftmaxWithLoss(5, 10, [4, 7], div_value=2.0)), dict(x=ROWS), lambda m, x: m.s.log_prob(x)),
    ("pairwise", LINEAR, dict(x=ROWS, z=ROWS), lambda m, x, z: F.pairwise_distance(m.a(x), m.a(z), p=1.0, eps=0.1, keepdim=True) + nn.PairwiseDistance(3.0)(m.a(x), m.a(z))[:, None]),
    ("cosine-eps", LINEAR, dict(x=ROWS, z=ROWS), lambda m, x, z: F.cosine_similarity(0.01 * m.a(x), m.a(z), dim=0, eps=0.5) + nn.CosineSimilarity(dim=1)(m.a(x), m.a(z)).sum()),
    ("cosine-matrix", LINEAR, dict(x=ROWS, z=ROWS), lambda m, x, z: F.cosine_similarity(m.a(x)[:, None], m.a(z)[None], dim=-1)),
    ("distances-own", LINEAR, ROWS, lambda m, x: torch.cdist(m.a(x), m.a(x) + 1.0)),
    ("distances-exact", LINEAR, dict(x=ROWS, z=ROWS), lambda m, x, z: torch.cdist(m.a(x), m.a(z), compute_mode="donot_use_mm_for_euclid_dist")),
    ("distances-infinite", LINEAR, dict(x=ROWS, z=ROWS), lambda m, x, z: torch.cdist(m.a(x), m.a(z), p=float("inf")) + torch.cdist(m.a(x), m.a(z), p=0.5)),
    ("distances-zero", LINEAR, ROWS, lambda m, x: torch.cdist(m.a(x), m.a(x))),
    ("elastic", LINEAR, PAIRS, lambda m, x, t: F.mse_loss(m.a(x), t) + 0.01 * torch.norm(m.a.weight) + 0.01 * m.a.bias.norm(1)),
    ("wasserstein-penalty", LINEAR, dict(x=ROWS, z=ROWS), lambda m, x, z: m.a(x).mean() - m.a(z).mean() + 10 * (m.a.weight.norm(2, dim=1) - 1).pow(2).mean()),
    ("variational", lambda: dict(u=nn.Linear(5, 4), s=nn.Linear(5, 4), d=nn.Linear(4, 5)), dict(x=ROWS, e=(6, 4)), lambda m, x, e: F.binary_cross_entropy_with_logits(m.d(m.u(x) + e * (0.5 * m.s(x)).exp()), x.sigmoid(), reduction="sum") - 0.5 * torch.sum(1 + m.s(x) - m.u(x).pow(2) - m.s(x).exp())),
    ("log-cosh", LINEAR, PAIRS, lambda m, x, t: (lambda d: d + F.softplus(-2 * d) - 0.6931)(m.a(x) - t).mean()),
    ("charbonnier", LINEAR, PAIRS, lambda m, x, t: torch.sqrt((m.a(x) - t) ** 2 + 1e-6).mean()),
    ("tversky", LINEAR, dict(x=ROWS, y=lambda: labels(2, 6, 4).float()), lambda m, x, y: (lambda p: 1 - (p * y).sum() / ((p * y).sum() + 0.3 * (p * (1 - y)).sum() + 0.7 * ((1 - p) * y).sum()))(m.a(x).sigmoid())),
    ("soft-dice-squared", LINEAR, CLASSES, lambda m, x, y: (lambda p, o: 1 - 2 * (p * o).sum() / (p.square().sum() + o.square().sum() + 1e-5))(m.a(x).softmax(1), F.one_hot(y, 4).float())),
    ("contrastive", LINEAR, SIGNED, lambda m, x, z, y: (lambda d: ((y > 0) * d.pow(2) + (y < 0) * F.relu(1.5 - d).pow(2)).mean())(F.pairwise_distance(m.a(x), m.a(z)))),
    ("supervised-contrastive", LINEAR, dict(x=ROWS, y=lambda: torch.tensor([0, 1, 0, 1, 2, 2])), lambda m, x, y: supervised(F.normalize(m.a(x), dim=1), y)),
    ("list-net", LINEAR, dict(x=ROWS, t=(6, 4)), lambda m, x, t: -(t.softmax(-1) * m.a(x).log_softmax(-1)).sum(-1).mean()),
    ("concordance", lambda: dict(a=nn.Linear(5, 1)), dict(x=ROWS, t=(6, 1)), lambda m, x, t: (lambda h: 1 - 2 * ((h - h.mean()) * (t - t.mean())).mean() / (h.var() + t.var() + (h.mean() - t.mean()) ** 2))(m.a(x))),
    ("cox", lambda: dict(a=nn.Linear(5, 1)), dict(x=ROWS, e=lambda: labels(2, 6).float() + 0.1), lambda m, x, e: -((m.a(x)[:, 0] - torch.logcumsumexp(m.a(x)[:, 0], 0)) * e).sum() / e.sum()),
])  # fmt: skip


def supervised(h, y):
    own = torch.eye(6).bool()
    logits = (h @ h.T / 0.3).masked_fill(own, float("-inf"))
    positive = (y[:, None] == y) & ~own
    log = (logits - logits.logsumexp(1, keepdim=True)).masked_fill(own, 0)
    return -(log * positive).sum(1).div(positive.sum(1)).mean()
