"""docs/back-to-pytorch.md, executed: back_to_pytorch.py <folder of binaries>; in the environment of `tools/dev setup --oracles`.

The modules of test/models take what a run of each of their files saved, by the page's own lines. Prints a list of {name, complaint}.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "test" / "models"
sys.path[:0] = [str(ROOT / "tools"), str(MODELS)]
import torch  # noqa: E402

import definitions  # noqa: E402
from devkit.record import Record  # noqa: E402

# Batch norms and their counters; a tied embedding that the exporter transposed; norms that it merged; weights that it joined.
CASES = [
    ("cnn-digits/dynamo.onnx", lambda: definitions.CNN()),
    ("cnn-digits/model.onnx", lambda: definitions.CNN()),
    ("codes-tiny/default.onnx", lambda: definitions.Codes()),
    ("logits-only/model.onnx", lambda: definitions.Logits().body),
]
STEPS = 3


def page():
    """The Python of the page."""
    return re.search(r"```python\n(.*?)```", (ROOT / "docs" / "back-to-pytorch.md").read_text(), re.S)[1]


def attempt(binaries, model, module):
    record = Record(model.parent)
    with tempfile.TemporaryDirectory() as work:
        for command in (
            [binaries / "lowtide", "compile", model, "-o", "step.tide", "-q", *record.compiler_flags(model)],
            [binaries / "lowtide-run", "step.tide", f"--data={record.folder / 'data.npz'}", f"--steps={STEPS}", "--save=trained", "--quiet"],
        ):
            run = subprocess.run(command, cwd=work, capture_output=True, text=True)
            if run.returncode:
                return f"{command[0].name}: exit {run.returncode}: {run.stderr[-500:]}"
        before = {name: value.clone() for name, value in module.state_dict().items()}
        os.chdir(work)
        try:
            exec(page(), {"module": module})
        except RuntimeError as error:
            return str(error)
        finally:
            os.chdir(ROOT)
    after = module.state_dict()
    counted = [name for name, value in after.items() if name.endswith("num_batches_tracked") and value != STEPS]
    same = [name for name, value in after.items() if torch.equal(value, before[name])]
    return (f"counted otherwise: {counted}" if counted else "") or (f"did not change: {same}" if same else "")


if __name__ == "__main__":
    binaries = pathlib.Path(sys.argv[1]).resolve()
    print(json.dumps([{"name": name, "complaint": attempt(binaries, MODELS / name, make())} for name, make in CASES]))
