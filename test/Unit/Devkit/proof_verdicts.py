"""What `tools/dev proofs` makes of the judge's verdicts and those of `lowtide verify` (devkit/proofs.py)."""

import unittest

import devkit_path  # noqa: F401
from devkit.proofs import contradictions


def verify(state, *names, unrecorded=()):
    return [{"name": "a/b.onnx", "state": state, "words": "words", "names": list(names), "unrecorded": list(unrecorded)}]


def judge(state, *differs):
    return {"a/b.onnx": {"file": "a/b.onnx", "state": state, "differs": list(differs), "note": "note"}}


class Contradictions(unittest.TestCase):
    def test_are_none_where_both_say_the_same(self):
        self.assertEqual(contradictions(verify("agrees"), judge("ok")), [])
        self.assertEqual(contradictions(verify("differs", "w", "b"), judge("FAIL", "b", "c")), [])
        self.assertEqual(contradictions(verify("refused"), judge("warned", "b")), [])
        # Other first values are a report, too; so are buffers that the folder does not keep.
        self.assertEqual(contradictions(verify("agrees", "w"), judge("FAIL", "w")), [])
        self.assertEqual(contradictions(verify("differs", "mean", unrecorded=["mean"]), judge("ok")), [])
        self.assertEqual(contradictions(verify("differs", "center", unrecorded=["center"]), judge("FAIL", "w")), [])
        self.assertEqual(contradictions(verify("skipped"), judge("FAIL", "w")), [])

    def test_are_files_that_only_one_finds(self):
        for one, other in (
            (verify("agrees"), judge("FAIL", "w")),
            (verify("agrees"), judge("warned", "w")),
            (verify("differs", "w"), judge("ok")),
            (verify("differs", "w", "mean", unrecorded=["mean"]), judge("ok")),
            (verify("differs"), judge("ok")),
            (verify("refused"), judge("ok")),
        ):
            self.assertEqual(len(contradictions(one, other)), 1, (one, other))

    def test_are_wrong_names(self):
        self.assertEqual([words for _, words in contradictions(verify("differs", "w"), judge("FAIL", "b"))], ["the judge names b, and verify w"])


if __name__ == "__main__":
    unittest.main()
