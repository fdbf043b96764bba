"""Writes a record with one thing changed: edit_record.py <record> <result> <what>; needs numpy."""

import json
import sys

import numpy

source, result, what = sys.argv[1:]
with numpy.load(source) as file:
    arrays = {name: file[name] for name in file.files}
settings = json.loads(arrays["settings"].tobytes())
if what == "gradient":
    arrays["gradient/lin.weight"] = arrays["gradient/lin.weight"] * 1.001
elif what.startswith("cancelled-"):
    # One gradient is zero, and another of its module that many times what the step's is.
    arrays["gradient/lin.bias"] = arrays["gradient/lin.bias"] * 0
    arrays["gradient/lin.weight"] = arrays["gradient/lin.weight"] * float(what.split("-", 1)[1])
elif what == "loss":
    arrays["loss"] = arrays["loss"] + numpy.arange(10) * 1e-3
elif what == "missing":
    arrays["parameter/gate.weight"] = numpy.ones((2, 2))
    arrays["gradient/gate.weight"] = numpy.full((2, 2), 0.5)
elif what == "frozen":
    del arrays["gradient/source"]
elif what == "unused":
    arrays["parameter/gate.weight"] = numpy.ones((2, 2))
elif what == "buffer":
    arrays["buffer_after/lin.mean"] = numpy.ones(3)
elif what == "start":
    arrays["parameter/lin.bias"] = arrays["parameter/lin.bias"] + 1
elif what == "output":
    arrays["loss"][0] += 1
    arrays["output/pool"] = arrays["output/pool"] + 1
elif what == "shell":
    arrays = {name.replace("/", "/model.", 1) if name.split("/")[0] in ("parameter", "gradient") else name: value for name, value in arrays.items()}
elif what == "name":
    arrays["grad/lin.bias"] = numpy.ones(8)
elif what == "no-loss":
    del arrays["loss"]
elif what == "no-batch":
    arrays = {name: value for name, value in arrays.items() if not name.startswith("input/")}
elif what == "shape":
    arrays["gradient/lin.bias"] = numpy.ones(3)
elif what == "version":
    settings["version"] = 2
elif what == "key":
    settings["momentum"] = 0.9
else:
    sys.exit(f"edit_record.py: {what}?")
arrays["settings"] = numpy.frombuffer(json.dumps(settings).encode(), dtype=numpy.uint8)
numpy.savez(result, **arrays)
