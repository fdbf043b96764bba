// What lies between a stack of experts and the sum over them is written expert by expert, where it is large; bytes are
// small here, so the limit is, too.
// RUN: lowtide-opt %s --split-input-file --nn-split-sums=min-bytes=1 --canonicalize 2>/dev/null | FileCheck %s
// RUN: lowtide-opt %s --split-input-file --nn-split-sums=min-bytes=1 -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAID
// RUN: lowtide-opt %s --split-input-file --nn-split-sums 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL-NOT: remark:

// SAID: remark: @forward: 384 bytes of 3 stacked parts are computed in 3, one after the other
// CHECK-LABEL: func.func @forward(
// CHECK-NOT: 4x3x8
// CHECK: nn.dot {{.*}} -> tensor<4x8xf32>
// CHECK: nn.gelu
// CHECK: nn.dot {{.*}} -> tensor<1x4x5xf32>
// CHECK: nn.dot {{.*}} -> tensor<4x8xf32>
// CHECK: nn.gelu
// CHECK: nn.add
// CHECK: nn.gelu
// CHECK: nn.add
// CHECK: return
func.func @forward(%x: tensor<4x5xf32> {train.binding = #train.batch<"x", dim = 0>}, %gate: tensor<4x3xf32> {train.binding = #train.batch<"gate", dim = 0>},
    %up: tensor<3x5x8xf32> {train.binding = #train.param<"up">}, %down: tensor<3x8x5xf32> {train.binding = #train.param<"down">})
    -> (tensor<4x5xf32> {train.binding = #train.output<"y">}) {
  %t = nn.transpose %up [1, 0, 2] : tensor<3x5x8xf32> -> tensor<5x3x8xf32>
  %r = nn.reshape %t : tensor<5x3x8xf32> -> tensor<5x24xf32>
  %h = nn.dot %x, %r : (tensor<4x5xf32>, tensor<5x24xf32>) -> tensor<4x24xf32>
  %g = nn.gelu %h : tensor<4x24xf32>
  %s = nn.reshape %g : tensor<4x24xf32> -> tensor<4x3x8xf32>
  %p = nn.transpose %s [1, 0, 2] : tensor<4x3x8xf32> -> tensor<3x4x8xf32>
  %o = nn.dot %p, %down : (tensor<3x4x8xf32>, tensor<3x8x5xf32>) -> tensor<3x4x5xf32>
  %q = nn.transpose %o [1, 0, 2] : tensor<3x4x5xf32> -> tensor<4x3x5xf32>
  %w = nn.broadcast %gate dims = [0, 1] : tensor<4x3xf32> -> tensor<4x3x5xf32>
  %m = nn.mul %w, %q : tensor<4x3x5xf32>
  %y = nn.reduce_sum %m dims = [1] : tensor<4x3x5xf32> -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

// The experts' own results are outputs, too: they stay as they are.
// CHECK-LABEL: func.func @forward(
// CHECK: nn.dot {{.*}} -> tensor<3x4x5xf32>
// CHECK-NOT: nn.dot
// CHECK: return
func.func @forward(%x: tensor<3x4x5xf32> {train.binding = #train.batch<"x", dim = 1>}, %w: tensor<3x5x5xf32> {train.binding = #train.param<"w">})
    -> (tensor<4x5xf32> {train.binding = #train.output<"y">}, tensor<3x4x5xf32> {train.binding = #train.output<"each">}) {
  %o = nn.dot %x, %w : (tensor<3x4x5xf32>, tensor<3x5x5xf32>) -> tensor<3x4x5xf32>
  %y = nn.reduce_sum %o dims = [0] : tensor<3x4x5xf32> -> tensor<4x5xf32>
  return %y, %o : tensor<4x5xf32>, tensor<3x4x5xf32>
}
