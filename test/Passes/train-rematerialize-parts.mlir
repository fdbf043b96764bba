// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize=device-budget=5184 | FileCheck %s
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize=device-budget=5184 --plan-lower --plan-place --verify-budget --verify-plan -o /dev/null

// A residual stream and its norm, made by one kernel. The sum is kept, since the backward pass reads it; the normalized
// values are recomputed from it, and neither addend is there any more.
// CHECK-LABEL: func.func @train
// CHECK: %[[NORM:.*]]:2 = nn.kernel row
// CHECK: %[[D0:.*]] = nn.kernel loop (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK: %[[SUM:.*]] = train.remat %[[NORM]]#0 after(%[[D0]])
// CHECK: %[[AGAIN:.*]] = nn.kernel row (%[[S:.*]] = %[[SUM]]) attributes {train.recomputed}
// CHECK-NOT: nn.add
// CHECK: nn.reduce_sum %[[S]]
// CHECK: %[[D1:.*]] = nn.kernel loop (%{{.*}} = %[[D0]], %{{.*}} = %[[NORM]]#0)
// CHECK: nn.kernel loop (%{{.*}} = %[[D1]], %{{.*}} = %[[AGAIN]], %{{.*}} = %[[NORM]]#0)

func.func @train(%x: tensor<256xf32> {train.binding = #train.batch<"x">},
                 %w: tensor<256xf32> {train.binding = #train.param<"w">})
    -> (tensor<256xf32> {train.binding = #train.param<"w">}, tensor<f32> {train.binding = #train.metric<"loss">}) {
  %p = nn.kernel loop (%a = %x) : (tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.exp %a : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %q = nn.kernel loop (%a = %p) : (tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.tanh %a : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %norm:2 = nn.kernel row (%a = %p, %b = %q) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>, tensor<256xf32>) {
    %s = nn.add %a, %b : tensor<256xf32>
    %t = nn.reduce_sum %s dims = [0] : tensor<256xf32> -> tensor<f32>
    %u = nn.broadcast %t dims = [] : tensor<f32> -> tensor<256xf32>
    %v = nn.div %s, %u : tensor<256xf32>
    nn.yield %s, %v : tensor<256xf32>, tensor<256xf32>
  }
  %h = nn.kernel loop (%a = %norm#1) : (tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.exp %a : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %k = nn.kernel loop (%a = %h) : (tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.tanh %a : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %loss = nn.kernel row (%a = %k) : (tensor<256xf32>) -> (tensor<f32>) {
    %s = nn.reduce_sum %a dims = [0] : tensor<256xf32> -> tensor<f32>
    nn.yield %s : tensor<f32>
  }
  %d0 = nn.kernel loop (%a = %h, %b = %k) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.mul %a, %b : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %d1 = nn.kernel loop (%a = %d0, %b = %norm#0) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.exp %a : tensor<256xf32>
    %t = nn.mul %s, %b : tensor<256xf32>
    nn.yield %t : tensor<256xf32>
  }
  %d2 = nn.kernel loop (%a = %d1, %b = %norm#1, %c = %norm#0) : (tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.mul %a, %b : tensor<256xf32>
    %t = nn.mul %s, %c : tensor<256xf32>
    nn.yield %t : tensor<256xf32>
  }
  %new = nn.kernel loop (%a = %w, %g = %d2) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.sub %a, %g : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  return %new, %loss : tensor<256xf32>, tensor<f32>
}
