"""Command table of tools/dev: one row per command, each implemented in the module of its name."""

import importlib
import os
import pathlib
import subprocess
import sys

# name -> (module, one line of help)
COMMANDS = {
    "setup": ("dependencies", "install what the build needs (--oracles: also PyTorch and friends for tests that compare)"),
    "build": ("build", "configure and build; further arguments are ninja targets"),
    "demo": ("demo", "set up, build, train a small model and draw what happened"),
    "check": ("check", "set up, build, run a sample of every suite (--full: all); the last line is 'N passed, N failed'"),
    "judge": ("judge", "train the model files of folders and compare with their recorded runs"),
    "proofs": ("proofs", "`lowtide verify` of every model file of folders, against the modules that they were exported from"),
    "zoo": ("zoo", "`lowtide verify` of models of torchvision, timm and transformers, as several exporters and cleaners write them"),
    "same": ("same", "the artifacts of two builds, byte by byte, for every model of folders"),
    "graphs": ("graphs", "random training graphs: at any budget the same bits"),
    "exact": ("exact", "every model at many budgets: the same losses, parameters and state, bit for bit"),
    "parts": ("parts", "every model in micro-batches: the losses of the whole batch"),
    "roundtrip": ("roundtrip", "every model through the text of every stage: the same artifact, byte by byte"),
    "masters": ("masters", "masters in halves next to whole ones: equal bits for many steps"),
    "offload": ("offload", "every model with values in another memory: less of the device's, the same bits"),
    "combinations": ("combinations", "flags drawn at random for every model: with a budget the same bits, or a refusal in words"),
    "budgets": ("budgets", "flags drawn at random for every model: a larger budget is neither refused nor slower"),
    "footprints": ("footprints", "every model on guarded memory: no kernel leaves its slices"),
    "allocations": ("allocations", "what the fake CUDA device allocates for every model: the plan's arenas, and nothing else"),
    "sweep": ("sweep", "peak and time at many budgets, for models with or without weights"),
    "bench": ("bench", "step time and memory beside PyTorch's, on this machine"),
    "peaks": ("peaks", "bytes of training steps next to PyTorch's: plain, under the smallest budget, and by hand"),
    "estimate": ("estimate", "what full-size models launch, move and hold on a GPU, from their plans"),
    "machine-code": ("machine_code", "what ptxas and the disassembler show of every model's kernels"),
    "libraries": ("libraries", "what cuDNN itself says of the calls of every model, without a GPU"),
    "bundle": ("bundle", "an archive that carries artifacts and the runtime to a machine with a GPU"),
    "targets": ("gpu.targets", "the targets on a GPU beside what gpu-check measured there"),
    "docs": ("docs", "rewrite the pages and blocks that commands produce (--check: say what differs)"),
    "fuzz": ("fuzz", "hostile bytes for everything that parses, under sanitizers"),
}

# Commands that compare numbers run in the private environment that holds numpy; what explains them needs no numpy, so
# that their modules import it where they use it.
NUMERIC = {"zoo", "demo", "judge", "bench", "sweep", "same", "exact", "parts", "roundtrip", "footprints", "allocations", "masters", "offload", "combinations", "budgets", "machine-code", "libraries", "bundle"}

USAGE = """usage: tools/dev <command> [arguments]

{rows}

'tools/dev <command> --help' explains a command. The first use of any command installs what is missing.
"""


def main(argv):
    if not argv or argv[0] in ("-h", "--help", "help"):
        width = max(map(len, COMMANDS))
        print(USAGE.format(rows="\n".join(f"  {n:<{width}}  {h}" for n, (_, h) in COMMANDS.items())), end="")
        return 0
    if argv[0] not in COMMANDS:
        print(f"error: unknown command '{argv[0]}'\nnote: one of: {', '.join(COMMANDS)}", file=sys.stderr)
        return 1
    try:
        if argv[0] in NUMERIC and not {"-h", "--help"} & set(argv):
            from devkit import dependencies

            python = dependencies.environment("tools")
            if pathlib.Path(sys.prefix).resolve() != python.parents[1].resolve():
                return subprocess.run([python, "-m", "devkit", *argv], env=dict(os.environ)).returncode
        return importlib.import_module("devkit." + COMMANDS[argv[0]][0]).main(argv[1:])
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
