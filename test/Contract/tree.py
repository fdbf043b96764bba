"""The tracked files of the project, for the contract tests."""

import functools
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = (".cpp", ".h", ".td", ".c", ".cu", ".proto", ".py")


@functools.cache
def files():
    """Every tracked or new, not ignored, file as a path relative to the root."""
    out = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    paths = sorted({pathlib.PurePosixPath(name) for name in out.decode().split("\0") if name})
    return [path for path in paths if (ROOT / path).is_file()]


def sources(*rooms, suffixes=SOURCES):
    """Source files under the given folders (all when none is named)."""
    return [f for f in files() if f.suffix in suffixes and (not rooms or any(str(f).startswith(r + "/") for r in rooms))]


@functools.cache
def text(path):
    return (ROOT / path).read_text(errors="replace")
