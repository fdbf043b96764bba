"""Kernels of models pass ptxas for both chips: no local memory, no spills, bounded registers, wide accesses. No GPU takes part."""

import functools
import pathlib
import subprocess
import sys
import tempfile
import unittest

from tree import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from devkit import machine_code  # noqa: E402

# name → folder of test/models, compiler flags. Channels last, sums over images are long enough for several rounds between
# barriers; two such sums in one kernel used to fill the registers.
CHANNELS_LAST = ("--precision=mixed-bf16", "--conv-layout=nhwc")
MODELS = {
    **{model: (model, "--dim=batch=8") for model in ("mlp-digits", "cnn-digits", "gpt-tiny", "bag-tiny")},
    "cnn-digits, channels last": ("cnn-digits", "--dim=batch=64", *CHANNELS_LAST),
    "unet-mini, channels last": ("unet-mini", "--dim=batch=32", *CHANNELS_LAST),
}
REGISTERS = 128


def compiled(model, flags, target, folder):
    """Sections of the artifact of a model of test/models."""
    output = pathlib.Path(folder) / f"{model}.tide"
    command = [ROOT / "build" / "bin" / "lowtide", "compile", ROOT / "test" / "models" / model / "model.onnx", *flags, f"--target={target}", "-o", output]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise AssertionError(f"{model}: {done.stderr}")
    return machine_code.sections(output)


@functools.cache
def artifacts():
    """Sections of the artifacts of all MODELS."""
    with tempfile.TemporaryDirectory() as folder:
        return {name: compiled(model, flags, "cuda:sm_80", folder) for name, (model, *flags) in MODELS.items()}


class MachineCode(unittest.TestCase):
    def test_registers_and_memory(self):
        """ptxas reports no stack frame and no spill, for sm_80 and sm_90a."""
        for model, found in artifacts().items():
            self.assertIn("cubin", found)
            for chip in ("sm_80", "sm_90a"):
                for kernel, facts in machine_code.report(found["ptx"], chip).items():
                    where = f"{model}, {kernel} on {chip}: {facts}"
                    self.assertEqual((facts["stack"], facts["spilled"]), (0, 0), where)
                    self.assertLessEqual(facts["registers"], REGISTERS, where)

    def test_nothing_is_contracted(self):
        """Every product and every sum of floats names its rounding: ptxas may not join them."""
        for model, found in artifacts().items():
            ptx = found["ptx"].decode()
            self.assertNotRegex(ptx, r"\b(?:add|sub|mul)\.f(?:16|32|64)\b", model)
            # Approximations occur inside of libdevice's functions alone, as first guesses.
            self.assertNotRegex(ptx, r"\b(?:add|sub|mul|fma|div|sqrt|ex2|lg2|sin|cos|tanh)(?:\.\w+)*\.(?:ftz|approx)", model)
            self.assertNotRegex(ptx, r"\b(?:atom|red)\.", model)

    def test_wide_accesses(self):
        """Kernels over whole tensors read and write 16 bytes at a time."""
        bodies = machine_code.bodies(artifacts()["gpt-tiny"]["ptx"])
        for emitter in ("loop", "row"):
            of_emitter = [machine_code.accesses(body) for name, body in bodies.items() if name.startswith(emitter)]
            wide = sum(16 in counts for counts in of_emitter)
            self.assertGreaterEqual(wide, len(of_emitter) // 2, f"{emitter}: {of_emitter}")


if __name__ == "__main__":
    unittest.main()
