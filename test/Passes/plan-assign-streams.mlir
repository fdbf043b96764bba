// RUN: lowtide-opt %s --plan-assign-streams --verify-plan | FileCheck %s

// A value leaves the device, its place is used for another, and it comes back: a stream each for the two directions. The copy
// out waits for the fill, the second fill for the copy out, the copy back for both, and who reads it for the copy back.
// CHECK: plan.program @run batch 0 peak 64 streams 3 events 4
// CHECK: plan.fill @transient[0 + 64] : 1
// CHECK-NEXT: plan.record 0
// CHECK-NEXT: plan.wait 0 stream 1
// CHECK-NEXT: plan.copy @transient[0 + 64] : 1 to @evicted[0 + 64] : 2 stream 1
// CHECK-NEXT: plan.record 1 stream 1
// CHECK-NEXT: plan.wait 1
// CHECK-NEXT: plan.fill @transient[0 + 64] : 3
// CHECK-NEXT: plan.record 2
// CHECK-NEXT: plan.wait 2 stream 2
// CHECK-NEXT: plan.copy @evicted[0 + 64] : 2 to @transient[0 + 64] : 4 stream 2
// CHECK-NEXT: plan.record 3 stream 2
// CHECK-NEXT: plan.wait 3
// CHECK-NEXT: plan.copy @transient[0 + 64] : 4 to @io[0 + 64] : 5
// Nothing leaves the device: one stream, no events.
// CHECK: plan.program @plain batch 0 peak 64 {
// CHECK-NOT: plan.record
plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 64 align 64
  plan.arena @evicted transient in host_pinned bytes 64 align 64
  plan.arena @io io in device bytes 64 align 64
  plan.program @run batch 0 peak 64 {
    plan.binding output "out" tensor<16xi32> @io[0 + 64] : 0 -> 5
    plan.fill @transient[0 + 64] : 1 pattern 1 of 4
    plan.copy @transient[0 + 64] : 1 to @evicted[0 + 64] : 2
    plan.fill @transient[0 + 64] : 3 pattern 3 of 4
    plan.copy @evicted[0 + 64] : 2 to @transient[0 + 64] : 4
    plan.copy @transient[0 + 64] : 4 to @io[0 + 64] : 5
  }
  plan.program @plain batch 0 peak 64 {
    plan.binding output "out" tensor<16xi32> @io[0 + 64] : 0 -> 2
    plan.fill @transient[0 + 64] : 1 pattern 1 of 4
    plan.copy @transient[0 + 64] : 1 to @io[0 + 64] : 2
  }
}
