"""What each method of the search contributes, from the figures of `lowtide fit --json` (devkit/sweep.py)."""

import unittest

import devkit_path  # noqa: F401
from devkit.sweep import Contributions, time_at

METHODS = {"cuts": "c", "blocks": "b"}


def figures(plans, seconds=1.0):
    plans = [{"budget_bytes": size, "device_bytes": size, "time_percent": time} for size, time in plans]
    return {"methods": METHODS, "wall_seconds": seconds, "plans": plans}


class Methods(unittest.TestCase):
    def test_a_budget_takes_the_cheapest_plan_within_it(self):
        whole = figures([(100, 9.0), (200, 4.0), (300, 0.0)])
        self.assertEqual([time_at(whole, budget) for budget in (50, 100, 250, 300)], [9.0, 9.0, 4.0, 0.0])

    def test_what_a_method_contributes(self):
        contributions = Contributions()
        without = {"cuts": figures([(100, 9.0), (200, 4.0), (300, 0.0)], 0.5), "blocks": figures([(150, 9.5), (200, 3.0), (300, 0.0)])}
        contributions.add("m", figures([(100, 9.0), (200, 4.0), (300, 0.0)]), without)
        cuts, blocks = contributions.rows()
        self.assertEqual(cuts, ["cuts", "0", "0 of 3", "0", "+0.000", "+0.00", "", "+0.00 %", "-0.5"])
        # Half a point lost, a point won, and a smallest plan of half as much again.
        self.assertEqual(blocks, ["blocks", "1", "1 of 3", "1", "-0.167", "+0.50", "m", "+50.00 %", "+0.0"])


if __name__ == "__main__":
    unittest.main()
