"""Export one case and measure PyTorch's bytes for it; run as a program in the oracle environment, prints one JSON object.

    python -m devkit.peak_models <row's module> <case> <folder>

Bytes: parameters, optimizer state and the batch, and the largest sum of live tensor bytes within a step by PyTorch's own
profiler on the CPU (devkit.torch_peer). `eager`: a plain step; `hand`: the expert's, with updates in the backward pass.
"""

import importlib
import json
import pathlib
import sys
import warnings

import torch

from devkit.torch_peer import peak_bytes


def export(case, path):
    torch.manual_seed(0)
    module, feeds = case.file().train(), case.feeds()
    # An example of two samples: the batch is a symbol.
    example = tuple(feeds[name][:2] for name in case.inputs)
    batch = torch.export.Dim("batch", min=1, max=4096)
    torch.onnx.export(
        module, example, str(path), input_names=list(case.inputs), output_names=list(case.outputs),
        dynamic_shapes=({0: batch},) * len(example), dynamo=True, external_data=False, verbose=False,
    )  # fmt: skip


def trained(module):
    return [p for p in module.parameters() if p.requires_grad]


def eager(case):
    module, feeds = case.file().train(), case.feeds()
    optimizer = getattr(torch.optim, case.optimizer)(trained(module), lr=1e-3)

    def step(_):
        optimizer.zero_grad(set_to_none=True)
        loss = case.loss(module, feeds)
        loss.backward()
        optimizer.step()

    step(0)
    return peak_bytes(step, module, optimizer, [feeds])


class OneByOne:
    """An optimizer for each parameter, which steps as soon as the gradient is there and lets go of it."""

    def __init__(self, kind, parameters):
        self.each = {p: kind([p], lr=1e-3) for p in parameters}
        for p in self.each:
            p.register_post_accumulate_grad_hook(self.update)

    def update(self, p):
        self.each[p].step()
        p.grad = None

    @property
    def state(self):
        return {p: s for one in self.each.values() for p, s in one.state.items()}

    def zero_grad(self, set_to_none):
        pass


def hand(case):
    module, feeds = case.file().train(), case.feeds()
    optimizer = OneByOne(getattr(torch.optim, case.optimizer), trained(module))

    def step(_):
        case.hand(module, feeds).backward()

    step(0)
    return peak_bytes(step, module, optimizer, [feeds])


def main(row, name, folder):
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    case = next(c for c in importlib.import_module("devkit.peak_models." + row).CASES if c.name == name)
    export(case, pathlib.Path(folder) / "model.onnx")
    print(json.dumps({"eager": eager(case), "hand": hand(case) if case.hand else None}))


if __name__ == "__main__":
    main(*sys.argv[1:])
