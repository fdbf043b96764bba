"""Writes test/Execute/<op>.mlir of the ops that move, index, reduce and order: python tensors.py (needs numpy, torch).

Odd sizes, dimensions of extent 1, rank 0 where there is one, and element types that take another path (integers, booleans,
16-bit floats). What moves or counts is exact.
"""

import numpy
import torch

from casefile import BF16, Tensor, case, wave, write

INF, NAN = numpy.inf, numpy.nan
NOTE = "NumPy's and PyTorch's values (Inputs/tensors.py)."


def counted(*shape, dtype="i64"):
    """0, 1, 2 … in the named type."""
    count = int(numpy.prod(shape))
    return Tensor(numpy.arange(count).reshape(shape), dtype) if dtype != "i1" else Tensor((numpy.arange(count) * 7 % 5 < 2).reshape(shape))


def one(name, op, x, y, attributes, tolerance=0.0):
    """An op of one operand, `op %x attributes : x -> y`."""
    y = y if isinstance(y, Tensor) else Tensor(y, x.dtype)
    exact = y.dtype[0] in "iu"
    return case(name, {"x": x}, [y], f"%y = nn.{op} %x {attributes} : {x.type} -> {y.type}", None if exact else tolerance)


def movement():
    def broadcast(name, x, shape, dims):
        spread = [1] * len(shape)
        for i, d in enumerate(dims):
            spread[d] = x.array.shape[i]
        return one(name, "broadcast", x, numpy.broadcast_to(x.array.reshape(spread), shape), f"dims = {list(dims)}")

    write("broadcast", NOTE, broadcast("rows", wave(5), (3, 5), [1]), broadcast("columns", wave(3), (3, 5), [0]), broadcast("scalar", wave(), (2, 3), []),
          broadcast("ones", wave(1, 3, 1), (2, 3, 5), [0, 1, 2]), broadcast("between", wave(2, 1), (2, 3, 4), [0, 2]),
          broadcast("logic", counted(3, dtype="i1"), (2, 3), [1]), broadcast("brain", wave(3, dtype=BF16), (3, 2), [0]), broadcast("same", wave(2, 3), (2, 3), [0, 1]))  # fmt: skip

    reshape = lambda name, x, *shape: one(name, "reshape", x, x.array.reshape(shape), "")  # noqa: E731
    write("reshape", NOTE, reshape("folds", wave(2, 3, 5), 6, 5), reshape("unfolds", wave(30), 2, 3, 5), reshape("to_scalar", wave(1, 1)), reshape("from_scalar", wave(), 1, 1, 1),
          reshape("across", counted(4, 9), 6, 6), reshape("logic", counted(2, 3, dtype="i1"), 3, 2))  # fmt: skip

    transpose = lambda name, x, *p: one(name, "transpose", x, x.array.transpose(p), str(list(p)))  # noqa: E731
    write("transpose", NOTE, transpose("matrix", wave(7, 11), 1, 0), transpose("rotates", wave(2, 3, 5), 2, 0, 1), transpose("heads", wave(2, 3, 2, 4), 0, 2, 1, 3), transpose("ones", wave(1, 3, 1), 2, 1, 0),
          transpose("vector", wave(3), 0), transpose("integers", counted(3, 5), 1, 0), transpose("logic", counted(5, 3, dtype="i1"), 1, 0), transpose("half", wave(3, 9, dtype="f16"), 1, 0))  # fmt: skip

    def constant(name, value):
        return case(name, {}, [value], f"%y = nn.constant {value.literal}")

    write("constant", "What is written is what is read.", constant("list", wave(7)), constant("scalar", wave()), constant("integers", Tensor([[2**62], [-(2**62)]], "i64")),
          constant("logic", Tensor([True, False, True])), constant("brain", wave(3, dtype=BF16)), constant("special", Tensor([INF, -INF, NAN, -0.0], "f32")),
          case("splat", {}, [Tensor(numpy.full((3, 5), 1.25), "f32")], "%y = nn.constant dense<1.25> : tensor<3x5xf32>"))  # fmt: skip


def slicing():
    def slice_(name, x, starts, counts, strides):
        y = x.array[tuple(slice(s, s + (n - 1) * t + 1, t) for s, n, t in zip(starts, counts, strides))]
        return one(name, "slice", x, y, f"starts = {starts} strides = {strides}")

    write("slice", NOTE, slice_("inner", wave(5, 7), [1, 2], [3, 4], [1, 1]), slice_("every_other", wave(6, 9), [0, 1], [3, 4], [2, 2]), slice_("one_element", wave(3, 1, 4), [2, 0, 3], [1, 1, 1], [1, 1, 1]),
          slice_("integers", counted(11), [3], [3], [3]), slice_("brain", wave(2, 5, dtype=BF16), [0, 1], [2, 3], [1, 1]))  # fmt: skip

    def pad(name, x, low, high, interior, value=None):
        shape = [a + b + n + max(n - 1, 0) * i for n, a, b, i in zip(x.array.shape, low, high, interior)]
        y = numpy.full(shape, 0 if value is None else value).astype(x.array.dtype)
        y[tuple(slice(a, a + (n - 1) * (i + 1) + 1, i + 1) for n, a, i in zip(x.array.shape, low, interior))] = x.array
        said = f"low = {low} high = {high} interior = {interior}" + ("" if value is None else f" {{value = {float(value)}}}")
        return one(name, "pad", x, y, said)

    write("pad", NOTE, pad("around", wave(2, 3), [1, 0], [0, 2], [0, 0]), pad("value", wave(3), [2], [1], [0], -1.5), pad("between", wave(3, 2), [0, 1], [1, 0], [2, 1]),
          pad("one", wave(1, 1), [0, 3], [2, 0], [4, 0], 0.5), pad("integers", counted(2, 3), [1, 1], [1, 1], [0, 0], 7), pad("brain", wave(5, dtype=BF16), [1], [1], [1]))  # fmt: skip

    reverse = lambda name, x, *dims: one(name, "reverse", x, numpy.flip(x.array, dims), f"dims = {list(dims)}")  # noqa: E731
    write("reverse", NOTE, reverse("last", wave(3, 7), 1), reverse("first", wave(3, 7), 0), reverse("both", wave(2, 3, 5), 0, 2), reverse("one", wave(1, 4), 0), reverse("integers", counted(9), 0))

    def concat(name, dim, *xs):
        y = Tensor(numpy.concatenate([x.array for x in xs], dim), xs[0].dtype)
        names = {f"x{i}": x for i, x in enumerate(xs)}
        types = ", ".join(x.type for x in xs)
        return case(name, names, [y], f"%y = nn.concat {', '.join('%' + n for n in names)} dim = {dim} : ({types}) -> {y.type}", 0.0 if y.dtype[0] in "fb" else None)

    write("concat", NOTE, concat("last", 1, wave(3, 2), wave(3, 5), wave(3, 1)), concat("first", 0, wave(1, 3), wave(4, 3)), concat("middle", 1, wave(2, 1, 3), wave(2, 2, 3)),
          concat("alone", 0, wave(5)), concat("integers", 0, counted(2), counted(3)), concat("logic", 1, counted(2, 1, dtype="i1"), counted(2, 3, dtype="i1")))  # fmt: skip

    def iota(name, shape, dim, dtype):
        y = Tensor(numpy.broadcast_to(numpy.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))]), shape), dtype)
        return case(name, {}, [y], f"%y = nn.iota dim = {dim} : {y.type}", 0.0 if dtype[0] in "fb" else None)

    write("iota", NOTE, iota("columns", (3, 5), 1, "i64"), iota("rows", (3, 5), 0, "i32"), iota("floats", (2, 9, 1), 1, "f32"), iota("one", (1,), 0, "i64"), iota("brain", (7,), 0, BF16))


def indexing():
    def types(*ts):
        return "(" + ", ".join(t.type for t in ts[:-1]) + f") -> {ts[-1].type}"

    def exact(t, tolerance=0.0):
        return tolerance if t.dtype[0] in "fb" else None

    def taken(x, indices, axis):
        """NumPy's take; an index outside reads NaN (integers: 0), as the op's record says."""
        inside = (indices >= 0) & (indices < x.array.shape[axis])
        y = numpy.take(x.array, numpy.where(inside, indices, 0), axis)
        keep = inside.reshape([1] * axis + list(indices.shape) + [1] * (x.array.ndim - axis - 1))
        return numpy.where(keep, y, NAN if x.array.dtype.kind == "f" else 0)

    def gather(name, x, indices, axis):
        y = Tensor(taken(x, indices.array.astype(numpy.int64), axis), x.dtype)
        return case(name, {"x": x, "i": indices}, [y], f"%y = nn.gather %x[%i] axis = {axis} : {types(x, indices, y)}", exact(y))

    some = Tensor([[3, 0, 3], [1, 2, 0]], "i64")
    write("gather", "NumPy's take (Inputs/tensors.py); indices outside as the op's record says.", gather("rows", wave(4, 5), some, 0), gather("columns", wave(3, 4), some, 1), gather("middle", wave(2, 4, 3), Tensor([2, 2, 0], "i32"), 1),
          gather("scalar_index", wave(4, 3), Tensor(1, "i64"), 0), gather("one_row", wave(1, 7), Tensor([0, 0], "i64"), 0), gather("integers", counted(4, 2), some, 0),
          gather("outside", wave(3, 2), Tensor([0, -1, 3, 2, 2**40], "i64"), 0), gather("outside_integers", counted(3), Tensor([2, 3, -1], "i64"), 0))  # fmt: skip

    def gather_elements(name, x, indices, axis):
        i = indices.array.astype(numpy.int64)
        inside = (i >= 0) & (i < x.array.shape[axis])
        y = torch.from_numpy(x.array).gather(axis, torch.from_numpy(numpy.where(inside, i, 0))).numpy()
        y = Tensor(numpy.where(inside, y, NAN if x.array.dtype.kind == "f" else 0), x.dtype)
        return case(name, {"x": x, "i": indices}, [y], f"%y = nn.gather_elements %x[%i] axis = {axis} : {types(x, indices, y)}", exact(y))

    write("gather_elements", "PyTorch's gather (Inputs/tensors.py); indices outside as the op's record says.",
          gather_elements("last", wave(3, 5), Tensor([[4, 0], [1, 1], [2, 3]], "i64"), 1), gather_elements("first", wave(4, 3), Tensor([[3, 0, 1], [0, 0, 2]], "i32"), 0),
          gather_elements("one", wave(1, 3), Tensor([[2]], "i64"), 1), gather_elements("integers", counted(5), Tensor([4, 4, 0], "i64"), 0), gather_elements("outside", wave(3), Tensor([3, -1, 1], "i64"), 0))  # fmt: skip

    def scatter_add(name, indices, updates, shape, axis):
        y = numpy.zeros(shape, numpy.float64 if updates.array.dtype.kind == "f" else numpy.int64)
        i = indices.array
        for place in numpy.ndindex(i.shape):
            if 0 <= i[place] < shape[axis]:
                before = (slice(None),) * axis
                y[before + (int(i[place]),)] += updates.wide[before + place]
        y = Tensor(y, updates.dtype)
        return case(name, {"i": indices, "u": updates}, [y], f"%y = nn.scatter_add [%i] %u axis = {axis} : {types(indices, updates, y)}", None if y.dtype[0] != "b" else 0.0)

    write("scatter_add", "NumPy's sums in f64 (Inputs/tensors.py); an index outside adds nothing.", scatter_add("rows", Tensor([3, 0, 3, 3, 1], "i64"), wave(5, 3), (5, 3), 0),
          scatter_add("two_index_dims", Tensor([[2, 0], [2, 2]], "i32"), wave(2, 2, 3), (3, 3), 0), scatter_add("middle", Tensor([1, 1, 0], "i64"), wave(2, 3, 2), (2, 2, 2), 1),
          scatter_add("one", Tensor(0, "i64"), wave(3), (1, 3), 0), scatter_add("outside", Tensor([0, -1, 4, 2], "i64"), wave(4, 2), (4, 2), 0),
          scatter_add("integers", Tensor([1, 1, 0], "i64"), Tensor([2**40, 5, -7], "i64"), (3,), 0), scatter_add("brain", Tensor([1, 0, 1, 1], "i64"), wave(4, dtype=BF16), (2,), 0))  # fmt: skip

    def scatter_elements_add(name, indices, updates, shape, axis):
        y = numpy.zeros(shape, numpy.float64 if updates.array.dtype.kind == "f" else numpy.int64)
        for place in numpy.ndindex(indices.array.shape):
            at = list(place)
            at[axis] = int(indices.array[place])
            if 0 <= at[axis] < shape[axis]:
                y[tuple(at)] += updates.wide[place]
        y = Tensor(y, updates.dtype)
        return case(name, {"i": indices, "u": updates}, [y], f"%y = nn.scatter_elements_add [%i] %u axis = {axis} : {types(indices, updates, y)}")

    write("scatter_elements_add", "NumPy's sums in f64 (Inputs/tensors.py); an index outside adds nothing.", scatter_elements_add("last", Tensor([[4, 4, 0], [1, 1, 1]], "i64"), wave(2, 3), (2, 5), 1),
          scatter_elements_add("first", Tensor([[0, 2], [0, 0], [3, 2]], "i32"), wave(3, 2), (4, 2), 0), scatter_elements_add("one", Tensor([[1]], "i64"), wave(1, 1), (1, 3), 1),
          scatter_elements_add("outside", Tensor([2, -1, 3, 2], "i64"), wave(4), (3,), 0), scatter_elements_add("integers", Tensor([1, 1, 0], "i64"), counted(3), (2,), 0))  # fmt: skip


def meetings():
    """PyTorch's maximum, minimum and product of what is there and each update whose index is inside, one after the other."""
    rules = {"max": torch.maximum, "min": torch.minimum, "mul": torch.mul, "set": lambda there, update: update}

    def meet(op, name, kind, x, indices, updates, axis):
        y, u, before = torch.from_numpy(x.wide.copy()), torch.from_numpy(updates.wide), (slice(None),) * axis
        for place in numpy.ndindex(indices.array.shape):
            if not 0 <= (at := int(indices.array[place])) < x.array.shape[axis]:
                continue
            to, source = (before + (at,), before + place) if op == "scatter" else (place[:axis] + (at,) + place[axis + 1 :], place)
            y[to] = rules[kind](y[to], u[source])
        y = Tensor(y.numpy(), x.dtype)
        body = f"%y = nn.{op} {kind} %u into %x[%i] axis = {axis} : ({x.type}, {indices.type}, {updates.type}) -> {y.type}"
        return case(name, {"x": x, "i": indices, "u": updates}, [y], body, None if kind == "mul" or y.dtype[0] in "iu" else 0.0)

    rows, some = Tensor([3, 0, 3, 3, 1], "i64"), Tensor([[2, 0], [2, 2]], "i32")
    nan = Tensor([[NAN, 1.0], [0.5, -1.0], [-2.0, INF]], "f32")
    scatter = lambda name, *rest: meet("scatter", name, *rest)  # noqa: E731
    write("scatter", "PyTorch's values (Inputs/tensors.py), one update after the other; an index outside changes nothing.",
          *[scatter(f"rows_{k}", k, wave(5, 3), rows, wave(5, 3, low=-1.9), 0) for k in ("max", "min", "mul", "set")],
          scatter("two_index_dims", "max", wave(3, 3, low=-9.0, high=-8.0), some, wave(2, 2, 3), 0), scatter("middle", "min", wave(2, 2, 2), Tensor([1, 1, 0], "i64"), wave(2, 3, 2), 1),
          scatter("one", "mul", wave(1, 3), Tensor(0, "i64"), wave(3), 0), scatter("vector", "max", wave(4, low=-7.0, high=-6.0), rows, wave(5), 0), scatter("outside", "set", wave(4, 2), Tensor([0, -1, 4, 2], "i64"), wave(4, 2, low=3.0), 0),
          scatter("integers", "min", counted(3), Tensor([1, 1, 0], "i64"), Tensor([2**40, 5, -7], "i64"), 0), scatter("unsigned", "max", Tensor([200, 3], "ui8"), Tensor([0, 1], "i64"), Tensor([100, 250], "ui8"), 0),
          scatter("nothing_is_a_number", "max", wave(2, 2), Tensor([0, 1, 1], "i64"), nan, 0), scatter("brain", "max", wave(3, 2, dtype=BF16), Tensor([1, 0, 1, 1], "i64"), wave(4, 2, dtype=BF16), 0),
          scatter("half", "set", wave(3, 2, dtype="f16"), Tensor([1, 0, 1, 1], "i64"), wave(4, 2, low=5.0, high=9.0, dtype="f16"), 0))  # fmt: skip
    elements = lambda name, *rest: meet("scatter_elements", name, *rest)  # noqa: E731
    write("scatter_elements", "PyTorch's values (Inputs/tensors.py), one update after the other; an index outside changes nothing.",
          *[elements(f"last_{k}", k, wave(2, 5, low=-1.0, high=1.0), Tensor([[4, 4, 0], [1, 1, 1]], "i64"), wave(2, 3), 1) for k in ("max", "min", "mul", "set")],
          elements("first", "max", wave(4, 2), Tensor([[0, 2], [0, 0], [3, 2]], "i32"), wave(3, 2), 0), elements("one", "min", wave(1, 3), Tensor([[1]], "i64"), wave(1, 1), 1),
          elements("outside", "max", wave(3, low=-6.0, high=-5.0), Tensor([2, -1, 3, 2], "i64"), wave(4), 0), elements("integers", "mul", counted(2), Tensor([1, 1, 0], "i64"), counted(3), 0),
          elements("brain", "min", wave(2, 3, dtype=BF16), Tensor([[2, 2, 0], [1, 1, 1]], "i64"), wave(2, 3, dtype=BF16), 1))  # fmt: skip


def reductions():
    def reduce(name, op, function, x, *dims):
        y = Tensor(function(x.array if x.dtype == "i1" else x.wide, axis=dims), x.dtype)
        # Sums and products of 16-bit floats are f32 sums rounded once.
        exact = x.dtype in ("f16", BF16) or op in ("reduce_max", "reduce_min")
        return case(name, {"x": x}, [y], f"%y = nn.{op} %x dims = {list(dims)} : {x.type} -> {y.type}", 0.0 if exact and y.dtype[0] in "fb" else None)

    for op, function in (("reduce_sum", numpy.sum), ("reduce_max", numpy.max), ("reduce_min", numpy.min), ("reduce_prod", numpy.prod)):
        write(op, NOTE, reduce("last", op, function, wave(3, 19), 1), reduce("first", op, function, wave(5, 9), 0), reduce("all", op, function, wave(2, 3, 3), 0, 1, 2), reduce("around", op, function, wave(3, 2, 5), 0, 2),
              reduce("one", op, function, wave(1, 3, 1), 0, 2), reduce("nothing", op, function, wave(2, 3)), reduce("half", op, function, wave(3, 7, dtype="f16"), 1), reduce("brain", op, function, wave(3, 7, dtype=BF16), 0),
              reduce("integers", op, function, Tensor([[2**40, 3], [-5, 7]], "i64"), 0), reduce("unsigned", op, function, Tensor([[200, 3], [5, 17]], "ui8"), 1),
              *([reduce("special", op, function, Tensor([[1.0, NAN, 2.0], [-INF, 0.0, -1.0], [INF, 1.0, 1.0]], "f32"), 1)] if op in ("reduce_max", "reduce_min") else []))  # fmt: skip
    for op, function in (("reduce_any", numpy.any), ("reduce_all", numpy.all)):
        write(op, NOTE, reduce("last", op, function, Tensor([[True, False, True], [False] * 3, [True] * 3]), 1), reduce("first", op, function, counted(5, 3, dtype="i1"), 0),
              reduce("all", op, function, Tensor([[True, True], [True, True]]), 0, 1), reduce("one", op, function, counted(1, 3, dtype="i1"), 0))  # fmt: skip


def ordering():
    def extremum(name, op, x, dim, last, dtype="i64"):
        function = numpy.argmax if op == "argmax" else numpy.argmin
        y = function(x.array, dim) if not last else x.array.shape[dim] - 1 - function(numpy.flip(x.array, dim), dim)
        y = Tensor(y, dtype)
        return case(name, {"x": x}, [y], f"%y = nn.{op} %x dim = {dim}{' {select_last}' if last else ''} : {x.type} -> {y.type}")

    ties = Tensor([[1.0, 5.0, 5.0, -2.0], [-2.0, 3.0, -2.0, 3.0], [7.0, 7.0, 7.0, 7.0]], "f32")
    # Equal extrema in several lanes and after the last whole round; the first of several NaNs wins.
    rows = [[float(-abs(i % 37 - at)) for i in range(19)] for at in (3, 17, 18)]
    many = Tensor([[v if v else 0.0 for v in row] for row in rows] + [[7.0] * 19, [1.0, 0.0, 2.0] * 6 + [0.0]], "f32")
    broken = Tensor([NAN if i in (9, 12, 17) else float(i) for i in range(18)], "f32")
    for op in ("argmax", "argmin"):
        write(op, NOTE, extremum("first_of_ties", op, ties, 1, False), extremum("last_of_ties", op, ties, 1, True), extremum("leading", op, wave(5, 3), 0, False, "i32"),
              extremum("one", op, wave(3, 1), 1, False), extremum("vector", op, wave(19), 0, False), extremum("integers", op, Tensor([[3, -1, 2**40], [0, 0, -5]], "i64"), 1, False),
              extremum("unsigned", op, Tensor([[200, 3, 100]], "ui8"), 1, False),
              extremum("lanes", op, many, 1, False), extremum("last_lane", op, many, 1, True), extremum("not_a_number", op, broken, 0, False))  # fmt: skip

    def cumsum(name, x, dim, exclusive=False, reverse=False):
        values = numpy.flip(x.wide, dim) if reverse else x.wide
        y = numpy.cumsum(values, dim)
        y = y - values if exclusive else y
        y = Tensor(numpy.flip(y, dim) if reverse else y, x.dtype)
        flags = ", ".join(f for f, on in (("exclusive", exclusive), ("reverse", reverse)) if on)
        return case(name, {"x": x}, [y], f"%y = nn.cumsum %x dim = {dim}{' {' + flags + '}' if flags else ''} : {x.type}")

    write("cumsum", NOTE, cumsum("last", wave(3, 7), 1), cumsum("first", wave(5, 3), 0), cumsum("exclusive", wave(2, 5), 1, True), cumsum("reverse", wave(2, 5), 1, False, True),
          cumsum("both", wave(9), 0, True, True), cumsum("one", wave(3, 1, 2), 1, True), cumsum("integers", counted(3, 4), 1))  # fmt: skip


if __name__ == "__main__":
    movement()
    slicing()
    indexing()
    meetings()
    reductions()
    ordering()
