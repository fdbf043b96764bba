"""Checks what a report says of other memories and lanes: JSON, pictures and trace of one artifact agree.

Prints each memory with its most bytes, and the seconds that copies are exposed.
"""
import json
import re
import sys
import xml.dom.minidom

html, report, trace = sys.argv[1:4]
page = open(html, encoding="utf-8").read()
entry = json.load(open(report, encoding="utf-8"))["entries"][0]
events = [event for event in json.load(open(trace, encoding="utf-8"))["traceEvents"] if event["ph"] == "X"]

for memory in entry["memories"]:
    most = memory["lasting_bytes"] + max(memory["waiting_bytes"])
    assert most <= memory["bytes"], memory
    # Of values that wait, never more than was stored and not loaded for the last time.
    stored = sum(move["bytes"] for move in entry["moves"] if move["space"] == memory["space"] and move["direction"] == "store" and "binding" not in move)
    assert max(memory["waiting_bytes"]) <= stored, memory
    first = min((move["instruction"] for move in entry["moves"] if "binding" not in move), default=len(entry["instructions"]))
    assert not any(memory["waiting_bytes"][:first])
    print(memory["space"], "lasting" if memory["lasting_bytes"] else "", "waiting" if stored else "")

computing = sum(event["dur"] for event in events if event["tid"] == 0)
ends = max(event["ts"] + event["dur"] for event in events)
assert abs(entry["exposed_seconds"] * 1e6 - (ends - computing)) < 1e-6 * ends, (entry["exposed_seconds"], ends, computing)
assert len([event for event in events if event["cat"] == "moved"]) == len(entry["moves"])

pictures = {xml.dom.minidom.parseString(svg).documentElement.getAttribute("aria-label"): svg for svg in re.findall(r"<svg.*?</svg>", page, re.S)}
lanes, memories = pictures["lanes of train"], pictures["memory of train"]
# What is narrower than a pixel is drawn together.
assert 0 < lanes.count('class="mark c4"') <= len(entry["moves"])
# Boxes of what waits take as much of the line as copies are exposed; widths are rounded to a tenth.
waits = [float(width) for width in re.findall(r'class="mark waits"[^>]*width="([0-9.]+)"', lanes)]
assert abs(sum(waits) - 620 * entry["exposed_seconds"] * 1e6 / ends) < 0.11 * len(waits) + 0.1, (waits, entry["exposed_seconds"])
assert memories
assert "var(" not in page, "colours that viewers without style sheets do not know"
print("exposed" if entry["exposed_seconds"] > 0 else "hidden")
