"""The smallest budget of a table is one that the step fits: fit_forms.py <table as JSON> <model> <flags...>, with the tools on the path."""

import json
import pathlib
import sys

from tools import tool

entry = json.loads(pathlib.Path(sys.argv[1]).read_text())["entries"][0]
smallest, bound = entry["smallest_bytes"], entry["lower_bound_bytes"]
assert entry["plans"][0]["micro_batch_blocks"] > 0, entry["plans"][0]
for budget, code in ((smallest, 0), (bound - 1, 4)):
    answer = json.loads(tool("lowtide", "fit", *sys.argv[2:], f"--device-budget={budget}", "--json", code=code))
    assert answer["fits"] == (code == 0), (budget, answer)
    assert answer["ways"][0]["lower_bound_bytes"] == bound, (bound, answer)
