"""Compile, run, and keep what came out: what the commands that compare two runs of a model share."""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import sys
import tempfile

from devkit.console import Failure
from devkit.fit_table import training_step
from devkit.judge import call, first_error, matches, models_of, read_run


class Broken(Exception):
    """A tool that should have worked did not; in words."""


class Trained:
    """Losses of a run, a digest of everything it saved, and the bytes it took."""

    def __init__(self, header, steps, digest, saved):
        self.losses = [line["loss"] for line in steps]
        self.digest, self.saved = digest, saved  # `saved`: whether there is a checkpoint
        self.planned, self.allocated = header.get("planned_bytes"), header.get("allocated_bytes")


class Bench:
    """One model with the flags of its record, in a folder of its own."""

    def __init__(self, binaries, model, flags, work):
        from devkit.record import Record

        self.binaries, self.model, self.work = binaries, model, work
        self.record = Record(model.parent)
        self.given = ["--entries=train", *flags]

    def compile(self, name, *flags):
        """(artifact, what the compiler said); raises Broken when it refuses."""
        status, artifact, said = self.attempt(name, *flags)
        if status:
            raise Broken(f"compile {' '.join(flags)}: exit {status}: {first_error(said)}")
        return artifact, said

    def attempt(self, name, *flags):
        artifact = self.work / f"{name}.tide"
        command = [self.binaries / "lowtide", "compile", self.model, "-o", artifact]
        command += self.record.compiler_flags(self.model, [*self.given, *flags])
        status, said = call(command, self.work / f"{name}-compile.log")
        return status, artifact, said

    def find_program(self, name, folder=None):
        """A program that is built on demand, next to the tools or in `folder`; raises Broken where there is none."""
        program = (folder or self.binaries) / name
        if not program.exists():
            raise Broken(f"there is no {program}; build it with: tools/dev build {name}")
        return program

    def fit(self, rows):
        """The table of `lowtide fit` for the training step."""
        out = self.work / "fit.log"
        command = [self.binaries / "lowtide", "fit", self.model, "--json", f"--rows={rows}", "-q"]
        status, said = call([*command, *self.record.compiler_flags(self.model, self.given)], out)
        if status:
            raise Broken(f"fit: exit {status}: {first_error(said)}")
        return training_step(said)

    def train(self, artifact, steps, *flags, saved=""):
        """Trains into the folder `saved`.saved, which is named after the artifact where it is not given; the digest is of its last checkpoint."""
        log, saved = artifact.with_suffix(".jsonl"), self.work / f"{saved or artifact.stem}.saved"
        command = [self.binaries / "lowtide-run", artifact, f"--data={self.record.folder / 'data.npz'}", f"--steps={steps}"]
        command += [f"--log-jsonl={log}", f"--save={saved}", "--quiet"]
        said = {flag.split("=", 1)[0] for flag in flags}
        resumes_there = f"--resume={saved}" in flags
        command += [flag for flag in ("--overwrite", "--seed=1", "--threads=1") if flag.split("=", 1)[0] not in said and not (flag == "--overwrite" and resumes_there)]
        status, text = call([*command, *flags], artifact.with_suffix(".log"))
        if status:
            raise Broken(f"run of {artifact.stem}: exit {status}: {first_error(text)}")
        digest, checkpoints = hashlib.sha256(), sorted(path for path in saved.glob("step-*") if path.is_dir())
        for path in sorted(checkpoints[-1].rglob("*.safetensors")) if checkpoints else []:
            digest.update(path.relative_to(saved).as_posix().encode())
            digest.update(path.read_bytes())
        return Trained(*read_run(log), digest.hexdigest(), bool(checkpoints))


def run_trials(name, description, argv, trial, add_flags=lambda parser: None):
    """A command of tools/dev over model folders; its exit code. `trial(bench, options)`: see over_models."""
    parser = argparse.ArgumentParser(
        prog=f"tools/dev {name}", allow_abbrev=False, usage="%(prog)s <folder>... [options] [flags for the compiler]",
        description=description.replace("\n", " "),
    )  # fmt: skip
    add_flags(parser)
    try:
        options = parse_folders(parser, argv)
        return 1 if over_models(options, lambda bench: trial(bench, options)) else 0
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1


def parse_folders(parser, argv):
    """Options, folders and the compiler's flags of a command over model folders."""
    parser.add_argument("--only", action="append", default=[], help="model files as folder/file, globs or parts of it; '|' between several")
    parser.add_argument("--bin", type=pathlib.Path, help="use these binaries; nothing is built")
    parser.add_argument("--json", type=pathlib.Path, help="also write name and complaint of each file as JSON")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="models at a time")
    options, rest = parser.parse_known_args(argv)
    options.folders = [pathlib.Path(a) for a in rest if not a.startswith("-")]
    options.flags = [a for a in rest if a.startswith("-")]
    options.only = [p for text in options.only for p in text.split("|")]
    if not options.folders:
        raise Failure(f"error: no folder is named\nnote: {parser.prog} test/models")
    if not options.bin:
        from devkit.build import BUILD, build

        build(["lowtide", "lowtide-run"])
        options.bin = BUILD / "bin"
    return options


def over_models(options, trial):
    """Calls `trial(bench)`, which returns (complaint, note), for every model; prints a line each; the number that failed."""
    models = [m for m in models_of(options.folders) if not options.only or matches(m, options.only)]
    if not models:
        raise Failure("error: no .onnx file to look at")

    def one(model):
        with tempfile.TemporaryDirectory(prefix="lowtide-trial-") as scratch:
            try:
                return trial(Bench(options.bin, model, options.flags, pathlib.Path(scratch)))
            except (Broken, OSError, ValueError, KeyError) as error:
                return (str(error) if isinstance(error, Broken) else f"{type(error).__name__}: {error}"), ""

    rows, width = [], max(len(f"{m.parent.name}/{m.name}") for m in models)
    with concurrent.futures.ThreadPoolExecutor(max(options.jobs, 1)) as pool:
        for model, (complaint, note) in zip(models, pool.map(one, models)):
            name = f"{model.parent.name}/{model.name}"
            rows.append({"name": name, "complaint": complaint})
            print(f"{'FAIL' if complaint else 'ok  '}  {name:<{width}}  {complaint or note}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    failed = sum(bool(row["complaint"]) for row in rows)
    print(f"{len(rows) - failed} of {len(rows)} files hold")
    return failed
