"""Writes grad_scaler.json: what torch.amp.GradScaler does with 2,000 gradients of three layers, some infinite or NaN.

    python grad_scaler.py    (needs torch, numpy)

The loss is Σ w·g over all layers, so the gradient of w is g times the scale. The first scale is so large that it overflows by
itself after some growth; besides, infinities and NaN are put in at chosen steps and layers: in one layer, in several, in
the first element and in the last, in one part of a step that is computed in two.
"""

import json
import pathlib

import numpy as np

STEPS, INTERVAL, INITIAL, LR = 2000, 50, 2.0**110, 1e-2
CLIPPED_STEPS, CLIP_VALUE, CLIP_NORM = 180, 0.75, 1.25
# Layer -> shape; weighted_sum.onnxtxt holds the same weights.
LAYERS = {"w": (8,), "b": (3,), "m": (4, 5)}
WEIGHTS = {
    "w": [0.5, -0.25, 1.0, 2.0, -1.5, 0.125, 0.75, -3.0],
    "b": [0.25, -0.5, 1.5],
    "m": [0.125 * (i - 9) for i in range(20)],
}
INF, NAN = float("inf"), float("nan")
# Step -> what each layer gets, at an element of its flattened gradient.
INJECTED = {
    3: {"w": (0, INF)}, 4: {"b": (2, -INF)}, 57: {"m": (19, NAN)}, 58: {"w": (7, NAN), "b": (0, INF)},
    200: {"m": (0, INF)}, 201: {"m": (7, -INF)}, 202: {"b": (1, NAN)}, 649: {"w": (3, INF), "b": (1, INF), "m": (11, INF)},
    650: {"w": (5, -INF), "m": (5, INF)}, 1111: {"b": (0, NAN)}, 1250: {"m": (10, INF)}, 1750: {"w": (1, NAN)},
    1998: {"b": (2, INF)}, 1999: {"w": (2, -INF)},
}  # fmt: skip


def gradients():
    """Layer -> [STEPS, *shape] f32; RandomState's streams do not change between versions of numpy."""
    random = np.random.RandomState(11)
    rows = {name: random.normal(size=(STEPS, *shape)).astype(np.float32) for name, shape in LAYERS.items()}
    for step, layers in INJECTED.items():
        for name, (element, value) in layers.items():
            rows[name][step].reshape(-1)[element] = value
    for array in rows.values():
        array[1500:1530] = 0.0
    return rows


class Run:
    """A model of three weights under Adam and GradScaler."""

    def __init__(self, torch, initial):
        self.torch = torch
        self.weights = {name: torch.nn.Parameter(torch.tensor(WEIGHTS[name]).reshape(shape)) for name, shape in LAYERS.items()}
        self.optimizer = torch.optim.Adam(self.weights.values(), lr=LR, foreach=False)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=initial, growth_interval=INTERVAL)
        self.rows = {name: torch.from_numpy(array) for name, array in gradients().items()}
        self.trace = {"scale_log2": [], "growth_tracker": [], "skipped": [], "params_every_200": []}
        self.skipped = 0

    def backward(self, row):
        loss = sum((self.rows[name][row] * weight).sum() for name, weight in self.weights.items())
        self.scaler.scale(loss).backward()

    def update(self):
        before = {name: weight.detach().clone() for name, weight in self.weights.items()}
        self.scaler.step(self.optimizer)
        found = not all(self.torch.isfinite(weight.grad).all() for weight in self.weights.values())
        assert not found or all(self.torch.equal(before[name], weight) for name, weight in self.weights.items())
        self.skipped += int(found)
        self.scaler.update()
        self.trace["scale_log2"].append(int(np.log2(self.scaler.get_scale())))
        self.trace["growth_tracker"].append(self.scaler._get_growth_tracker())
        self.trace["skipped"].append(self.skipped)
        if len(self.trace["skipped"]) % 200 == 0:
            self.trace["params_every_200"].append(self.params())

    def params(self):
        return {name: weight.detach().reshape(-1).tolist() for name, weight in self.weights.items()}


def scaled(torch, parts):
    """Every step adds up the gradients of `parts` rows, one backward pass each."""
    run = Run(torch, INITIAL)
    for step in range(STEPS // parts):
        run.optimizer.zero_grad()
        for part in range(parts):
            run.backward(step * parts + part)
        run.update()
    return run.trace


def clip(torch):
    """Norms and last parameters of scaled steps whose gradients are limited by value, then by norm."""
    run = Run(torch, 65536.0)
    norms = []
    for step in range(CLIPPED_STEPS):
        run.optimizer.zero_grad()
        run.backward(step)
        run.scaler.unscale_(run.optimizer)
        torch.nn.utils.clip_grad_value_(run.weights.values(), CLIP_VALUE)
        norms.append(float(torch.nn.utils.clip_grad_norm_(run.weights.values(), CLIP_NORM)))
        run.scaler.step(run.optimizer)
        run.scaler.update()
    return {"norm": [norm if np.isfinite(norm) else None for norm in norms], "params": run.params()}


def main():
    import torch

    recorded = {"whole": scaled(torch, 1), "accumulated": scaled(torch, 2), "clipped": clip(torch)}
    lines = [f' "{name}/{key}": {json.dumps(value, separators=(",", ":"))}' for name, trace in recorded.items() for key, value in trace.items()]
    (pathlib.Path(__file__).parent / "grad_scaler.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    for name in ("whole", "accumulated"):
        scales = recorded[name]["scale_log2"]
        print(f"{name}: {recorded[name]['skipped'][-1]} of {len(scales)} steps skipped; scales 2^{min(scales)} to 2^{max(scales)}")


if __name__ == "__main__":
    main()
