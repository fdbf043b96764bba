// Sums over columns wait for rows that come after them, as long as nothing reads the sums before; a number that they need
// and that is made of the step's arguments comes earlier instead.
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90 --no-weights --emit=plan -q -o - | FileCheck %s

// CHECK: plan.program @train
// CHECK-NOT: @column_{{.*}} reads [@io
// CHECK: plan.launch @cross
// CHECK: plan.program @eval
// CHECK: plan.launch @loop
// CHECK: plan.launch @cross
// CHECK: plan.program @gradient
// CHECK-NOT: @cross
// CHECK: module @kernels

func.func @train(%dy: tensor<2048x96xf32> {train.binding = #train.batch<"dy">})
    -> (tensor<96xf32> {train.binding = #train.output<"g">}, tensor<2048x96xf32> {train.binding = #train.output<"dx">}) {
  %g = nn.kernel column (%d = %dy) : (tensor<2048x96xf32>) -> (tensor<96xf32>) {
    %s = nn.reduce_sum %d dims = [0] : tensor<2048x96xf32> -> tensor<96xf32>
    nn.yield %s : tensor<96xf32>
  }
  %dx = nn.kernel loop (%d = %dy) : (tensor<2048x96xf32>) -> (tensor<2048x96xf32>) {
    %q = nn.mul %d, %d : tensor<2048x96xf32>
    nn.yield %q : tensor<2048x96xf32>
  }
  // The step needs more bytes here than where the partial sums are.
  %t = nn.kernel loop (%d = %dx) : (tensor<2048x96xf32>) -> (tensor<96x2048xf32>) {
    %q = nn.transpose %d [1, 0] : tensor<2048x96xf32> -> tensor<96x2048xf32>
    nn.yield %q : tensor<96x2048xf32>
  }
  %u = nn.kernel loop (%d = %t) : (tensor<96x2048xf32>) -> (tensor<2048x96xf32>) {
    %q = nn.transpose %d [1, 0] : tensor<96x2048xf32> -> tensor<2048x96xf32>
    nn.yield %q : tensor<2048x96xf32>
  }
  return %g, %u : tensor<96xf32>, tensor<2048x96xf32>
}

func.func @eval(%scale: tensor<f32> {train.binding = #train.param<"scale">},
                %dy: tensor<2048x96xf32> {train.binding = #train.batch<"dy">})
    -> (tensor<96xf32> {train.binding = #train.output<"g">}, tensor<2048x96xf32> {train.binding = #train.output<"dx">}) {
  %dx = nn.kernel loop (%d = %dy) : (tensor<2048x96xf32>) -> (tensor<2048x96xf32>) {
    %q = nn.mul %d, %d : tensor<2048x96xf32>
    nn.yield %q : tensor<2048x96xf32>
  }
  %inverse = nn.kernel loop (%s = %scale) : (tensor<f32>) -> (tensor<f32>) {
    %r = nn.reciprocal %s : tensor<f32>
    nn.yield %r : tensor<f32>
  }
  %g = nn.kernel column (%d = %dy, %i = %inverse) : (tensor<2048x96xf32>, tensor<f32>) -> (tensor<96xf32>) {
    %s = nn.reduce_sum %d dims = [0] : tensor<2048x96xf32> -> tensor<96xf32>
    %b = nn.broadcast %i dims = [] : tensor<f32> -> tensor<96xf32>
    %u = nn.mul %s, %b : tensor<96xf32>
    nn.yield %u : tensor<96xf32>
  }
  return %g, %dx : tensor<96xf32>, tensor<2048x96xf32>
}

// Somebody reads the sums first.
func.func @gradient(%dy: tensor<2048x96xf32> {train.binding = #train.batch<"dy">})
    -> (tensor<2048x96xf32> {train.binding = #train.output<"dx">}) {
  %g = nn.kernel column (%d = %dy) : (tensor<2048x96xf32>) -> (tensor<96xf32>) {
    %s = nn.reduce_sum %d dims = [0] : tensor<2048x96xf32> -> tensor<96xf32>
    nn.yield %s : tensor<96xf32>
  }
  %dx = nn.kernel loop (%d = %dy, %s = %g) : (tensor<2048x96xf32>, tensor<96xf32>) -> (tensor<2048x96xf32>) {
    %b = nn.broadcast %s dims = [1] : tensor<96xf32> -> tensor<2048x96xf32>
    %q = nn.mul %d, %b : tensor<2048x96xf32>
    nn.yield %q : tensor<2048x96xf32>
  }
  return %dx : tensor<2048x96xf32>
}
