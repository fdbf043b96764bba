"""State in fewer bits, in whole runs: state_layouts.py <work folder>, with the tools on the path.

A step from a checkpoint is taken twice: with stored codes, and in f32 from what the codes stand for. Parameters then have
the same bits, and the codes are those of the f32 step's moments, computed here as torchao computes them. A run that
stopped and one that did not have the same bits, whatever is fused, and with clipping, loss scaling and micro-batches.
"""

import hashlib
import json
import pathlib
import re
import shutil
import sys

import numpy as np
from tools import tool

STEPS, BATCH = 4, 8
# Of w and v 16384 elements are 64 blocks, of u and t 4608 are 18; the 256 of s are too few.
MODEL = """<ir_version: 10, opset_import: ["" : 20], producer_name: "hand", producer_version: "1.0">
layers (float[8,64] x, float[8,64] target) => (float loss)
<float[64,256] w = {W}, float[256] s = {S}, float[256,64] v = {V}, float[64,72] u = {U}, float[72,64] t = {T}>
{
  a = MatMul(x, w)
  b = Mul(a, s)
  c = Relu(b)
  d = MatMul(c, v)
  e = MatMul(d, u)
  f = Relu(e)
  g = MatMul(f, t)
  away = Sub(g, target)
  errors = Mul(away, away)
  loss = ReduceMean<keepdims = 0>(errors)
}
"""


def read_tensors(file):
    raw = file.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    kinds = {"F32": "<f4", "U8": "u1", "I64": "<i8", "BF16": "<u2"}
    header = json.loads(raw[8 : 8 + size])
    begin = 8 + size
    return {n: np.frombuffer(raw, kinds[t["dtype"]], int(np.prod(t["shape"])), begin + t["data_offsets"][0]).reshape(t["shape"])
            for n, t in header.items() if n != "__metadata__"}  # fmt: skip


def write_floats(file, tensors):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(a.astype("<f4").tobytes() for a in tensors.values()))


def torchao_maps():
    """The numbers of the signed and of the unsigned map, and of float8_e4m3fn, as they were recorded."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "Execute" / "from_code.mlir").read_text()
    found = re.findall(r"-> \(tensor<256xf32> \{test\.value = dense<\[(.*?)\]>", text)
    special = {"0x7F800000": np.inf, "0xFF800000": -np.inf, "0x7FC00000": np.nan}
    return [np.array([special.get(v, None) if v in special else float(v) for v in numbers.split(", ")], np.float32) for numbers in found]


def quantize(x, numbers):
    """torchao's scale_tensor and quantize_8bit_with_qmap, written in NumPy."""
    x = x.reshape(-1, 256)
    scale = np.maximum(np.abs(x).max(1), np.float32(1e-12))
    x = x / scale[:, None]
    code = np.zeros(x.shape, np.int64)
    for half in (128, 64, 32, 16, 8, 4, 2, 1):
        code = code + np.where(x >= numbers[code + half], half, 0)
    above = np.minimum(code + 1, 255)
    low, high = numbers[code], numbers[above]
    return np.where(x - low >= (high - low) * np.float32(0.5), above, code).astype(np.uint8), scale


class Runs:
    def __init__(self, work):
        self.work = work
        random = np.random.default_rng(5)
        np.savez(work / "data.npz", x=random.normal(0, 1, (STEPS * BATCH, 64)).astype("f4"), target=random.normal(0, 1, (STEPS * BATCH, 64)).astype("f4"))
        text = MODEL
        for name, shape in (("W", (64, 256)), ("S", (256,)), ("V", (256, 64)), ("U", (64, 72)), ("T", (72, 64))):
            numbers = random.normal(0, 0.1, shape)
            text = text.replace("{" + name + "}", "{" + ", ".join(f"{v:.4f}" for v in numbers.flat) + "}")
        (work / "model.onnxtxt").write_text(text)
        tool("lowtide-translate", "--onnx-text-to-onnx", work / "model.onnxtxt", "-o", work / "model.onnx")

    def compile(self, name, *flags):
        said = tool("lowtide", "compile", self.work / "model.onnx", "-o", self.work / f"{name}.tide", "--entries=train", "--lr=0.01", "-v", *flags)
        return said

    def run(self, name, steps, saved, *flags, resume=None, threads=2):
        """Losses and the checkpoint's folder."""
        folder, log = self.work / saved, self.work / f"{saved}.log"
        tool("lowtide-run", self.work / f"{name}.tide", f"--data={self.work / 'data.npz'}", f"--steps={steps}", f"--threads={threads}",
             f"--log-jsonl={log}", f"--save={folder}", "--quiet", *([f"--resume={resume}"] if resume else []), *flags)  # fmt: skip
        losses = [line["loss"] for line in map(json.loads, log.read_text().splitlines()) if "step" in line and "loss" in line]
        return losses, next(folder.rglob("MANIFEST.json")).parent

    def same(self, one, other):
        """Whether two checkpoints hold the same bits."""
        return all((one / f).read_bytes() == (other / f).read_bytes() for f in ("params.safetensors", "optimizer.safetensors"))


def as_floats(checkpoint, to, maps):
    """A checkpoint whose state is f32: what the codes stand for."""
    shutil.copytree(checkpoint, to)
    state = read_tensors(checkpoint / "optimizer.safetensors")
    wide = {}
    for name, array in state.items():
        if name.endswith(".scale"):
            continue
        scale = state.get(name + ".scale")
        if scale is not None:
            numbers = maps[1 if name.endswith("_sq") else 0]
            array = (numbers[array].reshape(-1, 256) * scale[:, None]).reshape(array.shape)
        wide[name] = array
    write_floats(to / "optimizer.safetensors", wide)
    manifest = json.loads((to / "MANIFEST.json").read_text())
    raw = (to / "optimizer.safetensors").read_bytes()
    manifest["files"]["optimizer.safetensors"] = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    (to / "MANIFEST.json").write_text(json.dumps(manifest))
    return to


PRODUCT = """<ir_version: 10, opset_import: ["" : 20], producer_name: "hand", producer_version: "1.0">
product (float[1,{N}] x) => (float loss)
<float[1,{N}] w>
{
  y = Mul(w, x)
  loss = ReduceSum<keepdims = 0>(y)
}
"""


SLOTS = {
    "signed": (("--optimizer=sgd", "--momentum=0.9"), "momentum_buffer", lambda x: x),
    "unsigned": (("--optimizer=adagrad",), "sum", lambda x: x * x),
}  # fmt: skip


def awkward(count, maps):
    """Values whose block's largest is 1, so that they are coded as they are: ties of the maps and their neighbours, in both
    signs, denormals and zeros; then normal numbers of many sizes."""
    points = np.concatenate([maps[0], maps[1], maps[2][np.isfinite(maps[2])] / np.float32(448)])
    points = np.unique(np.concatenate([np.unique(m) for m in (maps[0], maps[1])] + [points]))
    middle = ((points[1:].astype("f8") + points[:-1]) / 2).astype("f4")
    ties = np.concatenate([points, middle] + [np.nextafter(p, np.float32(d)) for p in (points, middle) for d in (-2, 2)])
    ties = np.concatenate([ties, [1e-45, -1e-45, 1e-38, 1e-39]]).astype("f4")
    ties = ties[np.abs(ties) <= 1] + np.float32(0)  # a buffer of zeros plus a gradient of -0 is 0
    ties = np.resize(ties, -(-len(ties) // 255) * 255).reshape(-1, 255)
    ties = np.concatenate([np.ones((len(ties), 1), "f4"), ties], 1)
    random = np.random.default_rng(1)
    rest = random.standard_normal((count // 256, 256)).astype("f4") * np.exp2(random.integers(-90, 60, (count // 256, 1))).astype("f4")
    return np.concatenate([ties, rest]).astype("f4")


def write_product(work, count):
    """Values, as data, and a model whose gradient they are."""
    x = awkward(count, torchao_maps())
    np.savez(work / "many.npz", x=x.reshape(1, -1))
    text, product = work / "product.onnxtxt", work / "product.onnx"
    text.write_text(PRODUCT.replace("{N}", str(x.size)).replace(" w>", " w = {" + ", ".join(["0"] * x.size) + "}>"))
    tool("lowtide-translate", "--onnx-text-to-onnx", text, "-o", product)
    return x, product


def store(work, product, layout, slot):
    """The gradient is the data, and after one step a buffer is the gradient, or its square: codes and scales."""
    flags, name, _ = SLOTS[slot]
    tide, saved = work / f"{layout}-{slot}.tide", work / f"{layout}-{slot}"
    tool("lowtide", "compile", product, "-o", tide, "--entries=train", "--lr=0", f"--moments={layout}", *flags, "-q")
    tool("lowtide-run", tide, f"--data={work / 'many.npz'}", "--steps=1", f"--save={saved}", "--on-nonfinite=continue", "--quiet")
    state = read_tensors(next(saved.rglob("optimizer.safetensors")))
    return state[f"w.{name}"].reshape(-1), state[f"w.{name}.scale"].reshape(-1)


def compare_codes(stored, expected, values):
    """What is wrong with codes and scales; nothing if every bit is right."""
    (codes, scales), (right, right_scales) = stored, expected
    wrong = np.flatnonzero(codes != right.reshape(-1))
    if wrong.size:
        return f"{wrong.size} codes differ: {values.flat[wrong[0]]} is {codes[wrong[0]]}, there {right.flat[wrong[0]]}"
    wrong = np.flatnonzero(scales.view("u4") != right_scales.reshape(-1).view("u4"))
    return f"{wrong.size} scales differ: {scales[wrong[0]]}, there {right_scales.flat[wrong[0]]}" if wrong.size else ""


def compare_state(here, there, what):
    """After one step. Two targets add up in another order: a number near the middle of two codes gets one or the other, all others the
    same one. (Later steps go on from there, and where they cancel most of a number, its codes may lie further apart.)
    """
    ours, theirs = (read_tensors(folder / "optimizer.safetensors") for folder in (here, there))
    names = [name for name, codes in ours.items() if codes.dtype == np.uint8]
    # The highest bit of a float8_e4m3fn is its sign; codes of int8 are places in an ascending map.
    place = lambda codes: np.where((codes > 127) & ("--moments=fp8" in what[0]), 128 - codes, codes)  # noqa: E731
    for name in names:
        off = abs(place(ours[name].astype(int)) - place(theirs[name].astype(int)))
        assert off.max() <= 1 and (off != 0).mean() < 0.001, (what, name, off.max(), (off != 0).mean())
        assert np.allclose(ours[name + ".scale"], theirs[name + ".scale"], rtol=1e-4), (what, name)
    assert len(names) >= 4 or not {"--moments=int8", "--moments=fp8"} & set(what[0]), (what, list(ours))


def check_chance(work, count=100_000):
    """One step makes a number of zeros that no bf16 is: -lr in every place. Draws choose its two neighbours, and their mean is it."""
    np.savez(work / "ones.npz", x=np.ones((1, count), "f4"))
    (work / "chance.onnxtxt").write_text(PRODUCT.replace("{N}", str(count)).replace(" w>", " w = {" + ", ".join(["0"] * count) + "}>"))
    tool("lowtide-translate", "--onnx-text-to-onnx", work / "chance.onnxtxt", "-o", work / "chance.onnx")
    for rate in ("0.1001", "1.003", "0.7"):
        tide, saved = work / f"chance-{rate}.tide", work / f"chance-{rate}"
        tool("lowtide", "compile", work / "chance.onnx", "-o", tide, "--entries=train", "--optimizer=sgd", f"--lr={rate}", "--precision=bf16", "--master=sr", "-q")
        tool("lowtide-run", tide, f"--data={work / 'ones.npz'}", "--steps=1", f"--save={saved}", "--quiet")
        stored = read_tensors(next(saved.rglob("params.safetensors")))["w"]
        drawn = (stored.astype(np.uint32) << 16).view(np.float32).astype("f8").reshape(-1)
        low = np.array([np.float32(rate)]).view(np.uint32) >> 16
        neighbours = {-float(v) for v in (np.concatenate([low, low + 1]).astype(np.uint32) << 16).view(np.float32)}
        assert set(drawn) == neighbours, (rate, set(drawn), neighbours)
        # Six standard errors at least; torchao's test of its own rounding allows 3e-5 of numbers of 0.1.
        step = max(neighbours) - min(neighbours)
        assert abs(-drawn.mean() - float(np.float32(rate))) < 3 * step / count**0.5, (rate, drawn.mean())


def main():
    runs, maps = Runs(pathlib.Path(sys.argv[1])), torchao_maps()
    said = runs.compile("int8", "--moments=int8")
    assert "8 tensors of state in 8-bit codes" in said and "2 stay f32" in said, said
    # 42240 numbers; of 41984 two slots take 42640 bytes each, of 256 two take 1024.
    assert "6.07 bytes a parameter: 4.00 for itself, 2.07 for moments; gradients at most 4.00 more" in said, said
    runs.compile("f32")

    # One step: the f32 step from what the codes stand for, then encoded.
    _, three = runs.run("int8", 3, "three")
    _, four = runs.run("int8", 4, "four")
    _, wide = runs.run("f32", 1, "wide", resume=as_floats(three, runs.work / "floats", maps))
    assert (four / "params.safetensors").read_bytes() == (wide / "params.safetensors").read_bytes()
    codes, floats = (read_tensors(f / "optimizer.safetensors") for f in (four, wide))
    coded = [n for n in floats if n + ".scale" in codes]
    assert sorted(coded) == sorted(f"{p}.{s}" for p in "wvut" for s in ("exp_avg", "exp_avg_sq")), coded
    for name in coded:
        made, scale = quantize(floats[name], maps[1 if name.endswith("_sq") else 0])
        assert codes[name].dtype == np.uint8 and np.array_equal(codes[name].reshape(-1, 256), made), name
        assert np.array_equal(codes[name + ".scale"].view(np.uint32), scale.view(np.uint32)), name
    assert all(np.array_equal(codes[f"s.{s}"], floats[f"s.{s}"]) for s in ("exp_avg", "exp_avg_sq"))

    x, product = write_product(runs.work, 1 << 16)
    for slot, (_, _, function) in SLOTS.items():
        values = function(x)
        fault = compare_codes(store(runs.work, product, "int8", slot), quantize(values, maps[0 if slot == "signed" else 1]), values)
        assert not fault, (slot, fault)

    check_chance(runs.work)

    # Stopped and resumed; other threads; other budgets; each layout.
    for layout in (["--moments=int8"], ["--moments=fp8"], ["--moments=bf16"], ["--moments=int8", "--group=w:moments=f32;v:moments=bf16"],
                   ["--moments=int8", "--precision=bf16", "--master=sr"], ["--moments=int8", "--optimizer=sgd", "--momentum=0.9", "--clip-norm=0.5"],
                   ["--moments=int8", "--loss-scale=dynamic", "--precision=mixed-bf16"], ["--moments=int8", "--micro-batches=2"]):  # fmt: skip
        label = "-".join(layout).translate(str.maketrans("=:;.", "____"))
        runs.compile(label, *layout)
        losses, whole = runs.run(label, 4, label + "-whole")
        _, two = runs.run(label, 2, label + "-two")
        rest, resumed = runs.run(label, 2, label + "-rest", resume=two, threads=1)
        assert len(losses) == 4 and rest == losses[2:] and runs.same(whole, resumed), (layout, losses, rest)
        _, first = runs.run(label, 1, label + "-first")
        runs.compile(label + "-apart", *layout, "--no-fuse")
        apart, other = runs.run(label + "-apart", 4, label + "-apart")
        assert "micro" in label or (apart == losses and runs.same(whole, other)), (layout, apart, losses)
        for target in ("cuda-emulated", "reference"):
            runs.compile(f"{label}-{target}", *layout, f"--target={target}")
            there, other = runs.run(f"{label}-{target}", 4, f"{label}-{target}")
            close = np.allclose(there, losses, rtol=2e-2 if "precision" in label else 1e-4)
            assert close, (layout, target, there, losses)
            if "precision" not in label:
                compare_state(first, runs.run(f"{label}-{target}", 1, f"{label}-{target}-first")[1], (layout, target))
    print("state in fewer bits has the bits of its rule")


if __name__ == "__main__":
    main()
