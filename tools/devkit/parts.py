"""A step in micro-batches is the step of the whole batch: on every model whose batch is a symbol.

In f64 on the CPU the losses of a few steps agree within 1e-12 relative; in f32, or what --precision names, those of all recorded
steps (or of --steps) within the recorded tolerance. Not one bit changes where all parts pass a block of the model before the
next. Other flags go to the compiler: --target=cuda-emulated, say, with --f64-steps=0.
Batch norm keeps to the statistics of each part: such models only have to say so. A model whose record says that it mixes its
samples has to be refused.
"""

import json

from devkit.exact import difference
from devkit.judge import first_error
from devkit.trials import run_trials

UNSUPPORTED = 3  # docs/reference/exit-codes.md
F64_RELATIVE = 1e-12
# Where no tolerance is recorded, only mean and spread over seeds, say: the same seed draws the same numbers, and few steps keep
# errors small. In 16 bits four units in the last place.
RELATIVE = {"f32": 1e-4, "bf16": 2.0**-6, "f16": 2.0**-9}


def has_symbolic_batch(bench):
    """Whether the first dimension of an input of the record's data is a name."""
    from devkit.tensors import onnx_inputs

    inputs = onnx_inputs(bench.model)
    return any(dims and isinstance(dims[0], str) for name, dims in inputs.items() if name in bench.record.shapes)


def worst(ours, theirs, bounds):
    """(largest difference over its bound, its step)."""
    ratios = [abs(a - b) / bound for a, b, bound in zip(ours, theirs, bounds)]
    at = max(range(len(ratios)), key=ratios.__getitem__)
    return ratios[at], at


def compare(bench, options, kind, flags, steps, bounds_of):
    """Complaint and worst ratio over all numbers of parts in one precision; None: the model mixes its samples, and says so."""
    whole = bench.train(bench.compile(f"{kind}-whole", *flags)[0], steps)
    largest = 0.0
    for parts in options.micro_batches:
        flag = f"--micro-batches={parts}"
        told = bench.work / f"{kind}-{parts}.json"
        artifact, _ = bench.compile(f"{kind}-{parts}", *flags, flag, f"--figures={told}")
        run = bench.train(artifact, steps)
        if run.planned != run.allocated:
            return f"{flag}: planned {run.planned}, allocated {run.allocated}", 0.0
        for blocks in options.blocks if kind != "f64" else ():
            cut = f"{flag} --micro-batch-blocks={blocks}"
            others = bench.train(bench.compile(f"{kind}-{parts}-{blocks}", *flags, *cut.split())[0], steps)
            if wrong := difference(others, run):
                return f"{kind} {cut}: {wrong}, which {flag} gives", 0.0
        if any("batch_norm_layers" in remark for remark in json.loads(told.read_text())["remarks"]):
            return None, 0.0
        ratio, at = worst(run.losses, whole.losses, bounds_of(whole.losses))
        if not ratio <= 1 or len(run.losses) != len(whole.losses):
            return f"{kind} {flag}: loss of step {at} is {run.losses[at]!r}, of the whole batch {whole.losses[at]!r}", 0.0
        largest = max(largest, ratio)
    return "", largest


def trial(bench, options):
    if not has_symbolic_batch(bench):
        return "", "skipped: its batch is a number"
    record = bench.record
    if record.mixes_samples:
        status, _, said = bench.attempt("mixed", f"--micro-batches={options.micro_batches[0]}")
        return "" if status == UNSUPPORTED else f"exit {status}, not {UNSUPPORTED}: {first_error(said)}", "refused: it mixes its samples"
    precision = next((flag.split("=", 1)[1] for flag in reversed(options.flags) if flag.startswith("--precision=")), "f32")
    tolerance = None if record.stochastic else record.loss_bounds(precision)[1]
    if tolerance is None:
        relative = RELATIVE[precision.removeprefix("mixed-")]
        bounds_of = lambda losses: [relative * abs(v) for v in losses]  # noqa: E731
        steps = options.f64_steps or 3
    else:
        bounds_of, steps = lambda losses: tolerance, min(options.steps or record.steps, record.steps)  # noqa: E731
    complaint, single = compare(bench, options, precision, [], steps, bounds_of)
    if complaint is None:
        return "", "batch norm: each part has its own statistics, with a warning"
    if complaint or not options.f64_steps:
        return complaint, "" if complaint else f"of its tolerance: {precision} {single:.3f}"
    double = lambda losses: [F64_RELATIVE * abs(v) for v in losses]  # noqa: E731
    complaint, f64 = compare(bench, options, "f64", ["--target=cpu", "--precision=f64"], min(options.f64_steps, record.steps), double)
    return complaint, f"of its tolerance: {precision} {single:.3f}, f64 {f64:.3f}"


def add_flags(parser):
    parser.add_argument("--micro-batches", type=lambda text: [int(n) for n in text.split(",")], default=[2, 4], help="numbers of parts (2,4)")
    parser.add_argument("--blocks", type=lambda text: [int(n) for n in text.split(",") if n], default=[3], help="shares of the parameters that blocks read (3)")
    parser.add_argument("--steps", type=int, default=0, help="steps that are compared, but in f64 (all that were recorded)")
    parser.add_argument("--f64-steps", type=int, default=3, help="steps that are compared in f64 (3); 0: none")


def main(argv):
    return run_trials("parts", __doc__, argv, trial, add_flags)
