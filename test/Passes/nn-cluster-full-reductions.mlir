// Whether all is finite and the sum of squares of what it is divided by: a GPU reads a large gradient once for both, and the
// update divides for itself. A CPU shares a whole sum by rows, which are written.
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --nn-cluster | FileCheck %s
// RUN: lowtide-opt %s --nn-cluster | FileCheck %s --check-prefix=CPU

// CHECK-LABEL: @check_and_norm
// CHECK: %[[N:.*]]:2 = nn.kernel row ({{.*}} = %arg0{{.*}}) : {{.*}} -> (tensor<i1>, tensor<f32>)
// CHECK-DAG: nn.reduce_all
// CHECK-DAG: nn.reduce_sum
// CHECK: %[[M:.*]]:2 = nn.kernel row ({{.*}} = %arg1{{.*}}) : {{.*}} -> (tensor<i1>, tensor<f32>)

// CPU-LABEL: @check_and_norm
// CPU: nn.kernel loop {{.*}} -> {{.*}}tensor<256x512xi1>
func.func @check_and_norm(%g: tensor<256x512xf32>, %h: tensor<256x512xf32>, %inverse: tensor<f32>)
    -> (tensor<i1>, tensor<f32>, tensor<256x512xf32>, tensor<256x512xf32>) {
  %inf = nn.constant dense<0x7F800000> : tensor<256x512xf32>
  %spread = nn.broadcast %inverse dims = [] : tensor<f32> -> tensor<256x512xf32>
  %ga = nn.abs %g : tensor<256x512xf32>
  %gf = nn.compare lt %ga, %inf : tensor<256x512xf32> -> tensor<256x512xi1>
  %gAll = nn.reduce_all %gf dims = [0, 1] : tensor<256x512xi1> -> tensor<i1>
  %gu = nn.mul %g, %spread : tensor<256x512xf32>
  %ha = nn.abs %h : tensor<256x512xf32>
  %hf = nn.compare lt %ha, %inf : tensor<256x512xf32> -> tensor<256x512xi1>
  %hAll = nn.reduce_all %hf dims = [0, 1] : tensor<256x512xi1> -> tensor<i1>
  %hu = nn.mul %h, %spread : tensor<256x512xf32>
  %finite = nn.and %gAll, %hAll : tensor<i1>
  %gq = nn.mul %gu, %gu : tensor<256x512xf32>
  %gs = nn.reduce_sum %gq dims = [0, 1] : tensor<256x512xf32> -> tensor<f32>
  %hq = nn.mul %hu, %hu : tensor<256x512xf32>
  %hs = nn.reduce_sum %hq dims = [0, 1] : tensor<256x512xf32> -> tensor<f32>
  %norm = nn.add %gs, %hs : tensor<f32>
  %wide = nn.broadcast %norm dims = [] : tensor<f32> -> tensor<256x512xf32>
  %gc = nn.div %gu, %wide : tensor<256x512xf32>
  %hc = nn.div %hu, %wide : tensor<256x512xf32>
  return %finite, %norm, %gc, %hc : tensor<i1>, tensor<f32>, tensor<256x512xf32>, tensor<256x512xf32>
}
