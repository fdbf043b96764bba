// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --nn-library-forms --cse | FileCheck %s
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --nn-library-forms --cse --nn-cluster --plan-lower | FileCheck %s --check-prefix=PLAN

// What cuts q, k and v out of one product and puts heads in front of rows becomes offsets and strides of the call; the
// derivative writes its three results as parts of one.
// CHECK-LABEL: @gradient
// CHECK: %[[QKV:.*]] = nn.reshape
// CHECK: %[[F:.*]]:2 = nn.kernel library (%{{.*}} = %[[QKV]], %{{.*}} = %[[QKV]], %{{.*}} = %[[QKV]])
// CHECK-COUNT-3: nn.slice
// CHECK: %[[O:.*]], %{{.*}} = nn.attention
// CHECK: nn.transpose %[[O]]
// CHECK-NOT: nn.transpose
// CHECK: %[[B:.*]] = nn.kernel library ({{.*}} = %[[F]]#0, {{.*}} = %[[F]]#1
// CHECK: nn.attention_grad
// CHECK-COUNT-3: nn.pad
// CHECK: nn.yield %{{.*}} : tensor<2x16x48xbf16>
// CHECK-NOT: nn.transpose
// CHECK: nn.reshape %[[B]] : tensor<2x16x48xbf16> -> tensor<32x48xbf16>
// CHECK: return

// 48 elements a row: 16 of q, k and v each, 2 heads of 8.
// PLAN: plan.call "attention" {
// PLAN-SAME: k_layout = array<i64: 16, 768, 8, 48, 1>
// PLAN-SAME: o_layout = array<i64: 0, 256, 8, 16, 1>
// PLAN-SAME: q_layout = array<i64: 0, 768, 8, 48, 1>
// PLAN-SAME: v_layout = array<i64: 32, 768, 8, 48, 1>
// PLAN: plan.call "attention_grad" {
// PLAN-SAME: grad_k_layout = array<i64: 16, 768, 8, 48, 1>, grad_o_layout = array<i64: 0, 256, 8, 16, 1>, grad_q_layout = array<i64: 0, 768, 8, 48, 1>, grad_v_layout = array<i64: 32, 768, 8, 48, 1>
// PLAN-SAME: one_result = 1
func.func @gradient(%p: tensor<32x48xbf16> {train.binding = #train.batch<"p", dim = 0>},
                    %d: tensor<32x16xbf16> {train.binding = #train.batch<"d", dim = 0>})
    -> (tensor<32x16xbf16> {train.binding = #train.output<"y">}, tensor<32x48xbf16> {train.binding = #train.output<"g">}) {
  %qkv = nn.reshape %p : tensor<32x48xbf16> -> tensor<2x16x48xbf16>
  %q0 = nn.slice %qkv starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x16x48xbf16> -> tensor<2x16x16xbf16>
  %k0 = nn.slice %qkv starts = [0, 0, 16] strides = [1, 1, 1] : tensor<2x16x48xbf16> -> tensor<2x16x16xbf16>
  %v0 = nn.slice %qkv starts = [0, 0, 32] strides = [1, 1, 1] : tensor<2x16x48xbf16> -> tensor<2x16x16xbf16>
  %q1 = nn.reshape %q0 : tensor<2x16x16xbf16> -> tensor<2x16x2x8xbf16>
  %k1 = nn.reshape %k0 : tensor<2x16x16xbf16> -> tensor<2x16x2x8xbf16>
  %v1 = nn.reshape %v0 : tensor<2x16x16xbf16> -> tensor<2x16x2x8xbf16>
  %q = nn.transpose %q1 [0, 2, 1, 3] : tensor<2x16x2x8xbf16> -> tensor<2x2x16x8xbf16>
  %k = nn.transpose %k1 [0, 2, 1, 3] : tensor<2x16x2x8xbf16> -> tensor<2x2x16x8xbf16>
  %v = nn.transpose %v1 [0, 2, 1, 3] : tensor<2x16x2x8xbf16> -> tensor<2x2x16x8xbf16>
  %o, %lse = nn.attention %q, %k, %v scale = 0.35 causal : (tensor<2x2x16x8xbf16>, tensor<2x2x16x8xbf16>, tensor<2x2x16x8xbf16>) -> (tensor<2x2x16x8xbf16>, tensor<2x2x16xf32>)
  %o1 = nn.transpose %o [0, 2, 1, 3] : tensor<2x2x16x8xbf16> -> tensor<2x16x2x8xbf16>
  %y = nn.reshape %o1 : tensor<2x16x2x8xbf16> -> tensor<32x16xbf16>
  %d0 = nn.reshape %d : tensor<32x16xbf16> -> tensor<2x16x2x8xbf16>
  %do = nn.transpose %d0 [0, 2, 1, 3] : tensor<2x16x2x8xbf16> -> tensor<2x2x16x8xbf16>
  %g:3 = nn.attention_grad %q, %k, %v, %o, %lse, %do scale = 0.35 causal : (tensor<2x2x16x8xbf16>, tensor<2x2x16x8xbf16>, tensor<2x2x16x8xbf16>, tensor<2x2x16x8xbf16>, tensor<2x2x16xf32>, tensor<2x2x16x8xbf16>) -> (tensor<2x2x16x8xbf16>, tensor<2x2x16x8xbf16>, tensor<2x2x16x8xbf16>)
  %dq1 = nn.transpose %g#0 [0, 2, 1, 3] : tensor<2x2x16x8xbf16> -> tensor<2x16x2x8xbf16>
  %dk1 = nn.transpose %g#1 [0, 2, 1, 3] : tensor<2x2x16x8xbf16> -> tensor<2x16x2x8xbf16>
  %dv1 = nn.transpose %g#2 [0, 2, 1, 3] : tensor<2x2x16x8xbf16> -> tensor<2x16x2x8xbf16>
  %dq0 = nn.reshape %dq1 : tensor<2x16x2x8xbf16> -> tensor<2x16x16xbf16>
  %dk0 = nn.reshape %dk1 : tensor<2x16x2x8xbf16> -> tensor<2x16x16xbf16>
  %dv0 = nn.reshape %dv1 : tensor<2x16x2x8xbf16> -> tensor<2x16x16xbf16>
  %pq = nn.pad %dq0 low = [0, 0, 0] high = [0, 0, 32] interior = [0, 0, 0] : tensor<2x16x16xbf16> -> tensor<2x16x48xbf16>
  %pk = nn.pad %dk0 low = [0, 0, 16] high = [0, 0, 16] interior = [0, 0, 0] : tensor<2x16x16xbf16> -> tensor<2x16x48xbf16>
  %pv = nn.pad %dv0 low = [0, 0, 32] high = [0, 0, 0] interior = [0, 0, 0] : tensor<2x16x16xbf16> -> tensor<2x16x48xbf16>
  %s = nn.add %pv, %pk : tensor<2x16x48xbf16>
  %t = nn.add %s, %pq : tensor<2x16x48xbf16>
  %dp = nn.reshape %t : tensor<2x16x48xbf16> -> tensor<32x48xbf16>
  return %y, %dp : tensor<32x16xbf16>, tensor<32x48xbf16>
}

// Elements of a head that are apart are moved before the call.
// CHECK-LABEL: @eval
// CHECK: nn.transpose
// CHECK-NOT: nn.kernel library
// CHECK: nn.attention
func.func @eval(%x: tensor<2x2x8x16xbf16> {train.binding = #train.batch<"x", dim = 0>})
    -> (tensor<2x2x16x8xbf16> {train.binding = #train.output<"z">}) {
  %q = nn.transpose %x [0, 1, 3, 2] : tensor<2x2x8x16xbf16> -> tensor<2x2x16x8xbf16>
  %o, %lse = nn.attention %q, %q, %q scale = 0.35 : (tensor<2x2x16x8xbf16>, tensor<2x2x16x8xbf16>, tensor<2x2x16x8xbf16>) -> (tensor<2x2x16x8xbf16>, tensor<2x2x16xf32>)
  return %o : tensor<2x2x16x8xbf16>
}
