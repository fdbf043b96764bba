"""An example of every op, as the tools print it: from the tests that execute it, else from the stages of a small model."""

import re
import subprocess

from devkit.console import ROOT, Failure

TEST = ROOT / "test"
# A model whose stages hold what no test of a single op shows.
MODEL = TEST / "EndToEnd" / "Inputs" / "two-layers.onnx"
FLAGS = ["--dim=batch=4", "--optimizer=sgd", "--lr=0.1", "--target=cpu:x86-64-v3", "--emit-locations=off", "-q", "-o", "-"]
# Longest values that stand in a comment.
WIDTH = 64
FUNCTION = re.compile(r"^  func\.func @\w+\(([^\n]*?)\) -> ([^\n]*) \{\n(.*?)^  \}", re.M | re.S)
VALUE = re.compile(r"test\.value = dense<(.*?)> : tensor")


def printed(command):
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    return done.stdout if done.returncode == 0 else ""


def shown(values):
    """`1.5, -2.25`: numbers as people write them, or nothing where they are too long."""
    numbers = [re.sub(r"-?\d+\.\d+e[+-]\d+", lambda m: f"{float(m[0]):.6g}", v) for v in values]
    text = ", ".join(numbers)
    return text if values and len(text) <= WIDTH else ""


class Examples:
    """Finds examples with the binaries of a build."""

    def __init__(self, binaries):
        self.binaries = binaries
        self.stages = None

    def find(self, dialect, name):
        """Lines that show `dialect.name`, as printed; raises Failure where nothing shows it."""
        for path in (TEST / "Execute" / f"{name}.mlir", TEST / "Execute" / f"{dialect}-{name}.mlir"):
            if path.is_file() and (found := self.executed(path, f"{dialect}.{name}")):
                return found
        return self.compiled(f"{dialect}.{name}") or self.parsed(dialect, name)

    def executed(self, path, op):
        """The shortest function of an executed test with the op: the line, what went in and what came out."""
        best = ""
        for arguments, results, body in FUNCTION.findall(printed([self.binaries / "lowtide-opt", path])):
            lines = self.lines_of(body, op)
            if not lines:
                continue
            given, got = shown(VALUE.findall(arguments)), shown(VALUE.findall(results))
            # Values belong to the line where it is all that the function computes.
            is_all = len(re.findall(r"^ {4}\S.* = ", body, re.M)) == 1
            text = lines + (f"\n// {given}  →  {got}" if is_all and given and got else "")
            if not best or ("→" in text, -len(text)) > ("→" in best, -len(best)):
                best = text
        return best

    @staticmethod
    def lines_of(body, op):
        """The first operation of that name with its region, without the indentation."""
        lines = body.split("\n")
        for i, line in enumerate(lines):
            if not re.match(rf"^ *(?:%[\w:, %]+ = )?{re.escape(op)}(?![\w])", line):
                continue
            indent, end = len(line) - len(line.lstrip()), i
            if line.endswith("{"):
                end = next(j for j in range(i + 1, len(lines)) if lines[j].startswith(" " * indent + "}"))
            if end - i > 12:  # the plan of a whole step
                return lines[i].strip() + " … }"
            return "\n".join(text[indent:] for text in lines[i : end + 1])
        return ""

    def compiled(self, op):
        if self.stages is None:
            self.stages = [printed([self.binaries / "lowtide", "compile", MODEL, f"--emit={stage}", *FLAGS]) for stage in ("onnx", "nn", "train", "fitted", "plan")]
        return next((found for text in self.stages if (found := self.lines_of(text, op))), "")

    def parsed(self, dialect, name):
        """From any text test that lowtide-opt reads."""
        for path in sorted(TEST.glob("*/**/*.mlir")):
            if not re.search(rf"\b{dialect}\.{name}\b", path.read_text()):
                continue
            text = printed([self.binaries / "lowtide-opt", "--split-input-file", "--allow-unregistered-dialect", path])
            if found := self.lines_of(text, f"{dialect}.{name}"):
                return found
        raise Failure(f"no example of {dialect}.{name}: none of the text tests prints one\nnote: add test/Execute/{name}.mlir")


def syntaxes(llvm, file):
    """The assembly format of every op of a file, by name: `nn.exp` → "`nn.exp` $x attr-dict …"; empty where it is written in C++."""
    command = [llvm / "mlir-tblgen", "-gen-op-doc", "-I", ROOT / "include", "-I", llvm.parent / "include", file]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Failure(done.stderr.strip()[-600:])
    found = {}
    for section in done.stdout.split("\n### `")[1:]:
        syntax = re.search(r"operation ::= (.*?)\n```", section, re.S)
        found[section.split("`")[0]] = " ".join(syntax[1].split()) if syntax else ""
    return found
