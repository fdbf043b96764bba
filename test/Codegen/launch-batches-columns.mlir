// Short sums over columns, such as those of the gradients of a norm's scale and offset, are one launch where nothing waits for
// the first of them.
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90 --no-weights --emit=plan -q -o - | FileCheck %s

// CHECK: plan.kernel @batch{{.*}} "2 {{.*}} column: reduce_sum"
// CHECK: plan.program @eval
// CHECK-COUNT-1: plan.launch
// CHECK-NOT: plan.launch

func.func @eval(%a: tensor<256x512xf32> {train.binding = #train.batch<"a">}, %b: tensor<256x512xf32> {train.binding = #train.batch<"b">})
    -> (tensor<512xf32> {train.binding = #train.output<"s">}, tensor<512xf32> {train.binding = #train.output<"t">}) {
  %s = nn.kernel column (%x = %a) : (tensor<256x512xf32>) -> (tensor<512xf32>) {
    %r = nn.reduce_sum %x dims = [0] : tensor<256x512xf32> -> tensor<512xf32>
    nn.yield %r : tensor<512xf32>
  }
  %t = nn.kernel column (%x = %b) : (tensor<256x512xf32>) -> (tensor<512xf32>) {
    %r = nn.reduce_sum %x dims = [0] : tensor<256x512xf32> -> tensor<512xf32>
    nn.yield %r : tensor<512xf32>
  }
  return %s, %t : tensor<512xf32>, tensor<512xf32>
}
