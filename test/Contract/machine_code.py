"""Kernels of models pass ptxas for both chips: no local memory, no spills, bounded registers, wide accesses. No GPU takes part.

A sample; `tools/dev machine-code` looks at all models, in `check --full`.
"""

import functools
import sys
import unittest

from tree import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from devkit import machine_code  # noqa: E402

# name → folder of test/models, compiler flags. Channels last, sums over images are long enough for several rounds between
# barriers; two such sums in one kernel used to fill the registers.
CHANNELS_LAST = ("--precision=mixed-bf16", "--conv-layout=nhwc")
# Updates, squares and finite checks of many tensors share launches: rows of many arrays, and of many conjunctions.
SCALED = ("--precision=mixed-f16", "--loss-scale=dynamic", "--optimizer=adamw")
MODELS = {
    **{model: (model, "--dim=batch=8") for model in ("mlp-digits", "cnn-digits", "gpt-tiny", "bag-tiny")},
    **{f"{model}, scaled": (model, "--dim=batch=8", *SCALED) for model in ("gpt-tiny", "unet-mini")},
    "gpt-tiny, state in 8 bits": ("gpt-tiny", "--dim=batch=8", "--moments=int8"),
    "cnn-digits, channels last": ("cnn-digits", "--dim=batch=64", *CHANNELS_LAST),
    "unet-mini, channels last": ("unet-mini", "--dim=batch=32", *CHANNELS_LAST),
}


@functools.cache
def compiled():
    """(model, chip) → its kernels."""
    folder = ROOT / "test" / "models"
    return {
        (name, chip): machine_code.Compiled(ROOT / "build" / "bin", folder / model / "model.onnx", flags, chip)
        for name, (model, *flags) in MODELS.items() for chip in machine_code.CHIPS
    }  # fmt: skip


class MachineCode(unittest.TestCase):
    def test_registers_and_memory(self):
        """No stack frame, no spill, no instruction that reaches local memory, bounded registers, for sm_80 and sm_90a."""
        for (model, chip), found in compiled().items():
            self.assertTrue(found.report, model)
            self.assertEqual(found.complaints, [], f"{model} on {chip}")

    def test_nothing_is_contracted(self):
        """Every product and every sum of floats names its rounding: ptxas may not join them."""
        for (model, _), found in compiled().items():
            ptx = found.ptx.decode()
            self.assertNotRegex(ptx, r"\b(?:add|sub|mul)\.f(?:16|32|64)\b", model)
            # Approximations occur inside of libdevice's functions alone, as first guesses.
            self.assertNotRegex(ptx, r"\b(?:add|sub|mul|fma|div|sqrt|ex2|lg2|sin|cos|tanh)(?:\.\w+)*\.(?:ftz|approx)", model)
            self.assertNotRegex(ptx, r"\b(?:atom|red)\.", model)

    def test_wide_accesses(self):
        """The machine code of kernels over whole tensors reads and writes 16 bytes at a time."""
        for chip in machine_code.CHIPS:
            found = compiled()["gpt-tiny", chip]
            for emitter in ("loop", "row"):
                names = [name for name in found.accesses if name.startswith(emitter)]
                wide = sum(map(found.wide, names))
                self.assertGreaterEqual(wide, max(len(names) // 2, 1), f"{emitter}: {found.accesses}")


class Disassembler(unittest.TestCase):
    """Kernels whose machine code is known: what is asserted above can be seen."""

    SOURCE = """.version 8.1
.target {chip}
.address_size 64
.visible .entry copy{suffix}(.param .u64 from, .param .u64 to) {{
  .reg .b64 %a, %b; .reg .b32 %r<5>; .local .b32 %kept[64];
  ld.param.u64 %a, [from]; ld.param.u64 %b, [to];
  cvta.to.global.u64 %a, %a; cvta.to.global.u64 %b, %b;
  {body}
  ret;
}}
"""
    BODIES = {
        "16": ("ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%a]; st.global.v4.b32 [%b], {%r0, %r1, %r2, %r3};", {"local": 0, "global": {16: 2}}),
        "8": ("ld.global.v2.b32 {%r0, %r1}, [%a]; st.global.v2.b32 [%b], {%r0, %r1};", {"local": 0, "global": {8: 2}}),
        "4": ("ld.global.b32 %r0, [%a]; st.global.b32 [%b], %r0;", {"local": 0, "global": {4: 2}}),
        "2": ("ld.global.u16 %r0, [%a]; st.global.u16 [%b], %r0;", {"local": 0, "global": {2: 2}}),
    }

    def test_widths(self):
        for chip in machine_code.CHIPS:
            for suffix, (body, expected) in self.BODIES.items():
                ptx = self.SOURCE.format(chip=chip, suffix=suffix, body=body).encode()
                _, cubin = machine_code.assemble(ptx, chip)
                self.assertEqual(machine_code.accesses(cubin), {f"copy{suffix}": expected}, chip)

    def test_local_memory_is_seen(self):
        """An array that is indexed by what was read cannot be held in registers."""
        body = "ld.global.b32 %r0, [%a]; and.b32 %r1, %r0, 252; cvt.u64.u32 %a, %r1; mov.u64 %b, %kept; add.u64 %b, %b, %a; st.local.b32 [%b], %r0; ld.local.b32 %r2, [%kept + 8]; ld.param.u64 %a, [to]; st.global.b32 [%a], %r2;"
        for chip in machine_code.CHIPS:
            report, cubin = machine_code.assemble(self.SOURCE.format(chip=chip, suffix="", body=body).encode(), chip)
            self.assertEqual(report["copy"]["stack"], 256)
            self.assertGreaterEqual(machine_code.accesses(cubin)["copy"]["local"], 2)


if __name__ == "__main__":
    unittest.main()
