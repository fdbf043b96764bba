"""What layouts of state cost in loss and save in bytes: `tools/dev bench layouts`.

A GPT that reads bytes (gpt-mini of test/models/zoo.py) is trained on this project's own documentation with AdamW, once for
each layout and seed. A seed decides the initial weights, the order of rows and the draws of stochastic rounding. The loss is
the mean of the last steps, and that of rows that no step saw. Bytes are those of parameters and optimizer state as
`--figures` counts them, for each trained number.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import sys
import tempfile

from devkit import dependencies
from devkit.bench import DEFINITIONS, OUT, call_peer, processor
from devkit.build import BUILD, build
from devkit.console import ROOT, Failure, say
from devkit.judge import call, first_error, read_run

MODEL, BATCH, LENGTH = "gpt-mini", 8, 64
# Precision and master that go together: halves and stochastic rounding are of parameters that the forward pass reads in bf16.
MASTERS = [("f32", "f32"), ("mixed-bf16", "f32"), ("mixed-bf16", "split"), ("bf16", "sr")]
MOMENTS = ["f32", "bf16", "int8", "fp8"]
OPTIMIZER = ["--optimizer=adamw", "--lr=3e-3", "--weight-decay=0.1", "--schedule=cosine", "--warmup-steps=10", "--clip-norm=1"]
# One row of eight is kept from training.
HELD_BACK = 8
LAST_STEPS = 20


def write_text(work):
    """The project's documentation as two files of bytes: what is trained on, and what is not."""
    text = b"".join(path.read_bytes() for path in sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "rationale").glob("*.md")]))
    rows = [text[i : i + LENGTH] for i in range(0, len(text) - LENGTH, LENGTH)]
    trained = [row for i, row in enumerate(rows) if i % HELD_BACK]
    seen, unseen = work / "seen.u8", work / "unseen.u8"
    seen.write_bytes(b"".join(trained))
    unseen.write_bytes(b"".join(rows[::HELD_BACK]))
    return seen, unseen


def compile_layout(model, work, flags, steps):
    artifact, figures = work / "step.tide", work / "figures.json"
    command = [BUILD / "bin/lowtide", "compile", model, f"--batch={BATCH}", "--no-weights", "-o", artifact, f"--figures={figures}", "-q",
               *OPTIMIZER, f"--total-steps={steps}", *flags]  # fmt: skip
    status, said = call(command, work / "compile.log")
    if status:
        raise Failure(f"{' '.join(flags)}: exit {status}: {first_error(said)}")
    stored = json.loads(figures.read_text())["stored"]
    return artifact, (stored["parameter_bytes"] + stored["master_bytes"] + stored["moment_bytes"]) / stored["parameters"]


def train(artifact, work, seed, steps, threads, seen, unseen):
    """(mean loss of the last steps, loss of what was not seen)."""
    log = work / "run.jsonl"
    log.unlink(missing_ok=True)
    command = [BUILD / "bin/lowtide-run", artifact, f"--data={seen}", f"--steps={steps}", f"--init=random:{seed}", f"--seed={seed}", f"--shuffle={seed}",
               f"--threads={threads}", f"--eval-data={unseen}", f"--eval-every={steps}", f"--log-jsonl={log}", "-q"]  # fmt: skip
    status, said = call(command, work / "run.log")
    if status:
        raise Failure(f"exit {status}: {first_error(said)}")
    rows = read_run(log)[1]
    evaluated = [json.loads(line) for line in log.read_text().splitlines() if '"eval' in line]
    return statistics.mean(row["loss"] for row in rows[-LAST_STEPS:]), evaluated[-1]["eval_loss"]


def table(rows, seeds):
    base = rows[0]
    yield "| precision | master | moments | bytes a number | " + " | ".join(f"seed {seed}" for seed in seeds) + " | over f32 | not seen, over f32 |"
    yield "| --- | --- | --- | ---: |" + " ---: |" * (len(seeds) + 2)
    for row in rows:
        over = [statistics.mean(mine - its for mine, its in zip(row[what], base[what])) for what in ("losses", "unseen")]
        losses = " | ".join(f"{loss:.4f}" for loss in row["losses"])
        yield f"| {row['precision']} | {row['master']} | {row['moments']} | {row['bytes_per_number']:.3f} | {losses} | {over[0]:+.4f} | {over[1]:+.4f} |"


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev bench layouts", description=__doc__.replace("\n", " "))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(argv)
    seeds, rows = range(1, options.seeds + 1), []
    try:
        build(["lowtide", "lowtide-run"])
        with tempfile.TemporaryDirectory(prefix="lowtide-bench-") as scratch:
            work = pathlib.Path(scratch)
            call_peer(dependencies.environment("oracles"), options.threads, "export", DEFINITIONS, MODEL, work / MODEL, BATCH, LENGTH, 256)
            seen, unseen = write_text(work)
            for precision, master in MASTERS:
                for moments in MOMENTS:
                    flags = [f"--precision={precision}", f"--master={master}", f"--moments={moments}"]
                    artifact, bytes_per_number = compile_layout(work / MODEL / "model.onnx", work, flags, options.steps)
                    found = [train(artifact, work, seed, options.steps, options.threads, seen, unseen) for seed in seeds]
                    rows.append({"precision": precision, "master": master, "moments": moments, "bytes_per_number": bytes_per_number,
                                 "losses": [loss for loss, _ in found], "unseen": [loss for _, loss in found]})  # fmt: skip
                    say(list(table(rows, seeds))[-1])
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    machine = {"processor": processor(), "threads": options.threads, "load_at_end": round(os.getloadavg()[0], 1)}
    name = f"{datetime.date.today()}-layouts"
    (OUT / f"{name}.json").write_text(json.dumps({"machine": machine, "steps": options.steps, "rows": rows}, indent=1) + "\n")
    text = [f"# Loss after {options.steps} steps by layout of state", "", f"{machine['processor']}; `tools/dev bench layouts`. No GPU. A GPT of 0.5 million numbers that reads this",
            f"project's documentation byte by byte, AdamW, batches of {BATCH} rows of {LENGTH}. Losses are means of the last {LAST_STEPS} steps; *over f32* is the mean",
            "difference from the first row at the same seed; *not seen* is the loss of rows kept from training. Bytes: parameters and optimizer",
            "state as `--figures` counts them, for each trained number.", "", *table(rows, seeds)]  # fmt: skip
    (OUT / f"{name}.md").write_text("\n".join(text) + "\n")
    print("\n".join(text))
    return 0
