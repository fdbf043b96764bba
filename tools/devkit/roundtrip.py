"""Through text and back: the artifact made of every stage's text is, byte for byte, the one that is compiled directly.

Names of layers and the digest of the model are among those bytes. Other flags go to the compiler: --target=cuda-emulated, say.
"""

import hashlib
import re

from devkit.judge import call, first_error
from devkit.trials import Broken, run_trials

STAGES = ("onnx", "nn", "train", "fitted", "plan")
# Exit codes that refuse a model or what is asked of it: usage, unsupported, budget.
REFUSED = (1, 3, 4)
# What the driver says of a flag that a text has in it already.
TAKEN = re.compile(r"error: --([a-z-]+)(?: \(\w+\))? applies before --from=")


def compile_text(bench, text, stage, artifact, flags):
    """The artifact of a stage's text, with those of the flags that shape later stages: the driver says which do not."""
    flags = list(flags)
    while True:
        command = [bench.binaries / "lowtide", "compile", text, f"--from={stage}", f"--weights-from={bench.model}", "-q", "-o", artifact, *flags]
        status, said = call(command, artifact.with_suffix(".log"))
        taken = TAKEN.search(said) if status else None
        if not taken:
            return status, said
        left = without(flags, taken[1])
        if left == flags:
            return status, said
        flags = left


def without(flags, name):
    """The flags but for one, whose value may be a word of its own, and which may be negated."""
    left, skipped = [], False
    for flag in flags:
        if flag.startswith("-"):
            skipped = flag.split("=", 1)[0] in (f"--{name}", f"--no-{name}")
        if not skipped:
            left.append(flag)
    return left


def trial(bench, options):
    status, direct, said = bench.attempt("direct")
    if status in REFUSED:
        return "", f"refused: {first_error(said)}"
    if status:
        raise Broken(f"compile: exit {status}: {first_error(said)}")
    flags = [str(flag) for flag in bench.record.compiler_flags(bench.model, bench.given)]
    wanted = direct.read_bytes()
    for stage in STAGES:
        text, artifact = bench.work / f"{stage}.mlir", bench.work / f"{stage}.tide"
        status, said = call([bench.binaries / "lowtide", "compile", bench.model, f"--emit={stage}", "-q", "-o", text, *flags], bench.work / "emit.log")
        if status:
            raise Broken(f"--emit={stage}: exit {status}: {first_error(said)}")
        status, said = compile_text(bench, text, stage, artifact, flags)
        if status:
            raise Broken(f"--from={stage}: exit {status}: {first_error(said)}")
        if artifact.read_bytes() != wanted:
            return f"--from={stage}: another artifact than that of the model itself", ""
    digest = hashlib.sha256(bench.model.read_bytes()).hexdigest()
    plan = (bench.work / "plan.mlir").read_text()
    if f'model_digest = "{digest}"' not in plan:
        return "the plan does not name the file that it was made of", ""
    if not re.search(r'^ *plan\.(launch|call) .* at ".+"', plan, re.M):
        return "no instruction of the plan names a layer", ""
    return "", f"{len(wanted)} bytes from each of {len(STAGES)} texts"


def main(argv):
    return run_trials("roundtrip", __doc__, argv, trial)
