"""Training with frozen weights in few bits, next to PyTorch: quantized_weights.py <folder of binaries> [--full]; in the environment
of `tools/dev setup --oracles`.

The files are what onnxruntime's quantizer makes of a small network, and ONNX's own DequantizeLinear. The weights stay as they
are, in their bits; biases and the head, or a low-rank pair, are trained as PyTorch trains them next to the numbers that
onnxruntime unpacks. Prints a list of {name, complaint}.
"""

import contextlib
import io
import itertools
import json
import logging
import pathlib
import re
import subprocess
import sys
import tempfile

# onnxruntime has a module that is called like one of this folder.
sys.path.remove(str(pathlib.Path(__file__).resolve().parent))
import ml_dtypes  # noqa: E402
import numpy  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import safetensors.torch  # noqa: E402
import torch  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnxruntime.quantization import QuantFormat  # noqa: E402
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer  # noqa: E402

WIDE, HIDDEN, CLASSES, BATCH, STEPS = 256, 64, 10, 8, 10
RANK, ALPHA = 4, 8
LOSS = "--loss=cross_entropy(logits, labels)"


def network():
    """x · W + b → relu → · V, with V too small for blocks of 32."""
    random = numpy.random.default_rng(3)
    weights = {
        "fc.weight": random.standard_normal((WIDE, HIDDEN)) * 0.1, "fc.bias": random.standard_normal(HIDDEN) * 0.1,
        "head.weight": random.standard_normal((HIDDEN, CLASSES)) * 0.1,
    }  # fmt: skip
    nodes = [
        helper.make_node("MatMul", ["x", "fc.weight"], ["product"], name="fc"), helper.make_node("Add", ["product", "fc.bias"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["hidden"]), helper.make_node("MatMul", ["hidden", "head.weight"], ["logits"], name="head"),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WIDE])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", CLASSES])],
        [numpy_helper.from_array(value.astype(numpy.float32), name) for name, value in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def quantized(bits, symmetric, how):
    logging.getLogger("onnxruntime.quantization.matmul_nbits_quantizer").setLevel(logging.ERROR)
    config = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=symmetric, bits=bits, quant_format=how)
    quantizer = MatMulNBitsQuantizer(network(), algo_config=config, nodes_to_exclude=["head"])
    quantizer.process()
    return quantizer.model.model


def whole_numbers():
    """The first weight as int8 with one scale for each of its columns."""
    model = network()
    weight = numpy_helper.to_array(model.graph.initializer[0])
    scale = (abs(weight).max(0) / 127).astype(numpy.float32)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(numpy.rint(weight / scale).astype(numpy.int8), "fc.weight"))
    model.graph.initializer.append(numpy_helper.from_array(scale, "fc.scale"))
    model.graph.node[0].input[1] = "unpacked"
    model.graph.node.insert(0, helper.make_node("DequantizeLinear", ["fc.weight", "fc.scale"], ["unpacked"], axis=1))
    return model


def floats(kind):
    """The first weight as floats of 8 or 4 bits with one scale for each of its columns."""
    model = network()
    weight = numpy_helper.to_array(model.graph.initializer[0])
    scale = (abs(weight).max(0) / 4).astype(numpy.float32)
    codes = (weight / scale).astype(getattr(ml_dtypes, kind))
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(codes, "fc.weight"))
    model.graph.initializer.append(numpy_helper.from_array(scale, "fc.scale"))
    model.graph.node[0].input[1] = "unpacked"
    model.graph.node.insert(0, helper.make_node("DequantizeLinear", ["fc.weight", "fc.scale"], ["unpacked"], axis=1))
    model.opset_import[0].version = 23
    return model


# name -> (model, bytes of the codes of the first weight)
FILES = {
    "MatMulNBits 4": (lambda: quantized(4, True, QuantFormat.QOperator), WIDE * HIDDEN // 2),
    "MatMulNBits 4 zero points": (lambda: quantized(4, False, QuantFormat.QOperator), WIDE * HIDDEN // 2),
    "MatMulNBits 8": (lambda: quantized(8, True, QuantFormat.QOperator), WIDE * HIDDEN),
    "DequantizeLinear int4": (lambda: quantized(4, True, QuantFormat.QDQ), WIDE * HIDDEN // 2),
    "DequantizeLinear uint4 zero points": (lambda: quantized(4, False, QuantFormat.QDQ), WIDE * HIDDEN // 2),
    "DequantizeLinear int8": (whole_numbers, WIDE * HIDDEN),
    "DequantizeLinear float8e4m3fn": (lambda: floats("float8_e4m3fn"), WIDE * HIDDEN),
    "DequantizeLinear float8e4m3fnuz": (lambda: floats("float8_e4m3fnuz"), WIDE * HIDDEN),
    "DequantizeLinear float8e5m2": (lambda: floats("float8_e5m2"), WIDE * HIDDEN),
    "DequantizeLinear float8e5m2fnuz": (lambda: floats("float8_e5m2fnuz"), WIDE * HIDDEN),
    "DequantizeLinear float4e2m1": (lambda: floats("float4_e2m1fn"), WIDE * HIDDEN // 2),
}


def unpack(model):
    """The first weight as onnxruntime reads it: what the product makes of unit vectors. Of some floats it has no kernels."""
    held = {tensor.name: tensor for tensor in model.graph.initializer}
    if "fc.scale" in held and held["fc.weight"].data_type != TensorProto.INT8:
        return numpy_helper.to_array(held["fc.weight"]).astype(numpy.float32) * numpy_helper.to_array(held["fc.scale"])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    shown = onnx.ModelProto.FromString(model.SerializeToString())
    product = next(node for node in shown.graph.node if node.op_type in ("MatMul", "MatMulNBits"))
    shown.graph.output.append(helper.make_tensor_value_info(product.output[0], TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(shown.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run([product.output[0]], {"x": numpy.eye(WIDE, dtype=numpy.float32)})[0]


def first_pair():
    random = torch.Generator().manual_seed(9)
    return torch.randn(RANK, WIDE, generator=random) * 0.1, torch.randn(HIDDEN, RANK, generator=random) * 0.1


def train_with_pytorch(model, data, adapted):
    held = {tensor.name: numpy_helper.to_array(tensor).copy() for tensor in model.graph.initializer if tensor.name in ("fc.bias", "head.weight")}
    weight = torch.from_numpy(unpack(model))
    bias, head = (torch.from_numpy(held[name]) for name in ("fc.bias", "head.weight"))
    a, b = first_pair()
    trained = [a, b] if adapted else [bias, head]
    for tensor in trained:
        tensor.requires_grad_()
    optimizer, losses = torch.optim.AdamW(trained, lr=1e-2), []
    for x, labels in data:
        product = x @ weight + (x @ a.T @ b.T * (ALPHA / RANK) if adapted else 0)
        loss = torch.nn.functional.cross_entropy(torch.relu(product + bias) @ head, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train(binaries, model, data, flags, start, folder):
    onnx.save(model, folder / "model.onnx")
    arrays = {"x": torch.cat([x for x, _ in data]).numpy(), "labels": torch.cat([labels for _, labels in data]).numpy()}
    numpy.savez(folder / "data.npz", **arrays)
    artifact, plan = folder / "model.tide", folder / "plan.mlir"
    flags = [f"--batch={BATCH}", LOSS, "--entries=train", "-q", *flags]
    for command in (
        ["lowtide", "compile", folder / "model.onnx", "-o", artifact, *flags],
        ["lowtide", "compile", folder / "model.onnx", "-o", plan, "--emit=plan", "--emit-locations=off", *flags],
        ["lowtide-run", artifact, f"--data={folder / 'data.npz'}", f"--steps={STEPS}", f"--log-jsonl={folder / 'log.jsonl'}", "-q", *start],
    ):
        run = subprocess.run([binaries / command[0], *command[1:]], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if run.returncode:
            raise RuntimeError(run.stderr.strip()[-500:])
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line], plan.read_text()


def judge(binaries, name, target, adapted, folder):
    make, size = FILES[name]
    model, random = make(), torch.Generator().manual_seed(5)
    data = [(torch.randn(BATCH, WIDE, generator=random), torch.randint(CLASSES, (BATCH,), generator=random)) for _ in range(STEPS)]
    wanted = train_with_pytorch(model, data, adapted)
    flags, start = ["--optimizer=adamw", "--lr=0.01", f"--target={target}"], []
    if adapted:
        names = ("base_model.model.fc.lora_A.weight", "base_model.model.fc.lora_B.weight")
        safetensors.torch.save_file(dict(zip(names, first_pair(), strict=True)), folder / "adapter_model.safetensors")
        flags.append(f"--lora=fc:r={RANK},alpha={ALPHA}")
        start.append(f"--init={folder / 'adapter_model.safetensors'}")
    losses, plan = train(binaries, model, data, flags, start, folder)
    worst = max(abs(a - b) for a, b in zip(losses, wanted, strict=True))
    if worst > 2e-5:
        return f"a loss differs by {worst:.1e}: {losses} for {wanted}"
    if wanted[-1] == wanted[0]:
        return "nothing was trained"
    # Products read the numbers tile by tile: never is there a whole weight of them.
    largest = max(int(size) for size in re.findall(r"@transient\[\d+ \+ (\d+)", plan))
    if largest > WIDE * HIDDEN * 4 // 4:
        return f"the step writes {largest} bytes at once, more than a tile of the weight"
    held = [line for line in plan.splitlines() if "plan.binding constant" in line and f"+ {size}]" in line]
    return "" if held else f"no constant of {size} bytes is in the plan: the weight is not held in its bits"


def coded(graph, name):
    """Puts initializer `name` in 8 bits, with one scale for each index of its first dimension, as onnxruntime's static quantizer
    names things; returns the numbers."""
    held = next(tensor for tensor in graph.initializer if tensor.name == name)
    weight = numpy_helper.to_array(held)
    scale = (abs(weight).reshape(len(weight), -1).max(1) / 127).astype(numpy.float32)
    spread = scale.reshape(-1, *[1] * (weight.ndim - 1))
    codes = numpy.rint(weight / spread).astype(numpy.int8)
    graph.initializer.remove(held)
    graph.initializer.extend([numpy_helper.from_array(codes, f"{name}_quantized"), numpy_helper.from_array(scale, f"{name}_scale")])
    for node in graph.node:
        node.input[:] = [f"{name}_DequantizeLinear_Output" if each == name else each for each in node.input]
    inputs, output = [f"{name}_quantized", f"{name}_scale"], f"{name}_DequantizeLinear_Output"
    graph.node.insert(0, helper.make_node("DequantizeLinear", inputs, [output], name=f"{name}_DequantizeLinear", axis=0))
    return torch.from_numpy(codes.astype(numpy.float32) * spread)


def filtered():
    """A convolution into which PyTorch's current exporter folds a batch norm: the notes say that the norm's module reads the filter."""
    torch.manual_seed(5)
    conv, norm, head = torch.nn.Conv2d(3, 16, 3, padding=1, bias=False), torch.nn.BatchNorm2d(16), torch.nn.Linear(16, CLASSES)
    norm.running_mean.normal_(std=0.1), norm.running_var.uniform_(0.5, 2)
    module = torch.nn.Sequential()
    for name, part in {"conv": conv, "norm": norm, "relu": torch.nn.ReLU(), "pool": torch.nn.AdaptiveAvgPool2d(1),
                       "flat": torch.nn.Flatten(), "head": head}.items():  # fmt: skip
        module.add_module(name, part)
    shapes = ({0: torch.export.Dim("batch")},)
    with contextlib.redirect_stdout(io.StringIO()):
        program = torch.onnx.export(module.eval(), (torch.randn(2, 3, 8, 8),), dynamo=True, input_names=["x"], output_names=["logits"],
                                    dynamic_shapes=shapes)  # fmt: skip
    model = program.model_proto
    read = next(node for node in model.graph.node if node.op_type == "Conv").input
    weight = coded(model.graph, read[1])
    names = {tensor.name: tensor for tensor in model.graph.initializer}
    read = next(node for node in model.graph.node if node.op_type == "Conv").input
    trained = [torch.from_numpy(numpy_helper.to_array(names[read[2]]).copy()), head.weight.detach().clone(), head.bias.detach().clone()]

    def forward(x, bias, matrix, offset, a=None, b=None):
        changed = weight if a is None else weight + ALPHA / RANK * torch.einsum("orxy,rihw->oihw", b, a)
        hidden = torch.relu(torch.nn.functional.conv2d(x, changed, bias, padding=1)).mean((2, 3))
        return hidden @ matrix.T + offset

    pair = {"conv.lora_A.weight": (RANK, 3, 3, 3), "conv.lora_B.weight": (16, RANK, 1, 1)}
    return model, forward, trained, pair, "conv", lambda random: torch.randn(BATCH, 3, 8, 8, generator=random)


def tied():
    """A table of codes that is looked up and, turned, multiplied with: of these two layers the table gets the pair."""
    random = numpy.random.default_rng(6)
    table, matrix = random.standard_normal((CLASSES, 32)).astype(numpy.float32), random.standard_normal((32, 32)).astype(numpy.float32) * 0.2
    nodes = [
        helper.make_node("Gather", ["embed.weight", "x"], ["rows"], name="/embed/Gather"), helper.make_node("MatMul", ["rows", "fc.weight"], ["product"], name="/fc/MatMul"),
        helper.make_node("Tanh", ["product"], ["hidden"]), helper.make_node("Transpose", ["embed.weight"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["hidden", "turned"], ["logits"], name="/head/MatMul"),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes, "tied", [helper.make_tensor_value_info("x", TensorProto.INT64, ["batch"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", CLASSES])],
        [numpy_helper.from_array(table, "embed.weight"), numpy_helper.from_array(matrix, "fc.weight")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    table = coded(model.graph, "embed.weight")

    def forward(x, matrix, a=None, b=None):
        rows = table[x] if a is None else table[x] + ALPHA / RANK * (a.T[x] @ b.T)
        return torch.tanh(rows @ matrix) @ table.T

    pair = {"embed.lora_embedding_A": (RANK, CLASSES), "embed.lora_embedding_B": (32, RANK)}
    return model, forward, [torch.from_numpy(matrix.copy())], pair, "embed", lambda random: torch.randint(CLASSES, (BATCH,), generator=random)


def judge_layer(binaries, make, adapted, folder):
    model, forward, trained, pair, layer, draw = make()
    random = torch.Generator().manual_seed(7)
    data = [(draw(random), torch.randint(CLASSES, (BATCH,), generator=random)) for _ in range(STEPS)]
    values = [torch.randn(shape, generator=random) * 0.1 for shape in pair.values()]
    flags = ["--optimizer=sgd", "--lr=0.1"]
    if adapted:
        # PEFT's names tell what the file is, whatever it is called.
        tensors = {f"base_model.model.{name}": value.clone() for name, value in zip(pair, values, strict=True)}
        safetensors.torch.save_file(tensors, folder / "pairs.safetensors")
        flags.append(f"--lora={layer}:r={RANK},alpha={ALPHA}")
    losses, _ = train(binaries, model, data, flags, [f"--init={folder / 'pairs.safetensors'}"] if adapted else [], folder)
    learned = values if adapted else trained
    optimizer, wanted = torch.optim.SGD([tensor.requires_grad_() for tensor in learned], lr=0.1), []
    for x, labels in data:
        loss = torch.nn.functional.cross_entropy(forward(x, *trained, *(values if adapted else [])), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        wanted.append(loss.item())
    worst = max(abs(a - b) for a, b in zip(losses, wanted, strict=True))
    return f"a loss differs by {worst:.1e}: {losses} for {wanted}" if worst > 2e-5 else "" if wanted[-1] != wanted[0] else "nothing was trained"


def judge_codes(binaries, kind, looked, folder):
    """Every finite code of a narrow float, as the number that ml_dtypes makes of it: written out, or looked up by its position."""
    codes = numpy.arange(16 if kind == "float4_e2m1fn" else 256, dtype=numpy.uint8).view(getattr(ml_dtypes, kind))
    codes = codes[numpy.isfinite(codes.astype(numpy.float32))]
    codes = numpy.tile(codes, 1024 // len(codes) + 1) if looked else codes
    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", len(codes)]) for name in ("x", "logits")]
    nodes = [helper.make_node("Cast", ["codes"], ["numbers"], to=TensorProto.FLOAT), helper.make_node("Mul", ["x", "numbers"], ["product"]),
             helper.make_node("Add", ["product", "bias"], ["logits"])]  # fmt: skip
    held = [numpy_helper.from_array(codes, "codes"), numpy_helper.from_array(numpy.zeros(len(codes), numpy.float32), "bias")]
    graph = helper.make_graph(nodes, "codes", types[:1], types[1:], held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12), folder / "model.onnx")
    numpy.savez(folder / "data.npz", x=numpy.ones((2, len(codes)), numpy.float32), y=numpy.zeros((2, len(codes)), numpy.float32))
    for command in (
        ["lowtide", "compile", "model.onnx", "-o", "model.tide", "-q", "--batch=2", "--loss=mse(logits, y)", "--params=bias"],
        ["lowtide-run", "model.tide", "--data=data.npz", "--entry=eval", "--predict=predicted.npz", "-q"],
    ):
        subprocess.run([binaries / command[0], *command[1:]], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True)
    found, wanted = numpy.load(folder / "predicted.npz")["logits"][0], codes.astype(numpy.float32)
    return "" if numpy.array_equal(found, wanted) else f"{found[found != wanted][:4]} for {wanted[found != wanted][:4]}"


def main():
    binaries, full = pathlib.Path(sys.argv[1]).resolve(), "--full" in sys.argv
    torch.set_num_threads(1)
    rows, targets = [], ("cpu", "reference", "cuda-emulated") if full else ("cpu",)

    def add(name, complain, *arguments):
        with tempfile.TemporaryDirectory() as scratch:
            try:
                complaint = complain(binaries, *arguments, pathlib.Path(scratch))
            except (RuntimeError, ValueError, OSError) as error:
                complaint = f"{type(error).__name__}: {error}"
        rows.append({"name": name, "complaint": complaint})

    for name, target, adapted in itertools.product(FILES, targets, (False, True)):
        add(f"{name}{' with a pair' if adapted else ''} on {target}", judge, name, target, adapted)
    for make, adapted in itertools.product((filtered, tied), (False, True)):
        add(f"{make.__name__}{' with a pair' if adapted else ''}", judge_layer, make, adapted)
    kinds = "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn".split()
    for kind, looked in itertools.product(kinds, (False, True)):
        add(f"all codes of {kind}{', looked up' if looked else ''}", judge_codes, kind, looked)
    json.dump(rows, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
