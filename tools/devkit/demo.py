"""The first thing a newcomer sees: a model that PyTorch exported trains to the losses that PyTorch reached."""

import argparse
import json
import os
import shlex
import subprocess
import sys

from devkit import dependencies
from devkit.build import BUILD, build
from devkit.console import ROOT, Failure, say

MODEL = ROOT / "test" / "models" / "mlp-digits"
GPT = ROOT / "test" / "models" / "gpt-tiny"
PART = "50%"  # of the memory that the GPT takes, all told


def show(command):
    """Print a command as a person would type it, then run it on the person's terminal."""
    home = str(ROOT) + os.sep
    say("  $ " + shlex.join(str(c).replace(home, "") for c in command))
    status = subprocess.run([str(c) for c in command], cwd=ROOT, stdin=subprocess.DEVNULL).returncode
    if status:
        raise Failure(f"error: {command[0].name} failed with {status}")


def train_gpt(out, name, *flags):
    """Compiles the small GPT with these flags, trains 20 steps; returns the losses, every digit of them."""
    from devkit.record import Record

    model, artifact, log = GPT / "opset23.onnx", out / f"{name}.tide", out / f"{name}.jsonl"
    show([BUILD / "bin/lowtide", "compile", model, "-o", artifact, "--entries=train", *Record(GPT).compiler_flags(model), *flags])
    show([BUILD / "bin/lowtide-run", artifact, f"--data={GPT / 'data.npz'}", "--steps=20", f"--log-jsonl={log}", "--log-every=10"])
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line and "step" in line]


def compare(losses, others):
    if losses != others:
        raise Failure("error: the losses differ")
    say(f"  {len(losses)} losses, equal to the last bit; the last one is {losses[-1]:.6f}")


def train_in_less_memory(out, losses):
    """With a part of the memory the losses are the same, bit for bit, and the report draws both steps."""
    compare(losses, train_gpt(out, "gpt-half", f"--device-budget={PART}"))
    show([BUILD / "bin/lowtide", "diff", out / "gpt-whole.tide", out / "gpt-half.tide"])
    page = out / "gpt-half.html"
    show([BUILD / "bin/lowtide", "report", out / "gpt-half.tide", "-o", page])
    return page


def train_what_does_not_fit(out, losses):
    """In less memory than recomputation can reach, parameters, state and values wait in a file: the same losses again."""
    from devkit.fit_table import training_step
    from devkit.record import Record

    model = GPT / "opset23.onnx"
    asked = [BUILD / "bin/lowtide", "fit", model, "--entries=train", "--rows=2", "--json", "-q", *Record(GPT).compiler_flags(model)]
    run = subprocess.run([str(c) for c in asked], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if run.returncode:
        raise Failure(run.stderr)
    smallest = training_step(run.stdout)["smallest_bytes"]
    budget = smallest * 3 // 4
    say(f"  by recomputation it needs {smallest:,} bytes; there are to be {budget:,}")
    compare(losses, train_gpt(out, "gpt-file", f"--device-budget={budget}", "--disk-budget=1GiB"))


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev demo", description="Set up, build, and train test/models/mlp-digits on the CPU.")
    parser.add_argument("--out", default="out/demo", help="folder for artifact, log and report (out/demo)")
    options = parser.parse_args(argv)
    from devkit.record import Record

    out = ROOT / options.out
    out.mkdir(parents=True, exist_ok=True)
    artifact, log, report = out / "step.tide", out / "run.jsonl", out / "report.html"
    record = Record(MODEL)
    model = MODEL / "model.onnx"
    try:
        say("[1/5] set up")
        dependencies.setup()
        say(f"  {dependencies.versions()}")
        say("[2/5] build")
        build(["lowtide", "lowtide-run"])
        say(f"[3/5] train {MODEL.name}: {record.train['parameters']:,} parameters, {record.steps} steps of {record.batch} rows")
        show([BUILD / "bin/lowtide", "compile", model, "-o", artifact, "--target=cpu", *record.compiler_flags(model)])
        data, expected = f"--data={MODEL / 'data.npz'}", f"--expect={MODEL / 'expected.json'}"
        show([BUILD / "bin/lowtide-run", artifact, data, f"--steps={record.steps}", expected, f"--log-jsonl={log}", "--log-every=16"])
        show([BUILD / "bin/lowtide", "report", artifact, "-o", report])
        say(f"[4/5] train {GPT.name} as it is, and in {PART} of its memory")
        losses = train_gpt(out, "gpt-whole")
        fitted = train_in_less_memory(out, losses)
        say(f"[5/5] train {GPT.name} where it does not fit: what waits lies in a file")
        train_what_does_not_fit(out, losses)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    for page, what in ((report, MODEL.name), (fitted, f"{GPT.name}, before and after")):
        print(f"report: {page.relative_to(ROOT) if page.is_relative_to(ROOT) else page}  ({what})")
    return 0
