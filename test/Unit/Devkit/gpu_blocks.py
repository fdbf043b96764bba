"""Block statistics, rejection, and ratios of contenders that took turns (devkit/gpu/blocks.py)."""

import math
import unittest

import devkit_path  # noqa: F401
from devkit.gpu import blocks


def run(who, cycle, median, steady=True):
    return {"who": who, "cycle": cycle, "median_ms": median, "steady": steady, **({} if steady else {"why": "blocks differ by 9.0 %, more than 3 %"})}


def cycle(number, ours, theirs, drift=0.0):
    """A-B-B-A on a clock that slows down by `drift` from turn to turn."""
    turns = [("ours", ours), ("compile", theirs), ("compile", theirs), ("ours", ours)]
    return [run(who, number, time + drift * (4 * number + i)) for i, (who, time) in enumerate(turns)]


class Blocks(unittest.TestCase):
    def test_quantiles_are_nearest_ranks(self):
        values = list(range(10, 0, -1))
        self.assertEqual([blocks.quantile(values, at) for at in (0.1, 0.5, 0.9, 1.0)], [1, 5, 9, 10])
        self.assertEqual(blocks.quantile([3.0], 0.9), 3.0)

    def test_a_steady_run(self):
        found = blocks.summary([10.0] * 8 + [10.1, 10.4])
        self.assertEqual((found["median_ms"], found["p10_ms"], found["p90_ms"]), (10.0, 10.0, 10.1))
        self.assertAlmostEqual(found["spread"], 0.01)
        self.assertTrue(found["steady"])

    def test_an_unsteady_run_is_rejected(self):
        found = blocks.summary([10.0] * 8 + [10.4, 10.4])
        self.assertAlmostEqual(found["spread"], 0.04)
        self.assertFalse(found["steady"])
        self.assertEqual(found["why"], "blocks differ by 4.0 %, more than 3 %")

    def test_no_time_is_no_measurement(self):
        for times in ([], [0.0, 1.0], [math.nan, 1.0], [math.inf, 1.0]):
            self.assertFalse(blocks.summary(times)["steady"], times)

    def test_a_drifting_clock_favours_nobody(self):
        found = blocks.speedup(cycle(0, 10.0, 12.0, 0.5), "ours", "compile")
        # ours at turns 0 and 3, theirs at 1 and 2: both 1.5 turns late on average.
        self.assertAlmostEqual(found["ratio"], 12.75 / 10.75)
        self.assertNotIn("interval", found)

    def test_cycles_make_an_interval(self):
        runs = cycle(0, 10.0, 12.0) + cycle(1, 10.0, 12.5) + cycle(2, 10.0, 11.5)
        found = blocks.speedup(runs, "ours", "compile")
        self.assertEqual(found["cycles"], 3)
        self.assertAlmostEqual(found["ratio"], (1.2 * 1.25 * 1.15) ** (1 / 3))
        logs = [math.log(r) for r in (1.2, 1.25, 1.15)]
        mean = sum(logs) / 3
        half = 4.303 * math.sqrt(sum((x - mean) ** 2 for x in logs) / 2) / math.sqrt(3)
        self.assertAlmostEqual(found["interval"][0], math.exp(mean - half))
        self.assertAlmostEqual(found["interval"][1], math.exp(mean + half))

    def test_a_cycle_with_a_rejected_run_does_not_count(self):
        runs = cycle(0, 10.0, 12.0)
        runs[1] = run("compile", 0, 30.0, steady=False)
        self.assertEqual(blocks.speedup(runs, "ours", "compile"), {"ratio": None, "cycles": 0, "why": "blocks differ by 9.0 %, more than 3 %"})
        found = blocks.speedup(runs + cycle(1, 10.0, 15.0), "ours", "compile")
        self.assertEqual((found["ratio"], found["cycles"], found["rejected_cycles"]), (1.5, 1, 1))
        # Measured once more and steady then, the cycle is whole.
        again = blocks.speedup([*runs, run("compile", 0, 12.0)], "ours", "compile")
        self.assertAlmostEqual(again["ratio"], 1.2)

    def test_half_a_cycle_is_none(self):
        self.assertEqual(blocks.speedup(cycle(0, 10.0, 12.0)[:3], "ours", "compile")["why"], "no whole cycle")

    def test_median_over_the_runs_that_count(self):
        runs = [run("ours", 0, 9.0), run("ours", 0, 10.0), run("ours", 1, 11.0), run("ours", 1, 99.0, steady=False), run("compile", 0, 1.0)]
        self.assertEqual(blocks.median_ms(runs, "ours"), 10.0)
        self.assertIsNone(blocks.median_ms(runs, "eager"))

    def test_only_the_protocol_is_published(self):
        self.assertEqual(blocks.published(dict(blocks.PROTOCOL)), "")
        self.assertEqual(blocks.published(blocks.PROTOCOL | {"blocks": 2}), "blocks 2 instead of 10")
        self.assertIn("spread", blocks.published({"blocks": 10, "steps": 20, "warmup": 20}))


if __name__ == "__main__":
    unittest.main()
