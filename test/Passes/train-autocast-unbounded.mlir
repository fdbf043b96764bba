// An f32 value that a product rounds is read rounded by everybody, unless elementwise ops make of it what a function
// without bounds reads: log(1 − a²) of a rounded a that is near 1 would be a logarithm of nothing.
// RUN: lowtide-opt %s --train-autocast=precision=mixed-bf16 --split-input-file | FileCheck %s
// RUN: lowtide-opt %s --train-autocast=precision=bf16 --split-input-file | FileCheck %s --check-prefix=PURE

// CHECK-LABEL: func.func @logarithm
// CHECK: %[[A:.*]] = nn.tanh %{{.*}} : tensor<4x8xf32>
// CHECK: %[[ROUNDED:.*]] = nn.cast %[[A]] : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK: nn.dot %[[ROUNDED]], %{{.*}} : (tensor<4x8xbf16>, tensor<8x1xbf16>)
// CHECK: nn.mul %[[A]], %[[A]] : tensor<4x8xf32>
// Where everything is in 16 bits, so is this.
// PURE-LABEL: func.func @logarithm
// PURE: %[[A:.*]] = nn.tanh %{{.*}} : tensor<4x8xf32>
// PURE: %[[ROUNDED:.*]] = nn.cast %[[A]] : tensor<4x8xf32> -> tensor<4x8xbf16>
// PURE: %[[WIDE:.*]] = nn.cast %[[ROUNDED]] : tensor<4x8xbf16> -> tensor<4x8xf32>
// PURE: nn.mul %[[WIDE]], %[[WIDE]] : tensor<4x8xf32>
func.func @logarithm(%x: tensor<4x8xf32> {train.binding = #train.batch<"x">}, %w: tensor<8x1xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %a = nn.tanh %x : tensor<4x8xf32>
  %q = nn.dot %a, %w : (tensor<4x8xf32>, tensor<8x1xf32>) -> tensor<4x1xf32>
  %one = nn.constant dense<1.000001> : tensor<4x8xf32>
  %square = nn.mul %a, %a : tensor<4x8xf32>
  %rest = nn.sub %one, %square : tensor<4x8xf32>
  %log = nn.log %rest : tensor<4x8xf32>
  %sum = nn.reduce_sum %log dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  %value = nn.reduce_sum %q dims = [0, 1] : tensor<4x1xf32> -> tensor<f32>
  %loss = nn.sub %value, %sum : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A sum ends what is elementwise: the logarithm of a mean reads what lies there in 16 bits.
// CHECK-LABEL: func.func @mean
// CHECK: %[[A:.*]] = nn.tanh %{{.*}} : tensor<4x8xf32>
// CHECK: %[[ROUNDED:.*]] = nn.cast %[[A]] : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK: %[[WIDE:.*]] = nn.cast %[[ROUNDED]] : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: nn.mul %[[WIDE]], %[[WIDE]] : tensor<4x8xf32>
func.func @mean(%x: tensor<4x8xf32> {train.binding = #train.batch<"x">}, %w: tensor<8x1xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %a = nn.tanh %x : tensor<4x8xf32>
  %q = nn.dot %a, %w : (tensor<4x8xf32>, tensor<8x1xf32>) -> tensor<4x1xf32>
  %square = nn.mul %a, %a : tensor<4x8xf32>
  %sum = nn.reduce_sum %square dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  %log = nn.log %sum : tensor<f32>
  %value = nn.reduce_sum %q dims = [0, 1] : tensor<4x1xf32> -> tensor<f32>
  %loss = nn.sub %value, %log : tensor<f32>
  return %loss : tensor<f32>
}
