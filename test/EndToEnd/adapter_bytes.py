"""Bytes of low-rank pairs at full size: adapter_bytes.py <binaries> <llama-1b.onnx>. Prints rows as JSON.

Pairs of rank 16 on every projection, frozen weights in bf16, batch 1: each arena is the sum of its parts, and who reads a
frozen matrix is a product, not a kernel that could write it anew in f32. The same in codes of few bits: what stays is the sum of
its parts, and of codes nothing is made but tiles, each for one product; so, too, with magnitudes, whose norms are of whole matrices.
"""

import json
import math
import pathlib
import re
import subprocess
import sys

binaries, model = map(pathlib.Path, sys.argv[1:3])
FLAGS = ["--batch=1", "--entries=train", "--emit-locations=off"]
RULE = "*_proj:r=16,alpha=32"
SIZES = {"bf16": 2, "f32": 4, "i64": 8}
HEAD = "model.lm_head.weight"


def plan(frozen, *more, rule=RULE):
    flags = [*FLAGS, f"--frozen-weights={frozen}", f"--lora={rule}", *more]
    done = subprocess.run([binaries / "lowtide", "compile", model, "--emit=plan", "-q", "-o", "-", *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


text = plan("bf16", "--target=cuda:sm_90", "--precision=mixed-bf16")
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


# The same matrices in codes: codes and scales, of which no kernel makes more than a tile, next to the sum of all parts.
TILE = 8 << 20
CODED = {"nf4": 2, "int8": 1, "fp8": 1}  # numbers in a byte
TARGETS = {"cpu": ["--target=cpu", "--precision=f32"], "cuda:sm_90": ["--target=cuda:sm_90", "--precision=mixed-bf16"]}
SLICE = re.compile(r"@(\w+)\[(\d+) \+ (\d+)\]")


def coded_rows(target, codec, options=""):
    """What must hold of a plan with matrices in codes: {name, complaint} each."""
    name = f"llama-1b {codec}{options.replace(',', ', ')} on {target}"
    text = plan(codec, *TARGETS[target], rule=RULE + options)
    held = {
        name: (kind, dtype, int(offset), int(size), arena)
        for kind, name, dtype, arena, offset, size in re.findall(
            r'plan\.binding (\w+) "([^"]+)" tensor<(?:\d+x)*(\w+)> @(\w+)\[(\d+) \+ (\d+)\]', text
        )
    }
    codes = {offset: name for name, (_, dtype, offset, _, arena) in held.items() if arena == "params" and dtype in ("ui8", "i8")}
    scales = {name: held.get(f"{name}.scale") for name in codes.values()}
    wrong = sorted(set(matrices.values()) - set(codes.values()) - {HEAD})
    wrong += [f"scales of {name}" for name, found in scales.items() if not found or found[1] != "f32" or found[3] != held[name][3] * CODED[codec] // 64 * 4]
    yield {"name": f"{name}: {len(codes)} frozen matrices in codes", "complaint": ", ".join(wrong)}

    # All that stays, part by part.
    arenas, parts = {name: int(size) for name, size in re.findall(r"plan\.arena @(\w+) \w+ in device bytes (\d+)", text)}, {}
    for binding, (_, dtype, _, size, arena) in held.items():
        part = "optimizer state" if arena == "state" else "pairs" if ".lora_" in binding else "codes" if binding in scales else "scales" if binding.removesuffix(".scale") in scales else f"frozen {dtype}"
        if arena in ("params", "state"):
            parts[part] = parts.get(part, 0) + aligned([size])
    total = sum(parts.values())
    said = " + ".join(f"{part} {size}" for part, size in sorted(parts.items()))
    complaint = "" if total == arenas["params"] + arenas["state"] else f"{arenas['params'] + arenas['state']} bytes are planned"
    yield {"name": f"{name}: {total} bytes stay = {said}; a step takes {arenas['transient']} besides", "complaint": complaint}

    # Who reads codes writes a tile, and a product alone reads that: no tensor of a matrix's size is made of them.
    makers, wrong, tiles, made = {}, [], 0, set()
    for line in text.splitlines():
        op = re.search(r"plan\.(launch|call|copy|fill)\b", line)
        if not op:
            continue
        reads, _, writes = line.partition(" writes ")
        coded = {codes[int(offset)] for arena, offset, _ in SLICE.findall(reads) if arena == "params" and int(offset) in codes}
        tile = [makers.pop(found[:2]) for found in SLICE.findall(reads) if found[:2] in makers]
        if tile and (op[1] != "call" or '"gemm"' not in line):
            wrong.append(f"{op[0]} reads a tile of {tile[0]}")
        for arena, offset, size in SLICE.findall(writes):
            makers.pop((arena, offset), None)
            if not coded:
                continue
            matrix = min(coded)
            numbers = held[matrix][3] * CODED[codec]
            if op[1] != "launch" or len(coded) > 1 or int(size) > min(TILE, numbers):
                wrong.append(f"{op[0]} makes {size} bytes of {numbers} numbers of {matrix}")
            makers[arena, offset] = matrix
            tiles, made = tiles + 1, made | coded
    wrong += [f"{name} is not read" for name in set(codes.values()) - made]
    if tiles < 4 * len(codes):
        wrong.append("fewer tiles than four of each matrix")
    yield {"name": f"{name}: products read {tiles} tiles, and nothing makes a matrix", "complaint": ", ".join(wrong[:4])}


for target in TARGETS:
    for codec in CODED:
        if codec == "nf4" or target != "cpu":
            rows += coded_rows(target, codec)
rows += coded_rows("cuda:sm_90", "nf4", ",dora")
json.dump(rows, sys.stdout, indent=0)
