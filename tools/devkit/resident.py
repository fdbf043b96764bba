"""Resident memory of whole processes for one large step: `tools/dev bench resident`.

GPT-2 124M (or another model of test/models/zoo.py that reads tokens) is exported, and trained for a few steps by our
artifact at its smallest and its largest budget from random weights, and by PyTorch eager, with every block checkpointed,
and compiled. Each runs in a process of its own; what it held at most is what the kernel says (ru_maxrss).
"""

import argparse
import datetime
import os
import pathlib
import sys
import tempfile

from devkit import dependencies
from devkit.bench import BUILD, DEFINITIONS, OUT, call_peer, processor, run_ours, run_torch
from devkit.build import build
from devkit.console import Failure, say
from devkit.fit_table import training_step
from devkit.judge import call, first_error
from devkit.record import Record

MODES = {"eager": "PyTorch eager", "checkpoint": "PyTorch, blocks checkpointed", "compile": "PyTorch compiled"}


def run_budget(folder, work, flags, options):
    artifact = work / "step.tide"
    command = [BUILD / "bin/lowtide", "compile", folder / "model.onnx", "-o", artifact, "--target=cpu", "--entries=train", *flags]
    status, said = call([*command, *Record(folder).compiler_flags(folder / "model.onnx")], work / "compile.log")
    if status:
        raise Failure(f"exit {status}: {first_error(said)}")
    return run_ours(folder, artifact, work, options.steps, options.threads, "--init=random:1")


def smallest_budget(folder, work):
    command = [BUILD / "bin/lowtide", "fit", folder / "model.onnx", "--json", "--rows=2", "-q", "--entries=train"]
    status, said = call([*command, *Record(folder).compiler_flags(folder / "model.onnx")], work / "fit.log")
    if status:
        raise Failure(f"exit {status}: {first_error(said)}")
    return training_step(said)["smallest_bytes"]


def table(rows):
    yield "| who | step ms | tensor MB | resident MB | of it before the model |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for who, run in rows:
        if "refused" in run:
            yield f"| {who} | – | – | – | {run['refused']} |"
            continue
        before = f"{run['rss_import_bytes'] / 1e6:.0f}" if "rss_import_bytes" in run else "–"
        yield f"| {who} | {run['step_ms']:.0f} | {run['peak_bytes'] / 1e6:.0f} | {run['rss_bytes'] / 1e6:.0f} | {before} |"


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev bench resident", description=__doc__.replace("\n", " "))
    parser.add_argument("--model", default="gpt2-124m", help="in test/models/zoo.py (gpt2-124m)")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--length", type=int, default=1024, help="tokens of a row (1024)")
    parser.add_argument("--vocabulary", type=int, default=50304)
    parser.add_argument("--steps", type=int, default=2, help="steps of ours")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--without", default="", help="modes of PyTorch to leave out: eager, checkpoint, compile")
    options = parser.parse_args(argv)
    rows = []

    def measure(who, run):
        try:
            rows.append((who, run()))
        except Failure as failure:
            rows.append((who, {"refused": str(failure)}))
        say(list(table(rows))[-1])

    try:
        build(["lowtide", "lowtide-run"])
        python = dependencies.environment("oracles")
        with tempfile.TemporaryDirectory(prefix="lowtide-bench-") as scratch:
            work = pathlib.Path(scratch)
            folder = work / options.model
            call_peer(python, options.threads, "export", DEFINITIONS, options.model, folder, options.batch, options.length, options.vocabulary)
            budget = smallest_budget(folder, work)
            measure("ours, smallest budget", lambda: run_budget(folder, work, [f"--device-budget={budget}"], options))
            measure("ours, no budget", lambda: run_budget(folder, work, [], options))
            for mode, who in MODES.items():
                if mode not in options.without.split(","):
                    measure(who, lambda mode=mode: run_torch(python, options.model, folder, mode, 0, options.threads))
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    text = [f"# Resident memory: {options.model}, batch {options.batch} of {options.length} tokens", "",
            f"{processor()}, {options.threads} threads; `tools/dev bench resident`. Tensor MB: our arenas, everything that the runtime",
            "allocates; PyTorch's live tensor bytes by its profiler. Resident MB: the most that the process held, and what PyTorch's",
            f"holds when it has been imported. Load of the machine at the end: {os.getloadavg()[0]:.1f}.", "", *table(rows)]  # fmt: skip
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{datetime.date.today()}-resident.md").write_text("\n".join(text) + "\n")
    print("\n".join(text))
    return 0
