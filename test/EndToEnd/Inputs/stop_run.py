"""Does something to a run after its fifth step and expects an exit code: stop_run.py <what>,… <code> <log> <command>…

`what`: a signal's name, `nohup` (before all: the run starts with SIGHUP ignored), `close` (nothing reads what it says any
more), `cut=FILE` (the file becomes empty). Prints what the run said.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

what, code, log, command = sys.argv[1].split(","), int(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4:]
log.unlink(missing_ok=True)
# The check itself may have been started by nohup.
hangup = signal.SIG_IGN if "nohup" in what else signal.SIG_DFL
run = subprocess.Popen([*command, f"--log-jsonl={log}"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGHUP, hangup))
deadline = time.monotonic() + 60
while run.poll() is None and time.monotonic() < deadline and (not log.exists() or log.read_bytes().count(b"\n") < 6):
    time.sleep(0.01)
for each in what:
    if each == "close":
        run.stderr.close()
    elif each.startswith("cut="):
        os.truncate(each[4:], 0)
    elif each != "nohup":
        run.send_signal(signal.Signals[each])
        time.sleep(0.2)  # a second one of the same kind would be one with the first
said = "" if "close" in what else run.stderr.read().decode(errors="replace")
print(said, end="")
print(f"exit {run.wait(timeout=60)}")
sys.exit(run.returncode != code)
