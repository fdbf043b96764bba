// RUN: lowtide-execute %s

func.func @exp(%x: tensor<5xf32> {test.value = dense<[0.0, 1.0, -1.0, 20.0, 0xFF800000]> : tensor<5xf32>})
    -> (tensor<5xf32> {test.value = dense<[1.0, 2.718281828, 0.367879441, 485165195.4, 0.0]> : tensor<5xf32>}) {
  %y = nn.exp %x : tensor<5xf32>
  return %y : tensor<5xf32>
}
