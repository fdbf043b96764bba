"""Reading the two small files that a judged run needs without heavy packages: safetensors, and an ONNX graph's inputs."""

import json
import struct

import numpy

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1", "BOOL": "?",
}  # fmt: skip


def read_safetensors(path):
    """Name -> array of every tensor in the file; bf16 is widened to f32."""
    data = memoryview(path.read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(bytes(data[8 : 8 + length])), data[8 + length :]
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = body[begin:end]
        if entry["dtype"] == "BF16":
            array = (numpy.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
        else:
            array = numpy.frombuffer(raw, DTYPES[entry["dtype"]])
        out[name] = array.reshape(entry["shape"])
    return out


def fields(data):
    """(number, value) of every field of one protobuf message; value is an int or the bytes of a nested message."""

    def varint(at):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7

    at = 0
    while at < len(data):
        key, at = varint(at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(at)
        elif wire == 2:
            length, at = varint(at)
            value, at = data[at : at + length], at + length
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
            value, at = data[at : at + length], at + length
        else:
            raise ValueError(f"wire type {wire}")
        yield number, value


def onnx_inputs(path):
    """Inputs of an ONNX file that are not initializers: name -> dimensions (int, symbol, or None where nothing is said)."""

    def one(data, number):
        return next((v for n, v in fields(data) if n == number), b"")

    graph = one(memoryview(path.read_bytes()), 7)  # ModelProto.graph
    weights, inputs = set(), {}
    for number, value in fields(graph):
        if number == 5:  # GraphProto.initializer
            weights.add(bytes(one(value, 8)).decode())
        elif number == 11:  # GraphProto.input
            shape = one(one(one(value, 2), 1), 2)  # ValueInfoProto.type .tensor_type .shape
            dims = []
            for n, dim in fields(shape):
                if n == 1:
                    said = dict(fields(dim))
                    dims.append(said[1] if 1 in said else bytes(said[2]).decode() if 2 in said else None)
            inputs[bytes(one(value, 1)).decode()] = dims
    return {name: dims for name, dims in inputs.items() if name not in weights}
