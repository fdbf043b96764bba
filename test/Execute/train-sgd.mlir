// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @plain(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-4.75, 5.5, 1.625, -4.5]> : tensor<4xf32>}) {
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1 = train.sgd %w0 gradient %g0 lr %lr step %t0
      {lr_scale = 1.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2 = train.sgd %w1 gradient %g1 lr %lr step %t1
      {lr_scale = 1.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3 = train.sgd %w2 gradient %g2 lr %lr step %t2
      {lr_scale = 1.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3 : tensor<4xf32>
}

func.func @maximize(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[7.3324761390686035, -8.950593948364258, -0.23602747917175293, 9.56807804107666]> : tensor<4xf32>}) {
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1 = train.sgd %w0 gradient %g0 lr %lr step %t0
      {lr_scale = 1.0, weight_decay = 0.1, maximize = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2 = train.sgd %w1 gradient %g1 lr %lr step %t1
      {lr_scale = 1.0, weight_decay = 0.1, maximize = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3 = train.sgd %w2 gradient %g2 lr %lr step %t2
      {lr_scale = 1.0, weight_decay = 0.1, maximize = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3 : tensor<4xf32>
}

func.func @decay(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-4.551898002624512, 5.243156433105469, 1.6263165473937988, -4.006921768188477]> : tensor<4xf32>}) {
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1 = train.sgd %w0 gradient %g0 lr %lr step %t0
      {lr_scale = 1.0, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2 = train.sgd %w1 gradient %g1 lr %lr step %t1
      {lr_scale = 1.0, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3 = train.sgd %w2 gradient %g2 lr %lr step %t2
      {lr_scale = 1.0, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3 : tensor<4xf32>
}

func.func @group(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-1.625, 1.75, 1.1875, -0.75]> : tensor<4xf32>}) {
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1 = train.sgd %w0 gradient %g0 lr %lr step %t0
      {lr_scale = 0.5, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2 = train.sgd %w1 gradient %g1 lr %lr step %t1
      {lr_scale = 0.5, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3 = train.sgd %w2 gradient %g2 lr %lr step %t2
      {lr_scale = 0.5, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3 : tensor<4xf32>
}
