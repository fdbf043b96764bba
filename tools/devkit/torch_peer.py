"""Measure one model with PyTorch on the CPU; run as a program in the oracle environment, prints one JSON object.

    python -m devkit.torch_peer measure <folder of definitions> <model> <folder> <eager, checkpoint or compile> <seconds> <threads>
    python -m devkit.torch_peer export  <folder of definitions> <model> <folder> [<batch> <length> <vocabulary>]
    python -m devkit.torch_peer products <file that `lowtide-bench --products --json` wrote> <threads>

Time: median of whole steps (forward, backward, update). Memory: the largest sum of live tensor bytes within a step by
PyTorch's own profiler, on top of parameters, optimizer state and the batch; and the resident memory of the process, of
which `rss_import_bytes` were there before the model. `peer` says how near the module is to the one that was recorded.
`products` prints milliseconds for each product of the file, the best of many runs. `export` writes a folder for a model of token ids that has no recorded run: random rows, AdamW, no expected losses.
"""

import json
import pathlib
import resource
import statistics
import sys
import time


def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(name, folder, mode, seconds, threads):
    import numpy
    import torch

    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    import zoo  # the folder's own table of models
    from recording import OPTIMIZERS

    imported = resident()
    spec = json.loads((folder / "train.json").read_text())
    module = zoo.MODELS[name]().train()
    optimizer = OPTIMIZERS[spec["optimizer"]](module.parameters(), **spec["options"])
    with numpy.load(folder / "data.npz") as data:
        arrays = {k: torch.from_numpy(data[k]) for k in data.files}
    batch, count = spec["batch"], len(next(iter(arrays.values())))
    feeds = [{k: v[i : i + batch].clone() for k, v in arrays.items()} for i in range(0, count - batch + 1, batch)]
    if mode == "checkpoint":
        checkpoint_blocks(module)
    forward = torch.compile(module) if mode == "compile" else module

    def step(i):
        optimizer.zero_grad(set_to_none=True)
        loss = forward(**feeds[i % len(feeds)])
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    least = 10
    for i in range(4):
        start = time.perf_counter()
        step(i)
        if i and time.perf_counter() - start > float(seconds) / least:
            least = 3 if float(seconds) else 1  # a long step needs no many samples
            break
    times, begin = [], time.perf_counter()
    while len(times) < least or (time.perf_counter() - begin < float(seconds) and len(times) < 5000):
        start = time.perf_counter()
        step(len(times))
        times.append(time.perf_counter() - start)
    out = {
        "step_ms": statistics.median(times) * 1e3, "steps": len(times), "rss_bytes": resident(), "rss_import_bytes": imported,
        "peak_bytes": peak_bytes(step, module, optimizer, feeds), "torch": torch.__version__,
    }  # fmt: skip
    if json.loads((folder / "expected.json").read_text())["loss"]:
        out["peer"] = likeness(zoo.MODELS[name]().train(), folder, feeds[0])
    print(json.dumps(out))


def checkpoint_blocks(module):
    """Every block of a stack keeps its input only and runs again in the backward pass."""
    import torch
    from torch.utils.checkpoint import checkpoint

    for stack in (m for m in module.modules() if isinstance(m, torch.nn.ModuleList)):
        for block in stack:
            inner = block.forward
            block.forward = lambda *args, inner=inner: checkpoint(inner, *args, use_reentrant=False)


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


def likeness(module, folder, feed):
    """ "same loss": with the weights of a file of the folder the first loss is the recorded one. Else "same parameters"
    (names and shapes of the record), "same count" or "look-alike"."""
    import numpy
    import onnx
    import torch
    from onnx import numpy_helper

    ours = dict(module.named_parameters())
    loss = json.loads((folder / "expected.json").read_text())["loss"]
    for path in sorted(folder.glob("*.onnx")):
        held = {t.name: t for t in onnx.load(str(path)).graph.initializer}
        # A file may hold a part of the module: "0.weight" for "body.0.weight".
        found = {n: held.get(n) or next((t for h, t in held.items() if n.endswith("." + h)), None) for n in ours}
        if any(t is None or tuple(t.dims) != tuple(ours[n].shape) for n, t in found.items()):
            continue
        with torch.no_grad():
            for n, p in ours.items():
                p.copy_(torch.from_numpy(numpy_helper.to_array(found[n]).copy()))
        first = float(module(**feed).detach())
        if "f64" in loss and abs(first - loss["f64"][0]) <= loss["f32_tolerance"][0] + 1e-6 * abs(first):
            return "same loss"
        if "f32_mean" in loss and abs(first - loss["f32_mean"][0]) <= 5 * loss["f32_std"][0]:
            return "same loss"
    if (folder / "expected.npz").exists():
        with numpy.load(folder / "expected.npz") as record:
            shapes = {n.removeprefix("final/"): record[n].shape for n in record.files if n.startswith("final/")}
        if shapes == {n: tuple(p.shape) for n, p in ours.items()}:
            return "same parameters"
    count = json.loads((folder / "train.json").read_text()).get("parameters")
    return "same count" if count == sum(p.numel() for p in ours.values()) else "look-alike"


def export(name, folder, batch=8, length=256, vocab=8192):
    batch, length, vocab = int(batch), int(length), int(vocab)
    import numpy
    import torch
    import zoo
    from recording import export as write_onnx

    torch.manual_seed(0)
    tokens = numpy.random.default_rng(0).integers(0, vocab, (2 * batch, length + 1))
    data = {"tokens": tokens[:, :-1].copy(), "targets": tokens[:, 1:].copy()}
    options = dict(lr=1e-3, betas=[0.9, 0.95], eps=1e-8, weight_decay=0.1)
    spec = dict(batch=batch, steps=3, optimizer="adamw", options=options)
    folder.mkdir(parents=True, exist_ok=True)
    numpy.savez(folder / "data.npz", **data)
    (folder / "train.json").write_text(json.dumps(spec))
    (folder / "expected.json").write_text(json.dumps({"loss": {}}))
    write_onnx(zoo.MODELS[name](), spec, data, folder / "model.onnx", {"exporter": "torchscript", "mode": "train"})


def products(path, threads):
    import torch

    torch.set_num_threads(int(threads))
    dtypes = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16}
    times = []
    for row in json.loads(pathlib.Path(path).read_text())["products"]:
        m, n, k, dtype = row["m"], row["n"], row["k"], dtypes[row["dtype"]]
        lead = (row["batch"],) if row["batch"] > 1 else ()
        a = torch.rand(*lead, k, m, dtype=dtype).mT if row["transpose_a"] else torch.rand(*lead, m, k, dtype=dtype)
        b = torch.rand(*lead, n, k, dtype=dtype).mT if row["transpose_b"] else torch.rand(*lead, k, n, dtype=dtype)
        out, best, runs, begin = torch.empty(*lead, m, n, dtype=dtype), float("inf"), 0, time.perf_counter()
        while runs < 5 or (runs < 2000 and time.perf_counter() - begin < 0.2):
            start = time.perf_counter()
            torch.matmul(a, b, out=out)
            best, runs = min(best, time.perf_counter() - start), runs + 1
        times.append(best * 1e3)
    print(json.dumps(times))


def main(argv):
    if argv[0] == "products":
        return products(*argv[1:])
    verb, definitions, name, folder, *rest = argv
    sys.path.insert(0, definitions)
    {"measure": measure, "export": export}[verb](name, pathlib.Path(folder), *rest)


if __name__ == "__main__":
    main(sys.argv[1:])
