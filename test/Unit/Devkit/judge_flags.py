"""The judge's command line: its own flags, the compiler's, and those after --run (devkit/judge.py)."""

import unittest

import devkit_path  # noqa: F401
from devkit.console import Failure
from devkit.judge import Options, Verdict, named_findings, summary


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


def report(*names, buffers=()):
    """What `check --json` says: a finding for each list of names, and buffers of the file."""
    initializers = [{"name": "a.weight", "role": "parameter"}, *({"name": name, "role": "constant"} for name in buffers)]
    return {"findings": [{"names": list(each)} for each in names], "initializers": initializers}


class NamedFindings(unittest.TestCase):
    def test_are_about_a_parameter_or_a_layer_that_differs(self):
        differs = {"a.weight": False, "b.bias": False}
        self.assertEqual(named_findings(report(["a.weight"]), differs), ["a.weight"])
        self.assertEqual(named_findings(report(["c.weight", "b"]), differs), ["b"])
        self.assertEqual(named_findings(report(["a.weigh"], ["c"], []), differs), [])

    def test_are_about_what_is_missing_where_something_is(self):
        differs = {"a.weight": False, "b.bias": True}
        self.assertEqual(named_findings(report(["a.weight"], ["b.bias"]), differs), ["b.bias"])
        self.assertEqual(named_findings(report(["a.weight"], ["mean"], buffers=["mean"]), differs), [])

    def test_may_be_about_a_buffer(self):
        self.assertEqual(named_findings(report(["center"], buffers=["center"]), {"a.weight": False}), ["center"])
        self.assertEqual(named_findings(report(["center"]), {"a.weight": False}), [])


class Summary(unittest.TestCase):
    def verdicts(self, *states):
        made = []
        for state, said in states:
            made.append(Verdict(None))
            made[-1].state, made[-1].said = state, said
            made[-1].differs = {} if state == "ok" else {"a.weight": False}
        return made

    def test_counts_what_is_said(self):
        self.assertEqual(summary(self.verdicts(("ok", ""), ("ok", ""))), "2 of 2 files hold")
        mixed = self.verdicts(("ok", ""), ("FAIL", "warned"), ("warned", "warned"), ("FAIL", "refused"), ("FAIL", ""))
        self.assertEqual(summary(mixed), "1 of 5 files hold, 2 warned about by name, 1 refused by name, 1 silently wrong")
        untold = self.verdicts(("ok", ""), ("untold", "untold"), ("FAIL", ""))
        untold[2].differs, untold[2].note = {}, "allocated bytes differ from the plan"
        self.assertEqual(summary(untold), "1 of 3 files hold, 0 warned about by name, 0 refused by name, 1 of which no file tells, 0 silently wrong, 1 fail otherwise")
        for loss in (2.0, float("nan"), float("inf")):
            untold[2].loss = loss
            self.assertIn("1 silently wrong", summary(untold))
        untold[2].loss, untold[2].differs = 0.1, {"a.weight": False}
        self.assertEqual(summary(untold), "1 of 3 files hold, 0 warned about by name, 0 refused by name, 1 of which no file tells, 1 silently wrong")


if __name__ == "__main__":
    unittest.main()
