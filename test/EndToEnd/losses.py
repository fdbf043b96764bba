"""Every form of --loss against PyTorch's losses and gradients: losses.py <losses.json> <scores.onnxtxt> <scratch>; needs numpy."""

import json
import pathlib
import struct
import subprocess
import sys

import numpy

LOSS, GRADIENT = 2e-6, 5e-6  # relative to the largest: f32 arithmetic in another order

recorded = json.loads(pathlib.Path(sys.argv[1]).read_text())
scratch = pathlib.Path(sys.argv[3])
scratch.mkdir(parents=True, exist_ok=True)
subprocess.run(["lowtide-translate", "--onnx-text-to-onnx", sys.argv[2], "-o", scratch / "scores.onnx"], check=True)
arrays = {k: numpy.array(v, numpy.int64 if k in ("labels", "masked") else numpy.float32) for k, v in recorded["data"].items()}
numpy.savez(scratch / "data.npz", **arrays)

worst = {}
for text, run in recorded["runs"].items():
    flags = ["--batch=4", f"--loss={text}", "--optimizer=sgd", "--entries=train,gradient", "-q"]
    subprocess.run(["lowtide", "compile", scratch / "scores.onnx", "-o", scratch / "step.tide", *flags, *sys.argv[4:]], check=True)
    subprocess.run(["lowtide-run", scratch / "step.tide", f"--data={scratch / 'data.npz'}", "--steps=1", "-q",
                    f"--dump-gradients={scratch / 'gradients'}", f"--log-jsonl={scratch / 'log'}"], check=True)  # fmt: skip
    loss = [row["loss"] for row in map(json.loads, (scratch / "log").read_text().splitlines()) if "loss" in row and "step" in row][0]
    raw = (scratch / "gradients").read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    entry = next(v for k, v in json.loads(raw[8 : 8 + size]).items() if k.endswith("w"))
    begin, end = entry["data_offsets"]
    gradient = numpy.frombuffer(raw[8 + size + begin : 8 + size + end], numpy.float32)
    expected = numpy.array(run["gradient"])
    errors = abs(loss - run["loss"]) / abs(run["loss"]), abs(gradient - expected).max() / abs(expected).max()
    if errors[0] > LOSS or errors[1] > GRADIENT:
        worst[text] = f"loss {loss}, PyTorch's {run['loss']}; gradient off by {errors[1]:.1e}"
for text, complaint in worst.items():
    print(f"{text}: {complaint}")
print(f"{len(recorded['runs']) - len(worst)} of {len(recorded['runs'])} losses as PyTorch's")
sys.exit(bool(worst))
