"""What --target-file refuses: each file of figures that is wrong in one place, and the words that come."""

import json
import pathlib
import subprocess
import sys

model, path = sys.argv[1], pathlib.Path(sys.argv[2])
GPU = {"name": "mine", "kind": "cuda", "chip": "sm_90"}
CASES = [
    ("{", "is no JSON"),
    ("[1]", "holds no object"),
    ({}, "kind is missing; it takes cpu, cuda, cuda-emulated or reference"),
    ({**GPU, "kind": "tpu"}, "kind is 'tpu'; it takes cpu, cuda, cuda-emulated or reference"),
    ({**GPU, "kind": 3}, "kind is 3; it takes a text"),
    ({**GPU, "chip": "sm_70"}, "chip is 'sm_70'; cuda has sm_80, sm_86"),
    ({**GPU, "chip": "h200"}, "chip is 'h200'; cuda has sm_80, sm_86"),
    ({"name": "mine", "kind": "cuda"}, "chip is ''; cuda has sm_80, sm_86"),
    ({"name": "mine", "kind": "cpu", "chip": "native"}, "chip is 'native'; cpu has x86-64-v3, x86-64-v4"),
    ({"kind": "cuda", "chip": "sm_90"}, "name is empty"),
    ({**GPU, "procesors": 114}, "no field 'procesors'; did you mean 'processors'? There are name, kind, chip"),
    ({**GPU, "processors": -1}, "processors is -1; it takes a whole number from 0"),
    ({**GPU, "processors": 5000}, "processors is 5000; a GPU has 1 to 256"),
    ({**GPU, "threads_max": 0}, "threads_max is 0; it is between 1 and 1024"),
    ({**GPU, "estimates": 1}, "estimates is 1; it takes an object with kernel_flops"),
    ({**GPU, "estimates": {"flops": 1}}, "no field 'estimates.flops'"),
    ({**GPU, "estimates": {"kernel_flops": "fast"}}, 'estimates.kernel_flops is "fast"; it takes a number'),
    ({**GPU, "estimates": {"kernel_flops": 0}}, "estimates.kernel_flops is 0.00E+00; it is a number above 0"),
    ({**GPU, "rates": {"fp3": 1e12}}, "rates.fp3 is of no type of numbers"),
    ({**GPU, "memory": {}}, "memory is {}; it takes a list"),
    ({**GPU, "memory": [{"name": "device", "bytes": 1.5}]}, "memory[0].bytes is 1.5; it takes a whole number from 0"),
    ({**GPU, "links": [{"from": "host"}]}, "a link goes from 'host' to ''"),
    ({**GPU, "libraries": [1]}, "libraries[0] is 1; it takes a text"),
]
for content, words in CASES:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    done = subprocess.run(["lowtide", "compile", model, "--batch=4", f"--target-file={path}", "--emit=nn", "-o", "-"], capture_output=True, text=True)
    complaint = f"error: --target-file: '{path}': {words}"
    if done.returncode != 1 or complaint not in done.stderr:
        sys.exit(f"{content}: expected exit 1 and '{complaint}', found {done.returncode} and '{done.stderr}'")
path.unlink()
done = subprocess.run(["lowtide", "compile", model, "--batch=4", f"--target-file={path}", "--emit=nn"], capture_output=True, text=True)
if done.returncode != 1 or f"cannot read '{path}'" not in done.stderr:
    sys.exit(f"no file: {done.returncode} {done.stderr}")
# Figures that are right, of each kind.
for kind in ({"kind": "cpu", "chip": "x86-64-v3"}, {"kind": "cuda-emulated"}, {"kind": "reference"}, GPU):
    path.write_text(json.dumps({"name": "mine", **kind}))
    subprocess.run(["lowtide", "compile", model, "--batch=4", f"--target-file={path}", "--emit=train", "-q", "-o", path.with_suffix(".mlir")], check=True)
    assert 'name = "mine"' in path.with_suffix(".mlir").read_text()
