// What no kernel can index is refused where it is: no elements, and counts that do not fit 63 bits.
// RUN: split-file %s %t
// RUN: not lowtide-opt %t/none.mlir --fit-stage 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: none.mlir:[[#]]:{{[0-9]+}}: error: cannot generate code: 'tensor<0x4xf32>' has no elements
// RUN: not lowtide-opt %t/empty-rows.mlir --fit-stage 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: error: cannot generate code: 'tensor<3x0xf32>' has no elements
// RUN: not lowtide-opt %t/wraps.mlir --fit-stage 2>&1 | FileCheck %s --check-prefix=WRAPS
// WRAPS: error: cannot generate code: 'tensor<4294967296x4294967296xf32>' has more elements than 2^63 - 1
// RUN: not lowtide-opt %t/declared.mlir --train-stage 2>&1 | FileCheck %s --check-prefix=DECLARED
// DECLARED: error: @forward has no body
// What a loop reads from outside leads to it, too.
// RUN: not lowtide-opt %t/captures.mlir --train-differentiate 2>&1 | FileCheck %s --check-prefix=CAPTURES
// CAPTURES: error: 'train.accumulate' has no derivative, but a parameter leads to it

//--- none.mlir
func.func @train(%x: tensor<0x4xf32> {train.binding = #train.batch<"x">}, %w: tensor<4xf32> {train.binding = #train.param<"w">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %b = nn.broadcast %w dims = [1] : tensor<4xf32> -> tensor<0x4xf32>
  %m = nn.mul %x, %b : tensor<0x4xf32>
  %s = nn.reduce_sum %m dims = [0, 1] : tensor<0x4xf32> -> tensor<f32>
  return %s : tensor<f32>
}
//--- empty-rows.mlir
func.func @train(%x: tensor<3x0xf32> {train.binding = #train.batch<"x">}) -> (tensor<3xf32> {train.binding = #train.output<"y">}) {
  %r = nn.reduce_max %x dims = [1] : tensor<3x0xf32> -> tensor<3xf32>
  return %r : tensor<3xf32>
}
//--- wraps.mlir
func.func @train(%x: tensor<4294967296x4294967296xf32> {train.binding = #train.batch<"x">}, %w: tensor<4294967296xf32> {train.binding = #train.param<"w">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %b = nn.broadcast %w dims = [1] : tensor<4294967296xf32> -> tensor<4294967296x4294967296xf32>
  %m = nn.mul %x, %b : tensor<4294967296x4294967296xf32>
  %s = nn.reduce_sum %m dims = [0, 1] : tensor<4294967296x4294967296xf32> -> tensor<f32>
  return %s : tensor<f32>
}
//--- declared.mlir
func.func private @forward(%x: tensor<4xf32> {train.binding = #train.batch<"x">}) -> (tensor<f32> {train.binding = #train.metric<"loss">})
//--- captures.mlir
func.func @forward(%x: tensor<8x4xf32> {train.binding = #train.batch<"x">}, %w: tensor<4xf32> {train.binding = #train.param<"w">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %z = nn.constant dense<0.0> : tensor<f32>
  %e = nn.exp %w : tensor<4xf32>
  %s = train.accumulate 4 slices(%p = %x) carries(%q = %z) : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32> {
    %b = nn.broadcast %e dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
    %m = nn.mul %p, %b : tensor<2x4xf32>
    %r = nn.reduce_sum %m dims = [0, 1] : tensor<2x4xf32> -> tensor<f32>
    %t = nn.add %q, %r : tensor<f32>
    train.next carries(%t : tensor<f32>)
  }
  return %s : tensor<f32>
}
