"""Frozen weights in few bits, next to their quantizers and to PyTorch: frozen_weights.py <folder of binaries> [--full]; in the
environment of `tools/dev setup --oracles`, with --full in that of PEFT, which has bitsandbytes.

NF4 is compared with what bitsandbytes makes on a CPU, or without it with its published rule: the nearest of 16 numbers to
the number over the largest of its block. Int8 is compared with onnxruntime's QuantizeLinear in blocks, fp8 with PyTorch's cast to float8_e4m3fn. The codes in the
artifact are equal, `check` states the errors that follow, and biases, a low-rank pair or one with magnitudes (DoRA) train as PyTorch
trains them next to the numbers that the quantizer unpacks. Prints a list of {name, complaint}.
"""

import itertools
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

# onnxruntime has a module that is called like one of this folder.
sys.path.remove(str(pathlib.Path(__file__).resolve().parent))
import numpy  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import safetensors.torch  # noqa: E402
import torch  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

try:
    import bitsandbytes
except ImportError:
    bitsandbytes = None

WIDE, HIDDEN, CLASSES, BATCH, STEPS, BLOCK = 256, 192, 10, 8, 8, 64
RANK, ALPHA = 4, 8
NF4 = numpy.array(
    [
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
        -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ],
    numpy.float32,
)  # fmt: skip


def network():
    """Gemm with a weight as PyTorch has it, MatMul with one that is [inputs, outputs], and a head that stays as it is."""
    random = numpy.random.default_rng(3)
    weights = {
        "fc.weight": random.standard_normal((HIDDEN, WIDE)) * 0.1, "fc.bias": random.standard_normal(HIDDEN) * 0.1,
        "mid.weight": random.standard_normal((HIDDEN, HIDDEN)) * 0.1, "mid.bias": random.standard_normal(HIDDEN) * 0.1,
        "head.weight": random.standard_normal((HIDDEN, CLASSES)) * 0.1,
    }  # fmt: skip
    # A block of zeros, and numbers that lie in the middle of two codes.
    weights["fc.weight"][0, :BLOCK] = 0
    weights["fc.weight"][1, :BLOCK] = numpy.resize((NF4[1:] + NF4[:-1]) / 2, BLOCK)
    weights["fc.weight"][1, 0] = 1
    weights = {name: value.astype(numpy.float32) for name, value in weights.items()}
    nodes = [
        helper.make_node("Gemm", ["x", "fc.weight", "fc.bias"], ["a"], name="fc", transB=1), helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "mid.weight"], ["c"], name="mid"), helper.make_node("Add", ["c", "mid.bias"], ["d"]),
        helper.make_node("Relu", ["d"], ["e"]), helper.make_node("MatMul", ["e", "head.weight"], ["logits"], name="head"),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WIDE])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", CLASSES])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), weights


def quantize_nf4(numbers):
    """Codes, scales and the numbers they stand for, of a flat array."""
    if bitsandbytes:
        packed, state = bitsandbytes.functional.quantize_4bit(torch.from_numpy(numbers), blocksize=BLOCK, quant_type="nf4")
        unpacked = bitsandbytes.functional.dequantize_4bit(packed, state)
        return packed.numpy().reshape(-1), state.absmax.numpy(), unpacked.numpy().reshape(-1)
    blocks = numbers.reshape(-1, BLOCK)
    scales = abs(blocks).max(1)
    scaled = blocks * (numpy.float32(1) / numpy.maximum(scales, numpy.float32(1e-38)))[:, None]
    codes = numpy.searchsorted((NF4[1:] + NF4[:-1]) / numpy.float32(2), scaled).astype(numpy.uint8)
    return (codes[:, ::2] << 4 | codes[:, 1::2]).reshape(-1), scales, (NF4[codes] * scales[:, None]).reshape(-1)


def quantize_int8(numbers):
    scales = abs(numbers.reshape(-1, BLOCK)).max(1) / numpy.float32(127)
    # onnxruntime's scales must not be zero; a block of zeros has codes of zero.
    used = numpy.where(scales > 0, scales, numpy.float32(1))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["codes"], axis=0, block_size=BLOCK),
        helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["y"], axis=0, block_size=BLOCK),
    ]
    graph = helper.make_graph(
        nodes, "quantizer", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [numbers.size])],
        [helper.make_tensor_value_info("codes", TensorProto.INT8, None), helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(used, "scale"), numpy_helper.from_array(numpy.zeros(used.shape, numpy.int8), "zero")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    codes, unpacked = session.run(None, {"x": numbers})
    return codes.view(numpy.uint8), scales, unpacked


def quantize_fp8(numbers):
    scales = abs(numbers.reshape(-1, BLOCK)).max(1) / numpy.float32(448)
    quotients = numbers.reshape(-1, BLOCK) / numpy.where(scales > 0, scales, numpy.float32(1))[:, None]
    codes = torch.from_numpy(quotients).to(torch.float8_e4m3fn)
    return codes.view(torch.uint8).numpy().reshape(-1), scales, (codes.float().numpy() * scales[:, None]).reshape(-1)


QUANTIZERS = {"nf4": quantize_nf4, "int8": quantize_int8, "fp8": quantize_fp8}


def run(binaries, command, *arguments):
    done = subprocess.run([binaries / command, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-500:])
    return done.stdout


def first_pair():
    random = torch.Generator().manual_seed(9)
    return torch.randn(RANK, HIDDEN, generator=random) * 0.1, torch.randn(HIDDEN, RANK, generator=random) * 0.1


def train_with_pytorch(weights, data, adapted):
    held = {name: torch.from_numpy(value.copy()) for name, value in weights.items()}
    a, b = first_pair()
    scale, base = ALPHA / RANK, held["mid.weight"].T
    magnitudes = base.norm(dim=1)  # as PEFT starts: of what is unpacked
    trained = ([a, b, magnitudes] if adapted == "magnitudes" else [a, b]) if adapted else [held["fc.bias"], held["mid.bias"]]
    for tensor in trained:
        tensor.requires_grad_()
    optimizer, losses = torch.optim.AdamW(trained, lr=1e-2), []
    for x, labels in data:
        hidden = torch.relu(x @ held["fc.weight"].T + held["fc.bias"])
        product = hidden @ base.T + (hidden @ a.T @ b.T * scale if adapted else 0)
        if adapted == "magnitudes":
            product = product * (magnitudes / (base + scale * b @ a).norm(dim=1).detach())
        logits = torch.relu(product + held["mid.bias"]) @ held["head.weight"]
        loss = torch.nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def read_constants(plan, artifact):
    """Bytes of the plan's constants in the artifact's image, by name."""
    data = artifact.read_bytes()
    (sections,) = struct.unpack_from("<I", data, 12)
    table = [struct.unpack_from("<32sQQ", data, 64 + 80 * i) for i in range(sections)]
    start = next(offset for name, offset, _ in table if name.rstrip(b"\0") == b"params")
    found = {}
    for name, offset, size in re.findall(r'plan\.binding constant "([^"]+)" \S+ @params\[(\d+) \+ (\d+)\]', plan):
        found[name] = data[start + int(offset) : start + int(offset) + int(size)]
    return found


def judge(binaries, codec, target, adapted, folder):
    model, weights = network()
    onnx.save(model, folder / "model.onnx")
    random = torch.Generator().manual_seed(5)
    data = [(torch.randn(BATCH, WIDE, generator=random), torch.randint(CLASSES, (BATCH,), generator=random)) for _ in range(STEPS)]
    arrays = {"x": torch.cat([x for x, _ in data]).numpy(), "labels": torch.cat([labels for _, labels in data]).numpy()}
    numpy.savez(folder / "data.npz", **arrays)
    coded = {name: QUANTIZERS[codec](weights[name].reshape(-1)) for name in ("fc.weight", "mid.weight")}
    decoded = {name: coded[name][2].reshape(value.shape) if name in coded else value for name, value in weights.items()}

    artifact, start = folder / "model.tide", []
    flags = [f"--batch={BATCH}", "--loss=cross_entropy(logits, labels)", f"--frozen-weights={codec}"]
    flags.append(f"--lora=mid:r={RANK},alpha={ALPHA}{',dora' * (adapted == 'magnitudes')}" if adapted else "--params=*.bias")
    more = ["--optimizer=adamw", "--lr=0.01", f"--target={target}", "-q"]
    if adapted:
        names = ("base_model.model.mid.lora_A.weight", "base_model.model.mid.lora_B.weight", "base_model.model.mid.lora_magnitude_vector")
        norms = torch.from_numpy(decoded["mid.weight"]).norm(dim=0)
        tensors = (*first_pair(), norms) if adapted == "magnitudes" else first_pair()
        safetensors.torch.save_file(dict(zip(names, tensors)), folder / "adapter_model.safetensors")
        start.append(f"--init={folder / 'adapter_model.safetensors'}")
    run(binaries, "lowtide", "compile", folder / "model.onnx", "-o", artifact, *flags, *more)
    plan = run(binaries, "lowtide", "compile", folder / "model.onnx", "-o", "-", "--emit=plan", "--emit-locations=off", *flags, *more)

    held = read_constants(plan, artifact)
    for name, (codes, scales, _) in coded.items():
        if held[name] != codes.tobytes():
            differing = sum(a != b for a, b in zip(held[name], codes.tobytes()))
            return f"{differing} bytes of the codes of {name} are not the quantizer's"
        if held[f"{name}.scale"] != scales.tobytes():
            return f"the scales of {name} are not the quantizer's"
    if held["head.weight"] != weights["head.weight"].tobytes():
        return "the head is not held as it is"

    # Products read the numbers tile by tile: never is there a whole matrix of them.
    largest = max(int(size) for size in re.findall(r"@transient\[\d+ \+ (\d+)", plan))
    if largest > HIDDEN * WIDE * 4 // 4:
        return f"the step writes {largest} bytes at once, more than a tile of a matrix"

    stated = json.loads(run(binaries, "lowtide", "check", folder / "model.onnx", "--json", *flags))["frozen_weights"]
    if [entry["name"] for entry in stated] != list(coded):
        return f"check states errors of {stated}"
    for entry in stated:
        weight, error = weights[entry["name"]].astype(float), decoded[entry["name"]].astype(float) - weights[entry["name"]]
        wanted = abs(error).max() / abs(weight).max(), (error**2).sum() ** 0.5 / (weight**2).sum() ** 0.5
        if not numpy.allclose((entry["largest_error"], entry["rms_error"]), wanted, rtol=1e-6):
            return f"check states {entry}, the errors are {wanted}"

    run(binaries, "lowtide-run", artifact, f"--data={folder / 'data.npz'}", f"--steps={STEPS}", f"--log-jsonl={folder / 'log.jsonl'}", "-q", *start)
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    losses, wanted = [line["loss"] for line in lines if "loss" in line], train_with_pytorch(decoded, data, adapted)
    worst = max(abs(a - b) for a, b in zip(losses, wanted, strict=True))
    if worst > 2e-5:
        return f"a loss differs by {worst:.1e}: {losses} for {wanted}"
    return "" if wanted[-1] != wanted[0] else "nothing was trained"


def main():
    binaries, full = pathlib.Path(sys.argv[1]).resolve(), "--full" in sys.argv
    if full and not bitsandbytes:
        sys.exit("--full compares with bitsandbytes, which this environment lacks")
    torch.set_num_threads(1)
    rows, targets = [], ("cpu", "reference", "cuda-emulated") if full else ("cpu",)
    for codec, target, adapted in itertools.product(QUANTIZERS, targets, ("", "pair", "magnitudes")):
        with tempfile.TemporaryDirectory() as scratch:
            try:
                complaint = judge(binaries, codec, target, adapted, pathlib.Path(scratch))
            except (RuntimeError, ValueError, KeyError, OSError) as error:
                complaint = f"{type(error).__name__}: {error}"
        rows.append({"name": f"{codec}{f' with {adapted}' * bool(adapted)} on {target}", "complaint": complaint})
    json.dump(rows, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
