"""Whether two safetensors files hold the same tensors, bit for bit, in whatever order: same_tensors.py A B."""

import json
import sys


def read(path):
    data = open(path, "rb").read()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], data[end:][slice(*entry["data_offsets"])]) for name, entry in header.items()}


a, b = read(sys.argv[1]), read(sys.argv[2])
assert a and a.keys() == b.keys(), a.keys() ^ b.keys()
differing = [name for name in a if a[name] != b[name]]
assert not differing, differing
