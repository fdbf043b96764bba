// For a GPU a short loop stands in the plan round by round: slices are read and rows are written where the wholes are. What
// is written over its slice, and what lies where no kernel's array may, is copied; so are all of them for a CPU and where a
// budget was promised.
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90 --no-weights --emit=plan -q -o - | FileCheck %s
// RUN: lowtide compile %s --from=fitted --target=cpu --no-weights --emit=plan -q -o - | FileCheck %s --check-prefix=LOOP
// RUN: sed -e '1i module attributes {train.device_budget = 9999999 : i64} {' -e '$a }' %s > %t.mlir
// RUN: lowtide compile %t.mlir --from=fitted --target=cuda:sm_90 --no-weights --emit=plan -q -o - | FileCheck %s --check-prefix=LOOP

// CHECK: plan.program @train
// CHECK: plan.copy @transient[0 + 512] : 3 to @io
// CHECK-NEXT: plan.launch @loop_{{[0-9]+}} reads [@io[0 + 2048] : [[X:[0-9]+]], {{.*}} writes [@transient[0 + 2048] : [[V:[0-9]+]]]
// CHECK-NEXT: plan.launch @column
// CHECK-NEXT: plan.launch @loop_{{[0-9]+}} reads [@io[2048 + 2048] : [[X]], {{.*}} writes [@transient[2048 + 2048] : [[V]]]
// CHECK-NEXT: plan.launch @column
// CHECK-NEXT: plan.launch @loop_{{[0-9]+}} reads [@io[4096 + 2048] : [[X]], {{.*}} writes [@transient[4096 + 2048] : [[V]]]
// CHECK-NEXT: plan.launch @column
// CHECK: plan.program @eval
// CHECK-NOT: plan.repeat
// CHECK: plan.copy @io[6144 + 12] : 1 to
// CHECK: plan.copy @transient[64 + 12] : {{[0-9]+}} to @transient[0 + 12] : [[W:[0-9]+]]
// CHECK-NEXT: plan.copy @io[6156 + 12] : 1 to
// CHECK: plan.copy @transient[128 + 12] : {{[0-9]+}} to @transient[12 + 12] : [[W]]

// LOOP: plan.program @train
// LOOP: plan.repeat 3
// LOOP: plan.copy @io[0 + 2048] : {{[0-9]+}} step 2048
// LOOP: plan.program @eval
// LOOP: plan.repeat 2

func.func @train(%w: tensor<128xf32> {train.binding = #train.param<"w">}, %x: tensor<12x128xf32> {train.binding = #train.batch<"x">})
    -> (tensor<128xf32> {train.binding = #train.metric<"loss">}, tensor<12x128xf32> {train.binding = #train.output<"y">}) {
  %zero = nn.kernel single () : () -> (tensor<128xf32>) {
    %s = nn.constant dense<0.0> : tensor<128xf32>
    nn.yield %s : tensor<128xf32>
  }
  %sum, %y = train.accumulate 3 slices(%part = %x) carries(%before = %zero)
      : (tensor<12x128xf32>, tensor<128xf32>) -> (tensor<128xf32>, tensor<12x128xf32>) {
    %rows = nn.kernel loop (%a = %part, %b = %w) : (tensor<4x128xf32>, tensor<128xf32>) -> (tensor<4x128xf32>) {
      %s = nn.broadcast %b dims = [1] : tensor<128xf32> -> tensor<4x128xf32>
      %p = nn.mul %a, %s : tensor<4x128xf32>
      nn.yield %p : tensor<4x128xf32>
    }
    %after = nn.kernel column (%a = %before, %b = %part) : (tensor<128xf32>, tensor<4x128xf32>) -> (tensor<128xf32>) {
      %s = nn.reduce_sum %b dims = [0] : tensor<4x128xf32> -> tensor<128xf32>
      %p = nn.add %a, %s : tensor<128xf32>
      nn.yield %p : tensor<128xf32>
    }
    train.next carries(%after : tensor<128xf32>) rows(%rows : tensor<4x128xf32>)
  }
  return %sum, %y : tensor<128xf32>, tensor<12x128xf32>
}

func.func @eval(%x: tensor<2x3xf32> {train.binding = #train.batch<"x">})
    -> (tensor<3xf32> {train.binding = #train.metric<"loss">}, tensor<2x3xf32> {train.binding = #train.output<"y">}) {
  %zero = nn.kernel single () : () -> (tensor<3xf32>) {
    %s = nn.constant dense<0.0> : tensor<3xf32>
    nn.yield %s : tensor<3xf32>
  }
  %sum, %y = train.accumulate 2 slices(%part = %x) carries(%before = %zero)
      : (tensor<2x3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<2x3xf32>) {
    %rows = nn.kernel loop (%a = %part) : (tensor<1x3xf32>) -> (tensor<1x3xf32>) {
      %p = nn.exp %a : tensor<1x3xf32>
      nn.yield %p : tensor<1x3xf32>
    }
    %after = nn.kernel column (%a = %before, %b = %rows) : (tensor<3xf32>, tensor<1x3xf32>) -> (tensor<3xf32>) {
      %s = nn.reduce_sum %b dims = [0] : tensor<1x3xf32> -> tensor<3xf32>
      %p = nn.add %a, %s : tensor<3xf32>
      nn.yield %p : tensor<3xf32>
    }
    train.next carries(%after : tensor<3xf32>) rows(%rows : tensor<1x3xf32>)
  }
  return %sum, %y : tensor<3xf32>, tensor<2x3xf32>
}
