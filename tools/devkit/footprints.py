"""Every kernel inside its slices: the artifact of each model, executed on guarded memory.

Operands and results of each launch lie between pages that cannot be touched, and every byte knows which write it comes
from (test/Fuzz/PlanMutants/GuardedRun.h): what the proof at load believes of the footprints is measured. Other flags go to
the compiler: --target=cuda-emulated, say.
"""

import subprocess

from devkit.judge import first_error
from devkit.roundtrip import REFUSED
from devkit.trials import Broken, run_trials

PROGRAM = "lowtide-plan-mutants"
TOO_LARGE = "to be executed here"


def trial(bench, options):
    bench.given.remove("--entries=train")
    status, artifact, said = bench.attempt("whole")
    if status in REFUSED:
        return "", f"refused: {first_error(said)}"
    if status:
        raise Broken(f"compile: exit {status}: {first_error(said)}")
    program = bench.find_program(PROGRAM, bench.binaries.parent / "test" / "lib")
    run = subprocess.run([program, artifact, "--count=0"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if run.returncode < 0:
        return f"a signal, {-run.returncode}: a kernel leaves its slices", ""
    if TOO_LARGE in run.stderr:
        return "", f"not executed: {first_error(run.stderr)}"
    complaint = (first_error(run.stderr) or f"{PROGRAM} ended with {run.returncode}") if run.returncode else ""
    return complaint, "no byte outside the slices"


def main(argv):
    return run_trials("footprints", __doc__, argv, trial)
