"""Running commands and talking to the person at the terminal."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def collection():
    """The folder of recorded and full-size models that lies beside the checkout, or elsewhere by LOWTIDE_MODELS; it may be missing."""
    return pathlib.Path(os.environ.get("LOWTIDE_MODELS") or ROOT.parent / "shared" / "models")


class Failure(Exception):
    """Something a person must read; the text says what was found and what to do next."""


def say(text):
    """Progress goes to stderr: stdout carries only the asked-for product."""
    print(text, file=sys.stderr, flush=True)


def run_logged(command, log, **options):
    """Run `command` with its output appended to the file `log`; raise Failure with the last lines if it fails."""
    log = pathlib.Path(log)
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as out:
        status = subprocess.run(
            [str(c) for c in command], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, **options
        ).returncode
    if status:
        tail = log.read_text(errors="replace").splitlines()[-30:]
        raise Failure("\n".join(tail) + f"\nerror: '{command[0]}' failed with {status}; its whole output is in {log}")
