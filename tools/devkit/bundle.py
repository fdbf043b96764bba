"""Make the archive that carries artifacts and the runtime to a machine with a GPU: `tools/dev bundle`.

Inside: lowtide-run and lowtide-bench with the libraries they need, artifacts for the GPU, for the fake device and for
the CPU, data and recorded losses, and gpu-check, which runs it all in stages. No LLVM, no compiler, no network needed there.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from devkit.build import BUILD, build
from devkit.console import ROOT, Failure, say
from devkit.judge import call, first_error, models_of
from devkit.record import Record

LIMIT = 60 << 20  # with the tracked tree: what one transfer takes
# These come with every Linux, in the version that the kernel and the driver of the machine fit to.
SYSTEM = re.compile(r"^(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libresolv)[.-]")

USAGE = """tools/dev bundle [options]

Writes out/lowtide-gpu.tar.gz. There: tar xf FILE, cd lowtide-gpu, ./gpu-check --stage=correct.

options:
  -o FILE                     another place
  --chip=sm_90                the GPU that artifacts are for
  --models=FOLDER             folders of recorded models (default: test/models); several by repeating
  --only=PATTERN              of these, the ones whose name holds this
  --workload=NAME=FILE,FLAG…  a model for --stage=speed:NAME, with flags for the compiler; weights may be absent
  --torch=FILE                PyTorch's side of the speed stages (torch_baseline.py)
  --bin=FOLDER                use these binaries; nothing is built
"""


def tracked_bytes():
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout.split(b"\0")
    return sum(os.path.getsize(os.path.join(os.fsencode(ROOT), n)) for n in names if n and os.path.exists(os.path.join(os.fsencode(ROOT), n)))


def libraries(program):
    """The shared libraries of a program that a bare machine may lack."""
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        match = re.match(r"\s*(\S+) => (/\S+)", line)
        if match and not SYSTEM.match(match[1]):
            yield match[1], pathlib.Path(match[2])


def copy_programs(binaries, folder):
    (folder / "bin").mkdir()
    (folder / "lib").mkdir()
    for name in ("lowtide-run", "lowtide-bench"):
        shutil.copy2(binaries / name, folder / "bin" / name)
        subprocess.run(["strip", folder / "bin" / name], check=True)
        for library, path in libraries(binaries / name):
            if not (folder / "lib" / library).exists():
                shutil.copy2(path, folder / "lib" / library)


def compile_model(model, record, target, binaries, to, *more):
    """Compile one file for one target; what went wrong in words, or nothing."""
    flags = record.compiler_flags(model, [f"--target={target}", "--entries=train", *more])
    log = to.with_suffix(".log")
    status, said = call([binaries / "lowtide", "compile", model, "-o", to, *flags], log)
    log.unlink(missing_ok=True)
    return "" if status == 0 else f"exit {status}: {first_error(said)}"


def add_budgets(model, record, target, binaries, home, row, count=3):
    """The model under `count` budgets, from the smallest plan up; what is missing is said."""
    row["budgets"] = {}
    command = [binaries / "lowtide", "fit", model, "--json", f"--rows={count}", "-q"]
    log = home / "fit.log"
    status, said = call([*command, *record.compiler_flags(model, [f"--target={target}", "--entries=train"])], log)
    log.unlink(missing_ok=True)
    if status:
        say(f"{row['name']}, budgets: exit {status}: {first_error(said)}")
        return
    figures = json.JSONDecoder().raw_decode(said[said.index("\n") + 1 :])[0]
    low, high = figures["smallest_bytes"], figures["largest_bytes"]
    for i in range(count):
        budget, file = low + (high - low) * i // count, f"cuda-budget{i}.tide"
        if problem := compile_model(model, record, target, binaries, home / file, f"--device-budget={budget}"):
            say(f"{row['name']}, --device-budget={budget}: {problem}")
        else:
            row["budgets"][file] = budget


def add_models(folders, only, chip, binaries, folder):
    """Artifacts, data and records of each model; the table of contents."""
    contents = []
    for model in models_of(folders):
        name = f"{model.parent.name}-{model.stem}"
        if model.name != "model.onnx" and not only or only and only not in name:
            continue  # one exporter of each architecture is enough there
        record = Record(model.parent)
        if record.stochastic:
            continue
        home = folder / "models" / name
        home.mkdir(parents=True)
        row = {"name": name, "steps": min(record.steps, 20), "targets": []}
        for target, file in ((f"cuda:{chip}", "cuda.tide"), ("cuda-emulated", "emulated.tide"), ("cpu", "cpu.tide")):
            problem = compile_model(model, record, target, binaries, home / file)
            if problem:
                say(f"{name}, {target}: {problem}")
            else:
                row["targets"].append(file)
        if "cuda.tide" not in row["targets"]:
            shutil.rmtree(home)
            continue
        add_budgets(model, record, f"cuda:{chip}", binaries, home, row)
        for file in ("data.npz", "expected.json"):
            shutil.copy2(model.parent / file, home / file)
        contents.append(row)
        say(f"{name}: {sum(f.stat().st_size for f in home.iterdir()):,} bytes")
    return contents


def add_workload(text, chip, binaries, folder):
    """Compile NAME=FILE,FLAG… for the speed stages."""
    name, _, rest = text.partition("=")
    file, *flags = rest.split(",")
    home = folder / "models" / name
    home.mkdir(parents=True)
    status, said = call([binaries / "lowtide", "compile", file, "-o", home / "cuda.tide", f"--target=cuda:{chip}", *flags], home / "log")
    (home / "log").unlink()
    if status != 0:
        raise Failure(f"error: workload {name}: exit {status}: {first_error(said)}")
    say(f"{name}: {(home / 'cuda.tide').stat().st_size:,} bytes")


def pack(folder, archive):
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname="lowtide-gpu")
    return archive.stat().st_size


def main(argv):
    parser = argparse.ArgumentParser(usage=USAGE, add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("-o", dest="output", type=pathlib.Path, default=ROOT / "out" / "lowtide-gpu.tar.gz")
    parser.add_argument("--chip", default="sm_90")
    parser.add_argument("--only", default="")
    parser.add_argument("--models", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--workload", action="append", default=[])
    parser.add_argument("--torch", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path)
    options = parser.parse_args(argv)
    if options.help:
        print(USAGE, end="")
        return 0
    try:
        if not options.bin:
            build(["lowtide", "lowtide-run", "lowtide-bench"])
            options.bin = BUILD / "bin"
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / "lowtide-gpu"
            folder.mkdir()
            copy_programs(options.bin, folder)
            contents = add_models(options.models or [ROOT / "test" / "models"], options.only, options.chip, options.bin, folder)
            if not contents:
                raise Failure("error: no model was compiled for the GPU")
            for workload in options.workload:
                add_workload(workload, options.chip, options.bin, folder)
            if options.torch:
                shutil.copy2(options.torch, folder / "torch_baseline.py")
            (folder / "contents.json").write_text(json.dumps({"chip": options.chip, "models": contents}, indent=1) + "\n")
            shutil.copy2(ROOT / "tools" / "devkit" / "gpu_check.py", folder / "gpu-check")
            (folder / "gpu-check").chmod(0o755)
            size = pack(folder, options.output)
        whole = size + tracked_bytes()
        say(f"{options.output}: {size:,} bytes, {len(contents)} models; {whole:,} with the tracked tree")
        if whole > LIMIT:
            raise Failure(f"error: more than {LIMIT:,} bytes with the tracked tree\nnote: take fewer models (--only=PATTERN)")
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0
