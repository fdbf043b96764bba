#!/usr/bin/env python3
"""One contender: PyTorch trains a workload of torch_baseline.py in one mode, timed block by block. Writes one JSON object.

    torch_contender.py --definitions=torch_baseline.py --workload=gpt2 --mode=compile --blocks=10 --steps=20 --warmup=20 --json=FILE

bf16 autocast, fp32 master weights, clipping by the global norm 1.0 with AdamW, as in torch_baseline.py, whose `build` makes
the model; every step copies its batch from pinned memory. Blocks are timed by the host's clock around steps that are
all done, and by CUDA events. --weights are the parameters to start from; with --gradients nothing is timed: gradients of
the first batch in f32 are compared with those of the file. Modes: eager, compile, compile-cudagraphs, compile-budget<F>, checkpoint, compile-checkpoint.
"""

import argparse
import importlib.util
import itertools
import json
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))


def load(path):
    """torch_baseline.py as a module."""
    spec = importlib.util.spec_from_file_location("torch_baseline", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(path, renamed):
    """name → tensor(name), the tensors of a file by PyTorch's names; `renamed` says first parts of names that the file has instead."""
    from devkit.tensors import read_safetensors

    arrays = {name.removeprefix("grad/"): array for name, array in read_safetensors(path).items()}

    def tensor(name):
        head, dot, tail = name.partition(".")
        theirs = renamed.get(head, head) + dot + tail
        if theirs not in arrays:
            raise SystemExit(f"error: {path.name} has no '{theirs}'")
        return torch.from_numpy(arrays[theirs].copy())

    return tensor


def set_weights(model, tensor):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            given = tensor(name)
            if given.shape != parameter.shape:
                raise SystemExit(f"error: '{name}' is {tuple(given.shape)} in the file, {tuple(parameter.shape)} here")
            parameter.copy_(given)


def compare_gradients(model, tensor, negligible):
    """Worst cosine and worst ‖ours - theirs‖ / ‖theirs‖ of all parameters, with their names.

    What is below `negligible` of the norm of all has no direction: its difference is measured by that bound.
    """
    pairs = {name: (tensor(name).double().flatten(), parameter.grad.detach().double().cpu().flatten()) for name, parameter in model.named_parameters()}
    floor = negligible * sum(float(theirs.norm()) ** 2 for _, theirs in pairs.values()) ** 0.5
    cosines, relatives = {}, {}
    for name, (ours, theirs) in pairs.items():
        size = float(theirs.norm())
        relatives[name] = float((ours - theirs).norm()) / max(size, floor)
        if size > floor:
            cosines[name] = float(ours @ theirs) / max(float(ours.norm()) * size, 1e-300)
    least, most = min(cosines, key=cosines.get), max(relatives, key=lambda name: relatives[name] if relatives[name] == relatives[name] else float("inf"))
    return {
        "worst_cosine": cosines[least], "worst_cosine_of": least, "worst_relative": relatives[most], "worst_relative_of": most,
        "tensors": len(pairs), "negligible_tensors": len(pairs) - len(cosines),
    }  # fmt: skip


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
        # Speed is measured as users have it; what is compared is f32 itself.
        torch.set_float32_matmul_precision("highest" if options.gradients else "high")
        torch.backends.cudnn.allow_tf32 = not options.gradients
        kind = "checkpoint" if mode == "compile-checkpoint" else mode
        self.model, self.feed, self.batch, self.optimizer_kind = definitions.build(options.workload, kind, options.tiny, self.device)
        if options.weights:
            set_weights(self.model, read(options.weights, options.rename))
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

    def gradients(self, tensor, negligible):
        """What the first batch in f32 has beside the gradients of a file."""
        self.feed_next()
        loss = self.forward(*self.feed)
        loss.backward()
        return {"first_loss": float(loss), **compare_gradients(self.model, tensor, negligible)}

    def feed_next(self):
        for here, there in zip(next(self.host), self.feed):
            there.copy_(here, non_blocking=True)

    def step(self):
        self.feed_next()
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
    parser.add_argument("--weights", type=pathlib.Path, help="params.safetensors to start from")
    parser.add_argument("--gradients", type=pathlib.Path, help="gradients to compare with; nothing is timed")
    parser.add_argument("--rename", type=lambda text: dict(pair.split("=") for pair in text.split(",") if pair), default={}, help="PYTORCH=FILE of names' first parts")
    parser.add_argument("--negligible", type=float, default=1e-4, help="share of the norm of all gradients below which one is noise")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, required=True)
    options = parser.parse_args()
    begin = time.perf_counter()
    contender = Contender(options)
    if options.gradients:
        options.json.write_text(json.dumps(contender.gradients(read(options.gradients, options.rename), options.negligible), indent=1) + "\n")
        return
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
