// How many processors a GPU has decides how many blocks a large kernel gets (eight on each), and whether a product is
// cut along k to occupy it: 64 tiles are less than half of 132, more than half of 108.
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90 --no-weights --emit=plan -q -o - | FileCheck %s --check-prefix=H100
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_80 --no-weights --emit=plan -q -o - | FileCheck %s --check-prefix=A100
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_86 --no-weights --emit=plan -q -o - | FileCheck %s --check-prefix=H100

// H100: plan.launch @loop_0 {{.*}}extent 1056 grain 1056
// H100: plan.call "gemm" {{.*}}workspace @{{[a-z]+}}[{{[0-9]+}} + 8388800]
// A100: plan.launch @loop_0 {{.*}}extent 864 grain 864
// A100: plan.call "gemm"
// A100-NOT: workspace
// A100: plan.launch @row_1

func.func @eval(%x: tensor<8388608xf32> {train.binding = #train.batch<"x">}, %a: tensor<1024x4096xf32> {train.binding = #train.batch<"a">},
    %b: tensor<4096x1024xf32> {train.binding = #train.batch<"b">})
    -> (tensor<8388608xf32> {train.binding = #train.output<"y">}, tensor<1024x1024xf32> {train.binding = #train.output<"z">},
        tensor<f32> {train.binding = #train.metric<"loss">}) {
  %y = nn.kernel loop (%p = %x) : (tensor<8388608xf32>) -> tensor<8388608xf32> {
    %r = nn.relu %p : tensor<8388608xf32>
    nn.yield %r : tensor<8388608xf32>
  }
  %z = nn.dot %a, %b : (tensor<1024x4096xf32>, tensor<4096x1024xf32>) -> tensor<1024x1024xf32>
  %loss = nn.kernel row (%p = %y) : (tensor<8388608xf32>) -> tensor<f32> {
    %s = nn.reduce_sum %p dims = [0] : tensor<8388608xf32> -> tensor<f32>
    nn.yield %s : tensor<f32>
  }
  return %y, %z, %loss : tensor<8388608xf32>, tensor<1024x1024xf32>, tensor<f32>
}
