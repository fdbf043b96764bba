// RUN: lowtide-execute %s
// RUN: lowtide-opt %s --train-accumulate=micro-batches=2 | lowtide-execute
// RUN: lowtide-opt %s --train-accumulate=micro-batches=4 | lowtide-execute
// Rows of each sample read by number from one table of all of them, in the whole batch and in parts: x has samples first, u has
// steps first. PyTorch's values:
//   b = torch.arange(4); h = x @ w; own = h[b, i]; last = u[i, b]; two = h[b[:, None], k]; first = h.reshape(12, 2)[b * 3]
//   (own * last).sum() + (first * two.sum(1)).sum() + two.pow(2).sum()
func.func @step(%x: tensor<4x3x2xf32> {train.binding = #train.batch<"x">, test.value = dense<[[[2.0, 2.0], [-1.25, -1.0], [-1.0, -0.75]], [[-1.0, 1.25], [1.25, 1.75], [-1.75, 0.5]], [[-1.5, -1.25], [-1.75, 0.0], [1.0, -1.0]], [[-1.25, 1.0], [1.25, 0.25], [-1.0, 1.5]]]> : tensor<4x3x2xf32>},
    %u: tensor<3x4x2xf32> {train.binding = #train.batch<"u", dim = 1>, test.value = dense<[[[0.5, -0.25], [0.0, 2.0], [-0.25, 1.5], [1.0, 1.75]], [[-1.5, 1.5], [1.5, 2.0], [-2.0, 1.5], [1.25, 0.5]], [[1.0, -2.0], [-0.75, -1.75], [-1.0, 1.0], [0.25, -1.25]]]> : tensor<3x4x2xf32>},
    %i: tensor<4xi64> {train.binding = #train.batch<"i">, test.value = dense<[2, 0, 1, 2]> : tensor<4xi64>},
    %k: tensor<4x2xi64> {train.binding = #train.batch<"k">, test.value = dense<[[2, 0], [0, 1], [1, 2], [2, 0]]> : tensor<4x2xi64>},
    %w: tensor<2x2xf32> {train.binding = #train.param<"w">, test.value = dense<[[-0.5, -0.75], [-0.25, 1.5]]> : tensor<2x2xf32>})
    -> (tensor<f32> {train.binding = #train.metric<"loss">, test.value = dense<70.78515625> : tensor<f32>},
        tensor<2x2xf32> {train.binding = #train.gradient<"w">, test.value = dense<[[-18.3125, -27.0625], [-13.46875, 70.375]]> : tensor<2x2xf32>},
        tensor<3x4x2xf32> {train.binding = #train.output<"du">, test.value = dense<[[[0.0, 0.0], [0.1875, 2.625], [0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.875, 1.3125], [0.0, 0.0]], [[0.6875, -0.375], [0.0, 0.0], [0.0, 0.0], [0.125, 3.0]]]> : tensor<3x4x2xf32>}) {
  %rows = nn.reshape %x : tensor<4x3x2xf32> -> tensor<12x2xf32>
  %h = nn.dot %rows, %w : (tensor<12x2xf32>, tensor<2x2xf32>) -> tensor<12x2xf32>
  %b = nn.iota dim = 0 : tensor<4xi64>
  %three = nn.constant dense<3> : tensor<4xi64>
  %four = nn.constant dense<4> : tensor<4xi64>

  %base = nn.mul %b, %three : tensor<4xi64>
  %ownAt = nn.add %base, %i : tensor<4xi64>
  %own = nn.gather %h[%ownAt] axis = 0 : (tensor<12x2xf32>, tensor<4xi64>) -> tensor<4x2xf32>

  // Every step has a row of each sample.
  %steps = nn.reshape %u : tensor<3x4x2xf32> -> tensor<12x2xf32>
  %step = nn.mul %i, %four : tensor<4xi64>
  %lastAt = nn.add %step, %b : tensor<4xi64>
  %last = nn.gather %steps[%lastAt] axis = 0 : (tensor<12x2xf32>, tensor<4xi64>) -> tensor<4x2xf32>

  %bases = nn.constant dense<[[0, 0], [3, 3], [6, 6], [9, 9]]> : tensor<4x2xi64>
  %twoAt = nn.add %k, %bases : tensor<4x2xi64>
  %two = nn.gather %h[%twoAt] axis = 0 : (tensor<12x2xf32>, tensor<4x2xi64>) -> tensor<4x2x2xf32>

  %first = nn.slice %h starts = [0, 0] strides = [3, 1] : tensor<12x2xf32> -> tensor<4x2xf32>

  %p = nn.mul %own, %last : tensor<4x2xf32>
  %a = nn.reduce_sum %p dims = [0, 1] : tensor<4x2xf32> -> tensor<f32>
  %both = nn.reduce_sum %two dims = [1] : tensor<4x2x2xf32> -> tensor<4x2xf32>
  %q = nn.mul %first, %both : tensor<4x2xf32>
  %c = nn.reduce_sum %q dims = [0, 1] : tensor<4x2xf32> -> tensor<f32>
  %squares = nn.mul %two, %two : tensor<4x2x2xf32>
  %d = nn.reduce_sum %squares dims = [0, 1, 2] : tensor<4x2x2xf32> -> tensor<f32>
  %ac = nn.add %a, %c : tensor<f32>
  %loss = nn.add %ac, %d : tensor<f32>

  // Back to the rows that were read.
  %dOwn = nn.scatter_add[%ownAt] %last axis = 0 : (tensor<4xi64>, tensor<4x2xf32>) -> tensor<12x2xf32>
  %dSteps = nn.scatter_add[%lastAt] %own axis = 0 : (tensor<4xi64>, tensor<4x2xf32>) -> tensor<12x2xf32>
  %du = nn.reshape %dSteps : tensor<12x2xf32> -> tensor<3x4x2xf32>
  %twice = nn.add %two, %two : tensor<4x2x2xf32>
  %each = nn.broadcast %first dims = [0, 2] : tensor<4x2xf32> -> tensor<4x2x2xf32>
  %dTwo = nn.add %twice, %each : tensor<4x2x2xf32>
  %dBoth = nn.scatter_add[%twoAt] %dTwo axis = 0 : (tensor<4x2xi64>, tensor<4x2x2xf32>) -> tensor<12x2xf32>
  %dFirst = nn.pad %both low = [0, 0] high = [2, 0] interior = [2, 0] : tensor<4x2xf32> -> tensor<12x2xf32>
  %d1 = nn.add %dOwn, %dBoth : tensor<12x2xf32>
  %dh = nn.add %d1, %dFirst : tensor<12x2xf32>
  %dw = nn.dot %rows, %dh {transpose_a} : (tensor<12x2xf32>, tensor<12x2xf32>) -> tensor<2x2xf32>
  return %loss, %dw, %du : tensor<f32>, tensor<2x2xf32>, tensor<3x4x2xf32>
}
