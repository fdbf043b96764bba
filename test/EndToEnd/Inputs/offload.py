"""Trains gpt-tiny with and without another memory, and compares losses and what is saved, bit for bit.

Arguments: the folder of recorded models, a folder to work in.
"""

from offload_trials import MODEL, WORK, compare, compile, logged_steps, places, train

whole = compile("whole.tide", "--batch=8")
state = compile("state.tide", "--batch=8", "--device-budget=1000000", "--disk-budget=1GiB")
figures = compare("cpu, 1000000 bytes", whole, state)
assert figures["planned_bytes"] == figures["allocated_bytes"] <= 1000000, figures
assert figures["moved"]["planned_file_bytes"] == figures["moved"]["allocated_file_bytes"] > 400000, figures
# Whatever moves the bytes.
for way in ("threads", "auto"):
    figures = compare(f"moved by {way}", whole, state, f"--spill-io={way}")
    used = figures["moved"]["by"]
    assert used in ([way] if way != "auto" else ["io_uring", "threads"]) and figures["besides"].endswith(f"by {used}"), figures
# Two steps, then two more from what was saved.
losses, saved, _ = train(whole)
train(state, steps=2)
others, again, _ = train(state, f"--resume={state.with_suffix('')}", steps=2)
print(f"resumed: {'same' if losses[2:] == others and saved == again else 'different'}")

# Parameters, too, which other entries read there; from the file's values, and written back to the model.
tight = ["--device-budget=730000", "--disk-budget=1GiB"]
several = compile("several.tide", "--batch=8", *tight, entries="train,eval")
arenas = places(several)
assert arenas["wte.weight"] == "params_file" and set(places(whole).values()) == {"params"}, arenas
evaluated = [f"--eval-data={MODEL / 'data.npz'}", "--eval-every=2"]
figures = compare("parameters, evaluated", compile("plain.tide", "--batch=8", entries="train,eval"), several, *evaluated)
assert figures["planned_bytes"] == figures["allocated_bytes"] <= 730000, figures
assert len(figures["evaluations"]) == 2, figures
# Evaluations load parameters, too: what is said of steps is said of steps alone.
rows = logged_steps(several)
away, back = rows[0]["from_device_bytes"], rows[0]["to_device_bytes"]
assert min(away, back) > 0 and all((row["from_device_bytes"], row["to_device_bytes"]) == (away, back) and row["copies_ms"] >= 0 for row in rows), rows
assert (figures["moved"]["from_device_bytes"], figures["moved"]["to_device_bytes"]) == (away * len(rows), back * len(rows)), figures["moved"]
losses, saved, _ = train(whole)
train(several, steps=2)
others, again, _ = train(several, f"--resume={several.with_suffix('')}", steps=2)
print(f"parameters, resumed: {'same' if losses[2:] == others and saved == again else 'different'}")
exports = []
for artifact in (whole, several):
    exports.append(artifact.with_suffix(".onnx"))
    train(artifact, f"--export={exports[-1]}", f"--model={MODEL / 'model.onnx'}", steps=2)
print(f"parameters, exported: {'same' if exports[0].read_bytes() == exports[1].read_bytes() else 'different'}")
drawn = "--init=random:5"
compare("parameters, drawn", whole, several, drawn)
plain = ["--batch=4", "--target=reference"]
compare("reference, 850000 bytes", compile("reference.tide", *plain), compile("reference-file.tide", *plain, "--device-budget=850000", "--disk-budget=1GiB"))
gpu = ["--batch=4", "--target=cuda-emulated"]
compare("cuda-emulated", compile("gpu.tide", *gpu), compile("gpu-host.tide", *gpu, "--device-budget=60%", "--host-budget=1GiB"))
# Optimizer state and parameters there, too: below what they take together. From the file's values, resumed and exported.
lasting = ["--device-budget=600000", "--host-budget=1GiB"]
host = compile("gpu-lasting.tide", *gpu, *lasting)
arenas = places(host)
assert "params_host_pinned" in arenas.values() and set(places(WORK / "gpu.tide").values()) == {"params"}, arenas
figures = compare("cuda-emulated, parameters", WORK / "gpu.tide", host)
assert figures["planned_bytes"] == figures["allocated_bytes"] <= 600000, figures
# How long its kernels wait, a GPU does not tell.
assert figures["moved"]["waited_ms"] is None and all("copies_ms" not in row and row["to_device_bytes"] for row in logged_steps(host)), figures["moved"]
losses, saved, _ = train(WORK / "gpu.tide")
train(host, steps=2)
others, again, _ = train(host, f"--resume={host.with_suffix('')}", steps=2)
print(f"cuda-emulated, parameters, resumed: {'same' if losses[2:] == others and saved == again else 'different'}")
