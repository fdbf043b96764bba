"""Divide every float tensor of a safetensors file by three: thirds.py FROM TO [tiny]. Few of the numbers have a short form in 16 bits.
With tiny, half of a matrix is near the smallest numbers that there are, as weights of units that never fire decay."""

import json
import struct
import sys

import numpy

source, target, *tiny = sys.argv[1:]
data = open(source, "rb").read()
(size,) = struct.unpack_from("<Q", data)
header, body = json.loads(data[8 : 8 + size]), bytearray(data[8 + size :])
for name, entry in header.items():
    if name != "__metadata__" and entry["dtype"] == "F32":
        begin, end = entry["data_offsets"]
        numbers = numpy.frombuffer(bytes(body[begin:end]), "<f4")
        numbers = (numbers / numpy.float32(3)).reshape(entry["shape"])
        if tiny and numbers.ndim == 2:
            few = numbers[: len(numbers) // 2]
            few *= numpy.exp2(-115 - numpy.arange(len(few)) // 4 % 30).astype(numpy.float32)[:, None]
        body[begin:end] = numbers.tobytes()
open(target, "wb").write(data[: 8 + size] + bytes(body))
