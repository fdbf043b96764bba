"""Everything that must hold before a change lands: set-up, build, and then one suite after another.

The last line is `N passed, N failed`. A suite that cannot run counts as failed; none is left out in silence.
"""

import argparse
import concurrent.futures
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from devkit import dependencies, fuzz, mutants
from devkit.build import BUILD, build
from devkit.console import ROOT, Failure, collection, run_logged, say

TEST = ROOT / "test"
FORMATTED = (".cpp", ".h")
# The most that a training step's arena may take over the bytes alive in it at once.
ARENA_RATIO = 1.01


class Suite:
    """Names of the tests that passed, and (name, what happened) of those that did not."""

    def __init__(self):
        self.passed, self.failed = [], []

    def add(self, name, complaint=""):
        (self.failed.append((name, complaint)) if complaint else self.passed.append(name))


def tracked(*suffixes):
    out = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [name for name in out.split("\0") if name.endswith(suffixes) and (ROOT / name).is_file()]


def format_suite(suite, full):
    """clang-format of every C++ file, one test per top folder."""
    rooms = {}
    for name in tracked(*FORMATTED):
        rooms.setdefault(name.split("/")[0], []).append(name)
    for room, names in sorted(rooms.items()):
        run = subprocess.run(["clang-format-22", "--dry-run", "-Werror", *names], cwd=ROOT, capture_output=True, text=True)
        wrong = sorted({line.split(":")[0] for line in run.stderr.splitlines() if ": error:" in line})
        note = f"run: clang-format-22 -i {' '.join(wrong)}" if wrong else run.stderr.strip()
        suite.add(f"format {room}", note if run.returncode else "")


def contract_suite(suite, full):
    """Layering, names, sizes, documentation, machine code of kernels (test/Contract); in full what cuDNN itself says of steps."""
    run_python_tests(suite, TEST / "Contract", "contract")
    # Of every model and every full-size graph; the sample is in machine_code.py.
    for folder in model_folders() if full else []:
        for row in command_rows("machine-code", folder):
            suite.add(f"contract machine code {row['name']}", row["complaint"])
    for codec in ("int8", "nf4", "fp8") if full else []:
        for row in command_rows("machine-code", TEST / "models" / "lora-gpt2", f"--frozen-weights={codec}"):
            suite.add(f"contract machine code {row['name']} {codec}", row["complaint"])
    # In full only: cuDNN is a gigabyte to fetch.
    for work in [*model_folders(), "--random=1000"] if full else []:
        for row in command_rows("libraries", work):
            suite.add(f"contract cuDNN {row['name']}", row["complaint"])


# The output of the whole process is turned aside while a test runs in it.
IN_PROCESS = threading.Lock()


def run_python_tests(suite, folder, name):
    """The unittest cases of a folder."""
    sys.path.insert(0, str(folder))
    loader = unittest.TestLoader()
    for path in sorted(folder.glob("*.py")):
        for case in flatten(loader.loadTestsFromName(path.stem)):
            result = unittest.TestResult()
            with IN_PROCESS, contextlib.redirect_stdout(io.StringIO()):
                case.run(result)
            complaints = [text for _, text in result.failures + result.errors] + [f"skipped: {why}" for _, why in result.skipped]
            suite.add(f"{name} {case.id()}", "\n".join(complaints))


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def unit_suite(suite, full):
    """GoogleTest programs below <build>/test/unit, and tools/dev's own (test/Unit/Devkit); in full the runtime's under sanitizers too."""
    run_python_tests(suite, TEST / "Unit" / "Devkit", "unit devkit")
    programs = sorted(p for p in (BUILD / "test" / "unit").glob("*") if p.is_file() and os.access(p, os.X_OK))
    for program in programs:
        run_unit_tests(suite, program, f"unit {program.name}", full)
    if full:
        names = ("CudaTests", "RuntimeTests")  # code of ours alone, no part of LLVM
        folder = build_sanitized(*names)
        for name in names:
            run_unit_tests(suite, folder / "test" / "unit" / name, f"unit sanitized {name}", full)


def build_sanitized(*targets):
    """The build folder with address and undefined-behaviour sanitizers, these targets built there."""
    folder = ROOT / "build-sanitize"
    if not (folder / "build.ninja").exists():
        run_logged(["cmake", "--preset", "sanitize"], folder / "configure.log", cwd=ROOT)
    run_logged(["ninja", "-C", folder, *targets], folder / "build.log", cwd=ROOT)
    return folder


def run_unit_tests(suite, program, name, full):
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        run = subprocess.run(
            [program, f"--gtest_output=json:{report.name}"], cwd=program.parent.parent, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=900,
            env=os.environ | {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1", "LOWTIDE_TESTS": "full" if full else "sample"},
        )  # fmt: skip
        text = pathlib.Path(report.name).read_text()
    if not text or (run.returncode not in (0, 1)):
        return suite.add(name, f"exit {run.returncode}\n{run.stdout[-2000:]}")
    cases = [(f"{name} {group['name']}.{case['name']}", case) for group in json.loads(text)["testsuites"] for case in group["testsuite"]]
    for title, case in cases:
        complaint = "\n".join(f["failure"] for f in case.get("failures", []))
        suite.add(title, "skipped" if case["result"] == "SKIPPED" else complaint)
    if run.returncode and not any(case.get("failures") for _, case in cases):
        suite.add(name, f"exit {run.returncode}\n{run.stdout[-2000:]}")


def lit_suite(suite, full):
    """Text tests: every .mlir and .test file below test/; in full also those in folders Full, and by tools under sanitizers."""
    run_lit(suite, BUILD, "lit", {}, *(["-Dfull=1"] if full else []))
    if full:
        tools = sorted(path.name for path in (BUILD / "bin").iterdir() if path.is_file())
        run_lit(suite, build_sanitized(*tools), "lit sanitized", SANITIZED_BESIDE_LLVM, "-Dsanitized=1", timeout=3600)


# LLVM's own libraries are not sanitized: their allocators would be seen to poison, not to unpoison; contexts live until the
# end; and a pass's counters (llvm::Statistic) read a flag that nothing has set.
SANITIZED_BESIDE_LLVM = {
    "ASAN_OPTIONS": "allow_user_poisoning=0:detect_leaks=0:malloc_fill_byte=0",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}


def run_lit(suite, build, name, environment, *flags, timeout=600):
    """All text tests with the tools of a build folder, each in so many seconds; cases are named `name` and the file."""
    lit = dependencies.environment("tools").parent / "lit"
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch) / "lit.json"
        run = subprocess.run(
            [lit, "-q", f"-Dbuild={build}", f"-Dpython={dependencies.environment('tools')}", f"--output={report}", f"--timeout={timeout}", *flags, TEST],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env=os.environ | environment,
        )  # fmt: skip
        if not report.exists():
            raise Failure(f"lit found no test or did not start\n{run.stdout[-2000:]}")
        for case in json.loads(report.read_text())["tests"]:
            good = case["code"] in ("PASS", "XFAIL")
            suite.add(f"{name} {case['name']}", "" if good else f"{case['code']}\n{case['output'][-3000:]}")


def model_folders(full=True):
    """The project's own models; in full also the whole collection, where it lies beside the checkout."""
    return [TEST / "models", *([collection()] if full and collection().is_dir() else [])]


def command_rows(command, *arguments):
    """What a command of tools/dev finds with our binaries: one row per file."""
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch) / "rows.json"
        line = [dependencies.environment("tools"), "-m", "devkit", command, f"--bin={BUILD / 'bin'}", f"--json={report}", *arguments]
        run = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
        if not report.exists():
            raise Failure(f"{command} {' '.join(map(str, arguments))} did not finish\n{run.stderr[-2000:]}")
        return json.loads(report.read_text())


def judge(suite, folder, *flags):
    """The recorded runs of a folder under some flags."""
    shown = " ".join(flag for flag in flags if not flag.startswith("--only"))
    for case in command_rows("judge", folder, "--expect-refused=dynamo-folded.onnx", *flags):
        good = case["state"] != "FAIL"
        suite.add(f"judge {case['file']} {shown}", "" if good else case["note"] or "outside its tolerance")
        if case["arena_ratio"] is not None:
            wasteful = case["arena_ratio"] > ARENA_RATIO
            suite.add(f"arena {case['file']} {shown}", f"{case['arena_ratio']:.4f} of the most bytes alive" if wasteful else "")


def judge_suite(suite, full):
    """The recorded runs: the project's own models, and the whole collection where it lies beside the checkout."""
    variants = [["--target=cpu"]]
    if full:
        variants += [["--precision=f64"], ["--target=reference"], ["--target=reference", "--precision=f64"]]
    for folder in model_folders():
        for flags in variants:
            judge(suite, folder, *flags)
    if not full:
        judge(suite, TEST / "models", "--precision=f64", "--only=cnn-digits/model.onnx|gpt-tiny/opset23.onnx|unet-mini/model.onnx")


def emulated_suite(suite, full):
    """The GPU program on the fake device: in f32 and 16 bits, as a whole, in two parts, with equal bits under five budgets.

    Threads come in turns in f32; in 16 bits the first, or the last, warp of a block runs ahead of the others.
    """
    target, narrow = "--target=cuda-emulated", ["--precision=mixed-f16", "--loss-scale=dynamic"]
    precisions = {"f32": [], "mixed-bf16": ["--precision=mixed-bf16"], "mixed-f16": narrow}
    sample = [] if full else ["--only=mlp-digits/model.onnx|cnn-digits/model.onnx|llama-tiny/model.onnx"]
    # Attention is a call of cuDNN in 16 bits alone.
    attentive = [] if full else [sample[0] + "|gpt-tiny/model.onnx"]
    small = [] if full else ["--only=mlp-digits/model.onnx"]
    # At no budget does the smallest one recompute anything.
    kept = [] if full else ["--only=cnn-digits/model.onnx"]
    budgets = ["--budgets=5", "--steps=4", "--chunks=2"] if full else ["--budgets=3", "--steps=2", "--chunks=2"]
    for folder in model_folders(full):
        for row in command_rows("allocations", folder, *sample):
            suite.add(f"emulated allocations {row['name']}", row["complaint"])
    # The collection first, where it is: a run that is cut has seen what matters most.
    for folder in reversed(model_folders(full)):
        judge(suite, folder, target, *sample)
        judge(suite, folder, target, "--precision=mixed-bf16", *attentive, "--run", "--schedule=1")
        judge(suite, folder, target, *narrow, *small, "--run", "--schedule=3")
        for name, flags in precisions.items():
            only = sample if name == "f32" else small
            for row in command_rows("parts", folder, target, *flags, "--micro-batches=2", "--f64-steps=0", "--steps=5", *only):
                suite.add(f"emulated parts {name} {row['name']}", row["complaint"])
        for name, flags in precisions.items() if full else [("f32", [])]:
            for row in command_rows("exact", folder, target, *flags, *budgets, *kept):
                suite.add(f"emulated exact {name} {row['name']}", row["complaint"])


LOSSY_LAYOUTS = (["--moments=bf16"], ["--moments=fp8"], ["--precision=bf16", "--master=sr"], ["--moments=int8"])


def precision_suite(suite, full):
    """Runs with 16-bit activations: losses in the recorded bands, types, bytes saved, losses that are not f32's; state that is stored
    with loss."""
    sample = [] if full else ["--only=gpt-tiny/model.onnx|mlp-digits/model.onnx|bag-tiny/onnxruntime.onnx"]
    for folder in model_folders(full):
        judge(suite, folder, "--precision=mixed-bf16", *sample)
        judge(suite, folder, "--precision=mixed-f16", "--loss-scale=dynamic", *sample)
        for layout in LOSSY_LAYOUTS if full else LOSSY_LAYOUTS[-1:]:
            judge(suite, folder, *layout, *sample)
    # Of the recorded models these have frozen matrices that are large enough for codes.
    coded = "--only=lora-gpt2/model.onnx|dora-gpt2/model.onnx"
    for codec in ("int8", "nf4", "fp8") if full else ("nf4",):
        for more in ([], ["--precision=mixed-bf16"]) if full else ([],):
            judge(suite, TEST / "models", f"--frozen-weights={codec}", *more, coded)


def exact_suite(suite, full):
    """Any budget, the same bits: random graphs, and every model (test/lib/RandomSteps, devkit/exact.py)."""
    from devkit import graphs

    count = 20_000 if full else 200
    # In the sample few by optimized code and few beside f64: those take most of the time.
    flags = () if full else ("--optimize-every=125", "--reference-every=50")
    figures, failures = graphs.run(BUILD / "bin" / graphs.PROGRAM, 0, count, os.cpu_count(), flags)
    say(f"exact: {json.dumps(figures)}")
    suite.add(f"exact {count} random graphs", "\n".join(failures))
    # Graphs that need no recomputation would show nothing.
    suite.add("exact: random graphs recompute", "" if figures["recomputed"] >= count else f"only {figures['recomputed']} plans do")
    sample = "gpt-tiny/default.onnx|llama-tiny/model.onnx|unet-mini/|gpt-dropout/model.onnx|resnet-tiny/model.onnx|cnn-digits/model.onnx"
    for folder in model_folders(full):
        for row in command_rows("exact", folder, *(["--budgets=10"] if full else ["--budgets=3", f"--only={sample}"])):
            suite.add(f"exact {row['name']}", row["complaint"])
    for folder in model_folders(full):
        sample = [] if full else ["--steps=10", "--only=mlp-digits/model.onnx|llama-tiny/model.onnx"]
        for row in command_rows("masters", folder, *sample):
            suite.add(f"exact masters {row['name']}", row["complaint"])
    for folder in model_folders(full):
        sample = [] if full else ["--steps=5", "--budgets=2", "--only=cnn-digits/model.onnx|llama-tiny/model.onnx|lora-llama/model.onnx"]
        for target in ("cpu", "cuda-emulated"):
            for row in command_rows("offload", folder, *sample, f"--target={target}"):
                suite.add(f"exact offload {target} {row['name']}", row["complaint"])
    for folder in model_folders(full):
        for row in command_rows("combinations", folder, *(["--draws=20"] if full else ["--draws=4", "--only=mlp-digits/model.onnx"])):
            suite.add(f"exact combinations {row['name']}", row["complaint"])
    for folder in model_folders(full):
        for row in command_rows("budgets", folder, *([] if full else ["--only=mlp-digits/model.onnx"])):
            suite.add(f"exact budgets {row['name']}", row["complaint"])


def plans_suite(suite, full):
    """What steps cost at many budgets, and beside the baselines (devkit/sweep.py); half the memory in `tools/dev demo`."""
    flags = [f"--results={BUILD / 'check-sweep.jsonl'}", *(["--rows=50"] if full else ["--rows=10", "--baselines", "--rounding-rows=1"])]
    sample = [TEST / "models" / name / "model.onnx" for name in ("gpt-tiny", "unet-mini", "cnn-digits")]
    for row in command_rows("sweep", *(model_folders() if full else sample), *flags):
        suite.add(f"plans {row['name']}", row["complaint"])
    with tempfile.TemporaryDirectory() as scratch:
        run = subprocess.run(
            [dependencies.environment("tools"), "-m", "devkit", "demo", f"--out={scratch}"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        drawn = list(pathlib.Path(scratch).glob("*.html"))
        good = run.returncode == 0 and "equal to the last bit" in run.stdout + run.stderr and len(drawn) == 2
        suite.add("plans: tools/dev demo", "" if good else f"exit {run.returncode}, {len(drawn)} reports\n{run.stdout[-1000:]}{run.stderr[-2000:]}")


def parts_suite(suite, full):
    """Steps in micro-batches beside steps of the whole batch (devkit/parts.py)."""
    sample = [] if full else ["--only=dlrm-mini/model.onnx|mlp-digits/model.onnx|bag-tiny/model.onnx"]
    for folder in model_folders(full):
        for row in command_rows("parts", folder, *sample):
            suite.add(f"parts {row['name']}", row["complaint"])


def roundtrip_suite(suite, full):
    """Artifacts made of the text of every stage are the directly compiled ones, byte by byte (devkit/roundtrip.py)."""
    fitted = ["--precision=mixed-bf16", "--micro-batches=2", "--device-budget=80%"]
    variants = [("cpu", [], "mlp-digits/model.onnx|gpt-tiny/model.onnx"), ("cuda-emulated", ["--target=cuda-emulated"], "mlp-digits/model.onnx"),
                ("fitted", fitted, "gpt-tiny/model.onnx")]  # fmt: skip
    for name, flags, sample in variants:
        for folder in model_folders(full):
            # A model whose batch is a number has no parts, and some cannot be so small: those are refused, and say so.
            for row in command_rows("roundtrip", folder, *flags, *([] if full else [f"--only={sample}"])):
                suite.add(f"roundtrip {name} {row['name']}", row["complaint"])


def rows_of(script, *arguments):
    """What a test program finds with our binaries."""
    return printed(script, BUILD / "bin", *arguments)


def printed(script, *arguments, environment="onnx"):
    """What a program of a private environment prints: JSON."""
    run = subprocess.run(
        [dependencies.environment(environment), "-B", TEST / script, *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    if run.returncode:
        raise Failure(f"{script} did not finish\n{run.stderr[-2000:]}")
    return json.loads(run.stdout)


def refusal_suite(suite, full):
    """Bad models, artifacts and data are refused in words (test/Refusals)."""
    for row in rows_of("Refusals/refuse.py", TEST / "models" / "mlp-digits"):
        suite.add(f"refusal {row['name']}", row["complaint"])


def behaviour_suite(suite, full):
    """Whole runs: same bytes, same bits on any number of threads, resume, dropout, --expect (test/EndToEnd)."""
    for row in rows_of("EndToEnd/behaviour.py", TEST / "models", *(["--full"] if full else [])):
        suite.add(f"behaviour {row['name']}", row["complaint"])
    if dependencies.find_environment("oracles"):
        more = ["--full", *model_folders()[1:]] if full else []
        for row in printed("EndToEnd/back_to_pytorch.py", BUILD / "bin", *more, environment="oracles"):
            suite.add(f"back to PyTorch {row['name']}", row["complaint"])
        for row in printed("EndToEnd/torch_optimizers.py", BUILD / "bin", *(["--full"] if full else []), environment="oracles"):
            suite.add(f"torch.optim {row['name']}", row["complaint"])
        for row in printed("EndToEnd/quantized_weights.py", BUILD / "bin", *(["--full"] if full else []), environment="oracles"):
            suite.add(f"quantized {row['name']}", row["complaint"])
        if not full:
            for row in printed("EndToEnd/frozen_weights.py", BUILD / "bin", environment="oracles"):
                suite.add(f"frozen {row['name']}", row["complaint"])
        for row in printed("EndToEnd/images.py", BUILD / "bin", *(["--full"] if full else []), environment="oracles"):
            suite.add(f"images {row['name']}", row["complaint"])
        for row in printed("EndToEnd/verify_modules.py", BUILD / "bin", environment="oracles"):
            suite.add(f"verify {row['name']}", row["complaint"])
        for row in printed("EndToEnd/zoo_programs.py", BUILD / "bin", *(["--full"] if full else []), environment="oracles"):
            suite.add(f"program {row['name']}", row["complaint"])
    if full:
        for row in printed("EndToEnd/peft_files.py", BUILD / "bin", environment="peft"):
            suite.add(f"PEFT {row['name']}", row["complaint"])
        for row in printed("EndToEnd/frozen_weights.py", BUILD / "bin", "--full", environment="peft"):
            suite.add(f"frozen {row['name']}", row["complaint"])
        for row in printed("EndToEnd/state_codes.py", BUILD / "bin", "10000000", environment="peft"):
            suite.add(f"codes {row['name']}", row["complaint"])
        if (large := collection() / "structure" / "llama-1b.onnx").exists():
            for row in rows_of("EndToEnd/adapter_bytes.py", large):
                suite.add(f"behaviour {row['name']}", row["complaint"])


def accidents_suite(suite, full):
    """Folders of checkpoints after seeded accidents, and with a file of values; runs and compilations under limits (test/EndToEnd)."""
    for row in rows_of("EndToEnd/accidents.py", TEST / "models", "--count=300" if full else "--count=25"):
        suite.add(f"accident {row['name']}", row["complaint"])
    for row in rows_of("EndToEnd/spill_accidents.py", TEST / "models", "--every=5" if full else "--every=120"):
        suite.add(f"accident {row['name']}", row["complaint"])
    for row in rows_of("EndToEnd/limits.py", TEST / "models", *(["--steps=200", "--signals=40"] if full else ["--steps=10", "--signals=2"])):
        suite.add(f"limit {row['name']}", row["complaint"])


def onnx_model_suite(suite, full):
    """Steps written back as ONNX models, run by ONNX Runtime (test/EndToEnd)."""
    for row in rows_of("EndToEnd/onnx_model.py", *model_folders(full), *(["--full"] if full else [])):
        suite.add(f"onnx-model {row['name']}", row["complaint"])
    for name, (state, reason) in rows_of("Conformance/written_back.py", *([] if full else ["--every=12"])).items():
        if state != "refused":
            suite.add(f"onnx-model node {name}", reason if state == "failed" else "")
    for row in rows_of("EndToEnd/onnx_training.py"):
        suite.add(f"onnx-training {row['name']}", row["complaint"])


def gradient_suite(suite, full):
    """Every differentiable operator against central differences in f64 (test/Gradient)."""
    for row in rows_of("Gradient/gradients.py", *([] if full else ["--every=3"])):
        suite.add(f"gradient {row['name']}", row["complaint"])


def conformance_suite(suite, full):
    """ONNX's own node tests (test/Conformance): what is supported computes what ONNX says; nothing crashes or hangs."""
    results = rows_of("Conformance/node_tests.py", *([] if full else ["--every=6"]))
    for name, (state, reason) in results.items():
        if state != "refused":
            suite.add(f"conformance {name}", reason if state == "failed" else "")
    for name, (state, reason) in rows_of("Conformance/contrib_tests.py").items():
        suite.add(f"conformance onnxruntime {name}", "" if state == "passed" else f"{state}: {reason}")
    say(f"conformance: {sum(state == 'refused' for state, _ in results.values())} of {len(results)} cases are not supported, each with a reason")
    with tempfile.TemporaryDirectory() as scratch:
        (pathlib.Path(scratch) / "results.json").write_text(json.dumps(results))
        page = ROOT / "docs" / "reference" / "op-support.md"
        wrong = printed("Conformance/op_support.py", pathlib.Path(scratch) / "results.json", page, "--compare=" + ("all" if full else "sample"))
        suite.add("conformance: docs/reference/op-support.md says so", "\n".join(wrong))
    if full:
        passed = sum(state == "passed" for state, _ in results.values())
        suite.add("conformance: at least 400 cases", "" if passed >= 400 else f"{passed} cases pass")


def fuzz_suite(suite, full):
    """Hostile bytes for everything that parses, under sanitizers; structured mutants of plans and of IR; unchanged plans on
    guarded memory (test/Fuzz).
    """
    sample = "--only=llama-tiny/model.onnx|cnn-digits/model.onnx|bag-tiny/constants.onnx"
    for target in ("cpu", "cuda-emulated"):
        for folder in model_folders(full):
            for row in command_rows("footprints", folder, f"--target={target}", *([] if full else [sample])):
                suite.add(f"footprints {target} {row['name']}", row["complaint"])
    for kind in mutants.PROGRAMS:
        findings, table = mutants.run(kind, mutants.FULL[kind] if full else mutants.SAMPLE, jobs=os.cpu_count())
        say("\n".join(table))
        suite.add(f"fuzz mutants {kind}", "\n".join(findings))
    for program in fuzz.build_targets():
        suite.add(f"fuzz {program.name}", fuzz.fuzz(program, 1_000_000 if full else 20_000, 0 if full else 20))


# The longest first: what runs next to it shares no lock with it (IN_PROCESS).
SUITES = {
    "lit": lit_suite,
    "format": format_suite,
    "contract": contract_suite,
    "unit": unit_suite,
    "refusals": refusal_suite,
    "gradients": gradient_suite,
    "behaviour": behaviour_suite,
    "accidents": accidents_suite,
    "onnx-model": onnx_model_suite,
    "conformance": conformance_suite,
    "judge": judge_suite,
    "emulated": emulated_suite,
    "precision": precision_suite,
    "parts": parts_suite,
    "roundtrip": roundtrip_suite,
    "plans": plans_suite,
    "exact": exact_suite,
    "fuzz": fuzz_suite,
}


# Many suites leave a core idle.
SUITES_AT_ONCE = 2


def run_suite(name, full):
    """Runs one suite and says what failed; how many of its tests passed, and how many did not."""
    suite, start = Suite(), time.monotonic()
    try:
        SUITES[name](suite, full)
        if not suite.passed and not suite.failed:
            suite.add(name, "this suite holds no test")
    except (Failure, OSError, subprocess.SubprocessError, ValueError) as error:
        suite.add(name, f"{type(error).__name__}: {error}")
    for test, complaint in suite.failed:
        say(f"FAIL {test}\n" + "\n".join("    " + line for line in complaint.strip().splitlines()[-40:]))
    say(f"{name}: {len(suite.passed)} passed, {len(suite.failed)} failed ({time.monotonic() - start:.1f} s)")
    return len(suite.passed), len(suite.failed)


def run_suites(names, full):
    if "fuzz" in names:
        # What goes wrong is said by the suite, which asks again.
        threading.Thread(target=fuzz.build_targets, daemon=True).start()
    with concurrent.futures.ThreadPoolExecutor(SUITES_AT_ONCE) as pool:
        counts = list(pool.map(lambda name: run_suite(name, full), names))
    return sum(passed for passed, _ in counts), sum(failed for _, failed in counts)


def main(argv):
    parser = argparse.ArgumentParser(
        prog="tools/dev check", description="Set up, build and test. The last line is 'N passed, N failed'.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="suites:\n" + "\n".join(f"  {n:<12}{f.__doc__.strip().splitlines()[0]}" for n, f in SUITES.items()),
    )  # fmt: skip
    parser.add_argument("--full", action="store_true", help="every model on every target, long fuzzing, all conformance cases")
    parser.add_argument("--only", action="append", choices=SUITES, metavar="SUITE", help="run only this suite (repeatable)")
    options = parser.parse_args(argv)
    try:
        say("check: set-up and build")
        dependencies.install_highs()
        build()
    except Failure as failure:
        print(failure, file=sys.stderr)
        print("0 passed, 1 failed")
        return 1
    passed, failed = run_suites(options.only or SUITES, options.full)
    sys.stderr.flush()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
