"""What batches ahead save, and what a slow source costs: `tools/dev bench feeding`.

For every model folder: the median step, and what it waited for its batch, with batches read between steps and with one,
two and four threads that prepare them. Then a program writes a batch in twice the time of a step: a step should wait for
what its source takes longer than itself, and the table has the wait that the run reports next to that difference.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile

from devkit.bench import OUT, compile_ours, folders, processor
from devkit.build import BUILD, build
from devkit.console import Failure, say
from devkit.judge import call, first_error, read_run

MODELS = ["mlp-digits", "cnn-digits", "gpt-tiny"]
# Paced by the clock, so that the time between two batches is the period whatever writing one takes.
SOURCE = """
import io, sys, time, numpy
file, batch, period, names = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
arrays = numpy.load(file)
step, begin = 0, time.monotonic()
while True:
    out = io.BytesIO()
    for name in names:
        numpy.save(out, arrays[name].take(range(step * batch, (step + 1) * batch), axis=0, mode="wrap"))
    time.sleep(max(0, begin + (step + 1) * period - time.monotonic()))
    sys.stdout.buffer.write(out.getbuffer())
    sys.stdout.buffer.flush()
    step += 1
"""


def run(artifact, data, work, steps, *flags):
    """Medians of a run's steps in ms, the first ten apart: the step, what it waited for data, and the losses."""
    log = work / "run.jsonl"
    log.unlink(missing_ok=True)
    command = [BUILD / "bin/lowtide-run", artifact, f"--data={data}", f"--steps={steps}", f"--log-jsonl={log}", "-q", *flags]
    status, said = call(command, work / "run.log")
    if status != 0:
        raise Failure(f"exit {status}: {first_error(said)}")
    rows = read_run(log)[1]
    return {"step_ms": statistics.median(row["step_ms"] for row in rows[10:]), "data_ms": statistics.median(row["data_ms"] for row in rows[10:]),
            "mean_step_ms": statistics.mean(row["step_ms"] for row in rows[10:]), "mean_data_ms": statistics.mean(row["data_ms"] for row in rows[10:]),
            "losses": [row["loss"] for row in rows]}  # fmt: skip


def arrays_of(artifact, work):
    """Batch arrays in the order in which a program writes them, and rows of a batch."""
    _, said = call([BUILD / "bin/lowtide-run", artifact, "--data=pipe:true", "--steps=1"], work / "note.log")
    note = re.search(r"a batch of the program is (.*)", said)
    found = re.findall(r"'([^']+)' \w+\[(\d+)", note[1]) if note else []
    if not found:
        raise Failure(f"no batch arrays in: {first_error(said)}")
    return [name for name, _ in found], int(found[0][1])


def measure(folder, options):
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch)
        artifact, data = compile_ours(folder, work), folder / "data.npz"
        row = {"model": folder.name, "feeders": {}}
        for feeders in (0, 1, 2, 4):
            row["feeders"][feeders] = run(artifact, data, work, options.steps, f"--feeders={feeders}", f"--threads={options.threads}")
        losses = [found.pop("losses") for found in row["feeders"].values()]
        if any(those != losses[0] for those in losses):
            raise Failure("losses depend on the number of feeders")
        names, batch = arrays_of(artifact, work)
        (work / "source.py").write_text(SOURCE)
        alone = row["feeders"][1]["mean_step_ms"] - row["feeders"][1]["mean_data_ms"]
        period = max(2 * alone, options.period)
        source = f"pipe:{sys.executable} {work / 'source.py'} {data} {batch} {period / 1e3} {' '.join(names)}"
        slow = run(artifact, source, work, options.slow_steps, f"--threads={options.threads}")
        row["slow"] = {"period_ms": period, "step_alone_ms": alone, "waited_ms": slow["mean_data_ms"], "expected_ms": period - alone}  # fmt: skip
        return row


def table(rows):
    yield "| model | between steps | one thread | two | four | losses |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in rows:
        yield f"| {row['model']} | " + " | ".join(f"{found['step_ms']:.3f} ({found['data_ms']:.3f})" for found in row["feeders"].values()) + " | equal |"
    yield ""
    yield "| model | source's period | step of the run above | waited, as reported | period less step | ratio |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in rows:
        slow = row["slow"]
        yield (f"| {row['model']} | {slow['period_ms']:.2f} | {slow['step_alone_ms']:.2f} | {slow['waited_ms']:.2f} | {slow['expected_ms']:.2f} | "
               f"{slow['waited_ms'] / slow['expected_ms']:.3f} |")  # fmt: skip


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev bench feeding", description="Steps next to the threads that prepare their batches, and after a slow source.")
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--slow-steps", type=int, default=100)
    parser.add_argument("--period", type=float, default=10, help="the source's period in ms is at least this")
    parser.add_argument("--threads", type=int, default=1, help="of the steps")
    options = parser.parse_args(argv)
    try:
        build(["lowtide", "lowtide-run"])
        rows = [measure(folders()[name], options) for name in options.models]
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    machine = {"processor": processor(), "threads": options.threads, "load_at_end": round(os.getloadavg()[0], 1)}
    name = f"{datetime.date.today()}-feeding"
    (OUT / f"{name}.json").write_text(json.dumps({"machine": machine, "models": rows}, indent=1) + "\n")
    text = ["# Batches ahead", "", f"{machine['processor']}, {options.threads} thread of the step, load {machine['load_at_end']}; `tools/dev bench feeding`. No GPU.",
            "Medians in ms: the step, and in brackets what it waited for its batch. Below, a program that writes a batch in each period; means in ms.",
            "", *table(rows)]  # fmt: skip
    (OUT / f"{name}.md").write_text("\n".join(text) + "\n")
    say("\n".join(text))
    return 0
