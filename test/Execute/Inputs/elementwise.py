"""Writes test/Execute/<op>.mlir of the elementwise ops: python elementwise.py (needs numpy, torch).

Each function at an odd length with the values at which it is special, at rank 0, with dimensions of extent 1, in f64, and
in a 16-bit type (rounded once, so exact). Integers where the op takes them.
"""

import numpy
import torch

from casefile import BF16, Tensor, case, wave, write

INF, NAN = numpy.inf, numpy.nan
NOTE = "NumPy's and PyTorch's values (Inputs/elementwise.py)."


def oracle(function, *operands):
    """A NumPy or PyTorch function on f64 (integers: i64)."""
    with numpy.errstate(all="ignore"):
        if getattr(function, "__module__", "").startswith("torch") or type(function).__name__ == "builtin_function_or_method":
            return numpy.asarray(function(*(torch.from_numpy(numpy.ascontiguousarray(o)).reshape(o.shape) for o in operands)))
        return numpy.asarray(function(*operands))


def unary(op, function, special, low=-3.0, high=3.0, attributes="", precise=True):
    """Cases of a float function of one operand; `special` are the values at its edges."""

    def one(name, x, tolerance=None):
        y = Tensor(oracle(function, x.wide), x.dtype)
        return case(name, {"x": x}, [y], f"%y = nn.{op} %x{attributes} : {x.type}", tolerance)

    # One vector of eight and a rest; 16-bit results are f32 results rounded once, at most a tie away from the truth rounded once.
    odd = Tensor(numpy.concatenate([special, wave(13 - len(special), low=low, high=high).array]), "f32")
    write(
        op, NOTE, one("odd", odd), one("scalar", wave(low=low, high=high)), one("ones", wave(1, 3, 1, low=low, high=high)),
        one("double", wave(5, low=low, high=high, dtype="f64"), 1e-14 if precise else 1e-12),
        one("half", wave(9, low=low, high=high, dtype="f16"), 0.0), one("brain", wave(9, low=low, high=high, dtype=BF16), 0.0),
    )  # fmt: skip


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def unaries():
    edges = [0.0, -0.0, INF, -INF, NAN]
    unary("exp", numpy.exp, [0.0, -0.0, -INF, NAN, 20.0])
    unary("expm1", numpy.expm1, [0.0, -INF, NAN, 1e-6, -1e-6, 20.0])
    unary("log", numpy.log, [0.0, INF, -1.0, NAN, 1.0, 1e-20], 0.1, 9.0)
    unary("log1p", numpy.log1p, [0.0, -1.0, INF, NAN, 1e-6], -0.9, 9.0)
    unary("sqrt", numpy.sqrt, [0.0, INF, -1.0, NAN, 4.0], 0.1, 9.0)
    unary("rsqrt", lambda x: 1 / numpy.sqrt(x), [0.0, INF, -1.0, NAN, 4.0], 0.1, 9.0)
    unary("reciprocal", lambda x: 1 / x, edges, 0.1, 9.0)
    unary("erf", torch.special.erf, [*edges, 1e-6, 5.0])
    unary("sin", numpy.sin, [0.0, -0.0, INF, NAN, 1000.0, -31.5])
    unary("cos", numpy.cos, [0.0, -0.0, INF, NAN, 1000.0, -31.5])
    unary("tan", numpy.tan, [0.0, -0.0, INF, NAN, 31.5], -1.3, 1.3)
    unary("asin", numpy.arcsin, [0.0, 1.0, -1.0, 1.5, NAN], -0.9, 0.9)
    unary("acos", numpy.arccos, [0.0, 1.0, -1.0, 1.5, NAN], -0.9, 0.9)
    unary("atan", numpy.arctan, edges)
    unary("sinh", numpy.sinh, [*edges, 1e-5, 12.0])
    unary("cosh", numpy.cosh, [*edges, 12.0])
    unary("tanh", numpy.tanh, [*edges, 1e-5, 15.0])
    unary("asinh", numpy.arcsinh, [*edges, 1e-5, 1e4])
    unary("acosh", numpy.arccosh, [1.0, INF, 0.5, NAN, 1e4], 1.1, 9.0)
    unary("atanh", numpy.arctanh, [0.0, 1.0, -1.0, 1.5, NAN, 1e-5], -0.9, 0.9)
    unary("floor", numpy.floor, [*edges, 2.0, -0.5])
    unary("ceil", numpy.ceil, [*edges, 2.0, -0.5])
    unary("round", numpy.round, [*edges, 0.5, 1.5, 2.5, -0.5])
    unary("relu", lambda x: numpy.maximum(x, 0), edges)
    unary("sigmoid", sigmoid, [0.0, INF, -INF, NAN, 30.0, -30.0])
    unary("gelu", torch.nn.functional.gelu, [0.0, NAN, 9.0, -9.0])
    unary("gelu_tanh", lambda x: torch.nn.functional.gelu(torch.from_numpy(x), approximate="tanh").numpy(), [0.0, NAN, 9.0, -9.0])
    unary("silu", lambda x: x * sigmoid(x), [0.0, NAN, 30.0, -30.0])
    unary("softplus", lambda x: numpy.logaddexp(x, 0), [0.0, INF, -INF, NAN, 100.0, -100.0])
    unary("elu", lambda x: numpy.where(x > 0, x, 0.75 * numpy.expm1(x)), [0.0, INF, -INF, NAN], attributes=" {alpha = 0.75}")


def signed():
    """neg, abs, sign: floats and integers, the smallest integer and unsigned ones among them."""
    x = Tensor([0.0, -0.0, INF, -INF, NAN, 1.5, -2.5, 1e-40, -1e-40], "f32")
    i = Tensor([0, 1, -1, 127, -128, 5, -7], "i8")
    u = Tensor([0, 1, 128, 255, 200], "ui8")
    wide = Tensor([[2**40 + 1], [-(2**40)], [0]], "i64")
    b = wave(3, 1, dtype=BF16)
    for op, function in (("neg", numpy.negative), ("abs", numpy.abs), ("sign", numpy.sign)):

        def one(name, t):
            return case(name, {"x": t}, [Tensor(function(t.array).astype(t.array.dtype), t.dtype)], f"%y = nn.{op} %x : {t.type}", 0.0)

        write(op, NOTE, one("floats", x), one("scalar", wave()), one("brain", b), one("bytes", i), one("integers", wide),
              *([one("unsigned", u)] if op != "neg" else []))  # fmt: skip


def binary(op, function, pairs, integers=(), tolerance=0.0, half=True):
    """`pairs`: two lists of f32 with the edges; `integers`: (type, a, b)."""

    def one(name, a, b, tol):
        with numpy.errstate(all="ignore"):
            exact = a.dtype[0] in "iu"
            y = function(a.array, b.array) if exact else function(a.wide, b.wide)
        return case(name, {"a": a, "b": b}, [Tensor(numpy.asarray(y).astype(a.array.dtype) if exact else y, a.dtype)], f"%y = nn.{op} %a, %b : {a.type}", tol)

    a, b = (Tensor(p, "f32") for p in pairs) if pairs else (None, None)
    cases = []
    if pairs:
        low = 0.2 if op == "pow" else -4.0
        cases += [one("odd", a, b, tolerance), one("scalar", wave(low=low), wave(low=0.3), tolerance),
                  one("ones", wave(1, 5, 1, low=low), wave(1, 5, 1, low=0.3), tolerance), one("double", wave(5, low=low, dtype="f64"), wave(5, low=0.3, dtype="f64"), 1e-15)]  # fmt: skip
        if half:
            cases += [one("half", wave(9, low=low, dtype="f16"), wave(9, low=0.3, dtype="f16"), 0.0),
                      one("brain", wave(9, low=low, dtype=BF16), wave(9, low=0.3, dtype=BF16), 0.0)]  # fmt: skip
    for dtype, x, y in integers:
        cases.append(one(f"{dtype}", Tensor(x, dtype), Tensor(y, dtype), None))
    write(op, NOTE, *cases)


def binaries():
    a = [1.5, -2.25, 0.0, -0.0, INF, INF, -INF, NAN, 1.0, 1e30, 3.0]
    b = [2.5, 0.5, -0.0, 0.0, 1.0, -INF, 2.0, 1.0, NAN, 1e30, -3.0]
    signed_pair = ("i32", [7, -7, 7, -7, 2**31 - 1, -(2**31), 0], [2, 2, -2, -2, 1, 3, 5])
    unsigned = ("ui8", [200, 255, 7, 0, 128], [100, 1, 2, 3, 127])
    # f32 sums, differences, products and quotients are rounded once, as the f64 truth is: equal but for what f64 rounds first.
    for op, function in (("add", numpy.add), ("sub", numpy.subtract), ("mul", numpy.multiply)):
        last = a[:9] + [1e15, 3.0], b[:9] + [1e15, -3.0]
        binary(op, function, last, [signed_pair, unsigned, ("i64", [2**62, -5], [1, 6])], 1e-7)
    divide = lambda x, y: numpy.trunc(x / y) if x.dtype.kind in "iu" else x / y  # noqa: E731
    binary("div", divide, ([1.5, -2.25, 1.0, -1.0, 0.0, INF, NAN, 1.0, 7.0], [2.5, 0.5, 0.0, 0.0, 0.0, 2.0, 1.0, INF, -3.0]),
           [("i32", [7, -7, 7, -7, 0], [2, 2, -2, -2, 5]), unsigned], 1e-7)  # fmt: skip
    binary("max", numpy.maximum, (a, b), [signed_pair, unsigned])
    binary("min", numpy.minimum, (a, b), [signed_pair, unsigned])
    binary("pow", numpy.power, ([2.0, 2.0, 0.0, 0.0, -2.0, -2.0, -2.0, 1.0, NAN, 4.0, 10.0], [3.0, -1.0, 0.0, 2.0, 2.0, 3.0, 0.5, NAN, 0.0, 0.5, -3.0]), [], 1e-6, half=False)
    remainder = ([7.0, -7.0, 7.0, -7.0, 5.5, -0.75, 6.0], [3.0, 3.0, -3.0, -3.0, 0.25, 0.5, 1.5])
    binary("rem", numpy.fmod, remainder, [signed_pair, unsigned], 1e-6)
    binary("mod", numpy.mod, remainder, [signed_pair, unsigned], 1e-6)


def bits():
    def one(op, function, name, *operands):
        y = Tensor(function(*(t.array for t in operands)).astype(operands[0].array.dtype), operands[0].dtype)
        names = dict(zip(("x",) if len(operands) == 1 else ("a", "b"), operands))
        return case(name, names, [y], f"%y = nn.{op} {', '.join('%' + n for n in names)} : {operands[0].type}")

    logic = Tensor([[False, False, True, True]]), Tensor([[False, True, False, True]])
    bytes_ = Tensor([0, 1, 0xF0, 0xAA, 255], "ui8"), Tensor([255, 3, 0x3C, 0x55, 255], "ui8")
    words = Tensor([-1, 0, 2**40 + 5, -6], "i64"), Tensor([7, 9, 2**40 + 3, 3], "i64")
    for op, function in (("and", numpy.bitwise_and), ("or", numpy.bitwise_or), ("xor", numpy.bitwise_xor)):
        write(op, NOTE, *(one(op, function, n, *p) for n, p in (("logic", logic), ("unsigned", bytes_), ("integers", words))))
    write("not", NOTE, *(one("not", numpy.bitwise_not, n, p[0]) for n, p in (("logic", logic), ("unsigned", bytes_), ("integers", words))))

    def shifted(move, bits_):
        """NumPy leaves a shift by the width or more undefined; ONNX's reference gives 0 as the op does."""
        return lambda x, n: numpy.where(n < bits_, move(x, numpy.minimum(n, bits_ - 1)), 0)

    small = Tensor([1, 255, 129, 16, 7, 200], "ui8"), Tensor([0, 1, 7, 4, 8, 9], "ui8")
    wide = Tensor([1, 2**63 + 5, 12345, 3], "ui64"), Tensor([63, 1, 0, 64], "ui64")
    for op, move in (("shift_left", numpy.left_shift), ("shift_right", numpy.right_shift)):
        write(op, NOTE, one(op, shifted(move, 8), "bytes", *small), one(op, shifted(move, 64), "words", *wide))


def choices():
    def test(op, function, name, x):
        y = Tensor(function(x.wide))
        return case(name, {"x": x}, [y], f"%y = nn.{op} %x : {x.type} -> {y.type}")

    for op, function in (("is_nan", numpy.isnan), ("is_inf", numpy.isinf)):
        edges = [0.0, INF, -INF, NAN, -NAN, 3e38, 1e-40, -2.0, 1.0]
        write(op, NOTE, test(op, function, "odd", Tensor(edges, "f32")), test(op, function, "scalar", Tensor(numpy.float32(INF))),
              test(op, function, "brain", Tensor(edges, BF16)), test(op, function, "double", Tensor(numpy.array([edges]), "f64")))  # fmt: skip

    a, b = Tensor([1.0, 2.0, 3.0, NAN, 1.0, INF, -0.0, -INF, NAN], "f32"), Tensor([1.0, 3.0, 2.0, NAN, NAN, INF, 0.0, 1.0, 2.0], "f32")
    operands = {"floats": (a, b), "unsigned": (Tensor([[200], [5], [7]], "ui8"), Tensor([[100], [5], [255]], "ui8")),
                "integers": (Tensor([-1, 5, 2**40], "i64"), Tensor([1, 5, -(2**40)], "i64")), "logic": (Tensor([True, False]), Tensor([False, False]))}  # fmt: skip
    cases = []
    for predicate, function in (("eq", numpy.equal), ("ne", numpy.not_equal), ("lt", numpy.less), ("le", numpy.less_equal), ("gt", numpy.greater), ("ge", numpy.greater_equal)):
        for name, (x, y) in operands.items():
            if name == "logic" and predicate not in ("eq", "ne"):
                continue
            result = Tensor(function(x.array, y.array))
            cases.append(case(f"{predicate}_{name}", {"a": x, "b": y}, [result], f"%y = nn.compare {predicate} %a, %b : {x.type} -> {result.type}"))
    write("compare", NOTE, *cases)

    cases = []
    for name, x, y in (("floats", wave(3, 5), wave(3, 5, low=3.0, high=4.0)), ("scalar", wave(), wave(low=5.0, high=6.0)),
                       ("nothing_leaks", Tensor([[NAN, 1.0, INF]], "f32"), Tensor([[2.0, NAN, NAN]], "f32")),
                       ("integers", Tensor([1, 2, 3, 4], "i64"), Tensor([5, 6, 7, 8], "i64")), ("logic", Tensor([True, False, True]), Tensor([False, True, True]))):  # fmt: skip
        mask = Tensor((numpy.arange(x.array.size) % 3 != 1).reshape(x.array.shape))
        result = Tensor(numpy.where(mask.array, x.array, y.array), x.dtype)
        cases.append(case(name, {"c": mask, "a": x, "b": y}, [result], f"%y = nn.select %c, %a, %b : {mask.type}, {x.type}", 0.0 if x.dtype == "f32" else None))
    write("select", NOTE, *cases)


def casts():
    f = Tensor([0.0, 0.5, -0.5, 1.9, -1.9, 100.7, -100.7], "f32")
    # Values between two neighbours of the narrow type: ties to even, one unit above a tie, overflow to infinity.
    fine = Tensor([1.0009765625 - 2**-12, 1.00048828125, 1.00146484375, 65519.0, 65520.0, 1e-7, 6e-8, 3e-8, -2.5, NAN], "f32")
    brain = Tensor([1.00390625, 1.01171875, 1.0039063, 3.3895314e38, 3.39e38, 1e-39, NAN, INF, -7.3], "f32")
    i = Tensor([0, 1, -1, 127, -128, 100], "i8")
    u = Tensor([0, 1, 255, 128], "ui8")
    big = Tensor([2**53 + 1, -(2**24) - 1, 16777217, 3], "i64")
    rows = [("truncates", f, "i64"), ("to_byte", f, "i8"), ("to_bool", f, "i1"), ("from_bool", Tensor([[True], [False]]), "f32"),
            ("to_half", fine, "f16"), ("from_half", wave(9, dtype="f16"), "f32"), ("to_brain", brain, BF16), ("from_brain", wave(9, dtype=BF16), "f32"),
            ("half_to_brain", wave(9, dtype="f16"), BF16), ("to_double", wave(), "f64"), ("from_double", wave(5, dtype="f64", digits=9), "f32"), ("double_to_brain", wave(9, dtype="f64", digits=9), BF16),
            # Just above and just below a tie of bf16 and of f16: rounding to f32 first would make both the tie itself.
            ("double_once", Tensor([1.00390625 + 2**-40, 1.00390625 - 2**-40, -1.00390625 - 2**-40, 1e39, -1e-50, NAN, INF], "f64"), BF16),
            ("double_once_half", Tensor([1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, 65520.0 - 2**-30, 1e-300, NAN, -INF], "f64"), "f16"),
            ("signed", i, "f32"), ("unsigned", u, "f32"), ("unsigned_widens", u, "i64"), ("sign_extends", i, "i64"), ("wraps", Tensor([256, 257, -1, 300], "i64"), "ui8"),
            ("integer_rounds", big, "f32"), ("integer_to_bool", i, "i1")]  # fmt: skip
    cases = []
    for name, x, to in rows:
        if to == BF16:
            y = Tensor(x.wide, BF16)
        elif to == "i1":
            y = Tensor(x.array != 0)
        else:
            y = Tensor(x.array, to)
        # f32 results are rounded when f32 is; the reference target in f64 keeps what they lose.
        exact = 0.0 if to[0] in "fb" and name not in ("from_double", "integer_rounds") else None
        cases.append(case(name, {"x": x}, [y], f"%y = nn.cast %x : {x.type} -> {y.type}", exact))
    write("cast", NOTE, *cases)


def bit_casts():
    floats = {"f32": [0.0, -0.0, 1.0, -2.5, 3.4028235e38, INF, -INF, 1e-45, 1.1754942e-38], "f64": [0.0, 1.0, -2.5, 0.75, INF, 2.2250738585072014e-308]}
    cases = []
    for float_type, integers in (("f32", ("i32", "ui32")), ("f64", ("i64",))):
        for integer in integers:
            x = Tensor(floats[float_type], float_type)
            bits = Tensor(x.array.view(f"{'u' if integer[0] == 'u' else ''}int{integer[-2:]}"))
            cases.append(case(f"{float_type}_to_{integer}", {"x": x}, [bits], f"%y = nn.bit_cast %x : {x.type} -> {bits.type}"))
            cases.append(case(f"{integer}_to_{float_type}", {"x": bits}, [x], f"%y = nn.bit_cast %x : {bits.type} -> {x.type}", 0.0))
    write("bit_cast", NOTE, *cases)


if __name__ == "__main__":
    bit_casts()
    unaries()
    signed()
    binaries()
    bits()
    choices()
    casts()
