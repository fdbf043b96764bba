"""What PEFT recorded of test/models/lora-* and dora-*, and what a run with --lora writes: adapters.py <models> <scratch>; needs numpy."""

import collections
import itertools
import json
import pathlib
import shutil
import subprocess
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from devkit.coded import write_safetensors  # noqa: E402
from devkit.tensors import read_safetensors  # noqa: E402

models, scratch = map(pathlib.Path, sys.argv[1:3])
LOSS = "--loss=cross_entropy(logits, labels)"
PREFIX = "base_model.model."


def plain(name):
    return name.removeprefix(PREFIX)


def call(program, *arguments, code=0):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, f"{program} {arguments}: exit {done.returncode}\n{done.stderr}"
    return done.stdout + done.stderr


def compile(model, *flags, name="step.tide", loss=LOSS, code=0):
    said = call("lowtide", "compile", model, "-q", "-o", scratch / name, "--batch=8", loss, *flags, code=code)
    return scratch / name if code == 0 else said


def run(artifact, folder, *flags, code=0):
    """Losses of the steps, and what was said."""
    log = scratch / "log.jsonl"
    said = call("lowtide-run", artifact, f"--data={folder / 'data.npz'}", f"--log-jsonl={log}", "-q", *flags, code=code)
    rows = [json.loads(line) for line in log.read_text().splitlines()] if code == 0 else []
    return [row["loss"] for row in rows if "step" in row and "loss" in row], said


def saved(folder):
    return scratch / folder / (scratch / folder / "latest").read_text().strip()


def evaluate(artifact, folder, *flags):
    return float(run(artifact, folder, "--entry=eval", *flags)[1].split("loss ")[1].split()[0])


def flags_of(folder):
    train = json.loads((folder / "train.json").read_text())
    return [f"--optimizer={train['optimizer']}", "--lr=0.005", "--betas=0.9,0.95", "--weight-decay=0.1", *train["flags"]]


# --- PEFT's run: its files, and the weights that it merged into ---

for name in ("lora-gpt2", "lora-llama", "lora-vit", "dora-gpt2", "dora-llama", "dora-vit"):
    folder = models / name
    record = dict(numpy.load(folder / "expected.npz"))
    bound = json.loads((folder / "expected.json").read_text())["final_f32_tolerance"]
    step = compile(folder / "model.onnx", *flags_of(folder))
    exported = scratch / f"{name}.onnx"
    run(step, folder, "--steps=20", f"--init={folder / 'adapter'}", f"--save={scratch / name}", f"--export={exported}",
        f"--model={folder / 'model.onnx'}", "--merge-lora")  # fmt: skip
    theirs, ours = read_safetensors(folder / "adapter/adapter_model.safetensors"), read_safetensors(saved(name) / "adapter_model.safetensors")
    assert {n: a.shape for n, a in theirs.items()} == {n: a.shape for n, a in ours.items()}, (sorted(theirs), sorted(ours))
    for key, array in record.items():
        if key.startswith("final/"):
            parameter = key.removeprefix("final/")
            off = abs(ours[PREFIX + parameter] - array).max()
            assert off <= bound[parameter], (parameter, off)
    config = json.loads((saved(name) / "adapter_config.json").read_text())
    peft = json.loads((folder / "adapter/adapter_config.json").read_text())
    for key in ("peft_type", "r", "lora_alpha", "lora_dropout", "use_rslora", "use_dora", "bias", "fan_in_fan_out", "modules_to_save", "rank_pattern"):
        assert config[key] == peft[key], (name, key, config[key], peft[key])
    for module in {n.rsplit(".lora_", 1)[0].removeprefix(PREFIX) for n in theirs if ".lora_" in n}:
        assert module in config["target_modules"], module
        assert any(module.endswith("." + target) for target in peft["target_modules"]), module
    # The base is in the model file, not in every checkpoint.
    assert all(".lora_" in n or n in record or f"final/{n}" in record for n in read_safetensors(saved(name) / "params.safetensors"))
    # The merged file holds PEFT's merged weights, and computes what weights and pairs computed.
    whole = compile(exported, "--entries=train,eval", "--params=+*", name="merged.tide")
    run(whole, folder, "--steps=0", f"--save={scratch / (name + '-merged')}")
    weights = read_safetensors(saved(name + "-merged") / "params.safetensors")
    merged = {n.removeprefix("merged/"): a for n, a in record.items() if n.startswith("merged/")}
    assert len(merged) >= 7
    expected = {n.removesuffix(".lora_A.weight") for n in map(plain, ours) if n.endswith(".lora_A.weight")}
    assert not name.startswith("dora") or {n for n in map(plain, ours) if ".lora_mag" in n} >= {f"{n}.lora_magnitude_vector" for n in expected}
    for weight, array in merged.items():
        off = abs(weights[weight] - array).max() / abs(array).max()
        assert off < 2e-5, (weight, off)
    base = compile(folder / "model.onnx", name="base.tide")
    run(base, folder, "--steps=0", f"--save={scratch / (name + '-base')}")
    for weight, array in read_safetensors(saved(name + "-base") / "params.safetensors").items():
        changed = not numpy.array_equal(array, weights[weight])
        assert changed == (weight in merged or f"final/{weight}" in record), weight
    with_pairs, without = evaluate(step, folder, f"--resume={scratch / name}"), evaluate(whole, folder)
    assert abs(with_pairs - without) < 2e-5 * with_pairs, (with_pairs, without)
    assert abs(with_pairs - evaluate(base, folder)) > 0.01, "the pairs have no effect"
    # A run that starts from the files goes on from there.
    assert run(step, folder, "--steps=1", f"--init={saved(name)}")[0] == run(step, folder, "--steps=1", f"--init={saved(name) / 'adapter_model.safetensors'}")[0]

# --- layers with several matrices, whose gates the file has in another order ---

recurrent = models / "rnn-tiny"
LAYERS = {"embedding", "head", "gru.weight_ih_l0", "gru.weight_ih_l0_reverse", "lstm.weight_ih_l0", "lstm.weight_ih_l1", "rnn.weight_ih_l0"}
model = recurrent / "torchscript.onnx"
base = evaluate(compile(model, name="base.tide", loss="--loss=loss"), recurrent)
for option in "", ",dora":
    losses = []
    for form in "torchscript", "default", "torchscript-folded":
        step = compile(recurrent / f"{form}.onnx", f"--lora={','.join(sorted(LAYERS))}:r=2,alpha=4{option}", "--lr=0.05", loss="--loss=loss")
        assert abs(evaluate(step, recurrent) - base) < 2e-6, "a pair that is zero, or magnitudes that are norms, change the loss"
        # One form trains; the others take its pairs.
        trains = [] if losses else ["--steps=8", f"--export={scratch / 'merged.onnx'}", f"--model={model}", "--merge-lora"]
        run(step, recurrent, *(trains or ["--steps=0", f"--init={saved('torchscript')}"]), f"--save={scratch / form}", "--overwrite")
        assert set(json.loads((saved(form) / "adapter_config.json").read_text())["target_modules"]) == LAYERS
        arrays = read_safetensors(saved(form) / "adapter_model.safetensors")
        assert arrays[PREFIX + "lstm.weight_ih_l0.lora_A.weight"].shape == (2, 24), {n: a.shape for n, a in arrays.items()}
        assert all(array.any() for array in arrays.values()), form
        losses.append(evaluate(step, recurrent, f"--resume={scratch / form}"))
    whole = compile(scratch / "merged.onnx", "--entries=train,eval", "--params=+*", name="merged.tide", loss="--loss=loss")
    losses.append(evaluate(whole, recurrent))
    assert max(losses) - min(losses) < 2e-5 * max(losses), losses
    assert abs(losses[0] - base) > 0.01, losses

# --- first values ---

gpt = models / "lora-gpt2"
ONE = "--lora=*.c_attn:r=4,alpha=8"
step = compile(gpt / "model.onnx", ONE, "--clip-norm=1")
losses = {}
for seed in (0, 0, 1):
    losses.setdefault(seed, []).append(run(step, gpt, "--steps=2", f"--seed={seed}", f"--save={scratch / 'drawn'}", "--overwrite")[0])
run(step, gpt, "--steps=0", f"--save={scratch / 'start'}", "--seed=7")
start = read_safetensors(saved("start") / "adapter_model.safetensors")
for name, array in start.items():
    if ".lora_B." in name:
        assert not array.any(), name
    else:  # uniform to 1/√32, as kaiming_uniform_(a=√5) draws
        assert 0.9 * 32**-0.5 < abs(array).max() <= 32**-0.5 and abs(array.mean()) < 0.03, (name, abs(array).max())
        assert abs(array.std() - 32**-0.5 / 3**0.5) < 0.02, (name, array.std())
arrays = [a for n, a in start.items() if ".lora_A." in n]
assert not numpy.array_equal(arrays[0], arrays[1])
assert losses[0][0] == losses[0][1] and losses[0][0][0] == losses[1][0][0] and losses[0][0][1] != losses[1][0][1]
base = compile(gpt / "model.onnx", "--entries=train", name="base.tide")
assert abs(run(base, gpt, "--steps=1")[0][0] - losses[0][0][0]) < 1e-6, "a pair that is zero changes the loss"

# Magnitudes start as norms of the weight's outputs: of a Conv1D [inputs, outputs] over its rows, of another base anew.
DORA = ONE + ",dora"
decomposed = compile(gpt / "model.onnx", DORA, "--lr=0.01", name="decomposed.tide")
weights = read_safetensors(saved("lora-gpt2-base") / "params.safetensors")
twice = {n: 2 * a if n.endswith("c_attn.weight") else a for n, a in weights.items()}
write_safetensors(scratch / "twice.safetensors", twice)
for flags, factor in ([], 1), ([f"--init={scratch / 'twice.safetensors'}"], 2):
    run(decomposed, gpt, "--steps=0", f"--save={scratch / 'norms'}", "--overwrite", *flags)
    start = read_safetensors(saved("norms") / "adapter_model.safetensors")
    names = [n for n in start if n.endswith(".lora_magnitude_vector")]
    assert len(names) == 2, list(start)
    for name in names:
        norms = factor * numpy.linalg.norm(weights[plain(name).replace(".lora_magnitude_vector", ".weight")].astype("f8"), axis=0)
        assert abs(start[name] - norms).max() <= 1e-6 * norms.max(), (name, factor)
assert abs(run(base, gpt, "--steps=1")[0][0] - run(decomposed, gpt, "--steps=1")[0][0]) < 2e-6, "magnitudes that are norms change the loss"

# --- bytes: nothing is held for what is frozen ---


def tensors(*flags):
    compile(gpt / "model.onnx", "--entries=train", *flags)
    call("lowtide", "report", scratch / "step.tide", "-o", scratch / "report.json")
    report = json.loads((scratch / "report.json").read_text())
    found = collections.Counter((t["component"], t["bytes"]) for t in report["entries"][0]["tensors"])
    return report, found


full, held = tensors("--frozen=transformer.wpe.weight")
report, few = tensors(ONE)
ROWS = 8 * 12 * 4
assert held["saved activations", 128 * ROWS] == 4 and few["saved activations", 128 * ROWS] == 2, "the input of a frozen product is kept"
# Attention keeps as many numbers for its four heads, in both.
assert few["saved activations", 4 * ROWS] - held["saved activations", 4 * ROWS] == 2, "what A makes of its input"
# A of 4×32 and B of 96×4 in two layers; the loss's own numbers besides.
assert sorted(b for (kind, b), n in few.items() if kind == "gradients" and b > 8 for _ in range(n)) == [512, 512, 1536, 1536], few
assert report["state_bytes"] == 2 * 2 * (512 + 1536), report["state_bytes"]
assert report["params_bytes"] == full["params_bytes"] + 2 * (512 + 1536)

# --- budgets and parts change nothing; dropout draws the same rows in parts ---

DROP = "--lora=*.c_attn,*.c_proj,*.c_fc:r=4,alpha=8,dropout=0.3"
PARTED = {"pairs": (DROP, gpt), "magnitudes": (DROP + ",dora", models / "dora-gpt2")}
whole = {}
for kind, target in itertools.product(PARTED, ("cpu", "reference", "cuda-emulated")):
    runs = {}
    ways = {"whole": [], "tight": ["--device-budget=80%"]}
    if target == "cpu":
        ways |= {"parts": ["--micro-batches=4"], "tight parts": ["--micro-batches=4", "--device-budget=90%"]}
    for key, flags in ways.items():
        rule, folder = PARTED[kind]
        step = compile(folder / "model.onnx", rule, f"--target={target}", "--lr=0.01", *flags)
        runs[key] = run(step, folder, "--steps=4", f"--init={folder / 'adapter'}")[0]
    assert runs["whole"] == runs["tight"] and runs.get("parts") == runs.get("tight parts"), (kind, target, runs)
    whole.setdefault(kind, runs["whole"])
    for other in (whole[kind], runs.get("parts", [])):
        assert all(abs(a - b) < 2e-5 * a for a, b in zip(runs["whole"], other)), (target, runs)
still = compile(gpt / "model.onnx", DROP, "--lr=0.01", "--dropout=0")
quiet = run(still, gpt, "--steps=4", f"--init={gpt / 'adapter'}")[0]
assert quiet != whole["pairs"] and quiet[0] == whole["pairs"][0], "B is zero at first"
dropped = compile(gpt / "model.onnx", DROP, "--lr=0.01", name="dropped.tide")
run(dropped, gpt, "--steps=4", f"--save={scratch / 'dropped'}")
assert evaluate(dropped, gpt, f"--resume={scratch / 'dropped'}") == evaluate(still, gpt, f"--resume={scratch / 'dropped'}"), "an evaluation drops"

# What a magnitude adds is of the dropped input: of nothing, where all is dropped.
run(decomposed, gpt, "--steps=5", f"--save={scratch / 'decomposed'}", "--overwrite")
trained = [f"--init={saved('decomposed')}", "--steps=1"]
dropped = compile(gpt / "model.onnx", DORA, "--lr=0.01", "--dropout=1", name="dropped.tide")
of_base = compile(gpt / "model.onnx", "--entries=train", name="base.tide")
first = {name: run(step, gpt, *flags)[0][0] for name, step, flags in (("whole", decomposed, trained), ("none", dropped, trained), ("base", of_base, ["--steps=1"]))}
assert abs(first["none"] - first["base"]) < 2e-6 * first["base"] and abs(first["whole"] - first["base"]) > 1e-3, first

# --- with the rest of the flags ---

narrow = compile(gpt / "model.onnx", "--lora=*.c_attn,*.c_proj,*.c_fc:r=4", "--precision=mixed-bf16", "--frozen-weights=bf16", "--entries=train")
call("lowtide", "report", narrow, "-o", scratch / "report.json")
assert json.loads((scratch / "report.json").read_text())["params_bytes"] < 0.75 * full["params_bytes"]
assert all(numpy.isfinite(run(narrow, gpt, "--steps=4")[0]))
several = compile(gpt / "model.onnx", "--lora=*.0.*.c_attn:r=2,alpha=2;*.c_attn:r=4,alpha=8", "--lora=lm_head:r=3", "--params=transformer.ln_f.*",
                  "--group=*.lora_B*:lr=0.016,weight_decay=0", name="several.tide")  # fmt: skip
run(several, gpt, "--steps=3", f"--save={scratch / 'several'}")
config = json.loads((saved("several") / "adapter_config.json").read_text())
assert config["r"] == 2 and config["rank_pattern"] == {"transformer.h.1.attn.c_attn": 4, "lm_head": 3}, config
assert config["alpha_pattern"] == {"transformer.h.1.attn.c_attn": 8, "lm_head": 3} and config["modules_to_save"] == ["transformer.ln_f"], config
found = read_safetensors(saved("several") / "adapter_model.safetensors")
assert found[PREFIX + "lm_head.lora_A.weight"].shape == (3, 32) and found[PREFIX + "transformer.ln_f.bias"].shape == (32,)
# The bias of a layer that has a pair: PEFT's bias="lora_only", in its names, both ways.
biased = compile(gpt / "model.onnx", ONE, "--params=*.c_attn.bias,transformer.ln_f.*", "--lr=0.01", name="biased.tide")
run(biased, gpt, "--steps=3", f"--save={scratch / 'biased'}")
config = json.loads((saved("biased") / "adapter_config.json").read_text())
assert config["bias"] == "lora_only" and config["modules_to_save"] == ["transformer.ln_f"], config
found, kept = (read_safetensors(saved("biased") / f"{n}.safetensors") for n in ("adapter_model", "params"))
for layer in (f"transformer.h.{i}.attn.c_attn" for i in (0, 1)):
    assert numpy.array_equal(found[f"{PREFIX}{layer}.base_layer.bias"], kept[f"{layer}.bias"]) and f"{PREFIX}{layer}.bias" not in found, list(found)
    assert not numpy.array_equal(kept[f"{layer}.bias"], weights[f"{layer}.bias"])
# Also where the step does not train it.
frozen = compile(gpt / "model.onnx", ONE, "--params=transformer.ln_f.*", name="frozen.tide")
evaluated = evaluate(biased, gpt, f"--resume={scratch / 'biased'}")
assert evaluate(biased, gpt, f"--init={saved('biased')}") == evaluated == evaluate(frozen, gpt, f"--init={saved('biased')}")
words = compile(gpt / "model.onnx", "--lora=transformer.wte:r=4", name="words.tide")
run(words, gpt, "--steps=3", f"--save={scratch / 'words'}")
found = read_safetensors(saved("words") / "adapter_model.safetensors")
assert found[PREFIX + "transformer.wte.lora_embedding_A"].any() and len(found) == 2, list(found)

# --- refused ---

step = compile(gpt / "model.onnx", ONE)
export = [f"--export={scratch / 'x.onnx'}", f"--model={gpt / 'model.onnx'}"]
assert "--merge-lora adds them to their weights" in run(step, gpt, "--steps=1", *export, code=1)[1]
assert "--merge-lora goes with --export" in run(step, gpt, "--steps=1", "--merge-lora", code=1)[1]
assert "something reads the weight 'transformer.wte.weight' without it" in run(words, gpt, "--steps=1", *export, "--merge-lora", code=3)[1]
assert "holds pairs that the artifact has no place for" in run(step, gpt, "--steps=1", f"--init={gpt / 'adapter'}", code=2)[1]
alone = scratch / "alone"
alone.mkdir()
shutil.copy(gpt / "adapter/adapter_model.safetensors", alone)
said = run(several, gpt, "--steps=1", f"--init={alone / 'adapter_model.safetensors'}", code=2)[1]
assert "c_attn.lora_A.weight' is float32[4, 32], the artifact has float32[2, 32]" in said, said
assert "adapter_config.json" in run(step, gpt, "--steps=1", f"--init={alone}", code=8)[1]
other = compile(gpt / "model.onnx", "--lora=*.c_attn,*.c_proj,*.c_fc:r=4,alpha=16")
said = run(other, gpt, "--steps=1", f"--init={gpt / 'adapter'}", code=2)[1]
assert "by 2, the artifact by 4: compile with --lora='…:r=4,alpha=8'" in said, said
base = compile(gpt / "model.onnx", name="base.tide")
assert "has no low-rank pairs to load into: compile with --lora" in run(base, gpt, "--steps=1", f"--init={gpt / 'adapter'}", code=1)[1]
assert "has magnitudes (use_dora), the artifact has none: compile with --lora='…,dora'" in run(
    compile(gpt / "model.onnx", DROP), gpt, "--steps=1", f"--init={models / 'dora-gpt2/adapter'}", code=2)[1]
assert "has no magnitudes (use_dora)" in run(decomposed, gpt, "--steps=1", f"--init={gpt / 'adapter'}", code=2)[1]
shutil.copytree(gpt / "adapter", scratch / "bad")
(scratch / "bad/adapter_config.json").write_text('{"peft_type": "IA3"}')
assert 'peft_type is "IA3"' in run(step, gpt, "--steps=1", f"--init={scratch / 'bad'}", code=2)[1]
whole = json.loads((gpt / "adapter/adapter_config.json").read_text())
few = compile(gpt / "model.onnx", "--lora=*.c_attn,*.c_proj,*.c_fc:r=4,alpha=8", name="few.tide")
for key, value, refusal in (
    ("init_lora_weights", "pissa_niter_4", 'init_lora_weights is "pissa_niter_4": these pairs belong to weights that PEFT changed'),
    ("init_lora_weights", "gaussian", ""), ("lora_bias", True, "lora_bias is set"), ("lora_bias", False, ""),
    ("alora_invocation_tokens", [5], "alora_invocation_tokens is set: such an adapter is more than pairs"),
    ("layer_replication", None, ""), ("trainable_token_indices", [], ""),
):  # fmt: skip
    (scratch / "bad/adapter_config.json").write_text(json.dumps(whole | {key: value}))
    said = run(few, gpt, "--steps=1", f"--init={scratch / 'bad'}", code=2 if refusal else 0)[1]
    assert refusal in said, (key, value, said)
assert "matches no layer" in compile(gpt / "model.onnx", "--lora=*.q_proj:r=4", code=1)
assert "matches no product: transformer.ln_f is read by" in compile(gpt / "model.onnx", "--lora=transformer.ln_f:r=1", code=1)
assert "is trained itself" in compile(gpt / "model.onnx", ONE, "--params=*.c_attn.weight", code=1)
said = call("lowtide", "check", gpt / "model.onnx", ONE, LOSS, "--batch=8")
assert "--lora trains low-rank pairs instead" in said
call("lowtide", "compile", gpt / "model.onnx", "-q", "--batch=8", LOSS, "--emit=nn", "-o", scratch / "nn.mlir")
assert "--lora applies before --from=nn" in call("lowtide", "compile", "--from=nn", scratch / "nn.mlir", ONE, "-o", scratch / "x.tide", code=1)
said = call("lowtide", "compile", gpt / "model.onnx", "--batch=8", LOSS, ONE, "--emit=onnx-model", "-o", scratch / "x.onnx", code=1)
assert "first values are drawn when a run begins" in said, said
# A checkpoint whose pairs were damaged is one that was damaged.
run(step, gpt, "--steps=1", f"--save={scratch / 'torn'}")
file = saved("torn") / "adapter_model.safetensors"
file.write_bytes(file.read_bytes()[:-4] + b"torn")
assert "digest does not match" in run(step, gpt, "--steps=1", f"--resume={saved('torn')}", code=2)[1]
