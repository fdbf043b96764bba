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
// As a GPU's fusion forms it: indices are made on the way, and sums are added to what is there, in its place.
func.func @onto(%i: tensor<70xi64> {test.low = -9, test.high = 9}, %u: tensor<70x300xf32>, %x: tensor<9x300xf32>)
    -> (tensor<9x300xf32> {test.tolerance = 2.0e-5}) {
  %y = nn.kernel scatter (%at = %i, %part = %u, %whole = %x) : (tensor<70xi64>, tensor<70x300xf32>, tensor<9x300xf32>)
      -> tensor<9x300xf32> {
    %zero = nn.constant dense<0> : tensor<70xi64>
    %rows = nn.constant dense<9> : tensor<70xi64>
    %back = nn.compare lt %at, %zero : tensor<70xi64> -> tensor<70xi1>
    %moved = nn.add %at, %rows : tensor<70xi64>
    %place = nn.select %back, %moved, %at : tensor<70xi1>, tensor<70xi64>
    %sum = nn.scatter_add [%place] %part axis = 0 : (tensor<70xi64>, tensor<70x300xf32>) -> tensor<9x300xf32>
    %both = nn.add %whole, %sum : tensor<9x300xf32>
    nn.yield %both : tensor<9x300xf32>
  }
  return %y : tensor<9x300xf32>
}
func.func @onto_sorted(%i: tensor<5x77xi32> {test.low = -40, test.high = 40}, %u: tensor<5x77x33xf32>, %x: tensor<40x33xf32>)
    -> (tensor<40x33xf32> {test.tolerance = 1.0e-4}) {
  %y = nn.kernel scatter (%at = %i, %part = %u, %whole = %x) : (tensor<5x77xi32>, tensor<5x77x33xf32>, tensor<40x33xf32>)
      -> tensor<40x33xf32> {
    %none = nn.constant dense<-1> : tensor<5x77xi32>
    %place = nn.max %at, %none : tensor<5x77xi32>
    %sum = nn.scatter_add [%place] %part axis = 0 : (tensor<5x77xi32>, tensor<5x77x33xf32>) -> tensor<40x33xf32>
    %both = nn.add %sum, %whole : tensor<40x33xf32>
    nn.yield %both : tensor<40x33xf32>
  }
  return %y : tensor<40x33xf32>
}

// What is added is made where it is added: rows of one tensor, weighed by numbers of another; of few rows of the result all
// look at all updates.
func.func @weighed(%to: tensor<70xi64> {test.low = -2, test.high = 11}, %from: tensor<70xi64> {test.low = 0, test.high = 6}, %sent: tensor<6x33xf32>, %w: tensor<70xf32>)
    -> (tensor<9x33xf32> {test.tolerance = 1.0e-4}) {
  %y = nn.kernel scatter (%at = %to, %of = %from, %rows = %sent, %by = %w) : (tensor<70xi64>, tensor<70xi64>, tensor<6x33xf32>, tensor<70xf32>) -> tensor<9x33xf32> {
    %read = nn.gather %rows[%of] axis = 0 : (tensor<6x33xf32>, tensor<70xi64>) -> tensor<70x33xf32>
    %spread = nn.broadcast %by dims = [0] : tensor<70xf32> -> tensor<70x33xf32>
    %part = nn.mul %read, %spread : tensor<70x33xf32>
    %sum = nn.scatter_add [%at] %part axis = 0 : (tensor<70xi64>, tensor<70x33xf32>) -> tensor<9x33xf32>
    nn.yield %sum : tensor<9x33xf32>
  }
  return %y : tensor<9x33xf32>
}
func.func @weighed_columns(%to: tensor<70xi64> {test.low = 0, test.high = 3}, %u: tensor<5x70x2xf32>, %w: tensor<70xf32>, %x: tensor<5x3x2xf32>)
    -> (tensor<5x3x2xf32> {test.tolerance = 1.0e-4}) {
  %y = nn.kernel scatter (%at = %to, %part = %u, %by = %w, %whole = %x) : (tensor<70xi64>, tensor<5x70x2xf32>, tensor<70xf32>, tensor<5x3x2xf32>) -> tensor<5x3x2xf32> {
    %spread = nn.broadcast %by dims = [1] : tensor<70xf32> -> tensor<5x70x2xf32>
    %weighed = nn.mul %part, %spread : tensor<5x70x2xf32>
    %sum = nn.scatter_add [%at] %weighed axis = 1 : (tensor<70xi64>, tensor<5x70x2xf32>) -> tensor<5x3x2xf32>
    %both = nn.add %sum, %whole : tensor<5x3x2xf32>
    nn.yield %both : tensor<5x3x2xf32>
  }
  return %y : tensor<5x3x2xf32>
}
