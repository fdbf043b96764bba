"""The rows of one file in several, and tokens in the forms that lowtide-run reads."""

import pathlib
import sys

import numpy

if sys.argv[1] == "tokens":
    tokens = numpy.fromfile("train.bin", "<u2")
    tokens.astype("<u4").tofile("train.u32")
    header = numpy.zeros(256, "<i4")
    header[:3] = 20240520, 1, tokens.size
    pathlib.Path("header.bin").write_bytes(header.tobytes() + tokens.tobytes())
    windows = (tokens.size - 1) // 6
    rows = [tokens[i : i + windows * 6].reshape(windows, 6).astype(numpy.int64) for i in (0, 1)]
    numpy.savez("windows.npz", words=rows[0], next_words=rows[1])
else:
    data, folder = numpy.load(sys.argv[1]), pathlib.Path(sys.argv[2])
    x, labels = data["x"], data["labels"]
    for i, (first, last) in enumerate([(0, 7), (7, 27), (27, 39)]):
        save = numpy.savez_compressed if i == 1 else numpy.savez
        save(folder / f"part-{i}.npz", x=x[first:last], labels=labels[first:last])
        numpy.save(folder / f"x-{i}.npy", x[first:last])
        numpy.save(folder / f"labels-{i}.npy", labels[first:last])
    numpy.savez(folder / "other.npz", x=x.astype(numpy.float64), labels=labels)
    bytes_ = numpy.arange(39 * 6).astype(numpy.uint8).reshape(39, 6)
    numpy.savez(folder / "bytes.npz", x=bytes_, labels=labels)
    numpy.savez(folder / "divided.npz", x=bytes_.astype(numpy.float32) / numpy.float32(255), labels=labels)
    (folder / "book.txt").write_bytes(numpy.random.default_rng(1).integers(0, 11, 200).astype(numpy.uint8).tobytes())
