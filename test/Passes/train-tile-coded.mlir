// Matrices that are computed of codes are computed tile by tile, each in front of the product that reads it: rows of the
// codes where the product's outputs are rows, blocks of all rows where they are columns.
// RUN: lowtide-opt %s --train-tile-coded --canonicalize 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.err

// REMARK: remark: @int8: 2 products read a matrix in codes tile by tile, 0 as a whole
// REMARK: remark: @packed: 2 products read a matrix in codes tile by tile, 0 as a whole
// REMARK: remark: @across: 1 products read a matrix in codes tile by tile, 1 as a whole
// REMARK-NOT: @trained

// CHECK-LABEL: func.func @int8
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x128xf32>
// CHECK-SAME: %[[CODES:[a-z0-9]+]]: tensor<128x64xi8>
// CHECK-SAME: %[[SCALES:[a-z0-9]+]]: tensor<128xf32>
// Four tiles of 16 rows, of 32 blocks each.
// CHECK: %[[C:.*]] = nn.slice %[[CODES]] starts = [0, 0] strides = [1, 1] : tensor<128x64xi8> -> tensor<32x64xi8>
// CHECK: %[[N:.*]] = nn.cast %[[C]] : tensor<32x64xi8> -> tensor<32x64xf32>
// CHECK: %[[S:.*]] = nn.slice %[[SCALES]] starts = [0] strides = [1] : tensor<128xf32> -> tensor<32xf32>
// CHECK: %[[B:.*]] = nn.broadcast %[[S]] dims = [0] : tensor<32xf32> -> tensor<32x64xf32>
// CHECK: %[[M:.*]] = nn.mul %[[N]], %[[B]] : tensor<32x64xf32>
// CHECK: %[[T:.*]] = nn.reshape %[[M]] : tensor<32x64xf32> -> tensor<16x128xf32>
// CHECK: %[[P:.*]] = nn.dot %[[X]], %[[T]] {transpose_b} : (tensor<4x128xf32>, tensor<16x128xf32>) -> tensor<4x16xf32>
// CHECK: nn.slice %[[CODES]] starts = [32, 0]
// CHECK: nn.slice %[[CODES]] starts = [96, 0]
// CHECK: %[[Y:.*]] = nn.concat %[[P]], %{{.*}} dim = 1 : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x64xf32>
// The derivative's outputs are columns: whole blocks of all rows, of which there are two.
// CHECK: %[[R:.*]] = nn.reshape %[[CODES]] : tensor<128x64xi8> -> tensor<64x2x64xi8>
// CHECK: nn.slice %[[R]] starts = [0, 0, 0] strides = [1, 1, 1] : tensor<64x2x64xi8> -> tensor<64x1x64xi8>
// CHECK: nn.dot %[[Y]], %{{.*}} : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
// CHECK: nn.slice %{{.*}} starts = [0, 1, 0] strides = [1, 1, 1] : tensor<64x2x64xi8> -> tensor<64x1x64xi8>
// CHECK: nn.concat %{{.*}} dim = 1 : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x128xf32>
func.func @int8(%x: tensor<4x128xf32> {train.binding = #train.batch<"x">},
    %codes: tensor<128x64xi8> {train.binding = #train.constant<"w">},
    %scales: tensor<128xf32> {train.binding = #train.constant<"w.scale">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %numbers = nn.cast %codes : tensor<128x64xi8> -> tensor<128x64xf32>
  %spread = nn.broadcast %scales dims = [0] : tensor<128xf32> -> tensor<128x64xf32>
  %product = nn.mul %numbers, %spread : tensor<128x64xf32>
  %w = nn.reshape %product : tensor<128x64xf32> -> tensor<64x128xf32>
  %y = nn.dot %x, %w {transpose_b} : (tensor<4x128xf32>, tensor<64x128xf32>) -> tensor<4x64xf32>
  %dx = nn.dot %y, %w : (tensor<4x64xf32>, tensor<64x128xf32>) -> tensor<4x128xf32>
  %loss = nn.reduce_sum %dx dims = [0, 1] : tensor<4x128xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// As MatMulNBits is legalized: codes of four bits joined, with zero points and a slice of the last block.
// CHECK-LABEL: func.func @packed
// CHECK-NOT: tensor<64x128xf32>
// CHECK: nn.slice %{{.*}} : tensor<64x4x16xui8> -> tensor<16x4x16xui8>
// CHECK: nn.concat %{{.*}} : (tensor<16x4x16x1xui8>, tensor<16x4x16x1xui8>) -> tensor<16x4x16x2xui8>
// CHECK: nn.dot %{{.*}} {transpose_b} : (tensor<4x120xf32>, tensor<16x120xf32>) -> tensor<4x16xf32>
// CHECK-NOT: tensor<64x120xf32>
// CHECK: return
func.func @packed(%x: tensor<4x120xf32> {train.binding = #train.batch<"x">},
    %bytes: tensor<64x4x16xui8> {train.binding = #train.constant<"w">},
    %scales: tensor<64x4xf32> {train.binding = #train.constant<"w.scale">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %four = nn.constant dense<4> : tensor<64x4x16xui8>
  %mask = nn.constant dense<15> : tensor<64x4x16xui8>
  %low = nn.and %bytes, %mask : tensor<64x4x16xui8>
  %high = nn.shift_right %bytes, %four : tensor<64x4x16xui8>
  %low1 = nn.reshape %low : tensor<64x4x16xui8> -> tensor<64x4x16x1xui8>
  %high1 = nn.reshape %high : tensor<64x4x16xui8> -> tensor<64x4x16x1xui8>
  %both = nn.concat %low1, %high1 dim = 3 : (tensor<64x4x16x1xui8>, tensor<64x4x16x1xui8>) -> tensor<64x4x16x2xui8>
  %all = nn.reshape %both : tensor<64x4x16x2xui8> -> tensor<64x128xui8>
  %codes = nn.slice %all starts = [0, 0] strides = [1, 1] : tensor<64x128xui8> -> tensor<64x120xui8>
  %wide = nn.cast %codes : tensor<64x120xui8> -> tensor<64x120xi32>
  %zero = nn.constant dense<8> : tensor<64x120xi32>
  %difference = nn.sub %wide, %zero : tensor<64x120xi32>
  %numbers = nn.cast %difference : tensor<64x120xi32> -> tensor<64x120xf32>
  %spread = nn.broadcast %scales dims = [0, 1] : tensor<64x4xf32> -> tensor<64x4x32xf32>
  %joined = nn.reshape %spread : tensor<64x4x32xf32> -> tensor<64x128xf32>
  %scale = nn.slice %joined starts = [0, 0] strides = [1, 1] : tensor<64x128xf32> -> tensor<64x120xf32>
  %w = nn.mul %numbers, %scale : tensor<64x120xf32>
  %turned = nn.transpose %w [1, 0] : tensor<64x120xf32> -> tensor<120x64xf32>
  %y = nn.dot %x, %turned : (tensor<4x120xf32>, tensor<120x64xf32>) -> tensor<4x64xf32>
  %z = nn.dot %x, %w {transpose_b} : (tensor<4x120xf32>, tensor<64x120xf32>) -> tensor<4x64xf32>
  %sum = nn.add %y, %z : tensor<4x64xf32>
  %loss = nn.reduce_sum %sum dims = [0, 1] : tensor<4x64xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// Rows of 48 numbers in blocks of 64: four tiles of rows hold whole blocks, columns do not.
// CHECK-LABEL: func.func @across
// CHECK: nn.slice %{{.*}} starts = [0, 0] strides = [1, 1] : tensor<108x64xi8> -> tensor<27x64xi8>
// CHECK: nn.dot %{{.*}} {transpose_b} : (tensor<4x48xf32>, tensor<36x48xf32>) -> tensor<4x36xf32>
// CHECK: nn.dot %{{.*}} : (tensor<4x144xf32>, tensor<144x48xf32>) -> tensor<4x48xf32>
func.func @across(%x: tensor<4x48xf32> {train.binding = #train.batch<"x">},
    %codes: tensor<108x64xi8> {train.binding = #train.constant<"w">},
    %scales: tensor<108xf32> {train.binding = #train.constant<"w.scale">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %numbers = nn.cast %codes : tensor<108x64xi8> -> tensor<108x64xf32>
  %spread = nn.broadcast %scales dims = [0] : tensor<108xf32> -> tensor<108x64xf32>
  %product = nn.mul %numbers, %spread : tensor<108x64xf32>
  %w = nn.reshape %product : tensor<108x64xf32> -> tensor<144x48xf32>
  %y = nn.dot %x, %w {transpose_b} : (tensor<4x48xf32>, tensor<144x48xf32>) -> tensor<4x144xf32>
  %dx = nn.dot %y, %w : (tensor<4x144xf32>, tensor<144x48xf32>) -> tensor<4x48xf32>
  %loss = nn.reduce_sum %dx dims = [0, 1] : tensor<4x48xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// What is trained, and what is computed of f32 numbers, is no matrix in codes.
// CHECK-LABEL: func.func @trained
// CHECK-COUNT-2: nn.dot
// CHECK-NOT: nn.dot
func.func @trained(%x: tensor<4x64xf32> {train.binding = #train.batch<"x">},
    %w: tensor<64x64xf32> {train.binding = #train.param<"w">},
    %v: tensor<64x64xf32> {train.binding = #train.constant<"v">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %twice = nn.add %w, %w : tensor<64x64xf32>
  %y = nn.dot %x, %twice : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  %square = nn.mul %v, %v : tensor<64x64xf32>
  %z = nn.dot %y, %square : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  %loss = nn.reduce_sum %z dims = [0, 1] : tensor<4x64xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
