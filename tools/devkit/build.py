"""Configure and build the project with the CMake preset `dev` (build folder: build/)."""

import argparse
import subprocess
import sys

from devkit import dependencies
from devkit.console import ROOT, Failure, say

BUILD = ROOT / "build"


def configure():
    """Run CMake once; afterwards ninja re-runs it by itself when a CMake file changes."""
    if (BUILD / "build.ninja").exists():
        return
    if subprocess.run(["cmake", "--preset", "dev"], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode:
        raise Failure("error: cmake could not configure the project")


def build(targets=()):
    """Build `targets` (everything when empty); raises Failure when the compiler does not like something."""
    dependencies.setup()
    configure()
    if subprocess.run(["ninja", "-C", BUILD, *targets], stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode:
        raise Failure("error: the build failed")


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev build", description="Configure (preset dev) and build into build/.")
    parser.add_argument("targets", nargs="*", help="ninja targets; everything when none is named")
    options = parser.parse_args(argv)
    try:
        build(options.targets)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    say("build: ok")
    return 0
