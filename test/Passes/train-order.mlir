// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-order | FileCheck %s
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-order -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-order 2>/dev/null | lowtide-opt --train-set-target=threads-max=1 --train-order -o /dev/null 2>&1 | FileCheck %s --check-prefix=AGAIN

// Two gradients are made, then both updates run: each update moves up after its gradient, so that one gradient is alive
// at a time. What is made early and read late moves down.
// CHECK-LABEL: func.func @train
// CHECK: %[[G1:.*]] = nn.kernel loop (%{{.*}} = %[[X:.*]])
// CHECK-NEXT: nn.exp
// CHECK: nn.kernel loop (%{{.*}} = %{{.*}}, %{{.*}} = %[[G1]])
// CHECK: %[[G2:.*]] = nn.kernel loop (%{{.*}} = %[[X]])
// CHECK-NEXT: nn.tanh
// CHECK: nn.kernel loop (%{{.*}} = %{{.*}}, %{{.*}} = %[[G2]])
// REMARK: remark: @train: peak 2.00 KiB → 1.00 KiB by order
// AGAIN: remark: @train: peak 1.00 KiB as given: no order that was tried needs less
func.func @train(%x: tensor<256xf32> {train.binding = #train.batch<"x">},
                 %w: tensor<256xf32> {train.binding = #train.param<"w">},
                 %v: tensor<256xf32> {train.binding = #train.param<"v">})
    -> (tensor<256xf32> {train.binding = #train.param<"w">}, tensor<256xf32> {train.binding = #train.param<"v">}) {
  %g1 = nn.kernel loop (%a = %x) : (tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.exp %a : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %g2 = nn.kernel loop (%a = %x) : (tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.tanh %a : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %new = nn.kernel loop (%a = %w, %b = %g1) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.sub %a, %b : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %new2 = nn.kernel loop (%a = %v, %b = %g2) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.sub %a, %b : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  return %new, %new2 : tensor<256xf32>, tensor<256xf32>
}
