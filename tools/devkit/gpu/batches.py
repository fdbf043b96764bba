"""Batches that every contender reads: the same bits, as .npy files, one per input; written without numpy.

Token ids follow Zipf's law, as text does: equal or evenly spread ones would cost a gather and its scatter something else.
"""

import array
import itertools
import random

# What is written of one input at most; further batches repeat what is there.
LIMIT = 64 << 20
BATCHES = 64
# Normal numbers that images are made of, over and over.
NORMALS = 1 << 18


def write_npy(path, dtype, shape, parts):
    """An array in C order, little-endian, from an iterable of bytes."""
    sizes = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {sizes}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        for part in parts:
            out.write(part)


def zipf(generator, vocabulary, count):
    """Token ids below `vocabulary`; the one of rank r comes in proportion to 1 / r. Ranks are dealt to ids at random."""
    weights = list(itertools.accumulate(1 / rank for rank in range(1, vocabulary + 1)))
    ids = list(range(vocabulary))
    generator.shuffle(ids)
    return array.array("q", generator.choices(ids, cum_weights=weights, k=count))


def elements(kind, bound, count, generator):
    """Type and bytes, in parts, of `count` elements: "zipf" and "uniform" ids below `bound`, "ones", or "normal" numbers."""
    if kind == "zipf":
        return "<i8", [zipf(generator, bound, count).tobytes()]
    if kind == "uniform":
        return "<i8", [array.array("q", (generator.randrange(bound) for _ in range(count))).tobytes()]
    if kind == "ones":
        return "<i8", [array.array("q", [1]).tobytes() * count]
    if kind != "normal":
        raise ValueError(f"'{kind}' is no kind of input")
    block = array.array("f", (generator.gauss(0, 1) for _ in range(min(count, NORMALS)))).tobytes()
    whole, rest = divmod(4 * count, len(block))
    return "<f4", itertools.chain(itertools.repeat(block, whole), [block[:rest]])


def write(folder, batch, inputs, seed=0):
    """Writes one file per input of {name: {"kind", "bound", "dims" of a sample}}; {name: path}."""
    sizes = {}
    for name, given in inputs.items():
        sizes[name] = 1
        for size in given["dims"]:
            sizes[name] *= size
    largest = max(8 * batch * size for size in sizes.values())
    rows = batch * max(1, min(BATCHES, LIMIT // largest))
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, given in inputs.items():
        # Of the name, not of the order: labels that repeat the tokens ask for the same stream.
        generator = random.Random(f"{seed} {given.get('like', name)}")
        dtype, parts = elements(given["kind"], given.get("bound"), rows * sizes[name], generator)
        paths[name] = folder / f"{name}.npy"
        write_npy(paths[name], dtype, (rows, *given["dims"]), parts)
    return paths
