"""Random training graphs: at any budget the same bits.

Graphs are valid by construction (test/lib/RandomSteps); each is trained without a budget and at four between its smallest
and its largest plan. One that fails is shrunk and kept as a file that runs again alone; seeds make a run repeatable.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

from devkit.build import BUILD, build
from devkit.console import Failure, say

PROGRAM = "lowtide-random-steps"
FINDINGS = BUILD / "findings"


def run(binary, first, count, jobs, flags=()):
    """(figures added up, what was printed of failures) of `count` seeds from `first`, in `jobs` processes."""
    share = -(-count // jobs)
    parts = [(first + i * share, min(share, count - i * share)) for i in range(jobs) if i * share < count]
    running = [
        subprocess.Popen(
            [str(c) for c in (binary, f"--first={a}", f"--count={n}", f"--keep={FINDINGS}", *flags)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
            env=os.environ | {"LD_BIND_NOW": "1"},  # each graph has a process of its own: found once, symbols are found for all
        )
        for a, n in parts
    ]  # fmt: skip
    figures, failures = {}, []
    for process in running:
        lines = process.communicate()[0].splitlines()
        if not lines or not lines[-1].startswith("{"):
            raise Failure(f"error: {PROGRAM} ended with {process.returncode}\n" + "\n".join(lines[-5:]))
        for name, value in json.loads(lines[-1]).items():
            figures[name] = max(figures.get(name, 0), value) if name == "seconds" else figures.get(name, 0) + value
        failures += lines[:-1]
    return figures, failures


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev graphs", description=__doc__.replace("\n", " "))
    parser.add_argument("--count", type=int, default=20_000, help="graphs (20,000)")
    parser.add_argument("--first", type=int, default=0, help="first seed (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--bin", type=pathlib.Path, help="use the binary in this folder; nothing is built")
    options, flags = parser.parse_known_args(argv)
    try:
        if not options.bin:
            build([PROGRAM])
        figures, failures = run((options.bin or BUILD / "bin") / PROGRAM, options.first, options.count, options.jobs, flags)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    for line in failures:
        print(line)
    say(json.dumps(figures))
    print(f"{figures['graphs'] - figures['failed']} of {figures['graphs']} graphs hold")
    return 1 if figures["failed"] else 0
