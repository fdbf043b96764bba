// RUN: lowtide-execute %s
// As torch.amp.GradScaler.update; whole runs beside it: test/EndToEnd/scaling.py.

// Grows at the third finite step; a step that is not finite halves the scale and starts to count again.
func.func @update_scale(%scale: tensor<f32> {test.value = dense<1024.0> : tensor<f32>},
    %tracker: tensor<i32> {test.value = dense<1> : tensor<i32>},
    %skipped: tensor<i64> {test.value = dense<5> : tensor<i64>},
    %yes: tensor<i1> {test.value = dense<true> : tensor<i1>},
    %no: tensor<i1> {test.value = dense<false> : tensor<i1>})
    -> (tensor<f32> {test.value = dense<1024.0> : tensor<f32>}, tensor<i32> {test.value = dense<2> : tensor<i32>},
        tensor<i64> {test.value = dense<5> : tensor<i64>},
        tensor<f32> {test.value = dense<2048.0> : tensor<f32>}, tensor<i32> {test.value = dense<0> : tensor<i32>},
        tensor<i64> {test.value = dense<5> : tensor<i64>},
        tensor<f32> {test.value = dense<1024.0> : tensor<f32>}, tensor<i32> {test.value = dense<0> : tensor<i32>},
        tensor<i64> {test.value = dense<6> : tensor<i64>}) {
  %s1, %t1, %k1 = train.update_scale %scale tracker %tracker skipped %skipped finite %yes
      {growth = 2.0, backoff = 0.5, interval = 3 : i64}
      : (tensor<f32>, tensor<i32>, tensor<i64>, tensor<i1>) -> (tensor<f32>, tensor<i32>, tensor<i64>)
  %s2, %t2, %k2 = train.update_scale %s1 tracker %t1 skipped %k1 finite %yes
      {growth = 2.0, backoff = 0.5, interval = 3 : i64}
      : (tensor<f32>, tensor<i32>, tensor<i64>, tensor<i1>) -> (tensor<f32>, tensor<i32>, tensor<i64>)
  %s3, %t3, %k3 = train.update_scale %s2 tracker %t2 skipped %k2 finite %no
      {growth = 2.0, backoff = 0.5, interval = 3 : i64}
      : (tensor<f32>, tensor<i32>, tensor<i64>, tensor<i1>) -> (tensor<f32>, tensor<i32>, tensor<i64>)
  return %s1, %t1, %k1, %s2, %t2, %k2, %s3, %t3, %k3
      : tensor<f32>, tensor<i32>, tensor<i64>, tensor<f32>, tensor<i32>, tensor<i64>, tensor<f32>, tensor<i32>, tensor<i64>
}
