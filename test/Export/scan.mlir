// A loop over time as an ONNX Loop: parts are gathered by the round's number, from the end where it walks back, and the rows of
// such a loop are turned after it. Every output has a name, read or not.
// RUN: lowtide compile %s --from=train --emit=onnx-model --onnx-stage=train --onnx-rounds=loop -o %t.onnx -q
// RUN: lowtide compile %t.onnx --emit=onnx -o - | FileCheck %s

// CHECK: %[[LOOP:.*]]:2 = onnx.node "Loop"({{.*}}) {{.*}}outputs = ["{{[^"]+}}", "{{[^"]+}}"]
// CHECK: %[[FROM_END:.*]] = onnx.node "Sub"(%{{.*}}, %[[NUMBER:.*]])
// CHECK: onnx.node "Gather"(%{{.*}}, %[[FROM_END]])
// CHECK: onnx.node "Slice"(%[[LOOP]]#1
module attributes {train.schedule = {kind = "constant", lr = 1.000000e-01 : f64, min_lr = 0.000000e+00 : f64, total_steps = 0 : i64, warmup_steps = 0 : i64}} {
  func.func @train(%x: tensor<4x3xf32> {train.binding = #train.batch<"x">}, %h: tensor<3xf32> {train.binding = #train.param<"h">})
      -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<4x3xf32> {train.binding = #train.output<"y">}) {
    %last, %rows = nn.scan 4 reversed slices(%part = %x) carries(%state = %h)
        : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
      %step = nn.reshape %part : tensor<1x3xf32> -> tensor<3xf32>
      %next = nn.add %state, %step : tensor<3xf32>
      %row = nn.reshape %next : tensor<3xf32> -> tensor<1x3xf32>
      nn.next carries(%next : tensor<3xf32>) rows(%row : tensor<1x3xf32>)
    }
    %loss = nn.reduce_sum %rows dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
    return %loss, %rows : tensor<f32>, tensor<4x3xf32>
  }
}
