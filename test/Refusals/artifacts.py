"""Damaged artifacts and data files: what `lowtide-run` and `lowtide verify` must refuse.

`cases(artifact, data)` takes the bytes of a good artifact and of good data and yields (name, artifact, data, exit codes,
words): the damage, and what the refusal may be.
"""

import io
import struct
import zipfile

import numpy

BAD, UNSUPPORTED, VERIFY, IO = 2, 3, 5, 8


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]


def cases(artifact, data):
    damaged = (BAD, UNSUPPORTED, VERIFY)
    yield "empty artifact", b"", data, (BAD,), ()
    yield "text as artifact", b"not an artifact\n" * 400, data, (BAD,), ()
    yield "wrong magic", b"XXXX" + artifact[4:], data, (BAD,), ()
    for part in (1, 2, 3, 5, 8):
        yield f"artifact cut at {part}/9", artifact[: len(artifact) * part // 9], data, damaged, ()
    yield "artifact without its last byte", artifact[:-1], data, damaged, ()
    yield "artifact with bytes behind its end", artifact + b"\0" * 4096, data, damaged, ()
    for part in range(1, 16):
        yield f"bit flipped at {part}/16", flipped(artifact, len(artifact) * part // 16), data, damaged, ()
    for at in (8, 12, 16, 24, 32, 40, 64):
        yield f"bit flipped at byte {at}", flipped(artifact, at), data, damaged, ()
    yield "artifact of a future version", artifact[:8] + struct.pack("<I", 0x7FFFFFFF) + artifact[12:], data, damaged, ()
    yield from data_cases(artifact, data)


def data_cases(artifact, data):
    with numpy.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}

    def saved(**changed):
        out = io.BytesIO()
        numpy.savez(out, **{k: v for k, v in {**arrays, **changed}.items() if v is not None})
        return out.getvalue()

    bad = (BAD, IO)
    plain = saved()
    yield "no data", artifact, b"", bad, ()
    yield "text as data", artifact, b"x,y\n1,2\n" * 100, bad, ()
    yield "data cut in half", artifact, plain[: len(plain) // 2], bad, ()
    yield "data without an array", artifact, saved(y=None), bad, ("y",)
    yield "data of the wrong shape", artifact, saved(x=arrays["x"][:, :-1]), bad, ("x",)
    yield "data of the wrong type", artifact, saved(y=arrays["y"].astype("f4")), bad, ("y",)
    yield "arrays of different lengths", artifact, saved(y=arrays["y"][:-64]), bad, ()
    yield "fewer rows than a batch", artifact, saved(**{k: v[:3] for k, v in arrays.items()}), bad, ()
    yield "labels out of range", artifact, saved(y=arrays["y"] + 1000), (BAD, 6, 7), ()

    def member(raw):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("x.npy", raw)
            archive.writestr("y.npy", npy(arrays["y"]))
        return out.getvalue()

    def npy(array):
        out = io.BytesIO()
        numpy.save(out, array)
        return out.getvalue()

    good = npy(arrays["x"])
    yield "an array that ends early", artifact, member(good[:-100]), bad, ("x",)
    yield "an array whose header is cut", artifact, member(good[:20]), bad, ("x",)
    yield "an array header that is a program", artifact, member(header("__import__('os').system('true')")), bad, ("x",)
    yield "an array whose size overflows", artifact, member(header("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 64), }")), bad, ("x",)
    yield "an array of objects", artifact, member(header("{'descr': '|O', 'fortran_order': False, 'shape': (1792, 64), }")), bad, ("x",)


def header(text):
    text = text + " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()
