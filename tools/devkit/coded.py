"""Frozen weights in few bits: what a run is held to.

The record is of the weights as they are. With --frozen-weights=int8, nf4 or fp8 the same step is taken on a copy of the model
file that holds the numbers which the codes stand for, by the quantizers' rules as written here, in f64 and without codes. Its
losses, gradients and parameters are the truth then; how far a run may be from it stays what was recorded for the type.
"""

import copy
import json
import struct

import numpy

from devkit.console import Failure
from devkit.tensors import read_safetensors

BLOCK = 64
SMALLEST = 2.0**-116  # a block without a number of this size is zeros
# Dettmers et al., "QLoRA: Efficient Finetuning of Quantized LLMs", appendix E.
NF4 = numpy.float32(
    [
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
        -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ]
)  # fmt: skip
# The numbers of float8_e4m3fn from zero on, by code.
E4M3 = numpy.array([(c & 7) * 2.0**-9 if c < 8 else (8 + (c & 7)) * 2.0 ** ((c >> 3) - 10) for c in range(127)])


def nearest_nf4(numbers):
    return NF4[numpy.searchsorted((NF4[1:] + NF4[:-1]) / numpy.float32(2), numbers)]


def nearest_e4m3(numbers):
    """Ties to the even code, as PyTorch casts."""
    middles, sizes = (E4M3[1:] + E4M3[:-1]) / 2, abs(numbers.astype("f8"))
    codes = numpy.searchsorted(middles, sizes)
    codes += (codes < len(middles)) & (middles[numpy.minimum(codes, len(middles) - 1)] == sizes) & (codes % 2 == 1)
    return numpy.copysign(E4M3[codes], numbers).astype("f4")


def quotients(blocks, scales):
    return blocks / scales


def products(blocks, scales):
    return blocks * (numpy.float32(1) / scales)


# The largest code of a block, how numbers are scaled, and what they are rounded to.
CODECS = {"int8": (127, quotients, numpy.rint), "nf4": (1, products, nearest_nf4), "fp8": (448, quotients, nearest_e4m3)}


def decoded(codec, weight):
    """The f32 numbers that the codes of a matrix stand for; in whole blocks, row by row."""
    largest, scale, rounded = CODECS[codec]
    blocks = weight.astype("f4").reshape(-1, BLOCK)
    sizes = abs(blocks).max(1, keepdims=True)
    used = sizes >= SMALLEST
    scales = numpy.where(used, sizes, numpy.float32(largest)) / numpy.float32(largest)
    return numpy.where(used, rounded(scale(blocks, scales)).astype("f4") * scales, numpy.float32(0)).reshape(weight.shape)


def write_safetensors(path, arrays):
    types, header, at = {"float32": "F32", "float64": "F64", "int64": "I64", "bool": "BOOL"}, {}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": types[str(array.dtype)], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(numpy.ascontiguousarray(a).tobytes() for a in arrays.values()))


def codec_of(flags):
    """The codes that the flags ask for; None: none, or a type."""
    named = [flag.split("=", 1)[1] for flag in flags if flag.startswith("--frozen-weights=")]
    return named[-1] if named and named[-1] in CODECS else None


def truth_of(model, record, options, work):
    """The record with what the step makes of the decoded weights; as it is where nothing is held in codes."""
    from devkit.judge import call, first_error, read_run

    codec = codec_of(options.compile_flags)
    if not codec:
        return record

    def tool(name, *command):
        status, said = call([options.bin / command[0], *command[1:]], work / f"{name}.log")
        if status:
            raise Failure(f"{name}: exit {status}: {first_error(said)}")
        return said.split("\n", 1)[1]

    kept = [f for f in options.compile_flags if not f.startswith(("--frozen-weights", "--precision", "--target", "--entries", "--device-budget"))]
    stated = tool("coded-check", "lowtide", "check", model, "--json", "-q", *record.compiler_flags(model, [*kept, f"--frozen-weights={codec}"]))
    coded = [entry["name"] for entry in json.loads(stated)["frozen_weights"]]
    if not coded:
        return record
    # The file's own weights, by the names of the module; the same with decoded ones; a file that holds these.
    whole, data = work / "whole.tide", f"--data={record.folder / 'data.npz'}"
    plain = [f for f in record.compiler_flags(model, kept) if not f.startswith(("--lora", "--params", "--frozen"))]
    tool("whole", "lowtide", "compile", model, "-o", whole, "-q", "--entries=train", *plain)
    tool("weights", "lowtide-run", whole, data, "-q", "--steps=0", f"--save={work / 'weights'}", "--overwrite")
    weights = read_safetensors(next((work / "weights").glob("*/params.safetensors")))
    write_safetensors(work / "decoded.safetensors", {n: decoded(codec, w) if n in coded else w for n, w in weights.items()})
    file, run = work / "decoded.onnx", ["--steps=0", f"--init={work / 'decoded.safetensors'}"]
    tool("decoded", "lowtide-run", whole, data, "-q", *run, f"--export={file}", f"--model={model}")

    step, log, saved = work / "truth.tide", work / "truth.jsonl", work / "truth"
    tool("truth-compile", "lowtide", "compile", file, "-o", step, "-q", "--precision=f64", "--entries=train,gradient", *record.compiler_flags(model, kept))
    tool("truth-run", "lowtide-run", step, data, f"--steps={record.steps}", *record.run_flags(), f"--log-jsonl={log}", f"--save={saved}",
         "--overwrite", f"--dump-gradients={work / 'truth-gradients.safetensors'}")  # fmt: skip
    made = copy.copy(record)
    made.expected = record.expected | {"loss": record.expected["loss"] | {"f64": [line["loss"] for line in read_run(log)[1]]}}
    gradients, final = read_safetensors(work / "truth-gradients.safetensors"), read_safetensors(next(saved.glob("*/params.safetensors")))
    made.tensors = {n: a for n, a in record.tensors.items() if not n.startswith(("grad/", "final/"))}
    made.tensors |= {n: gradients[n] for n in record.tensors if n.startswith("grad/")}
    made.tensors |= {n: final[n.removeprefix("final/")] for n in record.tensors if n.startswith("final/")}
    return made
