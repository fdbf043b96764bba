"""Two forms of the same layers train to the same losses: adapter_forms.py <scratch with joined.tide and apart.tide>; needs numpy."""

import json
import pathlib
import subprocess
import sys

import numpy

scratch = pathlib.Path(sys.argv[1])
g = numpy.random.default_rng(0)
numpy.savez(scratch / "data.npz", x=g.standard_normal((32, 6)).astype("f4"), u=g.standard_normal((32, 24)).astype("f4"))
losses = {}
for name in ("joined", "apart"):
    log = scratch / "log.jsonl"
    flags = [f"--data={scratch / 'data.npz'}", "--steps=30", "--init=random:1", f"--log-jsonl={log}", "-q"]
    done = subprocess.run(["lowtide-run", scratch / f"{name}.tide", *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    losses[name] = [row["loss"] for row in map(json.loads, log.read_text().splitlines()) if "step" in row and "loss" in row]
assert len(losses["joined"]) == 30 and losses["joined"][-1] < 0.9 * losses["joined"][0], losses
assert all(abs(a - b) < 2e-5 * a for a, b in zip(*losses.values())), losses
