"""The targets on a GPU (rows G1 to G12), filled in from what gpu-check measured: `tools/dev targets gpu-check.json`.

Each row has a gate and an ambitious aim. A row counts only what a GPU did by the protocol; everything else is "not measured",
with the reason. Findings of several files are put together, later files first.
"""

import argparse
import json
import pathlib
import re
import sys

from devkit.gpu import blocks

GIB = 1 << 30
# Losses after the last step of a run, from the same weights and batches: relative.
CURVE = 0.01
# Rows that compare with PyTorch, and by which workload.
COMPARED = {"G1": "gpt2", "G2": "gpt2-b64", "G3": "gpt2", "G4": "gpt2", "G6": "resnet50", "G7": "bert-large"}


class Unmeasured(Exception):
    """Why a row cannot be filled in."""


class Condition:
    """One figure beside its aim."""

    def __init__(self, value, aim, unit, at_most=False, note=""):
        self.value, self.aim, self.unit, self.at_most, self.note = value, aim, unit, at_most, note

    @property
    def held(self):
        return self.value <= self.aim if self.at_most else self.value >= self.aim

    def far(self):
        """What is missing, in words."""
        return f"{number(self.value)} of {'≤' if self.at_most else '≥'} {number(self.aim)}{self.unit} ({self.value / self.aim:.2f} ×)" if self.aim else self.text()

    def text(self):
        return f"{number(self.value)}{self.unit}{f' {self.note}' if self.note else ''}"


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


class Measured:
    """What gpu-check found, by workload."""

    def __init__(self, content):
        self.content = content

    def workload(self, name, any_protocol=False):
        found = self.content.get("speed", {}).get(name)
        if not found:
            raise Unmeasured(f"no run of {name}")
        if any(not str(run.get("target", "cuda:")).startswith("cuda:") for run in found["runs"]) or found.get("emulated"):
            raise Unmeasured(f"{name} did not run on a GPU")
        other = "" if any_protocol else blocks.published(found["protocol"])
        if other:
            raise Unmeasured(f"{name} not by the protocol: {other}")
        return found

    def variants(self, found):
        """Our contenders that were measured."""
        ours = {who: row for who, row in found.get("contenders", {}).items() if who.startswith("ours")}
        good = {who: row for who, row in ours.items() if row.get("median_ms")}
        if not good:
            raise Unmeasured(next((row["why"] for row in ours.values() if row.get("why")), "no contender of ours was measured"))
        return good

    def ratio(self, found, who, mode):
        """Speed over a mode of PyTorch, with a note on how sure it is."""
        given = found.get("speedup", {}).get(who, {}).get(mode)
        if not given or given["ratio"] is None:
            raise Unmeasured(f"{mode}: {(given or {}).get('why', 'PyTorch was not measured')}")
        self.require_equal_training(found, who, mode)
        if given.get("reused"):
            return given["ratio"], "(against an earlier run)"
        low, high = given.get("interval", (None, None))
        return given["ratio"], f"({low:.3f} to {high:.3f})" if low else "(one cycle)"

    def require_equal_training(self, found, who, mode):
        """No ratio of steps that do not train the same: the gate of the workload, and the losses of both after the last step."""
        gate = self.content.get("gate", {}).get(found.get("workload"), {})
        if gate.get("held") is False:
            raise Unmeasured(f"the gate of {found['workload']} does not hold: {gate['why']}")
        if found.get("same_start") is not True:
            return
        ours, theirs = (found["contenders"][one].get("last_loss") for one in (who, mode))
        if ours is not None and theirs and abs(ours / theirs - 1) > CURVE:
            raise Unmeasured(f"losses of {who} and {mode} end {100 * abs(ours / theirs - 1):.1f} % apart")

    def gate_note(self, workload):
        """Empty where the gate of a workload held."""
        return "" if self.content.get("gate", {}).get(workload, {}).get("held") else f"the gate of {workload} was not passed"

    def bytes_of(self, found, who):
        """Bytes that our runtime allocated."""
        sizes = [run["allocated_bytes"] for run in found["runs"] if run["who"] == who and run.get("allocated_bytes") is not None]
        if not sizes:
            raise Unmeasured(f"what {who} allocates is not known")
        return max(sizes)


def throughput(measured, name, gate, aim, gib=None, factor=None):
    """Speed over torch.compile, samples or tokens per second, GiB allocated: of the artifact that comes nearest to all of it."""
    found = measured.workload(name)
    best = None
    for who, row in measured.variants(found).items():
        ratio, note = measured.ratio(found, who, "compile")
        gates = [Condition(ratio, gate, " × compile", note=note)]
        aims = [Condition(row["per_second"], aim, f" {found['unit']}/s")]
        aims += [Condition(ratio, factor, " × compile", note=note)] if factor else []
        aims += [Condition(measured.bytes_of(found, who) / GIB, gib, " GiB", at_most=True)] if gib else []
        rank = (sum(c.held for c in gates + aims), row["per_second"])
        if best is None or rank > best[0]:
            best = (rank, gates, aims)
    return best[1:]


def memory_beside_compile(measured):
    """G3: the least memory among the artifacts that are fast enough; the fastest where none is."""
    found = measured.workload("gpt2")
    theirs = found.get("contenders", {}).get("compile", {}).get("process_bytes")
    if not theirs:
        raise Unmeasured("the memory of torch.compile's process is not known")

    def conditions(speed, share):
        rows = []
        for who, row in measured.variants(found).items():
            if row.get("process_bytes") is None:
                raise Unmeasured("the memory of our process is not known")
            ratio, note = measured.ratio(found, who, "compile")
            rows.append([Condition(row["process_bytes"] / theirs, share, " of compile's memory", at_most=True), Condition(ratio, speed, " × compile", note=note)])
        fast = [row for row in rows if row[1].held]
        return min(fast, key=lambda row: row[0].value) if fast else max(rows, key=lambda row: row[1].value)

    return conditions(1.0, 0.6), conditions(1.2, 0.5)


def layer_remat(measured):
    """G4: the artifact with the smallest plan."""
    found = measured.workload("gpt2")
    variants = measured.variants(found)
    who = min(variants, key=lambda name: measured.bytes_of(found, name))
    try:
        ratio, note = measured.ratio(found, who, "compile-checkpoint")
        beside = " × compile+checkpoint"
    except Unmeasured:
        ratio, note = measured.ratio(found, who, "checkpoint")
        beside = " × checkpoint without compile"
    size = Condition(measured.bytes_of(found, who) / GIB, 2.5, " GiB", at_most=True, note="without the context")
    return [Condition(ratio, 1.1, beside, note=note)], [Condition(variants[who]["per_second"], 480e3, " tok/s"), size]


def not_carried(measured):
    """G5: neither our side nor PyTorch's has a model of that size."""
    raise Unmeasured("no workload of that size is carried")


def largest_batch(measured):
    """G8: the largest batch of which a step ran, by any protocol: long steps leave no time for many."""
    ran = {}
    for name in measured.content.get("speed", {}):
        if not re.fullmatch(r"gpt2(-b\d+)?", name):
            continue
        try:
            found = measured.workload(name, any_protocol=True)
            ran[found["batch"]] = max(row["per_second"] for row in measured.variants(found).values())
        except Unmeasured:
            continue
    if not ran:
        raise Unmeasured("no run of gpt2")
    batch = max(ran)
    aims = [Condition(batch, 3000, " samples")]
    if batch >= 3000:
        speeds = measured.variants(measured.workload("gpt2-b64"))
        aims.append(Condition(ran[batch] / max(row["per_second"] for row in speeds.values()), 0.75, " of G2's speed"))
    return [Condition(batch, 700, " samples")], aims


def detailed(measured):
    """Name, findings and details of the first workload that is measured, GPT-2 first."""
    names = sorted(measured.content.get("speed", {}), key=lambda name: (name != "gpt2", name))
    for name in names:
        try:
            found = measured.workload(name)
            return name, found, measured.variants(found)["ours"], found["details"]["ours"]
        except (Unmeasured, KeyError):
            continue
    raise Unmeasured("no workload was measured")


def long_kernels(measured):
    """G9: generated kernels of more than 20 µs beside the copy of the same run."""
    name, _, _, details = detailed(measured)
    rates, copy = details.get("long_kernels_gb_per_s"), details["ceilings"]["copy_gb_per_s"]
    if not rates or not copy:
        raise Unmeasured(f"no generated kernel of {name} takes more than 20 µs" if copy else "the copy has no rate")
    share = 100 * blocks.quantile(rates, 0.5) / copy
    return [Condition(share, 75, " % of copy", note=f"({len(rates)} kernels of {name})")], [Condition(share, 90, " % of copy")]


def idle(measured):
    """G10: instructions timed one by one take at least as long as within the step, so this can show idling, never its absence."""
    name, _, row, details = detailed(measured)
    one_by_one = details.get("floor_ms", {}).get("instructions")
    if not one_by_one:
        raise Unmeasured(f"the instructions of {name} were not timed")
    share = 100 * (1 - one_by_one / row["median_ms"])
    if share <= 5:
        raise Unmeasured(f"{name}: instructions one by one take {one_by_one:.2f} ms, the step {row['median_ms']:.2f} ms; a profiler must tell")
    return [Condition(share, 5, " % idle at least", at_most=True)], [Condition(share, 1, " % idle at least", at_most=True)]


def planned(measured):
    """G11: bytes that the allocator counted beside the plan's, over everything that ran."""
    rows = [row for row in measured.content.get("correct", {}).values() if isinstance(row, dict) and str(row.get("target", "")).startswith("cuda:")]
    rows += [run for name, found in measured.content.get("speed", {}).items() for run in found["runs"] if str(run.get("target", "")).startswith("cuda:")]
    rows = [row for row in rows if row.get("planned_bytes")]
    if not rows:
        raise Unmeasured("nothing ran on a GPU")
    worst = max(100 * abs(row["allocated_bytes"] - row["planned_bytes"]) / row["planned_bytes"] for row in rows)
    return [Condition(worst, 1, " % apart", at_most=True, note=f"({len(rows)} runs)")], [Condition(worst, 0, " % apart", at_most=True)]


def model_error(measured):
    """G12: the step's time as modelled by the ceilings of the same run, beside the measured one."""
    name, _, row, details = detailed(measured)
    modelled = details.get("modelled_ms")
    if not modelled:
        raise Unmeasured(f"the instructions of {name} were not timed")
    error = 100 * abs(modelled / row["median_ms"] - 1)
    note = f"({name}: {modelled:.2f} ms modelled, {row['median_ms']:.2f} ms measured)"
    return [Condition(error, 20, " %", at_most=True, note=note)], [Condition(error, 7, " %", at_most=True)]


# Rows of the project's performance goals that a GPU decides: row → what it asks, gate, ambitious aim, how it is measured.
ROWS = {
    "G1": ("GPT-2 124M, batch 16", "≥ 1.00 × compile", "≥ 1.25 × compile, ≥ 560k tok/s", lambda m: throughput(m, "gpt2", 1.0, 560e3, factor=1.25)),
    "G2": ("GPT-2 124M, batch 64", "≥ 1.0 × compile", "≥ 610k tok/s", lambda m: throughput(m, "gpt2-b64", 1.0, 610e3)),
    "G3": ("G1's process memory beside compile's", "≤ 60 % at ≥ 1.0 × its speed", "≤ 50 % at ≥ 1.2 × its speed", memory_beside_compile),
    "G4": ("G1 at layer rematerialization", "≥ 1.1 × compile+checkpoint", "≥ 480k tok/s at ≤ 2.5 GiB + context", layer_remat),
    "G5": ("GPT-2 1.5B, batch 16", "≥ 1.0 × compile", "≥ 54k tok/s at ≤ 45 GiB", not_carried),
    "G6": ("ResNet-50, batch 256", "≥ 1.0 × compile", "≥ 8k img/s, ≤ 5.5 GiB", lambda m: throughput(m, "resnet50", 1.0, 8e3, gib=5.5)),
    "G7": ("BERT-large, batch 32, 512 tokens", "≥ 1.0 × compile", "≥ 430 seq/s, ≤ 12 GiB", lambda m: throughput(m, "bert-large", 1.0, 430, gib=12)),
    "G8": ("largest batch of GPT-2 124M", "≥ 700", "≥ 3,000 at ≥ 75 % of G2's speed", largest_batch),
    "G9": ("memory-bound kernels, median over generated ones > 20 µs", "≥ 75 % of copy", "≥ 90 % of copy", long_kernels),
    "G10": ("GPU idle inside a step", "≤ 5 %", "≤ 1 %", idle),
    "G11": ("planned beside measured peak", "within 1 %", "exact", planned),
    "G12": ("modelled beside measured step", "≤ 20 %", "≤ 7 %", model_error),
}  # fmt: skip


def fill(content):
    """One {"row", "what", "gate", "ambitious", "measured", "verdict"} per target; verdict begins with reached, gate reached, missed or not measured."""
    measured, filled = Measured(content), []
    for row, (what, gate, ambitious, ask) in ROWS.items():
        try:
            gates, aims = ask(measured)
            figures = "; ".join(dict.fromkeys(condition.text() for condition in unique([*gates, *aims])))
            missing = [condition.far() for condition in (gates if not all(c.held for c in gates) else aims) if not condition.held]
            word = "missed" if not all(c.held for c in gates) else "reached" if not missing else "gate reached"
            missing += [note for name in [COMPARED.get(row)] if name and (note := measured.gate_note(name))]
            verdict = word + ("" if not missing else ": " + "; ".join(missing))
        except Unmeasured as reason:
            figures, verdict = "–", f"not measured: {reason}"
        filled.append({"row": row, "what": what, "gate": gate, "ambitious": ambitious, "measured": figures, "verdict": verdict})
    return filled


def unique(conditions):
    """Each figure once, the first time with its note."""
    seen = {}
    for condition in conditions:
        seen.setdefault((condition.value, condition.unit), condition)
    return seen.values()


def together(contents):
    """Several files as one: stages are united, and what a later file says of a model or a workload counts."""
    whole = {}
    for content in contents:
        for stage, findings in content.items():
            whole.setdefault(stage, {}).update(findings)
    return whole


def table(content):
    """The page, line by line."""
    filled = fill(content)
    devices = sorted({found["device"] for found in content.get("speed", {}).values() if found.get("device")})
    yield f"Measured on: {', '.join(devices)}." if devices else "Nothing of this was measured on a GPU."
    yield ""
    head = ["row", "what", "gate", "ambitious", "measured", "verdict"]
    for cells in (head, ["---"] * len(head), *([row[key] for key in head] for row in filled)):
        yield "| " + " | ".join(cells) + " |"


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev targets", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path, help="gpu-check.json, one or several")
    parser.add_argument("--json", type=pathlib.Path, help="also write the rows to this file")
    options = parser.parse_args(argv)
    try:
        content = together(json.loads(path.read_text()) for path in options.files)
    except (OSError, ValueError) as error:
        print(f"error: {error}\nnote: these files are what gpu-check --json=FILE writes", file=sys.stderr)
        return 1
    print("\n".join(table(content)))
    if options.json:
        options.json.write_text(json.dumps(fill(content), indent=1) + "\n")
    return 0
