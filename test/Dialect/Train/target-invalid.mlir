// RUN: lowtide-opt %s --split-input-file --verify-diagnostics

// expected-error@+2 {{failed to parse Train_TargetAttr parameter 'kind'}}
// expected-error@+1 {{kind is 'tpu'; there are cpu, cuda, cuda-emulated, reference}}
module attributes {train.target = #train.target<name = "a", kind = tpu, estimates = {}>} {}

// -----

// expected-error@+1 {{target 'a': chip is 'sm_70'; cuda has sm_80, sm_86}}
module attributes {train.target = #train.target<name = "a", kind = cuda, chip = "sm_70", processors = 80, estimates = {kernel_flops = 1.0, launch_seconds = 1.0, library_flops = 1.0, memory_bytes_per_second = 1.0}>} {}

// -----

// expected-error@+1 {{target 'a': processors is 0; a GPU has 1 to 256}}
module attributes {train.target = #train.target<name = "a", kind = cuda, chip = "sm_90", estimates = {kernel_flops = 1.0, launch_seconds = 1.0, library_flops = 1.0, memory_bytes_per_second = 1.0}>} {}

// -----

// expected-error@+1 {{target 'a': threads_max is 2000; it is between 1 and 1024}}
module attributes {train.target = #train.target<name = "a", kind = cpu, chip = "x86-64-v3", threads_max = 2000, estimates = {kernel_flops = 1.0, launch_seconds = 1.0, library_flops = 1.0, memory_bytes_per_second = 1.0}>} {}

// -----

// expected-error@+1 {{target 'a': estimates.kernel_flops is 0.00E+00; it is a number above 0}}
module attributes {train.target = #train.target<name = "a", kind = cpu, chip = "x86-64-v3", estimates = {launch_seconds = 1.0, library_flops = 1.0, memory_bytes_per_second = 1.0}>} {}

// -----

// expected-error@+1 {{estimates has no field 'flops'; its fields are kernel_flops, launch_seconds, library_flops, memory_bytes_per_second}}
module attributes {train.target = #train.target<name = "a", kind = cpu, chip = "x86-64-v3", estimates = {flops = 1.0}>} {}

// -----

// expected-error@+1 {{estimates.kernel_flops is "fast"; it is a number}}
module attributes {train.target = #train.target<name = "a", kind = cpu, chip = "x86-64-v3", estimates = {kernel_flops = "fast"}>} {}

// -----

// expected-error@+1 {{target 'a': rates.fp3 is of no type of numbers; there are bf16}}
module attributes {train.target = #train.target<name = "a", kind = cpu, chip = "x86-64-v3", estimates = {kernel_flops = 1.0, launch_seconds = 1.0, library_flops = 1.0, memory_bytes_per_second = 1.0}, rates = {fp3 = 1.0}>} {}

// -----

// expected-error@+1 {{memory holds "device"; its entries are {name}}
module attributes {train.target = #train.target<name = "a", kind = cpu, chip = "x86-64-v3", estimates = {kernel_flops = 1.0, launch_seconds = 1.0, library_flops = 1.0, memory_bytes_per_second = 1.0}, memory = ["device"]>} {}

// -----

// expected-error@+1 {{target 'a': memory 'device' has 8 bytes, of which 8 are reserved: none is left}}
module attributes {train.target = #train.target<name = "a", kind = cpu, chip = "x86-64-v3", estimates = {kernel_flops = 1.0, launch_seconds = 1.0, library_flops = 1.0, memory_bytes_per_second = 1.0}, memory = [{name = "device", bytes = 8, reserved_bytes = 8}]>} {}

// -----

// expected-error@+1 {{memory.bytes is -8 : i64; it is a number of bytes}}
module attributes {train.target = #train.target<name = "a", kind = cpu, chip = "x86-64-v3", estimates = {kernel_flops = 1.0, launch_seconds = 1.0, library_flops = 1.0, memory_bytes_per_second = 1.0}, memory = [{name = "device", bytes = -8}]>} {}

// -----

// expected-error@+1 {{target 'a': a link goes from 'host' to 'host'; it joins two memories}}
module attributes {train.target = #train.target<name = "a", kind = cpu, chip = "x86-64-v3", estimates = {kernel_flops = 1.0, launch_seconds = 1.0, library_flops = 1.0, memory_bytes_per_second = 1.0}, links = [{from = "host", to = "host", bytes_per_second = 1.0}]>} {}

// -----

// expected-error@+1 {{target 'a': link from 'host' to 'device': bytes_per_second is 0.00E+00; it is a number above 0}}
module attributes {train.target = #train.target<name = "a", kind = cpu, chip = "x86-64-v3", estimates = {kernel_flops = 1.0, launch_seconds = 1.0, library_flops = 1.0, memory_bytes_per_second = 1.0}, links = [{from = "host", to = "device"}]>} {}

// -----

// expected-error@+1 {{train.target is "cuda"; it is a #train.target<…>, as --train-set-target=target=NAME writes it}}
module attributes {train.target = "cuda"} {}

// -----

// expected-error@+1 {{train.target belongs to a module: all its steps have one target}}
func.func private @step() attributes {train.target = "cuda"}
