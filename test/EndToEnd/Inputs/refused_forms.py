"""A refusal speaks of all forms of a step: refused_forms.py <model.onnx> <dimensions>, with lowtide on the path.

The smallest plan is that of the form with the fewest bytes, also where the budget is below what no plan changes; "without
recomputation" is the form that the step has without a budget.
"""

import json
import pathlib
import subprocess
import sys
import tempfile


def figures(model, dims, budget, scratch):
    path = scratch / "figures.json"
    more = [f"--device-budget={budget}"] if budget else []
    command = ["lowtide", "compile", model, *dims, "-q", "--emit=plan", "--entries=train", "-o", scratch / "plan.mlir", f"--figures={path}", *more]
    subprocess.run(command, stderr=subprocess.DEVNULL)
    return json.loads(path.read_text())


def main(model, *dims):
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        whole = figures(model, dims, "", scratch)["bytes"]
        refusals = [figures(model, dims, budget, scratch)["refusal"] for budget in (1, whole // 5, "20%")]
        assert all(refusal["largest_bytes"] == whole for refusal in refusals), (whole, refusals)
        smallest = {refusal["smallest_bytes"] for refusal in refusals}
        assert len(smallest) == 1 and min(smallest) < 0.6 * whole, (whole, smallest)
        assert figures(model, dims, min(smallest), scratch)["refusal"] is None
        below = figures(model, dims, min(smallest) - 1, scratch)["refusal"]
        assert below and below["smallest_bytes"] == min(smallest), below
        print("refusals speak of all forms")


main(*sys.argv[1:])
