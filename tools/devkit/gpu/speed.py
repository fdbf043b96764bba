"""The stage that measures one workload: our artifacts and PyTorch take turns, in processes of their own, block by block."""

import json
import time

from devkit.gpu import blocks, start
from devkit.gpu.driver import MemoryWatch, await_idle, device_name, used_bytes

CYCLES = 3
OURS = "ours"
# The most interesting first: a stage that is cut has seen it.
MODES = ["compile", "eager", "checkpoint", "compile-checkpoint", "compile-budget0.5", "compile-cudagraphs"]
# Kernels below this many milliseconds are bound by their start, not by memory.
LONG_MS = 0.020


def baseline_rows(archive, results, workload):
    """What torch_baseline.py measured on this kind of machine, {mode: row}: in this file, or carried in the archive."""
    rows = list(results.get("torch").get(workload, []))
    carried = archive.home / "torch_baseline.json"
    if carried.exists():
        listed = json.loads(carried.read_text())
        machine = next((row.get("device") for row in listed if row.get("workload") == "ceilings"), None)
        if machine and machine == device_name():
            rows = [dict(row, carried=True) for row in listed] + rows
    return {row["mode"]: row for row in rows if row.get("workload") == workload and row.get("median_ms")}


def participants(archive, results, row, wanted):
    """Who takes turns: every artifact of ours, and the modes of PyTorch that no one has measured on such a machine; or those wanted."""
    ours = [OURS if name == "step" else f"{OURS}-{name}" for name in row["artifacts"] if archive.has(row, name)]
    theirs = MODES if row.get("torch") and (archive.home / "torch_baseline.py").exists() else []
    if wanted:
        unknown = set(wanted) - {*ours, *theirs}
        if unknown:
            raise ValueError(f"no contender '{min(unknown)}' of {row['name']}; there are {', '.join([*ours, *theirs])}")
        return [who for who in [*ours, *theirs] if who in wanted]
    known = baseline_rows(archive, results, row["torch"]) if row.get("torch") else {}
    return ours + [mode for mode in theirs if mode not in known]


def order(everyone):
    """One cycle: there and back."""
    return [*everyone, *reversed(everyone)]


def modelled_ms(instructions, ceilings):
    """A step's modelled time, by what the same process copied and multiplied at best; None where it did neither.

    Of each instruction, bytes at a copy's speed or, of a library's call, operations at a large product's: what takes longer.
    """
    copy, gemm = (1e6 * ceilings[key] for key in ("copy_gb_per_s", "gemm_gflops"))  # per millisecond
    if not copy or not gemm:
        return None
    return sum(one["runs"] * max(one["bytes"] / copy, 0 if one["generated"] else one["flops"] / gemm) for one in instructions)


class Speed:
    """One workload on one machine."""

    def __init__(self, archive, results, row, everyone, protocol, deadline, python):
        self.archive, self.results, self.row, self.protocol = archive, results, row, protocol
        self.everyone, self.deadline, self.python = everyone, deadline, python
        self.report = archive.home / "bench.json"
        self.baseline = used_bytes()
        self.found = {
            "workload": row["name"], "protocol": protocol, "device": device_name(), "chip": archive.contents["chip"], "emulated": archive.emulated,
            "runs": [], "details": {}, **{key: row.get(key) for key in ("batch", "units", "unit")},
        }  # fmt: skip

    def put(self):
        self.results.put("speed", self.row["name"], self.found)

    def prepare(self):
        """Batches and weights that everybody starts from."""
        self.data, self.torch_data = start.data_of(self.archive, self.row)
        self.weights = None
        if any(not who.startswith(OURS) for who in self.everyone):
            self.weights, why = start.weights_of(self.archive, self.row, self.data, self.deadline)
            self.found["same_start"] = why or True

    def command(self, who):
        counts = [f"--{key}={self.protocol[key]}" for key in ("blocks", "steps", "warmup")]
        if who.startswith(OURS):
            name = who[len(OURS) + 1 :] or "step"
            first = who not in self.found["details"]
            return self.archive.command(
                "lowtide-bench", self.archive.artifact(self.row, name), f"--data={self.data}", f"--json={self.report}",
                f"--profile={5 if first else 0}", *counts,
            )  # fmt: skip
        contender = self.archive.home / "devkit" / "gpu" / "torch_contender.py"
        return [self.python, contender, f"--definitions={self.archive.home / 'torch_baseline.py'}", f"--workload={self.row['torch']}", f"--mode={who}",
                f"--data={self.torch_data}", f"--json={self.report}", *([f"--weights={self.weights}", start.renamed(self.row)] if self.weights else []), *counts]  # fmt: skip

    def measure(self, who, cycle):
        """One process; its run, which is kept whatever came of it."""
        self.report.unlink(missing_ok=True)
        await_idle(self.baseline, self.deadline)
        begin = time.monotonic()
        with MemoryWatch() as watch:
            status, _, error = self.archive.run(list(map(str, self.command(who))), self.deadline.left())
        run = {"who": who, "cycle": cycle, "seconds": round(time.monotonic() - begin, 1), "process_bytes": watch.bytes}
        if status == 0 and self.report.exists():
            said = json.loads(self.report.read_text())
            run["block_ms"] = said["blocks"]["step_ms"]
            run.update(blocks.summary(run["block_ms"], self.protocol["spread"]))
            if said.get("last_loss", 0) is None:
                run.update(steady=False, why="its loss is not finite")
            run.update({key: said[key] for key in ("batch", "first_loss", "last_loss", "planned_bytes", "allocated_bytes", "tensor_bytes", "first_step_s", "event_ms", "target") if key in said})
            self.keep_details(who, said)
        elif status == 124 and self.deadline.near():
            run.update(steady=False, why="no time was left")
        else:
            run.update(steady=False, why=(error.strip().splitlines() or [f"exit {status}"])[-1], failed=True)
        self.found["runs"].append(run)
        self.conclude()
        shown = f"{run['median_ms']:.3f} ms ± {100 * run['spread']:.1f} %" if "median_ms" in run else ""
        print(f"{'ok  ' if run['steady'] else '-   '} {who}  {shown}  {run.get('why', '')}", flush=True)
        return run

    def keep_details(self, who, said):
        """What a process tells once: kinds of instructions, ceilings, libraries' choices; versions."""
        if who in self.found["details"]:
            return
        kept = {key: said[key] for key in ("kernels", "kinds", "advice", "ceilings", "floor_ms", "libraries", "library_choices", "besides", "torch", "device") if key in said}
        if "instructions" in said:
            long = [one for one in said["instructions"] if one["generated"] and one["milliseconds"] > LONG_MS]
            kept["modelled_ms"] = modelled_ms(said["instructions"], said["ceilings"])
            kept["long_kernels_gb_per_s"] = [round(one["bytes"] / 1e6 / one["milliseconds"], 1) for one in long]
        self.found["details"][who] = kept

    def turn(self, who, cycle):
        """One turn of a contender: a run, and another one where its blocks differ too much. Seconds that it took."""
        begin = time.monotonic()
        if not any(run.get("failed") for run in self.found["runs"] if run["who"] == who):
            run = self.measure(who, cycle)
            if not run["steady"] and "median_ms" in run and not self.deadline.near():
                self.measure(who, cycle)
        return time.monotonic() - begin

    def run(self):
        """Cycles there and back. The first one turns round where it would not come home in time; the others go as far."""
        self.prepare()
        taken = {}
        for who in self.everyone:
            if self.deadline.left() < sum(taken.values()) + 2 * max(taken.values(), default=0) or self.deadline.near():
                break
            taken[who] = self.turn(who, 0)
        there = list(taken)
        for who in reversed(there):
            if not self.deadline.near():
                self.turn(who, 0)
        for cycle in range(1, CYCLES):
            if self.deadline.left() < 2 * sum(taken.values()):
                break
            for who in order(there):
                if not self.deadline.near():
                    self.turn(who, cycle)
        self.conclude()
        for line in lines(self.found):
            print(line)

    def conclude(self):
        """Throughput of each, and how many times as fast as each contender ours is; after every run, for it may be the last."""
        everyone = self.everyone
        runs = self.found["runs"]
        self.found["batch"] = self.row.get("batch") or next((run["batch"] for run in runs if run.get("batch")), 1)
        samples = self.found["batch"] * self.row["units"]
        table = self.found["contenders"] = {}
        for who in everyone:
            median = blocks.median_ms(runs, who)
            memory = [run["process_bytes"] for run in blocks.counted(runs, who) if run["process_bytes"] is not None]
            why = next((run["why"] for run in runs if run["who"] == who and run.get("why")), "no time was left")
            table[who] = {"median_ms": median, "per_second": samples / median * 1e3, "process_bytes": max(memory, default=None)} if median else {"why": why}
            if median:
                table[who] |= {key: blocks.counted(runs, who)[0].get(key) for key in ("first_loss", "last_loss")}
        for mode, given in (baseline_rows(self.archive, self.results, self.row["torch"]) if self.row.get("torch") else {}).items():
            if mode not in table:
                # Of an earlier process, step by step: a ratio with it has no interval.
                table[mode] = {"median_ms": given["median_ms"], "per_second": samples / given["median_ms"] * 1e3, "process_bytes": given.get("process_bytes"), "reused": True}
        ratios = self.found["speedup"] = {}
        for ours in (who for who in everyone if who.startswith(OURS)):
            for theirs in (who for who in table if not who.startswith(OURS)):
                if not table[theirs].get("reused"):
                    found = blocks.speedup(runs, ours, theirs)
                elif table[ours].get("median_ms"):
                    found = {"ratio": table[theirs]["median_ms"] / table[ours]["median_ms"], "cycles": 0, "reused": True}
                else:
                    found = {"ratio": None, "cycles": 0, "why": table[ours]["why"]}
                ratios.setdefault(ours, {})[theirs] = found
        self.put()

    def counts(self):
        """(measured, failed, undone): ours must run; what PyTorch cannot run is a finding, not a failure."""
        everyone = self.everyone
        measured = [who for who in everyone if "median_ms" in self.found["contenders"][who]]
        failed = {run["who"] for run in self.found["runs"] if run.get("failed") and run["who"].startswith(OURS)}
        return len(measured), len(failed), len(everyone) - len(measured) - len(failed)


def lines(found):
    """The contenders as a table in words."""
    for who, row in found["contenders"].items():
        if "median_ms" not in row:
            yield f"{who:<22} {row['why']}"
            continue
        memory = f"{row['process_bytes'] / (1 << 30):7.2f} GiB" if row.get("process_bytes") is not None else "      –    "
        ratios = [f"{ratio['ratio']:.3f} × {theirs}" for theirs, ratio in found["speedup"].get(who, {}).items() if ratio["ratio"]]
        yield f"{who:<22} {row['median_ms']:9.3f} ms {row['per_second']:12.1f} {found.get('unit') or 'samples'}/s {memory}  {', '.join(ratios)}{'  reused' if row.get('reused') else ''}"


def run_stage(archive, results, name, protocol, deadline, python, wanted=()):
    """Measures the workload `name`; (measured, failed, undone). ValueError where there is none, or no such contender."""
    row = archive.workload(name)
    everyone = participants(archive, results, row, wanted)
    if not any(who.startswith(OURS) for who in everyone):
        raise ValueError(f"none of our artifacts of {name} takes part" + ("; it has none for the fake device" if archive.emulated else ""))
    speed = Speed(archive, results, row, everyone, protocol, deadline, python)
    speed.run()
    return speed.counts()
