// RUN: lowtide-execute %s
// Philox4x32-10 and the integer rule (Inputs/codes.py).

func.func @drawn(%x: tensor<3x5xf32> {test.value = dense<[[2.040919, -2.555665, 0.41809884, -0.5677696, -0.4526493], [-0.21559717, -2.0199862, -0.23193237, -0.8652131, 3.3229995], [0.22578661, -0.3526308, -0.28128743, -0.66804636, -1.0551505]]> : tensor<3x5xf32>},
    %seed: tensor<i64> {test.value = dense<8589934599> : tensor<i64>},
    %step: tensor<i64> {test.value = dense<11> : tensor<i64>})
    -> (tensor<3x5xbf16> {test.value = dense<[[2.03125, -2.546875, 0.41796875, -0.5703125, -0.453125], [-0.21582031, -2.03125, -0.23242188, -0.86328125, 3.328125], [0.22558594, -0.3515625, -0.28125, -0.66796875, -1.0546875]]> : tensor<3x5xbf16>, test.tolerance = 0.0}) {
  %y = train.encode_sr %x, %seed, %step {stream = 2147483652} : (tensor<3x5xf32>, tensor<i64>, tensor<i64>) -> tensor<3x5xbf16>
  return %y : tensor<3x5xbf16>
}
