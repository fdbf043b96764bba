"""Codes of optimizer state next to those of torchao and bitsandbytes: state_codes.py <folder of binaries> <values>; in the
environment of PEFT, which has both. Prints a list of {name, complaint}.

Every code and every scale is torchao's, bit for bit. bitsandbytes looks a number up in steps of a part of the largest of
its block: an int8 code is the same, its neighbour, or one whose number is within that step. The values are ties of the maps and
their neighbours, denormals, zeros, and numbers of all sizes; infinities, which no checkpoint holds, are in test/Execute.
"""

import json
import os
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent / "Inputs"))
import bitsandbytes  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from state_layouts import SLOTS, compare_codes, store, write_product  # noqa: E402
from torchao.optim import quant_utils, subclass_fp8  # noqa: E402

BLOCK = 256
# Of the largest in a block: bitsandbytes looks up 2^16 numbers from -1 to 1 on a CPU.
STEP = 2.0**-15


def int8(x, signed):
    scaled, scale = quant_utils.scale_tensor(torch.from_numpy(x.reshape(-1)), BLOCK)
    return quant_utils.quantize_8bit_with_qmap(scaled, torch.tensor(quant_utils.create_dynamic_map(signed))).numpy(), scale.numpy()


def fp8(x, signed):
    codes, scale = subclass_fp8.quantize_fp8(torch.from_numpy(x.reshape(-1)), BLOCK)
    return codes.view(torch.uint8).numpy(), scale.numpy()


QUANTIZERS = {"int8": int8, "fp8": fp8}


def compare_with_bitsandbytes(codes, values, signed):
    """Its blocks of 256 and its own map."""
    table = bitsandbytes.functional.create_dynamic_map(signed=signed)
    theirs, _ = bitsandbytes.functional.quantize_blockwise(torch.from_numpy(values.reshape(-1)), code=table, blocksize=BLOCK)
    theirs, numbers = theirs.numpy().reshape(-1).astype(int), table.numpy()
    # torchao divides by no less than 1e-12.
    is_scaled = np.repeat(np.abs(values.reshape(-1, BLOCK)).max(1) >= 1e-12, BLOCK)
    far = (np.abs(codes.astype(int) - theirs) > 1) & (np.abs(numbers[codes] - numbers[theirs]) > STEP) & is_scaled
    at = np.flatnonzero(far)
    return f"{at.size} codes are further: {values.flat[at[0]]} is {codes[at[0]]}, there {theirs[at[0]]}" if at.size else ""


def rows(work, count):
    x, product = write_product(work, count)
    for slot, (_, _, function) in SLOTS.items():
        values = function(x)
        for layout, quantizer in QUANTIZERS.items():
            stored = store(work, product, layout, slot)
            yield f"{layout} {slot}: {x.size:,} codes of torchao", compare_codes(stored, quantizer(values, slot == "signed"), values)
            if layout == "int8":
                yield f"{layout} {slot}: {x.size:,} codes of bitsandbytes", compare_with_bitsandbytes(stored[0], values, slot == "signed")


def main():
    os.environ["PATH"] = sys.argv[1] + os.pathsep + os.environ["PATH"]
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps([{"name": name, "complaint": complaint} for name, complaint in rows(pathlib.Path(folder), int(sys.argv[2]))]))


if __name__ == "__main__":
    main()
