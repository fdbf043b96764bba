// RUN: lowtide-opt %s --pass-pipeline='builtin.module(train-set-target{target=cuda:sm_90},func.func(nn-decompose))' 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.remarks
// RUN: lowtide-opt %s --pass-pipeline='builtin.module(func.func(nn-decompose))' 2>/dev/null | FileCheck %s --check-prefix=CPU
// RUN: lowtide-opt %s --pass-pipeline='builtin.module(train-set-target{target=cuda:sm_90},func.func(nn-decompose{library=false}))' | FileCheck %s --check-prefix=PARTS

// What the target's library computes stays; everything else is written out.
// PARTS-NOT: nn.attention

// The CPU computes attention of f32 and of 16 bits.
// CPU-LABEL: @taken
// CPU: nn.attention %{{.*}} scale
// CPU-LABEL: @wide
// CPU: nn.attention %{{.*}} mask %arg1 scale

// CHECK-LABEL: @taken
// CHECK: nn.attention %{{.*}} scale
// CHECK: nn.attention_grad
// CHECK-NOT: nn.exp
func.func @taken(%q: tensor<1x2x16x8xbf16>, %d: tensor<1x2x16x8xbf16>) -> (tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>) {
  %o, %lse = nn.attention %q, %q, %q scale = 0.35 : (tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>) -> (tensor<1x2x16x8xbf16>, tensor<1x2x16xf32>)
  %g:3 = nn.attention_grad %q, %q, %q, %o, %lse, %d scale = 0.35 : (tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16xf32>, tensor<1x2x16x8xbf16>) -> (tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>)
  return %o, %g#0 : tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>
}

// A mask for columns alone is written out for every row, in the operands' type.
// CHECK-LABEL: @mask
// CHECK: %[[M:.*]] = nn.cast %arg1 : tensor<1x1x1x16xf32> -> tensor<1x1x1x16xbf16>
// CHECK: %[[W:.*]] = nn.broadcast %[[M]] {{.*}} -> tensor<1x1x16x16xbf16>
// CHECK: nn.attention %{{.*}} mask %[[W]]
func.func @mask(%q: tensor<1x2x16x8xbf16>, %m: tensor<1x1x1x16xf32>) -> tensor<1x2x16x8xbf16> {
  %o, %lse = nn.attention %q, %q, %q mask %m scale = 0.35 : (tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x1x1x16xf32>) -> (tensor<1x2x16x8xbf16>, tensor<1x2x16xf32>)
  return %o : tensor<1x2x16x8xbf16>
}

// f32 is not taken by a GPU's library; nothing is left of the attempt with another mask.
// WHY: remark: cuDNN does not take this call: its operands are not f16 or bf16; it is written out as products
// CHECK-LABEL: @wide
// CHECK-NOT: nn.attention
// CHECK-NOT: nn.cast
// CHECK: return
func.func @wide(%q: tensor<1x2x16x8xf32>, %m: tensor<1x1x1x16xf32>) -> tensor<1x2x16x8xf32> {
  %o, %lse = nn.attention %q, %q, %q mask %m scale = 0.35 : (tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x1x1x16xf32>) -> (tensor<1x2x16x8xf32>, tensor<1x2x16xf32>)
  return %o : tensor<1x2x16x8xf32>
}

// Something else reads lse, as a derivative that is written out does: it shares the scores with the parts.
// CHECK-LABEL: @shared
// CHECK-NOT: nn.attention
// CHECK: return
func.func @shared(%q: tensor<1x2x16x8xbf16>) -> (tensor<1x2x16x8xbf16>, tensor<1x2x16xf32>) {
  %o, %lse = nn.attention %q, %q, %q scale = 0.35 : (tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>) -> (tensor<1x2x16x8xbf16>, tensor<1x2x16xf32>)
  %two = nn.add %lse, %lse : tensor<1x2x16xf32>
  return %o, %two : tensor<1x2x16x8xbf16>, tensor<1x2x16xf32>
}

// What its derivative reads may wait in another memory meanwhile.
// CPU-LABEL: func.func @moved
// CPU: nn.attention %{{.*}} scale
// CPU: nn.attention_grad
func.func @moved(%q: tensor<1x2x16x8xf32>, %d: tensor<1x2x16x8xf32>) -> tensor<1x2x16x8xf32> {
  %o, %lse = nn.attention %q, %q, %q scale = 0.35 : (tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>) -> (tensor<1x2x16x8xf32>, tensor<1x2x16xf32>)
  %away = train.move %lse : tensor<1x2x16xf32> to tensor<1x2x16xf32, #train.space<file>>
  %back = train.move %away : tensor<1x2x16xf32, #train.space<file>> to tensor<1x2x16xf32>
  %g:3 = nn.attention_grad %q, %q, %q, %o, %back, %d scale = 0.35 : (tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16xf32>, tensor<1x2x16x8xf32>) -> (tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>)
  return %g#0 : tensor<1x2x16x8xf32>
}
