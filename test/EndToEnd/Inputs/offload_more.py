"""Trains gpt-tiny with and without another memory under more flags, and compares losses and what is saved, bit for bit.

Arguments: the folder of recorded models, a folder to work in.
"""

from offload_trials import compare, compile, places, train

halves = ["--batch=8", "--precision=mixed-bf16", "--master=split", "--ema=0.9"]
kept = compile("halves.tide", *halves)
compare("parameters in halves, averaged", kept, compile("halves-file.tide", *halves, "--device-budget=750000", "--disk-budget=1GiB"))
parts = ["--batch=8", "--micro-batches=2", "--clip-norm=1"]
compare("parameters, in parts, clipped", compile("parts.tide", *parts), compile("parts-file.tide", *parts, "--device-budget=940000", "--disk-budget=1GiB"))
parts = ["--batch=8", "--target=cuda-emulated", "--precision=mixed-bf16", "--loss-scale=dynamic", "--clip-norm=1", "--micro-batches=2"]
kept = compile("gpu-parts.tide", *parts)
compare("cuda-emulated, parameters, scaled, clipped, in parts", kept, compile("gpu-parts-lasting.tide", *parts, "--device-budget=900000", "--host-budget=1GiB"))
compare("cuda-emulated, in a file, scaled, clipped, in parts", kept, compile("gpu-parts-file.tide", *parts, "--device-budget=900000", "--disk-budget=1GiB"))
mixed = ["--batch=8", "--precision=mixed-bf16", "--loss-scale=dynamic", "--clip-norm=1", "--micro-batches=2"]
compare("cpu, mixed-bf16, clipped, scaled, in parts", compile("mixed.tide", *mixed), compile("mixed-file.tide", *mixed, "--device-budget=995000", "--disk-budget=1GiB"))
# Optimizer state and parameters in a file, resumed.
gpu = ["--batch=4", "--target=cuda-emulated"]
whole = compile("gpu.tide", *gpu)
file = compile("gpu-file.tide", *gpu, "--device-budget=600000", "--disk-budget=1GiB")
arenas = places(file)
assert "params_file" in arenas.values() and "host_pinned" not in arenas.values(), arenas
figures = compare("cuda-emulated, in a file", whole, file)
assert figures["planned_bytes"] == figures["allocated_bytes"] <= 600000, figures
losses, saved, _ = train(whole)
train(file, steps=2)
others, again, _ = train(file, f"--resume={file.with_suffix('')}", steps=2)
print(f"cuda-emulated, in a file, resumed: {'same' if losses[2:] == others and saved == again else 'different'}")
