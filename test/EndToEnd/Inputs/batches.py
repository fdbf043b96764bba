"""batches.py FILE.npz BATCH [FIRST [END]]: writes batches FIRST to END (default: for ever) of its rows, in order."""
import io
import sys

import numpy

file, batch = sys.argv[1], int(sys.argv[2])
first, end = int(sys.argv[3]) if len(sys.argv) > 3 else 0, int(sys.argv[4]) if len(sys.argv) > 4 else None
arrays = numpy.load(file)
each_epoch = len(arrays["x"]) // batch
step = first
while end is None or step < end:
    rows = slice(step % each_epoch * batch, (step % each_epoch + 1) * batch)
    for name in ("x", "labels"):
        npy = io.BytesIO()  # numpy.save asks a file for its position, which a pipe has not
        numpy.save(npy, arrays[name][rows])
        sys.stdout.buffer.write(npy.getbuffer())
    sys.stdout.buffer.flush()
    step += 1
