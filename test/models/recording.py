"""Train a module with PyTorch and write down what it computed: the format that tools/devkit/record.py reads."""

import copy
import json
import warnings

import numpy
import onnx
import torch

warnings.filterwarnings("ignore")
torch.set_num_threads(2)

OPTIMIZERS = {
    "sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
}  # fmt: skip
# Allowed deviation per precision: factor × worst deviation so far of four runs, plus a part of the loss itself.
BANDS = {"f32": (10, 2e-6), "bf16": (3, 1e-3), "f16": (3, 1e-3)}
NUDGES = (None, 1, 2, 3)


def batches(data, spec):
    rows, batch = len(next(iter(data.values()))), spec["batch"]
    for i in range(spec["steps"]):
        at = i % (rows // batch) * batch
        yield {k: torch.from_numpy(v[at : at + batch]) for k, v in data.items()}


def nudged(module, seed):
    """Every weight moved by about one unit in the last place of f32: how far may two right runs part?"""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(1 + 6e-8 * torch.randn(p.shape, generator=generator).to(p.dtype))


def run(module, spec, data, dtype=torch.float32, autocast=None, nudge=None, seed=None):
    """Losses, gradient norms, step-0 gradients and final parameters of one training run on a copy of `module`."""
    return run_with_buffers(module, spec, data, dtype, autocast, nudge, seed)[:4]


def run_with_buffers(module, spec, data, dtype=torch.float32, autocast=None, nudge=None, seed=None):
    """The same, and the buffers that the run changed: running statistics, counters, whatever the program assigns."""
    m = copy.deepcopy(module).to(dtype).train()
    if nudge is not None:
        nudged(m, nudge)
    if seed is not None:
        torch.manual_seed(seed)
    optimizer = OPTIMIZERS[spec["optimizer"]](m.parameters(), **spec["options"])
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0, enabled=autocast == torch.float16)
    losses, norms, first = [], [], None
    for feed in batches(data, spec):
        feed = {k: v.to(dtype) if v.is_floating_point() else v for k, v in feed.items()}
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
            loss = m(**feed)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        grads = {n: p.grad.clone() for n, p in m.named_parameters() if p.grad is not None}
        first = first or grads
        norms.append(float(torch.sqrt(sum((g.double() ** 2).sum() for g in grads.values()))))
        losses.append(float(loss.detach().double()))
        scaler.step(optimizer)
        scaler.update()
    saved, before = m.state_dict(), dict(module.named_buffers())
    buffers = {n: b.detach() for n, b in m.named_buffers() if n in saved and not torch.equal(b.to(before[n].dtype), before[n])}
    return losses, norms, first, {n: p.detach() for n, p in m.named_parameters()}, buffers


def count_saved_bytes(module, spec, data, autocast=None):
    """Bytes that the backward pass of the first step reads of its forward pass: storages that are neither batch nor parameter, each once."""
    m, feed, storages = copy.deepcopy(module).train(), next(batches(data, spec)), {}
    held = {t.untyped_storage().data_ptr() for t in (*m.parameters(), *m.buffers(), *feed.values())}

    def pack(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor  # kept alive, so that no address comes twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
            m(**feed)
    return sum(t.untyped_storage().nbytes() for address, t in storages.items() if address not in held)


def band(runs, truth, factor, relative):
    worst, out = 0.0, []
    for t, reference in enumerate(truth):
        worst = max([worst, *(abs(r[t] - reference) for r in runs)])
        out.append(factor * worst + relative * abs(reference))
    return out


def export(module, spec, data, path, how):
    """Write one ONNX file; `how` names the exporter and its settings."""
    feed = next(batches(data, spec))
    output = "loss"
    if "loss" in spec:  # the file ends at the logits
        module, output = module.body, spec["loss"]["logits"]
        del feed[spec["loss"]["labels"]]
    outputs = [output, how["also"]] if "also" in how else [output]
    m, names, args = copy.deepcopy(module).train(how.get("mode") != "eval"), list(feed), tuple(feed.values())
    if "also" in how:  # the file returns its logits beside the loss
        m.forward = m.both
    shared = dict(input_names=names, output_names=outputs)
    if how["exporter"] == "dynamo":
        batch = torch.export.Dim("batch", min=2)
        torch.onnx.export(
            m, args, str(path), dynamo=True, optimize=how.get("optimize", True), opset_version=how.get("opset"), verbose=False,
            dynamic_shapes=tuple({0: batch} for _ in names), external_data=False, **shared,
        )  # fmt: skip
    else:
        mode = torch.onnx.TrainingMode
        torch.onnx.export(
            m, args, str(path), dynamo=False, opset_version=how.get("opset", 17), do_constant_folding=how.get("fold", False),
            training=mode.EVAL if how.get("mode") == "eval" else mode.TRAINING, dynamic_axes={k: {0: "batch"} for k in names}, **shared,
        )  # fmt: skip
    return without_traces(path)


def without_traces(path):
    """Drop stack traces, which hold paths of the exporting machine; keep module paths and class names."""
    model = onnx.load(str(path))
    nodes = [*model.graph.node, *(n for f in model.functions for n in f.node)]
    for holder in [model.graph, *nodes, *model.functions]:
        keep = [p for p in holder.metadata_props if "stack_trace" not in p.key]
        del holder.metadata_props[:]
        holder.metadata_props.extend(keep)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return model


def record(folder, module, data, spec, exports, stochastic=False):
    """Write one folder. `stochastic`: losses depend on a seed; mean and spread of 16 seeds are recorded."""
    folder.mkdir(exist_ok=True)
    files = []
    for how in exports:
        model = export(module, spec, data, folder / how["file"], how)
        kinds = sorted({n.op_type for n in model.graph.node})
        files.append(dict(how, opset=model.opset_import[0].version, ir=model.ir_version, ops=len(model.graph.node), kinds=kinds))
    if not (folder / "data.npz").exists():
        numpy.savez_compressed(folder / "data.npz", **data)
    shapes = {k: [str(v.dtype), list(v.shape)] for k, v in data.items()}
    count = sum(p.numel() for p in module.parameters())
    write(folder / "train.json", dict(spec, parameters=count, data=shapes, torch=torch.__version__, files=files))
    if stochastic:
        runs = numpy.array([run(module, spec, data, seed=s)[0] for s in range(16)])
        loss = {"f32_mean": runs.mean(0).tolist(), "f32_std": runs.std(0, ddof=1).tolist(), "seeds": 16}
        write(folder / "expected.json", {"loss": loss})
        return
    truth, norms, grads, final, states = run_with_buffers(module, spec, data, torch.float64)
    loss, runs, saved = {"f64": truth}, {}, {}
    for key, autocast in (("f32", None), ("bf16", torch.bfloat16), ("f16", torch.float16)):
        try:
            runs[key] = [run_with_buffers(module, spec, data, autocast=autocast, nudge=n) for n in NUDGES]
        except RuntimeError:  # PyTorch's LSTM has no f16 on the CPU
            continue
        if spec.get("sums_stay_wide"):
            saved[key] = count_saved_bytes(module, spec, data, autocast)
        loss[key] = runs[key][0][0]
        loss[key + "_tolerance"] = band([r[0] for r in runs[key]], truth, *BANDS[key])
    f32 = runs["f32"]
    norm = {"f64": norms, "f32": f32[0][1], "f32_tolerance": band([r[1] for r in f32], norms, 10, 1e-5)}
    error = {n: float((f32[0][2][n].double() - g).abs().max() / g.abs().max().clamp_min(1e-300)) for n, g in grads.items()}
    moved = {n: float(10 * max((r[3][n].double() - p).abs().max() for r in f32) + 2e-6 * p.abs().max()) for n, p in final.items()}
    expected = {"loss": loss, "grad_norm": norm, "grad_step0_f32_error": error, "final_f32_tolerance": moved} | ({"saved_bytes": saved} if saved else {})
    expected |= dictionary_of(module, spec)
    if states:
        expected["state_f32_tolerance"] = state_tolerances(states, [r[4] for r in f32])
    write(folder / "expected.json", expected)
    arrays = {f"grad/{n}": v.float().numpy() for n, v in grads.items()} | {f"final/{n}": v.float().numpy() for n, v in final.items()}
    arrays |= {f"state/{n}": as_recorded(v) for n, v in states.items()}
    numpy.savez_compressed(folder / "expected.npz", **arrays)
    print(f"{folder.name}: {truth[0]:.4f} -> {truth[-1]:.4f}, {count} parameters")


def dictionary_of(module, spec):
    """What `load_state_dict(strict=True)` asks for: names, element types, shapes. A file may hold a part of the module."""
    listed = {n: [str(v.dtype).removeprefix("torch."), list(v.shape)] for n, v in module.state_dict().items()}
    return {"state_dict": listed} | ({"state_dict_prefix": "body."} if "loss" in spec else {})


def as_recorded(buffer):
    """Numbers as they are saved: counters are whole."""
    return (buffer.float() if buffer.is_floating_point() else buffer).numpy()


def state_tolerances(states, runs):
    """How far a run in f32 may leave what the program assigned; counters may not."""
    return {
        n: float(10 * max((r[n].double() - v).abs().max() for r in runs) + 2e-6 * v.abs().max()) if v.is_floating_point() else 0.0
        for n, v in states.items()
    }


def write(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")
