"""PyTorch's losses and gradients for every form of --loss: losses.py > losses.json; needs torch.

One array `w` is added to the data and is all that is trained, so its gradient is that of the scores.
"""

import json

import torch
import torch.nn.functional as F

ROWS, CLASSES = 4, 5
torch.manual_seed(7)
x = torch.randn(ROWS, CLASSES)
DATA = {
    "x": x,
    "labels": torch.tensor([1, 4, 0, 2]),
    "masked": torch.tensor([1, -100, 0, 2]),
    "t": torch.randn(ROWS, CLASSES),
    "bits": torch.tensor([[1.0, 0, 0, 1, 0], [0, 1, 1, 0, 0], [0, 0, 0, 0, 1], [1, 1, 1, 0.25, 0]]),
    "p": torch.tensor([[0.5, 0.5, 0, 0, 0], [0.1, 0.2, 0.3, 0.2, 0.2], [0, 0, 1, 0, 0], [0.25, 0.25, 0.25, 0.125, 0.125]]),
    "class weights": torch.tensor([0.5, 2, 1, 0.25, 3]),
    "each": torch.rand(ROWS, CLASSES) + 0.1,
}
labels, masked, t, bits, p, each = (DATA[k] for k in ("labels", "masked", "t", "bits", "p", "each"))
weights = DATA["class weights"]


def scores(w):
    y = x + w
    return {"logits": y, "chances": F.softmax(y, 1), "logs": F.log_softmax(y, 1), "parts": torch.sigmoid(y), "other": 2 * y}


CASES = {
    "cross_entropy(logits, labels)": lambda o: F.cross_entropy(o["logits"], labels),
    "cross_entropy(logits, masked, reduction=sum)": lambda o: F.cross_entropy(o["logits"], masked, reduction="sum"),
    "cross_entropy(logits, labels, ignore_index=4)": lambda o: F.cross_entropy(o["logits"], labels, ignore_index=4),
    "cross_entropy(logits, masked, weight='class weights')": lambda o: F.cross_entropy(o["logits"], masked, weight=weights),
    "cross_entropy(logits, labels, weight=[0.5, 2, 1, 0.25, 3])": lambda o: F.cross_entropy(o["logits"], labels, weight=weights),
    "cross_entropy(logits, labels, label_smoothing=0.1)": lambda o: F.cross_entropy(o["logits"], labels, label_smoothing=0.1),
    "cross_entropy(logits, masked, label_smoothing=0.2, reduction=sum)":
        lambda o: F.cross_entropy(o["logits"], masked, label_smoothing=0.2, reduction="sum"),
    "cross_entropy(logits, masked, weight='class weights', label_smoothing=1)":
        lambda o: F.cross_entropy(o["logits"], masked, weight=weights, label_smoothing=1.0),
    "cross_entropy(logits, labels, label_smoothing=0.1, ignore_index=2, weight=\"class weights\", reduction=sum) + 0.3*mse(other, t)":
        lambda o: F.cross_entropy(o["logits"], labels, label_smoothing=0.1, ignore_index=2, weight=weights, reduction="sum")
        + 0.3 * F.mse_loss(o["other"], t),
    "nll(chances, labels)": lambda o: F.nll_loss(torch.log(o["chances"]), labels),
    "nll_loss(logs, masked, weight='class weights')": lambda o: F.nll_loss(o["logs"], masked, weight=weights),
    "nll_loss(logits, labels, reduction=sum)": lambda o: F.nll_loss(o["logits"], labels, reduction="sum"),
    "mse(logits, t, reduction=sum)": lambda o: F.mse_loss(o["logits"], t, reduction="sum"),
    "mse(logits, t, weight=each)": lambda o: F.mse_loss(o["logits"], t, weight=each),
    "mse_loss(logits, other)": lambda o: F.mse_loss(o["logits"], o["other"]),
    "l1(logits, t)/4": lambda o: F.l1_loss(o["logits"], t) / 4,
    "smooth_l1(logits, t, beta=0.5)": lambda o: F.smooth_l1_loss(o["logits"], t, beta=0.5),
    "smooth_l1(logits, t, beta=0, reduction=sum)": lambda o: F.smooth_l1_loss(o["logits"], t, beta=0.0, reduction="sum"),
    "huber(logits, t, delta=0.7)": lambda o: F.huber_loss(o["logits"], t, delta=0.7),
    "huber(logits, t, weight=each)": lambda o: F.huber_loss(o["logits"], t, weight=each),
    "bce(parts, bits, weight=each)": lambda o: F.binary_cross_entropy(o["parts"], bits, weight=each),
    "bce_with_logits(logits, bits, reduction=sum)": lambda o: F.binary_cross_entropy_with_logits(o["logits"], bits, reduction="sum"),
    "bce_with_logits(logits, bits, pos_weight='class weights', weight=each)":
        lambda o: F.binary_cross_entropy_with_logits(o["logits"], bits, pos_weight=weights, weight=each),
    "bce_with_logits(logits, bits, pos_weight=3)":
        lambda o: F.binary_cross_entropy_with_logits(o["logits"], bits, pos_weight=torch.full([CLASSES], 3.0)),
    "kl_div(logs, p, reduction=batchmean)": lambda o: F.kl_div(o["logs"], p, reduction="batchmean"),
    "kl_div(logs, t, log_target=true, reduction=sum)": lambda o: F.kl_div(o["logs"], t, log_target=True, reduction="sum"),
    "-0.5*l1(logits, t) + mse(other, t)*2 - huber(logits, t)":
        lambda o: -0.5 * F.l1_loss(o["logits"], t) + 2 * F.mse_loss(o["other"], t) - F.huber_loss(o["logits"], t),
}  # fmt: skip

initial = torch.randn(ROWS, CLASSES)
runs = {}
for text, function in CASES.items():
    w = initial.clone().requires_grad_()
    loss = function(scores(w))
    loss.backward()
    runs[text] = {"loss": loss.item(), "gradient": w.grad.flatten().tolist()}
record = {"torch": torch.__version__, "w": initial.tolist(), "data": {k: v.tolist() for k, v in DATA.items()}}
lines = [f" {json.dumps(text)}: {json.dumps(run)}" for text, run in runs.items()]
print(json.dumps(record)[:-1] + ',\n"runs": {\n' + ",\n".join(lines) + "\n}}")
