"""Steps in micro-batches with a plan and with another, for the scripts next to this one; arguments as of offload_trials."""

import subprocess

from offload_trials import MODELS, WORK, compare, train

FILE, PINNED = "--disk-budget=1GiB", "--host-budget=1GiB"


def compile(name, model, *flags):
    done = subprocess.run(["lowtide", "compile", MODELS / model, "-o", WORK / name, "--optimizer=adamw", "--entries=train", *flags],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return WORK / name


def trial(title, model, parts, budget, room, *flags, plan=()):
    """The artifacts without a budget and with one; `plan`: flags that change no bit, of the second."""
    flags = [f"--micro-batches={parts}", *flags]
    if room == PINNED:
        flags.append("--target=cuda-emulated")
    name = title.replace(" ", "-").replace(",", "")
    whole = compile(f"{name}-whole.tide", model, *flags)
    moved = compile(f"{name}.tide", model, *flags, f"--device-budget={budget}", room, *plan)
    figures = compare(title, whole, moved, model=(MODELS / model).parent)
    assert figures["planned_bytes"] == figures["allocated_bytes"] <= budget, figures
    return whole, moved


def resume(title, whole, moved):
    """Two steps, then two more from what was saved."""
    losses, saved, _ = train(whole)
    train(moved, steps=2)
    others, again, _ = train(moved, f"--resume={moved.with_suffix('')}", steps=2)
    print(f"{title}, resumed: {'same' if losses[2:] == others and saved == again else 'different'}")
