// Unscale, finite check and global norm look at a gradient once: a kernel shares its rows among a CPU's threads for both, a
// GPU adds up the whole of it.
// RUN: lowtide-opt %s --pass-pipeline='builtin.module(func.func(nn-decompose),canonicalize,cse,func.func(nn-cluster))' | FileCheck %s
// RUN: lowtide-opt %s --pass-pipeline='builtin.module(train-set-target{target=cuda:sm_90},func.func(nn-decompose),canonicalize,cse,func.func(nn-cluster))' | FileCheck %s --check-prefix=GPU
// RUN: lowtide-opt %s --pass-pipeline='builtin.module(train-set-target{target=cuda:sm_90},func.func(nn-decompose{merge-reductions=false}),canonicalize,cse,func.func(nn-cluster))' | FileCheck %s --check-prefix=ROWS

// CHECK-LABEL: @step
// CHECK: nn.kernel row ({{.*}} = %arg0, {{.*}}) : {{.*}} -> (tensor<256xi1>, tensor<256x512xf32>, tensor<256xf32>)
// CHECK-DAG: nn.reduce_all {{.*}} dims = [1] {nn.by_rows}
// CHECK-DAG: nn.reduce_sum {{.*}} dims = [1] {nn.by_rows}
// CHECK-NOT: = %arg0
// CHECK: return

// ROWS-LABEL: @step
// ROWS: nn.kernel row ({{.*}} = %arg0, {{.*}}) : {{.*}} -> (tensor<256xi1>, tensor<256x512xf32>, tensor<256xf32>)

// GPU-LABEL: @step
// GPU: nn.kernel row ({{.*}} = %arg0{{.*}}) : {{.*}} -> (tensor<i1>, tensor<f32>)
// GPU-DAG: nn.reduce_all {{.*}} dims = [0, 1]
// GPU-DAG: nn.reduce_sum {{.*}} dims = [0, 1]
// GPU-NOT: nn.by_rows
func.func @step(%grad: tensor<256x512xf32>, %scale: tensor<f32>, %param: tensor<256x512xf32>)
    -> (tensor<i1>, tensor<f32>, tensor<256x512xf32>) {
  %unscaled, %finite = train.unscale %grad by %scale : (tensor<256x512xf32>, tensor<f32>) -> (tensor<256x512xf32>, tensor<i1>)
  %norm = train.global_norm %unscaled : (tensor<256x512xf32>) -> tensor<f32>
  %clipped = train.clip_norm %unscaled norm %norm {max_norm = 1.0 : f64} : (tensor<256x512xf32>, tensor<f32>) -> tensor<256x512xf32>
  %updated = nn.sub %param, %clipped : tensor<256x512xf32>
  %new = train.commit %updated or %param if %finite : (tensor<i1>, tensor<256x512xf32>, tensor<256x512xf32>) -> tensor<256x512xf32>
  return %finite, %norm, %new : tensor<i1>, tensor<f32>, tensor<256x512xf32>
}

// One block would add up the totals of 1,536 segments in order: of more than 1,024, where rows are many, sums stay by rows.
// GPU-LABEL: @many_rows
// GPU: nn.kernel row ({{.*}} = %arg0{{.*}}) : {{.*}} -> (tensor<512xi1>, tensor<512xf32>)
// GPU-DAG: nn.reduce_all {{.*}} dims = [1] {nn.by_rows}
// GPU-DAG: nn.reduce_sum {{.*}} dims = [1] {nn.by_rows}
func.func @many_rows(%grad: tensor<512x768xf32>, %scale: tensor<f32>) -> (tensor<i1>, tensor<f32>) {
  %unscaled, %finite = train.unscale %grad by %scale : (tensor<512x768xf32>, tensor<f32>) -> (tensor<512x768xf32>, tensor<i1>)
  %norm = train.global_norm %unscaled : (tensor<512x768xf32>) -> tensor<f32>
  return %finite, %norm : tensor<i1>, tensor<f32>
}

// Few rows share their segments among all blocks as one sum does.
// GPU-LABEL: @few_rows
// GPU-NOT: nn.by_rows
// GPU: return
func.func @few_rows(%grad: tensor<128x4096xf32>, %scale: tensor<f32>) -> (tensor<i1>, tensor<f32>) {
  %unscaled, %finite = train.unscale %grad by %scale : (tensor<128x4096xf32>, tensor<f32>) -> (tensor<128x4096xf32>, tensor<i1>)
  %norm = train.global_norm %unscaled : (tensor<128x4096xf32>) -> tensor<f32>
  return %finite, %norm : tensor<i1>, tensor<f32>
}
