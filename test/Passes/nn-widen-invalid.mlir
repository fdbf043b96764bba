// RUN: not lowtide-opt %s --nn-widen 2>&1 | FileCheck %s
// RUN: lowtide-opt %s --nn-widen="from=f32,bf16 to=f64" | FileCheck %s --check-prefix=ALL

// Products of 16 bits keep their sums in f32; widening those alone tears the two apart.
// CHECK: error: widening f32 to f64 leaves types that do not agree: name all types of the step in from
// ALL: nn.attention
// ALL-SAME: tensor<1x1x2x4xf64>
func.func @forward(%q: tensor<1x1x2x4xbf16>, %k: tensor<1x1x2x4xbf16>, %v: tensor<1x1x2x4xbf16>) -> (tensor<1x1x2x4xbf16>, tensor<1x1x2xf32>) {
  %r:2 = nn.attention %q, %k, %v scale = 5.000000e-01 : (tensor<1x1x2x4xbf16>, tensor<1x1x2x4xbf16>, tensor<1x1x2x4xbf16>) -> (tensor<1x1x2x4xbf16>, tensor<1x1x2xf32>)
  return %r#0, %r#1 : tensor<1x1x2x4xbf16>, tensor<1x1x2xf32>
}
