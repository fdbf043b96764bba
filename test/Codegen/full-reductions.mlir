// What a loop makes for a sum over everything alone is made in the sum: nothing as large as the gradient is written for its
// norm. What somebody else reads too is written.
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90 --no-weights --emit=plan -q -o - | FileCheck %s
// RUN: lowtide compile %s --from=fitted --target=cpu --no-weights --emit=plan -q -o - | FileCheck %s --check-prefix=CPU

// CHECK: plan.program @train
// CHECK-NOT: @loop
// CHECK: plan.launch @row{{.*}} reads [@io[0 + 4194304]{{.*}}, @params
// CHECK-NOT: @loop
// CHECK: plan.program @eval
// CHECK: plan.launch @loop
// CHECK: plan.launch @row

// CPU: plan.launch @loop
// CPU: plan.launch @row

func.func @train(%g: tensor<1024x1024xf32> {train.binding = #train.batch<"g">},
                 %scale: tensor<f32> {train.binding = #train.param<"scale">})
    -> (tensor<f32> {train.binding = #train.output<"norm">}) {
  %q = nn.kernel loop (%a = %g, %s = %scale) : (tensor<1024x1024xf32>, tensor<f32>) -> (tensor<1024x1024xf32>) {
    %b = nn.broadcast %s dims = [] : tensor<f32> -> tensor<1024x1024xf32>
    %u = nn.mul %a, %b : tensor<1024x1024xf32>
    %v = nn.mul %u, %u : tensor<1024x1024xf32>
    nn.yield %v : tensor<1024x1024xf32>
  }
  %n = nn.kernel row (%a = %q) : (tensor<1024x1024xf32>) -> (tensor<f32>) {
    %t = nn.reduce_sum %a dims = [0, 1] : tensor<1024x1024xf32> -> tensor<f32>
    nn.yield %t : tensor<f32>
  }
  return %n : tensor<f32>
}

func.func @eval(%g: tensor<1024x1024xf32> {train.binding = #train.batch<"g">})
    -> (tensor<1024x1024xf32> {train.binding = #train.output<"squares">}, tensor<f32> {train.binding = #train.output<"norm">}) {
  %q = nn.kernel loop (%a = %g) : (tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>) {
    %v = nn.mul %a, %a : tensor<1024x1024xf32>
    nn.yield %v : tensor<1024x1024xf32>
  }
  %n = nn.kernel row (%a = %q) : (tensor<1024x1024xf32>) -> (tensor<f32>) {
    %t = nn.reduce_sum %a dims = [0, 1] : tensor<1024x1024xf32> -> tensor<f32>
    nn.yield %t : tensor<f32>
  }
  return %q, %n : tensor<1024x1024xf32>, tensor<f32>
}
