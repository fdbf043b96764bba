// RUN: lowtide-opt --nn-fuse-patterns --canonicalize --split-input-file %s | FileCheck %s

// CHECK-LABEL: func.func @gelu_tanh(
// CHECK:         nn.gelu_tanh %arg0
// CHECK-NOT:     nn.tanh
func.func @gelu_tanh(%x: tensor<8xf32>) -> tensor<8xf32> {
  %half = nn.constant dense<0.5> : tensor<8xf32>
  %one = nn.constant dense<1.0> : tensor<8xf32>
  %c = nn.constant dense<4.471500e-02> : tensor<8xf32>
  %r = nn.constant dense<0.797884583> : tensor<8xf32>
  %0 = nn.mul %x, %x : tensor<8xf32>
  %1 = nn.mul %0, %x : tensor<8xf32>
  %2 = nn.mul %1, %c : tensor<8xf32>
  %3 = nn.add %x, %2 : tensor<8xf32>
  %4 = nn.mul %3, %r : tensor<8xf32>
  %5 = nn.tanh %4 : tensor<8xf32>
  %6 = nn.add %5, %one : tensor<8xf32>
  %7 = nn.mul %x, %half : tensor<8xf32>
  %8 = nn.mul %7, %6 : tensor<8xf32>
  return %8 : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @gelu_erf(
// CHECK:         nn.gelu %arg0
func.func @gelu_erf(%x: tensor<8xf32>) -> tensor<8xf32> {
  %half = nn.constant dense<0.5> : tensor<8xf32>
  %one = nn.constant dense<1.0> : tensor<8xf32>
  %root = nn.constant dense<1.41421354> : tensor<8xf32>
  %0 = nn.div %x, %root : tensor<8xf32>
  %1 = nn.erf %0 : tensor<8xf32>
  %2 = nn.add %1, %one : tensor<8xf32>
  %3 = nn.mul %x, %2 : tensor<8xf32>
  %4 = nn.mul %3, %half : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----

// Another constant is another function.
// CHECK-LABEL: func.func @not_gelu(
// CHECK:         nn.erf
func.func @not_gelu(%x: tensor<8xf32>) -> tensor<8xf32> {
  %half = nn.constant dense<0.5> : tensor<8xf32>
  %one = nn.constant dense<1.0> : tensor<8xf32>
  %root = nn.constant dense<1.5> : tensor<8xf32>
  %0 = nn.div %x, %root : tensor<8xf32>
  %1 = nn.erf %0 : tensor<8xf32>
  %2 = nn.add %1, %one : tensor<8xf32>
  %3 = nn.mul %x, %2 : tensor<8xf32>
  %4 = nn.mul %3, %half : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @rms_norm(
// CHECK:         %[[Y:.*]], %{{.*}} = nn.rms_norm %arg0, %arg1 axis = 1 epsilon = 9.99999997{{.*}}E-7
// CHECK-NEXT:    return %[[Y]]
func.func @rms_norm(%x: tensor<4x8xf32>, %scale: tensor<8xf32>) -> tensor<4x8xf32> {
  %n = nn.constant dense<8.0> : tensor<4xf32>
  %eps = nn.constant dense<9.99999997E-7> : tensor<4x1xf32>
  %0 = nn.mul %x, %x : tensor<4x8xf32>
  %1 = nn.reduce_sum %0 dims = [1] : tensor<4x8xf32> -> tensor<4xf32>
  %2 = nn.div %1, %n : tensor<4xf32>
  %3 = nn.reshape %2 : tensor<4xf32> -> tensor<4x1xf32>
  %4 = nn.add %3, %eps : tensor<4x1xf32>
  %5 = nn.sqrt %4 : tensor<4x1xf32>
  %6 = nn.reciprocal %5 : tensor<4x1xf32>
  %7 = nn.broadcast %6 dims = [0, 1] : tensor<4x1xf32> -> tensor<4x8xf32>
  %8 = nn.mul %x, %7 : tensor<4x8xf32>
  %9 = nn.broadcast %scale dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %10 = nn.mul %9, %8 : tensor<4x8xf32>
  return %10 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @layer_norm(
// CHECK:         %[[Y:.*]], %{{.*}}, %{{.*}} = nn.layer_norm %arg0, %arg1, %arg2 axis = 1
// CHECK-NEXT:    return %[[Y]]
func.func @layer_norm(%x: tensor<4x8xf32>, %scale: tensor<8xf32>, %bias: tensor<8xf32>) -> tensor<4x8xf32> {
  %n = nn.constant dense<8.0> : tensor<4xf32>
  %eps = nn.constant dense<1.0e-5> : tensor<4xf32>
  %0 = nn.reduce_sum %x dims = [1] : tensor<4x8xf32> -> tensor<4xf32>
  %1 = nn.div %0, %n : tensor<4xf32>
  %2 = nn.broadcast %1 dims = [0] : tensor<4xf32> -> tensor<4x8xf32>
  %3 = nn.sub %x, %2 : tensor<4x8xf32>
  %4 = nn.mul %3, %3 : tensor<4x8xf32>
  %5 = nn.reduce_sum %4 dims = [1] : tensor<4x8xf32> -> tensor<4xf32>
  %6 = nn.div %5, %n : tensor<4xf32>
  %7 = nn.add %6, %eps : tensor<4xf32>
  %8 = nn.sqrt %7 : tensor<4xf32>
  %9 = nn.broadcast %8 dims = [0] : tensor<4xf32> -> tensor<4x8xf32>
  %10 = nn.div %3, %9 : tensor<4x8xf32>
  %11 = nn.broadcast %scale dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %12 = nn.mul %10, %11 : tensor<4x8xf32>
  %13 = nn.broadcast %bias dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %14 = nn.add %12, %13 : tensor<4x8xf32>
  return %14 : tensor<4x8xf32>
}

// -----

// The keys' transpose goes into the one before; a causal mask becomes a word.
// CHECK-LABEL: func.func @attention(
// CHECK:         %[[K:.*]] = nn.transpose %arg1 [0, 2, 1, 3]
// CHECK:         %[[O:.*]], %{{.*}} = nn.attention %arg0, %[[K]], %arg2 scale = 2.500000e-01 causal
// CHECK-NEXT:    return %[[O]]
func.func @attention(%q: tensor<2x2x2x4xf32>, %k0: tensor<2x2x2x4xf32>, %v: tensor<2x2x2x4xf32>) -> tensor<2x2x2x4xf32> {
  %mask = nn.constant dense<[[0.0, 0xFF800000], [0.0, 0.0]]> : tensor<2x2xf32>
  %half = nn.constant dense<0.5> : tensor<2x2x2x4xf32>
  %halfT = nn.constant dense<0.5> : tensor<2x2x4x2xf32>
  %kT = nn.transpose %k0 [0, 2, 3, 1] : tensor<2x2x2x4xf32> -> tensor<2x2x4x2xf32>
  %0 = nn.mul %q, %half : tensor<2x2x2x4xf32>
  %1 = nn.mul %kT, %halfT : tensor<2x2x4x2xf32>
  %2 = nn.dot %0, %1 : (tensor<2x2x2x4xf32>, tensor<2x2x4x2xf32>) -> tensor<2x2x2x2xf32>
  %3 = nn.broadcast %mask dims = [2, 3] : tensor<2x2xf32> -> tensor<2x2x2x2xf32>
  %4 = nn.add %2, %3 : tensor<2x2x2x2xf32>
  %5 = nn.softmax %4 dim = 3 : tensor<2x2x2x2xf32>
  %6 = nn.dot %5, %v : (tensor<2x2x2x2xf32>, tensor<2x2x2x4xf32>) -> tensor<2x2x2x4xf32>
  return %6 : tensor<2x2x2x4xf32>
}

// -----

// CHECK-LABEL: func.func @cross_entropy(
// CHECK:         nn.softmax_cross_entropy
// CHECK-NOT:     nn.log_softmax
func.func @cross_entropy(%x: tensor<4x8xf32>, %labels: tensor<4x1xi64>) -> tensor<4x1xf32> {
  %0 = nn.log_softmax %x dim = 1 : tensor<4x8xf32>
  %1 = nn.gather_elements %0[%labels] axis = 1 : (tensor<4x8xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  %2 = nn.neg %1 : tensor<4x1xf32>
  return %2 : tensor<4x1xf32>
}
