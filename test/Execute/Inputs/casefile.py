"""Executed examples as text: arrays become literals, a case becomes a function that `lowtide-execute` runs.

The modules beside this one (elementwise.py, tensors.py, layers.py) hold the cases and write test/Execute/<op>.mlir; their
expected values are computed by NumPy and PyTorch in f64 from the stated inputs, then rounded once to the result's type.
"""

import pathlib

import numpy
import torch

FOLDER = pathlib.Path(__file__).resolve().parents[1]
BF16 = "bf16"
NAMES = {"float64": "f64", "float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "ui8",
         "uint16": "ui16", "uint32": "ui32", "uint64": "ui64", "bool": "i1"}  # fmt: skip


class Tensor:
    """An array with the name of its element type; bf16, which NumPy lacks, is kept in f32."""

    def __init__(self, array, dtype=None):
        array = numpy.asarray(array)
        self.dtype = dtype or NAMES[array.dtype.name]
        self.array = rounded(array, self.dtype)

    @property
    def type(self):
        return "tensor<" + "".join(f"{d}x" for d in self.array.shape) + self.dtype + ">"

    @property
    def wide(self):
        """The elements as f64 (integers: i64), for an oracle to compute with."""
        return self.array.astype(numpy.float64 if self.array.dtype.kind == "f" else numpy.int64 if self.array.dtype.kind in "iu" else bool)

    @property
    def literal(self):
        def text(a):
            return "[" + ", ".join(map(text, a)) + "]" if a.ndim else number(a[()], self.dtype)

        return f"dense<{text(self.array) if self.array.size else ''}> : {self.type}"


def rounded(array, dtype):
    """`array` rounded once, to nearest, to the named type."""
    array = numpy.asarray(array)
    with numpy.errstate(over="ignore", invalid="ignore"):
        if dtype == BF16:
            # PyTorch goes through f32; made odd where it is inexact, that second rounding gives what one would have given.
            wide, single = array.astype(numpy.float64), array.astype(numpy.float32)
            single = numpy.where(numpy.abs(single) > numpy.abs(wide), numpy.nextafter(single, numpy.float32(0)), single)
            odd = numpy.ascontiguousarray(single).view(numpy.uint32) | (single != wide)
            return torch.from_numpy(odd.astype(numpy.uint32).view(numpy.float32)).to(torch.bfloat16).float().numpy().reshape(array.shape)
        return array.astype({v: k for k, v in NAMES.items()}[dtype])


SPECIAL = {"f64": ("0x7FF0000000000000", "0xFFF0000000000000", "0x7FF8000000000000"), "f32": ("0x7F800000", "0xFF800000", "0x7FC00000"),
           "f16": ("0x7C00", "0xFC00", "0x7E00"), "bf16": ("0x7F80", "0xFF80", "0x7FC0")}  # fmt: skip


def number(value, dtype):
    """An element as MLIR reads it."""
    if dtype == "i1":
        return "true" if value else "false"
    if dtype[0] in "iu":
        return str(int(value))
    if not numpy.isfinite(value):
        return SPECIAL[dtype][2 if numpy.isnan(value) else int(value < 0)]
    text = numpy.format_float_scientific(value, unique=True, trim="0", exp_digits=1)
    mantissa, exponent = text.split("e")
    if -5 < int(exponent) < 7:
        return numpy.format_float_positional(value, unique=True, trim="0")
    return f"{mantissa}e{exponent}"


def wave(*shape, low=-2.0, high=2.0, dtype="f32", digits=2):
    """Numbers with few digits, spread over [low, high] and out of order; no two neighbours alike."""
    count = int(numpy.prod(shape))
    steps = (numpy.arange(count) * 0.6180339887498949 + 0.17) % 1.0
    return Tensor(numpy.round(low + (high - low) * steps, digits).reshape(shape), dtype)


def case(name, inputs, results, body, tolerance=None):
    """One function. `inputs`: name -> Tensor; `results`: Tensors; `body`: lines that define %y (several: %y0, %y1 …).

    `tolerance` (relative above 1, absolute below) is 1e-6 when not given; the reasons for others stand beside the cases.
    """
    arguments = ",\n    ".join(f"%{n}: {t.type} {{test.value = {t.literal}}}" for n, t in inputs.items())
    names = ["%y"] if len(results) == 1 else [f"%y{i}" for i in range(len(results))]
    tolerances = tolerance if isinstance(tolerance, (list, tuple)) else [tolerance] * len(results)
    said = ["" if t is None else f", test.tolerance = {number(numpy.float64(t), 'f64')}" for t in tolerances]
    outs = ",\n        ".join(f"{t.type} {{test.value = {t.literal}{s}}}" for t, s in zip(results, said))
    types = ", ".join(t.type for t in results)
    body = "\n".join("  " + line for line in ([body] if isinstance(body, str) else body))
    return f"func.func @{name}({arguments})\n    -> ({outs}) {{\n{body}\n  return {', '.join(names)} : {types}\n}}\n"


def write(op, note, *cases):
    """Writes test/Execute/<op>.mlir."""
    text = f"// RUN: lowtide-execute %s\n// {note}\n\n" + "\n".join(cases)
    (FOLDER / f"{op}.mlir").write_text(text)
