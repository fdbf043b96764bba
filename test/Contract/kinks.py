"""The table of points without a derivative is what PyTorch gives: what is recorded, and, where the environment of oracles is, what it gives now."""

import json
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from devkit import dependencies  # noqa: E402


def documented():
    """Lines of the table in docs/numerics.md."""
    text = (ROOT / "docs" / "numerics.md").read_text()
    start = text.index("| function | at | derivative |")
    return text[start : text.index("\n\n", start)].splitlines()


class Kinks(unittest.TestCase):
    def test_every_row_is_recorded(self):
        recorded = json.loads((ROOT / "test/models/kinks-tiny/expected.json").read_text())["state_dict"]
        points = sum(len(line.split(" | ")[1].split(", ")) for line in documented()[2:])
        self.assertEqual(recorded, {"points": ["float32", [points]]})

    def test_pytorch_gives_the_table(self):
        python = dependencies.find_environment("oracles")
        if python is None:  # `tools/dev setup --oracles` brings PyTorch
            return
        run = subprocess.run([python, ROOT / "test/models/kinks.py"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.splitlines(), documented())


if __name__ == "__main__":
    unittest.main()
