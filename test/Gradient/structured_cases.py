"""Cases as in cases.py, for operators with more inside: orders, indices, interpolation, transforms, recurrences, bodies."""

import numpy
from cases import case, constant, ints, values
from onnx import TensorProto, helper

FLOAT = TensorProto.FLOAT


def info(name, shape=None, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def chain(name, opset, nodes, parameters):
    """Nodes given as (operator, operands, results, attributes); arrays stand for constants."""
    made = []
    for operator, operands, results, attributes in nodes:
        names = []
        for i, operand in enumerate(operands):
            if not isinstance(operand, str):
                made.append(constant(f"fixed{len(made)}", operand))
                operand = made[-1].output[0]
            names.append(operand)
        made.append(helper.make_node(operator, names, list(results), **attributes))
    return name, opset, made, parameters


def orders():
    for shape, k, axis in (((7,), 3, 0), ((3, 5), 5, -1), ((2, 4, 1), 2, 1), ((2, 1), 1, -1), ((2, 300), 3, 1), ((1, 300), 300, 1), ((300, 2), 40, 0)):
        for largest in (0, 1):
            yield case(f"TopK {shape} {k} {largest}", "TopK", {"x": values(shape, 0.1, 1.6)}, {"k": ints(k)}, outputs=("out", "at"), axis=axis, largest=largest)
    for shape, axis in (((6,), 0), ((3, 4), 1), ((2, 1, 3), 0)):
        for exclusive, reverse in ((0, 0), (1, 0), (0, 1), (1, 1)):
            x = {"x": values(shape, 0.4, 1.6)}
            yield case(f"CumProd {shape} {exclusive}{reverse}", "CumProd", x, {"axis": numpy.int64(axis)}, opset=26, exclusive=exclusive, reverse=reverse)
    for op in ("Max", "Min"):
        x, y, z = values((2, 3), -1.5, -0.4), values((3,), 0.2, 0.9), values((2, 1), 1.1, 1.4)
        yield case(f"{op} of three", op, {"x": x, "y": y, "z": z})
    for shape in ((4,), (2, 3), (1, 5)):
        yield case(f"Mod {shape}", "Mod", {"x": values(shape, 1.1, 1.9)}, {"m": numpy.float32(0.7)}, fmod=1)
        yield case(f"Clip by operands {shape}", "Clip", {"x": values(shape), "lo": numpy.float32(-0.63), "hi": numpy.float32(0.57)})
        for op, more in (("Shrink", dict(lambd=0.4, bias=0.2)), ("Swish", dict(alpha=1.3, opset=24)), ("Celu", dict(alpha=0.6)), ("HardSigmoid", dict(alpha=0.3, beta=0.4))):
            yield case(f"{op} options {shape}", op, {"x": values(shape)}, **more)
    for shape, p, axis in (((3, 4), 1, 1), ((3, 4), 2, 0), ((2, 1, 3), 2, -1)):
        yield case(f"LpNormalization {shape} {p}", "LpNormalization", {"x": values(shape)}, axis=axis, p=p)
    for shape, size, more in (((2, 5, 3), 3, {}), ((1, 4, 2, 2), 2, dict(alpha=0.3, beta=0.6, bias=2.0)), ((1, 1, 4), 5, dict(alpha=0.5))):
        yield case(f"LRN {shape}", "LRN", {"x": values(shape)}, size=size, **more)
    for shape, axes in (((2, 3, 4, 5), [0, 2, 3]), ((3, 4), [1]), ((2, 2, 3), [2])):
        yield case(f"MeanVarianceNormalization {shape}", "MeanVarianceNormalization", {"x": values(shape)}, axes=axes)
    for shape in ((2, 2), (2, 3, 3), (1, 1, 1, 1), (2, 1, 4, 4), (7, 7)):
        x = numpy.eye(shape[-1], dtype=numpy.float32)[::-1] * 1.5 + values(shape, -0.6, 0.6)
        yield case(f"Det {shape}", "Det", {"x": x.astype(numpy.float32)}, opset=22)


def indices():
    for reduction in ("none", "add", "mul", "max", "min"):
        for shape, at, axis in (((3, 4), [[0, 2], [3, 1]], 1), ((4, 2), [[1, 0], [-1, 2]], 0), ((2, 1, 3), [[[0, 1, 0]]], 0)):
            at = numpy.array(at, numpy.int64)
            given = {"x": values(shape, 0.5, 1.5), "u": values(at.shape, 0.47, 1.53)}
            if reduction == "add" and axis == 1:
                at[0] = 1  # two at one place
            if reduction in ("max", "min", "mul") and axis == 1:
                at[1] = 2
            yield case(f"ScatterElements {reduction} {shape}", "ScatterElements", given, {"i": at}, inputs=["x", "i", "u"], axis=axis, reduction=reduction)
        for shape, at in (((4, 3), [[3], [1]]), ((3, 4), [[1, 1], [2, 3], [0, 0]]), ((2, 3, 2), [[[0, 1]], [[1, 2]]])):
            at = numpy.array(at, numpy.int64)
            if reduction != "none" and shape == (4, 3):
                at[:] = 3
            update = (*at.shape[:-1], *shape[at.shape[-1] :])
            given = {"x": values(shape, 0.5, 1.5), "u": values(update, 0.47, 1.53)}
            yield case(f"ScatterND {reduction} {shape}", "ScatterND", given, {"i": at}, inputs=["x", "i", "u"], reduction=reduction)
    for shape, at, dims in (((2, 3, 4), [[1], [2]], 1), ((2, 3, 4), [[[1]], [[0]]], 1), ((2, 2, 3), [[[2], [0]], [[1], [1]]], 2)):
        yield case(f"GatherND {dims} {shape}", "GatherND", {"x": values(shape)}, {"i": numpy.array(at, numpy.int64)}, batch_dims=dims)
    for shape, at in (((3,), [0, 2, 1]), ((2, 2), [[1, 0], [-1, 1]]), ((1, 1), [[3]])):
        yield case(f"OneHot {shape}", "OneHot", {"v": values((2,))}, {"i": numpy.array(at, numpy.int64), "d": numpy.int64(4)}, inputs=["i", "d", "v"], axis=0)
    for batch, time, lengths in ((0, 1, (2, 4, 1)), (1, 0, (3, 1, 2, 3)), (0, 1, (4, 4, 4))):
        lengths = ints(*lengths)
        yield case(f"ReverseSequence {batch} {lengths}", "ReverseSequence", {"x": values((3, 4, 2))}, {"l": lengths}, batch_axis=batch, time_axis=time)
    for mode, cache, update, at in (("linear", (2, 4, 3), (2, 2, 3), (1, 2)), ("circular", (2, 4, 3), (2, 2, 3), (3, 1)), ("linear", (1, 3, 1), (1, 1, 1), (2,))):
        given = {"x": values(cache), "u": values(update)}
        yield case(f"TensorScatter {mode} {cache}", "TensorScatter", given, {"i": ints(*at)}, opset=24, mode=mode, axis=1)
    for shape, to, axes in (((4, 6), (2, 8), [0, 1]), ((3, 5), (5,), [0]), ((1, 4), (1, 3), [-2, -1])):
        yield case(f"CenterCropPad {shape}", "CenterCropPad", {"x": values(shape)}, {"to": ints(*to)}, axes=axes)
    for mode, pads in (("wrap", [1, 0, 2, 1]), ("constant", [-1, 0, 0, -1]), ("reflect", [0, 2, 0, 2])):
        yield case(f"Pad {mode} {pads}", "Pad", {"x": values((3, 4))}, {"pads": ints(*pads)}, mode=mode, opset=19)
    yield case("DepthToSpace CRD", "DepthToSpace", {"x": values((1, 8, 2, 3))}, blocksize=2, mode="CRD")
    for equation, shapes in (
        ("ij->ji", [(2, 3)]), ("ii->i", [(3, 3)]), ("iij,ij->ij", [(3, 3, 2), (3, 2)]), ("ibi->b", [(3, 2, 3)]), ("iiij->ij", [(2, 2, 2, 3)]), ("i...i", [(3, 2, 2, 3)]), ("i,j->ij", [(3,), (4,)]), ("bi,ij,bj->b", [(2, 3), (3, 3), (2, 3)]), ("...i,ij->...j", [(2, 1, 3), (3, 2)]),
        ("ij,ij->", [(2, 3), (2, 3)]), ("bij->j", [(2, 3, 4)]), ("bqhd,bkhd->bhqk", [(1, 3, 2, 4), (1, 5, 2, 4)]), ("ij,jk", [(1, 3), (3, 1)]),
    ):  # fmt: skip
        yield case(f"Einsum {equation}", "Einsum", {f"x{i}": values(s) for i, s in enumerate(shapes)}, equation=equation)


def between_pixels(grid, sizes, aligned):
    """`grid`, moved until no place is near the middle of a pixel or the edge of two, where what is read has a kink."""
    sizes = numpy.float32(sizes[::-1])  # the last dimension of a grid holds x before y
    near = True
    while numpy.any(near):
        places = (grid + 1) * (sizes - 1) / 2 if aligned else ((grid + 1) * sizes - 1) / 2
        near = numpy.abs(2 * places - numpy.round(2 * places)) < 0.02
        grid = numpy.where(near, grid + numpy.float32(0.017), grid)
    return grid


def images():
    for mode in ("nearest", "linear", "cubic"):
        for how in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"):
            for shape, to in (((1, 2, 3, 4), (1, 2, 5, 3)), ((2, 1, 1, 3), (2, 1, 4, 7))):
                sizes = {"none": numpy.zeros(0, numpy.float32), "s": ints(*to)}
                yield case(f"Resize {mode} {how} {shape}", "Resize", {"x": values(shape)}, sizes, inputs=["x", "none", "none", "s"],
                           mode=mode, coordinate_transformation_mode=how)  # fmt: skip
    for mode in ("linear", "cubic"):
        for shape, to in (((1, 1, 6, 8), (1, 1, 4, 3)), ((2, 1, 9), (2, 1, 4)), ((1, 2, 5, 5), (1, 2, 2, 9))):
            sizes = {"none": numpy.zeros(0, numpy.float32), "s": ints(*to)}
            yield case(f"Resize antialias {mode} {shape}", "Resize", {"x": values(shape)}, sizes, inputs=["x", "none", "none", "s"],
                       mode=mode, antialias=1, exclude_outside=1)  # fmt: skip
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            for aligned in (0, 1):
                x, grid = values((2, 2, 4, 5)), between_pixels(values((2, 3, 2, 2), -1.17, 1.13), (4, 5), aligned)
                given, fixed = ({"x": x}, {"g": grid}) if mode == "nearest" else ({"x": x, "g": grid}, {})
                yield case(f"GridSample {mode} {padding} {aligned}", "GridSample", given, fixed, mode=mode, padding_mode=padding, align_corners=aligned)
    yield case("GridSample 3 dimensions", "GridSample", {"x": values((1, 1, 2, 3, 4)), "g": values((1, 2, 1, 2, 3), -0.83, 0.79)}, mode="linear")
    yield case("GridSample size 1", "GridSample", {"x": values((1, 1, 1, 3)), "g": values((1, 2, 2, 2), -0.83, 0.79)}, mode="linear")
    for shape, image, block, more in (((1, 8, 9), (4, 4), (2, 2), {}), ((2, 6, 4), (4, 5), (1, 3), dict(strides=[2, 2], pads=[0, 0, 0, 0])), ((1, 4, 9), (4, 4), (2, 2), dict(dilations=[2, 2], pads=[1, 1, 0, 0]))):
        count = [(i + sum(more.get("pads", [0] * 4)[d::2]) - more.get("dilations", [1, 1])[d] * (k - 1) - 1) // more.get("strides", [1, 1])[d] + 1 for d, (i, k) in enumerate(zip(image, block))]
        shape = (shape[0], shape[1], count[0] * count[1])
        yield case(f"Col2Im {shape} {image}", "Col2Im", {"x": values(shape)}, {"image": ints(*image), "block": ints(*block)}, **more)
    regions = numpy.array([[0.3, 0.2, 4.1, 3.7], [1.2, 1.1, 2.9, 5.3], [-0.7, 0.6, 2.2, 2.1]], numpy.float32)
    for mode in ("avg", "max"):
        for how in ("half_pixel", "output_half_pixel"):
            sizes = dict(output_height=2, output_width=3, sampling_ratio=2, spatial_scale=0.9)
            given = {"r": regions, "s": ints(0, 1, 1)}
            yield case(f"RoiAlign {mode} {how}", "RoiAlign", {"x": values((2, 2, 5, 6))}, given, mode=mode, coordinate_transformation_mode=how, **sizes)
    for p in (1, 2, 3):
        for shape, more in (((1, 2, 4, 4), dict(kernel_shape=[2, 2])), ((2, 1, 7), dict(kernel_shape=[3], strides=[2], pads=[1, 0])), ((1, 1, 1, 5), dict(kernel_shape=[1, 2]))):
            yield case(f"LpPool {p} {shape}", "LpPool", {"x": values(shape)}, p=p, **more)
        for shape in ((2, 3, 4), (1, 1, 2, 3), (1, 2, 1)):
            yield case(f"GlobalLpPool {p} {shape}", "GlobalLpPool", {"x": values(shape)}, p=p)
    hanging = dict(kernel_shape=[3], strides=[2], ceil_mode=1)  # over the end, of two elements the only window
    for x, more in (((1, 1, 7), hanging), ((2, 1, 2), hanging), ((1, 2, 5, 5), dict(kernel_shape=[2, 2], dilations=[2, 2])), ((2, 1, 3, 4, 3), dict(kernel_shape=[2, 2, 2]))):
        yield case(f"MaxPool {x}", "MaxPool", {"x": values(x)}, **more)
        for include in (0, 1):
            yield case(f"AveragePool {include} {x}", "AveragePool", {"x": values(x)}, count_include_pad=include, opset=22, **more)
    for x, kernel in (((1, 1, 4, 4), [2, 2]), ((2, 2, 6), [2]), ((1, 1, 6, 3), [3, 1])):
        pool = ("MaxPool", ["x"], ["y", "at"], dict(kernel_shape=kernel, strides=kernel))
        unpool = ("MaxUnpool", ["y", "at"], ["out"], dict(kernel_shape=kernel, strides=kernel))
        yield chain(f"MaxUnpool {x}", 20, [pool, unpool], {"x": values(x)})
    for x, w, groups in (((1, 2, 4, 4), (3, 2, 2, 2), 1), ((2, 2, 3, 4), (2, 1, 2, 2), 2), ((1, 1, 3, 3), (1, 1, 1, 1), 1)):
        height, width, taps = x[2] - w[2] + 1, x[3] - w[3] + 1, w[2] * w[3]
        offset, mask = values((x[0], 2 * taps, height, width), 0.1, 0.4), values((x[0], taps, height, width), 0.3, 1.2)
        given = {"x": values(x), "w": values(w), "o": offset, "b": values(w[:1]), "m": mask}
        yield case(f"DeformConv {x} {w}", "DeformConv", given, group=groups, kernel_shape=list(w[2:]))
    for x, w, more in (((1, 2, 3, 3, 3), (2, 2, 2, 2, 2), {}), ((1, 2, 4), (2, 3, 3), dict(auto_pad="SAME_UPPER", strides=[2])), ((2, 2, 3, 3), (2, 1, 3, 3), dict(dilations=[2, 1], group=2))):
        yield case(f"ConvTranspose {x} {w}", "ConvTranspose", {"x": values(x), "w": values(w), "b": values((w[1] * more.get("group", 1),))}, **more)


def transforms():
    for shape, axis, more in (((2, 6, 1), 1, {}), ((1, 5, 2), 1, {}), ((2, 3, 4, 2), 2, {}), ((1, 1, 2), 1, {}), ((2, 6, 1), 1, dict(onesided=1)), ((1, 4, 2), 1, dict(inverse=1))):
        nodes = [("DFT", ["x", "", numpy.int64(axis)], ["out"], more)]
        yield chain(f"DFT {shape} {more}", 20, nodes, {"x": values(shape)})
    # Long ones are transformed in two steps.
    for shape, more in (((2, 256, 1), dict(onesided=1)), ((1, 300, 2), dict(inverse=1)), ((1, 258, 2), {})):
        yield chain(f"DFT {shape} {more}", 20, [("DFT", ["x", "", numpy.int64(1)], ["out"], more)], {"x": values(shape)})
    yield chain("DFT of length 256", 20, [("DFT", ["x", numpy.int64(256), numpy.int64(1)], ["out"], {})], {"x": values((1, 200, 1))})
    for length in (3, 8):
        yield chain(f"DFT of length {length}", 20, [("DFT", ["x", numpy.int64(length), numpy.int64(1)], ["out"], {})], {"x": values((2, 5, 1))})
    for shape, step, size in (((1, 16, 1), 4, 8), ((2, 9, 1), 3, 5), ((1, 8, 1), 8, 8)):
        nodes = [("STFT", ["x", numpy.int64(step), "w", numpy.int64(size)], ["out"], dict(onesided=1))]
        yield chain(f"STFT {shape}", 17, nodes, {"x": values(shape), "w": values((size,), 0.2, 1.0)})


def recurrences():
    def layer(op, gates, time, batch, size, hidden, directions, take, opset=14, extra=(), lengths=None, states=1, **attributes):
        given = {"x": values((time, batch, size)), "w": values((directions, gates * hidden, size), -0.7, 0.7), "r": values((directions, gates * hidden, hidden), -0.7, 0.7)}
        names = ["x", "w", "r"]
        bias = {"b": values((directions, 2 * gates * hidden), -0.5, 0.5)} if "b" in extra else {}
        start = {n: values((directions, batch, hidden), -0.8, 0.8) for n in ("h0", "c0")[:states]} if "h" in extra else {}
        peep = {"p": values((directions, 3 * hidden), -0.5, 0.5)} if "p" in extra else {}
        given |= bias | start | peep
        operands = [*names, "b" if bias else "", numpy.array(lengths, numpy.int32) if lengths else "", "h0" if start else ""]
        operands += ["c0" if start else "", "p" if peep else ""] if states == 2 else []
        while operands[-1] is not given and isinstance(operands[-1], str) and operands[-1] == "":
            operands.pop()
        results = ["", "", ""][: 1 + states]
        results[take] = "out"
        attributes = dict(hidden_size=hidden, **({"direction": "bidirectional"} if directions == 2 else {})) | attributes
        label = f"{op} {take} {directions} {''.join(extra)} {lengths or ''} {attributes}"
        return chain(label, opset, [(op, operands, results, attributes)], given)

    for op, gates, states in (("LSTM", 4, 2), ("GRU", 3, 1), ("RNN", 1, 1)):
        for take in range(1 + states):
            yield layer(op, gates, 3, 2, 2, 3, 1, take, states=states)
            yield layer(op, gates, 3, 1, 2, 2, 2, take, extra=("b", "h"), states=states)
            yield layer(op, gates, 4, 3, 1, 2, 2, take, extra=("b", "h"), lengths=[4, 2, 3], states=states)
        yield layer(op, gates, 3, 2, 2, 2, 1, 0, states=states, extra=("b",), direction="reverse")
        yield layer(op, gates, 1, 1, 1, 1, 1, 0, states=states, extra=("b",), clip=0.9)
    for more in (dict(input_forget=1), dict(activations=["Sigmoid", "Softsign", "Tanh"]), {}):
        yield layer("LSTM", 4, 3, 2, 2, 2, 1, 0, states=2, extra=("b", "h", "p"), **more)
    for more in (dict(linear_before_reset=1), dict(linear_before_reset=1, activations=["Sigmoid", "Softplus"])):
        yield layer("GRU", 3, 3, 2, 2, 2, 1, 0, extra=("b", "h"), **more)
    for activation in ("Relu", "Softplus", "Sigmoid"):
        yield layer("RNN", 1, 3, 2, 2, 2, 1, 0, extra=("b", "h"), activations=[activation])


def bodies():
    """If, Loop and Scan: the parameter is read from outside of the body, carried through it, and scanned over."""
    for shape in ((3,), (2, 1), (1, 2, 2)):
        for taken in (True, False):
            then = helper.make_graph([helper.make_node("Mul", ["x", "x"], ["t"])], "then", [], [info("t", shape)])
            other = helper.make_graph([helper.make_node("Sin", ["x"], ["e"])], "else", [], [info("e", shape)])
            yield chain(f"If {taken} {shape}", 20, [("If", [numpy.array(taken)], ["out"], dict(then_branch=then, else_branch=other))], {"x": values(shape)})
        # Decided by data: the branch that is not taken makes NaN and infinities, of which nothing may come back.
        for sign in (1.0, -1.0):
            root = helper.make_graph([helper.make_node("Sqrt", ["x"], ["r"]), helper.make_node("Log", ["r"], ["t"])], "then", [], [info("t", shape)])
            other = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["e"])], "else", [], [info("e", shape)])
            asked = [("ReduceMin", ["x"], ["least"], dict(keepdims=0)), ("Greater", ["least", numpy.float32(0.0)], ["asked"], {})]
            given = {"x": values(shape, *sorted((sign * 0.3, sign * 1.7))), "w": values(shape)}
            yield chain(f"If on data {sign} {shape}", 20, [*asked, ("If", ["asked"], ["out"], dict(then_branch=root, else_branch=other))], given)
        body = helper.make_graph(
            [helper.make_node("Mul", ["carried", "w"], ["product"]), helper.make_node("Tanh", ["product"], ["next"]),
             helper.make_node("Identity", ["on"], ["still"]), helper.make_node("Mul", ["next", "next"], ["each"])],
            "body", [info("i", [], TensorProto.INT64), info("on", [], TensorProto.BOOL), info("carried", shape)],
            [info("still", [], TensorProto.BOOL), info("next", shape), info("each", shape)])  # fmt: skip
        given = {"x": values(shape), "w": values(shape, 0.5, 1.5)}
        loop = [numpy.int64(3), numpy.array(True), "x"]
        yield chain(f"Loop carried {shape}", 20, [("Loop", loop, ["out", "all"], dict(body=body))], given)
        stacked = ("Reshape", ["all", ints(3, *shape)], ["out"], {})
        yield chain(f"Loop scanned {shape}", 20, [("Loop", loop, ["last", "all"], dict(body=body)), stacked], given)
        step = helper.make_graph(
            [helper.make_node("Add", ["state", "row"], ["sum"]), helper.make_node("Sin", ["sum"], ["next"]), helper.make_node("Mul", ["next", "row"], ["each"])],
            "body", [info("state", shape[1:]), info("row", shape[1:])], [info("next", shape[1:]), info("each", shape[1:])])  # fmt: skip
        for reverse in (0, 1):
            more = dict(body=step, num_scan_inputs=1, scan_input_directions=[reverse], scan_output_directions=[reverse])
            yield chain(f"Scan {reverse} {shape}", 20, [("Scan", ["s", "x"], ["last", "out"], more)], {"s": values(shape[1:]), "x": values(shape)})
    parts = [("SplitToSequence", ["x"], ["parts"], dict(axis=0, keepdims=0)), ("SequenceAt", ["parts", numpy.int64(1)], ["one"], {}),
             ("SequenceInsert", ["parts", "one"], ["more"], {}), ("ConcatFromSequence", ["more"], ["out"], dict(axis=0, new_axis=1))]  # fmt: skip
    for shape in ((3, 2), (2, 1, 3), (4,)):
        yield chain(f"sequences {shape}", 20, parts, {"x": values(shape)})
    for shape in ((3, 2), (2, 1, 3), (4,)):
        body = helper.make_graph(
            [helper.make_node("Mul", ["part", "same"], ["product"]), helper.make_node("Sin", ["product"], ["each"])],
            "body", [info("part", shape[1:]), info("same", shape[1:])], [info("each", shape[1:])])  # fmt: skip
        parts = [("SplitToSequence", ["x"], ["parts"], dict(axis=0, keepdims=0)), ("SequenceMap", ["parts", "w"], ["more"], dict(body=body)), ("ConcatFromSequence", ["more"], ["out"], dict(axis=0, new_axis=1))]
        yield chain(f"SequenceMap {shape}", 20, parts, {"x": values(shape), "w": values(shape[1:])})
    tables = {"cos": values((1, 3, 2), -1, 1), "sin": values((1, 3, 2), -1, 1)}
    for interleaved in (0, 1):
        for shape in ((1, 2, 3, 4), (1, 1, 3, 4)):
            yield case(f"RotaryEmbedding {interleaved} {shape}", "RotaryEmbedding", {"x": values(shape)} | tables, opset=23, interleaved=interleaved)
    for q, k, v, more in (((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 3), dict(softcap=2.0)), ((2, 3, 8), (2, 4, 4), (2, 4, 4), dict(q_num_heads=4, kv_num_heads=2)), ((1, 1, 1, 2), (1, 1, 1, 2), (1, 1, 1, 2), dict(scale=0.3))):
        yield case(f"Attention {q} {more}", "Attention", {"q": values(q), "k": values(k), "v": values(v)}, opset=23, **more)
    bias = {"q": values((1, 2, 3, 4)), "k": values((1, 2, 3, 4)), "v": values((1, 2, 3, 4)), "m": values((2, 3, 3))}
    for rule, batch, time, heads, states, wide in (("linear", 2, 3, 2, 2, 0), ("gated", 1, 3, 2, 1, 0), ("gated", 1, 2, 2, 2, 1), ("delta", 1, 3, 4, 2, 0), ("gated_delta", 2, 2, 2, 2, 1), ("gated_delta", 1, 1, 1, 1, 0)):
        given = {"q": values((batch, time, heads * 3)), "k": values((batch, time, states * 3), -0.6, 0.6), "v": values((batch, time, states * 2))}
        given["s"] = values((batch, states, 3, 2))
        if "gated" in rule:
            given["g"] = values((batch, time, states * (3 if wide else 1)), -1.0, -0.1)
        if "delta" in rule:
            given["b"] = values((batch, time, states if wide else 1), 0.2, 0.8)
        operands = ["q", "k", "v", "s", "g" if "g" in given else "", *(["b"] if "b" in given else [])]
        for take in (0, 1):
            results = ["out", ""][:2] if take == 0 else ["", "out"]
            chosen = {n: v for n, v in given.items() if take == 0 or n != "q"}
            nodes = [] if take == 0 else [("Constant", [], ["q"], dict(value_floats=[0.5] * given["q"].size)), ("Reshape", ["q", ints(*given["q"].shape)], ["query"], {})]
            now = operands if take == 0 else ["query", *operands[1:]]
            more = dict(q_num_heads=heads, kv_num_heads=states, update_rule=rule)
            yield chain(f"LinearAttention {take} {rule} {heads} {states} {wide}", 27, [*nodes, ("LinearAttention", now, results, more)], chosen)
    for shape, width, activation in (((2, 3, 5), 3, "none"), ((1, 2, 2), 4, "silu"), ((1, 1, 3), 1, "swish")):
        given = {"x": values(shape), "w": values((shape[1], 1, width)), "b": values((shape[1],)), "s": values((*shape[:2], width - 1))}
        given = {n: v for n, v in given.items() if v.size}
        yield case(f"CausalConvWithState {shape}", "CausalConvWithState", given, opset=27, outputs=("out", "rest"), activation=activation)
    yield case("Attention bias", "Attention", bias, opset=23)


def more_shapes():
    """Further shapes of operators, after all others: numbers are drawn in order."""
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare", "ReduceLogSum"):
        low = 0.4 if op in ("ReduceProd", "ReduceLogSum") else -1.5
        for shape, axes in (((5,), (0,)), ((1, 3), (-2,))):
            yield case(f"{op} {shape} {axes}", op, {"x": values(shape, low, 1.5)}, {"axes": ints(*axes)}, keepdims=1)
    for p in (1, 2):
        yield case(f"LpNormalization (1, 5) {p}", "LpNormalization", {"x": values((1, 5))}, axis=1, p=p)
    for mode in ("DCR", "CRD"):
        for shape, block in (((2, 4, 1, 3), 2), ((1, 9, 2, 1), 3)):
            yield case(f"DepthToSpace {mode} {shape}", "DepthToSpace", {"x": values(shape)}, blocksize=block, mode=mode)
    for shape, block in (((2, 1, 2, 6), 2), ((1, 1, 3, 3), 3)):
        yield case(f"SpaceToDepth {shape}", "SpaceToDepth", {"x": values(shape)}, blocksize=block)
    # The values of OneHot are two numbers whatever the indices' shape.
    for shape, axis in (((2, 1, 3), -1), ((4, 2), 1)):
        at = numpy.arange(numpy.prod(shape)).reshape(shape) % 3
        yield case(f"OneHot {shape} along {axis}", "OneHot", {"v": values((2,))}, {"i": at, "d": numpy.int64(3)}, inputs=["i", "d", "v"], axis=axis)
    for mode, shape, pads in (("constant", (4,), [2, 1]), ("reflect", (2, 3, 3), [0, 1, 2, 0, 0, 1]), ("edge", (1, 2), [1, 2, 1, 0]), ("wrap", (1, 4), [0, 3, 0, 1])):
        yield case(f"Pad {mode} {shape}", "Pad", {"x": values(shape)}, {"pads": ints(*pads)}, mode=mode, opset=19)
    for shape, lengths in (((1, 3), (2,)), ((2, 4, 1, 2), (3, 1))):
        yield case(f"ReverseSequence {shape}", "ReverseSequence", {"x": values(shape)}, {"l": ints(*lengths)}, batch_axis=0, time_axis=1)
    for mode in ("avg", "max"):
        for shape in ((1, 1, 4, 3), (1, 3, 3, 7)):
            given = {"r": numpy.array([[0.2, 0.3, 2.1, 1.8], [0.9, 0.7, 1.9, 2.3]], numpy.float32), "s": ints(0, 0)}
            yield case(f"RoiAlign {mode} {shape}", "RoiAlign", {"x": values(shape)}, given, mode=mode, output_height=2, output_width=1, sampling_ratio=2)
    for interleaved in (0, 1):
        tables = {"cos": values((2, 1, 1), -1, 1), "sin": values((2, 1, 1), -1, 1)}
        yield case(f"RotaryEmbedding {interleaved} (2, 3, 1, 2)", "RotaryEmbedding", {"x": values((2, 3, 1, 2))} | tables, opset=23, interleaved=interleaved)
    yield case("Split (1, 3, 4) [1, 3]", "Split", {"x": values((1, 3, 4))}, {"s": ints(1, 3)}, outputs=("out", "rest"), axis=-1)
    for shape, axes in (((2, 1), [-1]), ((1, 1, 4), [0])):
        yield case(f"Squeeze {shape} {axes}", "Squeeze", {"x": values(shape)}, {"axes": ints(*axes)})
    for shape, axes in (((4,), [-1]), ((1, 2, 3), [1, 4])):
        yield case(f"Unsqueeze {shape} {axes}", "Unsqueeze", {"x": values(shape)}, {"axes": ints(*axes)})
    given = {"x": values((3, 2, 5, 2)), "u": values((3, 2, 1, 2))}
    yield case("TensorScatter linear (3, 2, 5, 2)", "TensorScatter", given, {"i": ints(4, 0, 2)}, opset=24, axis=2)


def build():
    return [*orders(), *indices(), *images(), *transforms(), *recurrences(), *bodies(), *more_shapes()]
