// RUN: not lowtide-opt %s --split-input-file --train-scale-loss="loss-scale=dynamic" 2>&1 | FileCheck %s

// CHECK: error: unsupported: the step brings its own updates and does not say which values are gradients
// CHECK: note: known are the gradients of models that lowtide wrote with --onnx-stage=train
// CHECK: note: leave out --loss-scale
func.func @train(%x: tensor<4xf32> {train.binding = #train.batch<"x">}, %w: tensor<4xf32> {train.binding = #train.param<"w">})
    -> (tensor<4xf32> {train.binding = #train.param<"w">}) {
  %0 = nn.sub %w, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK: error: unsupported: the file writes its backward pass out in a form of its own
// CHECK: note: the loss can be scaled where gradients come from the operator Gradient
func.func @train(%x: tensor<4xf32> {train.binding = #train.batch<"x">}, %w: tensor<4xf32> {train.binding = #train.param<"w">})
    -> (tensor<4xf32> {train.binding = #train.param<"w">}, tensor<4xf32> {train.binding = #train.gradient<"w">})
    attributes {train.given_gradients} {
  %g = nn.mul %x, %w : tensor<4xf32>
  %0 = nn.sub %w, %g : tensor<4xf32>
  return %0, %g : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK: error: unsupported: the update of "w" reads the batch besides its gradient
func.func @train(%x: tensor<4xf32> {train.binding = #train.batch<"x">}, %w: tensor<4xf32> {train.binding = #train.param<"w">})
    -> (tensor<4xf32> {train.binding = #train.param<"w">}, tensor<4xf32> {train.binding = #train.gradient<"w">}) {
  %g = nn.mul %x, %w : tensor<4xf32>
  %h = nn.mul %g, %x : tensor<4xf32>
  %0 = nn.sub %w, %h : tensor<4xf32>
  return %0, %g : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK: error: the step scales its loss already: it keeps 'loss_scale.skipped'
func.func @train(%w: tensor<4xf32> {train.binding = #train.param<"w">},
                 %s: tensor<i64> {train.binding = #train.state<"loss_scale.skipped">})
    -> (tensor<4xf32> {train.binding = #train.param<"w">}, tensor<4xf32> {train.binding = #train.gradient<"w">}) {
  %g = nn.mul %w, %w : tensor<4xf32>
  return %g, %g : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK: error: result 0 of @gradient is called a gradient and is 'tensor<4xi32>'; gradients are float tensors of static shape
func.func @gradient(%w: tensor<4xi32> {train.binding = #train.param<"w">})
    -> (tensor<4xi32> {train.binding = #train.gradient<"w">}) attributes {train.scaled = "dynamic"} {
  return %w : tensor<4xi32>
}
