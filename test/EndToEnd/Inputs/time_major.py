"""A recurrence that walks over time first, next to its twin that reads samples first: the same losses, bit for bit.

Argument: a folder to work in.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))

from devkit.tensors import read_safetensors  # noqa: E402

WORK = pathlib.Path(sys.argv[1])
TIME, FEATURES, HIDDEN, CLASSES, ROWS, BATCH = 5, 6, 7, 3, 18, 4


def model(name, is_time_major, batch="N", drops=False):
    """`RNN`, whose last state a layer reads; the loss is in the file."""
    draw = np.random.default_rng(1)

    def tensor(name, *shape):
        values = draw.standard_normal(shape).astype("float32").ravel()
        return f"float[{','.join(map(str, shape))}] {name} = {{{', '.join(f'{value:.9g}' for value in values)}}}"

    weights = [tensor("w", 1, HIDDEN, FEATURES), tensor("r", 1, HIDDEN, HIDDEN), tensor("head_weight", HIDDEN, CLASSES)]
    shape = f"{TIME},{batch},{FEATURES}" if is_time_major else f"{batch},{TIME},{FEATURES}"
    text = f"""<ir_version: 10, opset_import: ["" : 20]>
    g (float[{shape}] x, int64[{batch}] y) => (float loss) <{', '.join(weights)}, int64[1] axes = {{0}}> {{
      dropped = {'Dropout(x, ratio, training)' if drops else 'Identity(x)'}
      steps = {'Identity' if is_time_major else 'Transpose<perm = [1, 0, 2]>'}(dropped)
      states, last = RNN<hidden_size = {HIDDEN}>(steps, w, r)
      state = Squeeze(last, axes)
      logits = MatMul(state, head_weight)
      loss = SoftmaxCrossEntropyLoss(logits, y)
    }}"""
    if drops:
        text = text.replace("axes = {0}>", "axes = {0}, float ratio = {0.25}, bool training = {1}>")
    (WORK / "model.onnxtxt").write_text(text)
    subprocess.run(["lowtide-translate", "--onnx-text-to-onnx", WORK / "model.onnxtxt", "-o", WORK / name], check=True)


def losses(model, data, *flags, compiled=()):
    artifact, log = WORK / "step.tide", WORK / "log.jsonl"
    subprocess.run(["lowtide", "compile", WORK / model, "-o", artifact, f"--batch={BATCH}", "--optimizer=sgd", "--lr=0.5", "-q", *compiled], check=True)
    subprocess.run(["lowtide-run", artifact, f"--data={data}", "--steps=9", f"--log-jsonl={log}", "-q", *flags], check=True)
    return [row["loss"] for row in map(json.loads, log.read_text().splitlines()) if "loss" in row]


model("time.onnx", is_time_major=True)
model("rows.onnx", is_time_major=False)
model("fixed.onnx", is_time_major=True, batch=BATCH)
model("time-drops.onnx", is_time_major=True, drops=True)
model("rows-drops.onnx", is_time_major=False, drops=True)
draw = np.random.default_rng(2)
x, y = draw.standard_normal((ROWS, TIME, FEATURES)).astype("float32"), draw.integers(0, CLASSES, ROWS)
np.savez(WORK / "rows.npz", x=x, y=y)
np.savez(WORK / "there.npz", x=np.moveaxis(x, 0, 1), y=y)
np.savez(WORK / "wide.npz", x=x.astype("float64"), y=y.astype("int8"))
np.savez(WORK / "bad.npz", x=np.moveaxis(x, 1, 2), y=y)
for i, part in enumerate((slice(0, 7), slice(7, ROWS))):
    np.savez(WORK / f"part-{i}.npz", x=x[part], y=y[part])
# One batch as the model reads it, and what the twin makes of it.
dumped = WORK / "gradients.safetensors"
loss = losses("rows.onnx", WORK / "rows.npz", f"--dump-gradients={dumped}", compiled=["--precision=f64", "--entries=train,gradient"])[:1]
gradients = {name.replace("grad/", "gradient/"): value for name, value in read_safetensors(dumped).items()}
np.savez(WORK / "record.npz", loss=loss, **gradients, **{"input/x": np.moveaxis(x[:BATCH], 0, 1), "input/y": y[:BATCH]})
for target in ("cpu", "cuda-emulated"):
    flags = [f"--target={target}"]
    whole = losses("rows.onnx", WORK / "rows.npz", compiled=flags)
    shuffled = losses("rows.onnx", WORK / "rows.npz", "--shuffle=3", compiled=flags)
    assert len(whole) == 9 and len(set(whole)) == 9 and shuffled != whole, (whole, shuffled)
    for data in ("rows.npz", "there.npz", "wide.npz", "part-*.npz"):
        found = losses("time.onnx", WORK / data, compiled=flags), losses("time.onnx", WORK / data, "--shuffle=3", compiled=flags)
        print(f"{target}, {data}: {'same' if found == (whole, shuffled) else found}")
    parts = [*flags, "--micro-batches=2"]
    print(f"{target}, in parts: {'same' if losses('time.onnx', WORK / 'rows.npz', compiled=parts) == losses('rows.onnx', WORK / 'rows.npz', compiled=parts) else 'different'}")
    print(f"{target}, fixed: {'same' if losses('fixed.onnx', WORK / 'rows.npz', compiled=flags) == whole else 'different'}")
    drops = losses("rows-drops.onnx", WORK / "rows.npz", compiled=flags)
    assert drops != whole, drops
    print(f"{target}, dropout: {'same' if losses('time-drops.onnx', WORK / 'rows.npz', compiled=flags) == drops else 'different'}")
    drops = losses("rows-drops.onnx", WORK / "rows.npz", compiled=parts)
    print(f"{target}, dropout in parts: {'same' if losses('time-drops.onnx', WORK / 'rows.npz', compiled=parts) == drops else 'different'}")
