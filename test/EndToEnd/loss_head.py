"""A loss of many classes in pieces, in whole runs: used by behaviour.py.

Losses and parameters have the same bits in however many pieces; in f64 they are those of the graph that holds its logits.
Also where most labels are ignored, classes have weights, and the product has a bias.
"""

import hashlib
import json

import numpy as np
from scaling import tool

# One piece; whole tiles; counts that divide nothing; more than there are tiles.
COUNTS = ("1", "2", "3", "4", "7", "1000")
STEPS = 4


def numbers(random, *shape):
    values = ", ".join(f"{v:.6f}" for v in random.normal(0, 0.2, int(np.prod(shape))))
    return f"float[{','.join(map(str, shape))}]", "{" + values + "}"


def masked_labels(binaries, work, weighted=False, length=16, classes=80):
    """A model of masked words with its data: (model, data, flags)."""
    random = np.random.default_rng(7)
    parameters = {"table": (80, 24), "w": (24, 24), "wb": (24,), "head": (24, classes), "head_b": (classes,)}
    if weighted:
        parameters["class_weights"] = (classes,)
    text = '<ir_version: 10, opset_import: ["" : 20], producer_name: "hand", producer_version: "1.0">\n'
    text += f"masked (int64[batch,{length}] ids, int64[batch,{length}] labels) => (float loss)\n<"
    text += ",\n ".join(f"{type_} {name} = {values}" for name, shape in parameters.items() for type_, values in [numbers(random, *shape)])
    weights = ", class_weights" if weighted else ""
    text += f""">
{{
  words = Gather(table, ids)
  mixed = MatMul(words, w)
  biased = Add(mixed, wb)
  hidden = Tanh(biased)
  product = MatMul(hidden, head)
  logits = Add(product, head_b)
  classes_second = Transpose<perm = [0, 2, 1]>(logits)
  loss = SoftmaxCrossEntropyLoss<ignore_index = -100, reduction = "mean">(classes_second, labels{weights})
}}
"""
    (work / "masked.onnxtxt").write_text(text)
    tool(binaries / "lowtide-translate", "--onnx-text-to-onnx", work / "masked.onnxtxt", "-o", work / "masked.onnx")
    ids = random.integers(0, 80, (8, length))
    labels = np.where(random.random((8, length)) < 0.15, random.integers(0, classes, (8, length)), -100)
    labels[:, 0] = ids[:, 0]
    np.savez(work / "masked.npz", ids=ids, labels=labels)
    flags = ["--batch=8", "--optimizer=adamw", "--lr=0.01"]
    return work / "masked.onnx", work / "masked.npz", flags + (["--frozen=class_weights"] if weighted else [])


def run(binaries, model, data, flags, folder):
    """(losses, digest of the parameters) of a few steps."""
    folder.mkdir(parents=True)
    tool(binaries / "lowtide", "compile", model, "-o", folder / "step.tide", "--entries=train", "-q", *flags)
    tool(binaries / "lowtide-run", folder / "step.tide", f"--data={data}", f"--steps={STEPS}", f"--log-jsonl={folder / 'log'}",
         f"--save={folder / 'saved'}", "--quiet")  # fmt: skip
    saved = max((folder / "saved").rglob("params.safetensors"), key=lambda path: path.stat().st_mtime_ns)
    rows = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    return [row["loss"] for row in rows if "loss" in row and "step" in row], hashlib.sha256(saved.read_bytes()).hexdigest()


def compare(binaries, model, data, flags, work):
    """A complaint, or nothing."""
    pieces = {n: run(binaries, model, data, [*flags, f"--loss-head-chunks={n}"], work / f"n{n}") for n in COUNTS}
    for count, outcome in pieces.items():
        if outcome != pieces["1"]:
            return f"{count} pieces give {outcome[0]}, one gives {pieces['1'][0]} (or other parameters)"
    exact = [*flags, "--target=reference", "--precision=f64"]
    whole = run(binaries, model, data, [*exact, "--loss-head-chunks=off"], work / "whole")[0]
    parted = run(binaries, model, data, [*exact, "--loss-head-chunks=3"], work / "parted")[0]
    worst = max(abs(a - b) / abs(a) for a, b in zip(whole, parted, strict=True))
    return "" if worst < 1e-12 else f"in f64, losses differ by {worst:.1e} from those of the graph that holds its logits"


def in_parts(binaries, model, data, flags, work):
    """Parts of the batch count by their labels that are not ignored, of which each has another number: a complaint, or nothing."""
    exact = [*flags, "--target=reference", "--precision=f64"]
    whole = run(binaries, model, data, exact, work / "whole_batch")[0]
    for parts in (2, 4):
        parted = run(binaries, model, data, [*exact, f"--micro-batches={parts}"], work / f"parts{parts}")[0]
        worst = max(abs(a - b) / abs(a) for a, b in zip(whole, parted, strict=True))
        if worst > 1e-12:
            return f"in f64, losses of {parts} micro-batches differ by {worst:.1e} from those of the whole batch"
    return ""


def masked(binaries, work):
    # 8 x 127 rows fall into no tiles of a few rows.
    cases = {"plain": {}, "with class weights": {"weighted": True}, "of rows that no tile divides": {"length": 127, "classes": 600}}
    for name, form in cases.items():
        folder = work / name.replace(" ", "-")
        folder.mkdir()
        given = masked_labels(binaries, folder, **form)
        complaint = compare(binaries, *given, folder) or in_parts(binaries, *given, folder)
        if complaint:
            return f"{name}: {complaint}"
    return ""
