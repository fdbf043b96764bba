"""What a state file says of tensors that a run cannot take from it as they are: init_names.py <step with a constant> <its
data> <name of the constant> <step with a tied tensor> <its data> <scratch>; needs numpy."""

import json
import pathlib
import struct
import subprocess
import sys

import numpy

table, table_data, constant, tied, tied_data = sys.argv[1:6]
scratch = pathlib.Path(sys.argv[6])


def run(artifact, data, *flags, code=0):
    done = subprocess.run(["lowtide-run", artifact, f"--data={data}", *flags, "-q"], capture_output=True, text=True)
    assert done.returncode == code, (done.returncode, done.stderr)
    return done.stderr


def saved(artifact, data, folder):
    run(artifact, data, "--steps=0", f"--save={scratch / folder}")
    raw = next((scratch / folder).rglob("params.safetensors")).read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    return raw, json.loads(raw[8 : 8 + size]), 8 + size


def changed(state, name, at, value):
    """A file with another number in a tensor of floats."""
    raw, header, body = state
    assert header[name]["dtype"] == "F32", header[name]
    begin = body + header[name]["data_offsets"][0] + 4 * at
    path = scratch / "changed.safetensors"
    path.write_bytes(raw[:begin] + numpy.float32(value).tobytes() + raw[begin + 4 :])
    return f"--init={path}"


state = saved(table, table_data, "table")
parameter = next(name for name, entry in state[1].items() if name not in ("__metadata__", constant) and entry["dtype"] == "F32")
assert constant not in run(table, table_data, "--steps=1", changed(state, parameter, 0, 0.5))
said = run(table, table_data, "--steps=1", changed(state, constant, 1, 0.5))
assert f"has other numbers for '{constant}', which the step computes with as the model file has them" in said, said
said = run(table, table_data, "--steps=1", changed(state, parameter, 2, numpy.nan), code=7)
assert f"parameter '{parameter}' holds nan (element 2): no run can start from there" in said, said

state = saved(tied, tied_data, "tied")
raw, header, body = state
names = {}
for name, entry in header.items():
    if name != "__metadata__":
        begin, end = entry["data_offsets"]
        names.setdefault((tuple(entry["shape"]), raw[body + begin : body + end]), []).append(name)
# Of weights that began as ones there are more.
pair = next(pair for pair in names.values() if len(pair) == 2 and any("head" in name for name in pair))
said = run(tied, tied_data, "--steps=1", changed(state, pair[0], 3, 0.5), code=2)
assert f"'{pair[0]}' is not '{pair[1]}', and the artifact holds both as one (tied)" in said or (
    f"'{pair[1]}' is not '{pair[0]}', and the artifact holds both as one (tied)" in said
), said
