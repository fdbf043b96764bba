"""Write the record of a PyTorch module that `lowtide verify --against=module.py:make` compares with (docs/verify.md).

Runs in the user's Python, which needs torch and numpy. One argument: the request as JSON. Exit codes are those of the
tools: 1 usage, 2 the module is not what it should be, 8 a file cannot be read or written.
"""

import importlib.util
import inspect
import json
import pathlib
import re
import sys
import traceback

USAGE, BAD_INPUT, IO = 1, 2, 8
RETURNS = "return module, loss, batch: a torch.nn.Module; None where it returns its loss, or a function of (output, *targets); its arrays by name, or a tuple"


class Fault(Exception):
    """What is wrong, what to do, and the exit code."""

    def __init__(self, code, message, note=""):
        super().__init__(message)
        self.code, self.note = code, note


def load_function(path, name):
    """The function `name` of a Python file; its folder can be imported from."""
    file = pathlib.Path(path)
    sys.path.insert(0, str(file.resolve().parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    code = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = code
    try:
        spec.loader.exec_module(code)
    except Exception as error:
        traceback.print_exc()
        raise Fault(BAD_INPUT, f"{path} cannot be run: {type(error).__name__}: {error}") from None
    if not callable(function := getattr(code, name, None)):
        known = [n for n, v in vars(code).items() if inspect.isfunction(v) and v.__module__ == code.__name__]
        raise Fault(BAD_INPUT, f"{path} has no function '{name}'", f"it has: {', '.join(known) or 'none'}; it should {RETURNS}")
    return function


def call(function, what):
    """What a function of the user returns; its own traceback, and then ours."""
    try:
        return function()
    except Exception as error:
        traceback.print_exc()
        raise Fault(BAD_INPUT, f"{what} raised {type(error).__name__}: {error}") from None


def check(made, what, torch):
    if not isinstance(made, tuple) or len(made) != 3:
        raise Fault(BAD_INPUT, f"{what} returned {describe(made)}", f"it should {RETURNS}")
    module, loss, batch = made
    if not isinstance(module, torch.nn.Module):
        raise Fault(BAD_INPUT, f"{what} returned {describe(module)} as its module", f"it should {RETURNS}")
    if loss is not None and not callable(loss):
        raise Fault(BAD_INPUT, f"{what} returned {describe(loss)} as its loss", f"it should {RETURNS}")
    if not isinstance(batch, (dict, tuple, list)) or not batch:
        raise Fault(BAD_INPUT, f"{what} returned {describe(batch)} as its batch", f"it should {RETURNS}")
    return made


def describe(value):
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else f"a {type(value).__name__}" if value is not None else "None"


def target_names(request):
    """What the flag --loss reads besides outputs of the file: `labels` of cross_entropy(logits, labels)."""
    known = {*request["inputs"], *request["outputs"]}
    second = [m.strip("'\" ") for m in re.findall(r"\w+\(\s*[^,()]+,\s*([^,()=]+?)\s*[,)]", request["loss"])]
    return [name for name in dict.fromkeys(second) if name not in known]


def name_batch(batch, request, what):
    """The batch as a dictionary whose names are those that the step reads."""
    names = request["inputs"] + target_names(request)
    if isinstance(batch, dict):
        if unknown := [name for name in batch if name not in names]:
            note = f"the step reads {', '.join(names)}: name the arrays so, or return a tuple in this order"
            raise Fault(BAD_INPUT, f"{what}: the batch has '{unknown[0]}', which is no input of the model file", note)
        if missing := [name for name in names if name not in batch]:
            raise Fault(BAD_INPUT, f"{what}: the batch has no '{missing[0]}'", f"the step reads {', '.join(names)}")
        return dict(batch)
    if len(batch) != len(names):
        note = "" if request["loss"] else "; if the model file ends at its outputs, --loss names their targets"
        raise Fault(BAD_INPUT, f"{what}: the batch is {len(batch)} arrays", f"the step reads {len(names)}: {', '.join(names)}{note}")
    return dict(zip(names, batch))


def split_batch(module, loss, batch, keyed):
    """(arguments by position, arguments by name, targets): what the module reads, and what the loss does."""
    if loss is None:
        return ([], batch, []) if keyed else (list(batch.values()), {}, [])
    kinds = inspect.Parameter
    parameters = inspect.signature(module.forward).parameters
    if keyed and any(name in batch for name in parameters):
        return [], {n: v for n, v in batch.items() if n in parameters}, [v for n, v in batch.items() if n not in parameters]
    needed = [p for p in parameters.values() if p.default is kinds.empty and p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    values = list(batch.values())
    count = min(max(len(needed), 1), len(values) - 1) or len(values)
    return values[:count], {}, values[count:]


# Functions that drop by themselves, and which of their arguments is the rate, `dropout_p`.
RATES = {"scaled_dot_product_attention": 4, "multi_head_attention_forward": 10}


def make_exact(torch):
    """A mode without dropout in which 32 and 16 bits are 64: the numbers of the program, not of its rounding."""
    from torch.overrides import TorchFunctionMode

    narrow = {torch.float32: torch.float64, torch.float16: torch.float64, torch.bfloat16: torch.float64}
    casts = {torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16}

    def widen(value):
        if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
            return type(value)(map(widen, value))
        return narrow.get(value, value) if isinstance(value, torch.dtype) else value

    class Exact(TorchFunctionMode):
        rounds = False  # the program itself rounds to 16 bits somewhere

        def __torch_function__(self, function, types, args=(), kwargs=None):
            halves = {torch.float16, torch.bfloat16}
            given = [value for value in (*args, *(kwargs or {}).values()) if isinstance(value, torch.dtype)]
            self.rounds |= function in casts - {torch.Tensor.float} or bool(halves & set(given)) or torch.is_autocast_enabled("cpu")
            kwargs = {key: widen(value) for key, value in (kwargs or {}).items()}
            args, name = list(widen(tuple(args))), getattr(function, "__name__", "")
            if function in casts:
                return args[0].double()
            if "dropout" in name and name.rstrip("_") != "native_dropout" and args:
                return args[0]
            if (at := RATES.get(name)) is not None:
                args = args[:at] + [0.0] + args[at + 1 :] if len(args) > at else args
                kwargs = dict(kwargs, dropout_p=0.0) if len(args) <= at else kwargs
            return function(*args, **kwargs)

    return Exact()


def without_dropout(module, torch):
    """Sets the rates that modules hand to operators which draw by themselves."""
    for part in module.modules():
        if isinstance(part, (torch.nn.RNNBase, torch.nn.MultiheadAttention)):
            part.dropout = 0.0
        elif "Dropout" in type(part).__name__ and isinstance(getattr(part, "p", None), float):
            part.p = 0.0


def widen_attributes(module, torch):
    """Tensors that modules hold as plain attributes, also in lists and dictionaries, in f64: `double` leaves them as they are."""

    def wide(value):
        if isinstance(value, torch.Tensor):
            return value.double() if value.is_floating_point() and not isinstance(value, torch.nn.Parameter) else value
        if type(value) not in (list, tuple, dict):
            return value
        parts = [wide(part) for part in (value.values() if type(value) is dict else value)]
        if all(new is old for new, old in zip(parts, value.values() if type(value) is dict else value)):
            return value  # modules may share it
        return dict(zip(value, parts)) if type(value) is dict else type(value)(parts)

    for part in module.modules():
        vars(part).update({name: wide(value) for name, value in vars(part).items() if not name.startswith("_")})


OPTIMIZERS = {
    "sgd": "SGD", "momentum": "SGD", "adagrad": "Adagrad", "adam": "Adam", "adamw": "AdamW", "rmsprop": "RMSprop", "nadam": "NAdam",
    "radam": "RAdam", "adamax": "Adamax", "adadelta": "Adadelta", "asgd": "ASGD", "rprop": "Rprop", "adafactor": "Adafactor",
}  # fmt: skip


def make_optimizer(request, module, torch):
    kind, options = request["optimizer"], dict(request["options"])
    if kind == "momentum":
        options.setdefault("momentum", 0.9)
    if kind not in OPTIMIZERS:
        raise Fault(USAGE, f"--optimizer={kind}: PyTorch has no such update rule of all parameters")
    for name in ("nesterov", "amsgrad", "maximize", "centered", "decoupled_weight_decay"):
        if name in options:
            options[name] = bool(options[name])
    if kind == "adafactor":
        eps1 = options.pop("eps1", -1)
        options["eps"] = (None if eps1 < 0 else eps1, options.pop("eps2", 1e-3))
        if "clip_threshold" in options:
            options["d"] = options.pop("clip_threshold")
    try:
        return getattr(torch.optim, OPTIMIZERS[kind])(module.parameters(), **options)
    except (TypeError, ValueError) as error:
        raise Fault(USAGE, f"--optimizer={kind}: {error}") from None


def first_tensor(value, torch):
    """The tensor that a module returns, the first of several; None: it returns none."""
    if isinstance(value, torch.Tensor):
        return value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return next((found for part in parts if (found := first_tensor(part, torch)) is not None), None)


class Outputs:
    """What modules return in one step; a module that is called twice has no one output."""

    def __init__(self, module, torch):
        self.found, self.torch, self.several = {}, torch, set()
        self.hooks = [part.register_forward_hook(self.keep(name)) for name, part in module.named_modules() if name]

    def keep(self, name):
        def hook(_, __, output):
            tensor = first_tensor(output, self.torch)
            self.several |= {name} & self.found.keys()
            if tensor is not None and tensor.is_floating_point():
                self.found[name] = tensor.detach().clone()

        return hook

    def close(self):
        for hook in self.hooks:
            hook.remove()
        return {name: value for name, value in self.found.items() if name not in self.several}


def loss_of(module, loss, split, torch):
    args, named, targets = split
    output = module(*args, **named)
    if loss is not None:
        return loss(output, *targets)
    if isinstance(output, torch.Tensor):
        return output
    value = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    return first_tensor(output, torch) if value is None else value


def run(request, torch):
    """Arrays of the record, by name."""
    what = f"{request['module']}:{request['function']}"
    made = call(load_function(request["module"], request["function"]), what + "()")
    module, loss, batch = check(made, what + "()", torch)
    keyed, batch = isinstance(batch, dict), name_batch(batch, request, what + "()")
    torch.set_default_dtype(torch.float64)
    module = module.cpu().double()
    widen_attributes(module, torch)
    if isinstance(loss, torch.nn.Module):
        loss = loss.cpu().double()
        widen_attributes(loss, torch)
    without_dropout(module, torch)
    batch = {name: torch.as_tensor(value).detach().cpu() for name, value in batch.items()}
    batch = {name: value.double() if value.is_floating_point() else value for name, value in batch.items()}
    split = split_batch(module, loss, batch, keyed)
    copy = lambda value: value.detach().cpu().clone()  # noqa: E731
    # What no checkpoint holds counts where a step changes it.
    saved, before = module.state_dict().keys(), {name: copy(b) for name, b in module.named_buffers()}
    record = {"input/" + name: value for name, value in batch.items()}
    record |= {"parameter/" + name: copy(p) for name, p in module.named_parameters()}
    optimizer, losses, outputs = make_optimizer(request, module, torch), [], Outputs(module, torch)
    for step in range(request["steps"]):
        optimizer.zero_grad(set_to_none=True)
        random, exact = torch.get_rng_state(), make_exact(torch)
        with exact:
            value = call(lambda: loss_of(module, loss, split, torch), f"{what}: step {step} of the module")
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            shape = f"a tensor of shape {list(value.shape)}" if isinstance(value, torch.Tensor) else describe(value)
            raise Fault(BAD_INPUT, f"{what}: the loss is {shape}", f"one number is expected; {what}() should {RETURNS}")
        if not value.requires_grad:
            raise Fault(BAD_INPUT, f"{what}: the loss does not depend on a parameter that is trained")
        call(lambda: value.backward(), f"{what}: step {step} of the module, backwards,")
        if step == 0 and not torch.equal(random, torch.get_rng_state()):
            say("warning", f"{what}: the module draws random numbers other than those of dropout; the record holds one draw of them")
        if step == 0 and exact.rounds:
            say("warning", f"{what}: the module rounds to 16 bits in places (autocast, casts), and the record does not: --tolerance=0.05, say, allows for it")
        if request["clip_norm"]:
            torch.nn.utils.clip_grad_norm_(module.parameters(), request["clip_norm"])
        if request["clip_value"]:
            torch.nn.utils.clip_grad_value_(module.parameters(), request["clip_value"])
        gradients = {n: p.grad for n, p in module.named_parameters() if p.grad is not None}
        if step == 0:
            record |= {"output/" + name: tensor for name, tensor in outputs.close().items()}
            record |= {"gradient/" + name: copy(g.to_dense() if g.is_sparse else g) for name, g in gradients.items()}
        optimizer.step()
        losses.append(float(value.detach()))
        if step == 0:
            after = {n: copy(b) for n, b in module.named_buffers()}
            kept = [n for n in after if n in before and (n in saved or not torch.equal(before[n], after[n]))]
            record |= {"buffer/" + n: before[n] for n in kept} | {"buffer_after/" + n: after[n] for n in kept}
    return {name: value.contiguous().numpy() for name, value in record.items()}, losses


def settings_of(request, torch):
    settings = {"version": 1, "optimizer": request["optimizer"], "options": request["options"], "producer": f"torch {torch.__version__}"}
    return settings | {key: request[key] for key in ("clip_norm", "clip_value") if request[key]}


def say(kind, text):
    print(f"{kind}: {text}", file=sys.stderr)


def main(request):
    try:
        import numpy
        import torch
    except ImportError as error:
        raise Fault(USAGE, f"{sys.executable}: {error}", "name the Python that has torch and numpy: --python=path/to/python") from None
    arrays, losses = run(request, torch)
    arrays["loss"] = numpy.array(losses)
    arrays["settings"] = numpy.frombuffer(json.dumps(settings_of(request, torch)).encode(), dtype=numpy.uint8)
    try:
        with open(request["record"], "wb") as file:
            numpy.savez(file, **arrays)
    except OSError as error:
        raise Fault(IO, f"cannot write '{request['record']}': {error.strerror}") from None


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except Fault as fault:
        say("error", str(fault))
        if fault.note:
            say("note", fault.note)
        sys.exit(fault.code)
