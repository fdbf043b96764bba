// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --nn-library-forms | FileCheck %s
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --nn-library-forms=epilogues=false | FileCheck %s --check-prefix=PLAIN
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --nn-library-forms --nn-cluster 2>&1 | FileCheck %s --check-prefix=DECLINED

// PLAIN-NOT: nn.dot_epilogue

// A bias goes along; where 16-bit sums were rounded and widened again, they are rounded once.
// CHECK-LABEL: @bias
// CHECK: %[[B:.*]] = nn.cast %arg2 : tensor<16xf32> -> tensor<16xbf16>
// CHECK: nn.dot_epilogue "none" %arg0, %arg1 addend %[[B]] : (tensor<8x4xbf16>, tensor<4x16xbf16>, tensor<16xbf16>) -> tensor<8x16xbf16>
// CHECK-NOT: nn.add
func.func @bias(%x: tensor<8x4xbf16>, %w: tensor<4x16xbf16>, %b: tensor<16xf32>) -> tensor<2x4x16xbf16> {
  %p = nn.dot %x, %w : (tensor<8x4xbf16>, tensor<4x16xbf16>) -> tensor<8x16xbf16>
  %c = nn.cast %p : tensor<8x16xbf16> -> tensor<8x16xf32>
  %r = nn.reshape %c : tensor<8x16xf32> -> tensor<2x4x16xf32>
  %s = nn.broadcast %b dims = [2] : tensor<16xf32> -> tensor<2x4x16xf32>
  %a = nn.add %r, %s : tensor<2x4x16xf32>
  %y = nn.cast %a : tensor<2x4x16xf32> -> tensor<2x4x16xbf16>
  return %y : tensor<2x4x16xbf16>
}

// A sum that is needed in f32 is not rounded.
// CHECK-LABEL: @wide_sum
// CHECK: nn.dot %arg0
// CHECK: nn.add
func.func @wide_sum(%x: tensor<8x4xbf16>, %w: tensor<4x16xbf16>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
  %p = nn.dot %x, %w : (tensor<8x4xbf16>, tensor<4x16xbf16>) -> tensor<8x16xbf16>
  %c = nn.cast %p : tensor<8x16xbf16> -> tensor<8x16xf32>
  %s = nn.broadcast %b dims = [1] : tensor<16xf32> -> tensor<8x16xf32>
  %a = nn.add %c, %s : tensor<8x16xf32>
  return %a : tensor<8x16xf32>
}

// ReLU whose input nothing else reads.
// CHECK-LABEL: @relu
// CHECK: nn.dot_epilogue "relu" %arg0, %arg1 addend %arg2
// CHECK-NOT: nn.relu
func.func @relu(%x: tensor<8x4xf32>, %w: tensor<4x10xf32>, %b: tensor<10xf32>) -> tensor<8x10xf32> {
  %p = nn.dot %x, %w : (tensor<8x4xf32>, tensor<4x10xf32>) -> tensor<8x10xf32>
  %s = nn.broadcast %b dims = [1] : tensor<10xf32> -> tensor<8x10xf32>
  %a = nn.add %s, %p : tensor<8x10xf32>
  %y = nn.relu %a : tensor<8x10xf32>
  return %y : tensor<8x10xf32>
}

// The input of GELU is kept for its derivative, which is the epilogue of another product.
// CHECK-LABEL: @gelu
// CHECK: %[[Y:.*]], %[[Z:.*]] = nn.dot_epilogue "gelu" %arg0, %arg1 addend
// CHECK: %[[D:.*]] = nn.dot_epilogue "dgelu" %arg3, %arg4 input %[[Z]] {transpose_b}
// CHECK: return %[[Y]], %[[D]]
func.func @gelu(%x: tensor<8x4xbf16>, %w: tensor<4x16xbf16>, %b: tensor<16xf32>, %dy: tensor<8x4xbf16>, %v: tensor<16x4xbf16>)
    -> (tensor<8x16xbf16>, tensor<8x16xbf16>) {
  %p = nn.dot %x, %w : (tensor<8x4xbf16>, tensor<4x16xbf16>) -> tensor<8x16xbf16>
  %c = nn.cast %p : tensor<8x16xbf16> -> tensor<8x16xf32>
  %s = nn.broadcast %b dims = [1] : tensor<16xf32> -> tensor<8x16xf32>
  %a = nn.add %c, %s : tensor<8x16xf32>
  %u = nn.cast %a : tensor<8x16xf32> -> tensor<8x16xbf16>
  %z = nn.cast %u : tensor<8x16xbf16> -> tensor<8x16xf32>
  %g = nn.gelu_tanh %z : tensor<8x16xf32>
  %y = nn.cast %g : tensor<8x16xf32> -> tensor<8x16xbf16>
  %q = nn.dot %dy, %v {transpose_b} : (tensor<8x4xbf16>, tensor<16x4xbf16>) -> tensor<8x16xbf16>
  %e = nn.cast %q : tensor<8x16xbf16> -> tensor<8x16xf32>
  %one = nn.constant dense<1.0> : tensor<8x16xf32>
  %half = nn.constant dense<0.5> : tensor<8x16xf32>
  %k = nn.constant dense<0.0447149985> : tensor<8x16xf32>
  %k3 = nn.constant dense<0.134145007> : tensor<8x16xf32>
  %m = nn.constant dense<0.797884583> : tensor<8x16xf32>
  %z2 = nn.mul %z, %z : tensor<8x16xf32>
  %z3 = nn.mul %z, %z2 : tensor<8x16xf32>
  %t0 = nn.mul %z3, %k : tensor<8x16xf32>
  %t1 = nn.add %z, %t0 : tensor<8x16xf32>
  %t2 = nn.mul %t1, %m : tensor<8x16xf32>
  %t = nn.tanh %t2 : tensor<8x16xf32>
  %i0 = nn.mul %z2, %k3 : tensor<8x16xf32>
  %i1 = nn.add %i0, %one : tensor<8x16xf32>
  %i = nn.mul %i1, %m : tensor<8x16xf32>
  %h0 = nn.add %t, %one : tensor<8x16xf32>
  %h = nn.mul %half, %h0 : tensor<8x16xf32>
  %zh = nn.mul %half, %z : tensor<8x16xf32>
  %tt = nn.mul %t, %t : tensor<8x16xf32>
  %ot = nn.sub %one, %tt : tensor<8x16xf32>
  %f0 = nn.mul %zh, %ot : tensor<8x16xf32>
  %f1 = nn.mul %f0, %i : tensor<8x16xf32>
  %f = nn.add %h, %f1 : tensor<8x16xf32>
  %d0 = nn.mul %e, %f : tensor<8x16xf32>
  %d = nn.cast %d0 : tensor<8x16xf32> -> tensor<8x16xbf16>
  return %y, %d : tensor<8x16xbf16>, tensor<8x16xbf16>
}

// The derivative of GELU joins its product. The gradient of the bias in front of that GELU does not: see @relu_and_derivative.
// CHECK-LABEL: @bias_gradient
// CHECK: %[[D:.*]] = nn.dot_epilogue "dgelu" %arg0, %arg1 input %arg2 {transpose_b} : {{.*}} -> tensor<8x16xbf16>
// CHECK: %[[S:.*]] = nn.reduce_sum {{.*}} dims = [0, 1]
// CHECK: return %[[D]], %[[S]]
func.func @bias_gradient(%dy: tensor<8x4xbf16>, %v: tensor<16x4xbf16>, %u: tensor<8x16xbf16>)
    -> (tensor<8x16xbf16>, tensor<16xf32>) {
  %q = nn.dot %dy, %v {transpose_b} : (tensor<8x4xbf16>, tensor<16x4xbf16>) -> tensor<8x16xbf16>
  %e = nn.cast %q : tensor<8x16xbf16> -> tensor<8x16xf32>
  %z = nn.cast %u : tensor<8x16xbf16> -> tensor<8x16xf32>
  %one = nn.constant dense<1.0> : tensor<8x16xf32>
  %half = nn.constant dense<0.5> : tensor<8x16xf32>
  %k = nn.constant dense<0.0447149985> : tensor<8x16xf32>
  %k3 = nn.constant dense<0.134145007> : tensor<8x16xf32>
  %m = nn.constant dense<0.797884583> : tensor<8x16xf32>
  %z2 = nn.mul %z, %z : tensor<8x16xf32>
  %z3 = nn.mul %z, %z2 : tensor<8x16xf32>
  %t0 = nn.mul %z3, %k : tensor<8x16xf32>
  %t1 = nn.add %z, %t0 : tensor<8x16xf32>
  %t2 = nn.mul %t1, %m : tensor<8x16xf32>
  %t = nn.tanh %t2 : tensor<8x16xf32>
  %i0 = nn.mul %z2, %k3 : tensor<8x16xf32>
  %i1 = nn.add %i0, %one : tensor<8x16xf32>
  %i = nn.mul %i1, %m : tensor<8x16xf32>
  %h0 = nn.add %t, %one : tensor<8x16xf32>
  %h = nn.mul %half, %h0 : tensor<8x16xf32>
  %zh = nn.mul %half, %z : tensor<8x16xf32>
  %tt = nn.mul %t, %t : tensor<8x16xf32>
  %ot = nn.sub %one, %tt : tensor<8x16xf32>
  %f0 = nn.mul %zh, %ot : tensor<8x16xf32>
  %f1 = nn.mul %f0, %i : tensor<8x16xf32>
  %f = nn.add %h, %f1 : tensor<8x16xf32>
  %d0 = nn.mul %e, %f : tensor<8x16xf32>
  %d = nn.cast %d0 : tensor<8x16xf32> -> tensor<8x16xbf16>
  %n = nn.reshape %d : tensor<8x16xbf16> -> tensor<2x4x16xbf16>
  %w = nn.cast %n : tensor<2x4x16xbf16> -> tensor<2x4x16xf32>
  %g = nn.reduce_sum %w dims = [0, 1] : tensor<2x4x16xf32> -> tensor<16xf32>
  return %d, %g : tensor<8x16xbf16>, tensor<16xf32>
}

// A result that is read again later is left to a kernel, which can run again without the product.
// CHECK-LABEL: @gelu_twice
// CHECK: %[[U:.*]] = nn.dot_epilogue "none" %arg0, %arg1 addend
// CHECK: nn.gelu_tanh
func.func @gelu_twice(%x: tensor<8x4xbf16>, %w: tensor<4x16xbf16>, %b: tensor<16xf32>, %v: tensor<16x4xbf16>)
    -> (tensor<8x4xbf16>, tensor<8x16xbf16>, tensor<8x16xbf16>) {
  %p = nn.dot %x, %w : (tensor<8x4xbf16>, tensor<4x16xbf16>) -> tensor<8x16xbf16>
  %c = nn.cast %p : tensor<8x16xbf16> -> tensor<8x16xf32>
  %s = nn.broadcast %b dims = [1] : tensor<16xf32> -> tensor<8x16xf32>
  %a = nn.add %c, %s : tensor<8x16xf32>
  %u = nn.cast %a : tensor<8x16xf32> -> tensor<8x16xbf16>
  %z = nn.cast %u : tensor<8x16xbf16> -> tensor<8x16xf32>
  %g = nn.gelu_tanh %z : tensor<8x16xf32>
  %y = nn.cast %g : tensor<8x16xf32> -> tensor<8x16xbf16>
  %o = nn.dot %y, %v : (tensor<8x16xbf16>, tensor<16x4xbf16>) -> tensor<8x4xbf16>
  return %o, %y, %u : tensor<8x4xbf16>, tensor<8x16xbf16>, tensor<8x16xbf16>
}

// What a loop carries is added up inside the product, over the same bytes.
// CHECK-LABEL: @accumulate
// CHECK: train.accumulate
// CHECK: %[[S:.*]] = nn.dot_epilogue "none" %{{.*}}, %{{.*}} addend %{{.*}} {transpose_a}
// CHECK: train.next carries(%[[S]]
func.func @accumulate(%x: tensor<8x4xf32>, %y: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %zero = nn.constant dense<0.0> : tensor<4x6xf32>
  %r = train.accumulate 2 slices(%a = %x, %b = %y) carries(%c = %zero) : (tensor<8x4xf32>, tensor<8x6xf32>, tensor<4x6xf32>) -> (tensor<4x6xf32>) {
    %p = nn.dot %a, %b {transpose_a} : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %s = nn.add %c, %p : tensor<4x6xf32>
    train.next carries(%s : tensor<4x6xf32>)
  }
  return %r : tensor<4x6xf32>
}

// 16-bit convolutions of packed channels-first tensors have results of 16 bits.
// CHECK-LABEL: @narrow_result
// CHECK: %[[C:.*]] = nn.conv %arg0, %arg1 {{.*}} -> tensor<1x4x8x8xbf16>
// CHECK: nn.cast %[[C]] : tensor<1x4x8x8xbf16> -> tensor<1x4x8x8xf32>
func.func @narrow_result(%x: tensor<1x2x8x8xbf16>, %w: tensor<4x2x1x1xbf16>) -> tensor<1x4x8x8xf32> {
  %y = nn.conv %x, %w strides = [1, 1] pads = [0, 0], [0, 0] dilations = [1, 1] groups = 1 : (tensor<1x2x8x8xbf16>, tensor<4x2x1x1xbf16>) -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// What no library takes becomes a kernel when it is compiled, not a failure when it is run.
// DECLINED: remark: cuDNN does not take this call: a tensor has 2^31 elements or more; a generated kernel computes it
// DECLINED-LABEL: @too_large
// DECLINED: nn.kernel
// DECLINED: nn.conv
func.func @too_large(%x: tensor<1x1x65536x32768xf32>, %w: tensor<1x1x1x1xf32>) -> tensor<1x1x65536x32768xf32> {
  %y = nn.conv %x, %w strides = [1, 1] pads = [0, 0], [0, 0] dilations = [1, 1] groups = 1 : (tensor<1x1x65536x32768xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x65536x32768xf32>
  return %y : tensor<1x1x65536x32768xf32>
}

// The gradient of a weight brings that of the bias along, where a library made what both are sums of.
// CHECK-LABEL: @operand_sums
// CHECK: %[[DY:.*]] = nn.dot %arg1, %arg2
// CHECK: %[[DW:.*]], %[[DB:.*]] = nn.dot_epilogue "bgrad" %arg0, %[[DY]] {transpose_a} : (tensor<256x256xbf16>, tensor<256x512xbf16>) -> (tensor<256x512xf32>, tensor<512xf32>)
// CHECK-NOT: nn.reduce_sum
// CHECK: return %[[DW]], %[[DB]]
func.func @operand_sums(%x: tensor<256x256xbf16>, %d: tensor<256x64xbf16>, %w: tensor<64x512xbf16>)
    -> (tensor<256x512xf32>, tensor<512xf32>) {
  %dy = nn.dot %d, %w : (tensor<256x64xbf16>, tensor<64x512xbf16>) -> tensor<256x512xbf16>
  %wide = nn.cast %dy : tensor<256x512xbf16> -> tensor<256x512xf32>
  %db = nn.reduce_sum %wide dims = [0] : tensor<256x512xf32> -> tensor<512xf32>
  %dw = nn.dot %x, %dy {transpose_a} : (tensor<256x256xbf16>, tensor<256x512xbf16>) -> tensor<256x512xf32>
  return %dw, %db : tensor<256x512xf32>, tensor<512xf32>
}

// A kernel made it: that adds it up on the way. And a product that is cut along k has no epilogue.
// CHECK-LABEL: @no_operand_sums
// CHECK-NOT: "bgrad"
// CHECK: return
func.func @no_operand_sums(%x: tensor<256x256xbf16>, %y: tensor<65536x128xbf16>, %d: tensor<256x512xbf16>, %e: tensor<65536x64xbf16>, %w: tensor<64x128xbf16>)
    -> (tensor<256x512xf32>, tensor<512xf32>, tensor<128x128xf32>, tensor<128xf32>) {
  %dy = nn.mul %d, %d : tensor<256x512xbf16>
  %wide = nn.cast %dy : tensor<256x512xbf16> -> tensor<256x512xf32>
  %db = nn.reduce_sum %wide dims = [0] : tensor<256x512xf32> -> tensor<512xf32>
  %dw = nn.dot %x, %dy {transpose_a} : (tensor<256x256xbf16>, tensor<256x512xbf16>) -> tensor<256x512xf32>
  %dz = nn.dot %e, %w : (tensor<65536x64xbf16>, tensor<64x128xbf16>) -> tensor<65536x128xbf16>
  %wide2 = nn.cast %dz : tensor<65536x128xbf16> -> tensor<65536x128xf32>
  %dc = nn.reduce_sum %wide2 dims = [0] : tensor<65536x128xf32> -> tensor<128xf32>
  %dv = nn.dot %y, %dz {transpose_a} : (tensor<65536x128xbf16>, tensor<65536x128xbf16>) -> tensor<128x128xf32>
  return %dw, %db, %dv, %dc : tensor<256x512xf32>, tensor<512xf32>, tensor<128x128xf32>, tensor<128xf32>
}

// The other way around: a weight that is stored as [out, in].
// CHECK-LABEL: @operand_sums_of_the_left
// CHECK: %[[DY:.*]] = nn.dot %arg1, %arg2
// CHECK: %[[DW:.*]], %[[DB:.*]] = nn.dot_epilogue "bgrad_a" %[[DY]], %arg0 {transpose_a} : (tensor<256x512xbf16>, tensor<256x256xbf16>) -> (tensor<512x256xf32>, tensor<512xf32>)
// CHECK-NOT: nn.reduce_sum
// CHECK: return %[[DW]], %[[DB]]
func.func @operand_sums_of_the_left(%x: tensor<256x256xbf16>, %d: tensor<256x64xbf16>, %w: tensor<64x512xbf16>)
    -> (tensor<512x256xf32>, tensor<512xf32>) {
  %dy = nn.dot %d, %w : (tensor<256x64xbf16>, tensor<64x512xbf16>) -> tensor<256x512xbf16>
  %wide = nn.cast %dy : tensor<256x512xbf16> -> tensor<256x512xf32>
  %db = nn.reduce_sum %wide dims = [0] : tensor<256x512xf32> -> tensor<512xf32>
  %dw = nn.dot %dy, %x {transpose_a} : (tensor<256x512xbf16>, tensor<256x256xbf16>) -> tensor<512x256xf32>
  return %dw, %db : tensor<512x256xf32>, tensor<512xf32>
}

// A ReLU goes along with the bias in front, and keeps bits for its derivative, which a product further back applies. The
// gradient of that bias stays a sum of its own: cuBLASLt takes longer for both than a kernel takes besides.
// CHECK-LABEL: @relu_and_derivative
// CHECK: %[[Y:.*]], %[[BITS:.*]] = nn.dot_epilogue "relu" %arg0, %arg1 addend %{{.*}} {transpose_b} : (tensor<8x4xbf16>, tensor<10x4xbf16>, tensor<10xbf16>) -> (tensor<8x10xbf16>, tensor<8x16xui8>)
// CHECK: %[[D:.*]] = nn.dot_epilogue "drelu" %arg3, %arg4 input %[[BITS]] : (tensor<8x6xbf16>, tensor<6x10xbf16>, tensor<8x16xui8>) -> tensor<8x10xbf16>
// CHECK-NOT: nn.select
// CHECK: %[[S:.*]] = nn.reduce_sum {{.*}} dims = [0]
// CHECK: return %[[Y]], %[[D]], %[[S]]
func.func @relu_and_derivative(%x: tensor<8x4xbf16>, %w: tensor<10x4xbf16>, %b: tensor<10xf32>, %dz: tensor<8x6xbf16>, %v: tensor<6x10xbf16>)
    -> (tensor<8x10xbf16>, tensor<8x10xbf16>, tensor<10xf32>) {
  %zero = nn.constant dense<0.0> : tensor<8x10xf32>
  %p = nn.dot %x, %w {transpose_b} : (tensor<8x4xbf16>, tensor<10x4xbf16>) -> tensor<8x10xbf16>
  %c = nn.cast %p : tensor<8x10xbf16> -> tensor<8x10xf32>
  %s = nn.broadcast %b dims = [1] : tensor<10xf32> -> tensor<8x10xf32>
  %a = nn.add %c, %s : tensor<8x10xf32>
  %r = nn.relu %a : tensor<8x10xf32>
  %y = nn.cast %r : tensor<8x10xf32> -> tensor<8x10xbf16>
  %q = nn.dot %dz, %v : (tensor<8x6xbf16>, tensor<6x10xbf16>) -> tensor<8x10xbf16>
  %e = nn.cast %q : tensor<8x10xbf16> -> tensor<8x10xf32>
  %u = nn.cast %y : tensor<8x10xbf16> -> tensor<8x10xf32>
  %on = nn.compare gt %u, %zero : tensor<8x10xf32> -> tensor<8x10xi1>
  %d0 = nn.select %on, %e, %zero : tensor<8x10xi1>, tensor<8x10xf32>
  %d = nn.cast %d0 : tensor<8x10xf32> -> tensor<8x10xbf16>
  %f = nn.cast %d : tensor<8x10xbf16> -> tensor<8x10xf32>
  %g = nn.reduce_sum %f dims = [0] : tensor<8x10xf32> -> tensor<10xf32>
  return %y, %d, %g : tensor<8x10xbf16>, tensor<8x10xbf16>, tensor<10xf32>
}

// Where the derivative cannot go along, no bits are kept; and what another test than "greater than zero" picks is no derivative.
// CHECK-LABEL: @relu_without_bits
// CHECK: nn.dot_epilogue "relu" {{.*}} -> tensor<8x10xbf16>
// CHECK-NOT: "drelu"
// CHECK: return
func.func @relu_without_bits(%x: tensor<8x4xbf16>, %w: tensor<10x4xbf16>, %dz: tensor<8x6xbf16>, %v: tensor<6x10xbf16>)
    -> (tensor<8x10xbf16>, tensor<8x10xbf16>) {
  %zero = nn.constant dense<0.0> : tensor<8x10xf32>
  %p = nn.dot %x, %w {transpose_b} : (tensor<8x4xbf16>, tensor<10x4xbf16>) -> tensor<8x10xbf16>
  %y = nn.relu %p : tensor<8x10xbf16>
  %q = nn.dot %dz, %v : (tensor<8x6xbf16>, tensor<6x10xbf16>) -> tensor<8x10xbf16>
  %e = nn.cast %q : tensor<8x10xbf16> -> tensor<8x10xf32>
  %u = nn.cast %y : tensor<8x10xbf16> -> tensor<8x10xf32>
  %on = nn.compare ge %u, %zero : tensor<8x10xf32> -> tensor<8x10xi1>
  %d0 = nn.select %on, %e, %zero : tensor<8x10xi1>, tensor<8x10xf32>
  %d = nn.cast %d0 : tensor<8x10xf32> -> tensor<8x10xbf16>
  return %y, %d : tensor<8x10xbf16>, tensor<8x10xbf16>
}

// What few ops make of an argument is made where it is read, in the shape in which it is read; what others read too stays.
// CHECK-LABEL: @made_of_an_argument
// CHECK: %[[FLAT:.*]] = nn.reshape %arg0 : tensor<4x8xi64> -> tensor<32xi64>
// CHECK: %[[IGNORED:.*]] = nn.constant dense<-100> : tensor<32xi64>
// CHECK: %[[C:.*]] = nn.compare ne %[[FLAT]], %[[IGNORED]] : tensor<32xi64> -> tensor<32xi1>
// CHECK: %[[M:.*]] = nn.cast %[[C]] : tensor<32xi1> -> tensor<32xf32>
// CHECK: nn.reduce_sum %[[M]]
// CHECK: %[[E:.*]] = nn.exp %arg1
// CHECK: nn.reshape %[[E]]
func.func @made_of_an_argument(%l: tensor<4x8xi64>, %x: tensor<4x8xf32>) -> (tensor<f32>, tensor<32xf32>, tensor<4x8xf32>) {
  %ignored = nn.constant dense<-100> : tensor<4x8xi64>
  %c = nn.compare ne %l, %ignored : tensor<4x8xi64> -> tensor<4x8xi1>
  %m = nn.cast %c : tensor<4x8xi1> -> tensor<4x8xf32>
  %f = nn.reshape %m : tensor<4x8xf32> -> tensor<32xf32>
  %s = nn.reduce_sum %f dims = [0] : tensor<32xf32> -> tensor<f32>
  %e = nn.exp %x : tensor<4x8xf32>
  %g = nn.reshape %e : tensor<4x8xf32> -> tensor<32xf32>
  return %s, %g, %e : tensor<f32>, tensor<32xf32>, tensor<4x8xf32>
}
