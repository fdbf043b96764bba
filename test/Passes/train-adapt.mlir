// RUN: lowtide-opt %s --train-adapt="lora='fc,turned:r=2,alpha=4,dropout=0.5;left:r=1,alpha=3;*.q,*.v:r=4,alpha=6,dropout=0;patch:r=2;words:r=3'" 2>/dev/null | FileCheck %s
// RUN: lowtide-opt %s --train-adapt="lora='fc:r=2,dropout=0.5;tur*:r=1' dropout=0" 2>/dev/null | FileCheck %s --check-prefix=STILL
// RUN: lowtide-opt %s --train-adapt="lora='fc:r=4,alpha=6,rslora'" 2>/dev/null | FileCheck %s --check-prefix=ROOT
// RUN: not lowtide-opt %s --train-adapt="lora='fx:r=2'" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not lowtide-opt %s --train-adapt="lora='*.q:r=2;norm*:r=2'" 2>&1 | FileCheck %s --check-prefix=NORM
// RUN: not lowtide-opt %s --train-adapt="lora='fc:r=9'" 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not lowtide-opt %s --train-adapt="lora='fc:r=0'" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not lowtide-opt %s --train-adapt="lora='fc:r=2,droput=0.1'" 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not lowtide-opt %s --train-adapt="lora='fc:alpha=2'" 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not lowtide-opt %s --train-adapt="lora='fc'" 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not lowtide-opt %s --train-adapt="lora='fc:r=2,r=3'" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not lowtide-opt %s --train-adapt="lora='fc:r=2,dropout=1'" 2>&1 | FileCheck %s --check-prefix=DROP
// RUN: not lowtide-opt %s --train-adapt="lora='fc:r=2,alpha=-1'" 2>&1 | FileCheck %s --check-prefix=ALPHA
// RUN: not lowtide-opt %s --train-adapt="lora='fc:r=2,rslora;left:r=1'" 2>&1 | FileCheck %s --check-prefix=MIXED
// RUN: not lowtide-opt %s --train-adapt="lora='head:r=2'" 2>&1 | FileCheck %s --check-prefix=TRAINED
// RUN: not lowtide-opt %s --train-adapt="lora='depth:r=2'" 2>&1 | FileCheck %s --check-prefix=GROUPS
// RUN: not lowtide-opt %s --train-adapt="lora='fc:r=2' dropout=2" 2>&1 | FileCheck %s --check-prefix=OVER

// NONE: error: lora: 'fx' matches no layer; did you mean 'fc'?
// NONE-NEXT: note: layers with a product: fc, turned, left, a.q, a.k, a.v, patch, words and 2 more
// NORM: error: lora: 'norm*' matches no product: norm is read by nn.broadcast
// LARGE: error: lora: r=9 is more than 'fc' has room for: its weight is 8×6, of rank 6 at most
// LARGE-NEXT: note: give it a smaller rank by a rule in front: --lora='fc:r=6;fc:r=9'
// ZERO: error: lora: r is a rank, a whole number from 1 on; found '0'
// OPTION: error: lora: 'droput' in 'fc:r=2,droput=0.1' is no option; there are r=16, alpha=32, dropout=0.05, rslora and dora; did you mean 'dropout'?
// RANK: error: lora: 'fc:alpha=2' says no rank: add r=16, for example
// FORM: error: lora: 'fc' is not of the form LAYER,LAYER:r=16,alpha=32
// TWICE: error: lora: 'r' is given twice in 'fc:r=2,r=3'
// DROP: error: lora: dropout is a part of the pair's input, from 0 to below 1; found 1
// ALPHA: error: lora: alpha must be above 0, found -1
// MIXED: error: lora: rslora stands in 'fc:r=2,rslora' and not in 'left:r=1': PEFT's files have one answer for all layers
// TRAINED: error: lora: 'head.weight' is trained itself, and would get a pair, too
// TRAINED-NEXT: note: leave it out of --params, or out of --lora
// GROUPS: error: lora: 'depth' is a convolution in 3 groups: PEFT's pair for one cannot be merged into its filter
// GROUPS: note: name the other layers alone, in place of 
// OVER: error: dropout: must be a rate from 0 to 1, not '2'

// CHECK: module attributes {train.adapters = [
// CHECK-SAME: {a = "fc.lora_A.weight", alpha = 4.000000e+00 : f64, b = "fc.lora_B.weight", dropout = 5.000000e-01 : f64, input_dim = 1 : i64, kind = "linear", module = "fc", weight = "fc.weight"}
// CHECK-SAME: {a = "turned.lora_A.weight", {{.*}}input_dim = 0 : i64, kind = "linear", module = "turned", shares_weight, weight = "turned.weight"}
// CHECK-SAME: {a = "patch.lora_A.weight", alpha = 2.000000e+00 : f64, {{.*}}kind = "convolution"
// CHECK-SAME: {a = "words.lora_embedding_A", {{.*}}b = "words.lora_embedding_B", {{.*}}kind = "embedding", module = "words", shares_weight

// What no rule names stays as it is, and so do the weights: constants.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[FC:[a-z0-9]+]]: tensor<8x6xf32> {train.binding = #train.constant<"fc.weight">}
// CHECK-SAME: tensor<i64> {train.binding = #train.scalar<"seed">}
// CHECK-SAME: %[[FCA:[a-z0-9]+]]: tensor<2x6xf32> {train.binding = #train.param<"fc.lora_A.weight">, train.init = "uniform:0.4082482904638631"}
// CHECK-SAME: %[[FCB:[a-z0-9]+]]: tensor<8x2xf32> {train.binding = #train.param<"fc.lora_B.weight">, train.init = "zeros"}
// CHECK-SAME: %[[TA:[a-z0-9]+]]: tensor<2x8xf32> {train.binding = #train.param<"turned.lora_A.weight">
// CHECK-SAME: %[[TB:[a-z0-9]+]]: tensor<6x2xf32> {train.binding = #train.param<"turned.lora_B.weight">
// CHECK-SAME: %[[LA:[a-z0-9]+]]: tensor<1x6xf32> {train.binding = #train.param<"left.lora_A.weight">
// CHECK-SAME: %[[LB:[a-z0-9]+]]: tensor<4x1xf32> {train.binding = #train.param<"left.lora_B.weight">
// CHECK-SAME: %[[QA:[a-z0-9]+]]: tensor<4x6xf32> {train.binding = #train.param<"a.q.lora_A.weight">
// CHECK-SAME: %[[QB:[a-z0-9]+]]: tensor<4x4xf32> {train.binding = #train.param<"a.q.lora_B.weight">
// CHECK-NOT: a.k.lora
// CHECK-SAME: %[[VA:[a-z0-9]+]]: tensor<4x6xf32> {train.binding = #train.param<"a.v.lora_A.weight">
// CHECK-SAME: %[[VB:[a-z0-9]+]]: tensor<6x4xf32> {train.binding = #train.param<"a.v.lora_B.weight">
// CHECK-SAME: %[[PA:[a-z0-9]+]]: tensor<2x3x2x2xf32> {train.binding = #train.param<"patch.lora_A.weight">, train.init = "uniform:0.2886751345948129"}
// CHECK-SAME: %[[PB:[a-z0-9]+]]: tensor<5x2x1x1xf32> {train.binding = #train.param<"patch.lora_B.weight">, train.init = "zeros"}
// CHECK-SAME: %[[WA:[a-z0-9]+]]: tensor<3x10xf32> {train.binding = #train.param<"words.lora_embedding_A">, train.init = "zeros"}
// CHECK-SAME: %[[WB:[a-z0-9]+]]: tensor<6x3xf32> {train.binding = #train.param<"words.lora_embedding_B">, train.init = "normal:1"}

// Two samples in six rows: they draw what they would alone.
// CHECK: %[[Y:.*]] = nn.dot %[[X:.*]], %[[FC]] {transpose_b} : (tensor<6x6xf32>, tensor<8x6xf32>) -> tensor<6x8xf32>
// CHECK: %[[U:.*]] = nn.random_uniform %{{.*}} op = 7 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3x6xf32>
// CHECK: %[[FLAT:.*]] = nn.reshape %[[U]] : tensor<2x3x6xf32> -> tensor<6x6xf32>
// CHECK: nn.compare ge %[[FLAT]]
// CHECK: %[[D:.*]] = nn.select
// CHECK: %[[T:.*]] = nn.dot %[[D]], %[[FCA]] {transpose_b} : (tensor<6x6xf32>, tensor<2x6xf32>) -> tensor<6x2xf32>
// CHECK: %[[TWO:.*]] = nn.constant dense<2.000000e+00> : tensor<6x2xf32>
// CHECK: %[[S:.*]] = nn.mul %[[T]], %[[TWO]]
// CHECK: %[[DELTA:.*]] = nn.dot %[[S]], %[[FCB]] {transpose_b} : (tensor<6x2xf32>, tensor<8x2xf32>) -> tensor<6x8xf32>
// CHECK: %[[SUM:.*]] = nn.add %[[Y]], %[[DELTA]]
// The other draws others.
// CHECK: nn.dot %[[SUM]], %{{.*}} : (tensor<6x8xf32>, tensor<8x6xf32>) -> tensor<6x6xf32>
// CHECK: nn.random_uniform %{{.*}} op = 8 batch_dim = 0
// CHECK: nn.dot %{{.*}}, %[[TA]] {transpose_b}
// CHECK: nn.dot %{{.*}}, %[[TB]] {transpose_b}
// From the left.
// CHECK: nn.dot %{{.*}}, %{{.*}} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
// CHECK: %[[R:.*]] = nn.dot %[[LA]], %{{.*}} : (tensor<1x6xf32>, tensor<6x6xf32>) -> tensor<1x6xf32>
// CHECK: %[[R3:.*]] = nn.mul %[[R]]
// CHECK: nn.dot %[[LB]], %[[R3]] : (tensor<4x1xf32>, tensor<1x6xf32>) -> tensor<4x6xf32>
// Joined into one matrix: B has zeros where the others are.
// CHECK: nn.concat
// CHECK: %[[QKV:.*]] = nn.dot %[[IN:.*]], %{{.*}} {transpose_b} : (tensor<6x6xf32>, tensor<12x6xf32>) -> tensor<6x12xf32>
// CHECK: %[[VPAD:.*]] = nn.pad %[[VB]] low = [6, 0] high = [0, 0]
// CHECK: nn.dot %[[IN]], %[[VA]] {transpose_b}
// CHECK: nn.dot %{{.*}}, %[[VPAD]] {transpose_b} : (tensor<6x4xf32>, tensor<12x4xf32>) -> tensor<6x12xf32>
// CHECK: %[[QPAD:.*]] = nn.pad %[[QB]] low = [0, 0] high = [8, 0]
// CHECK: nn.dot %[[IN]], %[[QA]] {transpose_b}
// CHECK: nn.dot %{{.*}}, %[[QPAD]] {transpose_b}
// CHECK: %[[C:.*]] = nn.conv %{{.*}}, %[[PA]] strides = [2, 2] pads = [0, 1], [1, 0] dilations = [1, 1] groups = 1
// CHECK: nn.conv %{{.*}}, %[[PB]] strides = [1, 1] pads = [0, 0], [0, 0] dilations = [1, 1] groups = 1
// CHECK: %[[COL:.*]] = nn.gather %[[WA]][%{{.*}}] axis = 1 {untrained_row = 0 : i64} : (tensor<3x10xf32>, tensor<2x3xi64>) -> tensor<3x2x3xf32>
// CHECK: nn.dot %{{.*}}, %[[WB]] {transpose_a, transpose_b} : (tensor<3x6xf32>, tensor<6x3xf32>) -> tensor<6x6xf32>
// The table's product is another layer's, of which there is none here.
// CHECK: %[[LOGITS:.*]] = nn.dot %{{.*}} -> tensor<6x10xf32>
// CHECK: return {{.*}}, %[[LOGITS]] :

// An evaluation draws nothing. A layer that is called twice has one pair.
// CHECK-LABEL: func.func @eval
// CHECK-SAME: %[[EA:[a-z0-9]+]]: tensor<2x6xf32> {train.binding = #train.param<"fc.lora_A.weight">
// CHECK-SAME: %[[EB:[a-z0-9]+]]: tensor<8x2xf32> {train.binding = #train.param<"fc.lora_B.weight">
// CHECK-NOT: train.param
// CHECK-NOT: nn.random_uniform
// CHECK: nn.dot %[[ROWS:.*]], %[[EA]] {transpose_b} : (tensor<6x6xf32>, tensor<2x6xf32>) -> tensor<6x2xf32>
// CHECK: nn.dot %{{.*}}, %[[EB]] {transpose_b} : (tensor<6x2xf32>, tensor<8x2xf32>) -> tensor<6x8xf32>
// CHECK: nn.dot %[[EA]], %[[ROWS]] {transpose_b} : (tensor<2x6xf32>, tensor<6x6xf32>) -> tensor<2x6xf32>
// CHECK: nn.dot %[[EB]], %{{.*}} : (tensor<8x2xf32>, tensor<2x6xf32>) -> tensor<8x6xf32>
// CHECK: return

// STILL-LABEL: func.func @forward
// STILL-SAME: tensor<2x6xf32> {train.binding = #train.param<"fc.lora_A.weight">
// STILL-SAME: tensor<1x8xf32> {train.binding = #train.param<"turned.lora_A.weight">
// STILL-NOT: op = 7
// STILL: func.func @eval

// ROOT-LABEL: func.func @forward
// ROOT: nn.constant dense<3.000000e+00> : tensor<6x4xf32>

func.func @forward(%x: tensor<2x3x6xf32> {train.binding = #train.batch<"x">},
    %i: tensor<2x3xi64> {train.binding = #train.batch<"i">},
    %image: tensor<2x3x4x4xf32> {train.binding = #train.batch<"image">},
    %fc: tensor<8x6xf32> {train.binding = #train.constant<"fc.weight">},
    %turned: tensor<8x6xf32> {train.binding = #train.constant<"turned.weight">},
    %left: tensor<4x6xf32> {train.binding = #train.constant<"left.weight">},
    %q: tensor<4x6xf32> {train.binding = #train.constant<"a.q.weight">},
    %k: tensor<2x6xf32> {train.binding = #train.constant<"a.k.weight">},
    %v: tensor<6x6xf32> {train.binding = #train.constant<"a.v.weight">},
    %patch: tensor<5x3x2x2xf32> {train.binding = #train.constant<"patch.weight">},
    %words: tensor<10x6xf32> {train.binding = #train.constant<"words.weight">},
    %depth: tensor<3x1x2x2xf32> {train.binding = #train.constant<"depth.weight">},
    %head: tensor<2x6xf32> {train.binding = #train.param<"head.weight">},
    %norm: tensor<6xf32> {train.binding = #train.constant<"norm.weight">},
    %seed: tensor<i64> {train.binding = #train.scalar<"seed">}, %step: tensor<i64> {train.binding = #train.scalar<"step">},
    %row: tensor<i64> {train.binding = #train.scalar<"row">})
    -> (tensor<6x6xf32>, tensor<4x6xf32>, tensor<6x12xf32>, tensor<2x5x2x2xf32>, tensor<6x6xf32>, tensor<6x2xf32>,
        tensor<8x6xf32>, tensor<2x3x3x3xf32>, tensor<6x6xf32>, tensor<6x10xf32>) {
  %u = nn.random_uniform %seed, %step, %row op = 6 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3x6xf32>
  %in = nn.add %x, %u : tensor<2x3x6xf32>
  %rows = nn.reshape %in : tensor<2x3x6xf32> -> tensor<6x6xf32>
  %0 = nn.dot %rows, %fc {transpose_b} : (tensor<6x6xf32>, tensor<8x6xf32>) -> tensor<6x8xf32>
  %1 = nn.dot %0, %turned : (tensor<6x8xf32>, tensor<8x6xf32>) -> tensor<6x6xf32>
  %2 = nn.dot %left, %rows : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
  %qkv = nn.concat %q, %k, %v dim = 0 : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<6x6xf32>) -> tensor<12x6xf32>
  %3 = nn.dot %rows, %qkv {transpose_b} : (tensor<6x6xf32>, tensor<12x6xf32>) -> tensor<6x12xf32>
  %4 = nn.conv %image, %patch strides = [2, 2] pads = [0, 1], [1, 0] dilations = [1, 1] groups = 1 : (tensor<2x3x4x4xf32>, tensor<5x3x2x2xf32>) -> tensor<2x5x2x2xf32>
  %5 = nn.gather %words[%i] axis = 0 {untrained_row = 0 : i64} : (tensor<10x6xf32>, tensor<2x3xi64>) -> tensor<2x3x6xf32>
  %6 = nn.reshape %5 : tensor<2x3x6xf32> -> tensor<6x6xf32>
  %7 = nn.dot %6, %head {transpose_b} : (tensor<6x6xf32>, tensor<2x6xf32>) -> tensor<6x2xf32>
  %penalty = nn.mul %turned, %turned : tensor<8x6xf32>
  %tied = nn.dot %6, %words {transpose_b} : (tensor<6x6xf32>, tensor<10x6xf32>) -> tensor<6x10xf32>
  %8 = nn.conv %image, %depth strides = [1, 1] pads = [0, 0], [0, 0] dilations = [1, 1] groups = 3 : (tensor<2x3x4x4xf32>, tensor<3x1x2x2xf32>) -> tensor<2x3x3x3xf32>
  %scale = nn.broadcast %norm dims = [1] : tensor<6xf32> -> tensor<6x6xf32>
  %9 = nn.mul %rows, %scale : tensor<6x6xf32>
  return %1, %2, %3, %4, %6, %7, %penalty, %8, %9, %tied : tensor<6x6xf32>, tensor<4x6xf32>, tensor<6x12xf32>, tensor<2x5x2x2xf32>, tensor<6x6xf32>, tensor<6x2xf32>, tensor<8x6xf32>, tensor<2x3x3x3xf32>, tensor<6x6xf32>, tensor<6x10xf32>
}

func.func @eval(%x: tensor<2x3x6xf32> {train.binding = #train.batch<"x">}, %fc: tensor<8x6xf32> {train.binding = #train.constant<"fc.weight">})
    -> (tensor<6x8xf32>, tensor<8x6xf32>) {
  %rows = nn.reshape %x : tensor<2x3x6xf32> -> tensor<6x6xf32>
  %0 = nn.dot %rows, %fc {transpose_b} : (tensor<6x6xf32>, tensor<8x6xf32>) -> tensor<6x8xf32>
  %1 = nn.dot %fc, %rows {transpose_b} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  return %0, %1 : tensor<6x8xf32>, tensor<8x6xf32>
}
