"""Tables updated in the rows that a batch names, in whole runs: sparse_updates.py <work folder>, with the tools on the path.

Where the rule is exact, losses, parameters and state have the bits of whole gradients, on any number of threads. A table is
read twice, places repeat within a batch and between lookups, and some of its elements are -0. Where something reads the
gradient as a whole, the step is that of whole gradients. The losses of PyTorch's SparseAdam: `sparse_updates.py torch`
prints them (needs torch).
"""

import json
import pathlib
import sys

import numpy as np
from tools import tool

ROWS, WIDTH, BATCH, STEPS = 6000, 16, 8, 3
MODEL = """<ir_version: 10, opset_import: ["" : 20], producer_name: "hand", producer_version: "1.0">
lookup (int64[8,5] first, int64[8,3] second, float[8,16] target) => (float loss)
<float[6000,16] table = {TABLE}, float[16,16] w = {W}>
{
  a = Gather(table, first)
  b = Gather(table, second)
  axes = Constant<value_ints = [1]>()
  sum_a = ReduceSum<keepdims = 0>(a, axes)
  squared = Mul(b, b)
  sum_b = ReduceSum<keepdims = 0>(squared, axes)
  both = Add(sum_a, sum_b)
  made = MatMul(both, w)
  away = Sub(made, target)
  errors = Mul(away, away)
  loss = ReduceMean<keepdims = 0>(errors)
}
"""
WHOLE = {
    "--clip-norm=1": "clipping or loss scaling reads it as a whole",
    "--clip-value=1": "clipping or loss scaling reads it as a whole",
    "--loss-scale=dynamic": "clipping or loss scaling reads it as a whole",
    "--micro-batches=2": "micro-batches add it up",
    "--weight-decay=0.1": "weight decay changes every row",
    "--group=table:weight_decay=0.1": "weight decay changes every row",
    "--momentum=0.9": "momentum changes every row",
}
SPARSE_ADAM = (1.5503969192504883, 2.117384195327759, 1.2877956628799438)
EXACT = (["--optimizer=sgd", "--lr=0.1"], ["--optimizer=adagrad", "--lr=0.1"], ["--optimizer=sgd", "--lr=0.1", "--precision=mixed-bf16"])


def make_data():
    """(arrays of the data, the table, the matrix)"""
    random = np.random.default_rng(3)
    arrays = {"first": random.integers(0, 40, (4 * BATCH, 5)), "second": random.integers(20, ROWS, (4 * BATCH, 3)),
              "target": random.normal(0, 1, (4 * BATCH, WIDTH)).astype("f4")}  # fmt: skip
    table, w = (np.round(random.normal(0, 0.3, (count, WIDTH)), 4) for count in (ROWS, WIDTH))
    table[::3, ::5] = -0.0
    return arrays, table, w


def print_sparse_adam():
    import torch

    arrays, table, w = make_data()
    table, w = (torch.nn.Parameter(torch.tensor(v, dtype=torch.float32)) for v in (table, w))
    optimizers = torch.optim.SparseAdam([table], lr=0.1), torch.optim.Adam([w], lr=0.1)
    losses = []
    for step in range(STEPS):
        first, second, target = (torch.from_numpy(arrays[n][step * BATCH : (step + 1) * BATCH]) for n in ("first", "second", "target"))
        a, b = (torch.nn.functional.embedding(i, table, sparse=True) for i in (first, second))
        loss = (((a.sum(1) + (b * b).sum(1)) @ w - target) ** 2).mean()
        losses.append(loss.item())
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    print(tuple(losses))


def main():
    if sys.argv[1] == "torch":
        return print_sparse_adam()
    work = pathlib.Path(sys.argv[1])
    arrays, table, w = make_data()
    np.savez(work / "data.npz", **arrays)

    def numbers(array):
        return "{" + ", ".join(f"{v:.4f}" for v in array.flat) + "}"

    (work / "model.onnxtxt").write_text(MODEL.replace("{TABLE}", numbers(table)).replace("{W}", numbers(w)))
    tool("lowtide-translate", "--onnx-text-to-onnx", work / "model.onnxtxt", "-o", work / "model.onnx")

    def run(name, *flags, threads=2):
        folder = work / name
        folder.mkdir()
        said = tool("lowtide", "compile", work / "model.onnx", "-o", folder / "step.tide", "--entries=train", "-v", *flags)
        tool("lowtide-run", folder / "step.tide", f"--data={work / 'data.npz'}", f"--steps={STEPS}", f"--threads={threads}",
             f"--log-jsonl={folder / 'log'}", f"--save={folder / 'saved'}", "--quiet")  # fmt: skip
        losses = [line["loss"] for line in map(json.loads, (folder / "log").read_text().splitlines()) if "step" in line and "loss" in line]
        saved = {f.name: f.read_bytes() for f in sorted((folder / "saved").rglob("*.safetensors"))}
        return losses, saved, said

    for number, flags in enumerate(EXACT):
        whole = run(f"whole{number}", *flags, "--sparse-updates=off")
        for threads in (1, 3):
            rows = run(f"rows{number}-{threads}", *flags, threads=threads)
            assert "table is updated in the 64 of 6000 rows" in rows[2], rows[2]
            assert rows[0] == whole[0] and len(set(rows[0])) == STEPS, (flags, rows[0], whole[0])
            assert rows[1] == whole[1] and rows[1], (flags, sorted(rows[1]))
    for flag, reason in WHOLE.items():
        fitted = []
        for rule in ("exact", "off"):
            text = work / f"{rule}.mlir"
            said = tool("lowtide", "compile", work / "model.onnx", "--emit=fitted", "-o", text, "--optimizer=sgd", "-v", f"--sparse-updates={rule}", flag)
            assert rule == "off" or f"table keeps its gradient of 375.00 KiB whole: {reason}" in said, (flag, said)
            fitted.append(text.read_text())
        assert fitted[0] == fitted[1], flag
    dense = run("dense", "--optimizer=adam", "--lr=0.1")
    assert "table keeps its gradient of 375.00 KiB whole: adam changes every row" in dense[2], dense[2]
    lazy = run("lazy", "--optimizer=adam", "--lr=0.1", "--sparse-updates")
    assert "table is updated in the 64 of 6000 rows" in lazy[2] and np.allclose(lazy[0], SPARSE_ADAM, rtol=1e-5, atol=0), lazy
    print("tables are updated in rows")


if __name__ == "__main__":
    main()
