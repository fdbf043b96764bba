"""Checks the traces of a report against its JSON: bytes alive at each instruction, no two allocations at one address."""
import json
import pickle
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
events = json.load(open(sys.argv[2], encoding="utf-8"))["traceEvents"]
with open(sys.argv[3], "rb") as file:
    snapshot = pickle.load(file)

train = report["entries"][0]
assert report["device_budget"] and train["peak_bytes_before"] > train["peak_bytes"]
assert train["recomputed"] and 0 < train["recomputed_seconds"] < train["seconds"]
assert any(t["component"] == "recomputed values" for t in train["tensors"])

# Entries are processes; this model's file holds a transpose of its table, which another one computes.
assert [e["name"] for e in report["entries"]] == ["train", "export"]
durations = [e for e in events if e["ph"] == "X" and e["pid"] == 0]
counters = [sum(e["args"].values()) for e in events if e["ph"] == "C" and e["pid"] == 0]
assert [e["name"] for e in durations] == train["instructions"]
assert [i for i, e in enumerate(durations) if e["cat"] == "recomputed"] == train["recomputed"]
assert max(counters) == train["peak_bytes"] and len(counters) == len(durations)
assert all(a["ts"] <= b["ts"] for a, b in zip(durations, durations[1:]))

transient = snapshot["segments"][-1]
assert transient["total_size"] == report["transient_bytes"] == sum(b["size"] for b in transient["blocks"])
alive, peak = {}, 0
for event in snapshot["device_traces"][0]:
    first, size = event["addr"], event["size"]
    if event["action"] == "alloc":
        assert transient["address"] <= first and first + size <= transient["address"] + transient["total_size"]
        assert all(first + size <= a or a + s <= first for a, s in alive.items()), event
        alive[first] = size
        peak = max(peak, sum(alive.values()))
    elif event["action"] == "free_completed":
        assert alive.pop(first) == size
assert peak == train["peak_bytes"], (peak, train["peak_bytes"])
kept = {b["address"]: b["size"] for b in transient["blocks"] if b["state"] == "active_allocated"}
assert kept == alive
