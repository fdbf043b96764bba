"""The stages that ask whether every model trains as it should; each judges a row of the contents.

A finding is {"held": True, False, or None where nothing can be said, "why": words, figures…}.
"""

import json
import os
import shutil

from devkit.gpu.archive import WORDS
from devkit.gpu.driver import MemoryWatch, used_bytes

OUT_OF_TIME = "no time was left"
LEFT_THE_RECORD = 9  # lowtide-run's exit status
# Names of generated kernels: their emitter and a number (lib/Codegen/KernelModule.cpp).
EMITTERS = ("loop", "row", "column", "scatter", "single", "batch", "cross")
OURS = ["--kernel-name", f"regex=^({'|'.join(EMITTERS)})_[0-9]+$"]
# compute-sanitizer's tools. memcheck sees every kernel: an address that we pass faults within a library's. Hazards in
# shared memory are a kernel's own, so racecheck leaves out those that are not ours. So does initcheck: `bind` makes each
# call of a library once, before anything is written. What these write it then misses, which is why the step runs with
# --poison: transient memory is NaN, and counts as written, in front of a step; a read too early shows in the losses.
SANITIZERS = {"memcheck": [], "initcheck": OURS, "racecheck": OURS}


def undone(why):
    return {"held": None, "why": why}


def against_the_record(archive, artifact, row, steps, *flags):
    """The command that trains a model, with what was recorded of it in its precision beside."""
    record = archive.record(row)
    start = [f"--init={record / row['init']}"] if "init" in row else []
    return archive.command(
        "lowtide-run", artifact, f"--data={record / 'data.npz'}", f"--steps={steps}",
        f"--expect={record / 'expected.json'}", f"--expect-key={row.get('expect_key', 'f32')}", *start, *flags, "--quiet",
    )  # fmt: skip


def train(archive, artifact, row, deadline, steps=None):
    """(summary of a run against the record, "") or (None, what happened in words)."""
    if deadline.near():
        return None, OUT_OF_TIME
    summary = archive.home / "summary.json"
    summary.unlink(missing_ok=True)
    command = against_the_record(archive, artifact, row, steps or row["steps"], f"--summary={summary}")
    status, _, error = archive.run(command, deadline.left())
    if summary.exists():
        result = json.loads(summary.read_text())
        result["exit"] = status
        return result, error.strip()
    return None, OUT_OF_TIME if status == 124 and deadline.near() else error.strip() or f"exit {status}"


def failed(error):
    return undone(error) if error == OUT_OF_TIME else {"held": False, "why": error}


def beside(losses, others, tolerances):
    """The largest |difference| of two runs in units of the recorded tolerance; infinite where one has no number."""
    if not losses or len(losses) != len(others) or len(losses) > len(tolerances):
        return float("inf")
    return max(float("inf") if a is None or b is None else abs(a - b) / t for a, b, t in zip(losses, others, tolerances))


def judge_correct(archive, row, deadline):
    """Recorded losses, twice the same bits, the CPU's losses, and the bytes of the plan."""
    first, error = train(archive, archive.artifact(row), row, deadline)
    if not first:
        return failed(error)
    found = {
        "held": True, "worst": first["expect_worst"], "target": first["target"], "planned_bytes": first["planned_bytes"],
        "allocated_bytes": first["allocated_bytes"], "median_step_ms": first["median_step_ms"],
    }  # fmt: skip

    def fail(why):
        found["held"], found["why"] = False, "; ".join(filter(None, [found.get("why"), why]))

    if not first["expect_held"] or first["exit"] != 0:
        fail(error.splitlines()[0] if error else first.get("expect_report") or "losses leave the record")
    if first["planned_bytes"] != first["allocated_bytes"]:
        fail(f"{first['allocated_bytes']} bytes allocated, {first['planned_bytes']} planned")
    again, error = train(archive, archive.artifact(row), row, deadline)
    found["same_bits"] = bool(again) and again["losses"] == first["losses"]
    if not again and error == OUT_OF_TIME:
        return found if found["held"] is False else {**found, **undone(error)}
    if not found["same_bits"]:
        fail(f"second run: {error}" if not again else "a second run has other bits")
    if archive.has(row, target="cpu"):
        cpu, error = train(archive, archive.artifact(row, target="cpu"), row, deadline)
        if not cpu:
            return found if found["held"] is False else {**found, **failed(f"on the CPU: {error}" if error != OUT_OF_TIME else error)}
        recorded = json.loads((archive.record(row) / "expected.json").read_text())["loss"]
        tolerances = recorded[f"{row.get('expect_key', 'f32')}_tolerance"]
        found["beside_cpu"] = beside(first["losses"], cpu["losses"], tolerances)
        if not found["beside_cpu"] <= 1:
            fail(f"{found['beside_cpu']:.3g} tolerances away from the CPU's losses")
    return found


def judge_budgets(archive, row, deadline):
    """Whether the artifacts of one model under budgets give the same losses, within their bytes."""
    budgets = {name: limit for name, limit in row["budgets"].items() if archive.has(row, name)}
    if not budgets:
        return None
    whole, error = train(archive, archive.artifact(row), row, deadline)
    if not whole:
        return failed(error)
    for name, budget in budgets.items():
        fitted, error = train(archive, archive.artifact(row, name), row, deadline)
        if not fitted:
            return failed(error if error == OUT_OF_TIME else f"{name}: {error}")
        if fitted["losses"] != whole["losses"]:
            return {"held": False, "why": f"{name}: other losses than without a budget"}
        if fitted["allocated_bytes"] > budget:
            return {"held": False, "why": f"{name}: {fitted['allocated_bytes']} bytes allocated of {budget}"}
    return {"held": True, "budgets": sorted(budgets.values())}


def judge_memory(archive, row, deadline):
    """The largest use of the GPU while a model runs, less what was in use before; what the plan does not hold is CUDA's own."""
    if used_bytes() is None:
        return undone("no driver says what is in use")
    with MemoryWatch() as watch:
        summary, error = train(archive, archive.artifact(row), row, deadline, steps=200)
    if not summary:
        return failed(error)
    planned, allocated = summary["planned_bytes"], summary["allocated_bytes"]
    found = {"held": allocated == planned, "planned_bytes": planned, "process_bytes": watch.bytes, "beside_the_plan": watch.bytes - planned}
    return found if found["held"] else {**found, "why": f"{allocated} bytes allocated, {planned} planned"}


def judge_sanitizer(archive, row, deadline):
    """A few steps under each of compute-sanitizer's tools."""
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.path.exists(program):
        return undone("compute-sanitizer is not installed")
    found = {"held": True, "tools": {}}
    run = against_the_record(archive, archive.artifact(row), row, 2, "--poison")
    for tool, flags in SANITIZERS.items():
        if deadline.near():
            return found if found["held"] is False else {**found, **undone(OUT_OF_TIME)}
        status, out, error = archive.run([program, "--tool", tool, "--error-exitcode", "99", *flags, *run], deadline.left())
        said = (out + error).strip().splitlines()
        # The tool's own lines begin so; the others are the program's.
        found["tools"][tool] = next((line for line in reversed(said) if line.startswith("=====")), said[-1] if said else f"exit {status}")
        if status == 99:
            found.update(held=False, why=f"{tool}: {found['tools'][tool]}", report=said[-40:])
        elif status == LEFT_THE_RECORD:
            found.update(held=False, why=f"{tool}: losses leave the record where transient memory is NaN before a step", report=said[-40:])
        elif status and found["held"]:
            # It does not work on every machine (containers, other drivers): that is no finding about the model.
            found.update(undone(f"{tool} did not run: {found['tools'][tool]}"))
    return found


JUDGES = {"correct": judge_correct, "budgets": judge_budgets, "memory": judge_memory, "sanitize": judge_sanitizer}


def facts(archive, results, deadline):
    """What the machine has, and what its device copies and multiplies at best; whether both are known."""
    status, said, error = archive.run(archive.command("lowtide-bench", "--doctor"), min(60, deadline.left()))
    print(said, end="")
    results.put("correct", "device", said.splitlines() if status == 0 else [error.strip()])
    artifact = next((archive.artifact(row) for row in archive.contents["models"] if archive.has(row)), None)
    report = archive.home / "ceilings.json"
    report.unlink(missing_ok=True)
    if artifact:
        status, said, error = archive.run(archive.command("lowtide-bench", artifact, "--ceilings", f"--json={report}"), min(120, deadline.left()))
    print(said, end="", flush=True)
    good = report.exists()
    results.put("correct", "ceilings", json.loads(report.read_text()) if good else {"why": error.strip() or f"exit {status}"})
    if not good:
        print(f"FAIL ceilings  {error.strip()}")
    return good


def run_stage(archive, results, stage, deadline, only=""):
    """Judges every model; (number that held, that failed, of which nothing can be said)."""
    counts = {True: 0, False: 0, None: 0}
    if stage == "correct" and not facts(archive, results, deadline):
        counts[False] += 1
    for row in archive.models(only):
        if not archive.has(row):
            continue
        found = undone(OUT_OF_TIME) if deadline.near() else JUDGES[stage](archive, row, deadline)
        if found is None:
            continue
        results.put(stage, row["name"], found)
        counts[found["held"]] += 1
        print(f"{WORDS[found['held']]} {row['name']}  {found.get('why', '')}", flush=True)
    return counts[True], counts[False], counts[None]
