"""Values that wait in another memory: below what recomputation reaches, with the same bits.

Each file is trained without a budget and at budgets spread from the smallest plan with another memory (a file on a CPU; for a GPU
in turn pinned memory of the host or a file, whichever is faster, a file, and pinned memory) to the largest plan: every loss and every byte that is saved must be equal, and the runtime may
allocate no more than was asked for, in either memory. With another memory the smallest plan may not need more.
"""

import json

from devkit.exact import difference
from devkit.judge import first_error
from devkit.trials import Broken, run_trials

BUDGET = 4  # docs/reference/exit-codes.md
ROOM = 1 << 36


def smallest(bench, name, *flags):
    """The refusal of a budget that nothing fits."""
    told = bench.work / f"{name}.json"
    status, _, said = bench.attempt(name, "--device-budget=1", f"--figures={told}", *flags)
    if status != BUDGET:
        raise Broken(f"--device-budget=1 {' '.join(flags)}: exit {status}: {first_error(said)}")
    return json.loads(told.read_text())["refusal"]


def elsewhere(figures):
    """Bytes that a plan has in other memory than the device's."""
    read = json.loads(figures.read_text())
    return read["host_bytes"] + read["file_bytes"]


def trial(bench, options):
    is_gpu = any(flag.startswith("--target=cuda") for flag in bench.given)
    disk, host = f"--disk-budget={ROOM}", f"--host-budget={ROOM}"
    rooms = [[host, disk], [disk], [host]] if is_gpu else [[disk]]
    plain, told = bench.work / "whole.json", bench.work / "fitted.json"
    whole = bench.train(bench.compile("whole", f"--figures={plain}")[0], options.steps)
    alone, other = smallest(bench, "alone"), smallest(bench, "other", *rooms[0])
    low, high = other["smallest_bytes"], alone["largest_bytes"]
    note = f"{low:,} bytes at least, {alone['smallest_bytes']:,} by recomputation alone"
    if low > alone["smallest_bytes"]:
        return f"{note}: with another memory more", ""
    moving = 0
    budgets = list(dict.fromkeys(low + (high - low) * i // max(options.budgets - 1, 1) for i in range(options.budgets)))
    for i, budget in enumerate(budgets):
        flags = [f"--device-budget={budget}", *rooms[i % len(rooms)]]
        artifact, _ = bench.compile("fitted", *flags, f"--figures={told}")
        fitted = bench.train(artifact, options.steps, *(["--poison"] if not is_gpu else []))
        if fitted.planned != fitted.allocated or fitted.allocated > budget:
            return f"{' '.join(flags)}: planned {fitted.planned}, allocated {fitted.allocated}", ""
        if wrong := difference(fitted, whole):
            return f"{' '.join(flags)}: {wrong}, which the step without a budget gives", ""
        moving += elsewhere(told) > elsewhere(plain)
    return "", f"{note}; {len(budgets)} budgets, values move at {moving} of them; {options.steps} steps"


def add_flags(parser):
    parser.add_argument("--budgets", type=int, default=5, help="budgets per model (5)")
    parser.add_argument("--steps", type=int, default=20, help="steps of each run (20)")


def main(argv):
    return run_trials("offload", __doc__, argv, trial, add_flags)
