"""docs/back-to-pytorch.md and the Python of docs/first-day.md, executed: back_to_pytorch.py <folder of binaries> [--full
[<folder of models>...]]; in the environment of `tools/dev setup --oracles`.

Modules take what a run of their files saved, by the page's own lines: some of test/models, in full every file that tells the names
of all that its module saves. Prints a list of {name, complaint}.
"""

import contextlib
import io
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
import numpy  # noqa: E402
import torch  # noqa: E402

import definitions  # noqa: E402
from devkit.record import Record  # noqa: E402
from kinks import Kinks  # noqa: E402
from zoo import MODELS as MAKERS  # noqa: E402

MAKERS = MAKERS | {
    "moe-tiny": definitions.Mixture,
    "graph-tiny": definitions.Graph,
    "bag-tiny": definitions.Bag,
    "t5-tiny": definitions.T5,
    "rnn-tiny": definitions.Recurrent,
    "tokens-tiny": definitions.Tokens,
    "codes-tiny": definitions.Codes,
    "smooth-tiny": definitions.Smooth,
    "counted-tiny": definitions.Counted,
    "words-tiny": definitions.Words,
    "shift-tiny": definitions.Shifted,
    "capped-tiny": definitions.Capped,
    "ended-tiny": lambda: definitions.Ended().body,
    "hidden-tiny": definitions.Hidden,
    "kinks-tiny": Kinks,
    "logits-only": lambda: definitions.Logits().body,
}
del MAKERS["bert-mini"]  # its decoder has another name in the module that was exported, and one file holds a part of its positions
# Batch norms and their counters; a tied embedding that the exporter transposed; norms that it merged; weights that it joined.
CASES = ["cnn-digits/dynamo.onnx", "cnn-digits/model.onnx", "codes-tiny/default.onnx", "logits-only/model.onnx"]
STEPS = 3


def blocks(page):
    """The Python of a page of docs/."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.S)


def list_cases(folders):
    """Every file of the folders that tells the names of all that its module saves and that training does not refuse."""
    for folder in folders:
        for model in sorted(folder.glob("*/*.onnx")):
            if model.parent.name in MAKERS and model.name != "dynamo-folded.onnx" and Record(model.parent).holds_dictionary(model):
                yield model


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
            exec(blocks("back-to-pytorch.md")[0], {"module": module})
        except RuntimeError as error:
            return str(error)
        finally:
            os.chdir(ROOT)
    after = module.state_dict()
    counted = [name for name, value in after.items() if name.endswith("num_batches_tracked") and value != STEPS]
    trained = {name for name, _ in module.named_parameters()}
    same = [name for name, value in after.items() if name in trained and torch.equal(value, before[name])]
    return (f"counted otherwise: {counted}" if counted else "") or (f"did not change: {same}" if same else "")


def attempt_first_day(binaries):
    """The page's export, the commands between, and its way back: the module has what the run saved."""
    export, back = blocks("first-day.md")
    module = definitions.Logits().body
    with numpy.load(MODELS / "logits-only" / "data.npz") as data:
        pictures, labels = data["x"], data["y"]
    names = {"module": module, "torch": torch, "numpy": numpy, "x": torch.tensor(pictures[:8]), "pictures": pictures, "labels": labels}
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # of the exporter
                exec(export, names)
            for command in (
                ["lowtide", "compile", "model.onnx", "-o", "step.tide", "-q", "--batch=32", "--loss=cross_entropy(logits, y)", "--optimizer=adam", "--lr=2e-3"],
                ["lowtide-run", "step.tide", "--data=data.npz", "--steps=20", "--save=trained", "--quiet"],
            ):
                run = subprocess.run([binaries / command[0], *command[1:]], capture_output=True, text=True)
                if run.returncode:
                    return f"{command[0]}: exit {run.returncode}: {run.stderr[-500:]}"

            def loss():
                with torch.no_grad():
                    return torch.nn.functional.cross_entropy(module(torch.tensor(pictures)), torch.tensor(labels)).item()

            before = loss()
            exec(back, names)
            return "" if loss() < before - 0.05 else f"the loss of all rows was {before} and is {loss()}"
        finally:
            os.chdir(ROOT)


class Turned(torch.nn.Module):
    """Weights that the exporter transposes, one of them square."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.up, self.same, self.down = torch.nn.Linear(4, 6), torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.down(torch.tanh(self.same(torch.tanh(self.up(x))))).mean(1)


def attempt_optimizer(binaries):
    """PyTorch goes on with parameters and state of a run, by the page's lines, and so does a run."""
    module, random = Turned(), numpy.random.RandomState(6)
    x, y = random.normal(size=(8, 5, 4)).astype(numpy.float32), random.randint(0, 3, 8)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # of the exporter
                torch.onnx.export(module, (torch.tensor(x),), "model.onnx", dynamo=True, input_names=["x"], output_names=["logits"])
            numpy.savez("data.npz", x=x, y=y)
            run = ["lowtide-run", "step.tide", "--data=data.npz", "--quiet"]
            for command in (
                ["lowtide", "compile", "model.onnx", "-o", "step.tide", "-q", "--loss=cross_entropy(logits, y)", "--optimizer=adamw", "--lr=3e-4"],
                [*run, "--steps=10", "--save=trained"],
                [*run, "--steps=10", "--resume=trained", "--save=further"],
            ):
                done = subprocess.run([binaries / command[0], *command[1:]], capture_output=True, text=True)
                if done.returncode:
                    return f"{command[0]}: exit {done.returncode}: {done.stderr[-500:]}"
            names = {"module": module, "torch": torch}
            for block in blocks("back-to-pytorch.md")[0], blocks("back-to-pytorch.md")[-1]:
                exec(block, names)
            for _ in range(10):
                names["optimizer"].zero_grad()
                torch.nn.functional.cross_entropy(module(torch.tensor(x)), torch.tensor(y)).backward()
                names["optimizer"].step()
            ours = names["load_file"](pathlib.Path("further/step-00000020/params.safetensors"))
            worst = {name: (value - ours[name]).abs().max().item() for name, value in module.named_parameters()}
        except RuntimeError as error:
            return str(error)
        finally:
            os.chdir(ROOT)
    return "".join(f"{name} differs by {by:.3g} " for name, by in worst.items() if by > 1e-6)


if __name__ == "__main__":
    binaries = pathlib.Path(sys.argv[1]).resolve()
    cases = [MODELS / name for name in CASES]
    if "--full" in sys.argv:
        folders = [MODELS, *map(pathlib.Path, sys.argv[sys.argv.index("--full") + 1 :])]
        cases += [model for model in list_cases(folders) if model not in cases]
    rows = [{"name": f"{m.parent.name}/{m.name}", "complaint": attempt(binaries, m, MAKERS[m.parent.name]())} for m in cases]
    print(json.dumps([*rows, {"name": "docs/first-day.md", "complaint": attempt_first_day(binaries)}, {"name": "the optimizer goes on", "complaint": attempt_optimizer(binaries)}]))
