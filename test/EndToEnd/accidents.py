"""Seeded accidents with a folder of checkpoints: accidents.py <binaries> <models> [--count=N] [--first=SEED], JSON rows.

Every seed takes a folder with the checkpoints of a run and lets a few things happen to it: kills, refused calls and limits at
any place of a run that saves there, signals, other artifacts, other runs, damage, foreign checkpoints, lost pointers, full
disks, data that vanish. After each: every checkpoint that was sound before is there, unchanged; exit codes are documented
ones; a checkpoint of the run has the bits of a run that nothing happened to. At the end it can be gone on from.
"""

import argparse
import concurrent.futures
import errno
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}  # docs/reference/exit-codes.md
FILES = ("params.safetensors", "optimizer.safetensors", "state.json")
INPUTS = pathlib.Path(__file__).resolve().parent / "Inputs"
EVERY = 2  # steps from checkpoint to checkpoint
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)


class Lost(Exception):
    """What must not have happened, in words."""


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_sound(checkpoint):
    """By the manifest alone, as docs/artifact.md states it."""
    try:
        manifest = json.loads((checkpoint / "MANIFEST.json").read_text())
        return manifest["format"] == 2 and all(manifest["files"][name]["sha256"] == digest(checkpoint / name) for name in FILES)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def contents(checkpoint):
    return {path.name: path.read_bytes() if path.exists() else None for path in sorted(checkpoint.iterdir())}


def sound_ones(folder):
    return {path.name: contents(path) for path in folder.glob("step-*") if path.is_dir() and is_sound(path)}


class Tools:
    """Artifacts, data and what an undisturbed run saves, made once."""

    def __init__(self, binaries, models, work):
        self.binaries, self.work = binaries, work
        self.preload = binaries.parent / "test" / "lib" / "accidental-calls.so"
        self.data, self.mlp = work / "data.npz", models / "mlp-digits"
        # Stored, not deflated: read where the file lies, as large data are.
        with zipfile.ZipFile(INPUTS / "two-layers.npz") as packed, zipfile.ZipFile(self.data, "w") as stored:
            for name in packed.namelist():
                stored.writestr(name, packed.read(name))
        self.artifact = self.compile("a", INPUTS / "two-layers.onnx", "--batch=4", "--optimizer=momentum")
        self.narrow = self.compile("narrow", INPUTS / "two-layers.onnx", "--batch=4", "--optimizer=momentum", "--precision=bf16")
        self.other = self.compile("other", self.mlp / "model.onnx", "--batch=64")
        whole = work / "whole"
        self.must("--steps=12", "--checkpoint-every=1", f"--save={whole}")
        self.expected = {path.name: [digest(path / name) for name in FILES[:2]] for path in whole.glob("step-*")}
        self.must("--steps=6", f"--checkpoint-every={EVERY}", f"--save={work / 'base'}")
        self.must("--steps=5", "--checkpoint-every=2", "--seed=9", f"--save={work / 'alien'}")
        self.run_name = json.loads((work / "base" / "step-00000002" / "state.json").read_text())["run"]
        counted = work / "counted"
        shutil.copytree(work / "base", work / "rehearsal")
        self.must(*self.go_on(work / "rehearsal"), env={"LD_PRELOAD": self.preload, "LOWTIDE_ACCIDENT": f"count:{counted}"})
        self.calls = int(counted.read_text().split()[-1])

    def compile(self, name, model, *flags):
        out = self.work / f"{name}.tide"
        subprocess.run([self.binaries / "lowtide", "compile", model, "-q", "-o", out, *flags], check=True, stdin=subprocess.DEVNULL)
        return out

    def go_on(self, folder, steps=4):
        return f"--resume={folder}", f"--save={folder}", f"--steps={steps}", f"--checkpoint-every={EVERY}"

    def start(self, *flags, artifact=None, data=None, env=None, limits=()):
        def limit():
            for kind, value in limits:
                resource.setrlimit(kind, (value, value))

        artifact = artifact or self.artifact
        data = data or (self.mlp / "data.npz" if artifact == self.other else self.data)
        line = [self.binaries / "lowtide-run", artifact, f"--data={data}", "-q", "--threads=1", *flags]
        return subprocess.Popen(
            [str(word) for word in line], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
            preexec_fn=limit, env=os.environ | {k: str(v) for k, v in (env or {}).items()},
        )  # fmt: skip

    def end(self, process, killed=False):
        """(exit code, what it said)."""
        try:
            said = process.communicate(timeout=120)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            raise Lost("a run hung") from None
        code = process.returncode
        told = "error:" in said or "stopped by" in said or code == 0
        if not killed and (code not in DOCUMENTED | {128 + number for number in SIGNALS} or not told):
            raise Lost(f"exit {code}: {said[-400:]}")
        return code, said

    def run(self, *flags, killed=False, **how):
        return self.end(self.start(*flags, **how), killed)

    def must(self, *flags, **how):
        code, said = self.run(*flags, **how)
        if code:
            raise Lost(f"exit {code}: {said[-400:]}")
        return said


class Folder:
    """One folder and its accidents."""

    def __init__(self, tools, path, dice):
        self.tools, self.path, self.dice = tools, path, dice
        shutil.copytree(tools.work / "base", path)
        self.is_replaced = False

    # --- runs that die, or are refused something

    def interposed(self, accident, *flags):
        env = {"LD_PRELOAD": self.tools.preload, "LOWTIDE_ACCIDENT": accident}
        return self.tools.run(*(flags or self.tools.go_on(self.path)), env=env, killed=accident.startswith("kill"))

    def killed_at_a_call(self):
        self.interposed(f"kill:{self.dice.randint(1, self.tools.calls)}")

    def refused_a_call(self):
        why = self.dice.choice([errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EACCES, errno.EROFS])
        self.interposed(f"{self.dice.choice(['fail', 'fails'])}:{self.dice.randint(1, self.tools.calls)}:{why}")

    def killed_at_any_time(self):
        process = self.tools.start(*self.tools.go_on(self.path, steps=200_000))
        time.sleep(self.dice.random() * 0.25)
        process.kill()
        self.tools.end(process, killed=True)

    def limited(self):
        # With fewer files the program is not even loaded.
        kind, least, most = self.dice.choice([(resource.RLIMIT_FSIZE, 0, 60_000), (resource.RLIMIT_NOFILE, 5, 30)])
        self.tools.run(*self.tools.go_on(self.path), limits=[(kind, self.dice.randint(least, most))])

    def short_of_memory(self):
        # What such a run says is not looked at here.
        limit = self.dice.randint(1 << 23, 1 << 29)
        self.tools.run(*self.tools.go_on(self.path), limits=[(resource.RLIMIT_AS, limit)], killed=True)

    def signalled(self):
        number = self.dice.choice(SIGNALS)
        process = self.tools.start(*self.tools.go_on(self.path, steps=2_000_000)[:3])
        time.sleep(self.dice.random() * 0.3)
        process.send_signal(number)
        code, said = self.tools.end(process, killed=True)
        if code == -number:
            return  # before the program could say what it does then
        if code != 128 + number:
            raise Lost(f"{number.name}: exit {code}: {said[-400:]}")
        step = int(re.search(r"stopped by \w+ after step (\d+)", said)[1])
        if (self.path / "latest").read_text() != f"step-{step:08}\n" or not is_sound(self.path / f"step-{step:08}"):
            raise Lost(f"{number.name}: stopped after step {step}, which is not what was saved")

    def signalled_twice(self):
        process = self.tools.start(*self.tools.go_on(self.path, steps=2_000_000))
        time.sleep(0.05 + self.dice.random() * 0.1)
        for _ in range(2):
            process.send_signal(signal.SIGTERM)
        if (code := self.tools.end(process, killed=True)[0]) not in (143, -15):
            raise Lost(f"two signals: exit {code}")

    def full_log(self):
        code, said = self.tools.run(*self.tools.go_on(self.path), self.dice.choice(["--log-jsonl=/dev/full", f"--summary={self.path}/none/summary"]))
        if code != 8 or "error:" not in said:
            raise Lost(f"a log that cannot be written: exit {code}: {said[-400:]}")

    def vanishing_data(self):
        data = self.path.with_name(self.path.name + ".npz")
        shutil.copy(self.tools.data, data)
        process = self.tools.start(*self.tools.go_on(self.path, steps=2_000_000)[:3], data=data)
        time.sleep(0.1 + self.dice.random() * 0.1)
        os.truncate(data, self.dice.randint(0, 3000))
        if (code := self.tools.end(process)[0]) not in (2, 8):
            raise Lost(f"data that vanish: exit {code}")

    # --- who comes to the wrong folder

    def other_artifact(self):
        artifact = self.dice.choice([self.tools.other, self.tools.narrow])
        flags = self.dice.choice([(), ("--entry=eval",), (f"--save={self.path}",), ("--resume-strict",), (f"--save={self.path}", "--overwrite")])
        if self.tools.run(f"--resume={self.path}", "--steps=2", *flags, artifact=artifact)[0] == 0:
            raise Lost("another artifact resumed")

    def other_run(self):
        artifact = self.dice.choice([self.tools.other, self.tools.artifact])
        code, said = self.tools.run(f"--save={self.path}", "--steps=6", "--checkpoint-every=1", "--keep=2", "--seed=5", artifact=artifact)
        if code != 1 or "--overwrite" not in said:
            raise Lost(f"a new run in an old folder: exit {code}: {said[-400:]}")

    def two_at_once(self):
        first = self.tools.start(*self.tools.go_on(self.path, steps=20_000_000)[:3])
        lock, deadline = self.path / ".lock", time.monotonic() + 60
        while time.monotonic() < deadline and not (lock.exists() and lock.read_text().startswith(f"process {first.pid} ")):
            time.sleep(0.01)
        code, said = self.tools.run(*self.dice.choice([self.tools.go_on(self.path), (f"--save={self.path}", "--steps=2", "--overwrite")]))
        first.send_signal(signal.SIGTERM)
        self.tools.end(first, killed=True)
        if code != 1 or f"process {first.pid} on " not in said:
            raise Lost(f"a second run at once: exit {code}: {said[-400:]}")

    def overwriting(self):
        """Dies, or not, at any place: what was there goes only when there is something to replace it."""
        before = sound_ones(self.path)
        self.interposed(f"kill:{self.dice.randint(1, self.tools.calls)}", f"--save={self.path}", "--overwrite", "--steps=3", "--seed=5", "--checkpoint-every=1")
        if any(sound_ones(self.path).get(name) != files for name, files in before.items()):
            self.is_replaced = True
            if not is_sound(self.path / (self.path / "latest").read_text().strip()):
                raise Lost("checkpoints went, and no sound one is there instead")

    # --- what happens to the files

    def damaged(self):
        """One is no longer sound; nothing happens to the others."""
        victim = self.dice.choice(sorted(path for path in self.path.glob("step-*") if path.is_dir() and is_sound(path)))
        file = victim / self.dice.choice([*FILES, "MANIFEST.json"])
        bytes_ = bytearray(file.read_bytes())
        kind = self.dice.choice(["cut", "flipped", "gone"])
        if kind == "gone":
            file.unlink()
        elif kind == "cut":
            file.write_bytes(bytes_[: self.dice.randrange(len(bytes_))])
        else:
            bytes_[self.dice.randrange(len(bytes_))] ^= 1 << self.dice.randrange(8)
            file.write_bytes(bytes_)
        self.settle(self.tools.run, *self.tools.go_on(self.path))

    def later_format(self):
        manifest = self.dice.choice(sorted(self.path.glob("step-*/MANIFEST.json")))
        text = manifest.read_text()
        manifest.write_text(text.replace('"format": 2', '"format": 3'))
        self.settle(self.tools.run, *self.tools.go_on(self.path)[:: self.dice.choice([1, 2])], self.dice.choice(["-q", "--entry=eval"]))
        manifest.write_text(text)

    def not_to_be_opened(self):
        """A file that lies on a disk which is not there now."""
        victim = self.dice.choice(sorted(self.path.glob("step-*"))) / self.dice.choice(FILES)
        aside = self.path.with_name(self.path.name + ".aside")
        victim.rename(aside)
        victim.symlink_to("nowhere")
        self.settle(self.tools.run, f"--resume={self.path}", f"--save={self.path}", "--steps=2")
        # Where it was saved again by then, there is nothing to put back.
        if victim.is_symlink():
            victim.unlink()
            aside.rename(victim)

    def foreign_ones(self):
        for path in self.dice.sample(sorted((self.tools.work / "alien").glob("step-*")), 2):
            to = self.path / (path.name if not (self.path / path.name).exists() else f"step-{self.dice.randint(100, 999):08}")
            if not to.exists():
                shutil.copytree(path, to)
        self.settle(self.tools.run, *self.tools.go_on(self.path))

    def lost_pointer(self):
        latest = self.path / "latest"
        text = self.dice.choice([None, "", "step-00000099\n", "step-00000002\n", "../base/step-00000002\n", "\0" * 40])
        latest.unlink(missing_ok=True)
        if text is not None:
            latest.write_text(text)
        self.settle(self.tools.run, *self.tools.go_on(self.path))

    def left_behind(self):
        stale = self.path / f".tmp-{self.dice.randint(1, 9)}-{self.dice.randint(2, 9999)}"
        stale.mkdir(exist_ok=True)
        (stale / "params.safetensors").write_bytes(b"half")
        self.settle(self.tools.run, *self.tools.go_on(self.path))
        if stale.exists():
            raise Lost("a killed writer's folder is still there")

    # Kills and refusals happen at many places, so more often.
    RUNS = (
        killed_at_a_call, killed_at_a_call, killed_at_a_call, refused_a_call, refused_a_call, killed_at_any_time, limited, short_of_memory, signalled,
        signalled_twice, full_log, vanishing_data, other_artifact, other_run, two_at_once, overwriting,
    )  # fmt: skip
    ON_DISK = (damaged, later_format, not_to_be_opened, foreign_ones, lost_pointer, left_behind)

    def happen(self, accident):
        if accident in self.RUNS:
            self.settle(accident, self)
        else:
            accident(self)  # changes files itself, and settles what follows

    # --- what must hold

    def settle(self, happen, *arguments):
        """Something happens; every checkpoint that is sound now is there afterwards, unchanged.

        A run that saves the same step with other bits, as one that was overwriting and was killed, takes the name; the old one stays.
        """
        before = sound_ones(self.path)
        happen(*arguments)
        if self.is_replaced:
            return
        after = {path.name: contents(path) for path in self.path.glob("step-*") if path.is_dir()}
        for name, files in before.items():
            aside = (other for kept, other in after.items() if kept.startswith(f"{name}.replaced-"))
            if after.get(name) != files and not (name in after and files in aside):
                raise Lost(f"{name} was sound and {'has changed' if name in after else 'is gone'}; there are {sorted(os.listdir(self.path))}")
        for name, files in sound_ones(self.path).items():
            ours = json.loads(files["state.json"]).get("run") == self.tools.run_name
            theirs = self.tools.expected.get(name)
            if ours and theirs and [hashlib.sha256(files[file]).hexdigest() for file in FILES[:2]] != theirs:
                raise Lost(f"{name} has other bits than that of a run that nothing happened to")

    def check_end(self):
        """The run goes on from there, and leaves nothing of what was temporary."""
        if not sound_ones(self.path):
            return
        self.settle(self.tools.must, f"--resume={self.path}", f"--save={self.path}", "--steps=1")
        left = [name for name in os.listdir(self.path) if name.startswith(".")]
        if left:
            raise Lost(f"{left} are left")


def trial(tools, seed):
    dice = random.Random(seed)
    happened = dice.choices(Folder.RUNS + Folder.ON_DISK, k=dice.randint(1, 3))
    name = f"{seed}: " + ", then ".join(each.__name__.replace("_", " ") for each in happened)
    with tempfile.TemporaryDirectory(prefix="lowtide-accident-") as scratch:
        folder = Folder(tools, pathlib.Path(scratch) / "ck", dice)
        try:
            for each in happened:
                folder.happen(each)
                if folder.is_replaced:
                    break
            folder.check_end()
        except (Lost, OSError, AttributeError, TypeError) as error:
            return {"name": name, "complaint": f"{type(error).__name__}: {error}"}
    return {"name": name, "complaint": ""}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lowtide-accidents-") as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tools = Tools(options.binaries.resolve(), options.models.resolve(), pathlib.Path(scratch))
        rows = list(pool.map(lambda seed: trial(tools, seed), range(options.first, options.first + options.count)))
    json.dump(rows, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
