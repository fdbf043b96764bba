"""What the stages of gpu-check conclude from runs (devkit/gpu/models.py, speed.py), without running anything."""

import json
import pathlib
import tempfile
import unittest
from unittest import mock

import devkit_path  # noqa: F401
from devkit.gpu import archive, blocks, gate, models, speed

ROW = {"name": "m", "steps": 2, "budgets": {"budget0": 100}, "artifacts": ["step", "at-2GiB"]}


def summary(losses=(2.0, 1.0), held=True, planned=100, allocated=100):
    return {
        "losses": list(losses), "expect_held": held, "expect_worst": 0.5, "expect_report": "loss of step 0", "exit": 0 if held else 9,
        "planned_bytes": planned, "allocated_bytes": allocated, "median_step_ms": 1.0, "target": "cuda:sm_90",
    }  # fmt: skip


class Folder(unittest.TestCase):
    """An archive with one model that has every artifact, and a record with tolerances of 0.01."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.home = pathlib.Path(scratch.name)
        folder = self.home / "models" / "m"
        folder.mkdir(parents=True)
        (folder / "expected.json").write_text(json.dumps({"loss": {"f32_tolerance": [0.01, 0.01]}}))
        for name in ("cuda-step", "cuda-budget0", "cuda-at-2GiB", "cpu-step"):
            (folder / f"{name}.tide").touch()
        (self.home / "contents.json").write_text(json.dumps({"chip": "sm_90", "made": {}, "models": [ROW], "workloads": []}))
        self.archive, self.deadline = archive.Archive(self.home), archive.Deadline(100)


class Models(Folder):
    def judge(self, stage, *runs):
        """The finding where the runs of a model, one after the other, have these summaries (or words in place of one)."""
        answers = [(one, "") if isinstance(one, dict) else (None, one) for one in runs]
        with mock.patch.object(models, "train", side_effect=answers) as train:
            found = models.JUDGES[stage](self.archive, ROW, self.deadline)
        self.assertEqual(train.call_count, len(runs))
        return found

    def test_correct(self):
        found = self.judge("correct", summary(), summary(), summary(losses=(2.005, 1.0)))
        self.assertEqual((found["held"], found["same_bits"]), (True, True))
        self.assertAlmostEqual(found["beside_cpu"], 0.5)

    def test_losses_beside_the_cpu_are_judged(self):
        found = self.judge("correct", summary(), summary(), summary(losses=(2.0, 1.02)))
        self.assertIs(found["held"], False)
        self.assertIn("2 tolerances away from the CPU's losses", found["why"])
        for losses in ((2.0,), (2.0, None), ()):
            self.assertIs(self.judge("correct", summary(), summary(), summary(losses=losses))["held"], False)

    def test_other_bits_other_bytes_other_losses(self):
        self.assertIn("other bits", self.judge("correct", summary(), summary(losses=(2.0, 1.0000001)), summary())["why"])
        self.assertIn("101 bytes allocated, 100 planned", self.judge("correct", summary(allocated=101), summary(), summary())["why"])
        self.assertIn("loss of step 0", self.judge("correct", summary(held=False), summary(), summary())["why"])
        self.assertEqual(self.judge("correct", "error: no driver"), {"held": False, "why": "error: no driver"})
        self.assertIn("on the CPU: error: x", self.judge("correct", summary(), summary(), "error: x")["why"])

    def test_time_that_runs_out_is_no_failure_and_no_success(self):
        for runs in (["no time was left"], [summary(), "no time was left"], [summary(), summary(), "no time was left"]):
            found = self.judge("correct", *runs)
            self.assertEqual((found["held"], found["why"]), (None, "no time was left"))
        # What had failed before stays failed.
        self.assertIs(self.judge("correct", summary(held=False), "no time was left")["held"], False)

    def test_budgets(self):
        self.assertEqual(self.judge("budgets", summary(), summary()), {"held": True, "budgets": [100]})
        self.assertIn("other losses", self.judge("budgets", summary(), summary(losses=(2.0, 1.0000001)))["why"])
        self.assertIn("101 bytes allocated of 100", self.judge("budgets", summary(), summary(allocated=101))["why"])
        self.assertIsNone(self.judge("budgets", summary(), "no time was left")["held"])

    def test_nothing_begins_when_time_is_out(self):
        with mock.patch.object(self.archive, "run") as run:
            self.assertEqual(models.train(self.archive, "x.tide", ROW, archive.Deadline(4)), (None, "no time was left"))
        run.assert_not_called()


class Gate(unittest.TestCase):
    THEIRS = {"first_loss": 10.0, "worst_cosine": 0.9995, "worst_cosine_of": "a", "worst_relative": 0.01, "worst_relative_of": "b"}

    def test_held(self):
        found = gate.judge(10.001, self.THEIRS)
        self.assertIs(found["held"], True)
        self.assertAlmostEqual(found["loss_apart"], 0.001)

    def test_each_bound(self):
        self.assertEqual(gate.judge(10.003, self.THEIRS)["why"], "losses are 0.003 apart")
        self.assertEqual(gate.judge(10.0, self.THEIRS | {"worst_cosine": 0.998})["why"], "the gradient of a has a cosine of 0.99800")
        self.assertEqual(gate.judge(10.0, self.THEIRS | {"worst_relative": 0.03})["why"], "the gradient of b is 3.00 % away")
        for loss, wrong in ((None, {}), (10.0, {"worst_cosine": float("nan")}), (10.0, {"worst_relative": float("nan")})):
            self.assertIs(gate.judge(loss, self.THEIRS | wrong)["held"], False)


class Turns(Folder):
    """Who takes turns, and when a cycle turns round."""

    def setUp(self):
        super().setUp()
        self.row = dict(ROW, torch="m", batch=4, units=10, unit="tok")
        self.results = archive.Results(self.home / "found.json")
        (self.home / "torch_baseline.py").touch()

    def test_everybody_takes_part_whom_nobody_has_measured(self):
        everyone = speed.participants(self.archive, self.results, self.row, [])
        self.assertEqual(everyone, ["ours", "ours-at-2GiB", *speed.MODES])
        self.results.put("torch", "m", [{"workload": "m", "mode": "eager", "median_ms": 5.0}, {"workload": "m", "mode": "compile", "error": "x"}])
        self.assertNotIn("eager", speed.participants(self.archive, self.results, self.row, []))
        self.assertIn("compile", speed.participants(self.archive, self.results, self.row, []))
        self.assertEqual(speed.participants(self.archive, self.results, self.row, ["eager", "ours"]), ["ours", "eager"])
        with self.assertRaisesRegex(ValueError, "no contender 'jax'"):
            speed.participants(self.archive, self.results, self.row, ["ours", "jax"])

    def turns(self, everyone, seconds, limit):
        """Contenders in the order of their turns, of which each takes so many seconds of a clock that nobody waits for."""
        now, taken = [0.0], []
        deadline = mock.Mock(left=lambda: limit - now[0], near=lambda: limit - now[0] < 5)
        with mock.patch.object(speed, "used_bytes", return_value=None), mock.patch.object(speed, "device_name", return_value=None):
            one = speed.Speed(self.archive, self.results, self.row, everyone, dict(blocks.PROTOCOL), deadline, "python3")

        def turn(who, cycle):
            taken.append((who, cycle))
            now[0] += seconds[who]
            return seconds[who]

        with mock.patch.object(one, "turn", turn), mock.patch.object(one, "prepare"):
            one.run()
        self.assertLessEqual(now[0], limit)
        return taken

    def test_three_cycles_where_there_is_time(self):
        taken = self.turns(["a", "b"], {"a": 10, "b": 20}, 450)
        self.assertEqual(taken, [(who, cycle) for cycle in range(3) for who in "abba"])

    def test_a_cycle_turns_round_in_time(self):
        # After a and b 130 s are gone, and as many go by on the way back: c, which may take as long as b did, has no time.
        taken = self.turns(["a", "b", "c"], {"a": 30, "b": 100, "c": 100}, 300)
        self.assertEqual(taken, [(who, 0) for who in "abba"])

    def test_ratios_by_throughput(self):
        with mock.patch.object(speed, "used_bytes", return_value=None), mock.patch.object(speed, "device_name", return_value=None):
            one = speed.Speed(self.archive, self.results, self.row, ["ours", "compile"], dict(blocks.PROTOCOL), self.deadline, "python3")
        times = [("ours", 10.0), ("compile", 15.0), ("compile", 15.0), ("ours", 10.0)]
        one.found["runs"] = [{"who": who, "cycle": 0, "process_bytes": 5, **blocks.summary([time] * 10)} for who, time in times]
        one.conclude()
        found = json.loads((self.home / "found.json").read_text())["speed"]["m"]
        self.assertEqual(found["contenders"]["ours"], {"median_ms": 10.0, "per_second": 4000.0, "process_bytes": 5, "first_loss": None, "last_loss": None})
        self.assertAlmostEqual(found["speedup"]["ours"]["compile"]["ratio"], 1.5)
        self.assertEqual(one.counts(), (2, 0, 0))


if __name__ == "__main__":
    unittest.main()
