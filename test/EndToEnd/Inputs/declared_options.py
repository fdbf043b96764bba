"""Options that flags and passes share: one record each, and one refusal. declared_options.py <repository> <step.mlir>, with the tools on the path."""

import json
import pathlib
import re
import subprocess
import sys

LLVM = pathlib.Path("/usr/lib/llvm-22")
# For the checks of records: a text that each refuses.
WRONG = {"words": "nowhere", "rate": "1.5", "nonNegative": "-1", "range": "0", "codecs": "int4", "decay": "1", "byteSize": "lots", "schedules": "steps"}


def records(root):
    command = [LLVM / "bin" / "llvm-tblgen", "--dump-json", "-I", root / "include", "-I", LLVM / "include", root / "passes" / "Passes.td"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def refusal(*command):
    """The first error of a command that has to fail, without a place."""
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"""error: (?:loc\("[^"]*"\): )?(?:--)?(.*)""", done.stderr)
    assert done.returncode and found, f"{' '.join(map(str, command))} is no error: {done.stderr[-500:]}"
    return found[1]


def main(root, step):
    found = records(root)
    flags = {found[name]["Name"]: found[name] for name in found["!instanceof"]["DeclaredOption"]}
    printed = subprocess.run(["lowtide", "compile", "--print-schema"], capture_output=True, text=True, check=True).stdout
    keys = json.loads(printed)["properties"]
    rows = (root / "lib" / "Compiler" / "OptionTable.cpp").read_text()
    for name, record in flags.items():
        key = keys[name.replace("-", "_")]
        # A group of the same name, or a value of its own.
        key = key if "description" in key else next(form for forms in key.values() if isinstance(forms, list) for form in forms if "description" in form)
        assert key["description"].startswith(record["text"]), f"--{name} has a help of its own: {key}"
        assert f'add({{"{name}"' not in rows, f"--{name} has a row without its record"
        assert "default" not in key or str(key["default"]).lower() == record["Default"], f"--{name} has a default of its own: {key}"

    shared = refused = 0
    for name in found["!instanceof"]["Pass"]:
        argument = found[name]["argument"]
        for option in (found[option["def"]] for option in found[name]["options"]):
            isShared = "FlagOption" in option["!superclasses"]
            assert isShared == (option["argument"] in flags), f"{argument}: {option['argument']} is a flag, and has no record of one"
            if not isShared:
                continue
            shared += 1
            check = flags[option["argument"]]["Check"].split("<")[0]
            if check == "parsed":
                continue
            refused += 1
            wrong = f"{option['argument']}={WRONG[check]}"
            anchored = f"builtin.module(func.func({argument}{{{wrong}}}))" if "FuncOp" in found[name]["baseClass"] else f"builtin.module({argument}{{{wrong}}})"
            by_pass = refusal("lowtide-opt", step, f"--pass-pipeline={anchored}")
            by_flag = refusal("lowtide", "compile", step, "--from=nn", "--emit=plan", f"--{wrong}")
            assert by_pass == by_flag, f"{argument}: {by_pass}\nflag: {by_flag}"
    print(f"{len(flags)} records, {shared} options of passes, {refused} refused in the words of the flag")


main(pathlib.Path(sys.argv[1]), sys.argv[2])
