"""What exporters evaluate from parameters goes back into their files: images.py <folder of binaries> [--full]; in the environment of
`tools/dev setup --oracles`.

Modules whose files hold other forms of parameters (transposes, gates in another order, functions, weights of given length) are
trained, saved and exported. ONNX Runtime computes with the exported file what PyTorch computes with the saved parameters, and
what only moves elements has the parameters' bits. Prints a list of {name, complaint}.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

# onnxruntime has a module that is called like one of this folder.
sys.path.remove(str(pathlib.Path(__file__).resolve().parent))
import numpy  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import safetensors.torch  # noqa: E402
import torch  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from torch import nn  # noqa: E402

BATCH, STEPS, WIDTH = 4, 4, 8
PLAIN = ["--target=cpu"]


class Functions(nn.Module):
    """exp, sigmoid and softplus of parameters that the file does not hold."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(WIDTH, WIDTH)
        self.scale, self.gate, self.slope = (nn.Parameter(torch.randn(n) * 0.3) for n in (WIDTH, WIDTH, 1))

    def forward(self, x):
        return self.fc(x) * self.scale.exp() * self.gate.sigmoid() + x * torch.tanh(self.slope)


class Beside(nn.Module):
    """One minus a parameter that the file holds as well."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mix = nn.Parameter(torch.rand(WIDTH))

    def forward(self, x):
        return self.mix * self.first(x) + (1 - self.mix) * self.second(x)


class Length(nn.Module):
    """g · v / |v|, of two parameters."""

    def __init__(self):
        super().__init__()
        self.fc = nn.utils.parametrizations.weight_norm(nn.Linear(WIDTH, WIDTH))

    def forward(self, x):
        return torch.tanh(self.fc(x))


class Gates(nn.Module):
    """Gates in ONNX's order, both biases joined."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(2 * WIDTH, WIDTH, batch_first=True)

    def forward(self, x):
        return self.gru(self.lstm(x.reshape(-1, 2, WIDTH // 2).repeat(1, 1, 2))[0])[0][:, -1]


class Tied(nn.Module):
    """A matrix and its transpose, which the exporter evaluated."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, 2 * WIDTH) * 0.3)
        self.bias = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        return torch.relu(x @ self.weight) @ self.weight.t() + self.bias


class Rows(nn.Module):
    """Rows of a table at constant positions, some of them several times."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(3, WIDTH) * 0.3)
        self.fc = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("rows", torch.tensor([0, 1, 2, 1]), persistent=False)

    def forward(self, x):
        return self.fc(x[:, None] + self.table[self.rows]).tanh().sum(1)


class Plain(nn.Module):
    """Nothing but parameters."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.fc(x).tanh()


def by_program(module, x, path):
    torch.onnx.export(module, (x,), path, input_names=["x"], output_names=["y"], dynamo=True, optimize=True, external_data=False, verbose=False)


def by_trace(module, x, path):
    torch.onnx.export(module, (x,), path, input_names=["x"], output_names=["y"], dynamo=False, do_constant_folding=True,
                      training=torch.onnx.TrainingMode.EVAL)  # fmt: skip


# name -> (module, exporter, how many initializers the entries compute)
CASES = {
    "functions": (Functions, by_program, 3),
    "beside": (Beside, by_program, 1),
    "length": (Length, by_program, 1),
    "gates": (Gates, by_program, 6),
    "gates traced": (Gates, by_trace, 6),
    "transpose traced": (Tied, by_trace, 1),
    "rows": (Rows, by_program, 1),
    "plain": (Plain, by_program, 0),
}
# What the parameters, and the entry with them, are stored or computed like.
WAYS = {
    "": PLAIN,
    "reference": ["--target=reference"],
    "emulated": ["--target=cuda-emulated"],
    "halves": ["--precision=mixed-bf16", "--master=split"],
    "bf16": ["--precision=bf16"],
    "parts": ["--micro-batches=2"],
    "deferred": ["--updates=deferred"],
    "f64": ["--precision=f64"],
    "file": ["--disk-budget=1MiB", "--device-budget=90%"],
}
SHORT = [("functions", ""), ("functions", "halves"), ("length", "parts"), ("gates", ""), ("transpose traced", "emulated"), ("plain", "")]


def applies(name, way):
    """Products read the weight of a given length, and no parameter, in bf16; the others are too small to wait in a file."""
    return (name, way) != ("length", "halves") and (way != "file" or name.startswith("gates"))


def call(*command):
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} exit {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout + done.stderr


def outputs(file, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return session.run(["y"], {"x": x})[0]


def initializers(file):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(file).graph.initializer}


def compare(binaries, name, flags, folder):
    make, export, count = CASES[name]
    torch.manual_seed(3)
    module, x = make().eval(), torch.randn(BATCH * STEPS, WIDTH)
    model, target, artifact = folder / "model.onnx", folder / "out" / "model.onnx", folder / "step.tide"
    target.parent.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export(module, x[:BATCH], model)
    numpy.savez(folder / "data.npz", x=x.numpy(), target=torch.randn(BATCH * STEPS, WIDTH).numpy())
    more = ["--loss=mse(y, target)", "--optimizer=sgd", "--lr=0.1", "--entries=train", "-q", *flags]
    call(binaries / "lowtide", "compile", model, "-o", artifact, *more)
    call(binaries / "lowtide", "compile", model, "-o", folder / "plan.mlir", "--emit=plan", *more)
    images = len(re.findall(r'plan.binding output "[^"]*@image"', (folder / "plan.mlir").read_text()))
    if images != count:
        return f"the artifact computes {images} images, not {count}"
    call(binaries / "lowtide-run", artifact, f"--data={folder / 'data.npz'}", f"--steps={STEPS}", f"--save={folder / 'saved'}",
         f"--model={model}", f"--export={target}", "-q")  # fmt: skip
    saved = safetensors.torch.load_file(max(folder.rglob("params.safetensors")))
    moved = [key for key, value in module.state_dict().items() if not torch.equal(value, saved[key].to(value.dtype))]
    if len(moved) < len(module.state_dict()):
        return f"training changed {moved} alone"
    module.load_state_dict({key: value.float() for key, value in saved.items()})
    with torch.no_grad():
        wanted = module(x[:BATCH]).numpy()
    worst = abs(outputs(target, x[:BATCH].numpy()) - wanted).max()
    if not worst < 2e-6 * max(1, abs(wanted).max()):
        return f"ONNX Runtime's outputs are {worst} from PyTorch's"
    before, after = initializers(model), initializers(target)
    if same := [key for key, value in before.items() if value.dtype == numpy.float32 and value.any() and (value == after[key]).all()]:
        return f"the file still holds {same} as it was"
    if name == "transpose traced":
        held = [value for value in after.values() if value.ndim == 2]
        if len(held) != 2 or held[0].tobytes() != held[1].T.tobytes():
            return "the transpose has not the bits of the matrix"
    return ""


def main(binaries, full):
    rows = []
    for name, way in [(name, way) for name in CASES for way in WAYS if applies(name, way)] if full else SHORT:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                complaint = compare(binaries, name, WAYS[way], pathlib.Path(scratch))
            except Exception as error:
                complaint = f"{type(error).__name__}: {error}"
        rows.append({"name": f"{name}{way and ', '}{way}", "complaint": complaint})
    print(json.dumps(rows))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), "--full" in sys.argv)
