"""interesting.py FILE: ends with 1, as lowtide-reduce wants it, for legal steps with a relu and a product of a transposed matrix."""

import pathlib
import re
import subprocess
import sys

text = pathlib.Path(sys.argv[1]).read_text()
legal = subprocess.run(["lowtide-opt", sys.argv[1], "--verify-legal"], capture_output=True).returncode == 0
sys.exit(bool(legal and re.search(r"nn\.relu", text) and re.search(r"nn\.dot .*\{transpose_a\}", text)))
