// The gradient of a norm's input is computed row by row, that of its offset is a sum over columns of the same values: one launch
// reads them once. Without crossing each is a launch of its own.
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --nn-batch-launches | FileCheck %s
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --nn-batch-launches=cross=false | FileCheck %s --check-prefix=APART

// CHECK-LABEL: @train
// CHECK: nn.kernel cross ({{.*}}) : {{.*}} -> (tensor<2048x512xf32>, tensor<512xf32>)
// CHECK-NOT: nn.kernel
// CHECK: return
// APART-LABEL: @train
// APART: nn.kernel row ({{.*}}) : {{.*}} -> tensor<2048x512xf32>
// APART: nn.kernel column ({{.*}}) : {{.*}} -> tensor<512xf32>
// APART: return
func.func @train(%g: tensor<2048x512xf32> {train.binding = #train.batch<"g">}, %h: tensor<2048x512xf32> {train.binding = #train.batch<"h">})
    -> (tensor<2048x512xf32> {train.binding = #train.output<"y">}, tensor<512xf32> {train.binding = #train.output<"s">}) {
  %y = nn.kernel row (%x = %g, %z = %h) : (tensor<2048x512xf32>, tensor<2048x512xf32>) -> (tensor<2048x512xf32>) {
    %p = nn.mul %x, %z : tensor<2048x512xf32>
    %r = nn.reduce_sum %p dims = [1] : tensor<2048x512xf32> -> tensor<2048xf32>
    %b = nn.broadcast %r dims = [0] : tensor<2048xf32> -> tensor<2048x512xf32>
    %d = nn.sub %x, %b : tensor<2048x512xf32>
    nn.yield %d : tensor<2048x512xf32>
  }
  %s = nn.kernel column (%x = %g) : (tensor<2048x512xf32>) -> (tensor<512xf32>) {
    %r = nn.reduce_sum %x dims = [0] : tensor<2048x512xf32> -> tensor<512xf32>
    nn.yield %r : tensor<512xf32>
  }
  return %y, %s : tensor<2048x512xf32>, tensor<512xf32>
}
