"""Loss scaling and clipping of whole runs beside PyTorch: used by behaviour.py.

A step whose gradients are given (the loss is Σ w·g over three layers) replays what torch.amp.GradScaler made of them, with
infinities and NaN in one layer or several: scale, growth tracker and skipped steps are the same at every step, parameters
to f32 tolerance; also when the run is stopped and resumed, and when a step is computed in parts.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np

INPUTS = pathlib.Path(__file__).resolve().parent / "Inputs"
sys.path.insert(0, str(INPUTS))
import grad_scaler as recorded  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from devkit.tensors import read_safetensors  # noqa: E402


def tool(*command):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise ValueError(f"{pathlib.Path(command[0]).name} exit {done.returncode}: {done.stderr.strip()[-500:]}")


def compiled(binaries, work, *flags, batch=1):
    np.savez(work / "data.npz", **{f"g_{name}": array for name, array in recorded.gradients().items()})
    model, artifact = work / "sum.onnx", work / "sum.tide"
    tool(binaries / "lowtide-translate", "--onnx-text-to-onnx", INPUTS / "weighted_sum.onnxtxt", "-o", model)
    tool(binaries / "lowtide", "compile", model, "-o", artifact, f"--dim=batch={batch}", "--optimizer=adam", f"--lr={recorded.LR}",
         "--entries=train", *flags)  # fmt: skip
    return artifact


def steps_of(binaries, artifact, work, first, last, *flags):
    log = work / f"run{first}.jsonl"
    tool(binaries / "lowtide-run", artifact, f"--data={work / 'data.npz'}", f"--steps={last - first}", f"--log-jsonl={log}",
         f"--save={work / 'saved'}", "--quiet", *flags)  # fmt: skip
    return [json.loads(line) for line in log.read_text().splitlines()][1:]


def difference(work, theirs):
    """What the newest checkpoint holds beyond f32 tolerance of the recorded parameters; empty if nothing."""
    newest = max((work / "saved").rglob("params.safetensors"), key=lambda path: path.stat().st_mtime_ns)
    ours = read_safetensors(newest)
    for name, values in theirs.items():
        if not np.allclose(ours[name].reshape(-1), values, rtol=1e-5, atol=1e-6):
            return f"'{name}' is {ours[name].reshape(-1).tolist()}, recorded {values}"
    return ""


def replay(binaries, work, kind, parts, *flags):
    """All steps in pieces, each resumed where the one before was saved, beside the trace `kind` of the record."""
    expected = json.loads((INPUTS / "grad_scaler.json").read_text())
    scale = f"--loss-scale=dynamic,init={recorded.INITIAL!r},interval={recorded.INTERVAL}"
    artifact = compiled(binaries, work, scale, *flags, batch=parts)
    count = recorded.STEPS // parts
    steps, pieces = [], [0, 200, 400, 1000, *([count] if count > 1000 else [])]
    for first, last in zip(pieces, pieces[1:]):
        steps += steps_of(binaries, artifact, work, first, last, *([f"--resume={work / 'saved'}"] if first else []))
        if wrong := difference(work, expected[f"{kind}/params_every_200"][last // 200 - 1]):
            return f"parameters after {last} steps: {wrong}"
    for i, step in enumerate(steps):
        ours = (step["loss_scale"], step["growth_tracker"], step["skipped_steps"])
        theirs = (2.0 ** expected[f"{kind}/scale_log2"][i], expected[f"{kind}/growth_tracker"][i], expected[f"{kind}/skipped"][i])
        if ours != theirs:
            return f"step {i}: scale, tracker, skipped are {ours}, GradScaler's {theirs}"
    return "" if len(steps) == count else f"{len(steps)} steps of {count}"


def grad_scaler(binaries, work):
    return replay(binaries, work, "whole", 1)


def grad_scaler_in_parts(binaries, work):
    """An infinity in one part skips the whole step; scaled gradients are added up."""
    return replay(binaries, work, "accumulated", 2, "--micro-batches=2")


def clipping(binaries, work):
    """Unscale, clip by value, clip by norm, update: in this order, and skipped where GradScaler skips."""
    expected = json.loads((INPUTS / "grad_scaler.json").read_text())
    artifact = compiled(binaries, work, f"--loss-scale=dynamic,interval={recorded.INTERVAL}", f"--clip-value={recorded.CLIP_VALUE}",
                        f"--clip-norm={recorded.CLIP_NORM}")  # fmt: skip
    steps = steps_of(binaries, artifact, work, 0, recorded.CLIPPED_STEPS)
    for i, (step, norm) in enumerate(zip(steps, expected["clipped/norm"], strict=True)):
        if norm is not None and abs(step["grad_norm"] - norm) > 1e-5 * norm:
            return f"norm of step {i}: {step['grad_norm']}, PyTorch's {norm}"
    return difference(work, expected["clipped/params"])
