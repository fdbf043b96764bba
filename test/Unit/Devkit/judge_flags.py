"""The judge's command line: its own flags, the compiler's, and those after --run (devkit/judge.py)."""

import unittest

import devkit_path  # noqa: F401
from devkit.console import Failure
from devkit.judge import Options


class Flags(unittest.TestCase):
    def test_are_split_in_three(self):
        options = Options(["models", "--only=gpt", "--precision=mixed-bf16", "--run", "--threads=1", "--seed", "3"])
        self.assertEqual([str(folder) for folder in options.folders], ["models"])
        self.assertEqual(options.only, ["gpt"])
        self.assertIn("--precision=mixed-bf16", options.compile_flags)
        self.assertEqual(options.precision, "mixed-bf16")
        self.assertEqual(options.run_flags, ["--threads=1", "--seed", "3"])

    def test_of_the_judge_are_refused_behind_run(self):
        for flag in ("--only=gpt", "--bin=build/bin", "--expect-refused=x.onnx", "--json=x", "--jobs=2", "--keep=x"):
            with self.assertRaisesRegex(Failure, f"{flag} after --run.*\n.*in front of --run"):
                Options(["models", "--run", "--threads=1", flag])


if __name__ == "__main__":
    unittest.main()
