"""Bad models: each is refused with a documented exit code and a message that names the culprit.

A case is (name, files, flags, exit code, words that the message must hold). `files` maps names to bytes; the model is
`model.onnx` among them. A good model (`sound`) is changed in one way each time.
"""

import numpy
from onnx import ModelProto, TensorProto, helper, numpy_helper

USAGE, BAD, UNSUPPORTED, IO = 1, 2, 3, 8  # the documented exit codes (docs/reference/exit-codes.md)
F, I = TensorProto.FLOAT, TensorProto.INT64


def tensor(name, *shape):
    count = int(numpy.prod(shape))
    return numpy_helper.from_array((numpy.arange(count) % 7 / 7 - 0.4).astype(numpy.float32).reshape(shape), name)


def info(name, shape, dtype=F):
    return helper.make_tensor_value_info(name, dtype, shape)


def graph(nodes, inputs, outputs, weights):
    return helper.make_graph(nodes, "g", inputs, outputs, weights)


def model(g, opset=17, ir=8, domains=(), functions=()):
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(g, opset_imports=opsets, ir_version=ir, functions=list(functions))


def sound():
    """x·w + b → cross-entropy with y."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["logits"], name="dense"),
        helper.make_node("SoftmaxCrossEntropyLoss", ["logits", "y"], ["loss"], name="criterion"),
    ]
    inputs = [info("x", [4, 8]), info("y", [4], I)]
    return model(graph(nodes, inputs, [info("loss", [])], [tensor("w", 8, 3), tensor("b", 3)]))


CASES = []


def case(name, code, *words, flags=()):
    """Registers a function that makes a model, bytes, or a whole set of files."""

    def register(make):
        def files():
            made = make()
            made = made.SerializeToString() if isinstance(made, ModelProto) else made
            return made if isinstance(made, dict) else {"model.onnx": made}

        CASES.append((name, files, list(flags), code, words))
        return make

    return register


def changed(name, code, *words, flags=()):
    """Registers a function that changes the sound model in place."""

    def register(change):
        def make():
            m = sound()
            change(m)
            return m

        case(name, code, *words, flags=flags)(make)
        return change

    return register


# Bytes that are no model.
case("empty file", BAD)(lambda: b"")
case("text instead of a model", BAD)(lambda: b"hello, this is not a model\n" * 20)
case("random bytes", BAD)(lambda: bytes(numpy.random.default_rng(1).integers(0, 256, 5000, dtype=numpy.uint8)))
case("cut in half", BAD)(lambda: sound().SerializeToString()[: len(sound().SerializeToString()) // 2])
case("without its last byte", BAD)(lambda: sound().SerializeToString()[:-1])
case("a length beyond the file", BAD)(lambda: b"\x08\x08\x3a\xff\xff\xff\xff\x0f" + b"\0" * 16)
case("no graph", BAD, "graph")(lambda: ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 17)]))
case("no such file", IO, "missing.onnx", flags=["--model=missing.onnx"])(lambda: {})
case("a folder instead of a file", IO, flags=["--model=."])(lambda: {})


@case("deeply nested bytes", BAD)
def deep():
    inner = b""
    for _ in range(3000):  # GraphProto inside AttributeProto inside NodeProto, again and again
        for key in (0x32, 0x2A, 0x0A):
            size, length = len(inner), b""
            while True:
                length += bytes([size & 0x7F | (0x80 if size > 0x7F else 0)])
                size >>= 7
                if not size:
                    break
            inner = bytes([key]) + length + inner
        if len(inner) > 2_000_000:
            break
    return b"\x08\x08\x42\x02\x10\x11" + b"\x3a" + bytes([len(inner) & 0x7F | 0x80, len(inner) >> 7 & 0x7F | 0x80, len(inner) >> 14]) + inner


# Versions and domains.
@changed("a future IR version", UNSUPPORTED, "9999")
def _(m):
    m.ir_version = 9999


@changed("a future opset", UNSUPPORTED, "4000")
def _(m):
    m.opset_import[0].version = 4000


@changed("no opset", BAD, "opset")
def _(m):
    del m.opset_import[:]


@changed("opset zero", BAD)
def _(m):
    m.opset_import[0].version = 0


@changed("an unknown operator", UNSUPPORTED, "Frobnicate")
def _(m):
    m.graph.node[0].op_type = "Frobnicate"


@changed("an operator of a foreign domain", UNSUPPORTED, "com.example")
def _(m):
    m.graph.node[0].domain = "com.example"
    m.opset_import.append(helper.make_opsetid("com.example", 1))


@changed("a domain that is not imported", BAD, "com.example")
def _(m):
    m.graph.node[0].domain = "com.example"


# Structure of the graph.
@case("a cycle", BAD, "a")
def cycle():
    nodes = [helper.make_node("Add", ["x", "b"], ["a"], name="one"), helper.make_node("Mul", ["a", "w"], ["b"], name="two"),
             helper.make_node("ReduceMean", ["b"], ["loss"], keepdims=0)]  # fmt: skip
    return model(graph(nodes, [info("x", [4])], [info("loss", [])], [tensor("w", 4)]))


@changed("a cycle among nodes out of order", BAD, "a cycle")
def _(m):
    nodes = list(m.graph.node)[::-1]
    nodes[-1].input[0] = nodes[0].output[0]
    del m.graph.node[:]
    m.graph.node.extend(nodes)


@changed("an undefined value", BAD, "nowhere")
def _(m):
    m.graph.node[0].input[1] = "nowhere"


@changed("a value defined twice", BAD, "logits")
def _(m):
    m.graph.node.append(helper.make_node("Relu", ["x"], ["logits"]))


@changed("two initializers of one name", BAD, "w")
def _(m):
    m.graph.initializer.append(tensor("w", 8, 3))


@changed("an output that nothing makes", BAD, "ghost")
def _(m):
    m.graph.output[0].name = "ghost"


@changed("no output", BAD, "output")
def _(m):
    del m.graph.output[:]


@changed("too few inputs", BAD, "Gemm")
def _(m):
    del m.graph.node[0].input[1:]


@changed("too many outputs", BAD, "Gemm")
def _(m):
    m.graph.node[0].output.extend(["p", "q", "r"])


@changed("an input without a name", BAD)
def _(m):
    m.graph.node[0].input[0] = ""


# Attributes.
@changed("an attribute of the wrong type", BAD, "alpha")
def _(m):
    m.graph.node[0].attribute.append(helper.make_attribute("alpha", "one"))


@changed("an unknown attribute", BAD, "colour")
def _(m):
    m.graph.node[0].attribute.append(helper.make_attribute("colour", 3))


@changed("a reduction of an unknown kind", BAD, "median")
def _(m):
    m.graph.node[1].attribute.append(helper.make_attribute("reduction", "median"))


@case("an axis out of range", BAD, "7")
def axis():
    nodes = [helper.make_node("Mul", ["x", "w"], ["h"]), helper.make_node("Softmax", ["h"], ["s"], axis=7, name="far"),
             helper.make_node("ReduceMean", ["s"], ["loss"], keepdims=0)]  # fmt: skip
    return model(graph(nodes, [info("x", [2, 4])], [info("loss", [])], [tensor("w", 4)]))


@case("a transposition that is none", BAD)
def permutation():
    nodes = [helper.make_node("Mul", ["x", "w"], ["h"]), helper.make_node("Transpose", ["h"], ["s"], perm=[0, 0], name="twice"),
             helper.make_node("ReduceMean", ["s"], ["loss"], keepdims=0)]  # fmt: skip
    return model(graph(nodes, [info("x", [2, 4])], [info("loss", [])], [tensor("w", 4)]))


@case("a stride of zero", BAD)
def stride():
    nodes = [helper.make_node("Conv", ["x", "w"], ["h"], strides=[0, 0], name="stuck"), helper.make_node("ReduceMean", ["h"], ["loss"], keepdims=0)]
    return model(graph(nodes, [info("x", [1, 2, 8, 8])], [info("loss", [])], [tensor("w", 2, 2, 3, 3)]))


@case("a kernel larger than its image", BAD)
def kernel():
    nodes = [helper.make_node("Conv", ["x", "w"], ["h"], name="wide"), helper.make_node("ReduceMean", ["h"], ["loss"], keepdims=0)]
    return model(graph(nodes, [info("x", [1, 2, 4, 4])], [info("loss", [])], [tensor("w", 2, 2, 9, 9)]))


# Shapes and types.
@changed("shapes that do not match", BAD)
def _(m):
    m.graph.input[0].CopyFrom(info("x", [4, 9]))


@changed("a contradictory output shape", BAD, "loss")
def _(m):
    m.graph.output[0].CopyFrom(info("loss", [5, 5]))


@case("a contradictory value shape", BAD, "h")
def contradictory():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("ReduceMean", ["h"], ["loss"], keepdims=0)]
    m = model(graph(nodes, [info("x", [2, 4])], [info("loss", [])], [tensor("w", 4, 4)]))
    m.graph.value_info.append(info("h", [3, 5]))
    return m


@changed("labels of a floating type", BAD)
def _(m):
    m.graph.input[1].CopyFrom(info("y", [4], F))


@changed("mixed element types", BAD)
def _(m):
    m.graph.input[0].CopyFrom(info("x", [4, 8], TensorProto.DOUBLE))


@changed("an element type that does not exist", BAD)
def _(m):
    m.graph.input[0].type.tensor_type.elem_type = 99


@changed("complex numbers", UNSUPPORTED)
def _(m):
    m.graph.input[0].type.tensor_type.elem_type = TensorProto.COMPLEX64


@changed("a negative dimension", BAD, "x")
def _(m):
    m.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -4


@changed("a dimension of zero", BAD, "x")
def _(m):
    m.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 0
    m.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 0


@changed("an absurd dimension", BAD, "x")
def _(m):
    m.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1 << 62
    m.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 1 << 62


@changed("an unbound dimension", USAGE, "rows", "--dim")
def _(m):
    for i in (0, 1):
        m.graph.input[i].type.tensor_type.shape.dim[0].dim_param = "rows"


@changed("a dimension bound to two sizes", USAGE, "rows", flags=["--dim=rows=4", "--dim=rows=5"])
def _(m):
    for i in (0, 1):
        m.graph.input[i].type.tensor_type.shape.dim[0].dim_param = "rows"


@changed("a binding for a dimension that is not there", USAGE, "columns", flags=["--dim=columns=5"])
def _(m):
    pass


@case("an input of unknown rank", USAGE, "x")
def rank():
    m = sound()
    m.graph.input[0].type.tensor_type.ClearField("shape")
    return m


@case("a shape that depends on data", UNSUPPORTED, "Unique")
def dynamic():
    nodes = [helper.make_node("Unique", ["x"], ["i"], name="where"),
             helper.make_node("ReduceMean", ["i"], ["m"], keepdims=0), helper.make_node("Mul", ["m", "w"], ["loss"])]  # fmt: skip
    return model(graph(nodes, [info("x", [4])], [info("loss", [])], [tensor("w")]))


@case("a loop without a bound", UNSUPPORTED, "Loop")
def loop():
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["go"]), helper.make_node("Mul", ["v", "w"], ["u"])], "body",
        [info("i", [], I), info("c", [], TensorProto.BOOL), info("v", [4])], [info("go", [], TensorProto.BOOL), info("u", [4])],
    )  # fmt: skip
    nodes = [helper.make_node("Loop", ["", "go0", "x"], ["h"], body=body, name="forever"), helper.make_node("ReduceMean", ["h"], ["loss"], keepdims=0)]
    return model(graph(nodes, [info("x", [4]), info("go0", [], TensorProto.BOOL)], [info("loss", [])], [tensor("w", 4)]))


@case("text as data", UNSUPPORTED)
def strings():
    nodes = [helper.make_node("StringNormalizer", ["s"], ["t"], name="words"), helper.make_node("ReduceMean", ["w"], ["loss"], keepdims=0)]
    return model(graph(nodes, [info("s", [4], TensorProto.STRING)], [info("loss", [])], [tensor("w", 4)]))


# What training needs.
@case("no loss", USAGE, "loss")
def lossless():
    return model(graph([helper.make_node("MatMul", ["x", "w"], ["logits"])], [info("x", [4, 8])], [info("logits", [4, 3])], [tensor("w", 8, 3)]))


@changed("a loss on a value that is not there", USAGE, "nothing", flags=["--loss=cross_entropy(nothing, y)"])
def _(m):
    pass


@changed("a loss of an unknown kind", USAGE, "loss", flags=["--loss=hinge(logits, y)"])
def _(m):
    pass


@case("no parameters", USAGE, "parameter", "--params")
def parameterless():
    return model(graph([helper.make_node("ReduceMean", ["x"], ["loss"], keepdims=0)], [info("x", [4])], [info("loss", [])], []))


@changed("every parameter frozen", USAGE, "parameter", "--params", flags=["--frozen=*"])
def _(m):
    pass


@changed("a pattern that matches nothing", USAGE, "nosuch", flags=["--params=nosuch*"])
def _(m):
    pass


@case("an operator whose result has no fixed shape", UNSUPPORTED, "Unique")
def distinct():
    nodes = [helper.make_node("Mul", ["x", "w"], ["h"]), helper.make_node("Unique", ["h"], ["d"], name="distinct"),
             helper.make_node("ReduceMean", ["d"], ["loss"], keepdims=0)]  # fmt: skip
    return model(graph(nodes, [info("x", [2, 3, 3])], [info("loss", [])], [tensor("w", 3, 3)]))


# Flags.
for _name, _flag, _word in (
    ("a learning rate that is no number", "--lr=fast", "fast"), ("an unknown optimizer", "--optimizer=sofia", "sofia"), ("half of betas", "--betas=0.9", "betas"),
    ("an option of another optimizer", "--momentum=0.9", "momentum"), ("a group with an unknown option", "--group=w:speed=1", "speed"),
    ("a schedule without an end", "--schedule=cosine", "--total-steps"), ("an unknown flag", "--optimzer=sgd", "--optimizer"),
    ("a limit that is no number", "--clip-norm=nan", "a number of at least 0, not 'nan'"), ("a negative limit", "--clip-value=-1", "not '-1'"),
    ("no part of the batch", "--micro-batches=0", "a whole number from 1 to 1073741824, not '0'"), ("more parts than samples", "--micro-batches=8", "--micro-batches=4 would"),
    ("a budget in an unknown unit", "--device-budget=8XB", "8MiB"), ("a budget of a byte and a half", "--device-budget=1.5", "8MiB"),
    ("a negative budget", "--device-budget=-5", "8MiB"), ("a budget of nothing", "--device-budget=0%", "50%"),
    ("a bound without a budget", "--bound", "--device-budget"), ("a strategy without a budget", "--remat-strategy=sqrt", "--device-budget"),
    ("an override without 16 bits", "--precision-override=*=f32", "--precision=mixed-bf16"),
):  # fmt: skip
    changed(_name, USAGE, _word, flags=[_flag])(lambda m: None)
changed("an override without a type", USAGE, "garbage", flags=["--precision=mixed-bf16", "--precision-override=garbage"])(lambda m: None)
changed("two shapes of an input", USAGE, "'x' is given twice", flags=["--shape=x=4x8", "--shape=x=5x8"])(lambda m: None)


@case("parts of a batch whose samples meet", UNSUPPORTED, "meeting", flags=["--micro-batches=2"])
def meeting():
    nodes = [helper.make_node("Gemm", ["x", "w"], ["h"]), helper.make_node("MatMul", ["h", "h"], ["m"], name="meeting"),
             helper.make_node("ReduceMean", ["m"], ["loss"], keepdims=0)]  # fmt: skip
    return model(graph(nodes, [info("x", [4, 4])], [info("loss", [])], [tensor("w", 4, 4)]))


# Weights.
@changed("too few bytes in a weight", BAD, "w")
def _(m):
    m.graph.initializer[0].raw_data = m.graph.initializer[0].raw_data[:-4]


@changed("too many bytes in a weight", BAD, "w")
def _(m):
    m.graph.initializer[0].raw_data += b"\0" * 8


@changed("a weight whose size overflows", BAD, "w")
def _(m):
    del m.graph.initializer[0].dims[:]
    m.graph.initializer[0].dims.extend([1 << 31, 1 << 31, 16])


@changed("a weight with a negative dimension", BAD, "w")
def _(m):
    m.graph.initializer[0].dims[0] = -8


def external(location, **more):
    def change(m):
        w = m.graph.initializer[0]
        w.ClearField("raw_data")
        w.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, **more}.items():
            w.external_data.add(key=key, value=str(value))

    return change


changed("external data in a parent folder", BAD, "..")(external("../outside.bin"))
changed("external data at an absolute path", BAD, "/etc/passwd")(external("/etc/passwd"))
changed("external data that is missing", IO, "absent.bin", "--no-weights", "--init=random")(external("absent.bin"))
changed("external data without a place", BAD, "w")(external(""))
changed("external data at a negative offset", BAD, "offset")(external("weights.bin", offset=-8))
changed("external data with an offset that is no number", BAD, "offset")(external("weights.bin", offset="many"))


@case("external data that ends early", BAD, "weights.bin")
def short():
    m = sound()
    external("weights.bin", offset=0, length=96)(m)
    return {"model.onnx": m.SerializeToString(), "weights.bin": b"\0" * 40}


@case("external data of the wrong length", BAD, "w")
def wrong():
    m = sound()
    external("weights.bin", offset=0, length=64)(m)
    return {"model.onnx": m.SerializeToString(), "weights.bin": b"\0" * 400}


@case("external data behind a link", BAD, "weights.bin")
def link():
    m = sound()
    external("weights.bin")(m)
    return {"model.onnx": m.SerializeToString(), "weights.bin": ("link", "/etc/passwd")}


@case("external data in a pipe", BAD, "weights.bin")
def pipe():
    m = sound()
    external("weights.bin")(m)
    return {"model.onnx": m.SerializeToString(), "weights.bin": ("pipe", "")}


# Functions.
def calling(*functions):
    nodes = [helper.make_node("f", ["x"], ["h"], domain="local", name="call"), helper.make_node("MatMul", ["h", "w"], ["z"]),
             helper.make_node("ReduceMean", ["z"], ["loss"], keepdims=0)]  # fmt: skip
    return model(graph(nodes, [info("x", [4, 8])], [info("loss", [])], [tensor("w", 8, 3)]), domains=["local"], functions=functions)


def function(name, nodes):
    return helper.make_function("local", name, ["a"], ["b"], nodes, [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)])


@case("a function that calls itself", BAD, "f")
def recursive():
    return calling(function("f", [helper.make_node("f", ["a"], ["b"], domain="local")]))


@case("two functions that call each other", BAD, "f")
def mutual():
    there, back = helper.make_node("g", ["a"], ["b"], domain="local"), helper.make_node("f", ["a"], ["b"], domain="local")
    return calling(function("f", [there]), function("g", [back]))


@case("functions that expand without end", BAD)
def bomb():
    """Thirty functions, each calling the next twice: a thousand million nodes from a small file."""
    out = []
    for i in range(30):
        follower = f"f{i + 1}" if i < 29 else None
        name = "f" if i == 0 else f"f{i}"
        if follower:
            nodes = [helper.make_node(follower, ["a"], ["m"], domain="local"), helper.make_node(follower, ["m"], ["b"], domain="local")]
        else:
            nodes = [helper.make_node("Relu", ["a"], ["b"])]
        out.append(function(name, nodes))
    return calling(*out)

