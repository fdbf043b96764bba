#!/usr/bin/env python3
"""One contender: PyTorch trains a workload of torch_baseline.py in one mode, timed block by block. Writes one JSON object.

    torch_contender.py --definitions=torch_baseline.py --workload=gpt2 --mode=compile --blocks=10 --steps=20 --warmup=20 --json=FILE

bf16 autocast, fp32 master weights, clipping by the global norm 1.0 with AdamW, as in torch_baseline.py, whose `build` makes
the model; every step copies its batch from pinned memory. Blocks are timed by the host's clock around steps that are
all done, and by CUDA events. Modes: eager, compile, compile-cudagraphs, compile-budget<F>, checkpoint, compile-checkpoint.
"""

import argparse
import importlib.util
import itertools
import json
import pathlib
import time

import torch


def load(path):
    """torch_baseline.py as a module."""
    spec = importlib.util.spec_from_file_location("torch_baseline", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def batches_of(paths, feed, batch):
    """Pinned batches of the files' rows, cut as the model's own feed is; that feed where there are no files."""
    import numpy

    if not paths:
        return [[x.detach().cpu() for x in feed]]
    arrays = [torch.from_numpy(numpy.load(path)) for path in paths]
    rows = min(len(array) for array in arrays)
    cut = [[array[at : at + batch].to(x.dtype).contiguous() for array, x in zip(arrays, feed)] for at in range(0, rows - batch + 1, batch)]
    for one in cut:
        for given, x in zip(one, feed):
            if given.shape != x.shape:
                raise SystemExit(f"error: the file's batch is {tuple(given.shape)}, the model's {tuple(x.shape)}")
    return cut


class Contender:
    def __init__(self, options):
        definitions, mode = load(options.definitions), options.mode
        self.cuda = torch.cuda.is_available()
        self.device = "cuda" if self.cuda else "cpu"
        torch.manual_seed(0)
        torch.set_float32_matmul_precision("high")
        kind = "checkpoint" if mode == "compile-checkpoint" else mode
        self.model, self.feed, self.batch, self.optimizer_kind = definitions.build(options.workload, kind, options.tiny, self.device)
        fused = dict(fused=True) if self.cuda else {}
        if self.optimizer_kind == "adamw":
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, **fused)
        else:
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, **fused)
        if "budget" in mode:
            from torch._functorch import config

            config.activation_memory_budget = float(mode.partition("budget")[2])
        compiled = mode.startswith("compile")
        self.forward = torch.compile(self.model, mode="reduce-overhead" if "cudagraphs" in mode else None) if compiled else self.model
        host = batches_of(list(filter(None, options.data.split(","))), self.feed, self.batch)
        # Channels last, where the model's own feed is so, is brought about by the copy.
        self.host = itertools.cycle([[x.pin_memory() if self.cuda else x for x in one] for one in host])

    def step(self):
        for here, there in zip(next(self.host), self.feed):
            there.copy_(here, non_blocking=True)
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, dtype=torch.bfloat16):
            loss = self.forward(*self.feed)
        loss.backward()
        if self.optimizer_kind == "adamw":
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach().clone()

    def settle(self):
        if self.cuda:
            torch.cuda.synchronize()

    def block(self, steps):
        """Mean step in milliseconds by the host and by the device's events (None without a GPU); the last loss."""
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if self.cuda else None
        self.settle()
        begin = time.perf_counter()
        if events:
            events[0].record()
        for _ in range(steps):
            loss = self.step()
        if events:
            events[1].record()
        self.settle()
        wall = (time.perf_counter() - begin) * 1e3 / steps
        return wall, events[0].elapsed_time(events[1]) / steps if events else None, loss


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--definitions", type=pathlib.Path, required=True)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--mode", required=True)
    parser.add_argument("--data", default="", help=".npy files of the model's inputs, in its order, with commas")
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, required=True)
    options = parser.parse_args()
    begin = time.perf_counter()
    contender = Contender(options)
    built = time.perf_counter()
    first_loss = float(contender.step())
    first_step = time.perf_counter() - built
    for _ in range(options.warmup - 1):
        contender.step()
    contender.settle()
    if contender.cuda:
        torch.cuda.reset_peak_memory_stats()
    measured = [contender.block(options.steps) for _ in range(options.blocks)]
    cuda = contender.cuda
    last_loss = float(measured[-1][2])
    found = {
        "blocks": {"steps": options.steps, "warmup": options.warmup, "step_ms": [wall for wall, _, _ in measured]},
        "event_ms": [event for _, event, _ in measured] if cuda else None, "batch": contender.batch, "first_loss": first_loss,
        "last_loss": last_loss if last_loss == last_loss else None, "build_s": built - begin, "first_step_s": first_step, "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if cuda else "cpu", "tensor_bytes": torch.cuda.max_memory_allocated() if cuda else None,
        "reserved_bytes": torch.cuda.max_memory_reserved() if cuda else None,
    }  # fmt: skip
    options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
