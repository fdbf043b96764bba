"""Documents lead somewhere: links point at files, and what the README tells people to type exists."""

import re
import unittest

from tree import ROOT, files, text


class Documentation(unittest.TestCase):
    def test_links(self):
        link = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
        dead = []
        for path in files():
            if path.suffix != ".md":
                continue
            for target in link.findall(re.sub(r"^```.*?^```", "", text(path), flags=re.M | re.S)):
                if not (ROOT / path).parent.joinpath(target).exists():
                    dead.append(f"{path}: {target}")
        self.assertEqual(dead, [])

    def test_readme_map_is_complete(self):
        """Every top-level folder is in the README's map."""
        readme = text(ROOT / "README.md")
        self.assertEqual([f for f in sorted({f.parts[0] for f in files() if len(f.parts) > 1 and f.parts[0][0] != "."}) if f"`{f}" not in readme], [])

    def test_models_stay_small(self):
        size = sum((ROOT / f).stat().st_size for f in files() if f.parts[:2] == ("test", "models"))
        self.assertLess(size, 15 * 1024 * 1024)


if __name__ == "__main__":
    unittest.main()
