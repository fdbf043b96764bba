"""Masters in two halves next to whole ones: the same bits in every run.

Of every model --master=split and --master=whole are trained for many steps, under mixed-bf16 unless another precision is
asked for: losses, parameters and state must be the same bytes. Other flags go to the compiler: --target=cuda-emulated, say.
"""

from devkit.exact import difference
from devkit.judge import first_error
from devkit.precision import PRODUCTS
from devkit.trials import Broken, run_trials

USAGE, UNSUPPORTED = 1, 3  # docs/reference/exit-codes.md


def may_be_refused(bench):
    """Of a file without a product nothing is read in 16 bits; and some cannot be compiled for them at all."""
    kinds = bench.record.kinds(bench.model)
    return (kinds and not kinds & PRODUCTS) or bench.attempt("plain")[0] in (USAGE, UNSUPPORTED)


def trial(bench, options):
    if not any(flag.startswith("--precision") for flag in bench.given):
        bench.given.append("--precision=mixed-bf16")
    runs = {}
    for master in ("split", "whole"):
        status, artifact, said = bench.attempt(master, f"--master={master}")
        if status in (USAGE, UNSUPPORTED) and not runs and may_be_refused(bench):
            return "", f"refused: {first_error(said)}"
        if status:
            raise Broken(f"--master={master}: exit {status}: {first_error(said)}")
        init = [f"--init={bench.record.folder / bench.record.train['init']}"] if bench.record.train.get("init") else []
        runs[master] = bench.train(artifact, options.steps, "--on-nonfinite=continue", *init)
    split, whole = runs["split"], runs["whole"]
    if len(split.losses) != options.steps:
        return f"--master=split ended after {len(split.losses)} steps", ""
    if wrong := difference(split, whole):
        return f"--master=split: {wrong}, which --master=whole gives", ""
    return "", f"{options.steps} steps, {split.planned:,} bytes next to {whole.planned:,}; last loss {split.losses[-1]:.4g}"


def add_flags(parser):
    parser.add_argument("--steps", type=int, default=1000, help="of each run (1,000)")


def main(argv):
    return run_trials("masters", __doc__, argv, trial, add_flags)
