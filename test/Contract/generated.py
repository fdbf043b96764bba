"""What commands produce is what is committed: listings in pages, references (tools/dev docs)."""

import re
import shutil
import sys
import tempfile
import unittest

from tree import ROOT, text

sys.path.insert(0, str(ROOT / "tools"))
from devkit import docs  # noqa: E402
from devkit.console import Failure  # noqa: E402


class Generated(unittest.TestCase):
    """One test per produced page, made below."""


def page_test(page):
    def test(self):
        try:
            difference = docs.difference(page, ROOT / "build" / "bin")
        except Failure as failure:
            self.fail(str(failure))
        self.assertFalse(difference, difference)

    test.__doc__ = f"{page} is what its commands produce."
    return test


class Readme(unittest.TestCase):
    def test_commands_work(self):
        """What the README tells people to type works, on the demo's model."""
        block = text(ROOT / "README.md").split("## By hand")[1].split("```")[1]
        commands = [re.sub(r"\s+#.*", "", c) for c in block.replace("\\\n", " ").strip().splitlines()]
        self.assertGreaterEqual(len(commands), 3)
        with tempfile.TemporaryDirectory() as folder:
            shell = docs.Shell(folder, ROOT / "build" / "bin")
            for name in ("model.onnx", "data.npz"):
                shutil.copy(ROOT / "test" / "models" / "mlp-digits" / name, folder)
            for command in commands:
                status, said, _ = shell.run(command, docs.subprocess.STDOUT)
                self.assertEqual(status, 0, f"{command}\n{said}")


for page in docs.pages():
    setattr(Generated, "test_" + page.removesuffix(".md").replace("/", "_").replace("-", "_"), page_test(page))


if __name__ == "__main__":
    unittest.main()
