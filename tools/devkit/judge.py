"""Train every model file of a folder and compare with the run that PyTorch recorded there.

For each `.onnx`: compile, train all steps, and put the losses, the step-0 gradients, the final parameters and the bytes
that the runtime allocated beside what was recorded and planned. One line per file; record.py holds the rules.
"""

import argparse
import concurrent.futures
import fnmatch
import json
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

from devkit import precision
from devkit.console import ROOT, Failure

# Exit codes with which the compiler refuses in words (usage, bad file, unsupported, budget, verification, I/O).
REFUSALS = {1, 2, 3, 4, 5, 8}

USAGE = """tools/dev judge <folder>... [options] [flags for the compiler]

Compile and train every .onnx in the folders; compare with expected.json and expected.npz beside it.
The last line counts the files that hold, and, of the others, those of which the import says so by name (a warning of
`lowtide check` that names a parameter, a buffer or a layer that differs, or an error at a place in the file), and those of which
it does not: they are silently wrong.
With --precision=mixed-bf16 and the like the band recorded for that type holds, and besides: contractions take 16-bit
operands and sums are f32 in the compiler's text, saved activations are at most 0.6 of f32's bytes (or what PyTorch's autocast keeps, where the
record has it), losses differ from f32's.
With --moments, --master=sr and the like, which store with loss, the first two losses are held to the band, later ones to a tenth of what the
recorded run changed and the mean of the last quarter to 3 % of it (or to a hundredth of the loss); gradients are held as ever, final parameters and state are not.
With --frozen-weights=int8, nf4 or fp8 the truth is the same step in f64 on a copy of the file whose matrices are the numbers that the
codes stand for; the bands are those recorded.
Columns: worst |loss - recorded| / tolerance, worst gradient error / allowed, worst error / allowed of final parameters and state
(each holds at 1.00 or less), bytes planned and allocated, the training step's arena over the most bytes that are alive
in it at once (the check holds it to 1.01).

options:
  --expect-refused=PATTERN  files that may be refused, or warned about and then differ: glob or part of folder/file.onnx;
                            several with '|' or by repeating
  --or-warned               files that do not hold pass where the import says so by name
  --no-evidence=PATTERN     files of a kind of which no file tells (the first table of docs/import.md): they pass and are counted apart
  --only=PATTERN            judge only these files
  --bin=FOLDER              use these binaries; nothing is built
  --keep=FOLDER             keep artifacts, logs and saved tensors there
  --json=FILE               also write the figures as JSON
  --jobs=N                  files at a time (default: all cores)

Every other flag goes to `lowtide compile`: --target=cpu --precision=f64, for instance. Flags after '--run'
go to lowtide-run.
"""


class Options:
    """The command line, split into ours, the compiler's and the runtime's."""

    def __init__(self, argv):
        parser = argparse.ArgumentParser(usage=USAGE, add_help=False, allow_abbrev=False)
        parser.add_argument("-h", "--help", action="store_true")
        parser.add_argument("--expect-refused", action="append", default=[])
        parser.add_argument("--or-warned", action="store_true")
        parser.add_argument("--no-evidence", action="append", default=[])
        parser.add_argument("--only", action="append", default=[])
        parser.add_argument("--bin", type=pathlib.Path)
        parser.add_argument("--keep", type=pathlib.Path)
        parser.add_argument("--json", type=pathlib.Path)
        parser.add_argument("--jobs", type=int, default=os.cpu_count())
        self.run_flags = []
        if "--run" in argv:
            at = argv.index("--run")
            argv, self.run_flags = argv[:at], argv[at + 1 :]
            theirs = parser.parse_known_args(self.run_flags)[1]
            if misplaced := [a for a in self.run_flags if a not in theirs]:
                raise Failure(f"error: {misplaced[0]} after --run is for lowtide-run, which knows no such flag\nnote: put it in front of --run")
        known, rest = parser.parse_known_args(argv)
        self.help = known.help
        self.folders = [pathlib.Path(a) for a in rest if not a.startswith("-")]
        self.compile_flags = [a for a in rest if a.startswith("-")]
        self.gradients_apart = False
        if not any(a.startswith("--target") for a in self.compile_flags):
            self.compile_flags.append("--target=cpu")
        if not any(a.startswith("--entries") for a in self.compile_flags):
            # `gradient` hands out the gradients of step 0; all of them at once, which a budget need not hold.
            apart = any(a.startswith("--device-budget") for a in self.compile_flags)
            self.compile_flags.append("--entries=train" if apart else "--entries=train,gradient")
            self.gradients_apart = apart
        split = lambda patterns: [p for text in patterns for p in text.split("|")]  # noqa: E731
        self.expect_refused, self.only = split(known.expect_refused), split(known.only)
        self.no_evidence = split(known.no_evidence)
        self.or_warned = known.or_warned
        self.keep, self.json, self.bin, self.jobs = known.keep, known.json, known.bin, max(known.jobs, 1)
        precision = [a.split("=", 1)[1] for a in self.compile_flags if a.startswith("--precision=")]
        self.precision = precision[-1] if precision else "f32"
        self.is_lossy = any(is_lossy(flag) for flag in self.compile_flags)


def is_lossy(flag):
    """Whether a flag of the compiler stores what is trained, or its state, in fewer bits than it is computed in."""
    name, _, value = flag.partition("=")
    layouts = re.findall(r"(?:moments|master)=(\w+)", flag) if name == "--group" else [value] if name in ("--moments", "--master") else []
    return any(layout not in ("f32", "split", "whole") for layout in layouts)


def matches(model, patterns):
    """True when a pattern names the file: as a glob of folder/file, file or folder, or as a part of folder/file."""
    both = f"{model.parent.name}/{model.name}"
    names = (both, model.name, model.parent.name)
    return any(p in both or any(fnmatch.fnmatch(n, p) for n in names) for p in patterns)


def call(command, log):
    """Run one of our tools; returns (exit status, the command and after it both output streams, as in `log`). Killed after ten minutes."""
    with open(log, "w") as out:
        out.write("$ " + shlex.join(map(str, command)) + "\n")
        out.flush()
        try:
            status = subprocess.run(
                [str(c) for c in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=600
            ).returncode
        except subprocess.TimeoutExpired:
            status = "timeout"
    return status, pathlib.Path(log).read_text(errors="replace")


def first_error(text):
    frame = re.search(r"^ *#\d+ .*?(lowtide::[\w:]+)", text, re.M)
    if "PLEASE submit a bug report" in text or "Stack dump:" in text:
        return "crashed" + (f" in {frame[1]}" if frame else "")
    lines = [line.strip() for line in text.splitlines()]
    for key in ("error:", "Assertion", "LLVM ERROR", "runtime error", "terminate called"):
        for line in lines:
            if key in line:
                return line[line.find(key) :].removeprefix("error:").strip()
    return next((line for line in reversed(lines) if line), "no output")


def died(status):
    return status == "timeout" or status < 0 or status >= 128 or status == 70


def read_run(path):
    """Header and per-step objects of a run log."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    steps = [line for line in lines if "step" in line and "loss" in line]
    header = {}
    for line in lines:
        if line not in steps:
            header.update(line)
    # A loss that is not finite is written as null or as text.
    for line in steps:
        line["loss"] = float("nan") if line["loss"] is None else float(line["loss"])
    return header, steps


class Verdict:
    """What became of one file."""

    def __init__(self, model):
        self.model, self.state, self.note = model, "FAIL", ""
        self.loss = self.grad = self.final = self.saved = self.ratio = None
        self.losses = []
        # Tensors beyond their bound, by name; True: one side lacks it or has another shape.
        self.differs = {}
        # What the import says of a file that does not hold: "warned", "refused", "untold" or nothing; and of what.
        self.said, self.named = "", []
        self.planned = self.allocated = None
        self.seconds = 0.0

    @property
    def ok(self):
        return self.state != "FAIL"

    @property
    def is_silent(self):
        """Trained to other numbers, and nothing says so; bytes, crashes and refusals without a place are other failures."""
        return not self.ok and not self.said and bool(self.differs or not (self.loss or 0) <= 1)

    def line(self, width):
        figure = lambda v: "     -" if v is None else f"{v:6.2f}" if v < 1000 else f"{v:6.0e}"  # noqa: E731
        name = f"{self.model.parent.name}/{self.model.name}"
        text = f"{self.state:<7} {name:<{width}}  loss {figure(self.loss)}  grad {figure(self.grad)}  final {figure(self.final)}"
        if self.planned is not None:
            same = "=" if self.planned == self.allocated else "≠"
            text += f"  planned {self.planned:,} {same} allocated {self.allocated:,}"
        if self.ratio is not None:
            text += f"  arena/live {self.ratio:.4f}"
        if self.saved is not None:
            text += f"  saved {self.saved:.2f}"
        text += f"  {self.seconds:5.1f} s"
        named = f"{self.said}: {', '.join(self.named[:4])}" if self.said and self.named else self.said
        return text + "".join(f"  {words}" for words in (named, self.note) if words)

    def json(self):
        return {
            "file": f"{self.model.parent.name}/{self.model.name}", "state": self.state, "note": self.note, "loss": self.loss,
            "gradient": self.grad, "final": self.final, "saved_ratio": self.saved, "arena_ratio": self.ratio, "planned_bytes": self.planned, "allocated_bytes": self.allocated,
            "differs": sorted(self.differs), "said": self.said, "named": self.named, "seconds": round(self.seconds, 3),
        }  # fmt: skip


def judge_file(model, record, options, work):
    from devkit import coded

    verdict = Verdict(model)
    start = time.monotonic()
    try:
        record = coded.truth_of(model, record, options, work)
        judge_steps(model, record, options, work, verdict)
        if not verdict.ok:
            listen(model, record, options, verdict)
    except Failure as failure:
        verdict.state, verdict.note = "FAIL", str(failure)
    except (OSError, ValueError, KeyError) as error:
        verdict.state, verdict.note = "FAIL", f"{type(error).__name__}: {error}"
    verdict.seconds = time.monotonic() - start
    return verdict


def is_about(name, tensor):
    """Whether a finding that names `name` is about `tensor`: that parameter, or one of that layer."""
    return tensor == name or tensor.startswith(name + ".")


def named_findings(report, differs):
    """The names under which `check --json` warns of what differs: parameters and layers among it, and buffers, which may be the reason.

    Where tensors are missing, in excess, or have other shapes, a finding must be about one of these: others only follow.
    """
    named = [name for finding in report.get("findings", []) for name in finding["names"]]
    wanted = [tensor for tensor, is_lacking in differs.items() if is_lacking] or list(differs)
    kept = [one["name"] for one in report.get("initializers", []) if one["role"] != "parameter"]
    reasons = kept if not any(differs.values()) else []
    return [name for name in dict.fromkeys(named) if any(is_about(name, tensor) for tensor in [*wanted, *reasons])]


def listen(model, record, options, verdict):
    """Fills in what the import says of a file that does not hold; with --or-warned it passes then."""
    if not verdict.said:
        command = [options.bin / "lowtide", "check", model, "--json", *record.compiler_flags(model, options.compile_flags)]
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        if done.returncode == 0 and (named := named_findings(json.loads(done.stdout), verdict.differs)):
            verdict.said, verdict.named = "warned", named
    if options.or_warned and verdict.said:
        verdict.state = verdict.said
    elif not verdict.said and verdict.differs and matches(model, options.no_evidence):
        verdict.said = verdict.state = "untold"


def judge_steps(model, record, options, work, verdict):
    excused = matches(model, options.expect_refused)
    artifact, figures = work / "step.tide", work / "figures.json"
    command = [options.bin / "lowtide", "compile", model, "-v", "-o", artifact, f"--figures={figures}", *record.compiler_flags(model, options.compile_flags)]
    status, said = call(command, work / "compile.log")
    if status != 0:
        verdict.note = f"exit {status}: {first_error(said)}"
        # An error of the import is located at a node, a tensor or a layer.
        if not died(status) and status in REFUSALS and (places := re.findall(r"^error: .*\(at '(.*)'\)$", said, re.M)):
            verdict.said, verdict.named = "refused", list(dict.fromkeys(places))
        if excused and not died(status) and status in REFUSALS and "error:" in said:
            verdict.state = "refused"
        return
    if options.gradients_apart and compares_tensors(record, options):
        verdict.note = dump_gradients(model, record, options, work)
        if verdict.note:
            return
    warned = re.search(r"warning: (.*)", said)
    complaints = read_arena(json.loads(figures.read_text()), verdict) + train(record, options, artifact, work, verdict)
    if options.precision.removeprefix("mixed-") in precision.NARROW:
        complaints += precision.judge(model, record, options, work, verdict)
    errors = [verdict.loss, verdict.grad, verdict.final]
    if not complaints and all(e is None or e <= 1 for e in errors):
        verdict.state = "ok"
    elif excused and warned:
        verdict.state, complaints = "warned", [warned[1]]
    verdict.note = "; ".join(complaints)


def read_arena(figures, verdict):
    """Fills in the ratio of the training step's arena; complains where there is no such step."""
    arenas = [entry["arena_bytes"] / (entry["live_bytes"] or 1) if entry["arena_bytes"] else 1.0 for entry in figures["entries"] if entry["name"] == "train"]
    if not arenas:
        return ["no figures of the arena"]
    verdict.ratio = max(arenas)
    return []


def compares_tensors(record, options):
    """Whether gradients and parameters were recorded, in a precision that is compared with them."""
    return bool(record.tensors) and options.precision in ("f32", "f64")


def dump_gradients(model, record, options, work):
    """The gradients of step 0, by an artifact that keeps no budget; a complaint, or nothing."""
    flags = [a for a in options.compile_flags if not a.startswith(("--device-budget", "--entries"))]
    artifact, dump = work / "gradient.tide", work / "gradients.safetensors"
    steps = {
        "compile": [options.bin / "lowtide", "compile", model, "-o", artifact, "--entries=gradient", *record.compiler_flags(model, flags)],
        "run": [options.bin / "lowtide-run", artifact, "--entry=gradient", "--steps=1", f"--data={record.folder / 'data.npz'}", f"--dump-gradients={dump}", *record.run_flags()],
    }  # fmt: skip
    for what, command in steps.items():
        status, said = call(command, work / f"gradient-{what}.log")
        if status != 0:
            return f"gradient: exit {status}: {first_error(said)}"
    return ""


def train(record, options, artifact, work, verdict):
    """Run all steps; fill in the figures; returns what is wrong in words."""
    from devkit import record as rules

    truth, exact_bounds = record.loss_bounds(options.precision)
    stores_lossy = options.is_lossy and exact_bounds is not None
    bounds = rules.widen_for_lossy(truth, exact_bounds) if stores_lossy else exact_bounds
    runs = []
    for seed in range(rules.SEEDS if record.stochastic else 1):
        log = work / f"run{seed}.jsonl"
        command = [options.bin / "lowtide-run", artifact, f"--data={record.folder / 'data.npz'}", f"--steps={record.steps}", *record.run_flags()]
        command += [f"--log-jsonl={log}", f"--save={work / 'saved'}", "--overwrite"]  # of another seed
        command += [] if options.gradients_apart else [f"--dump-gradients={work / 'gradients.safetensors'}"]
        command += [f"--seed={seed}"] if record.stochastic else []
        status, said = call([*command, *options.run_flags], work / f"run{seed}.log")
        if status != 0:
            return [f"run: exit {status}: {first_error(said)}"]
        header, steps = read_run(log)
        runs.append([line["loss"] for line in steps])
    losses = [sum(column) / len(column) for column in zip(*runs)]
    verdict.losses, complaints, at = runs[0], [], 0
    if bounds is None:
        complaints += [] if all(map(math.isfinite, losses)) else ["a loss is not finite"]
    else:
        verdict.loss, at = rules.worst_loss(losses, truth, bounds)
    if verdict.loss is not None and verdict.loss > 1:
        got = f"{losses[at]:.7g}, recorded {truth[at]:.7g}" if at < len(losses) else "missing"
        complaints.append(f"loss of step {at}: {got} ± {bounds[at]:.1e}" if at < len(truth) else f"{len(losses)} losses for {len(truth)} steps")
    if stores_lossy and len(losses) == len(truth) and (off := rules.lossy_mean(losses, truth, exact_bounds)) > 1:
        verdict.loss = max(verdict.loss, off)
        complaints.append("the mean of the last losses is too far from the recorded one")
    verdict.planned, verdict.allocated = header.get("planned_bytes"), header.get("allocated_bytes")
    if verdict.planned is None or verdict.planned != verdict.allocated:
        complaints.append("allocated bytes differ from the plan" if verdict.planned is not None else "the run log holds no planned_bytes")
    if compares_tensors(record, options):
        complaints += compare_tensors(record, work, verdict, options.precision, options.is_lossy)
    return complaints


def compare_tensors(record, work, verdict, precision, is_lossy):
    from devkit import record as rules
    from devkit.tensors import read_safetensors

    def recorded(kind):
        return {n.removeprefix(kind): v for n, v in record.tensors.items() if n.startswith(kind)}

    errors, tolerances = record.expected["grad_step0_f32_error"], record.expected["final_f32_tolerance"]
    allowed = lambda name: rules.GRADIENT_FACTOR * errors[name] + rules.GRADIENT_FLOOR  # noqa: E731
    gradients = {n.removeprefix("grad/"): v for n, v in read_safetensors(work / "gradients.safetensors").items()}
    verdict.grad, where, complaints = rules.compare(gradients, recorded("grad/"), allowed, relative=True, gradients=recorded("grad/"), differs=verdict.differs)
    complaints = [f"gradients: {c}" for c in complaints]
    if verdict.grad > 1:
        complaints.append(f"gradient of {where}")
    if is_lossy:
        return complaints
    saved = list((work / "saved").rglob("params.safetensors"))
    if not saved:
        return [*complaints, "the run saved no parameters"]
    final = read_safetensors(max(saved, key=lambda path: path.stat().st_mtime_ns))
    ended = {}
    verdict.final, where, more = rules.compare(final, recorded("final/"), lambda name: tolerances[name], relative=False, gradients=recorded("grad/"), differs=ended)
    for name, is_lacking in ended.items():
        if not is_lacking:
            verdict.differs.setdefault(name, False)
    # Saved parameters hold running statistics too; what was trained beyond the record shows in the gradients.
    complaints += [f"parameters: {c}" for c in more if not c.startswith("not in the record")]
    if verdict.final > 1:
        complaints.append(f"final {where}")
    states = [] if record.moved_states(verdict.model) else compare_states(record, final, verdict)
    return complaints + states + (compare_dictionary(record, final, precision) if record.holds_dictionary(verdict.model) else [])


def compare_dictionary(record, saved, precision="f32"):
    """Complaints if what was saved would not load with `load_state_dict(strict=True)` into the module that was exported."""
    wanted = record.expected.get("state_dict")
    if wanted is None:
        return []
    if prefix := record.expected.get("state_dict_prefix"):
        saved = {prefix + name: value for name, value in saved.items()}
    complaints = [f"state dictionary: {name} was not saved" for name in wanted if name not in saved]
    complaints += [f"state dictionary: the module has no {name}" for name in saved if name not in wanted]
    for name, (dtype, shape) in wanted.items():
        # A step that computes in f64 keeps its parameters so; PyTorch rounds them as it loads them.
        dtype = dtype.replace("float32", "float64") if precision == "f64" else dtype
        if name in saved and [str(saved[name].dtype), list(saved[name].shape)] != [dtype, shape]:
            complaints.append(f"state dictionary: {name} is {saved[name].dtype}{list(saved[name].shape)}, not {dtype}{shape}")
    return complaints[:3]


def compare_states(record, saved, verdict):
    """Complaints about what the program changes besides parameters; older records hold none of it."""
    from devkit import record as rules

    complaints = []
    for name, truth in rules.states_of(record.tensors).items():
        ours = rules.find_state(saved, name)
        if ours is None:
            complaints.append(f"state: {name} was not saved")
            verdict.differs[name] = True
            continue
        if ours.shape != truth.shape:
            complaints.append(f"state: {name} has shape {ours.shape}, not {truth.shape}")
            continue
        allowed = record.expected.get("state_f32_tolerance", {}).get(name, 0.0)
        off = float(abs(ours.astype("f8") - truth.astype("f8")).max(initial=0.0))
        verdict.final = max(verdict.final, off / allowed if allowed else float("inf") if off else 0.0)
        if not off <= allowed:
            verdict.differs.setdefault(name, False)
            complaints.append(f"state {name}: off by {off:.2e}, allowed {allowed:.2e}")
    return complaints


def models_of(folders):
    """The .onnx files of folders that hold a record; a folder of such folders counts as all of them."""
    for folder in folders:
        if not folder.is_dir():
            raise Failure(f"error: {folder} is not a folder\nnote: name folders that hold train.json, expected.json and .onnx files")
        own = [folder] if (folder / "train.json").exists() else sorted(f.parent for f in folder.glob("*/train.json"))
        if not own:
            raise Failure(f"error: {folder} holds no train.json, nor does any folder in it")
        for each in own:
            yield from sorted(each.resolve().glob("*.onnx"))


def judge(options, out=sys.stdout):
    """Judge every file; returns the verdicts."""
    from devkit.record import Record

    models = [m for m in models_of(options.folders) if not options.only or matches(m, options.only)]
    if not models:
        raise Failure("error: no .onnx file to judge")
    width = max(len(f"{m.parent.name}/{m.name}") for m in models)
    records = {folder: Record(folder) for folder in {model.parent for model in models}}

    def one(model):
        with tempfile.TemporaryDirectory(prefix="lowtide-judge-") as scratch:
            work = pathlib.Path(scratch)
            if options.keep:
                work = options.keep.resolve() / model.parent.name / model.stem
                work.mkdir(parents=True, exist_ok=True)
            return judge_file(model, records[model.parent], options, work)

    verdicts = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for verdict in pool.map(one, models):
            verdicts.append(verdict)
            print(verdict.line(width), file=out, flush=True)
    if options.json:
        options.json.write_text(json.dumps([v.json() for v in verdicts], indent=1) + "\n")
    return verdicts


def summary(verdicts):
    """The last line: how many files hold, and what is said of the others."""
    said = {how: sum(v.said == how for v in verdicts) for how in ("warned", "refused", "untold")}
    excused = sum(v.ok and v.state != "ok" and not v.said for v in verdicts)
    silent = sum(v.is_silent for v in verdicts)
    other = sum(not v.ok and not v.said and not v.is_silent for v in verdicts)
    holds = sum(v.state == "ok" for v in verdicts) + excused
    line = f"{holds} of {len(verdicts)} files hold"
    if holds == len(verdicts):
        return line
    line += f", {said['warned']} warned about by name, {said['refused']} refused by name"
    line += (f", {said['untold']} of which no file tells" if said["untold"] else "") + f", {silent} silently wrong"
    return line + (f", {other} fail otherwise" if other else "")


def main(argv):
    if "-h" in argv or "--help" in argv or not argv:
        print(USAGE, end="")
        return 0 if argv else 1
    try:
        options = Options(argv)
        if not options.bin:
            from devkit.build import BUILD, build

            build(["lowtide", "lowtide-run"])
            options.bin = BUILD / "bin"
        verdicts = judge(options)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    print(summary(verdicts))
    return 1 if any(not v.ok for v in verdicts) else 0
