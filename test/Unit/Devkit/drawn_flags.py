"""Flags that `tools/dev combinations` draws (devkit/combinations.py)."""

import random
import unittest

import devkit_path  # noqa: F401
from devkit.combinations import draw, name_of, without_refused


class Draws(unittest.TestCase):
    def test_depend_on_the_seed_alone(self):
        draws = [draw(random.Random(f"0 gpt-tiny/model.onnx {i}"), []) for i in range(50)]
        self.assertEqual(draws, [draw(random.Random(f"0 gpt-tiny/model.onnx {i}"), []) for i in range(50)])
        self.assertGreater(len({tuple(drawn.flags) for drawn in draws}), 45)

    def test_leave_what_is_given(self):
        for i in range(50):
            drawn = draw(random.Random(i), ["--target=cpu", "--optimizer=sgd", "--disk-budget=1MiB"])
            self.assertFalse({"--target", "--optimizer", "--disk-budget"} & {name_of(flag) for flag in drawn.flags + drawn.plan})

    def test_ask_for_a_part_on_the_device(self):
        for i in range(50):
            self.assertRegex(draw(random.Random(i), []).plan[0], r"^--device-budget=\d\d%$")

    def test_stop_within_the_run(self):
        self.assertEqual({draw(random.Random(i), [], steps=3).stops for i in range(50)}, {1, 2})

    def test_leave_the_number_of_chunks_to_the_plan(self):
        for i in range(50):
            drawn = draw(random.Random(i), [])
            chunked = [[name_of(flag) for flag in flags].count("--loss-head-chunks") for flags in (drawn.flags, drawn.plan)]
            self.assertIn(chunked, ([0, 0], [1, 1]))


class Refusals(unittest.TestCase):
    def test_leave_out_the_last_flag_that_is_named(self):
        flags = ["--target=cpu", "--entries=train", "--optimizer=sgd", "--ema=0.9", "--lora=*:r=2"]
        self.assertEqual(without_refused(flags, "lora: '*0*' matches no layer"), flags[:-1])
        self.assertEqual(without_refused(flags, "--ema=0.9 needs --lora"), flags[:-1])
        self.assertIsNone(without_refused(flags, "--target=cpu has no such thing"))
