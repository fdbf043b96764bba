// RUN: lowtide-execute %s
// Philox4x32-10, checked against its authors' known answers (Inputs/layers.py).

func.func @zero(%seed: tensor<i64> {test.value = dense<0> : tensor<i64>},
    %step: tensor<i64> {test.value = dense<0> : tensor<i64>},
    %row: tensor<i64> {test.value = dense<0> : tensor<i64>})
    -> (tensor<1xf32> {test.value = dense<[0.39904642]> : tensor<1xf32>, test.tolerance = 0.0}) {
  %y = nn.random_uniform %seed, %step, %row op = 0 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1xf32>
  return %y : tensor<1xf32>
}

func.func @batch(%seed: tensor<i64> {test.value = dense<1234> : tensor<i64>},
    %step: tensor<i64> {test.value = dense<7> : tensor<i64>},
    %row: tensor<i64> {test.value = dense<6> : tensor<i64>})
    -> (tensor<3x5xf32> {test.value = dense<[[0.18222678, 0.87334126, 0.6394238, 0.0826146, 0.51038706], [0.2299844, 0.38082433, 0.13039923, 0.22323537, 0.37454724], [0.7223182, 0.36026096, 0.04553944, 0.88684905, 0.76372164]]> : tensor<3x5xf32>, test.tolerance = 0.0}) {
  %y = nn.random_uniform %seed, %step, %row op = 3 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

func.func @heads(%seed: tensor<i64> {test.value = dense<1099511627777> : tensor<i64>},
    %step: tensor<i64> {test.value = dense<1> : tensor<i64>},
    %row: tensor<i64> {test.value = dense<4> : tensor<i64>})
    -> (tensor<2x3x2xf32> {test.value = dense<[[[0.29465085, 0.33640313], [0.86616826, 0.5427603], [0.96398073, 0.6042802]], [[0.54932904, 0.9705294], [0.80505896, 0.0402202], [0.2059806, 0.394785]]]> : tensor<2x3x2xf32>, test.tolerance = 0.0}) {
  %y = nn.random_uniform %seed, %step, %row op = 9 batch_dim = 1 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3x2xf32>
  return %y : tensor<2x3x2xf32>
}

func.func @no_batch(%seed: tensor<i64> {test.value = dense<5> : tensor<i64>},
    %step: tensor<i64> {test.value = dense<2> : tensor<i64>},
    %row: tensor<i64> {test.value = dense<100> : tensor<i64>})
    -> (tensor<7xf32> {test.value = dense<[0.12087679, 0.276196, 0.6420599, 0.6941465, 0.25918823, 0.5270308, 0.31513494]> : tensor<7xf32>, test.tolerance = 0.0}) {
  %y = nn.random_uniform %seed, %step, %row op = 1 batch_dim = -1 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<7xf32>
  return %y : tensor<7xf32>
}

func.func @far(%seed: tensor<i64> {test.value = dense<-1> : tensor<i64>},
    %step: tensor<i64> {test.value = dense<2147483648> : tensor<i64>},
    %row: tensor<i64> {test.value = dense<8589934592> : tensor<i64>})
    -> (tensor<2x2xf32> {test.value = dense<[[0.9339724, 0.56319106], [0.15060574, 0.7169735]]> : tensor<2x2xf32>, test.tolerance = 0.0}) {
  %y = nn.random_uniform %seed, %step, %row op = 2 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

func.func @double(%seed: tensor<i64> {test.value = dense<1> : tensor<i64>},
    %step: tensor<i64> {test.value = dense<1> : tensor<i64>},
    %row: tensor<i64> {test.value = dense<1> : tensor<i64>})
    -> (tensor<3xf64> {test.value = dense<[0.3092467188835144, 0.40031731128692627, 0.17068147659301758]> : tensor<3xf64>, test.tolerance = 0.0}) {
  %y = nn.random_uniform %seed, %step, %row op = 1 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}
