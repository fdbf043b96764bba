#!/usr/bin/env python3
"""Check and measure Lowtide on this machine's GPU: `./gpu-check --stage=correct`, `./gpu-check --stage=speed:<model>`.

Runs inside the archive that `tools/dev bundle` writes; needs Python's standard library alone. Results go to
gpu-check.json as they come, so that a run that is cut short still counts. Exit: 0 when everything held.

  correct        device facts and ceilings; every model: 20 steps against the recorded losses, twice with the same bits,
                 planned against allocated memory
  speed:<model>  throughput, kernel table
  torch:<name>   PyTorch on the workload of that name (torch_baseline.py of the archive)
  emulated       the same models on the fake device (no GPU needed): tells whether the archive itself is sound
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 8 * 60  # seconds of a stage


class Results:
    """One JSON file, written anew after every finding."""

    def __init__(self, path):
        self.path = path
        self.content = json.loads(path.read_text()) if path.exists() else {}

    def put(self, stage, name, value):
        self.content.setdefault(stage, {})[name] = value
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.content, indent=1) + "\n")
        temporary.replace(self.path)


def run(program, *arguments, timeout=LIMIT):
    """(exit status, standard output, standard error) of a program of the archive."""
    environment = dict(os.environ)
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(HERE / "lib"), environment.get("LD_LIBRARY_PATH")]))
    try:
        done = subprocess.run(
            [HERE / "bin" / program, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, env=environment
        )
    except subprocess.TimeoutExpired:
        return 124, "", f"no answer within {timeout:.0f} s"
    return done.returncode, done.stdout, done.stderr


def losses(home, artifact, steps, scratch, left):
    """Summary of a run against the record; its error in words instead."""
    summary = scratch / "summary.json"
    summary.unlink(missing_ok=True)
    status, _, error = run(
        "lowtide-run", home / artifact, f"--data={home / 'data.npz'}", f"--steps={steps}", f"--expect={home / 'expected.json'}",
        f"--summary={summary}", "--quiet", timeout=max(1, left),
    )  # fmt: skip
    if summary.exists():
        result = json.loads(summary.read_text())
        result["exit"] = status
        return result, error.strip()
    return None, error.strip() or f"exit {status}"


def check_model(row, artifact, scratch, left):
    home = HERE / "models" / row["name"]
    first, error = losses(home, artifact, row["steps"], scratch, left)
    if not first:
        return {"held": False, "why": error}
    again, _ = losses(home, artifact, row["steps"], scratch, left)
    found = {
        "held": first["expect_held"] and first["exit"] == 0,
        "worst": first["expect_worst"],
        "same_bits": bool(again) and again["losses"] == first["losses"],
        "planned_bytes": first["planned_bytes"],
        "allocated_bytes": first["allocated_bytes"],
        "median_step_ms": first["median_step_ms"],
    }
    if "cpu.tide" in row["targets"]:
        cpu, _ = losses(home, "cpu.tide", row["steps"], scratch, left)
        if cpu:
            pairs = [(a, b) for a, b in zip(first["losses"], cpu["losses"]) if a is not None and b is not None]
            found["worst_difference_from_cpu"] = max((abs(a - b) for a, b in pairs), default=None)
    found["held"] = found["held"] and found["same_bits"] and found["planned_bytes"] == found["allocated_bytes"]
    if not found["held"]:
        found["why"] = error or first.get("expect_report", "")
    return found


def stage_correct(contents, results, artifact, stage):
    begin, good = time.monotonic(), True
    status, said, error = run("lowtide-bench", "--doctor", timeout=60)
    results.put(stage, "device", said.splitlines() if status == 0 else error)
    print(said, end="")
    for row in contents["models"]:
        left = LIMIT - (time.monotonic() - begin)
        if left < 5:
            results.put(stage, row["name"], {"held": None, "why": "no time was left"})
            continue
        if artifact not in row["targets"]:
            continue
        found = check_model(row, artifact, HERE, left)
        results.put(stage, row["name"], found)
        good = good and found["held"]
        print(f"{'ok  ' if found['held'] else 'FAIL'} {row['name']}  {found.get('why', '')}", flush=True)
    return good


def stage_speed(name, results):
    home = HERE / "models" / name
    if not home.is_dir():
        print(f"error: no model '{name}'\nnote: {', '.join(sorted(p.name for p in (HERE / 'models').iterdir()))}", file=sys.stderr)
        return False
    report = HERE / "bench.json"
    data = home / "data.npz" if (home / "data.npz").exists() else "synthetic"
    status, said, error = run("lowtide-bench", home / "cuda.tide", f"--data={data}", "--steps=200", "--warmup=20", f"--json={report}")
    print(said, end="")
    results.put("speed", name, json.loads(report.read_text()) if status == 0 else {"why": error.strip()})
    return status == 0


def stage_torch(name, results):
    script = HERE / "torch_baseline.py"
    if not script.exists():
        print("error: the archive has no torch_baseline.py\nnote: make it with tools/dev bundle --torch=FILE", file=sys.stderr)
        return False
    out = HERE / "torch"
    status = subprocess.run([sys.executable, script, "--out", out, "--only", name, "--seconds", str(LIMIT - 30)]).returncode
    rows = out / "torch_baseline.json"
    if rows.exists():
        results.put("torch", name, json.loads(rows.read_text()))
    return status == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", required=True, help="correct, emulated, speed:<model>, torch:<name>")
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path("gpu-check.json"))
    options = parser.parse_args()
    contents = json.loads((HERE / "contents.json").read_text())
    results = Results(options.json)
    results.put("archive", "chip", contents["chip"])
    if options.stage == "correct":
        good = stage_correct(contents, results, "cuda.tide", "correct")
    elif options.stage == "emulated":
        good = stage_correct(contents, results, "emulated.tide", "emulated")
    elif options.stage.startswith("speed:"):
        good = stage_speed(options.stage.removeprefix("speed:"), results)
    elif options.stage.startswith("torch:"):
        good = stage_torch(options.stage.removeprefix("torch:"), results)
    else:
        parser.error(f"unknown stage '{options.stage}'")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
