// RUN: lowtide-opt --onnx-legalize --split-input-file %s | FileCheck %s
// RUN: lowtide-opt --onnx-legalize --split-input-file %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// x[mask] has room for as many rows as the mask has elements. Rows that are not selected count nothing in the sum, and the mean is
// over those that are.

// REMARK: 'NonZero' selects up to 6 rows by data: what is made of them is computed for all of these
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<6x4xf32>
// CHECK-SAME:    %[[MASK:[^:]*]]: tensor<6xi1>
// CHECK:         %[[ROWS:.*]], %[[VALID:.*]] = nn.select_rows %[[MASK]] : (tensor<6xi1>) -> (tensor<6xi64>, tensor<6xi1>)
// CHECK:         %[[TAKEN:.*]] = nn.gather %[[X]][%[[PLACES:.*]]] axis = 0
// CHECK:         %[[SQUARE:.*]] = nn.mul
// CHECK:         %[[WHERE:.*]] = nn.broadcast %[[VALID]] dims = [0] : tensor<6xi1> -> tensor<6x4xi1>
// CHECK:         %[[MASKED:.*]] = nn.select %[[WHERE]], %[[SQUARE]]
// CHECK:         %[[SUM:.*]] = nn.reduce_sum %[[MASKED]]
// CHECK:         nn.div %[[SUM]]
func.func @model(%x: tensor<6x4xf32> {onnx.input = "x"}, %m: tensor<6xi1> {onnx.input = "m"}) -> (!onnx.value {onnx.output = "loss"}) {
  %places = onnx.node "NonZero"(%m) {attrs = {}, domain = "", outputs = ["places"], version = 20 : i64} : (tensor<6xi1>) -> !onnx.value
  %turned = onnx.node "Transpose"(%places) {attrs = {}, domain = "", outputs = ["turned"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %rows = onnx.node "GatherND"(%x, %turned) {attrs = {}, domain = "", outputs = ["rows"], version = 20 : i64} : (tensor<6x4xf32>, !onnx.value) -> !onnx.value
  %square = onnx.node "Mul"(%rows, %rows) {attrs = {}, domain = "", outputs = ["square"], version = 20 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceMean"(%square) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["loss"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  return %loss : !onnx.value
}

// -----

// Their number as a size is the room that there is; as a number it is counted.

// CHECK-LABEL: func.func @forward(
// CHECK:         %[[COUNT:.*]] = nn.reduce_sum %{{.*}} dims = [0] : tensor<6xi64> -> tensor<i64>
// CHECK:         nn.broadcast %{{.*}} -> tensor<6xf32>
// CHECK:         nn.cast %{{.*}} : tensor<i64> -> tensor<f32>
func.func @model(%x: tensor<6xf32> {onnx.input = "x"}, %c: tensor<1xf32> {onnx.input = "c"}, %m: tensor<6xi1> {onnx.input = "m"}) -> (!onnx.value {onnx.output = "loss"}) {
  %rows = onnx.node "Compress"(%x, %m) {attrs = {axis = 0 : i64}, domain = "", outputs = ["rows"], version = 20 : i64} : (tensor<6xf32>, tensor<6xi1>) -> !onnx.value
  %shape = onnx.node "Shape"(%rows) {attrs = {}, domain = "", outputs = ["shape"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %spread = onnx.node "Expand"(%c, %shape) {attrs = {}, domain = "", outputs = ["spread"], version = 20 : i64} : (tensor<1xf32>, !onnx.value) -> !onnx.value
  %sum = onnx.node "ReduceSum"(%spread) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["sum"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %count = onnx.node "Size"(%rows) {attrs = {}, domain = "", outputs = ["count"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %number = onnx.node "Cast"(%count) {attrs = {to = 1 : i64}, domain = "", outputs = ["number"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %loss = onnx.node "Div"(%sum, %number) {attrs = {}, domain = "", outputs = ["loss"], version = 20 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
  return %loss : !onnx.value
}

// -----

// So are the numbers of a range of floats, which has as many elements as rows are selected.

// CHECK-LABEL: func.func @forward(
// CHECK:         %{{.*}}, %[[VALID:.*]] = nn.select_rows
// CHECK:         %[[MASKED:.*]] = nn.select %[[VALID]], %{{.*}} : tensor<6xi1>, tensor<6xf32>
// CHECK:         nn.reduce_sum %[[MASKED]]
func.func @model(%x: tensor<6xf32> {onnx.input = "x"}, %m: tensor<6xi1> {onnx.input = "m"}) -> (!onnx.value {onnx.output = "loss"}) {
  %zero = onnx.constant dense<0.0> : tensor<f32>
  %one = onnx.constant dense<1.0> : tensor<f32>
  %rows = onnx.node "Compress"(%x, %m) {attrs = {axis = 0 : i64}, domain = "", outputs = ["rows"], version = 20 : i64} : (tensor<6xf32>, tensor<6xi1>) -> !onnx.value
  %count = onnx.node "Size"(%rows) {attrs = {}, domain = "", outputs = ["count"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %number = onnx.node "Cast"(%count) {attrs = {to = 1 : i64}, domain = "", outputs = ["number"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %range = onnx.node "Range"(%zero, %number, %one) {attrs = {}, domain = "", outputs = ["range"], version = 20 : i64} : (tensor<f32>, !onnx.value, tensor<f32>) -> !onnx.value
  %loss = onnx.node "ReduceSum"(%range) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["loss"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  return %loss : !onnx.value
}

// -----

// And what has only the shape of such rows.

// CHECK-LABEL: func.func @forward(
// CHECK:         %{{.*}}, %[[VALID:.*]] = nn.select_rows
// CHECK:         %[[WHERE:.*]] = nn.broadcast %[[VALID]] dims = [0] : tensor<6xi1> -> tensor<6x4xi1>
// CHECK:         %[[MASKED:.*]] = nn.select %[[WHERE]]
// CHECK:         nn.reduce_sum %[[MASKED]]
func.func @model(%x: tensor<6x4xf32> {onnx.input = "x"}, %m: tensor<6xi1> {onnx.input = "m"}) -> (!onnx.value {onnx.output = "loss"}) {
  %rows = onnx.node "Compress"(%x, %m) {attrs = {axis = 0 : i64}, domain = "", outputs = ["rows"], version = 20 : i64} : (tensor<6x4xf32>, tensor<6xi1>) -> !onnx.value
  %eye = onnx.node "EyeLike"(%rows) {attrs = {}, domain = "", outputs = ["eye"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum"(%eye) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["loss"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  return %loss : !onnx.value
}

// -----

// `x[m] = token` as PyTorch's old exporter writes it: one row, cut to the number of elements that are selected, is assigned to all.

// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[TOKEN:[a-z0-9]+]]: tensor<4xf32> {onnx.input = "token"
// CHECK:         %[[ROWS:.*]], %[[VALID:.*]] = nn.select_rows
// CHECK:         nn.broadcast %[[TOKEN]] dims = [1] : tensor<4xf32> -> tensor<6x4xf32>
// CHECK-NOT:     nn.gather
// CHECK:         nn.scatter set
func.func @model(%x: tensor<6x4xf32> {onnx.input = "x"}, %token: tensor<4xf32> {onnx.input = "token"}, %m: tensor<6xi1> {onnx.input = "m"}) -> (!onnx.value {onnx.output = "loss"}) {
  %last = onnx.constant dense<1> : tensor<1xi64>
  %first = onnx.constant dense<0> : tensor<1xi64>
  %column = onnx.node "Unsqueeze"(%m, %last) {attrs = {}, domain = "", outputs = ["column"], version = 20 : i64} : (tensor<6xi1>, tensor<1xi64>) -> !onnx.value
  %shape = onnx.node "Shape"(%x) {attrs = {}, domain = "", outputs = ["shape"], version = 20 : i64} : (tensor<6x4xf32>) -> !onnx.value
  %mask = onnx.node "Expand"(%column, %shape) {attrs = {}, domain = "", outputs = ["mask"], version = 20 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
  %found = onnx.node "NonZero"(%mask) {attrs = {}, domain = "", outputs = ["found"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %places = onnx.node "Transpose"(%found) {attrs = {perm = array<i64: 1, 0>}, domain = "", outputs = ["places"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %extents = onnx.node "Shape"(%places) {attrs = {}, domain = "", outputs = ["extents"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %count = onnx.node "Gather"(%extents, %first) {attrs = {axis = 0 : i64}, domain = "", outputs = ["count"], version = 20 : i64} : (!onnx.value, tensor<1xi64>) -> !onnx.value
  %cut = onnx.node "Slice"(%token, %first, %count, %first) {attrs = {}, domain = "", outputs = ["cut"], version = 20 : i64} : (tensor<4xf32>, tensor<1xi64>, !onnx.value, tensor<1xi64>) -> !onnx.value
  %y = onnx.node "ScatterND"(%x, %places, %cut) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<6x4xf32>, !onnx.value, !onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum"(%y) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["loss"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  return %loss : !onnx.value
}

// -----

// Of anything else there has to be an element for each: those that are missing are outside, which reads NaN.

// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[VALUES:[a-z0-9]+]]: tensor<8xf32> {onnx.input = "values"
// CHECK:         %[[AT:.*]] = nn.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, {{.*}}, 23]> : tensor<24xi64>
// CHECK:         %[[HERE:.*]] = nn.compare lt %[[AT]]
// CHECK:         %[[LAST:.*]] = nn.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 7, 7, {{.*}}, 7]> : tensor<24xi64>
// CHECK:         %[[INDEX:.*]] = nn.select %[[HERE]], %[[AT]], %[[LAST]]
// CHECK:         nn.gather %[[VALUES]][%[[INDEX]]] axis = 0 : (tensor<8xf32>, tensor<24xi64>) -> tensor<24xf32>
func.func @model(%x: tensor<6x4xf32> {onnx.input = "x"}, %values: tensor<8xf32> {onnx.input = "values"}, %m: tensor<6xi1> {onnx.input = "m"}) -> (!onnx.value {onnx.output = "loss"}) {
  %last = onnx.constant dense<1> : tensor<1xi64>
  %first = onnx.constant dense<0> : tensor<1xi64>
  %column = onnx.node "Unsqueeze"(%m, %last) {attrs = {}, domain = "", outputs = ["column"], version = 20 : i64} : (tensor<6xi1>, tensor<1xi64>) -> !onnx.value
  %shape = onnx.node "Shape"(%x) {attrs = {}, domain = "", outputs = ["shape"], version = 20 : i64} : (tensor<6x4xf32>) -> !onnx.value
  %mask = onnx.node "Expand"(%column, %shape) {attrs = {}, domain = "", outputs = ["mask"], version = 20 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
  %found = onnx.node "NonZero"(%mask) {attrs = {}, domain = "", outputs = ["found"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %places = onnx.node "Transpose"(%found) {attrs = {perm = array<i64: 1, 0>}, domain = "", outputs = ["places"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %extents = onnx.node "Shape"(%places) {attrs = {}, domain = "", outputs = ["extents"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %count = onnx.node "Gather"(%extents, %first) {attrs = {axis = 0 : i64}, domain = "", outputs = ["count"], version = 20 : i64} : (!onnx.value, tensor<1xi64>) -> !onnx.value
  %cut = onnx.node "Slice"(%values, %first, %count, %first) {attrs = {}, domain = "", outputs = ["cut"], version = 20 : i64} : (tensor<8xf32>, tensor<1xi64>, !onnx.value, tensor<1xi64>) -> !onnx.value
  %y = onnx.node "ScatterND"(%x, %places, %cut) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<6x4xf32>, !onnx.value, !onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum"(%y) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["loss"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  return %loss : !onnx.value
}
