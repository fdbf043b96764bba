// RUN: lowtide-opt --train-adapt="lora=fc:r=2" %s | FileCheck %s

// A weight that is unpacked from codes of few bits gets a pair by the name of its node, without what quantizers add to it; its
// binding is not named, for nothing could be merged into it.
// CHECK: train.adapters = [{a = "fc.lora_A.weight", {{.*}}module = "fc", weight = ""}]
// CHECK-LABEL: func.func @forward
// CHECK-SAME: tensor<2x6xf32> {train.binding = #train.param<"fc.lora_A.weight">
// CHECK-SAME: tensor<4x2xf32> {train.binding = #train.param<"fc.lora_B.weight">
// CHECK: %[[W:.*]] = nn.mul %{{.*}} : tensor<4x6xf32>
// CHECK: %[[Y:.*]] = nn.dot %arg0, %[[W]] {transpose_b}
// CHECK: %[[THIN:.*]] = nn.dot %arg0, %{{.*}} {transpose_b} : (tensor<3x6xf32>, tensor<2x6xf32>) -> tensor<3x2xf32>
// CHECK: %[[WIDE:.*]] = nn.dot %{{.*}}, %{{.*}} {transpose_b} : (tensor<3x2xf32>, tensor<4x2xf32>) -> tensor<3x4xf32>
// CHECK: nn.add %[[Y]], %[[WIDE]]
func.func @forward(%x: tensor<3x6xf32> {train.binding = #train.batch<"x">},
    %codes: tensor<4x6xi8> {train.binding = #train.constant<"fc.weight_Q8">},
    %scales: tensor<4xf32> {train.binding = #train.constant<"fc.scales">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %numbers = nn.cast %codes : tensor<4x6xi8> -> tensor<4x6xf32>
  %spread = nn.broadcast %scales dims = [0] : tensor<4xf32> -> tensor<4x6xf32>
  %w = nn.mul %numbers, %spread : tensor<4x6xf32>
  %y = nn.dot %x, %w {transpose_b} : (tensor<3x6xf32>, tensor<4x6xf32>) -> tensor<3x4xf32> loc("fc_Q8")
  %loss = nn.reduce_sum %y dims = [0, 1] : tensor<3x4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// Two codes of a byte are numbers of a matrix of their own, which one scale for all leaves in its shape: the weight is what
// the product reads.
// CHECK-LABEL: func.func @halves
// CHECK-SAME: tensor<2x6xf32> {train.binding = #train.param<"fc.lora_A.weight">
// CHECK-SAME: tensor<4x2xf32> {train.binding = #train.param<"fc.lora_B.weight">
func.func @halves(%x: tensor<3x6xf32> {train.binding = #train.batch<"x">},
    %codes: tensor<12x2xi8> {train.binding = #train.constant<"fc.weight_Q4">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %numbers = nn.cast %codes : tensor<12x2xi8> -> tensor<12x2xf32>
  %scale = nn.constant dense<0.5> : tensor<12x2xf32>
  %scaled = nn.mul %numbers, %scale : tensor<12x2xf32>
  %w = nn.reshape %scaled : tensor<12x2xf32> -> tensor<4x6xf32>
  %y = nn.dot %x, %w {transpose_b} : (tensor<3x6xf32>, tensor<4x6xf32>) -> tensor<3x4xf32> loc("fc_Q4")
  %loss = nn.reduce_sum %y dims = [0, 1] : tensor<3x4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
