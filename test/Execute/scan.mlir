// RUN: lowtide-execute %s
// A state that goes from step to step, rows of all steps, a tensor that every step reads, from either end.

func.func @forward(%x: tensor<3x2xf32> {test.value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>},
    %h: tensor<2xf32> {test.value = dense<[10.0, 20.0]> : tensor<2xf32>},
    %w: tensor<2xf32> {test.value = dense<[2.0, -1.0]> : tensor<2xf32>})
    -> (tensor<2xf32> {test.value = dense<[95.0, -16.0]> : tensor<2xf32>},
        tensor<3x2xf32> {test.value = dense<[[21.0, -18.0], [45.0, 22.0], [95.0, -16.0]]> : tensor<3x2xf32>}) {
  %last, %rows = nn.scan 3 slices(%part = %x) carries(%state = %h) reads(%factor = %w)
      : (tensor<3x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<3x2xf32>) {
    %step = nn.reshape %part : tensor<1x2xf32> -> tensor<2xf32>
    %scaled = nn.mul %state, %factor : tensor<2xf32>
    %next = nn.add %scaled, %step : tensor<2xf32>
    %row = nn.reshape %next : tensor<2xf32> -> tensor<1x2xf32>
    nn.next carries(%next : tensor<2xf32>) rows(%row : tensor<1x2xf32>)
  }
  return %last, %rows : tensor<2xf32>, tensor<3x2xf32>
}

// The last part comes first, and its row stays where it is; a round may see several rows of a slice.
func.func @backward(%x: tensor<6xf32> {test.value = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>})
    -> (tensor<2xf32> {test.value = dense<[27.0, 34.0]> : tensor<2xf32>},
        tensor<6xf32> {test.value = dense<[27.0, 34.0, 13.0, 16.0, 5.0, 6.0]> : tensor<6xf32>}) {
  %zero = nn.constant dense<0.0> : tensor<2xf32>
  %last, %rows = nn.scan 3 reversed slices(%part = %x) carries(%state = %zero)
      : (tensor<6xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<6xf32>) {
    %twice = nn.add %state, %state : tensor<2xf32>
    %next = nn.add %twice, %part : tensor<2xf32>
    nn.next carries(%next : tensor<2xf32>) rows(%next : tensor<2xf32>)
  }
  return %last, %rows : tensor<2xf32>, tensor<6xf32>
}

// Two states that change places.
func.func @exchange(%x: tensor<3xf32> {test.value = dense<[1.0, 10.0, 100.0]> : tensor<3xf32>},
    %a: tensor<f32> {test.value = dense<3.0> : tensor<f32>}, %b: tensor<f32> {test.value = dense<5.0> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<5.0> : tensor<f32>}, tensor<f32> {test.value = dense<3.0> : tensor<f32>},
        tensor<3xf32> {test.value = dense<[3.0, 50.0, 300.0]> : tensor<3xf32>}) {
  %p, %q, %rows = nn.scan 3 slices(%part = %x) carries(%s = %a, %t = %b)
      : (tensor<3xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<3xf32>) {
    %one = nn.reshape %s : tensor<f32> -> tensor<1xf32>
    %y = nn.mul %part, %one : tensor<1xf32>
    nn.next carries(%t, %s : tensor<f32>, tensor<f32>) rows(%y : tensor<1xf32>)
  }
  return %p, %q, %rows : tensor<f32>, tensor<f32>, tensor<3xf32>
}
