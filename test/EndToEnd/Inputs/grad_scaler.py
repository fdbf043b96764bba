"""Writes grad_scaler.json: what torch.amp.GradScaler does with 2,000 gradients, some of them infinite or NaN.

    python grad_scaler.py    (needs torch, numpy)

The loss is Σ w·g, so the gradient of w is g times the scale. The first scale is so large that it overflows by itself after
some growth; besides, infinities and NaN are put in at chosen steps.
"""

import json
import pathlib

import numpy as np

STEPS, WIDTH, INTERVAL, INITIAL, LR = 2000, 8, 50, 2.0**110, 1e-2
CLIPPED_STEPS, CLIP_VALUE, CLIP_NORM = 180, 0.75, 1.25
WEIGHTS = [0.5, -0.25, 1.0, 2.0, -1.5, 0.125, 0.75, -3.0]


def gradients():
    """[STEPS, WIDTH] f32; RandomState's streams do not change between versions of numpy."""
    random = np.random.RandomState(11)
    rows = random.normal(size=(STEPS, WIDTH)).astype(np.float32)
    for step in (3, 4, 57, 200, 201, 202, 649, 650, 1111, 1999):
        rows[step, random.randint(WIDTH)] = (np.inf, -np.inf, np.nan)[step % 3]
    rows[1500:1530] = 0.0
    return rows


def clip(torch):
    """(norms, last parameters) of scaled steps whose gradients are limited by value, then by norm."""
    weights = torch.nn.Parameter(torch.tensor(WEIGHTS))
    optimizer = torch.optim.Adam([weights], lr=LR, foreach=False)
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0, growth_interval=INTERVAL)
    norms = []
    for row in gradients()[:CLIPPED_STEPS]:
        optimizer.zero_grad()
        scaler.scale((torch.from_numpy(row) * weights).sum()).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_value_([weights], CLIP_VALUE)
        norms.append(float(torch.nn.utils.clip_grad_norm_([weights], CLIP_NORM)))
        scaler.step(optimizer)
        scaler.update()
    return [norm if np.isfinite(norm) else None for norm in norms], weights.detach().tolist()


def main():
    import torch

    weights = torch.nn.Parameter(torch.tensor(WEIGHTS))
    optimizer = torch.optim.Adam([weights], lr=LR, foreach=False)
    scaler = torch.amp.GradScaler("cpu", init_scale=INITIAL, growth_interval=INTERVAL)
    scales, trackers, skipped, params, count = [], [], [], [], 0
    for step, row in enumerate(gradients()):
        optimizer.zero_grad()
        loss = (torch.from_numpy(row) * weights).sum()
        scaler.scale(loss).backward()
        before = weights.detach().clone()
        scaler.step(optimizer)
        found = not torch.isfinite(weights.grad).all()
        assert not found or torch.equal(before, weights)
        count += int(found)
        scaler.update()
        scales.append(int(np.log2(scaler.get_scale())))
        trackers.append(scaler._get_growth_tracker())
        skipped.append(count)
        if step % 200 == 199:
            params.append(weights.detach().tolist())
    norms, clipped = clip(torch)
    lines = {"clipped_norm": norms, "clipped_params": clipped, "scale_log2": scales, "growth_tracker": trackers, "skipped": skipped, "params_every_200": params}
    body = ",\n".join(f' "{name}": {json.dumps(value, separators=(",", ":"))}' for name, value in lines.items())
    (pathlib.Path(__file__).parent / "grad_scaler.json").write_text("{\n" + body + "\n}\n")
    print(f"{count} of {STEPS} steps skipped; scales 2^{min(scales)} to 2^{max(scales)}")


if __name__ == "__main__":
    main()
