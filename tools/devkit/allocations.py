"""What the fake CUDA device allocates for every model, next to the plan: each arena once, and nothing else.

Counted three times: by the plan's arenas, by the session, and by the driver that gives the memory. They must agree
allocation by allocation, on the device and in pinned memory, after bind and after steps, without a budget and at the
smallest budget that the training step can meet, which nothing may exceed; and all is given back. Other flags go to the
compiler, whose target is cuda-emulated.
"""

import json
import subprocess

from devkit.judge import first_error
from devkit.roundtrip import REFUSED
from devkit.trials import Broken, run_trials

PROGRAM = "lowtide-device-calls"
SPACES = ("device", "host_pinned")
# Of a GPU's plan, by space: what batches and metrics travel through.
EXCHANGE = {"device": {"EXCHANGE_IN", "EXCHANGE_OUT"}, "host_pinned": {"EXCHANGE_IN", "EXCHANGE_OUT", "STAGING"}}


def differences(counts, budget=None):
    """What is wrong with one session's counts: a sentence for each."""
    for space in SPACES:
        arenas = [arena for arena in counts["arenas"] if arena["space"] == space]
        planned = sorted(arena["bytes"] for arena in arenas if arena["bytes"])
        if missing := EXCHANGE[space] - {arena["role"] for arena in arenas if arena["bytes"]}:
            yield f"no arena of {space} for {', '.join(sorted(missing))}"
        for when in ("bound", "ran"):
            given, counted = sorted(counts[when]["driver"][space]), counts[when][space]
            if given != planned:
                yield f"{when}: the driver gave {given} of {space}, the plan has {planned}"
            if counted != sum(given):
                yield f"{when}: the session counts {counted} bytes of {space}, the driver gave {sum(given)}"
        left = counts["closed"]
        if left["driver"][space] or left[space]:
            yield f"closed: {left['driver'][space]} of {space} not given back, {left[space]} counted"
    if budget is not None and counts["ran"]["device"] > budget:
        yield f"{counts['ran']['device']} bytes on the device, the budget is {budget}"


def count(bench, artifact, steps):
    program = bench.find_program(PROGRAM)
    run = subprocess.run(
        [program, artifact, "--allocations", f"--steps={steps}"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    if run.returncode:
        raise Broken(f"{PROGRAM}: {first_error(run.stderr) or run.returncode}")
    return json.loads(run.stdout)


def trial(bench, options):
    bench.given.append("--target=cuda-emulated")
    status, artifact, said = bench.attempt("whole")
    if status in REFUSED:
        return "", f"refused: {first_error(said)}"
    if status:
        raise Broken(f"compile: exit {status}: {first_error(said)}")
    whole = count(bench, artifact, options.steps)
    if wrong := list(differences(whole)):
        return "; ".join(wrong), ""
    budget = bench.fit(2)["smallest_bytes"]
    artifact, _ = bench.compile("smallest", f"--device-budget={budget}")
    smallest = count(bench, artifact, options.steps)
    if wrong := list(differences(smallest, budget)):
        return f"--device-budget={budget}: {'; '.join(wrong)}", ""
    exchange = sum(arena["bytes"] for arena in whole["arenas"] if arena["role"].startswith("EXCHANGE") and arena["space"] == "device")
    return "", f"{whole['ran']['device']:,} bytes, {exchange:,} of them exchange blocks; {smallest['ran']['device']:,} of a budget of {budget:,}"


def add_flags(parser):
    parser.add_argument("--steps", type=int, default=2, help="steps of each entry (2: both blocks of an exchange)")


def main(argv):
    return run_trials("allocations", __doc__, argv, trial, add_flags)
