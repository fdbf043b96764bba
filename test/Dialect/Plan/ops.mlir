// Every op prints what it parses.
// RUN: lowtide-opt %s | lowtide-opt | FileCheck %s
// RUN: lowtide-opt %s --mlir-print-op-generic | lowtide-opt | FileCheck %s

// CHECK: plan.module attributes {format_version = 3 : i64
plan.module attributes {format_version = 3 : i64, producer = "test", target = "cpu:x86-64-v3", threads_max = 2 : i64,
    model_digest = "", optimizer = {kind = "sgd"}, schedule = {kind = "constant", lr = 1.0 : f64}} {
  // CHECK: plan.arena @params params in device bytes 1024 align 64 image 512
  plan.arena @params params in device bytes 1024 align 64 image 512
  // CHECK: plan.arena @transient transient in device bytes 4096 align 64
  plan.arena @transient transient in device bytes 4096 align 64
  plan.arena @io io in device bytes 128 align 64
  // CHECK: plan.kernel @k0 reads 2 writes 1 scratch 64 "adds"
  // CHECK-SAME: footprints [#plan.footprint<8 by 2 : [tensor<8xf32>, tensor<1xf32>] -> [tensor<8xf32>] in_place 0 on 0>]
  plan.kernel @k0 reads 2 writes 1 scratch 64 "adds"
      footprints [#plan.footprint<8 by 2 : [tensor<8xf32>, tensor<1xf32>] -> [tensor<8xf32>] in_place 0 on 0>]
  // CHECK: plan.source "w" {initializer = "onnx::w", permutation = array<i64: 1, 0>}
  plan.source "w" {initializer = "onnx::w", permutation = array<i64: 1, 0>}
  // CHECK: plan.program @train batch 8 peak 512
  plan.program @train batch 8 peak 512 {
    // CHECK: plan.binding param "w" tensor<4x4xf32> @params[0 + 64] : 1 -> 9 from_image group "decay"
    plan.binding param "w" tensor<4x4xf32> @params[0 + 64] : 1 -> 9 from_image group "decay"
    // CHECK: plan.binding state "w.m" tensor<4x4xf32> @params[64 + 64] : 2 -> 2 initial 1.000000e-01
    plan.binding state "w.m" tensor<4x4xf32> @params[64 + 64] : 2 -> 2 initial 1.000000e-01
    // CHECK: plan.binding batch "x" tensor<8xi64> @io[0 + 64] : 3 -> 3 batch_dim 0
    plan.binding batch "x" tensor<8xi64> @io[0 + 64] : 3 -> 3 batch_dim 0
    // CHECK: plan.buffer "b" in @transient bytes 64 kept
    plan.buffer "b" in @transient bytes 64 kept
    // CHECK: plan.launch @k0 reads [@params[0 + 64] : 1, @io[0 + 64] : 3] writes [@b[0 + 64] : 4] extent 16 grain 4 scratch @transient[0 + 128] : 0 flops 16 at "/fc/Add"
    plan.launch @k0 reads [@params[0 + 64] : 1, @io[0 + 64] : 3] writes [@b[0 + 64] : 4] extent 16 grain 4
      scratch @transient[0 + 128] : 0 flops 16 at "/fc/Add"
    // CHECK: plan.call "gemm" {m = 4 : i64} reads [@b[0 + 64] : 4] writes [@transient[64 + 64] : 5] workspace @transient[256 + 64] : 0
    plan.call "gemm" {m = 4 : i64} reads [@b[0 + 64] : 4] writes [@transient[64 + 64] : 5] workspace @transient[256 + 64] : 0
    // CHECK: plan.copy @transient[64 + 64] : 5 to @params[0 + 64] : 9 stream 1
    plan.copy @transient[64 + 64] : 5 to @params[0 + 64] : 9 stream 1
    // CHECK: plan.fill @transient[0 + 64] : 6 pattern 0 of 4
    plan.fill @transient[0 + 64] : 6 pattern 0 of 4
    // CHECK: plan.record 0
    plan.record 0
    // CHECK: plan.wait 0
    plan.wait 0
    // CHECK: plan.repeat 3 {
    plan.repeat 3 {
      plan.fill @transient[0 + 64] : 7 pattern 0 of 4
    }
    // CHECK: plan.repeat 2 carries [@transient[0 + 64] : 7 -> 8, @b[0 + 64] : 4 -> 10] {
    // CHECK: plan.copy @io[0 + 32] : 3 step 32 to @transient[64 + 32] : 11
    // CHECK: plan.copy @transient[64 + 32] : 11 to @params[0 + 32] : 12 step 32
    plan.repeat 2 carries [@transient[0 + 64] : 7 -> 8, @b[0 + 64] : 4 -> 10] {
      plan.copy @io[0 + 32] : 3 step 32 to @transient[64 + 32] : 11
      plan.copy @transient[64 + 32] : 11 to @params[0 + 32] : 12 step 32
    }
  }
}
