"""What a checkpoint holds of frozen weights in codes: frozen_codes.py CODEC f32.safetensors coded.safetensors. The codes stand for
what the codec's rule makes of the f32 numbers, bit for bit, and everything that is not frozen in codes is there as it was.
"""

import json
import sys

import numpy

NF4 = [
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
]  # fmt: skip


def read(path):
    data = open(path, "rb").read()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    assert all(entry["dtype"] == "F32" for entry in header.values()), header
    return {
        name: numpy.frombuffer(data[end:], numpy.float32)[entry["data_offsets"][0] // 4 : entry["data_offsets"][1] // 4].reshape(entry["shape"])
        for name, entry in header.items()
    }


def decoded(codec, numbers):
    blocks = numbers.reshape(-1, 64)
    largest = abs(blocks).max(1, keepdims=True)
    if codec == "int8":
        scales = largest / numpy.float32(127)
        return ((numpy.rint(blocks / scales) + numpy.float32(0)) * scales).reshape(numbers.shape)
    if codec == "fp8":
        scales = largest / numpy.float32(448)
        quotients = blocks / scales
        # Three bits of fraction follow the leading one, and none below 2^-9.
        step = numpy.exp2(numpy.maximum(numpy.frexp(quotients)[1], -5) - 4).astype(numpy.float32)
        return (numpy.rint(quotients / step) * step * scales).reshape(numbers.shape)
    table = numpy.array(NF4, numpy.float32)
    codes = numpy.searchsorted((table[1:] + table[:-1]) / numpy.float32(2), blocks * (numpy.float32(1) / largest))
    return (table[codes] * largest).reshape(numbers.shape)


codec, wide, coded = sys.argv[1], read(sys.argv[2]), read(sys.argv[3])
assert wide.keys() == coded.keys(), wide.keys() ^ coded.keys()
changed = {name for name in wide if ".qkv.weight" in name or ".up.weight" in name}
assert len(changed) == 4, wide.keys()
for name in wide:
    wanted = decoded(codec, wide[name]) if name in changed else wide[name]
    assert wanted.dtype == numpy.float32 and wanted.tobytes() == coded[name].tobytes(), name
    assert name not in changed or not numpy.array_equal(wanted, wide[name]), name
print(len(changed), "matrices are what their codes stand for")
