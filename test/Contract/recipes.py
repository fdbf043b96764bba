"""Recipes hold: what a page of docs/adding says to write is written into a copy of the tree, built, and seen to work."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from tree import ROOT, files, text

FILE = re.compile(r"<!-- recipe: (\S+) -->\n```\w*\n(.*?)^```$", re.M | re.S)


def files_of(page):
    """What the page has one write: texts by path."""
    return dict(FILE.findall(text(ROOT / "docs/adding" / page)))


def copy_tree(into):
    for path in files():
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, into / path)


class Recipes(unittest.TestCase):
    def run_in(self, folder, *command):
        run = subprocess.run([str(c) for c in command], cwd=folder, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout[-4000:] + run.stderr[-4000:])
        return run.stdout

    def test_a_memory_method(self):
        """One file: its row is in the table, in its place, and its plans are asked for."""
        recipe = files_of("a-memory-method.md")
        self.assertEqual(list(recipe), ["lib/Solve/Methods/EverySecond.cpp"])
        with tempfile.TemporaryDirectory() as scratch:
            tree = pathlib.Path(scratch) / "tree"
            copy_tree(tree)
            for path, content in recipe.items():
                self.assertFalse((tree / path).exists(), path)
                (tree / path).write_text(content)
            (tree / "asks.cpp").write_text(ASKS)
            # The rows are collected when the build is configured; what else the library has is as it was built.
            self.run_in(tree, "cmake", "--preset", "dev")
            objects = [f"lib/CMakeFiles/LowtideSolve.dir/Solve/{name}.cpp.o" for name in ("MethodTable", "Methods/EverySecond")]
            self.run_in(tree, "ninja", "-C", "build", *objects)
            objects = [f"build/{name}" for name in objects]
            self.run_in(tree, "clang++-22", "-std=c++20", "-Iinclude", "asks.cpp", *objects, ROOT / "build/lib/libLowtideSolve.a", "-ldl", "-o", "asks")
            names = self.run_in(tree, "./asks").split()
        self.assertEqual(names[names.index("greedy") + 1], "every-second")
        self.assertEqual(names[-2:], ["every", "second"])


ASKS = """
#include "lowtide/Solve/Fit.h"
#include "lowtide/Solve/Methods.h"
#include <cstdio>
#include <cstring>

using namespace lowtide::solve;

int main() {
  FitOptions options;
  for (const MethodName &method : listMethods()) {
    std::printf("%s\\n", std::string(method.name).c_str());
    if (method.name != "every-second")
      options.without.emplace_back(method.name);
  }
  // Forward ten operations, backward ten: nothing but the new method is asked.
  StepGraph graph;
  graph.values.push_back({64, -1, true});
  for (uint32_t i = 0; i < 20; ++i) {
    StepOperation operation;
    operation.reads = i < 10 ? std::vector<uint32_t>{i} : std::vector<uint32_t>{i, 20 - i};
    operation.writes = {i + 1};
    operation.overwrites.resize(1);
    operation.seconds = 1;
    operation.isForward = i < 10;
    graph.operations.push_back(operation);
    graph.values.push_back({64, int32_t(i), false, i == 19, i < 10});
  }
  Front front(graph, originalSchedule(graph), options);
  const FittedSchedule *plan = front.find(front.getLargest().timeline.peakBytes - 64);
  std::printf("%.12s\\n", plan ? plan->method : "none");
}
"""


if __name__ == "__main__":
    unittest.main()
