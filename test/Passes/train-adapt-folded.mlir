// A filter that is read where another module is may hold a batch norm, which scales PEFT's pair.
// RUN: lowtide-opt %s --train-adapt="lora='net.*:r=1'" -o /dev/null 2>&1 | FileCheck %s --check-prefix=WARN
// RUN: lowtide-opt %s --train-adapt="lora='net.plain,net.called:r=1'" -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty
// WARN: warning: lora: filters are read where other modules are: {{.*}}: net.conv (as net.norm){{$}}
// WARN-NEXT: note: export with optimize=False
// NONE-NOT: warning

func.func @forward(%image: tensor<2x3x4x4xf32> {train.binding = #train.batch<"image">},
    %conv: tensor<5x3x2x2xf32> {train.binding = #train.constant<"net.conv.weight">},
    %plain: tensor<5x5x1x1xf32> {train.binding = #train.constant<"net.plain.weight">},
    %called: tensor<5x5x1x1xf32> {train.binding = #train.constant<"net.called.weight">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %0 = nn.conv %image, %conv strides = [2, 2] pads = [0, 1], [1, 0] dilations = [1, 1] groups = 1 : (tensor<2x3x4x4xf32>, tensor<5x3x2x2xf32>) -> tensor<2x5x2x2xf32> loc("net/norm")
  %1 = nn.conv %0, %plain strides = [1, 1] pads = [0, 0], [0, 0] dilations = [1, 1] groups = 1 : (tensor<2x5x2x2xf32>, tensor<5x5x1x1xf32>) -> tensor<2x5x2x2xf32> loc("net/plain/Conv")
  // A program that calls the function itself is in the module around.
  %2 = nn.conv %1, %called strides = [1, 1] pads = [0, 0], [0, 0] dilations = [1, 1] groups = 1 : (tensor<2x5x2x2xf32>, tensor<5x5x1x1xf32>) -> tensor<2x5x2x2xf32> loc("net")
  %loss = nn.reduce_sum %2 dims = [0, 1, 2, 3] : tensor<2x5x2x2xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
