// RUN: lowtide-opt %s --train-inline-saved | FileCheck %s
// RUN: lowtide-opt %s --train-inline-saved=min-gap=100 | FileCheck %s --check-prefix=FAR

// The input of the activation is made of the normalized value, which the last kernel reads: the gradient of the
// activation makes it again, and the first kernel keeps it no longer.
// CHECK-LABEL: @activation
// CHECK: %[[Y:.*]] = nn.kernel loop {{.*}} -> tensor<8x4xf32>
// CHECK: nn.kernel loop (%[[DY:.*]] = %arg2, {{.*}} = %arg0, {{.*}} = %arg1) {{.*}} {
// CHECK-NEXT: %{{.*}} = nn.broadcast
// CHECK-NEXT: %[[N:.*]] = nn.mul
// CHECK-NEXT: %{{.*}} = nn.mul %[[DY]], %[[N]]
// FAR-LABEL: @activation
// FAR: %{{.*}}:2 = nn.kernel loop {{.*}} -> (tensor<8x4xf32>, tensor<8x4xf32>)
func.func @activation(%xhat: tensor<8x4xf32>, %w: tensor<4xf32>, %dy: tensor<8x4xf32>, %m: tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %n:2 = nn.kernel loop (%a = %xhat, %b = %w) : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
    %0 = nn.broadcast %b dims = [1] : tensor<4xf32> -> tensor<8x4xf32>
    %1 = nn.mul %a, %0 : tensor<8x4xf32>
    %2 = nn.silu %1 : tensor<8x4xf32>
    nn.yield %1, %2 : tensor<8x4xf32>, tensor<8x4xf32>
  }
  %p = nn.dot %n#1, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %q = nn.dot %p, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %r = nn.dot %q, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %g = nn.kernel loop (%a = %n#0, %b = %dy) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = nn.mul %b, %a : tensor<8x4xf32>
    nn.yield %0 : tensor<8x4xf32>
  }
  %h = nn.kernel loop (%a = %g, %b = %xhat, %c = %w) : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
    %0 = nn.mul %a, %b : tensor<8x4xf32>
    %1 = nn.broadcast %c dims = [1] : tensor<4xf32> -> tensor<8x4xf32>
    %2 = nn.mul %0, %1 : tensor<8x4xf32>
    nn.yield %2 : tensor<8x4xf32>
  }
  return %r, %h : tensor<8x4xf32>, tensor<8x4xf32>
}

// Of the narrow scores and what is made of them in f32, the smaller one is kept.
// CHECK-LABEL: @narrow
// CHECK: %[[S:.*]] = nn.dot
// CHECK: nn.kernel loop (%{{.*}} = %[[S]]) {{.*}} -> tensor<8x4xbf16>
// CHECK: nn.kernel loop (%{{.*}} = %[[S]]) {{.*}} {
// CHECK-NEXT: nn.cast
// CHECK-NEXT: nn.constant
// CHECK-NEXT: nn.mul
// CHECK-NEXT: nn.exp
func.func @narrow(%x: tensor<8x4xbf16>, %m: tensor<4x4xbf16>) -> (tensor<8x4xbf16>, tensor<8x4xf32>) {
  %s = nn.dot %x, %m : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %n:2 = nn.kernel loop (%a = %s) : (tensor<8x4xbf16>) -> (tensor<8x4xf32>, tensor<8x4xbf16>) {
    %c = nn.constant dense<0.125> : tensor<8x4xf32>
    %0 = nn.cast %a : tensor<8x4xbf16> -> tensor<8x4xf32>
    %1 = nn.mul %0, %c : tensor<8x4xf32>
    %2 = nn.silu %1 : tensor<8x4xf32>
    %3 = nn.cast %2 : tensor<8x4xf32> -> tensor<8x4xbf16>
    nn.yield %1, %3 : tensor<8x4xf32>, tensor<8x4xbf16>
  }
  %p = nn.dot %n#1, %m : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %q = nn.dot %p, %m : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %r = nn.dot %q, %m : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %t = nn.dot %r, %m : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %g = nn.kernel loop (%a = %n#0) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = nn.exp %a : tensor<8x4xf32>
    nn.yield %0 : tensor<8x4xf32>
  }
  return %t, %g : tensor<8x4xbf16>, tensor<8x4xf32>
}

// A tensor whose readers can all make it is not written, though what it is made of is as large and is kept for them: a
// gradient, the norm of the unscaled one, and the update, which comes after everybody's norm.
// CHECK-LABEL: @unwritten
// CHECK: %[[F:.*]] = nn.kernel loop
// CHECK: %[[G:.*]] = nn.dot
// CHECK: nn.kernel row (%{{.*}} = %[[G]], %{{.*}} = %[[F]]) : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK: nn.kernel loop (%[[W:.*]] = %arg3, %[[RAW:.*]] = %[[G]], %[[S:.*]] = %[[F]]) {{.*}} -> tensor<8x4xf32> {
// CHECK-NEXT: %[[SPREAD:.*]] = nn.broadcast %[[S]]
// CHECK-NEXT: %[[U:.*]] = nn.mul %[[RAW]], %[[SPREAD]]
// CHECK-NEXT: nn.sub %[[W]], %[[U]]
func.func @unwritten(%x: tensor<8x4xf32>, %m: tensor<4x4xf32>, %scale: tensor<f32>, %w: tensor<8x4xf32>) -> (tensor<8xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %f = nn.kernel loop (%a = %scale) : (tensor<f32>) -> tensor<f32> {
    %0 = nn.exp %a : tensor<f32>
    nn.yield %0 : tensor<f32>
  }
  %g = nn.dot %x, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %n:2 = nn.kernel row (%a = %g, %s = %f) : (tensor<8x4xf32>, tensor<f32>) -> (tensor<8x4xf32>, tensor<8xf32>) {
    %0 = nn.broadcast %s dims = [] : tensor<f32> -> tensor<8x4xf32>
    %1 = nn.mul %a, %0 : tensor<8x4xf32>
    %2 = nn.mul %1, %1 : tensor<8x4xf32>
    %3 = nn.reduce_sum %2 dims = [1] : tensor<8x4xf32> -> tensor<8xf32>
    nn.yield %1, %3 : tensor<8x4xf32>, tensor<8xf32>
  }
  %q = nn.dot %g, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %r = nn.dot %q, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %t = nn.dot %r, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %u = nn.kernel loop (%a = %n#0, %b = %w) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = nn.sub %b, %a : tensor<8x4xf32>
    nn.yield %0 : tensor<8x4xf32>
  }
  return %n#1, %u, %t : tensor<8xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// Not where a product reads it, too, and nothing is kept in the place of what is no larger.
// CHECK-LABEL: @still_written
// CHECK: %{{.*}}:2 = nn.kernel row
// CHECK: nn.kernel loop (%{{.*}} = %{{.*}}#0, %{{.*}} = %arg3)
func.func @still_written(%x: tensor<8x4xf32>, %m: tensor<4x4xf32>, %scale: tensor<f32>, %w: tensor<8x4xf32>) -> (tensor<8xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %f = nn.kernel loop (%a = %scale) : (tensor<f32>) -> tensor<f32> {
    %0 = nn.exp %a : tensor<f32>
    nn.yield %0 : tensor<f32>
  }
  %g = nn.dot %x, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %n:2 = nn.kernel row (%a = %g, %s = %f) : (tensor<8x4xf32>, tensor<f32>) -> (tensor<8x4xf32>, tensor<8xf32>) {
    %0 = nn.broadcast %s dims = [] : tensor<f32> -> tensor<8x4xf32>
    %1 = nn.mul %a, %0 : tensor<8x4xf32>
    %2 = nn.mul %1, %1 : tensor<8x4xf32>
    %3 = nn.reduce_sum %2 dims = [1] : tensor<8x4xf32> -> tensor<8xf32>
    nn.yield %1, %3 : tensor<8x4xf32>, tensor<8xf32>
  }
  %p = nn.dot %n#0, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %q = nn.dot %g, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %r = nn.dot %q, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %t = nn.dot %r, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %u = nn.kernel loop (%a = %n#0, %b = %w) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = nn.sub %b, %a : tensor<8x4xf32>
    nn.yield %0 : tensor<8x4xf32>
  }
  return %n#1, %u, %p, %t : tensor<8xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// What is written for others anyway is kept in place of what can be made of it: the residual stream and the sums of its rows, which
// the first kernel hands out, instead of the normalized value.
// CHECK-LABEL: @residual
// CHECK: %[[R:.*]]:4 = nn.kernel row {{.*}} -> (tensor<8x512xf32>, tensor<8xf32>, tensor<8x512xbf16>, tensor<8xf32>)
// CHECK: nn.kernel loop (%{{.*}} = %arg3, {{.*}}%[[R]]#1{{.*}}) {{.*}} -> tensor<8x512xf32> {
// CHECK: nn.sub
// CHECK: nn.mul
// CHECK: nn.mul
func.func @residual(%x: tensor<8x512xf32>, %p: tensor<8x512xbf16>, %m: tensor<512x512xbf16>, %dy: tensor<8x512xf32>)
    -> (tensor<8x512xf32>, tensor<8x512xbf16>, tensor<8x512xf32>) {
  %n:4 = nn.kernel row (%a = %x, %b = %p) : (tensor<8x512xf32>, tensor<8x512xbf16>)
      -> (tensor<8x512xf32>, tensor<8xf32>, tensor<8x512xf32>, tensor<8x512xbf16>) {
    %c = nn.cast %b : tensor<8x512xbf16> -> tensor<8x512xf32>
    %r = nn.add %a, %c : tensor<8x512xf32>
    %s = nn.reduce_sum %r dims = [1] : tensor<8x512xf32> -> tensor<8xf32>
    %sb = nn.broadcast %s dims = [0] : tensor<8xf32> -> tensor<8x512xf32>
    %d = nn.sub %r, %sb : tensor<8x512xf32>
    %q = nn.mul %d, %d : tensor<8x512xf32>
    %v = nn.reduce_sum %q dims = [1] : tensor<8x512xf32> -> tensor<8xf32>
    %i = nn.rsqrt %v : tensor<8xf32>
    %ib = nn.broadcast %i dims = [0] : tensor<8xf32> -> tensor<8x512xf32>
    %h = nn.mul %d, %ib : tensor<8x512xf32>
    %y = nn.cast %h : tensor<8x512xf32> -> tensor<8x512xbf16>
    nn.yield %r, %i, %h, %y : tensor<8x512xf32>, tensor<8xf32>, tensor<8x512xf32>, tensor<8x512xbf16>
  }
  %f = nn.dot %n#3, %m : (tensor<8x512xbf16>, tensor<512x512xbf16>) -> tensor<8x512xbf16>
  %g = nn.dot %f, %m : (tensor<8x512xbf16>, tensor<512x512xbf16>) -> tensor<8x512xbf16>
  %k = nn.dot %g, %m : (tensor<8x512xbf16>, tensor<512x512xbf16>) -> tensor<8x512xbf16>
  %next = nn.kernel loop (%a = %n#0, %b = %f) : (tensor<8x512xf32>, tensor<8x512xbf16>) -> tensor<8x512xf32> {
    %c = nn.cast %b : tensor<8x512xbf16> -> tensor<8x512xf32>
    %r = nn.add %a, %c : tensor<8x512xf32>
    nn.yield %r : tensor<8x512xf32>
  }
  %l = nn.dot %k, %m : (tensor<8x512xbf16>, tensor<512x512xbf16>) -> tensor<8x512xbf16>
  %back = nn.kernel loop (%a = %dy, %b = %n#2, %c = %n#1) : (tensor<8x512xf32>, tensor<8x512xf32>, tensor<8xf32>) -> tensor<8x512xf32> {
    %ib = nn.broadcast %c dims = [0] : tensor<8xf32> -> tensor<8x512xf32>
    %t = nn.mul %a, %b : tensor<8x512xf32>
    %u = nn.mul %t, %ib : tensor<8x512xf32>
    nn.yield %u : tensor<8x512xf32>
  }
  return %next, %l, %back : tensor<8x512xf32>, tensor<8x512xbf16>, tensor<8x512xf32>
}
