// What a module is compiled for: the attribute prints as it parses.
// RUN: lowtide-opt %s --split-input-file | FileCheck %s
// RUN: lowtide-opt %s --split-input-file | lowtide-opt --split-input-file | FileCheck %s

// CHECK: module attributes {train.target = #train.target<
// CHECK-SAME: name = "cuda:mine", kind = cuda, chip = "sm_90", title = "H100 PCIe, 80 GB", processors = 114, threads_max = 8,
// CHECK-SAME: estimates = {kernel_flops = 2.300000e+13 : f64, launch_seconds = 3.000000e-06 : f64, library_flops = 2.300000e+14 : f64, memory_bytes_per_second = 1.800000e+12 : f64},
// CHECK-SAME: rates = {bf16 = 7.560000e+14 : f64, f32 = 5.100000e+13 : f64},
// CHECK-SAME: memory = [{bytes = 85520809984 : i64, bytes_per_second = 2.000000e+12 : f64, name = "device", reserved_bytes = 1363148800 : i64}],
// CHECK-SAME: links = [{bytes_per_second = 6.400000e+10 : f64, from = "host", latency_seconds = 2.000000e-06 : f64, to = "device"}],
// CHECK-SAME: libraries = ["cublaslt", "cudnn"]>}
module attributes {train.target = #train.target<name = "cuda:mine", kind = cuda, chip = "sm_90",
    title = "H100 PCIe, 80 GB", processors = 114, threads_max = 8,
    estimates = {kernel_flops = 2.3e13, launch_seconds = 3.0e-6, library_flops = 2.3e14, memory_bytes_per_second = 1.8e12},
    rates = {bf16 = 7.56e14, f32 = 5.1e13},
    memory = [{name = "device", bytes = 85520809984, reserved_bytes = 1363148800, bytes_per_second = 2.0e12}],
    links = [{from = "host", to = "device", bytes_per_second = 6.4e10, latency_seconds = 2.0e-6}],
    libraries = ["cublaslt", "cudnn"]>} {}

// -----

// Nothing but what a plan needs. Of two words, one kind.
// CHECK: #train.target<name = "emulated", kind = cuda-emulated, processors = 132, estimates = {
// CHECK-NOT: memory =
module attributes {train.target = #train.target<name = "emulated", kind = cuda-emulated, processors = 132,
    estimates = {kernel_flops = 1.0, launch_seconds = 1.0, library_flops = 1, memory_bytes_per_second = 1.0}>} {}

// -----

// CHECK: #train.target<name = "cpu:x86-64-v4", kind = cpu, chip = "x86-64-v4", vector_bits = 512, estimates = {
module attributes {train.target = #train.target<name = "cpu:x86-64-v4", kind = cpu, chip = "x86-64-v4", vector_bits = 512,
    estimates = {kernel_flops = 1.0, launch_seconds = 1.0, library_flops = 1.0, memory_bytes_per_second = 1.0}>} {}
