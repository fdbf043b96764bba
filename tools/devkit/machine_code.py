"""What ptxas says of an artifact's kernels, and which accesses their PTX has. Needs no GPU."""

import pathlib
import re
import struct
import subprocess
import tempfile

from devkit.console import Failure
from devkit.dependencies import cuda_toolkit

ENTRY = re.compile(r"Compiling entry function '(\w+)'.*?(?=Compiling entry function|\Z)", re.S)
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def sections(artifact):
    """Name → bytes of the sections of a .tide file (docs/artifact.md)."""
    data = pathlib.Path(artifact).read_bytes()
    count = struct.unpack_from("<I", data, 12)[0]
    found = {}
    for i in range(count):
        name, offset, size = struct.unpack_from("<32sQQ", data, 64 + 80 * i)
        found[name.rstrip(b"\0").decode()] = data[offset : offset + size]
    return found


def report(ptx, chip):
    """Kernel → registers, stack and spilled bytes, as ptxas reports them for `chip`."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "kernels.ptx"
        source.write_bytes(ptx)
        done = subprocess.run(
            [cuda_toolkit() / "bin" / "ptxas", f"-arch={chip}", "-O3", "-fmad=false", "-v", source, "-o", source.with_suffix(".cubin")],
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
    if done.returncode:
        raise Failure(f"ptxas refuses the PTX for {chip}: {done.stderr.strip()[-2000:]}")
    kernels = {}
    for match in ENTRY.finditer(done.stderr + done.stdout):
        stack, registers = STACK.search(match[0]), re.search(r"Used (\d+) registers", match[0])
        kernels[match[1]] = {
            "registers": int(registers[1]), "stack": int(stack[1]), "spilled": int(stack[2]) + int(stack[3]),
        }  # fmt: skip
    return kernels


def bodies(ptx):
    """Kernel → its PTX."""
    text = ptx.decode()
    parts = re.split(r"^\.visible \.entry (\w+)\(", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def accesses(body):
    """Bytes of an access to global memory → how often the PTX of a kernel has such a load or store."""
    counts = {}
    for vector, bits in re.findall(r"\b(?:ld|st)\.global(?:\.nc)?(?:\.v(\d))?\.[bfsu](\d+)", body):
        size = int(vector or 1) * int(bits) // 8
        counts[size] = counts.get(size, 0) + 1
    return counts
