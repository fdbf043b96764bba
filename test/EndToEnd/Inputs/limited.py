"""Runs a command whose files may hold so many bytes, and expects an exit code: limited.py <bytes> <code> <command>…"""

import resource
import subprocess
import sys

limit, code = int(sys.argv[1]), int(sys.argv[2])
done = subprocess.run(sys.argv[3:], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
sys.exit(done.returncode != code)
