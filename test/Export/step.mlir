// A step written as an ONNX model and read again: kernels are transparent, splats stay one number, random numbers are
// integer operators, the optimizer is written out, bindings survive. Text of the file: what the importer makes of it.
// RUN: lowtide compile %s --from=train --emit=onnx-model --onnx-stage=train -o %t.onnx -q
// RUN: lowtide compile %t.onnx --emit=onnx -o - | FileCheck %s
// RUN: lowtide compile %t.onnx --emit=train -o - | FileCheck %s --check-prefix=AGAIN

// CHECK: kind = "batch", name = "x"}, onnx.input = "x"}
// CHECK-SAME: kind = "param", name = "w"}, onnx.input = "w"}
// CHECK-SAME: initial = 5.000000e-01 : f64, kind = "state", name = "w.m"}
// CHECK-SAME: kind = "scalar", name = "lr"}
// CHECK-SAME: kind = "metric", name = "loss"}, onnx.output = "loss"}
// CHECK-SAME: kind = "param", name = "w"}, onnx.output = "w.new"}
// CHECK-SAME: onnx.step = {{{.*}}schedule.lr = "0.10000000000000001"
// CHECK: %[[HALF:.*]] = onnx.constant dense<5.000000e-01> : tensor<f32>
// CHECK: onnx.node "BitwiseXor"
// CHECK: onnx.node "BitShift"
// CHECK-NOT: nn.kernel
// CHECK: %[[P:.*]] = onnx.node "Mul"(%arg0, %{{.*}}){{.*}} : (tensor<2x3xf32>, tensor<2x3xf32>)
// CHECK: %[[KEEP:.*]] = onnx.node "Less"(%{{.*}}, %[[HALF]])
// CHECK: %[[Y:.*]] = onnx.node "Where"(%[[KEEP]], %{{.*}}, %{{.*}}){{.*}} : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<f32>)
// CHECK: onnx.node "ReduceSum"(%[[Y]], {{.*}}outputs = ["loss"]
// CHECK: outputs = ["w.m.new"]
// CHECK: onnx.node "Sub"(%arg1, {{.*}}outputs = ["w.new"]

// AGAIN: func.func @train(
// AGAIN-SAME: train.binding = #train.param<"w">
// AGAIN-SAME: train.binding = #train.state<"w.m", initial = 5.000000e-01>
// AGAIN-SAME: train.binding = #train.scalar<"step">
// AGAIN-SAME: -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<3xf32> {train.binding = #train.param<"w">}
module attributes {train.schedule = {kind = "constant", lr = 1.000000e-01 : f64, min_lr = 0.000000e+00 : f64, total_steps = 0 : i64, warmup_steps = 0 : i64}} {
  func.func @train(%x: tensor<2x3xf32> {train.binding = #train.batch<"x">},
                   %w: tensor<3xf32> {train.binding = #train.param<"w">},
                   %m: tensor<3xf32> {train.binding = #train.state<"w.m", initial = 0.5>},
                   %lr: tensor<f32> {train.binding = #train.scalar<"lr">},
                   %seed: tensor<i64> {train.binding = #train.scalar<"seed">},
                   %step: tensor<i64> {train.binding = #train.scalar<"step">},
                   %row: tensor<i64> {train.binding = #train.scalar<"row">})
      -> (tensor<f32> {train.binding = #train.metric<"loss">},
          tensor<3xf32> {train.binding = #train.param<"w">},
          tensor<3xf32> {train.binding = #train.state<"w.m", initial = 0.5>}) {
    %0 = nn.broadcast %w dims = [1] : tensor<3xf32> -> tensor<2x3xf32>
    %1 = nn.random_uniform %seed, %step, %row op = 3 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3xf32>
    %2 = nn.kernel loop (%a = %x, %b = %0, %r = %1) : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32> {
      %half = nn.constant dense<0.5> : tensor<2x3xf32>
      %p = nn.mul %a, %b : tensor<2x3xf32>
      %keep = nn.compare lt %r, %half : tensor<2x3xf32> -> tensor<2x3xi1>
      %s = nn.silu %p : tensor<2x3xf32>
      %zero = nn.constant dense<0.0> : tensor<2x3xf32>
      %y = nn.select %keep, %s, %zero : tensor<2x3xi1>, tensor<2x3xf32>
      nn.yield %y : tensor<2x3xf32>
    }
    %3 = nn.reduce_sum %2 dims = [0, 1] : tensor<2x3xf32> -> tensor<f32>
    %g = nn.reduce_sum %2 dims = [0] : tensor<2x3xf32> -> tensor<3xf32>
    %u:2 = train.momentum %w gradient %g lr %lr step %step state %m {dampening = 0.0 : f64, lr_scale = 1.0 : f64, momentum = 0.9 : f64, nesterov = 0.0 : f64, weight_decay = 0.0 : f64} : tensor<3xf32>, tensor<f32>, tensor<i64>
    return %3, %u#0, %u#1 : tensor<f32>, tensor<3xf32>, tensor<3xf32>
  }
}
