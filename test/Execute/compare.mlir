// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @eq_floats(%a: tensor<9xf32> {test.value = dense<[1.0, 2.0, 3.0, 0x7FC00000, 1.0, 0x7F800000, -0.0, 0xFF800000, 0x7FC00000]> : tensor<9xf32>},
    %b: tensor<9xf32> {test.value = dense<[1.0, 3.0, 2.0, 0x7FC00000, 0x7FC00000, 0x7F800000, 0.0, 1.0, 2.0]> : tensor<9xf32>})
    -> (tensor<9xi1> {test.value = dense<[true, false, false, false, false, true, true, false, false]> : tensor<9xi1>}) {
  %y = nn.compare eq %a, %b : tensor<9xf32> -> tensor<9xi1>
  return %y : tensor<9xi1>
}

func.func @eq_unsigned(%a: tensor<3x1xui8> {test.value = dense<[[200], [5], [7]]> : tensor<3x1xui8>},
    %b: tensor<3x1xui8> {test.value = dense<[[100], [5], [255]]> : tensor<3x1xui8>})
    -> (tensor<3x1xi1> {test.value = dense<[[false], [true], [false]]> : tensor<3x1xi1>}) {
  %y = nn.compare eq %a, %b : tensor<3x1xui8> -> tensor<3x1xi1>
  return %y : tensor<3x1xi1>
}

func.func @eq_integers(%a: tensor<3xi64> {test.value = dense<[-1, 5, 1099511627776]> : tensor<3xi64>},
    %b: tensor<3xi64> {test.value = dense<[1, 5, -1099511627776]> : tensor<3xi64>})
    -> (tensor<3xi1> {test.value = dense<[false, true, false]> : tensor<3xi1>}) {
  %y = nn.compare eq %a, %b : tensor<3xi64> -> tensor<3xi1>
  return %y : tensor<3xi1>
}

func.func @eq_logic(%a: tensor<2xi1> {test.value = dense<[true, false]> : tensor<2xi1>},
    %b: tensor<2xi1> {test.value = dense<[false, false]> : tensor<2xi1>})
    -> (tensor<2xi1> {test.value = dense<[false, true]> : tensor<2xi1>}) {
  %y = nn.compare eq %a, %b : tensor<2xi1> -> tensor<2xi1>
  return %y : tensor<2xi1>
}

func.func @ne_floats(%a: tensor<9xf32> {test.value = dense<[1.0, 2.0, 3.0, 0x7FC00000, 1.0, 0x7F800000, -0.0, 0xFF800000, 0x7FC00000]> : tensor<9xf32>},
    %b: tensor<9xf32> {test.value = dense<[1.0, 3.0, 2.0, 0x7FC00000, 0x7FC00000, 0x7F800000, 0.0, 1.0, 2.0]> : tensor<9xf32>})
    -> (tensor<9xi1> {test.value = dense<[false, true, true, true, true, false, false, true, true]> : tensor<9xi1>}) {
  %y = nn.compare ne %a, %b : tensor<9xf32> -> tensor<9xi1>
  return %y : tensor<9xi1>
}

func.func @ne_unsigned(%a: tensor<3x1xui8> {test.value = dense<[[200], [5], [7]]> : tensor<3x1xui8>},
    %b: tensor<3x1xui8> {test.value = dense<[[100], [5], [255]]> : tensor<3x1xui8>})
    -> (tensor<3x1xi1> {test.value = dense<[[true], [false], [true]]> : tensor<3x1xi1>}) {
  %y = nn.compare ne %a, %b : tensor<3x1xui8> -> tensor<3x1xi1>
  return %y : tensor<3x1xi1>
}

func.func @ne_integers(%a: tensor<3xi64> {test.value = dense<[-1, 5, 1099511627776]> : tensor<3xi64>},
    %b: tensor<3xi64> {test.value = dense<[1, 5, -1099511627776]> : tensor<3xi64>})
    -> (tensor<3xi1> {test.value = dense<[true, false, true]> : tensor<3xi1>}) {
  %y = nn.compare ne %a, %b : tensor<3xi64> -> tensor<3xi1>
  return %y : tensor<3xi1>
}

func.func @ne_logic(%a: tensor<2xi1> {test.value = dense<[true, false]> : tensor<2xi1>},
    %b: tensor<2xi1> {test.value = dense<[false, false]> : tensor<2xi1>})
    -> (tensor<2xi1> {test.value = dense<[true, false]> : tensor<2xi1>}) {
  %y = nn.compare ne %a, %b : tensor<2xi1> -> tensor<2xi1>
  return %y : tensor<2xi1>
}

func.func @lt_floats(%a: tensor<9xf32> {test.value = dense<[1.0, 2.0, 3.0, 0x7FC00000, 1.0, 0x7F800000, -0.0, 0xFF800000, 0x7FC00000]> : tensor<9xf32>},
    %b: tensor<9xf32> {test.value = dense<[1.0, 3.0, 2.0, 0x7FC00000, 0x7FC00000, 0x7F800000, 0.0, 1.0, 2.0]> : tensor<9xf32>})
    -> (tensor<9xi1> {test.value = dense<[false, true, false, false, false, false, false, true, false]> : tensor<9xi1>}) {
  %y = nn.compare lt %a, %b : tensor<9xf32> -> tensor<9xi1>
  return %y : tensor<9xi1>
}

func.func @lt_unsigned(%a: tensor<3x1xui8> {test.value = dense<[[200], [5], [7]]> : tensor<3x1xui8>},
    %b: tensor<3x1xui8> {test.value = dense<[[100], [5], [255]]> : tensor<3x1xui8>})
    -> (tensor<3x1xi1> {test.value = dense<[[false], [false], [true]]> : tensor<3x1xi1>}) {
  %y = nn.compare lt %a, %b : tensor<3x1xui8> -> tensor<3x1xi1>
  return %y : tensor<3x1xi1>
}

func.func @lt_integers(%a: tensor<3xi64> {test.value = dense<[-1, 5, 1099511627776]> : tensor<3xi64>},
    %b: tensor<3xi64> {test.value = dense<[1, 5, -1099511627776]> : tensor<3xi64>})
    -> (tensor<3xi1> {test.value = dense<[true, false, false]> : tensor<3xi1>}) {
  %y = nn.compare lt %a, %b : tensor<3xi64> -> tensor<3xi1>
  return %y : tensor<3xi1>
}

func.func @le_floats(%a: tensor<9xf32> {test.value = dense<[1.0, 2.0, 3.0, 0x7FC00000, 1.0, 0x7F800000, -0.0, 0xFF800000, 0x7FC00000]> : tensor<9xf32>},
    %b: tensor<9xf32> {test.value = dense<[1.0, 3.0, 2.0, 0x7FC00000, 0x7FC00000, 0x7F800000, 0.0, 1.0, 2.0]> : tensor<9xf32>})
    -> (tensor<9xi1> {test.value = dense<[true, true, false, false, false, true, true, true, false]> : tensor<9xi1>}) {
  %y = nn.compare le %a, %b : tensor<9xf32> -> tensor<9xi1>
  return %y : tensor<9xi1>
}

func.func @le_unsigned(%a: tensor<3x1xui8> {test.value = dense<[[200], [5], [7]]> : tensor<3x1xui8>},
    %b: tensor<3x1xui8> {test.value = dense<[[100], [5], [255]]> : tensor<3x1xui8>})
    -> (tensor<3x1xi1> {test.value = dense<[[false], [true], [true]]> : tensor<3x1xi1>}) {
  %y = nn.compare le %a, %b : tensor<3x1xui8> -> tensor<3x1xi1>
  return %y : tensor<3x1xi1>
}

func.func @le_integers(%a: tensor<3xi64> {test.value = dense<[-1, 5, 1099511627776]> : tensor<3xi64>},
    %b: tensor<3xi64> {test.value = dense<[1, 5, -1099511627776]> : tensor<3xi64>})
    -> (tensor<3xi1> {test.value = dense<[true, true, false]> : tensor<3xi1>}) {
  %y = nn.compare le %a, %b : tensor<3xi64> -> tensor<3xi1>
  return %y : tensor<3xi1>
}

func.func @gt_floats(%a: tensor<9xf32> {test.value = dense<[1.0, 2.0, 3.0, 0x7FC00000, 1.0, 0x7F800000, -0.0, 0xFF800000, 0x7FC00000]> : tensor<9xf32>},
    %b: tensor<9xf32> {test.value = dense<[1.0, 3.0, 2.0, 0x7FC00000, 0x7FC00000, 0x7F800000, 0.0, 1.0, 2.0]> : tensor<9xf32>})
    -> (tensor<9xi1> {test.value = dense<[false, false, true, false, false, false, false, false, false]> : tensor<9xi1>}) {
  %y = nn.compare gt %a, %b : tensor<9xf32> -> tensor<9xi1>
  return %y : tensor<9xi1>
}

func.func @gt_unsigned(%a: tensor<3x1xui8> {test.value = dense<[[200], [5], [7]]> : tensor<3x1xui8>},
    %b: tensor<3x1xui8> {test.value = dense<[[100], [5], [255]]> : tensor<3x1xui8>})
    -> (tensor<3x1xi1> {test.value = dense<[[true], [false], [false]]> : tensor<3x1xi1>}) {
  %y = nn.compare gt %a, %b : tensor<3x1xui8> -> tensor<3x1xi1>
  return %y : tensor<3x1xi1>
}

func.func @gt_integers(%a: tensor<3xi64> {test.value = dense<[-1, 5, 1099511627776]> : tensor<3xi64>},
    %b: tensor<3xi64> {test.value = dense<[1, 5, -1099511627776]> : tensor<3xi64>})
    -> (tensor<3xi1> {test.value = dense<[false, false, true]> : tensor<3xi1>}) {
  %y = nn.compare gt %a, %b : tensor<3xi64> -> tensor<3xi1>
  return %y : tensor<3xi1>
}

func.func @ge_floats(%a: tensor<9xf32> {test.value = dense<[1.0, 2.0, 3.0, 0x7FC00000, 1.0, 0x7F800000, -0.0, 0xFF800000, 0x7FC00000]> : tensor<9xf32>},
    %b: tensor<9xf32> {test.value = dense<[1.0, 3.0, 2.0, 0x7FC00000, 0x7FC00000, 0x7F800000, 0.0, 1.0, 2.0]> : tensor<9xf32>})
    -> (tensor<9xi1> {test.value = dense<[true, false, true, false, false, true, true, false, false]> : tensor<9xi1>}) {
  %y = nn.compare ge %a, %b : tensor<9xf32> -> tensor<9xi1>
  return %y : tensor<9xi1>
}

func.func @ge_unsigned(%a: tensor<3x1xui8> {test.value = dense<[[200], [5], [7]]> : tensor<3x1xui8>},
    %b: tensor<3x1xui8> {test.value = dense<[[100], [5], [255]]> : tensor<3x1xui8>})
    -> (tensor<3x1xi1> {test.value = dense<[[true], [true], [false]]> : tensor<3x1xi1>}) {
  %y = nn.compare ge %a, %b : tensor<3x1xui8> -> tensor<3x1xi1>
  return %y : tensor<3x1xi1>
}

func.func @ge_integers(%a: tensor<3xi64> {test.value = dense<[-1, 5, 1099511627776]> : tensor<3xi64>},
    %b: tensor<3xi64> {test.value = dense<[1, 5, -1099511627776]> : tensor<3xi64>})
    -> (tensor<3xi1> {test.value = dense<[false, true, true]> : tensor<3xi1>}) {
  %y = nn.compare ge %a, %b : tensor<3xi64> -> tensor<3xi1>
  return %y : tensor<3xi1>
}
