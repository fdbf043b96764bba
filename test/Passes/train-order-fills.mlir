// RUN: split-file %s %t
// RUN: lowtide-opt %t/before.mlir --train-set-target=threads-max=1 --train-order 2>/dev/null | FileCheck %t/before.mlir
// RUN: lowtide-opt %t/before.mlir --train-set-target=threads-max=1 --train-order --plan-lower --plan-place --verify-plan 2>/dev/null | FileCheck %t/before.mlir --check-prefix=PLAN
// RUN: lowtide-opt %t/before.mlir --train-set-target=threads-max=1 --plan-lower --plan-place --verify-plan 2>/dev/null | FileCheck %t/before.mlir --check-prefix=GIVEN
// RUN: lowtide-opt %t/before.mlir --train-set-target=threads-max=1 --train-order --train-rematerialize=device-budget=8192 --plan-lower --plan-place --verify-budget --verify-plan 2>/dev/null | FileCheck %t/before.mlir --check-prefix=PLAN
// RUN: lowtide-opt %t/after.mlir --train-set-target=threads-max=1 --train-order --plan-lower --plan-place --verify-plan 2>/dev/null | FileCheck %t/after.mlir
// RUN: lowtide-opt %t/remat.mlir --train-set-target=threads-max=1 --plan-lower --plan-place --verify-plan 2>/dev/null | FileCheck %t/remat.mlir

//--- before.mlir
// Sums that replace state begin with zeros in its place, after what reads the old sums; zeros stay together.
// CHECK-LABEL: func.func @train
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<256xf32> {train.binding = #train.param<"w">}, %[[V:[a-z0-9]+]]: tensor<256xf32> {train.binding = #train.param<"v">}
// CHECK: %[[W1:.*]] = nn.kernel loop (%{{.*}} = %[[W]], %{{.*}} = %[[A:[a-z0-9]+]])
// CHECK: %[[V1:.*]] = nn.kernel loop (%{{.*}} = %[[V]], %{{.*}} = %[[B:[a-z0-9]+]])
// CHECK: %[[AZ:.*]] = nn.kernel loop () : () -> tensor<256xf32>
// CHECK: %[[BZ:.*]] = nn.kernel loop () : () -> tensor<256xf32>
// CHECK: train.accumulate 2 slices(%{{.*}} = %{{.*}}) carries(%{{.*}} = %[[AZ]], %{{.*}} = %[[BZ]])

// Two values of a round, and no bytes for zeros.
// PLAN: plan.arena @transient transient in device bytes 2048 align 64
// PLAN: plan.launch @{{.*}} reads [] writes [@state[0 + 1024]
// PLAN: plan.launch @{{.*}} reads [] writes [@state[1024 + 1024]
// PLAN-NEXT: plan.repeat 2 carries [@state[0 + 1024] : {{.*}}, @state[1024 + 1024] :
// PLAN-NOT: to @state

// As it was given, the old sums are read after that.
// GIVEN: plan.launch @{{.*}} reads [] writes [@transient
// GIVEN: plan.launch @{{.*}} reads [] writes [@transient
// GIVEN: plan.copy @transient[{{.*}} + 1024] : {{.*}} to @state[0 + 1024]
// GIVEN: plan.copy @transient[{{.*}} + 1024] : {{.*}} to @state[1024 + 1024]
// GIVEN: plan.repeat

func.func @train(%x: tensor<512xf32> {train.binding = #train.batch<"x">},
                 %w: tensor<256xf32> {train.binding = #train.param<"w">},
                 %v: tensor<256xf32> {train.binding = #train.param<"v">},
                 %sa: tensor<256xf32> {train.binding = #train.state<"a">},
                 %sb: tensor<256xf32> {train.binding = #train.state<"b">})
    -> (tensor<256xf32> {train.binding = #train.param<"w">}, tensor<256xf32> {train.binding = #train.param<"v">},
        tensor<256xf32> {train.binding = #train.state<"a">}, tensor<256xf32> {train.binding = #train.state<"b">}) {
  %az = nn.kernel loop () : () -> (tensor<256xf32>) {
    %s = nn.constant dense<0.0> : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %bz = nn.kernel loop () : () -> (tensor<256xf32>) {
    %s = nn.constant dense<0.0> : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %w1 = nn.kernel loop (%p = %w, %q = %sa) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.sub %p, %q : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %v1 = nn.kernel loop (%p = %v, %q = %sb) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.sub %p, %q : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %a, %b = train.accumulate 2 slices(%xk = %x) carries(%ak = %az, %bk = %bz)
      : (tensor<512xf32>, tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>, tensor<256xf32>) {
    %y = nn.kernel loop (%p = %xk, %q = %w1) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
      %s = nn.mul %p, %q : tensor<256xf32>
      nn.yield %s : tensor<256xf32>
    }
    %an = nn.kernel loop (%p = %y, %q = %ak) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
      %s = nn.add %p, %q : tensor<256xf32>
      nn.yield %s : tensor<256xf32>
    }
    %z = nn.kernel loop (%p = %xk, %q = %v1) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
      %s = nn.mul %p, %q : tensor<256xf32>
      nn.yield %s : tensor<256xf32>
    }
    %bn = nn.kernel loop (%p = %z, %q = %bk) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
      %s = nn.add %p, %q : tensor<256xf32>
      nn.yield %s : tensor<256xf32>
    }
    train.next carries(%an, %bn : tensor<256xf32>, tensor<256xf32>)
  }
  return %w1, %v1, %a, %b : tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>
}

//--- after.mlir
// What reads the old sum needs the new one: zeros and sum have bytes of their own until then.
// CHECK: plan.arena @transient transient in device bytes {{.*}} align 64
// CHECK: plan.launch @{{.*}} reads [] writes [@transient
// CHECK: plan.repeat 2 carries [@transient
// CHECK: plan.launch @{{.*}} reads [@state[0 + 1024] : {{.*}}, @transient
// CHECK-NEXT: plan.copy @transient[{{.*}} + 1024] : {{.*}} to @state[0 + 1024]

func.func @train(%x: tensor<512xf32> {train.binding = #train.batch<"x">},
                 %w: tensor<256xf32> {train.binding = #train.param<"w">},
                 %sa: tensor<256xf32> {train.binding = #train.state<"a">})
    -> (tensor<256xf32> {train.binding = #train.param<"w">}, tensor<256xf32> {train.binding = #train.state<"a">}) {
  %az = nn.kernel loop () : () -> (tensor<256xf32>) {
    %s = nn.constant dense<0.0> : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %a = train.accumulate 2 slices(%xk = %x) carries(%ak = %az)
      : (tensor<512xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %an = nn.kernel loop (%p = %xk, %q = %ak) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
      %s = nn.add %p, %q : tensor<256xf32>
      nn.yield %s : tensor<256xf32>
    }
    train.next carries(%an : tensor<256xf32>)
  }
  %w1 = nn.kernel loop (%r = %sa, %q = %a, %p = %w) : (tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.mul %r, %q : tensor<256xf32>
    %t = nn.sub %p, %s : tensor<256xf32>
    nn.yield %t : tensor<256xf32>
  }
  return %w1, %a : tensor<256xf32>, tensor<256xf32>
}

//--- remat.mlir
// A value that is recomputed after the zeros are there does not read them: they have no bytes of their own.
// CHECK: plan.launch @{{.*}} reads [] writes [@state[0 + 1024]
// CHECK: plan.repeat 2 carries [@state[0 + 1024]
// CHECK-NOT: to @state

func.func @train(%x: tensor<512xf32> {train.binding = #train.batch<"x">},
                 %w: tensor<256xf32> {train.binding = #train.param<"w">},
                 %sa: tensor<256xf32> {train.binding = #train.state<"a">})
    -> (tensor<256xf32> {train.binding = #train.param<"w">}, tensor<256xf32> {train.binding = #train.state<"a">}) {
  %w1 = nn.kernel loop (%p = %w, %q = %sa) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.sub %p, %q : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %az = nn.kernel loop () : () -> (tensor<256xf32>) {
    %s = nn.constant dense<0.0> : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %again = train.remat %w1 after(%az) : tensor<256xf32>, tensor<256xf32>
  %t = nn.kernel loop (%p = %again) : (tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.exp %p : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %a = train.accumulate 2 slices(%xk = %x) carries(%ak = %az)
      : (tensor<512xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %y = nn.kernel loop (%p = %xk, %q = %t, %r = %ak) : (tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
      %m = nn.mul %p, %q : tensor<256xf32>
      %s = nn.add %m, %r : tensor<256xf32>
      nn.yield %s : tensor<256xf32>
    }
    train.next carries(%y : tensor<256xf32>)
  }
  return %w1, %a : tensor<256xf32>, tensor<256xf32>
}
