"""What is read of `lowtide fit --json` (devkit/fit_table.py)."""

import json
import unittest

import devkit_path  # noqa: F401
from devkit.fit_table import training_step

TRAIN, GRADIENT = {"entry": "train", "plans": [{"recomputed": 1}]}, {"entry": "gradient", "plans": []}


def said(*entries):
    return json.dumps({"entries": entries}, indent=2) + "\n"


class Figures(unittest.TestCase):
    def test_are_those_of_the_training_step(self):
        self.assertEqual(training_step(said(GRADIENT, TRAIN)), TRAIN)
        self.assertEqual(training_step(said(GRADIENT)), GRADIENT)

    def test_stand_among_other_lines(self):
        log = "$ lowtide fit '{x}.onnx' --json\nwarning: {y}\n" + said(TRAIN) + "note: {z}\n"
        self.assertEqual(training_step(log), TRAIN)

    def test_that_are_missing_are_an_error_in_words(self):
        with self.assertRaisesRegex(ValueError, "no figures .*: killed"):
            training_step("killed")


if __name__ == "__main__":
    unittest.main()
