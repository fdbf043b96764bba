"""Which aims a training step's bytes miss (devkit/peaks.py)."""

import unittest

import devkit_path  # noqa: F401
from devkit.peaks import Line, table

MIB = 1 << 20


def line(**figures):
    return Line(**{"row": "row", "case": "case", "eager": 10 * MIB, "hand": 5 * MIB, "largest": 10 * MIB, "smallest": 6 * MIB, **figures})


class Aims(unittest.TestCase):
    def test_are_met_at_their_bounds(self):
        self.assertEqual(line().misses(), [])

    def test_name_what_is_above_them(self):
        self.assertEqual(line(largest=15 * MIB).misses(), ["1.50 times eager"])
        self.assertEqual(line(smallest=7 * MIB).misses(), ["1.40 times the hand figure"])
        self.assertEqual(line(smallest=7 * MIB, hand=None).misses(), [])

    def test_are_missed_without_a_plan(self):
        self.assertEqual(line(largest=None, smallest=None, limit=60).misses(), ["no plan within 60 s"])


class Table(unittest.TestCase):
    def test_has_a_line_a_case_and_says_what_the_hand_did(self):
        text = table([line(by_hand="rows alone"), line(case="other", by_hand="rows alone"), line(case="unknown", hand=None)])
        self.assertIn("| row | case | 10.0 | 10.0 | 6.0 | 5.0 |  |", text)
        self.assertIn("| row | unknown | 10.0 | 10.0 | 6.0 | - |  |", text)
        self.assertTrue(text.endswith("- row (case, other): rows alone"), text)


if __name__ == "__main__":
    unittest.main()
