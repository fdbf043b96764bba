"""`lowtide verify --against=module.py:make`, `--against=onnxruntime`: verify_modules.py <folder of binaries>; in the environment of `tools/dev setup --oracles`.

Modules of test/models against their own files, a module that is another one, and functions that are no answer. Prints a list
of {name, complaint}.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "test" / "models"

MODULE = '''
"""What verify_modules.py compares model files with."""
import sys

sys.path.insert(0, {models!r})
import numpy
import torch

import definitions
from export import settled


def rows(folder, count):
    with numpy.load({models!r} + "/" + folder + "/data.npz") as data:
        return {{name: torch.tensor(data[name][:count]) for name in data.files}}


def made(module):
    torch.manual_seed(0)
    return settled(module())


def logits():
    batch = rows("logits-only", 8)
    return made(definitions.Logits).body, torch.nn.functional.cross_entropy, (batch["x"], batch["y"])


def logits_by_name():
    module, loss, _ = logits()
    return module, torch.nn.CrossEntropyLoss(), rows("logits-only", 8)


class Held(torch.nn.Module):
    """Tensors that are neither parameters nor buffers."""

    def __init__(self, body):
        super().__init__()
        self.body, self.mix, self.tables = body, torch.eye(10), {{"shift": [torch.zeros(10)]}}

    def forward(self, x):
        return self.body(x) @ self.mix + self.tables["shift"][0]


def held():
    module, loss, batch = logits()
    return Held(module), loss, batch


def other():
    module, loss, batch = logits()
    module[1] = torch.nn.Tanh()
    return module, loss, batch


def norms():
    return made(definitions.CNN), None, rows("cnn-digits", 8)


def one_norm_frozen():
    module, loss, batch = norms()
    module.b1.eval()
    return module, loss, batch


def tied():
    torch.manual_seed(0)
    return definitions.GPT(2, 48, 4, 96, 32), None, rows("gpt-tiny", 4)


def dropout():
    torch.manual_seed(0)
    return definitions.GPT(2, 64, 4, 256, 64, dropout=0.2), None, rows("gpt-dropout", 4)


def raises():
    raise ValueError("no such data")


def number():
    return 3


def no_loss():
    module, _, batch = logits()
    return module, None, (batch[0], )


def misnamed():
    module, loss, batch = logits()
    return module, loss, {{"picture": batch[0], "y": batch[1]}}
'''

LOSS = "--loss=cross_entropy(logits, y)"
ADAM = ("--optimizer=adam", "--lr=2e-3", "--weight-decay=1e-3")
# (file, function, flags, exit code, what is said)
CASES = [
    ("logits-only/model.onnx", "logits", (LOSS, *ADAM), 0, "everything agrees: 6 gradients, 10 losses"),
    ("logits-only/torchscript.onnx", "logits_by_name", (LOSS, "--clip-norm=0.1"), 0, "everything agrees: 6 gradients, 10 losses"),
    ("logits-only/model.onnx", "held", (LOSS,), 0, "everything agrees: 6 gradients, 10 losses"),
    ("logits-only/model.onnx", "other", (LOSS,), 9, "first module whose output differs: '1'"),
    ("cnn-digits/dynamo.onnx", "norms", ("--optimizer=sgd", "--lr=0.05", "--momentum=0.9", "--nesterov"), 0, "everything agrees: 8 gradients, 6 buffers"),
    ("cnn-digits/dynamo.onnx", "one_norm_frozen", ("--optimizer=sgd", "--lr=0.05", "--freeze-norm=b1"), 0, "everything agrees: 8 gradients"),
    ("cnn-digits/dynamo.onnx", "one_norm_frozen", ("--optimizer=sgd", "--lr=0.05"), 9, "first module whose output differs: 'b1'"),
    ("cnn-digits/dynamo.onnx", "norms", ("--freeze-norm=b3",), 1, "--freeze-norm: pattern 'b3' matches nothing among the batch norms\nnote: the model has b1, b2"),
    ("cnn-digits/dynamo-folded.onnx", "norms", ("--optimizer=sgd",), 9, "b1.running_mean  "),
    ("gpt-tiny/default.onnx", "tied", ("--proof-steps=3",), 0, "everything agrees"),
    ("gpt-dropout/torchscript.onnx", "dropout", ("--proof-steps=2",), 0, "everything agrees"),
    ("logits-only/model.onnx", "raises", (LOSS,), 2, "raised ValueError: no such data"),
    ("logits-only/model.onnx", "number", (LOSS,), 2, "returned a int"),
    ("logits-only/model.onnx", "absent", (LOSS,), 2, "has no function 'absent'"),
    ("logits-only/model.onnx", "no_loss", (), 2, "the loss is a tensor of shape [8, 10]"),
    ("logits-only/model.onnx", "onnxruntime", (f"--data={MODELS / 'logits-only' / 'data.npz'}", "--batch=4"), 0, "everything agrees: 8 values of 9 nodes"),
    ("cnn-digits/dynamo.onnx", "onnxruntime", (f"--data={MODELS / 'cnn-digits' / 'data.npz'}",), 0, "everything agrees: "),
    ("cnn-digits/model.onnx", "onnxruntime", (f"--data={MODELS / 'cnn-digits' / 'data.npz'}",), 0, "everything agrees: "),
    ("gpt-tiny/default.onnx", "onnxruntime", (f"--data={MODELS / 'gpt-tiny' / 'data.npz'}",), 0, "everything agrees: "),
    ("gpt-tiny/default.onnx", "onnxruntime", (f"--data={MODELS / 'gpt-tiny' / 'data.npz'}", "--tolerance=1e-12"), 9, "first node that differs: '"),
    ("gpt-tiny/default.onnx", "onnxruntime", (), 1, "--against=onnxruntime needs a batch: --data=FILE.npz"),
    ("gpt-tiny/default.onnx", "onnxruntime", (f"--data={MODELS / 'logits-only' / 'data.npz'}",), 2, "has no array 'tokens', which the model reads"),
    ("logits-only/model.onnx", "misnamed", (LOSS,), 2, "the batch has 'picture', which is no input of the model file"),
]


def attempt(binaries, folder, model, function, flags, code, said):
    against = f"{folder / 'made.py'}:{function}" if function != "onnxruntime" else function
    command = [binaries / "lowtide", "verify", MODELS / model, f"--against={against}", f"--python={sys.executable}", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != code or said not in done.stdout + done.stderr:
        return f"exit {done.returncode}, not {code}, or without '{said}': {(done.stdout + done.stderr)[-1500:]}"
    return ""


if __name__ == "__main__":
    binaries = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "made.py").write_text(MODULE.format(models=str(MODELS)))
        rows = [{"name": f"{model} {function}", "complaint": attempt(binaries, folder, model, function, *rest)} for model, function, *rest in CASES]
    print(json.dumps(rows))
