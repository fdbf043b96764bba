"""Trains gpt-tiny for a GPU with pinned memory of the host and a file together, and compares with a step on the device.

Arguments: the folder of recorded models, a folder to work in.
"""

import json
import subprocess

from offload_trials import MODEL, WORK, compare, compile, train

gpu = ["--batch=4", "--target=cuda-emulated"]
told = WORK / "figures.json"
whole = compile("gpu.tide", *gpu, f"--figures={told}")
# Batches and metrics pass through memory of the host in any case.
exchanged = json.loads(told.read_text())["host_bytes"]
for name, room, used in (("both", "1GiB", ["host"]), ("little", "4KiB", ["file"]), ("some", "200000", ["host", "file"])):
    both = compile(f"gpu-{name}.tide", *gpu, "--device-budget=900000", f"--host-budget={room}", "--disk-budget=1GiB", f"--figures={told}")
    figures = json.loads(told.read_text())
    found = [place for place, least in (("host", exchanged), ("file", 0)) if figures[f"{place}_bytes"] > least]
    print(f"--host-budget={room} --disk-budget=1GiB: {'as expected' if found == used else figures}")
compare("cuda-emulated, in both", whole, both)
losses, saved, _ = train(whole)
train(both, steps=2)
others, again, _ = train(both, f"--resume={both.with_suffix('')}", steps=2)
print(f"cuda-emulated, in both, resumed: {'same' if losses[2:] == others and saved == again else 'different'}")
# Copies of parameters and state take most of the time: with room for a part of them more runs again, and less is moved.
seconds, stored = [], []
for budget in (800000, 1000000):
    compile("part.tide", *gpu, f"--device-budget={budget}", "--disk-budget=1GiB", f"--figures={told}")
    figures = json.loads(told.read_text())
    seconds.append(figures["entries"][0]["seconds"])
    stored.append(figures["file_bytes"])
print(f"more of the device: {'less time' if seconds[1] < 0.7 * seconds[0] else seconds}, {'less in the file' if 0 < stored[1] < stored[0] else stored}")
compare("cuda-emulated, a part in a file", whole, WORK / "part.tide")
# A smallest plan is one for which the other memory has room, too.
narrow = ["compile", MODEL / "model.onnx", "-o", WORK / "narrow.tide", "--entries=train", "--optimizer=adamw", *gpu, "--host-budget=200000"]
done = subprocess.run(["lowtide", *narrow, "--device-budget=800000", f"--figures={told}"], capture_output=True, text=True, check=False)
least = json.loads(told.read_text())["refusal"]["smallest_bytes"]
found = subprocess.run(["lowtide", *narrow, f"--device-budget={least}"], capture_output=True, text=True, check=False)
print(f"refused: exit {done.returncode}, {'more' if least > 800000 else least}; what the refusal names: exit {found.returncode}")
