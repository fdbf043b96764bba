// Magnitudes next to pairs (dora): each output is multiplied with magnitude / norm, and the norm is a constant to the backward pass.
// RUN: lowtide-opt %s --train-adapt="lora='fc,turned,a.k,patch,words:r=2,alpha=6,dora'" --canonicalize --cse 2>/dev/null | FileCheck %s
// RUN: lowtide-opt %s --train-adapt="lora='fc:r=2,alpha=6,dropout=0.5,dora'" --canonicalize --cse 2>/dev/null | FileCheck %s --check-prefix=DROPPED
// RUN: lowtide-opt %s --train-adapt="lora='fc:r=2,alpha=6,dropout=0.5,dora=false'" --canonicalize --cse 2>/dev/null | FileCheck %s --check-prefix=PLAIN
// RUN: lowtide-opt %s --train-adapt="lora='fc:r=2,alpha=6,dora'" --train-differentiate --canonicalize --cse 2>/dev/null | FileCheck %s --check-prefix=BACK
// RUN: not lowtide-opt %s --train-adapt="lora='fc:r=2,dora;turned:r=1'" 2>&1 | FileCheck %s --check-prefix=MIXED
// RUN: not lowtide-opt %s --train-adapt="lora='fc:r=2,dora=often'" 2>&1 | FileCheck %s --check-prefix=OFTEN
// RUN: not lowtide-opt %s --train-adapt="lora='left:r=1,dora'" 2>&1 | FileCheck %s --check-prefix=SUMMED
// RUN: lowtide-opt %s --train-adapt="lora='left:r=1'" 2>/dev/null | FileCheck %s --check-prefix=ALONE
// RUN: not lowtide-opt %s --train-adapt="lora='packed:r=1,dora'" 2>&1 | FileCheck %s --check-prefix=PACKED

// MIXED: error: lora: dora stands in 'fc:r=2,dora' and not in 'turned:r=1': PEFT's files have one answer for all layers
// OFTEN: error: lora: dora stands alone, or is true or false; found 'often'
// SUMMED: error: lora: 'left' is added to other layers by one product, so that its outputs alone have no magnitude
// ALONE: train.adapters = [{a = "left.lora_A.weight"
// PACKED: error: lora: dora starts from the norms of 'packed', whose numbers the step unpacks from codes that the file holds

// CHECK: train.adapters = [{a = "fc.lora_A.weight", {{.*}}input_dim = 1 : i64, kind = "linear", magnitude = "fc.lora_magnitude_vector", module = "fc", norm = "fc.lora_weight_norm", norm_of = "fc.weight", weight = "fc.weight"}
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[FC:[a-z0-9]+]]: tensor<8x6xf32> {train.binding = #train.constant<"fc.weight">}
// CHECK-SAME: %[[FCA:[a-z0-9]+]]: tensor<2x6xf32> {train.binding = #train.param<"fc.lora_A.weight">
// CHECK-SAME: %[[FCB:[a-z0-9]+]]: tensor<8x2xf32> {train.binding = #train.param<"fc.lora_B.weight">
// CHECK-SAME: %[[FCM:[a-z0-9]+]]: tensor<8xf32> {train.binding = #train.param<"fc.lora_magnitude_vector">, train.init = "norm"}
// CHECK-SAME: %[[FCN:[a-z0-9]+]]: tensor<8xf32> {train.binding = #train.constant<"fc.lora_weight_norm">, train.init = "norm"}
// CHECK-SAME: tensor<6xf32> {train.binding = #train.param<"turned.lora_magnitude_vector">
// CHECK-SAME: tensor<2xf32> {train.binding = #train.param<"a.k.lora_magnitude_vector">
// CHECK-SAME: tensor<1x5x1x1xf32> {train.binding = #train.param<"patch.lora_magnitude_vector">
// CHECK-SAME: tensor<5xf32> {train.binding = #train.constant<"patch.lora_weight_norm">
// CHECK-SAME: tensor<6xf32> {train.binding = #train.param<"words.lora_magnitude_vector">

// Nothing of the weight's size is made of the pair: products with a weight have r columns, of the pair alone r rows or columns.
// Of a table, rows are inputs; of a filter, all but its first dimension.
// CHECK: nn.dot %{{.*}} {transpose_a, transpose_b} : (tensor<10x6xf32>, tensor<2x10xf32>) -> tensor<6x2xf32>
// CHECK: nn.dot %{{.*}} {transpose_b} : (tensor<5x12xf32>, tensor<2x12xf32>) -> tensor<5x2xf32>
// CHECK: nn.dot %{{.*}} {transpose_b} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x2xf32>
// CHECK: nn.dot %{{.*}} {transpose_a, transpose_b} : (tensor<8x6xf32>, tensor<2x8xf32>) -> tensor<6x2xf32>
// CHECK: %[[CROSSED:.*]] = nn.dot %[[FC]], %[[FCA]] {transpose_b} : (tensor<8x6xf32>, tensor<2x6xf32>) -> tensor<8x2xf32>
// CHECK: %[[GRAM:.*]] = nn.dot %[[FCA]], %[[FCA]] {transpose_b} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x2xf32>
// CHECK: %[[OWN:.*]] = nn.dot %[[FCB]], %[[GRAM]]
// CHECK: %[[SQUARE:.*]] = nn.mul %[[FCN]], %[[FCN]]
// CHECK: %[[TWICE:.*]] = nn.mul %[[CROSSED]], %{{.*}}
// CHECK: %[[SCALED:.*]] = nn.mul %[[OWN]], %{{.*}}
// CHECK: %[[BOTH:.*]] = nn.add %[[TWICE]], %[[SCALED]]
// CHECK: %[[EACH:.*]] = nn.mul %[[BOTH]], %[[FCB]]
// CHECK: %[[SUM:.*]] = nn.reduce_sum %[[EACH]] dims = [1] : tensor<8x2xf32> -> tensor<8xf32>
// CHECK: %[[CHANGE:.*]] = nn.mul %[[SUM]], %{{.*}}
// CHECK: %[[ALL:.*]] = nn.add %[[SQUARE]], %[[CHANGE]]
// CHECK: %[[ROOT:.*]] = nn.sqrt %[[ALL]]
// CHECK: %[[STILL:.*]] = nn.stop_gradient %[[ROOT]] : tensor<8xf32>
// CHECK: %[[RATIO:.*]] = nn.div %[[FCM]], %[[STILL]] : tensor<8xf32>
// CHECK: %[[Y:.*]] = nn.dot %[[X:.*]], %[[FC]] {transpose_b} : (tensor<6x6xf32>, tensor<8x6xf32>) -> tensor<6x8xf32>
// CHECK: %[[SPREAD:.*]] = nn.broadcast %[[RATIO]] dims = [1] : tensor<8xf32> -> tensor<6x8xf32>
// CHECK: %[[DELTA:.*]] = nn.dot %{{.*}}, %[[FCB]] {transpose_b}
// CHECK: %[[PLUS:.*]] = nn.add %[[Y]], %[[DELTA]]
// CHECK: nn.mul %[[SPREAD]], %[[PLUS]]
// Joined with another: what is not its own is multiplied with one.
// CHECK: nn.pad %{{.*}} low = [4, 0] high = [0, 0] interior = [0, 0] {value = 1.000000e+00 : f64} : tensor<2x1xf32> -> tensor<6x1xf32>
// CHECK: nn.broadcast %{{.*}} dims = [1] : tensor<5xf32> -> tensor<2x5x2x2xf32>
// CHECK: nn.broadcast %{{.*}} dims = [2] : tensor<6xf32> -> tensor<2x3x6xf32>
// CHECK: return

// What a magnitude adds is of the dropped input, by a product of its own; the product itself is of all of it.
// DROPPED: %[[NARROW:.*]] = nn.div
// DROPPED: %[[Y:.*]] = nn.dot %[[X:.*]], %[[W:.*]] {transpose_b} : (tensor<6x6xf32>, tensor<8x6xf32>) -> tensor<6x8xf32>
// DROPPED: %[[RATIO:.*]] = nn.broadcast %[[NARROW]]
// DROPPED: %[[D:.*]] = nn.select
// DROPPED: %[[ROWS:.*]] = nn.reshape %[[D]]
// DROPPED: %[[AGAIN:.*]] = nn.dot %[[ROWS]], %[[W]] {transpose_b} : (tensor<6x6xf32>, tensor<8x6xf32>) -> tensor<6x8xf32>
// DROPPED: %[[LESS:.*]] = nn.sub %[[NARROW]], %{{.*}} : tensor<8xf32>
// DROPPED: %[[SPREAD:.*]] = nn.broadcast %[[LESS]]
// DROPPED: %[[OFBASE:.*]] = nn.mul %[[SPREAD]], %[[AGAIN]]
// DROPPED: %[[OFPAIR:.*]] = nn.mul %[[RATIO]], %{{.*}}
// DROPPED: %[[ADDED:.*]] = nn.add %[[OFBASE]], %[[OFPAIR]]
// DROPPED: nn.add %[[Y]], %[[ADDED]]
// PLAIN-NOT: magnitude
// PLAIN-COUNT-1: (tensor<6x6xf32>, tensor<8x6xf32>) -> tensor<6x8xf32>
// PLAIN-NOT: (tensor<6x6xf32>, tensor<8x6xf32>) -> tensor<6x8xf32>

// The backward pass: of the pair three products, for its factors and the columns between them; none through the norm, where it
// would end at the row that is not trained.
// BACK-LABEL: func.func @gradient
// BACK-SAME: %[[FCA:[a-z0-9]+]]: tensor<2x6xf32> {train.binding = #train.param<"fc.lora_A.weight">
// BACK-SAME: %[[FCB:[a-z0-9]+]]: tensor<8x2xf32> {train.binding = #train.param<"fc.lora_B.weight">
// BACK: nn.dot %[[FCA]], %[[FCA]]
// BACK: nn.stop_gradient %{{.*}} : tensor<8xf32>
// BACK: %[[DZ:.*]] = nn.dot %{{.*}} {transpose_b} : (tensor<6x6xf32>, tensor<8x6xf32>) -> tensor<6x8xf32>
// BACK: %[[DZ:.*]] = nn.dot %{{.*}} {transpose_b} : (tensor<6x6xf32>, tensor<8x6xf32>) -> tensor<6x8xf32>
// BACK: %[[DY:.*]] = nn.mul
// BACK: %[[DT:.*]] = nn.dot %{{.*}}, %[[FCB]] : (tensor<6x8xf32>, tensor<8x2xf32>) -> tensor<6x2xf32>
// BACK: %[[DB:.*]] = nn.dot %{{.*}} {transpose_a} : (tensor<6x8xf32>, tensor<6x2xf32>) -> tensor<8x2xf32>
// BACK: %[[DA:.*]] = nn.dot %{{.*}} {transpose_a} : (tensor<6x2xf32>, tensor<6x6xf32>) -> tensor<2x6xf32>
// BACK-NOT: nn.dot
// BACK-NOT: nn.scatter
// BACK: return %{{.*}}, %[[DA]], %[[DB]], %{{.*}} :

func.func @forward(%x: tensor<2x3x6xf32> {train.binding = #train.batch<"x">},
    %i: tensor<2x3xi64> {train.binding = #train.batch<"i">},
    %image: tensor<2x3x4x4xf32> {train.binding = #train.batch<"image">},
    %fc: tensor<8x6xf32> {train.binding = #train.constant<"fc.weight">},
    %turned: tensor<8x6xf32> {train.binding = #train.constant<"turned.weight">},
    %q: tensor<4x6xf32> {train.binding = #train.constant<"a.q.weight">},
    %k: tensor<2x6xf32> {train.binding = #train.constant<"a.k.weight">},
    %patch: tensor<5x3x2x2xf32> {train.binding = #train.constant<"patch.weight">},
    %words: tensor<10x6xf32> {train.binding = #train.constant<"words.weight">},
    %left: tensor<4x3xf32> {train.binding = #train.constant<"left.weight">},
    %right: tensor<4x3xf32> {train.binding = #train.constant<"right.weight">},
    %codes: tensor<6x6xi8> {train.binding = #train.constant<"packed.weight_Q8">},
    %scales: tensor<6xf32> {train.binding = #train.constant<"packed.scales">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<2x5x2x2xf32> {train.binding = #train.output<"map">},
        tensor<2x3x6xf32> {train.binding = #train.output<"rows">}, tensor<6x4xf32> {train.binding = #train.output<"sums">}) {
  %rows = nn.reshape %x : tensor<2x3x6xf32> -> tensor<6x6xf32>
  %0 = nn.dot %rows, %fc {transpose_b} : (tensor<6x6xf32>, tensor<8x6xf32>) -> tensor<6x8xf32>
  %1 = nn.dot %0, %turned : (tensor<6x8xf32>, tensor<8x6xf32>) -> tensor<6x6xf32>
  %all = nn.concat %q, %k dim = 0 : (tensor<4x6xf32>, tensor<2x6xf32>) -> tensor<6x6xf32>
  %2 = nn.dot %1, %all {transpose_b} : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
  %3 = nn.conv %image, %patch strides = [2, 2] pads = [0, 1], [1, 0] dilations = [1, 1] groups = 1 : (tensor<2x3x4x4xf32>, tensor<5x3x2x2xf32>) -> tensor<2x5x2x2xf32>
  %4 = nn.gather %words[%i] axis = 0 : (tensor<10x6xf32>, tensor<2x3xi64>) -> tensor<2x3x6xf32>
  %sides = nn.concat %left, %right dim = 1 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x6xf32>
  %5 = nn.dot %rows, %sides {transpose_b} : (tensor<6x6xf32>, tensor<4x6xf32>) -> tensor<6x4xf32>
  %numbers = nn.cast %codes : tensor<6x6xi8> -> tensor<6x6xf32>
  %factors = nn.broadcast %scales dims = [0] : tensor<6xf32> -> tensor<6x6xf32>
  %packed = nn.mul %numbers, %factors : tensor<6x6xf32>
  %6 = nn.dot %2, %packed {transpose_b} : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32> loc("packed_Q8")
  %loss = nn.reduce_sum %6 dims = [0, 1] : tensor<6x6xf32> -> tensor<f32>
  return %loss, %3, %4, %5 : tensor<f32>, tensor<2x5x2x2xf32>, tensor<2x3x6xf32>, tensor<6x4xf32>
}
