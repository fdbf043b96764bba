"""The stage before any speed counts: our step and PyTorch's in f32, of the same weights and batch, have one loss and one gradient."""

import json
import math

from devkit.gpu import start
from devkit.gpu.archive import WORDS

LOSS, COSINE, RELATIVE = 2e-3, 0.999, 2e-2
# A gradient below this share of the norm of all is noise (a key's bias, say): it need only stay that small.
NEGLIGIBLE = 1e-4


def judge(ours_loss, theirs):
    """Findings of one batch against the bounds; `theirs` is what torch_contender.py --gradients wrote."""
    apart = abs(ours_loss - theirs["first_loss"]) if ours_loss is not None else math.inf
    found = {"loss": ours_loss, "loss_apart": apart, **theirs}
    why = []
    if not apart <= LOSS:
        why.append(f"losses are {apart:.2g} apart")
    if not theirs["worst_cosine"] >= COSINE:
        why.append(f"the gradient of {theirs['worst_cosine_of']} has a cosine of {theirs['worst_cosine']:.5f}")
    if not theirs["worst_relative"] <= RELATIVE:
        why.append(f"the gradient of {theirs['worst_relative_of']} is {100 * theirs['worst_relative']:.2f} % away")
    return {"held": not why, **found, **({"why": "; ".join(why)} if why else {})}


def examine(archive, row, deadline, python):
    """Runs both sides; the finding, with "held": None where one of them could not be asked."""
    definitions = archive.home / "torch_baseline.py"
    if not row.get("torch") or not definitions.exists() or not archive.has(row, "gradient"):
        return {"held": None, "why": "the archive has no gradients, or not PyTorch's side, of this workload"}
    data, torch_data = start.data_of(archive, row)
    weights, why = start.weights_of(archive, row, data, deadline)
    if not weights:
        return {"held": False, "why": f"weights: {why}"}
    summary, gradients, report = (archive.home / name for name in ("gate-summary.json", "gate-gradients.safetensors", "gate.json"))
    for path in (summary, gradients, report):
        path.unlink(missing_ok=True)
    ours = archive.command(
        "lowtide-run", archive.artifact(row, "gradient"), "--entry=gradient", f"--data={data}", "--steps=1", *start.init(row),
        f"--dump-gradients={gradients}", f"--summary={summary}", "--quiet",
    )  # fmt: skip
    status, _, error = archive.run(ours, deadline.left())
    if status or not gradients.exists():
        return {"held": None if deadline.near() else False, "why": error.strip() or f"exit {status}"}
    theirs = [python, archive.home / "devkit" / "gpu" / "torch_contender.py", f"--definitions={definitions}", f"--workload={row['torch']}", "--mode=eager",
              f"--data={torch_data}", f"--weights={weights}", start.renamed(row), f"--gradients={gradients}", f"--negligible={NEGLIGIBLE}", f"--json={report}"]  # fmt: skip
    status, _, error = archive.run(theirs, deadline.left())
    if status or not report.exists():
        return {"held": None, "why": (error.strip().splitlines() or [f"exit {status}"])[-1]}
    return judge(json.loads(summary.read_text())["losses"][0], json.loads(report.read_text()))


def run_stage(archive, results, name, deadline, python):
    """Judges one workload; (held, failed, undone)."""
    found = examine(archive, archive.workload(name), deadline, python)
    results.put("gate", name, found)
    print(f"{WORDS[found['held']]} {name}  {found.get('why', '')}")
    return int(found["held"] is True), int(found["held"] is False), int(found["held"] is None)
