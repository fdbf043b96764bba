"""No rule of recovery or import decides by the words that are printed: it asks for a kind (RoleReason, Cleaner, Formula, Certainty)."""

import re
import unittest

from tree import sources, text

ROOMS = ("lib/Import", "include/lowtide/Import", "lib/Recover", "include/lowtide/Recover")
#: What holds words for those who read.
WORDS = r"(?:\w*[rR]eason|message|remedy|how|words|sentence|\w*\bdescribe\w*\([^()]*\))"
#: How text is compared.
TESTS = r"(?:starts_with|ends_with|contains|find|rfind|consume_front|consume_back|equals\w*|compare\w*)"
DECIDES = re.compile(
    rf"(?<!size\()\b{WORDS}\)?\s*(?:==|!=)\s*(?!(?:other|refusal|finding)\.)[\"\w]|\b{WORDS}\)?\.{TESTS}\(|"
    r"(?:==|!=|\b" + TESTS + r"\()\s*\"\w[^\"\s]* [^\"\s]+ [^\"]*\""  # three words or more
)
#: Lines that decided so once, and such as may stay.
WRONG = (
    'info.reason.find("--") != 0',
    'StringRef(info.reason).starts_with("--")',
    "if (reason == fourierReason ||",
    'reason != "holds a mask"',
    'if (finding.message.contains("a cleaner removed"))',
    'if (describeFormula(formula) == "a mask")',
    'return findCleaner(model) == "a cleaner (onnxslim)" || other',
)
RIGHT = (
    "if (info.reason.is(RoleReason::UserSaid))",
    "return other.where == finding.where && other.message == finding.message;",  # the same finding twice
    'name.starts_with("onnx::Conv_")',
    'node.op_type() == "Conv"',
)


class Sentences(unittest.TestCase):
    def test_the_check_sees_them(self):
        self.assertEqual([line for line in WRONG if not DECIDES.search(line)], [])
        self.assertEqual([line for line in RIGHT if DECIDES.search(line)], [])

    def test_no_sentence_decides(self):
        found = [
            f"{path}:{number}: {line.strip()}"
            for path in sources(*ROOMS, suffixes=(".cpp", ".h"))
            for number, line in enumerate(text(path).splitlines(), 1)
            if DECIDES.search(line.split("//")[0])
        ]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
