"""Options: one record each, of which flags and passes come, and the same refusal of the same texts. declared_options.py <repository> <model.onnx> <folder>, with the tools on the path."""

import json
import pathlib
import re
import subprocess
import sys

LLVM = pathlib.Path("/usr/lib/llvm-22")
# A row a record that passes read: texts that it refuses. A new one needs one.
WRONG = {
    "mode": ["training", "TRAIN"],
    "dropout": ["1.5", "-0.5", "nan", "half"],
    "loss": ["hinge(y, t)", "mse()", "mse(y)", "cross_entropy(y, t, smoothing=1)", "absent"],
    "lora": ["hidden", "hidden:", ":r=2", "hidden:r=0", "hidden:r=two", "hidden:q=2", "hidden:r=2,alpha=nan", "hidden:r=2,r=3"],
    "optimizer": ["adamx", "ADAMW", "adamw:lr=1"],
    "fallback": ["adamx", "adamw:lr=x", "adamw:lr", ":lr=1"],
    "convention": ["tf"],
    "lr": ["fast", "-1", "nan", "inf", "1e999", "0.1.2"],
    "group": ["bias", "bias:", ":lr=1", "bias:lr", "bias:lr=x", "bias:lr=nan", "bias:lr=-1", "bias:rate=1", "bias:optimizer=adamx",
              "bias:lr=1,lr=2", "bias:moments=int4", "bias:lr=1;bias"],
    "sparse-updates": ["eager"],
    "updates": ["later", "NOW"],
    "moments": ["int4", "f64"],
    "master": ["half"],
    "ema": ["1", "-1", "nan", "slow"],
    "schedule": ["steps"],
    "warmup-steps": ["-1", "1.5", "many", "99999999999999999999", "1e3"],
    "total-steps": ["-1", "1.5", "nan", "0x10"],
    "min-lr": ["-1", "low", "nan"],
    "loss-scale": ["high", "-1", "0", "nan", "inf", "dynamic,up=2", "dynamic,init=0", "dynamic,growth=x", "dynamic,backoff=2",
                   "dynamic,interval=0", "dynamic,init=2,init=4"],
    "clip-norm": ["-1", "nan", "much"],
    "clip-value": ["-1", "inf"],
    "target": ["tpu", "cuda:sm_75", "CPU", "cpu:avx"],
    "threads-max": ["0", "-1", "1025", "few", "1.5", "99999999999999999999"],
    "precision": ["f8", "mixed"],
    "precision-override": ["hidden", "hidden=f8", "=f32", "hidden=", "hidden=f32;out"],
    "frozen-weights": ["int2"],
    "fuse": ["maybe", "2", "TRUE", "99999999999999999999"],
    "conv-layout": ["nhcw"],
    "weights": ["maybe", "-1"],
    "micro-batches": ["0", "-1", "1.5", "two", "2.0", "9223372036854775807", "99999999999999999999"],
    "device-budget": ["lots", "-1", "0", "nan%", "8 MB B"],
    "host-budget": ["lots", "-1", "50%", "1MiB,lots"],
    "disk-budget": ["lots", "0", "50%", "1MiB,,2MiB"],
    "remat-strategy": ["best"],
    "without-methods": ["block", "exact,", "exact blocks"],
    "flips": ["maybe", "2"],
    "bound": ["maybe", "99999999999999999999999"],
}  # fmt: skip


def records(root):
    command = [LLVM / "bin" / "llvm-tblgen", "--dump-json", "-I", root / "include", "-I", LLVM / "include", root / "passes" / "Passes.td"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def refusal(*command):
    """The first error of a command that has to end as a user's mistake does, without a place."""
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"""error: (?:loc\("[^"]*"\): )?(?:--)?(.*)""", done.stderr)
    assert done.returncode == 1 and found, f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stderr[-500:]}"
    return found[1]


def main(root, model, scratch):
    found = records(root)
    declared = {found[name]["Name"]: found[name] for name in found["!instanceof"]["DeclaredOption"]}
    flags = {name: record for name, record in declared.items() if record["Passes"]}
    assert flags.keys() == WRONG.keys(), f"records and rows of texts that they refuse differ: {flags.keys() ^ WRONG.keys()}"
    printed = subprocess.run(["lowtide", "compile", "--print-schema"], capture_output=True, text=True, check=True).stdout
    keys = json.loads(printed)["properties"]
    for name, record in declared.items():
        key = keys[name.replace("-", "_")]
        # A group of the same name, or a value of its own.
        key = key if "description" in key else next(form for forms in key.values() if isinstance(forms, list) for form in forms if "description" in form)
        assert key["description"].startswith(record["text"]), f"--{name} has a help of its own: {key}"
        # Without a default of the record it is that of the type.
        assert "default" not in key or str(key["default"]).lower() == record["Default"] or (not record["Default"] and key["default"] in (0, "[]")), f"--{name} has a default of its own: {key}"

    stages = {stage: scratch / f"{stage}.mlir" for stage in ("onnx", "nn")}
    for stage, path in stages.items():
        subprocess.run(["lowtide", "compile", model, "--batch=4", "-q", f"--emit={stage}", "-o", path], check=True)
    shared, refused, taken = 0, 0, set()
    for name in found["!instanceof"]["Pass"]:
        argument = found[name]["argument"]
        for option in (found[option["def"]] for option in found[name]["options"]):
            flag, isShared = option["argument"], "FlagOption" in option["!superclasses"]
            assert isShared == (flag in flags), f"{argument}: {flag} is a flag, and has no record of one"
            if not isShared:
                continue
            shared += 1
            taken.add(flag)
            for text in WRONG[flag]:
                given = f"{argument}{{{flag}={{{text}}}}}"
                anchored = f"builtin.module(func.func({given}))" if "FuncOp" in found[name]["baseClass"] else f"builtin.module({given})"
                by_pass = refusal("lowtide-opt", stages["onnx" if argument == "onnx-legalize" else "nn"], f"--pass-pipeline={anchored}")
                by_flag = refusal("lowtide", "compile", model, "--batch=4", "--emit=plan", "-o", "-", f"--{flag}={text}")
                assert by_pass == by_flag, f"{argument}: {by_pass}\nflag: {by_flag}"
                refused += 1
    assert taken == flags.keys(), f"records that no pass takes: {flags.keys() - taken}"
    print(f"{len(declared)} records, {len(flags)} that passes read, {shared} options of passes, {refused} texts refused in the words of the flag")


main(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]))
