"""Averages of trained weights, in whole runs: average_weights.py <models> <work folder>, with the tools on the path.

Checkpoints of every step say what the weights were; NumPy averages them in f32, and the step's own averages have the same
bits: with clipping, micro-batches, loss scaling and skipped steps, low-rank pairs, frozen layers, masters in halves, under
budgets, stopped and resumed, on every target. They change nothing of the training. Evaluations and exports with --ema are
those of a run that starts from them.
"""

import json
import pathlib
import sys

import numpy as np
from split_master import TARGETS, Runs, read_tensors
from tools import tool

DECAY = 0.75
FILES = ("params.safetensors", "optimizer.safetensors")


def numbers(entry):
    """f32 of a tensor of a file."""
    kind, shape, raw = entry
    if kind == "BF16":
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return np.frombuffer(raw, {"F32": "<f4", "I64": "<i8"}[kind]).reshape(shape)


def average(weights, decay=DECAY):
    """Of the values of one weight after each update; torch.lerp in f32."""
    part = np.float32(1 - decay)
    made = weights[0]
    for now in weights[1:]:
        made = made + (now - made) * part if part < 0.5 else now - (now - made) * (np.float32(1) - part)
    return made


def every_step(runs, label, saved, steps, *flags):
    """Losses and the checkpoints after every step."""
    losses, last = runs.run(label, saved, steps, "--checkpoint-every=1", *flags)
    return losses, sorted(last.parent.glob("step-*"))


def check_averages(checkpoints, flags, updates=None):
    """The averages of the last checkpoint; `updates`: checkpoints after an update, if not all are."""
    params = [read_tensors(c / FILES[0]) for c in checkpoints]
    state = read_tensors(checkpoints[-1] / FILES[1])
    kept = {n.removesuffix(".ema") for n in state if n.endswith(".ema")}
    assert kept, flags
    chosen = [params[i] for i in updates] if updates else params
    assert numbers(state["ema_updates"]) == len(chosen), (flags, state["ema_updates"])
    for name in kept:
        wanted, ours = average([numbers(p[name]) for p in chosen]), numbers(state[f"{name}.ema"])
        assert np.array_equal(wanted.view(np.uint32), ours.view(np.uint32)), (flags, name, wanted.flat[:4], ours.flat[:4])
    # Some weights of 16 bits do not move in a few steps; others do.
    assert any(not np.array_equal(numbers(state[f"{n}.ema"]), numbers(chosen[-1][n])) for n in kept), flags
    return kept


SETTINGS = ((), ("--target=reference",), ("--target=cuda-emulated", "--precision=mixed-bf16", "--master=split", "--clip-norm=0.5"),
            ("--precision=bf16", "--micro-batches=2", "--no-fuse"), ("--precision=bf16", "--master=split", "--moments=int8", "--loss-scale=dynamic"),
            ("--frozen=h.0.*", "--group=*.ln*:weight_decay=0", "--sparse-updates=lazy", "--optimizer=lamb"))  # fmt: skip


def compare_settings(models, work):
    for name, settings in [("gpt-tiny", s) for s in SETTINGS] + [("lora-gpt2", ("--clip-norm=1",)), ("dlrm-mini", ())]:
        runs, label = Runs(models, work, name), name + "-" + "-".join(s.strip("-").translate(str.maketrans("*=.:,", "_____")) for s in settings)
        said = runs.compile(f"{label}.with", *settings, f"--ema={DECAY}")
        assert "averages of" in said and "for its average" not in runs.compile(f"{label}.without", *settings), said
        losses, steps = every_step(runs, f"{label}.with", f"{label}.run", 5)
        kept = check_averages(steps, settings)
        assert not any(n.startswith("h.0.") for n in kept) or "--frozen=h.0.*" not in settings, kept
        # Nothing else changes.
        others, plain = runs.run(f"{label}.without", f"{label}.plain", 5)
        assert losses == others and (plain / FILES[0]).read_bytes() == (steps[-1] / FILES[0]).read_bytes(), settings
        rest, resumed = runs.run(f"{label}.with", f"{label}.rest", 2, f"--resume={steps[2]}")
        assert rest == losses[3:] and all((resumed / f).read_bytes() == (steps[-1] / f).read_bytes() for f in FILES), settings


def compare_skipped(models, work):
    """A step whose gradients are not finite is no update of the averages."""
    runs = Runs(models, work, "mlp-digits")
    runs.spoil_second_batch("x")
    for target in TARGETS:
        runs.compile("skips", f"--target={target}", "--loss-scale=dynamic", f"--ema={DECAY}")
        _, steps = every_step(runs, "skips", f"skips-{target}", 4, "--on-nonfinite=continue")
        check_averages(steps, target, updates=[0, 2, 3])


def compare_budgets(models, work):
    runs = Runs(models, work, "gpt-tiny")
    runs.compile("roomy", f"--ema={DECAY}", "--precision=mixed-bf16", "--master=split")
    losses, end = runs.run("roomy", "roomy", 4)
    for budget in ("95%", "88%"):
        runs.compile("fitted", f"--ema={DECAY}", "--precision=mixed-bf16", "--master=split", f"--device-budget={budget}")
        fitted, other = runs.run("fitted", f"fitted-{budget}", 4)
        assert fitted == losses and all((end / f).read_bytes() == (other / f).read_bytes() for f in FILES), budget


def evaluate(runs, label, *flags):
    log = runs.work / "eval.log"
    log.unlink(missing_ok=True)
    tool("lowtide-run", runs.work / f"{label}.tide", "--entry=eval", f"--data={runs.folder / 'data.npz'}", f"--log-jsonl={log}", "--quiet", *flags)
    return [line["loss"] for line in map(json.loads, log.read_text().splitlines()) if "loss" in line]


def compare_evaluations(models, work):
    runs = Runs(models, work, "gpt-tiny")
    data = f"--eval-data={runs.folder / 'data.npz'}"
    for precision in (["--precision=mixed-bf16", "--master=split"], ["--precision=bf16"], ["--target=cuda-emulated"]):
        label = "evaluated" + "".join(precision).translate(str.maketrans("=.", "__"))
        runs.compile(label, *precision, f"--ema={DECAY}")
        file, model = work / f"{label}.safetensors", work / f"{label}.onnx"
        losses, end = runs.run(label, f"{label}-end", 4, f"--export-ema={file}", "--ema", f"--export={model}", f"--model={runs.model}")
        ours, saved, weights = (read_tensors(f) for f in (file, end / FILES[1], end / FILES[0]))
        for name in weights:
            own = name if f"{name}.ema" in saved else "wte.weight"
            wide = numbers(saved[f"{own}.ema"])
            if ours[name][0] == "BF16":
                bits = wide.view(np.uint32).astype(np.uint64)
                wide = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
            assert np.array_equal(numbers(ours[name]), wide), (precision, name)
        averaged, started, plain = evaluate(runs, label, f"--resume={end}", "--ema"), evaluate(runs, label, f"--init={file}"), evaluate(runs, label, f"--resume={end}")
        assert averaged == started != plain and len(plain) > 1, (precision, averaged, started, plain)
        # Evaluations on the way are of the averages, and the training does not notice.
        watched, same = runs.run(label, f"{label}-watched", 4, data, "--eval-every=2", "--ema")
        log = [json.loads(line) for line in (work / f"{label}-watched.log").read_text().splitlines()]
        evaluated = [line["eval_loss"] for line in log if line.get("eval_loss") is not None]
        assert watched == losses and (same / FILES[1]).read_bytes() == (end / FILES[1]).read_bytes(), precision
        assert len(evaluated) == 2 and abs(evaluated[-1] - np.mean(averaged)) < 1e-5 * abs(evaluated[-1]), (precision, evaluated, np.mean(averaged), np.mean(plain))
    # The model file with the averages in it.
    tool("lowtide", "compile", model, "-o", work / "again.tide", "--entries=train,eval", *runs.flags(), "-q")
    _, again = runs.run("again", "again", 0)
    assert all(np.array_equal(numbers(t), numbers(ours[n])) for n, t in read_tensors(again / FILES[0]).items())
    said = tool("lowtide-run", work / "again.tide", "--entry=eval", f"--data={runs.folder / 'data.npz'}", "--ema", code=1)
    assert "the artifact keeps no averages of its weights: compile with --ema=0.999" in said, said


def compare_predictions(models, work):
    runs = Runs(models, work, "logits-only")
    runs.compile("predicted", f"--ema={DECAY}")
    file = work / "predicted.safetensors"
    _, end = runs.run("predicted", "predicted-end", 4, f"--export-ema={file}")
    data = f"--data={runs.folder / 'data.npz'}"
    made = {}
    for name, flags in (("averaged", [f"--resume={end}", "--ema"]), ("started", [f"--init={file}"]), ("plain", [f"--resume={end}"])):
        tool("lowtide-run", work / "predicted.tide", f"--predict={work / name}.npz", data, "--quiet", *flags)
        with np.load(work / f"{name}.npz") as arrays:
            made[name] = {n: arrays[n] for n in arrays}
    assert made["averaged"] and all(np.array_equal(a, made["started"][n]) and not np.array_equal(a, made["plain"][n]) for n, a in made["averaged"].items())


def main():
    models, work = map(pathlib.Path, sys.argv[1:3])
    compare_settings(models, work)
    compare_skipped(models, work)
    compare_budgets(models, work)
    compare_evaluations(models, work)
    compare_predictions(models, work)
    print("averages have the bits of what they average")


if __name__ == "__main__":
    main()
