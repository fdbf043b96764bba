"""Accidents of a run whose values wait in a file: spill_accidents.py <binaries> <models> [--every=N], JSON rows.

On the CPU twice: with io_uring, where this machine has it, and with threads that read and write; and once for a GPU, emulated, whose
copies are functions of the host.

The run is killed at every N-th transfer to or from that file, or refused it: a full disk, an error of the device, transfers of
a few bytes, no room at the start. Each time: the folder of the file is empty afterwards; what is refused ends the run in words
and with the documented code; every checkpoint is whole and has the bits of an undisturbed run; going on from the last one
reaches that run's end.
"""

import argparse
import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from accidents import FILES, Lost, digest, is_sound

UNSUPPORTED, OVER_BUDGET, IO = 3, 4, 8  # docs/reference/exit-codes.md
STEPS, EVERY = 6, 2
PAGE = 4096
# What moves bytes, and where is computed.
PLACES = {
    "io_uring": ("io_uring", ["--device-budget=230000"]),
    "threads": ("threads", ["--device-budget=230000"]),
    "GPU": ("threads", ["--target=cuda-emulated", "--device-budget=300000"]),
}


class Runs:
    """One artifact, and what a run of it gives that nothing happens to."""

    def __init__(self, binaries, model, work, way, target):
        self.binaries, self.model, self.work, self.way = binaries, model, work, way
        self.preload = binaries.parent / "test" / "lib" / "accidental-calls.so"
        self.artifact = work / "a.tide"
        subprocess.run([binaries / "lowtide", "compile", model / "model.onnx", "-q", "-o", self.artifact, "--batch=64", "--optimizer=adamw",
                        "--disk-budget=1GiB", *target], check=True, stdin=subprocess.DEVNULL)  # fmt: skip
        for name, every in (("whole", 1), ("counted", EVERY)):
            code, said = self.run(name, f"--checkpoint-every={every}", accident=f"count:{work / 'transfers'}")
            if code:
                raise Lost(f"exit {code}: {said[-300:]}")
        self.transfers = int((work / "transfers").read_text().split()[-1])
        # A run that is refused something saves where it is.
        self.expected = self.checkpoints("whole")

    def run(self, name, *flags, accident=None, steps=STEPS):
        """(exit code, what was said); the file lies in a folder of its own."""
        spill = self.work / f"{name}-spill"
        spill.mkdir(exist_ok=True)
        env = {"LD_PRELOAD": str(self.preload), "LOWTIDE_TRANSFER": accident} if accident else {}
        line = [self.binaries / "lowtide-run", self.artifact, f"--data={self.model / 'data.npz'}", f"--steps={steps}", "-q", "--threads=1",
                f"--save={self.work / name}", f"--spill={spill}", f"--spill-io={self.way}", *flags]  # fmt: skip
        done = subprocess.run([str(word) for word in line], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env=os.environ | env)
        if left := os.listdir(spill):
            raise Lost(f"{left} is left in the folder of the file")
        return done.returncode, done.stderr

    def checkpoints(self, name):
        """The digests of parameters and state, by checkpoint."""
        found = [path for path in sorted((self.work / name).glob("step-*")) if path.is_dir()]
        if broken := [path.name for path in found if not is_sound(path)]:
            raise Lost(f"{broken} is not whole")
        return {path.name: [digest(path / file) for file in FILES[:2]] for path in found}

    def disturb(self, accident):
        """The exit code and words of a run with the accident, whose checkpoints hold; then it goes on to the end."""
        shutil.rmtree(self.work / "disturbed", ignore_errors=True)
        code, said = self.run("disturbed", f"--checkpoint-every={EVERY}", accident=accident)
        saved = self.checkpoints("disturbed")
        if not code and f"step-{STEPS:08}" not in saved:
            raise Lost("exit 0, and the last step is not saved")
        if wrong := [name for name, digests in saved.items() if digests != self.expected.get(name)]:
            raise Lost(f"{wrong} has other bits than the undisturbed run's")
        if saved:
            done = max(int(name.split("-")[1]) for name in saved)
            if done < STEPS:
                again, words = self.run("disturbed", f"--resume={self.work / 'disturbed'}", f"--checkpoint-every={EVERY}", steps=STEPS - done)
                if again:
                    raise Lost(f"going on: exit {again}: {words[-300:]}")
            if self.checkpoints("disturbed")[f"step-{STEPS:08}"] != self.expected[f"step-{STEPS:08}"]:
                raise Lost("going on leads to other bits")
        return code, said


def kill(runs, number):
    code, _ = runs.disturb(f"kill:{number}")
    if code != -9:
        raise Lost(f"exit {code}")


def refuse(why, words):
    def happen(runs, number):
        for once in ("fail", "fails"):
            code, said = runs.disturb(f"{once}:{number}:{why}")
            if not code and ("error: checkpoint: " in said and words in said or not said):
                continue  # a checkpoint before the last, or pages that stay in memory: every step is done, and saved
            # Room is asked for first: without it the step does not fit.
            if code != (OVER_BUDGET if number == 1 and why == errno.ENOSPC else IO) or words not in said or "error: " not in said:
                raise Lost(f"{once}: exit {code}: {said[-300:]}")

    return happen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    rows = []

    def row(name, happen):
        try:
            happen()
            complaint = ""
        except Lost as lost:
            complaint = str(lost)
        rows.append({"name": name, "complaint": complaint})

    for name, (way, target) in PLACES.items():
        # On a disk: in memory there is no direct input and output.
        with tempfile.TemporaryDirectory(dir=options.binaries.parent) as work:
            try:
                runs = Runs(options.binaries.resolve(), options.models.resolve() / "mlp-digits", pathlib.Path(work), way, target)
            except Lost as lost:
                if way == "io_uring" and ("has no io_uring" in str(lost) or "without liburing" in str(lost)):
                    print(f"note: {lost}", file=sys.stderr)
                    continue
                raise
            # One of them while later steps are under way.
            numbers = sorted({1, runs.transfers // 6, runs.transfers, *range(2, runs.transfers, options.every)})
            kinds = {"killed": kill, "disk full": refuse(errno.ENOSPC, "No space left on device"), "device error": refuse(errno.EIO, "Input/output error")}
            for kind, happen in kinds.items():
                for number in numbers:
                    row(f"{name}: {kind} at transfer {number} of {runs.transfers}", lambda: happen(runs, number))  # noqa: B023

            def short():
                code, said = runs.disturb(f"short:{PAGE}")  # noqa: B023
                if code:
                    raise Lost(f"exit {code}: {said[-300:]}")

            row(f"{name}: short transfers", short)

    def refused():
        """io_uring is there for no process, as in many containers."""
        with tempfile.TemporaryDirectory(dir=options.binaries.parent) as work:
            os.environ["LOWTIDE_NO_RING"] = "1"
            try:
                runs = Runs(options.binaries.resolve(), options.models.resolve() / "mlp-digits", pathlib.Path(work), "auto", PLACES["io_uring"][1])
                code, said = runs.disturb(f"short:{1 << 30}")
                if code:
                    raise Lost(f"exit {code}: {said[-300:]}")
                runs.way = "io_uring"
                code, said = runs.run("asked", accident=f"short:{1 << 30}")
            finally:
                del os.environ["LOWTIDE_NO_RING"]
        if code != UNSUPPORTED or not any(words in said for words in ("has no io_uring for this process: Operation not permitted", "built without liburing")):
            raise Lost(f"asked for: exit {code}: {said[-300:]}")

    row("io_uring is refused", refused)
    print(json.dumps(rows))


if __name__ == "__main__":
    sys.exit(main())
