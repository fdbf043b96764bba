"""A folder with a recorded training run: what to ask of the compiler, and how near a run must come.

    *.onnx         one graph, written by several exporters
    data.npz       rows; step i trains on rows (i mod (N / batch)) * batch ... of every array
    train.json     batch, steps, optimizer with its options, `loss` where the file ends at its logits; `flags` for the compiler,
                   `init`: what lowtide-run starts from; `mixes_samples`: the step cannot be taken in parts,
                   `sums_stay_wide`: autocast keeps much of what is saved in f32
    expected.json  losses per step with tolerances (f64 is the truth), error bounds for gradients and final parameters; the entries
                   of the module's state dictionary with types and shapes; where sums stay wide, bytes that PyTorch's backward pass
                   reads of its forward pass, by precision
    expected.npz   grad/<parameter> at step 0, final/<parameter> after the last step, and state/<buffer> then, of those that
                   the program changes: running statistics, counters

test/models/export.py writes such folders.
"""

import collections
import json
import math

import numpy

from devkit.tensors import onnx_inputs

# A gradient entry may be this many times PyTorch's own f32 error away from the f64 gradient, plus a floor.
GRADIENT_FACTOR, GRADIENT_FLOOR = 10.0, 2e-6
# The f64 run agrees with the f64 record to this, or to a tenth of the f32 tolerance: constants in the files are f32.
F64_RELATIVE, F64_OF_F32 = 1e-6, 0.1
# A run that depends on its seed: our mean over `SEEDS` lies within this many standard errors of the recorded mean.
SEEDS, STANDARD_ERRORS = 8, 3.0
# Parts of all that the recorded losses change, by which a run may be off that stores with loss: of one loss, and of the mean of the
# last quarter (docs/measurements: int8 moments cost about a thousandth of it, fp8 a hundredth). A run of few steps changes
# little: a loss may be off by a part of itself, too. Parameters that are rounded up or down by chance move it by their last place,
# which is 2^-8 of them.
LOSSY_STEP, LOSSY_MEAN, LOSSY_SHORT = 0.1, 0.03, 0.01

# Precisions with values of 16 bits, as the files and the compiler's text name them. PyTorch could not run every model
# in every one of them: then no band is recorded.
NARROW = ("bf16", "f16")

OPTION_FLAGS = {"lr": "--lr", "eps": "--eps", "weight_decay": "--weight-decay", "momentum": "--momentum"}


class Record:
    """One folder, read once."""

    def __init__(self, folder):
        self.folder = folder
        self.train = json.loads((folder / "train.json").read_text())
        self.expected = json.loads((folder / "expected.json").read_text())
        self.batch, self.steps = self.train["batch"], self.train["steps"]
        with numpy.load(folder / "data.npz") as data:
            self.shapes = {name: data[name].shape for name in data.files}
        arrays = folder / "expected.npz"
        self.tensors = dict(numpy.load(arrays)) if arrays.exists() else {}

    @property
    def stochastic(self):
        """True when the model draws random numbers, so that only mean and spread over seeds are recorded."""
        return "f32_mean" in self.expected["loss"]

    @property
    def mixes_samples(self):
        """Whether no part of the batch can be computed for itself: edges that name nodes of all graphs in it, say."""
        return self.train.get("mixes_samples", False)

    def files(self, model):
        """What is recorded of the file itself: exporter, operator set, kinds of operators."""
        return [f for f in self.train.get("files", []) if f["file"] == model.name]

    def kinds(self, model):
        """The operators of the file; empty where they are not recorded."""
        return {kind for f in self.files(model) for kind in f.get("kinds", [])}

    def moved_states(self, model):
        """Whether the file begins with other running statistics than the module: the old exporter runs it in training form first."""
        return any(f.get("exporter") == "torchscript" and f.get("mode") != "eval" for f in self.files(model))

    def holds_dictionary(self, model):
        """Whether the file tells the names of all that the module saves: the old exporter writes one name of a tie."""
        return any(f.get("exporter") == "dynamo" and not f.get("partial") for f in self.files(model))

    def saved_by_pytorch(self, narrow):
        """What PyTorch's autocast saves for the backward pass, in bytes and as a part of f32's; None where it is not recorded."""
        saved = self.expected.get("saved_bytes", {})
        return (saved[narrow], saved[narrow] / saved["f32"]) if narrow in saved else None

    def compiler_flags(self, model, more=()):
        """Optimizer, added loss and the dimensions that the file leaves open; then `more`, which wins where both speak. Another
        optimizer has options of its own."""
        said = {flag.split("=", 1)[0] for flag in more if not flag.startswith(("--dim", "--shape"))}
        own = [*([] if "--optimizer" in said else self.optimizer_flags()), *self.model_flags(model)]
        return [flag for flag in own if flag.split("=", 1)[0] not in said] + list(more)

    def optimizer_flags(self):
        """The recorded optimizer and its options."""
        flags = [f"--optimizer={self.train['optimizer']}"]
        for key, value in self.train["options"].items():
            if key == "betas":
                flags.append("--betas=" + ",".join(map(repr, value)))
            elif key == "nesterov":
                flags += ["--nesterov"] if value else []
            elif key in OPTION_FLAGS:
                flags.append(f"{OPTION_FLAGS[key]}={value!r}")
            elif value:  # PyTorch's other options are off unless they say something
                raise ValueError(f"train.json: optimizer option '{key}' = {value!r} has no flag")
        return flags

    def model_flags(self, model):
        """What the file leaves open: a loss, dimensions, what is trained."""
        flags = []
        loss = self.train.get("loss")
        if loss:
            labels = loss.get("labels", loss.get("targets"))
            flags.append(f"--loss={loss['kind']}({loss.get('logits', loss.get('predictions'))}, {labels})")
        return flags + self.train.get("flags", []) + self.dimension_flags(model)

    def run_flags(self):
        """What the run starts from, where that is not in the file."""
        return [f"--init={self.folder / self.train['init']}"] if "init" in self.train else []

    def dimension_flags(self, model):
        """What the file leaves open, of one batch."""
        return bind_dimensions(model, {name: (self.batch, *shape[1:]) for name, shape in self.shapes.items()})

    def loss_bounds(self, precision):
        """Per step: the recorded loss and how far a run in `precision` may lie from it."""
        loss = self.expected["loss"]
        if self.stochastic:
            # The difference of two means of independent samples: their variances add.
            spread = math.sqrt(1 / loss["seeds"] + 1 / SEEDS)
            return loss["f32_mean"], [STANDARD_ERRORS * s * spread for s in loss["f32_std"]]
        if precision == "f64":
            bounds = [max(F64_RELATIVE * abs(v), F64_OF_F32 * t) for v, t in zip(loss["f64"], loss["f32_tolerance"])]
            return loss["f64"], bounds
        # One band for 16-bit activations with f32 parameters (PyTorch's autocast) and for 16-bit parameters.
        recorded = precision.removeprefix("mixed-")
        if recorded + "_tolerance" not in loss:
            if recorded in NARROW:
                return loss["f64"], None
            raise ValueError(f"expected.json holds no {recorded} tolerance")
        return loss["f64"], loss[recorded + "_tolerance"]


def states_of(tensors):
    """What the record holds of buffers that the run changes, by name."""
    return {name.removeprefix("state/"): value for name, value in tensors.items() if name.startswith("state/")}


def find_state(saved, name):
    """The saved tensor of that name; a file that holds a part of the module has a part of the name. None: there is none."""
    if name in saved:
        return saved[name]
    found = [value for other, value in saved.items() if name.endswith("." + other) or other.endswith("." + name)]
    return found[0] if len(found) == 1 else None


def worst_loss(ours, truth, bounds):
    """(largest |ours - truth| / bound, its step); infinite when a loss is missing or not finite."""
    if len(ours) != len(truth):
        return math.inf, len(ours)
    ratios = [abs(a - b) / t if math.isfinite(a) else math.inf for a, b, t in zip(ours, truth, bounds)]
    at = max(range(len(ratios)), key=ratios.__getitem__)
    return ratios[at], at


def bind_dimensions(model, shapes):
    """Flags for dimensions that a file leaves open: symbolic ones by name, anonymous ones by the shape of their input in `shapes`."""
    named, shaped = {}, {}
    for name, dims in onnx_inputs(model).items():
        # What is missing the compiler or the runtime says in better words.
        for dim, size in zip(dims, shapes.get(name, ())):
            if isinstance(dim, str):
                named[dim] = size
            elif dim is None:
                shaped[name] = shapes[name]
    return [f"--dim={n}={s}" for n, s in named.items()] + [f"--shape={n}={'x'.join(map(str, s))}" for n, s in shaped.items()]


def widen_for_lossy(truth, bounds):
    """Bounds of a run that stores state or parameters with loss: the first two losses know nothing of it, later ones may be off by a
    part of all that the recorded run changed."""
    change = max(truth) - min(truth)
    return [
        bound if step < 2 else max(bound, LOSSY_STEP * change, LOSSY_SHORT * abs(loss)) for step, (bound, loss) in enumerate(zip(bounds, truth))
    ]


def lossy_mean(ours, truth, bounds):
    """|mean of ours - mean of the record| / allowed, over the last quarter of a run that stores with loss: single losses scatter. `bounds`:
    of a run that does not."""
    last = max(len(truth) // 4, 1)
    allowed = max(sum(bounds[-last:]) / last, LOSSY_MEAN * (max(truth) - min(truth)), LOSSY_SHORT * abs(sum(truth[-last:])) / last)
    return abs(sum(ours[-last:]) - sum(truth[-last:])) / last / allowed


def inner_name(name):
    """`fc.bias` of `b.fc.bias` and of `back/fc.bias`; empty where a name has no part in front of a layer's."""
    parts = name.replace("/", ".").split(".")
    return ".".join(parts[1:]) if len(parts) > 2 else ""


def pair_names(ours, recorded):
    """Recorded name -> our name, and the names on both sides that found no partner.

    The record uses the names of the whole module; a file may hold a part of it (`0.weight` for `body.0.weight`), and of
    two names of one tied parameter each side keeps one. What stays is paired by shape when that is unambiguous.
    """
    pairs = {name: name for name in recorded if name in ours}
    for joined in (lambda r, o: r.endswith("." + o), lambda r, o: o.endswith("." + r)):
        left = [o for o in ours if o not in pairs.values()]
        for name in [r for r in recorded if r not in pairs]:
            found = [o for o in left if joined(name, o) and ours[o].shape == recorded[name].shape]
            # `d1.time.weight` is nearer to `body.d1.time.weight` than `time.weight` is.
            nearest = min((abs(len(o) - len(name)) for o in found), default=0)
            found = [o for o in found if abs(len(o) - len(name)) == nearest]
            if len(found) == 1:
                pairs[name] = found[0]
    # A merge of several files calls their modules otherwise (`back/fc.bias` for `b.fc.bias`): the rest of the name tells.
    left = [o for o in ours if o not in pairs.values()]
    missing = [r for r in recorded if r not in pairs]
    tails = lambda names: collections.Counter(inner_name(n) for n in names)  # noqa: E731
    ours_by, recorded_by = tails(left), tails(missing)
    for name in missing:
        found = [o for o in left if inner_name(o) == inner_name(name) and ours[o].shape == recorded[name].shape]
        if inner_name(name) and len(found) == ours_by[inner_name(name)] == recorded_by[inner_name(name)] == 1:
            pairs[name] = found[0]
    # Then also by shape but for dimensions of one, which an exporter put around a parameter that it evaluated.
    for form in (lambda a: a.shape, lambda a: tuple(d for d in a.shape if d != 1)):
        left = [o for o in ours if o not in pairs.values()]
        missing = [r for r in recorded if r not in pairs]
        for name in missing:
            shape = form(recorded[name])
            found = [o for o in left if form(ours[o]) == shape]
            if len(found) == 1 and sum(form(recorded[m]) == shape for m in missing) == 1:
                pairs[name] = found[0]
    taken = set(pairs.values())
    return pairs, [r for r in recorded if r not in pairs], [o for o in ours if o not in taken]


def join_pieces(ours, recorded):
    """Ours, with the parts of one parameter that a file holds each by itself (`w@select`, `w@select_1`) put together.

    The file does not say along which dimension they were taken: it is the one along which they agree best.
    """
    joined = dict(ours)
    for name in [r for r in recorded if r not in ours]:
        parts = sorted((o for o in ours if o.startswith(name + "@")), key=lambda o: (len(o), o))
        truth, wholes = recorded[name], []
        for axis in range(truth.ndim if len(parts) > 1 else 0):
            around = truth.shape[:axis], truth.shape[axis + 1 :]
            if all(ours[o].size % max(math.prod(around[0] + around[1]), 1) == 0 for o in parts):
                wholes.append(numpy.concatenate([ours[o].reshape(*around[0], -1, *around[1]) for o in parts], axis))
        if wholes:
            distance = lambda whole: numpy.abs(whole - truth).max() if whole.shape == truth.shape else math.inf  # noqa: E731
            joined = {o: v for o, v in joined.items() if o not in parts}
            joined[name] = min(wholes, key=distance)
    return joined


def overlap(truth, value, read):
    """The entries that both hold, where an exporter folded an unsqueeze or a constant gather into a parameter.

    A position table of which a file uses some rows holds only these; the others have no gradient. So it is with a table
    of relative positions, of which the file holds the rows that some pair of positions reads: `read`, those with a
    gradient.
    """
    if read is not None and len(value) == 1 and value.ndim == truth.ndim + 1:
        value = value[0]
    if read is not None and truth.shape[1:] == value.shape[1:] and len(value) == int(read.sum()) < len(truth):
        return truth[read], value
    full, part = ([d for d in array.shape if d != 1] for array in (truth, value))
    if truth.shape == value.shape or len(full) != len(part) or any(p > f for p, f in zip(part, full)):
        return truth, value
    return truth.reshape(full)[tuple(slice(p) for p in part)], value.reshape(part)


def rows_read(gradient):
    """Which rows of a table have a gradient; None where all or none have, or where there are no rows."""
    read = gradient.reshape(len(gradient), -1).any(1) if gradient.ndim > 1 else None
    return read if read is not None and 0 < read.sum() < len(read) else None


def compare(ours, recorded, bound, relative, gradients, differs=None):
    """(worst error / bound, its parameter, complaints) of our tensors against the recorded ones.

    `bound(name)` is the allowed error; `relative`: counted in units of the tensor's largest entry; `gradients`: recorded.
    `differs`: takes the names of tensors that one side lacks or that have other shapes as True, and of others beyond their bound as False.
    """
    differs = {} if differs is None else differs
    ours = join_pieces(ours, recorded)
    # The program does not use what has no gradient: nothing of it need be in the file.
    recorded = {name: value for name, value in recorded.items() if name in gradients or name in ours}
    pairs, missing, extra = pair_names(ours, recorded)
    # PyTorch has no gradient of a parameter that the loss does not depend on; ours is zero, and updates nothing.
    if relative:
        extra = [name for name in extra if ours[name].any()]
    complaints = []
    differs.update(dict.fromkeys([*missing, *extra], True))
    if missing:
        complaints.append(f"no {', '.join(missing[:3])}" + (f" and {len(missing) - 3} more" if len(missing) > 3 else ""))
    if extra:
        complaints.append(f"not in the record: {', '.join(extra[:3])}" + (f" and {len(extra) - 3} more" if len(extra) > 3 else ""))
    worst, where = 0.0, ""
    for name, mine in pairs.items():
        truth, value = recorded[name].astype("f8"), ours[mine].astype("f8")
        truth, value = overlap(truth, value, rows_read(gradients[name]) if name in gradients else None)
        if truth.shape != value.shape:
            complaints.append(f"{name} is {value.shape}, recorded {truth.shape}")
            differs[name] = True
            continue
        error = float(numpy.abs(value - truth).max(initial=0.0))
        if relative:
            error /= max(float(numpy.abs(truth).max(initial=0.0)), 1e-300)
        allowed = bound(name)
        ratio = error / allowed if math.isfinite(error) and allowed else math.inf if error else 0.0
        if ratio > 1:
            differs.setdefault(name, False)
        if ratio >= worst:
            worst, where = ratio, name
    return worst, where, complaints
