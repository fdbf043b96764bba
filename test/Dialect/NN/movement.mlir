// RUN: lowtide-opt %s | lowtide-opt | FileCheck %s

// CHECK-LABEL: func.func @slicing
func.func @slicing(%x: tensor<5x3xf32>) {
  // CHECK: nn.slice %{{.*}} starts = [1, 0] strides = [2, 1] : tensor<5x3xf32> -> tensor<2x3xf32>
  %0 = nn.slice %x starts = [1, 0] strides = [2, 1] : tensor<5x3xf32> -> tensor<2x3xf32>
  // CHECK: nn.pad %{{.*}} low = [1, 0] high = [2, 0] interior = [1, 0] : tensor<5x3xf32> -> tensor<12x3xf32>
  %1 = nn.pad %x low = [1, 0] high = [2, 0] interior = [1, 0] : tensor<5x3xf32> -> tensor<12x3xf32>
  // CHECK: nn.reverse %{{.*}} dims = [0] : tensor<5x3xf32> -> tensor<5x3xf32>
  %2 = nn.reverse %x dims = [0] : tensor<5x3xf32> -> tensor<5x3xf32>
  // CHECK: nn.concat %{{.*}}, %{{.*}} dim = 0 : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<7x3xf32>
  %3 = nn.concat %x, %0 dim = 0 : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<7x3xf32>
  // CHECK: nn.iota dim = 1 : tensor<2x4xi64>
  %4 = nn.iota dim = 1 : tensor<2x4xi64>
  return
}

// CHECK-LABEL: func.func @indexing
func.func @indexing(%x: tensor<5x3xf32>, %i: tensor<2x2xi64>) {
  // CHECK: nn.gather %{{.*}}[%{{.*}}] axis = 0 : (tensor<5x3xf32>, tensor<2x2xi64>) -> tensor<2x2x3xf32>
  %0 = nn.gather %x[%i] axis = 0 : (tensor<5x3xf32>, tensor<2x2xi64>) -> tensor<2x2x3xf32>
  // CHECK: nn.scatter_add[%{{.*}}] %{{.*}} axis = 0 : (tensor<2x2xi64>, tensor<2x2x3xf32>) -> tensor<5x3xf32>
  %1 = nn.scatter_add [%i] %0 axis = 0 : (tensor<2x2xi64>, tensor<2x2x3xf32>) -> tensor<5x3xf32>
  // CHECK: nn.gather_elements %{{.*}}[%{{.*}}] axis = 1 : (tensor<5x3xf32>, tensor<2x2xi64>) -> tensor<2x2xf32>
  %2 = nn.gather_elements %x[%i] axis = 1 : (tensor<5x3xf32>, tensor<2x2xi64>) -> tensor<2x2xf32>
  // CHECK: nn.argmax %{{.*}} dim = 1 {select_last} : tensor<5x3xf32> -> tensor<5xi64>
  %3 = nn.argmax %x dim = 1 {select_last} : tensor<5x3xf32> -> tensor<5xi64>
  // CHECK: nn.cumsum %{{.*}} dim = 0 {exclusive} : tensor<5x3xf32>
  %4 = nn.cumsum %x dim = 0 {exclusive} : tensor<5x3xf32>
  return
}
