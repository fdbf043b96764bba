"""Every command of tools/dev explains itself before anything is installed: without packages (devkit/__main__.py)."""

import pathlib
import subprocess
import sys
import unittest

import devkit_path  # noqa: F401
from devkit.__main__ import COMMANDS

TOOLS = pathlib.Path(__file__).resolve().parents[3] / "tools"


class Help(unittest.TestCase):
    def test_needs_no_package(self):
        for command in COMMANDS:
            with self.subTest(command):
                # -S: no site-packages, as on a machine where nothing has been installed.
                said = subprocess.run(
                    [sys.executable, "-S", "-m", "devkit", command, "--help"], cwd=TOOLS, capture_output=True, text=True
                )  # fmt: skip
                self.assertEqual((said.returncode, said.stderr), (0, ""))
                self.assertIn("tools/dev " + command, said.stdout)


if __name__ == "__main__":
    unittest.main()
