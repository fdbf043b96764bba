"""What lowtide-bench --json says of blocks and instructions: check_bench.py BLOCKS SINGLE_STEPS RUN."""

import json
import sys

blocks, single, run = (json.load(open(name)) for name in sys.argv[1:])

times = blocks["blocks"]["step_ms"]
assert blocks["blocks"]["steps"] == 2 and blocks["blocks"]["warmup"] == 2 and len(times) == 2, blocks["blocks"]
assert blocks["steps"] == 4 and "blocks" not in single, (blocks["steps"], single["steps"])
assert min(times) > 0 and blocks["step_ms"]["median"] in times, (blocks["step_ms"], times)
# Two steps to warm up and two blocks of two: the losses of the run of six, to the bit.
assert (blocks["first_loss"], blocks["last_loss"]) == (run["losses"][0], run["losses"][5]), (blocks["first_loss"], blocks["last_loss"], run["losses"])

instructions = blocks["instructions"]
whole = sum(one["milliseconds"] * one["runs"] for one in instructions)
assert abs(whole - blocks["floor_ms"]["instructions"]) < 1e-6 * whole, (whole, blocks["floor_ms"])
generated = {one["what"].split()[0]: one["generated"] for one in instructions}
assert generated["gemm"] is False and True in generated.values(), generated
