func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nn.relu %x : tensor<4xf32> loc(#loc1)
  %z = nn.exp %y : tensor<4xf32>
  return %z : tensor<4xf32>
}
#loc1 = loc("layer")
