"""Every differentiable operator at several shapes, size-1 dimensions and broadcasts among them.

`build` gives (name, opset, nodes, parameters): the last node writes `out`; `parameters` maps names to arrays to which the
gradient is taken; what else a node reads is made by `constant`.
"""

import numpy
from onnx import helper, numpy_helper

RANDOM = numpy.random.default_rng(7)


def values(shape, low=-1.5, high=1.5):
    """Spread out, never closer than a little to each other or to zero: kinks and ties stay away."""
    count = int(numpy.prod(shape))
    grid = low + (high - low) * (numpy.arange(count) + 0.5 + RANDOM.uniform(-0.2, 0.2, count)) / max(count, 1)
    grid = numpy.where(numpy.abs(grid) < 1e-2, 0.03, grid)
    return RANDOM.permutation(grid).astype(numpy.float32).reshape(shape)


def apart(a, b):
    """`b`, moved until no element is near one of `a`: where a difference quotient would straddle the kink of max and min."""
    while numpy.abs(numpy.subtract.outer(a, b)).min() < 1e-2:
        b = b + numpy.float32(0.03)
    return b


def constant(name, array):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(numpy.asarray(array), name))


def ints(*numbers):
    return numpy.array(numbers, numpy.int64)


def case(name, op, parameters, constants=None, opset=20, inputs=None, outputs=("out",), **attributes):
    """One operator that reads parameters and constants (in that order, where `inputs` says no other)."""
    constants = constants or {}
    names = inputs or [*parameters, *constants]
    nodes = [constant(n, v) for n, v in constants.items()]
    nodes.append(helper.make_node(op, names, list(outputs), name="op", **attributes))
    return name, opset, nodes, parameters


def build():
    cases = []

    def add(*given, **attributes):
        cases.append(case(*given, **attributes))

    shapes = [(7,), (3, 5), (2, 1, 4)]
    domains = {
        "Sqrt": (0.3, 2), "Log": (0.3, 2), "Reciprocal": (0.4, 2), "Tan": (-1, 1), "Asin": (-0.8, 0.8), "Acos": (-0.8, 0.8),
        "Acosh": (1.2, 3), "Atanh": (-0.8, 0.8),
    }  # fmt: skip
    unary = """Abs Neg Exp Log Sqrt Reciprocal Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Tanh Erf Sigmoid Relu Softplus
        Softsign Elu Selu Celu LeakyRelu HardSigmoid HardSwish Mish Identity Floor Ceil Round Sign""".split()
    for op in unary:
        for shape in shapes:
            add(f"{op} {shape}", op, {"x": values(shape, *domains.get(op, (-1.5, 1.5)))})
    for shape in shapes:
        for how in ("none", "tanh"):
            add(f"Gelu {how} {shape}", "Gelu", {"x": values(shape)}, approximate=how)
        add(f"ThresholdedRelu {shape}", "ThresholdedRelu", {"x": values(shape)}, alpha=0.4)
        add(f"Clip {shape}", "Clip", {"x": values(shape)}, {"lo": numpy.float32(-0.7), "hi": numpy.float32(0.9)})

    pairs = [((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1, 3), (4, 1)), ((1, 5), (3, 1)), ((3,), ())]
    for a, b in pairs:
        for op in ("Add", "Sub", "Mul", "Div"):
            add(f"{op} {a} {b}", op, {"a": values(a), "b": values(b, 0.4, 1.9) if op == "Div" else values(b, -1.37, 1.43)})
        for op in ("Max", "Min"):
            x = values(a)
            add(f"{op} {a} {b}", op, {"a": x, "b": apart(x, values(b, -1.37, 1.43))})
        add(f"Pow {a} {b}", "Pow", {"a": values(a, 0.3, 2), "b": values(b)})
        add(f"PRelu {a} {b}", "PRelu", {"a": values(a), "b": values(b, 0.1, 0.6)}) if len(b) <= 1 or a == b else None
        mask = RANDOM.random(numpy.broadcast_shapes(a, b)) < 0.5
        add(f"Where {a} {b}", "Where", {"a": values(a), "b": values(b)}, {"m": mask}, inputs=["m", "a", "b"])
        add(f"Sum {a} {b}", "Sum", {"a": values(a), "b": values(b)})
        add(f"Mean {a} {b}", "Mean", {"a": values(a), "b": values(b)})

    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare", "ReduceLogSum"):
        low = 0.4 if op in ("ReduceProd", "ReduceLogSum") else -1.5
        for shape, axes, keep in (((3, 4), (1,), 0), ((3, 4), (0,), 1), ((2, 1, 3, 2), (1, 3), 0)):
            add(f"{op} {shape} {axes}", op, {"x": values(shape, low, 1.5)}, {"axes": ints(*axes)}, keepdims=keep)
    # A row of zeros has a length, and its derivative by convention.
    add("ReduceL2 zeros", "ReduceL2", {"x": values((3, 4)) * numpy.float32([[1], [0], [1]])}, {"axes": ints(1)}, keepdims=0)
    for op in ("Softmax", "LogSoftmax"):
        for shape, axis in (((3, 5), -1), ((2, 4, 3), 1), ((3, 1), 1)):
            add(f"{op} {shape} {axis}", op, {"x": values(shape)}, axis=axis)
    for shape, axis in (((6,), 0), ((3, 4), 1), ((2, 1, 3), 0)):
        for exclusive in (0, 1):
            add(f"CumSum {shape} {exclusive}", "CumSum", {"x": values(shape)}, {"axis": numpy.int64(axis)}, exclusive=exclusive, reverse=1 - exclusive)

    for a, b in (((3, 4), (4, 5)), ((2, 3, 4), (4, 2)), ((2, 1, 3, 4), (3, 4, 1)), ((4,), (4, 3)), ((3, 4), (4,))):
        add(f"MatMul {a} {b}", "MatMul", {"a": values(a), "b": values(b)})
    for ta, tb, c in ((0, 0, (5,)), (1, 0, (3, 1)), (0, 1, (3, 5)), (1, 1, ())):
        a, b = ((4, 3) if ta else (3, 4)), ((5, 4) if tb else (4, 5))
        add(f"Gemm {ta}{tb} {c}", "Gemm", {"a": values(a), "b": values(b), "c": values(c)}, transA=ta, transB=tb, alpha=0.7, beta=1.3)
    for equation, a, b in (("bij,bjk->bik", (2, 3, 4), (2, 4, 2)), ("ij,kj->ik", (3, 4), (2, 4)), ("bhqd,bhkd->bhqk", (1, 2, 3, 4), (1, 2, 5, 4))):
        add(f"Einsum {equation}", "Einsum", {"a": values(a), "b": values(b)}, equation=equation)

    for x, w, more in (
        ((2, 3, 6, 5), (4, 3, 3, 3), dict(pads=[1, 1, 1, 1])), ((1, 4, 7, 7), (4, 2, 3, 2), dict(strides=[2, 2], group=2)),
        ((2, 2, 9), (3, 2, 3), dict(dilations=[2], pads=[2, 1])), ((2, 3, 5, 5), (6, 1, 3, 3), dict(group=3)), ((1, 2, 1, 1), (3, 2, 1, 1), {}),
    ):  # fmt: skip
        add(f"Conv {x} {w}", "Conv", {"x": values(x), "w": values(w), "b": values(w[:1])}, **more)
    for x, w, more in (
        ((2, 3, 4, 4), (3, 2, 4, 4), dict(strides=[2, 2], pads=[1, 1, 1, 1])), ((1, 2, 5), (2, 3, 3), {}),
        ((1, 4, 3, 3), (4, 1, 2, 2), dict(group=2, strides=[2, 2], output_padding=[1, 1])),
    ):  # fmt: skip
        add(f"ConvTranspose {x} {w}", "ConvTranspose", {"x": values(x), "w": values(w)}, **more)
    for op, more in (("MaxPool", {}), ("AveragePool", dict(count_include_pad=1)), ("AveragePool", {})):
        for x, shape in (((2, 2, 6, 6), dict(kernel_shape=[2, 2], strides=[2, 2])), ((1, 3, 5, 5), dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])),
                         ((2, 1, 8), dict(kernel_shape=[3], strides=[2]))):  # fmt: skip
            add(f"{op} {more} {x}", op, {"x": values(x)}, **shape, **more)
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        for x in ((2, 3, 4, 4), (1, 2, 5), (2, 1, 1, 3)):
            add(f"{op} {x}", op, {"x": values(x)})

    for x, axis in (((3, 8), -1), ((2, 3, 4), 1), ((2, 1, 6), -1)):
        tail = x[axis:] if axis < 0 else x[axis:]
        add(f"LayerNormalization {x}", "LayerNormalization", {"x": values(x), "g": values(tail, 0.5, 1.5), "b": values(tail)}, axis=axis)
        add(f"RMSNormalization {x}", "RMSNormalization", {"x": values(x), "g": values(tail, 0.5, 1.5)}, opset=23, axis=axis)
    for x in ((3, 4, 5), (2, 2, 3, 3), (4, 1, 6)):
        c = x[1:2]
        add(f"InstanceNormalization {x}", "InstanceNormalization", {"x": values(x), "g": values(c, 0.5, 1.5), "b": values(c)})
        still = {"mean": values(c), "var": values(c, 0.5, 1.5)}
        add(f"BatchNormalization frozen {x}", "BatchNormalization", {"x": values(x), "g": values(c, 0.5, 1.5), "b": values(c)}, still)
    for x, groups in (((2, 4, 5), 2), ((1, 6, 3, 3), 3), ((2, 2, 4), 1)):
        add(f"GroupNormalization {x}", "GroupNormalization", {"x": values(x), "g": values(x[1:2], 0.5, 1.5), "b": values(x[1:2])}, opset=21, num_groups=groups)

    for shape, permutation in (((3, 4), [1, 0]), ((2, 3, 4), [2, 0, 1]), ((1, 3, 1, 2), [0, 2, 3, 1])):
        add(f"Transpose {shape}", "Transpose", {"x": values(shape)}, perm=permutation)
    for shape, to in (((3, 4), (2, 6)), ((2, 3, 4), (-1, 4)), ((1, 5), (5, 1))):
        add(f"Reshape {shape} {to}", "Reshape", {"x": values(shape)}, {"to": ints(*to)})
        add(f"Flatten {shape}", "Flatten", {"x": values(shape)})
    for shape, to in (((1, 4), (3, 4)), ((3, 1), (2, 3, 5)), ((4,), (2, 4))):
        add(f"Expand {shape} {to}", "Expand", {"x": values(shape)}, {"to": ints(*to)})
    add("Squeeze", "Squeeze", {"x": values((1, 3, 1))}, {"axes": ints(0, 2)})
    add("Unsqueeze", "Unsqueeze", {"x": values((3, 2))}, {"axes": ints(0, 2)})
    for shape, axis in (((3, 4), 0), ((2, 3, 2), -1), ((1, 2), 1)):
        add(f"Concat {shape} {axis}", "Concat", {"a": values(shape), "b": values(shape)}, axis=axis)
    for shape, starts, ends, axes, steps in (((5, 4), [1], [4], [0], [1]), ((3, 6), [0, 1], [3, 6], [0, 1], [2, 2]), ((4, 3), [-1], [-5], [0], [-1])):
        add(f"Slice {shape} {starts}", "Slice", {"x": values(shape)}, {"s": ints(*starts), "e": ints(*ends), "a": ints(*axes), "t": ints(*steps)})
    for shape, sizes in (((6, 2), [2, 4]), ((5,), [1, 4]), ((3, 3), [3, 0])):
        add(f"Split {shape} {sizes}", "Split", {"x": values(shape)}, {"s": ints(*sizes)}, outputs=("out", "rest"), axis=0) if 0 not in sizes else None
    for mode, pads in (("constant", [1, 0, 2, 1]), ("reflect", [1, 1, 0, 1]), ("edge", [0, 2, 1, 0])):
        add(f"Pad {mode}", "Pad", {"x": values((3, 4))}, {"pads": ints(*pads)}, mode=mode)
    for shape, repeats in (((2, 3), [2, 1]), ((4,), [3]), ((1, 2, 1), [1, 2, 3])):
        add(f"Tile {shape}", "Tile", {"x": values(shape)}, {"r": ints(*repeats)})
    for upper in (0, 1):
        for shape in ((4, 4), (2, 3, 5), (1, 4)):
            add(f"Trilu {upper} {shape}", "Trilu", {"x": values(shape)}, upper=upper)
    add("DepthToSpace", "DepthToSpace", {"x": values((1, 8, 2, 3))}, blocksize=2)
    add("SpaceToDepth", "SpaceToDepth", {"x": values((1, 2, 4, 6))}, blocksize=2)
    for shape, index, axis in (((5, 3), ints(0, 4, 0), 0), ((2, 6), [[1, -1], [3, 1]], 1), ((4,), 2, 0)):
        add(f"Gather {shape} {axis}", "Gather", {"x": values(shape)}, {"i": numpy.array(index, numpy.int64)}, axis=axis)
    for shape, index, axis in (((3, 4), [[0, 1, 1, 2]], 0), ((2, 5), [[4, 4], [0, 1]], 1), ((4,), [3, 3, 0], 0)):
        add(f"GatherElements {shape}", "GatherElements", {"x": values(shape)}, {"i": numpy.array(index, numpy.int64)}, axis=axis)
    for shape, index in (((3, 4), [[0], [2], [0]]), ((3, 4), [[1, 1], [2, 3]]), ((2, 3, 2), [[[0, 1]], [[1, 2]]])):
        add(f"GatherND {shape}", "GatherND", {"x": values(shape)}, {"i": numpy.array(index, numpy.int64)})
    add("ScatterND", "ScatterND", {"x": values((4, 3)), "u": values((2, 3))}, {"i": ints(3, 1).reshape(2, 1)}, inputs=["x", "i", "u"])
    add("ScatterND add", "ScatterND", {"x": values((4, 3)), "u": values((2, 3))}, {"i": ints(1, 1).reshape(2, 1)}, inputs=["x", "i", "u"], reduction="add")
    add("ScatterElements", "ScatterElements", {"x": values((3, 4)), "u": values((2, 2))}, {"i": ints(0, 2, 1, 3).reshape(2, 2)}, inputs=["x", "i", "u"], axis=1)
    for shape, scales in (((1, 2, 3, 3), [1, 1, 2, 2]), ((2, 1, 4), [1, 1, 3]), ((1, 1, 2, 5), [1, 1, 3, 1])):
        sizes = {"roi": numpy.zeros(0, numpy.float32), "s": numpy.array(scales, numpy.float32)}
        add(f"Resize nearest {shape}", "Resize", {"x": values(shape)}, sizes, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        add(f"Resize linear {shape}", "Resize", {"x": values(shape)}, sizes, mode="linear")

    for shape, weighted in (((4, 5), False), ((3, 4, 2), True), ((2, 3, 2, 2), False)):
        labels = RANDOM.integers(0, shape[1], (shape[0], *shape[2:])).astype(numpy.int64)
        more = {"y": labels} | ({"w": values((shape[1],), 0.3, 1.5)} if weighted else {})
        for how in ("mean", "sum", "none"):
            add(f"SoftmaxCrossEntropyLoss {shape} {how}", "SoftmaxCrossEntropyLoss", {"x": values(shape)}, more, reduction=how)
            add(f"NegativeLogLikelihoodLoss {shape} {how}", "NegativeLogLikelihoodLoss", {"x": values(shape)}, more, reduction=how)
    ignored = {"y": ints(1, -100, 3)}
    add("SoftmaxCrossEntropyLoss ignored", "SoftmaxCrossEntropyLoss", {"x": values((3, 4))}, ignored, ignore_index=-100)
    for causal in (0, 1):
        for q, k in (((2, 3, 4, 4), (2, 3, 4, 4)), ((1, 4, 5, 2), (1, 2, 5, 2)), ((1, 1, 3, 6), (1, 1, 3, 6))):
            add(f"Attention {causal} {q} {k}", "Attention", {"q": values(q), "k": values(k), "v": values(k)}, opset=23, is_causal=causal)
    return cases
