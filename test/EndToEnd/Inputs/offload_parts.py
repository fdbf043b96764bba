"""Trains models in micro-batches with the sums of their gradients on the device and in another memory, and compares losses and
what is saved, bit for bit.

Arguments: the folder of recorded models, a folder to work in; `more`: the trials of the whole check.
"""

import subprocess
import sys

from offload_trials import MODELS, WORK, compare, train

FILE, PINNED = "--disk-budget=1GiB", "--host-budget=1GiB"


def compile(name, model, *flags):
    done = subprocess.run(["lowtide", "compile", MODELS / model, "-o", WORK / name, "--optimizer=adamw", "--entries=train", *flags],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return WORK / name


def trial(title, model, parts, budget, room, *flags):
    """The artifacts without a budget and with one."""
    flags = [f"--micro-batches={parts}", *flags]
    if room == PINNED:
        flags.append("--target=cuda-emulated")
    name = title.replace(" ", "-").replace(",", "")
    whole = compile(f"{name}-whole.tide", model, *flags)
    moved = compile(f"{name}.tide", model, *flags, f"--device-budget={budget}", room)
    figures = compare(title, whole, moved, model=(MODELS / model).parent)
    assert figures["planned_bytes"] == figures["allocated_bytes"] <= budget, figures
    return whole, moved


def resume(title, whole, moved):
    """Two steps, then two more from what was saved."""
    losses, saved, _ = train(whole)
    train(moved, steps=2)
    others, again, _ = train(moved, f"--resume={moved.with_suffix('')}", steps=2)
    print(f"{title}, resumed: {'same' if losses[2:] == others and saved == again else 'different'}")


gpt, resnet = "gpt-tiny/model.onnx", "resnet-tiny/model.onnx"
# Without sums elsewhere the smallest plans of gpt-tiny need 528,576, 460,672 and 761,792 bytes.
if sys.argv[3:] == ["more"]:
    trial("gpt-tiny, 4 parts, cuda-emulated", gpt, 4, 300000, PINNED, "--batch=4")
    whole, moved = trial("gpt-tiny, 2 parts, deferred updates", gpt, 2, 350000, FILE, "--batch=2", "--updates=deferred")
    resume("gpt-tiny, 2 parts, deferred updates", whole, moved)
    # Sums of less than 16 KiB stay on the device.
    trial("resnet-tiny, 4 parts, cpu", resnet, 4, 192640, FILE, "--batch=4")
    trial("resnet-tiny, 4 parts, cuda-emulated", resnet, 4, 172480, PINNED, "--batch=4")
    trial("rnn-tiny, 2 parts, cpu", "rnn-tiny/default.onnx", 2, 125568, FILE, "--batch=4")
else:
    whole, moved = trial("gpt-tiny, 2 parts, cpu", gpt, 2, 345000, FILE, "--batch=2")
    resume("gpt-tiny, 2 parts, cpu", whole, moved)
