"""Plans with another memory next to those of other strategies, for recorded models.

Arguments: a folder to work in, the folder of recorded models, names of some.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))

from devkit.fit_table import training_step  # noqa: E402
from devkit.record import Record  # noqa: E402
from devkit.sweep import check_other_memory  # noqa: E402

WORK, MODELS = (pathlib.Path(a) for a in sys.argv[1:3])
for name in sys.argv[3:]:
    model = MODELS / name / "model.onnx"
    flags = Record(model.parent).compiler_flags(model, [])
    done = subprocess.run(["lowtide", "fit", model, "--json", "-q", *flags, "--entries=train", "--rows=5", "--disk-budget=1GiB", "--baselines", "--rounding-rows=0"],
                          capture_output=True, text=True, check=True)
    table = training_step(done.stdout)["other_memory"]
    plans = [plan for plan in table["plans"] if plan["baselines"]]
    faster = sum(all(p is None or p > plan["time_percent"] + 1e-6 for p in plan["baselines"].values()) for plan in plans)
    said = "; ".join(check_other_memory(table)) or "holds"
    print(f"{name}: {len(table['plans'])} budgets, {len(plans)} with other plans, at {faster} faster than all of them; {said}")
