"""Tensors of a run and of a record that go by different names (devkit/record.py)."""

import pathlib
import sys
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
from devkit.record import compare, pair_names  # noqa: E402


def tensors(**shapes):
    return {name.replace("__", "/").replace("_", "."): numpy.zeros(shape) for name, shape in shapes.items()}


class Names(unittest.TestCase):
    def test_of_a_part_of_the_module_are_found(self):
        pairs, missing, extra = pair_names(tensors(fc_weight=(2, 3)), tensors(body_fc_weight=(2, 3)))
        self.assertEqual((pairs, missing, extra), ({"body.fc.weight": "fc.weight"}, [], []))

    def test_that_end_alike_go_by_the_nearest(self):
        ours = tensors(time_bias=(4,), d1_time_bias=(4,), d2_time_bias=(4,))
        recorded = tensors(body_d1_time_bias=(4,), body_time_bias=(4,), body_d2_time_bias=(4,))
        wanted = {f"body.{name}": name for name in ours}
        self.assertEqual(pair_names(ours, recorded), (wanted, [], []))
        self.assertEqual(pair_names(recorded, ours), ({own: name for name, own in wanted.items()}, [], []))

    def test_of_merged_files_are_found_by_their_layers(self):
        recorded = tensors(b_fc_bias=(6,), b_n_bias=(6,), b_n_weight=(6,))
        pairs, missing, extra = pair_names(tensors(back__fc_bias=(6,), back__n_weight=(6,), back__n_bias=(6,)), recorded)
        self.assertEqual(pairs, {"b.fc.bias": "back/fc.bias", "b.n.bias": "back/n.bias", "b.n.weight": "back/n.weight"})
        self.assertEqual((missing, extra), ([], []))

    def test_that_layers_do_not_tell_apart_are_not_paired(self):
        # Two layers called alike, or a name without a module in front of its layer.
        for ours, recorded in (
            (tensors(x__fc_bias=(6,), y__fc_bias=(6,)), tensors(b_fc_bias=(6,), c_fc_bias=(6,))),
            (tensors(x_bias=(6,), y_bias=(6,)), tensors(b_bias=(6,), c_bias=(6,))),
        ):
            pairs, missing, extra = pair_names(ours, recorded)
            self.assertEqual((pairs, len(missing), len(extra)), ({}, 2, 2))


class Differences(unittest.TestCase):
    def test_tell_what_lacks_from_what_is_off(self):
        recorded = {"a": numpy.ones(3), "b": numpy.ones(3), "c": numpy.ones(4), "d": numpy.ones(5)}
        ours = {"a": numpy.ones(3), "b": numpy.full(3, 1.5), "c": numpy.ones((2, 2)), "e": numpy.ones((3, 3))}
        differs = {}
        worst, where, _ = compare(ours, recorded, lambda name: 0.1, relative=True, gradients=recorded, differs=differs)
        self.assertEqual((worst, where), (5.0, "b"))
        self.assertEqual(differs, {"b": False, "c": True, "d": True, "e": True})


if __name__ == "__main__":
    unittest.main()
