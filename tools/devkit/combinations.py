"""Flags drawn at random, of those that a training step takes together: with a budget the same bits, or a refusal in words.

Of every model --draws combinations of optimizer, precision, parts, state layouts, adapters, averages and entries are compiled
without a budget and with one, some with another memory. A combination may be refused in words. Where the budget is below what any
plan meets, the smallest one that the refusal names must do. Losses and every byte that is saved must be equal, and the runtime may
allocate no more than was asked for. A draw depends on --seed, the model's name and its number alone.
"""

import collections
import json
import random

from devkit.exact import difference
from devkit.judge import first_error
from devkit.trials import run_trials

USAGE, UNSUPPORTED, BUDGET = 1, 3, 4  # docs/reference/exit-codes.md

TARGETS = ("cpu", "cpu", "cuda-emulated")
OPTIMIZERS = (
    "sgd", "sgd --momentum=0.9 --nesterov", "sgd --maximize", "adam", "adamw", "adamw --amsgrad", "rmsprop --momentum=0.5 --centered", "nadam",
    "radam", "adamax", "adadelta", "adagrad", "lion", "adafactor", "lamb", "muon",
)  # fmt: skip
PRECISIONS = ("f32", "f32", "mixed-bf16", "mixed-f16", "bf16")
# (how often, one of these); several flags stand in one text.
OTHERS = (
    (0.3, ("--clip-norm=1",)),
    (0.3, ("--micro-batches=2", "--micro-batches=4")),
    (0.2, ("--ema=0.9",)),
    (0.25, ("--moments=bf16", "--moments=int8", "--moments=fp8")),
    (0.2, ("--master=split", "--master=whole", "--master=sr")),
    (0.2, ("--updates=deferred",)),
    (0.15, ("--sparse-updates=lazy",)),
    (0.15, ("--lora=*:r=2", "--lora=*:r=2,dora", "--lora=*:r=2,rslora", "--lora=*:r=2,dropout=0.1")),
    (0.15, ("--frozen-weights=bf16", "--frozen-weights=int8", "--frozen-weights=nf4")),
    (0.2, ("--group=*bias*:weight_decay=0", "--group=*bias*,*norm*:moments=f32")),
    (0.2, ("--schedule=cosine --warmup-steps=1 --total-steps=4", "--schedule=linear --total-steps=4")),
)  # fmt: skip
PARTS = (50, 60, 70, 85)
# Parts of the device budget that another memory has, by what the target can reach; none is most common.
MEMORIES = {
    "cpu": ("", "", "--disk-budget=1GiB"),
    "cuda-emulated": ("", "", "--disk-budget=1GiB", "--host-budget=1GiB", "--host-budget=200000 --disk-budget=1GiB"),
}


def name_of(flag):
    return flag.split("=", 1)[0]


def draw(source, given):
    """(flags, flags of the budget) of one combination; what the caller gave is not drawn."""
    target = next((flag.split("=", 1)[1] for flag in given if name_of(flag) == "--target"), source.choice(TARGETS))
    precision = source.choice(PRECISIONS)
    entries = source.choice(("train", "train", "train,eval", "train,gradient"))
    flags = [f"--target={target}", f"--entries={entries}", *f"--optimizer={source.choice(OPTIMIZERS)}".split(), f"--precision={precision}"]
    if precision == "mixed-f16" or source.random() < 0.1:
        flags.append("--loss-scale=dynamic")
    for chance, texts in OTHERS:
        if source.random() < chance:
            flags += source.choice(texts).split()
    budget = [f"--device-budget={source.choice(PARTS)}%", *source.choice(MEMORIES.get(target, MEMORIES["cuda-emulated"])).split()]
    said = {name_of(flag) for flag in given}
    return [flag for flag in flags if name_of(flag) not in said], [flag for flag in budget if name_of(flag) not in said]


def compile_fitted(bench, flags, budget):
    """(artifact, its budget in bytes, complaint): the smallest budget that the refusal names, where no plan meets this one."""
    told = bench.work / "fitted.json"
    status, artifact, said = bench.attempt("fitted", *flags, *budget, f"--figures={told}")
    if status == BUDGET:
        smallest = json.loads(told.read_text())["refusal"]["smallest_bytes"]
        budget = [f"--device-budget={smallest}", *budget[1:]]
        status, artifact, said = bench.attempt("fitted", *flags, *budget, f"--figures={told}")
    if status:
        return artifact, 0, f"{' '.join(budget)}: exit {status}: {first_error(said)}"
    return artifact, json.loads(told.read_text())["budget_bytes"], ""


def compare(bench, options, flags, budget):
    """(what happened, complaint) of one combination."""
    status, artifact, said = bench.attempt("whole", *flags)
    if status in (USAGE, UNSUPPORTED) and first_error(said):
        return "refused", ""
    if status:
        return "", f"exit {status}: {first_error(said)}"
    start = [*bench.record.run_flags(), "--on-nonfinite=continue"]
    whole = bench.train(artifact, options.steps, *start)
    artifact, most, complaint = compile_fitted(bench, flags, budget)
    if complaint:
        return "", complaint
    fitted = bench.train(artifact, options.steps, *start)
    if fitted.planned != fitted.allocated or fitted.allocated > most:
        return "", f"{' '.join(budget)}: planned {fitted.planned}, allocated {fitted.allocated}, budget {most}"
    if wrong := difference(fitted, whole):
        return "", f"{' '.join(budget)}: {wrong}, which the step without a budget gives"
    return "equal", ""


def trial(bench, options):
    seen = collections.Counter()
    bench.given = options.flags  # entries are drawn, too
    for i in range(options.draws):
        flags, budget = draw(random.Random(f"{options.seed} {bench.model.parent.name}/{bench.model.name} {i}"), bench.given)
        happened, complaint = compare(bench, options, flags, budget)
        if complaint:
            return f"draw {i}, {' '.join(flags)}: {complaint}", ""
        seen[happened] += 1
    return "", ", ".join(f"{count} {what}" for what, count in seen.items())


def add_flags(parser):
    parser.add_argument("--draws", type=int, default=4, help="combinations per model (4)")
    parser.add_argument("--steps", type=int, default=3, help="steps of each run (3)")
    parser.add_argument("--seed", default="0", help="of the draws (0)")


def main(argv):
    return run_trials("combinations", __doc__, argv, trial, add_flags)
