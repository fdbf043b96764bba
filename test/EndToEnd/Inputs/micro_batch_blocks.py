"""Trains gpt-tiny in micro-batches, each through the whole model and all of them block by block, and compares losses and what is
saved, bit for bit.

Arguments: the folder of recorded models, a folder to work in.
"""

from parts_trials import FILE, resume, trial

TITLE = "gpt-tiny, 4 parts in blocks, cpu"
resume(TITLE, *trial(TITLE, "gpt-tiny/model.onnx", 4, 500000, FILE, "--batch=4", plan=["--micro-batch-blocks=2"]))
