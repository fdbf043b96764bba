"""What tools/dev same --across-formats takes for the same: versions and spaces may differ, nothing else."""

import struct
import unittest

import devkit_path  # noqa: F401
from devkit.same import are_alike


def message(*parts):
    out = b""
    for number, value in parts:
        if isinstance(value, int):
            out += bytes([number << 3, value])
        else:
            out += bytes([number << 3 | 2, len(value)]) + value
    return out


def artifact(plan, code=b"code"):
    """Header and table as docs/artifact.md has them, without digests."""
    parts = [(b"plan", plan), (b"code", code)]
    head, at = b"LOWTIDE\0" + struct.pack("<II", 1, len(parts)) + bytes(48), 64 + 80 * len(parts)
    table = b""
    for name, content in parts:
        table += struct.pack("<32sQQ32s", name, at, len(content), b"")
        at += len(content)
    return head + table + b"".join(content for _, content in parts)


def plan(version, *arenas, target=b"cpu"):
    return message((1, version), (3, target), *((4, message(*arena)) for arena in arenas))


class AcrossFormats(unittest.TestCase):
    PARAMS, IO = ((1, b"params"), (2, 1), (3, 64)), ((1, b"io"), (2, 4), (3, 9))
    OLD = artifact(plan(1, PARAMS, IO))

    def test_what_is_alike(self):
        spaced = [(*arena, (6, 1)) for arena in (self.PARAMS, self.IO)]
        self.assertTrue(are_alike(self.OLD, self.OLD))
        self.assertTrue(are_alike(self.OLD, artifact(plan(2, *spaced))))
        self.assertTrue(are_alike(self.OLD, artifact(plan(2, *spaced, ((1, b"staging"), (2, 7), (3, 8), (6, 2))))))

    def test_what_is_not(self):
        for other in (plan(2, self.PARAMS), plan(2, self.IO, self.PARAMS), plan(2, self.PARAMS, ((1, b"io"), (2, 4), (3, 10))),
                      plan(2, self.PARAMS, self.IO, target=b"gpu"), plan(2, self.PARAMS, self.IO, self.IO)):  # fmt: skip
            self.assertFalse(are_alike(self.OLD, artifact(other)))
        self.assertFalse(are_alike(self.OLD, artifact(plan(2, self.PARAMS, self.IO), code=b"else")))


if __name__ == "__main__":
    unittest.main()
