"""The archive of tools/dev bundle, unpacked and driven through its stages on the fake device: gpu_check.py SCRATCH.

Programs are found on PATH. PyTorch, nvidia-smi and compute-sanitizer are stand-ins that say what the test wants to hear.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
from devkit import bundle  # noqa: E402
from devkit.console import Failure  # noqa: E402
from devkit.gpu import batches  # noqa: E402

SCRATCH = pathlib.Path(sys.argv.pop()).resolve()
HOME = SCRATCH / "lowtide-gpu"
BIN = pathlib.Path(shutil.which("lowtide")).parent
FIRST, SECOND = "cnn-digits-model", "mlp-digits-model"
# SECOND in 16 bits.
NARROW = {"mlp-digits-bf16": "bf16", "mlp-digits-f16": "f16"}

# What a stage measures with PyTorch: block times of each mode, in milliseconds.
CONTENDER = """import json, os, sys, time
given = dict(argument[2:].split("=", 1) for argument in sys.argv[1:])
if "gradients" in given:
    for name in ("weights", "gradients"):
        assert b"body.0.weight" in open(given[name], "rb").read(), name
    found = {"first_loss": float(os.environ["FIRST_LOSS"]), "worst_cosine": 1, "worst_relative": 0, "worst_cosine_of": "", "worst_relative_of": ""}
    sys.exit(json.dump(found, open(given["json"], "w")))
times = {"compile": 4000.0, "eager": 8000.0}
if given["mode"] not in times:
    sys.exit("RuntimeError: CUDA out of memory")
open(os.environ["USED"], "w").write("5000000")
time.sleep(0.2)
open(os.environ["USED"], "w").write("1000")
json.dump({"blocks": {"step_ms": [times[given["mode"]]] * int(given["blocks"])}, "first_step_s": 1.5, "tensor_bytes": 123, "data": given["data"]}, open(given["json"], "w"))
"""
# torch_baseline.py: a row at once; then the other one, or nothing any more.
BASELINE = """import json, os, pathlib, sys, time
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
out = pathlib.Path(given["--out"]) / "torch_baseline.json"
rows = [{"workload": "ceilings", "device": "Stand-in GPU"}, {"workload": given["--only"], "mode": "eager", "median_ms": 3000.0}, {"workload": "other", "median_ms": 1.0}]
out.write_text(json.dumps(rows))
if "HANG" in os.environ:
    time.sleep(1000)
out.write_text(json.dumps([*rows, {"workload": given["--only"], "mode": "compile", "median_ms": 2000.0}]))
"""
NVIDIA_SMI = '#!/bin/sh\ncase "$*" in *=name*) echo "Stand-in of nvidia-smi";; *) echo 1000;; esac\n'
# The driver's library: as many bytes are in use as the file USED says.
NVML = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { *handle = (void *)7; return index; }
int nvmlDeviceGetName(void *handle, char *name, unsigned size) { strncpy(name, "Stand-in GPU", size); return handle != (void *)7; }
int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *memory) {
  FILE *file = fopen(getenv("USED"), "r");
  memory[2] = 1000;
  if (file && fscanf(file, "%llu", &memory[2]) == 1) fclose(file);
  return handle != (void *)7;
}
"""
# Runs what it is given; sees an error of the tool that SEEN names.
SANITIZER = '#!/bin/sh\ntool=$2\nwhile [ "${1#--}" != "$1" ]; do shift 2; done\n"$@" || exit\necho "========= ERROR SUMMARY of $tool"\n[ "$tool" != "$SEEN" ] || exit 99\n'
TRIAL = ["--blocks=3", "--steps=2", "--warmup=1", "--spread=1000000"]


def make_archive():
    model = ROOT / "test" / "models" / "mlp-digits" / "model.onnx"
    output = SCRATCH / "lowtide-gpu.tar.gz"
    done = subprocess.run(
        [sys.executable, "-B", "-m", "devkit", "bundle", f"--bin={BIN}", "--emulated", "--only=digits-model", "--narrow=mlp-digits", "-o", output,
         f"--workload=tiny={model},--dim=batch=64,--optimizer=sgd"],
        capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=str(ROOT / "tools")),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    subprocess.run(["tar", "xf", output, "-C", SCRATCH], check=True)
    return output, done.stderr


def stand_ins():
    folder = SCRATCH / "stand-ins"
    folder.mkdir()
    for name, text in (("nvidia-smi", NVIDIA_SMI), ("compute-sanitizer", SANITIZER)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    library = folder / "nvml" / "libnvidia-ml.so.1"
    library.parent.mkdir()
    subprocess.run(["clang-22", "-shared", "-fPIC", "-o", library, "-x", "c", "-"], input=NVML, text=True, check=True)
    return str(folder)


def command(stage, report, *flags):
    return [sys.executable, HOME / "gpu-check", f"--stage={stage}", f"--json={report}", *flags]


def environment(**more):
    # Nothing of the checkout may be needed: not its modules, not its programs.
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return kept | {"PATH": os.pathsep.join([STAND_INS, "/usr/bin", "/bin"]), "PYTHONDONTWRITEBYTECODE": "1",
                   "LD_LIBRARY_PATH": str(pathlib.Path(STAND_INS) / "nvml"), "USED": str(SCRATCH / "used")} | more  # fmt: skip


def contents(change=None):
    """The table of contents; rewritten where `change` changes it."""
    path = HOME / "contents.json"
    found = json.loads(path.read_text())
    if change:
        change(found)
        path.write_text(json.dumps(found))
    return found


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.report = SCRATCH / f"{self._testMethodName}.json"
        self.kept = (HOME / "contents.json").read_text()

    def tearDown(self):
        (HOME / "contents.json").write_text(self.kept)

    def stage(self, stage, *flags, status=0, **more):
        done = subprocess.run(command(stage, self.report, "--emulated", *flags), capture_output=True, text=True, cwd=SCRATCH, env=environment(**more), timeout=280)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(self.report.read_text()).get(f"emulated {stage.partition(':')[0]}"), done.stdout

    def test_size(self):
        whole = ARCHIVE.stat().st_size + bundle.tracked_bytes()
        self.assertIn(f"{whole:,} with the tracked tree", SAID)
        self.assertLess(whole, 60 << 20)
        copy = SCRATCH / "copy.tar.gz"
        shutil.copy2(ARCHIVE, copy)
        self.assertEqual(bundle.require_size(copy, whole), whole)
        with self.assertRaisesRegex(Failure, "bytes with the tracked tree, more than .*\n.*--max-bytes"):
            bundle.require_size(copy, whole - 1)
        self.assertFalse(copy.exists())

    def test_programs_bring_their_libraries(self):
        for program in ("lowtide-run", "lowtide-bench"):
            needed = [name for name, _ in bundle.libraries(HOME / "bin" / program)]
            self.assertIn("libstdc++.so.6", needed)
            self.assertEqual([name for name in needed if not (HOME / "lib" / name).exists()], [])

    def test_correct(self):
        found, said = self.stage("correct")
        for name in (FIRST, SECOND, *NARROW):
            row = found[name]
            self.assertEqual((row["held"], row["same_bits"], row["target"]), (True, True, "cuda-emulated"), row)
            self.assertEqual(row["planned_bytes"], row["allocated_bytes"])
            self.assertLessEqual(row["worst"], 1)
            self.assertLessEqual(row["beside_cpu"], 1)
        self.assertGreater(found["ceilings"]["copy_gb_per_s"], 0)
        self.assertEqual(sorted(found["ceilings"]["gemm_gflops"]), ["bf16", "f16", "f32"])
        self.assertIn("driver", found["device"][0])
        self.assertNotIn("correct", json.loads(self.report.read_text()), "the fake device passes for a GPU")
        self.assertIn("4 held, 0 failed, 0 not done", said)

    def test_models_in_16_bits_are_trained_in_16_bits(self):
        rows = {row["name"]: row for row in contents()["models"]}
        self.assertEqual({name: (row["record"], row["expect_key"]) for name, row in rows.items() if "record" in row}, {name: (SECOND, key) for name, key in NARROW.items()})
        home = HOME / "models"
        losses = set()
        for name in (SECOND, *NARROW):
            report = SCRATCH / "losses.json"
            subprocess.run([HOME / "bin" / "lowtide-run", home / name / "emulated-step.tide", f"--data={home / SECOND / 'data.npz'}", "--steps=2", f"--summary={report}", "--quiet"],
                           check=True, env=environment(LD_LIBRARY_PATH=str(HOME / "lib")))  # fmt: skip
            losses.add(tuple(json.loads(report.read_text())["losses"]))
        self.assertEqual(len(losses), 3, losses)

    def test_losses_that_leave_the_record_fail(self):
        record = HOME / "models" / SECOND / "expected.json"
        kept = record.read_text()
        wrong = json.loads(kept)
        wrong["loss"]["f64"][3] += 1
        record.write_text(json.dumps(wrong))
        try:
            found, _ = self.stage("correct", f"--only={SECOND}", status=1)
        finally:
            record.write_text(kept)
        self.assertIs(found[SECOND]["held"], False)
        self.assertNotIn(FIRST, found)

    def test_without_a_gpu_nothing_holds(self):
        done = subprocess.run(command("correct", self.report, f"--only={SECOND}"), capture_output=True, text=True, env=environment())
        self.assertEqual(done.returncode, 1, done.stdout)
        found = json.loads(self.report.read_text())["correct"]
        self.assertIs(found[SECOND]["held"], False)
        self.assertIn("no CUDA driver", found[SECOND]["why"] + found["ceilings"]["why"])

    def test_budgets(self):
        found, _ = self.stage("budgets")
        self.assertEqual({name: row["held"] for name, row in found.items()}, dict.fromkeys((FIRST, SECOND, *NARROW), True))
        self.assertEqual([len(found[name]["budgets"]) for name in (FIRST, *NARROW)], [3, 1, 1])
        # What does not fit its budget is said.
        contents(lambda table: table["models"][0]["budgets"].update(budget0=1000))
        found, said = self.stage("budgets", f"--only={FIRST}", status=1)
        self.assertRegex(found[FIRST]["why"], r"budget0: \d+ bytes allocated of 1000")

    def test_memory(self):
        found, _ = self.stage("memory", f"--only={SECOND}")
        row = found[SECOND]
        self.assertEqual((row["held"], row["process_bytes"]), (True, 0))
        self.assertEqual(row["beside_the_plan"], -row["planned_bytes"])

    def test_nvidia_smi_stands_in_for_the_library(self):
        done = subprocess.run([sys.executable, "-c", "from devkit.gpu import driver; print(driver.nvml(), driver.used_bytes(), driver.device_name())"],
                              capture_output=True, text=True, cwd=HOME, env=environment(LD_LIBRARY_PATH=""))  # fmt: skip
        if not done.stdout.startswith("None"):
            self.skipTest("this machine has the driver's library")
        self.assertEqual(done.stdout, f"None {1000 << 20} Stand-in of nvidia-smi\n", done.stderr)

    def test_sanitizer(self):
        found, _ = self.stage("sanitize", f"--only={SECOND}")
        self.assertEqual(found[SECOND]["tools"], {tool: f"========= ERROR SUMMARY of {tool}" for tool in ("memcheck", "initcheck", "racecheck")})
        found, _ = self.stage("sanitize", f"--only={SECOND}", status=1, SEEN="initcheck")
        self.assertEqual(found[SECOND]["why"], "initcheck: ========= ERROR SUMMARY of initcheck")

    def give_contenders(self):
        """PyTorch's side as a stand-in, with one mode measured before on such a machine."""
        (HOME / "devkit" / "gpu" / "torch_contender.py").write_text(CONTENDER)
        (HOME / "torch_baseline.py").write_text("")
        rows = [{"workload": "ceilings", "mode": "-", "device": "Stand-in GPU"}, {"workload": "tiny", "mode": "checkpoint", "median_ms": 2000.0, "process_bytes": 7}]
        (HOME / "torch_baseline.json").write_text(json.dumps(rows))
        contents(lambda table: table["workloads"][0].update(torch="tiny"))

    def test_speed_in_turns(self):
        self.give_contenders()
        found, said = self.stage("speed:tiny", "--contenders=ours,compile,eager", *TRIAL)
        tiny = found["tiny"]
        one_cycle = ["ours", "compile", "eager", "eager", "compile", "ours"]
        self.assertEqual([run["who"] for run in tiny["runs"]], 3 * one_cycle)
        self.assertEqual([run["cycle"] for run in tiny["runs"]], [0] * 6 + [1] * 6 + [2] * 6)
        ours = [run for run in tiny["runs"] if run["who"] == "ours"]
        for run in ours:
            self.assertEqual((len(run["block_ms"]), run["target"], run["planned_bytes"]), (3, "cuda-emulated", run["allocated_bytes"]))
            self.assertEqual(run["batch"], 64)
        self.assertLess(ours[0]["last_loss"], 1.05 * ours[0]["first_loss"])
        table = tiny["contenders"]
        # What the driver counted while a process ran, less what was in use before.
        self.assertEqual((table["ours"]["process_bytes"], table["compile"]["process_bytes"], table["checkpoint"]["process_bytes"]), (0, 4999000, 7))
        self.assertEqual((table["compile"]["median_ms"], table["eager"]["per_second"]), (4000.0, 64 / 8))
        self.assertAlmostEqual(table["ours"]["per_second"], 64e3 / table["ours"]["median_ms"])
        ratios = tiny["speedup"]["ours"]
        self.assertEqual((ratios["compile"]["cycles"], len(ratios["compile"]["interval"])), (3, 2))
        self.assertAlmostEqual(ratios["eager"]["ratio"], 2 * ratios["compile"]["ratio"])
        self.assertAlmostEqual(ratios["checkpoint"]["ratio"], 2000.0 / table["ours"]["median_ms"])
        self.assertTrue(ratios["checkpoint"]["reused"] and table["checkpoint"]["reused"])
        self.assertEqual((tiny["device"], tiny["same_start"]), ("Stand-in GPU", True))
        self.assertIn("gemm", {kind["kind"] for kind in tiny["details"]["ours"]["kinds"]})
        self.assertGreater(tiny["details"]["ours"]["modelled_ms"], 0)
        self.assertRegex(said, r"ours +[\d.]+ ms .* × compile, .* × eager, .* × checkpoint")
        self.assertIn("3 held, 0 failed, 0 not done", said)

    def test_torch_rows_stand_in_for_turns(self):
        self.give_contenders()
        (HOME / "torch_baseline.py").write_text(BASELINE)
        (HOME / "torch_baseline.json").unlink()
        # Cut short, it keeps what was there.
        found, _ = self.stage("torch:tiny", "--limit=7", status=3, HANG="1")
        self.assertEqual([row.get("mode") for row in found["tiny"]], [None, "eager"])
        found, _ = self.stage("torch:tiny")
        self.assertEqual([row.get("median_ms") for row in found["tiny"]], [None, 3000.0, 2000.0])
        found, _ = self.stage("speed:tiny", "--contenders=ours,checkpoint", *TRIAL, status=3)
        ours = found["tiny"]["contenders"]["ours"]["median_ms"]
        ratios = found["tiny"]["speedup"]["ours"]
        self.assertEqual((ratios["compile"], ratios["checkpoint"]["ratio"]), ({"ratio": 2000.0 / ours, "cycles": 0, "reused": True}, None))

    def test_gate(self):
        self.give_contenders()
        first = json.loads((ROOT / "test" / "models" / "mlp-digits" / "expected.json").read_text())["loss"]["f32"][0]
        found, _ = self.stage("gate:tiny", FIRST_LOSS=str(first))
        self.assertIs(found["tiny"]["held"], True)
        self.assertLess(found["tiny"]["loss_apart"], 1e-5)
        found, said = self.stage("gate:tiny", status=1, FIRST_LOSS="2")
        self.assertIs(found["tiny"]["held"], False)
        self.assertIn("FAIL tiny  losses are 0.3", said)

    def test_contenders_of_another_machine_are_measured(self):
        self.give_contenders()
        rows = json.loads((HOME / "torch_baseline.json").read_text())
        rows[0]["device"] = "Another GPU"
        (HOME / "torch_baseline.json").write_text(json.dumps(rows))
        # Modes that PyTorch cannot run are said, and take no second turn.
        found, said = self.stage("speed:tiny", *TRIAL, status=3)
        tiny = found["tiny"]
        self.assertEqual(tiny["contenders"]["checkpoint"], {"why": "RuntimeError: CUDA out of memory"})
        self.assertEqual(sum(run["who"] == "checkpoint" for run in tiny["runs"]), 1)
        self.assertEqual(sum(run["who"] == "compile" for run in tiny["runs"]), 6)
        self.assertIn("3 held, 0 failed, 4 not done", said)

    def test_unsteady_runs_are_rejected(self):
        self.give_contenders()
        found, _ = self.stage("speed:tiny", "--contenders=ours,compile", *TRIAL[:3], "--spread=0", status=3)
        tiny = found["tiny"]
        ours = [run for run in tiny["runs"] if run["who"] == "ours"]
        self.assertEqual(len(ours), 12, "each is measured once more")
        self.assertTrue(all(run["why"].endswith("more than 0 %") for run in ours))
        self.assertIsNone(tiny["speedup"]["ours"]["compile"]["ratio"])
        self.assertNotIn("median_ms", tiny["contenders"]["ours"])

    def test_table(self):
        self.give_contenders()
        contents(lambda table: table["workloads"][0].update(name="gpt2"))
        (HOME / "models" / "gpt2").symlink_to("tiny")
        try:
            self.stage("speed:gpt2", "--contenders=ours,compile", *TRIAL)
        finally:
            (HOME / "models" / "gpt2").unlink()
        for flags in (["--emulated"], []):
            done = subprocess.run(command("table", self.report, *flags), capture_output=True, text=True, env=environment())
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Nothing of this was measured on a GPU.", done.stdout)
            self.assertEqual(len(re.findall(r"^\| G\d+ \|.*\| not measured: .* \|$", done.stdout, re.M)), 12, done.stdout)
        same = subprocess.run([sys.executable, "-B", "-m", "devkit", "targets", self.report], capture_output=True, text=True, cwd=ROOT / "tools")
        self.assertEqual(same.stdout, done.stdout)

    def test_batches_are_read(self):
        import numpy

        inputs = {"x": {"kind": "normal", "dims": [1, 8, 8]}, "y": {"kind": "uniform", "bound": 10, "dims": []},
                  "ids": {"kind": "zipf", "bound": 1000, "dims": [50]}, "same": {"kind": "zipf", "bound": 1000, "dims": [50], "like": "ids"},
                  "mask": {"kind": "ones", "dims": [5]}}  # fmt: skip
        arrays = {name: numpy.load(path) for name, path in batches.write(SCRATCH / "batches", 4, inputs).items()}
        rows = 4 * batches.BATCHES
        self.assertEqual({name: a.shape for name, a in arrays.items()}, {"x": (rows, 1, 8, 8), "y": (rows,), "ids": (rows, 50), "same": (rows, 50), "mask": (rows, 5)})
        self.assertEqual([str(a.dtype) for a in arrays.values()], ["float32", "int64", "int64", "int64", "int64"])
        self.assertLess(abs(arrays["x"].mean()), 0.05)
        self.assertLess(abs(arrays["x"].std() - 1), 0.05)
        self.assertEqual(set(arrays["y"]), set(range(10)))
        self.assertTrue((arrays["mask"] == 1).all() and (arrays["ids"] == arrays["same"]).all())
        # Zipf: of 1000 ids the most frequent takes 1 / H(1000) = 13 %, ten times what the tenth takes.
        counts = numpy.sort(numpy.bincount(arrays["ids"].ravel(), minlength=1000))[::-1] / arrays["ids"].size
        self.assertAlmostEqual(counts[0], 0.1336, delta=0.02)
        self.assertAlmostEqual(counts[9], 0.01336, delta=0.006)

        self.give_contenders()
        data = HOME / "models" / "tiny" / "data.npz"
        data.rename(data.with_suffix(".kept"))
        given = {"x": {"kind": "normal", "dims": [64]}, "y": {"kind": "uniform", "bound": 10, "dims": []}}
        contents(lambda table: table["workloads"][0].update(batch=64, inputs=given, torch_inputs=["x", "y"]))
        try:
            found, _ = self.stage("speed:tiny", "--contenders=ours,compile", *TRIAL)
        finally:
            data.with_suffix(".kept").rename(data)
        self.assertGreater(found["tiny"]["contenders"]["ours"]["per_second"], 0)
        self.assertEqual(numpy.load(HOME / "batches" / "tiny" / "x.npy").shape, (64 * 64, 64))

    def endless(self):
        """The second model does not come to an end."""
        contents(lambda table: table["models"][1].update(steps=10_000_000))

    def test_a_stage_ends_in_time(self):
        begin = time.monotonic()
        self.stage("correct", f"--only={FIRST}")
        limit = 10 + 3 * (time.monotonic() - begin)  # enough for the first model, however busy the machine is
        self.endless()
        begin = time.monotonic()
        found, _ = self.stage("correct", f"--limit={limit}", status=3)
        self.assertLess(time.monotonic() - begin, limit + 5)
        self.assertEqual((found[FIRST]["held"], found[SECOND]["held"], found[SECOND]["why"]), (True, None, "no time was left"))

    def cut(self, how):
        """Ends a stage while it is at its second model; the processes that it had started."""
        self.endless()
        process = subprocess.Popen(command("correct", self.report, "--emulated"), stdout=subprocess.DEVNULL, env=environment())
        try:
            self.await_that(lambda: self.report.exists() and FIRST in json.loads(self.report.read_text()).get("emulated correct", {}))
            # The one that does not come to an end.
            children = self.await_that(lambda: pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
        finally:
            process.send_signal(how)
            process.wait()
        return list(map(int, children))

    def await_that(self, holds):
        """What `holds` says as soon as that is something; fails where it comes to nothing."""
        for _ in range(1800):
            if found := holds():
                return found
            time.sleep(0.1)
        self.fail("waited in vain")

    def held_of_the_first(self):
        found = json.loads(self.report.read_text())["emulated correct"]
        self.assertEqual((found[FIRST]["held"], SECOND in found), (True, False))
        self.assertGreater(found["ceilings"]["copy_gb_per_s"], 0)

    def test_a_killed_stage_leaves_what_it_found(self):
        for child in self.cut(signal.SIGKILL):
            os.kill(child, signal.SIGKILL)
        self.held_of_the_first()

    def test_a_stage_that_is_told_to_end_leaves_nothing_running(self):
        children = self.cut(signal.SIGTERM)
        self.await_that(lambda: not any(pathlib.Path(f"/proc/{child}").exists() for child in children))
        self.held_of_the_first()


if __name__ == "__main__":
    ARCHIVE, SAID = make_archive()
    STAND_INS = stand_ins()
    unittest.main(argv=[sys.argv[0]])
