"""Bytes of what is trained, under every layout: stored_bytes.py <model.onnx> [flags], with the tools on the path.

`lowtide fit --json` counts what the step binds; here the same is added up from the shapes of the file's parameters and the
layouts' own arithmetic, for every combination of precision, master, moments and averages, to the byte (`--sample`: of every
seventh). `--looked-up=NAME`: the end of the name of a table that no product reads (a GPT's wpe.weight is one). Prints the table.
"""

import itertools
import json
import subprocess
import sys

MASTERS = (("f32", "f32"), ("mixed-bf16", "f32"), ("mixed-bf16", "split"), ("mixed-bf16", "whole"), ("bf16", "f32"), ("bf16", "split"), ("bf16", "whole"), ("bf16", "sr"))
MOMENTS = {"f32": lambda n: 4 * n, "bf16": lambda n: 2 * n, "int8": lambda n: n + n // 256 * 4, "fp8": lambda n: n + n // 256 * 4}


def tool(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def read_parameters(model, flags):
    """Elements of every trained tensor, and the names of those that products read."""
    report = json.loads(tool("lowtide", "check", model, "--json", *flags))
    sizes = {}
    for entry in report["initializers"]:
        if entry["role"] == "parameter":
            count = 1
            for dim in entry["shape"]:
                count *= dim
            sizes[entry["name"]] = count, len(entry["shape"])
    return sizes


def expect(sizes, is_halved, precision, master, moments, ema):
    """parameter, master and moments (two slots of AdamW), average."""
    total = [0, 0, 0, 0]
    for name, (count, _) in sizes.items():
        halved = precision == "bf16" or is_halved(name)
        is_split, is_whole = master == "split" and halved, master == "whole" and halved
        total[0] += count * (4 if is_whole or (precision != "bf16" and not is_split) else 2)
        total[1] += 2 * count if is_split else 0
        coded = moments if moments in ("f32", "bf16") or (count >= 4096 and count % 256 == 0) else "f32"
        total[2] += 2 * MOMENTS[coded](count)
        total[3] += 4 * count if ema else 0
    return total


def main():
    own = ("--sample", "--looked-up=")
    model, *flags = [argument for argument in sys.argv[1:] if not argument.startswith(own)]
    tables = ("wpe.weight", *(argument.split("=", 1)[1] for argument in sys.argv[1:] if argument.startswith("--looked-up=")))
    sizes = read_parameters(model, flags)

    def is_halved(name):
        """Of a transformer, products read the matrices, but for tables of which rows are looked up alone."""
        return sizes[name][1] == 2 and not name.endswith(tables)

    print("precision   master  moments  average  bytes a parameter")
    combinations = list(itertools.product(MASTERS, MOMENTS, (False, True)))
    for (precision, master), moments, ema in combinations[:: 7 if "--sample" in sys.argv else 1]:
        said = json.loads(tool("lowtide", "fit", model, "--rows=2", "--json", "-q", "--entries=train", f"--precision={precision}", f"--master={master}", f"--moments={moments}",
                               *(["--ema=0.999"] if ema else []), *flags))["stored"]  # fmt: skip
        found = [said[key] for key in ("parameter_bytes", "master_bytes", "moment_bytes", "average_bytes")]
        wanted = expect(sizes, is_halved, precision, master, moments, ema)
        assert found == wanted, (precision, master, moments, ema, found, wanted)
        assert said["parameters"] == sum(count for count, _ in sizes.values()), said
        print(f"{precision:<11} {master:<7} {moments:<8} {'yes' if ema else 'no':<8} {sum(found) / said['parameters']:.4f}")
    print("planned to the byte")


if __name__ == "__main__":
    main()
