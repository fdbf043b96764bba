"""Trains gpt-tiny with and without another memory under more flags, and compares losses and what is saved, bit for bit.

Arguments: the folder of recorded models, a folder to work in.
"""

from offload_trials import compare, compile

halves = ["--batch=8", "--precision=mixed-bf16", "--master=split", "--ema=0.9"]
kept = compile("halves.tide", *halves)
compare("parameters in halves, averaged", kept, compile("halves-file.tide", *halves, "--device-budget=750000", "--disk-budget=1GiB"))
parts = ["--batch=8", "--micro-batches=2", "--clip-norm=1"]
compare("parameters, in parts, clipped", compile("parts.tide", *parts), compile("parts-file.tide", *parts, "--device-budget=940000", "--disk-budget=1GiB"))
parts = ["--batch=8", "--target=cuda-emulated", "--precision=mixed-bf16", "--loss-scale=dynamic", "--clip-norm=1", "--micro-batches=2"]
kept = compile("gpu-parts.tide", *parts)
compare("cuda-emulated, parameters, scaled, clipped, in parts", kept, compile("gpu-parts-lasting.tide", *parts, "--device-budget=900000", "--host-budget=1GiB"))
compare("cuda-emulated, in a file, scaled, clipped, in parts", kept, compile("gpu-parts-file.tide", *parts, "--device-budget=900000", "--disk-budget=1GiB"))
