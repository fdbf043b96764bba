"""What steps cost at many budgets: peak within budget, arena against live bytes, time never rising with bytes.

For each model `lowtide fit --json` plans a ladder of budgets; nothing is executed, and no weights are needed.
"""

import argparse
import hashlib
import json
import pathlib
import shlex
import subprocess
import sys
import time

from devkit.console import Failure
from devkit.fit_table import training_step

USAGE = """tools/dev sweep <model.onnx or folder>... [options] [flags for the compiler]

Folders that hold train.json bring their own flags, and their model.onnx stands for all their files; other models get
--batch (default 4) unless --dim is given. One line per model: smallest and largest plan, what half the difference costs,
worst arena / live bytes, the longest time to plan one budget, and what does not hold. With --baselines also the whole
curve next to the other strategies, with --bound also how little any plan in the same order can recompute. With
--disk-budget (a GPU: --host-budget) further lines are plans with that memory: more bytes may not cost time, nor may what
--baselines adds be faster. Linear programs are solved for a few of the budgets: --rounding-rows=N of lp-rounding, --bound-rows=N of the bound (both 5).
With --methods every model is planned again without each method of the search, and a table says what each contributes.

What was found is kept in --results: a sweep that was stopped goes on where it was.

options:
  --rows=N          budgets per model (default 50)
  --every-file      all files of folders that hold train.json
  --methods         also what each method of the search contributes (one more fit for each)
  --max-ratio=R     arena / bytes alive that no plan may exceed (default 1.005)
  --max-seconds=S   time to plan that no budget may exceed (default: any)
  --max-gap=P       mean points by which recomputation may exceed the bound, with --bound (default 2)
  --bin=FOLDER      use these binaries; nothing is built
  --results=FILE    one JSON line per model (default build/sweep.jsonl)
  --fresh           plan everything again
  --markdown=FILE   also write the lines, and the curves, as tables
  --json=FILE       also write what does not hold, by model
"""

MIB = 1 << 20
HEAD = [
    "model", "kernels", "bound MiB", "smallest", "its time", "half", "its time", "largest", "plans", "arena / live", "s / budget",
]  # fmt: skip


def flags_of(model, given, batch):
    """Compiler flags for a model: its recorded run's, or the batch size."""
    if (model.parent / "train.json").exists():
        from devkit.record import Record

        return Record(model.parent).compiler_flags(model, given)
    return given if any(f.startswith(("--dim", "--batch")) for f in given) else [*given, f"--dim=batch={batch}"]


def models_of(paths, every_file):
    """Files, and those of folders; of recorded runs one file each."""
    for path in paths:
        for model in sorted(path.rglob("*.onnx")) if path.is_dir() else [path]:
            recorded = path.is_dir() and (model.parent / "train.json").exists()
            if every_file or not recorded or model.name == "model.onnx":
                yield model


def sweep_model(binary, model, flags, rows):
    """Runs `lowtide fit`; returns the figures or what went wrong in words."""
    command = [binary, "fit", model, "--json", f"--rows={rows}", "-q", *flags]
    start = time.monotonic()
    run = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    seconds = time.monotonic() - start
    if run.returncode != 0:
        said = next((line for line in run.stderr.splitlines() if "error:" in line), run.stderr.strip()[-200:])
        raise Failure(f"exit {run.returncode}: {said}\n  {shlex.join(map(str, command))}")
    figures = training_step(run.stdout)
    figures["wall_seconds"] = seconds
    return figures


METHODS_HEAD = [
    "without", "models with other plans", "budgets that cost more", "and less", "points, mean", "at most", "on", "smallest plan, at most", "seconds to plan",
]  # fmt: skip


class Contributions:
    """What models cost when one method of the search is not asked, next to what they cost with all."""

    def __init__(self):
        self.lines, self.summaries = {}, {}

    def add(self, name, whole, without):
        """`without`: figures by the method that was not asked."""
        self.summaries |= whole["methods"]
        for method, figures in without.items():
            # At the budgets of the front that lacks the method: the whole one has plans between its own.
            points = [plan["time_percent"] - time_at(whole, plan["budget_bytes"]) for plan in figures["plans"]]
            growth = figures["plans"][0]["device_bytes"] / whole["plans"][0]["device_bytes"] - 1
            self.lines.setdefault(method, []).append((name, points, growth, figures["wall_seconds"] - whole["wall_seconds"]))

    def rows(self):
        for method, lines in self.lines.items():
            points = [p for _, of_model, _, _ in lines for p in of_model]
            most, worst = max((max(of_model), name) for name, of_model, _, _ in lines)
            yield [
                method, str(sum(any(abs(p) > 1e-9 for p in of_model) or growth != 0 for _, of_model, growth, _ in lines)),
                f"{sum(p > 1e-9 for p in points)} of {len(points)}", str(sum(p < -1e-9 for p in points)),
                f"{sum(points) / len(points):+.3f}", f"{most:+.2f}", worst if most > 1e-9 else "",
                f"{100 * max(growth for _, _, growth, _ in lines):+.2f} %", f"{sum(seconds for *_, seconds in lines):+.1f}",
            ]  # fmt: skip


def time_at(figures, budget):
    """Points of the cheapest plan within a budget; of the smallest plan where none is."""
    return min((p["time_percent"] for p in figures["plans"] if p["device_bytes"] <= budget), default=figures["plans"][0]["time_percent"])


class Results:
    """Figures by what was asked, in a file of JSON lines."""

    def __init__(self, path, fresh):
        self.path, self.known = path, {}
        if path.exists() and not fresh:
            for line in path.read_text().splitlines():
                record = json.loads(line)
                self.known[record["key"]] = record["figures"]
        elif fresh:
            path.unlink(missing_ok=True)

    def get(self, key, compute):
        if key not in self.known:
            self.known[key] = compute()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "a") as out:
                out.write(json.dumps({"key": key, "figures": self.known[key]}) + "\n")
        return self.known[key]


def arena_ratio(figures):
    """Worst arena / bytes alive of the transient arena: the others hold no gaps."""
    static = figures["static_bytes"]
    return max((p["device_bytes"] - static) / max(p["live_bytes"] - static, 1) for p in figures["plans"])


def gaps(figures):
    """Points by which recomputation exceeds the bound, where there is one."""
    return [p["simulated_percent"] - p["bound"]["percent"] for p in figures["plans"] if "bound" in p]


def above_baselines(figures):
    """(budgets at which another method is cheaper, budgets at which all are more expensive)"""
    above = below = 0
    for plan in figures["plans"]:
        others = [p for p in plan.get("baselines", {}).values() if p is not None]
        above += any(p < plan["simulated_percent"] - 1e-9 for p in others)
        below += all(p > plan["simulated_percent"] + 1e-9 for p in others)
    return above, below


def check(figures, options):
    """What does not hold."""
    plans = figures["plans"]
    if len(plans) != options.rows:
        yield f"{len(plans)} budgets"
    if (ratio := arena_ratio(figures)) > options.max_ratio:
        yield f"arena / live {ratio:.4f}"
    for plan in plans:
        if plan["device_bytes"] > plan["budget_bytes"]:
            yield f"{plan['device_bytes']} bytes at a budget of {plan['budget_bytes']}"
            break
    for below, above in zip(plans, plans[1:]):
        if above["time_percent"] > below["time_percent"] + 1e-9:
            yield f"not monotone at {above['budget_bytes']} bytes"
            break
    if plans[0]["live_bytes"] < figures["lower_bound_bytes"]:
        yield "a plan is below the lower bound"
    slowest = max(p["plan_seconds"] for p in plans)
    if options.max_seconds and slowest > options.max_seconds:
        yield f"{slowest:.1f} s to plan"
    if above := above_baselines(figures)[0]:
        yield f"above a baseline at {above} budgets"
    if (found := gaps(figures)) and sum(found) / len(found) > options.max_gap:
        yield f"{sum(found) / len(found):.1f} points over the bound"
    if any(gap < -1e-6 for gap in found):
        yield "a plan recomputes less than the bound"
    yield from check_other_memory(figures["other_memory"]) if "other_memory" in figures else ()


def check_other_memory(table):
    """What does not hold of plans with another memory: more bytes cost time, or another strategy is faster."""
    plans = table["plans"]
    for below, above in zip(plans, plans[1:]):
        if above["time_percent"] > below["time_percent"] + 1e-9:
            yield f"not monotone at {above['budget_bytes']} bytes with {table['flag']}"
            break
    for plan in plans:
        if plan["device_bytes"] > plan["budget_bytes"]:
            yield f"{plan['device_bytes']} bytes at a budget of {plan['budget_bytes']} with {table['flag']}"
        for name, percent in plan.get("baselines", {}).items():
            # Points of a time that is 100: rounding of sums.
            if percent is not None and percent < plan["time_percent"] - 1e-6:
                yield f"slower than {name} at {plan['budget_bytes']} bytes with {table['flag']}"


def row_of(name, figures):
    plans = figures["plans"]
    low, high = plans[0]["device_bytes"], plans[-1]["device_bytes"]
    half = min((p for p in plans if p["device_bytes"] <= (low + high) / 2), key=lambda p: p["time_percent"])
    return [
        name, str(figures["kernels"]), f"{figures['lower_bound_bytes'] / MIB:.1f}", f"{low / MIB:.1f}",
        f"+{plans[0]['time_percent']:.1f} %", f"{half['device_bytes'] / MIB:.1f}", f"+{half['time_percent']:.1f} %",
        f"{high / MIB:.1f}", str(len({p["live_bytes"] for p in plans})), f"{arena_ratio(figures):.4f}",
        f"{max(p['plan_seconds'] for p in plans):.1f}",
    ]  # fmt: skip


def curve_of(figures):
    """The whole curve beside the baselines and the bound: header and rows."""
    plans = figures["plans"]
    names = list(plans[0].get("baselines", {}) | next((p["baselines"] for p in plans if len(p.get("baselines", {})) == 5), {}))
    bounded = any("bound" in p for p in plans)
    rows = [["MiB", "fit", *names, *(["bound"] if bounded else [])]]
    for plan in plans:
        row = [f"{plan['budget_bytes'] / MIB:.1f}", f"+{plan.get('simulated_percent', plan['time_percent']):.1f} %"]
        for name in names:
            seconds = plan["baselines"].get(name, "")
            row.append("–" if seconds is None else seconds if seconds == "" else f"+{seconds:.1f} %")
        if bounded:
            bound = plan.get("bound")
            row.append(f"+{bound['percent']:.1f} %{' exact' * (bound['kind'] == 'exact')}" if bound else "")
        rows.append(row)
    return rows


def other_curve_of(table):
    """The curve with another memory next to other strategies' plans that use it: header and rows."""
    names = list(table["plans"][0].get("baselines", {}))
    rows = [["MiB", f"fit {table['flag']}", "stored MiB", "loaded MiB", *names]]
    for plan in table["plans"]:
        others = [plan["baselines"][name] for name in names]
        moved = [f"{plan[key] / MIB:.1f}" for key in ("stored_bytes", "loaded_bytes")]
        rows.append([f"{plan['budget_bytes'] / MIB:.1f}", f"{plan['time_percent']:+.1f} %", *moved,
                     *("–" if percent is None else f"{percent:+.1f} %" for percent in others)])  # fmt: skip
    return rows


def compared(figures):
    """The verdict on a curve, in words."""
    said = []
    if any("baselines" in p for p in figures["plans"]):
        above, below = above_baselines(figures)
        said.append(f"above a baseline at {above} of {len(figures['plans'])} budgets, strictly below all at {below}")
    if found := gaps(figures):
        bounds = [p["bound"] for p in figures["plans"] if "bound" in p]
        said.append(f"{sum(found) / len(found):.2f} points over the bound on the mean of {len(found)} budgets, at most {max(found):.2f}")
        said.append(f"bytes counted at {bounds[0]['moments']} of {bounds[0]['kernels']} kernels")
        if unsolved := sum(not b["solved"] for b in bounds):
            said.append(f"{unsolved} linear programs were stopped")
    return "; ".join(said)


def table(rows):
    return ["| " + " | ".join(r) + " |" for r in [rows[0], ["---"] * len(rows[0]), *rows[1:]]]


def main(argv):
    if not argv or {"-h", "--help"} & set(argv):
        print(USAGE, end="")
        return 0 if argv else 1
    parser = argparse.ArgumentParser(usage=USAGE, add_help=False, allow_abbrev=False)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--every-file", action="store_true")
    parser.add_argument("--max-ratio", type=float, default=1.005)
    parser.add_argument("--max-seconds", type=float, default=0)
    parser.add_argument("--max-gap", type=float, default=2)
    parser.add_argument("--methods", action="store_true")
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    options, rest = parser.parse_known_args(argv)
    from devkit.build import BUILD, build

    if not options.bin:
        build(["lowtide"])
        options.bin = BUILD / "bin"
    binary = options.bin / "lowtide"
    version = hashlib.sha256(binary.read_bytes()).hexdigest()[:16]
    results = Results(options.results or BUILD / "sweep.jsonl", options.fresh)
    given = [a for a in rest if a.startswith("-")]
    models = list(models_of([pathlib.Path(a) for a in rest if not a.startswith("-")], options.every_file))
    if not models:
        print("error: no .onnx file there", file=sys.stderr)
        return 1
    failed, lines, curves, verdicts, contributions = 0, [], [], [], Contributions()
    for model in models:
        name = f"{model.parent.name}/{model.name}"
        flags = flags_of(model, given, options.batch)

        def sweep(*further):
            all_flags = [*flags, *further]
            key = f"{version} {name} --rows={options.rows} {shlex.join(all_flags)}"
            return results.get(key, lambda: sweep_model(binary, model, all_flags, options.rows))

        try:
            figures = sweep()
            if options.methods:
                contributions.add(name, figures, {m: sweep(f"--without-methods={m}") for m in figures["methods"]})
        except Failure as failure:
            failed += 1
            verdicts.append({"name": name, "complaint": str(failure)})
            print(f"FAIL  {name}  {failure}", flush=True)
            continue
        complaints = list(check(figures, options))
        failed += bool(complaints)
        verdicts.append({"name": name, "complaint": "; ".join(complaints)})
        row = row_of(name, figures)
        lines.append(row)
        print(f"{'FAIL' if complaints else 'ok'}  " + "  ".join(row) + "  " + "; ".join(complaints), flush=True)
        if said := compared(figures):
            print(f"      {said}", flush=True)
            curves.append([f"## {name}", "", f"{said[0].upper()}{said[1:]}.", "", *table(curve_of(figures))])
            for curve_row in curve_of(figures):
                print("      " + "  ".join(f"{cell:>11}" for cell in curve_row), flush=True)
        if "other_memory" in figures:
            other = other_curve_of(figures["other_memory"])
            curves.append([f"## {name}, {figures['other_memory']['flag']}", "", *table(other)])
            for curve_row in other:
                print("      " + "  ".join(f"{cell:>15}" for cell in curve_row), flush=True)
    contributed = [METHODS_HEAD, *contributions.rows()] if options.methods else []
    for row in contributed:
        print("      " + "  ".join(f"{cell:>{max(10, len(head))}}" for cell, head in zip(row, METHODS_HEAD)), flush=True)
    if options.markdown:
        text = table([HEAD, *lines])
        text += ["", *table(contributed)] if contributed else []
        for curve in curves:
            text += ["", *curve]
        options.markdown.write_text("\n".join(text) + "\n")
    if options.json:
        options.json.write_text(json.dumps(verdicts))
    print(f"{len(models) - failed} of {len(models)} models hold")
    return 1 if failed else 0
