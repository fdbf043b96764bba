// Each step by which kernels are formed can be left out by its name.
// RUN: lowtide-opt %s --split-input-file --nn-cluster | FileCheck %s --check-prefix=ALL
// RUN: lowtide-opt %s --split-input-file --nn-cluster=without=clone-cheap-producers | FileCheck %s --check-prefix=CLONE
// RUN: lowtide-opt %s --split-input-file --nn-cluster=without=join-sole-readers,join-earliest-readers | FileCheck %s --check-prefix=READERS
// RUN: lowtide-opt %s --split-input-file --nn-cluster=without=join-sibling-reductions | FileCheck %s --check-prefix=SIBLINGS
// RUN: lowtide-opt %s --split-input-file --train-set-target=target=cuda:sm_90 --nn-cluster | FileCheck %s --check-prefix=GPU
// RUN: lowtide-opt %s --split-input-file --train-set-target=target=cuda:sm_90 --nn-cluster=without=join-scatters | FileCheck %s --check-prefix=SCATTERS
// RUN: lowtide-opt %s --split-input-file --train-set-target=target=cuda:sm_90 --nn-cluster=without=prepare-sums | FileCheck %s --check-prefix=SUMS
// RUN: lowtide-opt %s --split-input-file --nn-cluster=without=recompute-after-loss | FileCheck %s --check-prefix=LOSS
// RUN: not lowtide-opt %s --split-input-file --nn-cluster=without=join-scatters,join-all 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: error: without: there is no step 'join-all'; steps are prepare-sums, clone-cheap-producers, recompute-after-loss, join-scatters, join-sole-readers, join-earliest-readers, join-sibling-reductions

// What is repeated for two readers is repeated by each, or stored for the second.
// ALL-LABEL: @bias
// ALL: nn.kernel loop ({{.*}}) : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
// ALL: nn.kernel loop ({{.*}}) : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
// CLONE-LABEL: @bias
// CLONE: %[[K:.*]]:2 = nn.kernel loop ({{.*}}) : (tensor<8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
// CLONE: nn.kernel loop ({{.*}}) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
// READERS-LABEL: @bias
// READERS-COUNT-4: nn.kernel loop
// READERS-NOT: nn.kernel
// READERS: return
func.func @bias(%x: tensor<8x8xf32>, %b: tensor<8xf32>) -> (tensor<8x8xf32>) {
  %wide = nn.broadcast %b dims = [1] : tensor<8xf32> -> tensor<8x8xf32>
  %s = nn.add %x, %wide : tensor<8x8xf32>
  %d = nn.dot %s, %s : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = nn.mul %d, %wide : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// Two sums of one value.
// ALL-LABEL: @sums
// ALL: nn.kernel column {{.*}} -> (tensor<64xf32>, tensor<64xf32>)
// ALL-NOT: nn.kernel
// ALL: return
// SIBLINGS-LABEL: @sums
// SIBLINGS-COUNT-2: nn.kernel column {{.*}} -> tensor<64xf32>
// SIBLINGS-NOT: nn.kernel
// SIBLINGS: return
func.func @sums(%x: tensor<128x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = nn.reduce_sum %x dims = [0] : tensor<128x64xf32> -> tensor<64xf32>
  %b = nn.reduce_max %x dims = [0] : tensor<128x64xf32> -> tensor<64xf32>
  return %a, %b : tensor<64xf32>, tensor<64xf32>
}

// -----

// A sum that a scatter is a term of.
// GPU-LABEL: @rows
// GPU-COUNT-1: nn.kernel scatter
// GPU-NOT: nn.kernel
// GPU: return
// SCATTERS-LABEL: @rows
// SCATTERS: nn.kernel scatter
// SCATTERS-NEXT: nn.scatter_add
// SCATTERS-NEXT: nn.yield
// SCATTERS: nn.kernel loop
// SCATTERS-NEXT: nn.add
func.func @rows(%i: tensor<70xi64>, %u: tensor<70x300xf32>, %x: tensor<9x300xf32>) -> tensor<9x300xf32> {
  %sum = nn.scatter_add [%i] %u axis = 0 : (tensor<70xi64>, tensor<70x300xf32>) -> tensor<9x300xf32>
  %both = nn.add %x, %sum : tensor<9x300xf32>
  return %both : tensor<9x300xf32>
}

// -----

// An unscaled gradient that its norm and its update read.
// GPU-LABEL: @norm
// GPU: nn.kernel row ({{.*}} = %arg0{{.*}}) : {{.*}} -> tensor<f32>
// SUMS-LABEL: @norm
// SUMS: nn.kernel {{.*}} -> {{.*}}tensor<256x512xf32>
func.func @norm(%g: tensor<256x512xf32>, %inverse: tensor<f32>) -> (tensor<f32>, tensor<256x512xf32>) {
  %spread = nn.broadcast %inverse dims = [] : tensor<f32> -> tensor<256x512xf32>
  %u = nn.mul %g, %spread : tensor<256x512xf32>
  %q = nn.mul %u, %u : tensor<256x512xf32>
  %s = nn.reduce_sum %q dims = [0, 1] : tensor<256x512xf32> -> tensor<f32>
  %wide = nn.broadcast %s dims = [] : tensor<f32> -> tensor<256x512xf32>
  %c = nn.div %u, %wide : tensor<256x512xf32>
  return %s, %c : tensor<f32>, tensor<256x512xf32>
}

// -----

// Which inputs are positive: the backward pass compares the batch once more, or one kernel does both and keeps what it reads.
// ALL-LABEL: @step
// ALL: nn.kernel row ({{.*}}) : {{.*}} -> tensor<64xf32>
// ALL: nn.kernel loop (%{{.*}} = %arg0, {{.*}}) : {{.*}} -> tensor<64x32xf32>
// ALL-NEXT: constant
// ALL-NEXT: nn.compare
// LOSS-LABEL: @step
// LOSS: nn.kernel row ({{.*}}) : {{.*}} -> (tensor<64xf32>, tensor<64x32xf32>)
// LOSS-COUNT-1: nn.compare
// LOSS-NOT: nn.compare
func.func @step(%x: tensor<64x32xf32> {train.binding = #train.batch<"x">}, %w: tensor<32x32xf32> {train.binding = #train.param<"w">})
    -> (tensor<64xf32> {train.binding = #train.metric<"loss">}, tensor<64x32xf32> {train.binding = #train.output<"g">}) {
  %zero = nn.constant dense<0.0> : tensor<64x32xf32>
  %d = nn.dot %x, %w : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  %m = nn.compare gt %x, %zero : tensor<64x32xf32> -> tensor<64x32xi1>
  %s = nn.select %m, %d, %zero : tensor<64x32xi1>, tensor<64x32xf32>
  %loss = nn.reduce_sum %s dims = [1] : tensor<64x32xf32> -> tensor<64xf32>
  %e = nn.dot %d, %w : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  %g = nn.select %m, %e, %zero : tensor<64x32xi1>, tensor<64x32xf32>
  return %loss, %g : tensor<64xf32>, tensor<64x32xf32>
}

// -----

// Which class a label is: the numbers of the classes go along, repeated where they are compared.
// ALL-LABEL: @classes
// ALL: nn.kernel row ({{.*}}) : {{.*}} -> tensor<64xf32> {
// ALL: nn.kernel loop ({{.*}}) : {{.*}} -> tensor<64x32xf32> {
// ALL: nn.compare
// LOSS-LABEL: @classes
// LOSS: nn.kernel row ({{.*}}) : {{.*}} -> (tensor<64xf32>, tensor<64x32xf32>) {
func.func @classes(%labels: tensor<64xi64> {train.binding = #train.batch<"labels">}, %x: tensor<64x32xf32> {train.binding = #train.batch<"x">}, %w: tensor<32x32xf32> {train.binding = #train.param<"w">})
    -> (tensor<64xf32> {train.binding = #train.metric<"loss">}, tensor<64x32xf32> {train.binding = #train.output<"g">}) {
  %numbers = nn.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]> : tensor<32xi64>
  %l = nn.broadcast %labels dims = [0] : tensor<64xi64> -> tensor<64x32xi64>
  %c = nn.broadcast %numbers dims = [1] : tensor<32xi64> -> tensor<64x32xi64>
  %is = nn.compare eq %l, %c : tensor<64x32xi64> -> tensor<64x32xi1>
  %one = nn.cast %is : tensor<64x32xi1> -> tensor<64x32xf32>
  %d = nn.dot %x, %w : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  %s = nn.mul %one, %d : tensor<64x32xf32>
  %loss = nn.reduce_sum %s dims = [1] : tensor<64x32xf32> -> tensor<64xf32>
  %e = nn.dot %d, %w : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  %g = nn.mul %one, %e : tensor<64x32xf32>
  return %loss, %g : tensor<64xf32>, tensor<64x32xf32>
}
