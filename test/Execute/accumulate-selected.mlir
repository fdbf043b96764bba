// RUN: lowtide-execute %s
// RUN: lowtide-opt %s --train-accumulate=micro-batches=2 | lowtide-execute
// RUN: lowtide-opt %s --train-accumulate=micro-batches=4 | lowtide-execute
// Tokens that data select, and some of these that data select again, in the whole batch and in parts, of which some have none:
// the mean over them, what there is for their sample and for their place in it, and where they are written back. PyTorch's values:
//   b, p = torch.nonzero(m, as_tuple=True); taken = x[m] @ w; nested = taken[taken[:, 0] > 0]; y = x.index_put((b, p), taken)
//   taken.sum() / m.sum() + (f[b] * t[p] * taken[:, 1]).sum() + nested[:, 1].pow(2).mean()
func.func @step(%x: tensor<4x2x3xf32> {train.binding = #train.batch<"x">, test.value = dense<[[[2.0, 2.0, -1.25], [-1.0, -1.0, -0.75]], [[-1.0, 1.25, 1.25], [1.75, -1.75, 0.5]], [[-1.5, -1.25, -1.75], [0.0, 1.0, -1.0]], [[-1.25, 1.0, 1.25], [0.25, -1.0, 1.5]]]> : tensor<4x2x3xf32>},
    %m: tensor<4x2xi1> {train.binding = #train.batch<"m">, test.value = dense<[[false, true], [true, true], [false, false], [false, true]]> : tensor<4x2xi1>},
    %f: tensor<4xf32> {train.binding = #train.batch<"f">, test.value = dense<[2.0, -2.0, 1.5, 1.25]> : tensor<4xf32>},
    %t: tensor<2xf32> {train.binding = #train.param<"t">, test.value = dense<[1.5, -0.5]> : tensor<2xf32>},
    %w: tensor<3x3xf32> {train.binding = #train.param<"w">, test.value = dense<[[0.5, -0.25, 0.0], [2.0, -0.25, 1.5], [1.0, 1.75, -1.5]]> : tensor<3x3xf32>})
    -> (tensor<f32> {train.binding = #train.metric<"loss">, test.value = dense<-3.1796875> : tensor<f32>},
        tensor<4x2x3xf32> {train.binding = #train.output<"y">, test.value = dense<[[[2.0, 2.0, -1.25], [-3.25, -0.8125, -0.375]], [[3.25, 2.125, 0.0], [-2.125, 0.875, -3.375]], [[-1.5, -1.25, -1.75], [0.0, 1.0, -1.0]], [[-1.25, 1.0, 1.25], [-0.375, 2.8125, -3.75]]]> : tensor<4x2x3xf32>}) {
  %c = nn.reshape %m : tensor<4x2xi1> -> tensor<8xi1>
  %rows, %valid = nn.select_rows %c : (tensor<8xi1>) -> (tensor<8xi64>, tensor<8xi1>)
  %xs = nn.reshape %x : tensor<4x2x3xf32> -> tensor<8x3xf32>
  %gathered = nn.gather %xs[%rows] axis = 0 : (tensor<8x3xf32>, tensor<8xi64>) -> tensor<8x3xf32>
  %taken = nn.dot %gathered, %w : (tensor<8x3xf32>, tensor<3x3xf32>) -> tensor<8x3xf32>

  // The mean over the tokens.
  %zeros = nn.constant dense<0.0> : tensor<8x3xf32>
  %there = nn.broadcast %valid dims = [0] : tensor<8xi1> -> tensor<8x3xi1>
  %masked = nn.select %there, %taken, %zeros : tensor<8x3xi1>, tensor<8x3xf32>
  %sum = nn.reduce_sum %masked dims = [0, 1] : tensor<8x3xf32> -> tensor<f32>
  %ones = nn.cast %c : tensor<8xi1> -> tensor<8xf32>
  %count = nn.reduce_sum %ones dims = [0] : tensor<8xf32> -> tensor<f32>
  %mean = nn.div %sum, %count : tensor<f32>

  // Which sample, and which place.
  %two = nn.constant dense<2> : tensor<8xi64>
  %sample = nn.div %rows, %two : tensor<8xi64>
  %place = nn.rem %rows, %two : tensor<8xi64>
  %a = nn.gather %f[%sample] axis = 0 : (tensor<4xf32>, tensor<8xi64>) -> tensor<8xf32>
  %b = nn.gather %t[%place] axis = 0 : (tensor<2xf32>, tensor<8xi64>) -> tensor<8xf32>
  %column = nn.slice %taken starts = [0, 1] strides = [1, 1] : tensor<8x3xf32> -> tensor<8x1xf32>
  %second = nn.reshape %column : tensor<8x1xf32> -> tensor<8xf32>
  %ab = nn.mul %a, %b : tensor<8xf32>
  %abc = nn.mul %ab, %second : tensor<8xf32>
  %none = nn.constant dense<0.0> : tensor<8xf32>
  %shown = nn.select %valid, %abc, %none : tensor<8xi1>, tensor<8xf32>
  %weighted = nn.reduce_sum %shown dims = [0] : tensor<8xf32> -> tensor<f32>

  // Among those that are selected.
  %start = nn.slice %taken starts = [0, 0] strides = [1, 1] : tensor<8x3xf32> -> tensor<8x1xf32>
  %first = nn.reshape %start : tensor<8x1xf32> -> tensor<8xf32>
  %above = nn.compare gt %first, %none : tensor<8xf32> -> tensor<8xi1>
  %again = nn.and %above, %valid : tensor<8xi1>
  %nested, %present = nn.select_rows %again : (tensor<8xi1>) -> (tensor<8xi64>, tensor<8xi1>)
  %deep = nn.gather %second[%nested] axis = 0 : (tensor<8xf32>, tensor<8xi64>) -> tensor<8xf32>
  %squares = nn.mul %deep, %deep : tensor<8xf32>
  %kept = nn.select %present, %squares, %none : tensor<8xi1>, tensor<8xf32>
  %total = nn.reduce_sum %kept dims = [0] : tensor<8xf32> -> tensor<f32>
  %more = nn.cast %again : tensor<8xi1> -> tensor<8xf32>
  %number = nn.reduce_sum %more dims = [0] : tensor<8xf32> -> tensor<f32>
  %average = nn.div %total, %number : tensor<f32>

  // Back to their places: those that are not there go to none.
  %outside = nn.constant dense<8> : tensor<8xi64>
  %places = nn.select %valid, %rows, %outside : tensor<8xi1>, tensor<8xi64>
  %written = nn.scatter set %masked into %xs[%places] axis = 0 : (tensor<8x3xf32>, tensor<8xi64>, tensor<8x3xf32>) -> tensor<8x3xf32>
  %y = nn.reshape %written : tensor<8x3xf32> -> tensor<4x2x3xf32>
  %partly = nn.add %mean, %weighted : tensor<f32>
  %loss = nn.add %partly, %average : tensor<f32>
  return %loss, %y : tensor<f32>, tensor<4x2x3xf32>
}
