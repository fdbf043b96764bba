"""What the stages of gpu-check conclude from runs (devkit/gpu/models.py, speed.py), without running anything."""

import json
import os
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

import devkit_path
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


class Programs(Folder):
    """What programs of the archive, and others, see of their surroundings."""

    PRINT = "import os; print(os.environ.get('LD_LIBRARY_PATH'), os.environ.get('VIRTUAL_ENV'))"

    def seen(self, command, **variables):
        kept = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "VIRTUAL_ENV")}
        with mock.patch.dict(os.environ, kept | variables, clear=True):
            status, said, error = self.archive.run(command, 60)
        self.assertEqual(status, 0, error)
        return said.split()

    def setUp(self):
        super().setUp()
        program = self.home / "bin" / "lowtide-run"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{self.PRINT}"\n')
        program.chmod(0o755)
        self.ours, self.lib = self.archive.command("lowtide-run"), str(self.home / "lib")

    def test_ours_find_what_came_along(self):
        self.assertEqual(self.seen(self.ours), [self.lib, sys.prefix])
        self.assertEqual(self.seen(self.ours, LD_LIBRARY_PATH="/more", VIRTUAL_ENV="/env"), [f"{self.lib}:/more", "/env"])
        # Under another program too: it starts ours.
        self.assertEqual(self.seen(["/usr/bin/env", *self.ours]), [self.lib, sys.prefix])

    def test_others_keep_their_own(self):
        self.assertEqual(self.seen([sys.executable, "-c", self.PRINT]), ["None", "None"])
        self.assertEqual(self.seen([sys.executable, "-c", self.PRINT], LD_LIBRARY_PATH="/more"), ["/more", "None"])

    def test_libraries_are_those_of_the_python_that_is_given(self):
        other = self.home / "python"
        other.write_text("#!/bin/sh\necho /opt/other\n")
        other.chmod(0o755)
        self.archive = archive.Archive(self.home, python=str(other))
        self.assertEqual(self.seen(self.ours)[1], "/opt/other")
        self.archive = archive.Archive(self.home, python=str(self.home / "nothing"))
        self.assertEqual(self.seen(self.ours)[1], "None")


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

    def test_a_model_in_16_bits_is_judged_by_its_own_band(self):
        (self.home / "models" / "m" / "expected.json").write_text(json.dumps({"loss": {"f32_tolerance": [0.01, 0.01], "f16_tolerance": [0.1, 0.1]}}))
        (self.home / "models" / "m-f16").mkdir()
        (self.home / "models" / "m-f16" / "cpu-step.tide").touch()
        row = ROW | {"name": "m-f16", "record": "m", "expect_key": "f16"}
        with mock.patch.object(models, "train", side_effect=[(summary(losses), "") for losses in ((2.0, 1.0), (2.0, 1.0), (2.05, 1.0))]):
            self.assertAlmostEqual(models.judge_correct(self.archive, row, self.deadline)["beside_cpu"], 0.5)
        command = models.against_the_record(self.archive, self.archive.artifact(row), row, 2)
        record = self.home / "models" / "m"
        for flag in (f"--data={record / 'data.npz'}", f"--expect={record / 'expected.json'}", "--expect-key=f16"):
            self.assertIn(flag, command)
        self.assertIn(str(self.home / "models" / "m-f16" / "cuda-step.tide"), command)

    def sanitize(self, *answers):
        """The finding where compute-sanitizer answers so, tool by tool; the commands."""
        with mock.patch.object(models.os.path, "exists", return_value=True), mock.patch.object(self.archive, "run", side_effect=answers) as run:
            found = models.judge_sanitizer(self.archive, ROW, self.deadline)
        return found, [call.args[0] for call in run.call_args_list]

    def test_sanitizers(self):
        good = (0, "", "========= ERROR SUMMARY: 0 errors")
        found, commands = self.sanitize(good, good, good)
        self.assertIs(found["held"], True)
        self.assertEqual([command[2] for command in commands], ["memcheck", "initcheck", "racecheck"])
        self.assertEqual(["--kernel-name" in command for command in commands], [False, True, True])
        self.assertTrue(all("--poison" in command and any(flag.startswith("--expect=") for flag in command) for command in commands))
        found, _ = self.sanitize(good, (9, "", "loss of step 0: nan"), good)
        self.assertEqual((found["held"], found["why"]), (False, "initcheck: losses leave the record where transient memory is NaN before a step"))
        self.assertIs(self.sanitize(good, (99, "", "========= Uninitialized"), good)[0]["held"], False)
        self.assertIs(self.sanitize(good, good, (1, "", "========= Device not supported"))[0]["held"], None)

    def test_kernels_of_ours_are_known_by_name(self):
        record = (devkit_path.ROOT / "include" / "lowtide" / "Dialect" / "NN" / "Kernel.td").read_text().split("def NN_Emitter ")[1].split("def ")[0]
        emitters = set(re.findall(r'I32EnumAttrCase<"(\w+)"', record))
        self.assertEqual(emitters - {"library"}, set(models.EMITTERS))
        pattern = re.compile(models.OURS[1].removeprefix("regex="))
        self.assertTrue(all(pattern.search(f"{emitter}_12") for emitter in models.EMITTERS))
        for name in ("nvjet_sm90_tst_128x256", "_ZN2at6native13reduce_row_1Ev", "batch_norm_3_kernel"):
            self.assertIsNone(pattern.search(name), name)

    def test_nothing_begins_when_time_is_out(self):
        with mock.patch.object(self.archive, "run") as run:
            self.assertEqual(models.train(self.archive, "x.tide", ROW, archive.Deadline(4)), (None, "no time was left"))
        run.assert_not_called()


class Modelled(unittest.TestCase):
    def test_each_instruction_takes_what_takes_longer(self):
        ceilings = {"copy_gb_per_s": 3000.0, "gemm_gflops": 600e3}
        moves = {"runs": 2, "bytes": 3e9, "flops": 0, "generated": True}
        multiplies = {"runs": 1, "bytes": 3e6, "flops": 6e12, "generated": False}
        # What a kernel of ours computes is hidden behind what it moves.
        computes = {"runs": 1, "bytes": 3e6, "flops": 6e12, "generated": True}
        self.assertAlmostEqual(speed.modelled_ms([moves, multiplies, computes], ceilings), 2 * 1 + 10 + 0.001)
        self.assertIsNone(speed.modelled_ms([moves], ceilings | {"copy_gb_per_s": 0}))


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
        """Contenders in the order of their turns, of which each takes so many seconds of a clock that no one waits for."""
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
