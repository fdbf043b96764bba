"""Writes test/Execute/<op>.mlir of the ops that store numbers in 8 or 16 bits, or average them: python codes.py (needs torch, torchao).

Codes are torchao's, on a CPU: at every number of a map, between neighbours and at one unit in the last place around both,
at denormals, zeros, infinities and NaN.
"""

import numpy
import torch
from casefile import BF16, Tensor, case, write
from layers import philox
from torchao.optim import quant_utils, subclass_fp8

NOTE = "Codes of torchao 0.18 on a CPU (Inputs/codes.py)."
F32 = numpy.float32


def neighbours(x):
    x = x.astype(F32)
    return numpy.concatenate([x, numpy.nextafter(x, F32(numpy.inf)), numpy.nextafter(x, F32(-numpy.inf))])


def edges(numbers):
    """Every number, every tie, and what lies next to them."""
    middle = (numbers[1:].astype(numpy.float64) + numbers[:-1].astype(numpy.float64)) / 2
    rare = numpy.array([0.0, -0.0, 1e-45, -1e-45, 1.1754942e-38, numpy.inf, -numpy.inf, numpy.nan, 3.4e38, -3.4e38, 1e-12], F32)
    return numpy.concatenate([neighbours(numbers), neighbours(middle), rare])


def dynamic(signed):
    return numpy.array(quant_utils.create_dynamic_map(signed), F32)


def e4m3_numbers():
    return torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float().numpy()


def to_code(name, x, codes):
    x, y = Tensor(x.astype(F32)), Tensor(codes.astype(numpy.uint8))
    return case(name, {"x": x}, [y], f"%y = nn.to_code {name} %x : {x.type} -> {y.type}")


def from_code(name, numbers):
    x, y = Tensor(numpy.arange(256, dtype=numpy.uint8)), Tensor(numbers.astype(F32))
    return case(name, {"x": x}, [y], f"%y = nn.from_code {name} %x : {x.type} -> {y.type}", 0.0)


def codes():
    cases = []
    for signed in (True, False):
        x = edges(dynamic(signed))
        made = quant_utils.quantize_8bit_with_qmap(torch.from_numpy(x), torch.from_numpy(dynamic(signed)))
        cases.append(to_code("dynamic_signed" if signed else "dynamic_unsigned", x, made.numpy()))
    finite = numpy.unique(e4m3_numbers()[numpy.isfinite(e4m3_numbers())])
    x = edges(finite)
    x = x[~(numpy.abs(x) > 448)]  # what torch makes of larger ones differs between its releases; scales never leave them
    cases.append(to_code("e4m3", x, torch.from_numpy(x).to(torch.float8_e4m3fn).view(torch.uint8).numpy()))
    write("to_code", NOTE, *cases)
    write("from_code", NOTE, *(from_code(n, m) for n, m in (("dynamic_signed", dynamic(True)), ("dynamic_unsigned", dynamic(False)), ("e4m3", e4m3_numbers()))))


def blocks(signed):
    """Blocks of normal numbers, of few, of none, of denormals and one full of one number."""
    generator = numpy.random.default_rng(7)
    x = generator.standard_normal((6, 256)).astype(F32) * numpy.array([[1], [1e-9], [1e4], [0], [1e-40], [0]], F32)
    x[5] = 0.125
    x[0, 3:9] = 0
    return x if signed else x * x


def codec(name):
    encode, decode = [], []
    for signed in (True, False):
        x = torch.from_numpy(blocks(signed))
        if name == "int8":
            qmap = torch.from_numpy(dynamic(signed))
            scaled, scale = quant_utils.scale_tensor(x.view(-1), 256)
            made = quant_utils.quantize_8bit_with_qmap(scaled, qmap).view(x.shape)
            back = quant_utils.dequant_with_qmap(made.view(-1), qmap, scale).view(x.shape)
        else:
            made, scale = subclass_fp8.quantize_fp8(x.view(-1), 256)
            made = made.view(x.shape)
            back, made = made.float() * scale.view(-1, 1), made.view(torch.uint8)
        x, made, scale, back = (Tensor(t.numpy()) for t in (x, made, scale, back))
        said = "" if signed else " {non_negative}"
        parts = f"{made.type}, {scale.type}"
        label = "signed" if signed else "non_negative"
        encode.append(case(label, {"x": x}, [made, scale], f"%y0, %y1 = train.encode_{name} %x{said} : ({x.type}) -> ({parts})", [None, 1e-7]))
        decode.append(case(label, {"codes": made, "scale": scale}, [back], f"%y = train.decode_{name} %codes, %scale{said} : ({parts}) -> {x.type}", 1e-7))
    write(f"train-encode_{name}", NOTE, *encode)
    write(f"train-decode_{name}", NOTE, *decode)


def halves():
    """bits(x) + draw, cut off, for draws at which the result changes; the rule is that of torchao's _fp32_to_bf16_sr."""
    bits = numpy.array([0x3F800000, 0x3F800001, 0x3F80FFFF, 0x3F808000, 0xBF808000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x80000001,
                        0x007FFFFF, 0x42F6E979, 0xC2F6E979], numpy.uint32)  # fmt: skip
    draws = numpy.array([0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x1687], numpy.uint32)
    x, draw = (a.reshape(-1) for a in numpy.meshgrid(bits, draws, indexing="ij"))
    fraction, low = x & 0xFFFF, x & numpy.uint32(0xFFFF0000)
    y = numpy.where((0x10000 - draw.astype(numpy.int64)) <= fraction.astype(numpy.int64), low + numpy.uint32(0x10000), low).astype(numpy.uint32)
    y = numpy.where(numpy.isfinite(x.view(F32)), y, x).astype(numpy.uint32)
    x, draw, y = Tensor(x.view(F32)), Tensor(draw.astype(numpy.int32)), Tensor(y.view(F32), BF16)
    write("stochastic_half", "The integer rule, written out in NumPy (Inputs/codes.py).",
          case("edges", {"x": x, "draw": draw}, [y], f"%y = nn.stochastic_half %x, %draw : ({x.type}, {draw.type}) -> {y.type}", 0.0))  # fmt: skip
    x = Tensor(blocks(True)[:3, :7])
    y = Tensor(torch.from_numpy(x.array).bfloat16().float().numpy(), BF16)
    note = "PyTorch's casts (Inputs/codes.py)."
    write("train-encode_bf16", note, case("rounded", {"x": x}, [y], f"%y = train.encode_bf16 %x : ({x.type}) -> {y.type}", 0.0))
    for name in ("bf16", "sr"):
        wide = Tensor(y.array, "f32")
        write(f"train-decode_{name}", note, case("widened", {"x": y}, [wide], f"%y = train.decode_{name} %x : ({y.type}) -> {wide.type}", 0.0))


def masters():
    """The halves of a split master: at ties, next to them, where rounding reaches infinity, at denormals and NaN.
    test/EndToEnd/Inputs/split_master.py looks at every upper half, and at what NaN carries."""
    bits = numpy.array([0, 0x80000000, 0x3F800000, 0x3F807FFF, 0x3F808000, 0x3F808001, 0x3F818000, 0xBF808000, 0xBF818000, 0x7F7F7FFF, 0x7F7F8000, 0x7F7FFFFF,
                        0xFF7F8000, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x80000001, 0x7FFF, 0x8000, 0x807FFFFF,
                        0x42F6E979], numpy.int64)  # fmt: skip
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    high = numpy.where(nan, bits, bits + 0x8000) >> 16 << 16
    low = (bits - high).astype(numpy.int64).astype(numpy.uint16).view(numpy.int16)
    x, high, low = Tensor(bits.astype(numpy.uint32).view(F32)), Tensor(high.astype(numpy.uint32).view(F32), BF16), Tensor(low)
    note = "Integer arithmetic on bits, in NumPy (Inputs/codes.py)."
    write("high_half", note, case("edges", {"x": x}, [high], f"%y = nn.high_half %x : ({x.type}) -> {high.type}", 0.0))
    write("low_half", note, case("edges", {"x": x}, [low], f"%y = nn.low_half %x : ({x.type}) -> {low.type}"))
    parts = {"high": high, "low": low}
    for op, name in (("join_halves", "nn.join_halves"), ("train-decode_split", "train.decode_split")):
        write(op, note, case("edges", parts, [x], f"%y = {name} %high, %low : ({high.type}, {low.type}) -> {x.type}", 0.0))
    write("train-encode_split", note, case("edges", {"x": x}, [high, low], f"%y0, %y1 = train.encode_split %x : ({x.type}) -> ({high.type}, {low.type})", [0.0, None]))
    for name in ("encode", "decode"):
        write(f"train-{name}_whole", note, case("edges", {"x": x}, [x], f"%y = train.{name}_whole %x : ({x.type}) -> {x.type}", 0.0))


def averages():
    """train.moving_average: torch.lerp, in f64, of both its forms; the first update copies."""
    average, now = (torch.tensor([[0.5, -1.25, 3.0], [1e-3, 0.0, -7.5]], dtype=torch.float64), torch.tensor([[0.75, -1.0, -2.0], [1e3, 1.0, -7.5]], dtype=torch.float64))
    cases = []
    for label, decay, updates in (("slow", 0.999, 7), ("fast", 0.25, 1), ("first", 0.999, 0)):
        moved = torch.lerp(average, now, 1 - decay) if updates else now
        inputs = {"average": Tensor(average.float().numpy()), "now": Tensor(now.float().numpy()), "updates": Tensor(numpy.int64(updates))}
        result = Tensor(moved.float().numpy())
        kinds = ", ".join(t.type for t in inputs.values())
        cases.append(case(label, inputs, [result], f"%y = train.moving_average %average to %now updates %updates {{decay = {decay}}} : ({kinds}) -> {result.type}", 1e-6 if updates else 0.0))
    write("train-moving_average", "torch.lerp (Inputs/codes.py).", *cases)


def draws():
    """train.encode_sr: the upper 16 bits of Philox's first word; key: the seed, counter: element, step and stream."""
    shape, seed, step, stream = (3, 5), 2**33 + 7, 11, 2**31 + 4
    x = numpy.random.default_rng(3).standard_normal(shape).astype(F32)
    low, high = (lambda v: v & 0xFFFFFFFF), (lambda v: v >> 32 & 0xFFFFFFFF)
    words = [philox([low(e), high(e), low(step), low(stream)], [low(seed), high(seed)])[0] for e in range(x.size)]
    rounded = (x.view(numpy.uint32) + (numpy.array(words, numpy.uint32) >> 16).reshape(shape)) & numpy.uint32(0xFFFF0000)
    y = Tensor(rounded.astype(numpy.uint32).view(F32), BF16)
    inputs = {"x": Tensor(x), "seed": Tensor(numpy.int64(seed)), "step": Tensor(numpy.int64(step))}
    write("train-encode_sr", "Philox4x32-10 and the integer rule (Inputs/codes.py).",
          case("drawn", inputs, [y], f"%y = train.encode_sr %x, %seed, %step {{stream = {stream}}} : ({', '.join(t.type for t in inputs.values())}) -> {y.type}", 0.0))  # fmt: skip


if __name__ == "__main__":
    codes()
    codec("int8")
    codec("fp8")
    halves()
    masters()
    averages()
    draws()
