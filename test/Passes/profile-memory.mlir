// RUN: lowtide-opt %s --train-set-target=threads-max=1 --profile-memory -o /dev/null 2>&1 | FileCheck %s

// The first layer's value waits for the backward pass, what is made of it again does not; the gradient is read by the
// update; what the user gets stays to the end. Parameters and state are there all the time, 1 KiB each; the
// batch with the loss is 1088 bytes.
// CHECK: remark: @train: at its peak 7.06 KiB: 1.00 KiB of parameters, 1.00 KiB of optimizer state, 1.06 KiB of batch,
// CHECK-SAME: 1.00 KiB of saved activations, 1.00 KiB of recomputed values, 1.00 KiB of gradients, 1.00 KiB of outputs;
// CHECK-SAME: the largest: tensor<256xf32> of 1.00 KiB from 'first' (saved activations)

func.func @train(%x: tensor<256xf32> {train.binding = #train.batch<"x">},
                 %w: tensor<256xf32> {train.binding = #train.param<"w">},
                 %m: tensor<128xf32> {train.binding = #train.state<"m">},
                 %v: tensor<128xf32> {train.binding = #train.state<"v">})
    -> (tensor<256xf32> {train.binding = #train.param<"w">}, tensor<f32> {train.binding = #train.metric<"loss">},
        tensor<256xf32> {train.binding = #train.output<"p">}, tensor<256xf32> {train.binding = #train.output<"late">}) {
  %h = nn.kernel loop (%a = %x) : (tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.exp %a : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  } loc("first")
  %loss = nn.kernel row (%a = %h) : (tensor<256xf32>) -> (tensor<f32>) {
    %s = nn.reduce_sum %a dims = [0] : tensor<256xf32> -> tensor<f32>
    nn.yield %s : tensor<f32>
  }
  %p = nn.kernel loop (%a = %x) : (tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.tanh %a : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %again = nn.kernel loop (%a = %x) attributes {train.recomputed} : (tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.sqrt %a : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %g = nn.kernel row (%a = %h, %b = %again) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.reduce_sum %a dims = [0] : tensor<256xf32> -> tensor<f32>
    %t = nn.broadcast %s dims = [] : tensor<f32> -> tensor<256xf32>
    %u = nn.mul %t, %b : tensor<256xf32>
    nn.yield %u : tensor<256xf32>
  }
  %new = nn.kernel loop (%a = %w, %b = %g) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.sub %a, %b : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %late = nn.kernel loop (%a = %again, %b = %h, %c = %p) : (tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.mul %a, %b : tensor<256xf32>
    %t = nn.mul %s, %c : tensor<256xf32>
    nn.yield %t : tensor<256xf32>
  }
  return %new, %loss, %p, %late : tensor<256xf32>, tensor<f32>, tensor<256xf32>, tensor<256xf32>
}
