"""Flags that `tools/dev combinations` draws (devkit/combinations.py)."""

import random
import unittest

import devkit_path  # noqa: F401
from devkit.combinations import draw, name_of


class Draws(unittest.TestCase):
    def test_depend_on_the_seed_alone(self):
        draws = [draw(random.Random(f"0 gpt-tiny/model.onnx {i}"), []) for i in range(50)]
        self.assertEqual(draws, [draw(random.Random(f"0 gpt-tiny/model.onnx {i}"), []) for i in range(50)])
        self.assertGreater(len({tuple(flags) for flags, _ in draws}), 45)

    def test_leave_what_is_given(self):
        for i in range(50):
            flags, budget = draw(random.Random(i), ["--target=cpu", "--optimizer=sgd", "--disk-budget=1MiB"])
            self.assertFalse({"--target", "--optimizer", "--disk-budget"} & {name_of(flag) for flag in flags + budget})

    def test_ask_for_a_part_on_the_device(self):
        for i in range(50):
            _, budget = draw(random.Random(i), [])
            self.assertRegex(budget[0], r"^--device-budget=\d\d%$")
