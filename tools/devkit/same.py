"""The artifacts of two builds, byte by byte: a change that says it changes no plan is held to it.

Every .onnx file of the folders, and of the folders in them, is compiled by both builds: for each target and precision,
without a budget and with one. Where a folder holds a train.json, its optimizer, loss and dimensions are used; other
files get --batch. A refusal is the same where both builds exit with one code; files that neither build compiles in any
form are listed.

Where a format of plans was stepped, no two artifacts have equal bytes. --across-formats compares what the old format could
say: every section but the plan byte by byte, and the plan without its version, the spaces of its arenas and the arenas of the
runtime's own. It counts these cases apart.
"""

import argparse
import concurrent.futures
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import typing

from devkit.console import Failure, say

TARGETS = ("cpu", "cuda:sm_90")
PRECISIONS = ("f32", "mixed-bf16")
SAME, ALIKE, REFUSED, DIFFERENT = "same", "same but for the format", "refused by both", "different"


class Case(typing.NamedTuple):
    """One file and the flags that it is compiled with."""

    model: pathlib.Path
    flags: tuple

    def describe(self):
        return f"{self.model} {' '.join(self.flags)}"


def find_compiler(build):
    """The program in a build folder, in its bin folder, or itself."""
    build = pathlib.Path(build).resolve()
    for place in (build / "bin" / "lowtide", build / "lowtide", build):
        if place.is_file() and os.access(place, os.X_OK):
            return place
    raise Failure(f"error: no program 'lowtide' in {build}\nnote: name a build folder, its folder bin, or the program")


def find_models(folders):
    found = []
    for folder in map(pathlib.Path, folders):
        if not folder.exists():
            raise Failure(f"error: there is no folder {folder}")
        found += [folder] if folder.is_file() else sorted(folder.rglob("*.onnx"))
    if not found:
        raise Failure("error: the folders hold no .onnx file")
    return found


def own_flags(model, batch):
    """What the file needs to compile at all."""
    from devkit.record import Record

    if (model.parent / "train.json").exists() and (model.parent / "expected.json").exists():
        return Record(model.parent).compiler_flags(model)
    return [f"--batch={batch}", "--no-weights", "--entries=train"]


def list_cases(models, options):
    for model in models:
        own = own_flags(model, options.batch)
        for target in options.targets:
            for precision in options.precisions:
                for budget in ("", *options.budgets):
                    more = [f"--device-budget={budget}"] if budget else []
                    yield Case(model, (*own, f"--target={target}", f"--precision={precision}", *more, *options.flags))


def compile_once(compiler, case, artifact, timeout):
    """(exit code, bytes of the artifact); the code is None where the time was up."""
    command = [str(compiler), "compile", str(case.model), *case.flags, "-q", "-o", str(artifact)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, b""
    return done.returncode, artifact.read_bytes() if done.returncode == 0 else b""


def sections(artifact):
    """Name → bytes (docs/artifact.md)."""
    table = [struct.unpack_from("<32sQQ", artifact, 64 + 80 * i) for i in range(struct.unpack_from("<I", artifact, 12)[0])]
    return {name.rstrip(b"\0").decode(): artifact[offset : offset + size] for name, offset, size in table}


def fields(message):
    """(number, value, bytes) of a protobuf message: values of varints are numbers, of messages and strings bytes."""

    def varint(at):
        value = shift = 0
        while True:
            byte = message[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value, at

    at = 0
    while at < len(message):
        begin = at
        key, at = varint(at)
        if key & 7 == 0:
            value, at = varint(at)
        else:
            size, at = {1: (8, at), 5: (4, at), 2: None}[key & 7] or varint(at)
            value, at = message[at : at + size], at + size
        yield key >> 3, value, message[begin:at]


def old_words(plan):
    """What a plan says that format 1 could say too: Plan.format_version is field 1, Plan.arenas 4, Arena.role 2, .space 6."""
    said = []
    for number, value, text in fields(plan):
        if number == 4:
            arena = list(fields(value))
            if next((role for field, role, _ in arena if field == 2), 0) > 4:
                continue
            text = b"".join(text for field, _, text in arena if field != 6)
        if number != 1:
            said.append((number, text))
    return said


def are_alike(before, after):
    """Whether two artifacts differ in what their formats of plans can say alone."""
    one, other = sections(before), sections(after)
    plans = one.pop("plan"), other.pop("plan")
    return one == other and old_words(plans[0]) == old_words(plans[1])


def compare(old, new, case, options):
    """(what came of it, in words if it differs)."""
    timeout = options.timeout
    with tempfile.TemporaryDirectory(prefix="lowtide-same-") as work:
        artifact = pathlib.Path(work) / "step.tide"
        before = compile_once(old, case, artifact, timeout)
        if before[0] is None:
            return REFUSED, "the old build takes too long"
        after = compile_once(new, case, artifact, timeout)
    if before[0] != after[0]:
        return DIFFERENT, f"exit {after[0]} instead of {before[0]}"
    if before[0] != 0:
        return REFUSED, f"exit {before[0]}"
    if before[1] == after[1]:
        return SAME, ""
    if options.across_formats and are_alike(before[1], after[1]):
        return ALIKE, ""
    at = next((i for i, (a, b) in enumerate(zip(*(x[1] for x in (before, after)))) if a != b), min(len(before[1]), len(after[1])))
    return DIFFERENT, f"{len(after[1])} instead of {len(before[1])} bytes, the first other one at {at}"


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev same", description=__doc__.replace("\n", " "))
    parser.add_argument("old", help="a build folder, or its program lowtide")
    parser.add_argument("new", help="the build that is held to the bytes of the old one")
    parser.add_argument("folders", nargs="+", help="folders of models, or files")
    parser.add_argument("--targets", type=lambda text: text.split(","), default=TARGETS, help=f"with commas ({','.join(TARGETS)})")
    parser.add_argument("--precisions", type=lambda text: text.split(","), default=PRECISIONS, help=f"with commas ({','.join(PRECISIONS)})")
    parser.add_argument("--budgets", type=lambda text: text.split(",") if text else [], default=["75%"],
                        help="with commas, besides none (75%%); empty: only without")  # fmt: skip
    parser.add_argument("--across-formats", action="store_true", help="plans of two formats: compare what both can say")
    parser.add_argument("--batch", type=int, default=2, help="of files without a train.json (2)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one compilation (600)")
    parser.add_argument("--verbose", action="store_true", help="also what both builds refuse")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilations at a time")
    options, options.flags = parser.parse_known_args(argv)
    try:
        old, new = find_compiler(options.old), find_compiler(options.new)
        cases = list(list_cases(find_models(options.folders), options))
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    counts, compiled = {SAME: 0, ALIKE: 0, REFUSED: 0, DIFFERENT: 0}, set()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case, (outcome, words) in zip(cases, pool.map(lambda case: compare(old, new, case, options), cases)):
            counts[outcome] += 1
            if outcome in (SAME, ALIKE):
                compiled.add(case.model)
            if outcome == DIFFERENT:
                print(f"{case.describe()}: {words}", flush=True)
            elif outcome == REFUSED and options.verbose:
                say(f"{case.describe()}: {outcome}, {words}")
    for model in sorted({case.model for case in cases} - compiled):
        say(f"note: {model} was compiled in no form")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count or outcome != ALIKE))
    return 1 if counts[DIFFERENT] or not compiled else 0
