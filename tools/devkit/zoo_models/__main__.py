"""Files of cases, and the records that `lowtide verify` compares them with.

Reads a line of JSON for each case: {"name", "folder", "exports", "cleaners", "fresh"}. Prints one for each file:
{"file", "state", "words", "aborted", "output"}; `state` is written or export failed, and done after the last; `output` is what the file ends at. The
libraries that the arguments name are loaded once, or all. Each case and each export runs in a process of its own: exporters change modules, end the interpreter and take minutes.
"""

import contextlib
import copy
import io
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import warnings

from devkit.zoo_models import all_cases

EXPORT_SECONDS, CLEAN_SECONDS, STEPS = 120, 60, 3
OPTIMIZER = dict(optimizer="sgd", options=dict(lr=0.001, momentum=0.9))


def settle(module, torch):
    """Moves vectors, numbers, and tables of one number off their first values, as in a model that has trained: zeros and ones hide what is lost."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() < 2 or (parameter.numel() and (parameter == parameter.flatten()[0]).all()):
                parameter.add_(0.02 * torch.randn(parameter.shape))


def keep_all_layers(module):
    """Sets the rates at which layers are left out: such draws cannot be compared."""
    for part in module.modules():
        if type(part).__name__.endswith("DropPath"):
            part.drop_prob = 0.0
        elif type(part).__name__ == "StochasticDepth":
            part.p = 0.0


def shell_of(case, body, torch, with_loss):
    """The module that is exported: inputs in their order, then targets, to the loss; without loss, to what it reads."""

    class Shell(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = body

        def forward(self, a, b=None, c=None, d=None, e=None):
            given = [value for value in (a, b, c, d, e) if value is not None]
            if not with_loss or case.ends_in_loss:
                return case.call(self.body, *given)
            logits = case.call(self.body, *given[:-1])
            if logits.dim() == 3:  # tokens: PyTorch has the classes in front of them
                logits = logits.transpose(1, 2)
            return torch.nn.functional.cross_entropy(logits, given[-1])

    return Shell()


def write_record(case, body, feeds, path, torch):
    """What PyTorch computes of the case in f64."""
    import numpy

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lowtide"))
    import verify_record as script

    module = shell_of(case, copy.deepcopy(body), torch, with_loss=True).train()
    script.load_function = lambda *_: lambda: (module, None, tuple(feeds.values()))
    request = {"module": "zoo.py", "function": "make", "inputs": list(feeds), "outputs": [], "loss": "", "clip_norm": 0, "clip_value": 0, "steps": STEPS} | OPTIMIZER
    arrays, losses = script.run(request, torch)
    torch.set_default_dtype(torch.float32)
    arrays = {name: value for name, value in arrays.items() if not name.startswith("output/")}
    settings = json.dumps(script.settings_of(request, torch)).encode()
    numpy.savez(path, **arrays, loss=numpy.array(losses), settings=numpy.frombuffer(settings, dtype=numpy.uint8))


def output_of(case, how):
    """What a file of export `how` ends at."""
    return "logits" if how.startswith("eval") and not case.ends_in_loss else "loss"


def export(case, body, feeds, path, how, torch):
    """One file, as `tools/dev zoo` names it: the exporter, an opset, and options."""
    output = output_of(case, how)
    feeds = {name: torch.as_tensor(value) for name, value in feeds.items()}
    how, opset, words = re.fullmatch(r"([a-z]+)(\d*)((?:-[a-z]+)*)", how).groups()
    options = set(words.split("-"))
    if output == "logits":
        feeds = dict(list(feeds.items())[:-1])
    module = shell_of(case, body, torch, with_loss=output == "loss").train(how != "eval")
    shared = dict(input_names=list(feeds), output_names=[output], keep_initializers_as_inputs="inputs" in options)
    if "open" in options and how in ("dynamo", "plain", "decomposed"):
        shared["dynamic_shapes"] = tuple({0: torch.export.Dim.AUTO} if value.dim() else None for value in feeds.values())
    elif "open" in options:
        shared["dynamic_axes"] = {name: {0: f"rows_of_{name}"} for name, value in feeds.items() if value.dim()}
    if how in ("dynamo", "plain", "decomposed"):
        shared |= dict(opset_version=int(opset)) if opset else {}
        given = tuple(feeds.values())
        if how == "decomposed":
            shapes = {"dynamic_shapes": {f"{'abcde'[i]}": shape for i, shape in enumerate(shared["dynamic_shapes"])}} if "open" in options else {}
            module, given = torch.export.export(module, given, **shapes).run_decompositions(), ()
            shared.pop("dynamic_shapes", None)
        torch.onnx.export(module, given, str(path), dynamo=True, optimize=how != "plain", external_data="external" in options, verbose=False, **shared)
    else:
        modes = torch.onnx.TrainingMode
        mode = dict(eval=modes.EVAL, train=modes.TRAINING, preserve=modes.PRESERVE, traced=modes.TRAINING)[how]
        if how == "traced":
            module = torch.jit.trace(module, tuple(feeds.values()), check_trace=False)
        torch.onnx.export(module, tuple(feeds.values()), str(path), dynamo=False, training=mode, opset_version=int(opset or 17), do_constant_folding="unfolded" not in options, **shared)


def optimize_as_runtime(level):
    """A cleaner: ONNX Runtime's optimizations up to a level."""

    def run(model, path, cleaned):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
        options.optimized_model_filepath, options.intra_op_num_threads, options.log_severity_level = str(cleaned), 1, 4
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    return run


def fuse(model, path, cleaned):
    """A cleaner: the fusions of onnxruntime.transformers, of four heads and 32 numbers as most of the configurations have."""
    from onnxruntime.transformers import optimizer

    optimizer.optimize_model(str(path), model_type="bert", num_heads=4, hidden_size=32, opt_level=0).save_model_to_file(str(cleaned))


def extract(model, path, cleaned):
    import onnx.utils

    onnx.utils.extract_model(str(path), str(cleaned), [i.name for i in model.graph.input], [o.name for o in model.graph.output])


def simplify(model, path, cleaned):
    import onnx
    import onnxsim

    simplified, holds = onnxsim.simplify(model)
    if not holds:
        raise ValueError("onnxsim's own check fails")
    onnx.save(simplified, cleaned)


def save_of(function):
    """A cleaner that gives the model back."""

    def run(model, path, cleaned):
        import onnx

        onnx.save(function(model), cleaned)

    return run


def slim(model):
    import onnxslim

    return onnxslim.slim(model)


def optimize(model):
    import onnxscript.optimizer

    return onnxscript.optimizer.optimize(model)


def convert(version):
    """A cleaner: another version of the standard operators, by what the present one becomes."""

    def run(model):
        import onnx.version_converter

        return onnx.version_converter.convert_version(model, version(next(s.version for s in model.opset_import if not s.domain)))

    return save_of(run)


def merge(model, path, cleaned):
    """Another model in front, which changes nothing: names of this one get a prefix."""
    import onnx
    import onnx.compose

    prefix, held = "net/", {tensor.name for tensor in model.graph.initializer}
    inputs = [given for given in model.graph.input if given.name not in held]
    outputs = [onnx.ValueInfoProto.FromString(given.SerializeToString()) for given in inputs]
    for output in outputs:
        output.name += "_prepared"
    nodes = [onnx.helper.make_node("Identity", [given.name], [output.name]) for given, output in zip(inputs, outputs)]
    front = onnx.helper.make_model(onnx.helper.make_graph(nodes, "front", inputs, outputs), opset_imports=model.opset_import, ir_version=model.ir_version)
    links = [(output.name, prefix + given.name) for given, output in zip(inputs, outputs)]
    onnx.save(onnx.compose.merge_models(front, onnx.compose.add_prefix(model, prefix), io_map=links), cleaned)


def halve(model):
    """Numbers in 16 bits, as onnxconverter-common writes them; inputs and outputs stay."""
    from onnxruntime.transformers import float16

    return float16.convert_float_to_float16(model, keep_io_types=True)


def infer(model):
    import onnx.shape_inference

    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def move_out(model, path, cleaned):
    import onnx

    onnx.save(model, cleaned, save_as_external_data=True, location=cleaned.name + ".data", size_threshold=0)


CLEANERS = {
    "onnxslim": save_of(slim),
    "onnxsim": simplify,
    "onnxruntime": optimize_as_runtime("BASIC"),
    "ort2": optimize_as_runtime("EXTENDED"),
    "ort3": optimize_as_runtime("ALL"),
    "fused": fuse,
    "onnxscript": save_of(optimize),
    "extract": extract,
    "convert": convert(lambda version: version + 1),
    "newest": convert(lambda version: 25),
    "down": convert(lambda version: 18 if version > 18 else 15 if version > 15 else 13),
    "merge": merge,
    "float16": save_of(halve),
    "inferred": save_of(infer),
    "external": move_out,
}


def clean(path, cleaned, cleaner):
    import onnx

    CLEANERS[cleaner](onnx.load(path), path, cleaned)


class Aborted(str):
    """Words about a process that a signal ended."""


def apart(function, seconds, attempts=3):
    """'' or what went wrong in words; `function` runs in a process of its own, and once more where that is aborted, as PyTorch's exporter
    is now and then after a fork."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(seconds)
        words, sink = "", os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                function()
        except BaseException as error:  # whatever libraries raise
            words = f"{type(error).__name__}: {error}"
        os.write(writing, words.encode()[:20000])
        os._exit(1 if words else 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        words = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        return words
    if os.WTERMSIG(status) == signal.SIGALRM:
        return f"no file within {seconds} s"
    return apart(function, seconds, attempts - 1) if attempts > 1 else Aborted(f"the process ended by signal {os.WTERMSIG(status)}")


def say(file, words, output=""):
    line = {"file": file, "state": "export failed" if words else "written", "words": " ".join(words.split())[:400], "aborted": isinstance(words, Aborted), "output": output}
    print(json.dumps(line), flush=True)


def make_files(case, folder, exports, cleaners, fresh, torch):
    folder, feeds = pathlib.Path(folder), case.feeds()
    torch.manual_seed(0)
    body = case.build().train()
    keep_all_layers(body)
    if not fresh:
        settle(body, torch)
    failed = apart(lambda: write_record(case, body, feeds, folder / "record.npz", torch), EXPORT_SECONDS)
    say("record.npz", failed)
    for how in exports if not failed else ():
        path, output = folder / f"{how}.onnx", output_of(case, how)
        words = apart(lambda: export(case, body, feeds, path, how, torch), EXPORT_SECONDS)
        say(path.name, words, output)
        for cleaner in cleaners if not words else ():
            cleaned = folder / f"{how}-{cleaner}.onnx"
            say(cleaned.name, apart(lambda: clean(path, cleaned, cleaner), CLEAN_SECONDS), output)


def load_exporter(torch):
    """Writes one file, so that the processes of the cases find the exporter's 900 modules loaded, which takes longer than a small case."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(torch.nn.Linear(1, 1), (torch.zeros(1, 1),), f"{folder}/one.onnx", dynamo=True, verbose=False)


def main():
    warnings.filterwarnings("ignore")
    import torch

    torch.set_num_threads(1)
    load_exporter(torch)
    cases = {case.name: case for case in all_cases(sys.argv[1:])}
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                make_files(cases[request.pop("name")], **request, torch=torch)
            except Exception as error:  # the library cannot make the module
                say("record.npz", f"{type(error).__name__}: {error}")
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)
        print(json.dumps({"file": "", "state": "done", "words": "", "aborted": False, "output": ""}), flush=True)


if __name__ == "__main__":
    main()
