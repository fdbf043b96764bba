"""Whatever the budget, the same bits: losses, parameters and state of every model at many budgets.

Each file is trained without a budget and at budgets spread from the smallest plan to the largest: every loss and every
byte that is saved must be equal, and the runtime may allocate no more than was asked for. One byte below what no plan
can meet is refused. A model with a loss head is also trained with its logits in several numbers of chunks.
"""

import json
import math
import re

from devkit.judge import call, first_error
from devkit.trials import Broken, run_trials


def ladder(figures, count):
    """`count` budgets from the smallest plan that was found to what no recomputation needs; fewer where they are the same."""
    low, high = figures["smallest_bytes"], figures["largest_bytes"]
    return list(dict.fromkeys(low + (high - low) * i // max(count - 1, 1) for i in range(count)))


def difference(ours, theirs):
    """The first thing in which two runs differ, in words."""
    for step, (a, b) in enumerate(zip(ours.losses, theirs.losses)):
        if a != b and not (math.isnan(a) and math.isnan(b)):
            return f"loss of step {step} is {a!r}, not {b!r}"
    same = ours.digest == theirs.digest and len(ours.losses) == len(theirs.losses)
    return "" if same else "other parameters or state"


def has_loss_head(bench):
    """Whether the model's losses come from a product with many classes whose rows can be parted."""
    command = [bench.binaries / "lowtide", "compile", bench.model, "--emit=fitted", "--loss-head-chunks=2", "-v", "-o", bench.work / "model.mlir"]
    status, said = call([*command, *bench.record.compiler_flags(bench.model, bench.given)], bench.work / "fitted.log")
    if status:
        raise Broken(f"--emit=fitted: exit {status}: {first_error(said)}")
    return re.search(r"loss head: logits of \S+ \S+ in \d+ piece", said) is not None


def compare_chunks(bench, options, steps):
    """The bits of a loss head do not depend on the number of its chunks."""
    runs = {n: bench.train(bench.compile(f"chunks-{n}", f"--loss-head-chunks={n}")[0], steps) for n in options.chunks}
    first = options.chunks[0]
    for n, run in runs.items():
        if wrong := difference(run, runs[first]):
            return f"--loss-head-chunks={n}: {wrong}, which --loss-head-chunks={first} gives"
    return ""


def trial(bench, options):
    steps = options.steps  # a shorter record's data come round again
    whole = bench.train(bench.compile("whole")[0], steps)
    figures = bench.fit(options.budgets)
    budgets = ladder(figures, options.budgets)
    for budget in budgets:
        flag = f"--device-budget={budget}"
        artifact, _ = bench.compile("fitted", flag)
        fitted = bench.train(artifact, steps)
        if fitted.planned != fitted.allocated or fitted.allocated > budget:
            return f"{flag}: planned {fitted.planned}, allocated {fitted.allocated}", ""
        if wrong := difference(fitted, whole):
            return f"{flag}: {wrong}, which the step without a budget gives", ""
    below = figures["lower_bound_bytes"] - 1
    told = bench.work / "below.json"
    status, _, _ = bench.attempt("below", f"--device-budget={below}", f"--figures={told}")
    if status != 4 or json.loads(told.read_text())["refusal"]["budget_bytes"] != below:
        return f"--device-budget={below}, below the bound: exit {status}", ""
    note = f"{len(budgets)} budgets from {budgets[0]:,} to {budgets[-1]:,} bytes, {steps} steps"
    if not has_loss_head(bench):
        return "", note
    return compare_chunks(bench, options, steps), f"{note}, loss head in {', '.join(map(str, options.chunks))} chunks"


def add_flags(parser):
    parser.add_argument("--budgets", type=int, default=10, help="budgets per model (10)")
    parser.add_argument("--steps", type=int, default=20, help="steps of each run (20)")
    parser.add_argument("--chunks", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 4], help="chunks of a loss head (1,2,4)")


def main(argv):
    return run_trials("exact", __doc__, argv, trial, add_flags)
