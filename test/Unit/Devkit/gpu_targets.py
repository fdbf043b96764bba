"""The targets on a GPU, filled in from findings (devkit/gpu/targets.py): reached, missed, and what must not count."""

import unittest
from unittest import mock

import devkit_path  # noqa: F401
from devkit import workloads
from devkit.gpu import blocks, targets

GIB = 1 << 30


def speed(ratio, per_second, process=8 * GIB, allocated=7 * GIB, unit="tok", batch=16, **details):
    """A workload that was measured against torch.compile, whose process takes 16 GiB."""
    row = {"median_ms": 30.0, "per_second": per_second, "process_bytes": process}
    found = {
        "workload": "gpt2", "protocol": dict(blocks.PROTOCOL), "device": "NVIDIA H200", "emulated": False, "batch": batch, "unit": unit,
        "runs": [{"who": "ours", "target": "cuda:sm_90", "planned_bytes": allocated, "allocated_bytes": allocated}],
        "contenders": {"ours": row, "compile": {"median_ms": 30.0 * ratio, "per_second": per_second / ratio, "process_bytes": 16 * GIB}},
        "speedup": {"ours": {"compile": {"ratio": ratio, "cycles": 3, "interval": [ratio - 0.01, ratio + 0.01]}}},
        "details": {"ours": {"ceilings": {"copy_gb_per_s": 4000.0}, **details}},
    }  # fmt: skip
    return found


def content(**workloads):
    found = {name.replace("_", "-"): found for name, found in workloads.items()}
    return {"speed": found, "gate": {name: {"held": True} for name in found}}


def row(name, findings):
    return next(one for one in targets.fill(findings) if one["row"] == name)


class Targets(unittest.TestCase):
    def verdict(self, name, findings):
        return row(name, findings)["verdict"]

    def test_nothing_is_claimed_of_nothing(self):
        rows = targets.fill({})
        self.assertEqual([one["row"] for one in rows], [f"G{i}" for i in range(1, 13)])
        for one in rows:
            self.assertTrue(one["verdict"].startswith("not measured: "), one)
            self.assertEqual(one["measured"], "–")
        self.assertEqual(next(targets.table({})), "Nothing of this was measured on a GPU.")

    def test_every_workload_that_is_asked_for_exists(self):
        asked = set(targets.COMPARED.values())

        def workload(measured, name, **_):
            asked.add(name)
            raise targets.Unmeasured("not asked on")

        # Of a large batch too, beside which another workload is looked up.
        with mock.patch.object(targets.Measured, "workload", workload):
            targets.fill(content(gpt2=speed(1.3, 600e3), gpt2_b3000=speed(1.0, 500e3, batch=3000)))
        self.assertLessEqual(asked - {"gpt2-b3000"}, set(workloads.WORKLOADS))
        self.assertLessEqual({"gpt2", "gpt2-b64", "resnet50", "bert-large"}, asked)
        self.assertEqual(self.verdict("G5", {}), "not measured: no workload of that size is carried")

    def test_reached_gate_and_missed(self):
        self.assertEqual(self.verdict("G1", content(gpt2=speed(1.3, 600e3))), "reached")
        self.assertEqual(self.verdict("G1", content(gpt2=speed(1.1, 600e3))), "gate reached: 1.1 of ≥ 1.25 × compile (0.88 ×)")
        self.assertEqual(self.verdict("G1", content(gpt2=speed(0.9, 400e3))), "missed: 0.9 of ≥ 1 × compile (0.90 ×)")
        self.assertIn("1.3 × compile (1.290 to 1.310); 600,000 tok/s", row("G1", content(gpt2=speed(1.3, 600e3)))["measured"])

    def test_what_is_no_measurement(self):
        other = speed(1.3, 600e3)
        other["protocol"]["blocks"] = 2
        self.assertEqual(self.verdict("G1", content(gpt2=other)), "not measured: gpt2 not by the protocol: blocks 2 instead of 10")
        fake = speed(1.3, 600e3)
        fake["runs"][0]["target"] = "cuda-emulated"
        self.assertEqual(self.verdict("G1", content(gpt2=fake)), "not measured: gpt2 did not run on a GPU")
        self.assertEqual(self.verdict("G11", content(gpt2=fake)), "not measured: nothing ran on a GPU")
        unsteady = speed(1.3, 600e3)
        unsteady["contenders"]["ours"] = {"why": "blocks differ by 9.0 %, more than 3 %"}
        self.assertEqual(self.verdict("G1", content(gpt2=unsteady)), "not measured: blocks differ by 9.0 %, more than 3 %")
        alone = speed(1.3, 600e3)
        alone["speedup"] = {}
        self.assertEqual(self.verdict("G1", content(gpt2=alone)), "not measured: compile: PyTorch was not measured")
        self.assertTrue(self.verdict("G1", {"emulated speed": {"gpt2": speed(1.3, 600e3)}}).startswith("not measured"))

    def test_what_does_not_train_the_same_is_not_compared(self):
        found = content(gpt2=speed(1.3, 600e3))
        found["gate"] = {}
        self.assertEqual(self.verdict("G1", found), "reached: the gate of gpt2 was not passed")
        found["gate"] = {"gpt2": {"held": False, "why": "losses are 0.1 apart"}}
        self.assertEqual(self.verdict("G1", found), "not measured: the gate of gpt2 does not hold: losses are 0.1 apart")
        found = content(gpt2=speed(1.3, 600e3))
        found["speed"]["gpt2"]["same_start"] = True
        for who, loss in (("ours", 7.0), ("compile", 6.9)):
            found["speed"]["gpt2"]["contenders"][who]["last_loss"] = loss
        self.assertEqual(self.verdict("G1", found), "not measured: losses of ours and compile end 1.4 % apart")
        found["speed"]["gpt2"]["contenders"]["compile"]["last_loss"] = 6.95
        self.assertEqual(self.verdict("G1", found), "reached")

    def test_reused_contenders_say_so(self):
        found = speed(1.3, 600e3)
        found["speedup"]["ours"]["compile"] = {"ratio": 1.3, "cycles": 0, "reused": True}
        self.assertIn("(against an earlier run)", row("G1", content(gpt2=found))["measured"])

    def test_memory_counts_at_its_speed(self):
        self.assertEqual(self.verdict("G3", content(gpt2=speed(1.3, 600e3, process=7 * GIB))), "reached")
        self.assertTrue(self.verdict("G3", content(gpt2=speed(1.1, 600e3, process=7 * GIB))).startswith("gate reached: 1.1 of ≥ 1.2 × compile"))
        self.assertTrue(self.verdict("G3", content(gpt2=speed(0.9, 600e3, process=7 * GIB))).startswith("missed: 0.9 of"))
        # A fitted artifact that is fast enough counts, although the whole one takes more.
        both = speed(1.3, 600e3, process=12 * GIB)
        both["contenders"]["ours-at-50"] = {"median_ms": 31.0, "per_second": 580e3, "process_bytes": 6 * GIB}
        both["speedup"]["ours-at-50"] = {"compile": {"ratio": 1.25, "cycles": 3, "interval": [1.2, 1.3]}}
        self.assertEqual(self.verdict("G3", content(gpt2=both)), "reached")
        both["speedup"]["ours-at-50"]["compile"]["ratio"] = 0.99
        self.assertTrue(self.verdict("G3", content(gpt2=both)).startswith("missed: 0.75 of ≤ 0.6"))

    def test_the_smallest_plan_stands_for_layer_rematerialization(self):
        found = speed(1.3, 600e3)
        found["contenders"]["ours-at-2.5GiB"] = {"median_ms": 34.0, "per_second": 490e3, "process_bytes": 3 * GIB}
        found["runs"].append({"who": "ours-at-2.5GiB", "target": "cuda:sm_90", "planned_bytes": 2 * GIB, "allocated_bytes": 2 * GIB})
        found["speedup"]["ours-at-2.5GiB"] = {"checkpoint": {"ratio": 1.4, "cycles": 1}}
        self.assertEqual(self.verdict("G4", content(gpt2=found)), "reached")
        self.assertIn("× checkpoint without compile (one cycle)", row("G4", content(gpt2=found))["measured"])
        found["speedup"]["ours-at-2.5GiB"]["compile-checkpoint"] = {"ratio": 1.0, "cycles": 1}
        self.assertTrue(self.verdict("G4", content(gpt2=found)).startswith("missed: 1 of ≥ 1.1 × compile+checkpoint"))

    def test_images_need_speed_and_memory_of_one_artifact(self):
        self.assertEqual(self.verdict("G6", content(resnet50=speed(1.1, 8.5e3, allocated=5 * GIB, unit="img"))), "reached")
        self.assertEqual(self.verdict("G6", content(resnet50=speed(1.1, 8.5e3, allocated=11 * GIB, unit="img"))), "gate reached: 11 of ≤ 5.5 GiB (2.00 ×)")

    def test_largest_batch(self):
        found = content(gpt2=speed(1.3, 600e3), gpt2_b700=speed(1.0, 500e3, batch=700))
        found["speed"]["gpt2-b700"]["protocol"] = {"blocks": 1}
        self.assertEqual(self.verdict("G8", found), "gate reached: 700 of ≥ 3,000 samples (0.23 ×)")
        found["speed"]["gpt2-b3000"] = speed(1.0, 500e3, batch=3000)
        self.assertTrue(self.verdict("G8", found).startswith("not measured: no run of gpt2-b64"))
        found["speed"]["gpt2-b64"] = speed(1.0, 600e3, batch=64)
        self.assertEqual(self.verdict("G8", found), "reached")

    def test_kernels_beside_the_copy(self):
        self.assertEqual(self.verdict("G9", content(gpt2=speed(1.3, 6e5, long_kernels_gb_per_s=[3700.0, 3800.0, 100.0]))), "reached")
        self.assertEqual(self.verdict("G9", content(gpt2=speed(1.3, 6e5, long_kernels_gb_per_s=[3200.0] * 3))), "gate reached: 80 of ≥ 90 % of copy (0.89 ×)")
        self.assertTrue(self.verdict("G9", content(gpt2=speed(1.3, 6e5, long_kernels_gb_per_s=[]))).startswith("not measured"))

    def test_idling_can_be_shown_but_not_excluded(self):
        self.assertTrue(self.verdict("G10", content(gpt2=speed(1.3, 6e5, floor_ms={"instructions": 24.0}))).startswith("missed: 20 of ≤ 5 % idle"))
        self.assertTrue(self.verdict("G10", content(gpt2=speed(1.3, 6e5, floor_ms={"instructions": 31.0}))).startswith("not measured: gpt2: instructions"))

    def test_planned_bytes(self):
        ran = {"target": "cuda:sm_90", "planned_bytes": 1000, "allocated_bytes": 1000}
        self.assertEqual(self.verdict("G11", {"correct": {"a": ran, "device": ["driver"]}}), "reached")
        self.assertTrue(self.verdict("G11", {"correct": {"a": ran, "b": ran | {"allocated_bytes": 1005}}}).startswith("gate reached: 0.5 % apart"))
        self.assertTrue(self.verdict("G11", {"correct": {"a": ran | {"allocated_bytes": 2000}}}).startswith("missed"))

    def test_the_model_of_time(self):
        found = content(gpt2=speed(1.3, 6e5))
        self.assertTrue(self.verdict("G12", found).startswith("not measured"))
        found["speed"]["gpt2"]["details"]["ours"]["modelled_ms"] = 27.0
        self.assertEqual(self.verdict("G12", found), "gate reached: 10 of ≤ 7 % (1.43 ×)")
        self.assertIn("27.00 ms modelled, 30.00 ms measured", row("G12", found)["measured"])

    def test_several_files_make_one_table(self):
        first = content(gpt2=speed(0.9, 4e5))
        whole = targets.together([first, content(resnet50=speed(1.1, 8.5e3, allocated=5 * GIB)), content(gpt2=speed(1.3, 6e5))])
        self.assertEqual((self.verdict("G1", whole), self.verdict("G6", whole)), ("reached", "reached"))
        self.assertEqual(first, content(gpt2=speed(0.9, 4e5)))


if __name__ == "__main__":
    unittest.main()
