"""Values that wait in another memory: below what recomputation reaches, with the same bits.

Each file is trained without a budget and at budgets spread from the smallest plan with another memory (a file on a CPU; for a GPU
in turn pinned memory of the host with a file, a file, and pinned memory) to the largest plan: every loss and every byte that is
saved must be equal, and the runtime may allocate no more than was asked for, in any memory. With another memory the smallest plan
may not need more. For a GPU the smallest plan is compiled once more with half of what it takes in pinned memory, and a file.
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
    """Bytes that a plan has in memory of the host, and in a file."""
    read = json.loads(figures.read_text())
    return read["host_bytes"], read["file_bytes"]


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
    moving, runs, in_both = 0, 0, ""
    budgets = list(dict.fromkeys(low + (high - low) * i // max(options.budgets - 1, 1) for i in range(options.budgets)))
    trials = [(budget, rooms[i % len(rooms)]) for i, budget in enumerate(budgets)]
    while trials:
        budget, room = trials.pop(0)
        flags = [f"--device-budget={budget}", *room]
        artifact, _ = bench.compile("fitted", *flags, f"--figures={told}")
        fitted = bench.train(artifact, options.steps, *(["--poison"] if not is_gpu else []))
        if fitted.planned != fitted.allocated or fitted.allocated > budget:
            return f"{' '.join(flags)}: planned {fitted.planned}, allocated {fitted.allocated}", ""
        if wrong := difference(fitted, whole):
            return f"{' '.join(flags)}: {wrong}, which the step without a budget gives", ""
        host_bytes, file_bytes = elsewhere(told)
        whole_bytes = elsewhere(plain)[0]
        runs += 1
        moving += host_bytes > whole_bytes or file_bytes > 0
        if budget == low and room == rooms[0] and host_bytes > whole_bytes:
            trials.append((low, [f"--host-budget={(host_bytes - whole_bytes) // 2}", disk]))
        if host_bytes > whole_bytes and file_bytes:
            in_both = ", in both memories"
    return "", f"{note}; {len(budgets)} budgets, values move in {moving} of {runs} runs{in_both}; {options.steps} steps"


def add_flags(parser):
    parser.add_argument("--budgets", type=int, default=5, help="budgets per model (5)")
    parser.add_argument("--steps", type=int, default=20, help="steps of each run (20)")


def main(argv):
    return run_trials("offload", __doc__, argv, trial, add_flags)
