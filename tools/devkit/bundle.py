"""Make the archive that carries artifacts and the runtime to a machine with a GPU: `tools/dev bundle`.

Inside: lowtide-run and lowtide-bench with the libraries they need, artifacts for the GPU and the CPU, data and recorded
losses, and gpu-check, which runs it all in stages. No LLVM, no compiler, no network needed there.
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

from devkit import workloads
from devkit.build import BUILD, build
from devkit.console import ROOT, Failure, collection, say
from devkit.fit_table import training_step
from devkit.judge import call, first_error, models_of

LIMIT = 60 << 20  # bytes: small enough to be copied along with the source tree
# Models that are carried in 16 bits too, and how they are compiled then; by the names of the bands that are recorded.
NARROWED = ("cnn-digits", "resnet-tiny", "gpt-tiny", "llama-tiny", "unet-mini")
NARROW = {"bf16": ["--precision=mixed-bf16"], "f16": ["--precision=mixed-f16", "--loss-scale=dynamic"]}
# These come with every Linux, in a version that fits its kernel and driver.
SYSTEM = re.compile(r"^(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libresolv)[.-]")

# Contenders' figures that were measured before.
TORCH_RESULTS = ROOT / "docs" / "measurements" / "torch_baseline.json"

USAGE = """tools/dev bundle [options]

Writes out/lowtide-gpu.tar.gz. There: tar xf FILE, cd lowtide-gpu, ./gpu-check --stage=correct.

options:
  -o FILE                     another place
  --chip=sm_90                the GPU that artifacts are for
  --models=FOLDER             folders of recorded models (default: test/models); several by repeating
  --only=PATTERN              of these, the ones whose name holds this
  --narrow=NAME               of these, a model that is carried in bf16 and f16 too (default: small ones of each
                              kind; none: without any); several by repeating
  --workload=NAME             a workload of --stage=speed:NAME (default: every one whose model is at hand; none: without any);
                              several by repeating
  --workload=NAME=FILE,FLAG…  another model, with flags for the compiler; with its data.npz, if that lies beside it
  --emulated                  artifacts for the fake device too: `gpu-check --emulated` tries the archive without a GPU
  --torch=FILE                PyTorch's side of the speed stages (default: torch_baseline.py of the collection)
  --torch-results=FILE        what that measured before: contenders' figures on a machine of the same kind
                              (default: docs/measurements/torch_baseline.json)
  --max-bytes=N               refuse an archive that takes more than this together with the tracked tree (60 MiB)
  --bin=FOLDER                use these binaries; nothing is built
"""


def tracked_bytes():
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout.split(b"\0")
    return sum(os.path.getsize(os.path.join(os.fsencode(ROOT), n)) for n in names if n and os.path.exists(os.path.join(os.fsencode(ROOT), n)))


def commit():
    """The commit that this tree is at, "+" after it where the tree has changed since."""
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--abbrev=8", "--dirty=+", "--exclude=*"], capture_output=True, text=True)
    return done.stdout.strip()


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


def compile_to(binaries, model, to, *flags):
    """Compile one file; what went wrong in words, or nothing."""
    log = to.with_suffix(".log")
    status, said = call([binaries / "lowtide", "compile", model, "-o", to, *flags], log)
    log.unlink(missing_ok=True)
    return "" if status == 0 else f"exit {status}: {first_error(said)}"


def budgets_between(binaries, model, home, flags, count=3):
    """{name: bytes} of `count` budgets, from the smallest plan up; what is missing is said."""
    log = home / "fit.log"
    status, said = call([binaries / "lowtide", "fit", model, "--json", f"--rows={max(count, 2)}", "-q", *flags], log)
    log.unlink(missing_ok=True)
    if status:
        say(f"{home.name}, budgets: exit {status}: {first_error(said)}")
        return {}
    figures = training_step(said)
    low, high = figures["smallest_bytes"], figures["largest_bytes"]
    return {f"budget{i}": low + (high - low) * i // count for i in range(count)}


def devices(chip, emulated):
    """{part of an artifact's name: target} of the devices that train under budgets too."""
    return {"cuda": f"cuda:{chip}"} | ({"emulated": "cuda-emulated"} if emulated else {})


def add_model(model, record, row, precision, budgets, given, binaries, folder):
    """Artifacts of one model in one precision, as a whole and under budgets; whether there is one for the GPU."""
    name, home = row["name"], folder / "models" / row["name"]
    home.mkdir(parents=True)
    targets = given | {"cpu": "cpu"}
    flags = {short: record.compiler_flags(model, [f"--target={target}", "--entries=train", *precision]) for short, target in targets.items()}
    for short, target in targets.items():
        if problem := compile_to(binaries, model, home / f"{short}-step.tide", *flags[short]):
            say(f"{name}, {target}: {problem}")
    if not (home / "cuda-step.tide").exists():
        shutil.rmtree(home)
        return False
    # One table for both: the fake device has the plans of the real one.
    for budget, size in budgets_between(binaries, model, home, flags["cuda"], budgets).items():
        row["budgets"][budget] = size
        for short in given:
            if problem := compile_to(binaries, model, home / f"{short}-{budget}.tide", *flags[short], f"--device-budget={size}"):
                say(f"{name}, {short}, --device-budget={size}: {problem}")
    say(f"{name}: {sum(f.stat().st_size for f in home.iterdir()):,} bytes")
    return True


def add_models(folders, only, narrow, given, binaries, folder):
    """Artifacts, data and records of each model; the table of contents, models in 16 bits last."""
    from devkit.record import Record

    contents, narrowed = [], []
    for model in models_of(folders):
        name = f"{model.parent.name}-{model.stem}"
        if model.name != "model.onnx" and not only or only and only not in name:
            continue  # one exporter of each architecture is enough there
        record = Record(model.parent)
        if record.stochastic:
            continue
        row = {"name": name, "steps": min(record.steps, 20), "budgets": {}}
        if not add_model(model, record, row, [], 3, given, binaries, folder):
            continue
        # Besides, what a run starts from where that is not in the model's file: adapters, say.
        row |= {"init": record.train["init"]} if "init" in record.train else {}
        for file in ("data.npz", "expected.json"):
            shutil.copy2(model.parent / file, folder / "models" / name / file)
        if start := row.get("init"):
            copy = shutil.copytree if (model.parent / start).is_dir() else shutil.copy2
            copy(model.parent / start, folder / "models" / name / start)
        contents.append(row)
        if model.name == "model.onnx" and model.parent.name in narrow:
            narrowed.append((model, record, row))
    for model, record, whole in narrowed:
        for key, precision in NARROW.items():
            row = whole | {"name": f"{model.parent.name}-{key}", "record": whole["name"], "expect_key": key, "budgets": {}}
            if add_model(model, record, row, precision, 1, given, binaries, folder):
                contents.append(row)
    return contents


def gradient_flags(flags):
    """Of a workload's flags, with those of its gradients: they are compared in f32, whatever its steps compute in."""
    return [flag for flag in flags if not flag.startswith(("--entries", "--precision"))] + ["--entries=gradient", "--precision=f32"]


def add_workload(text, given, binaries, folder):
    """Compile a workload for the speed stages; its row of the table of contents."""
    name, custom, rest = text.partition("=")
    home = folder / "models" / name
    if home.exists():
        raise Failure(f"error: two models are called '{name}'")
    if custom:
        model, *flags = rest.split(",")
        flags += [] if any(flag.startswith("--entries") for flag in flags) else ["--entries=train"]
        row, budgets = {"units": 1, "unit": "samples", "weights": "--no-weights" not in flags}, []
        data = pathlib.Path(model).parent / "data.npz"
    elif name in workloads.WORKLOADS:
        listed = workloads.WORKLOADS[name]
        row, budgets = {key: listed[key] for key in workloads.CARRIED if key in listed}, listed["budgets"]
        (model, flags), data = workloads.compiler_arguments(listed), None
    else:
        raise Failure(f"error: no workload '{name}'\nnote: one of: {', '.join(workloads.WORKLOADS)}; or NAME=FILE,FLAG…")
    home.mkdir(parents=True)
    # The fake device would take hours for a full-size step.
    for short, target in given.items() if custom else [("cuda", given["cuda"])]:
        if problem := compile_to(binaries, model, home / f"{short}-step.tide", f"--target={target}", *flags):
            raise Failure(f"error: workload {name}: {problem}")
        if "torch" in row or custom:
            if problem := compile_to(binaries, model, home / f"{short}-gradient.tide", f"--target={target}", *gradient_flags(flags)):
                say(f"{name}, gradients: {problem}")
    row |= {"name": name, "artifacts": ["step"]}
    for budget in budgets:
        artifact = f"at-{budget.rstrip('%')}"
        if problem := compile_to(binaries, model, home / f"cuda-{artifact}.tide", f"--target={given['cuda']}", *flags, f"--device-budget={budget}"):
            say(f"{name}, --device-budget={budget}: {problem}")
        else:
            row["artifacts"].append(artifact)
    if data and data.exists():
        shutil.copy2(data, home / "data.npz")
    say(f"{name}: {sum(f.stat().st_size for f in home.iterdir()):,} bytes")
    return row


def require_size(archive, limit):
    """Bytes of the archive and the tracked tree together; a Failure, and no archive, where that is more than `limit`."""
    whole = archive.stat().st_size + tracked_bytes()
    if whole > limit:
        archive.unlink()
        raise Failure(f"error: {whole:,} bytes with the tracked tree, more than {limit:,}\nnote: take fewer models (--only=PATTERN, --narrow=NAME), or allow more (--max-bytes=N)")
    return whole


def copy_scripts(options, folder):
    """gpu-check, its modules, and PyTorch's side."""
    package = folder / "devkit"
    (package / "gpu").mkdir(parents=True)
    here = pathlib.Path(__file__).parent
    for path in (here / "__init__.py", here / "tensors.py", *sorted((here / "gpu").glob("*.py"))):
        shutil.copy2(path, package / path.relative_to(here))
    shutil.copy2(here / "gpu_check.py", folder / "gpu-check")
    (folder / "gpu-check").chmod(0o755)
    for given, name in ((options.torch, "torch_baseline.py"), (options.torch_results, "torch_baseline.json")):
        if given:
            shutil.copy2(given, folder / name)


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
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--models", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--narrow", action="append", default=[])
    parser.add_argument("--workload", action="append", default=[])
    collected = collection() / ".." / "gpu" / "torch_baseline.py"
    parser.add_argument("--torch", type=pathlib.Path, default=collected if collected.exists() else None)
    parser.add_argument("--torch-results", type=pathlib.Path, default=TORCH_RESULTS if TORCH_RESULTS.exists() else None)
    parser.add_argument("--max-bytes", type=int, default=LIMIT)
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
            given = devices(options.chip, options.emulated)
            contents = add_models(options.models or [ROOT / "test" / "models"], options.only, options.narrow or NARROWED, given, options.bin, folder)
            if not contents:
                raise Failure("error: no model was compiled for the GPU")
            if missing := set(options.narrow) - {"none", *(row["record"].removesuffix("-model") for row in contents if "record" in row)}:
                raise Failure(f"error: --narrow={min(missing)}: no such model was compiled in 16 bits\nnote: one whose folder holds a model.onnx, of those that --only leaves")
            names = [name for name in options.workload or workloads.available() if name != "none"]
            rows = [add_workload(name, given, options.bin, folder) for name in names]
            made = {"chip": options.chip, "commit": commit()}
            (folder / "contents.json").write_text(json.dumps({"made": made, "chip": options.chip, "models": contents, "workloads": rows}, indent=1) + "\n")
            copy_scripts(options, folder)
            size = pack(folder, options.output)
        say(f"{options.output}: {size:,} bytes, {len(contents)} models, {len(rows)} workloads; {require_size(options.output, options.max_bytes):,} with the tracked tree")
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0
