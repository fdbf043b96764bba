"""Pages that commands produce: `tools/dev docs` rewrites them, `tools/dev docs --check` says what differs.

In any page, HTML comments before a fenced block say what fills it:

    <!-- produced by: COMMAND -->   the block is what the command prints on standard output
    <!-- table by: COMMAND -->      the same for a table: the lines that follow and begin with |
    <!-- session -->                the block holds lines `$ COMMAND` (continued by `\\`), each followed by all that it
                                    printed and, where it failed, its exit code
    <!-- first: COMMAND -->         needs no block: runs before the blocks that follow

Commands run as a reader types them at the root of a checkout, `build/bin` first in PATH, one scratch folder per page: what
they write is there for the page's next block, and then gone. Whole pages below docs/reference come from reference.py.
"""

import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from devkit import reference
from devkit.console import ROOT, Failure, say

LLVM = pathlib.Path("/usr/lib/llvm-22/bin")
# Whole files that one command prints.
PRINTED = {"docs/reference/lowtide-config-v1.json": "lowtide compile --print-schema"}
DIRECTIVE = re.compile(r"<!-- (?:(first): (?P<setup>.*?)|table by: (?P<table>.*?)|produced by: (?P<command>.*?)|(?P<session>session)) -->\n(?P<fence>```\w*\n)?", re.S)


class Shell:
    """Runs a page's commands in its scratch folder."""

    def __init__(self, folder, binaries):
        self.folder = pathlib.Path(folder)
        for entry in ROOT.iterdir():
            if not entry.name.startswith((".", "build", "out")):
                (self.folder / entry.name).symlink_to(entry)
        (self.folder / "build").mkdir()
        (self.folder / "build" / "bin").symlink_to(binaries.resolve())
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("LOWTIDE_")}
        self.environment.update(NO_COLOR="1", LC_ALL="C.UTF-8", PATH=os.pathsep.join([str(binaries.resolve()), str(LLVM), os.environ["PATH"]]))

    def run(self, command, stderr):
        try:
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=stderr, timeout=300,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Failure(f"'{command}' did not end within five minutes") from None
        return done.returncode, tidy(done.stdout.decode(errors="replace")), (done.stderr or b"").decode(errors="replace")

    def output(self, command):
        """Standard output of a command that works; a reader that closes the pipe early (head) is no failure (LLVM: 74)."""
        status, text, complaint = self.run(command, subprocess.PIPE)
        if status not in (0, 74, 141):
            raise Failure(f"'{command}' ended with {status}: {(complaint or text).strip()[-600:]}")
        return text

    def session(self, body):
        out = []
        for command in re.findall(r"^\$ ((?:.*\\\n)*.*)$", body, re.M):
            status, text, _ = self.run(command, subprocess.STDOUT)
            if status in (126, 127):
                raise Failure(f"'{command}': {text.strip()}")
            out += [f"$ {command}\n", text] + ([f"exit {status}\n"] if status else [])
        return "".join(out)


def tidy(text):
    lines = [line.rstrip() for line in text.splitlines()]
    return "".join(line + "\n" for line in lines).strip("\n") + "\n" if lines else ""


def filled(text, binaries):
    """The page with every produced block as its command prints it now."""
    out, at = [], 0
    with tempfile.TemporaryDirectory(prefix="lowtide-docs-") as folder:
        shell = Shell(folder, binaries)
        for match in DIRECTIVE.finditer(text):
            if match.start() < at:
                continue  # a directive shown inside a block
            out.append(text[at : match.end()])
            at = match.end()
            if match["setup"]:
                shell.output(match["setup"])
                continue
            if match["table"]:
                out.append(shell.output(match["table"]))
                at += re.match(r"(?:\|.*\n)*", text[at:]).end()
                continue
            if not match["fence"]:
                raise Failure(f"no fenced block follows '{match[0].strip()}'")
            end = text.find("\n```", at - 1) + 1
            if not end:
                raise Failure(f"the block after '{match[0].strip()}' has no end")
            out.append(shell.session(text[at:end]) if match["session"] else shell.output(match["command"]))
            at = end
    return "".join(out) + text[at:]


def pages():
    """Every produced page, as a path relative to the root: those with directives, and the references."""
    named = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    found = [name for name in named.split("\0") if name and (ROOT / name).is_file() and DIRECTIVE.search((ROOT / name).read_text())]
    return sorted({*found, *reference.PAGES, *PRINTED})


def produced(page, binaries):
    """What the page should say; raises Failure when a command does not work."""
    try:
        if page in PRINTED:
            with tempfile.TemporaryDirectory(prefix="lowtide-docs-") as folder:
                return Shell(folder, binaries).output(PRINTED[page])
        return reference.PAGES[page](LLVM, binaries) if page in reference.PAGES else filled((ROOT / page).read_text(), binaries)
    except Failure as failure:
        raise Failure(f"{page}: {failure}") from None


def difference(page, binaries):
    """Empty when the committed page is what its commands produce; otherwise a diff and what to type."""
    path = ROOT / page
    old, new = path.read_text() if path.exists() else "", produced(page, binaries)
    diff = difflib.unified_diff(old.splitlines(), new.splitlines(), f"{page} as committed", f"{page} as produced", lineterm="", n=1)
    return "" if old == new else "\n".join([*list(diff)[:60], f"note: tools/dev docs {page} rewrites it"])


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/dev docs", description="Rewrite the pages and blocks that commands produce.")
    parser.add_argument("pages", nargs="*", help="only these, as paths from the root; all when none is named")
    parser.add_argument("--check", action="store_true", help="change nothing; print what differs")
    parser.add_argument("--bin", type=pathlib.Path, help="use these binaries; nothing is built")
    options = parser.parse_args(argv)
    known, failed = pages(), False
    try:
        unknown = [p for p in options.pages if p not in known]
        if unknown:
            raise Failure(f"error: {unknown[0]} is no produced page\nnote: one of: {', '.join(known)}")
        if not options.bin:
            from devkit.build import BUILD, build

            build(["lowtide", "lowtide-bench", "lowtide-opt", "lowtide-run", "lowtide-translate"])
        binaries = options.bin or BUILD / "bin"
        for page in options.pages or known:
            text = difference(page, binaries)
            if text and options.check:
                print(text)
            elif text:
                (ROOT / page).parent.mkdir(parents=True, exist_ok=True)
                (ROOT / page).write_text(produced(page, binaries))
                say(f"docs: wrote {page}")
            failed |= bool(text) and options.check
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return int(failed)
