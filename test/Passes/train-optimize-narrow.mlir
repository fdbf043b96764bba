// RUN: lowtide-opt %s --train-optimize="optimizer=sgd lr=0.1 options=momentum=0.9" --verify-step | FileCheck %s

// Parameters that the file holds in 16 bits: the update and its state are f32.
// CHECK-LABEL: func.func @train
// CHECK-SAME: %[[W:[^:]*]]: tensor<4x3xf16> {train.binding = #train.param<"w">}
// CHECK-SAME: %[[M:[^:]*]]: tensor<4x3xf32> {train.binding = #train.state<"w.momentum_buffer">}
// CHECK-DAG: %[[G:.*]] = nn.dot
// CHECK: %[[WIDE:.*]] = nn.cast %[[G]] : tensor<4x3xf16> -> tensor<4x3xf32>
// CHECK: train.momentum %[[W]] gradient %[[WIDE]] {{.*}} state %[[M]]
func.func @gradient(%x: tensor<4x8xf16> {train.binding = #train.batch<"x">},
                    %d: tensor<8x3xf16> {train.binding = #train.batch<"d">},
                    %w: tensor<4x3xf16> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">},
        tensor<4x3xf16> {train.binding = #train.gradient<"w">}) {
  %loss = nn.constant dense<0.0> : tensor<f32>
  %g = nn.dot %x, %d : (tensor<4x8xf16>, tensor<8x3xf16>) -> tensor<4x3xf16>
  return %loss, %g : tensor<f32>, tensor<4x3xf16>
}
