"""Every op of the registry is executed against values, and every derivative against central differences."""

import re
import sys
import unittest

from tree import ROOT, files, text

sys.path.insert(0, str(ROOT / "tools"))
from devkit import reference  # noqa: E402
from devkit.docs import LLVM  # noqa: E402


# What an op that computes something has; others (terminators, marks of order) only name values.
COMPUTING = {"ElementInterface", "DecomposableInterface", "LibraryCallInterface", "ScatterInterface"}


def ops(file):
    """(records, ops that compute something) of a dialect: by an element, by simpler ops, by a library, by a body."""
    found = reference.records(LLVM, reference.DIALECTS / file)
    interfaces = lambda op: {found[t["def"]].get("cppInterfaceName") for t in op["traits"]}  # noqa: E731
    return found, [op for op in reference.of_class(found, "Op") if op["regions"]["args"] or COMPUTING & interfaces(op)]


class Coverage(unittest.TestCase):
    def test_every_op_is_executed(self):
        """test/Execute/<op>.mlir runs the op on the CPU and on the reference target and states what must come out."""
        have = {f.stem.removeprefix("train-") for f in files() if f.parts[:2] == ("test", "Execute") and f.suffix == ".mlir"}
        wanted = [op["opName"] for file in ("NN/NNOps.td", "NN/Library.td", "NN/Scatter.td", "NN/Scan.td", "NN/Storage.td", "Train/TrainOps.td", "Train/Layouts.td") for op in ops(file)[1]]
        self.assertEqual([f"test/Execute/{name}.mlir" for name in wanted if name not in have], [])

    def test_executed_examples_state_values(self):
        """An example without a stated value would compare us with ourselves."""
        mute = [str(f) for f in files() if f.parts[:2] == ("test", "Execute") and f.suffix == ".mlir" and not re.search(r"-> \((?:.|\n)*?test\.value", text(f))]
        self.assertEqual(mute, [])

    def test_every_derivative_is_checked(self):
        """test/Gradient/GradientTest.cpp holds a case `<op>` or `<op>_…` for every op that gradients flow through."""
        cases = set(re.findall(r'[{(]"(\w+)",', text(ROOT / "test" / "Gradient" / "GradientTest.cpp")))
        every = [ops(file) for file in ("NN/NNOps.td", "NN/Scatter.td", "NN/Scan.td")]
        wanted = [op["opName"] for found, all_ops in every for op in all_ops if reference.differentiable(found, op)]
        self.assertEqual([name for name in wanted if name not in cases and not any(c.startswith(name + "_") for c in cases)], [])


if __name__ == "__main__":
    unittest.main()
