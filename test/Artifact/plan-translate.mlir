// Text → bytes → text → bytes: nothing is lost.
// RUN: lowtide-translate --export-plan %s -o %t.1
// RUN: lowtide-translate --import-plan %t.1 -o %t.mlir
// RUN: lowtide-translate --export-plan %t.mlir -o %t.2
// RUN: cmp %t.1 %t.2
// RUN: FileCheck %s < %t.mlir
// MLIR's parser would reserve memory for four billion results.
// RUN: sed '$a %%0 = builtin.unrealized_conversion_cast %%0~4294967295 : i1 to i1' %s | tr '~' '#' > %t.huge.mlir
// RUN: not lowtide-translate --export-plan %t.huge.mlir 2>&1 | FileCheck %s --check-prefix=RESULTS
// RUN: not lowtide-translate --export-plan < %t.huge.mlir 2>&1 | FileCheck %s --check-prefix=RESULTS
// RESULTS: :{{[0-9]+}}:{{[0-9]+}}: error: no operation has as many results

// CHECK: plan.module attributes {adapters = [{a = "w.lora_A.weight", alpha = 8.000000e+00 : f64, b = "w.lora_B.weight", dropout = 5.000000e-01 : f64, input_dim = 1 : i64, kind = "convolution", magnitude = "w.lora_magnitude_vector", module = "w", norm = "w.lora_weight_norm", norm_of = "w.codes", rslora, shares_weight, weight = "w"}]
plan.module attributes {format_version = 3 : i64,
    adapters = [{module = "w", kind = "convolution", weight = "w", a = "w.lora_A.weight", b = "w.lora_B.weight", alpha = 8.0 : f64,
                 dropout = 0.5 : f64, input_dim = 1 : i64, rslora, shares_weight,
                 magnitude = "w.lora_magnitude_vector", norm = "w.lora_weight_norm", norm_of = "w.codes"}], producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = "", optimizer = {kind = "sgd", momentum = 0.9 : f64},
    schedule = {kind = "cosine", lr = 0.1 : f64, warmup_steps = 3 : i64, total_steps = 9 : i64, min_lr = 0.01 : f64}} {
  plan.arena @params params in device bytes 128 align 64 image 64
  plan.arena @transient transient in device bytes 256 align 64
  plan.source "w" {initializer = "onnx::w", original_dims = array<i64: 4, 2>}
  // CHECK: plan.program @train batch 4 peak 64
  plan.program @train batch 4 peak 64 {
    // CHECK: plan.binding param "w" tensor<2x4xf32> @params[0 + 32] : 1 -> 3 from_image group "decay"
    plan.binding param "w" tensor<2x4xf32> @params[0 + 32] : 1 -> 3 from_image group "decay"
    // CHECK: plan.fill @transient[0 + 32] : 2 pattern 0 of 4 at "/fc/Zero"
    plan.fill @transient[0 + 32] : 2 pattern 0 of 4 at "/fc/Zero"
    // CHECK: plan.copy @transient[0 + 32] : 2 to @params[0 + 32] : 3
    plan.copy @transient[0 + 32] : 2 to @params[0 + 32] : 3
  }
}
