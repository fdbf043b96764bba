// RUN: lowtide-execute %s
// The same values, read once the other one is there.

func.func @again(%x: tensor<3xf32> {test.value = dense<[1.5, -2.0, 0.25]> : tensor<3xf32>},
    %dy: tensor<2xf32> {test.value = dense<[1.0, 2.0]> : tensor<2xf32>})
    -> (tensor<3xf32> {test.value = dense<[2.25, 4.0, 0.0625]> : tensor<3xf32>}) {
  %late = train.remat %x after(%dy) : tensor<3xf32>, tensor<2xf32>
  %y = nn.mul %late, %late : tensor<3xf32>
  return %y : tensor<3xf32>
}
