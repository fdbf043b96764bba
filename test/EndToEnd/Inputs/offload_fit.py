"""What `lowtide fit --disk-budget` says is what `lowtide compile` does.

Arguments: a model, a folder to work in.
"""

import json
import pathlib
import subprocess
import sys

MODEL, WORK = (pathlib.Path(a) for a in sys.argv[1:3])
STEP = ["--batch=4", "--optimizer=adamw"]
ROOM = "--disk-budget=1GiB"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def compile(budget):
    told = WORK / f"{budget}.json"
    done = run("lowtide", "compile", MODEL, "-o", WORK / f"{budget}.tide", *STEP, f"--device-budget={budget}", ROOM, f"--figures={told}")
    return done.returncode, json.loads(told.read_text())


done = run("lowtide", "fit", MODEL, *STEP, ROOM, "--rows=2", "--json")
assert done.returncode == 0, done.stderr
table = json.loads(done.stdout)
other = table["other_memory"]
assert other["flag"] == ROOM and other["smallest_bytes_alone"] == table["entries"][0]["smallest_bytes"], other
smallest, first = other["smallest_bytes"], other["plans"][0]
code, figures = compile(smallest)
assert code == 0 and first["budget_bytes"] == smallest and figures["bytes"] == first["device_bytes"] <= smallest, (figures, first)
assert figures["file_bytes"] == first["file_bytes"] > first["host_bytes"] == 0, (figures, first)
code, figures = compile(smallest - 1)
assert code == 4 and figures["refusal"]["smallest_bytes"] == smallest, (code, figures)
print("the smallest plan is compiled, one byte less is refused")
