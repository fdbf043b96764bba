# The text tests: every .mlir and .test file below this folder.
#
#   tools/dev check --only=lit                       all of them
#   <tools environment>/bin/lit -v test/Passes       some of them (binaries from build/; -Dbuild=FOLDER for another build)

import os
import pathlib
import shutil

import lit.formats

HERE = pathlib.Path(__file__).resolve().parent
build = pathlib.Path(lit_config.params.get("build", HERE.parent / "build")).resolve()
llvm = pathlib.Path(lit_config.params.get("llvm", "/usr/lib/llvm-22/bin"))

config.name = "Lowtide"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["models", "Inputs", "lib", "Unit", "Contract"]
# What takes minutes and has a smaller test next to it: -Dfull=1 runs it, as `tools/dev check --full` does.
if not lit_config.params.get("full"):
    config.excludes.append("Full")
# Sanitizers take address space without end, and nothing runs by them under a limit of memory.
if lit_config.params.get("sanitized"):
    config.excludes.append("memory-limit.test")
config.test_source_root = str(HERE)
config.test_exec_root = str(build / "test" / "lit")

# Our tools first, then FileCheck, not, split-file.
config.environment["PATH"] = os.pathsep.join([str(build / "bin"), str(llvm), os.environ.get("PATH", "")])
# Messages are compared as text: no colour, one locale, and no setting of the person who runs the tests.
config.environment.update(NO_COLOR="1", LC_ALL="C.UTF-8", FILECHECK_OPTS="--dump-input=fail")
for name in [n for n in config.environment if n.startswith("LOWTIDE_")]:
    del config.environment[name]

config.substitutions.append(("%models", str(HERE / "models")))
config.substitutions.append(("%python", lit_config.params.get("python", "python3")))

config.available_features.add("cpu")
if shutil.which("ptxas"):
    config.available_features.add("ptxas")
for tool in ("lowtide", "lowtide-opt", "lowtide-translate", "lowtide-run"):
    if (build / "bin" / tool).exists():
        config.available_features.add(tool)
