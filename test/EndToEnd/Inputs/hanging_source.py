"""hanging_source.py LOWTIDE-RUN ARTIFACT SPEC FOLDER: interrupts a run whose third batch never comes."""
import json
import pathlib
import signal
import subprocess
import sys
import time

program, artifact, spec, folder = sys.argv[1:]
log = pathlib.Path(folder + ".jsonl")
run = subprocess.Popen([program, artifact, "--data=" + spec, "--steps=9", "--save=" + folder, f"--log-jsonl={log}"], stderr=subprocess.PIPE, text=True)
while run.poll() is None and (not log.exists() or log.read_text().count('"loss"') < 2):
    time.sleep(0.02)
run.send_signal(signal.SIGINT)
_, said = run.communicate(timeout=60)
assert run.returncode == 128 + signal.SIGINT, (run.returncode, said)
assert "stopped by SIGINT after step 2, saved in" in said, said
assert (pathlib.Path(folder) / "latest").read_text().strip() == "step-00000002"
assert json.loads(log.read_text().splitlines()[-1])["step"] == 2
