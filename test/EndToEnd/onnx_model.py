"""Training steps written back as ONNX models: onnx_model.py <folder of binaries> <folder of models>... [--full] [--only=PATTERN].

Each model is compiled with --emit=onnx-model at every graph stage; ONNX's checker takes the file with full shape
inference; ONNX Runtime executes it step by step, outputs fed back as the next step's inputs, and the losses are those of
the recorded run. The file is then compiled again, as a step that holds its backward pass already, and trains to the same
losses. Then with all rewrites together, the losses being those recorded for that precision and those of our own run. The
program of docs/onnx-model.md works. Runs in the `onnx` environment. Prints a list of {name, complaint}.
"""

import concurrent.futures
import fnmatch
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from devkit.record import Record, worst_loss  # noqa: E402
from devkit.tensors import read_safetensors  # noqa: E402

STEPS = 10
DOES_NOT_FIT = 4  # docs/reference/exit-codes.md
# Layers and exporters that differ; the rest is for --full.
SAMPLE = ["mlp-digits/model.onnx", "cnn-digits/model.onnx", "gpt-tiny/default.onnx", "unet-mini/model.onnx"]
# All rewrites at once: in the sample, models with a head of many classes, with long skips and with batch norm.
SAMPLE_REWRITTEN = ["gpt-tiny/default.onnx", "unet-mini/model.onnx", "cnn-digits/model.onnx"]
# Limits that no gradient reaches: the losses are those recorded without them. And limits that most of them reach.
CLIPPING, TIGHT_CLIPPING = ["--clip-norm=1e9", "--clip-value=1e9"], ["--clip-norm=0.02", "--clip-value=0.001"]
# Rewrites whose result must be in the file, and compute the same.
REWRITTEN, REWRITES = "gpt-tiny/default.onnx", [["--device-budget=60%"]]
# Refused by the compiler, or warned about and then another model.
REFUSED = ["*/dynamo-folded.onnx"]


class Broken(Exception):
    """A tool that should have worked did not."""


def metadata(message):
    return {entry.key: entry.value for entry in message.metadata_props}


def session_of(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class Step:
    """One step that lies in a file, executed by ONNX Runtime or as `execute(feeds) -> results` does; tensors that it updates
    are kept here."""

    def __init__(self, path, rows=0, execute=None):
        self.rows = rows
        self.model = onnx.load(path)
        self.execute = execute or self.by_onnxruntime(path)
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
        self.outputs = [o.name for o in self.model.graph.output]

    @staticmethod
    def by_onnxruntime(path):
        session = session_of(path)
        return lambda feeds: session.run(None, feeds)

    def run(self, number, rows):
        feeds = dict(self.kept)
        for name, (array, dtype) in self.batches.items():
            feeds[name] = rows[array].astype(dtype)
        for scalar, (name, dtype) in self.scalars.items():
            if scalar in ("step", "row"):
                feeds[name] = numpy.asarray(number * (1 if scalar == "step" else self.rows), dtype)
        results = dict(zip(self.outputs, self.execute(feeds)))
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
    """Losses of a model, such as a written step, compiled and run by our own tools."""
    with tempfile.TemporaryDirectory(prefix="lowtide-onnx-") as scratch:
        return ran(binaries, path, record, steps, pathlib.Path(scratch) / "step.tide", flags)


def ran(binaries, path, record, steps, artifact, flags):
    log = artifact.with_suffix(".jsonl")
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


def compiled(binaries, arguments):
    """(exit status, what was said) of `lowtide compile`."""
    done = subprocess.run(
        [str(binaries / "lowtide"), "compile", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace", timeout=600,
    )  # fmt: skip
    return done.returncode, done.stderr


def joined(path):
    """The training step of a model with training_info, as onnx.proto says: both graphs together, updates as outputs."""
    model = onnx.load(path)
    info = model.training_info[0]
    for field in ("node", "initializer", "input", "output", "value_info"):
        getattr(model.graph, field).extend(getattr(info.algorithm, field))
    updates = {entry.key: entry.value for entry in info.update_binding}
    model.ClearField("training_info")
    onnx.save(model, path)
    return updates


def with_training_info(binaries, model, flags=()):
    """A TrainingInfoProto says the same step: read again by us, and joined as the standard says by ONNX Runtime."""
    record = Record(model.parent)
    with tempfile.TemporaryDirectory(prefix="lowtide-onnx-") as scratch:
        path = pathlib.Path(scratch) / "step.onnx"
        given = record.compiler_flags(model, ["--onnx-form=training-info", "--entries=train", *flags])
        call(binaries / "lowtide", "compile", model, "-o", path, "--emit=onnx-model", *given)
        checked(path)
        inference = onnx.load(path).graph
        if any("loss" == output.name for output in inference.output) and len(inference.output) > 1:
            return "the inference graph computes the loss"
        onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        ours = again(binaries, path, record, STEPS)
        updates = joined(path)
        step = Step(path, record.batch)
        step.updates = {new: old for old, new in updates.items()}
        theirs = train(step, record, STEPS)
    if not numpy.allclose(ours, theirs, rtol=1e-3):
        return f"losses {theirs}, our own {ours}"
    truth, bounds = record.loss_bounds("f32")
    worst, at = worst_loss(theirs, truth[:STEPS], bounds[:STEPS])
    return f"step {at}: loss {theirs[at]}, recorded {truth[at]}" if worst > 1 else ""


def with_other_numbers(binaries, models):
    """What changes the numbers of a step that came with its updates: the losses of the same flags on the model itself."""
    complaints = []
    scaling = ["--loss-scale=dynamic,init=1024,interval=3", "--clip-norm=0.05"]
    models_and_flags = itertools.product(
        ("mlp-digits/model.onnx", "gpt-tiny/default.onnx"), (scaling, ["--precision=bf16"], ["--precision=f16", *scaling])
    )
    for model, flags in models_and_flags:
        name = f"{model} {' '.join(flags)}"
        model = models / model
        record = Record(model.parent)
        with tempfile.TemporaryDirectory(prefix="lowtide-onnx-") as scratch:
            path = pathlib.Path(scratch) / "step.onnx"
            own = record.compiler_flags(model, ("--entries=train",))
            call(binaries / "lowtide", "compile", model, "-o", path, "--emit=onnx-model", "--onnx-stage=train", *own)
            ours = again(binaries, path, record, STEPS, "--entries=train", *flags)
            direct = again(binaries, model, record, STEPS, *own, *flags)
            plain = again(binaries, model, record, STEPS, *own)
        if not numpy.allclose(ours, direct, rtol=1e-4):
            complaints.append(f"{name}: losses {ours}, from the model {direct}")
        if numpy.allclose(ours, plain, rtol=1e-5):
            complaints.append(f"{name}: changed nothing: {ours}")
    return "; ".join(complaints)


def looped(binaries, models):
    """Parts of the batch and pieces of a loss head as `Loop`: the losses of the form that is written out, there and here."""
    complaints = []
    for name, form, *flags in ((REWRITTEN, "loop", "--micro-batches=2", "--loss-head-chunks=2"), ("mlp-digits/model.onnx", "auto", "--micro-batches=16")):
        model = models / name
        record = Record(model.parent)
        runs = {}
        with tempfile.TemporaryDirectory(prefix="lowtide-onnx-") as scratch:
            for how in (form, "unrolled"):
                path = pathlib.Path(scratch) / f"{how}.onnx"
                given = record.compiler_flags(model, ["--entries=train", f"--onnx-rounds={how}", *flags])
                call(binaries / "lowtide", "compile", model, "-o", path, "--emit=onnx-model", *given)
                checked(path)
                if any(node.op_type == "Loop" for node in onnx.load(path).graph.node) != (how == form):
                    complaints.append(f"{name} {' '.join(flags)} --onnx-rounds={how}: loops where none should be, or none")
                runs[how] = train(Step(path, record.batch), record, STEPS)
            runs["compiled again"] = again(binaries, pathlib.Path(scratch) / f"{form}.onnx", record, STEPS)
        truth, bounds = record.loss_bounds("f32")
        if not all(numpy.allclose(run, runs["unrolled"], rtol=1e-4) for run in runs.values()):
            complaints.append(f"{name}: losses {runs}")
        elif worst_loss(runs[form], truth[:STEPS], bounds[:STEPS])[0] > 1:
            complaints.append(f"{name}: losses {runs[form]}, recorded {truth[:STEPS]}")
    return "; ".join(complaints)


def everything(binaries, model):
    """Casts, loss scaling with clipping, parts of the batch, a chunked loss head and recomputation in one file."""
    record = Record(model.parent)
    steps = min(STEPS, record.steps)
    narrow = "f16" if "f16_tolerance" in record.expected["loss"] else "bf16"
    flags = [f"--precision=mixed-{narrow}", "--loss-scale=dynamic", "--loss-head-chunks=2", "--entries=train", "-v"]
    # Parts where the batch is open, unless batch norm makes another model of them or the file takes samples together.
    parts = ["--micro-batches=2"] if record.dimension_flags(model) and record.batch % 2 == 0 else []
    with tempfile.TemporaryDirectory(prefix="lowtide-onnx-") as scratch:
        path, artifact, told = (pathlib.Path(scratch) / name for name in ("step.onnx", "step.tide", "figures.json"))

        def write(*more):
            given = record.compiler_flags(model, [*flags, *parts, *more])
            return given, *compiled(binaries, [model, "-o", path, "--emit=onnx-model", f"--figures={told}", *given])

        _, status, said = write(*CLIPPING, "--device-budget=1")
        norms = any("batch_norm_layers" in remark for remark in json.loads(told.read_text())["remarks"])
        if parts and (norms or "it looks at all samples together" in said):
            parts = []
            _, status, said = write(*CLIPPING, "--device-budget=1")
        if status != DOES_NOT_FIT:
            return f"exit {status} where one byte is the budget: {said.strip()[-600:]}"
        budget = json.loads(told.read_text())["refusal"]["smallest_bytes"]
        runs = []
        for clipping in (CLIPPING, TIGHT_CLIPPING):
            given, status, said = write(*clipping, f"--device-budget={budget}")
            if status:
                return f"exit {status}: {said.strip()[-600:]}"
            checked(path)
            step = onnx.load(path)
            casts = sum(n.op_type == "Cast" for n in step.graph.node)
            again = sum("lowtide.recomputed" in metadata(n) for n in step.graph.node)
            state = {o.name for o in step.graph.output} & {"loss_scale.new", "loss_scale.skipped.new"}
            if not casts or len(state) < 2 or bool(again) != any(entry["recomputed"] for entry in json.loads(told.read_text())["entries"]):
                return f"{casts} casts, state {sorted(state)}, {again} nodes again at {budget} bytes: a rewrite is missing"
            runs.append((train(Step(path, record.batch), record, steps), ran(binaries, model, record, steps, artifact, given)))
    truth, bounds = record.loss_bounds(narrow)
    for theirs, ours in runs:
        # Each rounds where it likes: two runs in 16 bits need not be nearer to each other than the recorded ones were.
        allowed = numpy.abs(ours) * (2e-2 if narrow == "bf16" else 5e-3)
        if bounds is not None and not record.stochastic:
            allowed = numpy.maximum(allowed, bounds[:steps])
        if numpy.any(numpy.abs(numpy.subtract(theirs, ours)) > allowed):
            return f"losses {theirs}, our own {ours}"
    (theirs, _), (clipped, _) = runs
    if theirs == clipped:
        return f"clipping changed nothing: {theirs}"
    if record.stochastic:
        bounds = [5 * s for s in record.expected["loss"]["f32_std"]]
    if bounds is None:
        return ""
    worst, at = worst_loss(theirs, truth[:steps], bounds[:steps])
    return f"step {at}: loss {theirs[at]}, recorded {truth[at]}, {worst:.2f} times the {narrow} band" if worst > 1 else ""


def native(binaries, model):
    """bf16 as it is, for which ONNX Runtime has few kernels, by ONNX's reference evaluator; really so in the file."""
    record = Record(model.parent)
    narrow = "--precision=mixed-bf16"
    with tempfile.TemporaryDirectory(prefix="lowtide-onnx-") as scratch:
        path = pathlib.Path(scratch) / "step.onnx"
        given = record.compiler_flags(model, (narrow, "--onnx-bf16=native"))
        call(binaries / "lowtide", "compile", model, "-o", path, "--emit=onnx-model", *given)
        checked(path)
        evaluator = ReferenceEvaluator(str(path))
        theirs = train(Step(path, record.batch, lambda feeds: evaluator.run(None, feeds)), record, STEPS)
        ours = again(binaries, model, record, STEPS, *record.compiler_flags(model, (narrow,)))
        values = onnx.shape_inference.infer_shapes(onnx.load(path)).graph.value_info
    if not any(v.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 for v in values):
        return "no value of the file is bfloat16"
    # The same roundings, sums in another order: within 2^-8, bf16's unit, and not what f32 gives.
    whole = again(binaries, model, record, STEPS, *record.compiler_flags(model))
    if theirs == whole or not numpy.allclose(theirs, ours, rtol=2**-8):
        return f"losses {theirs}, ours {ours}, in f32 {whole}"
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


HALVES = """
func.func @forward(%x: tensor<{0}xf32> {{train.binding = #train.batch<"x">}}) -> (tensor<{0}xf32> {{train.binding = #train.output<"y">}}) {{
  %half = nn.high_half %x : (tensor<{0}xf32>) -> tensor<{0}xbf16>
  %y = nn.cast %half : tensor<{0}xbf16> -> tensor<{0}xf32>
  return %y : tensor<{0}xf32>
}}
"""


def rounded_away(binaries):
    """What products read of an f32 master, by ONNX Runtime: the integer rule, ties away from zero, infinities, every size of number."""
    random = numpy.random.default_rng(0)
    high = numpy.arange(1 << 16, dtype=numpy.uint32) << 16
    low = [high | part for part in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)] + [random.integers(0, 1 << 32, 1 << 16, dtype=numpy.uint32)]
    bits = numpy.concatenate(low)
    bits = bits[~numpy.isnan(bits.view("f4"))]
    with tempfile.TemporaryDirectory(prefix="lowtide-onnx-") as scratch:
        text, path = pathlib.Path(scratch) / "halves.mlir", pathlib.Path(scratch) / "halves.onnx"
        text.write_text(HALVES.format(len(bits)))
        call(binaries / "lowtide", "compile", "--from=nn", text, "-o", path, "--emit=onnx-model", "--onnx-stage=nn")
        checked(path)
        found = Step.by_onnxruntime(path)({"x": bits.view("f4")})[0].view(numpy.uint32)
    is_infinite = bits & 0x7FFFFFFF == 0x7F800000
    wanted = numpy.where(is_infinite, bits, bits + 0x8000 & 0xFFFF0000)
    wrong = numpy.flatnonzero(found != wanted)
    return f"{len(wrong)} differ: {bits[wrong[0]]:#x} becomes {found[wrong[0]]:#x}, not {wanted[wrong[0]]:#x}" if len(wrong) else ""


def with_split_master(binaries, model):
    """Masters in halves are whole f32 ones in the file, of which products read the same bits: our own run's losses and parameters."""
    complaints = []
    record = Record(model.parent)
    for flags in (["--precision=mixed-bf16", "--master=split"], ["--precision=bf16", "--master=split"], ["--precision=mixed-bf16", "--group=*.weight:master=split"]):
        with tempfile.TemporaryDirectory(prefix="lowtide-onnx-") as scratch:
            path, artifact, saved = (pathlib.Path(scratch) / name for name in ("step.onnx", "step.tide", "saved"))
            given = record.compiler_flags(model, ["--entries=train", *flags])
            call(binaries / "lowtide", "compile", model, "-o", path, "--emit=onnx-model", *given)
            checked(path)
            step = Step(path, record.batch)
            theirs, ours = train(step, record, STEPS), ran(binaries, model, record, STEPS, artifact, given)
            call(binaries / "lowtide-run", artifact, f"--data={record.folder / 'data.npz'}", f"--steps={STEPS}", f"--save={saved}", "-q")
            held = read_safetensors(next(saved.glob("*/params.safetensors")))
        if not numpy.allclose(theirs, ours, rtol=2**-8):
            complaints.append(f"{' '.join(flags)}: losses {theirs}, our own {ours}")
        masters = [name for name in held if step.kept.get(name) is not None and step.kept[name].dtype == numpy.float32]
        fine = [name for name in masters if (step.kept[name].view(numpy.uint32) & 0xFFFF).any()]
        # What is saved lies as the exporting framework has it. Where a gradient is all but zero, AdamW makes a step of its sign.
        first = {i.name: onnx.numpy_helper.to_array(i) for i in step.model.graph.initializer}
        turned = lambda a, b: min((a, a.T), key=lambda each: abs(each - b).max() if each.shape == b.shape else numpy.inf)  # noqa: E731
        ended = {name: turned(step.kept[name], held[name]) for name in masters}
        moved = {name: numpy.median(abs(step.kept[name] - first[name])) for name in masters}
        off = [name for name in masters if numpy.median(abs(ended[name] - held[name])) > 0.1 * moved[name]]
        if len(fine) < 2 or off or any(".low_half" in name for name in step.kept):
            complaints.append(f"{' '.join(flags)}: f32 masters {masters}, of more than 16 bits {fine}, other numbers in {off}")
    return "; ".join(complaints)


def by_values(path):
    """As `by_onnxruntime`, where bf16 goes in and out, of which NumPy has no type: such values stay the runtime's."""
    session = session_of(path)
    outputs = [output.name for output in session.get_outputs()]
    own = lambda v: onnxruntime.OrtValue.ortvalue_from_numpy(v) if isinstance(v, numpy.ndarray) else v  # noqa: E731
    shown = lambda v: v if "bfloat16" in v.data_type() else v.numpy()  # noqa: E731
    return lambda feeds: [shown(v) for v in session.run_with_ort_values(outputs, {n: own(v) for n, v in feeds.items()})]


def by_bits(binaries, model):
    """Layouts whose rule is one of bits (BitCast): parameters that are rounded by chance, states of float8."""
    complaints = []
    record = Record(model.parent)
    for flags, layouts in ((["--precision=bf16"], ["--master=sr"]), ([], ["--moments=fp8"]), (["--precision=bf16", "--micro-batches=2"], ["--master=sr", "--moments=fp8"])):
        with tempfile.TemporaryDirectory(prefix="lowtide-onnx-") as scratch:
            path = pathlib.Path(scratch) / "step.onnx"
            plain, given = (record.compiler_flags(model, ["--entries=train", *flags, *more]) for more in ([], layouts))
            call(binaries / "lowtide", "compile", model, "-o", path, "--emit=onnx-model", *given)
            checked(path)
            theirs, ours = train(Step(path, record.batch, by_values(path)), record, STEPS), again(binaries, model, record, STEPS, *given)
            without = again(binaries, model, record, STEPS, *plain)
        if not numpy.allclose(theirs, ours, rtol=1e-5) or numpy.allclose(without, ours, rtol=1e-5):
            complaints.append(f"{' '.join(flags + layouts)}: losses {theirs}, our own {ours}, without {without}")
    return "; ".join(complaints)


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
    trials = []

    def judge(*trial):
        trials.append(trial)

    def row(trial):
        name, check, *arguments = trial
        try:
            complaint = check(binaries, *arguments)
        except Exception as error:  # checker and runtime have their own kinds
            complaint = f"{type(error).__name__}: {error}"[:800]
        print(f"{'FAIL' if complaint else 'ok  '} {name} {complaint}", file=sys.stderr)
        return {"name": name, "complaint": complaint}

    if not only:
        judge("docs/onnx-model.md", documented, ROOT / "test" / "models")
        judge("imported step under a budget", rewritten, ROOT / "test" / "models")
        judge("imported step with loss scaling, clipping and 16 bits", with_other_numbers, ROOT / "test" / "models")
        judge("parts and pieces as loops", looped, ROOT / "test" / "models")
        judge("halves away from zero", rounded_away)
        for name in ("mlp-digits/model.onnx", REWRITTEN):
            judge(f"{name} split master", with_split_master, ROOT / "test" / "models" / name)
            judge(f"{name} native bf16", native, ROOT / "test" / "models" / name)
        judge("layouts by bits", by_bits, ROOT / "test" / "models" / "mlp-digits" / "model.onnx")
        judge("gpt-tiny training_info", with_training_info, ROOT / "test" / "models" / REWRITTEN)
        judge("mlp-digits training_info", with_training_info, ROOT / "test" / "models" / "mlp-digits" / "model.onnx")
        for rewrite in REWRITES:
            judge(f"{REWRITTEN} {' '.join(rewrite)}", rehearse, ROOT / "test" / "models" / REWRITTEN, "fitted", rewrite)
    for folder in folders:
        for model in sorted(folder.glob("*/*.onnx")):
            name = f"{model.parent.name}/{model.name}"
            if any(fnmatch.fnmatch(name, p) for p in REFUSED) or not (model.parent / "train.json").exists():
                continue
            # Low-rank pairs have no first values in a file.
            if (model.parent / "adapter").exists():
                continue
            if (not full and name not in SAMPLE + SAMPLE_REWRITTEN) or (only and only not in name):
                continue
            for stage in ("nn", "train", "fitted") if name in SAMPLE or full else ():
                judge(f"{name} {stage}", rehearse, model, stage, more)
            if name in SAMPLE_REWRITTEN or full:
                judge(f"{name} all rewrites", everything, model)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        json.dump(list(pool.map(row, trials)), sys.stdout, indent=0)


if __name__ == "__main__":
    main()
