"""Feed the parsers with hostile bytes under address and undefined-behaviour sanitizers (libFuzzer).

Targets live in test/Fuzz; each reads a kind of file that may come from strangers. Seeds are made from the project's own
models and artifacts; what was learned stays in build-fuzz/corpus and is used the next time. `tools/dev fuzz plan` and `tools/dev
fuzz opt` make structured mutants instead (devkit/mutants.py).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import threading

from devkit import dependencies, mutants
from devkit.console import ROOT, Failure, run_logged, say

BUILD = ROOT / "build-fuzz"
MODELS = ROOT / "test" / "models"
# LLVM and ONNX come without instrumentation; their containers would be misread.
ENVIRONMENT = {"ASAN_OPTIONS": "detect_container_overflow=0:detect_leaks=0:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
BUILDING = threading.Lock()


def build_targets():
    """The built programs. A second caller waits for the first."""
    dependencies.setup()
    with BUILDING:
        if not (BUILD / "build.ninja").exists():
            run_logged(["cmake", "--preset", "fuzz"], BUILD / "configure.log", cwd=ROOT)
        run_logged(["nice", "ninja", "-C", BUILD, "fuzz-targets"], BUILD / "build.log", cwd=ROOT)
    return sorted((BUILD / "test" / "fuzz").glob("fuzz-*"))


def seeds(target):
    """Folder of good inputs for the target, grown by what it finds."""
    corpus = BUILD / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    kinds = {"fuzz-import": "*/*.onnx", "fuzz-npz": "*/data.npz"}
    if target in kinds:
        for path in MODELS.glob(kinds[target]):
            if path.stat().st_size < 100_000:
                shutil.copyfile(path, corpus / f"{path.parent.name}-{path.name}")
    for path in (ROOT / "test" / "Fuzz" / "seeds" / target).glob("*"):
        shutil.copyfile(path, corpus / path.name)
    return corpus


def fuzz(program, runs, seconds):
    """Complaint, or an empty text when `runs` executions (or `seconds`) passed without a finding."""
    corpus = seeds(program.name)
    findings = BUILD / "findings"
    findings.mkdir(exist_ok=True)
    command = [program, corpus, f"-runs={runs}", f"-artifact_prefix={findings}/{program.name}-", "-rss_limit_mb=4096", "-timeout=20", "-max_len=65536"]
    command += [f"-max_total_time={seconds}"] if seconds else []
    done = subprocess.run(
        [str(c) for c in command], env=os.environ | ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
    )
    executed = re.search(r"Done (\d+) runs", done.stderr)
    say(f"{program.name}: {int(executed[1]) if executed else 0:,} executions, exit {done.returncode}")
    return "" if done.returncode == 0 else done.stderr[-3000:]


def main(argv):
    if argv and argv[0] in mutants.PROGRAMS:
        return mutants.main(argv)
    parser = argparse.ArgumentParser(prog="tools/dev fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", help="fuzz-plan, fuzz-artifact …; all when none is named; or plan, opt: see `tools/dev fuzz plan --help`")
    parser.add_argument("--runs", type=int, default=1_000_000, help="executions per target (1,000,000)")
    parser.add_argument("--seconds", type=int, default=0, help="stop a target after this time")
    options = parser.parse_args(argv)
    try:
        programs = [p for p in build_targets() if not options.targets or p.name in options.targets]
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    if not programs:
        print("error: no such target", file=sys.stderr)
        return 1
    failed = 0
    for program in programs:
        if complaint := fuzz(program, options.runs, options.seconds):
            failed += 1
            print(f"FAIL {program.name}\n{complaint}", file=sys.stderr)
    print(f"{len(programs) - failed} passed, {failed} failed")
    return 1 if failed else 0
