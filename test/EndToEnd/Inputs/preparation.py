"""Data for preparation.onnxtxt: an input, and what ONNX Runtime 1.31.1 makes of it. Argument: a folder to work in."""

import pathlib
import sys

import numpy as np

known = {
    "x": np.array([[0.5, 2, 3], [1.25, -1, 0.5]], "float32"),
    "p_known": np.array([[0.40428254, 0.59571743], [0.375006527, 0.624993503]], "float32"),
    "label_known": np.array([9, 9]),
    "taken_known": np.array([[1, 0.156173766, 0, 0.312347531], [0, 0.520265996, 1, -0.346843988]], "float32"),
}
np.savez(pathlib.Path(sys.argv[1]) / "data.npz", **known)
