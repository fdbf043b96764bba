"""The first thing a newcomer sees: a model that PyTorch exported trains to the losses that PyTorch reached."""

import argparse
import os
import shlex
import subprocess
import sys

from devkit import dependencies
from devkit.build import BUILD, build
from devkit.console import ROOT, Failure, say

MODEL = ROOT / "test" / "models" / "mlp-digits"


def show(command):
    """Print a command as a person would type it, then run it on the person's terminal."""
    home = str(ROOT) + os.sep
    say("  $ " + shlex.join(str(c).replace(home, "") for c in command))
    status = subprocess.run([str(c) for c in command], cwd=ROOT, stdin=subprocess.DEVNULL).returncode
    if status:
        raise Failure(f"error: {command[0].name} failed with {status}")


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
        say("[1/3] set up")
        dependencies.setup()
        say(f"  {dependencies.versions()}")
        say("[2/3] build")
        build(["lowtide", "lowtide-run"])
        say(f"[3/3] train {MODEL.name}: {record.train['parameters']:,} parameters, {record.steps} steps of {record.batch} rows")
        show([BUILD / "bin/lowtide", "compile", model, "-o", artifact, "--target=cpu", *record.compiler_flags(model)])
        data, expected = f"--data={MODEL / 'data.npz'}", f"--expect={MODEL / 'expected.json'}"
        show([BUILD / "bin/lowtide-run", artifact, data, f"--steps={record.steps}", expected, f"--log-jsonl={log}", "--log-every=16"])
        show([BUILD / "bin/lowtide", "report", artifact, "-o", report])
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    print(f"report: {report.relative_to(ROOT) if report.is_relative_to(ROOT) else report}")
    return 0
