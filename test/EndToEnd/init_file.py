"""A run that starts from a state file does what the run does whose checkpoint it is: init_file.py <step without weights>
<step with them> <data> <scratch>; needs numpy."""

import json
import pathlib
import struct
import subprocess
import sys

import numpy

bare, whole, data, scratch = sys.argv[1:3] + [f"--data={sys.argv[3]}"] + [pathlib.Path(sys.argv[4])]


def run(artifact, *flags, code=0):
    log = scratch / "log"
    done = subprocess.run(["lowtide-run", artifact, data, "--steps=3", f"--log-jsonl={log}", *flags], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    rows = [json.loads(line) for line in log.read_text().splitlines()] if code == 0 else []
    return [row["loss"] for row in rows if "loss" in row and "step" in row], done.stderr


def read(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + size])
    header.pop("__metadata__", None)
    return {n: (e["shape"], numpy.frombuffer(raw[8 + size + e["data_offsets"][0] : 8 + size + e["data_offsets"][1]], numpy.float32))
            for n, e in header.items() if e["dtype"] == "F32"}  # fmt: skip


def write(path, tensors, kind="F32", dtype=numpy.float32):
    header, body = {}, b""
    for name, (shape, values) in tensors.items():
        values = values.astype(dtype).tobytes()
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(values)]}
        body += values
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


reference = run(whole)[0]
subprocess.run(["lowtide-run", whole, data, "--steps=0", f"--save={scratch / 'start'}", "-q"], check=True)
newest = max((scratch / "start").rglob("params.safetensors"))
state = read(newest)
file = scratch / "state.safetensors"
write(file, state)
assert run(bare, f"--init={file}")[0] == reference
write(file, state, "F64", numpy.float64)
losses, said = run(bare, f"--init={file}")
assert losses == reference and "were converted to the artifact's type" in said, said
first = next(iter(state))
# What f32 cannot hold would be infinite from the start.
large = state[first][1].astype(numpy.float64)
large[1] = 1e300
write(file, state | {first: (state[first][0], large)}, "F64", numpy.float64)
said = run(bare, f"--init={file}", code=2)[1]
assert f"tensor '{first}': element 1, 1e+300, is beyond the largest float32" in said, said
write(file, {n: t for n, t in state.items() if n != first} | {"other": state[first]})
said = run(bare, f"--init={file}", code=2)[1]
assert f"has no '{first}'; it holds 'other'" in said, said
write(file, state | {first: ([1, *state[first][0]], state[first][1])})
said = run(bare, f"--init={file}", code=2)[1]
assert f"tensor '{first}' is float32[1," in said, said
said = run(bare, "--init=state.pt", code=1)[1]
assert "--init=state.pt: random:<seed>, a .safetensors file or a folder with PEFT's adapter is expected" in said, said
# A folder of checkpoints is no adapter, and says which of its files holds weights.
for folder in (scratch / "start", newest.parent):
    said = run(whole, f"--init={folder}", code=1)[1]
    assert f"holds no adapter of PEFT (adapter_model.safetensors): --init={newest} starts from" in said, said
    assert f"--resume={folder} goes on from it" in said, said
assert run(bare, f"--init={newest}")[0] == reference
