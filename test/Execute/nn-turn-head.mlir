// Losses of one product by its rows and by its columns: the transpose is a product of its own, with rows.
// RUN: lowtide-opt %s --canonicalize --nn-fuse-patterns=loss-head-always --canonicalize | FileCheck %s
// Below 16 MiB it is transposed.
// RUN: lowtide-opt %s --canonicalize --nn-fuse-patterns --canonicalize | FileCheck %s --check-prefix=SMALL
// As written and as turned: both compute PyTorch's values.
// RUN: lowtide-execute %s
// RUN: lowtide-opt %s --canonicalize --nn-fuse-patterns=loss-head-always | lowtide-execute

// SMALL-LABEL: @both
// SMALL: nn.transpose
// CHECK-LABEL: @both
// CHECK-NOT: nn.transpose
// CHECK-COUNT-2: nn.softmax_cross_entropy
// CHECK-NOT: nn.transpose
// CHECK: return
func.func @both(%a: tensor<5x3xf32> {test.value = dense<[[0.75, 0.25, 0.0], [-0.5, 0.0, -1.25], [0.25, 1.0, -1.5], [1.0, 0.5, 1.25], [-0.75, 0.25, 0.5]]> : tensor<5x3xf32>},
    %b: tensor<5x3xf32> {test.value = dense<[[-0.0, 1.0, 0.75], [0.5, -0.25, -0.75], [-1.0, 0.75, 0.25], [-0.5, 0.25, -1.25], [0.5, -1.5, -0.75]]> : tensor<5x3xf32>},
    %s: tensor<f32> {test.value = dense<1.5> : tensor<f32>},
    %y: tensor<5xi64> {test.value = dense<[2, 0, 4, 1, 3]> : tensor<5xi64>})
    -> (tensor<5xf32> {test.value = dense<[2.474727366810477, 4.5126441340463685, 3.681512076713196, 3.1380678446696306, 2.4458575342075717]> : tensor<5xf32>},
        tensor<5xf32> {test.value = dense<[2.8064531826845394, 1.7940488069991019, 0.5473822030537553, 0.883541613665051, 3.359252458723229]> : tensor<5xf32>}) {
  %p = nn.dot %a, %b {transpose_b} : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x5xf32>
  %sb = nn.broadcast %s dims = [] : tensor<f32> -> tensor<5x5xf32>
  %l = nn.mul %p, %sb : tensor<5x5xf32>
  %t = nn.transpose %l [1, 0] : tensor<5x5xf32> -> tensor<5x5xf32>
  %rows, %rl = nn.softmax_cross_entropy %l, %y : (tensor<5x5xf32>, tensor<5xi64>) -> (tensor<5xf32>, tensor<5xf32>)
  %columns, %cl = nn.softmax_cross_entropy %t, %y : (tensor<5x5xf32>, tensor<5xi64>) -> (tensor<5xf32>, tensor<5xf32>)
  return %rows, %columns : tensor<5xf32>, tensor<5xf32>
}

// A bias of the columns is one of rows then, and what is added is transposed. The diagonal is the same.
// CHECK-LABEL: @down_columns
// CHECK: nn.broadcast %arg2 dims = [0]
// CHECK: nn.transpose %arg3 [1, 0]
// CHECK-NOT: nn.transpose
// CHECK: nn.softmax_cross_entropy
// CHECK-NOT: nn.transpose
// CHECK: return
func.func @down_columns(%a: tensor<5x3xf32> {test.value = dense<[[0.75, 0.25, 0.0], [-0.5, 0.0, -1.25], [0.25, 1.0, -1.5], [1.0, 0.5, 1.25], [-0.75, 0.25, 0.5]]> : tensor<5x3xf32>},
    %b: tensor<5x3xf32> {test.value = dense<[[-0.0, 1.0, 0.75], [0.5, -0.25, -0.75], [-1.0, 0.75, 0.25], [-0.5, 0.25, -1.25], [0.5, -1.5, -0.75]]> : tensor<5x3xf32>},
    %bias: tensor<5xf32> {test.value = dense<[0.25, -0.25, 0.5, 0.0, 1.25]> : tensor<5xf32>},
    %m: tensor<5x5xf32> {test.value = dense<[[0.75, 1.0, 1.75, -1.5, 1.25], [2.0, -0.5, 1.75, 0.25, -0.5], [-0.5, -0.25, 0.5, 1.0, -0.25], [0.0, 0.75, 1.5, 0.75, 0.75], [-1.25, 1.25, -1.25, -1.0, 1.25]]> : tensor<5x5xf32>})
    -> (tensor<5xf32> {test.value = dense<[-1.2074334758899175, -2.1616321080185803, -2.1576543629800167, -2.6709189720975823, -1.4940574508340143]> : tensor<5xf32>}) {
  %p = nn.dot %a, %b {transpose_b} : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x5xf32>
  %bb = nn.broadcast %bias dims = [1] : tensor<5xf32> -> tensor<5x5xf32>
  %z = nn.add %p, %bb : tensor<5x5xf32>
  %h = nn.tanh %z : tensor<5x5xf32>
  %l = nn.add %h, %m : tensor<5x5xf32>
  %lp = nn.log_softmax %l dim = 0 : tensor<5x5xf32>
  %i = nn.iota dim = 0 : tensor<5x1xi64>
  %d = nn.gather_elements %lp[%i] axis = 1 : (tensor<5x5xf32>, tensor<5x1xi64>) -> tensor<5x1xf32>
  %y = nn.reshape %d : tensor<5x1xf32> -> tensor<5xf32>
  return %y : tensor<5xf32>
}

// A factor that is not transposed has no rows.
// CHECK-LABEL: @untransposed
// CHECK: nn.dot %arg0, %arg1 : {{.*}} -> tensor<4x6xf32>
// CHECK: nn.transpose
// CHECK: return
func.func @untransposed(%x: tensor<4x3xf32> {test.value = dense<[[1.5, 1.5, 1.5], [2.0, -1.5, -0.5], [-0.25, -1.0, -0.25], [0.5, 0.0, 0.75]]> : tensor<4x3xf32>},
    %w: tensor<3x6xf32> {test.value = dense<[[0.5, 0.5, -1.0, 1.75, -1.0, -0.5], [-0.75, -0.75, -1.5, -0.25, 0.5, 0.25], [-0.0, -0.0, -1.25, 1.5, 0.75, -0.25]]> : tensor<3x6xf32>},
    %k: tensor<6x1xi64> {test.value = dense<[[1], [3], [0], [2], [2], [1]]> : tensor<6x1xi64>})
    -> (tensor<6x1xf32> {test.value = dense<[[0.41551767390094035], [0.20085255192394466], [0.06772581422302612], [0.06944712861529481], [0.18785197226120348], [0.16723895741434006]]> : tensor<6x1xf32>}) {
  %p = nn.dot %x, %w : (tensor<4x3xf32>, tensor<3x6xf32>) -> tensor<4x6xf32>
  %l = nn.tanh %p : tensor<4x6xf32>
  %t = nn.transpose %l [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  %s = nn.softmax %t dim = 1 : tensor<6x4xf32>
  %y = nn.gather_elements %s[%k] axis = 1 : (tensor<6x4xf32>, tensor<6x1xi64>) -> tensor<6x1xf32>
  return %y : tensor<6x1xf32>
}

// What softmax made along rows is there in their order alone.
// CHECK-LABEL: @along_rows
// CHECK: nn.softmax %{{.*}} dim = 1
// CHECK: nn.transpose
// CHECK: return
func.func @along_rows(%a: tensor<5x3xf32> {test.value = dense<[[0.75, 0.25, 0.0], [-0.5, 0.0, -1.25], [0.25, 1.0, -1.5], [1.0, 0.5, 1.25], [-0.75, 0.25, 0.5]]> : tensor<5x3xf32>},
    %b: tensor<5x3xf32> {test.value = dense<[[-0.0, 1.0, 0.75], [0.5, -0.25, -0.75], [-1.0, 0.75, 0.25], [-0.5, 0.25, -1.25], [0.5, -1.5, -0.75]]> : tensor<5x3xf32>})
    -> (tensor<5xf32> {test.value = dense<[0.7063308637162473, 0.27600276261424067, 0.45502008586188564, 0.5727158400006512, 0.20192793476102835]> : tensor<5xf32>}) {
  %p = nn.dot %a, %b {transpose_b} : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x5xf32>
  %s = nn.softmax %p dim = 1 : tensor<5x5xf32>
  %t = nn.transpose %s [1, 0] : tensor<5x5xf32> -> tensor<5x5xf32>
  %y = nn.reduce_max %t dims = [1] : tensor<5x5xf32> -> tensor<5xf32>
  return %y : tensor<5xf32>
}
