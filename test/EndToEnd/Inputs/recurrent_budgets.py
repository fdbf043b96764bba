"""Recurrent layers over hundreds of steps under budgets: recurrent_budgets.py <folder>; or --record, with PyTorch.

Each layer is trained without a budget, in losses that PyTorch has on the same numbers (recurrent_budgets.json, which --record
prints), then under budgets down to the smallest, also in parts of the batch: losses and parameters have the same bits.
"""

import hashlib
import json
import pathlib
import subprocess
import sys

import numpy as np

BATCH, FEATURES, STEPS, RATE = 8, 6, 4, 0.5
#: kind → (gates, width, steps of time, layers, directions, whether sequences have lengths)
LAYERS = {
    "LSTM": (4, 16, 384, 1, 1, False),
    "LSTM of a prime number of steps": (4, 16, 397, 2, 1, False),
    "GRU in two directions": (3, 16, 540, 1, 2, False),
    "RNN": (1, 32, 1000, 1, 1, False),
    "LSTM with lengths": (4, 16, 384, 1, 2, True),
}  # fmt: skip


def numbers(name):
    """Arrays of a layer's model by name: parameters, then one batch."""
    gates, width, time, layers, directions, lengths = LAYERS[name]
    random = np.random.default_rng(len(name))
    arrays = {}
    for layer in range(layers):
        inputs = FEATURES if layer == 0 else directions * width
        for part, shape in {"w": (directions, gates * width, inputs), "r": (directions, gates * width, width), "b": (directions, 2 * gates * width)}.items():
            arrays[f"{part}{layer}"] = random.uniform(-0.25, 0.25, shape).astype(np.float32)
    batch = {"x": random.normal(0, 1, (time, BATCH, FEATURES)).astype(np.float32), "goal": random.normal(0, 1, (directions, BATCH, width)).astype(np.float32)}
    if lengths:
        batch["lengths"] = random.integers(time // 2, time, BATCH).astype(np.int32)
    return arrays, batch


def text(name):
    gates, width, time, layers, directions, lengths = LAYERS[name]
    arrays, _ = numbers(name)
    given = f"float[batch,{time},{FEATURES}] x, float[batch,{directions},{width}] goal" + (", int32[batch] lengths" if lengths else "")
    parameters = ",\n ".join(f"float[{','.join(map(str, a.shape))}] {n} = {{{', '.join(map(repr, map(float, a.ravel())))}}}" for n, a in arrays.items())
    nodes = ["steps = Transpose<perm = [1, 0, 2]>(x)"]
    for layer in range(layers):
        rows = "steps" if layer == 0 else f"rows{layer - 1}"
        direction = "bidirectional" if directions == 2 else "forward"
        nodes.append(f'y{layer}, h{layer} = {name.split()[0]}<hidden_size = {width}, direction = "{direction}"{", linear_before_reset = 1" if gates == 3 else ""}>({rows}, w{layer}, r{layer}, b{layer}{", lengths" if lengths else ""})')
        nodes.append(f"rows{layer} = Squeeze(y{layer}, one)" if directions == 1 else f"rows{layer} = Identity(y{layer})")
    return f"""<ir_version: 10, opset_import: ["" : 20], producer_name: "hand", producer_version: "1.0">
layer ({given}) => (float loss)
<int64[1] one = {{1}}, {parameters}>
{{
  {chr(10).join(nodes)}
  squares = Mul(y{layers - 1}, y{layers - 1})
  size = ReduceMean<keepdims = 0>(squares)
  last = Transpose<perm = [1, 0, 2]>(h{layers - 1})
  away = Sub(last, goal)
  aways = Mul(away, away)
  miss = ReduceMean<keepdims = 0>(aways)
  loss = Add(size, miss)
}}
"""


def losses_of_pytorch(name):
    import torch

    gates, width, time, layers, directions, lengths = LAYERS[name]
    arrays, batch = numbers(name)
    module = getattr(torch.nn, name.split()[0])(FEATURES, width, layers, bidirectional=directions == 2)
    # ONNX's number of each of PyTorch's gates.
    order = {4: [0, 2, 3, 1], 3: [1, 0, 2], 1: [0]}[gates]

    def turned(rows):
        return torch.from_numpy(rows.reshape(gates, width, *rows.shape[1:])[order].reshape(rows.shape))

    with torch.no_grad():
        for layer in range(layers):
            for d in range(directions):
                end = f"l{layer}" + ("_reverse" if d else "")
                getattr(module, f"weight_ih_{end}").copy_(turned(arrays[f"w{layer}"][d]))
                getattr(module, f"weight_hh_{end}").copy_(turned(arrays[f"r{layer}"][d]))
                half = gates * width
                getattr(module, f"bias_ih_{end}").copy_(turned(arrays[f"b{layer}"][d][:half]))
                getattr(module, f"bias_hh_{end}").copy_(turned(arrays[f"b{layer}"][d][half:]))
    module = module.double()
    x, goal = torch.from_numpy(batch["x"]).double(), torch.from_numpy(batch["goal"]).double()
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    found = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        if lengths:
            packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.from_numpy(batch["lengths"].astype(np.int64)), enforce_sorted=False)
            y, h = module(packed)
            y = torch.nn.utils.rnn.pad_packed_sequence(y, total_length=time)[0]
        else:
            y, h = module(x)
        h = h[0] if isinstance(h, tuple) else h
        loss = (y * y).mean() + ((h[-directions:] - goal) ** 2).mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def tool(*command):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} exits with {done.returncode}: {done.stderr[-600:]}")
    return done.stdout


def trained(model, folder, *flags):
    """(losses, digest of the parameters) of a few steps."""
    folder.mkdir(parents=True)
    tool("lowtide", "compile", model, "-o", folder / "step.tide", "--entries=train", "-q", *flags)
    tool("lowtide-run", folder / "step.tide", f"--data={model.with_suffix('.npz')}", f"--steps={STEPS}", f"--log-jsonl={folder / 'log'}", f"--save={folder / 'saved'}", "--quiet")
    saved = max((folder / "saved").rglob("params.safetensors"), key=lambda path: path.stat().st_mtime_ns)
    rows = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    return [row["loss"] for row in rows if "loss" in row and "step" in row], hashlib.sha256(saved.read_bytes()).hexdigest()


def check(name, recorded, folder):
    folder.mkdir(parents=True)
    model = folder / "layer.onnx"
    (folder / "layer.onnxtxt").write_text(text(name))
    tool("lowtide-translate", "--onnx-text-to-onnx", folder / "layer.onnxtxt", "-o", model)
    batch = numbers(name)[1]
    np.savez(model.with_suffix(".npz"), **{n: a if n == "lengths" else a.swapaxes(0, 1) for n, a in batch.items()})
    flags = [f"--batch={BATCH}", "--optimizer=sgd", f"--lr={RATE}"]
    table = json.loads(tool("lowtide", "fit", model, "--json", "--rows=9", "-q", "--entries=train", *flags))["entries"][0]
    forms = {plan.get("recomputed_steps", "none") for plan in table["plans"]}
    for parts in (1, 2):
        more = [*flags, f"--micro-batches={parts}"]
        plans = table["plans"] if parts == 1 else json.loads(tool("lowtide", "fit", model, "--json", "--rows=3", "-q", "--entries=train", *more))["entries"][0]["plans"]
        whole = trained(model, folder / f"whole{parts}", *more)
        worst = max(abs(a / b - 1) for a, b in zip(whole[0], recorded, strict=True))
        if worst > 1e-5:
            return f"{parts} parts: losses {whole[0]}, PyTorch's are {recorded}"
        budgets = sorted({plan["budget_bytes"] for plan in plans})
        for budget in budgets[: -1 : 4] + budgets[1:2]:
            if trained(model, folder / f"b{parts}-{budget}", *more, f"--device-budget={budget}") != whole:
                return f"{parts} parts: other losses or parameters under a budget of {budget} bytes"
    share = table["smallest_bytes"] / table["largest_bytes"]
    return f"same, PyTorch's losses, forms {' '.join(sorted(forms))}, smallest below 70 %: {share < 0.7}"


def main(folder):
    recorded = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())
    for number, name in enumerate(LAYERS):
        print(f"{name}: {check(name, recorded[name], pathlib.Path(folder) / str(number))}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--record":
        print(json.dumps({name: losses_of_pytorch(name) for name in LAYERS}, indent=2))
    else:
        main(sys.argv[1])
