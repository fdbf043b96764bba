"""Runs and compilations under every limit: limits.py <binaries> <models> [--steps=N] [--signals=N], JSON rows.

Address space from where the loader gives up to where nothing is missed, open files, size of files, data that shrink while
they are read, signals at moments of a run. Each ends with exit 0, or with a documented code and a message; what was sound
in a folder of checkpoints before is there afterwards.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from accidents import DOCUMENTED, INPUTS, SIGNALS, Lost, Tools, is_sound, sound_ones

# Before a program's first line the dynamic loader speaks, and ends with this.
LOADER = 127


def evenly(least, most, count):
    return [least + (most - least) * i // max(count - 1, 1) for i in range(count)]


def judge(what, code, said, more=()):
    """Raises when a program ended in a way that is not documented, or without a word."""
    if code == LOADER and said.strip():
        return
    if code == 0 or (code in DOCUMENTED | set(more) and ("error:" in said or "stopped by" in said)):
        return
    raise Lost(f"{what}: exit {code}: {said[-300:]!r}")


def run_limited(line, limits, env=None):
    """(exit code, what it said) of a command; None where the system does not even start it."""

    def limit():
        for kind, value in limits:
            resource.setrlimit(kind, (value, value))

    try:
        done = subprocess.run(
            [str(word) for word in line], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
            preexec_fn=limit, timeout=120, env=os.environ | (env or {}),
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        if isinstance(error, subprocess.TimeoutExpired):
            raise Lost("hung") from None
        return None
    return done.returncode, done.stderr


def least(line, is_enough):
    """KiB of address space from which on it is enough for how a program ends."""
    low, high = 0, 4 << 20
    while high - low > 1:
        middle = (low + high) // 2
        ended = run_limited(line, [(resource.RLIMIT_AS, middle << 10)])
        low, high = (low, middle) if ended and is_enough(ended[0]) else (middle, high)
    return high


def least_loaded(line):
    """Where a program's libraries are loaded."""
    return least(line, lambda code: code >= 0 and code != LOADER)


def least_started(line):
    """Where glibc's loader says that a library does not fit: below, the system or the loader itself ends in a signal."""
    found = least(line, lambda code: code != -signal.SIGSEGV)
    code = run_limited(line, [(resource.RLIMIT_AS, found << 10)])[0]
    if code != LOADER:
        raise Lost(f"the first to end without a signal, in {found} KiB of address space, is no loader: exit {code}")
    return found


class Folders:
    """Copies of a folder of checkpoints, one for each case."""

    def __init__(self, tools, scratch):
        self.tools, self.scratch = tools, scratch
        self.started = least_started([tools.binaries / "lowtide-run", "--help"]) << 10

    def fresh(self, name):
        path = self.scratch / name.replace(" ", "-")
        shutil.copytree(self.tools.work / "base", path)
        return path

    def limited(self, name, kind, value):
        path = self.fresh(name)
        before = sound_ones(path)
        line = [self.tools.binaries / "lowtide-run", self.tools.artifact, f"--data={self.tools.data}", "-q", "--threads=2", *self.tools.go_on(path)]
        ended = run_limited(line, [(kind, value)])
        is_ours = kind != resource.RLIMIT_AS or value >= self.started or ended != (-signal.SIGSEGV, "")
        if ended and is_ours:
            judge(name, *ended)
        for checkpoint, files in before.items():
            if sound_ones(path).get(checkpoint) != files:
                raise Lost(f"{name}: {checkpoint} was sound and is not what it was")
        shutil.rmtree(path)

    def compiled(self, name, kind, value):
        out = self.scratch / (name.replace(" ", "-") + ".tide")
        ended = run_limited(
            [self.tools.binaries / "lowtide", "compile", INPUTS / "two-layers.onnx", "--batch=4", "-q", "-o", out], [(kind, value)], {"TMPDIR": str(self.scratch)}
        )
        if not ended:
            return
        judge(name, *ended)
        if ended[0] and out.exists():
            raise Lost(f"{name}: an artifact was left by a compilation that failed")
        if not ended[0]:
            checked = run_limited([self.tools.binaries / "lowtide", "verify", out], [])
            if checked[0]:
                raise Lost(f"{name}: exit 0, and the artifact is {checked[1][-200:]!r}")
        out.unlink(missing_ok=True)

    def signalled(self, name, number, seconds):
        path = self.fresh(name)
        before = sound_ones(path)
        process = self.tools.start(*self.tools.go_on(path, steps=2_000_000)[:3])
        time.sleep(seconds)
        process.send_signal(number)
        code, said = self.tools.end(process, killed=True)
        # Before the program could say what it does then, the system's way is the right one.
        if code != -number:
            judge(name, code, said, {128 + number})
        if any(sound_ones(path).get(checkpoint) != files for checkpoint, files in before.items()):
            raise Lost(f"{name}: a sound checkpoint is not what it was")
        if code == 128 + number and not is_sound(path / (path / "latest").read_text().strip()):
            raise Lost(f"{name}: what was saved at the end is not sound")
        shutil.rmtree(path)

    def shrinking(self, name, seconds, bytes_):
        path, data = self.fresh(name), self.scratch / (name.replace(" ", "-") + ".npz")
        shutil.copy(self.tools.data, data)
        process = self.tools.start(*self.tools.go_on(path, steps=2_000_000)[:3], data=data)
        time.sleep(seconds)
        os.truncate(data, bytes_)
        judge(name, *self.tools.end(process))
        if not sound_ones(path):
            raise Lost(f"{name}: no checkpoint is left")
        shutil.rmtree(path)


def cases(folders, steps, moments):
    """(name, what to call with it)."""
    space, files, size = resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE
    for value in evenly(4 << 20, 320 << 20, steps):
        yield f"run in {value >> 10} KiB of address space", lambda name, v=value: folders.limited(name, space, v)
    for value in evenly(128 << 20, 1800 << 20, max(steps // 4, 4)):
        yield f"compile in {value >> 20} MiB of address space", lambda name, v=value: folders.compiled(name, space, v)
    # Most is missed where the libraries have just been loaded.
    binaries = folders.tools.binaries
    run, compilation = least_loaded([binaries / "lowtide-run", "--help"]), least_loaded([binaries / "lowtide", "--help"])
    for kib in evenly(0, 48 << 10, max(steps // 4, 4)):
        yield f"run in {run} + {kib} KiB", lambda name, v=(run + kib) << 10: folders.limited(name, space, v)
        yield f"compile in {compilation} + {kib} KiB", lambda name, v=(compilation + kib) << 10: folders.compiled(name, space, v)
    for value in range(3, 30, 1 if steps > 50 else 5):
        yield f"run with {value} open files", lambda name, v=value: folders.limited(name, files, v)
        yield f"compile with {value} open files", lambda name, v=value: folders.compiled(name, files, v)
    for value in evenly(0, 60_000, max(steps // 8, 5)):
        yield f"run with files of {value} bytes", lambda name, v=value: folders.limited(name, size, v)
        yield f"compile with files of {value} bytes", lambda name, v=value: folders.compiled(name, size, v)
    for number in SIGNALS:
        for i in range(moments):
            yield f"{number.name} at moment {i}", lambda name, n=number, s=0.3 * i / moments: folders.signalled(name, n, s)
    for i in range(max(steps // 20, 2)):
        yield f"data that shrink, {i}", lambda name, i=i: folders.shrinking(name, 0.1 + 0.02 * (i % 10), 997 * i % 3000)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=10, help="limits of the address space")
    parser.add_argument("--signals", type=int, default=2, help="moments for each signal")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lowtide-limits-") as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        folders = Folders(Tools(options.binaries.resolve(), options.models.resolve(), pathlib.Path(scratch)), pathlib.Path(scratch))

        def trial(case):
            name, call = case
            try:
                call(name)
            except (Lost, OSError, ValueError) as error:
                return {"name": name, "complaint": f"{type(error).__name__}: {error}"}
            return {"name": name, "complaint": ""}

        rows = list(pool.map(trial, cases(folders, options.steps, options.signals)))
    json.dump(rows, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
