"""Give every bad file to the tools: refuse.py <folder of binaries> <folder of mlp-digits> writes one JSON row per case.

A refusal is right when the exit code is a documented one for this kind of mistake, the message is an `error:` that names
the culprit, and the tool neither crashed nor hung.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import artifacts
import models


def run(command, seconds=60):
    try:
        done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "timeout", ""
    return done.returncode, done.stderr.decode(errors="replace") + done.stdout.decode(errors="replace")


def complaint(status, said, code, words):
    if status == "timeout":
        return "hung"
    if status != code:
        return f"exit {status}, expected {code}: {said.strip()[-600:]}"
    errors = [line for line in said.splitlines() if "error:" in line]
    if not errors:
        return f"no 'error:' in: {said.strip()[-400:]}"
    absent = [w for w in words if w not in said]
    return f"message does not name {', '.join(absent)}: {said.strip()[-600:]}" if absent else ""


def lay_out(folder, files):
    for name, content in files.items():
        path = folder / name
        if isinstance(content, tuple):
            kind, target = content
            os.symlink(target, path) if kind == "link" else os.mkfifo(path)
        else:
            path.write_bytes(content)


def bad_models(binaries):
    for name, files, flags, code, words in models.CASES:
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            lay_out(folder, files())
            path = next((folder / f.removeprefix("--model=") for f in flags if f.startswith("--model=")), folder / "model.onnx")
            flags = [f for f in flags if not f.startswith("--model=")]
            for command in ("compile", "check"):
                # `check` explains a file; it need not refuse what only training lacks.
                output = ["-o", folder / "out.tide"] if command == "compile" else []
                status, said = run([binaries / "lowtide", command, path, *output, *flags])
                text = complaint(status, said, code, words) if status != 0 or command == "compile" else ""
                if command == "check" and status == code and all(w in said for w in words):
                    text = ""  # its table says what stands in the way
                if command == "compile" and not text and (folder / "out.tide").exists():
                    text = "refused, and yet wrote an artifact"
                yield f"model: {name} ({command})", text


def bad_artifacts(binaries, record):
    data = (record / "data.npz").read_bytes()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        good = folder / "good.tide"
        status, said = run([binaries / "lowtide", "compile", record / "model.onnx", "-o", good, "--dim=batch=64", "--optimizer=sgd"], 300)
        if status != 0:
            yield "artifact: the good one", f"exit {status}: {said[-600:]}"
            return
        for name, artifact, rows, code, words in artifacts.cases(good.read_bytes(), data):
            (folder / "step.tide").write_bytes(artifact)
            (folder / "data.npz").write_bytes(rows)
            status, said = run([binaries / "lowtide-run", folder / "step.tide", f"--data={folder / 'data.npz'}", "--steps=1"])
            yield f"artifact: {name}", complaint(status, said, code, words)


def main(argv):
    binaries, record = map(pathlib.Path, argv)
    rows = [{"name": n, "complaint": c} for source in (bad_models(binaries), bad_artifacts(binaries, record)) for n, c in source]
    json.dump(rows, sys.stdout, indent=1)


if __name__ == "__main__":
    main(sys.argv[1:])
