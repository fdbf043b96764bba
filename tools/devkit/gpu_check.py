#!/usr/bin/env python3
"""Check and measure Lowtide on this machine's GPU: `./gpu-check --stage=correct`, `./gpu-check --stage=speed:<workload>`.

Runs inside the archive that `tools/dev bundle` writes; needs Python's standard library alone. Findings go to gpu-check.json
as they come, so that a run that is cut short still counts. A stage ends after seven and a half minutes; what it did not
come to is said. Exit: 0 all held, 1 something failed, 3 nothing failed, but not everything could be done.

  correct           device facts and ceilings; every model: 20 steps against the recorded losses, twice with the same bits,
                    the CPU's losses, planned against allocated memory
  budgets           every model under several device budgets: losses with the bits of the step without one
  memory            what a process of each model takes of the GPU beside what its plan says
  sanitize          small models under compute-sanitizer (memcheck, initcheck, racecheck), where it is installed and works
  speed:<workload>  throughput and memory beside PyTorch's modes, in turns (A-B-B-A), blocks of steps; kinds of kernels
  gate:<workload>   loss and gradients of the first batch beside PyTorch's in f32, from the same weights: before speed counts
  torch:<workload>  torch_baseline.py on that workload: its figures stand in for contenders that take no turns
  table             the targets (G1 to G12) filled in from gpu-check.json

`--emulated` does the same on the fake device, where no GPU is needed: whether the archive itself is sound.
"""

import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from devkit.gpu import archive, blocks, gate, models, speed, targets  # noqa: E402


def stage_torch(home, results, name, deadline, python):
    """torch_baseline.py on one workload; its rows are kept as it writes them."""
    script, out = home.home / "torch_baseline.py", home.home / "torch"
    if not script.exists():
        raise ValueError("the archive has no torch_baseline.py; tools/dev bundle --torch=FILE takes it along")
    out.mkdir(exist_ok=True)

    def keep():
        try:
            rows = json.loads((out / "torch_baseline.json").read_text())
        except (OSError, ValueError):
            return  # not there yet, or half written
        results.put("torch", name, [row for row in rows if row.get("workload") in (name, "ceilings")])

    command = [python, script, "--out", out, "--only", name, "--seconds", f"{deadline.left() - 15:.0f}"]
    status, _, error = home.run(command, deadline.left(), keep)
    keep()
    rows = results.get("torch", name) or []
    if status not in (0, 124):
        print(error.strip()[-400:], file=sys.stderr)
    measured = sum("median_ms" in row for row in rows)
    return measured, int(status not in (0, 124)), sum("skipped" in row or "error" in row for row in rows) + (status == 124)


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", required=True, help="correct, budgets, memory, sanitize, gate:<workload>, speed:<workload>, torch:<workload>, table")
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path("gpu-check.json"))
    parser.add_argument("--emulated", action="store_true", help="the fake device instead of a GPU")
    parser.add_argument("--only", default="", help="of the models, those whose name holds this")
    parser.add_argument("--contenders", default="", help="of ours and PyTorch's modes, these take turns; with commas")
    parser.add_argument("--python", default=sys.executable, help="the Python that has PyTorch")
    parser.add_argument("--limit", type=float, default=archive.LIMIT, help=f"seconds of the stage ({archive.LIMIT:.0f})")
    for name, value in blocks.PROTOCOL.items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help=f"{value}; another value tries things out, and fills in no target")
    return parser, parser.parse_args(argv)


def main(argv):
    parser, options = parse(argv)
    # A stage that is told to end takes the program that it waits for along.
    archive.Ending.listen()
    results = archive.Results(options.json, options.emulated)
    if options.stage == "table":
        print("\n".join(targets.table(results.content)))
        return 0
    home, deadline = archive.Archive(HERE, options.emulated, options.python), archive.Deadline(options.limit)
    results.put("archive", "made", home.contents["made"])
    stage, _, name = options.stage.partition(":")
    try:
        if stage in models.JUDGES and not name:
            good, failed, undone = models.run_stage(home, results, stage, deadline, options.only)
        elif stage == "speed" and name:
            protocol = {key: getattr(options, key) for key in blocks.PROTOCOL}
            wanted = list(filter(None, options.contenders.split(",")))
            good, failed, undone = speed.run_stage(home, results, name, protocol, deadline, options.python, wanted)
        elif stage == "gate" and name:
            good, failed, undone = gate.run_stage(home, results, name, deadline, options.python)
        elif stage == "torch" and name:
            good, failed, undone = stage_torch(home, results, name, deadline, options.python)
        else:
            parser.error(f"unknown stage '{options.stage}'")
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{good} held, {failed} failed, {undone} not done")
    return 1 if failed else 3 if undone or not good else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
