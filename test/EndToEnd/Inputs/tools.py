"""Programs of the project, as scripts of text tests run them: they are on the path."""

import subprocess
import sys


def tool(*command, code=0):
    """What a program says on both streams; another exit code than `code` ends the script."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr
