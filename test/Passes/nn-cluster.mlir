// RUN: lowtide-opt %s --nn-cluster | FileCheck %s
// RUN: lowtide-opt %s --nn-cluster=fuse=false | FileCheck %s --check-prefix=NONE
// RUN: lowtide-opt %s --nn-cluster -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: not lowtide-opt %s --nn-cluster=fuse=some 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: error: fuse: must be true or false, not 'some'

// CHECK-LABEL: @softmax
// CHECK: nn.kernel row (%{{.*}} = %arg0)
// CHECK-NOT: nn.kernel
// REMARK: remark: @softmax: 7 ops in 1 kernels, 0 library calls
// NONE-LABEL: @softmax
// NONE-COUNT-7: nn.kernel single
func.func @softmax(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %m = nn.reduce_max %x dims = [1] : tensor<8x64xf32> -> tensor<8xf32>
  %mb = nn.broadcast %m dims = [0] : tensor<8xf32> -> tensor<8x64xf32>
  %d = nn.sub %x, %mb : tensor<8x64xf32>
  %e = nn.exp %d : tensor<8x64xf32>
  %s = nn.reduce_sum %e dims = [1] : tensor<8x64xf32> -> tensor<8xf32>
  %sb = nn.broadcast %s dims = [0] : tensor<8xf32> -> tensor<8x64xf32>
  %y = nn.div %e, %sb : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// A library call stays outside; what it reads and what reads it are two kernels: joined they would be a cycle.
// REMARK: remark: @around_a_call: 2 ops in 2 kernels, 1 library calls
// CHECK-LABEL: @around_a_call
// CHECK: %[[A:.*]] = nn.kernel loop
// CHECK: %[[D:.*]] = nn.dot %[[A]]
// CHECK: nn.kernel loop (%{{.*}} = %[[D]], %{{.*}} = %[[A]])
func.func @around_a_call(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = nn.relu %x : tensor<8x8xf32>
  %d = nn.dot %a, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = nn.add %d, %a : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// Two sums of one value over the same dimensions are one traversal; the value itself is another result.
// CHECK-LABEL: @sums
// CHECK: nn.kernel column {{.*}} -> (tensor<64xf32>, tensor<64xf32>)
// CHECK-NOT: nn.kernel
func.func @sums(%x: tensor<128x64xf32>, %z: tensor<128x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %p = nn.mul %x, %z : tensor<128x64xf32>
  %a = nn.reduce_sum %p dims = [0] : tensor<128x64xf32> -> tensor<64xf32>
  %b = nn.reduce_sum %x dims = [0] : tensor<128x64xf32> -> tensor<64xf32>
  return %a, %b : tensor<64xf32>, tensor<64xf32>
}

// A broadcast is cloned into each reader and never stored.
// CHECK-LABEL: @bias
// CHECK: nn.kernel loop {{.*}} : (tensor<8xf32>, tensor<8x8xf32>)
// CHECK-NOT: nn.kernel
func.func @bias(%x: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<8x8xf32> {
  %bb = nn.broadcast %b dims = [1] : tensor<8xf32> -> tensor<8x8xf32>
  %s = nn.add %x, %bb : tensor<8x8xf32>
  %y = nn.mul %s, %bb : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// Views stay outside.
// CHECK-LABEL: @view
// CHECK: nn.kernel
// CHECK: nn.reshape
func.func @view(%x: tensor<4x4xf32>) -> tensor<16xf32> {
  %a = nn.neg %x : tensor<4x4xf32>
  %y = nn.reshape %a : tensor<4x4xf32> -> tensor<16xf32>
  return %y : tensor<16xf32>
}

// The gradient's own exponentials stay out of the forward kernel: its operand in 16 bits is all that they need to be kept,
// and their row of logarithms is less than what it is made of.
// CHECK-LABEL: @backward
// CHECK: %[[S:.*]] = nn.dot %arg0, %arg2
// CHECK: %[[P:.*]]:2 = nn.kernel row (%{{.*}} = %[[S]]) {{.*}} -> (tensor<8x64xf32>, tensor<8xf32>)
// CHECK: nn.dot %[[P]]#0
// CHECK: nn.kernel row {{.*}} -> tensor<f32>
// CHECK: nn.kernel loop (%{{.*}} = %[[P]]#1, %{{.*}} = %[[S]], {{.*}} -> (tensor<8x64xf32>, tensor<8x64xf32>)
// CHECK: nn.exp
func.func @backward(%x: tensor<8x64xbf16>, %w: tensor<64x64xf32>, %k: tensor<64x64xbf16>)
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<64x64xf32>) {
  %one = nn.constant dense<1.0> : tensor<8x64xf32>
  %zero = nn.constant dense<0.0> : tensor<8x64xf32>
  %narrow = nn.dot %x, %k : (tensor<8x64xbf16>, tensor<64x64xbf16>) -> tensor<8x64xbf16>
  %scores = nn.cast %narrow : tensor<8x64xbf16> -> tensor<8x64xf32>
  %m = nn.reduce_max %scores dims = [1] : tensor<8x64xf32> -> tensor<8xf32>
  %mb = nn.broadcast %m dims = [0] : tensor<8xf32> -> tensor<8x64xf32>
  %d = nn.sub %scores, %mb : tensor<8x64xf32>
  %e = nn.exp %d : tensor<8x64xf32>
  %s = nn.reduce_sum %e dims = [1] : tensor<8x64xf32> -> tensor<8xf32>
  %sb = nn.broadcast %s dims = [0] : tensor<8xf32> -> tensor<8x64xf32>
  %p = nn.div %e, %sb : tensor<8x64xf32>
  %o = nn.dot %p, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %r = nn.relu %o : tensor<8x64xf32>
  %q = nn.dot %r, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %loss = nn.reduce_sum %q dims = [0, 1] : tensor<8x64xf32> -> tensor<f32>
  %dr = nn.dot %one, %w {transpose_b} : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %sign = nn.compare gt %o, %zero : tensor<8x64xf32> -> tensor<8x64xi1>
  %l = nn.log %s : tensor<8xf32>
  %lse = nn.add %m, %l : tensor<8xf32>
  %lb = nn.broadcast %lse dims = [0] : tensor<8xf32> -> tensor<8x64xf32>
  %c = nn.sub %scores, %lb : tensor<8x64xf32>
  %again = nn.exp %c : tensor<8x64xf32>
  %do = nn.select %sign, %dr, %zero : tensor<8x64xi1>, tensor<8x64xf32>
  %dp = nn.dot %do, %w {transpose_b} : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %dw = nn.dot %again, %do {transpose_a} : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
  %ds = nn.mul %again, %dp : tensor<8x64xf32>
  %dv = nn.dot %ds, %do {transpose_a} : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
  %sum = nn.add %dw, %dv : tensor<64x64xf32>
  return %loss, %sum : tensor<f32>, tensor<64x64xf32>
}

// A mask of the batch is not kept for the backward pass, which makes it again.
// CHECK-LABEL: @mask
// CHECK: nn.kernel loop {{.*}} -> tensor<8x64xf32> {
// CHECK: nn.dot
// CHECK: %[[G:.*]] = nn.dot
// CHECK: nn.kernel loop ({{.*}} = %arg1, {{.*}} = %[[G]]) {{.*}} {
// CHECK: nn.compare
func.func @mask(%x: tensor<8x64xf32>, %t: tensor<8x64xi64> {train.binding = #train.batch<"t">}, %w: tensor<64x64xf32>)
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8x64xf32>) {
  %zero = nn.constant dense<0> : tensor<8x64xi64>
  %c = nn.compare gt %t, %zero : tensor<8x64xi64> -> tensor<8x64xi1>
  %m = nn.cast %c : tensor<8x64xi1> -> tensor<8x64xf32>
  %y = nn.mul %x, %m : tensor<8x64xf32>
  %o = nn.dot %y, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %l = nn.reduce_sum %o dims = [0, 1] : tensor<8x64xf32> -> tensor<f32>
  %g = nn.dot %o, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %h = nn.mul %g, %m : tensor<8x64xf32>
  return %l, %h : tensor<f32>, tensor<8x64xf32>
}

// An update stands before a product that still reads the old weight, as library forms leave it: it moves down, so that it
// may be written in place.
// CHECK-LABEL: @late_reader
// CHECK: nn.dot %{{.*}}, %arg1
// CHECK: nn.kernel loop
// CHECK-NEXT: nn.sub
func.func @late_reader(%x: tensor<4x4xf32> {train.binding = #train.batch<"x">}, %w: tensor<4x4xf32> {train.binding = #train.param<"w">})
    -> (tensor<4x4xf32> {train.binding = #train.output<"y">}, tensor<4x4xf32> {train.binding = #train.param<"w">}) {
  %new = nn.sub %w, %x : tensor<4x4xf32>
  %y = nn.dot %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y, %new : tensor<4x4xf32>, tensor<4x4xf32>
}

// Scales of a tile: part of an argument, or of a view of it, that elements read over and over. It is read in place.
// CHECK-LABEL: @scaled_tile
// CHECK: nn.kernel loop (%{{.*}} = %arg0, %{{.*}} = %{{.*}}) : (tensor<4x2x64xi8>, tensor<4x2xf32>) -> tensor<4x1x64xf32>
// CHECK: nn.slice %{{.*}} : tensor<4x2xf32> -> tensor<4x1xf32>
// CHECK-NOT: nn.kernel
// CHECK: return
func.func @scaled_tile(%codes: tensor<4x2x64xi8>, %scales: tensor<8xf32>) -> tensor<4x1x64xf32> {
  %c = nn.slice %codes starts = [0, 1, 0] strides = [1, 1, 1] : tensor<4x2x64xi8> -> tensor<4x1x64xi8>
  %n = nn.cast %c : tensor<4x1x64xi8> -> tensor<4x1x64xf32>
  %r = nn.reshape %scales : tensor<8xf32> -> tensor<4x2xf32>
  %s = nn.slice %r starts = [0, 1] strides = [1, 1] : tensor<4x2xf32> -> tensor<4x1xf32>
  %b = nn.broadcast %s dims = [0, 1] : tensor<4x1xf32> -> tensor<4x1x64xf32>
  %y = nn.mul %n, %b : tensor<4x1x64xf32>
  return %y : tensor<4x1x64xf32>
}

// What has to be in memory all the same is read from there: a part of a result, and one that something else reads too.
// CHECK-LABEL: @other_cuts
// CHECK: nn.kernel loop {{.*}} -> tensor<4xf32>
// CHECK: nn.kernel loop {{.*}} -> tensor<4xf32>
// CHECK: nn.kernel loop {{.*}} -> tensor<4x64xf32>
func.func @other_cuts(%x: tensor<8xf32>, %scales: tensor<8xf32>) -> (tensor<8xf32>, tensor<4xf32>, tensor<4x64xf32>) {
  %z = nn.relu %x : tensor<8xf32>
  %p = nn.slice %z starts = [4] strides = [1] : tensor<8xf32> -> tensor<4xf32>
  %s = nn.slice %scales starts = [4] strides = [1] : tensor<8xf32> -> tensor<4xf32>
  %pb = nn.broadcast %p dims = [0] : tensor<4xf32> -> tensor<4x64xf32>
  %sb = nn.broadcast %s dims = [0] : tensor<4xf32> -> tensor<4x64xf32>
  %y = nn.mul %pb, %sb : tensor<4x64xf32>
  return %z, %s, %y : tensor<8xf32>, tensor<4xf32>, tensor<4x64xf32>
}

// What is made of constants alone has no elements in memory: it goes where it is read, whatever its shape.
// CHECK-LABEL: @constants_of_another_shape
// CHECK: nn.kernel row
// CHECK: nn.iota
// CHECK: nn.slice
// CHECK: nn.reduce_sum
// CHECK-NOT: nn.kernel
// CHECK: return
func.func @constants_of_another_shape(%x: tensor<8x64xf32>) -> tensor<8xf32> {
  %i = nn.iota dim = 1 : tensor<8x80xf32>
  %p = nn.slice %i starts = [0, 16] strides = [1, 1] : tensor<8x80xf32> -> tensor<8x64xf32>
  %m = nn.mul %x, %p : tensor<8x64xf32>
  %s = nn.reduce_sum %m dims = [1] : tensor<8x64xf32> -> tensor<8xf32>
  return %s : tensor<8xf32>
}

// Of many values that cheap ops make of few, few are picked: they are computed where they are picked, as well as where
// all are read, and never stored.
// CHECK-LABEL: @picked
// CHECK: nn.kernel loop
// CHECK: nn.gather %
// CHECK: nn.mul
// CHECK: nn.gather_elements
// CHECK-NEXT: nn.yield
// CHECK: nn.kernel column {{.*}} -> tensor<2x64xf32> {
// CHECK-NOT: nn.kernel
// CHECK: return
func.func @picked(%x: tensor<2x8x4xf32>, %labels: tensor<2x1x64xi64>, %w: tensor<64xf32>, %from: tensor<64xi64>) -> (tensor<2x1x64xf32>, tensor<2x64xf32>) {
  %read = nn.gather %x[%from] axis = 2 : (tensor<2x8x4xf32>, tensor<64xi64>) -> tensor<2x8x64xf32>
  %spread = nn.broadcast %w dims = [2] : tensor<64xf32> -> tensor<2x8x64xf32>
  %made = nn.mul %read, %spread : tensor<2x8x64xf32>
  %pick = nn.gather_elements %made[%labels] axis = 1 : (tensor<2x8x64xf32>, tensor<2x1x64xi64>) -> tensor<2x1x64xf32>
  %most = nn.reduce_max %made dims = [1] : tensor<2x8x64xf32> -> tensor<2x64xf32>
  return %pick, %most : tensor<2x1x64xf32>, tensor<2x64xf32>
}

// What is in memory anyhow, as what a product reads, is picked there.
// CHECK-LABEL: @picked_of_stored
// CHECK: %[[MADE:.*]] = nn.kernel loop
// CHECK: nn.kernel loop ({{.*}} = %[[MADE]]
// CHECK-NEXT: nn.gather_elements
// CHECK: return
func.func @picked_of_stored(%x: tensor<8x4xf32>, %labels: tensor<1x64xi64>, %from: tensor<64xi64>, %b: tensor<64x8xf32>) -> (tensor<1x64xf32>, tensor<8x8xf32>) {
  %read = nn.gather %x[%from] axis = 1 : (tensor<8x4xf32>, tensor<64xi64>) -> tensor<8x64xf32>
  %made = nn.exp %read : tensor<8x64xf32>
  %pick = nn.gather_elements %made[%labels] axis = 0 : (tensor<8x64xf32>, tensor<1x64xi64>) -> tensor<1x64xf32>
  %y = nn.dot %made, %b : (tensor<8x64xf32>, tensor<64x8xf32>) -> tensor<8x8xf32>
  return %pick, %y : tensor<1x64xf32>, tensor<8x8xf32>
}

// Nor is a product computed element by element, with other bits than the product that is there.
// CHECK-LABEL: @picked_of_product
// CHECK: nn.kernel
// CHECK-NOT: nn.dot
// CHECK: nn.gather_elements
// CHECK: return
func.func @picked_of_product(%x: tensor<512x4xf32>, %w: tensor<64x4xf32>, %labels: tensor<512x1xi64>, %s: tensor<f32>) -> (tensor<512x1xf32>, tensor<512xf32>) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<512x4xf32>, tensor<64x4xf32>) -> tensor<512x64xf32>
  %sb = nn.broadcast %s dims = [] : tensor<f32> -> tensor<512x64xf32>
  %l = nn.mul %p, %sb : tensor<512x64xf32>
  %pick = nn.gather_elements %l[%labels] axis = 1 : (tensor<512x64xf32>, tensor<512x1xi64>) -> tensor<512x1xf32>
  %most = nn.reduce_max %l dims = [1] : tensor<512x64xf32> -> tensor<512xf32>
  return %pick, %most : tensor<512x1xf32>, tensor<512xf32>
}
