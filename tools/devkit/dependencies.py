"""Set-up: everything that Debian 12 does not package, pinned, verified by hash and built once per machine.

It all lies in one cache folder outside the checkout, so that every checkout shares it:

    $LOWTIDE_DEPS, else $XDG_CACHE_HOME/lowtide, else ~/.cache/lowtide
        onnx-1.23.2/    ONNX's C++ library (CMake finds it here by itself)
        highs-1.15.1/   libhighs.so.1, loaded when --bound or --remat-strategy=lp-rounding asks for it
        tools-<hash>/   Python environment of the test harness: numpy, lit
        cuda/           ptxas and libdevice, where no CUDA toolkit is installed
        disassembler-<hash>/  nvdisasm, which tests of machine code read it with
        oracles-<hash>/ Python environment of the peers that some tests compare with: torch, onnx, onnxruntime
        zoo-<hash>/     torchvision, timm, transformers, onnxslim and onnxsim on top of the oracles (tools/dev zoo)
        peft-<hash>/    PEFT and bitsandbytes on top of the zoo, whose adapters and codes ours are compared with

The Debian packages are installed by tools/dev itself, before Python is there.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile

from devkit.console import Failure, run_logged, say

HERE = pathlib.Path(__file__).resolve().parent
ONNX_VERSION = "1.23.2"
# Environments that see the packages of another one.
BASES = {"zoo": "oracles", "peft": "zoo"}
# Raise the number when the build options below change: installed copies are then rebuilt.
ONNX_RECIPE = "1"
HIGHS_VERSION = "1.15.1"


def cache_folder():
    explicit = os.environ.get("LOWTIDE_DEPS")
    if explicit:
        return pathlib.Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path("~/.cache").expanduser()
    return pathlib.Path(base) / "lowtide"


@contextlib.contextmanager
def locked(cache):
    """Two checkouts may set up at the same time; one waits for the other."""
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def environment_folder(name):
    """Where the private environment `name` is, or would be: another list of requirements, another folder."""
    requirements = HERE / f"requirements-{name}.txt"
    return cache_folder() / f"{name}-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]}"


def find_environment(name):
    """Python interpreter of the private environment `name` if it is installed; None: it is not."""
    folder = environment_folder(name)
    return folder / "bin" / "python" if (folder / "complete").exists() else None


def visible_packages(name):
    """Folders of packages that environments above `name` are to see: its own, and those that it sees itself."""
    for found in environment(name).parent.parent.glob("lib/python3*/site-packages"):
        yield found
        listed = found / "base.pth"
        yield from map(pathlib.Path, listed.read_text().split()) if listed.exists() else ()


def environment(name):
    """Python interpreter of the private environment `name`, made from requirements-<name>.txt when it is not there yet.

    It sees the packages of BASES[name], too.
    """
    requirements = HERE / f"requirements-{name}.txt"
    cache, folder = cache_folder(), environment_folder(name)
    python = folder / "bin" / "python"
    if (folder / "complete").exists():
        return python
    packages = list(visible_packages(BASES[name])) if name in BASES else []
    with locked(cache):
        if (folder / "complete").exists():
            return python
        say(f"setup: Python environment '{name}' ({folder})")
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True, symlinks=True)
        if packages:
            (next(folder.glob("lib/python3*/site-packages")) / "base.pth").write_text("".join(f"{found}\n" for found in packages))
        log = cache / f"{name}.log"
        log.unlink(missing_ok=True)
        run_logged([python, "-m", "pip", "install", "--disable-pip-version-check", "-r", requirements], log)
        (folder / "complete").touch()
    return python


def install_onnx():
    """Build ONNX's C++ library from its source package and install it under the cache folder."""
    cache = cache_folder()
    prefix = cache / f"onnx-{ONNX_VERSION}"
    stamp = prefix / "recipe"
    if stamp.exists() and stamp.read_text() == ONNX_RECIPE:
        return prefix
    with locked(cache):
        if stamp.exists() and stamp.read_text() == ONNX_RECIPE:
            return prefix
        say(f"setup: building ONNX {ONNX_VERSION} (two to five minutes, once per machine)")
        log = cache / "onnx.log"
        log.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".onnx-") as work:
            build_onnx(pathlib.Path(work), log)
            (pathlib.Path(work) / "install" / "recipe").write_text(ONNX_RECIPE)
            shutil.rmtree(prefix, ignore_errors=True)
            (pathlib.Path(work) / "install").rename(prefix)
    return prefix


def build_onnx(work, log):
    # Debian's CMake 3.25 is older than the 3.26 that ONNX asks for, so a pinned one comes from the registry.
    venv.create(work / "venv", with_pip=True, symlinks=True)
    pip = [work / "venv/bin/python", "-m", "pip", "--disable-pip-version-check"]
    run_logged([*pip, "install", "-r", HERE / "requirements-onnx-build.txt"], log)
    run_logged(
        [*pip, "download", "--no-deps", "--no-binary", "onnx", "-d", work, "-r", HERE / "requirements-onnx-source.txt"], log
    )
    with tarfile.open(work / f"onnx-{ONNX_VERSION}.tar.gz") as archive:
        archive.extractall(work)
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    cmake = work / "venv/bin/cmake"
    run_logged(
        [
            cmake, "-S", work / f"onnx-{ONNX_VERSION}", "-B", work / "build", "-G", "Ninja",
            "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_POSITION_INDEPENDENT_CODE=ON", "-DCMAKE_CXX_STANDARD=17",
            "-DONNX_ML=ON", "-DONNX_BUILD_PYTHON=OFF", "-DONNX_BUILD_TESTS=OFF", "-DONNX_USE_PROTOBUF_SHARED_LIBS=ON",
            f"-DCMAKE_INSTALL_PREFIX={work / 'install'}", *launcher,
        ],
        log,
    )  # fmt: skip
    run_logged([cmake, "--build", work / "build", "--target", "install", "--parallel", str(os.cpu_count() or 2)], log)


def cuda_toolkit():
    """The folder of a CUDA toolkit with ptxas and libdevice: what the machine has, else what the registry's packages hold."""
    named = [pathlib.Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    link = cache_folder() / "cuda"
    for folder in (*named, link, pathlib.Path("/usr/local/cuda")):
        if (folder / "bin" / "ptxas").exists() and (folder / "nvvm" / "libdevice" / "libdevice.10.bc").exists():
            return folder
    packages = environment("cuda").parent.parent.glob("lib/python3*/site-packages/nvidia/cu13")
    link.unlink(missing_ok=True)
    link.symlink_to(next(packages))
    return link


def disassembler():
    """nvdisasm: what the machine's toolkit has, else what the registry's package holds."""
    installed = cuda_toolkit() / "bin" / "nvdisasm"
    if installed.exists():
        return installed
    return next(environment("disassembler").parent.parent.glob("lib/python3*/site-packages/nvidia/cu13/bin/nvdisasm"))


def install_highs():
    """HiGHS's shared library, out of its Python package: nothing is built, and nothing links it."""
    cache = cache_folder()
    prefix = cache / f"highs-{HIGHS_VERSION}"
    library = prefix / "libhighs.so.1"
    python = environment("tools")
    with locked(cache):
        if library.exists():
            return library
        say(f"setup: HiGHS {HIGHS_VERSION} ({prefix})")
        with tempfile.TemporaryDirectory(dir=cache, prefix=".highs-") as work:
            pip = [python, "-m", "pip", "--disable-pip-version-check"]
            requirements = HERE / "requirements-highs.txt"
            run_logged([*pip, "download", "--no-deps", "--only-binary", ":all:", "-d", work, "-r", requirements], cache / "highs.log")
            with zipfile.ZipFile(next(pathlib.Path(work).glob("*.whl"))) as package:
                package.extract("highspy/libhighs.so.1", work)
                shutil.rmtree(prefix, ignore_errors=True)
                (pathlib.Path(work) / "highspy").rename(prefix)
    return library


def setup():
    """All that a build needs. Quick when nothing is missing."""
    install_onnx()
    environment("tools")
    cuda_toolkit()


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev setup", description="Install what build and check need; quick the second time.")
    parser.add_argument("--oracles", action="store_true", help="also PyTorch, ONNX and ONNX Runtime (5.7 GB), for tests and benches that compare with them")
    options = parser.parse_args(argv)
    try:
        setup()
        install_highs()
        if options.oracles:
            environment("oracles")
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    say(f"setup: ok ({versions()}; {cache_folder()})")
    return 0


def versions():
    """One line that names what was found, for set-up and for the demo."""
    llvm = subprocess.run(["llvm-config-22", "--version"], capture_output=True, text=True).stdout.strip() or "not found"
    return f"LLVM {llvm}, ONNX {ONNX_VERSION}"
