#!/usr/bin/env python3
"""Check and measure Lowtide on this machine's GPU: `./gpu-check --stage=correct`, `./gpu-check --stage=speed:<model>`.

Runs inside the archive that `tools/dev bundle` writes; needs Python's standard library alone. Results go to
gpu-check.json as they come, so that a run that is cut short still counts. Exit: 0 when everything held.

  correct        device facts and ceilings; every model: 20 steps against the recorded losses, twice with the same bits,
                 planned against allocated memory
  budgets        every model under several device budgets: losses with the bits of the step without one
  memory         what a process of each model takes of the GPU beside what its plan says
  sanitize       small models under compute-sanitizer (memcheck, initcheck, racecheck), where it is installed and works
  speed:<model>  throughput, kernel table
  torch:<name>   PyTorch on the workload of that name (torch_baseline.py of the archive)
  emulated       the same models on the fake device (no GPU needed): tells whether the archive itself is sound
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
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


def each_model(contents, results, stage, judge):
    """Puts what `judge(row, seconds left)` finds of every model; False when one did not hold."""
    begin, good = time.monotonic(), True
    for row in contents["models"]:
        left = LIMIT - (time.monotonic() - begin)
        found = judge(row, left) if left > 5 else {"held": None, "why": "no time was left"}
        if found is None:
            continue
        results.put(stage, row["name"], found)
        good = good and found["held"] is not False
        word = {True: "ok  ", False: "FAIL", None: "-   "}[found["held"]]
        print(f"{word} {row['name']}  {found.get('why', '')}", flush=True)
    return good


def judge_budgets(row, left):
    """Whether the artifacts of one model under budgets give the same losses, within their bytes."""
    if not row.get("budgets"):
        return None
    home, begin = HERE / "models" / row["name"], time.monotonic()
    whole, error = losses(home, "cuda.tide", row["steps"], HERE, left)
    if not whole:
        return {"held": False, "why": error}
    for file, budget in row["budgets"].items():
        run_left = left - (time.monotonic() - begin)
        fitted, error = losses(home, file, row["steps"], HERE, run_left) if run_left > 5 else (None, "no time was left")
        if not fitted:
            return {"held": None if "no time" in error else False, "why": f"{file}: {error}"}
        if fitted["losses"] != whole["losses"]:
            return {"held": False, "why": f"{file}: other losses than without a budget"}
        if fitted["allocated_bytes"] > budget:
            return {"held": False, "why": f"{file}: {fitted['allocated_bytes']} bytes allocated of {budget}"}
    return {"held": True, "budgets": sorted(row["budgets"].values())}


def used_bytes():
    """Bytes of the first GPU that are in use, as its driver counts them; None where nobody can say."""
    try:
        done = subprocess.run(["nvidia-smi", "--id=0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, timeout=20)  # fmt: skip
        return int(done.stdout.strip()) << 20
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def judge_memory(row, left):
    """The largest use of the GPU while a model runs, less what was in use before; the rest is CUDA's own."""
    before = used_bytes()
    if before is None:
        return {"held": None, "why": "nvidia-smi does not say what is in use"}
    home, peak, done = HERE / "models" / row["name"], [before], threading.Event()

    def watch():
        while not done.is_set():
            peak[0] = max(peak[0], used_bytes() or 0)

    thread = threading.Thread(target=watch)
    thread.start()
    summary, error = losses(home, "cuda.tide", 200, HERE, left)
    done.set()
    thread.join()
    if not summary:
        return {"held": False, "why": error}
    measured, planned = peak[0] - before, summary["planned_bytes"]
    return {"held": summary["allocated_bytes"] == planned, "planned_bytes": planned, "process_bytes": measured, "beside_the_plan": measured - planned}


def judge_sanitizer(row, left):
    """A few steps under each of compute-sanitizer's tools."""
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.path.exists(program):
        return {"held": None, "why": "compute-sanitizer is not installed"}
    home, begin, found = HERE / "models" / row["name"], time.monotonic(), {"held": True, "tools": {}}
    for tool in ("memcheck", "initcheck", "racecheck"):
        command = [program, "--tool", tool, "--error-exitcode", "99", HERE / "bin" / "lowtide-run", home / "cuda.tide",
                   f"--data={home / 'data.npz'}", "--steps=2", "--quiet"]  # fmt: skip
        environment = dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join(filter(None, [str(HERE / "lib"), os.environ.get("LD_LIBRARY_PATH")])))
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=max(1, left - (time.monotonic() - begin)))
            said = (done.stdout + done.stderr).strip().splitlines()
        except subprocess.TimeoutExpired:
            found["tools"][tool] = "no time was left"
            break
        found["tools"][tool] = said[-1] if said else f"exit {done.returncode}"
        if done.returncode == 99:
            found.update(held=False, why=f"{tool}: {found['tools'][tool]}", report=said[-40:])
        elif done.returncode:
            # It does not work on every machine (containers, other drivers): that is no finding about the model.
            found.update(held=None if found["held"] else False, why=f"{tool} did not run: {found['tools'][tool]}")
    return found


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


JUDGES = {"budgets": judge_budgets, "memory": judge_memory, "sanitize": judge_sanitizer}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", required=True, help="correct, budgets, memory, sanitize, emulated, speed:<model>, torch:<name>")
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path("gpu-check.json"))
    options = parser.parse_args()
    contents = json.loads((HERE / "contents.json").read_text())
    results = Results(options.json)
    results.put("archive", "chip", contents["chip"])
    if options.stage == "correct":
        good = stage_correct(contents, results, "cuda.tide", "correct")
    elif options.stage == "emulated":
        good = stage_correct(contents, results, "emulated.tide", "emulated")
    elif options.stage in JUDGES:
        good = each_model(contents, results, options.stage, JUDGES[options.stage])
    elif options.stage.startswith("speed:"):
        good = stage_speed(options.stage.removeprefix("speed:"), results)
    elif options.stage.startswith("torch:"):
        good = stage_torch(options.stage.removeprefix("torch:"), results)
    else:
        parser.error(f"unknown stage '{options.stage}'")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
