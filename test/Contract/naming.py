"""Names, sizes and places of files, and words."""

import re
import unittest

from tree import ROOT, files, sources, text

TOP = {"CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "include", "lib", "passes", "runtime", "tools", "test", "docs"}
LINES = 600


class Naming(unittest.TestCase):
    def test_top_level(self):
        self.assertEqual(sorted({f.parts[0] for f in files() if not f.parts[0].startswith(".")} - TOP), [])

    def test_no_room_without_a_name(self):
        vague = re.compile(r"(^|/)[^/]*(utils?|helpers?|common|misc|manager)[^/]*$", re.I)
        self.assertEqual([str(f) for f in files() if vague.search(str(f))], [])

    def test_no_type_without_a_name(self):
        vague = re.compile(r"\b(?:class|struct|namespace)\s+(\w*(?:Utils?|Helpers?|Manager)|(?:Common|Misc)\w*)\b(?!\s*;)")  # not what another library declares
        found = [f"{p}: {m[1]}" for p in sources(suffixes=(".h", ".cpp")) for m in vague.finditer(text(p))]
        self.assertEqual(found, [])

    def test_file_size(self):
        long = [f"{p}: {n} lines" for p in sources() if (n := text(p).count("\n")) > LINES]
        self.assertEqual(long, [])

    def test_purpose_on_top(self):
        """Every source file begins by saying what it is for."""
        starts = ("//", "/*", '"""', "#")
        silent = [str(p) for p in sources() if text(p).strip() and not text(p).lstrip().startswith(starts)]
        silent += [str(p) for p in sources(suffixes=(".h", ".cpp", ".td")) if not text(p).lstrip().startswith(("//", "/*"))]
        self.assertEqual(silent, [])

    def test_headers_mirror_sources(self):
        """include/lowtide/<Room> and lib/<Room> are the two halves of one room."""
        rooms = {f.parts[2] for f in sources("include/lowtide", suffixes=(".h",)) if len(f.parts) > 3}
        halves = {f.parts[1] for f in files() if f.parts[0] == "lib" and len(f.parts) > 2}
        self.assertEqual(sorted(rooms - halves), [])

    def test_tools_are_executable(self):
        for name in ("tools/dev", ".ci/run"):
            self.assertTrue((ROOT / name).stat().st_mode & 0o100, f"{name} is not executable")

    def test_no_machine_paths(self):
        """Nothing in the tree knows where it was written."""
        machine = re.compile(r"(?<![\w.$}])/(?:work|root|home/\w+)/")
        found = []
        for path in files():
            if path.suffix in (".npz", ".onnx", ".png", ".safetensors") or str(path) == "test/Contract/naming.py":
                continue
            if (match := machine.search(text(path))) is not None:
                found.append(f"{path}: {match[0]}")
        self.assertEqual(found, [])


class Passes(unittest.TestCase):
    """Each pass: one record in Passes.td, one file, one test, one name."""

    def records(self):
        record = re.compile(r'^def\s+(\w+)\s*:\s*[^;{]*?Pass<\s*"([^"]+)"', re.M)
        return [m.groups() for p in sources("passes", suffixes=(".td",)) for m in record.finditer(text(p))]

    def test_every_pass_has_a_test(self):
        missing = [f"test/Passes/{flag}.mlir" for _, flag in self.records() if not (ROOT / "test/Passes" / f"{flag}.mlir").exists()]
        self.assertEqual(missing, [])

    def test_every_pass_has_its_file(self):
        self.assertEqual([f"passes/{name}.cpp" for name, _ in self.records() if not (ROOT / "passes" / f"{name}.cpp").exists()], [])


class Words(unittest.TestCase):
    """docs/glossary.md: its terms are used, and the words that it replaces are not."""

    PAGE = ROOT / "docs/glossary.md"
    #: phrases in which a word has its English sense
    ENGLISH = re.compile(r"\b(leav\w*|left|stays|hidden|external data)\b[^.]{0,40}\bbehind\b|\bfar behind\b")

    def pages(self):
        """(file, text) of whatever people read: sources, pages, tests; no recorded output, no generated reference."""
        for path in files():
            written = path.suffix in (".cpp", ".h", ".td", ".py", ".md", ".mlir", ".test", ".txt", ".inc", ".proto")
            if written and path.parts[:2] not in (("docs", "measurements"), ("docs", "reference")) and str(path) not in ("docs/glossary.md", "test/Contract/naming.py"):
                yield path, text(path)

    def test_no_word_that_the_glossary_replaces(self):
        replaced = re.findall(r"^\| ([a-z ]+) \| [^|]+ \|$", self.PAGE.read_text().split("## Words that we do not use")[1], re.M)[1:]
        self.assertGreater(len(replaced), 4)
        word = re.compile(rf"(?i:\b(?:{'|'.join(replaced)})\b)|(?<=[a-z])(?:Behind|Nobody|Dear)(?:er|est)?(?![a-z])")
        # In quotes and as arguments they are data: a name that a test looks for.
        data = re.compile(r"""LeavesNothingBehind\w*|['"=]nobody\b|%t\.\w+ nobody|\b(?:NOBODY|BEHIND)\b""")
        found = []
        for path, page in self.pages():
            lines = {page.count("\n", 0, match.start()) for match in word.finditer(page)}
            for number, line in ((n, page.split("\n")[n]) for n in sorted(lines)):
                if word.search(data.sub("", self.ENGLISH.sub("", line))):
                    found.append(f"{path}:{number + 1}: {line.strip()[:100]}")
        self.assertEqual(found, [])

    def test_every_term_is_used(self):
        terms = re.findall(r"^\| \*([a-z -]+)\* \|", self.PAGE.read_text(), re.M)
        self.assertGreaterEqual(len(terms), 40)
        self.assertEqual(terms, sorted(terms))
        unused = set(terms)
        for _, page in self.pages():
            unused -= {term for term in unused if re.search(rf"\b{term}", page, re.I)}
        self.assertEqual(sorted(unused), [])


if __name__ == "__main__":
    unittest.main()
