"""Trains models in micro-batches with the sums of their gradients on the device and in another memory, and compares losses and
what is saved, bit for bit.

Arguments: the folder of recorded models, a folder to work in; `more`: the trials of the whole check.
"""

import sys

from parts_trials import FILE, PINNED, resume, trial

gpt, resnet = "gpt-tiny/model.onnx", "resnet-tiny/model.onnx"
# Without sums elsewhere the smallest plans of gpt-tiny need 528,576, 460,672 and 761,792 bytes.
if sys.argv[3:] == ["more"]:
    trial("gpt-tiny, 4 parts, cuda-emulated", gpt, 4, 300000, PINNED, "--batch=4")
    whole, moved = trial("gpt-tiny, 2 parts, deferred updates", gpt, 2, 350000, FILE, "--batch=2", "--updates=deferred")
    resume("gpt-tiny, 2 parts, deferred updates", whole, moved)
    # Sums of less than 16 KiB stay on the device.
    trial("resnet-tiny, 4 parts, cpu", resnet, 4, 192640, FILE, "--batch=4")
    trial("resnet-tiny, 4 parts, cuda-emulated", resnet, 4, 172480, PINNED, "--batch=4")
    trial("rnn-tiny, 2 parts, cpu", "rnn-tiny/default.onnx", 2, 125568, FILE, "--batch=4")
else:
    whole, moved = trial("gpt-tiny, 2 parts, cpu", gpt, 2, 345000, FILE, "--batch=2")
    resume("gpt-tiny, 2 parts, cpu", whole, moved)
