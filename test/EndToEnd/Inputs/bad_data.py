"""Writes data for two-layers.onnx with one thing wrong in each file: bad_data.py <two-layers.npz> <folder>."""

import pathlib
import sys

import numpy as np

data, folder = dict(np.load(sys.argv[1])), pathlib.Path(sys.argv[2])


def save(name, **changes):
    np.savez(folder / f"{name}.npz", **data | changes)


def changed(array, index, value):
    array = array.copy()
    array[index] = value
    return array


labels, pixels = data["labels"], data["pixels"]
save("label", labels=changed(labels, 35, 7))
save("negative", labels=changed(labels, 35, -1))
save("nan", pixels=changed(pixels, (35, 5), np.nan))
save("infinite", pixels=changed(pixels, (1, 0), -np.inf))
save("both", pixels=changed(pixels, (0, 3), np.nan), labels=changed(labels, 3, 10**12))
save("large", pixels=changed(pixels, 20, pixels[20] * np.float32(1e25)))
save("all", labels=labels + 3)
