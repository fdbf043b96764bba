"""What tools/dev allocations says of counts: one allocation too many, too few or of another size is seen."""

import copy
import unittest

import devkit_path  # noqa: F401
from devkit.allocations import differences

ARENAS = [
    ("params", "PARAMS", "device", 64), ("state", "STATE", "device", 0), ("io", "IO", "device", 128), ("transient", "TRANSIENT", "device", 4096),
    ("exchange_in", "EXCHANGE_IN", "device", 1536), ("exchange_out", "EXCHANGE_OUT", "device", 1024),
    ("exchange_in_host", "EXCHANGE_IN", "host_pinned", 1536), ("exchange_out_host", "EXCHANGE_OUT", "host_pinned", 1024),
    ("staging", "STAGING", "host_pinned", 8 << 20),
]  # fmt: skip
DEVICE, PINNED = 64 + 128 + 4096 + 1536 + 1024, 1536 + 1024 + (8 << 20)


def right():
    at_work = {
        "device": DEVICE, "host_pinned": PINNED,
        "driver": {"device": [4096, 64, 128, 1024, 1536], "host_pinned": [8 << 20, 1536, 1024]},
    }  # fmt: skip
    arenas = [dict(zip(("name", "role", "space", "bytes"), arena)) for arena in ARENAS]
    gone = {"device": 0, "host_pinned": 0, "driver": {"device": [], "host_pinned": []}}
    return {"arenas": arenas, "bound": copy.deepcopy(at_work), "ran": at_work, "closed": gone}


class Differences(unittest.TestCase):
    def expect(self, words, change, budget=None):
        counts = right()
        change(counts)
        self.assertIn(words, "; ".join(differences(counts, budget)))

    def test_right(self):
        self.assertEqual(list(differences(right())), [])
        self.assertEqual(list(differences(right(), DEVICE)), [])

    def test_the_driver_gave_something_else(self):
        self.expect("bound: the driver gave", lambda c: c["bound"]["driver"]["device"].append(1))
        self.expect("ran: the driver gave", lambda c: c["ran"]["driver"]["host_pinned"].pop())
        self.expect("ran: the driver gave", lambda c: c["ran"]["driver"]["device"].__setitem__(0, 4095))

    def test_the_plan_says_something_else(self):
        self.expect("the plan has", lambda c: c["arenas"].pop(0))
        self.expect("the plan has", lambda c: c["arenas"].append({"name": "more", "role": "TRANSIENT", "space": "device", "bytes": 1}))
        self.expect("no arena of device for EXCHANGE_IN", lambda c: c["arenas"].pop(4))
        self.expect("no arena of host_pinned for STAGING", lambda c: c["arenas"].pop())

    def test_the_session_counts_something_else(self):
        self.expect("the session counts 6847 bytes", lambda c: c["ran"].update(device=DEVICE - 1))
        self.expect("closed: [64] of device not given back", lambda c: c["closed"]["driver"]["device"].append(64))
        self.expect("128 counted", lambda c: c["closed"].update(device=128))

    def test_beyond_the_budget(self):
        self.expect(f"{DEVICE} bytes on the device, the budget is {DEVICE - 1}", lambda c: None, DEVICE - 1)


if __name__ == "__main__":
    unittest.main()
