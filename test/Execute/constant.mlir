// RUN: lowtide-execute %s
// What is written is what is read.

func.func @list()
    -> (tensor<7xf32> {test.value = dense<[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51]> : tensor<7xf32>}) {
  %y = nn.constant dense<[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51]> : tensor<7xf32>
  return %y : tensor<7xf32>
}

func.func @scalar()
    -> (tensor<f32> {test.value = dense<-1.32> : tensor<f32>}) {
  %y = nn.constant dense<-1.32> : tensor<f32>
  return %y : tensor<f32>
}

func.func @integers()
    -> (tensor<2x1xi64> {test.value = dense<[[4611686018427387904], [-4611686018427387904]]> : tensor<2x1xi64>}) {
  %y = nn.constant dense<[[4611686018427387904], [-4611686018427387904]]> : tensor<2x1xi64>
  return %y : tensor<2x1xi64>
}

func.func @logic()
    -> (tensor<3xi1> {test.value = dense<[true, false, true]> : tensor<3xi1>}) {
  %y = nn.constant dense<[true, false, true]> : tensor<3xi1>
  return %y : tensor<3xi1>
}

func.func @brain()
    -> (tensor<3xbf16> {test.value = dense<[-1.3203125, 1.1484375, -0.38085938]> : tensor<3xbf16>}) {
  %y = nn.constant dense<[-1.3203125, 1.1484375, -0.38085938]> : tensor<3xbf16>
  return %y : tensor<3xbf16>
}

func.func @special()
    -> (tensor<4xf32> {test.value = dense<[0x7F800000, 0xFF800000, 0x7FC00000, -0.0]> : tensor<4xf32>}) {
  %y = nn.constant dense<[0x7F800000, 0xFF800000, 0x7FC00000, -0.0]> : tensor<4xf32>
  return %y : tensor<4xf32>
}

func.func @splat()
    -> (tensor<3x5xf32> {test.value = dense<[[1.25, 1.25, 1.25, 1.25, 1.25], [1.25, 1.25, 1.25, 1.25, 1.25], [1.25, 1.25, 1.25, 1.25, 1.25]]> : tensor<3x5xf32>}) {
  %y = nn.constant dense<1.25> : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
