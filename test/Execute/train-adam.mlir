// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @plain(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.0485889911651611, -1.39297354221344, 0.35252976417541504, 2.458059310913086]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[2.0299999713897705, -2.370000123977661, -0.4395000636577606, 1.8899999856948853]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[1.0231009721755981, 1.2485754489898682, 0.20818550884723663, 4.845576763153076]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.adam %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.adam %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.adam %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @amsgrad(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.9478915929794312, -2.6047286987304688, 1.1432743072509766, 3.5399465560913086]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[-1.9836151599884033, 2.3085508346557617, 0.4665226638317108, -1.8014646768569946]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[1.0158542394638062, 1.237005352973938, 0.20940956473350525, 4.830702304840088]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[1.0158542394638062, 1.237005352973938, 0.20940956473350525, 4.830702304840088]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %s20 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11, %s21 = train.adam %w0 gradient %g0 lr %lr step %t0 state %s00, %s10, %s20
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.1, amsgrad = 1.0, maximize = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12, %s22 = train.adam %w1 gradient %g1 lr %lr step %t1 state %s01, %s11, %s21
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.1, amsgrad = 1.0, maximize = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13, %s23 = train.adam %w2 gradient %g2 lr %lr step %t2 state %s02, %s12, %s22
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.1, amsgrad = 1.0, maximize = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13, %s23 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @decay(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.1794726848602295, -1.5027034282684326, 0.4082569479942322, 2.6032731533050537]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[3.59834623336792, 0.9293663501739502, -5.198113441467285, -14.51476764678955]> : tensor<4xf32>, test.tolerance = 2.4e-06},
        tensor<4xf32> {test.value = dense<[46.96401596069336, 59.544918060302734, 10.263748168945312, 232.5174102783203]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.adam %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.4, beta2 = 0.95, eps = 0.001, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.adam %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.4, beta2 = 0.95, eps = 0.001, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.adam %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.4, beta2 = 0.95, eps = 0.001, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @onnx(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.1254792003081062, -1.4211993656705797, 0.4365153174565183, 2.496879683239828]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[2.067137984322612, -2.4186943191556227, -0.4237855008587168, 1.9657931871738903]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[46.95191470883424, 59.569257475011085, 10.258430528355674, 232.54478005540176]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.adam %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.95, eps = 0.01, weight_decay = 0.1, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.adam %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.95, eps = 0.01, weight_decay = 0.1, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.adam %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.95, eps = 0.01, weight_decay = 0.1, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @rows(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.076572060585022, -1.419597864151001, 0.48738622665405273, 2.4851205348968506]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[3.240000009536743, -3.560000419616699, -1.055999994277954, 1.7199993133544922]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[46.61249923706055, 58.98749923706055, 10.25128173828125, 231.63751220703125]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.adam %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.8, beta2 = 0.95, eps = 0.1, weight_decay = 0.0, rows} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.adam %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.8, beta2 = 0.95, eps = 0.1, weight_decay = 0.0, rows} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.adam %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.8, beta2 = 0.95, eps = 0.1, weight_decay = 0.0, rows} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
