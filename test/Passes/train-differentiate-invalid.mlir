// RUN: lowtide-opt %s --train-differentiate --split-input-file --verify-diagnostics

// expected-remark@+2 {{@forward: gradients of 3 parameters, 4 ops after 2}}
// expected-warning@below {{the loss does not depend on 2 parameters: b, d; zero gradient and no update}}
func.func @forward(%a: tensor<4xf32> {train.binding = #train.param<"a">},
                   %b: tensor<4xf32> {train.binding = #train.param<"b">},
                   %d: tensor<2xf32> {train.binding = #train.param<"d">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %e = nn.exp %b : tensor<4xf32>
  %loss = nn.reduce_sum %a dims = [0] : tensor<4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The error names the op, the way to the loss and a remedy.

func.func @forward(%w: tensor<4xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %lr = nn.constant dense<1.0> : tensor<f32>
  %step = nn.constant dense<0> : tensor<i64>
  // expected-error@below {{'train.sgd' has no derivative, but a parameter leads to it}}
  // expected-note@below {{freeze the parameters that lead to it (--frozen=PATTERN), or express it by other operators}}
  %n = train.sgd %w gradient %w lr %lr step %step {lr_scale = 1.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  // expected-note@below {{the loss depends on it through this 'nn.exp'}}
  %e = nn.exp %n : tensor<4xf32>
  // expected-note@below {{the loss depends on it through this 'nn.reduce_sum'}}
  %loss = nn.reduce_sum %e dims = [0] : tensor<4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error@below {{no parameter leads to the loss: nothing can be trained (1 parameters)}}
func.func @forward(%w: tensor<4xf32> {train.binding = #train.param<"w">},
                   %x: tensor<f32> {train.binding = #train.batch<"x", dim = -1>})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  return %x : tensor<f32>
}

// -----

// expected-error@below {{1 inputs have names of weights (fc.weight is one): export with export_params=True, so that the file holds them}}
func.func @forward(%w: tensor<4xf32> {train.binding = #train.batch<"fc.weight", dim = -1>})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %loss = nn.reduce_sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error@below {{the loss must be one floating-point number, found 'tensor<4xf32>'}}
func.func @forward(%w: tensor<4xf32> {train.binding = #train.param<"w">})
    -> (tensor<4xf32> {train.binding = #train.metric<"loss">}) {
  return %w : tensor<4xf32>
}

// -----

// expected-error@below {{@forward has no loss to differentiate}}
// expected-note@below {{name the output that is the loss, or add one: --loss='cross_entropy(logits, labels)'}}
func.func @forward(%w: tensor<4xf32> {train.binding = #train.param<"w">})
    -> (tensor<4xf32> {train.binding = #train.output<"y">}) {
  return %w : tensor<4xf32>
}

// -----

// What a region captures leads to the loss as an operand does.

func.func @forward(%x: tensor<8x3xf32> {train.binding = #train.batch<"x">}, %w: tensor<3xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %zero = nn.constant dense<0.0> : tensor<f32>
  // expected-error@below {{'train.accumulate' has no derivative, but a parameter leads to it}}
  // expected-note@below {{freeze the parameters that lead to it}}
  %l = train.accumulate 4 slices(%xk = %x) carries(%s = %zero) : (tensor<8x3xf32>, tensor<f32>) -> (tensor<f32>) {
    %b = nn.broadcast %w dims = [1] : tensor<3xf32> -> tensor<2x3xf32>
    %m = nn.mul %xk, %b : tensor<2x3xf32>
    %r = nn.reduce_sum %m dims = [0, 1] : tensor<2x3xf32> -> tensor<f32>
    %n = nn.add %s, %r : tensor<f32>
    train.next carries(%n : tensor<f32>)
  }
  return %l : tensor<f32>
}
