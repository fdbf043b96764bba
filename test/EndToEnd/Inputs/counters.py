"""Counters of batch norms in checkpoints: counters.py write FROM TO OTHER: a state whose counters are 1000, and one whose counters are
no integers; counters.py read (CHECKPOINT VALUE)...: all of its counters have that value."""

import json
import pathlib
import struct
import sys

LEAF = "num_batches_tracked"


def load(path):
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    return header, data[8 + size :]


def counters(header):
    return [entry for name, entry in header.items() if name.endswith(LEAF)]


def write(source, to, other):
    header, body = load(source)
    values = bytearray(body)
    assert len(counters(header)) == 6, header
    for entry in counters(header):
        assert (entry["dtype"], entry["shape"]) == ("I64", []), entry
        values[slice(*entry["data_offsets"])] = struct.pack("<q", 1000)
    text = json.dumps(header).encode()
    pathlib.Path(to).write_bytes(struct.pack("<Q", len(text)) + text + values)
    at = len(values)
    for entry in counters(header):
        entry.update(dtype="F32", data_offsets=[at, at + 4])
        at += 4
    kept = {name: entry for name, entry in header.items() if name != "__metadata__"}
    body, packed = bytearray(), {}
    values += bytes(at - len(values))
    for name, entry in kept.items():
        piece = values[slice(*entry["data_offsets"])]
        packed[name] = {**entry, "data_offsets": [len(body), len(body) + len(piece)]}
        body += piece
    text = json.dumps(packed).encode()
    pathlib.Path(other).write_bytes(struct.pack("<Q", len(text)) + text + body)


def read(*pairs):
    for folder, value in zip(pairs[::2], pairs[1::2], strict=True):
        header, body = load(pathlib.Path(folder) / "params.safetensors")
        found = [struct.unpack("<q", body[slice(*entry["data_offsets"])])[0] for entry in counters(header)]
        assert found == [int(value)] * 6, (folder, found)


globals()[sys.argv[1]](*sys.argv[2:])
