// RUN: lowtide-opt %s --split-input-file --plan-place --plan-assign-streams --verify-budget --verify-plan | FileCheck %s

// What a store reads keeps its bytes until the lane has read it where the arena has room: %b, %c and %d, which are alive
// together, take 192 bytes, so that there is another place for what is made while %a is stored, and no wait.
// CHECK: plan.program @run batch 0 peak 192 streams 3 events 3
// CHECK: plan.copy @transient[[A:\[[0-9]+ \+ 64\]]] : 1 to @evicted[0 + 64] : 2 stream 1
// CHECK-NEXT: plan.record 1 stream 1
// CHECK-NEXT: plan.fill @transient{{.*}} : 3
// CHECK-NEXT: plan.wait 1
// CHECK-NEXT: plan.fill @transient[[A]] : 5
//
// A program of the same arena has its room, too.
// CHECK: plan.program @shares batch 0 peak 64
// CHECK: plan.copy @transient[[A:\[[0-9]+ \+ 64\]]] : 1 to @evicted[0 + 64] : 2 stream 1
// CHECK-NOT: plan.wait {{[0-9]+$}}
// CHECK: plan.fill @transient{{.*}} : 3
plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 0 align 64
  plan.arena @evicted transient in host_pinned bytes 64 align 64
  plan.arena @io io in device bytes 64 align 64
  plan.program @run batch 0 peak 0 {
    plan.binding output "out" tensor<16xi32> @io[0 + 64] : 0 -> 9
    plan.buffer "a" in @transient bytes 64
    plan.buffer "b" in @transient bytes 64
    plan.buffer "c" in @transient bytes 64
    plan.buffer "d" in @transient bytes 64
    plan.fill @a[0 + 64] : 1 pattern 1 of 4
    plan.copy @a[0 + 64] : 1 to @evicted[0 + 64] : 2
    plan.fill @b[0 + 64] : 3 pattern 3 of 4
    plan.fill @c[0 + 64] : 5 pattern 5 of 4
    plan.copy @evicted[0 + 64] : 2 to @d[0 + 64] : 6
    plan.copy @d[0 + 64] : 6 to @io[0 + 64] : 7
    plan.copy @c[0 + 64] : 5 to @io[0 + 64] : 8
    plan.copy @b[0 + 64] : 3 to @io[0 + 64] : 9
  }
  plan.program @shares batch 0 peak 0 {
    plan.binding output "out" tensor<16xi32> @io[0 + 64] : 0 -> 5
    plan.buffer "a" in @transient bytes 64
    plan.buffer "b" in @transient bytes 64
    plan.buffer "c" in @transient bytes 64
    plan.fill @a[0 + 64] : 1 pattern 1 of 4
    plan.copy @a[0 + 64] : 1 to @evicted[0 + 64] : 2
    plan.fill @b[0 + 64] : 3 pattern 3 of 4
    plan.copy @evicted[0 + 64] : 2 to @c[0 + 64] : 4
    plan.copy @c[0 + 64] : 4 to @io[0 + 64] : 5
  }
}

// -----

// Where the arena has no room, the fill waits for the store.
// CHECK: plan.arena @transient transient in device bytes 64
// CHECK: plan.program @full batch 0 peak 64
// CHECK: plan.copy @transient[0 + 64] : 1 to @evicted[0 + 64] : 2 stream 1
// CHECK: plan.wait 1
// CHECK-NEXT: plan.fill @transient[0 + 64] : 3
plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 0 align 64
  plan.arena @evicted transient in host_pinned bytes 64 align 64
  plan.arena @io io in device bytes 64 align 64
  plan.program @full batch 0 peak 0 {
    plan.binding output "out" tensor<16xi32> @io[0 + 64] : 0 -> 5
    plan.buffer "a" in @transient bytes 64
    plan.buffer "b" in @transient bytes 64
    plan.buffer "c" in @transient bytes 64
    plan.fill @a[0 + 64] : 1 pattern 1 of 4
    plan.copy @a[0 + 64] : 1 to @evicted[0 + 64] : 2
    plan.fill @b[0 + 64] : 3 pattern 3 of 4
    plan.copy @evicted[0 + 64] : 2 to @c[0 + 64] : 4
    plan.copy @c[0 + 64] : 4 to @io[0 + 64] : 5
  }
}

// -----

// Of a budget of 192 bytes @io takes 64: the arena has what is left.
// CHECK: plan.arena @transient transient in device bytes 128
// CHECK: plan.program @full batch 0 peak 64
// CHECK: plan.copy @transient[[A:\[[0-9]+ \+ 64\]]] : 1 to @evicted[0 + 64] : 2 stream 1
// CHECK-NOT: plan.wait {{[0-9]+$}}
// CHECK: plan.fill @transient{{.*}} : 3
module attributes {train.device_budget = 192 : i64} {
  plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
      model_digest = ""} {
    plan.arena @transient transient in device bytes 0 align 64
    plan.arena @evicted transient in host_pinned bytes 64 align 64
    plan.arena @io io in device bytes 64 align 64
    plan.program @full batch 0 peak 0 {
      plan.binding output "out" tensor<16xi32> @io[0 + 64] : 0 -> 5
      plan.buffer "a" in @transient bytes 64
      plan.buffer "b" in @transient bytes 64
      plan.buffer "c" in @transient bytes 64
      plan.fill @a[0 + 64] : 1 pattern 1 of 4
      plan.copy @a[0 + 64] : 1 to @evicted[0 + 64] : 2
      plan.fill @b[0 + 64] : 3 pattern 3 of 4
      plan.copy @evicted[0 + 64] : 2 to @c[0 + 64] : 4
      plan.copy @c[0 + 64] : 4 to @io[0 + 64] : 5
    }
  }
}
