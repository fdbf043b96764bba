"""A file of the zoo trained in other forms than f32 on the CPU: for the emulated device, in 16 bits, in parts, under budgets."""

import json
import re
import subprocess

import numpy

from devkit.combinations import BUDGET, UNSUPPORTED, USAGE
from devkit.judge import first_error
from devkit.record import bind_dimensions

STEPS = 3
# Flags, and how far the first loss may lie from that of f32 on the CPU, and the others: parts of a loss and of one. Sampled and sorted
# values flip between precisions, so that only the first loss is compared there, roughly.
FORMS = {
    "cuda-emulated": (["--target=cuda-emulated"], 1e-4, 2e-4),
    "two parts": (["--micro-batches=2"], 1e-4, 2e-4),
    "mixed-bf16": (["--precision=mixed-bf16"], 0.1, None),
    "mixed-f16": (["--precision=mixed-f16"], 0.1, None),
    "cuda-emulated, mixed-bf16": (["--target=cuda-emulated", "--precision=mixed-bf16"], 0.1, None),
}
# Forms that a program may not have: what looks at all samples together has no parts, and not every batch divides.
OPTIONAL = {"two parts"}
# Of the bytes without a budget; compared bit by bit.
BUDGETS = ("80%", "55%")
# The exit code of a run that ends with numbers that are not finite, which are not saved.
NOT_FINITE = 7
# What batch norms compute differs in parts, and the compiler says so.
APART = "statistics over each part"
# So many times the distance of f32's losses from those of f64 another form in f32 may be away from the latter.
ROUNDINGS = 4


def write_data(folder):
    """The batch of record.npz as data of one step, floats in 32 bits; shapes by name."""
    with numpy.load(folder / "record.npz") as record:
        arrays = {name.removeprefix("input/"): record[name] for name in record.files if name.startswith("input/")}
    numpy.savez(folder / "data.npz", **{name: a.astype("f4") if a.dtype == numpy.float64 else a for name, a in arrays.items()})
    return {name: a.shape for name, a in arrays.items()}


class Trial:
    def __init__(self, binaries, folder, file, flags):
        self.binaries, self.folder, self.file, self.flags = binaries, folder, file, flags

    def call(self, program, *arguments):
        return subprocess.run([str(self.binaries / program), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")

    def train(self, *flags):
        """(losses, bytes that are saved, what the compiler said); an empty list where they are not finite; (None, its exit code, what it said)
        where it refuses."""
        artifact, saved, log = (self.folder / name for name in ("form.tide", "form", "form.jsonl"))
        done = self.call("lowtide", "compile", self.folder / self.file, "-o", artifact, "--optimizer=sgd", "--lr=0.01", "--entries=train", *self.flags, *flags)
        if done.returncode in (USAGE, UNSUPPORTED, BUDGET):
            return None, done.returncode, done.stderr
        if done.returncode:
            raise ValueError(f"compile: exit {done.returncode}: {first_error(done.stderr)}")
        ran = self.call("lowtide-run", artifact, f"--data={self.folder / 'data.npz'}", f"--steps={STEPS}", f"--log-jsonl={log}", f"--save={saved}", "--overwrite",
                        "--seed=3", "--poison", "--quiet", "--on-nonfinite=continue")  # fmt: skip
        if ran.returncode == NOT_FINITE:
            return [], {}, done.stderr
        if ran.returncode:
            raise ValueError(f"run: exit {ran.returncode}: {first_error(ran.stderr)}")
        losses = [row["loss"] for row in map(json.loads, log.read_text().splitlines()) if "step" in row and "loss" in row]
        return losses, {path.name: path.read_bytes() for path in sorted(saved.rglob("*.safetensors"))}, done.stderr


def differs(losses, others, first, rest):
    """Whether any loss is further away than it may be. 16 bits may overflow."""
    if not others and rest is None:
        return False
    bounds = [first, *[rest] * (len(losses) - 1)]
    far = [bound is not None and not abs(a - b) <= bound * (abs(a) + 1) for a, b, bound in zip(losses, others, bounds)]
    return len(losses) != len(others) or any(far)


def is_rounding(trial, losses, others):
    """Whether each loss is about as far from that of a run in f64 as the one in f32 is: norms of two or three numbers make much of
    a rounding."""
    exact = trial.train("--precision=f64")[0]
    return bool(exact) and len(exact) == len(losses) == len(others) and all(
        abs(b - c) <= ROUNDINGS * abs(a - c) for a, b, c in zip(losses, others, exact) if a != b
    )  # fmt: skip


def compare(binaries, folder, file, flags):
    """What differs, in words; empty where nothing does."""
    shapes = write_data(folder)
    trial = Trial(binaries, folder, file, [*flags, *bind_dimensions(folder / file, shapes)])
    whole, saved, said = trial.train()
    if not whole:
        return f"refused: {first_error(said)}" if whole is None else ""
    words = []
    for name, (form, first, rest) in ({"f32": ([], None, None)} | FORMS).items():
        try:
            losses, kept, said = (whole, saved, said) if not form else trial.train(*form)
            if losses is None:
                words += [] if name in OPTIONAL else [f"{name}: refused: {first_error(said)}"]
                continue
            if differs(whole, losses, first, rest) and not re.search(APART, said) and not ("16" not in name and is_rounding(trial, whole, losses)):
                words.append(f"{name}: losses {losses}, not {whole}")
            for budget in BUDGETS if "16" not in name or "emulated" in name else ():
                others, again, said = trial.train(*form, f"--device-budget={budget}")
                if others is None and again != BUDGET:
                    words.append(f"{name} under {budget}: refused: {first_error(said)}")
                elif others is not None and (others, again) != (losses, kept):
                    words.append(f"{name} under {budget}: other bits, losses {others}, not {losses}")
        except ValueError as error:
            words.append(f"{name}: {error}")
    return "; ".join(words)
