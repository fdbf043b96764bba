// RUN: lowtide-opt %s --canonicalize --nn-fuse-patterns=loss-head-always --canonicalize | FileCheck %s
// As written and as brought to rows and classes: both compute PyTorch's values.
// RUN: lowtide-execute %s
// RUN: lowtide-opt %s --canonicalize --nn-fuse-patterns=loss-head-always | lowtide-execute

// 3 · tanh((x · wᵀ + b) / 3) · t, one class masked out, without the last token of each sample: rows of x are cut instead.
// CHECK-LABEL: @capped
// CHECK-NOT: {{2x3x5|2x2x5|2x5x2}}
// CHECK: nn.slice %arg0 starts = [0, 0, 0] {{.*}} -> tensor<2x2x4xf32>
// CHECK-NOT: {{2x3x5|2x2x5|2x5x2}}
// CHECK: nn.softmax_cross_entropy {{.*}} : (tensor<4x5xf32>, tensor<4xi64>)
// CHECK-NOT: {{2x3x5|2x2x5|2x5x2}}
// CHECK: return
func.func @capped(%x: tensor<2x3x4xf32> {test.value = dense<[[[-0.0, 0.25, -0.75, 0.0], [0.75, -0.25, 1.5, -1.5], [0.5, 0.5, 0.75, -0.0]], [[-0.25, 0.5, -0.0, -1.75], [0.5, 0.25, 0.25, 1.25], [0.25, 0.0, 0.75, -0.0]]]> : tensor<2x3x4xf32>},
    %w: tensor<5x4xf32> {test.value = dense<[[-1.25, 1.0, 0.0, -0.25], [0.25, -0.25, -0.5, 0.75], [-0.0, -0.5, 0.5, -0.25], [-2.0, -1.25, -0.25, -0.5], [0.5, -0.0, -1.0, -0.5]]> : tensor<5x4xf32>},
    %b: tensor<5xf32> {test.value = dense<[-2.25, 0.25, -1.0, -0.25, -1.0]> : tensor<5xf32>},
    %t: tensor<f32> {test.value = dense<1.5> : tensor<f32>},
    %m: tensor<5xi1> {test.value = dense<[false, true, false, false, false]> : tensor<5xi1>},
    %y: tensor<2x2xi64> {test.value = dense<[[2, 0], [1, 3]]> : tensor<2x2xi64>})
    -> (tensor<2x2xf32> {test.value = dense<[[2.455863724854944, 4.079328080646588], [101.20297136088759, 1.8260569287979962]]> : tensor<2x2xf32>}) {
  %rows = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %p = nn.dot %rows, %w {transpose_b} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %p3 = nn.reshape %p : tensor<6x5xf32> -> tensor<2x3x5xf32>
  %bb = nn.broadcast %b dims = [2] : tensor<5xf32> -> tensor<2x3x5xf32>
  %z = nn.add %p3, %bb : tensor<2x3x5xf32>
  %cap = nn.constant dense<3.0> : tensor<2x3x5xf32>
  %d = nn.div %z, %cap : tensor<2x3x5xf32>
  %h = nn.tanh %d : tensor<2x3x5xf32>
  %u = nn.mul %h, %cap : tensor<2x3x5xf32>
  %tb = nn.broadcast %t dims = [] : tensor<f32> -> tensor<2x3x5xf32>
  %v = nn.mul %u, %tb : tensor<2x3x5xf32>
  %mb = nn.broadcast %m dims = [2] : tensor<5xi1> -> tensor<2x3x5xi1>
  %low = nn.constant dense<-100.0> : tensor<2x3x5xf32>
  %masked = nn.select %mb, %low, %v : tensor<2x3x5xi1>, tensor<2x3x5xf32>
  %s = nn.slice %masked starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x3x5xf32> -> tensor<2x2x5xf32>
  %c = nn.transpose %s [0, 2, 1] : tensor<2x2x5xf32> -> tensor<2x5x2xf32>
  %loss, %lse = nn.softmax_cross_entropy %c, %y : (tensor<2x5x2xf32>, tensor<2x2xi64>) -> (tensor<2x2xf32>, tensor<2x2xf32>)
  return %loss : tensor<2x2xf32>
}

// Entropy, largest logit and the sum of all squares, classes in the second dimension; a mask that differs by position.
// CHECK-LABEL: @reduced
// CHECK-NOT: 2x5x3
// CHECK: nn.softmax %{{.*}} dim = 1 : tensor<6x5xf32>
// CHECK-NOT: 2x5x3
// CHECK: return
func.func @reduced(%x: tensor<2x3x4xf32> {test.value = dense<[[[-0.0, 0.25, -0.75, 0.0], [0.75, -0.25, 1.5, -1.5], [0.5, 0.5, 0.75, -0.0]], [[-0.25, 0.5, -0.0, -1.75], [0.5, 0.25, 0.25, 1.25], [0.25, 0.0, 0.75, -0.0]]]> : tensor<2x3x4xf32>},
    %w: tensor<5x4xf32> {test.value = dense<[[-1.25, 1.0, 0.0, -0.25], [0.25, -0.25, -0.5, 0.75], [-0.0, -0.5, 0.5, -0.25], [-2.0, -1.25, -0.25, -0.5], [0.5, -0.0, -1.0, -0.5]]> : tensor<5x4xf32>},
    %m: tensor<3x5xf32> {test.value = dense<[[0.75, -0.5, 0.75, -0.75, -1.0], [-0.0, 0.25, -0.5, -1.0, -0.0], [-1.5, -1.25, 1.0, -0.5, 0.75]]> : tensor<3x5xf32>})
    -> (tensor<2x3xf32> {test.value = dense<[[1.4105862061714234, 1.2096355861722599, 0.9798048691458535], [1.0638556092847384, 1.0353104383284133, 0.9552061021241881]]> : tensor<2x3xf32>},
        tensor<2x3xf32> {test.value = dense<[[1.0, 0.75, 1.125], [2.0, 1.125, 1.375]]> : tensor<2x3xf32>},
        tensor<f32> {test.value = dense<50.1953125> : tensor<f32>}) {
  %rows = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %q = nn.dot %rows, %w {transpose_b} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %q3 = nn.reshape %q : tensor<6x5xf32> -> tensor<2x3x5xf32>
  %mb = nn.broadcast %m dims = [1, 2] : tensor<3x5xf32> -> tensor<2x3x5xf32>
  %z3 = nn.add %q3, %mb : tensor<2x3x5xf32>
  %z = nn.transpose %z3 [0, 2, 1] : tensor<2x3x5xf32> -> tensor<2x5x3xf32>
  %p = nn.softmax %z dim = 1 : tensor<2x5x3xf32>
  %l = nn.log_softmax %z dim = 1 : tensor<2x5x3xf32>
  %pl = nn.mul %p, %l : tensor<2x5x3xf32>
  %e = nn.reduce_sum %pl dims = [1] : tensor<2x5x3xf32> -> tensor<2x3xf32>
  %entropy = nn.neg %e : tensor<2x3xf32>
  %most = nn.reduce_max %z dims = [1] : tensor<2x5x3xf32> -> tensor<2x3xf32>
  %zz = nn.mul %z, %z : tensor<2x5x3xf32>
  %squares = nn.reduce_sum %zz dims = [0, 1, 2] : tensor<2x5x3xf32> -> tensor<f32>
  return %entropy, %most, %squares : tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>
}

// Rows that a tensor names, some of them twice: rows of x are read instead, and what each row is scaled by.
// CHECK-LABEL: @named
// CHECK-NOT: 6x5xf32
// CHECK: nn.gather %{{.*}}[%arg4] axis = 0 : (tensor<6x4xf32>, tensor<5xi64>) -> tensor<5x4xf32>
// CHECK-NOT: 6x5xf32
// CHECK: nn.softmax_cross_entropy {{.*}} : (tensor<5x5xf32>, tensor<5xi64>)
// CHECK: return
func.func @named(%x: tensor<2x3x4xf32> {test.value = dense<[[[-0.0, 0.25, -0.75, 0.0], [0.75, -0.25, 1.5, -1.5], [0.5, 0.5, 0.75, -0.0]], [[-0.25, 0.5, -0.0, -1.75], [0.5, 0.25, 0.25, 1.25], [0.25, 0.0, 0.75, -0.0]]]> : tensor<2x3x4xf32>},
    %w: tensor<5x4xf32> {test.value = dense<[[-1.25, 1.0, 0.0, -0.25], [0.25, -0.25, -0.5, 0.75], [-0.0, -0.5, 0.5, -0.25], [-2.0, -1.25, -0.25, -0.5], [0.5, -0.0, -1.0, -0.5]]> : tensor<5x4xf32>},
    %b: tensor<5xf32> {test.value = dense<[-2.25, 0.25, -1.0, -0.25, -1.0]> : tensor<5xf32>},
    %s: tensor<6xf32> {test.value = dense<[0.5, -1.0, 2.0, 1.0, 0.25, -0.5]> : tensor<6xf32>},
    %i: tensor<5xi64> {test.value = dense<[4, 0, 0, 5, 2]> : tensor<5xi64>},
    %y: tensor<5xi64> {test.value = dense<[2, 0, 4, 1, 3]> : tensor<5xi64>})
    -> (tensor<5xf32> {test.value = dense<[1.6527538868752802, 2.354947330102024, 1.479947330102024, 2.2563483427790016, 4.151814247823456]> : tensor<5xf32>}) {
  %rows = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %p = nn.dot %rows, %w {transpose_b} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %p3 = nn.reshape %p : tensor<6x5xf32> -> tensor<2x3x5xf32>
  %bb = nn.broadcast %b dims = [2] : tensor<5xf32> -> tensor<2x3x5xf32>
  %z3 = nn.add %p3, %bb : tensor<2x3x5xf32>
  %z = nn.reshape %z3 : tensor<2x3x5xf32> -> tensor<6x5xf32>
  %sb = nn.broadcast %s dims = [0] : tensor<6xf32> -> tensor<6x5xf32>
  %v = nn.mul %z, %sb : tensor<6x5xf32>
  %g = nn.gather %v[%i] axis = 0 : (tensor<6x5xf32>, tensor<5xi64>) -> tensor<5x5xf32>
  %loss, %lse = nn.softmax_cross_entropy %g, %y : (tensor<5x5xf32>, tensor<5xi64>) -> (tensor<5xf32>, tensor<5xf32>)
  return %loss : tensor<5xf32>
}

// Tokens of each sample, between samples and classes.
// CHECK-LABEL: @tokens
// CHECK-NOT: {{6x5xf32|2x3x5xf32}}
// CHECK: nn.gather %arg0[%arg2] axis = 1 : (tensor<2x3x4xf32>, tensor<1x2xi64>) -> tensor<2x1x2x4xf32>
// CHECK-NOT: {{6x5xf32|2x3x5xf32}}
// CHECK: return
func.func @tokens(%x: tensor<2x3x4xf32> {test.value = dense<[[[-0.0, 0.25, -0.75, 0.0], [0.75, -0.25, 1.5, -1.5], [0.5, 0.5, 0.75, -0.0]], [[-0.25, 0.5, -0.0, -1.75], [0.5, 0.25, 0.25, 1.25], [0.25, 0.0, 0.75, -0.0]]]> : tensor<2x3x4xf32>},
    %w: tensor<5x4xf32> {test.value = dense<[[-1.25, 1.0, 0.0, -0.25], [0.25, -0.25, -0.5, 0.75], [-0.0, -0.5, 0.5, -0.25], [-2.0, -1.25, -0.25, -0.5], [0.5, -0.0, -1.0, -0.5]]> : tensor<5x4xf32>},
    %i: tensor<1x2xi64> {test.value = dense<[[2, 0]]> : tensor<1x2xi64>})
    -> (tensor<2x1x2xf32> {test.value = dense<[[[-8.912177506252657, -8.48091703135004]], [[-8.439066040499604, -9.633292702992197]]]> : tensor<2x1x2xf32>}) {
  %rows = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %p = nn.dot %rows, %w {transpose_b} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %z = nn.reshape %p : tensor<6x5xf32> -> tensor<2x3x5xf32>
  %g = nn.gather %z[%i] axis = 1 : (tensor<2x3x5xf32>, tensor<1x2xi64>) -> tensor<2x1x2x5xf32>
  %l = nn.log_softmax %g dim = 3 : tensor<2x1x2x5xf32>
  %sum = nn.reduce_sum %l dims = [3] : tensor<2x1x2x5xf32> -> tensor<2x1x2xf32>
  return %sum : tensor<2x1x2xf32>
}

// More rows than there are: the product of those that there are is smaller.
// CHECK-LABEL: @repeated
// CHECK: nn.gather %{{.*}} -> tensor<7x5xf32>
func.func @repeated(%x: tensor<6x4xf32> {test.value = dense<[[-0.0, 0.25, -0.75, 0.0], [0.75, -0.25, 1.5, -1.5], [0.5, 0.5, 0.75, -0.0], [-0.25, 0.5, -0.0, -1.75], [0.5, 0.25, 0.25, 1.25], [0.25, 0.0, 0.75, -0.0]]> : tensor<6x4xf32>},
    %w: tensor<5x4xf32> {test.value = dense<[[-1.25, 1.0, 0.0, -0.25], [0.25, -0.25, -0.5, 0.75], [-0.0, -0.5, 0.5, -0.25], [-2.0, -1.25, -0.25, -0.5], [0.5, -0.0, -1.0, -0.5]]> : tensor<5x4xf32>},
    %i: tensor<7xi64> {test.value = dense<[2, 2, 2, 0, 0, 1, 5]> : tensor<7xi64>})
    -> (tensor<7xf32> {test.value = dense<[0.125, 0.125, 0.125, 0.75, 0.75, 1.25, 0.375]> : tensor<7xf32>}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %g = nn.gather %p[%i] axis = 0 : (tensor<6x5xf32>, tensor<7xi64>) -> tensor<7x5xf32>
  %m = nn.reduce_max %g dims = [1] : tensor<7x5xf32> -> tensor<7xf32>
  return %m : tensor<7xf32>
}

// Two classes that a tensor picks of each token, and the entropy, with the classes in the middle.
// CHECK-LABEL: @picked
// CHECK-NOT: {{2x3x5|2x5x3}}
// CHECK: %[[PICKED:.*]] = nn.gather_elements %{{.*}}[%{{.*}}] axis = 1 : (tensor<6x5xf32>, tensor<6x2xi64>) -> tensor<6x2xf32>
// CHECK: %[[APART:.*]] = nn.reshape %[[PICKED]] : tensor<6x2xf32> -> tensor<2x3x2xf32>
// CHECK: nn.transpose %[[APART]] {{.*}} -> tensor<2x2x3xf32>
// CHECK-NOT: {{2x3x5|2x5x3}}
// CHECK: return
func.func @picked(%x: tensor<2x3x4xf32> {test.value = dense<[[[-0.0, 0.25, -0.75, 0.0], [0.75, -0.25, 1.5, -1.5], [0.5, 0.5, 0.75, -0.0]], [[-0.25, 0.5, -0.0, -1.75], [0.5, 0.25, 0.25, 1.25], [0.25, 0.0, 0.75, -0.0]]]> : tensor<2x3x4xf32>},
    %w: tensor<5x4xf32> {test.value = dense<[[-1.25, 1.0, 0.0, -0.25], [0.25, -0.25, -0.5, 0.75], [-0.0, -0.5, 0.5, -0.25], [-2.0, -1.25, -0.25, -0.5], [0.5, -0.0, -1.0, -0.5]]> : tensor<5x4xf32>},
    %i: tensor<2x2x3xi64> {test.value = dense<[[[2, 0, 4], [1, 3, 2]], [[1, 1, 3], [0, 4, 2]]]> : tensor<2x2x3xi64>})
    -> (tensor<2x2x3xf32> {test.value = dense<[[[-2.333683406270008, -2.4730185052099087, -1.7449355012505314], [-1.521183406270008, -2.4730185052099087, -1.1199355012505314]], [[-3.714158540598439, -0.5845260523859873, -2.0628132080999206], [-0.9641585405984394, -2.0845260523859874, -1.0003132080999209]]]> : tensor<2x2x3xf32>},
        tensor<2x3xf32> {test.value = dense<[[-1.5264516197494047, -1.078211031066563, -1.4826604092228082], [-1.4024759539546745, -1.2458881368966988, -1.524915297091618]]> : tensor<2x3xf32>}) {
  %rows = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %p = nn.dot %rows, %w {transpose_b} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %p3 = nn.reshape %p : tensor<6x5xf32> -> tensor<2x3x5xf32>
  %z = nn.transpose %p3 [0, 2, 1] : tensor<2x3x5xf32> -> tensor<2x5x3xf32>
  %l = nn.log_softmax %z dim = 1 : tensor<2x5x3xf32>
  %k = nn.gather_elements %l[%i] axis = 1 : (tensor<2x5x3xf32>, tensor<2x2x3xi64>) -> tensor<2x2x3xf32>
  %e = nn.exp %l : tensor<2x5x3xf32>
  %el = nn.mul %e, %l : tensor<2x5x3xf32>
  %n = nn.reduce_sum %el dims = [1] : tensor<2x5x3xf32> -> tensor<2x3xf32>
  return %k, %n : tensor<2x2x3xf32>, tensor<2x3xf32>
}

// Probabilities of a teacher, which are given with the tokens apart, meet the rows of the head as rows.
// CHECK-LABEL: @taught
// CHECK: %[[STILL:.*]] = nn.stop_gradient %arg2 : tensor<2x3x5xf32>
// CHECK: %[[ROWS:.*]] = nn.reshape %[[STILL]] : tensor<2x3x5xf32> -> tensor<6x5xf32>
// CHECK: nn.softmax %[[ROWS]] dim = 1 : tensor<6x5xf32>
// CHECK-NOT: nn.{{softmax|sub|mul}} {{.*}}2x3x5
// CHECK: return
func.func @taught(%x: tensor<2x3x4xf32> {test.value = dense<[[[-0.0, 0.25, -0.75, 0.0], [0.75, -0.25, 1.5, -1.5], [0.5, 0.5, 0.75, -0.0]], [[-0.25, 0.5, -0.0, -1.75], [0.5, 0.25, 0.25, 1.25], [0.25, 0.0, 0.75, -0.0]]]> : tensor<2x3x4xf32>},
    %w: tensor<5x4xf32> {test.value = dense<[[-1.25, 1.0, 0.0, -0.25], [0.25, -0.25, -0.5, 0.75], [-0.0, -0.5, 0.5, -0.25], [-2.0, -1.25, -0.25, -0.5], [0.5, -0.0, -1.0, -0.5]]> : tensor<5x4xf32>},
    %t: tensor<2x3x5xf32> {test.value = dense<[[[0.5, -1.0, 0.25, 2.0, 0.0], [1.5, 0.5, -0.75, 0.0, 1.0], [-0.5, 0.25, 1.25, 0.5, -1.0]], [[0.0, 0.75, -1.5, 0.25, 0.5], [2.0, -0.25, 0.5, 1.0, -0.5], [-1.25, 0.5, 0.75, 0.0, 1.0]]]> : tensor<2x3x5xf32>})
    -> (tensor<2x3xf32> {test.value = dense<[[0.7303688187269557, 1.0192634343155738, 0.34287166115805695], [0.7099122617233065, 1.056450521412754, 0.2219037009628017]]> : tensor<2x3xf32>},
        tensor<2x3xf32> {test.value = dense<[[0.6321006811933885, 0.43422764959970633, 0.4718273845801424], [0.3374847079673838, 0.5622735295569374, 0.34982035396168903]]> : tensor<2x3xf32>}) {
  %rows = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %p = nn.dot %rows, %w {transpose_b} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %z = nn.reshape %p : tensor<6x5xf32> -> tensor<2x3x5xf32>
  %l = nn.log_softmax %z dim = 2 : tensor<2x3x5xf32>
  %still = nn.stop_gradient %t : tensor<2x3x5xf32>
  %q = nn.softmax %still dim = 2 : tensor<2x3x5xf32>
  %lq = nn.log %q : tensor<2x3x5xf32>
  %d = nn.sub %lq, %l : tensor<2x3x5xf32>
  %dq = nn.mul %d, %q : tensor<2x3x5xf32>
  %kl = nn.reduce_sum %dq dims = [2] : tensor<2x3x5xf32> -> tensor<2x3xf32>
  %top = nn.reduce_max %q dims = [2] : tensor<2x3x5xf32> -> tensor<2x3xf32>
  return %kl, %top : tensor<2x3xf32>, tensor<2x3xf32>
}

// A mixture of two distributions, as the log-sum-exp over a stack of both: each is rows of its own.
// CHECK-LABEL: @mixture
// CHECK-NOT: {{2x2x3x5|nn.concat}}
// CHECK: nn.max %{{.*}} : tensor<6x5xf32>
// CHECK-NOT: {{2x2x3x5|nn.concat}}
// CHECK: nn.min %{{.*}} : tensor<6x5xf32>
// CHECK: return
func.func @mixture(%x: tensor<2x3x4xf32> {test.value = dense<[[[-0.0, 0.25, -0.75, 0.0], [0.75, -0.25, 1.5, -1.5], [0.5, 0.5, 0.75, -0.0]], [[-0.25, 0.5, -0.0, -1.75], [0.5, 0.25, 0.25, 1.25], [0.25, 0.0, 0.75, -0.0]]]> : tensor<2x3x4xf32>},
    %w: tensor<5x4xf32> {test.value = dense<[[-1.25, 1.0, 0.0, -0.25], [0.25, -0.25, -0.5, 0.75], [-0.0, -0.5, 0.5, -0.25], [-2.0, -1.25, -0.25, -0.5], [0.5, -0.0, -1.0, -0.5]]> : tensor<5x4xf32>},
    %t: tensor<2x3x5xf32> {test.value = dense<[[[0.5, -1.0, 0.25, 2.0, 0.0], [1.5, 0.5, -0.75, 0.0, 1.0], [-0.5, 0.25, 1.25, 0.5, -1.0]], [[0.0, 0.75, -1.5, 0.25, 0.5], [2.0, -0.25, 0.5, 1.0, -0.5], [-1.25, 0.5, 0.75, 0.0, 1.0]]]> : tensor<2x3x5xf32>})
    -> (tensor<2x3xf32> {test.value = dense<[[-0.5264290112198287, -0.4683299806776414, -0.6134593276025533], [-0.5526305386560226, -0.45884821096542244, -0.6404688240341248]]> : tensor<2x3xf32>},
        tensor<2x3xf32> {test.value = dense<[[-12.168486588052042, -13.351260364995294, -11.430797215262011], [-11.937022319463896, -13.58385262505814, -10.351610685628252]]> : tensor<2x3xf32>}) {
  %rows = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %z = nn.dot %rows, %w {transpose_b} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %z3 = nn.reshape %z : tensor<6x5xf32> -> tensor<2x3x5xf32>
  %q = nn.log_softmax %z3 dim = 2 : tensor<2x3x5xf32>
  %p = nn.log_softmax %t dim = 2 : tensor<2x3x5xf32>
  %q4 = nn.reshape %q : tensor<2x3x5xf32> -> tensor<1x2x3x5xf32>
  %p4 = nn.reshape %p : tensor<2x3x5xf32> -> tensor<1x2x3x5xf32>
  %both = nn.concat %q4, %p4 dim = 0 : (tensor<1x2x3x5xf32>, tensor<1x2x3x5xf32>) -> tensor<2x2x3x5xf32>
  %top = nn.reduce_max %both dims = [0] : tensor<2x2x3x5xf32> -> tensor<2x3x5xf32>
  %spread = nn.broadcast %top dims = [1, 2, 3] : tensor<2x3x5xf32> -> tensor<2x2x3x5xf32>
  %d = nn.sub %both, %spread : tensor<2x2x3x5xf32>
  %e = nn.exp %d : tensor<2x2x3x5xf32>
  %sum = nn.reduce_sum %e dims = [0] : tensor<2x2x3x5xf32> -> tensor<2x3x5xf32>
  %log = nn.log %sum : tensor<2x3x5xf32>
  %mix = nn.add %log, %top : tensor<2x3x5xf32>
  %change = nn.sub %q, %mix : tensor<2x3x5xf32>
  %share = nn.exp %q : tensor<2x3x5xf32>
  %terms = nn.mul %share, %change : tensor<2x3x5xf32>
  %kl = nn.reduce_sum %terms dims = [2] : tensor<2x3x5xf32> -> tensor<2x3xf32>
  %least = nn.reduce_min %both dims = [0] : tensor<2x2x3x5xf32> -> tensor<2x3x5xf32>
  %low = nn.reduce_sum %least dims = [2] : tensor<2x3x5xf32> -> tensor<2x3xf32>
  return %kl, %low : tensor<2x3xf32>, tensor<2x3xf32>
}

// One class, two that are listed, and every second one, the classes also in the second dimension.
// CHECK-LABEL: @chosen
// CHECK-NOT: {{2x3x5|2x5x3}}
// CHECK: nn.log_softmax %{{.*}} dim = 1 : tensor<6x5xf32>
// CHECK-NOT: {{2x3x5|2x5x3}}
// CHECK: return
func.func @chosen(%x: tensor<2x3x4xf32> {test.value = dense<[[[0.5, 0.5, -0.0, 2.25], [-0.25, -0.75, -2.75, -1.25], [-1.5, -0.25, 1.0, -0.0]], [[1.25, 0.75, 1.5, -0.75], [0.75, -0.25, 0.0, -0.25], [-0.0, 1.0, -0.0, -0.5]]]> : tensor<2x3x4xf32>},
    %w: tensor<5x4xf32> {test.value = dense<[[-3.0, -1.5, 0.0, 1.75], [-1.5, 1.25, 1.5, -0.75], [-1.75, -1.0, 0.25, 2.25], [-0.5, -0.5, -0.5, -0.25], [-1.0, -1.5, -0.75, 0.75]]> : tensor<5x4xf32>},
    %i: tensor<2xi64> {test.value = dense<[4, 1]> : tensor<2xi64>})
    -> (tensor<2xf32> {test.value = dense<[-7.6912942081599125, -12.408772875667436]> : tensor<2xf32>},
        tensor<2x2xf32> {test.value = dense<[[-8.128794208159913, -14.316294208159913], [-10.908772875667438, -2.1587728756674367]]> : tensor<2x2xf32>},
        tensor<2x3xf32> {test.value = dense<[[-5.9412942081599125, -7.6912942081599125, -8.128794208159913], [-15.283772875667438, -12.408772875667436, -10.908772875667438]]> : tensor<2x3xf32>},
        tensor<2x2xf32> {test.value = dense<[[-8.128794208159913, -14.316294208159913], [-10.908772875667438, -2.1587728756674367]]> : tensor<2x2xf32>}) {
  %rows = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %q = nn.dot %rows, %w {transpose_b} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %q3 = nn.reshape %q : tensor<6x5xf32> -> tensor<2x3x5xf32>
  %l = nn.log_softmax %q3 dim = 2 : tensor<2x3x5xf32>
  %t = nn.transpose %l [0, 2, 1] : tensor<2x3x5xf32> -> tensor<2x5x3xf32>
  %one = nn.slice %l starts = [0, 0, 2] strides = [1, 1, 1] : tensor<2x3x5xf32> -> tensor<2x3x1xf32>
  %a = nn.reshape %one : tensor<2x3x1xf32> -> tensor<2x3xf32>
  %b = nn.gather %l[%i] axis = 2 : (tensor<2x3x5xf32>, tensor<2xi64>) -> tensor<2x3x2xf32>
  %c = nn.slice %t starts = [0, 0, 0] strides = [1, 2, 1] : tensor<2x5x3xf32> -> tensor<2x3x3xf32>
  %d = nn.gather %t[%i] axis = 1 : (tensor<2x5x3xf32>, tensor<2xi64>) -> tensor<2x2x3xf32>
  %sa = nn.reduce_sum %a dims = [1] : tensor<2x3xf32> -> tensor<2xf32>
  %sb = nn.reduce_sum %b dims = [1] : tensor<2x3x2xf32> -> tensor<2x2xf32>
  %sc = nn.reduce_sum %c dims = [2] : tensor<2x3x3xf32> -> tensor<2x3xf32>
  %sd = nn.reduce_sum %d dims = [2] : tensor<2x2x3xf32> -> tensor<2x2xf32>
  return %sa, %sb, %sc, %sd : tensor<2xf32>, tensor<2x2xf32>, tensor<2x3xf32>, tensor<2x2xf32>
}

// A loss of the first samples and another of the others, as of chosen and rejected answers: each has a product of its rows.
// CHECK-LABEL: @halves
// CHECK-NOT: {{8x5|4x2x5}}
// CHECK: nn.dot {{.*}} -> tensor<4x5xf32>
// CHECK-NOT: {{8x5|4x2x5}}
// CHECK: return
func.func @halves(%x: tensor<4x2x3xf32> {test.value = dense<[[[0.0, 0.75, -0.75], [-1.25, 0.0, -1.25]], [[0.25, -1.0, 1.5], [0.75, -1.25, -1.5]], [[0.75, 1.25, 1.5], [-1.25, -0.25, -1.0]], [[-0.75, -1.0, -0.25], [-1.5, -0.25, -0.25]]]> : tensor<4x2x3xf32>},
    %w: tensor<5x3xf32> {test.value = dense<[[-0.5, -1.0, 0.5], [-1.5, 0.0, 1.0], [1.5, -1.5, 0.0], [1.25, -0.75, 1.5], [-1.5, 1.0, -1.5]]> : tensor<5x3xf32>},
    %y: tensor<4xi64> {test.value = dense<[1, 4, 0, 2]> : tensor<4xi64>},
    %i: tensor<2x2x1xi64> {test.value = dense<[[[3], [3]], [[2], [0]]]> : tensor<2x2x1xi64>})
    -> (tensor<4xf32> {test.value = dense<[2.807639598063212, 0.06935554374282361, 2.116466639494976, 0.12942852260550983]> : tensor<4xf32>},
        tensor<2x2x1xf32> {test.value = dense<[[[-0.027698250637873734], [-12.01518218894387]], [[-2.3897040789267248], [-3.4203517049062766]]]> : tensor<2x2x1xf32>}) {
  %rows = nn.reshape %x : tensor<4x2x3xf32> -> tensor<8x3xf32>
  %z = nn.dot %rows, %w {transpose_b} : (tensor<8x3xf32>, tensor<5x3xf32>) -> tensor<8x5xf32>
  %z3 = nn.reshape %z : tensor<8x5xf32> -> tensor<4x2x5xf32>
  %first = nn.slice %z3 starts = [0, 0, 0] strides = [1, 1, 1] : tensor<4x2x5xf32> -> tensor<2x2x5xf32>
  %others = nn.slice %z3 starts = [2, 0, 0] strides = [1, 1, 1] : tensor<4x2x5xf32> -> tensor<2x2x5xf32>
  %logits = nn.reshape %first : tensor<2x2x5xf32> -> tensor<4x5xf32>
  %l, %lse = nn.softmax_cross_entropy %logits, %y : (tensor<4x5xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  %two = nn.constant dense<2.0> : tensor<2x2x5xf32>
  %sharp = nn.mul %others, %two : tensor<2x2x5xf32>
  %q = nn.log_softmax %sharp dim = 2 : tensor<2x2x5xf32>
  %p = nn.gather_elements %q[%i] axis = 2 : (tensor<2x2x5xf32>, tensor<2x2x1xi64>) -> tensor<2x2x1xf32>
  return %l, %p : tensor<4xf32>, tensor<2x2x1xf32>
}
