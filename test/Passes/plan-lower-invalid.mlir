// RUN: lowtide-opt %s --plan-lower --split-input-file --verify-diagnostics

func.func @train(%x: tensor<8xf32> {train.binding = #train.batch<"x">}) -> (tensor<8xf32> {train.binding = #train.output<"y">}) {
  // expected-error@below {{is neither in a kernel nor a library call: run nn-cluster first}}
  %y = nn.exp %x : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// expected-error@below {{result 0 updates "w", which is no argument}}
func.func @train(%x: tensor<8xf32> {train.binding = #train.batch<"x">}) -> (tensor<8xf32> {train.binding = #train.param<"w">}) {
  return %x : tensor<8xf32>
}

// -----

// expected-error@below {{argument 0 has no binding that an argument may have}}
func.func @train(%x: tensor<8xf32>) {
  return
}

// -----

func.func @train(%w: tensor<8xf32> {train.binding = #train.param<"w">}) {
  return
}
// expected-error@below {{"w" has type 'tensor<4xf32>', in another entry 'tensor<8xf32>'}}
func.func @eval(%w: tensor<4xf32> {train.binding = #train.param<"w">}) {
  return
}
