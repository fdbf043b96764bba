"""Means and deviations over many seeds of what dropout does: losses next to PyTorch's, masks next to independent draws.

`dropout_statistics.py record`, in the environment of `tools/dev setup --oracles`, writes Inputs/dropout_statistics.json: the
first loss of test/models/gpt-dropout for each of many seeds of PyTorch. The check compares 300 seeds of ours with it.
"""

import concurrent.futures
import json
import math
import os
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
RECORD = HERE / "Inputs" / "dropout_statistics.json"
MODELS = HERE.parent / "models"
RECORDED_SEEDS, SEEDS, BATCH = 3000, 300, 8
# Of deviations of what is compared: one in 300,000 if all is right.
LIMIT = 4.5


def losses_of_pytorch():
    sys.path.insert(0, str(MODELS))
    import definitions
    import numpy
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    module = definitions.GPT(2, 64, 4, 256, 64, dropout=0.2)
    with numpy.load(MODELS / "gpt-dropout" / "data.npz") as data:
        batch = [torch.tensor(data[name][:BATCH]) for name in data.files]
    with torch.no_grad():
        for seed in range(RECORDED_SEEDS):
            torch.manual_seed(seed)
            yield float(module(*batch))


def record():
    losses = list(losses_of_pytorch())
    RECORD.write_text(json.dumps({"seeds": RECORDED_SEEDS, "mean": statistics.fmean(losses), "deviation": statistics.stdev(losses)}, indent=1) + "\n")


def compare(losses):
    """'' or how the losses of our seeds differ from PyTorch's in mean or deviation."""
    expected, mean, deviation = json.loads(RECORD.read_text()), statistics.fmean(losses), statistics.stdev(losses)
    count, recorded = len(losses), expected["seeds"]
    error = expected["deviation"] * math.sqrt(1 / count + 1 / recorded)
    if abs(mean - expected["mean"]) > LIMIT * error:
        return f"the mean of {count} seeds is {mean:.6f}, PyTorch's {expected['mean']:.6f} ± {error:.6f}"
    error = expected["deviation"] * math.sqrt(1 / (2 * count) + 1 / (2 * recorded))
    if abs(deviation - expected["deviation"]) > LIMIT * error:
        return f"the deviation of {count} seeds is {deviation:.6f}, PyTorch's {expected['deviation']:.6f} ± {error:.6f}"
    return ""


# The derivative of its loss by the weight is the mask, scaled.
MASKED = """<ir_version: 10, opset_import: ["" : 20]>
masked (float[1,512] x) => (float loss)
<float ratio = {0.3}, bool training = {1}, float[512] "layer.weight" = {ONES}> {
  h = Mul(x, "layer.weight")
  d, mask = Dropout(h, ratio, training)
  loss = ReduceSum<keepdims = 0>(d)
}
"""


def compare_masks(masks, keeps=0.7):
    """'' or what is wrong with masks, one for each seed: factors of which a part `keeps` should be 1 / keeps, the others 0."""
    count, size = len(masks), len(masks[0])
    error = math.sqrt(keeps * (1 - keeps))
    if wrong := [f for mask in masks for f in mask if f != 0 and abs(f * keeps - 1) > 1e-6]:
        return f"a factor is {wrong[0]}, not 0 or {1 / keeps}"
    kept = [[f != 0 for f in mask] for mask in masks]

    def differs(what, shares, expected, draws):
        # The largest of many is farther out.
        bound = (LIMIT if len(shares) == 1 else LIMIT + 1) * math.sqrt(expected * (1 - expected) / draws)
        worst = max(shares, key=lambda share: abs(share - expected))
        return "" if abs(worst - expected) <= bound else f"{what}: {worst:.4f}, not {expected:.4f} ± {bound:.4f}"

    neighbours = [sum(a and b for mask in kept for a, b in zip(mask, mask[1:])) / (count * (size - 1))]
    twice = [sum(a and b for one, other in zip(kept, kept[1:]) for a, b in zip(one, other)) / ((count - 1) * size)]
    deviation = statistics.pstdev([sum(mask) / size for mask in kept]) / (error / math.sqrt(size))
    return (
        differs("kept of a mask", [sum(mask) / size for mask in kept], keeps, size)
        or differs("kept of an element", [sum(mask[i] for mask in kept) / count for i in range(size)], keeps, count)
        or differs("kept of all", [sum(map(sum, kept)) / (count * size)], keeps, count * size)
        # Pairs share elements: their counts spread more than independent ones.
        or differs("neighbours that are both kept", neighbours, keeps**2, count * size / 3)
        or differs("kept by two seeds in a row", twice, keeps**2, count * size / 3)
        or ("" if abs(deviation - 1) < LIMIT / math.sqrt(2 * count) else f"masks of {count} seeds deviate {deviation:.3f} times as much as independent draws")
    )


def masks(call, binaries, work):
    """Our mask for each seed."""
    import numpy
    from devkit.tensors import read_safetensors

    text, model, artifact, data = (work / f"masked.{end}" for end in ("onnxtxt", "onnx", "tide", "npz"))
    text.write_text(MASKED.replace("ONES", ", ".join(["1.0"] * 512)))
    numpy.savez(data, x=numpy.ones((1, 512), dtype=numpy.float32))
    call(binaries / "lowtide-translate", "--onnx-text-to-onnx", text, "-o", model)
    call(binaries / "lowtide", "compile", model, "-o", artifact, "--entries=gradient", "--mode=as-is", "-q")
    found = []
    for seed in range(1, SEEDS + 1):
        call(binaries / "lowtide-run", artifact, "--entry=gradient", "--steps=1", f"--data={data}", f"--dump-gradients={work / 'masked.gradients'}", f"--seed={seed}", "-q")
        gradients = read_safetensors(work / "masked.gradients")
        found.append([float(f) for f in next(iter(gradients.values())).ravel()])
    return found


def first_losses(call, run, artifact, data, work):
    """Our first loss for each seed."""

    def one(seed):
        log = work / f"{seed}.jsonl"
        call(run, artifact, f"--data={data}", "--steps=1", f"--seed={seed}", f"--log-jsonl={log}", "-q")
        return next(row["loss"] for row in map(json.loads, log.read_text().splitlines()) if "loss" in row and "step" in row)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, range(1, SEEDS + 1)))


if __name__ == "__main__" and sys.argv[1:] == ["record"]:
    record()
