// RUN: lowtide-opt %s --canonicalize | FileCheck %s
// RUN: lowtide-execute %s
// RUN: lowtide-opt %s --canonicalize | lowtide-execute

// What PyTorch's exporter writes for torch.diagonal: a product with a mask, summed. Along either dimension the same
// elements are read.
// CHECK-LABEL: @matrix
// CHECK-NOT: nn.mul
// CHECK-COUNT-2: nn.gather_elements %arg0[%{{.*}}] axis = 1 : (tensor<3x3xf32>, tensor<3x1xi64>) -> tensor<3x1xf32>
// CHECK-NOT: nn.mul
// CHECK: return
func.func @matrix(%x: tensor<3x3xf32> {test.value = dense<[[1.0, 2.0, 3.0], [4.0, 5.5, 6.0], [7.0, 8.0, -9.0]]> : tensor<3x3xf32>})
    -> (tensor<3xf32> {test.value = dense<[1.0, 5.5, -9.0]> : tensor<3xf32>, test.tolerance = 0.0},
        tensor<3xf32> {test.value = dense<[1.0, 5.5, -9.0]> : tensor<3xf32>, test.tolerance = 0.0}) {
  %r = nn.iota dim = 0 : tensor<3x3xi64>
  %c = nn.iota dim = 1 : tensor<3x3xi64>
  %e = nn.compare eq %c, %r : tensor<3x3xi64> -> tensor<3x3xi1>
  %m = nn.cast %e : tensor<3x3xi1> -> tensor<3x3xf32>
  %p = nn.mul %x, %m : tensor<3x3xf32>
  %a = nn.reduce_sum %p dims = [0] : tensor<3x3xf32> -> tensor<3xf32>
  %q = nn.mul %m, %x : tensor<3x3xf32>
  %b = nn.reduce_sum %q dims = [1] : tensor<3x3xf32> -> tensor<3xf32>
  return %a, %b : tensor<3xf32>, tensor<3xf32>
}

// Dimensions that are apart: the summed one is read along, and goes.
// CHECK-LABEL: @apart
// CHECK: nn.gather_elements %arg0[%{{.*}}] axis = 0 : (tensor<2x3x2xf32>, tensor<1x3x2xi64>) -> tensor<1x3x2xf32>
// CHECK: nn.gather_elements %arg0[%{{.*}}] axis = 2 : (tensor<2x3x2xf32>, tensor<2x3x1xi64>) -> tensor<2x3x1xf32>
// CHECK: return
func.func @apart(%x: tensor<2x3x2xf32> {test.value = dense<[[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], [[6.0, 7.0], [8.0, 9.0], [10.0, 11.0]]]> : tensor<2x3x2xf32>})
    -> (tensor<3x2xf32> {test.value = dense<[[0.0, 7.0], [2.0, 9.0], [4.0, 11.0]]> : tensor<3x2xf32>, test.tolerance = 0.0},
        tensor<2x3xf32> {test.value = dense<[[0.0, 2.0, 4.0], [7.0, 9.0, 11.0]]> : tensor<2x3xf32>, test.tolerance = 0.0}) {
  %r = nn.iota dim = 0 : tensor<2x2xi64>
  %c = nn.iota dim = 1 : tensor<2x2xi64>
  %e = nn.compare eq %r, %c : tensor<2x2xi64> -> tensor<2x2xi1>
  %f = nn.cast %e : tensor<2x2xi1> -> tensor<2x2xf32>
  %m = nn.broadcast %f dims = [0, 2] : tensor<2x2xf32> -> tensor<2x3x2xf32>
  %p = nn.mul %x, %m : tensor<2x3x2xf32>
  %a = nn.reduce_sum %p dims = [0] : tensor<2x3x2xf32> -> tensor<3x2xf32>
  %b = nn.reduce_sum %p dims = [2] : tensor<2x3x2xf32> -> tensor<2x3xf32>
  return %a, %b : tensor<3x2xf32>, tensor<2x3xf32>
}

// No diagonal of a matrix that is not square, and none where a third dimension is summed.
// CHECK-LABEL: @neither
// CHECK-NOT: nn.gather_elements
// CHECK: return
func.func @neither(%x: tensor<2x3xf32> {test.value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>},
    %z: tensor<2x2x2xf32> {test.value = dense<[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]> : tensor<2x2x2xf32>})
    -> (tensor<3xf32> {test.value = dense<[1.0, 5.0, 0.0]> : tensor<3xf32>, test.tolerance = 0.0},
        tensor<2x2xf32> {test.value = dense<[[6.0, 0.0], [0.0, 12.0]]> : tensor<2x2xf32>, test.tolerance = 0.0}) {
  %r = nn.iota dim = 0 : tensor<2x3xi64>
  %c = nn.iota dim = 1 : tensor<2x3xi64>
  %e = nn.compare eq %c, %r : tensor<2x3xi64> -> tensor<2x3xi1>
  %m = nn.cast %e : tensor<2x3xi1> -> tensor<2x3xf32>
  %p = nn.mul %x, %m : tensor<2x3xf32>
  %a = nn.reduce_sum %p dims = [0] : tensor<2x3xf32> -> tensor<3xf32>
  %zr = nn.iota dim = 1 : tensor<2x2x2xi64>
  %zc = nn.iota dim = 2 : tensor<2x2x2xi64>
  %ze = nn.compare eq %zc, %zr : tensor<2x2x2xi64> -> tensor<2x2x2xi1>
  %zm = nn.cast %ze : tensor<2x2x2xi1> -> tensor<2x2x2xf32>
  %zp = nn.mul %z, %zm : tensor<2x2x2xf32>
  %b = nn.reduce_sum %zp dims = [0] : tensor<2x2x2xf32> -> tensor<2x2xf32>
  return %a, %b : tensor<3xf32>, tensor<2x2xf32>
}
