"""What steps cost at many budgets: peak within budget, arena against live bytes, time never rising with bytes.

For each model `lowtide fit --json` plans a ladder of budgets; nothing is executed, and no weights are needed.
"""

import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import time

from devkit.console import Failure

USAGE = """tools/dev sweep <model.onnx or folder>... [options] [flags for the compiler]

Folders that hold train.json bring their own flags; other models get --batch (default 4) unless --dim is given.
One line per model: smallest and largest plan, what half the difference costs, worst arena / live bytes, seconds.

options:
  --rows=N          budgets per model (default 50)
  --bin=FOLDER      use these binaries; nothing is built
  --markdown=FILE   also write the lines as a table
"""

MIB = 1 << 20


def flags_of(model, given, batch):
    """Compiler flags for a model: its recorded run's, or the batch size."""
    if (model.parent / "train.json").exists():
        from devkit.record import Record

        return Record(model.parent).compiler_flags(model, given)
    return given if any(f.startswith(("--dim", "--batch")) for f in given) else [*given, f"--dim=batch={batch}"]


def sweep_model(binary, model, flags, rows):
    """Runs `lowtide fit`; returns the figures or what went wrong in words."""
    command = [binary, "fit", model, "--json", f"--rows={rows}", "-q", *flags]
    start = time.monotonic()
    run = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    seconds = time.monotonic() - start
    if run.returncode != 0:
        said = next((line for line in run.stderr.splitlines() if "error:" in line), run.stderr.strip()[-200:])
        raise Failure(f"exit {run.returncode}: {said}\n  {shlex.join(map(str, command))}")
    # One object per entry; the first is the training step.
    figures, _ = json.JSONDecoder().raw_decode(run.stdout)
    figures["wall_seconds"] = seconds
    return figures


def check(figures):
    """Complaints about a ladder of plans."""
    complaints = []
    plans = figures["plans"]
    ratio = max(p["device_bytes"] / p["live_bytes"] for p in plans)
    if ratio > 1.005:
        complaints.append(f"arena / live {ratio:.4f}")
    for below, above in zip(plans, plans[1:]):
        if above["live_bytes"] < below["live_bytes"] or above["time_percent"] > below["time_percent"] + 1e-9:
            complaints.append(f"not monotone at {above['live_bytes']} bytes")
            break
    if plans[0]["live_bytes"] < figures["lower_bound_bytes"]:
        complaints.append("a plan is below the lower bound")
    return ratio, complaints


def main(argv):
    if not argv or {"-h", "--help"} & set(argv):
        print(USAGE, end="")
        return 0 if argv else 1
    parser = argparse.ArgumentParser(usage=USAGE, add_help=False, allow_abbrev=False)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    options, rest = parser.parse_known_args(argv)
    if not options.bin:
        from devkit.build import BUILD, build

        build(["lowtide"])
        options.bin = BUILD / "bin"
    models = []
    for path in (pathlib.Path(a) for a in rest if not a.startswith("-")):
        models += sorted(path.rglob("*.onnx")) if path.is_dir() else [path]
    given = [a for a in rest if a.startswith("-")]
    failed, lines = 0, []
    for model in models:
        name = f"{model.parent.name}/{model.name}"
        try:
            figures = sweep_model(options.bin / "lowtide", model, flags_of(model, given, options.batch), options.rows)
            ratio, complaints = check(figures)
        except Failure as failure:
            failed += 1
            print(f"FAIL  {name}  {failure}", flush=True)
            continue
        plans = figures["plans"]
        low, high = plans[0]["device_bytes"], plans[-1]["device_bytes"]
        half = min((p for p in plans if p["device_bytes"] <= (low + high) / 2), key=lambda p: p["time_percent"])
        failed += bool(complaints)
        row = [
            name, f"{figures['lower_bound_bytes'] / MIB:.1f}", f"{low / MIB:.1f}", f"+{plans[0]['time_percent']:.1f} %",
            f"{half['device_bytes'] / MIB:.1f}", f"+{half['time_percent']:.1f} %", f"{high / MIB:.1f}", str(len(plans)),
            f"{ratio:.4f}", f"{figures['wall_seconds']:.1f}",
        ]  # fmt: skip
        lines.append(row)
        print(f"{'FAIL' if complaints else 'ok'}  " + "  ".join(row) + "  " + "; ".join(complaints), flush=True)
    if options.markdown:
        head = ["model", "bound", "smallest", "its time", "half", "its time", "largest", "plans", "arena / live", "seconds"]
        table = ["| " + " | ".join(r) + " |" for r in [head, ["---"] * len(head), *lines]]
        options.markdown.write_text("\n".join(table) + "\n")
    print(f"{len(models) - failed} of {len(models)} models hold")
    return 1 if failed else 0
