"""Matrix products of a step next to PyTorch's of the same shapes, for `tools/dev bench cpu`.

Each product runs by itself on random numbers, without what is added to it: ours as `lowtide-bench --products` runs them,
PyTorch's as `torch.matmul` (devkit/torch_peer.py), in turn, on the same number of threads; the best of many runs counts.
The floor of a step is what its products take at PyTorch's rates.
"""

import json

from devkit.build import BUILD
from devkit.console import Failure
from devkit.judge import call, first_error


def measure(artifact, work, threads, rounds, call_peer):
    """A row for each shape: sizes, `count` in a step, and milliseconds of one, `ours` and `torch`."""
    listed, best = work / "products.json", None
    for _ in range(rounds):
        status, said = call([BUILD / "bin/lowtide-bench", artifact, "--products", f"--threads={threads}", f"--json={listed}"], work / "products.log")
        if status:
            raise Failure(f"exit {status}: {first_error(said)}")
        rows = json.loads(listed.read_text())["products"]
        torch = json.loads(call_peer("products", listed, threads).splitlines()[-1])
        best = best or [row | {"ours": float("inf"), "torch": float("inf")} for row in rows]
        for row, now, theirs in zip(best, rows, torch, strict=True):
            row["ours"], row["torch"] = min(row["ours"], now["milliseconds"]), min(row["torch"], theirs)
    return [{key: value for key, value in row.items() if key not in ("milliseconds", "gflops")} for row in best or []]


def shape(row):
    flags = " Aᵀ" * row["transpose_a"] + " Bᵀ" * row["transpose_b"]
    return f"{row['m']}×{row['n']}×{row['k']}{flags}" + (f" ×{row['batch']}" if row["batch"] > 1 else "")


def floor_ms(rows):
    return sum(row["count"] * row["torch"] for row in rows)


def table(measured):
    """`measured`: name, milliseconds of the whole step or None, rows of `measure`."""
    yield "| model | step ms | products ms | floor ms | floor / step | floor / products | shapes | least rate over PyTorch's | of |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    for name, step, rows in measured:
        if not rows:
            continue
        ours, floor = sum(row["count"] * row["ours"] for row in rows), floor_ms(rows)
        least = min(rows, key=lambda row: row["torch"] / row["ours"])
        whole, share = (f"{step:.2f}", f"{floor / step:.2f}") if step else ("–", "–")
        yield (
            f"| {name} | {whole} | {ours:.2f} | {floor:.2f} | {share} | {floor / ours:.2f} | {len(rows)} | {least['torch'] / least['ours']:.2f}"
            f" | {shape(least)} |"
        )
