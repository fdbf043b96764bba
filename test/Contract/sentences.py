"""No rule of recovery or import decides by the words that are printed: it asks for a kind (FindingKind, RoleReason, Cleaner, Formula, Certainty)."""

import re
import unittest

from tree import sources, text

ROOMS = ("lib/Import", "include/lowtide/Import", "lib/Recover", "include/lowtide/Recover")
#: What holds words for those who read.
WORDS = r"(?:\w*[rR]eason|message|remedy|how|words|sentence|\w*\bdescribe\w*\([^()]*\))"
#: How text is compared.
TESTS = r"(?:starts_with|ends_with|contains|find|rfind|consume_front|consume_back|equals\w*|compare\w*)"
DECIDES = re.compile(
    rf"(?<!size\()\b{WORDS}\)?\s*(?:==|!=)\s*[\"\w]|\b{WORDS}\)?\.{TESTS}\(|"
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
    "return other.message == finding.message;",
    'if (finding.describe() == "the file")',
)
RIGHT = (
    "if (info.reason.is(RoleReason::UserSaid))",
    "return other.kind == finding.kind && other.where == finding.where;",
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

    def test_findings_have_keys(self):
        """Each kind has one row, a key of its own that no change of words touches, and someone who says it."""
        kinds = re.search(r"enum class FindingKind[^{]*\{(.*?)\};", text("include/lowtide/Recover/Findings.h"), re.S)[1]
        kinds = re.findall(r"^  (\w+),", kinds, re.M)
        rows = re.findall(r'\{FindingKind::(\w+),\s*"([^"]*)",\s*Certainty::\w+,', text("lib/Recover/Findings.cpp"))
        self.assertEqual([kind for kind, _ in rows], kinds)
        keys = [key for _, key in rows]
        self.assertEqual(sorted(set(keys)), sorted(keys))
        self.assertEqual([key for key in keys if not re.fullmatch(r"[a-z]+(-[a-z]+)*", key)], [])
        saying = "".join(text(p) for p in sources("lib", suffixes=(".cpp",)) if p.name != "Findings.cpp")
        self.assertEqual([kind for kind in kinds if not re.search(rf"FindingKind::{kind}\b", saying)], [])

    def test_only_findings_warn(self):
        """A warning of these rooms is a finding: it has a kind, and `lowtide check` lists it."""
        warns = re.compile(r"\bemitWarning\(|warningAt\(")
        found = [f"{p}: {m[0]}" for p in sources(*ROOMS, suffixes=(".cpp", ".h")) if p.name != "Report.cpp" for m in warns.finditer(text(p))]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
