// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-order | FileCheck %s
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-order -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-order 2>/dev/null | lowtide-opt --train-set-target=threads-max=1 --train-order -o /dev/null 2>&1 | FileCheck %s --check-prefix=AGAIN

// The given order updates %f in front of its readers, which no schedule may: the update waits for them.
// CHECK-LABEL: func.func @updated_before_read
// CHECK-COUNT-2: nn.broadcast %{{.*}} dims = [] : tensor<i1>
// CHECK: nn.constant dense<false> : tensor<i1>
// REMARK: remark: @updated_before_read: peak 5.06 KiB → 5.00 KiB by order (updates after readers)
// AGAIN: remark: @updated_before_read: peak 5.00 KiB as given
func.func @updated_before_read(%f: tensor<i1> {train.binding = #train.state<"optimizer.pending">},
                               %w0: tensor<1024xf32> {train.binding = #train.param<"w0">},
                               %g0: tensor<1024xf32> {train.binding = #train.state<"g0">},
                               %w1: tensor<1024xf32> {train.binding = #train.param<"w1">},
                               %g1: tensor<1024xf32> {train.binding = #train.state<"g1">})
    -> (tensor<i1> {train.binding = #train.state<"optimizer.pending">}, tensor<1024xf32> {train.binding = #train.param<"w0">},
        tensor<1024xf32> {train.binding = #train.param<"w1">}) {
  %off = nn.kernel single () : () -> (tensor<i1>) {
    %s = nn.constant dense<false> : tensor<i1>
    nn.yield %s : tensor<i1>
  }
  %step0 = nn.kernel single (%a = %g0) : (tensor<1024xf32>) -> (tensor<1024xf32>) {
    %s = nn.exp %a : tensor<1024xf32>
    nn.yield %s : tensor<1024xf32>
  }
  %moved0 = nn.kernel single (%a = %w0, %b = %step0) : (tensor<1024xf32>, tensor<1024xf32>) -> (tensor<1024xf32>) {
    %s = nn.sub %a, %b : tensor<1024xf32>
    nn.yield %s : tensor<1024xf32>
  }
  %mask0 = nn.kernel single (%a = %f) : (tensor<i1>) -> (tensor<1024xi1>) {
    %s = nn.broadcast %a dims = [] : tensor<i1> -> tensor<1024xi1>
    nn.yield %s : tensor<1024xi1>
  }
  %new0 = nn.kernel single (%a = %mask0, %b = %moved0, %c = %w0) : (tensor<1024xi1>, tensor<1024xf32>, tensor<1024xf32>) -> (tensor<1024xf32>) {
    %s = nn.select %a, %b, %c : tensor<1024xi1>, tensor<1024xf32>
    nn.yield %s : tensor<1024xf32>
  }
  %step1 = nn.kernel single (%a = %g1) : (tensor<1024xf32>) -> (tensor<1024xf32>) {
    %s = nn.exp %a : tensor<1024xf32>
    nn.yield %s : tensor<1024xf32>
  }
  %moved1 = nn.kernel single (%a = %w1, %b = %step1) : (tensor<1024xf32>, tensor<1024xf32>) -> (tensor<1024xf32>) {
    %s = nn.sub %a, %b : tensor<1024xf32>
    nn.yield %s : tensor<1024xf32>
  }
  %mask1 = nn.kernel single (%a = %f) : (tensor<i1>) -> (tensor<1024xi1>) {
    %s = nn.broadcast %a dims = [] : tensor<i1> -> tensor<1024xi1>
    nn.yield %s : tensor<1024xi1>
  }
  %new1 = nn.kernel single (%a = %mask1, %b = %moved1, %c = %w1) : (tensor<1024xi1>, tensor<1024xf32>, tensor<1024xf32>) -> (tensor<1024xf32>) {
    %s = nn.select %a, %b, %c : tensor<1024xi1>, tensor<1024xf32>
    nn.yield %s : tensor<1024xf32>
  }
  return %off, %new0, %new1 : tensor<i1>, tensor<1024xf32>, tensor<1024xf32>
}
