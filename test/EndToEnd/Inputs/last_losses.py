"""Fail where the losses of a run are not the last ones of a longer run, bit for bit: last_losses.py WHOLE.jsonl REST.jsonl."""

import json
import sys

whole, rest = ([line["loss"] for line in map(json.loads, open(path)) if "loss" in line] for path in sys.argv[1:])
assert rest and len(rest) < len(whole) and whole[-len(rest) :] == rest, (whole, rest)
