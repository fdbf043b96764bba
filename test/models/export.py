"""Make the models of this folder again: export.py [<folder>...] (in the environment of `tools/dev setup --oracles`).

Weights come from seed 0 and need not be those of the committed files; the record is written anew with them. The rows in
data.npz are kept where they exist: the digits are the UCI handwritten digits, everything else is synthetic.
"""

import pathlib
import sys

import numpy
import torch

import definitions as d
from kinks import Kinks
from recording import record

HERE = pathlib.Path(__file__).resolve().parent

DYNAMO = {"exporter": "dynamo"}
SCRIPT = {"exporter": "torchscript", "mode": "train", "opset": 17}
ADAMW = dict(optimizer="adamw", options=dict(lr=1e-3, betas=[0.9, 0.95], eps=1e-8, weight_decay=0.1))


def rows_of(folder):
    with numpy.load(HERE / folder / "data.npz") as data:
        return {name: data[name] for name in data.files}


def text(rows, length, vocab):
    """A language that can be learned: each token is a fixed function of the one before, with some noise."""
    g = numpy.random.default_rng(0)
    follow = g.permutation(vocab)
    x = numpy.zeros((rows, length + 1), numpy.int64)
    x[:, 0] = g.integers(0, vocab, rows)
    for t in range(length):
        x[:, t + 1] = numpy.where(g.random(rows) < 0.2, g.integers(0, vocab, rows), follow[x[:, t]])
    return {"tokens": x[:, :-1].copy(), "targets": x[:, 1:].copy()}


def settled(module):
    """Move vectors off their constant initial values, as in any model that has trained before.

    The default exporter merges bit-equal initializers: fresh layer norms (all ones, all zeros) then share one tensor.
    gpt-tiny is exported without this, so that the merging has to be undone.
    """
    with torch.no_grad():
        for p in module.parameters():
            if p.dim() == 1:
                p.add_(0.02 * torch.randn(p.shape))
    return module


def mlp_digits(folder):
    spec = dict(batch=64, steps=112, optimizer="sgd", options=dict(lr=0.1, momentum=0.9))
    files = [dict(DYNAMO, file="model.onnx"), dict(DYNAMO, file="opset23.onnx", opset=23), dict(SCRIPT, file="torchscript.onnx"),
             dict(SCRIPT, file="torchscript-folded.onnx", mode="eval", fold=True, opset=13)]  # fmt: skip
    record(folder, settled(d.MLP()), rows_of("mlp-digits"), spec, files)


def logits_only(folder):
    options = dict(lr=2e-3, betas=[0.9, 0.999], eps=1e-8, weight_decay=1e-3)
    loss = dict(kind="cross_entropy", logits="logits", labels="y")
    spec = dict(batch=32, steps=20, optimizer="adam", options=options, loss=loss)
    record(folder, settled(d.Logits()), rows_of("logits-only"), spec, [dict(DYNAMO, file="model.onnx"), dict(SCRIPT, file="torchscript.onnx")])


def cnn_digits(folder):
    spec = dict(batch=32, steps=20, optimizer="sgd", options=dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4))
    files = [dict(SCRIPT, file="model.onnx"), dict(DYNAMO, file="dynamo.onnx", optimize=False), dict(DYNAMO, file="dynamo-folded.onnx")]
    record(folder, settled(d.CNN()), rows_of("cnn-digits"), spec, files)


def resnet_tiny(folder):
    spec = dict(batch=16, steps=12, optimizer="sgd", options=dict(lr=0.01, momentum=0.9, weight_decay=1e-4))
    files = [dict(DYNAMO, file="model.onnx", optimize=False), dict(SCRIPT, file="torchscript.onnx")]
    data = {name: rows[:192] for name, rows in rows_of("cnn-digits").items()}
    record(folder, settled(d.ResNet()), data, spec, files)


def gpt_tiny(folder):
    files = [dict(DYNAMO, file="model.onnx", optimize=False), dict(DYNAMO, file="default.onnx"),
             dict(DYNAMO, file="opset23.onnx", opset=23), dict(SCRIPT, file="torchscript.onnx")]  # fmt: skip
    record(folder, d.GPT(2, 48, 4, 96, 32), text(128, 32, 96), dict(batch=8, steps=20, **ADAMW), files)


def llama_tiny(folder):
    files = [dict(DYNAMO, file="model.onnx"), dict(DYNAMO, file="opset23.onnx", opset=23),
             dict(DYNAMO, file="unoptimized.onnx", optimize=False), dict(SCRIPT, file="torchscript.onnx")]  # fmt: skip
    record(folder, settled(d.Llama()), text(128, 32, 96), dict(batch=8, steps=20, **ADAMW), files)


def gpt_dropout(folder):
    options = dict(lr=3e-3, betas=[0.9, 0.95], eps=1e-8, weight_decay=0.1)
    files = [dict(DYNAMO, file="model.onnx", mode="train"), dict(SCRIPT, file="torchscript.onnx")]
    module = d.GPT(2, 64, 4, 256, 64, dropout=0.2)
    record(folder, module, rows_of("gpt-dropout"), dict(batch=8, steps=20, optimizer="adamw", options=options), files, stochastic=True)


def dlrm_mini(folder):
    spec = dict(batch=64, steps=20, optimizer="adagrad", options=dict(lr=0.05, eps=1e-10))
    record(folder, settled(d.DLRM()), rows_of("dlrm-mini"), spec, [dict(DYNAMO, file="model.onnx"), dict(SCRIPT, file="torchscript.onnx")])


def unet_mini(folder):
    options = dict(lr=1e-3, betas=[0.9, 0.999], eps=1e-8, weight_decay=0.01)
    record(folder, settled(d.UNet()), rows_of("unet-mini"), dict(batch=8, steps=20, optimizer="adamw", options=options), [dict(DYNAMO, file="model.onnx")])


def drawn(rows, **shapes):
    """Rows of normal numbers, or of labels below a number: name=shape or name=(classes, shape)."""
    g = numpy.random.default_rng(0)
    return {
        k: g.integers(0, v[0], (rows, *v[1])) if len(v) == 2 and isinstance(v[1], tuple) else g.standard_normal((rows, *v)).astype("f4")
        for k, v in shapes.items()
    }  # fmt: skip


def moe_tiny(folder):
    options = dict(lr=2e-3, betas=[0.9, 0.999], eps=1e-8)
    spec = dict(batch=8, steps=12, optimizer="adam", options=options)
    record(folder, settled(d.Mixture()), drawn(48, x=(8,), y=(5, ())), spec, [dict(DYNAMO, file="model.onnx"), dict(SCRIPT, file="torchscript.onnx")])


def graph_tiny(folder):
    spec = dict(batch=8, steps=12, optimizer="sgd", options=dict(lr=0.1, momentum=0.9), sums_stay_wide=True)
    record(folder, settled(d.Graph()), drawn(48, x=(6, 5), edges=(6, (2, 14)), y=(3, ())), spec, [dict(DYNAMO, file="model.onnx")])


def bag_tiny(folder):
    spec = dict(batch=8, steps=12, optimizer="sgd", options=dict(lr=0.1))
    files = [dict(SCRIPT, file="torchscript.onnx"), dict(DYNAMO, file="model.onnx")]
    record(folder, settled(d.Bag()), drawn(32, t=(20, (6,)), y=(3, ())), spec, files)


def t5_tiny(folder):
    files = [dict(DYNAMO, file="default.onnx", partial="rows that no position reads are not in the file"), dict(DYNAMO, file="model.onnx", optimize=False),
             dict(SCRIPT, file="torchscript-folded.onnx", mode="eval", fold=True, opset=14)]  # fmt: skip
    record(folder, settled(d.T5()), text(96, 24, 48), dict(batch=8, steps=12, **ADAMW), files)


def rnn_tiny(folder):
    spec = dict(batch=8, steps=12, optimizer="adagrad", options=dict(lr=0.05, eps=1e-10))
    files = [dict(DYNAMO, file="default.onnx"), dict(SCRIPT, file="torchscript.onnx"),
             dict(SCRIPT, file="torchscript-folded.onnx", mode="eval", fold=True, opset=14)]  # fmt: skip
    record(folder, d.Recurrent(), drawn(32, t=(32, (7,)), y=(5, ())), spec, files)


def tokens_tiny(folder):
    options = dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3)
    files = [dict(DYNAMO, file="model.onnx"), dict(SCRIPT, file="torchscript.onnx")]
    record(folder, d.Tokens(), drawn(32, t=(24, (8,)), y=(5, ())), dict(batch=8, steps=20, optimizer="sgd", options=options), files)


def codes_tiny(folder):
    options = dict(lr=2e-3, betas=[0.9, 0.999], eps=1e-8)
    files = [dict(DYNAMO, file="default.onnx"), dict(DYNAMO, file="model.onnx", optimize=False)]
    record(folder, d.Codes(), drawn(32, x=(8,), p=(5,), y=(5, ())), dict(batch=8, steps=12, optimizer="adam", options=options), files)


def smooth_tiny(folder):
    data = drawn(32, x=(8, 10), tags=(6, (10,)), y=(4, ()), worth=())
    data["tags"][data["tags"] == 0] = -100
    data["worth"] = abs(data["worth"])
    files = [dict(DYNAMO, file="model.onnx"), dict(DYNAMO, file="unoptimized.onnx", optimize=False)]
    record(folder, d.Smooth(), data, dict(batch=8, steps=12, **ADAMW), files)


def counted_tiny(folder):
    data = drawn(32, tokens=(12, (7,)), at=(4, (10,)), y=(3, ()))
    files = [dict(DYNAMO, file="model.onnx"), dict(DYNAMO, file="unoptimized.onnx", optimize=False)]
    record(folder, d.Counted(), data, dict(batch=8, steps=12, **ADAMW), files)


def words_tiny(folder):
    data = text(96, 12, 64)
    data["targets"][:, :3] = -100
    files = [dict(DYNAMO, file="model.onnx"), dict(DYNAMO, file="unoptimized.onnx", optimize=False), dict(SCRIPT, file="torchscript.onnx")]
    record(folder, d.Words(), data, dict(batch=8, steps=12, **ADAMW), files)


def head_text():
    data = text(32, 36, 960)
    data["targets"] %= 96  # classes that occur and others; none is masked out
    return data


def shift_tiny(folder):
    data = head_text()
    data["targets"][:, :5] = -100
    files = [dict(DYNAMO, file="model.onnx"), dict(DYNAMO, file="both.onnx", also="logits"), dict(SCRIPT, file="torchscript.onnx")]
    record(folder, d.Shifted(), data, dict(batch=8, steps=8, **ADAMW), files)


def capped_tiny(folder):
    files = [dict(DYNAMO, file="model.onnx"), dict(DYNAMO, file="both.onnx", also="logits"), dict(SCRIPT, file="torchscript.onnx")]
    record(folder, d.Capped(), head_text(), dict(batch=8, steps=8, **ADAMW), files)


def ended_tiny(folder):
    loss = dict(kind="cross_entropy", logits="logits", labels="targets")
    record(folder, d.Ended(), head_text(), dict(batch=8, steps=8, loss=loss, **ADAMW), [dict(DYNAMO, file="model.onnx")])


def hidden_tiny(folder):
    data = text(32, 12, 24)
    data["tokens"][::2, -4:] = 0  # padding after the text
    data["tokens"][1::4, :3] = 0  # and before it: these rows of a triangle see nothing
    data["tokens"][3] = 0
    files = [dict(DYNAMO, file="model.onnx"), dict(DYNAMO, file="unoptimized.onnx", optimize=False), dict(SCRIPT, file="torchscript.onnx")]
    record(folder, d.Hidden(), data, dict(batch=8, steps=8, **ADAMW), files)


def kinks_tiny(folder):
    spec = dict(batch=4, steps=2, optimizer="sgd", options=dict(lr=0.125))
    files = [dict(DYNAMO, file="model.onnx"), dict(DYNAMO, file="unoptimized.onnx", optimize=False)]
    record(folder, Kinks(), {"x": numpy.ones((8, 1), numpy.float32)}, spec, files)


MAKERS = {f.__name__.replace("_", "-"): f for f in (
    mlp_digits, logits_only, cnn_digits, resnet_tiny, gpt_tiny, llama_tiny, gpt_dropout, dlrm_mini, unet_mini,
    moe_tiny, graph_tiny, bag_tiny, t5_tiny, rnn_tiny, tokens_tiny, codes_tiny,
    smooth_tiny, counted_tiny, words_tiny, shift_tiny, capped_tiny, ended_tiny, hidden_tiny, kinks_tiny,
)}  # fmt: skip

if __name__ == "__main__":
    for name in sys.argv[1:] or MAKERS:
        if name not in MAKERS:
            sys.exit(f"error: no model '{name}'\nnote: one of: {', '.join(MAKERS)}")
        torch.manual_seed(0)
        MAKERS[name](HERE / name)
