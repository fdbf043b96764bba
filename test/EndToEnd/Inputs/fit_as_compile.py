"""What `lowtide fit` answers for a budget is what `lowtide compile` does with it: fit_as_compile.py <folder> <models> <eight layers as ONNX>.

Steps that have other forms under a budget (loss heads in pieces, blocks that all parts pass), a last batch, several entries, and a file
next to the device's memory; budgets from below all bounds to where nothing runs again. A bound decides: it is above the budget where
the answer is no, and of the forms that decide elsewhere.
"""

import json
import pathlib
import subprocess
import sys

WORK, MODELS, EIGHT = (pathlib.Path(path) for path in sys.argv[1:4])
STEPS = [
    ([MODELS / "gpt-tiny/default.onnx", "--batch=16", "--entries=train"], []),
    ([EIGHT, "--batch=8", "--micro-batches=2", "--last-batch=4", "--entries=train"], []),
    ([EIGHT, "--batch=16", "--micro-batches=4", "--entries=train"], []),
    ([MODELS / "shift-tiny/both.onnx", "--batch=8"], []),
    ([MODELS / "mlp-digits/model.onnx", "--batch=64", "--optimizer=adamw", "--entries=train"], ["--disk-budget=140KiB"]),
]


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


def compiles(step, budget):
    done = run("lowtide", "compile", *step, f"--device-budget={budget}", "--emit=fitted", "-o", WORK / "fitted.mlir", "-q")
    assert done.returncode in (0, 4), done.stderr
    return done.returncode == 0


yes = no = 0
furthest = False
for step, other in STEPS:
    table = json.loads(run("lowtide", "fit", *step, "--rows=2", "--json", "-q").stdout)
    needs = table["entries"] + table["further_entries"]
    smallest = max(entry["smallest_bytes"] for entry in needs)
    largest = max(entry["largest_bytes"] for entry in table["entries"])
    bound = max(entry["lower_bound_bytes"] for entry in table["entries"])
    for budget in sorted({bound - 1, smallest - 64, smallest, largest + largest // 64}):
        done = run("lowtide", "fit", *step, *other, f"--device-budget={budget}", "--json", "-q")
        answer, expected = json.loads(done.stdout), compiles([*step, *other], budget)
        assert done.returncode == (0 if expected else 4) and not done.stderr, (step, budget, done)
        assert answer["fits"] == expected, (step, budget, answer, expected)
        yes, no = yes + expected, no + (not expected)
        own = answer["ways"][0]
        for way in answer["ways"]:
            assert "fits" not in way or other or not way["fits"] or way["lower_bound_bytes"] <= budget, (step, budget, way)
        if not table["further_entries"] and not other:
            assert own["lower_bound_bytes"] >= bound, (step, budget, own, bound)
            assert budget >= bound or own["lower_bound_bytes"] == bound, (step, budget, own, bound)
            furthest |= budget >= largest and own["lower_bound_bytes"] > bound
assert yes > 6 and no > 6, (yes, no)
assert furthest, "where its own form fits, no other form of a step is asked for"
print("compile does what fit answers")
