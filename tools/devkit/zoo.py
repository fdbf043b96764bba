"""`lowtide verify` of many models of torchvision, timm and transformers, and of small programs, as several exporters and cleaners write them."""

import argparse
import collections
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from devkit import dependencies
from devkit.build import BUILD, build
from devkit.console import ROOT, Failure
from devkit.proofs import words_of

USAGE = """tools/dev zoo [options]

The programs (zoo_models/programs.py) are one kind of code each, as programs/NAME; their files end at the loss in every export.

Each model is small, with random weights; nothing is downloaded but the libraries (tools/devkit/requirements-zoo.txt). PyTorch
computes gradients, buffers and losses of three steps in f64 with dropout off; `lowtide verify` compares each file with them:

  train    the TorchScript exporter, in training form, with the loss
  eval     the TorchScript exporter, in inference form, to the logits; the loss is added by --loss
  dynamo   the current exporter, with the loss
  plain    the same with optimize=False (not among the default three)
  decomposed   the same of an exported program after run_decompositions(), optimized
  preserve the TorchScript exporter, in the form that the module is in
  traced   the TorchScript exporter, of the module that torch.jit.trace made, in training form
  train11, dynamo20 ...   with this opset (17 otherwise, and what the current exporter takes)
  train-open, eval13-unfolded-inputs ...   with options: open first dimensions; do_constant_folding=False;
           keep_initializers_as_inputs=True; external (dynamo, plain, decomposed), data in a second file

  holds            everything agrees
  warns            something differs, and the import warned
  refused          an error in words, and its exit code
  silently wrong   something differs, and nothing was said
  other forms      it trains otherwise for the emulated device, in 16 bits, in parts or under a budget (--forms)
  crash            a signal, or an internal error
  no end           `lowtide verify` took longer than --seconds, which tells nothing about the file
  export failed    the exporter or cleaner wrote no file; counted apart

options:
  --only=GLOB         cases by name, library or family: 'timm/*', 'transformers/bert', encoder; may be repeated
  --exports=LIST      train,eval,dynamo (the first three); also with an opset, -open, -unfolded
  --cleaners[=LIST]   also every file as cleaners write it: onnxslim,onnxsim unless listed; there are also onnxruntime (basic
                      optimizations), ort2, ort3 (extended and all), fused (onnxruntime.transformers), onnxscript (its optimizer), extract
                      (onnx.utils.extract_model of the whole), convert, newest, down (ONNX's version converter, to the next
                      version, opset 25, or below 18 or 15), merge (onnx.compose, another model in front), float16
                      (onnxruntime's converter), inferred (shapes), external (data in a second file)
  --forms             files that hold or warn are also trained for the emulated device, in 16 bits, in two parts and under budgets,
                      next to f32 on the CPU
  --fresh             weights as the libraries draw them: exporters merge their zeros and ones (default: vectors are moved off them)
  --limit=N           no more than N cases
  --sample=N          every Nth case
  --json=FILE         keeps a row for each file as it comes; cases that it holds already are not run again
  --retry=STATE       runs cases of the JSON again that have a file of this state, or of any but "holds" (others); may be repeated
  --keep=FOLDER       keeps files and records
  --bin=FOLDER        use these binaries; nothing is built
  --seconds=N         how long one `lowtide verify` may take (120)
  --list              print the cases
"""
STATES = ("holds", "warns", "refused", "silently wrong", "other forms", "crash", "no end", "export failed")
EXPORTS = ("train", "eval", "dynamo", "plain", "decomposed", "preserve", "traced")
OPTIONS = ("open", "unfolded", "inputs", "external")
CLEANERS = ("onnxslim", "onnxsim", "onnxruntime", "ort2", "ort3", "fused", "onnxscript", "extract", "convert", "newest", "down", "merge", "float16", "inferred", "external")
REFUSALS = range(1, 9)
# Of files that end at their logits; a merge puts its prefix in front of outputs.
LOSS = "cross_entropy({}, labels)"


def environment():
    """Python with the libraries: those of the oracles, and further ones in an environment of its own."""
    return dependencies.environment("zoo")


def variables():
    return dict(os.environ, PYTHONPATH=str(ROOT / "tools"), PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")


def libraries_of(python, only):
    """Those that the patterns name, if each does: others take their time to load."""
    code = "import devkit.zoo_models as z; print(*z.LIBRARIES)"
    known = subprocess.run([str(python), "-c", code], env=variables(), stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout.split()
    named = {glob.split("/")[0] for glob in only}
    return sorted(named) if named <= set(known) else []


def list_cases(python, libraries):
    """(name, family) of every case."""
    code = "import json, sys, devkit.zoo_models as z; print(json.dumps([(c.name, c.family) for c in z.all_cases(sys.argv[1:])]))"
    run = subprocess.run([str(python), "-c", code, *libraries], env=variables(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if run.returncode != 0:
        raise Failure(f"error: {run.stderr.strip().splitlines()[-1]}")
    return json.loads(run.stdout.splitlines()[-1])


def judge(binaries, folder, file, seconds, flags):
    """(state, words, warnings) of one file."""
    command = [binaries / "lowtide", "verify", folder / file, f"--against={folder / 'record.npz'}", "--json", *flags]
    try:
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "no end", f"within {seconds} s", []
    warnings = re.findall(r"^warning: (.*)", done.stderr, re.M)
    if done.returncode in (0, 9) and done.stdout:
        words = words_of(json.loads(done.stdout))
        # First values that the file has otherwise: statistics that an exporter moved, or rounding of what was evaluated.
        return ("holds" if not words else "warns" if warnings else "silently wrong"), words, warnings
    complaint = next((line for line in done.stderr.splitlines() if line.startswith("error:")), done.stderr[-300:])
    return ("refused" if done.returncode in REFUSALS else "crash"), f"exit {done.returncode}: {complaint}", warnings


class Maker:
    """A process that holds the libraries and writes the files of one case after another."""

    def __init__(self, python, libraries):
        self.command, self.process = [str(python), "-m", "devkit.zoo_models", *libraries], None

    def make(self, **request):
        """(a line for each file, what went wrong otherwise). Where an export was aborted, a process that has forked nothing yet tries once more."""
        lines, words = self.ask(request)
        if any(line["aborted"] for line in lines):
            self.process.kill()
            self.process.wait()
            lines, words = self.ask(request)
        return lines, words

    def ask(self, request):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(self.command, env=variables(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        lines = []
        for text in self.process.stdout:
            if text.startswith("{"):
                line = json.loads(text)
                if line["state"] == "done":
                    return lines, ""
                lines.append(line)
        return lines, "the process that writes files ended"


def run_case(maker, options, name, family, folder):
    """The rows of one case, as they come; the last one is marked as such."""
    wanted = [f"{how}{after}.onnx" for how in options.exports for after in ("", *(f"-{c}" for c in options.cleaners))]
    lines, words = maker.make(name=name, folder=str(folder), exports=options.exports, cleaners=options.cleaners, fresh=options.fresh)
    written = {line["file"]: line for line in lines}
    record = written.get("record.npz", {"state": "export failed", "words": words or "no record"})
    row = None
    for file in wanted:
        start = time.monotonic()
        # What a cleaner would read was not written: the export is counted once.
        line = record if record["state"] != "written" else written.get(file)
        if line is None:
            continue
        if row:
            yield row
        flags = ["--loss=" + LOSS.format("net/logits" if "merge" in file else "logits")] if line.get("output") == "logits" else []
        state, said, warnings = (line["state"], line["words"], []) if line["state"] != "written" else judge(options.bin, folder, file, options.seconds, flags)
        if options.forms and state in ("holds", "warns"):
            from devkit import zoo_forms

            if differing := zoo_forms.compare(options.bin, folder, file, flags):
                state, said = "other forms", differing
        seconds = round(time.monotonic() - start, 1)
        row = {"name": name, "family": family, "file": file, "state": state, "words": said, "warnings": warnings, "seconds": seconds, "last": False}
        print(f"{state:<14} {name}/{file}  {seconds} s  {(said or '; '.join(warnings))[:240]}", flush=True)
    if row:
        yield row | {"last": True}


def table(rows):
    """Counts by family and file, as Markdown."""
    files = list(dict.fromkeys(row["file"].removesuffix(".onnx") for row in rows))
    lines = []
    for title, key in (("library", lambda r: r["name"].split("/")[0]), ("family", lambda r: r["name"].split("/")[0] + " " + r["family"]), ("export", lambda r: r["file"].removesuffix(".onnx"))):
        counts = collections.defaultdict(collections.Counter)
        models = collections.defaultdict(set)
        for row in rows:
            counts[key(row)][row["state"]] += 1
            models[key(row)].add(row["name"])
        lines += ["", f"| {title} | models | files | " + " | ".join(STATES) + " |", "| --- " * (len(STATES) + 3) + "|"]
        order = sorted(counts) if title != "export" else files
        lines += [f"| {k} | {len(models[k])} | {sum(counts[k].values())} | " + " | ".join(str(counts[k][s] or "") for s in STATES) + " |" for k in order]
    return "\n".join(lines[1:])


def selected(cases, options):
    chosen = [(n, f) for n, f in cases if not options.only or any(g in (n.split("/")[0], f) or fnmatch.fnmatch(n, g) or fnmatch.fnmatch(n.split("/")[1], g) for g in options.only)]
    chosen = chosen[:: options.sample]
    return chosen[: options.limit] if options.limit else chosen


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev zoo", usage=USAGE, add_help=False)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--exports", type=lambda text: text.split(","), default=list(EXPORTS[:3]))
    parser.add_argument("--cleaners", nargs="?", type=lambda text: text.split(","), const=list(CLEANERS[:2]), default=[])
    for flag in ("--fresh", "--forms", "--list"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--retry", action="append", default=[])
    for flag in ("--json", "--keep", "--bin"):
        parser.add_argument(flag, type=pathlib.Path)
    if {"-h", "--help"} & set(argv):
        print(USAGE, end="")
        return 0
    try:
        return sweep(parser.parse_args(argv))
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1


def sweep(options):
    if unknown := {how for how in options.exports if not re.fullmatch(rf"({'|'.join(EXPORTS)})\d*(-({'|'.join(OPTIONS)}))*", how)}:
        raise Failure(f"error: no export '{sorted(unknown)[0]}'; there are {', '.join(EXPORTS)}")
    if unknown := set(options.cleaners) - set(CLEANERS):
        raise Failure(f"error: no cleaner '{sorted(unknown)[0]}'; there are {', '.join(CLEANERS)}")
    python = environment()
    libraries = libraries_of(python, options.only)
    cases = selected(list_cases(python, libraries), options)
    if options.list:
        print("\n".join(f"{name}  {family}" for name, family in cases))
        return 0
    if not options.bin:
        build(["lowtide"])
        options.bin = BUILD / "bin"
    rows = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    again = {row["name"] for row in rows if row["state"] in options.retry or ("others" in options.retry and row["state"] != "holds")}
    # A case that was cut off is run again from its start.
    done = {row["name"] for row in rows if row.get("last", True)} - again
    rows = [row for row in rows if row["name"] in done]
    maker = Maker(python, libraries)
    for name, family in cases:
        if name in done:
            continue
        with tempfile.TemporaryDirectory(prefix="lowtide-zoo-") as scratch:
            folder = options.keep / name.replace("/", "-") if options.keep else pathlib.Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            for row in run_case(maker, options, name, family, folder):
                rows.append(row)
                if options.json:
                    options.json.write_text(json.dumps(rows, indent=1) + "\n")
    print("\n" + table(rows))
    counts = collections.Counter(row["state"] for row in rows)
    print(f"\n{len({row['name'] for row in rows})} models, {len(rows)} files: " + ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state]))
    return 1 if counts["silently wrong"] or counts["other forms"] or counts["crash"] else 0
