// RUN: lowtide-execute %s
// Additions at computed places: repeated and negative indices, tiles of the last dimension, an axis in the middle, and
// nothing to divide at all.

func.func @rows(%i: tensor<40xi64> {test.low = -7, test.high = 7}, %u: tensor<40x37xf32>) -> tensor<7x37xf32> {
  %y = nn.scatter_add [%i] %u axis = 0 : (tensor<40xi64>, tensor<40x37xf32>) -> tensor<7x37xf32>
  return %y : tensor<7x37xf32>
}
func.func @two_index_dims(%i: tensor<3x5xi64> {test.high = 9}, %u: tensor<3x5x200xf32>) -> tensor<9x200xf32> {
  %y = nn.scatter_add [%i] %u axis = 0 : (tensor<3x5xi64>, tensor<3x5x200xf32>) -> tensor<9x200xf32>
  return %y : tensor<9x200xf32>
}
func.func @middle(%i: tensor<6xi64> {test.high = 4}, %u: tensor<3x6x5xf32>) -> tensor<3x4x5xf32> {
  %y = nn.scatter_add [%i] %u axis = 1 : (tensor<6xi64>, tensor<3x6x5xf32>) -> tensor<3x4x5xf32>
  return %y : tensor<3x4x5xf32>
}
func.func @last(%i: tensor<6xi32> {test.high = 4}, %u: tensor<3x6xf32>) -> tensor<3x4xf32> {
  %y = nn.scatter_add [%i] %u axis = 1 : (tensor<6xi32>, tensor<3x6xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
func.func @vector(%i: tensor<100xi64> {test.high = 10}, %u: tensor<100xf32>) -> (tensor<10xf32> {test.tolerance = 4.0e-6}) {
  %y = nn.scatter_add [%i] %u axis = 0 : (tensor<100xi64>, tensor<100xf32>) -> tensor<10xf32>
  return %y : tensor<10xf32>
}
func.func @elements(%i: tensor<5x6xi64> {test.high = 8}, %u: tensor<5x6xf32>) -> tensor<5x8xf32> {
  %y = nn.scatter_elements_add [%i] %u axis = 1 : (tensor<5x6xi64>, tensor<5x6xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}
func.func @elements_leading(%i: tensor<30x6xi64> {test.high = 8}, %u: tensor<30x6xf32>) -> (tensor<8x6xf32> {test.tolerance = 4.0e-6}) {
  %y = nn.scatter_elements_add [%i] %u axis = 0 : (tensor<30x6xi64>, tensor<30x6xf32>) -> tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}
// So many places that a GPU sorts them first.
func.func @sorted(%i: tensor<7x90xi64> {test.low = -40, test.high = 40}, %u: tensor<7x90x33xf32>) -> (tensor<40x33xf32> {test.tolerance = 1.0e-4}) {
  %y = nn.scatter_add [%i] %u axis = 0 : (tensor<7x90xi64>, tensor<7x90x33xf32>) -> tensor<40x33xf32>
  return %y : tensor<40x33xf32>
}
func.func @sorted_one_row(%i: tensor<512xi32> {test.high = 1}, %u: tensor<512x20xbf16>) -> (tensor<300x20xbf16> {test.tolerance = 1.0}) {
  %y = nn.scatter_add [%i] %u axis = 0 : (tensor<512xi32>, tensor<512x20xbf16>) -> tensor<300x20xbf16>
  return %y : tensor<300x20xbf16>
}
