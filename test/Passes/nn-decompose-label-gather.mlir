// A loss picks the logit of each row's label, its gradient compares all columns with it: for a GPU the row that compares picks
// too. Where nothing compares, or other places are picked, the elements are gathered.
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --nn-decompose | FileCheck %s
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --nn-decompose=pick-labels=false | FileCheck %s --check-prefix=CPU
// RUN: lowtide-opt %s --train-set-target=target=cpu:x86-64-v3 --nn-decompose | FileCheck %s --check-prefix=CPU

// CHECK-LABEL: @loss
// CHECK-NOT: nn.gather_elements
// CHECK: %[[P:.*]] = nn.select %{{.*}}, %arg0, %{{.*}} : tensor<8x64xi1>, tensor<8x64xbf16>
// CHECK: %[[SUM:.*]] = nn.reduce_sum %[[P]] dims = [1] : tensor<8x64xbf16> -> tensor<8xbf16>
// A label out of range is in no column: NaN, as gathered.
// CHECK-DAG: nn.compare ge %arg1, %{{.*}} : tensor<8xi64>
// CHECK-DAG: nn.compare lt %arg1, %{{.*}} : tensor<8xi64>
// CHECK: nn.select %{{.*}}, %[[SUM]], %{{.*}} : tensor<8xi1>, tensor<8xbf16>
// CHECK: return
// CPU-LABEL: @loss
// CPU: nn.gather_elements
func.func @loss(%logits: tensor<8x64xbf16>, %labels: tensor<8xi64>) -> (tensor<8x1xbf16>, tensor<8x64xi1>) {
  %places = nn.reshape %labels : tensor<8xi64> -> tensor<8x1xi64>
  %picked = nn.gather_elements %logits[%places] axis = 1 : (tensor<8x64xbf16>, tensor<8x1xi64>) -> tensor<8x1xbf16>
  %spread = nn.broadcast %labels dims = [0] : tensor<8xi64> -> tensor<8x64xi64>
  %columns = nn.iota dim = 1 : tensor<8x64xi64>
  %isLabel = nn.compare eq %columns, %spread : tensor<8x64xi64> -> tensor<8x64xi1>
  return %picked, %isLabel : tensor<8x1xbf16>, tensor<8x64xi1>
}

// CHECK-LABEL: @nobody_compares
// CHECK: nn.gather_elements
func.func @nobody_compares(%logits: tensor<8x64xbf16>, %labels: tensor<8xi64>) -> tensor<8x1xbf16> {
  %places = nn.reshape %labels : tensor<8xi64> -> tensor<8x1xi64>
  %picked = nn.gather_elements %logits[%places] axis = 1 : (tensor<8x64xbf16>, tensor<8x1xi64>) -> tensor<8x1xbf16>
  return %picked : tensor<8x1xbf16>
}

// CHECK-LABEL: @other_places
// CHECK: nn.gather_elements
func.func @other_places(%logits: tensor<8x64xbf16>, %labels: tensor<8xi64>, %places: tensor<8x2xi64>) -> (tensor<8x2xbf16>, tensor<8x64xi1>) {
  %picked = nn.gather_elements %logits[%places] axis = 1 : (tensor<8x64xbf16>, tensor<8x2xi64>) -> tensor<8x2xbf16>
  %spread = nn.broadcast %labels dims = [0] : tensor<8xi64> -> tensor<8x64xi64>
  %columns = nn.iota dim = 1 : tensor<8x64xi64>
  %isLabel = nn.compare eq %columns, %spread : tensor<8x64xi64> -> tensor<8x64xi1>
  return %picked, %isLabel : tensor<8x2xbf16>, tensor<8x64xi1>
}
