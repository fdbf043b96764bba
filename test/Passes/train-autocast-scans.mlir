// What rounds of a scan keep: a row that all readers round, and the input product of a segment, in 16 bits; a row that an
// elementwise op reads as it is, in f32. Carried states stay f32, and both passes see the input product rounded.
// RUN: lowtide-opt %s --train-autocast=precision=mixed-bf16 --canonicalize --cse | FileCheck %s

// CHECK-LABEL: @train
// CHECK: nn.scan 2 slices(
// CHECK-SAME: -> (tensor<2x5xf32>, tensor<4x2x5xbf16>, tensor<4x2x5xf32>, tensor<4x2x5xbf16>)
// CHECK: %[[P:.*]] = nn.dot {{.*}} (tensor<4x3xbf16>, tensor<5x3xbf16>) -> tensor<4x5xf32>
// CHECK: %[[SUM:.*]] = nn.add %[[P]]
// CHECK: nn.cast %[[SUM]] : tensor<4x5xf32> -> tensor<4x5xbf16>
// CHECK: nn.scan 2 slices(
// CHECK: nn.next carries({{.*}} : tensor<2x5xf32>) rows({{.*}} : tensor<1x2x5xbf16>, tensor<1x2x5xf32>)
// CHECK: nn.next carries({{.*}} : tensor<2x5xf32>) rows({{.*}} : tensor<2x2x5xbf16>, tensor<2x2x5xf32>, tensor<2x2x5xbf16>)
// CHECK: nn.scan 4 reversed slices(
// CHECK-SAME: (tensor<4x2x5xbf16>, tensor<4x2x5xf32>, tensor<4x2x5xbf16>,
// CHECK: nn.dot {{.*}} (tensor<2x5xbf16>, tensor<5x5xbf16>) -> tensor<2x5xf32>
// CHECK: nn.next carries({{.*}} : tensor<2x5xf32>, tensor<5x5xf32>)
func.func @train(%xs: tensor<4x2x3xf32> {train.binding = #train.batch<"x">}, %w: tensor<5x3xf32> {train.binding = #train.param<"w">},
                 %b: tensor<5xf32> {train.binding = #train.param<"b">}, %r: tensor<5x5xf32> {train.binding = #train.param<"r">})
    -> (tensor<2x5xf32> {train.binding = #train.output<"y">}, tensor<5x5xf32> {train.binding = #train.gradient<"r">}) {
  %zero = nn.constant dense<0.0> : tensor<2x5xf32>
  %none = nn.constant dense<0.0> : tensor<5x5xf32>
  %last, %hs, %cs, %gs = nn.scan 2 slices(%x = %xs) carries(%h = %zero) reads(%w1 = %w, %b1 = %b, %r1 = %r)
      : (tensor<4x2x3xf32>, tensor<2x5xf32>, tensor<5x3xf32>, tensor<5xf32>, tensor<5x5xf32>)
      -> (tensor<2x5xf32>, tensor<4x2x5xf32>, tensor<4x2x5xf32>, tensor<4x2x5xf32>) {
    %flat = nn.reshape %x : tensor<2x2x3xf32> -> tensor<4x3xf32>
    %p = nn.dot %flat, %w1 {transpose_b} : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
    %bias = nn.broadcast %b1 dims = [1] : tensor<5xf32> -> tensor<4x5xf32>
    %g = nn.add %p, %bias : tensor<4x5xf32>
    %steps = nn.reshape %g : tensor<4x5xf32> -> tensor<2x2x5xf32>
    %end, %rows, %wide = nn.scan 2 slices(%gi = %steps) carries(%hi = %h) reads(%r2 = %r1)
        : (tensor<2x2x5xf32>, tensor<2x5xf32>, tensor<5x5xf32>) -> (tensor<2x5xf32>, tensor<2x2x5xf32>, tensor<2x2x5xf32>) {
      %m = nn.dot %hi, %r2 {transpose_b} : (tensor<2x5xf32>, tensor<5x5xf32>) -> tensor<2x5xf32>
      %gf = nn.reshape %gi : tensor<1x2x5xf32> -> tensor<2x5xf32>
      %s = nn.add %m, %gf : tensor<2x5xf32>
      %t = nn.tanh %s : tensor<2x5xf32>
      %row = nn.reshape %hi : tensor<2x5xf32> -> tensor<1x2x5xf32>
      %c = nn.reshape %t : tensor<2x5xf32> -> tensor<1x2x5xf32>
      nn.next carries(%t : tensor<2x5xf32>) rows(%row, %c : tensor<1x2x5xf32>, tensor<1x2x5xf32>)
    }
    nn.next carries(%end : tensor<2x5xf32>)
        rows(%rows, %wide, %steps : tensor<2x2x5xf32>, tensor<2x2x5xf32>, tensor<2x2x5xf32>)
  }
  %dh, %dr = nn.scan 4 reversed slices(%h1 = %hs, %c1 = %cs, %g1 = %gs) carries(%d = %last, %sum = %none) reads(%r1 = %r)
      : (tensor<4x2x5xf32>, tensor<4x2x5xf32>, tensor<4x2x5xf32>, tensor<2x5xf32>, tensor<5x5xf32>, tensor<5x5xf32>)
      -> (tensor<2x5xf32>, tensor<5x5xf32>) {
    %hf = nn.reshape %h1 : tensor<1x2x5xf32> -> tensor<2x5xf32>
    %cf = nn.reshape %c1 : tensor<1x2x5xf32> -> tensor<2x5xf32>
    %gf = nn.reshape %g1 : tensor<1x2x5xf32> -> tensor<2x5xf32>
    %u = nn.mul %cf, %d : tensor<2x5xf32>
    %v = nn.add %u, %gf : tensor<2x5xf32>
    %dm = nn.dot %v, %r1 : (tensor<2x5xf32>, tensor<5x5xf32>) -> tensor<2x5xf32>
    %dw = nn.dot %v, %hf {transpose_a} : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<5x5xf32>
    %next = nn.add %sum, %dw : tensor<5x5xf32>
    nn.next carries(%dm, %next : tensor<2x5xf32>, tensor<5x5xf32>)
  }
  return %last, %dr : tensor<2x5xf32>, tensor<5x5xf32>
}
