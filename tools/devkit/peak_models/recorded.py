"""Record a case's training run with PyTorch, in the format that tools/devkit/record.py reads; run as a program in the oracle environment.

    python -m devkit.peak_models.recorded <row's module> <case> <folder>

The folder then holds the exported file, its batch, and the losses, gradients and final parameters of STEPS steps on it, in f64,
with bands for f32, bf16 and f16.
"""

import importlib
import json
import pathlib
import sys

import onnx
import recording
import torch
from torch import nn

from devkit.peak_models.__main__ import export

STEPS = 5
OPTIONS = {
    "SGD": {"lr": 1e-3},
    "Adagrad": {"lr": 1e-3, "eps": 1e-10},
    "AdamW": {"lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01},
}


class Step(nn.Module):
    """The loss of a case around its module."""

    def __init__(self, case):
        super().__init__()
        self.body, self.loss = case.file(), case.loss

    def forward(self, **feeds):
        return self.loss(self.body, feeds)


def main(row, name, folder):
    case = next(c for c in importlib.import_module("devkit.peak_models." + row).CASES if c.name == name)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    export(case, folder / "model.onnx")
    module, data = seeded(case), {name: value.numpy() for name, value in case.feeds().items()}
    spec = {
        "batch": len(next(iter(data.values()))), "steps": STEPS, "optimizer": case.optimizer.lower(), "options": OPTIONS[case.optimizer],
        "flags": [flag for flag in case.flags if not flag.startswith("--optimizer")],
    }  # fmt: skip
    stochastic = draws(module, case.feeds())
    recording.record(folder, module, data, spec, [], stochastic)
    facts = json.loads((folder / "train.json").read_text())
    kinds = sorted({node.op_type for node in onnx.load(str(folder / "model.onnx")).graph.node})
    # In a module that evaluates, the exporter folds norms into the layers before them.
    partial = "--mode=as-is" in case.flags
    file = {"exporter": "dynamo", "file": "model.onnx", "kinds": kinds, "partial": partial}
    recording.write(folder / "train.json", facts | {"files": [file]})
    if stochastic:
        return
    expected = json.loads((folder / "expected.json").read_text())
    recording.write(folder / "expected.json", expected | {"state_dict_prefix": "body."})


def draws(module, feeds):
    """Whether the loss depends on random numbers."""
    losses = set()
    for seed in (1, 2):
        torch.manual_seed(seed)
        losses.add(module.train()(**feeds).item())
    return len(losses) > 1


def seeded(case):
    """The module with the values that `export` writes."""
    torch.manual_seed(0)
    return Step(case)


if __name__ == "__main__":
    main(*sys.argv[1:])
