"""Step times that are measured in blocks: quantiles, what is rejected, and ratios of two contenders that took turns.

A run is one process: some blocks of steps, each with its mean step time in milliseconds. Contenders take turns in cycles,
there and back (A-B-B-A, or A-B-C-C-B-A): in each cycle all stand at the same place on average, so that a clock which drifts
evenly favours none.
"""

import math

# A run whose blocks differ by more than this, (p90 - p10) / median, is no measurement.
SPREAD = 0.03
# The protocol of a figure that may be published; a run by any other is for trying things out.
PROTOCOL = {"blocks": 10, "steps": 20, "warmup": 20, "spread": SPREAD}
# Student's t, two-sided 95 %, by degrees of freedom.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def quantile(values, at):
    """The smallest value that no fewer than the share `at` of all do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(1, math.ceil(at * len(ordered))) - 1]


def summary(block_ms, limit=SPREAD):
    """Median, p10, p90 and spread of a run's blocks, and whether it counts."""
    if not block_ms or any(not (time > 0 and math.isfinite(time)) for time in block_ms):
        return {"steady": False, "why": "a block took no time" if block_ms else "no block"}
    median, p10, p90 = (quantile(block_ms, at) for at in (0.5, 0.1, 0.9))
    spread = (p90 - p10) / median
    found = {"median_ms": median, "p10_ms": p10, "p90_ms": p90, "spread": spread, "steady": spread <= limit}
    if not found["steady"]:
        found["why"] = f"blocks differ by {100 * spread:.1f} %, more than {100 * limit:g} %"
    return found


def counted(runs, who, cycle=None):
    """The runs of a contender that count, of one cycle or of all."""
    return [run for run in runs if run["who"] == who and run.get("steady") and cycle in (None, run["cycle"])]


def median_ms(runs, who):
    """Step time of a contender over all its runs that count; None without any."""
    found = counted(runs, who)
    return quantile([run["median_ms"] for run in found], 0.5) if found else None


def speedup(runs, ours, theirs):
    """How many times as fast as `theirs` `ours` is: one ratio per whole cycle, their geometric mean, its 95 % interval.

    A cycle counts when both contenders were measured twice in it; {"ratio": None, "why": …} when none does. One cycle
    alone has no interval.
    """
    ratios, broken = [], 0
    for cycle in sorted({run["cycle"] for run in runs}):
        pair = [counted(runs, who, cycle) for who in (ours, theirs)]
        if any(len(found) < 2 for found in pair):
            broken += 1
            continue
        ours_ms, theirs_ms = (sum(run["median_ms"] for run in found) / len(found) for found in pair)
        ratios.append(theirs_ms / ours_ms)
    if not ratios:
        why = [run["why"] for run in runs if run["who"] in (ours, theirs) and not run.get("steady") and run.get("why")]
        return {"ratio": None, "cycles": 0, "why": why[0] if why else "no whole cycle"}
    logs = [math.log(ratio) for ratio in ratios]
    mean = sum(logs) / len(logs)
    found = {"ratio": math.exp(mean), "cycles": len(ratios), "of_cycles": ratios, "rejected_cycles": broken}
    if len(logs) > 1:
        deviation = math.sqrt(sum((log - mean) ** 2 for log in logs) / (len(logs) - 1))
        half = STUDENT[min(len(logs) - 1, max(STUDENT))] * deviation / math.sqrt(len(logs))
        found["interval"] = [math.exp(mean - half), math.exp(mean + half)]
    return found


def published(protocol):
    """Empty where a run went by the protocol; otherwise how it differs, in words."""
    other = [f"{key} {protocol.get(key)} instead of {value}" for key, value in PROTOCOL.items() if protocol.get(key) != value]
    return ", ".join(other)
