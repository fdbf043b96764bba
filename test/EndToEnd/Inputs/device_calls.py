"""The calls of steps, as lowtide-device-calls prints them: one launch and one upload each, and nothing that waits."""

import json
import sys

found = json.load(open(sys.argv[1]))
calls, steps = found["calls"], found["steps"]
allowed = {"cuGraphLaunch", "cuMemcpyHtoDAsync", "cuEventRecord", "cuStreamWaitEvent", "cuStreamQuery"}
assert not set(calls) - allowed, set(calls) - allowed
assert calls["cuGraphLaunch"] == calls["cuMemcpyHtoDAsync"] == steps, calls
# Every seventh batch is infinite: its step is skipped, the others are not.
assert steps // 7 <= found["skipped"] < steps // 4, found["skipped"]
