"""expect_exit.py CODE COMMAND…: succeeds when the command ends with that code."""

import subprocess
import sys

code = subprocess.call(sys.argv[2:])
if code != int(sys.argv[1]):
    sys.exit(f"'{' '.join(sys.argv[2:])}' ended with {code}, not {sys.argv[1]}")
