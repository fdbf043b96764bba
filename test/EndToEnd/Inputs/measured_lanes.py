"""Checks what a trace says of a measured step: its plan in numbers, names and lanes, the profile in times.

measured_lanes.py TRACE PROFILE REPORT LOG [OTHER-PROFILE]; REPORT is the same artifact's as JSON, LOG what --log-jsonl
wrote. Prints the lanes, how often the instructions ran in the step, and how many copies it took in order.
"""
import json
import sys
from collections import Counter, defaultdict


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


events, profile, report = load(sys.argv[1])["traceEvents"], load(sys.argv[2]), load(sys.argv[3])
with open(sys.argv[4], encoding="utf-8") as file:
    steps = [line for line in map(json.loads, file) if "step_ms" in line]
entry = next(each for each in report["entries"] if each["name"] == profile["entry"])

processes = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
assert len(processes) == len(set(processes.values())) == len(report["entries"]) + 1
[title] = [name for name in processes if name.endswith(", measured")]
planned, measured = (processes[name] for name in (title.removesuffix(", measured"), title))
assert title.removesuffix(", measured").endswith(" @" + profile["entry"])
order = {e["pid"]: e["args"]["sort_index"] for e in events if e["name"] == "process_sort_index"}
assert sorted(order, key=order.get)[sorted(order, key=order.get).index(planned) + 1] == measured, order
lanes = {pid: {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == pid} for pid in (planned, measured)}
assert lanes[planned] == lanes[measured], lanes

# Every instruction of the plan ran, on the lane that it has there.
plan = {e["args"]["instruction"]: e for e in events if e["ph"] == "X" and e["pid"] == planned}
assert [plan[i]["name"] for i in range(len(plan))] == entry["instructions"]
ran = defaultdict(list)
for event in events:
    if event["ph"] == "X" and event["pid"] == measured:
        ran[event["args"]["instruction"]].append(event)
assert sorted(ran) == sorted(plan), sorted(set(plan) ^ set(ran))
for number, rounds in ran.items():
    for i, event in enumerate(rounds):
        assert event["args"]["round"] == i, event
        assert all(event[key] == plan[number][key] for key in ("name", "tid", "cat")), (event, plan[number])

# A lane does one thing after the other, all of it within the step.
for lane in lanes[measured] or [0]:
    ends = 0
    for event in sorted((e for rounds in ran.values() for e in rounds if e["tid"] == lane), key=lambda e: (e["ts"], e["dur"])):
        assert event["dur"] >= 0 and event["ts"] >= ends - 1e-6, (lane, event, ends)
        ends = event["ts"] + event["dur"]
    assert ends <= steps[-1]["step_ms"] * 1e3, (lane, ends, steps[-1])
assert any(event["dur"] > 0 for rounds in ran.values() for event in rounds)
# They are a run's times, not the plan's.
assert sum(abs(rounds[0]["dur"] - plan[number]["dur"]) > 1e-3 for number, rounds in ran.items()) > len(ran) / 2

# The profile has the same times, and means of them.
assert profile["steps"] == len(steps)
for row in profile["instructions"]:
    rounds = ran[row["instruction"]]
    assert row["lane"] == rounds[0]["tid"] and row["runs"] == len(steps) * len(rounds), row
    assert len(row["spans"]) == len(rounds)
    for (begin, end), event in zip(row["spans"], rounds):
        assert begin == event["ts"] and abs(end - event["ts"] - event["dur"]) < 1e-6, (row, event)
    if len(steps) == 1:
        assert abs(row["microseconds"] * row["runs"] - sum(event["dur"] for event in rounds)) < 1e-3 * len(rounds), row
assert len(profile["instructions"]) == len(ran)
if len(sys.argv) > 5:
    other = {row["instruction"]: row["spans"] for row in load(sys.argv[5])["instructions"]}
    assert sum(row["spans"] != other[row["instruction"]] for row in profile["instructions"]) > len(ran) / 2

# What is stored where something was loaded from was loaded before.
before, ordered = {}, 0
for move in entry.get("moves", []):
    if "binding" not in move:
        continue
    last = before.get(move["binding"])
    if last and (last["direction"], move["direction"]) == ("load", "store"):
        loaded, stored = ran[last["instruction"]][-1], ran[move["instruction"]][0]
        assert loaded["tid"] != stored["tid"] and loaded["ts"] + loaded["dur"] <= stored["ts"] + 1e-6, (loaded, stored)
        ordered += 1
    before[move["binding"]] = move

print("lanes:", sorted(lanes[measured].values()))
print("rounds:", sorted(Counter(map(len, ran.values()))))
print("ordered:", ordered)
