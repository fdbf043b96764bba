"""Every optimizer and schedule against torch.optim: torch_optimizers.py <folder of binaries> [--full]; in the environment of `tools/dev
setup --oracles`.

A step whose gradients are given (the loss is Σ w·g over three tensors) makes 20 updates, with groups, decay, a schedule, clipping
and two micro-batches, in f32 and in f64; parameters and state are PyTorch's. State crosses over after ten steps: PyTorch's
optimizer goes on from a checkpoint, and a run goes on from PyTorch's state. Schedules are those of torch.optim.lr_scheduler at
every step. Averages of the weights are those of torch.optim.swa_utils. Prints a list of {name, complaint}.
"""

import hashlib
import json
import math
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "test" / "Execute" / "Inputs"), str(ROOT / "test" / "EndToEnd" / "Inputs")]
import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import grad_scaler as recorded  # noqa: E402
from optimizers import DEFAULTS, PACKAGES, make_optimizer  # noqa: E402
from torch.optim import lr_scheduler, swa_utils  # noqa: E402

STEPS, HALF, CLIP, PARTS = 20, 10, 3.0, 2
# Per kind: options of all parameters, then of the bias alone, as flags have them; PyTorch's other defaults.
BETAS = dict(beta1=0.9, beta2=0.95)
KINDS = {
    "sgd": (dict(weight_decay=0.1, maximize=1.0), dict(weight_decay=0.0)),
    "momentum": (dict(momentum=0.8, weight_decay=0.1, nesterov=1.0), dict(weight_decay=0.0)),
    "adagrad": (dict(lr_decay=0.1, weight_decay=0.1), dict(weight_decay=0.0)),
    "adam": (dict(**BETAS, weight_decay=0.1, amsgrad=1.0), dict(weight_decay=0.0)),
    "adamw": (dict(**BETAS, weight_decay=0.1), dict(weight_decay=0.0, amsgrad=1.0)),
    "rmsprop": (dict(alpha=0.9, momentum=0.5, weight_decay=0.1), dict(weight_decay=0.0, centered=1.0, momentum=0.0)),
    "nadam": (dict(**BETAS, weight_decay=0.1, decoupled_weight_decay=1.0), dict(weight_decay=0.0, momentum_decay=0.1)),
    "radam": (dict(beta1=0.9, beta2=0.8, weight_decay=0.1), dict(weight_decay=0.1, decoupled_weight_decay=1.0)),
    "adamax": (dict(**BETAS, weight_decay=0.1), dict(weight_decay=0.0)),
    "adadelta": (dict(rho=0.8, weight_decay=0.1), dict(weight_decay=0.0)),
    "asgd": (dict(lambd=0.01, t0=5.0, weight_decay=0.1), dict(weight_decay=0.0)),
    "rprop": (dict(etaminus=0.5, etaplus=1.2), dict(step_size_max=0.1)),
    "lion": (dict(beta1=0.9, beta2=0.95, weight_decay=0.1), dict(weight_decay=0.0)),
    "lamb": (dict(**BETAS, eps=1e-6, weight_decay=0.1), dict(weight_decay=0.1, decoupled_weight_decay=1.0)),
    "adafactor": (dict(weight_decay=0.1, eps1=-1.0, eps2=1e-3, clip_threshold=1.0), dict(weight_decay=0.0)),
    "muon": (dict(weight_decay=0.1, momentum=0.9), dict(weight_decay=0.0)),
}
LISTS = {"betas": ("beta1", "beta2"), "etas": ("etaminus", "etaplus")}
SWITCHES = ("nesterov", "amsgrad", "maximize", "centered", "decoupled_weight_decay")
LR, LEAST = 0.05, 0.01
# What a rounding of f32 may become over 20 steps: of a parameter of about 1. Iterations of Muon are in bf16.
BANDS = {"f32": (2e-5, 2e-5), "f64": (1e-12, 1e-12)}
MUON_BAND = (0.0, STEPS * LR * 2.0**-6)


def tool(*command):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise ValueError(f"{pathlib.Path(command[0]).name} exit {done.returncode}: {done.stderr.strip()[-700:]}")


def gradients(dtype):
    """Layer -> [steps, parts, …]; rows of a batch are added up."""
    random = np.random.RandomState(5)
    return {name: torch.tensor(random.normal(size=(STEPS, PARTS, *shape)).astype(np.float32)).to(dtype) for name, shape in recorded.LAYERS.items()}


def scheduler(optimizer):
    """Half a cosine over the 20 steps, down to the same rate in every group."""
    return lr_scheduler.CosineAnnealingLR(optimizer, STEPS, LEAST)


class Torch:
    """The same run in PyTorch: one optimizer a layer, which is what groups are."""

    def __init__(self, kind, dtype):
        torch.set_default_dtype(dtype)
        own, bias = KINDS[kind]
        self.kind, self.rows = kind, gradients(dtype)
        self.params = {name: torch.nn.Parameter(torch.tensor(recorded.WEIGHTS[name], dtype=dtype).reshape(shape)) for name, shape in recorded.LAYERS.items()}
        self.options = {name: own | (bias if name == "b" else {}) for name in self.params}
        self.kinds = {name: "adamw" if kind == "muon" and name != "m" else kind for name in self.params}
        self.state = {name: {} for name in self.params}
        self.optimizers, self.schedules = {}, {}
        for name, param in self.params.items():
            # Packages' optimizers are functions: PyTorch's SGD stands there for the schedule.
            own = self.kinds[name]
            said = {option: value for option, value in self.options[name].items() if option in DEFAULTS[own] or option in SWITCHES}
            self.options[name] = DEFAULTS[own] | said
            rate = LR * self.factor(name)
            maker = torch.optim.SGD([param], lr=rate) if kind in PACKAGES else make_optimizer(own, param, rate, self.options[name])
            self.optimizers[name], self.schedules[name] = maker, scheduler(maker)

    def factor(self, name):
        return 0.5 if name == "b" else 1.0

    def step(self, number):
        for name, param in self.params.items():
            param.grad = self.rows[name][number, 0] + self.rows[name][number, 1]
        torch.nn.utils.clip_grad_norm_(self.params.values(), CLIP, foreach=False)
        for name, optimizer in self.optimizers.items():
            if self.kind in PACKAGES:
                with torch.no_grad():
                    PACKAGES[self.kind](self.params[name], self.state[name], optimizer.param_groups[0]["lr"], **self.options[name])
            else:
                optimizer.step()
            self.schedules[name].optimizer._opt_called = True
            self.schedules[name].step()

    def slots(self):
        """As a checkpoint names them, without PyTorch's step counts."""
        found = {}
        for name, optimizer in self.optimizers.items():
            state = self.state[name] if self.kind in PACKAGES else optimizer.state[self.params[name]]
            found |= {f"{name}.{slot}": value.clone() for slot, value in state.items() if slot != "step" and value is not None}
        return found

    def take(self, params, slots, steps):
        """State of a checkpoint, by load_state_dict of every optimizer; `steps` updates have been made."""
        for name, param in self.params.items():
            param.data.copy_(params[name])
            own = {slot.split(".", 1)[1]: value for slot, value in slots.items() if slot.startswith(name + ".")}
            if self.kind in PACKAGES:
                self.state[name] = own | {"step": steps}
                continue
            saved = self.optimizers[name].state_dict()
            saved["state"] = {0: own | ({} if self.kinds[name] in ("momentum", "sgd", "muon") else {"step": torch.tensor(float(steps))})}
            self.optimizers[name].load_state_dict(saved)
        for schedule in self.schedules.values():
            for _ in range(steps):
                schedule.optimizer._opt_called = True
                schedule.step()


def flags(kind):
    own, bias = KINDS[kind]
    own, said = dict(own), [f"--optimizer={kind}", f"--lr={LR}", "--schedule=cosine", f"--total-steps={STEPS}", f"--min-lr={LEAST}", f"--clip-norm={CLIP}"]
    for name, parts in LISTS.items():
        if parts[0] in own:
            said.append(f"--{name}=" + ",".join(repr(own.pop(part)) for part in parts))
    said += [f"--{k.replace('_', '-')}" + ("" if k in SWITCHES else f"={v!r}") for k, v in own.items()]
    group = "b:" + ",".join([f"lr={LR / 2}", *(f"{k}={v!r}" for k, v in bias.items())])
    return [*said, f"--group={group}", *(["--group=m:optimizer=muon"] if kind == "muon" else [])]


class Ours:
    def __init__(self, binaries, work, kind, *more):
        self.binaries, self.work = binaries, work
        dtype = np.float32
        np.savez(work / "data.npz", **{f"g_{n}": rows.numpy().astype(dtype).reshape(-1, *rows.shape[2:]) for n, rows in gradients(torch.float32).items()})
        model, self.artifact = work / "sum.onnx", work / "sum.tide"
        tool(binaries / "lowtide-translate", "--onnx-text-to-onnx", ROOT / "test/EndToEnd/Inputs/weighted_sum.onnxtxt", "-o", model)
        tool(binaries / "lowtide", "compile", model, "-o", self.artifact, f"--dim=batch={PARTS}", "--entries=train", "-q", *flags(kind), *more)

    def run(self, steps, *more):
        """The folder of the checkpoint after `steps` more updates."""
        tool(self.binaries / "lowtide-run", self.artifact, f"--data={self.work / 'data.npz'}", f"--steps={steps}", f"--save={self.work / 'saved'}", "--quiet", *more)
        folder = self.work / "saved"
        return folder / (folder / "latest").read_text().strip()


def read(folder):
    return load_file(folder / "params.safetensors"), load_file(folder / "optimizer.safetensors")


def difference(ours, theirs, band, what):
    relative, absolute = band
    for name, value in theirs.items():
        mine = ours.get(name)
        if mine is None or mine.numel() != value.numel():
            return f"{what}: '{name}' is {None if mine is None else tuple(mine.shape)}, PyTorch's {tuple(value.shape)}"
        mine = mine.reshape(value.shape)
        if not torch.allclose(mine.double(), value.double(), rtol=relative, atol=absolute):
            worst = (mine.double() - value.double()).abs().max().item()
            return f"{what}: '{name}' differs by {worst:.3g}: {mine.flatten()[:4].tolist()}, PyTorch's {value.flatten()[:4].tolist()}"
    return ""


def seal(folder):
    """The manifest of files that are not those that were written."""
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    for name, entry in manifest["files"].items():
        data = (folder / name).read_bytes()
        entry.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))


def compare(binaries, kind, precision, *more, crosses=True):
    """20 updates against PyTorch's; then state goes over at half of them, both ways."""
    dtype = {"f32": torch.float32, "f64": torch.float64}[precision]
    band = BANDS[precision]
    if kind == "muon":
        if precision == "f64":  # PyTorch iterates in bf16, a step in f64 does not
            torch.optim._muon._zeropower_via_newtonschulz = exact_iterations
        else:
            band = MUON_BAND
    theirs, half = Torch(kind, dtype), None
    for number in range(STEPS):
        if number == HALF:
            half = ({name: p.detach().clone() for name, p in theirs.params.items()}, theirs.slots())
        theirs.step(number)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        ours = Ours(binaries, work, kind, *more)
        params, slots = read(ours.run(HALF))
        again = Torch(kind, dtype)
        again.take(params, slots, HALF)
        for number in range(HALF, STEPS) if crosses else ():
            again.step(number)
        newest = work / "saved" / (work / "saved" / "latest").read_text().strip()
        if crosses:
            keep = work / "theirs"
            keep.mkdir()
            tool("cp", "-r", newest, keep / newest.name)
            (keep / "latest").write_text(newest.name + "\n")
            save_file({n: half[0][n].contiguous() for n in params}, keep / newest.name / "params.safetensors")
            save_file({n: half[1][n].reshape(slots[n].shape).to(slots[n].dtype).contiguous() for n in slots}, keep / newest.name / "optimizer.safetensors")
            seal(keep / newest.name)
        params, slots = read(ours.run(STEPS - HALF, f"--resume={work / 'saved'}"))
        wrong = difference(params, {n: p.detach() for n, p in theirs.params.items()}, band, "parameter") or difference(slots, theirs.slots(), band, "state")
        if set(slots) != set(theirs.slots()):
            wrong = wrong or f"state is {sorted(slots)}, PyTorch's {sorted(theirs.slots())}"
        if wrong or not crosses:
            return wrong
        wrong = difference(params, {n: p.detach() for n, p in again.params.items()}, band, "parameter after PyTorch went on")
        if wrong:
            return wrong
        params, _ = read(ours.run(STEPS - HALF, f"--resume={keep}", "--overwrite"))
        return difference(params, {n: p.detach() for n, p in theirs.params.items()}, band, "parameter after a run went on from PyTorch's state")


def compare_average(binaries, precision, decay, *more):
    """Averages of 20 updates, stopped half-way, against AveragedModel's. Of lerp's two forms a small decay takes the other."""
    dtype = {"f32": torch.float32, "f64": torch.float64}[precision]
    theirs = Torch("adamw", dtype)
    model = torch.nn.ParameterDict(theirs.params)
    averaged = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(decay))
    for number in range(STEPS):
        theirs.step(number)
        averaged.update_parameters(model)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        ours = Ours(binaries, work, "adamw", f"--ema={decay}", *more)
        ours.run(HALF)
        params, slots = read(ours.run(STEPS - HALF, f"--resume={work / 'saved'}", f"--export-ema={work / 'average.safetensors'}"))
        if slots["ema_updates"].item() != STEPS:
            return f"{slots['ema_updates']} updates were counted"
        wanted = {name: param.detach() for name, param in averaged.module.items()}
        wrong = difference(params, {n: p.detach() for n, p in theirs.params.items()}, BANDS[precision], "parameter")
        wrong = wrong or difference({name: slots[f"{name}.ema"] for name in params}, wanted, BANDS[precision], "average")
        return wrong or difference(load_file(work / "average.safetensors"), wanted, BANDS[precision], "exported average")


def exact_iterations(grad, coefficients, steps, eps):
    """torch.optim's Newton–Schulz iterations without the cast to bf16."""
    a, b, c = coefficients
    x = grad.T if grad.size(0) > grad.size(1) else grad
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if grad.size(0) > grad.size(1) else x


def inverse_sqrt(step, warmup, timescale):
    """transformers' get_inverse_sqrt_schedule."""
    if step < warmup:
        return float(step) / float(max(1, warmup))
    return 1.0 / math.sqrt((step + timescale - warmup) / timescale)


def wsd(step, warmup, stable, decay, least, curve):
    """transformers' get_wsd_schedule, its warm-up linear."""
    if step < warmup:
        return max(0.0, float(step) / float(max(1, warmup)) * (1.0 - least) + least)
    if step < warmup + stable:
        return 1.0
    if step >= warmup + stable + decay:
        return least
    done = float(step - warmup - stable) / float(max(1, decay))
    left = {"linear": 1.0 - done, "cosine": 0.5 * (1.0 + math.cos(math.pi * 0.5 * 2.0 * done)), "1-sqrt": 1.0 - math.sqrt(done)}[curve]
    return max(0.0, left * (1.0 - least) + least)


# Name -> (flags, steps, PyTorch's scheduler, whether its closed form is compared).
SCHEDULES = {
    "linear": (["--schedule=linear", "--total-steps=3000"], 4000, lambda o: lr_scheduler.LinearLR(o, 1.0, 0.0, 3000), True),
    "cosine": (["--schedule=cosine", "--total-steps=3000", "--min-lr=0.01"], 3000, lambda o: lr_scheduler.CosineAnnealingLR(o, 3000, 0.01), True),
    "polynomial": (["--schedule=polynomial", "--total-steps=3000", "--power=2.5"], 4000, lambda o: lr_scheduler.PolynomialLR(o, 3000, 2.5), True),
    "step": (["--schedule=step", "--step-size=300", "--gamma=0.7"], 4000, lambda o: lr_scheduler.StepLR(o, 300, 0.7), True),
    "multistep": (["--schedule=multistep", "--milestones=100,700,701,3000"], 4000, lambda o: lr_scheduler.MultiStepLR(o, [100, 700, 701, 3000], 0.1), True),
    "exponential": (["--schedule=exponential", "--gamma=0.999"], 4000, lambda o: lr_scheduler.ExponentialLR(o, 0.999), True),
    "cosine-restarts": (["--schedule=cosine-restarts", "--restart-steps=50", "--min-lr=0.002"], 4000,
                        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 50, 1, 0.002), False),
    "cosine-restarts twice": (["--schedule=cosine-restarts", "--restart-steps=50", "--restart-mult=2"], 4000,
                              lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 50, 2), False),
    "one-cycle": (["--schedule=one-cycle", "--total-steps=3000"], 3000,
                  lambda o: lr_scheduler.OneCycleLR(o, LR, total_steps=3000, cycle_momentum=False), False),
    "one-cycle linear": (["--schedule=one-cycle", "--total-steps=3000", "--pct-start=0.1", "--div-factor=10", "--final-div-factor=50", "--curve=linear"], 3000,
                         lambda o: lr_scheduler.OneCycleLR(o, LR, total_steps=3000, pct_start=0.1, div_factor=10, final_div_factor=50, anneal_strategy="linear", cycle_momentum=False), False),
    "inverse-sqrt": (["--schedule=inverse-sqrt", "--warmup-steps=100"], 4000, lambda o: lr_scheduler.LambdaLR(o, lambda s: inverse_sqrt(s, 100, 100)), False),
    "inverse-sqrt timescale": (["--schedule=inverse-sqrt", "--timescale=2000"], 4000, lambda o: lr_scheduler.LambdaLR(o, lambda s: inverse_sqrt(s, 0, 2000)), False),
    **{f"wsd {curve}": (["--schedule=wsd", "--warmup-steps=100", "--total-steps=3000", "--decay-steps=700", "--min-lr=0.005", f"--curve={curve}"], 4000,
                        lambda o, curve=curve: lr_scheduler.LambdaLR(o, lambda s: wsd(s, 100, 2200, 700, 0.005 / LR, curve)), False)
       for curve in ("cosine", "linear", "1-sqrt")},
    "warm-up, then steps": (["--schedule=step", "--step-size=300", "--gamma=0.7", "--warmup-steps=10"], 4000,
                            lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.LinearLR(o, 0.1, 1.0, 9), lr_scheduler.StepLR(o, 300, 0.7)], [10]), False),
    "warm-up, then a cosine": (["--schedule=cosine", "--total-steps=3000", "--warmup-steps=10"], 3000,
                               lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.LinearLR(o, 0.1, 1.0, 9), lr_scheduler.CosineAnnealingLR(o, 2990)], [10]), False),
}  # fmt: skip
# Closed forms round a few times; PyTorch's chained ones once more in every step.
CLOSED, CHAINED = 8 * 2.0**-52, 4000 * 2.0**-52


def compare_schedule(binaries, name):
    own, steps, make, is_closed = SCHEDULES[name]
    torch.set_default_dtype(torch.float64)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=LR)
    schedule = make(optimizer)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        model, artifact = work / "sum.onnx", work / "sum.tide"
        tool(binaries / "lowtide-translate", "--onnx-text-to-onnx", ROOT / "test/EndToEnd/Inputs/weighted_sum.onnxtxt", "-o", model)
        tool(binaries / "lowtide", "compile", model, "-o", artifact, "--dim=batch=1", "--entries=train", "-q", "--optimizer=sgd", f"--lr={LR}", *own)
        np.savez(work / "data.npz", **{f"g_{n}": np.full((1, *shape), 2.0**-10, np.float32) for n, shape in recorded.LAYERS.items()})
        tool(binaries / "lowtide-run", artifact, f"--data={work / 'data.npz'}", f"--steps={steps}", f"--log-jsonl={work / 'log.jsonl'}", "--quiet")
        rates = [row["lr"] for row in map(json.loads, (work / "log.jsonl").read_text().splitlines()) if "lr" in row]
        if len(rates) < steps:
            return f"{len(rates)} rates of {steps}"
        for step, ours in enumerate(rates[-steps:]):
            for theirs, allowed in ((optimizer.param_groups[0]["lr"], CHAINED), (schedule._get_closed_form_lr()[0] if is_closed else None, CLOSED)):
                # Near the end of a decay the part that is left has lost digits in PyTorch, too.
                if theirs is not None and abs(ours - float(theirs)) > allowed * max(abs(float(theirs)), LR * 2.0**-10):
                    return f"step {step}: {ours!r}, PyTorch's {float(theirs)!r}"
            optimizer.step()
            if step + 1 < steps:
                schedule.step()
    return ""


# Of groups: flags, PyTorch's scheduler after a warm-up of four steps.
GROUP_SCHEDULES = {
    "cosine": (["--schedule=cosine", f"--total-steps={STEPS}"], lambda o: lr_scheduler.CosineAnnealingLR(o, STEPS - 4, LEAST)),
    "cosine-restarts": (["--schedule=cosine-restarts", "--restart-steps=3", "--restart-mult=2"], lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 2, LEAST)),
    "linear": (["--schedule=linear", f"--total-steps={STEPS}"], lambda o: lr_scheduler.LinearLR(o, 1.0, LEAST / LR, STEPS - 4)),
}  # fmt: skip


def compare_group_rates(binaries, name, rate, *more):
    """A group whose rate begins elsewhere, after 20 steps in one optimizer of PyTorch, stopped half-way; its gradients are 1."""
    own, make = GROUP_SCHEDULES[name]
    torch.set_default_dtype(torch.float64)
    whole, group = (torch.nn.Parameter(torch.tensor([start])) for start in (recorded.WEIGHTS["w"][0], recorded.WEIGHTS["b"][0]))
    optimizer = torch.optim.SGD([{"params": [whole]}, {"params": [group], "lr": rate}], lr=LR)
    schedule = lr_scheduler.SequentialLR(optimizer, [lr_scheduler.LinearLR(optimizer, 0.25, 1.0, 3), make(optimizer)], [4])
    for _ in range(STEPS):
        whole.grad, group.grad = torch.ones(1), torch.ones(1)
        optimizer.step()
        schedule.step()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        ours = Ours(binaries, work, "sgd")
        np.savez(work / "data.npz", **{f"g_{n}": np.ones((STEPS, *shape), np.float32) for n, shape in recorded.LAYERS.items()})
        tool(binaries / "lowtide", "compile", work / "sum.onnx", "-o", ours.artifact, "--dim=batch=1", "--entries=train", "-q", "--optimizer=sgd", f"--lr={LR}",
             f"--min-lr={LEAST}", "--warmup-steps=4", f"--group=b:lr={rate}", "--target=reference", "--precision=f64", *own, *more)  # fmt: skip
        ours.run(HALF)
        params, _ = read(ours.run(STEPS - HALF, f"--resume={work / 'saved'}"))
    first = {n: params[n].flatten()[:1] for n in "wb"}
    return difference(first, {"w": whole.detach(), "b": group.detach()}, BANDS["f64"], "parameter")


# Of the targets other than the CPU; in full every kind.
SAMPLE = ("rmsprop", "lamb", "adafactor", "muon")
TARGETS = {"reference": ["--target=reference"], "cuda-emulated": ["--target=cuda-emulated"]}


def attempt(function, *arguments):
    try:
        return function(*arguments)
    except (ValueError, RuntimeError, KeyError) as error:
        return f"{type(error).__name__}: {error}"


def list_cases(full):
    """(name, function, arguments after the binaries)."""
    for kind in KINDS:
        yield f"{kind} f32", compare, (kind, "f32")
        yield f"{kind} f32 in parts", compare, (kind, "f32", f"--micro-batches={PARTS}")
        yield f"{kind} f64", compare, (kind, "f64", "--target=reference", "--precision=f64")
    for target, more in TARGETS.items():
        for kind in KINDS if full else SAMPLE:
            yield f"{kind} on {target}", compare, (kind, "f32", *more)
    for decay in (0.9, 0.3):
        yield f"average {decay} f32", compare_average, ("f32", decay)
        yield f"average {decay} f32 in parts", compare_average, ("f32", decay, f"--micro-batches={PARTS}")
        yield f"average {decay} f64", compare_average, ("f64", decay, "--target=reference", "--precision=f64")
        for target, more in TARGETS.items():
            yield f"average {decay} on {target}", compare_average, ("f32", decay, *more)
    for name in GROUP_SCHEDULES:
        for rate in (0.02, 0.005):
            yield f"group of rate {rate}: {name}", compare_group_rates, (name, rate)
        yield f"group of a rate: {name}, deferred", compare_group_rates, (name, 0.02, "--updates=deferred")
    for name in SCHEDULES:
        yield f"schedule {name}", compare_schedule, (name,)


if __name__ == "__main__":
    binaries, wanted = pathlib.Path(sys.argv[1]).resolve(), [a for a in sys.argv[2:] if not a.startswith("--")]
    torch.set_num_threads(1)
    rows = []
    for name, function, arguments in list_cases("--full" in sys.argv):
        if not wanted or any(part in name for part in wanted):
            rows.append({"name": name, "complaint": attempt(function, binaries, *arguments)})
    print(json.dumps(rows))
