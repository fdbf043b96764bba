"""Logs of runs that were resumed.

resumed_logs.py same WHOLE.jsonl LOG.jsonl HEADER…: LOG has WHOLE's steps and losses, and these headers.
resumed_logs.py headers LOG.jsonl HEADER…: LOG has a header for each start, of a training that begins (0), goes on after a step, or of an
evaluation (-).
resumed_logs.py board FOLDER WHOLE.jsonl STEP: TensorBoard shows WHOLE's losses, of a run that was resumed after STEP.
"""

import json
import pathlib
import struct
import sys

import numpy


def losses(path):
    return [(line["step"], line["loss"]) for line in map(json.loads, open(path)) if line.get("lr") is not None]


def same(whole, log, *expected):
    found = losses(log)
    assert found == losses(whole) and len(found) == 10, found
    headers(log, *expected)


def headers(log, *expected):
    starts = [line for line in map(json.loads, open(log)) if "lowtide_run" in line]
    said = ["-" if start["entry"] == "eval" else str(start["resumed_after"] or 0) for start in starts]
    assert said == list(expected), said


def fields(data):
    """(number, value) of a protobuf message."""

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    at = 0
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            size = varint()
            yield key >> 3, data[at : (at := at + size)]
        else:
            size = {1: 8, 5: 4}[key & 7]
            yield key >> 3, data[at : (at := at + size)]


def events(path):
    data = path.read_bytes()
    at = 0
    while at < len(data):
        size = struct.unpack_from("<Q", data, at)[0]
        yield dict(fields(data[at + 12 : at + 12 + size]))
        at += size + 16


def board(folder, whole, resumed):
    """As TensorBoard reads: files in the order of their names; a start of a session takes steps from its own on away."""
    files = sorted(pathlib.Path(folder).iterdir())
    assert len(files) == 2, files
    found, starts = {}, []
    for event in (event for path in files for event in events(path)):
        if 7 in event:
            assert dict(fields(event[7])) == {1: 1}, event
            starts.append(event[2])
            found = {step: loss for step, loss in found.items() if step < event[2]}
        if 5 in event:
            value = dict(fields(dict(fields(event[5]))[1]))
            if value[1] == b"loss":
                assert event[2] not in found, (event[2], found)
                found[event[2]] = struct.unpack("<f", value[2])[0]
    assert starts == [int(resumed) + 1], starts
    assert found == {step: numpy.float32(loss) for step, loss in losses(whole)}, found


globals()[sys.argv[1]](*sys.argv[2:])
