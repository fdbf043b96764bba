"""Budgets between the smallest that a step can meet and the largest that changes it: none is refused, none is slower than a smaller one.

Of every model --draws combinations of flags are drawn, as `combinations` draws them, with and without another memory. The smallest budget
is what a refusal names, the largest what the step takes without one. From one to the other, at --rows budgets:

  - no budget is refused
  - no plan takes more bytes than its budget
  - no plan takes longer, as the cost model counts all its entries, than that of a smaller budget

Nothing is run. A draw depends on --seed, the model's name and its number alone.
"""

import json

from devkit.combinations import BUDGET, UNSUPPORTED, USAGE, add_draw_flags, compile_plain, draws_of, name_of, value_of
from devkit.judge import first_error
from devkit.trials import run_trials

# The cost model's sums differ in their last bits.
ROUNDING = 1e-9


def compile_at(bench, flags, plan, budget):
    """(exit status, the compiler's figures or None, its first error) under so many bytes."""
    told = bench.work / "figures.json"
    told.unlink(missing_ok=True)
    status, _, said = bench.attempt("fitted", *flags, *plan, f"--device-budget={budget}", f"--figures={told}")
    return status, json.loads(told.read_text()) if told.exists() else None, first_error(said)


def sweep(bench, flags, plan, rows):
    """(how many budgets were met, complaint)."""
    status, figures, said = compile_at(bench, flags, plan, 1)
    if status == UNSUPPORTED and "--updates=deferred" in plan:  # not of every step
        return sweep(bench, flags, [flag for flag in plan if flag != "--updates=deferred"], rows)
    if status != BUDGET or not figures["refusal"]:
        return 0, "" if status in (USAGE, UNSUPPORTED) else f"a budget of one byte: exit {status}: {said}"
    smallest, largest = figures["refusal"]["smallest_bytes"], figures["refusal"]["largest_bytes"]
    least, at = None, 0
    budgets = sorted({smallest + (largest - smallest) * row // max(rows - 1, 1) for row in range(rows)}) if largest > smallest else [smallest]
    for budget in budgets:
        status, figures, said = compile_at(bench, flags, plan, budget)
        if status:
            return 0, f"{budget} bytes, between {smallest} and {largest}: exit {status}: {said}"
        if figures["bytes"] > budget:
            return 0, f"{figures['bytes']} bytes are planned for {budget}"
        seconds = sum(entry["seconds"] for entry in figures["entries"])
        if least is not None and seconds > least * (1 + ROUNDING):
            return 0, f"{seconds * 1e3:.6g} ms at {budget} bytes, {least * 1e3:.6g} at {at}, between {smallest} and {largest}"
        if least is None or seconds < least:
            least, at = seconds, budget
    return len(budgets), ""


def trial(bench, options):
    met, complaints = 0, []
    bench.given = options.flags  # entries are drawn, too
    for i, drawn in draws_of(bench, options, bench.given):
        status, drawn, _, said = compile_plain(bench, drawn)
        if status in (USAGE, UNSUPPORTED):
            continue
        plan = [flag for flag in drawn.plan if name_of(flag) != "--device-budget"]
        flags = [flag for flag in drawn.flags if not value_of(plan, name_of(flag))]
        count, complaint = (0, f"exit {status}: {first_error(said)}") if status else sweep(bench, flags, plan, options.rows)
        met += count
        if complaint:
            complaints.append(f"draw {i}, {' '.join(flags)} | {' '.join(plan)}: {complaint}")
    return "\n      ".join(complaints), f"{met} budgets"


def add_flags(parser):
    add_draw_flags(parser, draws=2)
    parser.add_argument("--rows", type=int, default=7, help="budgets of each (7)")


def main(argv):
    return run_trials("budgets", __doc__, argv, trial, add_flags)
