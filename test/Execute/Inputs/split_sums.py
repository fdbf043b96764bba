"""Writes test/Execute/nn-split-sums.mlir: a mixture of stacked experts with PyTorch's values in f64 (needs numpy, torch)."""

import torch
import torch.nn.functional as F

from casefile import FOLDER, Tensor, case, wave

TOKENS, WIDTH, HIDDEN = 3, 2, 4
HEAD = """// RUN: lowtide-execute %s
// RUN: lowtide-opt %s --nn-split-sums=min-bytes=1 --canonicalize | lowtide-execute
// RUN: lowtide-opt %s --nn-split-sums=min-bytes=1 --canonicalize 2>/dev/null | FileCheck %s
// CHECK-NOT: {{-> tensor<3x(3|18)x4xf32>}}
// Experts as written and one after the other, in as many parts as divide them: PyTorch's values in f64 (Inputs/split_sums.py).

"""


def experts(name, count):
    x, gate = wave(TOKENS, WIDTH), wave(TOKENS, count, low=0.0, high=1.0)
    up, down = wave(count, WIDTH, HIDDEN, low=-1.0, high=1.5), wave(count, HIDDEN, WIDTH, low=-1.5, high=1.0)
    t = [torch.from_numpy(v.wide) for v in (x, gate, up, down)]
    hidden = F.gelu(torch.einsum("tw,ewh->teh", t[0], t[2]))
    y = Tensor((t[1][:, :, None] * torch.einsum("teh,ehw->tew", hidden, t[3])).sum(1).numpy(), "f32")
    wide, rows = f"tensor<{TOKENS}x{count}x{HIDDEN}xf32>", f"tensor<{TOKENS}x{count}x{WIDTH}xf32>"
    flat, side = f"tensor<{TOKENS}x{count * HIDDEN}xf32>", f"tensor<{WIDTH}x{count}x{HIDDEN}xf32>"
    body = [
        f"%t = nn.transpose %up [1, 0, 2] : {up.type} -> {side}",
        f"%r = nn.reshape %t : {side} -> tensor<{WIDTH}x{count * HIDDEN}xf32>",
        f"%h = nn.dot %x, %r : ({x.type}, tensor<{WIDTH}x{count * HIDDEN}xf32>) -> {flat}",
        f"%g = nn.gelu %h : {flat}",
        f"%s = nn.reshape %g : {flat} -> {wide}",
        f"%p = nn.transpose %s [1, 0, 2] : {wide} -> tensor<{count}x{TOKENS}x{HIDDEN}xf32>",
        f"%o = nn.dot %p, %down : (tensor<{count}x{TOKENS}x{HIDDEN}xf32>, {down.type}) -> tensor<{count}x{TOKENS}x{WIDTH}xf32>",
        f"%q = nn.transpose %o [1, 0, 2] : tensor<{count}x{TOKENS}x{WIDTH}xf32> -> {rows}",
        f"%w = nn.broadcast %gate dims = [0, 1] : {gate.type} -> {rows}",
        f"%m = nn.mul %w, %q : {rows}",
        f"%y = nn.reduce_sum %m dims = [1] : {rows} -> {y.type}",
    ]
    text = case(name, {"x": x, "gate": gate, "up": up, "down": down}, [y], body)
    for name, tensor in (("up", up), ("down", down)):
        text = text.replace(f"%{name}: {tensor.type} {{", f'%{name}: {tensor.type} {{train.binding = #train.param<"{name}">, ')
    return text


if __name__ == "__main__":
    # Eighteen are written in nine parts of two: 16 parts at most.
    text = HEAD + "\n".join([experts("three", 3), experts("two", 2), experts("eighteen", 18)])
    (FOLDER / "nn-split-sums.mlir").write_text(text)
