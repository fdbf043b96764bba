"""A copy of a model file whose first parameter holds a NaN: nan_model.py <model> <checkpoint of it> <copy>; needs numpy."""

import json
import pathlib
import struct
import sys

import numpy

raw = next(pathlib.Path(sys.argv[2]).rglob("params.safetensors")).read_bytes()
size = struct.unpack("<Q", raw[:8])[0]
entries = json.loads(raw[8 : 8 + size])
entries.pop("__metadata__", None)
name, entry = max(entries.items(), key=lambda item: item[1]["data_offsets"][1] - item[1]["data_offsets"][0])
begin, end = (8 + size + offset for offset in entry["data_offsets"])
model = pathlib.Path(sys.argv[1]).read_bytes()
assert model.count(raw[begin:end]) == 1, name
at = model.index(raw[begin:end]) + 4 * 7
pathlib.Path(sys.argv[3]).write_bytes(model[:at] + numpy.float32(numpy.nan).tobytes() + model[at + 4 :])
