"""Training steps written back as ONNX models: onnx_model.py <folder of binaries> <folder of models>... [--full] [--only=PATTERN].

Each model is compiled with --emit=onnx-model at every graph stage; ONNX's checker takes the file with full shape
inference; ONNX Runtime executes it step by step, outputs fed back as the next step's inputs, and the losses are those of
the recorded run. The file is then compiled again, as a step that holds its backward pass already, and trains to the same
losses. The program of docs/onnx-model.md works. Runs in the `onnx` environment. Prints a list of {name, complaint}.
"""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from devkit.record import Record, worst_loss  # noqa: E402

STEPS = 10
# Layers and exporters that differ; the rest is for --full.
SAMPLE = ["mlp-digits/model.onnx", "cnn-digits/model.onnx", "gpt-tiny/default.onnx", "unet-mini/model.onnx"]
# Rewrites whose result must be in the file, and compute the same.
REWRITTEN, REWRITES = "gpt-tiny/default.onnx", [["--device-budget=60%"]]
# Refused by the compiler, or warned about and then another model.
REFUSED = ["lstm-chars/*", "*/dynamo-folded.onnx"]


class Broken(Exception):
    """A tool that should have worked did not."""


def metadata(message):
    return {entry.key: entry.value for entry in message.metadata_props}


class Step:
    """One step that lies in a file, executed by ONNX Runtime; tensors that it updates are kept here."""

    def __init__(self, path, rows=0):
        self.rows = rows
        self.model = onnx.load(path)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 2
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.given = {i.name for i in self.model.graph.initializer}
        self.kept, self.batches, self.scalars = {}, {}, {}
        for value in self.model.graph.input:
            facts, kind = metadata(value), metadata(value)["lowtide.binding"]
            tensor = value.type.tensor_type
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            shape = [d.dim_value for d in tensor.shape.dim]
            if kind == "batch":
                self.batches[value.name] = facts["lowtide.name"], dtype
            elif kind == "scalar":
                self.scalars[facts["lowtide.name"]] = value.name, dtype
            elif kind == "state" and value.name not in self.given:
                self.kept[value.name] = numpy.full(shape, float(facts["lowtide.initial"]), dtype)
        self.updates = {o.name: o.name.removesuffix(".new") for o in self.model.graph.output if metadata(o)["lowtide.binding"] in ("param", "state")}
        self.outputs = [o.name for o in self.session.get_outputs()]

    def run(self, number, rows):
        feeds = dict(self.kept)
        for name, (array, dtype) in self.batches.items():
            feeds[name] = rows[array].astype(dtype)
        for scalar, (name, dtype) in self.scalars.items():
            if scalar in ("step", "row"):
                feeds[name] = numpy.asarray(number * (1 if scalar == "step" else self.rows), dtype)
        results = dict(zip(self.outputs, self.session.run(None, feeds)))
        self.kept.update({old: results[new] for new, old in self.updates.items()})
        return results


def call(*command, folder=None):
    done = subprocess.run(
        [str(c) for c in command], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=300
    )  # fmt: skip
    if done.returncode:
        raise Broken(f"{pathlib.Path(command[0]).name} exit {done.returncode}: {done.stderr.strip()[-600:]}")
    return done.stdout


def again(binaries, path, record, steps, *flags):
    """Losses of the written step, compiled as a model of its own."""
    artifact, log = path.with_suffix(".tide"), path.with_suffix(".jsonl")
    log.unlink(missing_ok=True)
    call(binaries / "lowtide", "compile", path, "-o", artifact, *flags)
    call(binaries / "lowtide-run", artifact, f"--data={record.folder / 'data.npz'}", f"--steps={steps}", f"--log-jsonl={log}")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    return [row["loss"] for row in rows if "loss" in row and "step" in row]


def checked(path):
    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.load(path)
    onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    foreign = {n.domain for n in model.graph.node if n.domain not in ("", "ai.onnx")} - {f.domain for f in model.functions}
    if foreign:
        raise Broken(f"operators of {', '.join(sorted(foreign))} have no body")


def train(step, record, steps):
    losses = []
    with numpy.load(record.folder / "data.npz") as data:
        arrays = {name: data[name] for name in data.files}
    for number in range(steps):
        rows = {}
        for name, array in arrays.items():
            begin = number % (len(array) // record.batch) * record.batch
            rows[name] = array[begin : begin + record.batch]
        losses.append(float(step.run(number, rows)["loss"]))
    return losses


def rehearse(binaries, model, stage, flags=()):
    precision = next((f.split("=", 1)[1] for f in flags if f.startswith("--precision=")), "f32")
    record = Record(model.parent)
    steps = min(STEPS, record.steps)
    with tempfile.TemporaryDirectory(prefix="lowtide-onnx-") as scratch:
        path = pathlib.Path(scratch) / "step.onnx"
        given = record.compiler_flags(model, (f"--onnx-stage={stage}", *flags))
        call(binaries / "lowtide", "compile", model, "-o", path, "--emit=onnx-model", *given)
        checked(path)
        if stage == "nn":
            Step(path)
            return ""
        runs = {"onnxruntime": train(Step(path, record.batch), record, steps)}
        if stage == "fitted":
            runs["compiled again"] = again(binaries, path, record, steps)
    truth, bounds = record.loss_bounds(precision)
    if record.stochastic:  # one seed: near its recorded mean
        bounds = [5 * s for s in record.expected["loss"]["f32_std"]]
    if stage == "fitted" and not numpy.allclose(*runs.values(), rtol=1e-3):  # random numbers are the same, bit for bit
        return f"losses of one file differ: {runs}"
    if bounds is None:  # no band is recorded for this type
        return "" if numpy.isfinite(list(runs.values())).all() else f"losses {runs}"
    for name, losses in runs.items():
        worst, at = worst_loss(losses, truth[:steps], bounds[:steps])
        if worst > 1:
            return f"{name}: step {at}: loss {losses[at]}, recorded {truth[at]}, {worst:.2f} times the tolerance"
    return ""


def rewritten(binaries, models):
    """A step that comes from a file with its backward pass is fitted into a budget, bit for bit the same."""
    model = models / REWRITTEN
    record = Record(model.parent)
    with tempfile.TemporaryDirectory(prefix="lowtide-onnx-") as scratch:
        path = pathlib.Path(scratch) / "step.onnx"
        call(binaries / "lowtide", "compile", model, "-o", path, "--emit=onnx-model", *record.compiler_flags(model))
        whole, fitted = (again(binaries, path, record, STEPS, *flags) for flags in ([], REWRITES[0]))
    return "" if whole == fitted else f"losses {whole} without and {fitted} with {REWRITES[0]}"


def documented(binaries, models):
    """The program that the documentation shows, on the digits."""
    program = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "onnx-model.md").read_text(), re.S)[1]
    model = models / "mlp-digits" / "model.onnx"
    with tempfile.TemporaryDirectory(prefix="lowtide-onnx-") as scratch:
        folder = pathlib.Path(scratch)
        (folder / "data.npz").write_bytes((model.parent / "data.npz").read_bytes())
        (folder / "run.py").write_text(program)
        flags = ["--dim=batch=32", "--optimizer=adamw", "--lr=1e-3", "--emit=onnx-model", "-o", "step.onnx"]
        call(binaries / "lowtide", "compile", model, *flags, folder=folder)
        losses = [float(line.split()[1]) for line in call(sys.executable, "run.py", folder=folder).splitlines()]
    return "" if len(losses) == 10 and losses[-1] < losses[0] else f"its losses do not fall: {losses}"


def main():
    flags = [a for a in sys.argv[1:] if a.startswith("--")]
    binaries, *folders = (pathlib.Path(a).resolve() for a in sys.argv[1:] if not a.startswith("--"))
    only = next((f.split("=", 1)[1] for f in flags if f.startswith("--only=")), None)
    full = "--full" in flags or only
    more = [f for f in flags if f != "--full" and not f.startswith("--only=")]
    rows = []

    def judge(name, check, *arguments):
        try:
            complaint = check(binaries, *arguments)
        except Exception as error:  # checker and runtime have their own kinds
            complaint = f"{type(error).__name__}: {error}"[:800]
        rows.append({"name": name, "complaint": complaint})
        print(f"{'FAIL' if complaint else 'ok  '} {name} {complaint}", file=sys.stderr)

    if not only:
        judge("docs/onnx-model.md", documented, ROOT / "test" / "models")
        judge("imported step under a budget", rewritten, ROOT / "test" / "models")
        for rewrite in REWRITES:
            judge(f"{REWRITTEN} {' '.join(rewrite)}", rehearse, ROOT / "test" / "models" / REWRITTEN, "fitted", rewrite)
    for folder in folders:
        for model in sorted(folder.glob("*/*.onnx")):
            name = f"{model.parent.name}/{model.name}"
            if any(fnmatch.fnmatch(name, p) for p in REFUSED) or not (model.parent / "train.json").exists():
                continue
            if (not full and name not in SAMPLE) or (only and only not in name):
                continue
            for stage in ("nn", "train", "fitted"):
                judge(f"{name} {stage}", rehearse, model, stage, more)
    json.dump(rows, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
