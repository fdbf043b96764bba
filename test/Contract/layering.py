"""Who may include whom: one direction, checked by reading the #include lines."""

import pathlib
import re
import subprocess
import unittest

from tree import ROOT, sources, text

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)


def includes(*rooms):
    """(file, included path) of every include under the folders."""
    for path in sources(*rooms, suffixes=(".h", ".cpp", ".c")):
        for name in INCLUDE.findall(text(path)):
            yield path, name


def rooms_of(room):
    return (f"lib/{room}", f"include/lowtide/{room}")


class Layering(unittest.TestCase):
    def refuse(self, found):
        self.assertEqual([f"{path} includes {name}" for path, name in found], [])

    def test_solve_knows_no_ir(self):
        """Algorithms are plain C++ on plain structs."""
        self.refuse(
            (p, n) for p, n in includes(*rooms_of("Solve"))
            if n.startswith(("mlir/", "llvm/", "llvm-c/")) or (n.startswith("lowtide/") and not n.startswith("lowtide/Solve/"))
        )  # fmt: skip

    #: Folders of lib/Solve, each of which knows those before it.
    SOLVE = ("Algorithms", "Packing", "Model", "Searches", "Bound", "Methods", "Portfolio")

    def test_solve_has_one_direction(self):
        """Algorithms know no step, a step no search, a search no method, a method not who chooses between methods."""
        folders = {f.parent.name for f in sources(*rooms_of("Solve"), suffixes=(".h", ".cpp"))}
        self.assertEqual(folders, set(self.SOLVE))
        other = re.compile(r"(?:lowtide/Solve|\.\.)/(\w+)/")
        self.refuse((p, n) for p, n in includes(*rooms_of("Solve")) if (m := other.match(n)) and self.SOLVE.index(m[1]) > self.SOLVE.index(p.parent.name))

    def test_analysis_asks_interfaces(self):
        """Analyses see ops only through interfaces."""
        allowed = ("lowtide/Analysis/", "lowtide/Interfaces/", "lowtide/Solve/", "lowtide/Support/")
        self.refuse((p, n) for p, n in includes(*rooms_of("Analysis")) if n.startswith("lowtide/") and not n.startswith(allowed))

    def test_interfaces_know_no_dialect(self):
        self.refuse((p, n) for p, n in includes(*rooms_of("Interfaces")) if n.startswith(("lowtide/Dialect/", "lowtide/Analysis/")))

    def test_recovery_reads_no_file(self):
        """Recovery sees a model through `ModelView`; who reads files asks it by its headers, and stands above it."""
        below = ("lowtide/OnnxModel/", "lowtide/Recover/", "lowtide/Support/")
        self.refuse((p, n) for p, n in includes(*rooms_of("Recover")) if n.startswith(("lowtide/", "../")) and not n.startswith(below))
        self.refuse((p, n) for p, n in includes(*rooms_of("OnnxModel")) if n.startswith(("lowtide/", "../")) and not n.startswith(below[0]))
        private = {f.name for f in sources("lib/Recover", suffixes=(".h",))}
        self.assertIn("Unfold.h", private)
        self.refuse((p, n) for p, n in includes(*rooms_of("Import")) if pathlib.PurePath(n).name in private)

    def test_few_ask_recovery(self):
        """Besides the importer: what nodes note, for rules of operators, and what modules return, for `verify`."""
        shown = ("lowtide/Recover/NodeNotes.h", "lowtide/Recover/WatchedValues.h")
        rooms = [f"lib/{f.parts[1]}" for f in sources("lib") if len(f.parts) > 2 and f.parts[1] not in ("Import", "Recover")]
        self.refuse((p, n) for p, n in includes("passes", "tools", *sorted(set(rooms))) if n.startswith("lowtide/Recover/") and n not in shown)

    def test_passes_see_no_compiler(self):
        """The library runs passes; nothing that it is made of knows it."""
        rooms = [f"lib/{f.parts[1]}" for f in sources("lib") if len(f.parts) > 2 and f.parts[1] != "Compiler"]
        self.refuse((p, n) for p, n in includes("passes", *sorted(set(rooms))) if n.startswith("lowtide/Compiler/"))

    def test_tools_see_no_pass(self):
        """Headers that passes share among themselves are on no tool's path, and lowtide compiles by the library alone."""
        private = {f.name for f in sources("passes", suffixes=(".h",))}
        self.assertIn("Passes.h", private)
        self.refuse((p, n) for p, n in includes("tools") if n in private)
        shown = ("lowtide/Compiler/", "lowtide/Support/", "lowtide/Report/Report.h", "lowtide/Solve/Algorithms/Difference.h",
                 "lowtide/Codegen/Toolkit.h", "lowtide/Analysis/ByteSize.h", "lowtide/Interfaces/TargetInfo.h")  # fmt: skip
        self.refuse((p, n) for p, n in includes("tools/lowtide") if n.startswith(("mlir/", "onnx/")) or (n.startswith("lowtide/") and not n.startswith(shown)))

    def test_compiler_prints_nothing(self):
        """What the library has to say goes to its listener or into its result."""
        out = re.compile(r"llvm::(outs|errs)\(\)|\bstd::(cout|cerr|clog)\b|\bf?printf\(|\bexit[A-Z]\w+")
        found = [f"{p}: {m[0]}" for p in sources(*rooms_of("Compiler")) for m in out.finditer(text(p))]
        self.assertEqual(found, [])

    def test_fusion_sees_no_pass(self):
        """What ops become one kernel is asked by passes, and knows none of them."""
        below = ("lowtide/Analysis/", "lowtide/Codegen/", "lowtide/Dialect/NN/", "lowtide/Fusion/", "lowtide/Interfaces/", "lowtide/Solve/Algorithms/")
        private = {f.name for f in sources("passes", suffixes=(".h",))}
        self.refuse((p, n) for p, n in includes(*rooms_of("Fusion")) if n in private or (n.startswith("lowtide/") and not n.startswith(below)))

    def test_passes_see_no_runtime(self):
        self.refuse((p, n) for p, n in includes("passes") if n.startswith(("runtime/", "lowtide-rt/")))

    def test_runtime_has_no_compiler(self):
        """The runtime knows plan.proto and nothing of MLIR, LLVM or our own compiler."""
        self.refuse(
            (p, n) for p, n in includes("runtime", "include/lowtide-rt", "tools/lowtide-run")
            if n.startswith(("mlir/", "llvm/", "llvm-c/", "mlir-c/", "lowtide/"))
        )  # fmt: skip

    def test_runtime_links_no_compiler(self):
        program = ROOT / "build" / "bin" / "lowtide-run"
        if not program.exists():
            self.skipTest("lowtide-run is not built")
        needed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
        self.assertNotRegex(needed, r"lib(LLVM|MLIR)")

    def test_passes_ask_interfaces(self):
        """A pass that names ops knows what only an op's record may know."""
        switch = re.compile(r'TypeSwitch|isa<[^>]*nn::|getStringRef\(\) *==|getName\(\) *== *"')
        found = [f"{p}:{text(p)[: m.start()].count(chr(10)) + 1}: {m[0]}" for p in sources("passes") for m in switch.finditer(text(p))]
        self.assertEqual(found, [])

    #: Files outside lib/Dialect and lib/Legalize that name ops of nn or train: which, and why no interface is asked.
    NAMED = {
        "lib/Codegen/TransposeEmitter.cpp": ("TransposeOp", "kernels of its own, by tiles and through shared memory"),
        "lib/Codegen/LoopEmitter.cpp": ("BroadcastOp ReshapeOp", "movements that leave flat positions as they are"),
        "lib/Codegen/RunningSumEmitter.cpp": ("CumSumOp ReshapeOp", "the op that a line has once, and movements that leave its positions as they are"),
        "lib/Codegen/RegionEvaluator.cpp": ("ReshapeOp", "position arithmetic that is cheaper than what their records say"),
        "lib/Export/CastPairs.cpp": ("CastOp", "casts are what it puts around others"),
        "passes/AutocastScans.cpp": ("ScanOp", "the loops whose rows it keeps in 16 bits"),
        "passes/BatchLoopBody.cpp": ("BroadcastOp CastOp ConstantOp GatherOp IotaOp ReshapeOp", "ops that hold shapes or positions of the whole batch"),
        "lib/Fusion/CheapProducers.cpp": ("GatherElementsOp GatherOp ReshapeOp", "rows of a parameter, what picks few elements, and views that widening is moved across"),
        "lib/Fusion/FusionGroups.cpp": ("BroadcastOp GatherOp TransposeOp", "what memory traffic of a fused kernel depends on"),
        "lib/Fusion/ScatterChains.cpp": ("AddOp ScatterAddOp ScatterElementsAddOp", "sums, and their terms that can add to another one"),
        "lib/Fusion/ScatterGroups.cpp": ("AddOp ScatterAddOp", "the sum that a scatter is a term of"),
        "lib/Fusion/LabelGather.cpp": ("BroadcastOp CompareOp GatherElementsOp IotaOp ReshapeOp", "the pattern that picks one logit of a row"),
        "passes/NNSegmentScans.cpp": ("BroadcastOp ConstantOp ReshapeOp ScanOp SliceOp TransposeOp", "the loop that it cuts, what is the same in every step, and who reads a state as the last row"),
        "passes/NNSplitSums.cpp": ("BroadcastOp", "a part of what is repeated is repeated"),
        "passes/RowChunks.cpp": ("AccumulateOp SoftmaxCrossEntropyOp", "the loss at the end of a head, and the loop that it becomes"),
        "passes/StoredMaster.cpp": ("CommitOp GatherOp", "rows of a table that is stored in parts, and who writes it"),
        "passes/TrainAverageWeights.cpp": ("CommitOp", "averages wait for finite gradients as updates do"),
        "passes/TrainChunkLossHead.cpp": ("LinearCrossEntropyGradOp LinearCrossEntropyOp", "the two ops that it cuts into chunks"),
        "passes/TrainDeferUpdates.cpp": ("CommitOp", "updates that wait for finite gradients, made in the next step"),
        "passes/TrainDistributeLoops.cpp": ("AccumulateOp", "the loop that it cuts, and the loops that it becomes"),
        "passes/TrainRecomputeScans.cpp": ("ReshapeOp ScanOp", "the loops whose rows are recomputed, and the rows that are states"),
        "passes/TrainSparseUpdates.cpp": ("AddOp CastOp ScatterAddOp", "gradients of tables as rows and their numbers"),
        "passes/TrainStateLayouts.cpp": ("BroadcastOp CommitOp", "updates that are one elementwise body"),
        "passes/TrainTileCoded.cpp": ("DotOp", "products of which one operand is decoded tile by tile"),
        "passes/TrainWeighLoss.cpp": ("DivOp MulOp", "the quotient that a mean is, and its factors"),
    }  # fmt: skip

    def test_few_files_name_ops(self):
        """Facts are asked of interfaces: who casts to a named op of mathematics or training stands in the table, with its reason."""
        cast = r"(?:\b(?:isa|cast|dyn_cast)(?:_\w+)?|\bIsaPred|\bgetDefiningOp|\bgetOps|\bm_Op)<[^<>;()]*>"
        named = re.compile(cast + r"|\[[^\]]*\]\((?:nn|train)::\w+Op \w+\)")
        records = [text(p) for folder in ("NN", "Train") for p in sources(f"include/lowtide/Dialect/{folder}", suffixes=(".td",))]
        ops = {f"{name}Op" for record in records for name in re.findall(r"^defm? (?:NN|Train)_(\w+?)Op\b", record, re.M)}
        ops -= {"KernelOp", "YieldOp"}  # what code generation works on
        self.assertGreater(len(ops), 100)
        found = {}
        for path in sources("passes", *(f"lib/{room}" for room in ("Analysis", "Codegen", "Compiler", "Export", "Fusion", "Interfaces", "Report", "RuntimeQuery", "Serialize", "Solve", "Support")),
                            suffixes=(".cpp", ".h")):  # fmt: skip
            # Other dialects have ops of the same names.
            casts = re.sub(r"\b(?:plan|onnx)::\w+", "", " ".join(match[0] for match in named.finditer(text(path))))
            if names := set(re.findall(r"\w+Op\b", casts)) & ops:
                found[str(path)] = " ".join(sorted(names))
        allowed = {path: ops for path, (ops, _) in self.NAMED.items()}
        self.assertEqual(sorted(found.items() - allowed.items()), [])
        self.assertEqual(sorted(allowed.items() - found.items()), [])

    def test_names_of_bindings_stand_once(self):
        """What is a gradient is said by a kind, and a name that several rooms know stands in one header."""
        spelled = re.compile(r'"(?:grad/|train\.binding")')
        rooms = ("passes", "lib", "include", "runtime", "tools")
        found = {str(p) for p in sources(*rooms, suffixes=(".h", ".hpp", ".cpp")) if spelled.search(text(p))}
        self.assertEqual(found, {"include/lowtide-rt/StepNames.h", "include/lowtide/Interfaces/BindingNames.h"})

    def test_target_is_an_object(self):
        """What a module is compiled for is an attribute: nothing in the compiler compares a target's name or takes one as text."""
        compares = re.compile(r'(?:(?:starts_with|consume_front|contains)\(|[!=]= *)"(?:cuda|sm_|x86-64)')
        rooms = ("passes", *(f"lib/{room}" for room in ("Analysis", "Codegen", "Dialect", "Fusion", "Report", "RuntimeQuery", "Serialize", "Solve")))
        found = [f"{p}:{text(p)[: m.start()].count(chr(10)) + 1}: {m[0]}" for p in sources(*rooms) for m in compares.finditer(text(p))]
        self.assertEqual(found, [])
        own = re.findall(r'Option<"(target|cpu|threadsMax)"', text("passes/Passes.td"))
        records = re.findall(r'^def (?:Target|ThreadsMax)Option .*?^}', text("include/lowtide/Support/DeclaredOptions.td"), re.M | re.S)
        readers = [re.findall(r"let Passes = (.*);", record) for record in records]
        self.assertEqual((own, readers), ([], [['["train-set-target"]'], ['["train-set-target"]']]))


if __name__ == "__main__":
    unittest.main()
