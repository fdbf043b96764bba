// Second launches of sums wait for one another, until somebody reads one of them, and become one launch: those of sums over
// columns that update parameters, and of whole sums. The bits stay the CPU's, over several steps.
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90 --no-weights --emit=plan -q -o - | FileCheck %s
// RUN: lowtide compile %s --from=fitted --target=cuda-emulated --no-weights -q -o %t.cuda.tide
// RUN: lowtide compile %s --from=fitted --target=cpu --no-weights -q -o %t.cpu.tide
// RUN: lowtide-run %t.cuda.tide --data=synthetic:3 --init=random:5 --steps=3 --dump-outputs=%t.cuda.npz
// RUN: lowtide-run %t.cpu.tide --data=synthetic:3 --init=random:5 --steps=3 --dump-outputs=%t.cpu.npz
// RUN: cmp %t.cuda.npz %t.cpu.npz

// CHECK-DAG: plan.kernel @[[ALL:batch_[0-9]+]] reads 6 writes 3 {{.*}}"3 {{.*}} cross
// CHECK-DAG: plan.kernel @[[BOTH:batch_[0-9]+]] reads 2 writes 2 {{.*}}"2 {{.*}} row
// CHECK: plan.program @train
// CHECK: plan.launch @[[SEGMENTS:row_[0-9]+]] reads
// CHECK-NEXT: plan.launch @[[SEGMENTS]] reads
// CHECK-NEXT: plan.launch @[[BOTH]] reads
// CHECK-NEXT: plan.launch @loop
// CHECK-COUNT-3: plan.launch @cross
// CHECK-NOT: plan.launch @column
// CHECK: plan.launch @[[ALL]] reads {{.*}} writes [@params{{[^,]*}}, @params{{[^,]*}}, @params{{[^,]*}}]

func.func @train(%g0: tensor<96xf32> {train.binding = #train.param<"g0">}, %g1: tensor<96xf32> {train.binding = #train.param<"g1">},
                 %g2: tensor<96xf32> {train.binding = #train.param<"g2">},
                 %dy: tensor<2048x96xf32> {train.binding = #train.batch<"dy">},
                 %x: tensor<2048x96xf32> {train.binding = #train.batch<"x">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<2048x96xf32> {train.binding = #train.output<"dx">}, tensor<96xf32> {train.binding = #train.param<"g0">},
        tensor<96xf32> {train.binding = #train.param<"g1">}, tensor<96xf32> {train.binding = #train.param<"g2">}) {
  %s0 = nn.kernel row (%a = %dy) : (tensor<2048x96xf32>) -> (tensor<f32>) {
    %q = nn.mul %a, %a : tensor<2048x96xf32>
    %s = nn.reduce_sum %q dims = [0, 1] : tensor<2048x96xf32> -> tensor<f32>
    nn.yield %s : tensor<f32>
  }
  %s1 = nn.kernel row (%a = %x) : (tensor<2048x96xf32>) -> (tensor<f32>) {
    %q = nn.mul %a, %a : tensor<2048x96xf32>
    %s = nn.reduce_sum %q dims = [0, 1] : tensor<2048x96xf32> -> tensor<f32>
    nn.yield %s : tensor<f32>
  }
  %l = nn.kernel loop (%a = %s0, %b = %s1) : (tensor<f32>, tensor<f32>) -> (tensor<f32>) {
    %s = nn.sub %a, %b : tensor<f32>
    nn.yield %s : tensor<f32>
  }
  %d0 = nn.kernel row (%w = %g0, %d = %dy) : (tensor<96xf32>, tensor<2048x96xf32>) -> (tensor<2048x96xf32>) {
    %ww = nn.broadcast %w dims = [1] : tensor<96xf32> -> tensor<2048x96xf32>
    %p = nn.mul %d, %ww : tensor<2048x96xf32>
    %s = nn.reduce_max %p dims = [1] : tensor<2048x96xf32> -> tensor<2048xf32>
    %sb = nn.broadcast %s dims = [0] : tensor<2048xf32> -> tensor<2048x96xf32>
    %q = nn.sub %p, %sb : tensor<2048x96xf32>
    nn.yield %q : tensor<2048x96xf32>
  }
  %n0 = nn.kernel column (%w = %g0, %d = %dy, %a = %x) : (tensor<96xf32>, tensor<2048x96xf32>, tensor<2048x96xf32>) -> (tensor<96xf32>) {
    %rate = nn.constant dense<1.0e-3> : tensor<96xf32>
    %m = nn.mul %d, %a : tensor<2048x96xf32>
    %s = nn.reduce_sum %m dims = [0] : tensor<2048x96xf32> -> tensor<96xf32>
    %t = nn.mul %s, %rate : tensor<96xf32>
    %n = nn.sub %w, %t : tensor<96xf32>
    nn.yield %n : tensor<96xf32>
  }
  %d1 = nn.kernel row (%w = %g1, %d = %d0) : (tensor<96xf32>, tensor<2048x96xf32>) -> (tensor<2048x96xf32>) {
    %ww = nn.broadcast %w dims = [1] : tensor<96xf32> -> tensor<2048x96xf32>
    %p = nn.mul %d, %ww : tensor<2048x96xf32>
    %s = nn.reduce_max %p dims = [1] : tensor<2048x96xf32> -> tensor<2048xf32>
    %sb = nn.broadcast %s dims = [0] : tensor<2048xf32> -> tensor<2048x96xf32>
    %q = nn.sub %p, %sb : tensor<2048x96xf32>
    nn.yield %q : tensor<2048x96xf32>
  }
  %n1 = nn.kernel column (%w = %g1, %d = %d0, %a = %x) : (tensor<96xf32>, tensor<2048x96xf32>, tensor<2048x96xf32>) -> (tensor<96xf32>) {
    %rate = nn.constant dense<1.0e-3> : tensor<96xf32>
    %m = nn.mul %d, %a : tensor<2048x96xf32>
    %s = nn.reduce_sum %m dims = [0] : tensor<2048x96xf32> -> tensor<96xf32>
    %t = nn.mul %s, %rate : tensor<96xf32>
    %n = nn.sub %w, %t : tensor<96xf32>
    nn.yield %n : tensor<96xf32>
  }
  %d2 = nn.kernel row (%w = %g2, %d = %d1) : (tensor<96xf32>, tensor<2048x96xf32>) -> (tensor<2048x96xf32>) {
    %ww = nn.broadcast %w dims = [1] : tensor<96xf32> -> tensor<2048x96xf32>
    %p = nn.mul %d, %ww : tensor<2048x96xf32>
    %s = nn.reduce_max %p dims = [1] : tensor<2048x96xf32> -> tensor<2048xf32>
    %sb = nn.broadcast %s dims = [0] : tensor<2048xf32> -> tensor<2048x96xf32>
    %q = nn.sub %p, %sb : tensor<2048x96xf32>
    nn.yield %q : tensor<2048x96xf32>
  }
  %n2 = nn.kernel column (%w = %g2, %d = %d1, %a = %x) : (tensor<96xf32>, tensor<2048x96xf32>, tensor<2048x96xf32>) -> (tensor<96xf32>) {
    %rate = nn.constant dense<1.0e-3> : tensor<96xf32>
    %m = nn.mul %d, %a : tensor<2048x96xf32>
    %s = nn.reduce_sum %m dims = [0] : tensor<2048x96xf32> -> tensor<96xf32>
    %t = nn.mul %s, %rate : tensor<96xf32>
    %n = nn.sub %w, %t : tensor<96xf32>
    nn.yield %n : tensor<96xf32>
  }
  return %l, %d2, %n0, %n1, %n2 : tensor<f32>, tensor<2048x96xf32>, tensor<96xf32>, tensor<96xf32>, tensor<96xf32>
}
