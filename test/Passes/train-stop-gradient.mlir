// RUN: lowtide-opt %s --train-differentiate --canonicalize --cse | FileCheck %s
// RUN: lowtide-opt %s --train-differentiate --canonicalize --cse --nn-decompose | FileCheck %s --check-prefix=DECOMPOSED

// x · stop(x): the cotangent of one factor alone is multiplied with the other; of a detached square nothing passes.
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32>
// CHECK: %[[STILL:.*]] = nn.stop_gradient %[[W]] : tensor<4xf32>
// CHECK: %[[Y:.*]] = nn.mul %[[W]], %[[STILL]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[STILL]] : tensor<f32>, tensor<4xf32>
// DECOMPOSED-LABEL: func.func @gradient
// DECOMPOSED-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32>
// DECOMPOSED-NOT: nn.stop_gradient
// DECOMPOSED: nn.mul %[[W]], %[[W]]
// DECOMPOSED: return %{{.*}}, %[[W]] : tensor<f32>, tensor<4xf32>
func.func @forward(%w: tensor<4xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %still = nn.stop_gradient %w : tensor<4xf32>
  %y = nn.mul %w, %still : tensor<4xf32>
  %square = nn.mul %w, %w : tensor<4xf32>
  %gone = nn.stop_gradient %square : tensor<4xf32>
  %sum = nn.add %y, %gone : tensor<4xf32>
  %loss = nn.reduce_sum %sum dims = [0] : tensor<4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
