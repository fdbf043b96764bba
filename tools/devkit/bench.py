"""Step time and memory beside PyTorch's, on this machine, in one run: `tools/dev bench cpu`.

For every model folder: our artifact, PyTorch eager and torch.compile train the same architecture on the same rows with
the same number of threads, in turn, several rounds; and our artifact again under a budget of half of eager's memory, or
the smallest that its step can meet. Time is the median step of the best round of each. Memory is our arenas (exactly
what the runtime allocates) beside the live tensor bytes that PyTorch's profiler saw; for one larger model also the
resident memory of the whole processes. A second table has the matrix products of each step and its floor
(devkit/products.py), also those of GPT-2 124M where the collection holds its structure.
"""

import argparse
import datetime
import functools
import importlib
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

from devkit import dependencies, products
from devkit.build import BUILD, build
from devkit.console import ROOT, Failure, collection, say
from devkit.judge import call, first_error, read_run

DEFINITIONS = ROOT / "test" / "models"
OUT = ROOT / "docs" / "measurements"
# Exported for the bench alone: peaks above 500 MB, where what a process is made of no longer hides what a step needs.
RESIDENT = "gpt-resident"
# Its products alone are measured: their shapes are those of a model that people train.
PRODUCTS_ONLY = "gpt2-124m"


def folders():
    roots = [DEFINITIONS] + ([collection()] if collection().is_dir() else [])
    found = {}
    for root in roots:
        for spec in sorted(root.glob("*/train.json")):
            found.setdefault(spec.parent.name, spec.parent)
    return found


# Benchmarks of other questions: their module, and what they measure.
OTHERS = {"resident": ("resident", "memory of whole processes"), "compile": ("growth", "growth of the compiler"),
          "feeding": ("feeding", "batches ahead"), "layouts": ("layouts", "loss by layout of state")}  # fmt: skip
DOES_NOT_FIT = 4  # docs/reference/exit-codes.md


def compile_ours(folder, work, budget=None):
    """The artifact, under a budget in bytes where one is given: where the step cannot meet it, under the smallest that it can."""
    from devkit.record import Record

    record = Record(folder)
    artifact, figures = work / ("fitted.tide" if budget else "step.tide"), work / "figures.json"
    command = [BUILD / "bin/lowtide", "compile", folder / "model.onnx", "-o", artifact, "--target=cpu", "--entries=train",
               f"--figures={figures}"]  # fmt: skip
    command += [f"--device-budget={budget}"] if budget else []
    status, said = call([*command, *record.compiler_flags(folder / "model.onnx")], work / "compile.log")
    if status == DOES_NOT_FIT:
        smallest = json.loads(figures.read_text())["refusal"]["smallest_bytes"]
        if smallest > budget:
            return compile_ours(folder, work, smallest)
    if status != 0:
        raise Failure(f"exit {status}: {first_error(said)}")
    return artifact


def run_ours(folder, artifact, work, steps, threads, *flags):
    log, summary = work / "run.jsonl", work / "summary.json"
    log.unlink(missing_ok=True)
    command = [BUILD / "bin/lowtide-run", artifact, f"--data={folder / 'data.npz'}", f"--steps={steps}", f"--log-jsonl={log}", f"--summary={summary}",
               f"--threads={threads}", *flags]  # fmt: skip
    status, said = call(command, work / "run.log")
    if status != 0:
        raise Failure(f"exit {status}: {first_error(said)}")
    header, rows = read_run(log)
    times = [row["step_ms"] for row in rows][min(4, steps // 4) :]
    resident = json.loads(summary.read_text())["resident_bytes"]
    return {"step_ms": statistics.median(times), "steps": len(times), "peak_bytes": header.get("planned_bytes"), "rss_bytes": resident}


def call_peer(python, threads, *arguments):
    done = subprocess.run(
        [python, "-B", "-m", "devkit.torch_peer", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=1800, env=os.environ | {"PYTHONPATH": str(ROOT / "tools"), "OMP_NUM_THREADS": str(threads)},
    )  # fmt: skip
    if done.returncode:
        raise Failure(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    return done.stdout


def run_torch(python, name, folder, mode, seconds, threads):
    said = call_peer(python, threads, "measure", DEFINITIONS, name, folder, mode, seconds, threads)
    return json.loads(said.strip().splitlines()[-1])


def best(old, new):
    return new if old is None or new["step_ms"] < old["step_ms"] else old


def measure(name, folder, python, options):
    row = {"model": name, "ours": None, "eager": None, "compile": None, "half": None, "products": []}
    with tempfile.TemporaryDirectory(prefix="lowtide-bench-") as scratch:
        work = pathlib.Path(scratch)
        try:
            artifact = compile_ours(folder, work)
        except Failure as failure:
            artifact, row["refused"] = None, str(failure)
        fitted = None
        for _ in range(options.rounds):
            for mode in ("eager", "compile"):
                row[mode] = best(row[mode], run_torch(python, name, folder, mode, options.seconds, options.threads))
            if not artifact:
                continue
            try:
                row["ours"] = best(row["ours"], run_ours(folder, artifact, work, options.steps, options.threads))
                fitted = fitted or compile_ours(folder, work, row["eager"]["peak_bytes"] // 2)
                row["half"] = best(row["half"], run_ours(folder, fitted, work, options.steps, options.threads))
            except Failure as failure:
                row["refused"], row["ours"], artifact = str(failure), None, None
        if artifact:
            row["products"] = measure_products(artifact, work, python, options)
    return row


def measure_products(artifact, work, python, options):
    return products.measure(artifact, work, options.threads, options.rounds, functools.partial(call_peer, python, options.threads))


def measure_structure(python, options):
    """Products of the full-size model, or nothing where the collection does not hold it."""
    model = collection() / "structure" / f"{PRODUCTS_ONLY}.onnx"
    if not model.exists():
        return []
    with tempfile.TemporaryDirectory(prefix="lowtide-bench-") as scratch:
        work = pathlib.Path(scratch)
        command = [BUILD / "bin/lowtide", "compile", model, "-o", work / "step.tide", "--target=cpu", "--entries=train", "--batch=1", "--no-weights"]
        status, said = call(command, work / "compile.log")
        if status:
            raise Failure(f"exit {status}: {first_error(said)}")
        return measure_products(work / "step.tide", work, python, options)


def measure_resident(python, options):
    """One larger model, once each: tensor bytes and resident bytes of whole processes."""
    with tempfile.TemporaryDirectory(prefix="lowtide-bench-") as scratch:
        work = pathlib.Path(scratch)
        folder = work / RESIDENT
        call_peer(python, options.threads, "export", DEFINITIONS, RESIDENT, folder)
        row = {"model": RESIDENT, "ours": None, "half": None}
        for mode in ("eager", "compile"):
            row[mode] = run_torch(python, RESIDENT, folder, mode, options.seconds, options.threads)
        try:
            row["ours"] = run_ours(folder, compile_ours(folder, work), work, 4, options.threads)
            fitted = compile_ours(folder, work, row["eager"]["peak_bytes"] // 2)
            row["half"] = run_ours(folder, fitted, work, 4, options.threads)
        except Failure as failure:
            row["refused"] = str(failure)
    return row


def table(rows):
    yield ("| model | ours ms | eager ms | compiled ms | ours / eager | ours / compiled | our MB | eager MB | ours / eager"
           " | fitted ms | fitted / compiled | fitted / eager MB | peer |")  # fmt: skip
    yield "| --- |" + " ---: |" * 11 + " --- |"
    for row in rows:
        eager, compiled, ours = row["eager"], row["compile"], row["ours"]
        peers, peer = f"{eager['step_ms']:.2f} | {compiled['step_ms']:.2f}", eager.get("peer", "")
        if not ours:
            yield f"| {row['model']} | – | {peers} | – | – | – | {eager['peak_bytes'] / 1e6:.2f} | – | – | – | – | {peer} |"
            continue
        half = row["half"]
        ratios = f"{ours['step_ms'] / eager['step_ms']:.2f} | {ours['step_ms'] / compiled['step_ms']:.2f}"
        memory = f"{ours['peak_bytes'] / 1e6:.2f} | {eager['peak_bytes'] / 1e6:.2f} | {ours['peak_bytes'] / eager['peak_bytes']:.2f}"
        fitted = f"{half['step_ms']:.2f} | {half['step_ms'] / compiled['step_ms']:.2f} | {half['peak_bytes'] / eager['peak_bytes']:.2f}"
        yield f"| {row['model']} | {ours['step_ms']:.2f} | {peers} | {ratios} | {memory} | {fitted} | {peer} |"


def resident_table(row):
    yield f"| {row['model']} | step ms | tensor MB | resident MB | of it before the model |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for who, run in (("ours", row["ours"]), ("ours, fitted", row["half"]), ("eager", row["eager"]), ("compiled", row["compile"])):
        if not run:
            yield f"| {who} | – | – | – | {row['refused']} |"
            continue
        before = f"{run['rss_import_bytes'] / 1e6:.0f}" if "rss_import_bytes" in run else "–"
        yield f"| {who} | {run['step_ms']:.0f} | {run['peak_bytes'] / 1e6:.0f} | {run['rss_bytes'] / 1e6:.0f} | {before} |"


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main(argv):
    if argv and argv[0] in OTHERS:
        return importlib.import_module(f"devkit.{OTHERS[argv[0]][0]}").main(argv[1:])
    parser = argparse.ArgumentParser(prog="tools/dev bench", description="Step time and memory beside PyTorch's, written to docs/measurements.")
    parser.add_argument("target", choices=["cpu", *OTHERS],
                        help="; ".join(f"{name}: {text}" for name, (_, text) in OTHERS.items()) + "; each has its --help")  # fmt: skip
    parser.add_argument("models", nargs="*", help="folder names; all when none is named")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100, help="steps of ours per round")
    parser.add_argument("--seconds", type=float, default=3, help="time of PyTorch per round")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_intermixed_args(argv)
    try:
        build(["lowtide", "lowtide-run"])
        python = dependencies.environment("oracles")
        measurable = {name: folder for name, folder in folders().items() if name in zoo_names()}
        if unknown := set(options.models) - {*measurable, RESIDENT, PRODUCTS_ONLY}:
            raise Failure(f"error: no model '{min(unknown)}'\nnote: there are {', '.join([*measurable, RESIDENT, PRODUCTS_ONLY])}")
        rows = []
        for name, folder in measurable.items():
            if options.models and name not in options.models:
                continue
            rows.append(measure(name, folder, python, options))
            say(list(table(rows))[-1])
        resident = measure_resident(python, options) if not options.models or RESIDENT in options.models else None
        structure = measure_structure(python, options) if not options.models or PRODUCTS_ONLY in options.models else []
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    load = os.getloadavg()[0]
    seen = rows[0] if rows else resident
    machine = {"processor": processor(), "threads": options.threads, "load_at_end": round(load, 1), "torch": seen["eager"]["torch"] if seen else None}
    OUT.mkdir(parents=True, exist_ok=True)
    name = f"{datetime.date.today()}-bench-cpu"
    (OUT / f"{name}.json").write_text(json.dumps({"machine": machine, "models": rows, "resident": resident, PRODUCTS_ONLY: structure}, indent=1) + "\n")
    text = ["# CPU: one training step beside PyTorch", "", f"{machine['processor']}, {options.threads} threads, PyTorch {machine['torch']}; `tools/dev bench cpu`.",
            "Time: median step, best of the rounds. Memory: our arenas; PyTorch's live tensor bytes by its profiler.",
            "Fitted: compiled for half of eager's memory, or for the smallest budget that the step can meet.",
            "Peer: what is known of the PyTorch module: with the recorded weights its first loss is the recorded one (*same loss*),",
            "its parameters have the recorded names and shapes (*same parameters*) or number (*same count*), or it is a *look-alike*.",
            "", *table(rows)]  # fmt: skip
    if resident:
        text += ["", "Resident memory of the whole process, and what PyTorch's holds when it has been imported:", "", *resident_table(resident)]
    steps = [(row["model"], row["ours"] and row["ours"]["step_ms"], row["products"]) for row in rows]
    text += ["", "Matrix products, each by itself, and the floor of a step: its products at PyTorch's rates. GPT-2 124M: one sample.", "",
             *products.table([*steps, (PRODUCTS_ONLY, None, structure)])]  # fmt: skip
    (OUT / f"{name}.md").write_text("\n".join(text) + "\n")
    print("\n".join(text))
    return 0


def zoo_names():
    """Models that test/models/zoo.py defines; read as text, for PyTorch lives in another environment."""
    return set(re.findall(r'^    "([\w-]+)":', (DEFINITIONS / "zoo.py").read_text(), re.M))
