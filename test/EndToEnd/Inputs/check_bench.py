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

# A row for each kernel and each call of the same sizes, the longest first; together they are all instructions.
rows = blocks["kernels"]
sizes = {}
for one in instructions:
    name = one["symbol"] or one["what"]
    sizes[name] = sizes.get(name, 0) + one["bytes"] * one["runs"]
assert len(rows) == min(len(sizes), 21) and sum(row["count"] for row in rows) == len(instructions), (len(rows), len(sizes))
for row in rows[:20]:
    size = sizes[row["kernel"].split(":")[0]]
    assert abs(row["bytes"] - size) < 1e-6 * size, (row, size)
times = [row["milliseconds"] for row in rows[:20]]
assert times == sorted(times, reverse=True) and abs(sum(row["milliseconds"] for row in rows) - whole) < 1e-6 * whole, (times, whole)
assert {row["kind"] for row in blocks["kinds"]} >= {"gemm", "loop"} and all(isinstance(line, str) for line in blocks["advice"]), blocks["advice"]
