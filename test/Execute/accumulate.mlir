// RUN: lowtide-execute %s
// Sums over rounds, rows of all rounds one after another, a value from outside, a state that follows the rounds.

func.func @sums(%x: tensor<6x2xf32> {test.value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [9.0, 10.0], [11.0, 12.0]]> : tensor<6x2xf32>},
    %w: tensor<2xf32> {test.value = dense<[1.0, -1.0]> : tensor<2xf32>},
    %s: tensor<f32> {test.value = dense<100.0> : tensor<f32>})
    -> (tensor<2xf32> {test.value = dense<[36.0, 42.0]> : tensor<2xf32>},
        tensor<f32> {test.value = dense<21.0> : tensor<f32>},
        tensor<6x2xf32> {test.value = dense<[[1.0, -2.0], [3.0, -4.0], [5.0, -6.0], [7.0, -8.0], [9.0, -10.0], [11.0, -12.0]]> : tensor<6x2xf32>}) {
  %zero = nn.constant dense<0.0> : tensor<2xf32>
  %sum, %state, %rows = train.accumulate 3 slices(%part = %x) carries(%so_far = %zero, %st = %s)
      : (tensor<6x2xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<f32>, tensor<6x2xf32>) {
    %term = nn.reduce_sum %part dims = [0] : tensor<2x2xf32> -> tensor<2xf32>
    %more = nn.add %so_far, %term : tensor<2xf32>
    // Half of the state, half of the round's largest element.
    %top = nn.reduce_max %part dims = [0, 1] : tensor<2x2xf32> -> tensor<f32>
    %both = nn.add %st, %top : tensor<f32>
    %half = nn.constant dense<0.5> : tensor<f32>
    %mean = nn.mul %both, %half : tensor<f32>
    %ws = nn.broadcast %w dims = [1] : tensor<2xf32> -> tensor<2x2xf32>
    %y = nn.mul %part, %ws : tensor<2x2xf32>
    train.next carries(%more, %mean : tensor<2xf32>, tensor<f32>) rows(%y : tensor<2x2xf32>)
  }
  return %sum, %state, %rows : tensor<2xf32>, tensor<f32>, tensor<6x2xf32>
}
