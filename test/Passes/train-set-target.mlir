// A row of the table of targets, on the module.
// RUN: lowtide-opt %s --train-set-target=target=cuda:h200 | FileCheck %s
// RUN: lowtide-opt %s --train-set-target="target=cpu threads-max=3" | FileCheck %s --check-prefix=CPU
// A later one counts.
// RUN: lowtide-opt %s --train-set-target=target=cpu | lowtide-opt --train-set-target="target=cuda:H200 threads-max=2" | FileCheck %s --check-prefix=AGAIN
// RUN: not lowtide-opt %s --train-set-target=target=tpu 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not lowtide-opt %s --train-set-target=threads-max=0 2>&1 | FileCheck %s --check-prefix=THREADS

// CHECK: module attributes {train.target = #train.target<name = "cuda:h200", kind = cuda, chip = "sm_90", title = "H200, 141 GB", processors = 132,
// CHECK-SAME: estimates = {kernel_flops = 3.000000e+13 : f64, launch_seconds = 3.000000e-06 : f64, library_flops = 3.000000e+14 : f64, memory_bytes_per_second = 4.300000e+12 : f64}
// CHECK-SAME: bytes = 150754820096
// CHECK-SAME: from = "host"
// CHECK-SAME: libraries = ["cublaslt", "cudnn"]>
// CPU: name = "cpu:x86-64-v[[V:[34]]]", kind = cpu, chip = "x86-64-v[[V]]", {{.*}}vector_bits = {{256|512}}, threads_max = 3,
// AGAIN: name = "cuda:h200", {{.*}}threads_max = 2,
// UNKNOWN: error: unknown target 'tpu'; did you mean 'cpu'?
// UNKNOWN: note: targets: cpu, cpu:x86-64-v3, cpu:x86-64-v4, reference, cuda, cuda-emulated, cuda:sm_80,
// UNKNOWN-SAME: cuda:h200
// THREADS: error: threads-max: must be a whole number from 1 to 1024, not '0'
func.func private @step()
