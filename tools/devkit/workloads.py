"""Full-size workloads of gpu-check's speed stages: shapes, optimizers and inputs as PyTorch's side (torch_baseline.py) has them."""

from devkit import estimate
from devkit.console import Failure

ADAMW = ["--precision=mixed-bf16", "--optimizer=adamw", "--lr=0.0003", "--betas=0.9,0.95", "--weight-decay=0.1", "--clip-norm=1"]
MOMENTUM = ["--precision=mixed-bf16", "--optimizer=momentum", "--lr=0.1", "--momentum=0.9", "--weight-decay=0.0001"]


def tokens(names, vocabulary, length, *masks):
    """Inputs of token ids; all after the first repeat nothing of it but its law. Masks are ones."""
    given = {name: {"kind": "zipf", "bound": vocabulary, "dims": [length]} for name in names}
    return given | {name: {"kind": "ones", "dims": [length]} for name in masks}


def gpt2(batch, *budgets):
    return {
        "structure": "gpt2-124m", "batch": batch, "units": 1024, "unit": "tok", "flags": ADAMW, "budgets": list(budgets),
        "inputs": tokens(["tokens", "targets"], 50304, 1024), "torch_inputs": ["tokens", "targets"], "renamed": {"ln": "ln_f"},
    }  # fmt: skip


BERT_INPUTS = tokens(["input_ids", "labels"], 30522, 512, "attention_mask")
BERT_INPUTS["labels"]["like"] = "input_ids"  # PyTorch's side learns what it reads
# name → file of the collection's folder `structure`, batch, units of throughput per sample, flags, further budgets,
# inputs as devkit/gpu/batches.py makes them, first parts of parameters' names that are others than PyTorch's. `torch` is the
# workload of torch_baseline.py that goes with it.
WORKLOADS = {
    "gpt2": gpt2(16, "50%", "2.5GiB") | {"torch": "gpt2"},
    "gpt2-b64": gpt2(64) | {"torch": "gpt2-b64"},
    # Largest batches: no PyTorch beside them, and few steps in a stage.
    "gpt2-b700": gpt2(700) | {"flags": [*ADAMW, "--device-budget=130GiB"]},
    "gpt2-b2000": gpt2(2000) | {"flags": [*ADAMW, "--device-budget=130GiB"]},
    "resnet50": {
        "structure": "resnet50", "batch": 256, "units": 1, "unit": "img", "flags": MOMENTUM, "budgets": ["5.5GiB"], "torch": "resnet50",
        "inputs": {"x": {"kind": "normal", "dims": [3, 224, 224]}, "y": {"kind": "uniform", "bound": 1000, "dims": []}}, "torch_inputs": ["x", "y"],
    },
    "bert-large": {
        "structure": "bert-large", "batch": 32, "units": 1, "unit": "seq", "flags": ADAMW, "budgets": ["12GiB"], "torch": "bert-large",
        "inputs": BERT_INPUTS, "torch_inputs": ["input_ids", "labels"], "renamed": {"net": "model"},
    },
}  # fmt: skip
# Of a row, what the archive's table of contents needs.
CARRIED = ("batch", "units", "unit", "torch", "inputs", "torch_inputs", "renamed")


def available():
    """Names of the workloads whose models are at hand."""
    try:
        folder = estimate.structures()
    except Failure:
        return []
    return [name for name, row in WORKLOADS.items() if (folder / f"{row['structure']}.onnx").exists()]


def compiler_arguments(row):
    """The model and the flags that every artifact of a workload shares."""
    return estimate.structures() / f"{row['structure']}.onnx", [f"--batch={row['batch']}", *row["flags"], "--entries=train", "--no-weights"]
