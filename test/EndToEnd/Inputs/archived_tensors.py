"""Whether an archive and a .safetensors hold the same numbers: archived_tensors.py ARCHIVE.npz FILE. bf16 is f32 in the archive."""

import json
import struct
import sys

import numpy

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4"}

archive = numpy.load(sys.argv[1])
with open(sys.argv[2], "rb") as file:
    (length,) = struct.unpack("<Q", file.read(8))
    header, content = json.loads(file.read(length)), file.read()
header.pop("__metadata__", None)
assert sorted(header) == sorted(archive.files), (sorted(header), sorted(archive.files))
for name, entry in header.items():
    begin, end = entry["data_offsets"]
    numbers = numpy.frombuffer(content[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    if entry["dtype"] == "BF16":
        numbers = (numbers.astype("<u4") << 16).view("<f4")
    assert archive[name].dtype == numbers.dtype, (name, archive[name].dtype, numbers.dtype)
    numpy.testing.assert_array_equal(archive[name], numbers, name)
print(len(header), "tensors are the same,", sum(entry["dtype"] == "BF16" for entry in header.values()), "of them widened")
