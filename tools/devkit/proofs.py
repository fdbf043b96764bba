"""`lowtide verify` of every model file of a folder, against the PyTorch module that it was exported from.

The modules come from the scripts that wrote the folders: test/models/export.py, a folder's own make.py, or the make.py of
the folder around it, whose ALL has a function for each. Nothing is exported: what the scripts hand to `record` is taken, and the record that `lowtide verify` compares with is made of it. Where a script needs a library
that is absent, the first loss and the gradients that the folder keeps (expected.json, expected.npz) are the record.

With --judged=FILE, what `tools/dev judge --json=FILE` found is put next to it: files that do not hold must be reported, and with
a parameter or buffer that differs there, too; files that hold must agree. Buffers of which the folder keeps no values may differ.
"""

import argparse
import copy
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

from devkit import dependencies
from devkit.console import ROOT, Failure

MODELS = ROOT / "test" / "models"


class Captured(Exception):
    """Ends a script after the line that records."""


def capture(function):
    """What the script `function` hands to `record`: (module, data, spec)."""
    made = []

    def keep(*given, **named):
        given = [g for g in given if not isinstance(g, (str, pathlib.Path))]
        made.append(tuple(given[:3]))
        raise Captured

    import recording

    recording.record = keep
    try:
        function(keep)
    except Captured:
        pass
    return made[0]


def of_model(folder):
    import export
    import torch

    torch.manual_seed(0)

    def run(keep):
        export.record = keep
        export.MAKERS[folder.name](folder)

    return capture(run)


def of_script(folder):
    os.environ["LOWTIDE"] = str(ROOT)
    sys.path.insert(0, str(folder.parent))

    def run(keep):
        if (folder.parent / "kit.py").exists():
            import kit

            kit.record = keep
        spec = importlib.util.spec_from_file_location("make_" + folder.name.replace("-", "_"), folder / "make.py")
        spec.loader.exec_module(importlib.util.module_from_spec(spec))

    return capture(run)


def of_collection(folder):
    """`ALL` of the make.py in the folder around it: the function that records this folder."""
    import numpy
    import torch

    # The digits that scikit-learn would bring; what is recorded are the folder's own rows.
    with numpy.load(MODELS / "mlp-digits" / "data.npz") as digits:
        drawn = types.SimpleNamespace(images=16 * digits["x"].reshape(-1, 8, 8), target=digits["y"])
    datasets = types.ModuleType("sklearn.datasets")
    datasets.load_digits = lambda: drawn
    datasets.__spec__ = importlib.machinery.ModuleSpec("sklearn.datasets", None)
    absent = importlib.util.find_spec("sklearn") is None
    if absent:
        sys.modules["sklearn.datasets"] = sys.modules["sklearn"] = datasets
    sys.path.insert(0, str(folder.parent))
    import record as recorder

    made = {}

    def keep(name, *given, **named):
        made[name] = given[:3]
        raise Captured

    recorder.record = keep
    spec = importlib.util.spec_from_file_location("make_collection", folder.parent / "make.py")
    code = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(code)
    key = {folder.name, folder.name.split("-")[0]}
    for name, function in code.ALL.items():
        if {name, function.__name__.replace("_", "-")} & key:
            torch.manual_seed(0)
            try:
                function()
            except Captured:
                pass
    if absent:
        del sys.modules["sklearn"], sys.modules["sklearn.datasets"]
    module, _, spec = made[folder.name]
    with numpy.load(folder / "data.npz") as data:
        return module, {name: data[name] for name in data.files}, spec


def loss_flags(spec):
    """The flag that adds the loss which a record's files leave out."""
    loss = spec.get("loss")
    labels = loss and loss.get("labels", loss.get("targets"))
    return [f"--loss={loss['kind']}({loss.get('logits', loss.get('predictions'))}, {labels})"] if loss else []


def write_kept(folder, path):
    """The record of the first step that the folder keeps; returns the flags that its files need."""
    import numpy

    from devkit.record import Record

    record = Record(folder)
    arrays = {"gradient/" + name.removeprefix("grad/"): value.astype("f8", order="C") for name, value in record.tensors.items() if name.startswith("grad/")}
    if not arrays:
        raise ValueError("the folder keeps no gradients")
    with numpy.load(folder / "data.npz") as data:
        arrays |= {"input/" + name: data[name][: record.batch] for name in data.files}
    settings = json.dumps({"version": 1, "optimizer": record.train["optimizer"], "options": record.train["options"], "producer": "the folder's record"})
    numpy.savez(path, **arrays, loss=numpy.array(record.expected["loss"]["f64"][:1]), settings=numpy.frombuffer(settings.encode(), dtype=numpy.uint8))
    return loss_flags(record.train)


def write_record(made, path, steps):
    """The record of one module; returns the flags that its files need."""
    import numpy
    import torch

    sys.path.insert(0, str(ROOT / "tools" / "lowtide"))
    import verify_record as script

    module, data, spec = made
    module = copy.deepcopy(module).train()
    feed = {name: torch.as_tensor(rows[: spec["batch"]]) for name, rows in data.items()}
    script.load_function = lambda *_: lambda: (module, None, feed)
    request = {"module": "make.py", "function": "make", "inputs": list(feed), "outputs": [], "loss": "", "optimizer": spec["optimizer"]}
    request |= {"options": spec["options"], "clip_norm": 0, "clip_value": 0, "steps": steps}
    torch.set_default_dtype(torch.float32)
    arrays, losses = script.run(request, torch)
    torch.set_default_dtype(torch.float32)
    settings = json.dumps(script.settings_of(request, torch)).encode()
    numpy.savez(path, **arrays, loss=numpy.array(losses), settings=numpy.frombuffer(settings, dtype=numpy.uint8))
    return loss_flags(spec)


def verdict(binaries, model, record, flags):
    """What `lowtide verify` says of one file: (state, words, names of what differs)."""
    command = [binaries / "lowtide", "verify", model, f"--against={record}", "--json", "-q", *flags]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    if done.returncode not in (0, 9):
        complaint = next((line for line in done.stderr.splitlines() if line.startswith("error:")), done.stderr[-300:])
        return "refused", f"exit {done.returncode}: {complaint}", []
    proof = json.loads(done.stdout)
    words = words_of(proof)
    starts = [r["name"] for r in proof["first_values"]]
    names = [r["name"] for kind in ("gradients", "buffers") for r in proof[kind] if r["verdict"] not in ("agrees", "unused")] + starts
    if starts and not words:
        return "agrees", f"from the module's values of {len(starts)} tensors", names
    return ("differs" if words else "agrees"), words, names


def words_of(proof):
    """What differs in a proof, in words; '': nothing."""
    bad = {kind: [r for r in proof[kind] if r["verdict"] not in ("agrees", "unused")] for kind in ("gradients", "buffers", "losses")}
    words = [f"{kind}: " + ", ".join(f"{r['name']} {r['verdict']}" for r in rows[:4]) for kind, rows in bad.items() if rows]
    if proof.get("first_output"):
        words.append("first module: " + proof["first_output"])
    return "; ".join(words)


def renames(binaries, model, record, flags):
    """`--rename` for parameters whose names an export or a merge changed (`back/fc.bias` for `b.fc.bias`), as the judge pairs them.

    Gradients of those that a file holds with dimensions of one around them take the file's shape in the record.
    """
    import numpy

    from devkit.record import pair_names

    with numpy.load(record) as file:
        arrays = dict(file)
    wanted = {name.removeprefix("gradient/"): value for name, value in arrays.items() if name.startswith("gradient/")}
    done = subprocess.run([binaries / "lowtide", "check", model, "--json", *flags], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    listed = json.loads(done.stdout)["initializers"] if done.returncode == 0 else []
    ours = {one["name"]: numpy.broadcast_to(0.0, one["shape"]) for one in listed if one["role"] == "parameter"}
    pairs = {name: own for name, own in pair_names(ours, wanted)[0].items() if own != name}
    # A record with the module's own values has the module's shapes, and `lowtide verify` fits them itself.
    if not any(name.startswith("parameter/") for name in arrays):
        for name, own in pairs.items():
            if wanted[name].size == ours[own].size:
                arrays["gradient/" + name] = wanted[name].reshape(ours[own].shape)
        numpy.savez(record, **arrays)
    return [f"--rename={own}={name}" for name, own in pairs.items() if arrays["gradient/" + name].shape == ours[own].shape]


def contradictions(rows, judged):
    """Where `lowtide verify` and the judge do not say the same of a file: (name, words)."""
    found = []
    for row in rows:
        other = judged.get(row["name"])
        if other is None or row["state"] == "skipped":
            continue
        names, differs = set(row["names"]), set(other["differs"])
        if other["state"] == "ok" and row["state"] != "agrees" and not (names and names <= set(row["unrecorded"])):
            found.append((row["name"], f"the judge holds it, and verify says: {row['words']}"))
        elif other["state"] != "ok" and row["state"] == "agrees" and not names:
            found.append((row["name"], f"verify agrees, and the judge says: {other['note']}"))
        elif other["state"] != "ok" and row["state"] != "refused" and differs and not names & (differs | set(row["unrecorded"])):
            found.append((row["name"], f"the judge names {', '.join(sorted(differs)[:3])}, and verify {', '.join(sorted(names)[:3]) or 'nothing'}"))
    return found


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev proofs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path, help="folders with model files, or folders of such folders")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin", help="where lowtide is")
    parser.add_argument("--steps", type=int, default=10, help="losses to compare")
    parser.add_argument("--judged", type=pathlib.Path, help="what tools/dev judge --json wrote of the same files")
    parser.add_argument("--json", type=pathlib.Path, help="also write the rows to a file")
    options = parser.parse_args(argv)
    python = dependencies.environment("oracles")
    if pathlib.Path(sys.prefix).resolve() != python.parents[1].resolve():
        return subprocess.run([python, "-B", "-m", "devkit", "proofs", *argv], env=dict(os.environ)).returncode
    from devkit.record import Record

    sys.path.insert(0, str(MODELS))
    folders = [f for given in options.folders for f in ([given] if (given / "train.json").exists() else sorted(p.parent for p in given.glob("*/train.json")))]
    if not folders:
        raise Failure("error: no folder with a train.json")
    rows = []
    for folder in map(pathlib.Path.resolve, folders):
        with tempfile.TemporaryDirectory() as work:
            record = pathlib.Path(work) / "record.npz"
            kept = {n.removeprefix("state/") for n in Record(folder).tensors if n.startswith("state/")}
            try:
                source = of_model if folder.parent == MODELS else of_script if (folder / "make.py").exists() else of_collection
                made = source(folder)
                flags = write_record(made, record, options.steps)
                buffers = [name for name, _ in made[0].named_buffers()]
            except Exception as error:  # a module that some library or version does not have
                try:
                    flags, buffers = write_kept(folder, record), []
                except (OSError, KeyError, ValueError):
                    rows.append({"name": folder.name, "state": "skipped", "words": f"{type(error).__name__}: {error}"[:200]})
                    print(f"skipped  {folder.name}  {rows[-1]['words']}", flush=True)
                    continue
            for model in sorted(folder.glob("*.onnx")):
                state, words, names = verdict(options.bin, model, record, [*flags, *renames(options.bin, model, record, flags)])
                unrecorded = [name for name in buffers if name not in kept]
                rows.append({"name": f"{folder.name}/{model.name}", "state": state, "words": words, "names": names, "unrecorded": unrecorded})
                print(f"{state:<8} {folder.name}/{model.name}  {words}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    counts = {state: sum(row["state"] == state for row in rows) for state in ("agrees", "differs", "refused", "skipped")}
    print(f"{len(rows)} files: " + ", ".join(f"{count} {state}" for state, count in counts.items() if count))
    if not options.judged:
        return 0
    wrong = contradictions(rows, {row["file"]: row for row in json.loads(options.judged.read_text())})
    for name, words in wrong:
        print(f"CONTRADICTS  {name}  {words}")
    print(f"{len(wrong)} contradict the judge")
    return 1 if wrong else 0
