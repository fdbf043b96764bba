"""Measure one model with PyTorch on the CPU; run as a program in the oracle environment, prints one JSON object.

    python -m devkit.torch_peer <folder of definitions> <model> <data.npz> <train.json> <mode> <seconds> <threads>

`mode` is eager or compile. Time: median of whole steps (forward, backward, update). Memory: the largest sum of live
tensor bytes within a step by PyTorch's own profiler, on top of parameters, optimizer state and the batch.
"""

import json
import resource
import statistics
import sys
import time


def main(argv):
    folder, name, rows, spec, mode, seconds, threads = argv
    sys.path.insert(0, folder)
    import numpy
    import torch

    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    import zoo  # the folder's own table of models
    from recording import OPTIMIZERS

    with open(spec) as file:
        spec = json.load(file)
    module = zoo.MODELS[name]().train()
    optimizer = OPTIMIZERS[spec["optimizer"]](module.parameters(), **spec["options"])
    with numpy.load(rows) as data:
        arrays = {k: torch.from_numpy(data[k]) for k in data.files}
    batch, count = spec["batch"], len(next(iter(arrays.values())))
    feeds = [{k: v[i : i + batch].clone() for k, v in arrays.items()} for i in range(0, count - batch + 1, batch)]
    forward = torch.compile(module) if mode == "compile" else module

    def step(i):
        optimizer.zero_grad(set_to_none=True)
        loss = forward(**feeds[i % len(feeds)])
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    for i in range(4):
        step(i)
    times, begin = [], time.perf_counter()
    while len(times) < 10 or (time.perf_counter() - begin < float(seconds) and len(times) < 5000):
        start = time.perf_counter()
        step(len(times))
        times.append(time.perf_counter() - start)
    out = {
        "step_ms": statistics.median(times) * 1e3, "steps": len(times), "peak_bytes": peak_bytes(step, module, optimizer, feeds),
        "rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "torch": torch.__version__,
    }  # fmt: skip
    print(json.dumps(out))


def peak_bytes(step, module, optimizer, feeds):
    import torch
    from torch.profiler import ProfilerActivity, profile

    optimizer.zero_grad(set_to_none=True)
    held = [*module.parameters(), *module.buffers(), *feeds[0].values()]
    held += [v for state in optimizer.state.values() for v in state.values() if isinstance(v, torch.Tensor)]
    base = sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in held}.values())
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step(0)
    live = peak = 0
    events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda e: e.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return base + peak


if __name__ == "__main__":
    main(sys.argv[1:])
