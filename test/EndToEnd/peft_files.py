"""Adapters go to PEFT and come from there: peft_files.py <binaries> [<model>...]; in the environment "peft". Prints rows as JSON.

The models of test/models/adapters.py are made anew. Our run of each agrees with PEFT's; what it saves PEFT loads, and computes
the same loss and the same merged weights with it; what PEFT saves after its own training our step evaluates to PEFT's loss.
"""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test" / "models"), str(ROOT / "tools")]
warnings.filterwarnings("ignore")
import adapters  # noqa: E402
import peft  # noqa: E402
from devkit import record as rules  # noqa: E402
from devkit.tensors import read_safetensors  # noqa: E402

torch.set_num_threads(1)
adapters.recording.NUDGES = (None, 1)  # two runs for a band are enough: more only widen it
binaries = pathlib.Path(sys.argv[1]).resolve()


def call(program, *arguments):
    done = subprocess.run([binaries / program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def loss_of(model, data):
    inputs = [name for name in data if name != "labels"]
    with torch.no_grad():
        return float(adapters.Tuned(model, inputs)(**{k: torch.from_numpy(v) for k, v in data.items()}))


def saved(folder):
    return folder / (folder / "latest").read_text().strip()


def check(name, work):
    folder = work / name
    with contextlib.redirect_stdout(io.StringIO()):
        base, tuned = adapters.made(name, adapters.MODELS[name], folder)
    with numpy.load(folder / "data.npz") as loaded:
        data = {k: loaded[k] for k in loaded.files}
    recorded = rules.Record(folder)
    step, run = work / "step.tide", [f"--data={folder / 'data.npz'}", "-q"]
    call("lowtide", "compile", folder / "model.onnx", "-q", "-o", step, *recorded.compiler_flags(folder / "model.onnx"))
    log, exported = work / "log.jsonl", work / "merged.onnx"
    call("lowtide-run", step, *run, "--steps=20", f"--init={folder / 'adapter'}", f"--save={work / 'saved'}", "--overwrite", f"--log-jsonl={log}",
         f"--export={exported}", f"--model={folder / 'model.onnx'}", "--merge-lora")  # fmt: skip
    losses = [row["loss"] for row in map(json.loads, log.read_text().splitlines()) if "step" in row and "loss" in row]
    worst, at = rules.worst_loss(losses, *recorded.loss_bounds("f32"))
    yield f"{name}: its run", "" if worst <= 1 else f"loss of step {at}: {losses[at]}"

    evaluate = lambda *more: float(call("lowtide-run", step, *run, "--entry=eval", *more).split("loss ")[1].split()[0])  # noqa: E731
    ours = evaluate(f"--resume={work / 'saved'}")
    theirs = peft.PeftModel.from_pretrained(adapters.copy.deepcopy(base), saved(work / "saved"))
    loss = loss_of(theirs, data)
    yield f"{name}: PEFT loads ours", "" if abs(loss - ours) <= 2e-5 * ours else f"PEFT's loss {loss}, ours {ours}"

    call("lowtide", "compile", exported, "-q", "-o", work / "whole.tide", "--batch=8", "--loss=cross_entropy(logits, labels)")
    call("lowtide-run", work / "whole.tide", *run, "--steps=0", f"--save={work / 'merged'}", "--overwrite")
    weights, wrong = read_safetensors(saved(work / "merged") / "params.safetensors"), []
    merged = theirs.merge_and_unload().state_dict()
    for weight, array in weights.items():
        expected = merged[weight].numpy()
        if expected.shape != array.shape:  # positions: the exporter kept the rows that it needs
            expected = expected[: array.shape[1]][None]
        if abs(array - expected).max() > 1e-6 * abs(expected).max() + 1e-7:
            wrong.append(weight)
    yield f"{name}: merged weights", ", ".join(wrong) or ("" if len(weights) > 10 else "few weights")

    tuned.save_pretrained(work / "theirs")
    loss, ours = loss_of(tuned, data), evaluate(f"--init={work / 'theirs'}")
    yield f"{name}: ours loads PEFT's", "" if abs(loss - ours) <= 2e-5 * ours else f"PEFT's loss {loss}, ours {ours}"


rows = []
for model in sys.argv[2:] or adapters.MODELS:
    with tempfile.TemporaryDirectory(prefix="lowtide-peft-") as scratch:
        for name, complaint in check(model, pathlib.Path(scratch)):
            rows.append({"name": name, "complaint": complaint})
            print(f"{name}: {complaint or 'ok'}", file=sys.stderr)
json.dump(rows, sys.stdout, indent=0)
