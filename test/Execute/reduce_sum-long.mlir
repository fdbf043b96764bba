// RUN: lowtide-execute %s
// Long sums: added up one after the other, the totals of 256 elements, or of 64 rows, all round the same way. The values
// are the same f32 elements added up in f64.

func.func @all(%x: tensor<5000001xf32> {test.value = dense<1.1> : tensor<5000001xf32>})
    -> (tensor<f32> {test.value = dense<5500001.2> : tensor<f32>, test.tolerance = 2.0e-6}) {
  %y = nn.reduce_sum %x dims = [0] : tensor<5000001xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// Lines that no segment holds a whole number of.
func.func @lines(%x: tensor<1000x3x350xf32> {test.value = dense<1.1> : tensor<1000x3x350xf32>})
    -> (tensor<3xf32> {test.value = dense<385000.0> : tensor<3xf32>, test.tolerance = 2.0e-6}) {
  %y = nn.reduce_sum %x dims = [0, 2] : tensor<1000x3x350xf32> -> tensor<3xf32>
  return %y : tensor<3xf32>
}

func.func @rows(%x: tensor<524289x3xf32> {test.value = dense<1.1> : tensor<524289x3xf32>})
    -> (tensor<3xf32> {test.value = dense<576717.9> : tensor<3xf32>, test.tolerance = 2.0e-6}) {
  %y = nn.reduce_sum %x dims = [0] : tensor<524289x3xf32> -> tensor<3xf32>
  return %y : tensor<3xf32>
}
