"""What must hold of whole runs: behaviour.py <folder of binaries> <folder of models> [--full]; needs numpy.

Same file, same bytes; same step, same bits, whatever the number of threads; a run that is stopped and resumed is the run
that was not; loss scaling is GradScaler's; random numbers are fresh by seed gone with --dropout=0, and spread as PyTorch's; a run that leaves its record is told so.
Prints a list of {name, complaint}.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import dropout_statistics  # noqa: E402
import loss_head  # noqa: E402
import scaling  # noqa: E402
from devkit.record import Record  # noqa: E402

BIN = pathlib.Path()


class Broken(Exception):
    """A tool that should have worked did not."""


def call(*command, codes=(0,)):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    if done.returncode not in codes:
        raise Broken(f"{pathlib.Path(command[0]).name} exit {done.returncode}: {done.stderr.decode(errors='replace').strip()[-500:]}")
    return done.returncode, done.stderr.decode(errors="replace")


def compiled(record, model, out, *flags):
    call(BIN / "lowtide", "compile", model, "-o", out, *record.compiler_flags(model, flags))
    return out


def trained(artifact, record, folder, *flags, steps=8):
    """(losses, digest of the saved parameters)."""
    folder.mkdir(parents=True, exist_ok=True)
    log, saved = folder / "run.jsonl", folder / "saved"
    data = f"--data={record.folder / 'data.npz'}"
    call(BIN / "lowtide-run", artifact, data, f"--steps={steps}", f"--log-jsonl={log}", f"--save={saved}", *flags)
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    newest = max(saved.rglob("params.safetensors"), key=lambda path: path.stat().st_mtime_ns)
    return [row["loss"] for row in rows if "loss" in row and "step" in row], digest(newest)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def same_bytes(record, model, work):
    digests = {digest(compiled(record, model, work / f"{i}.tide")) for i in range(3)}
    return "" if len(digests) == 1 else f"{len(digests)} different artifacts of three compiles"


def same_bits(record, model, work):
    artifact = compiled(record, model, work / "step.tide")
    runs = [trained(artifact, record, work / f"run{i}", f"--threads={n}") for i, n in enumerate((1, 2, 2, 3))]
    different = [i for i, r in enumerate(runs) if r != runs[0]]
    return f"runs {different} differ from the run on one thread" if different else ""


def resumed(record, model, work):
    artifact = compiled(record, model, work / "step.tide")
    whole = trained(artifact, record, work / "whole", steps=9)
    first = trained(artifact, record, work / "parts", steps=4)
    second = trained(artifact, record, work / "parts", f"--resume={work / 'parts' / 'saved'}", steps=5)
    if (first[0] + second[0], second[1]) != whole:
        return f"4 + 5 steps give {first[0] + second[0]}, 9 steps give {whole[0]}"
    return ""


def exported(record, model, work):
    """Weights written back into the user's file: compiled again, it goes on where the run stopped."""
    flags = [f for f in record.compiler_flags(model) if f.startswith(("--dim", "--shape", "--loss"))]
    flags += ["--optimizer=sgd", "--lr=0.05"]  # no state that the file cannot hold
    compile_ = lambda file, out: call(BIN / "lowtide", "compile", file, "-o", out, *flags)  # noqa: E731
    compile_(model, work / "a.tide")
    epoch = next(iter(record.shapes.values()))[0] // record.batch
    whole = trained(work / "a.tide", record, work / "whole", steps=epoch + 3)[0]
    (work / "out").mkdir()
    target = work / "out" / model.name
    trained(work / "a.tide", record, work / "part", f"--model={model}", f"--export={target}", steps=epoch)
    compile_(target, work / "b.tide")
    again = trained(work / "b.tide", record, work / "again", steps=3)[0]
    worst = max(abs(a - b) / abs(a) for a, b in zip(whole[epoch:], again))
    return "" if worst < 1e-6 else f"losses go on as {again}, those of the uninterrupted run are {whole[epoch:]}"


def any_budget(record, model, work, *flags):
    """Whatever the budget: not one bit differs, and the runtime allocates no more than was asked for."""
    work.mkdir(exist_ok=True)
    free, entries = work / "free.tide", ["--entries=train", *flags]
    whole = trained(compiled(record, model, free, *entries), record, work / "free", steps=20)
    done = 0
    for percent in (90, 75, 60, 50, 40):
        artifact, flag = work / f"{percent}.tide", f"--device-budget={percent}%"
        code, said = call(
            BIN / "lowtide", "compile", model, "-o", artifact, *record.compiler_flags(model, [*entries, flag]), codes=(0, 4)
        )
        if code == 4:
            if "are needed" not in said and "needs" not in said:
                return f"refused at {percent} % without saying what is needed: {said[-300:]}"
            break
        if trained(artifact, record, work / str(percent), steps=20) != whole:
            return f"losses or parameters at {percent} % differ from those without a budget"
        done += 1
    return "" if done else "no budget below the whole was met"


def any_budget_in_loops(record, model, work):
    """The same of steps that are computed in parts, and of losses that are."""
    for name, flags in {"parts": ["--micro-batches=2"], "pieces": ["--loss-head-chunks=4"], "both": ["--micro-batches=2", "--loss-head-chunks=2"]}.items():
        if complaint := any_budget(record, model, work / name, *flags):
            return f"{' '.join(flags)}: {complaint}"
    return ""


def pieces(record, model, work):
    """In however many pieces a loss is computed: not one bit differs."""
    return loss_head.compare(BIN, model, record.folder / "data.npz", record.compiler_flags(model), work)


def masked_pieces(record, model, work):
    return loss_head.masked(BIN, work)


def one_count(record, model, work):
    """What `compile -v` says of the peak, by component, is what the plan in the artifact holds there."""
    units = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    artifact, picture, figures = (work / name for name in ("step.tide", "step.json", "figures.json"))
    line = [BIN / "lowtide", "compile", model, "-o", artifact, *record.compiler_flags(model, ["--entries=train", "-v"])]
    call(*line, "--device-budget=1", f"--figures={figures}", codes=(4,))
    least = json.loads(figures.read_text())["refusal"]["smallest_bytes"]
    for flags in ([], [f"--device-budget={least}"]):
        _, said = call(*line, *flags)
        peak = re.findall(r"@train: at its peak .*?: (.*?); the largest", said)[-1]
        stated = {name: (float(number), units[unit]) for number, unit, name in re.findall(r"([\d.]+) (\w+) of ([a-z ]+)", peak)}
        call(BIN / "lowtide", "report", artifact, "--format=json", "-o", picture)
        drawn = json.loads(picture.read_text())
        entry = drawn["entries"][0]
        held = {"parameters": drawn["params_bytes"], "optimizer state": drawn["state_bytes"], "batch": drawn["io_bytes"], "exchange blocks": drawn["exchange_bytes"]}
        held = {name: size for name, size in held.items() if size}
        for tensor in entry["tensors"]:
            if tensor["begin"] <= entry["peak_at"] < tensor["end"]:
                # The picture has a tensor's own bytes, the count what its place takes.
                held[tensor["component"]] = held.get(tensor["component"], 0) + -(-tensor["bytes"] // 64) * 64
        wrong = {n for n, (number, unit) in stated.items() if abs(number - held.get(n, 0) / unit) > 0.0051}
        if wrong or held.keys() != stated.keys():
            return f"{' '.join(flags)}: at the peak {peak}, but the plan holds {held}"
    return ""


def unplanned(record, model, work):
    """Fusing may change neither the meaning nor, much, the losses."""
    fused = trained(compiled(record, model, work / "a.tide"), record, work / "a")
    plain = trained(compiled(record, model, work / "b.tide", "--no-fuse"), record, work / "b")
    worst = max(abs(a - b) / abs(a) for a, b in zip(fused[0], plain[0]))
    return "" if worst < 1e-4 else f"losses differ by {worst:.1e} with and without fusion"


def random_numbers(record, model, work):
    artifact = compiled(record, model, work / "drop.tide")
    one, again, two = (trained(artifact, record, work / f"drop{i}", f"--seed={s}", steps=3)[0] for i, s in enumerate((1, 1, 2)))
    if one != again:
        return "the same seed gives different losses"
    if one == two:
        return "different seeds give the same losses"
    still = compiled(record, model, work / "still.tide", "--dropout=0")
    a, b = (trained(still, record, work / f"still{s}", f"--seed={s}", steps=3)[0] for s in (1, 2))
    return "" if a == b else "with --dropout=0 the seed still matters"


def dropout_over_seeds(record, model, work):
    compiled(record, model, work / "drop.tide")
    losses = dropout_statistics.first_losses(call, BIN / "lowtide-run", work / "drop.tide", record.folder / "data.npz", work)
    return dropout_statistics.compare(losses) or dropout_statistics.compare_masks(dropout_statistics.masks(call, BIN, work))


def expectation(record, model, work):
    expect, data = f"--expect={record.folder / 'expected.json'}", f"--data={record.folder / 'data.npz'}"
    good = compiled(record, model, work / "good.tide")
    call(BIN / "lowtide-run", good, data, f"--steps={record.steps}", expect)
    off = compiled(record, model, work / "off.tide", f"--lr={record.train['options']['lr'] * 1.05}")
    code, said = call(BIN / "lowtide-run", off, data, f"--steps={record.steps}", expect, codes=(0, 9))
    if code != 9:
        return "a run with another learning rate is not told apart from the record"
    return "" if "step" in said else f"the step that leaves the record is not named: {said[-300:]}"


def loss_scaling(record, model, work):
    return scaling.grad_scaler(BIN, work)


def loss_scaling_in_parts(record, model, work):
    return scaling.grad_scaler_in_parts(BIN, work)


def clipping(record, model, work):
    return scaling.clipping(BIN, work)


def rehearse(models, full):
    chosen = {"mlp-digits": "model.onnx", "cnn-digits": "model.onnx", "gpt-tiny": "default.onnx", "llama-tiny": "model.onnx", "unet-mini": "model.onnx"}
    general = [same_bytes, same_bits, resumed, unplanned]
    for name, file in chosen.items():
        for check in general if full or name in ("mlp-digits", "gpt-tiny") else [same_bits]:
            yield check, models / name / file
    for model in ("gpt-tiny/model.onnx", "cnn-digits/model.onnx", "unet-mini/model.onnx", "bag-tiny/model.onnx"):
        yield one_count, models / model
    for model in ("gpt-tiny/default.onnx", "gpt-tiny/torchscript.onnx", "cnn-digits/dynamo.onnx", "llama-tiny/model.onnx"):
        yield exported, models / model
    for model in ("gpt-tiny/model.onnx", "llama-tiny/model.onnx"):
        yield pieces, models / model
        yield any_budget_in_loops, models / model
    yield any_budget_in_loops, models / "gpt-dropout" / "model.onnx"
    yield masked_pieces, models / "mlp-digits" / "model.onnx"
    yield expectation, models / "mlp-digits" / "model.onnx"
    yield random_numbers, models / "gpt-dropout" / "model.onnx"
    yield dropout_over_seeds, models / "gpt-dropout" / "model.onnx"
    for check in (loss_scaling, loss_scaling_in_parts, clipping):
        yield check, models / "mlp-digits" / "model.onnx"


def row(check, model):
    with tempfile.TemporaryDirectory(prefix="lowtide-behaviour-") as scratch:
        try:
            complaint = check(Record(model.parent), model, pathlib.Path(scratch))
        except (Broken, subprocess.TimeoutExpired, ValueError, OSError) as error:
            complaint = f"{type(error).__name__}: {error}"
    return {"name": f"{check.__name__} {model.parent.name}/{model.name}", "complaint": complaint}


def main():
    global BIN
    BIN, models = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(lambda pair: row(*pair), rehearse(models, "--full" in sys.argv)))
    json.dump(rows, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
