"""Runs what `lowtide check` prints: check_advice.py <scratch> <model>…"""

import re
import shlex
import subprocess
import sys

scratch = sys.argv[1]
for model in sys.argv[2:]:
    said = subprocess.run(["lowtide", "check", model], check=True, capture_output=True, text=True).stdout
    compile_line = re.search(r"^to train: (.*)$", said, re.M)[1]
    run_line = re.search(r"^ +(lowtide-run .*)$", said, re.M)[1]
    subprocess.run(shlex.split(compile_line) + ["-q"], check=True, cwd=scratch)
    run = shlex.split(run_line.replace("--data=data.npz", "--data=synthetic").replace("--steps=100", "--steps=2"))
    subprocess.run(run + ["-q"], check=True, cwd=scratch)
