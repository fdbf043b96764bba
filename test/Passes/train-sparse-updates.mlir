// Tables are updated in the rows that a batch names; where the gradient stays whole, a remark says why.
// RUN: lowtide-opt %s --split-input-file --train-sparse-updates 2>/dev/null | FileCheck %s
// RUN: lowtide-opt %s --split-input-file --train-sparse-updates -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAID
// RUN: lowtide-opt %s --split-input-file --train-sparse-updates=sparse-updates=lazy -o /dev/null 2>&1 | FileCheck %s --check-prefix=LAZY
// RUN: lowtide-opt %s --split-input-file --train-sparse-updates=sparse-updates=off 2>/dev/null | FileCheck %s --check-prefix=OFF
// OFF-NOT: nn.scatter {{set|min}}

// SAID: remark: @train: table is updated in the 8 of 9000 rows that a batch names
// CHECK-LABEL: func.func @train(
// CHECK: %[[AT:.*]] = nn.reshape %arg0 : tensor<4x2xi64> -> tensor<8xi64>
// CHECK: %[[OWNER:.*]] = nn.scatter min %{{.*}} into %{{.*}}[%[[AT]]] axis = 0 : (tensor<9000xi32>, tensor<8xi64>, tensor<8xi32>)
// CHECK: %[[FOUND:.*]] = nn.gather %[[OWNER]][%[[AT]]]
// CHECK: %[[FIRST:.*]] = nn.select %{{.*}}, %[[FOUND]]
// CHECK: %[[ROWS:.*]] = nn.gather %arg1[%[[AT]]]
// CHECK: %[[SUMS:.*]] = nn.scatter_add[%[[FIRST]]] {{.*}} -> tensor<8x2xf32>
// CHECK: %[[GRADS:.*]] = nn.gather %[[SUMS]][%[[FIRST]]]
// CHECK: %[[NEW:.*]] = train.sgd %[[ROWS]] gradient %[[GRADS]] {{.*}}rows{{.*}} : tensor<8x2xf32>
// CHECK: %[[TABLE:.*]] = nn.scatter set %[[NEW]] into %arg1[%[[AT]]]
// CHECK: return %[[TABLE]]
// LAZY: remark: @train: table is updated in the 8 of 9000 rows
func.func @train(%ids: tensor<4x2xi64> {train.binding = #train.batch<"ids", dim = 0>},
    %table: tensor<9000x2xf32> {train.binding = #train.param<"table">},
    %dy: tensor<4x2x2xf32> {train.binding = #train.batch<"dy", dim = 0>}, %lr: tensor<f32> {train.binding = #train.scalar<"lr">},
    %step: tensor<i64> {train.binding = #train.scalar<"step">})
    -> (tensor<9000x2xf32> {train.binding = #train.param<"table">}) {
  %g = nn.scatter_add[%ids] %dy axis = 0 : (tensor<4x2xi64>, tensor<4x2x2xf32>) -> tensor<9000x2xf32>
  %new = train.sgd %table gradient %g lr %lr step %step {lr_scale = 1.0, weight_decay = 0.0} : tensor<9000x2xf32>, tensor<f32>, tensor<i64>
  return %new : tensor<9000x2xf32>
}

// -----

// Two lookups, one of them in 16 bits: the sums are widened and added as the whole ones were.
// SAID: remark: @train: table is updated in the 10 of 9000 rows that a batch names
// CHECK-LABEL: func.func @train(
// CHECK: %[[A:.*]] = nn.scatter_add{{.*}} -> tensor<10x2xf32>
// CHECK: %[[B:.*]] = nn.scatter_add{{.*}} -> tensor<10x2xbf16>
// CHECK: %[[WIDE:.*]] = nn.cast %[[B]] : tensor<10x2xbf16> -> tensor<10x2xf32>
// CHECK: %[[SUM:.*]] = nn.add %[[A]], %[[WIDE]] : tensor<10x2xf32>
// CHECK: %[[GRADS:.*]] = nn.gather %[[SUM]]
// CHECK: train.adagrad {{.*}} gradient %[[GRADS]] {{.*}} : tensor<10x2xf32>
// CHECK-COUNT-2: nn.scatter set
func.func @train(%i: tensor<4xi64> {train.binding = #train.batch<"i", dim = 0>}, %j: tensor<6xi32> {train.binding = #train.batch<"j", dim = 0>},
    %table: tensor<9000x2xf32> {train.binding = #train.param<"table">}, %sum: tensor<9000x2xf32> {train.binding = #train.state<"table.sum">},
    %u: tensor<4x2xf32> {train.binding = #train.batch<"u", dim = 0>}, %v: tensor<6x2xbf16> {train.binding = #train.batch<"v", dim = 0>},
    %lr: tensor<f32> {train.binding = #train.scalar<"lr">}, %step: tensor<i64> {train.binding = #train.scalar<"step">})
    -> (tensor<9000x2xf32> {train.binding = #train.param<"table">}, tensor<9000x2xf32> {train.binding = #train.state<"table.sum">}) {
  %a = nn.scatter_add[%i] %u axis = 0 : (tensor<4xi64>, tensor<4x2xf32>) -> tensor<9000x2xf32>
  %b = nn.scatter_add[%j] %v axis = 0 : (tensor<6xi32>, tensor<6x2xbf16>) -> tensor<9000x2xbf16>
  %wide = nn.cast %b : tensor<9000x2xbf16> -> tensor<9000x2xf32>
  %g = nn.add %a, %wide : tensor<9000x2xf32>
  %new, %state = train.adagrad %table gradient %g lr %lr step %step state %sum {lr_scale = 1.0, lr_decay = 0.0, initial_accumulator_value = 0.0, eps = 1.0e-10, weight_decay = 0.0} : tensor<9000x2xf32>, tensor<f32>, tensor<i64>
  return %new, %state : tensor<9000x2xf32>, tensor<9000x2xf32>
}

// -----

// SAID: remark: @train: a keeps its gradient of 70.31 KiB whole: momentum changes every row; --sparse-updates=lazy updates those alone that a batch names
// SAID: remark: @train: b keeps its gradient of 70.31 KiB whole: weight decay changes every row
// SAID: remark: @train: c keeps its gradient of 70.31 KiB whole: the table is also read as a whole
// SAID: remark: @train: d keeps its gradient of 70.31 KiB whole: clipping or loss scaling reads it as a whole
// CHECK-NOT: nn.scatter set
// LAZY: remark: @train: a is updated in the 4 of 9000 rows that a batch names
// LAZY: warning: @train: b keeps its gradient of 70.31 KiB whole: weight decay changes every row
func.func @train(%i: tensor<4xi64> {train.binding = #train.batch<"i", dim = 0>}, %u: tensor<4x2xf32> {train.binding = #train.batch<"u", dim = 0>},
    %a: tensor<9000x2xf32> {train.binding = #train.param<"a">}, %m: tensor<9000x2xf32> {train.binding = #train.state<"a.momentum_buffer">},
    %b: tensor<9000x2xf32> {train.binding = #train.param<"b">}, %c: tensor<9000x2xf32> {train.binding = #train.param<"c">},
    %d: tensor<9000x2xf32> {train.binding = #train.param<"d">}, %x: tensor<9000x3xf32> {train.binding = #train.batch<"x">}, %w: tensor<3x2xf32> {train.binding = #train.param<"w">},
    %lr: tensor<f32> {train.binding = #train.scalar<"lr">}, %step: tensor<i64> {train.binding = #train.scalar<"step">})
    -> (tensor<9000x2xf32> {train.binding = #train.param<"a">}, tensor<9000x2xf32> {train.binding = #train.state<"a.momentum_buffer">},
        tensor<9000x2xf32> {train.binding = #train.param<"b">}, tensor<9000x2xf32> {train.binding = #train.param<"c">}, tensor<9000x2xf32> {train.binding = #train.param<"d">}) {
  %g = nn.scatter_add[%i] %u axis = 0 : (tensor<4xi64>, tensor<4x2xf32>) -> tensor<9000x2xf32>
  %na, %nm = train.momentum %a gradient %g lr %lr step %step state %m {lr_scale = 1.0, momentum = 0.9, dampening = 0.0, nesterov = 0.0, weight_decay = 0.0} : tensor<9000x2xf32>, tensor<f32>, tensor<i64>
  %h = nn.scatter_add[%i] %u axis = 0 : (tensor<4xi64>, tensor<4x2xf32>) -> tensor<9000x2xf32>
  %nb = train.sgd %b gradient %h lr %lr step %step {lr_scale = 1.0, weight_decay = 0.1} : tensor<9000x2xf32>, tensor<f32>, tensor<i64>
  %k = nn.scatter_add[%i] %u axis = 0 : (tensor<4xi64>, tensor<4x2xf32>) -> tensor<9000x2xf32>
  %whole = nn.dot %x, %w : (tensor<9000x3xf32>, tensor<3x2xf32>) -> tensor<9000x2xf32>
  %tied = nn.add %k, %whole : tensor<9000x2xf32>
  %nc = train.sgd %c gradient %tied lr %lr step %step {lr_scale = 1.0, weight_decay = 0.0} : tensor<9000x2xf32>, tensor<f32>, tensor<i64>
  %l = nn.scatter_add[%i] %u axis = 0 : (tensor<4xi64>, tensor<4x2xf32>) -> tensor<9000x2xf32>
  %norm = train.global_norm %l : (tensor<9000x2xf32>) -> tensor<f32>
  %clipped = train.clip_norm %l norm %norm {max_norm = 1.0 : f64} : (tensor<9000x2xf32>, tensor<f32>) -> tensor<9000x2xf32>
  %nd = train.sgd %d gradient %clipped lr %lr step %step {lr_scale = 1.0, weight_decay = 0.0} : tensor<9000x2xf32>, tensor<f32>, tensor<i64>
  return %na, %nm, %nb, %nc, %nd : tensor<9000x2xf32>, tensor<9000x2xf32>, tensor<9000x2xf32>, tensor<9000x2xf32>, tensor<9000x2xf32>
}

// -----

// Without eps, a row that never had a gradient becomes NaN; a table of one column is as large as the numbers of its rows.
// SAID: remark: @train: a keeps its gradient of 70.31 KiB whole: adagrad changes every row
// SAID: remark: @train: b keeps its gradient of 70.31 KiB whole: rows for 4 places of a batch would take 70.38 KiB
// CHECK-LABEL: func.func @train(
// CHECK-NOT: nn.scatter set
func.func @train(%i: tensor<4xi64> {train.binding = #train.batch<"i", dim = 0>}, %u: tensor<4x2xf32> {train.binding = #train.batch<"u", dim = 0>},
    %v: tensor<4x1xf32> {train.binding = #train.batch<"v", dim = 0>}, %a: tensor<9000x2xf32> {train.binding = #train.param<"a">},
    %s: tensor<9000x2xf32> {train.binding = #train.state<"a.sum">}, %b: tensor<18000x1xf32> {train.binding = #train.param<"b">},
    %lr: tensor<f32> {train.binding = #train.scalar<"lr">}, %step: tensor<i64> {train.binding = #train.scalar<"step">})
    -> (tensor<9000x2xf32> {train.binding = #train.param<"a">}, tensor<9000x2xf32> {train.binding = #train.state<"a.sum">},
        tensor<18000x1xf32> {train.binding = #train.param<"b">}) {
  %g = nn.scatter_add[%i] %u axis = 0 : (tensor<4xi64>, tensor<4x2xf32>) -> tensor<9000x2xf32>
  %na, %ns = train.adagrad %a gradient %g lr %lr step %step state %s {lr_scale = 1.0, lr_decay = 0.0, initial_accumulator_value = 0.0, eps = 0.0, weight_decay = 0.0} : tensor<9000x2xf32>, tensor<f32>, tensor<i64>
  %h = nn.scatter_add[%i] %v axis = 0 : (tensor<4xi64>, tensor<4x1xf32>) -> tensor<18000x1xf32>
  %nb = train.sgd %b gradient %h lr %lr step %step {lr_scale = 1.0, weight_decay = 0.0} : tensor<18000x1xf32>, tensor<f32>, tensor<i64>
  return %na, %ns, %nb : tensor<9000x2xf32>, tensor<9000x2xf32>, tensor<18000x1xf32>
}
