"""What `lowtide fit` answers for a budget holds: fit_answer.py <model> <scratch artifact>; batch 8 of a symbolic batch.

The cheapest way compiles within the budget, the largest batches do, and one sample more does not.
"""

import json
import pathlib
import subprocess
import sys

MODEL, ARTIFACT = sys.argv[1:3]
BUDGET = 400 << 10


def compiles(*flags):
    command = ["lowtide", "compile", MODEL, "-o", ARTIFACT, "--entries=train", "-q", *flags]
    return subprocess.run(command, capture_output=True).returncode


def answer(budget):
    command = ["lowtide", "fit", MODEL, "--dim=batch=8", "--entries=train", f"--device-budget={budget}", "--json", "-q"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


code, answers = answer(BUDGET)
assert code == (0 if answers["fits"] else 4), (code, answers)
assert answers["largest_batch_is_exact"], answers
largest = answers["largest_batch_recomputed"]
assert largest >= answers["largest_batch"] >= 8, answers
assert compiles(f"--dim=batch={largest}", f"--device-budget={BUDGET}") == 0, answers
assert compiles(f"--dim=batch={largest + 1}", f"--device-budget={BUDGET}") == 4, answers
code, answers = answer("125KiB")
assert code == 4 and not answers["fits"], answers
cheapest = next((way for way in answers["ways"] if way.get("cheapest")), None)
if cheapest:
    flags = cheapest["flags"].split()
    batch = [] if any(flag.startswith("--batch") for flag in flags) else ["--dim=batch=8"]
    assert compiles(*batch, *[flag for flag in flags if not flag.startswith("--device-budget")], "--device-budget=125KiB") == 0, answers

# Where more parts fit as they are and fewer do with recomputation, the faster of both is the answer.
code, answers = answer("160KiB")
assert code == 4, answers
seconds = {}
for parts in (1, 2, 4, 8):
    if compiles("--dim=batch=8", f"--micro-batches={parts}", "--device-budget=160KiB", f"--figures={ARTIFACT}.json") == 0:
        figures = json.loads(pathlib.Path(f"{ARTIFACT}.json").read_text())
        seconds[parts] = next(entry["seconds"] for entry in figures["entries"] if entry["name"] == "train")
cheapest = next(way for way in answers["ways"] if way.get("cheapest"))
assert len(seconds) > 1 and cheapest["precision"] == "f32", (seconds, answers)
assert cheapest["micro_batches"] == min(seconds, key=seconds.get), (seconds, answers)
