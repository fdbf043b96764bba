"""Bytes of low-rank pairs at full size: adapter_bytes.py <binaries> <llama-1b.onnx>. Prints rows as JSON.

Pairs of rank 16 on every projection, frozen weights in bf16, batch 1: each arena is the sum of its parts, and who reads a
frozen matrix is a product, not a kernel that could write it anew in f32.
"""

import json
import math
import pathlib
import re
import subprocess
import sys

binaries, model = map(pathlib.Path, sys.argv[1:3])
FLAGS = ["--batch=1", "--target=cuda:sm_90", "--precision=mixed-bf16", "--entries=train", "--lora=*_proj:r=16,alpha=32"]
SIZES = {"bf16": 2, "f32": 4, "i64": 8}


def plan(frozen):
    flags = [*FLAGS, f"--frozen-weights={frozen}", "--emit-locations=off"]
    done = subprocess.run([binaries / "lowtide", "compile", model, "--emit=plan", "-q", "-o", "-", *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


text = plan("bf16")
arenas = {name: int(size) for name, size in re.findall(r"plan\.arena @(\w+) \w+ in device bytes (\d+)", text)}
parts, matrices = {}, {}
for kind, name, shape, dtype, arena, offset, size in re.findall(
    r'plan\.binding (\w+) "([^"]+)" tensor<((?:\d+x)*)(\w+)> @(\w+)\[(\d+) \+ (\d+)\]', text
):
    assert int(size) == math.prod(map(int, shape.split("x")[:-1])) * SIZES[dtype], name
    part = ("pairs" if ".lora_" in name else "frozen") + " " + dtype
    parts.setdefault(arena, {}).setdefault(part, []).append(int(size))
    if kind == "constant" and shape.count("x") == 2 and "embed" not in name and "rotary" not in name:
        matrices[int(offset)] = name
aligned = lambda sizes: sum(-(-size // 64) * 64 for size in sizes)  # noqa: E731
rows = []
for arena in ("params", "state"):
    sums = {part: aligned(sizes) for part, sizes in parts[arena].items()}
    said = " + ".join(f"{part} {size}" for part, size in sums.items())
    rows.append({"name": f"llama-1b {arena}: {arenas[arena]} = {said}", "complaint": "" if sum(sums.values()) == arenas[arena] else "it is not"})
pairs = aligned(parts["params"]["pairs f32"])
rows.append({"name": f"llama-1b state: two numbers for each of {pairs // 4}", "complaint": "" if arenas["state"] == 2 * pairs else f"{arenas['state']} bytes"})
readers = {}
for line in text.splitlines():
    op = re.search(r"plan\.(launch|call|copy)\b (\S+)", line)
    for offset in re.findall(r"@params\[(\d+) \+ \d+\]", line) if op else ():
        if int(offset) in matrices:
            readers.setdefault(matrices[int(offset)], set()).add(op[2] if op[1] == "call" else op[1])
other = sorted(name for name, found in readers.items() if found != {'"gemm"'})
missing = len(matrices) - len(readers)
rows.append({"name": f"llama-1b: {len(readers)} frozen matrices are read by products alone", "complaint": ", ".join(other) or ("" if len(readers) > 150 and not missing else f"{missing} unread")})

# The same matrices in NF4: codes and scales, of which no kernel makes more than a tile.
text = plan("nf4")
held, codes = {}, {}
for name, dtype, offset, size in re.findall(r'plan\.binding constant "([^"]+)" tensor<(?:\d+x)*(\w+)> @params\[(\d+) \+ (\d+)\]', text):
    held[name] = dtype, int(size)
    if dtype == "ui8":
        codes[int(offset)] = name
coded = set(codes.values())
head = "model.lm_head.weight"
complaint = ", ".join(sorted(set(matrices.values()) - coded - {head}))
complaint = complaint or ", ".join(name for name in sorted(coded) if held[f"{name}.scale"] != ("f32", held[name][1] // 8))
if not complaint and held[head][0] != "bf16":
    complaint = f"the head is held in {held['lm_head.weight'][0]}"
total = sum(held[name][1] + held[f"{name}.scale"][1] for name in coded)
rows.append({"name": f"llama-1b: {len(coded)} frozen matrices in {total} bytes of codes and scales", "complaint": complaint})
json.dump(rows, sys.stdout, indent=0)
