"""The table of `lowtide fit` over two budgets says what `lowtide compile` does with them, and more bytes never cost time.

Arguments: a model, a folder to work in, a list of budgets with 0, flags of the step.
"""

import json
import pathlib
import re
import subprocess
import sys

MODEL, WORK, LIST, STEP = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3], [*sys.argv[4:], "--entries=train"]
ROWS = 4


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def fit(*flags):
    done = run("lowtide", "fit", MODEL, *STEP, f"--rows={ROWS}", "--json", "-q", *flags)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def compile(device, disk):
    """Percent over the whole step, nothing where it does not fit; and the smallest budget that a refusal names."""
    told, text = WORK / "figures.json", WORK / "fitted.mlir"
    other = [f"--disk-budget={disk}"] if disk else []
    done = run("lowtide", "compile", MODEL, *STEP, f"--device-budget={device}", *other, f"--figures={told}", "--emit=fitted", "-o", text, "-v")
    if done.returncode:
        assert done.returncode == 4, done.stderr
        return None, json.loads(told.read_text())["refusal"]["smallest_bytes"]
    if not disk:  # a remark, of whoever recomputes
        said = re.search(r"FLOPs, ([+-][0-9.]+) % time", done.stderr)
        return float(said[1]) if said else 0.0, None
    seconds = float(re.search(r"train\.estimate = \{[^}]*\bseconds = ([0-9.eE+-]+)", text.read_text())[1])
    return 100 * (seconds / whole - 1), None


def near(a, b, disk=1):
    """Texts of seconds have fewer digits, and a remark has one after the point."""
    return abs(a - b) <= (1e-3 if disk else 0.0501)


plain, given = fit(), fit(f"--disk-budget={LIST}")
assert "other_memory" not in given and "other_memory_budgets" not in plain, given.keys()
whole, alone = plain["entries"][0]["seconds"], plain["entries"][0]
table = given["other_memory_budgets"]
columns = [column["budget_bytes"] for column in table["columns"]]
smallest = [column["smallest_bytes"] for column in table["columns"]]
rows = [(row["device_budget_bytes"], row["cells"]) for row in table["rows"]]
assert columns == sorted(set(columns)) and columns[0] == 0 and len(columns) > 2, columns
assert len(rows) == ROWS and all(len(cells) == len(columns) for _, cells in rows), table
times = [[cell["time_percent"] if cell["fits"] else float("inf") for cell in cells] for _, cells in rows]

# More of either memory never costs time.
for i, line in enumerate(times):
    assert line == sorted(line, reverse=True), (rows[i][0], line)
    assert not i or all(above >= below for above, below in zip(times[i - 1], line)), (times[i - 1], line)
assert smallest == sorted(smallest, reverse=True) and smallest[-1] < smallest[0], smallest

# Without the other memory it is the table that stands without the flag.
assert smallest[0] == alone["smallest_bytes"] and near(times[-1][0], 0), (smallest, alone["smallest_bytes"])
for plan in alone["plans"]:
    for (budget, _), line in zip(rows, times):
        assert budget < plan["budget_bytes"] or line[0] <= plan["time_percent"] + 1e-3, (budget, line, plan)
        assert budget > plan["budget_bytes"] or line[0] >= plan["time_percent"] - 1e-3, (budget, line, plan)

own = taken = refused = 0
for (budget, cells), line in zip(rows, times):
    for column, cell in enumerate(cells):
        found, _ = compile(budget, columns[column])
        assert cell["fits"] == (budget >= smallest[column]), (budget, column, smallest)
        if not cell["fits"]:
            assert found is None, (budget, columns[column], found)
            refused += 1
            continue
        source = cell["planned_for"]["device_budget_bytes"], cell["planned_for"]["budget_bytes"]
        if source == (budget, columns[column]):
            own += 1
        else:
            assert source[0] <= budget and source[1] <= columns[column], (source, budget, columns[column])
            assert found is None or found >= line[column] - 0.06, (budget, columns[column], found, line[column])
            found, _ = compile(*source)
            taken += 1
        assert found is not None and near(found, line[column], source[1]), (budget, columns[column], found, line[column])
for column, bytes in zip(columns, smallest):
    assert compile(bytes, column)[0] is not None, (column, bytes)
    found, names = compile(bytes - 1, column)
    assert found is None and names == bytes, (column, bytes, found, names)
print(f"{own} cells are what compile says, {taken} are a plan of smaller budgets, {refused} are refused")
