"""The calls of steps, as lowtide-device-calls prints them: one launch, copies in and out, and nothing that waits."""

import json
import sys

found = json.load(open(sys.argv[1]))
calls, steps = found["calls"], found["steps"]
allowed = {"cuGraphLaunch", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuEventRecord", "cuStreamWaitEvent", "cuStreamQuery"}
assert not set(calls) - allowed, set(calls) - allowed
assert calls["cuGraphLaunch"] == calls["cuMemcpyHtoDAsync"] == steps, calls
# What is read, and after it the number of the step.
assert calls["cuMemcpyDtoHAsync"] == 2 * steps, calls
# Every seventh batch is infinite: its step is skipped, the others are not.
assert steps // 7 <= found["skipped"] < steps // 4, found["skipped"]
