"""Masters in two halves, in whole runs: split_master.py <models> <work folder>, with the tools on the path.

`--master=whole` keeps f32 parameters, of which products read the bf16 half that `--master=split` stores: losses, parameters
and state of both have the same bits, on every target, whatever else is asked for, under every budget, stopped and resumed,
and handed from one to the other. The codec: every upper half with each lower half at which something changes, against
integer arithmetic in NumPy. Every recorded model, for many steps: `tools/dev masters`.
"""

import json
import pathlib
import re
import sys

import numpy as np
from tools import tool

TARGETS = ("cpu", "reference", "cuda-emulated")


# --- the codec ---


def split(bits):
    """Upper halves, lower halves and the bits that come back, of the bits of f32 numbers."""
    wide = bits.astype(np.int64)
    nan = (wide & 0x7FFFFFFF) > 0x7F800000
    quiet = np.where(nan, wide | 0x400000, wide)
    high = np.where(nan, quiet, wide + 0x8000) >> 16 << 16
    low = quiet - high
    assert np.all(low[~nan] >= -0x8000) and np.all(low[~nan] <= 0x7FFF)
    return (high >> 16).astype(np.uint16), low.astype(np.uint16), quiet.astype(np.uint32)


def check_codec(work):
    lows = np.array([0, 1, 0x1234, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    bits = (np.arange(1 << 16, dtype=np.uint32)[:, None] << 16 | lows).reshape(-1)
    high, low, back = split(bits)
    bf16, i16, f32 = (f"tensor<{bits.size}x{kind}>" for kind in ("bf16", "i16", "f32"))

    def stated(kind, array):
        return f'{kind} {{test.value = dense<"0x{array.tobytes().hex().upper()}"> : {kind}'

    # Comparisons do not tell a zero from the other, nor two NaN: of these the lower halves are compared.
    text = f"""func.func @encode(%x: {stated(f32, bits)}}}) -> ({stated(bf16, high)}, test.tolerance = 0.0}}, {stated(i16, low)}}}) {{
  %high, %low = train.encode_split %x : ({f32}) -> ({bf16}, {i16})
  return %high, %low : {bf16}, {i16}
}}
func.func @decode(%high: {stated(bf16, high)}}}, %low: {stated(i16, low)}}}) -> ({stated(f32, back)}, test.tolerance = 0.0}}, {stated(i16, low)}}}) {{
  %x = train.decode_split %high, %low : ({bf16}, {i16}) -> {f32}
  %again = nn.low_half %x : ({f32}) -> {i16}
  return %x, %again : {f32}, {i16}
}}
"""
    (work / "halves.mlir").write_text(text)
    assert "2 passed" in tool("lowtide-execute", work / "halves.mlir")


# --- runs ---


def read_tensors(file):
    raw = file.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    return {n: (t["dtype"], t["shape"], raw[8 + size + t["data_offsets"][0] : 8 + size + t["data_offsets"][1]]) for n, t in header.items() if n != "__metadata__"}


class Runs:
    """Compiles and runs one model by the settings of its record."""

    def __init__(self, models, work, name):
        self.work, self.name, self.folder = work, name, models / name
        self.train = json.loads((self.folder / "train.json").read_text())
        self.model = next(self.folder / f for f in ("model.onnx", "default.onnx") if (self.folder / f).exists())

    def spoil_second_batch(self, name):
        """From now on an array of the second batch is infinite."""
        arrays = dict(np.load(self.folder / "data.npz"))
        arrays[name][self.train["batch"] : 2 * self.train["batch"]] = np.inf
        self.folder = self.work
        np.savez(self.folder / "data.npz", **arrays)

    def flags(self, more=()):
        flags = [f"--batch={self.train['batch']}", *self.train.get("flags", []), *more]
        is_other = any(flag.startswith("--optimizer") for flag in more)
        flags += ["--lr=0.001"] if is_other else [f"--optimizer={self.train['optimizer']}"]
        for key, value in () if is_other else self.train["options"].items():
            flag = "--" + key.replace("_", "-")
            if isinstance(value, bool):
                flags += [flag] * value
            else:
                flags.append(f"{flag}={','.join(map(str, value)) if isinstance(value, list) else value}")
        if "loss" in self.train:
            loss = self.train["loss"]
            flags.append(f"--loss={loss['kind']}({loss['logits']}, {loss['labels']})")
        return flags

    def compile(self, label, *flags):
        said = tool("lowtide", "compile", self.model, "-o", self.work / f"{label}.tide", "--entries=train,eval", *self.flags(flags), "-v")
        return said

    def run(self, label, saved, steps, *flags):
        """Losses and the checkpoint's folder."""
        folder, log = self.work / saved, self.work / f"{saved}.log"
        init = [] if any(f.startswith(("--resume", "--init")) for f in map(str, flags)) or self.train.get("init") != "adapter" else [f"--init={self.folder / 'adapter'}"]
        tool("lowtide-run", self.work / f"{label}.tide", f"--data={self.folder / 'data.npz'}", f"--steps={steps}", "--threads=1",
             f"--log-jsonl={log}", f"--save={folder}", "--quiet", *init, *flags)  # fmt: skip
        losses = [line["loss"] for line in map(json.loads, log.read_text().splitlines()) if "step" in line and "loss" in line]
        return losses, next(folder.rglob("MANIFEST.json")).parent

    def compare(self, steps, *flags):
        """Both layouts; returns the label of the split one, its losses and its checkpoint."""
        label = re.sub("[^a-z0-9-]+", "_", "-".join([self.name, *map(str, flags)]).lower())[:120]
        ends = {}
        for master in ("split", "whole"):
            said = self.compile(f"{label}.{master}", *flags, f"--master={master}")
            assert "are f32 masters in" in said, (self.name, flags, said)
            ends[master] = self.run(f"{label}.{master}", f"{label}.{master}.end", steps)
        (losses, one), (others, other) = ends["split"], ends["whole"]
        assert losses == others and len(losses) == steps, (self.name, flags, losses, others)
        assert all(map(np.isfinite, losses)), (self.name, flags, losses)
        for file in ("params.safetensors", "optimizer.safetensors"):
            assert (one / file).read_bytes() == (other / file).read_bytes(), (self.name, flags, file)
        return label, losses, one


def compare_models(models, work, steps, names, targets=TARGETS):
    for name in names:
        runs = Runs(models, work, name)
        for precision in ("mixed-bf16", "bf16"):
            for target in targets:
                runs.compare(steps, f"--precision={precision}", f"--target={target}")


# What else a step may be asked for, on one model.
SETTINGS = (["--clip-norm=0.5", "--sparse-updates=lazy"], ["--loss-scale=dynamic,init=3e38,backoff=0.25,interval=2"], ["--moments=int8", "--micro-batches=2"],
            ["--optimizer=sgd", "--momentum=0.9", "--clip-norm=0.1", "--micro-batches=4"], ["--no-fuse", "--optimizer=lamb"],
            ["--group=*.ln*:master=f32;wte*:weight_decay=0", "--optimizer=adafactor"])  # fmt: skip


def compare_settings(models, work):
    runs = Runs(models, work, "gpt-tiny")
    for precision, settings in [(("mixed-bf16", "bf16")[i % 2], s) for i, s in enumerate(SETTINGS)] + [("mixed-bf16", SETTINGS[1])]:
        flags = [f"--precision={precision}", *settings]
        label, losses, end = runs.compare(5, *flags)
        # Stopped and resumed; the rest of the run by whole masters, from a checkpoint of halves, and the other way.
        for first, second in (("split", "split"), ("split", "whole"), ("whole", "split")):
            _, two = runs.run(f"{label}.{first}", f"{label}.{first}-{second}.two", 2)
            rest, resumed = runs.run(f"{label}.{second}", f"{label}.{first}-{second}.rest", 3, f"--resume={two}")
            assert rest == losses[2:], (flags, first, second, rest, losses)
            for file in ("params.safetensors", "optimizer.safetensors"):
                assert (end / file).read_bytes() == (resumed / file).read_bytes(), (flags, first, second, file)


def compare_skipped(models, work):
    """A step whose gradients are not finite changes neither half."""
    runs = Runs(models, work, "mlp-digits")
    runs.spoil_second_batch("x")
    for precision, targets in (("mixed-bf16", TARGETS), ("bf16", ("cpu",))):
        for target in targets:
            ends = {}
            for master in ("split", "whole"):
                runs.compile(f"skipped.{master}", f"--precision={precision}", f"--target={target}", "--loss-scale=dynamic", "--clip-norm=1", f"--master={master}")
                ends[master] = [runs.run(f"skipped.{master}", f"skipped-{precision}-{target}.{master}.{steps}", steps)[1] for steps in (1, 2, 4)]
            log = (work / f"skipped-{precision}-{target}.split.4.log").read_text().splitlines()
            assert [json.loads(line).get("skipped_steps") for line in log[1:5]] == [0, 1, 1, 1], log
            for one, other in zip(ends["split"], ends["whole"]):
                assert all((one / f).read_bytes() == (other / f).read_bytes() for f in ("params.safetensors", "optimizer.safetensors")), (precision, target)
            weights = [{n: t for n, t in read_tensors(end / "params.safetensors").items() if n.endswith((".weight", ".bias"))} for end in ends["split"]]
            assert weights[0] == weights[1] != weights[2], (precision, target)


def compare_budgets(models, work):
    runs = Runs(models, work, "gpt-tiny")
    for precision in ("mixed-bf16", "bf16"):
        label, losses, end = runs.compare(4, f"--precision={precision}")
        for budget in ("97%", "90%", "85%"):
            runs.compile("budget", f"--precision={precision}", "--master=split", f"--device-budget={budget}")
            fitted, other = runs.run("budget", f"budget-{precision}-{budget}", 4)
            assert fitted == losses and all((end / f).read_bytes() == (other / f).read_bytes() for f in ("params.safetensors", "optimizer.safetensors")), (precision, budget)


def compare_files(models, work):
    """What leaves a run and what it starts from are f32 numbers under the framework's names."""
    runs = Runs(models, work, "gpt-tiny")
    runs.compile("halves", "--precision=mixed-bf16", "--master=split")
    runs.compile("plain", "--precision=mixed-bf16")
    _, zero = runs.run("halves", "start", 0)
    _, plain = runs.run("plain", "plain-start", 0)
    started, stated = read_tensors(zero / "params.safetensors"), read_tensors(plain / "params.safetensors")
    assert started == stated and {t[0] for t in started.values()} == {"F32"}, "the first values are the file's, to the last bit"
    assert not any("low_half" in n for f in ("params", "optimizer") for n in read_tensors(zero / f"{f}.safetensors"))
    # From a checkpoint and from the file of a run whose masters are one tensor each, and back.
    _, three = runs.run("plain", "plain-three", 3)
    for source in (f"--resume={three}", f"--init={three / 'params.safetensors'}"):
        _, taken = runs.run("halves", "taken" + str(len(source)), 0, source)
        assert read_tensors(taken / "params.safetensors") == read_tensors(three / "params.safetensors"), source
        _, back = runs.run("plain", "back" + str(len(source)), 0, f"--resume={taken}")
        assert read_tensors(back / "params.safetensors") == read_tensors(three / "params.safetensors"), source
    # Random first values, and the model file with what was trained.
    ends = {}
    for name in ("halves", "plain"):
        _, drawn = runs.run(name, f"{name}-drawn", 0, "--init=random:3")
        ends[name] = read_tensors(drawn / "params.safetensors")
    assert ends["halves"] == ends["plain"]
    target = work / "trained.onnx"
    _, end = runs.run("halves", "export", 2, f"--export={target}", f"--model={runs.model}")
    tool("lowtide", "compile", target, "-o", work / "again.tide", "--entries=train,eval", *runs.flags(), "--precision=mixed-bf16", "-q")
    _, again = runs.run("again", "again", 0)
    assert read_tensors(again / "params.safetensors") == read_tensors(end / "params.safetensors"), "the model file holds the masters"
    assert runs.run("halves", "eval-end", 0, f"--resume={end}") and tool(
        "lowtide-run", work / "halves.tide", "--entry=eval", f"--data={runs.folder / 'data.npz'}", f"--resume={end}", "--quiet") == tool(
        "lowtide-run", work / "halves.tide", "--entry=eval", f"--data={runs.folder / 'data.npz'}", f"--init={end / 'params.safetensors'}", "--quiet")  # fmt: skip
    # A pair of halves that holds another precision's numbers has no meaning.
    runs.compile("narrow", "--precision=bf16")
    said = tool("lowtide-run", work / "narrow.tide", f"--data={runs.folder / 'data.npz'}", f"--resume={end}", "--steps=1", code=2)
    assert "it is of another precision" in said, said


def main():
    models, work = map(pathlib.Path, sys.argv[1:3])
    check_codec(work)
    compare_models(models, work, 5, ("gpt-tiny",))
    compare_models(models, work, 5, ("cnn-digits", "lora-gpt2"), ("cpu",))
    compare_settings(models, work)
    compare_skipped(models, work)
    compare_budgets(models, work)
    compare_files(models, work)
    print("masters in halves have the bits of whole ones")


if __name__ == "__main__":
    main()
