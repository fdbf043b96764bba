"""Trains weights in branches, bodies and attributes, writes them back, and compares the loss of the file that is left.

Argument: a folder to work in.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np

WORK = pathlib.Path(sys.argv[1])
draw = np.random.default_rng(1)


def floats(*shape):
    return ", ".join(f"{value:.9g}" for value in draw.standard_normal(shape).astype("float32").ravel())


def tensor(name, *shape):
    return f"float[{','.join(map(str, shape))}] {name} = {{{floats(*shape)}}}"


def branch(graph, tag):
    return f"""{graph} () => (float[4,6] o{tag}) <{tensor("w", 6, 6)}, {tensor("b" + tag, 6)}> {{
      m{tag} = MatMul(x, w)
      o{tag} = Add(m{tag}, b{tag})
    }}"""


def chosen(first, second):
    return f"""h = If <then_branch = {branch(first, "t")}, else_branch = {branch(second, "e")}> (c)"""


HEAD, LOSS = tensor("head", 6, 2), "loss = ReduceMean<keepdims = 0>(p)"
MODELS = {
    "branches": f"""<{HEAD}, bool c = {{1}}> {{ {chosen("yes", "no")} p = MatMul(h, head) {LOSS} }}""",
    "loop": f"""<int64 n = {{3}}> {{
      p = Loop <body = body (int64 i, bool cond, float[4,6] s) => (bool again, float[4,6] t) <{tensor("w", 6, 6)}> {{
        again = Identity(cond) m = MatMul(s, w) t = Tanh(m)
      }}> (n, , x) {LOSS} }}""",
    "scan": f"""<int64[3] shape = {{3, 4, 6}}> {{
      xs = Expand(x, shape)
      last, p = Scan <num_scan_inputs = 1, body = body (float[4,6] s, float[4,6] xt) => (float[4,6] t, float[4,6] each) <{tensor("w", 6, 6)}> {{
        b = Constant<value_floats = [{floats(6)}]>() m = MatMul(s, w) a = Add(m, b) z = Add(a, xt) t = Tanh(z) each = Identity(t)
      }}> (x, xs) {LOSS} }}""",
    "floats": f"""<int64[2] shape = {{6, 6}}> {{
      flat = Constant<value_floats = [{floats(36)}]>() b = Constant<value_floats = [{floats(6)}]>()
      w = Reshape(flat, shape) m = MatMul(x, w) a = Add(m, b) p = Tanh(a) {LOSS} }}""",
    "same names": f"""<bool c = {{1}}> {{ {chosen("b", "b")} p = Identity(h) {LOSS} }}""",
}


def losses(model, *flags, steps):
    artifact, log = WORK / "step.tide", WORK / "log.jsonl"
    subprocess.run(["lowtide", "compile", model, "-o", artifact, "--optimizer=sgd", "--lr=0.1", "-q"], check=True)
    log.unlink(missing_ok=True)
    run = ["lowtide-run", artifact, f"--data={WORK / 'x.npz'}", f"--steps={steps}", f"--log-jsonl={log}", *flags]
    done = subprocess.run(run, capture_output=True, text=True)
    return [row["loss"] for row in map(json.loads, log.read_text().splitlines()) if "loss" in row], done.stdout + done.stderr


np.savez(WORK / "x.npz", x=draw.standard_normal((4, 6)).astype("float32"))
for name, body in MODELS.items():
    model, trained = WORK / "model.onnx", WORK / "trained.onnx"
    (WORK / "model.onnxtxt").write_text(f'<ir_version: 8, opset_import: ["" : 17]> g (float[4,6] x) => (float loss) {body}')
    subprocess.run(["lowtide-translate", "--onnx-text-to-onnx", WORK / "model.onnxtxt", "-o", model], check=True)
    whole, said = losses(model, f"--export={trained}", f"--model={model}", steps=3)
    said = next((line for line in said.splitlines() if "written to" in line or line.startswith("error")), said)
    if "written to" in said:
        whole, _ = losses(model, steps=5)
        rest, _ = losses(trained, steps=2)
        count = said.split("note: ")[1].split(" written")[0]
        said = f"{count} written, {'goes on' if rest == whole[3:] and len(set(whole)) == 5 else (whole, rest)}"
    print(f"{name}: {said}")
