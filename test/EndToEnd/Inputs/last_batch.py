"""A last batch of a model whose inputs begin with a symbol each, as exporters name them: last_batch.py <work folder>, with the tools
on the path.

Losses are those of a linear layer trained here by SGD on 8 rows and then on 3. What `lowtide fit` tells with the flag is taken by
`lowtide compile`, and a byte less is refused.
"""

import json
import pathlib
import sys

import numpy as np
from tools import tool

WHOLE, LAST, RATE = 8, 3, 0.1
MODEL = """<ir_version: 10, opset_import: ["" : 20]>
rows (float[rows_of_x,4] x, float[rows_of_y,2] y) => (float loss) <float[4,2] w = {{{}}}> {{
  p = MatMul(x, w)
  away = Sub(p, y)
  errors = Mul(away, away)
  loss = ReduceMean<keepdims = 0>(errors)
}}
"""
# Rows that edges name are not rows of samples.
GRAPH = """<ir_version: 10, opset_import: ["" : 20]>
graph (float[nodes,4] x, int64[edges] e) => (float loss) <float[4,2] w = {{{}}}> {{
  p = MatMul(x, w)
  q = Gather(p, e)
  errors = Mul(q, q)
  loss = ReduceMean<keepdims = 0>(errors)
}}
"""
MOST = """<ir_version: 10, opset_import: ["" : 20]>
most (float[rows,4] x) => (float loss) <float[4,2] w = {{{}}}> {{
  k = Constant<value_ints = [2]>()
  best, at = TopK<axis = 0>(x, k)
  p = MatMul(best, w)
  errors = Mul(p, p)
  loss = ReduceMean<keepdims = 0>(errors)
}}
"""

work = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(3)
w = rng.standard_normal((4, 2)).astype("f4")
x, y = rng.standard_normal((WHOLE + LAST, 4)).astype("f4"), rng.standard_normal((WHOLE + LAST, 2)).astype("f4")
np.savez(work / "rows.npz", x=x, y=y)
for name, text in (("rows", MODEL), ("graph", GRAPH), ("most", MOST)):
    (work / f"{name}.onnxtxt").write_text(text.format(", ".join(map(repr, w.ravel().tolist()))))
    tool("lowtide-translate", "--onnx-text-to-onnx", work / f"{name}.onnxtxt", "-o", work / f"{name}.onnx")

expected, weight = [], w.astype("f8")
for rows in (slice(0, WHOLE), slice(WHOLE, WHOLE + LAST)):
    away = x[rows] @ weight - y[rows]
    expected.append((away**2).mean())
    weight = weight - RATE * 2 * x[rows].T @ away / away.size

model = ["--dim", f"rows_of_x={WHOLE},rows_of_y={WHOLE}", f"--last-batch={LAST}", "--optimizer=sgd", f"--lr={RATE}", "--entries=train", "-q"]
for target in ("cpu", "cuda-emulated"):
    flags = [work / "rows.onnx", *model, f"--target={target}"]
    smallest = json.loads(tool("lowtide", "fit", *flags, "--json"))["entries"][0]["smallest_bytes"]
    tool("lowtide", "compile", *flags, "-o", work / "rows.tide", f"--device-budget={smallest}")
    tool("lowtide-run", work / "rows.tide", f"--data={work / 'rows.npz'}", f"--log-jsonl={work / 'log'}", "-q")
    losses = [line["loss"] for line in map(json.loads, (work / "log").read_text().splitlines()) if "step" in line and "loss" in line]
    assert np.allclose(losses, expected, rtol=1e-6), (target, losses, expected)
    assert "cannot fit" in tool("lowtide", "compile", *flags, "-o", work / "rows.tide", f"--device-budget={smallest - 1}", code=4)
    for budget, word in ((smallest, "yes"), (smallest - 1, "no")):
        said = tool("lowtide", "fit", *flags, f"--device-budget={budget}", code=4 if word == "no" else 0)
        assert f"\n{word}" in said and "the batch is fixed" not in said, (target, said)
said = tool("lowtide", "compile", work / "graph.onnx", "--dim", "nodes=8,edges=5", "--last-batch=3", "-o", work / "no.tide", code=1)
assert "error: not every input begins with 8 rows: 'edges' is 5" in said and "leave --last-batch out" in said, said
tool("lowtide", "compile", work / "graph.onnx", "--dim", "nodes=8,edges=5", "-o", work / "no.tide")
# What few samples are not enough for says so.
said = tool("lowtide", "compile", work / "most.onnx", "--batch=8", "--last-batch=1", "-o", work / "no.tide", code=2)
assert "k is 2 of 1" in said and "note: so it is with --last-batch=1: leave it out, or take more samples" in said, said
print("a last batch of inputs that have a symbol each: PyTorch's losses, and the bytes that are told")
