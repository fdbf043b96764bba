// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --train-differentiate=precision=mixed-bf16 --split-input-file | FileCheck %s
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --train-differentiate --split-input-file | FileCheck %s --check-prefix=PARTS
// RUN: lowtide-opt %s --train-set-target=target=cpu:x86-64-v3 --train-differentiate=precision=mixed-bf16 --split-input-file | FileCheck %s --check-prefix=CPU
// RUN: lowtide-opt %s --train-differentiate --split-input-file | FileCheck %s --check-prefix=CPU

// Where the target's library computes the attention in the precision that is coming, its derivative is one op; otherwise
// it is written out.
// PARTS-NOT: nn.attention_grad

// The CPU computes it in f32 and in 16 bits.
// CPU-LABEL: @gradient
// CPU: nn.attention_grad {{.*}} causal :

// CHECK-LABEL: @gradient
// CHECK: %[[O:.*]], %[[LSE:.*]] = nn.attention %[[Q:.*]], %[[Q]], %[[Q]] scale
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = nn.attention_grad %[[Q]], %[[Q]], %[[Q]], %[[O]], %[[LSE]], %{{.*}} scale = 3.5{{.*}} causal :
// CHECK: %[[S:.*]] = nn.add %[[DQ]], %[[DK]]
// CHECK: nn.add %[[S]], %[[DV]]
// CHECK-NOT: nn.exp
func.func @forward(%w: tensor<1x2x16x8xf32> {train.binding = #train.param<"w">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %q = nn.mul %w, %w : tensor<1x2x16x8xf32>
  %o, %lse = nn.attention %q, %q, %q scale = 0.35 causal : (tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>) -> (tensor<1x2x16x8xf32>, tensor<1x2x16xf32>)
  %loss = nn.reduce_sum %o dims = [0, 1, 2, 3] : tensor<1x2x16x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CPU-LABEL: @gradient
// CPU: nn.attention_grad {{.*}} mask %{{.*}} scale

// A mask that repeats along its rows is written out for the library later; the derivative is one op all the same.
// CHECK-LABEL: @gradient
// CHECK: nn.attention_grad {{.*}} mask %{{.*}} scale
func.func @forward(%q: tensor<1x2x16x8xf32> {train.binding = #train.param<"q">}, %m: tensor<1x1x1x16xf32> {train.binding = #train.batch<"m", dim = 0>}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %o, %lse = nn.attention %q, %q, %q mask %m scale = 0.35 : (tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x1x1x16xf32>) -> (tensor<1x2x16x8xf32>, tensor<1x2x16xf32>)
  %loss = nn.reduce_sum %o dims = [0, 1, 2, 3] : tensor<1x2x16x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The mask is trained: written out.
// CPU-LABEL: @gradient
// CPU-NOT: nn.attention_grad
// CPU: return

// CHECK-LABEL: @gradient
// CHECK-NOT: nn.attention_grad
// CHECK: return
func.func @forward(%q: tensor<1x2x16x8xf32> {train.binding = #train.param<"q">}, %m: tensor<1x2x16x16xf32> {train.binding = #train.param<"m">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %o, %lse = nn.attention %q, %q, %q mask %m scale = 0.35 : (tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x16x8xf32>, tensor<1x2x16xf32>)
  %loss = nn.reduce_sum %o dims = [0, 1, 2, 3] : tensor<1x2x16x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Heads of 6 elements are no multiple of 16 bytes: written out. The CPU takes heads of any size up to 256.
// CPU-LABEL: @gradient
// CPU: nn.attention_grad
// CHECK-LABEL: @gradient
// CHECK-NOT: nn.attention_grad
// CHECK: return
func.func @forward(%q: tensor<1x2x16x6xf32> {train.binding = #train.param<"q">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %o, %lse = nn.attention %q, %q, %q scale = 0.35 : (tensor<1x2x16x6xf32>, tensor<1x2x16x6xf32>, tensor<1x2x16x6xf32>) -> (tensor<1x2x16x6xf32>, tensor<1x2x16xf32>)
  %loss = nn.reduce_sum %o dims = [0, 1, 2, 3] : tensor<1x2x16x6xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
