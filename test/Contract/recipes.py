"""Recipes hold: what a page of docs/adding says to write is written into a copy of the tree, built, and seen to work."""

import contextlib
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from tree import ROOT, files, text

BLOCK = re.compile(r"<!-- recipe: ([^\s,]+)(?:, before: (.*?))? -->\n```\w*\n(.*?)^```$", re.M | re.S)


def follow(page, tree):
    """Does to the tree what the page says: writes files, or text into them in front of a line. Returns the paths."""
    steps = BLOCK.findall(text(ROOT / "docs/adding" / page))
    for path, line, content in steps:
        if not line:
            assert not (tree / path).exists(), path
            (tree / path).parent.mkdir(exist_ok=True)
            (tree / path).write_text(content)
            continue
        before, found, after = (tree / path).read_text().partition("\n" + line)
        assert found, f"{path} has no line {line}"
        (tree / path).write_text(before + "\n" + content + line + after)
    return [path for path, _, _ in steps]


def copy_tree(into):
    for path in files():
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, into / path)


class Recipes(unittest.TestCase):
    def run_in(self, folder, *command):
        run = subprocess.run([str(c) for c in command], cwd=folder, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout[-4000:] + run.stderr[-4000:])
        return run.stdout

    @contextlib.contextmanager
    def followed(self, page, touched, *objects):
        """A copy of the tree in which the page was followed, with these objects built."""
        with tempfile.TemporaryDirectory() as scratch:
            tree = pathlib.Path(scratch) / "tree"
            copy_tree(tree)
            self.assertEqual(follow(page, tree), touched)
            # What is collected when the build is configured is collected anew; other objects are as they were built.
            self.run_in(tree, "cmake", "--preset", "dev")
            self.run_in(tree, "ninja", "-C", "build", *objects)
            yield tree

    def test_a_memory_method(self):
        """One file: its row is in the table, in its place, and its plans are asked for."""
        objects = [f"lib/CMakeFiles/LowtideSolve.dir/Solve/{name}.cpp.o" for name in ("Portfolio/MethodTable", "Methods/EverySecond")]
        with self.followed("a-memory-method.md", ["lib/Solve/Methods/EverySecond.cpp"], *objects) as tree:
            (tree / "asks.cpp").write_text(ASKS)
            objects = [f"build/{name}" for name in objects]
            self.run_in(tree, "clang++-22", "-std=c++20", "-Iinclude", "asks.cpp", *objects, ROOT / "build/lib/libLowtideSolve.a", "-ldl", "-o", "asks")
            names = self.run_in(tree, "./asks").split()
        self.assertEqual(names[names.index("greedy") + 1], "every-second")
        self.assertEqual(names[-2:], ["every", "second"])

    def link(self, tree, program, objects):
        """A program of the tree with these objects, and otherwise with what the build links to `lowtide`."""
        (tree / "asks.cpp").write_text(program)
        folders = [f"-I{folder}" for folder in ("include", "build/include", "passes", "build/passes")]
        # Headers of other projects lie where the first object finds them.
        command = self.run_in(ROOT, "ninja", "-C", "build", "-t", "commands", objects[0]).splitlines()[-1]
        others = re.findall(r" (-D\S+|-isystem \S+)", command)
        self.run_in(tree, "clang++-22", "-std=c++20", "-c", *folders, *" ".join(others).split(), "asks.cpp", "-o", "asks.o")
        command = self.run_in(ROOT, "ninja", "-C", "build", "-t", "commands", "bin/lowtide").splitlines()[-1].split()
        libraries = [word for word in command if word.startswith(("-l", "-Wl,", "-fuse")) or re.search(r"\.(a|so)(\.[\d.]+)?$", word)]
        # Its own objects come first: what they hold is not looked for in a library.
        own = [tree / "asks.o", *(tree / "build" / name for name in objects)]
        self.run_in(ROOT / "build", "clang++-22", *own, *libraries, "-o", tree / "asks")

    def test_a_target(self):
        """One row: the target is known by its name, with the figures of its chip."""
        objects = ["lib/CMakeFiles/LowtideInterfaces.dir/Interfaces/TargetInfo.cpp.o"]
        with self.followed("a-target.md", ["lib/Interfaces/Targets.inc"], *objects) as tree:
            self.link(tree, ASKS_TARGET, objects)
            self.assertEqual(self.run_in(tree, "./asks"), "sm_90 94530 MiB, as cuda:sm_90: yes\n")

    def test_a_library_call(self):
        """One folder: its call is read, checked, declined for a GPU by its rule, and computed; others are as they were."""
        touched, generated = ["runtime/calls/Axpy/AxpyCall.cpp"], "build/runtime/generated"
        objects = [f"runtime/CMakeFiles/lowtide-rt.dir/calls/{name}.cpp.o" for name in ("CallKinds", "Axpy/AxpyCall")]
        with self.followed("a-library-call.md", touched, *objects) as tree:
            (tree / "asks.cpp").write_text(ASKS_CALL)
            command = self.run_in(ROOT, "ninja", "-C", "build", "-t", "commands", "bin/lowtide-run").splitlines()[-1].split()
            libraries = [word for word in command if word.startswith("-l") or re.search(r"\.(a|so)(\.[\d.]+)?$", word)]
            own = [tree / "asks.o", *(tree / "build" / name for name in objects)]
            self.run_in(tree, "clang++-22", "-std=c++20", "-I.", f"-I{generated}", "-c", "asks.cpp", "-o", "asks.o")
            self.run_in(ROOT / "build", "clang++-22", *own, *libraries, "-o", tree / "asks")
            self.assertEqual(
                self.run_in(tree, "./asks").splitlines(),
                ["attention attention_grad axpy conv conv_input_grad conv_filter_grad gemm", "x has 40 bytes, its shape needs 20000",
                 "it adds arrays, which a generated kernel does", "2 tasks, written over operand 1: 20 7503.5"],
            )  # fmt: skip

    def test_a_rule(self):
        """A rule with its evidence and its finding: it fires on what the program notes, says so by its key, and on nothing else."""
        touched = ["include/lowtide/Recover/Evidence.h", "lib/Recover/Evidence.cpp", "include/lowtide/Recover/Findings.h", "lib/Recover/Findings.cpp",
                   "lib/Recover/ScaledGradients.h", "lib/Recover/ScaledGradients.cpp", "lib/Recover/Recoveries.cpp", "lib/Recover/Recoveries.cpp"]  # fmt: skip
        objects = [f"lib/CMakeFiles/LowtideRecover.dir/Recover/{name}.cpp.o" for name in ("Evidence", "Findings", "ScaledGradients", "Recoveries")]
        with self.followed("a-rule.md", touched, *objects) as tree:
            self.link(tree, ASKS_RULE, objects)
            self.assertEqual(self.run_in(tree, "./asks").splitlines(),
                             ["gradient-scale-restored stated y", "Identity Identity Sub CastLike Mul Add", "nothing", "Identity"])  # fmt: skip

    def test_a_flag(self):
        """One record, and the pass that reads it: flag, help, check, stage and pipeline know it, and it changes what is made."""
        objects = ["lib/CMakeFiles/LowtideCompiler.dir/Compiler/OptionTable.cpp.o",
                   *(f"passes/CMakeFiles/LowtidePasses.dir/{name}.cpp.o" for name in ("DeclaredChecks", "Pipeline", "TrainInlineSaved"))]  # fmt: skip
        with self.followed("a-flag.md", ["include/lowtide/Support/DeclaredOptions.td", "passes/TrainInlineSaved.cpp"], *objects) as tree:
            self.link(tree, ASKS_FLAG, objects)
            self.assertEqual(
                self.run_in(tree, "./asks", "test/Passes/train-inline-saved.mlir").splitlines(),
                ["target: Kernels compute cheap values of the forward pass themselves", "inline-saved: must be true or false, not 'maybe'",
                 "train-inline-saved{inline-saved=true min-gap=4}", "changes: yes", "train-inline-saved{inline-saved=false min-gap=4}", "changes: no"],
            )  # fmt: skip


ASKS = """
#include "lowtide/Solve/Portfolio/Fit.h"
#include "lowtide/Solve/Portfolio/Methods.h"
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

ASKS_TARGET = """
#include "lowtide/Interfaces/TargetInfo.h"
#include <cstdio>

using namespace lowtide;

int main() {
  const std::optional<TargetInfo> target = findTarget("cuda:example"), chip = findTarget("cuda:sm_90");
  for (const Card &card : listCards())
    if (card.name == "example")
      std::printf("%s %d MiB, as cuda:sm_90: %s\\n", target->chip.c_str(), int(card.getBytes() >> 20),
                  target->libraryFlops == chip->libraryFlops ? "yes" : "no");
}
"""

ASKS_CALL = """
#include "runtime/calls/CallKind.h"
#include <cstdio>
#include <vector>

using namespace lowtide;
using namespace lowtide::rt;

int main() {
  const char *separator = "";
  for (const CallKind &kind : callKinds())
    for (std::string_view callee : kind.callees) {
      std::printf("%s%s", separator, std::string(callee).c_str());
      separator = " ";
    }
  plan::Call call;
  call.set_callee("axpy");
  plan::Attribute &n = *call.add_attributes(), &alpha = *call.add_attributes();
  n.set_name("n");
  n.set_i(5000);
  alpha.set_name("alpha");
  alpha.set_f(0.5);
  for (int i = 0; i < 2; ++i)
    call.add_reads()->set_bytes(40);
  call.add_writes();
  auto read = readCall(call);
  std::printf("\\n%s\\n", (*read)->checkOperands(call).str().c_str());
  std::printf("%s\\n", (*read)->declinedBy(2)->declines);
  std::vector<float> x(5000), y(5000);
  for (int i = 0; i < 5000; ++i)
    x[i] = 2 * i + 4, y[i] = i / 2.0f + 3;
  const void *reads[] = {x.data(), y.data()};
  void *writes[] = {y.data()};
  auto prepared = (*read)->prepareCpu({reads, writes, nullptr});
  for (int64_t task = 0; task < (*prepared)->tasks(0); ++task)
    (*prepared)->run(0, task);
  std::printf("%d tasks, written over operand %d: %g %g\\n", int((*prepared)->tasks(0)), (*read)->overwritableRead(), y[10], y[4999]);
}
"""

ASKS_RULE = """
#include "lowtide/Recover/Recover.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"
#include "onnx/onnx_pb.h"

using namespace lowtide;

static void recover(const char *operation) {
  onnx::GraphProto graph;
  graph.add_input()->set_name("x");
  graph.add_output()->set_name("y");
  onnx::NodeProto &node = *graph.add_node();
  node.set_op_type("Identity");
  node.add_input("x");
  node.add_output("y");
  auto &note = *node.add_metadata_props();
  note.set_key("pkg.torch.onnx.fx_node");
  note.set_value(std::string("%y : [num_users=1] = call_function[target=torch.ops.") + operation + "](args = (%x, 0.1), kwargs = {})");
  mlir::MLIRContext context;
  context.getDiagEngine().registerHandler([](mlir::Diagnostic &) { return mlir::success(); });
  Report report(context, "model.onnx", 10);
  recoverProgram(graph, [](const onnx::TensorProto &) { return std::nullopt; }, report);
  for (const Finding &finding : report.getFindings())
    llvm::outs() << stringifyFindingKind(finding.kind) << " " << stringifyCertainty(finding.getCertainty()) << " " << finding.names[0] << "\\n";
  if (report.getFindings().empty())
    llvm::outs() << "nothing\\n";
  const char *separator = "";
  for (const onnx::NodeProto &each : graph.node())
    if (each.op_type() != "Constant") {
      llvm::outs() << separator << each.op_type();
      separator = " ";
    }
  llvm::outs() << "\\n";
}

int main() {
  recover("team.scale_gradient.default");
  recover("team.scale_value.default");
}
"""

ASKS_FLAG = """
#include "PassFlags.h"
#include "lowtide/Compiler/OptionTable.h"
#include "lowtide/InitAll.h"
#include "lowtide/Pipeline.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace lowtide;

static std::string toText(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

int main(int, char **argv) {
  for (const OptionRow &row : listOptions())
    if (row.name == "inline-saved")
      llvm::outs() << row.group << ": " << row.text << "\\n";
  Request request;
  llvm::outs() << setOption(request, "inline-saved", "maybe") << "\\n";
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  context.getDiagEngine().registerHandler([](mlir::Diagnostic &) { return mlir::success(); });
  for (const char *value : {"true", "false"}) {
    setOption(request, "inline-saved", value);
    mlir::PassManager stage(&context);
    buildFitStage(stage, FitStageOptions(request));
    std::string pipeline;
    llvm::raw_string_ostream os(pipeline);
    stage.printAsTextualPipeline(os);
    const llvm::StringRef pass = llvm::StringRef(pipeline).substr(pipeline.find("train-inline-saved"));
    llvm::outs() << pass.take_front(pass.find('}') + 1) << "\\n";
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceFile<mlir::ModuleOp>(argv[1], &context);
    const std::string before = toText(*module);
    mlir::PassManager alone(&context);
    alone.addNestedPass<mlir::func::FuncOp>(createTrainInlineSaved(request));
    if (failed(alone.run(*module)))
      return 1;
    llvm::outs() << "changes: " << (toText(*module) == before ? "no" : "yes") << "\\n";
  }
}
"""


if __name__ == "__main__":
    unittest.main()
