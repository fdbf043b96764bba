"""Checks a report: HTML, JSON and SVG of one artifact agree, and no tensors overlap."""
import json
import re
import sys
import xml.dom.minidom

html, data, svg = (open(path, encoding="utf-8").read() for path in sys.argv[1:4])
report = json.loads(data)
embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S).group(1)
assert json.loads(embedded) == report
for picture in re.findall(r"<svg.*?</svg>", html, re.S) + [svg]:
    xml.dom.minidom.parseString(picture)
assert "http" not in html.replace("http://www.w3.org/2000/svg", ""), "a report is offline"

for entry in report["entries"]:
    live = [0] * len(entry["instructions"])
    tensors = entry["tensors"]
    for tensor in tensors:
        assert tensor["offset"] + tensor["bytes"] <= report["transient_bytes"]
        for i in range(tensor["begin"], tensor["end"]):
            live[i] += tensor["bytes"]
    assert max(live) == entry["peak_bytes"] == live[entry["peak_at"]]
    for i, a in enumerate(tensors):
        for b in tensors[:i]:
            together = a["begin"] < b["end"] and b["begin"] < a["end"]
            overlap = a["offset"] < b["offset"] + b["bytes"] and b["offset"] < a["offset"] + a["bytes"]
            assert not (together and overlap), (entry["name"], a, b)
