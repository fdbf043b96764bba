"""What cuDNN itself says of the calls that steps make of it. Needs no GPU: cuDNN makes plans for one that is described."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from devkit import dependencies, estimate, machine_code, sweep
from devkit.build import BUILD, build
from devkit.console import ROOT, Failure

USAGE = """tools/dev libraries [<model.onnx or folder>...] [options]

Compile every model for sm_80 and sm_90 and ask cuDNN's own library to plan what the step calls, by the code that binds a
session: it takes every call, deterministic, within the workspace that the plan reserves, and misses no engine on tensor cores
for want of workspace. Random calls that the library table takes (runtime/LibraryTable.h) are taken, too. Folders that hold
train.json bring their own flags; other models get their batch, or 16.

options:
  --precision=LIST  of f32, mixed-bf16 and mixed-f16 (all)
  --chip=LIST       of sm_80 and sm_90 (both)
  --random=N        so many random calls besides (0)
  --first=SEED      of the first of them (0)
  --bin=FOLDER      use these binaries; nothing is built
  --cudnn=FOLDER    the folder of another libcudnn.so.9, from 9.8 on
  --json=FILE       also write name and complaint of each row as JSON
  -v                print what is said of every call
"""

PROGRAM = "lowtide-library-plans"
DESCRIPTIONS = ROOT / "test" / "lib" / "LibraryPlans"
CHIPS = ("sm_80", "sm_90")
SUMMARY = re.compile(r"^(\d+) taken, (\d+) refused, (\d+) slow$", re.M)


def library_path(cudnn):
    """LD_LIBRARY_PATH with cuDNN, what it loads, and the stand-in for the driver."""
    python = dependencies.environment("cudnn")
    packages = next((python.parents[1] / "lib").glob("python3*")) / "site-packages" / "nvidia"
    folders = [BUILD / "test" / "lib" / "absent-driver", *([cudnn] if cudnn else []), *sorted(packages.glob("*/lib"))]
    return ":".join(map(str, folders))


def ask(chip, work, options):
    """(calls taken, lines that complain) of artifacts or `--random=…`."""
    command = [options.bin / PROGRAM, f"--gpu={DESCRIPTIONS / chip}.json", work]
    run = subprocess.run(
        [str(c) for c in command], env=dict(os.environ, LD_LIBRARY_PATH=options.library_path), stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    found = SUMMARY.search(run.stdout)
    if not found:
        raise Failure(f"exit {run.returncode}: {(run.stderr or run.stdout).strip()[-1000:]}")
    lines = run.stdout.splitlines()
    if options.verbose:
        print("\n".join(lines[:-1]), flush=True)
    return int(found[1]), [line for line in lines if line.startswith(("refuses", "slow"))]


def ask_of_model(model, precision, chip, options):
    """One row: what cuDNN says of a model's step."""
    row = {"name": f"{model.parent.name}/{model.name} {precision} {chip}", "complaint": "", "calls": 0}
    flags = sweep.flags_of(model, list(machine_code.PRECISIONS[precision]), machine_code.BATCHES.get(model.stem, machine_code.BATCH))
    with tempfile.TemporaryDirectory(prefix="lowtide-libraries-") as work:
        artifact = pathlib.Path(work) / "step.tide"
        try:
            estimate.run([options.bin / "lowtide", "compile", model, *flags, "--entries=train", "--no-weights", f"--target=cuda:{chip}", "-q", "-o", artifact])
            row["calls"], complaints = ask(chip, artifact, options)
        except Failure as failure:
            return row | {"complaint": str(failure)}
    return row | {"complaint": "\n".join(complaints)}


def ask_at_random(chip, options):
    """One row: what cuDNN says of random calls. Slow ones are no complaint: sizes that no model has."""
    row = {"name": f"{options.random} random calls from {options.first} {chip}", "complaint": "", "calls": 0}
    try:
        row["calls"], complaints = ask(chip, f"--random={options.first}:{options.random}", options)
    except Failure as failure:
        return row | {"complaint": str(failure)}
    return row | {"complaint": "\n".join(line for line in complaints if line.startswith("refuses"))}


def main(argv):
    parser = argparse.ArgumentParser(usage=USAGE, add_help=False, allow_abbrev=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("paths", nargs="*", type=pathlib.Path)
    parser.add_argument("--precision", default=",".join(machine_code.PRECISIONS))
    parser.add_argument("--chip", default=",".join(CHIPS))
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--cudnn", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("-v", dest="verbose", action="store_true")
    options = parser.parse_args(argv)
    if options.help or not (options.paths or options.random):
        print(USAGE, end="")
        return 0 if options.help else 1
    precisions, chips = options.precision.split(","), options.chip.split(",")
    for what, given, known in (("precision", precisions, machine_code.PRECISIONS), ("chip", chips, CHIPS)):
        if unknown := set(given) - set(known):
            parser.error(f"unknown {what} {min(unknown)}; there are {', '.join(known)}")
    rows = []
    try:
        if not options.bin:
            build(["lowtide", PROGRAM])
            options.bin = BUILD / "bin"
        options.library_path = library_path(options.cudnn)
        models = [model.resolve() for model in sweep.models_of(options.paths, every_file=False)]
        if options.paths and not models:
            raise Failure("error: no .onnx file to compile")

        def finish(row):
            rows.append(row)
            print(("FAIL  " if row["complaint"] else "ok    ") + f"{row['name']}  {row['calls']} calls taken", flush=True)
            for line in row["complaint"].splitlines():
                print("      " + line, flush=True)

        for model in models:
            for precision in precisions:
                for chip in chips:
                    finish(ask_of_model(model, precision, chip, options))
        if options.random:
            for chip in chips:
                finish(ask_at_random(chip, options))
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    failed = sum(bool(row["complaint"]) for row in rows)
    print(f"{len(rows) - failed} of {len(rows)} hold, {sum(row['calls'] for row in rows)} calls")
    return 1 if failed else 0
