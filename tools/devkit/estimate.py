"""Full-size models for a GPU, without one: what their plans launch, move and hold, beside what is aimed at.

Every number is read off artifacts that were compiled without weights; nothing is executed and nothing is measured but the
time to compile. A step's modelled time is the sum over its kernels and calls of the larger of FLOPs over peak and bytes over
bandwidth; starting a kernel costs nothing in it.
"""

import argparse
import functools
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import typing

from devkit.build import BUILD, build
from devkit.console import Failure, collection, say
from devkit.fit_table import training_step
from devkit.step_types import StepTypes

GB, GIB = 1e9, 1 << 30
# One H200 as others have measured it: bytes copied, products of random bf16 numbers; f32 products without tensor cores.
BANDWIDTH, PEAKS, ATTENTION_PEAKS = 4.3e12, {"bf16": 790e12, "f16": 790e12, "f32": 60e12}, {"attention": 288e12, "attention_grad": 230e12}
# Calls that pass what is as large as their workspace through it: written once, read once.
CONVOLUTIONS = {"conv", "conv_input_grad", "conv_filter_grad"}
# Values are repeated elementwise even where no product is: that share of the FLOPs counts as none.
NO_FLOPS = 0.5

# name → file of the collection's folder `structure`, compiler flags
MODELS = {
    "gpt2-124m": ("gpt2-124m", ["--batch=16", "--precision=mixed-bf16"]),
    "bert-large": ("bert-large", ["--batch=32", "--precision=mixed-bf16"]),
    "resnet50": ("resnet50", ["--batch=256", "--precision=mixed-f16", "--optimizer=momentum"]),
    "resnet50-f32": ("resnet50", ["--batch=256", "--precision=f32", "--optimizer=momentum"]),
    "llama-1b": ("llama-1b", ["--batch=4", "--precision=mixed-bf16"]),
    "vit-b16": ("vit-b16", ["--batch=64", "--precision=mixed-bf16"]),
    "unet-128": ("unet-128", ["--batch=16", "--precision=mixed-bf16"]),
}
# Rows of the project's performance goals on what a step costs: row → model, figure, unit, what is aimed at.
COSTS = {
    "E1": ("gpt2-124m", "kernels", "", 275), "E2": ("gpt2-124m", "bytes", "GB", 43.3), "E3": ("gpt2-124m", "floor", "ms", 23.4),
    "E4": ("resnet50", "bytes", "GB", 71), "E5": ("bert-large", "bytes", "GB", 85),
}  # fmt: skip
NO_OFFLOAD = ["E6", "optimizer state on the host: ms exposed", "no plan: nothing is offloaded", "2 % of a step", "not there yet"]
# Rows of the project's performance goals on what a step holds; numbers left out are rows that do not apply here:
# row, model, FLOPs that may be repeated in percent, GiB aimed at, layouts of the state that it is reached with, one after the other.
SPLIT, SMALL = ("--master=split",), ("--master=split", "--moments=int8")
MEMORY = [
    ("A1", "gpt2-124m", NO_FLOPS, 4.85, ((), SPLIT)), ("A2", "gpt2-124m", 7.5, 3.75, ((), SPLIT)), ("A3", "gpt2-124m", 16.5, 2.30, ((), SPLIT)),
    ("A4", "gpt2-124m", 16.5, 1.60, (SMALL,)), ("A6", "bert-large", NO_FLOPS, 11.6, ((), SPLIT)), ("A7", "bert-large", 21, 3.3, (SMALL,)),
    ("A8", "resnet50-f32", NO_FLOPS, 12.9, ((),)), ("A9", "resnet50-f32", 10, 10.0, ((),)), ("A10", "resnet50-f32", 33, 6.9, ((),)),
    ("A11", "resnet50", 10, 5.2, ((),)),
]  # fmt: skip
PEAK = re.compile(r"at its peak ([\d.]+ \w+: .*)")
# Kernels that read no more of an operand than they write.
PICKING = re.compile(r"loop: (slice|gather|gather_elements)$")
INSTRUCTION = re.compile(r"plan\.(launch|call|copy|fill)\b")
SLICE = re.compile(r"@\w+\[\d+ \+ (\d+)\]")
STAGES = ("onnx", "nn", "train", "fitted", "plan", "ptx", "artifact")


def structures():
    found = collection()
    if not (found / "structure").is_dir():
        raise Failure(f"error: no folder 'structure' in {found}\nnote: LOWTIDE_MODELS names the collection of models")
    return found / "structure"


def run(command):
    """Standard output and seconds; a Failure with the first error."""
    start = time.monotonic()
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        said = next((line for line in done.stderr.splitlines() if "error:" in line), done.stderr.strip()[-300:])
        raise Failure(f"exit {done.returncode}: {said}\n  {shlex.join(map(str, command))}")
    return done.stdout, time.monotonic() - start


class Model:
    """One model, compiled and planned when first asked."""

    def __init__(self, name, options):
        file, flags = MODELS[name]
        self.name, self.options, self.flags = name, options, [*flags, "--entries=train", f"--target={options.target}", "-q"]
        self.path = structures() / f"{file}.onnx"

    @functools.lru_cache(maxsize=4)
    def text(self, stage, *more):
        """What the compiler prints of a stage, without a budget."""
        given = {flag.split("=")[0] for flag in more}
        flags = [flag for flag in self.flags if flag.split("=")[0] not in given]
        return run([self.options.lowtide, "compile", self.path, *flags, *more, f"--emit={stage}", "-o", "-"])[0]

    def plan(self, *more):
        """Text of the plan."""
        return self.text("plan", *more)

    def compile(self):
        """Seconds to the artifact, without weights, and its bytes."""
        with tempfile.TemporaryDirectory(prefix="lowtide-estimate-") as work:
            artifact = pathlib.Path(work) / "step.tide"
            seconds = run([self.options.lowtide, "compile", self.path, *self.flags, "--no-weights", "-o", artifact])[1]
            return seconds, artifact.stat().st_size

    @functools.lru_cache(maxsize=8)
    def ladder(self, *more):
        """(bytes of the device, repeated FLOPs in percent) of the plans from the smallest to the largest."""
        said, _ = run([self.options.lowtide, "fit", self.path, *self.flags, *more, "--json", f"--rows={self.options.rows}"])
        say(f"{' '.join((self.name, *more))}: {self.options.rows} budgets")
        return [(plan["device_bytes"], plan["flops_percent"]) for plan in training_step(said)["plans"]]

    def peak(self, budget, *more):
        """What is alive at the fullest point of the plan within a budget, in words."""
        flags = [flag for flag in self.flags if flag != "-q"]
        command = [self.options.lowtide, "compile", self.path, *flags, *more, f"--device-budget={budget}", "--emit=fitted", "-v", "-o", os.devnull]
        said = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True).stderr
        found = PEAK.findall(said)
        return found[-1] if found else f"not said: {said.strip()[-200:]}"

    def stages(self):
        """Seconds from the start to the end of each stage, one process each."""
        found = {}
        for stage in STAGES:
            if stage == "artifact":
                found[stage] = self.compile()[0]
            else:
                found[stage] = run([self.options.lowtide, "compile", self.path, *self.flags, f"--emit={stage}", "-o", os.devnull])[1]
        return found


class Instruction(typing.NamedTuple):
    """What a step does: `runs` times `flops` and `bytes`, of which `through` go through the workspace."""

    kind: str
    dtype: str  # of a call's operands
    runs: int
    flops: int
    bytes: int
    through: int
    kernel: str  # of a launch


def score_bytes(call):
    """Cotangents of scores in 16 bits, which the derivative of an attention writes and reads tile by tile, some samples at a time."""
    batch, heads, rows, columns = (int(re.search(rf"[{{ ]{name} = (\d+)", call)[1]) for name in ("batch", "heads", "rows", "columns"))
    return batch * heads * (-(-rows // 64) * 64) * (-(-columns // 128) * 128) * 2


def instructions(plan):
    """The instructions of the entry in the text of a plan."""
    kernels = dict(re.findall(r'plan\.kernel @(\w+) .*"(.*)"', plan))
    rounds = [1]
    for line in plan.splitlines():
        text = line.strip()
        if text.startswith("plan.repeat"):
            rounds.append(rounds[-1] * int(text.split()[1]))
        elif text.startswith("}") and len(rounds) > 1:
            rounds.pop()
        if not (found := INSTRUCTION.match(text)):
            continue
        kind, dtype, kernel = found[1], "", ""
        operands, writes, results = text.split(" scratch ")[0].split(" workspace ")[0].partition(" writes ")
        # What a call reads as several operands, parts of one tensor, comes from memory once.
        shown = list(SLICE.finditer(operands))
        shown = list({found[0]: found for found in shown}.values()) if kind == "call" else shown
        slices = [int(found[1]) for found in [*shown, *SLICE.finditer(results)]]
        if kind == "call":
            kind = re.search(r'plan\.call "(\w+)"', text)[1]
            dtype = (re.search(r'[{ ]dtype = "(\w+)"', text) or ["", "f32"])[1]
        elif kind == "launch":
            kernel = re.search(r"plan\.launch @(\w+)", text)[1]
            what = kernels.get(kernel, "kernel")
            kind = "batch" if what[0].isdigit() else what.split(":")[0]
            if PICKING.match(what):
                slices = [min(size, slices[-1]) for size in slices]
        size = 2 * slices[-1] if kind == "copy" else sum(slices)
        through = 2 * sum(int(size) for size in SLICE.findall(text.partition(" workspace ")[2])) if kind in CONVOLUTIONS else 0
        if kind == "attention_grad":
            through = 2 * score_bytes(text)
        flops = re.search(r" flops (\d+)", text)
        yield Instruction(kind, dtype, rounds[-1], int(flops[1]) if flops else 0, size + through, through, kernel)


def arenas(plan):
    """Arena of the device → bytes."""
    return {name: int(size) for name, size in re.findall(r"plan\.arena @(\w+) \w+ in device bytes (\d+)", plan)}


def floor_seconds(kind, dtype, flops, size, through):
    """Modelled seconds of an instruction. A convolution transposes before and after it computes."""
    peak = ATTENTION_PEAKS.get(kind, PEAKS.get(dtype, PEAKS["f32"]))
    apart = through if kind in CONVOLUTIONS else 0
    return max(flops / peak if dtype else 0, (size - apart) / BANDWIDTH) + apart / BANDWIDTH


def figures_of(plan):
    """Kernels per step (copies and fills too), bytes, modelled seconds; the same by kind."""
    kinds = {}
    for kind, dtype, runs, flops, size, through, _ in instructions(plan):
        row = kinds.setdefault(kind, {"kernels": 0, "bytes": 0, "floor": 0.0})
        row["kernels"] += runs
        row["bytes"] += runs * size
        row["floor"] += runs * floor_seconds(kind, dtype, flops, size, through)
    total = {key: sum(row[key] for row in kinds.values()) for key in ("kernels", "bytes", "floor")}
    return total, kinds


def scaled(value, unit):
    return value / GB if unit == "GB" else value * 1e3 if unit == "ms" else value


def verdict(value, aim):
    return "reached" if value <= aim else f"{value / aim:.2f} × the aim"


def table(head, rows):
    return ["| " + " | ".join(r) + " |" for r in (head, ["---"] * len(head), *rows)]


def state_layout(model):
    """What stays between steps in bytes per parameter, and what a residual stream is kept as, in words."""
    sizes, types = arenas(model.plan()), StepTypes(model.text("fitted"))
    count = sizes["params"] / 4
    params, state = sizes["params"] / count, sizes["state"] / count
    copied = types.copied_bytes / count
    precision = next((flag.partition("=")[2] for flag in model.flags if flag.startswith("--precision=")), "f32")
    narrow = f" and {copied:.1f} B that a step copies for products" if copied else ""
    said = f"{model.name} in {precision}: {count / 1e6:.1f} M parameters, each {params:.0f} B (f32), {state:.1f} B of state (f32)"
    said += f"{narrow}: {params + state + copied:.1f} B"
    # Those of the forward pass come first.
    stream = next(iter(types.streams), None)
    return f"{said}; residual stream {stream}" if stream else f"{said}; no residual stream"


def tell_costs(models):
    rows, layouts, kinds_of, totals = [], [], {}, {}
    for name, model in models.items():
        try:
            plan = model.plan()
            layouts.append(state_layout(model))
            seconds, size = ("–", "–") if model.options.plans else (lambda s, b: (f"{s:.1f}", f"{b / 1e6:.1f}"))(*model.compile())
        except Failure as failure:
            rows.append([name, "–", "–", "–", "–", "–", "–", str(failure).splitlines()[0]])
            continue
        totals[name], kinds_of[name] = figures_of(plan)
        total = totals[name]
        held = f"{sum(arenas(plan).values()) / GIB:.2f}"
        rows.append([name, str(total["kernels"]), f"{total['bytes'] / GB:.1f}", f"{total['floor'] * 1e3:.1f}", held, seconds, size, ""])
        say(" ".join(rows[-1]))
    yield from table(["model", "kernels", "GB", "modelled ms", "GiB", "s to compile", "artifact MB", ""], rows)
    yield ""
    rows = []
    for row, (name, figure, unit, aim) in COSTS.items():
        if name in totals:
            value = scaled(totals[name][figure], unit)
            what = "modelled time" if figure == "floor" else figure
            rows.append([row, f"{name}: {what}", f"{value:.1f} {unit}" if unit else str(value), f"{aim} {unit}".strip(), verdict(value, aim)])
    if "gpt2-124m" in totals:
        rows.append(loss_scaling_row(models["gpt2-124m"]))
    rows.append(NO_OFFLOAD)
    yield from table(["row", "figure of a step", "plan", "aim", ""], rows)
    yield ""
    yield from (f"- {line}" for line in layouts)
    for name, kinds in kinds_of.items():
        yield from ("", f"{name}, by kind:", "")
        ordered = sorted(kinds.items(), key=lambda item: -item[1]["floor"])
        yield from table(["kind", "kernels", "GB", "modelled ms"], [[k, str(r["kernels"]), f"{r['bytes'] / GB:.2f}", f"{r['floor'] * 1e3:.2f}"] for k, r in ordered])


def loss_scaling_row(model):
    """What a dynamic loss scale and clipping add to a step in f16."""
    plain = model.plan("--precision=mixed-f16")
    with_scale, without = figures_of(model.plan("--precision=mixed-f16", "--loss-scale=dynamic", "--clip-norm=1"))[0], figures_of(plain)[0]
    size = (with_scale["bytes"] - without["bytes"]) / (arenas(plain)["params"] / 4)
    added = with_scale["kernels"] - without["kernels"]
    return ["E7", f"{model.name} in f16: dynamic scale and clipping, bytes per parameter ({added} more kernels, no host synchronization)", f"{size:.1f} B", "2 B", verdict(size, 2)]


def tell_memory(models):
    rows, peaks = [], []
    for row, name, percent, aim, layouts in MEMORY:
        for layout in layouts if name in models else ():
            bytes_, flops = min(plan for plan in models[name].ladder(*layout) if plan[1] <= percent)
            allowed = "no product again" if percent == NO_FLOPS else f"at most +{percent:g} % FLOPs"
            rows.append([row, f"{name}, {allowed}", " ".join(layout), f"{bytes_ / GIB:.2f} GiB at {flops:+.1f} %", f"{aim} GiB", verdict(bytes_ / GIB, aim)])
            peaks.append(f"{' '.join((row, *layout))}: {models[name].peak(bytes_, *layout)}")
    yield from table(["row", "model", "layout of the state", "plan", "aim", ""], rows)
    yield ""
    yield from (f"- {state_layout(model)}" for name, model in models.items() if any(row[1] == name for row in MEMORY))
    yield ""
    yield "What is alive at the fullest point of each:"
    yield ""
    yield from (f"- {line}" for line in peaks)


def tell_compile(model):
    found = model.stages()
    before, rows = 0.0, []
    for stage, seconds in found.items():
        rows.append([stage, f"{max(0.0, seconds - before):.1f}", f"{seconds:.1f}"])
        before = seconds
    return table(["up to the stage", "s", "s from the start"], rows)


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev estimate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)}; all when none is named")
    parser.add_argument("--target", default="cuda:sm_90")
    parser.add_argument("--rows", type=int, default=49, help="budgets between the smallest and the largest plan (49)")
    parser.add_argument("--only", choices=["costs", "memory", "compile"], help="one part of the tables")
    parser.add_argument("--plans", action="store_true", help="leave machine code out: plans alone")
    parser.add_argument("--bin", type=pathlib.Path, help="use the binary in this folder; nothing is built")
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the tables to this file")
    options = parser.parse_args(argv)
    if unknown := set(options.models) - set(MODELS):
        parser.error(f"unknown model {min(unknown)}; there are {', '.join(MODELS)}")
    lines = []
    try:
        if not options.bin:
            build(["lowtide"])
        options.lowtide = (options.bin or BUILD / "bin") / "lowtide"
        models = {name: Model(name, options) for name in options.models or MODELS}
        parts = {"costs": lambda: tell_costs(models), "memory": lambda: tell_memory(models)}
        if first := models.get("gpt2-124m"):
            parts["compile"] = lambda: tell_compile(first)
        titles = {"costs": "## What a step launches and moves", "memory": "## What a step holds", "compile": "## Time to compile gpt2-124m"}
        for part, tell in parts.items():
            if options.only in (None, part):
                for line in ["", titles[part], "", *tell()]:
                    lines.append(line)
                    print(line, flush=True)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    finally:
        if options.markdown and lines:
            options.markdown.write_text("\n".join(lines[1:]) + "\n")
    return 0
