"""docs/reference: pages written from the TableGen records and the runtime's headers, so that they cannot be out of date.

`PAGES` maps a page to the function that writes it from LLVM's tools and ours; `tools/dev docs` and the contract tests call them.
"""

import json
import re
import subprocess
import textwrap

from devkit.console import ROOT, Failure
from devkit.examples import Examples, syntaxes

HEAD = "# {title}\n\nWritten by `tools/dev docs` from {source}.\n\n{text}\n"
DIALECTS = ROOT / "include" / "lowtide" / "Dialect"


def records(llvm, file):
    """All TableGen records of a file, by name."""
    command = [llvm / "llvm-tblgen", "--dump-json", "-I", ROOT / "include", "-I", llvm.parent / "include", file]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Failure(done.stderr.strip()[-600:])
    return json.loads(done.stdout)


def of_class(found, name):
    """Records of a class, file by file in the order in which they are written."""
    return sorted((found[n] for n in found["!instanceof"].get(name, [])), key=place)


def place(record):
    file, line = record["!locs"][-1].rsplit(":", 1)
    return file, int(line)


def paragraph(text):
    """A record's description without its indentation."""
    return textwrap.dedent((text or "").strip("\n")).strip()


def cell(text):
    return " ".join((text or "").split()).replace("|", "\\|")


def differentiable(found, record):
    """Whether gradients flow through the op: it has the interface, and a rule that sets something."""
    if not any(found[t["def"]].get("cppInterfaceName") == "DifferentiableInterface" for t in record["traits"]):
        return False
    body = record.get("definitions") or ""
    return "differentiate(" not in body or "g.set(" in body


# --- dialects ---

FAMILIES = ("Elementwise", "Math", "Activation", "Binary", "Movement", "Slicing", "Indexing", "Scatter", "Reduction", "Ordering", "Contraction", "Convolution", "Pooling",
            "Normalization", "Loss", "Random", "Scan", "Storage", "Kernel")  # fmt: skip


def arguments(record):
    names = [name for value, name in record["arguments"]["args"]]
    return ", ".join(f"`{n.rstrip('_')}`" for n in names)


# Formats of ops whose parsers are functions (Interfaces/RepeatSyntax.cpp, Dialect/NN/Kernel.cpp, Dialect/Train/Optimizers.cpp), as
# records would have them.
ROUNDS = "$rounds (`reversed`)? (`slices` `(` %part `=` $sliced, … `)`)? (`carries` `(` %value `=` $carried, … `)`)? "
REGION = "(`attributes` attr-dict)? `:` functional-type(operands, results) $body"
OPTIMIZER = "$param `gradient` $gradient `lr` $lr `step` $step (`state` $state, …)? attr-dict `:` type($param) `,` type($lr) `,` type($step)"
WRITTEN_IN_CPP = {
    "nn.kernel": "$emitter `(` %value `=` $captures, … `)` " + REGION,
    "nn.scan": ROUNDS + "(`reads` `(` %value `=` $captured, … `)`)? " + REGION,
    "train.accumulate": ROUNDS + REGION,
}


class Sections:
    """What is said of each op: its description, its assembly format, and an example as the tools print it."""

    def __init__(self, llvm, binaries, *files):
        self.formats, self.examples = {}, Examples(binaries)
        for file in files:
            self.formats |= syntaxes(llvm, file)

    def write(self, dialect, op):
        name = f"{dialect}.{op['opName']}"
        text = paragraph(op["description"])
        return f"**`{name}`** ({arguments(op)}){': ' + text if text else ''}\n\n{self.block(dialect, op['opName'])}\n"

    def block(self, dialect, name, written=None):
        """`written`: the format of an op whose record has none. What it says literally stands in the example, in that order."""
        full = f"{dialect}.{name}"
        example, syntax = self.examples.find(dialect, name), self.formats[full]
        if not syntax:
            syntax = f"`{full}` {written or WRITTEN_IN_CPP.get(full)}"
            certain = re.sub(r"\([^()]*\)\?", "", re.sub(r"`[()]`", "", syntax))
            if not written and full not in WRITTEN_IN_CPP or not re.search(".*".join(map(re.escape, re.findall("`(.*?)`", certain))), example, re.S):
                raise Failure(f"{full} has no assembly format that its example is in: {syntax}")
        return f"```mlir\n// {syntax}\n{example}\n```"


SHOWN = """
Below each table: the ops with their operands and attributes, the assembly format (`$x`: an operand or attribute), and an
example as `lowtide-opt` prints it. Where numbers stand below it, the test that it comes from computes them (`test/Execute`).
"""


def nn_page(llvm, binaries):
    sections = Sections(llvm, binaries, *(DIALECTS / "NN" / name for name in ("NNOps.td", "Library.td", "Scatter.td", "Scan.td", "Storage.td")))
    found = records(llvm, DIALECTS / "NN" / "NNOps.td")
    ops = of_class(found, "Op")
    library = records(llvm, DIALECTS / "NN" / "Library.td")
    meetings = records(llvm, DIALECTS / "NN" / "Scatter.td")
    scans = records(llvm, DIALECTS / "NN" / "Scan.td")
    storage = records(llvm, DIALECTS / "NN" / "Storage.td")
    ops += of_class(library, "Op") + of_class(meetings, "Op") + of_class(scans, "Op") + of_class(storage, "Op")
    out = [paragraph(found["NN_Dialect"]["description"]), """
Columns: what the op computes; whether gradients flow through it; the precision that it wants (*High*: f32 where the rest is
16-bit, *Low*: may run in 16 bits, *Follow*: as its operands); how it treats the batch dimension (*Pointwise*: sample by
sample, *Contract*: reduces over it, *Movement*: as its attributes say, *Couples*: samples see each other); the ONNX operators
that become it directly.
""" + SHOWN]  # fmt: skip
    groups = {}
    for op in ops:
        groups.setdefault(op["!locs"][-1].rsplit("/", 1)[-1].split(".td")[0], []).append(op)
    order = [f for f in FAMILIES if f in groups] + sorted(set(groups) - set(FAMILIES))
    for family in order:
        out.append(f"## {family}\n\n| op | computes | gradient | precision | batch | ONNX |\n| --- | --- | --- | --- | --- | --- |")
        for op in groups[family]:
            facts = [op.get(k) or "" for k in ("precision", "batch")]
            onnx = ", ".join(f"`{n}`" for n in (op.get("onnx") or "").split(",") if n)
            out.append(f"| `nn.{op['opName']}` | {cell(op['summary'])} | {'yes' if differentiable({**library, **meetings, **scans, **storage, **found}, op) else ''} | {' | '.join(facts)} | {onnx} |")
        out.append("")
        out += [sections.write("nn", op) for op in groups[family]]
    return HEAD.format(title="The nn dialect", source="`include/lowtide/Dialect/NN/*.td`", text="\n".join(out).rstrip())


def attributes(found, prefix, interface=None):
    """A row for each attribute of a dialect that has the interface."""
    return [
        f"| `#{prefix}.{r['mnemonic']}` | {cell(r['summary'])} |"
        for r in of_class(found, "AttrDef")
        if r["cppNamespace"] == f"::lowtide::{prefix}" and (not interface or interface in {found[t["def"]].get("cppInterfaceName") for t in r["traits"]})
    ]


def train_page(llvm, binaries):
    sections = Sections(llvm, binaries, DIALECTS / "Train" / "TrainOps.td", DIALECTS / "Train" / "Layouts.td")
    found = records(llvm, DIALECTS / "Train" / "TrainOps.td")
    ops = of_class(found, "Op")
    optimizers = [o for o in ops if "Train_Optimizer" in o["!superclasses"]]
    out = [paragraph(found["Train_Dialect"]["description"]), "\n## Bindings\n\n| attribute | a tensor of the step that is |\n| --- | --- |", *attributes(found, "train", "BindingInterface"), ""]
    target = found["Train_TargetAttr"]
    out.append(f"## Target\n\n`#train.target`: {target['summary']}.\n\n{paragraph(target['description'])}\n")
    others = [o for o in ops if o not in optimizers]
    if others:
        out += op_sections("train", others, sections)
    out.append("## Optimizers\n\n`--optimizer=<name>`; every option is a flag (`--weight-decay=0.1`) and may be set per group (`--group='bias:weight_decay=0'`).\n")
    for op in optimizers:
        body = op["extraClassDefinition"]
        # Template arguments leave no field behind; the definitions that they make are read instead.
        slots = re.findall(r'if \((.*?)\) found\.push_back\(\{"(\w+)", ([\w.]+), ::lowtide::train::SlotShape::(\w+)\}', body)
        onnx = "".join(re.findall(r'"(ai\.onnx\.[\w.]+)"', body)[:1])
        out += [f"### `train.{op['opName']}`\n", f"{cell(op['summary'])}.\n"]
        out += [sections.block("train", op["opName"], OPTIMIZER) + "\n"]
        out.append("State per parameter: " + (", ".join(describe_slot(*slot) for slot in slots) or "none") + "." + (f" ONNX: `{onnx}`." if onnx else "") + "\n")
        out += ["| option | meaning | default (PyTorch) | default (ONNX) |\n| --- | --- | --- | --- |"]
        out += [f"| `{o['name']}` | {cell(o['meaning'])} | {o['torch']} | {o['onnx']} |" for o in (found[d["def"]] for d in op["options"])] + [""]
    out.append("## Codecs\n\nHow state is stored (`--moments=`, `--master=`; [numerics](../numerics.md), \"State in fewer bits\").\n")
    out += [sections.write("train", op) for op in of_class(records(llvm, DIALECTS / "Train" / "Layouts.td"), "Op")]
    return HEAD.format(title="The train dialect", source="`include/lowtide/Dialect/Train/*.td`", text="\n".join(out).rstrip())


SLOT_SHAPES = {"Param": "", "Scalar": ", one number", "Rows": ", one number a row", "Columns": ", one number a column"}


def describe_slot(condition, name, initial, shape):
    """A slot's name, what it starts as (a number or an option), its shape, and when there is one."""
    start = initial if initial[0].isdigit() else f"`{initial}`"
    return f"`{name}` (starts as {start}{SLOT_SHAPES[shape]}{'' if condition == 'true' else f', where `{condition}`'})"


def op_sections(dialect, ops, sections):
    out = ["## Ops\n\n| op | what it is |\n| --- | --- |"]
    out += [f"| `{dialect}.{o['opName']}` | {cell(o['summary'])} |" for o in ops] + [""]
    return [*out, *(sections.write(dialect, op) for op in ops)]


def dialect_page(title, folder, file):
    def page(llvm, binaries):
        sections = Sections(llvm, binaries, DIALECTS / folder / file)
        found = records(llvm, DIALECTS / folder / file)
        ops = of_class(found, "Op")
        said = next(r for r in (found[n] for n in found["!instanceof"]["Dialect"]) if r["name"] == title and r["cppNamespace"].startswith("::lowtide"))
        text = "\n".join([paragraph(said["description"] or said["summary"]) + "\n", *op_sections(title, ops, sections)])
        return HEAD.format(title=f"The {title} dialect", source=f"`include/lowtide/Dialect/{folder}/*.td`", text=text.rstrip())

    return page


# --- passes, exit codes ---


def passes_page(llvm, binaries):
    found = records(llvm, ROOT / "passes" / "Passes.td")
    passes = of_class(found, "PassBase")
    out = ["In pipeline order: the page reads as the life of a step. `lowtide-opt --<pass>='option=value'` runs one alone. The class "
           "(exact, real-equal, approximate) is explained in [numerics](../numerics.md).\n"]  # fmt: skip
    for record in passes:
        out.append(f"## `{record['argument']}`\n\n*{cell(record['summary'])}*\n")
        if paragraph(record["description"]):
            out.append(paragraph(record["description"]) + "\n")
        if record["options"]:
            out.append("| option | default | meaning |\n| --- | --- | --- |")
            for option in (found[o["def"]] for o in record["options"]):
                default = cell(option["defaultValue"]).replace("\\\"", '"')
                out.append(f"| `{option['argument']}` | {f'`{default}`' if default else ''} | {cell(option['description'])} |")
            out.append("")
    return HEAD.format(title="Passes", source="`passes/Passes.td`", text="\n".join(out).rstrip())


def exit_codes_page(llvm, binaries):
    text = (ROOT / "runtime" / "Status.h").read_text()
    body = re.search(r"enum class StatusCode : int \{(.*?)\};", text, re.S)[1]
    rows = re.findall(r"^  (\w+) = (\d+),?(?:\s*///< (.*))?$", body, re.M)
    table = ["| code | name | when |\n| ---: | --- | --- |"] + [f"| {code} | {name} | {meaning or 'it worked'} |" for name, code, meaning in rows]
    said = (
        "Every tool ends with one of these, and prints `error:` on standard error when it is not 0.\n\n"
        "128 + n: stopped by signal n; 129 is SIGHUP, 130 Ctrl-C (SIGINT), 143 SIGTERM. `lowtide-run` finishes its step first, saves where "
        "`--save` is given, and says so; a second signal ends it at once. If that checkpoint cannot be written, it ends with 8; if all steps "
        "were done already, with what they ended in.\n\n"
    )
    return HEAD.format(title="Exit codes", source="`runtime/Status.h`", text=said + "\n".join(table))


PAGES = {
    "docs/reference/nn.md": nn_page,
    "docs/reference/train.md": train_page,
    "docs/reference/onnx.md": dialect_page("onnx", "ONNX", "ONNXOps.td"),
    "docs/reference/plan.md": dialect_page("plan", "Plan", "PlanOps.td"),
    "docs/reference/passes.md": passes_page,
    "docs/reference/exit-codes.md": exit_codes_page,
}
