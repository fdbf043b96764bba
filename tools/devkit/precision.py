"""What a run with 16-bit values must show besides its losses: the bands recorded for them are wide enough for an f32 run.

The compiler's text of the training step is read: operands of contractions are of 16 bits, sums, norms and functions f32.
The values that the backward pass reads of the forward pass take at most `SAVED` of f32's bytes, or, where the record says that
PyTorch's autocast keeps more of them (sums over edges of a graph stay f32), at most that part, and no more bytes than it. The losses
are not f32's.
"""

import json
import re

NARROW = ("bf16", "f16")
SAVED = 0.6
# Operators that become contractions; a file without any computes nothing in 16 bits, and its losses are f32's.
PRODUCTS = {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "Attention", "LSTM", "GRU", "RNN"}

NO_CONTRACTION = "no contraction in the step"
CONTRACTION = re.compile(r"nn\.(dot|conv\w*|attention\w*) .*: \((.*?)\) -> ")
WIDE = re.compile(r"nn\.(reduce_\w+|exp|log|log1p|expm1|sqrt|rsqrt|layer_norm|rms_norm|batch_norm|softmax\w*|log_softmax|erf|"
                  r"sigmoid|gelu\w*|silu|softplus|elu|tanh|pow|add|sub|mul|div) .*")


def check_types(text, narrow):
    """Complaints about the types in one function's text."""
    complaints, contractions = [], 0
    for line in text.splitlines():
        if found := CONTRACTION.search(line):
            contractions += 1
            types = found[2].split(", ")[:3 if found[1].startswith("attention") else 2]
            if not all(t.endswith(f"x{narrow}>") for t in types):
                complaints.append(f"{line.strip()[:120]}: operands are not {narrow}")
        elif WIDE.search(line) and f"x{narrow}>" in line:
            complaints.append(f"{line.strip()[:120]}: computes in {narrow}")
    if not contractions:
        complaints.append(NO_CONTRACTION)
    return complaints[:2]


def judge(model, record, options, work, verdict):
    """Complaints; fills in the ratio of saved bytes."""
    from devkit.coded import codec_of
    from devkit.judge import call, first_error, read_run

    narrow = options.precision.removeprefix("mixed-")
    flags = record.compiler_flags(model, options.compile_flags)
    shown, figures = work / "step.mlir", work / "step.json"
    status, said = call([options.bin / "lowtide", "compile", model, "--emit=train", "--emit-locations=off", "-o", shown, f"--figures={figures}", *flags], work / "emit.log")
    if status != 0:
        return [f"--emit=train: exit {status}: {first_error(said)}"]
    text = shown.read_text()
    train = text[text.index("func.func @train"):]
    complaints = check_types(train.split("\n  }\n")[0], narrow)
    kinds = record.kinds(model)
    if kinds and not kinds & PRODUCTS:
        return [complaint for complaint in complaints if complaint != NO_CONTRACTION]
    remarks = json.loads(figures.read_text())["remarks"]
    saved = [(remark["saved_bytes_before"], remark["saved_bytes"]) for remark in remarks if "saved_bytes" in remark]
    before, after = max(saved, default=(0, 0))
    if not before:
        complaints.append("no figures of saved activations")
    else:
        verdict.saved = after / before
        peer = record.saved_by_pytorch(narrow)
        limit = max(SAVED, peer[1]) if peer else SAVED
        if verdict.saved > limit:
            complaints.append(f"saved activations {after:,} of f32's {before:,} bytes, more than {limit:.2f}")
        if peer and after > peer[0]:
            complaints.append(f"saved activations {after:,} bytes, PyTorch's autocast {peer[0]:,}")

    # Codes of frozen weights stay, types in which products read them go.
    narrows = lambda f: f.startswith(("--precision", "--loss-scale", "--master")) or (f.startswith("--frozen-weights=") and not codec_of([f]))  # noqa: E731
    wide = [f for f in flags if not narrows(f)]
    artifact = work / "f32.tide"
    status, said = call([options.bin / "lowtide", "compile", model, "-o", artifact, *wide], work / "f32-compile.log")
    if status == 0:
        log = work / "f32.jsonl"
        status, said = call([options.bin / "lowtide-run", artifact, f"--data={record.folder / 'data.npz'}",
                             f"--steps={record.steps}", f"--log-jsonl={log}", "--seed=0"], work / "f32-run.log")
    if status != 0:
        return [*complaints, f"f32 run: exit {status}: {first_error(said)}"]
    if [line["loss"] for line in read_run(log)[1]] == verdict.losses:
        complaints.append("losses are those of f32")
    return complaints
