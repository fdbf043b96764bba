"""What evaluations of lowtide-run wrote, against what PyTorch made of the same rows (validation.py)."""

import json
import pathlib
import struct
import sys

import numpy

RECORD = json.loads((pathlib.Path(__file__).resolve().parent / "validation.json").read_text())


def lines(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()][1:]


def near(found, expected, names):
    for name in names:
        assert abs(found[name] - expected[name]) <= 2e-6 * max(1, abs(expected[name])), (name, found[name], expected[name])


def means(model, path, *names):
    """The line of means of a run that evaluated alone."""
    found = lines(path)[-1]["eval"]
    assert (found["rows"], found["left_out"]) == ({"rows": 39, "tokens": 13}[model], 0), found
    near(found, RECORD[model], names)


def same(path, other):
    """Two evaluations of all rows, in batches of different sizes, have one mean."""
    found, expected = lines(path)[-1]["eval"], lines(other)[-1]["eval"]
    assert found["rows"] == expected["rows"] == 39 and found["left_out"] == expected["left_out"] == 0, (found, expected)
    near(found, expected, ["loss"])


def outputs(npz, safetensors):
    expected = numpy.array(RECORD["rows"]["logits"], numpy.float32)
    found = numpy.load(npz)["logits"]
    assert found.shape == (39, 5) and abs(found - expected).max() < 2e-6, found
    data = pathlib.Path(safetensors).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])["logits"]
    assert (header["dtype"], header["shape"]) == ("F32", [39, 5]), header
    assert data[8 + size :] == found.tobytes()


def undisturbed(alone, evaluated, every):
    """Not one bit of the training differs, and each evaluation is in the log."""
    plain, other = lines(alone), lines(evaluated)
    assert [line["loss"] for line in plain] == [line["loss"] for line in other]
    due = [line["step"] for line in other if "eval_loss" in line]
    last = other[-1]["step"]
    assert due == [step for step in range(1, last + 1) if step % int(every) == 0 or step == last], due
    assert all(line["eval_rows"] == 39 and 0 <= line["eval_accuracy"] <= 1 for line in other if "eval_loss" in line)


def first(path, model):
    """Batches are numbered from 1, whatever step the weights are of, and have no learning rate."""
    found = lines(path)
    assert [line.get("step") for line in found] == [1, 2, 3, 4, 5, 6, 7, None] and found[0]["lr"] is None, found
    assert found[-1]["eval"]["rows"] == 39


globals()[sys.argv[1]](*sys.argv[2:])
