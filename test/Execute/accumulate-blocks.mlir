// RUN: lowtide-execute %s
// RUN: lowtide-opt %s --train-accumulate=micro-batches=2 | lowtide-execute
// RUN: lowtide-opt %s --train-accumulate=micro-batches=4 | lowtide-execute
// Samples in the channels (a filter for each sample, statistics of each sample's channels), two views of the batch in one
// tensor, rows of each sample that are written in place; in the whole batch and in parts. PyTorch's values:
//   z = x.reshape(1, 8, 3); y = conv1d(z, k.reshape(8, 1, 2), groups=8)
//   n = batch_norm(z, None, None, weight=s.repeat(4), training=True, eps=0.25)
//   v = torch.cat([x, 2 - x]); e = v * v * v; pool = zeros(4, 3, 2); pool[:, 1] = x[..., 0]
//   (y * y).sum() + (n * n * n).sum() + (e[:4] * e[4:]).sum() + (pool * x.transpose(1, 2)).sum()
func.func @step(%x: tensor<4x2x3xf32> {train.binding = #train.batch<"x">, test.value = dense<[[[1.25, -1.75, -0.25], [-0.25, 0.5, -1.75]], [[-2.0, 1.0, -1.75], [-0.75, 0.25, 0.25]], [[1.25, 0.75, -0.25], [1.5, -0.5, -1.0]], [[0.25, 1.5, 1.25], [-0.75, 1.25, -1.0]]]> : tensor<4x2x3xf32>},
    %k: tensor<4x2x1x2xf32> {train.binding = #train.batch<"k">, test.value = dense<[[[[0.0, 2.0]], [[-1.5, -0.5]]], [[[1.25, -1.25]], [[-2.0, -0.5]]], [[[1.5, -1.25]], [[1.0, -0.75]]], [[[1.0, 1.25]], [[0.0, -1.0]]]]> : tensor<4x2x1x2xf32>},
    %s: tensor<2xf32> {train.binding = #train.param<"s">, test.value = dense<[1.5, 2.5]> : tensor<2xf32>})
    -> (tensor<f32> {train.binding = #train.metric<"loss">, test.value = dense<-1346.3271> : tensor<f32>},
        tensor<4x2x3xf32> {train.binding = #train.output<"dx">, test.value = dense<[[[0.2118323, 701.12589, -6.1873365], [-26.691932, 16.760105, 723.83808]], [[1144.3591, 16.78562, 700.451], [56.410294, -7.260811, -7.010811]], [[5.261293, -2.1437279, 2.4429818], [9.602603, -4.8743, 117.7092]], [[10.193075, 11.139647, 1.6164964], [34.179307, 7.7274325, 110.44092]]]> : tensor<4x2x3xf32>},
        tensor<4x2x1x2xf32> {train.binding = #train.output<"dk">, test.value = dense<[[[[-7.0, 12.5]], [[0.0625, -0.3125]]], [[[21.875, -19.53125]], [[-2.375, 0.375]]], [[[4.5, 0.6875]], [[5.375, -2.375]]], [[[10.25, 14.03125]], [[4.375, -5.125]]]]> : tensor<4x2x1x2xf32>},
        tensor<2xf32> {train.binding = #train.gradient<"s">, test.value = dense<[3.1030489, 24.710492]> : tensor<2xf32>}) {
  %z = nn.reshape %x : tensor<4x2x3xf32> -> tensor<1x8x3xf32>
  %f = nn.reshape %k : tensor<4x2x1x2xf32> -> tensor<8x1x2xf32>
  %y = nn.conv %z, %f strides = [1] pads = [0], [0] dilations = [1] groups = 8 : (tensor<1x8x3xf32>, tensor<8x1x2xf32>) -> tensor<1x8x2xf32>
  %yy = nn.mul %y, %y : tensor<1x8x2xf32>
  %a = nn.reduce_sum %yy dims = [0, 1, 2] : tensor<1x8x2xf32> -> tensor<f32>

  %each = nn.broadcast %s dims = [1] : tensor<2xf32> -> tensor<4x2xf32>
  %scale = nn.reshape %each : tensor<4x2xf32> -> tensor<8xf32>
  %zeros = nn.constant dense<0.0> : tensor<8xf32>
  %n, %mean, %variance = nn.batch_norm %z, %scale, %zeros epsilon = 2.5e-01 : (tensor<1x8x3xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<1x8x3xf32>, tensor<8xf32>, tensor<8xf32>)
  %squares = nn.mul %n, %n : tensor<1x8x3xf32>
  %nnn = nn.mul %squares, %n : tensor<1x8x3xf32>
  %b = nn.reduce_sum %nnn dims = [0, 1, 2] : tensor<1x8x3xf32> -> tensor<f32>

  %twos = nn.constant dense<2.0> : tensor<4x2x3xf32>
  %other = nn.sub %twos, %x : tensor<4x2x3xf32>
  %v = nn.concat %x, %other dim = 0 : (tensor<4x2x3xf32>, tensor<4x2x3xf32>) -> tensor<8x2x3xf32>
  %vv = nn.mul %v, %v : tensor<8x2x3xf32>
  %e = nn.mul %vv, %v : tensor<8x2x3xf32>
  %first = nn.slice %e starts = [0, 0, 0] strides = [1, 1, 1] : tensor<8x2x3xf32> -> tensor<4x2x3xf32>
  %second = nn.slice %e starts = [4, 0, 0] strides = [1, 1, 1] : tensor<8x2x3xf32> -> tensor<4x2x3xf32>
  %products = nn.mul %first, %second : tensor<4x2x3xf32>
  %c = nn.reduce_sum %products dims = [0, 1, 2] : tensor<4x2x3xf32> -> tensor<f32>

  %buffer = nn.constant dense<0.0> : tensor<12x2xf32>
  %steps = nn.constant dense<[1, 4, 7, 10]> : tensor<4xi64>
  %column = nn.slice %x starts = [0, 0, 0] strides = [1, 1, 1] : tensor<4x2x3xf32> -> tensor<4x2x1xf32>
  %written = nn.reshape %column : tensor<4x2x1xf32> -> tensor<4x2xf32>
  %rows = nn.scatter set %written into %buffer[%steps] axis = 0 : (tensor<12x2xf32>, tensor<4xi64>, tensor<4x2xf32>) -> tensor<12x2xf32>
  %pool = nn.reshape %rows : tensor<12x2xf32> -> tensor<4x3x2xf32>
  %turned = nn.transpose %x [0, 2, 1] : tensor<4x2x3xf32> -> tensor<4x3x2xf32>
  %pooled = nn.mul %pool, %turned : tensor<4x3x2xf32>
  %d = nn.reduce_sum %pooled dims = [0, 1, 2] : tensor<4x3x2xf32> -> tensor<f32>

  %ab = nn.add %a, %b : tensor<f32>
  %cd = nn.add %c, %d : tensor<f32>
  %loss = nn.add %ab, %cd : tensor<f32>

  // Back: the products of filters.
  %dy = nn.add %y, %y : tensor<1x8x2xf32>
  %dzConv = nn.conv_input_grad %dy, %f strides = [1] pads = [0], [0] dilations = [1] groups = 8 : (tensor<1x8x2xf32>, tensor<8x1x2xf32>) -> tensor<1x8x3xf32>
  %df = nn.conv_filter_grad %z, %dy strides = [1] pads = [0], [0] dilations = [1] groups = 8 : (tensor<1x8x3xf32>, tensor<1x8x2xf32>) -> tensor<8x1x2xf32>
  %dk = nn.reshape %df : tensor<8x1x2xf32> -> tensor<4x2x1x2xf32>
  // The normalized channels.
  %threes = nn.constant dense<3.0> : tensor<1x8x3xf32>
  %dn = nn.mul %squares, %threes : tensor<1x8x3xf32>
  %dzNorm, %dScale, %dBias = nn.batch_norm_grad %z, %dn, %scale, %mean, %variance epsilon = 2.5e-01 : (tensor<1x8x3xf32>, tensor<1x8x3xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<1x8x3xf32>, tensor<8xf32>, tensor<8xf32>)
  %dEach = nn.reshape %dScale : tensor<8xf32> -> tensor<4x2xf32>
  %ds = nn.reduce_sum %dEach dims = [0] : tensor<4x2xf32> -> tensor<2xf32>
  %dz = nn.add %dzConv, %dzNorm : tensor<1x8x3xf32>
  %dxOne = nn.reshape %dz : tensor<1x8x3xf32> -> tensor<4x2x3xf32>
  // The views.
  %dFirst = nn.pad %second low = [0, 0, 0] high = [4, 0, 0] interior = [0, 0, 0] : tensor<4x2x3xf32> -> tensor<8x2x3xf32>
  %dSecond = nn.pad %first low = [4, 0, 0] high = [0, 0, 0] interior = [0, 0, 0] : tensor<4x2x3xf32> -> tensor<8x2x3xf32>
  %de = nn.add %dFirst, %dSecond : tensor<8x2x3xf32>
  %threesOfViews = nn.constant dense<3.0> : tensor<8x2x3xf32>
  %slope = nn.mul %vv, %threesOfViews : tensor<8x2x3xf32>
  %dv = nn.mul %de, %slope : tensor<8x2x3xf32>
  %dxView = nn.slice %dv starts = [0, 0, 0] strides = [1, 1, 1] : tensor<8x2x3xf32> -> tensor<4x2x3xf32>
  %dOther = nn.slice %dv starts = [4, 0, 0] strides = [1, 1, 1] : tensor<8x2x3xf32> -> tensor<4x2x3xf32>
  %dxTwo = nn.sub %dxView, %dOther : tensor<4x2x3xf32>
  // The rows that were written, and what they were multiplied by.
  %dRows = nn.reshape %turned : tensor<4x3x2xf32> -> tensor<12x2xf32>
  %dWritten = nn.gather %dRows[%steps] axis = 0 : (tensor<12x2xf32>, tensor<4xi64>) -> tensor<4x2xf32>
  %dColumn = nn.reshape %dWritten : tensor<4x2xf32> -> tensor<4x2x1xf32>
  %dxWritten = nn.pad %dColumn low = [0, 0, 0] high = [0, 0, 2] interior = [0, 0, 0] : tensor<4x2x1xf32> -> tensor<4x2x3xf32>
  %dxTurned = nn.transpose %pool [0, 2, 1] : tensor<4x3x2xf32> -> tensor<4x2x3xf32>
  %dxThree = nn.add %dxWritten, %dxTurned : tensor<4x2x3xf32>
  %dxOneTwo = nn.add %dxOne, %dxTwo : tensor<4x2x3xf32>
  %dx = nn.add %dxOneTwo, %dxThree : tensor<4x2x3xf32>
  return %loss, %dx, %dk, %ds : tensor<f32>, tensor<4x2x3xf32>, tensor<4x2x1x2xf32>, tensor<2xf32>
}
