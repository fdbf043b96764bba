"""Trains a model whose state does not fit into the memory that a process may have: memory_limit.py <folder>.

Without another memory the run ends in words; with values in a file it reaches the losses of a run without a limit. The limit is
of what is memory and no file (`ulimit -d`): that of address space counts what the host sees of the file, too.
What is resident, weights of the artifact on their way into the file included, is what was planned and a few pieces.
"""

import json
import os
import pathlib
import resource
import struct
import subprocess
import sys

INPUTS, WORK = pathlib.Path(__file__).parent, pathlib.Path(sys.argv[1])
MIB = 1 << 20
# What a process takes besides the plan: stacks, the batch, tables.
REST = 64 * MIB


def run(line, limit=None):
    how = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))} if limit else {}
    # Pools of memory that threads reserve for themselves are no part of what is tried.
    return subprocess.run([str(word) for word in line], capture_output=True, text=True, env=os.environ | {"MALLOC_ARENA_MAX": "1"}, **how)


def must(line, limit=None):
    done = run(line, limit)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr}"
    return done


def least_space(line):
    """Bytes of data from which on a program starts."""
    low, high = 0, 4096
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if run(line, middle * MIB).returncode == 0 else (middle, high)
    return high * MIB


model = WORK / "wide.onnx"
must(["lowtide-translate", "--onnx-text-to-onnx", INPUTS / "wide.onnxtxt", "-o", model])
steps, figures = {}, {}
for name, flags in {"whole": [], "file": ["--device-budget=40%", "--disk-budget=1GiB"]}.items():
    steps[name] = WORK / f"{name}.tide"
    figures[name] = WORK / f"{name}.figures.json"
    must(["lowtide", "compile", model, "-o", steps[name], "--no-weights", "--entries=train", f"--figures={figures[name]}", *flags])


def train(name, limit=None):
    summary = WORK / f"{name}.json"
    done = run(["lowtide-run", steps[name], "--data=synthetic", "--init=random:1", "--seed=3", "--steps=4", "--threads=2", "-q", f"--summary={summary}", f"--spill={WORK}"], limit)
    return done, json.loads(summary.read_text()) if done.returncode == 0 else None


done, whole = train("whole")
assert whole, done.stderr
done, moved = train("file")
assert moved, done.stderr
limit = least_space(["lowtide-run", "--help"]) + moved["planned_bytes"] + REST
assert whole["planned_bytes"] > moved["planned_bytes"] + REST, (whole["planned_bytes"], moved["planned_bytes"])
refused, _ = train("whole", limit)
print(f"state beyond the limit, on the device: exit {refused.returncode}, {refused.stderr.strip().splitlines()[-1] if refused.stderr.strip() else 'without a word'}")
done, limited = train("file", limit)
print(f"state beyond the limit, in a file: {'exit ' + str(done.returncode) + ' ' + done.stderr if not limited else 'same' if limited['losses'] == whole['losses'] == moved['losses'] else 'different'}")

# Weights of 64 MiB, each of which is the same numbers.
(WORK / "absent.bin").write_bytes(b"".join(struct.pack("<f", (i % 61 - 30) / 2048) for i in range(61)) * (2048 * 2048 // 61 + 1))
steps["weights"] = WORK / "weights.tide"
must(["lowtide", "compile", model, "-o", steps["weights"], "--entries=train", "--device-budget=40%", "--disk-budget=1GiB", "-q"])


def resident(*line):
    """The most bytes that a program has in memory."""
    process = subprocess.Popen([str(word) for word in line], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, status
    return used.ru_maxrss * 1024


summary = WORK / "weights.json"
most = resident("lowtide-run", steps["weights"], "--data=synthetic", "--steps=2", "--threads=1", "-q", f"--summary={summary}", f"--spill={WORK}")
most -= json.loads(summary.read_text())["planned_bytes"] + resident("lowtide-run", "--help")
print(f"resident beyond the plan and the program: {'less than 40 MiB' if most < 40 * MIB else f'{most:,} bytes'}")
