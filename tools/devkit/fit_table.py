"""The figures of `lowtide fit --json`: one object, whose `entries` are a table each."""

import json
import re


def training_step(said):
    """The table of entry `train`, or of the first one where there is none, in what the command said on both its streams."""
    begin = re.search(r"^\{", said, re.M)
    if not begin:
        raise ValueError(f"no figures in what lowtide fit said: {said[-200:]}")
    entries = json.JSONDecoder().raw_decode(said[begin.start() :])[0]["entries"]
    return next((entry for entry in entries if entry["entry"] == "train"), entries[0])
