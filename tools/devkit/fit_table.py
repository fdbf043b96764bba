"""The figures of `lowtide fit --json`: one object, whose `entries` are a table each."""

import json
import re


def training_step(said):
    """The table of entry `train`, or of the first one where there is none, in what the command said on both its streams.

    Where values may also wait in another memory, its `other_memory` is the table of that.
    """
    begin = re.search(r"^\{", said, re.M)
    if not begin:
        raise ValueError(f"no figures in what lowtide fit said: {said[-200:]}")
    figures = json.JSONDecoder().raw_decode(said[begin.start() :])[0]
    entries = figures["entries"]
    chosen = next((entry for entry in entries if entry["entry"] == "train"), entries[0])
    return chosen | {key: figures[key] for key in ["other_memory"] if key in figures}
