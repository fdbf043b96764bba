"""Step time and memory beside PyTorch's, on this machine, in one run: `tools/dev bench cpu`.

For every model folder: our artifact, PyTorch eager and torch.compile train the same architecture on the same rows with
the same number of threads, in turn, several rounds. Time is the median step of the best round of each. Memory is our
arenas (exactly what the runtime allocates) beside the live tensor bytes that PyTorch's profiler saw.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

from devkit import dependencies
from devkit.build import BUILD, build
from devkit.console import ROOT, Failure, say
from devkit.judge import call, first_error, read_run

DEFINITIONS = ROOT / "test" / "models"
OUT = ROOT / "docs" / "measurements"


def folders():
    collection = pathlib.Path(os.environ.get("LOWTIDE_MODELS") or ROOT.parent / "shared" / "models")
    roots = [DEFINITIONS] + ([collection] if collection.is_dir() else [])
    found = {}
    for root in roots:
        for spec in sorted(root.glob("*/train.json")):
            found.setdefault(spec.parent.name, spec.parent)
    return found


def compile_ours(folder, work):
    from devkit.record import Record

    record = Record(folder)
    artifact = work / "step.tide"
    command = [BUILD / "bin/lowtide", "compile", folder / "model.onnx", "-o", artifact, "--target=cpu", "--entries=train"]
    status, said = call([*command, *record.compiler_flags(folder / "model.onnx")], work / "compile.log")
    if status != 0:
        raise Failure(f"exit {status}: {first_error(said)}")
    return artifact


def run_ours(folder, artifact, work, steps, threads):
    log = work / "run.jsonl"
    log.unlink(missing_ok=True)
    command = [BUILD / "bin/lowtide-run", artifact, f"--data={folder / 'data.npz'}", f"--steps={steps}", f"--log-jsonl={log}", f"--threads={threads}"]
    status, said = call(command, work / "run.log")
    if status != 0:
        raise Failure(f"exit {status}: {first_error(said)}")
    header, rows = read_run(log)
    times = [row["step_ms"] for row in rows][4:]
    return {"step_ms": statistics.median(times), "steps": len(times), "peak_bytes": header.get("planned_bytes")}


def run_torch(python, folder, mode, seconds, threads):
    command = [python, "-B", "-m", "devkit.torch_peer", DEFINITIONS, folder.name, folder / "data.npz", folder / "train.json", mode, seconds, threads]
    done = subprocess.run(
        [str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tools"), "OMP_NUM_THREADS": str(threads)},
    )  # fmt: skip
    if done.returncode:
        raise Failure(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def best(old, new):
    return new if old is None or new["step_ms"] < old["step_ms"] else old


def measure(name, folder, python, options):
    row = {"model": name, "ours": None, "eager": None, "compile": None}
    with tempfile.TemporaryDirectory(prefix="lowtide-bench-") as scratch:
        work = pathlib.Path(scratch)
        try:
            artifact = compile_ours(folder, work)
        except Failure as failure:
            artifact, row["refused"] = None, str(failure)
        for _ in range(options.rounds):
            if artifact:
                try:
                    row["ours"] = best(row["ours"], run_ours(folder, artifact, work, options.steps, options.threads))
                except Failure as failure:
                    row["refused"], artifact = str(failure), None
            for mode in ("eager", "compile"):
                row[mode] = best(row[mode], run_torch(python, folder, mode, options.seconds, options.threads))
    return row


def table(rows):
    yield "| model | ours ms | eager ms | compiled ms | ours / eager | ours / compiled | our MB | eager MB | ours / eager |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        eager, compiled, ours = row["eager"], row["compile"], row["ours"]
        peers = f"{eager['step_ms']:.2f} | {compiled['step_ms']:.2f}"
        if not ours:
            yield f"| {row['model']} | – | {peers} | – | – | – | {eager['peak_bytes'] / 1e6:.2f} | – |"
            continue
        ratios = f"{ours['step_ms'] / eager['step_ms']:.2f} | {ours['step_ms'] / compiled['step_ms']:.2f}"
        memory = f"{ours['peak_bytes'] / 1e6:.2f} | {eager['peak_bytes'] / 1e6:.2f} | {ours['peak_bytes'] / eager['peak_bytes']:.2f}"
        yield f"| {row['model']} | {ours['step_ms']:.2f} | {peers} | {ratios} | {memory} |"


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev bench", description="Step time and memory beside PyTorch's, written to docs/measurements.")
    parser.add_argument("target", choices=["cpu"])
    parser.add_argument("models", nargs="*", help="folder names; all when none is named")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100, help="steps of ours per round")
    parser.add_argument("--seconds", type=float, default=3, help="time of PyTorch per round")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(argv)
    try:
        build(["lowtide", "lowtide-run"])
        python = dependencies.environment("oracles")
        known = zoo_names()
        rows = []
        for name, folder in folders().items():
            if name not in known or (options.models and name not in options.models):
                continue
            rows.append(measure(name, folder, python, options))
            say(list(table(rows))[-1])
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    load = os.getloadavg()[0]
    machine = {"processor": processor(), "threads": options.threads, "load_at_end": round(load, 1), "torch": rows[0]["eager"]["torch"] if rows else None}
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "cpu.json").write_text(json.dumps({"machine": machine, "models": rows}, indent=1) + "\n")
    text = ["# CPU: one training step beside PyTorch", "", f"{machine['processor']}, {options.threads} threads, PyTorch {machine['torch']}; `tools/dev bench cpu`.",
            "Time: median step, best of the rounds. Memory: our arenas; PyTorch's live tensor bytes by its profiler.", "", *table(rows)]  # fmt: skip
    (OUT / "cpu.md").write_text("\n".join(text) + "\n")
    print("\n".join(text))
    return 0


def zoo_names():
    """Models that test/models/zoo.py defines; read as text, for PyTorch lives in another environment."""
    import re

    return set(re.findall(r'^    "([\w-]+)":', (DEFINITIONS / "zoo.py").read_text(), re.M))
