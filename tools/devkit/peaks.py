"""Bytes of training steps next to PyTorch's: without a budget, at the smallest, and what an expert reaches by hand."""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

from devkit import dependencies
from devkit.build import BUILD, build
from devkit.console import ROOT, Failure, say
from devkit.fit_table import training_step
from devkit.peak_models import ROWS

USAGE = """tools/dev peaks [row or case]... [options]

Each case is exported by PyTorch and planned by `lowtide fit`: the largest plan is ours without a budget, the smallest the least
budget that compiles. PyTorch's figures are measured: parameters, optimizer state, the batch, and the largest sum of live tensor
bytes within a step by its profiler on the CPU; 'by hand' is the same of a step that an expert wrote (tools/devkit/peak_models).
Aims: without a budget never above eager, at the smallest within 1.2 of the hand figure. The last line counts what misses them.

options:
  --bin=FOLDER      use these binaries; nothing is built
  --markdown=FILE   also write the table
"""

MIB = 1 << 20
WITHIN = 1.2


def measure(row, case, folder, binaries):
    """(PyTorch's bytes, the figures of the step's table)."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "tools"), PYTHONDONTWRITEBYTECODE="1")
    command = [dependencies.environment("oracles"), "-m", "devkit.peak_models", row, case["name"], folder]
    run = subprocess.run(list(map(str, command)), env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if run.returncode != 0:
        raise Failure(f"{case['name']}: {run.stderr.strip().splitlines()[-1]}")
    theirs = json.loads(run.stdout.splitlines()[-1])
    flags = [f"--dim=batch={case['batch']}", "--entries=train", *case["flags"]]
    command = [binaries / "lowtide", "fit", pathlib.Path(folder) / "model.onnx", "--json", "--rows=2", "-q", *flags]
    run = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if run.returncode != 0:
        raise Failure(f"{case['name']}: {run.stderr.strip().splitlines()[0]}")
    return theirs, training_step(run.stdout)


def list_cases(row):
    """What there is, asked in the environment that has PyTorch."""
    code = (
        "import importlib, json, sys\n"
        f"cases = importlib.import_module('devkit.peak_models.{row}').CASES\n"
        "print(json.dumps([{'name': c.name, 'flags': list(c.flags), 'batch': len(next(iter(c.feeds().values())))} for c in cases]))"
    )
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "tools"), PYTHONDONTWRITEBYTECODE="1")
    run = subprocess.run(
        [str(dependencies.environment("oracles")), "-c", code], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if run.returncode != 0:
        raise Failure(f"{row}: {run.stderr.strip().splitlines()[-1]}")
    return json.loads(run.stdout.splitlines()[-1])


def mib(count):
    return "-" if count is None else f"{count / MIB:.1f}"


def main(arguments):
    parser = argparse.ArgumentParser(prog="tools/dev peaks", usage=USAGE, add_help=False)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    if {"-h", "--help"} & set(arguments):
        print(USAGE, end="")
        return 0
    options = parser.parse_args(arguments)
    if not options.bin:
        build(["lowtide"])
    binaries = options.bin or BUILD / "bin"
    lines = [["row", "case", "PyTorch eager MiB", "ours without a budget", "ours at the smallest", "by hand", "misses"]]
    missed = found = 0
    for title, row in ROWS.items():
        for case in list_cases(row):
            if options.names and not {title, row, case["name"]} & set(options.names):
                continue
            found += 1
            say(f"{title}: {case['name']}")
            with tempfile.TemporaryDirectory() as folder:
                theirs, ours = measure(row, case, folder, binaries)
            largest, smallest = ours["largest_bytes"], ours["smallest_bytes"]
            misses = [] if largest <= theirs["eager"] else ["above eager"]
            if theirs["hand"] and smallest > WITHIN * theirs["hand"]:
                misses.append(f"{smallest / theirs['hand']:.2f} times the hand figure")
            missed += bool(misses)
            lines.append([title, case["name"], *map(mib, (theirs["eager"], largest, smallest, theirs["hand"])), ", ".join(misses)])
    if not found:
        raise Failure(f"no row or case is called {', '.join(options.names)}; rows: {', '.join(ROWS)}")
    text = "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], ["---"] * len(lines[0]), *lines[1:]])
    print(text)
    if options.markdown:
        options.markdown.write_text(text + "\n")
    print(f"{found} cases, {missed} miss an aim")
    return 1 if missed else 0
