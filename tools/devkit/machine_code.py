"""What ptxas says of generated kernels, and which accesses their machine code has. Needs no GPU."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

from devkit import estimate, sweep
from devkit.build import BUILD, build
from devkit.console import Failure
from devkit.dependencies import cuda_toolkit, disassembler

USAGE = """tools/dev machine-code <model.onnx or folder>... [options]

Compile every model for sm_80 and sm_90a, each from PTX that was made for it. What ptxas reports of each kernel holds: no
stack, no spilled register, at most 128 registers. The machine code in the artifact reaches no local memory. Of the bytes
that generated kernels of the full-size graphs move, at least the recorded share belongs to kernels that read or write 16
bytes at a time there. Folders that hold train.json bring their own flags; other models get their batch, or 16.

options:
  --precision=LIST  of f32, mixed-bf16 and mixed-f16 (all)
  --bin=FOLDER      use these binaries; nothing is built
  --jobs=N          models at a time (default: all cores)
  --json=FILE       also write name and complaint of each model as JSON
  --markdown=FILE   also write the lines as a table
  --narrow          also print which kernels that move much have no access of 16 bytes

Every other flag goes to `lowtide compile`: --frozen-weights=nf4, for instance.
"""

CHIPS = ("sm_80", "sm_90a")
REGISTERS = 128
PRECISIONS = {
    "f32": ("--precision=f32",), "mixed-bf16": ("--precision=mixed-bf16",), "mixed-f16": ("--precision=mixed-f16", "--loss-scale=dynamic"),
}  # fmt: skip
# Of graphs without a record; of those with one, it says so itself.
BATCH = 16
BATCHES = {file: int(flag.removeprefix("--batch=")) for file, flags in estimate.MODELS.values() for flag in flags if flag.startswith("--batch=")}
# Kernels that together move this share of what generated kernels read and write are hot.
HOT = 0.9
# Full-size graph → of the bytes that its generated kernels move, what those with accesses of 16 bytes do at least. Pools, columns
# beside many sums and factors, and rows or parts whose length is no multiple of 16 bytes are the rest.
WIDE = {
    "bert-large": {"f32": 0.96, "mixed-bf16": 0.87},
    "densenet121": {"f32": 0.7, "mixed-bf16": 0.76},
    "gpt2-124m": {"f32": 0.99, "mixed-bf16": 0.97},
    "llama-1b": {"f32": 0.96, "mixed-bf16": 0.91},
    "mobilenet-v1": {"f32": 0.96, "mixed-bf16": 0.81},
    "resnet50": {"f32": 0.92, "mixed-bf16": 0.88},
    "unet-128": {"f32": 0.9, "mixed-bf16": 0.91},
    "vgg19": {"f32": 0.85, "mixed-bf16": 0.8},
    "vit-b16": {"f32": 0.72, "mixed-bf16": 0.98},
}

ENTRY = re.compile(r"Compiling entry function '(\w+)'.*?(?=Compiling entry function|\Z)", re.S)
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\w*)((?:\.\w+)*)")
WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}


def sections(artifact):
    """Name → bytes of the sections of a .tide file (docs/artifact.md)."""
    data = pathlib.Path(artifact).read_bytes()
    count = struct.unpack_from("<I", data, 12)[0]
    found = {}
    for i in range(count):
        name, offset, size = struct.unpack_from("<32sQQ", data, 64 + 80 * i)
        found[name.rstrip(b"\0").decode()] = data[offset : offset + size]
    return found


def assemble(ptx, chip):
    """(kernel → registers, bytes of stack and bytes spilled, as ptxas reports them for `chip`; the cubin)."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "kernels.ptx"
        source.write_bytes(ptx)
        cubin = source.with_suffix(".cubin")
        done = subprocess.run(
            [cuda_toolkit() / "bin" / "ptxas", f"-arch={chip}", "-O3", "-fmad=false", "-v", source, "-o", cubin],
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        if done.returncode:
            raise Failure(f"ptxas refuses the PTX for {chip}: {done.stderr.strip()[-2000:]}")
        code = cubin.read_bytes()
    kernels = {}
    for match in ENTRY.finditer(done.stderr + done.stdout):
        # A function that was not inlined has lines of its own.
        frames = [[int(number) for number in found] for found in STACK.findall(match[0])]
        kernels[match[1]] = {
            "registers": int(re.search(r"Used (\d+) registers", match[0])[1]),
            "stack": sum(frame[0] for frame in frames), "spilled": sum(frame[1] + frame[2] for frame in frames),
        }  # fmt: skip
    return kernels, code


def accesses(cubin):
    """Kernel → its instructions that reach memory: {"local": how many, "global": {bytes of an access: how many}}."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([disassembler(), "-c", file.name], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise Failure(f"nvdisasm cannot read the machine code: {done.stderr.strip()[-2000:]}")
    parts = re.split(r"^\.text\.(\w+):", done.stdout, flags=re.M)
    kernels = {}
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        found = kernels[name] = {"local": 0, "global": {}}
        for opcode, modifiers in INSTRUCTION.findall(text):
            if opcode in ("LDL", "STL"):
                found["local"] += 1
            elif opcode in ("LDG", "STG", "LD", "ST"):
                size = next((WIDTHS[part] for part in modifiers.split(".") if part in WIDTHS), 4)
                found["global"][size] = found["global"].get(size, 0) + 1
    return kernels


def moved(plan):
    """Generated kernel → bytes that it reads and writes in a step; `plan` is text."""
    found = {}
    for instruction in estimate.instructions(plan):
        if instruction.kernel:
            found[instruction.kernel] = found.get(instruction.kernel, 0) + instruction.runs * instruction.bytes
    return found


def hot(bytes_of):
    """The kernels that move the most, up to HOT of all bytes."""
    chosen, left = [], HOT * sum(bytes_of.values())
    for name in sorted(bytes_of, key=lambda name: -bytes_of[name]):
        if left <= 0:
            break
        chosen.append(name)
        left -= bytes_of[name]
    return chosen


class Compiled:
    """An artifact's kernels for one chip."""

    def __init__(self, binaries, model, flags, chip):
        self.chip = chip
        with tempfile.TemporaryDirectory(prefix="lowtide-machine-code-") as work:
            artifact, plan = pathlib.Path(work) / "step.tide", pathlib.Path(work) / "plan"
            estimate.run([binaries / "lowtide", "compile", model, *flags, "--entries=train", "--no-weights", f"--target=cuda:{chip}", "-q", "-o", artifact])
            found = sections(artifact)
            plan.write_bytes(found["plan"])
            self.plan = estimate.run([binaries / "lowtide-translate", "--import-plan", plan])[0]
        self.ptx = found.get("ptx", b"")
        self.report = assemble(self.ptx, chip)[0] if self.ptx else {}
        self.accesses = accesses(found["cubin"]) if self.ptx else {}

    @property
    def complaints(self):
        """What ptxas or the machine code shows that must not be."""
        wrong = []
        if self.ptx and not re.search(rf"^\.target {self.chip}$", self.ptx.decode(), re.M):
            wrong.append("the PTX was not made for this chip")
        if self.report.keys() != self.accesses.keys():
            wrong.append("kernels differ between PTX and machine code")
        for name, facts in self.report.items():
            where = f"{name}: {self.what(name)}"
            if facts["stack"] or facts["spilled"] or self.accesses.get(name, {}).get("local"):
                wrong.append(f"local memory in {where}: {facts}")
            if facts["registers"] > REGISTERS:
                wrong.append(f"{facts['registers']} registers in {where}")
        return wrong

    def what(self, kernel):
        """What the plan says of a kernel."""
        found = re.search(rf'plan\.kernel @{kernel} .*"(.*)"', self.plan)
        return found[1].replace(r"\E2\80\A6", "…") if found else ""

    def wide(self, kernel):
        """Whether its machine code reads or writes 16 bytes at a time."""
        return 16 in self.accesses.get(kernel, {}).get("global", {})

    def narrow(self):
        """Hot kernels without an access of 16 bytes, in words."""
        bytes_of = moved(self.plan)
        total, names = sum(bytes_of.values()), [name for name in hot(bytes_of) if not self.wide(name)]
        return [f"{name}: {self.what(name)}, {bytes_of[name] / total:.1%} of the bytes, {self.accesses[name]['global']}" for name in names]

    def wide_share(self):
        """Of the bytes that generated kernels move, the share of those with an access of 16 bytes; 1 where there are none."""
        bytes_of = moved(self.plan)
        total = sum(bytes_of.values())
        return sum(size for name, size in bytes_of.items() if self.wide(name)) / total if total else 1.0


def look_at(model, precision, options):
    """One row: what holds of a model's kernels on all chips."""
    row = {"name": f"{model.parent.name}/{model.name} {precision}", "complaint": "", "narrow": []}
    flags = sweep.flags_of(model, [*PRECISIONS[precision], *options.flags], BATCHES.get(model.stem, BATCH))
    try:
        found = {chip: Compiled(options.bin, model, flags, chip) for chip in CHIPS}
    except Failure as failure:
        return row | {"complaint": str(failure)}
    complaints = [f"{chip}: {complaint}" for chip, compiled in found.items() for complaint in compiled.complaints]
    share, least = min(compiled.wide_share() for compiled in found.values()), WIDE.get(model.stem, {}).get(precision, 0)
    if share < least and model.parent.name == "structure":
        complaints.append(f"kernels with accesses of 16 bytes move {share:.3f} of the bytes, not {least:.2f}")
    for compiled in found.values():
        row["kernels"] = len(compiled.report)
        row[compiled.chip] = max((facts["registers"] for facts in compiled.report.values()), default=0)
    return row | {"complaint": "\n".join(complaints), "wide": share, "narrow": found[CHIPS[-1]].narrow()}


def main(argv):
    parser = argparse.ArgumentParser(usage=USAGE, add_help=False, allow_abbrev=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("paths", nargs="*", type=pathlib.Path)
    parser.add_argument("--precision", default=",".join(PRECISIONS))
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--narrow", action="store_true")
    options, options.flags = parser.parse_known_args(argv)
    if options.help or not options.paths:
        print(USAGE, end="")
        return 0 if options.help else 1
    precisions = options.precision.split(",")
    if unknown := set(precisions) - set(PRECISIONS):
        parser.error(f"unknown precision {min(unknown)}; there are {', '.join(PRECISIONS)}")
    models = [model.resolve() for model in sweep.models_of(options.paths, every_file=True)]
    try:
        if not options.bin:
            build(["lowtide", "lowtide-translate"])
            options.bin = BUILD / "bin"
        if not models:
            raise Failure("error: no .onnx file to look at")
        rows, lines = [], []
        cells = ("name", "kernels", *CHIPS, "wide")
        with concurrent.futures.ThreadPoolExecutor(max(options.jobs, 1)) as pool:
            for row in pool.map(lambda work: look_at(*work, options), [(m, p) for m in models for p in precisions]):
                rows.append(row)
                lines.append([f"{row[c]:.2f}" if isinstance(row.get(c), float) else str(row.get(c, "–")) for c in cells])
                print(("FAIL  " if row["complaint"] else "ok    ") + "  ".join(lines[-1]), flush=True)
                for line in [*row["complaint"].splitlines(), *(row["narrow"] if options.narrow else [])]:
                    print("      " + line, flush=True)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    if options.markdown:
        head = ("model", "kernels", *(f"registers, {chip}" for chip in CHIPS), "of the bytes, by 16")
        options.markdown.write_text("\n".join(estimate.table(head, lines)) + "\n")
    failed = sum(bool(row["complaint"]) for row in rows)
    print(f"{len(rows) - failed} of {len(rows)} artifacts hold")
    return 1 if failed else 0
