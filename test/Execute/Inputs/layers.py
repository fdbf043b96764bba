"""Writes test/Execute/<op>.mlir of contractions, convolutions, pooling, normalizations, losses, attention, random numbers
and kernels: python layers.py (needs numpy, torch).
"""

import numpy
import torch
import torch.nn.functional as F

from casefile import BF16, Tensor, case, wave, write

INF = numpy.inf
NOTE = "PyTorch's values in f64 (Inputs/layers.py)."


def types(operands, results):
    said = ", ".join(t.type for t in results)
    return "(" + ", ".join(t.type for t in operands) + ") -> " + (said if len(results) == 1 else f"({said})")


def t64(tensor):
    return torch.from_numpy(numpy.ascontiguousarray(tensor.wide)).reshape(tensor.array.shape)


def made(dtype, *values):
    return [Tensor(v.detach().numpy() if isinstance(v, torch.Tensor) else v, dtype) for v in values]


def contractions():
    def dot(name, a, b, ta=False, tb=False, tolerance=None):
        x, z = t64(a), t64(b)
        y = made(a.dtype, torch.matmul(x.mT if ta else x, z.mT if tb else z))
        flags = ", ".join(f for f, on in (("transpose_a", ta), ("transpose_b", tb)) if on)
        return case(name, {"a": a, "b": b}, y, f"%y = nn.dot %a, %b{' {' + flags + '}' if flags else ''} : {types([a, b], y)}", tolerance)

    write("dot", NOTE, dot("plain", wave(3, 5), wave(5, 7)), dot("transpose_a", wave(5, 3), wave(5, 7), True), dot("transpose_b", wave(3, 5), wave(7, 5), False, True),
          dot("transpose_both", wave(2, 5, 3), wave(2, 7, 5), True, True), dot("batches", wave(2, 1, 3, 2), wave(2, 1, 2, 3)), dot("outer", wave(3, 1), wave(1, 5)), dot("inner", wave(1, 19), wave(19, 1)),
          # Products of 16-bit floats are summed in f32 and rounded once.
          dot("half", wave(3, 5, dtype="f16"), wave(5, 2, dtype="f16"), tolerance=0.0), dot("brain", wave(3, 5, dtype=BF16), wave(5, 2, dtype=BF16), tolerance=0.0))  # fmt: skip


def convolutions():
    def padded(x, begin, end):
        return F.pad(x, [p for pair in zip(reversed(begin), reversed(end)) for p in pair])

    def convolution(x, w, strides, begin, end, dilations, groups):
        function = (F.conv1d, F.conv2d, F.conv3d)[x.dim() - 3]
        return function(padded(x, begin, end), w, stride=strides, dilation=dilations, groups=groups)

    shapes = [
        ("plain", (2, 3, 5, 4), (4, 3, 2, 3), [1, 1], [0, 0], [0, 0], [1, 1], 1),
        ("strided", (1, 2, 7, 6), (3, 2, 3, 2), [2, 3], [1, 0], [2, 1], [1, 2], 1),
        ("groups", (1, 4, 3, 3), (4, 2, 2, 2), [1, 1], [1, 1], [0, 0], [1, 1], 2),
        ("depthwise", (1, 3, 4, 4), (3, 1, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1], 3),
        ("line", (2, 2, 9), (3, 2, 3), [2], [2], [1], [2], 1),
        ("volume", (1, 1, 3, 2, 4), (2, 1, 2, 1, 2), [1, 1, 2], [0, 0, 1], [0, 1, 0], [1, 1, 1], 1),
        ("point", (1, 2, 1, 1), (3, 2, 1, 1), [1, 1], [0, 0], [0, 0], [1, 1], 1),
    ]
    files = {"conv": [], "conv_input_grad": [], "conv_filter_grad": []}
    for name, image, kernel, strides, begin, end, dilations, groups in shapes:
        said = f"strides = {strides} pads = {begin}, {end} dilations = {dilations} groups = {groups}"
        a, w = wave(*image), wave(*kernel)
        x, f = t64(a).requires_grad_(), t64(w).requires_grad_()
        y = convolution(x, f, strides, begin, end, dilations, groups)
        out = made("f32", y)
        files["conv"].append(case(name, {"a": a, "b": w}, out, f"%y = nn.conv %a, %b {said} : {types([a, w], out)}"))
        c = wave(*y.shape)  # the cotangent
        dx, df = (made("f32", g) for g in torch.autograd.grad(y, (x, f), t64(c)))
        files["conv_input_grad"].append(case(name, {"a": c, "b": w}, dx, f"%y = nn.conv_input_grad %a, %b {said} : {types([c, w], dx)}"))
        files["conv_filter_grad"].append(case(name, {"a": a, "b": c}, df, f"%y = nn.conv_filter_grad %a, %b {said} : {types([a, c], df)}"))
    for op, cases in files.items():
        write(op, "PyTorch's convolution and its derivatives in f64 (Inputs/layers.py).", *cases)


def pooling():
    def inside(shape, kernel, strides, begin, end, dilations):
        """How many elements of each window lie in the input."""
        ones, weights = torch.ones(1, 1, *shape, dtype=torch.float64), torch.ones(1, 1, *kernel, dtype=torch.float64)
        pads = [p for pair in zip(reversed(begin), reversed(end)) for p in pair]
        return (F.conv1d, F.conv2d)[len(shape) - 1](F.pad(ones, pads), weights, stride=strides, dilation=dilations)

    def windows(x, kernel, strides, begin, end, dilations, fill):
        pads = [p for pair in zip(reversed(begin), reversed(end)) for p in pair]
        x = F.pad(x, pads, value=fill)
        for d, (k, s, dilation) in enumerate(zip(kernel, strides, dilations)):
            x = x.unfold(2 + d, dilation * (k - 1) + 1, s)[..., ::dilation]
        return x.flatten(2 + len(kernel))

    shapes = [
        ("plain", (1, 2, 4, 6), [2, 2], [2, 2], [0, 0], [0, 0], [1, 1]),
        ("overlapping", (2, 1, 5, 4), [3, 2], [1, 2], [1, 1], [1, 0], [1, 1]),
        ("dilated", (1, 1, 7, 5), [2, 3], [2, 1], [0, 1], [1, 1], [3, 2]),
        ("line", (1, 3, 9), [3], [2], [1], [0], [1]),
        ("whole", (1, 2, 3, 1), [3, 1], [1, 1], [0, 0], [0, 0], [1, 1]),
        ("uneven", (1, 2, 11, 9), [5, 2], [2, 3], [2, 1], [1, 0], [1, 1]),
        ("left_over", (1, 1, 9, 7), [4, 2], [4, 2], [0, 0], [0, 0], [1, 1]),
    ]
    files = {"max_pool": [], "max_pool_grad": [], "avg_pool": [], "avg_pool_grad": []}
    for name, image, kernel, strides, begin, end, dilations in shapes:
        said = f"kernel = {kernel} strides = {strides} pads = {begin}, {end} dilations = {dilations}"
        a = wave(*image)
        x = t64(a).requires_grad_()
        largest = windows(x, kernel, strides, begin, end, dilations, -INF).amax(-1)
        y = made("f32", largest)
        files["max_pool"].append(case(name, {"x": a}, y, f"%y = nn.max_pool %x {said} : {types([a], y)}", 0.0))
        c = wave(*largest.shape)
        dx = made("f32", torch.autograd.grad(largest, x, t64(c))[0])
        files["max_pool_grad"].append(case(name, {"x": a, "m": y[0], "d": c}, dx, f"%y = nn.max_pool_grad %x, %m, %d {said} : {types([a, y[0], c], dx)}"))
        for count in (False, True):
            sums = windows(x, kernel, strides, begin, end, dilations, 0.0).sum(-1)
            mean = sums / (numpy.prod(kernel) if count else inside(image[2:], kernel, strides, begin, end, dilations))
            flag, suffix = (" {count_include_pad}", "_count_pad") if count else ("", "")
            y = made("f32", mean)
            files["avg_pool"].append(case(name + suffix, {"x": a}, y, f"%y = nn.avg_pool %x {said}{flag} : {types([a], y)}"))
            dx = made("f32", torch.autograd.grad(mean, x, t64(c))[0])
            files["avg_pool_grad"].append(case(name + suffix, {"d": c}, dx, f"%y = nn.avg_pool_grad %d {said}{flag} : {types([c], dx)}"))
    ties = Tensor([[[1.0, 3.0, 3.0, 3.0, 0.0, -0.0]]], "f32")  # the first of equal elements takes the cotangent, as in PyTorch
    x = t64(ties).requires_grad_()
    y = F.max_pool1d(x, 3, 1)
    c = wave(1, 1, 4)
    out, dx = made("f32", y), made("f32", torch.autograd.grad(y, x, t64(c))[0])
    said = "kernel = [3] strides = [1] pads = [0], [0] dilations = [1]"
    files["max_pool_grad"].append(case("ties", {"x": ties, "m": out[0], "d": c}, dx, f"%y = nn.max_pool_grad %x, %m, %d {said} : {types([ties, out[0], c], dx)}"))
    for op, cases in files.items():
        write(op, NOTE, *cases)


def normalizations():
    for op, function in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):

        def one(name, x, dim, tolerance=None):
            y = made(x.dtype, function(t64(x), dim))
            return case(name, {"x": x}, y, f"%y = nn.{op} %x dim = {dim} : {x.type}", tolerance)

        write(op, NOTE, one("last", wave(3, 7), 1), one("first", wave(5, 3), 0), one("middle", wave(2, 3, 5), 1), one("one", wave(3, 1), 1), one("vector", wave(19), 0),
              one("masked", Tensor([[1.0, -INF, 2.0], [-INF, -INF, 0.5]], "f32"), 1), one("large", Tensor([[1000.0, 999.0, -1000.0]], "f32"), 1),
              # 16-bit: each step in f32, the result rounded once; one unit in the last place where f32's error crosses a tie.
              one("half", wave(3, 7, dtype="f16"), 1, 2.0**-11), one("brain", wave(3, 7, dtype=BF16), 1, 2.0**-8))  # fmt: skip

    def layer_norm(name, shape, axis, dtype="f32", tolerance=None):
        x, scale, bias = wave(*shape, dtype=dtype), wave(*shape[axis:], low=0.5, dtype=dtype), wave(*shape[axis:], low=-1.0, dtype=dtype)
        dims = tuple(range(axis, len(shape)))
        v = t64(x)
        mean, variance = v.mean(dims), v.var(dims, unbiased=False)
        y = made(dtype, F.layer_norm(v, shape[axis:], t64(scale), t64(bias), 1e-2), mean, 1 / torch.sqrt(variance + 1e-2))
        return case(name, {"x": x, "g": scale, "b": bias}, y, f"%y0, %y1, %y2 = nn.layer_norm %x, %g, %b axis = {axis} epsilon = 1.0e-2 : {types([x, scale, bias], y)}", tolerance)

    write("layer_norm", NOTE, layer_norm("rows", (3, 7), 1), layer_norm("two_dims", (2, 3, 5), 1), layer_norm("all", (3, 3), 0), layer_norm("one", (3, 1), 1), layer_norm("brain", (3, 7), 1, BF16, 2.0**-8))

    def rms_norm(name, shape, axis):
        x, scale = wave(*shape), wave(*shape[axis:], low=0.5)
        rstd = 1 / torch.sqrt((t64(x) ** 2).mean(tuple(range(axis, len(shape)))) + 1e-2)
        y = made("f32", F.rms_norm(t64(x), shape[axis:], t64(scale), 1e-2), rstd)
        return case(name, {"x": x, "g": scale}, y, f"%y0, %y1 = nn.rms_norm %x, %g axis = {axis} epsilon = 1.0e-2 : {types([x, scale], y)}")

    write("rms_norm", NOTE, rms_norm("rows", (3, 7), 1), rms_norm("two_dims", (2, 3, 5), 1), rms_norm("all", (3, 3), 0), rms_norm("one", (3, 1), 1))

    def batch_norm(name, *shape):
        x, scale, bias = wave(*shape), wave(shape[1], low=0.5), wave(shape[1], low=-1.0)
        v, dims = t64(x), tuple(d for d in range(len(shape)) if d != 1)
        y = made("f32", F.batch_norm(v, None, None, t64(scale), t64(bias), True, 0.1, 1e-2), v.mean(dims), v.var(dims, unbiased=False))
        return case(name, {"x": x, "g": scale, "b": bias}, y, f"%y0, %y1, %y2 = nn.batch_norm %x, %g, %b epsilon = 1.0e-2 : {types([x, scale, bias], y)}")

    def unbiased_variance(name, *shape):
        x = wave(*shape)
        v, dims = t64(x), tuple(d for d in range(len(shape)) if d != 1)
        variance = made("f32", v.var(dims, unbiased=False))[0]
        y = made("f32", v.var(dims, unbiased=v.numel() > shape[1]))
        return case(name, {"v": variance, "x": x}, y, f"%y = nn.unbiased_variance %v, %x : {types([variance, x], y)}")

    write("unbiased_variance", NOTE, unbiased_variance("vectors", 5, 3), unbiased_variance("images", 2, 2, 3, 3), unbiased_variance("one", 1, 3))
    write("batch_norm", NOTE, batch_norm("vectors", 5, 3), batch_norm("lines", 2, 3, 5), batch_norm("images", 2, 2, 3, 3), batch_norm("one_channel", 3, 1, 2))


def losses():
    def cross_entropy(name, x, labels, weights=None, ignore=None):
        logits, target = t64(x), torch.from_numpy(labels.array.astype(numpy.int64))
        loss = F.cross_entropy(logits, target, None if weights is None else t64(weights), ignore_index=-100 if ignore is None else ignore, reduction="none")
        y = made("f32", loss, torch.logsumexp(logits, 1))
        operands = {"x": x, "t": labels} | ({} if weights is None else {"w": weights})
        said = ("" if weights is None else " weights %w") + ("" if ignore is None else f" ignore_index = {ignore}")
        return case(name, operands, y, f"%y0, %y1 = nn.softmax_cross_entropy %x, %t{said} : {types(operands.values(), y)}")

    labels = Tensor([2, 0, 4], "i64")
    write("softmax_cross_entropy", NOTE, cross_entropy("rows", wave(3, 5), labels), cross_entropy("images", wave(2, 3, 2, 2), Tensor([[[0, 1], [2, 1]], [[1, 1], [0, 2]]], "i64")),
          cross_entropy("weights", wave(3, 5), labels, wave(5, low=0.2)), cross_entropy("ignored", wave(3, 5), Tensor([2, -100, 4], "i64"), None, -100),
          cross_entropy("ignored_class", wave(3, 5), Tensor([2, 1, 1], "i32"), wave(5, low=0.2), 1), cross_entropy("one_class", wave(3, 1), Tensor([0, 0, 0], "i64")),
          cross_entropy("large", Tensor([[1000.0, -1000.0, 998.0]], "f32"), Tensor([2], "i64")))  # fmt: skip

    def attention(name, q, k, v, mask=None, scale=0.5, causal=False):
        shared = q[1] // k[1]
        a, b, c = wave(*q), wave(*k, low=-1.5), wave(*v, low=-1.0)
        scores = scale * t64(a) @ t64(b).repeat_interleave(shared, 1).mT
        if mask is not None:
            scores = scores + t64(mask)
        if causal:
            scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -INF)
        y = made("f32", torch.softmax(scores, -1) @ t64(c).repeat_interleave(shared, 1), torch.logsumexp(scores, -1))
        operands = {"q": a, "k": b, "v": c} | ({} if mask is None else {"m": mask})
        said = ("" if mask is None else " mask %m") + f" scale = {scale}" + (" causal" if causal else "")
        return case(name, operands, y, f"%y0, %y1 = nn.attention %q, %k, %v{said} : {types(operands.values(), y)}")

    # Padding as programs hide it: a number that takes up every score, so that a row of nothing else sees all alike.
    HIDDEN = float(numpy.finfo(numpy.float32).min)

    def attention_grad(name, q, k, v, mask=None, scale=0.5, causal=False):
        shared = q[1] // k[1]
        a, b, c = wave(*q), wave(*k, low=-1.5), wave(*v, low=-1.0)
        x, y, z = (t64(t).requires_grad_() for t in (a, b, c))
        scores = scale * x @ y.repeat_interleave(shared, 1).mT
        if mask is not None:
            scores = scores + t64(mask)
        if causal:
            scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -INF)
        o = torch.softmax(scores, -1) @ z.repeat_interleave(shared, 1)
        d = wave(*o.shape, low=-0.5)
        results = made("f32", *torch.autograd.grad(o, (x, y, z), t64(d)))
        kept, sums = made("f32", o, torch.logsumexp(scores, -1))
        operands = {"q": a, "k": b, "v": c, "o": kept, "lse": sums, "d": d} | ({} if mask is None else {"m": mask})
        said = ("" if mask is None else " mask %m") + f" scale = {scale}" + (" causal" if causal else "")
        return case(name, operands, results, f"%y0, %y1, %y2 = nn.attention_grad %q, %k, %v, %o, %lse, %d{said} : {types(operands.values(), results)}")

    write("attention_grad", NOTE, attention_grad("plain", (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 3)), attention_grad("causal", (2, 1, 4, 2), (2, 1, 4, 2), (2, 1, 4, 2), causal=True),
          attention_grad("shared_heads", (1, 4, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2)), attention_grad("mask", (1, 2, 3, 2), (1, 2, 4, 2), (1, 2, 4, 2), wave(1, 1, 3, 4)),
          attention_grad("hidden", (2, 2, 2, 2), (2, 2, 3, 2), (2, 2, 3, 2), Tensor(numpy.array([0, HIDDEN, 0] + [HIDDEN] * 3).reshape(2, 1, 1, 3), "f32")))  # fmt: skip

    write("attention", NOTE, attention("plain", (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 3)), attention("causal", (2, 1, 4, 2), (2, 1, 4, 2), (2, 1, 4, 2), causal=True),
          attention("shared_heads", (1, 4, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2)), attention("mask", (1, 2, 3, 2), (1, 2, 4, 2), (1, 2, 4, 2), wave(1, 1, 3, 4)),
          attention("padding", (2, 1, 2, 3), (2, 1, 3, 3), (2, 1, 3, 1), Tensor(numpy.array([0, 0, -INF, 0, -INF, 0]).reshape(2, 1, 1, 3), "f32")), attention("one", (1, 1, 1, 2), (1, 1, 1, 2), (1, 1, 1, 2)))  # fmt: skip


def philox(counter, key):
    """Philox4x32-10 as Salmon et al. (SC 2011) print it; checked against their known answers below."""
    for _ in range(10):
        p0, p1 = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [(p1 >> 32) ^ counter[1] ^ key[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ counter[3] ^ key[1], p0 & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
assert philox([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0]) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def random_numbers():
    def uniform(name, shape, seed, step, row, op, dim, dtype="f32"):
        low, high = (lambda v: v & 0xFFFFFFFF), (lambda v: v >> 32 & 0xFFFFFFFF)
        per_sample = numpy.prod([n for d, n in enumerate(shape) if d != dim], dtype=int)
        y = numpy.zeros(shape)
        for place in numpy.ndindex(*shape):
            position = 0
            for d, i in enumerate(place):
                position = position if d == dim else position * shape[d] + i
            element = ((row + place[dim]) if dim >= 0 else 0) * int(per_sample) + position
            y[place] = (philox([low(element), high(element), low(step), op], [low(seed), high(seed)])[0] >> 8) / 2**24
        inputs = {n: Tensor(v, "i64") for n, v in (("seed", seed), ("step", step), ("row", row))}
        out = Tensor(y, dtype)
        return case(name, inputs, [out], f"%y = nn.random_uniform %seed, %step, %row op = {op} batch_dim = {dim} : {types(inputs.values(), [out])}", 0.0)

    write("random_uniform", "Philox4x32-10, checked against its authors' known answers (Inputs/layers.py).", uniform("zero", (1,), 0, 0, 0, 0, 0), uniform("batch", (3, 5), 1234, 7, 6, 3, 0),
          uniform("heads", (2, 3, 2), 2**40 + 1, 1, 4, 9, 1), uniform("no_batch", (7,), 5, 2, 100, 1, -1), uniform("far", (2, 2), -1, 2**31, 2**33, 2, 0), uniform("double", (3,), 1, 1, 1, 1, 0, "f64"))  # fmt: skip


def kernels():
    x, w = wave(3, 5), wave(5, low=0.5)
    product = x.wide * w.wide
    y = made("f32", product, product.sum(1))

    def kernel(name, emitter):
        body = f"""%y0, %y1 = nn.kernel {emitter} (%a = %x, %b = %w) : {types([x, w], y)} {{
  %s = nn.broadcast %b dims = [1] : {w.type} -> {x.type}
  %p = nn.mul %a, %s : {x.type}
  %r = nn.reduce_sum %p dims = [1] : {x.type} -> {y[1].type}
  nn.yield %p, %r : {x.type}, {y[1].type}
}}"""
        return case(name, {"x": x, "w": w}, y, body.splitlines())

    write("kernel", "Ops in one kernel compute what they compute alone: NumPy's values (Inputs/layers.py).", kernel("row", "row"))


if __name__ == "__main__":
    contractions()
    convolutions()
    pooling()
    normalizations()
    losses()
    random_numbers()
    kernels()
