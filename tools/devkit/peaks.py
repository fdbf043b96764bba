"""Bytes of training steps next to PyTorch's: without a budget, at the smallest, and what an expert reaches by hand."""

import argparse
import dataclasses
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
  --limit=SECONDS   how long one `lowtide fit` may take (600)
  --markdown=FILE   also write the table
  --record=FOLDER   instead, train each case with PyTorch and record its losses, gradients and parameters there, a folder for each case:
                    what `tools/dev judge`, `exact`, `parts` and `footprints` take
"""

MIB = 1 << 20
WITHIN = 1.2
HEADER = ("row", "case", "PyTorch eager MiB", "ours without a budget", "ours at the smallest", "by hand", "misses")


@dataclasses.dataclass
class Line:
    """One case's bytes; `largest` and `smallest` are None where the plan was not there within `limit` seconds."""

    row: str
    case: str
    eager: int
    hand: int | None
    largest: int | None
    smallest: int | None
    limit: float = 0
    by_hand: str = ""

    def misses(self):
        """The aims that are missed, in words."""
        if self.largest is None:
            return [f"no plan within {self.limit:.0f} s"]
        missed = [] if self.largest <= self.eager else [f"{self.largest / self.eager:.2f} times eager"]
        if self.hand and self.smallest > WITHIN * self.hand:
            missed.append(f"{self.smallest / self.hand:.2f} times the hand figure")
        return missed

    def cells(self):
        figures = (self.eager, self.largest, self.smallest, self.hand)
        return [self.row, self.case, *("-" if f is None else f"{f / MIB:.1f}" for f in figures), ", ".join(self.misses())]


def table(lines):
    """The lines as Markdown, and how each hand figure came about."""
    rows = [HEADER, ["---"] * len(HEADER), *(line.cells() for line in lines)]
    text = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    notes = {}
    for line in lines:
        if line.hand:
            notes.setdefault((line.row, line.by_hand), []).append(line.case)
    said = "\n".join(f"- {row} ({', '.join(cases)}): {by_hand}" for (row, by_hand), cases in notes.items())
    return text + ("\n\nBy hand, with each parameter updated as soon as its gradient is there:\n\n" + said if said else "")


def run_oracles(subject, *command):
    """What a Python command prints in the environment that has PyTorch."""
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("tools", "test/models"))
    environment = dict(os.environ, PYTHONPATH=paths, PYTHONDONTWRITEBYTECODE="1")
    python = [str(dependencies.environment("oracles")), *map(str, command)]
    run = subprocess.run(python, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if run.returncode != 0:
        raise Failure(f"{subject}: {run.stderr.strip().splitlines()[-1]}")
    return run.stdout


def ask_oracles(subject, *command):
    """The JSON that ends what it prints."""
    return json.loads(run_oracles(subject, *command).splitlines()[-1])


def list_cases(row):
    facts = "{'name': c.name, 'flags': list(c.flags), 'batch': len(next(iter(c.feeds().values()))), 'by_hand': c.by_hand}"
    module = f"importlib.import_module('devkit.peak_models.{row}')"
    return ask_oracles(row, "-c", f"import importlib, json; print(json.dumps([{facts} for c in {module}.CASES]))")


def plan(case, model, binaries, limit):
    """(bytes without a budget, bytes at the smallest); None for both where that takes longer than `limit` seconds."""
    command = [binaries / "lowtide", "fit", model, "--json", "--rows=2", "-q", f"--dim=batch={case['batch']}", "--entries=train", *case["flags"]]
    try:
        run = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, None
    if run.returncode != 0:
        raise Failure(f"{case['name']}: {run.stderr.strip().splitlines()[0]}")
    figures = training_step(run.stdout)
    return figures["largest_bytes"], figures["smallest_bytes"]


def measure(title, row, case, binaries, limit):
    with tempfile.TemporaryDirectory() as folder:
        theirs = ask_oracles(case["name"], "-m", "devkit.peak_models", row, case["name"], folder)
        largest, smallest = plan(case, pathlib.Path(folder) / "model.onnx", binaries, limit)
    return Line(title, case["name"], theirs["eager"], theirs["hand"], largest, smallest, limit, case["by_hand"])


def record(cases, folder):
    for title, row, case in cases:
        to = folder / f"{row}-{case['name']}".replace(" ", "-")
        if to.exists():
            say(f"{to} is there already")
            continue
        say(f"{title}: {case['name']} → {to}")
        run_oracles(case["name"], "-m", "devkit.peak_models.recorded", row, case["name"], to)
    return 0


def main(arguments):
    parser = argparse.ArgumentParser(prog="tools/dev peaks", usage=USAGE, add_help=False)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--record", type=pathlib.Path)
    if {"-h", "--help"} & set(arguments):
        print(USAGE, end="")
        return 0
    options = parser.parse_args(arguments)
    cases = [(title, row, case) for title, row in ROWS.items() for case in list_cases(row)]
    cases = [each for each in cases if not options.names or {*each[:2], each[2]["name"]} & set(options.names)]
    if not cases:
        raise Failure(f"no row or case is called {', '.join(options.names)}; rows: {', '.join(ROWS)}")
    if options.record:
        return record(cases, options.record)
    if not options.bin:
        build(["lowtide"])
    lines = []
    for title, row, case in cases:
        say(f"{title}: {case['name']}")
        lines.append(measure(title, row, case, options.bin or BUILD / "bin", options.limit))
        # A run that is cut short has told what it knew.
        say("| " + " | ".join(lines[-1].cells()) + " |")
    text = table(lines)
    print(text)
    if options.markdown:
        options.markdown.write_text(text + "\n")
    missed = sum(bool(line.misses()) for line in lines)
    print(f"{len(lines)} cases, {missed} miss an aim")
    return 1 if missed else 0
