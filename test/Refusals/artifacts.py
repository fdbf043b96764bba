"""Damaged artifacts and data files: what `lowtide-run` and `lowtide verify` must refuse.

`cases(artifact, data)` takes the bytes of a good artifact and of good data and yields (name, artifact, data, exit code,
words): the damage, and what the refusal must be.
"""

import io
import struct
import zipfile

import numpy

BAD, UNSUPPORTED, NONFINITE = 2, 3, 7


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]


def cases(artifact, data):
    yield "empty artifact", b"", data, BAD, ()
    yield "text as artifact", b"not an artifact\n" * 400, data, BAD, ()
    yield "wrong magic", b"XXXX" + artifact[4:], data, BAD, ()
    for part in (1, 2, 3, 5, 8):
        yield f"artifact cut at {part}/9", artifact[: len(artifact) * part // 9], data, BAD, ()
    yield "artifact without its last byte", artifact[:-1], data, BAD, ()
    yield "artifact with bytes after its end", artifact + b"\0" * 4096, data, BAD, ()
    for part in range(1, 16):
        yield f"bit flipped at {part}/16", flipped(artifact, len(artifact) * part // 16), data, BAD, ()
    for at in (8, 12, 16, 24, 32, 40, 64):
        # Format version and feature bits are read before anything is trusted: what they ask for may exist elsewhere.
        yield f"bit flipped at byte {at}", flipped(artifact, at), data, UNSUPPORTED if at in (8, 16) else BAD, ()
    yield "artifact of a future version", artifact[:8] + struct.pack("<I", 0x7FFFFFFF) + artifact[12:], data, UNSUPPORTED, ()
    yield from data_cases(artifact, data)


def data_cases(artifact, data):
    with numpy.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}

    def saved(**changed):
        out = io.BytesIO()
        numpy.savez(out, **{k: v for k, v in {**arrays, **changed}.items() if v is not None})
        return out.getvalue()

    plain = saved()
    yield "no data", artifact, b"", BAD, ()
    yield "text as data", artifact, b"x,y\n1,2\n" * 100, BAD, ()
    yield "data cut in half", artifact, plain[: len(plain) // 2], BAD, ()
    yield "data without an array", artifact, saved(y=None), BAD, ("y",)
    yield "data of the wrong shape", artifact, saved(x=arrays["x"][:, :-1]), BAD, ("x",)
    yield "data of the wrong type", artifact, saved(y=arrays["y"].astype("f4")), BAD, ("y",)
    yield "arrays of different lengths", artifact, saved(y=arrays["y"][:-64]), BAD, ()
    yield "fewer rows than a batch", artifact, saved(**{k: v[:3] for k, v in arrays.items()}), BAD, ()
    yield "labels out of range", artifact, saved(y=arrays["y"] + 1000), NONFINITE, ("loss",)

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
    yield "an array that ends early", artifact, member(good[:-100]), BAD, ("x",)
    yield "an array whose header is cut", artifact, member(good[:20]), BAD, ("x",)
    yield "an array header that is a program", artifact, member(header("__import__('os').system('true')")), BAD, ("x",)
    yield "an array whose size overflows", artifact, member(header("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 64), }")), BAD, ("x",)
    yield "an array of objects", artifact, member(header("{'descr': '|O', 'fortran_order': False, 'shape': (1792, 64), }")), BAD, ("x",)


def header(text):
    text = text + " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()
