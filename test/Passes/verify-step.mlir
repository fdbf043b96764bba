// RUN: lowtide-opt %s --verify-step --split-input-file --verify-diagnostics

// expected-error@below {{@train: argument 1 repeats the name 'w'}}
func.func @train(%w: tensor<f32> {train.binding = #train.param<"w">}, %v: tensor<f32> {train.binding = #train.constant<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  return %w : tensor<f32>
}

// -----

// expected-error@below {{@train: argument 0 has no binding that an argument can have}}
func.func @train(%w: tensor<f32>) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  return %w : tensor<f32>
}

// -----

// expected-error@below {{@train: argument 0 has no binding that an argument can have}}
func.func @train(%w: tensor<f32> {train.binding = #train.output<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  return %w : tensor<f32>
}

// -----

// expected-error@below {{@train: argument 0 has no binding that an argument can have}}
func.func @train(%w: tensor<f32> {train.binding = #train.gradient<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  return %w : tensor<f32>
}

// -----

// A gradient is called after its parameter, and an output may not be called so too.
// expected-error@below {{@gradient: result 2 repeats the name 'grad/w'}}
func.func @gradient(%w: tensor<f32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<f32> {train.binding = #train.gradient<"w">},
        tensor<f32> {train.binding = #train.output<"grad/w">}) {
  return %w, %w, %w : tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// expected-error@below {{@train: parameter 'w' has the type 'tensor<i64>', which cannot be trained}}
func.func @train(%w: tensor<i64> {train.binding = #train.param<"w">}, %x: tensor<f32> {train.binding = #train.batch<"x", dim = -1>})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  return %x : tensor<f32>
}

// -----

// expected-error@below {{@train: scalar 'decay' is none of lr, step, seed, row}}
func.func @train(%w: tensor<f32> {train.binding = #train.scalar<"decay">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  return %w : tensor<f32>
}

// -----

// expected-error@below {{@train: scalar 'step' has the type 'tensor<f32>'}}
func.func @train(%w: tensor<f32> {train.binding = #train.scalar<"step">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  return %w : tensor<f32>
}

// -----

// expected-error@below {{@train: result 1 has no binding that a result can have}}
func.func @train(%w: tensor<f32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<f32> {train.binding = #train.batch<"w">}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@below {{@train: result 1 updates 'v', which is no argument with the same binding}}
func.func @train(%w: tensor<f32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<f32> {train.binding = #train.param<"v">}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@below {{@train: result 1 updates 'w' of type 'tensor<2xf32>' with 'tensor<f32>'}}
func.func @train(%w: tensor<2xf32> {train.binding = #train.param<"w">}, %x: tensor<f32> {train.binding = #train.batch<"x", dim = -1>})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<f32> {train.binding = #train.param<"w">}) {
  return %x, %x : tensor<f32>, tensor<f32>
}

// -----

// expected-error@below {{@train has 0 losses, but a step has one}}
func.func @train(%w: tensor<f32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.param<"w">}) {
  return %w : tensor<f32>
}

// -----

// What changes no parameter needs no loss.
func.func @eval(%w: tensor<f32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.output<"y">}) {
  return %w : tensor<f32>
}

// -----

// expected-error@below {{@train: the loss must be one floating-point number, found 'tensor<2xf32>'}}
func.func @train(%w: tensor<2xf32> {train.binding = #train.param<"w">})
    -> (tensor<2xf32> {train.binding = #train.metric<"loss">}) {
  return %w : tensor<2xf32>
}

// -----

// Entry points share parameters.

func.func @train(
    // expected-note@below {{another entry point takes #train.param<"w"> of type 'tensor<f32>'}}
    %w: tensor<f32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  return %w : tensor<f32>
}
// expected-error@below {{@eval takes #train.constant<"w"> of type 'tensor<f32>'}}
func.func @eval(%w: tensor<f32> {train.binding = #train.constant<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  return %w : tensor<f32>
}

// -----

// A number has no dimension of samples, and dim = 0 is what is not written.
func.func @train(
    // expected-error@below {{batch array "x": 'tensor<f32>' has no dimension 0 that counts samples; where none does, write #train.batch<"x", dim = -1>}}
    %x: tensor<f32> {train.binding = #train.batch<"x">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  return %x : tensor<f32>
}
