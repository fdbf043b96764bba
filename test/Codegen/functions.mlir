// RUN: lowtide-execute %s
// The f32 polynomials against the f64 math library. Tolerances are relative above 1, absolute below; 6.0e-8 is half a
// unit in the last place at 1.

func.func @exp(%x: tensor<4096xf32> {test.low = -105.0, test.high = 88.5})
    -> (tensor<4096xf32> {test.tolerance = 2.4e-7}) {
  %y = nn.exp %x : tensor<4096xf32>
  return %y : tensor<4096xf32>
}
func.func @exp_small(%x: tensor<4096xf32> {test.low = -1.0, test.high = 1.0})
    -> (tensor<4096xf32> {test.tolerance = 1.2e-7}) {
  %y = nn.exp %x : tensor<4096xf32>
  return %y : tensor<4096xf32>
}
func.func @exp_special(%x: tensor<6xf32> {test.value = dense<[0xFF800000, 0x7F800000, 0x7FC00000, 100.0, -110.0, 0.0]> : tensor<6xf32>})
    -> (tensor<6xf32> {test.value = dense<[0.0, 0x7F800000, 0x7FC00000, 0x7F800000, 0.0, 1.0]> : tensor<6xf32>}) {
  // In f64, e^100 and e^-110 are finite: compared through f32.
  %y = nn.exp %x : tensor<6xf32>
  %big = nn.constant dense<3.0e38> : tensor<6xf32>
  %over = nn.compare gt %y, %big : tensor<6xf32> -> tensor<6xi1>
  %infinity = nn.constant dense<0x7F800000> : tensor<6xf32>
  %z = nn.select %over, %infinity, %y : tensor<6xi1>, tensor<6xf32>
  return %z : tensor<6xf32>
}
func.func @log(%x: tensor<4096xf32> {test.low = 1.0e-6, test.high = 50.0})
    -> (tensor<4096xf32> {test.tolerance = 1.2e-7}) {
  %y = nn.log %x : tensor<4096xf32>
  return %y : tensor<4096xf32>
}
func.func @tanh(%x: tensor<4096xf32> {test.low = -10.0, test.high = 10.0})
    -> (tensor<4096xf32> {test.tolerance = 1.2e-7}) {
  %y = nn.tanh %x : tensor<4096xf32>
  return %y : tensor<4096xf32>
}
func.func @erf(%x: tensor<4096xf32> {test.low = -5.0, test.high = 5.0})
    -> (tensor<4096xf32> {test.tolerance = 1.2e-7}) {
  %y = nn.erf %x : tensor<4096xf32>
  return %y : tensor<4096xf32>
}
func.func @erf_small(%x: tensor<4096xf32> {test.low = -0.01, test.high = 0.01})
    -> (tensor<4096xf32> {test.tolerance = 1.2e-9}) {
  %y = nn.erf %x : tensor<4096xf32>
  return %y : tensor<4096xf32>
}
func.func @erf_special(%x: tensor<6xf32> {test.value = dense<[0xFF800000, 0x7F800000, 0x7FC00000, 0.0, -20.0, 1.0e30]> : tensor<6xf32>})
    -> (tensor<6xf32> {test.value = dense<[-1.0, 1.0, 0x7FC00000, 0.0, -1.0, 1.0]> : tensor<6xf32>}) {
  %y = nn.erf %x : tensor<6xf32>
  return %y : tensor<6xf32>
}
func.func @sin_cos(%x: tensor<4096xf32> {test.low = -2000.0, test.high = 2000.0})
    -> (tensor<4096xf32> {test.tolerance = 1.2e-7}, tensor<4096xf32> {test.tolerance = 1.2e-7}) {
  %s = nn.sin %x : tensor<4096xf32>
  %c = nn.cos %x : tensor<4096xf32>
  return %s, %c : tensor<4096xf32>, tensor<4096xf32>
}
