"""Writes test/Execute/cast-narrow.mlir: f32 rounded to bf16 and f16 and back, bit for bit as PyTorch rounds.

    python casts.py    (needs torch, numpy)
"""

import pathlib
import struct

import numpy as np
import torch

FOLDER = pathlib.Path(__file__).resolve().parents[1]


def bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def interesting():
    """Bit patterns of f32 numbers on and beside every boundary."""
    # Ties and their neighbours in bf16: below the kept bits stands exactly a half, one less, one more.
    found = []
    for kept in (0x3F80, 0x3F81, 0x4049, 0x0001, 0x0080, 0x7F7E, 0x7F7F, 0x0000):
        found += [(kept << 16) + low for low in (0x0000, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]
    # The same for f16 (13 bits are lost), at 1, 1 + 2^-10, the largest, the smallest normal number.
    for base in (bits(1.0), bits(1.0 + 2.0**-10), bits(65504.0), bits(2.0**-14), bits(2.0**-14 - 2.0**-24)):
        found += [base, base + 0x0FFF, base + 0x1000, base + 0x1001, base + 0x1FFF]
    # Subnormal in f16, and what rounds to its smallest number or to nothing.
    found += [bits(v) for v in (2.0**-24, 2.0**-25, 1.5 * 2.0**-25, 2.0**-26, 3.0 * 2.0**-25, 1023.5 * 2.0**-24, 65519.996, 65520.0)]
    # Infinities, quiet and signalling NaN, zeros, the smallest and largest f32.
    found += [0x7F800000, 0x7FC00000, 0x7F800001, 0x7FFFFFFF, 0x00000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF]
    random = np.random.default_rng(7)
    found += [int(v) & 0x7FFFFFFF for v in random.integers(0, 1 << 31, 48)]
    found += [bits(float(v)) & 0x7FFFFFFF for v in np.abs(random.normal(size=24) * np.exp(random.normal(size=24) * 6))]
    return np.array(found + [v | 0x80000000 for v in found], np.uint32)


def literal(words, digits, kind):
    return "dense<[" + ", ".join(f"0x{int(w):0{digits}X}" for w in words) + f"]> : tensor<{len(words)}x{kind}>"


def main():
    words = interesting()
    source = torch.from_numpy(words.view(np.float32).copy())
    n = len(words)
    lines = ["// RUN: lowtide-execute %s", "// To nearest, ties to even, bit for bit; the values are PyTorch's (Inputs/casts.py).", ""]
    for kind, dtype in (("bf16", torch.bfloat16), ("f16", torch.float16)):
        rounded = source.to(dtype)
        narrow = rounded.view(torch.int16).numpy().view(np.uint16)
        back = rounded.float().numpy().view(np.uint32)
        lines += [
            f"func.func @{kind}(%x: tensor<{n}xf32> {{test.value = {literal(words, 8, 'f32')}}})",
            f"    -> (tensor<{n}x{kind}> {{test.value = {literal(narrow, 4, kind)}, test.tolerance = 0.0}},",
            f"        tensor<{n}xf32> {{test.value = {literal(back, 8, 'f32')}, test.tolerance = 0.0}}) {{",
            f"  %y = nn.cast %x : tensor<{n}xf32> -> tensor<{n}x{kind}>",
            f"  %z = nn.cast %y : tensor<{n}x{kind}> -> tensor<{n}xf32>",
            f"  return %y, %z : tensor<{n}x{kind}>, tensor<{n}xf32>",
            "}",
            "",
        ]
    (FOLDER / "cast-narrow.mlir").write_text("\n".join(lines))


main()
