"""Flags drawn at random, of those that a training step takes together: the same bits however it is planned, run and stopped, or a refusal.

Of every model --draws combinations are compiled twice: plainly, and with a budget, some with another memory, and with what must change
no bit (deferred updates, say). A flag that is refused by its name is left out; a combination may be refused in words. Where the budget
is below what any plan meets, the smallest one that the refusal names must do. Then these must hold:

  - losses and every byte that is saved are equal, whatever threads, feeders and order of streams; so are gradients and predictions
  - the runtime allocates no more than was asked for
  - a run that stops after a drawn number of steps and goes on under the other plan ends with the same losses and bytes
  - on the emulated device, losses are those of the CPU within the recorded bands

A draw depends on --seed, the model's name and its number alone.
"""

import collections
import json
import math
import random
import re

from devkit.exact import difference
from devkit.judge import call, first_error, is_lossy
from devkit.trials import Broken, run_trials

USAGE, UNSUPPORTED, BUDGET = 1, 3, 4  # docs/reference/exit-codes.md

TARGETS = ("cpu", "cpu", "cuda-emulated")
OPTIMIZERS = (
    "sgd", "sgd --momentum=0.9 --nesterov", "sgd --momentum=0.9 --dampening=0.1 --weight-decay=0.01", "sgd --maximize", "momentum --momentum=0.8",
    "adam", "adam --betas=0.8,0.9 --eps=1e-6 --weight-decay=0.01", "adam --convention=onnx", "adamw", "adamw --amsgrad", "rmsprop",
    "rmsprop --momentum=0.5 --centered", "nadam", "nadam --decoupled-weight-decay --weight-decay=0.1", "radam", "adamax", "adadelta", "adagrad",
    "adagrad --lr-decay=0.1 --initial-accumulator-value=0.1", "asgd --t0=1", "rprop", "lion", "adafactor", "lamb", "muon", "muon --fallback=lion:lr=1e-4",
    "muon --nesterov --adjust-lr-fn=match_rms_adamw",
)  # fmt: skip
PRECISIONS = ("f32", "f32", "mixed-bf16", "mixed-f16", "bf16", "f16", "f64")
ENTRIES = ("train", "train", "train,eval", "train,gradient", "train,eval,gradient")
# (how often, one of these); several flags stand in one text.
OTHERS = (
    (0.2, ("--clip-norm=1", "--clip-norm=0.01", "--clip-value=0.1")),
    (0.3, ("--micro-batches=2", "--micro-batches=4")),
    (0.2, ("--ema=0.9",)),
    (0.25, ("--moments=bf16", "--moments=int8", "--moments=fp8")),
    (0.2, ("--master=split", "--master=whole", "--master=sr")),
    (0.2, ("--updates=deferred",)),
    (0.15, ("--sparse-updates=lazy", "--sparse-updates=off")),
    (0.15, ("--lora=*:r=2", "--lora=*:r=2,dora", "--lora=*:r=2,rslora", "--lora=*:r=2,dropout=0.1", "--lora=*0*:r=2;*1*:r=3,alpha=4")),
    (0.15, ("--frozen-weights=bf16", "--frozen-weights=int8", "--frozen-weights=nf4", "--frozen-weights=fp8")),
    (0.15, ("--params=*weight*", "--params=*bias*", "--frozen=*bias*", "--frozen=*0*", "--frozen=* --params=*1*")),
    (0.2, (
        "--group=*bias*:weight_decay=0", "--group=*bias*,*norm*:moments=f32", "--group=*bias*:lr=0.01,optimizer=sgd", "--group=*weight*:moments=int8",
        "--group=*1*:master=split", "--group=*0*:lr=0;*1*:optimizer=adagrad",
    )),
    (0.2, (
        "--schedule=cosine --warmup-steps=1 --total-steps=4", "--schedule=linear --total-steps=4 --min-lr=1e-5", "--schedule=one-cycle --total-steps=5",
        "--schedule=wsd --total-steps=4 --decay-steps=2 --warmup-steps=1", "--schedule=step --step-size=1", "--schedule=multistep --milestones=1,2",
        "--schedule=cosine-restarts --restart-steps=2", "--schedule=inverse-sqrt --warmup-steps=1", "--schedule=exponential --gamma=0.5",
        "--schedule=polynomial --total-steps=3 --power=2",
    )),
    (0.1, ("--dropout=0.2", "--dropout=0")),
    (0.1, ("--mode=eval", "--mode=as-is", "--freeze-norm=*")),
    (0.1, ("--outputs=all",)),
    (0.1, ("--precision-override=*norm*,*0*=f32", "--precision-override=*1*=bf16")),
    (0.1, ("--conv-layout=nhwc", "--conv-layout=nchw")),
    (0.1, ("--no-fuse",)),
    (0.1, ("--last-batch=1",)),
    (0.2, ("--loss-head-chunks=1", "--loss-head-chunks=2", "--loss-head-chunks=4")),
)  # fmt: skip
PARTS = (50, 60, 70, 85)
# Parts of the device budget that another memory has, by what the target can reach; none is most common.
MEMORIES = {
    "cpu": ("", "", "--disk-budget=1GiB", "--disk-budget=100000"),
    "cuda-emulated": ("", "", "--disk-budget=1GiB", "--host-budget=1GiB", "--host-budget=200000 --disk-budget=1GiB"),
}
# Flags of the compiler that change no bit.
PLANS = (
    (0.15, ("--updates=deferred",)),
    (0.1, ("--threads-max=3",)),
    (0.1, ("--sparse-updates=off", "--sparse-updates=exact")),
    (0.3, ("--micro-batch-blocks=2", "--micro-batch-blocks=5", "--micro-batch-blocks=off")),
)  # fmt: skip
# Flags of lowtide-run that change which samples and numbers a step sees, and those that change no bit.
RUNS = ((0.2, ("--shuffle=5",)), (0.2, ("--seed=9",)))
CARELESS = ((0.3, ("--threads=2", "--threads=3")), (0.3, ("--feeders=0", "--feeders=3")), (0.2, ("--poison",)), (0.2, ("--log=off",)))

Draw = collections.namedtuple("Draw", "flags plan runs careless stops whole_first same_folder")


def name_of(flag):
    return flag.split("=", 1)[0]


def value_of(flags, name, default=""):
    return next((flag.partition("=")[2] for flag in reversed(flags) if name_of(flag) == name), default)


def some_of(source, table):
    return [flag for chance, texts in table if source.random() < chance for flag in source.choice(texts).split()]


def draw(source, given, steps=3):
    """One combination; what the caller gave is not drawn. `flags` of the step, `plan` of its second compilation, `runs` of every run,
    `careless` of the run of the second, `stops` after so many steps."""
    target = value_of(given, "--target") or source.choice(TARGETS)
    precision = source.choice(PRECISIONS)
    flags = [f"--target={target}", f"--entries={source.choice(ENTRIES)}", *f"--optimizer={source.choice(OPTIMIZERS)}".split(), f"--precision={precision}"]
    if precision in ("mixed-f16", "f16") or source.random() < 0.1:
        flags.append(source.choice(("--loss-scale=dynamic", "--loss-scale=dynamic,init=1024,interval=2", "--loss-scale=256")))
    flags += some_of(source, OTHERS)
    plan = [f"--device-budget={source.choice(PARTS)}%", *source.choice(MEMORIES.get(target, MEMORIES["cuda-emulated"])).split()]
    plan += some_of(source, PLANS)
    runs, careless = some_of(source, RUNS), some_of(source, CARELESS)
    if "emulated" in target and source.random() < 0.5:
        careless.append(f"--schedule={source.randrange(1000)}")
    if value_of(plan, "--disk-budget") and source.random() < 0.5:
        careless.append("--spill-io=threads")
    said = {name_of(flag) for flag in given}
    flags = [flag for flag in flags if name_of(flag) not in said]
    said |= {name_of(flag) for flag in flags}
    plan = [flag for flag in plan if name_of(flag) not in said]
    if value_of(flags, "--loss-head-chunks"):  # whether there are any is of the step; how many, of the plan
        plan.append(f"--loss-head-chunks={source.choice((1, 2, 4, 8))}")
    return Draw(flags, plan, runs, careless, source.randrange(1, max(steps, 2)), source.random() < 0.5, source.random() < 0.5)


def draws_of(bench, options, given, steps=3):
    """(number, combination) of those that the command asks for."""
    for i in range(options.draws) if options.draw is None else [options.draw]:
        yield i, draw(random.Random(f"{options.seed} {bench.model.parent.name}/{bench.model.name} {i}"), given, steps)


def add_draw_flags(parser, draws):
    parser.add_argument("--draws", type=int, default=draws, help=f"combinations per model ({draws})")
    parser.add_argument("--draw", type=int, help="only the one of this number")
    parser.add_argument("--seed", default="0", help="of the draws (0)")


def compile_fitted(bench, flags, plan):
    """(artifact, its budget in bytes, complaint): the smallest budget that the refusal names, where no plan meets this one."""
    told = bench.work / "fitted.json"
    flags = [flag for flag in flags if name_of(flag) not in map(name_of, plan)]
    status, artifact, said = bench.attempt("fitted", *flags, *plan, f"--figures={told}")
    if status == UNSUPPORTED and "--updates=deferred" in plan:  # not of every step
        plan = [flag for flag in plan if flag != "--updates=deferred"]
        status, artifact, said = bench.attempt("fitted", *flags, *plan, f"--figures={told}")
    if status == BUDGET:
        refusal = json.loads(told.read_text())["refusal"]
        if refusal is None:
            return artifact, 0, f"exit {status} without the figures of a refusal: {first_error(said)}"
        smallest = refusal["smallest_bytes"]
        plan = [f"--device-budget={smallest}", *(flag for flag in plan if name_of(flag) != "--device-budget")]
        status, artifact, said = bench.attempt("fitted", *flags, *plan, f"--figures={told}")
    if status:
        return artifact, 0, f"exit {status}: {first_error(said)}"
    return artifact, json.loads(told.read_text())["budget_bytes"], ""


def compare_resumed(bench, drawn, steps, artifacts, whole, start):
    """A complaint where a run that stopped and went on under the other plan differs from one that did neither."""
    first, second = artifacts if drawn.whole_first else reversed(artifacts)
    begun = train_or_skip(bench, first, drawn.stops, *start, saved="begun")
    if not begun:
        return ""  # the loss scale was too large for so few steps
    if begun.losses != whole.losses[: drawn.stops]:
        return f"the first {drawn.stops} of {steps} steps: losses {begun.losses}, not {whole.losses[: drawn.stops]}"
    folder = bench.work / "begun.saved"
    resumed = train_or_skip(bench, second, steps - drawn.stops, *start, f"--resume={folder}", saved="begun" if drawn.same_folder else "resumed")
    if not resumed:
        return ""
    resumed.losses = begun.losses + resumed.losses
    wrong = difference(resumed, whole)
    return wrong and f"stopped after {drawn.stops} steps of {first.stem} and resumed with {second.stem}: {wrong}"


def compare_entries(bench, drawn, artifacts, start):
    """A complaint where gradients or predictions of the two plans differ."""
    entries, results = value_of(drawn.flags, "--entries", "train").split(","), {}
    for artifact in artifacts:
        for entry, flag, end in (("gradient", "--dump-gradients", "safetensors"), ("eval", "--predict", "npz")):
            if entry not in entries:
                continue
            out = bench.work / f"{artifact.stem}-{entry}.{end}"
            flags = [f"--entry={entry}", "--steps=1", *start] if entry == "gradient" else [f"--resume={bench.work / 'whole.saved'}"]
            flags += ["--ema"] if entry == "eval" and "--ema" in map(name_of, drawn.flags) else []
            command = [bench.binaries / "lowtide-run", artifact, f"--data={bench.record.folder / 'data.npz'}", f"{flag}={out}", "--quiet", *flags]
            status, said = call(command, out.with_suffix(".log"))
            if status:
                results.setdefault(entry, []).append(f"exit {status}: {first_error(said)}")
            else:
                results.setdefault(entry, []).append(out.read_bytes())
    for entry, (plain, fitted) in results.items():
        if isinstance(plain, str) or isinstance(fitted, str):
            if plain != fitted or entry == "gradient":
                return f"entry {entry}: {plain if isinstance(plain, str) else 'done'}; with the budget {fitted if isinstance(fitted, str) else 'done'}"
        elif plain != fitted:
            return f"entry {entry} writes other bytes with the budget"
    return ""


def compare_targets(bench, drawn, steps, whole, start):
    """A complaint where losses leave those of the CPU by more than the record allows two runs."""
    try:
        recorded, bounds = bench.record.loss_bounds(value_of(drawn.flags, "--precision", "f32"))
    except (KeyError, ValueError):
        return ""  # nothing was recorded in that precision
    if bounds is None:
        return ""
    status, artifact, said = bench.attempt("peer", *(flag for flag in drawn.flags if name_of(flag) != "--target"), "--target=cpu")
    if status:
        return "" if status == UNSUPPORTED else f"on the CPU: exit {status}: {first_error(said)}"
    peer = bench.train(artifact, steps, *start)
    if any(map(is_lossy, drawn.flags)):
        from devkit.record import widen_for_lossy

        bounds = widen_for_lossy(recorded, bounds)
    for step, (ours, theirs, bound) in enumerate(zip(whole.losses, peer.losses, bounds)):
        # Either may lie on its own side of the truth.
        if abs(ours - theirs) > 2 * bound or math.isfinite(ours) != math.isfinite(theirs):
            return f"loss of step {step} is {ours!r}, on the CPU {theirs!r}, with a band of {bound:.1e}"
    return ""


def without_refused(flags, error):
    """`flags` without the last one that the error names, of those that a step can do without; None: it names none."""
    named = [flag for flag in flags[3:] if re.search(rf"\b{name_of(flag).lstrip('-')}\b", error)]
    return [flag for flag in flags if flag != named[-1]] if named else None


def compile_plain(bench, drawn):
    """(status, draw, artifact, what was said) of the combination; what is refused by the flag's name is left out."""
    while True:
        status, artifact, said = bench.attempt("whole", *drawn.flags)
        fewer = without_refused(drawn.flags, first_error(said)) if status in (USAGE, UNSUPPORTED) else None
        if fewer is None:
            return status, drawn, artifact, said
        drawn = drawn._replace(flags=fewer)


def train_or_skip(bench, *args, saved=""):
    """The run, or None where every step was skipped, since none was finite."""
    try:
        return bench.train(*args, saved=saved)
    except Broken as broken:
        if "every step was skipped" in str(broken):
            return None
        raise


def compare(bench, steps, drawn):
    """(what happened, complaint) of one combination."""
    status, drawn, plain, said = compile_plain(bench, drawn)
    if status in (USAGE, UNSUPPORTED) and first_error(said):
        return "refused", ""
    if status:
        return "", f"exit {status}: {first_error(said)}"
    start = [*bench.record.run_flags(), "--on-nonfinite=continue", *drawn.runs]
    whole = train_or_skip(bench, plain, steps, *start)
    fitted, most, complaint = compile_fitted(bench, drawn.flags, drawn.plan)
    if complaint:
        return "", complaint
    run = train_or_skip(bench, fitted, steps, *start, *drawn.careless)
    if not run or not whole:
        return "equal, not finite", "" if run is whole else "of the two runs one skips every step"
    if run.planned != run.allocated or run.allocated > most:
        return "", f"planned {run.planned}, allocated {run.allocated}, budget {most}"
    if wrong := difference(run, whole):
        return "", f"{wrong}, which the step without a budget gives"
    if not all(map(math.isfinite, whole.losses)) or not whole.saved:
        return "equal, not finite", ""
    wrong = compare_resumed(bench, drawn, steps, (plain, fitted), whole, start) or compare_entries(bench, drawn, (plain, fitted), start)
    if not wrong and "emulated" in value_of(drawn.flags, "--target"):
        wrong = compare_targets(bench, drawn, steps, whole, start)
    return "equal", wrong


def trial(bench, options):
    seen, complaints = collections.Counter(), []
    bench.given = options.flags  # entries are drawn, too
    # What a run starts from has the pairs that the record's own flags add.
    fixed = [*bench.given, "--lora"] if bench.record.run_flags() else bench.given
    for i, drawn in draws_of(bench, options, fixed, options.steps):
        try:
            happened, complaint = compare(bench, options.steps, drawn)
        except Broken as broken:
            complaint = str(broken)
        if complaint:
            complaints.append(f"draw {i}, {' '.join(drawn.flags)} | {' '.join(drawn.plan)} | {' '.join(drawn.runs + drawn.careless)}: {complaint}")
        else:
            seen[happened] += 1
    return "\n      ".join(complaints), ", ".join(f"{count} {what}" for what, count in sorted(seen.items()))


def add_flags(parser):
    add_draw_flags(parser, draws=4)
    parser.add_argument("--steps", type=int, default=3, help="steps of each run (3)")


def main(argv):
    return run_trials("combinations", __doc__, argv, trial, add_flags)
