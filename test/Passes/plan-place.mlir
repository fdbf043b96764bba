// RUN: lowtide-opt %s --plan-place | FileCheck %s

// Two programs share the arena: it is as large as the larger needs. b0 and b2 do not live together.
// CHECK: plan.arena @transient transient in device bytes 256 align 64
// CHECK: plan.program @train batch 4 peak 128
// CHECK-NOT: plan.buffer
// CHECK: plan.fill @transient[[B0:\[[0-9]+ \+ 64\]]] : 2
// CHECK: plan.copy @transient[[B0]] : 2 to @transient[[B1:\[[0-9]+ \+ 64\]]] : 3
// CHECK: plan.copy @transient[[B1]] : 3 to @transient[[B2:\[[0-9]+ \+ 64\]]] : 4
// CHECK: plan.program @eval batch 4 peak 200
plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 0 align 64
  plan.program @train batch 4 peak 0 {
    plan.buffer "b0" in @transient bytes 64
    plan.buffer "b1" in @transient bytes 64
    plan.buffer "b2" in @transient bytes 64
    plan.buffer "unused" in @transient bytes 1000000
    plan.fill @b0[0 + 64] : 2 pattern 0 of 4
    plan.copy @b0[0 + 64] : 2 to @b1[0 + 64] : 3
    plan.copy @b1[0 + 64] : 3 to @b2[0 + 64] : 4
  }
  // A kept buffer lives to the end: its bytes are not given to another.
  // CHECK: plan.binding output "y" tensor<25xf32> @transient[[Y:\[[0-9]+ \+ 100\]]] : 0 -> 1
  // CHECK: plan.fill @transient[[Y]] : 1
  // CHECK: plan.fill @transient[[Z:\[[0-9]+ \+ 100\]]] : 2
  plan.program @eval batch 4 peak 0 {
    plan.binding output "y" tensor<25xf32> @y[0 + 100] : 0 -> 1
    plan.buffer "y" in @transient bytes 100 kept
    plan.buffer "z" in @transient bytes 100
    plan.fill @y[0 + 100] : 1 pattern 0 of 4
    plan.fill @z[0 + 100] : 2 pattern 0 of 4
  }
  // Between its two values "x" keeps its place, and holds no live byte.
  // CHECK: plan.program @again batch 4 peak 128
  plan.program @again batch 4 peak 0 {
    plan.buffer "x" in @transient bytes 64
    plan.buffer "y" in @transient bytes 64
    plan.buffer "z" in @transient bytes 64
    plan.fill @x[0 + 64] : 1 pattern 0 of 4
    plan.copy @x[0 + 64] : 1 to @y[0 + 64] : 2
    plan.copy @y[0 + 64] : 2 to @z[0 + 64] : 3
    plan.fill @x[0 + 64] : 4 pattern 1 of 4
    plan.copy @x[0 + 64] : 4 to @y[0 + 64] : 5
  }
}
