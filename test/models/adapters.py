"""Make the folders lora-* and dora-* again: adapters.py [<folder>...] (in the environment "peft", tools/devkit/requirements-peft.txt).

Each holds a small model of transformers as its exporter wrote it, the adapter that PEFT began with (adapter/), and the run
that PEFT made of both: losses, gradients of step 0, final adapters, and the weights that PEFT merged them into. Weights come
from seed 0 and need not be those of the committed files.
"""

import copy
import pathlib
import sys
import tempfile

import numpy
import peft
import safetensors.numpy
import torch
import transformers as t

import recording

HERE = pathlib.Path(__file__).resolve().parent
ADAMW = dict(optimizer="adamw", options=dict(lr=5e-3, betas=[0.9, 0.95], eps=1e-8, weight_decay=0.1))
PREFIX = "base_model.model."


def plain(name):
    """The name that the compiler gives a parameter of a PEFT model."""
    name = name.removeprefix(PREFIX).replace(".modules_to_save.default.", ".").replace(".default.", ".")
    return name.removesuffix(".default").replace(".lora_magnitude_vector.weight", ".lora_magnitude_vector")  # as PEFT's files have it


class Tuned(torch.nn.Module):
    """A PEFT model, its loss, and what it trains by the compiler's names."""

    def __init__(self, model, inputs):
        super().__init__()
        self.model, self.inputs = model, inputs

    def forward(self, **feed):
        labels = feed.pop("labels")
        logits = self.model(**feed).logits
        return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))

    def named_parameters(self, *arguments, **options):
        return [(plain(n), p) for n, p in self.model.named_parameters(*arguments, **options) if p.requires_grad]

    def parameters(self, *arguments, **options):
        return [p for _, p in self.named_parameters()]

    def named_buffers(self, *arguments, **options):
        return []


class Logits(torch.nn.Module):
    """What is exported: the module's own names, and its logits alone."""

    def __init__(self, model, inputs):
        super().__init__()
        self.__dict__["whole"], self.inputs = model, inputs
        for name, child in model.named_children():
            self.add_module(name, child)

    def forward(self, first):
        cache = {} if self.inputs[0] == "pixel_values" else {"use_cache": False}
        return self.whole(**{self.inputs[0]: first}, **cache).logits


def text(rows=64, length=12, vocabulary=64):
    g = numpy.random.default_rng(0)
    follow = g.permutation(vocabulary)
    x = numpy.zeros((rows, length + 1), numpy.int64)
    x[:, 0] = g.integers(0, vocabulary, rows)
    for i in range(length):
        x[:, i + 1] = numpy.where(g.random(rows) < 0.2, g.integers(0, vocabulary, rows), follow[x[:, i]])
    return {"input_ids": x[:, :-1].copy(), "labels": x[:, 1:].copy()}


def pictures(rows=64, size=16, classes=5):
    g = numpy.random.default_rng(0)
    labels = g.integers(0, classes, rows)
    means = g.standard_normal((classes, 3, size, size))
    return {"pixel_values": (means[labels] + g.standard_normal((rows, 3, size, size))).astype("f4"), "labels": labels}


def gpt2():
    sizes = dict(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = t.GPT2LMHeadModel(t.GPT2Config(**sizes, attn_implementation="eager"))
    config = dict(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)
    return model, text(), config, ["--lora=*.c_attn,*.c_proj,*.c_fc:r=4,alpha=8"]


def llama():
    sizes = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    model = t.LlamaForCausalLM(t.LlamaConfig(**sizes, max_position_embeddings=32, pad_token_id=0, attn_implementation="eager"))
    config = dict(r=4, lora_alpha=6, use_rslora=True, target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
                  modules_to_save=["lm_head"])  # fmt: skip
    return model, text(), config, ["--lora=*_proj:r=4,alpha=6,rslora", "--params=lm_head.weight"]


def vit():
    sizes = dict(image_size=16, patch_size=4, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, num_labels=5)
    model = t.ViTForImageClassification(t.ViTConfig(**sizes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager"))
    named = {n.rsplit(".", 1)[-1] for n, m in model.named_modules() if isinstance(m, torch.nn.Linear) and ".layer" in n}
    targets = sorted(n for n in named if n in ("query", "value", "q_proj", "v_proj")) + ["projection"]
    config = dict(r=4, lora_alpha=8, target_modules=targets, modules_to_save=["classifier"])
    return model, pictures(), config, ["--lora=" + ",".join("*." + n for n in targets) + ":r=4,alpha=8", "--params=classifier.*"]


def decomposed(make, *more):
    """The same with magnitudes (DoRA), of `more` layers."""
    model, data, config, (rule, *flags) = make()
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None  # the file would not tell of it, and its row is one of the data here
    names, options = rule.split(":")
    targets = config["target_modules"] + list(more)
    names = ",".join([names, *("*." + name for name in more)])
    return model, data, config | dict(use_dora=True, target_modules=targets), [f"{names}:{options},dora", *flags]


MODELS = {"lora-gpt2": gpt2, "lora-llama": llama, "lora-vit": vit}
MODELS |= {"dora-gpt2": lambda: decomposed(gpt2), "dora-llama": lambda: decomposed(llama, "embed_tokens"), "dora-vit": lambda: decomposed(vit)}


def settled(model):
    """Weights of an ordinary size: fresh ones are so small that a wrong product would hardly show."""
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(4.0) if p.dim() > 1 else p.add_(0.05 * torch.randn(p.shape))
    return model


def made(folder, make, target=None):
    """Writes the folder; returns the model as it was exported, and the trained one."""
    torch.manual_seed(0)
    model, data, config, flags = make()
    model = settled(model).eval()
    inputs = list(data)
    target = target or HERE / folder
    target.mkdir(exist_ok=True)
    if not (target / "data.npz").exists():
        numpy.savez_compressed(target / "data.npz", **data)
    spec = dict(batch=8, steps=20, **ADAMW, loss=dict(kind="cross_entropy", logits="logits", labels="labels"), flags=flags, init="adapter")
    feed = {k: torch.from_numpy(v[: spec["batch"]]) for k, v in data.items()}
    path = target / "model.onnx"
    batch = torch.export.Dim("batch", min=2)
    torch.onnx.export(
        Logits(model, inputs), (feed[inputs[0]],), str(path), dynamo=True, verbose=False, input_names=[inputs[0]], output_names=["logits"],
        dynamic_shapes=({0: batch},), external_data=False,
    )  # fmt: skip
    recording.without_traces(path)
    tuned = peft.get_peft_model(copy.deepcopy(model), peft.LoraConfig(**config))
    with tempfile.TemporaryDirectory() as scratch:
        tuned.save_pretrained(scratch, save_embedding_layers=False)
        keep(pathlib.Path(scratch), target / "adapter")
    shapes = {k: [str(v.dtype), list(v.shape)] for k, v in data.items()}
    module = Tuned(tuned, inputs)
    final = record(target, module, data, spec, shapes)
    with torch.no_grad():
        for name, p in module.named_parameters():
            p.copy_(final[name])
    return model, tuned


def keep(source, target):
    target.mkdir(exist_ok=True)
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        (target / name).write_bytes((source / name).read_bytes())


def record(target, module, data, spec, shapes):
    """As recording.record has it, of what is trained alone; and the weights after a merge."""
    truth, norms, grads, final, _ = recording.run_with_buffers(module, spec, data, torch.float64)
    runs = [recording.run_with_buffers(module, spec, data, nudge=n) for n in recording.NUDGES]
    narrow = [recording.run_with_buffers(module, spec, data, autocast=torch.bfloat16, nudge=n) for n in recording.NUDGES]
    loss = {"f64": truth, "f32": runs[0][0], "f32_tolerance": recording.band([r[0] for r in runs], truth, *recording.BANDS["f32"])}
    loss |= {"bf16": narrow[0][0], "bf16_tolerance": recording.band([r[0] for r in narrow], truth, *recording.BANDS["bf16"])}
    error = {n: float((runs[0][2][n].double() - g).abs().max() / g.abs().max().clamp_min(1e-300)) for n, g in grads.items()}
    moved = {n: float(10 * max((r[3][n].double() - p).abs().max() for r in runs) + 2e-6 * p.abs().max()) for n, p in final.items()}
    merged = merge(module, final)
    expected = {"loss": loss, "grad_norm": {"f64": norms}, "grad_step0_f32_error": error, "final_f32_tolerance": moved}
    recording.write(target / "expected.json", expected)
    arrays = {f"grad/{n}": v.float().numpy() for n, v in grads.items()} | {f"final/{n}": v.float().numpy() for n, v in final.items()}
    arrays |= {f"merged/{n}": v for n, v in merged.items()}
    numpy.savez_compressed(target / "expected.npz", **arrays)
    count = sum(p.numel() for p in module.parameters())
    recording.write(target / "train.json", dict(spec, parameters=count, data=shapes, torch=torch.__version__, peft=peft.__version__))
    print(f"{target.name}: {truth[0]:.4f} -> {truth[-1]:.4f}, {count} trained numbers", file=sys.stderr)
    return final


def merge(module, final):
    """Weights that differ from the base's once the final adapters are merged into them."""
    m = copy.deepcopy(module).double()
    before = {plain(n): p.detach().clone() for n, p in m.model.named_parameters()}
    with torch.no_grad():
        for name, p in m.named_parameters():
            p.copy_(final[name])
    after = m.model.merge_and_unload().state_dict()
    bases = {n: before.get(n, before.get(n.replace(".weight", ".base_layer.weight"))) for n in after}
    return {n: v.float().numpy() for n, v in after.items() if bases[n] is not None and not torch.equal(bases[n], v)}


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        made(name, MODELS[name])
