"""How compiling grows with the model: processor time, peak memory and the exponent from size to size: `tools/dev bench compile`.

Families of model files are written in several sizes (devkit/growth_models.py) and compiled without weights, one at a
time, without a budget and with one; so are files that are named, in the size that they have. No kernel is kept from one
compilation to the next. Time is the compiler's own processor time, user and system, which other programs on the
machine hardly change; memory is the largest resident size that the kernel saw. The exponent between two sizes is
log(ratio of the figures) / log(ratio of the sizes): 1 is linear.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from devkit import dependencies
from devkit.build import BUILD, build
from devkit.console import ROOT, Failure, say

# family → sizes, what is counted
FAMILIES = {
    "transformer": ((40, 80, 160, 320, 640), "blocks"),
    "recurrence": ((64, 128, 256, 512, 1024), "steps"),
    "convolutions": ((125, 250, 500, 1000), "layers"),
    "experts": ((32, 64, 128, 256), "experts"),
    "unrolled": ((250, 500, 1000, 2000), "steps"),
    "small": ((12_500, 25_000, 50_000, 100_000), "tensors"),
}
OUT = ROOT / "docs" / "measurements"
BUDGET_REFUSED = 4  # the compiler's exit where no plan is found within the budget


def write_model(python, family, size, out):
    command = [python, "-B", "-m", "devkit.growth_models", family, str(size), out]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT / "tools")}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"error: no model '{family}' of {size}\n" + done.stderr.strip()[-300:])


def measure(compiler, model, out, flags, timeout):
    """Processor seconds, peak bytes and whether the budget was refused, of one compilation; no figures where it takes longer
    than `timeout` seconds."""
    command = [str(compiler), "compile", str(model), "-q", "-o", str(out), "--kernel-cache=off", *flags]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    limit = time.monotonic() + timeout
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > limit:
            process.kill()
            os.wait4(process.pid, 0)
            return {"seconds": None, "peak_bytes": None, "refused": False}
        time.sleep(0.02)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, BUDGET_REFUSED):
        raise Failure(f"error: exit {process.returncode} of {' '.join(command)}")
    return {"seconds": usage.ru_utime + usage.ru_stime, "peak_bytes": usage.ru_maxrss * 1024, "refused": process.returncode != 0}


def exponent(rows, key):
    """Of the last row over the one before it; None where there is none."""
    if len(rows) < 2 or rows[-1][key] is None or rows[-2][key] is None:
        return None
    return math.log(rows[-1][key] / rows[-2][key]) / math.log(rows[-1]["size"] / rows[-2]["size"])


def series(python, compiler, family, sizes, target, budget, options):
    """A row per size; the first one that takes too long is the last."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="lowtide-growth-") as work:
        for size in sizes:
            model = pathlib.Path(work) / f"{family}-{size}.onnx"
            write_model(python, family, size, model)
            found = measure(compiler, model, model.with_suffix(".tide"), flags_of(target, budget, options), options.timeout)
            rows.append({"size": size} | found)
            rows[-1] |= {"time_exponent": exponent(rows, "seconds"), "memory_exponent": exponent(rows, "peak_bytes")}
            say(line(family, target, budget, rows[-1]))
            if found["seconds"] is None:
                break
    return {"family": family, "target": target, "budget": budget or None, "rows": rows}


def flags_of(target, budget, options):
    flags = ["--entries=train", "--no-weights", f"--batch={options.batch}", f"--target={target}"]
    return [*flags, *([f"--device-budget={budget}"] if budget else [])]


def whole(compiler, model, target, budget, options):
    """The one row of a file, whose size is its number of bytes."""
    with tempfile.TemporaryDirectory(prefix="lowtide-growth-") as work:
        found = measure(compiler, model, pathlib.Path(work) / "out.tide", flags_of(target, budget, options), options.timeout)
    row = {"size": model.stat().st_size} | found | {"time_exponent": None, "memory_exponent": None}
    say(line(model.name, target, budget, row))
    return {"family": model.name, "target": target, "budget": budget or None, "rows": [row]}


def line(family, target, budget, row):
    def show(value, digits):
        return "–" if value is None else f"{value:.{digits}f}"

    peak = None if row["peak_bytes"] is None else row["peak_bytes"] / 1e6
    figures = [show(row["seconds"], 2), show(row["time_exponent"], 2), show(peak, 0), show(row["memory_exponent"], 2)]
    size = f"{row['size']} {FAMILIES[family][1]}" if family in FAMILIES else "file"
    size += " (refused)" * row["refused"]
    return f"| {family} | {target} | {budget or 'none'} | {size} | " + " | ".join(figures) + " |"


def table(found):
    yield "| family | target | budget | size | seconds | exponent | peak MB | exponent |"
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for each in found:
        for row in each["rows"]:
            yield line(each["family"], each["target"], each["budget"], row)


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev bench compile", description=__doc__.replace("\n", " "))
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="model files that are compiled too")
    parser.add_argument("--families", type=lambda text: text.split(",") if text else [], default=list(FAMILIES),
                        help=f"with commas ({','.join(FAMILIES)}); empty: only files")  # fmt: skip
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], help="with commas, instead of each family's own")
    parser.add_argument("--targets", type=lambda text: text.split(","), default=["cpu", "cuda:sm_90"], help="with commas (cpu,cuda:sm_90)")
    parser.add_argument("--budgets", type=lambda text: text.split(",") if text else [], default=["60%"], help="with commas, besides none (60%%)")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--timeout", type=float, default=600, help="seconds that one compilation may take (600)")
    parser.add_argument("--bin", type=pathlib.Path, help="use the compiler in this folder; nothing is built")
    parser.add_argument("--out", type=pathlib.Path, default=OUT, help="folder of the table and its JSON (docs/measurements)")
    options = parser.parse_args(argv)
    try:
        if unknown := set(options.families) - set(FAMILIES):
            raise Failure(f"error: unknown family {', '.join(sorted(unknown))}\nnote: there are {', '.join(FAMILIES)}")
        if not options.bin:
            build(["lowtide"])
        python = dependencies.environment("oracles")
        compiler = (options.bin or BUILD / "bin") / "lowtide"
        found = [
            series(python, compiler, family, options.sizes or FAMILIES[family][0], target, budget, options)
            for family in options.families for target in options.targets for budget in ("", *options.budgets)
        ]  # fmt: skip
        found += [
            whole(compiler, file, target, budget, options)
            for file in options.files for target in options.targets for budget in ("", *options.budgets)
        ]  # fmt: skip
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    name = f"{datetime.date.today()}-bench-compile"
    (options.out / f"{name}.json").write_text(json.dumps({"batch": options.batch, "series": found}, indent=1) + "\n")
    text = ["# Compile time and memory by the size of the model", "", "`tools/dev bench compile`: processor seconds and resident peak of one `lowtide compile --entries=train --no-weights`,",
            f"batch {options.batch}. An exponent is that of a row over the row above it.", "", *table(found)]  # fmt: skip
    (options.out / f"{name}.md").write_text("\n".join(text) + "\n")
    print("\n".join(text))
    return 0
