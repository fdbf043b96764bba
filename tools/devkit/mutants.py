"""Structured mutants: `tools/dev fuzz plan`, plans against verifier and runtime; `tools/dev fuzz opt`, IR against every pass.

Seeds make every mutant repeatable; a mutant that ends its process, or takes more than ten seconds, is a finding like any
other. The last lines count what became of them, by kind.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from devkit import reference
from devkit.build import BUILD, build
from devkit.console import ROOT, Failure, say
from devkit.docs import LLVM

MODELS = ROOT / "test" / "models"
INPUTS = ROOT / "test" / "EndToEnd" / "Inputs"
EMULATED = "--target=cuda-emulated"
# What the plans of all kinds of steps hold between them: products, convolutions, statistics, tables, draws, rounds both ways, scales.
STEPS = {
    "momentum": (INPUTS / "two-layers.onnx", "--batch=4", "--optimizer=momentum"),
    "scaled": (INPUTS / "two-layers.onnx", "--batch=4", "--optimizer=adamw", "--precision=mixed-f16", "--loss-scale=dynamic"),
    "parts": (INPUTS / "two-layers.onnx", "--batch=4", "--micro-batches=2", "--optimizer=adamw"),
    "emulated": (INPUTS / "two-layers.onnx", "--batch=4", "--optimizer=momentum", EMULATED),
    "digits": (MODELS / "mlp-digits" / "model.onnx", "--batch=4"),
    "gpt": (MODELS / "gpt-tiny" / "torchscript.onnx", "--dim=batch=1"),
    "file": (MODELS / "gpt-tiny" / "torchscript.onnx", "--dim=batch=8", "--entries=train", "--device-budget=1000000", "--disk-budget=1GiB"),
    "file-emulated": (MODELS / "mlp-digits" / "model.onnx", "--batch=64", "--optimizer=adamw", "--entries=train", "--device-budget=300000", "--disk-budget=1GiB", EMULATED),
    "dropout": (MODELS / "gpt-dropout" / "torchscript.onnx", "--dim=batch=1"),
    "convolutions": (MODELS / "cnn-digits" / "model.onnx", "--batch=2"),
    "statistics": (MODELS / "resnet-tiny" / "torchscript.onnx", "--batch=2"),
    "statistics-parts": (MODELS / "resnet-tiny" / "torchscript.onnx", "--batch=4", "--micro-batches=2"),
    "tables": (MODELS / "bag-tiny" / "constants.onnx", "--batch=4"),
    "tables-emulated": (MODELS / "bag-tiny" / "constants.onnx", "--batch=4", EMULATED),
    "recurrent": (MODELS / "rnn-tiny" / "torchscript.onnx", "--batch=2"),
    "experts": (MODELS / "moe-tiny" / "torchscript.onnx", "--batch=4"),
}
TESTS = BUILD / "test" / "lib"
PROGRAMS = {"plan": "lowtide-plan-mutants", "opt": "lowtide-opt-mutants"}
# Mutants of a check: seconds; and in full.
SAMPLE, FULL = 5000, {"plan": 1_000_000, "opt": 200_000}


def lowtide(*words, **how):
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", **how)
    if done.returncode:
        raise Failure(f"error: {' '.join(map(str, words))} ended with {done.returncode}\n{done.stderr[-1500:]}")
    return done.stdout


def plan_seeds(binaries, scratch):
    """The artifacts whose plans are changed."""
    files = []
    for name, (model, *flags) in STEPS.items():
        files.append(scratch / f"{name}.tide")
        lowtide(binaries / "lowtide", "compile", model, "-q", "-o", files[-1], *flags)
    return files


# Modules of every dialect: what text tests are about, and the stages of the models.
TEXTS = ("Passes", "Dialect", "Import", "Codegen", "Execute", "Export")
STAGES = ("onnx", "nn", "train", "fitted", "plan")
EMITTED = ("momentum", "parts", "scaled", "convolutions", "statistics", "tables", "tables-emulated", "experts")


def write_passes(path):
    """The passes of passes/Passes.td and the ones of MLIR that stages use, each with its options and their types."""
    found = reference.records(LLVM, ROOT / "passes" / "Passes.td")
    lines = []
    for record in reference.of_class(found, "Pass"):
        anchor = "func.func" if record["baseClass"].endswith("func::FuncOp>") else "builtin.module"
        options = (found[option["def"]] for option in record["options"])
        lines.append(" ".join([record["argument"], anchor, *(f"{option['argument']}={option.get('kind', option['type'])}" for option in options)]))
    path.write_text("\n".join([*lines, *(f"{name} builtin.module" for name in ("canonicalize", "cse", "symbol-dce", "inline"))]) + "\n")


def opt_seeds(binaries, scratch):
    """Modules and the list of passes."""
    write_passes(scratch / "passes.txt")
    files = [path for room in TEXTS for path in sorted((ROOT / "test" / room).rglob("*.mlir"))]
    for name in EMITTED:
        model, *flags = STEPS[name]
        for stage in STAGES:
            files.append(scratch / f"{name}-{stage}.mlir")
            lowtide(binaries / "lowtide", "compile", model, "-q", f"--emit={stage}", "-o", files[-1], *flags)
    return [*files, f"--passes={scratch / 'passes.txt'}"]


SEEDS = {"plan": plan_seeds, "opt": opt_seeds}


def run(kind, count, first=0, jobs=1, binaries=BUILD / "bin", programs=TESTS):
    """(findings, the table of counts) of `count` mutants from seed `first`, in `jobs` processes."""
    with tempfile.TemporaryDirectory(prefix="lowtide-mutants-") as scratch:
        files = SEEDS[kind](binaries, pathlib.Path(scratch))
        share = -(-count // jobs)
        parts = [(first + i * share, min(share, count - i * share)) for i in range(jobs) if i * share < count]
        running = [
            subprocess.Popen(
                [str(word) for word in (programs / PROGRAMS[kind], *files, f"--seed={a}", f"--count={n}")],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
            )
            for a, n in parts
        ]  # fmt: skip
        findings, tables = [], []
        for process in running:
            said, complaints = process.communicate()
            lines = said.splitlines()
            findings += [line for line in lines if line.startswith("FINDING ")]
            tables.append([line for line in lines if not line.startswith("FINDING ")])
            if process.returncode not in (0, 1) or not tables[-1]:
                raise Failure(f"error: {PROGRAMS[kind]} ended with {process.returncode}\n{complaints[-1500:]}")
    return findings, add_up(tables)


def add_up(tables):
    """Tables of the same rows as one; the first line of each is its head."""
    sums = {}
    for line in (line for table in tables for line in table[1:]):
        name, numbers = re.fullmatch(r"(.*?)((?:\s+\d+(?: runs| refused)?)+)", line).groups()
        texts = re.findall(r"(\d+)((?: runs| refused)?)", numbers)
        old = sums.get(name, [(0, "")] * len(texts))
        sums[name] = [(before + int(number), unit) for (before, _), (number, unit) in zip(old, texts)]
    return [tables[0][0], *(f"{name:<26}" + "".join(f" {number:>10}{unit}" for number, unit in row) for name, row in sums.items())]


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev fuzz plan|opt", description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=PROGRAMS)
    parser.add_argument("--count", type=int, default=20_000, help="mutants (20,000)")
    parser.add_argument("--seed", type=int, default=0, help="the first one's seed (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--build", type=pathlib.Path, help="use the programs of this build folder; nothing is built")
    options = parser.parse_args(argv)
    try:
        if not options.build:
            build(["lowtide", PROGRAMS[options.kind]])
        folder = options.build or BUILD
        findings, table = run(options.kind, options.count, options.seed, options.jobs, folder / "bin", folder / "test" / "lib")
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    print("\n".join(findings + table))
    say(f"{len(findings)} findings among {options.count:,} mutants")
    return 1 if findings else 0
