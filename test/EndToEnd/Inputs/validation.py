"""Writes validation.onnx, validation-tokens.onnx, validation.npz and validation.json (needs torch, onnx, onnxscript).

Two small models as PyTorch exports them, ending at their logits, data whose rows fill no batch, and what PyTorch makes of
all rows: losses over the whole set at once, accuracies, outputs.
"""

import json
import pathlib
import warnings

import numpy
import onnx
import torch
import torch.nn.functional as F
from torch import nn

FOLDER = pathlib.Path(__file__).resolve().parent
warnings.filterwarnings("ignore")


def export(module, example, name, inputs):
    batch = torch.export.Dim("batch", min=2, max=4096)
    torch.onnx.export(module.eval(), (example,), FOLDER / name, input_names=inputs, output_names=["logits"], dynamic_shapes=({0: batch},), dynamo=True, external_data=False, verbose=False)
    model = onnx.load(FOLDER / name)
    for part in [*model.graph.node, *model.graph.initializer, *model.graph.input, *model.graph.output, *model.graph.value_info, model.graph, model]:
        del part.metadata_props[:]
    onnx.save(model, FOLDER / name)


def figures(logits, labels):
    counted = labels != -100
    best = logits.argsort(dim=-1, descending=True, stable=True)
    return {
        "loss": F.cross_entropy(logits.flatten(0, -2), labels.flatten()).item(),
        "accuracy": (best[..., 0] == labels)[counted].double().mean().item(),
        "top3": (best[..., :3] == labels[..., None]).any(-1)[counted].double().mean().item(),
    }


torch.manual_seed(3)
rng = numpy.random.default_rng(3)
rows = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 5))
tokens = nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 11))
x = rng.normal(0, 2, (39, 6)).astype(numpy.float32)
labels = rng.integers(0, 5, 39)
words = rng.integers(0, 11, (13, 6))
next_words = numpy.roll(words, -1, 1)
next_words[rng.random((13, 6)) < 0.4] = -100
next_words[11] = -100  # a row without a label that counts
export(rows, torch.zeros(4, 6), "validation.onnx", ["x"])
export(tokens, torch.zeros(4, 6, dtype=torch.int64), "validation-tokens.onnx", ["words"])
with torch.no_grad():
    logits = rows(torch.from_numpy(x))
    record = {
        "rows": {**figures(logits, torch.from_numpy(labels)), "logits": logits.tolist()},
        "tokens": figures(tokens(torch.from_numpy(words)), torch.from_numpy(next_words)),
    }
(FOLDER / "validation.json").write_text(json.dumps(record) + "\n")
numpy.savez_compressed(FOLDER / "validation.npz", x=x, labels=labels, words=words, next_words=next_words)
