// A GPU's scatter makes its indices on the way and writes the sum that its own is a term of, in place of the other one. What
// others read too stays apart, and a CPU, which adds up in memory, computes neither. Both make updates where they are smaller to
// read than to keep.
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --nn-cluster | FileCheck %s
// RUN: lowtide-opt %s --nn-cluster | FileCheck %s --check-prefix=CPU

// CHECK-LABEL: @tied
// CHECK: nn.kernel scatter (%{{.*}} = %arg0, %{{.*}} = %arg1, %{{.*}} = %arg2) : {{.*}} -> tensor<9x300xf32>
// CHECK-NEXT: constant
// CHECK: nn.compare
// CHECK: nn.select
// CHECK: nn.scatter_add
// CHECK-NEXT: nn.add
// CHECK-NEXT: nn.yield
// CHECK: nn.kernel loop
// CHECK-NEXT: nn.mul
// CHECK-NOT: nn.kernel
// CHECK: return

// CPU-LABEL: @tied
// CPU: nn.kernel loop
// CPU: nn.kernel scatter
// CPU-NEXT: nn.scatter_add
// CPU-NEXT: nn.yield
// CPU: nn.kernel loop
func.func @tied(%i: tensor<70xi64>, %u: tensor<70x300xf32>, %x: tensor<9x300xf32>, %w: tensor<9x300xf32>) -> tensor<9x300xf32> {
  %zero = nn.constant dense<0> : tensor<70xi64>
  %rows = nn.constant dense<9> : tensor<70xi64>
  %back = nn.compare lt %i, %zero : tensor<70xi64> -> tensor<70xi1>
  %moved = nn.add %i, %rows : tensor<70xi64>
  %place = nn.select %back, %moved, %i : tensor<70xi1>, tensor<70xi64>
  %sum = nn.scatter_add [%place] %u axis = 0 : (tensor<70xi64>, tensor<70x300xf32>) -> tensor<9x300xf32>
  %both = nn.add %x, %sum : tensor<9x300xf32>
  %y = nn.mul %both, %w : tensor<9x300xf32>
  return %y : tensor<9x300xf32>
}

// CHECK-LABEL: @read_twice
// CHECK: nn.kernel loop
// CHECK: nn.kernel scatter {{.*}} -> tensor<9x300xf32>
// CHECK-NEXT: nn.scatter_add
// CHECK-NEXT: nn.yield
// CHECK: nn.kernel loop
// CHECK-NEXT: nn.add
func.func @read_twice(%i: tensor<70xi64>, %u: tensor<70x300xf32>, %x: tensor<9x300xf32>)
    -> (tensor<9x300xf32>, tensor<9x300xf32>, tensor<70xi64>) {
  %rows = nn.constant dense<9> : tensor<70xi64>
  %place = nn.add %i, %rows : tensor<70xi64>
  %sum = nn.scatter_add [%place] %u axis = 0 : (tensor<70xi64>, tensor<70x300xf32>) -> tensor<9x300xf32>
  %both = nn.add %x, %sum : tensor<9x300xf32>
  return %sum, %both, %place : tensor<9x300xf32>, tensor<9x300xf32>, tensor<70xi64>
}

// The other way around, rows that are picked for a sum over each: their numbers are made in the same kernel.
// CHECK-LABEL: @gathered_rows
// CHECK: nn.kernel row
// CHECK: nn.select
// CHECK: nn.gather
// CHECK-NOT: nn.kernel
// CHECK: return

// CPU-LABEL: @gathered_rows
// CPU: nn.kernel loop
// CPU: nn.kernel row
func.func @gathered_rows(%i: tensor<4x70xi64>, %t: tensor<9x300xf32>) -> (tensor<4x70xf32>, tensor<4x70x300xf32>) {
  %zero = nn.constant dense<0> : tensor<4x70xi64>
  %rows = nn.constant dense<9> : tensor<4x70xi64>
  %back = nn.compare lt %i, %zero : tensor<4x70xi64> -> tensor<4x70xi1>
  %moved = nn.add %i, %rows : tensor<4x70xi64>
  %place = nn.select %back, %moved, %i : tensor<4x70xi1>, tensor<4x70xi64>
  %x = nn.gather %t[%place] axis = 0 : (tensor<9x300xf32>, tensor<4x70xi64>) -> tensor<4x70x300xf32>
  %s = nn.reduce_sum %x dims = [2] : tensor<4x70x300xf32> -> tensor<4x70xf32>
  return %s, %x : tensor<4x70xf32>, tensor<4x70x300xf32>
}

// Messages along edges: what nodes send, which is made once for each node, weighed by a number for each edge. They are never
// there all at once.
// CHECK-LABEL: @messages
// CHECK: %[[SENT:.*]] = nn.kernel loop
// CHECK-NEXT: nn.tanh
// CHECK: nn.kernel scatter ({{.*}} = %[[SENT]]{{.*}} -> tensor<9x32xf32>
// CHECK: nn.gather
// CHECK: nn.mul
// CHECK-NEXT: nn.scatter_add
// CHECK-NEXT: nn.yield
// CHECK-NOT: nn.kernel
// CHECK: return
// CPU-LABEL: @messages
// CPU: %[[SENT:.*]] = nn.kernel loop
// CPU-NEXT: nn.tanh
// CPU: nn.kernel scatter ({{.*}} = %[[SENT]]{{.*}} -> tensor<9x32xf32>
// CPU: nn.gather
// CPU: nn.mul
// CPU-NEXT: nn.scatter_add
// CPU-NEXT: nn.yield
// CPU-NOT: nn.kernel
// CPU: return
func.func @messages(%from: tensor<70xi64>, %to: tensor<70xi64>, %x: tensor<9x32xf32>, %w: tensor<70xf32>) -> tensor<9x32xf32> {
  %sent = nn.tanh %x : tensor<9x32xf32>
  %rows = nn.gather %sent[%from] axis = 0 : (tensor<9x32xf32>, tensor<70xi64>) -> tensor<70x32xf32>
  %weights = nn.broadcast %w dims = [0] : tensor<70xf32> -> tensor<70x32xf32>
  %weighed = nn.mul %rows, %weights : tensor<70x32xf32>
  %y = nn.scatter_add [%to] %weighed axis = 0 : (tensor<70xi64>, tensor<70x32xf32>) -> tensor<9x32xf32>
  return %y : tensor<9x32xf32>
}

// An operand as large as the updates, which is in memory: they are not.
// CPU-LABEL: @whole_updates
// CPU-NOT: nn.kernel loop
// CPU: nn.kernel scatter
// CPU: nn.mul
// CPU-NEXT: nn.scatter_add
// CPU-NEXT: nn.yield
func.func @whole_updates(%to: tensor<70xi64>, %x: tensor<70x32xf32>, %w: tensor<70xf32>) -> tensor<9x32xf32> {
  %weights = nn.broadcast %w dims = [0] : tensor<70xf32> -> tensor<70x32xf32>
  %weighed = nn.mul %x, %weights : tensor<70x32xf32>
  %y = nn.scatter_add [%to] %weighed axis = 0 : (tensor<70xi64>, tensor<70x32xf32>) -> tensor<9x32xf32>
  return %y : tensor<9x32xf32>
}

// Two of them would be read for one: they are made apart.
// CPU-LABEL: @two_wholes
// CPU: nn.kernel loop
// CPU: nn.mul
// CPU: nn.kernel scatter
// CPU-NEXT: nn.scatter_add
// CPU-NEXT: nn.yield
func.func @two_wholes(%to: tensor<70xi64>, %x: tensor<70x32xf32>, %z: tensor<70x32xf32>) -> tensor<9x32xf32> {
  %weighed = nn.mul %x, %z : tensor<70x32xf32>
  %y = nn.scatter_add [%to] %weighed axis = 0 : (tensor<70xi64>, tensor<70x32xf32>) -> tensor<9x32xf32>
  return %y : tensor<9x32xf32>
}

// One that is made for two scatters: it is there once, instead of twice what they add.
// CPU-LABEL: @shared_updates
// CPU: %[[MADE:.*]] = nn.kernel loop
// CPU-NEXT: nn.tanh
// CPU-NEXT: nn.yield
// CPU: nn.kernel scatter ({{.*}} = %[[MADE]]
// CPU: nn.mul
// CPU-NEXT: nn.scatter_add
// CPU: nn.kernel scatter ({{.*}} = %[[MADE]]
// CPU: nn.mul
// CPU-NEXT: nn.scatter add
// CPU-NOT: nn.kernel
// CPU: return
func.func @shared_updates(%to: tensor<70xi64>, %there: tensor<70xi64>, %x: tensor<70x32xf32>, %w: tensor<70xf32>, %v: tensor<70xf32>) -> tensor<9x32xf32> {
  %made = nn.tanh %x : tensor<70x32xf32>
  %weights = nn.broadcast %w dims = [0] : tensor<70xf32> -> tensor<70x32xf32>
  %weighed = nn.mul %made, %weights : tensor<70x32xf32>
  %others = nn.broadcast %v dims = [0] : tensor<70xf32> -> tensor<70x32xf32>
  %too = nn.mul %made, %others : tensor<70x32xf32>
  %a = nn.scatter_add [%to] %weighed axis = 0 : (tensor<70xi64>, tensor<70x32xf32>) -> tensor<9x32xf32>
  %b = nn.scatter add %too into %a[%there] axis = 0 : (tensor<9x32xf32>, tensor<70xi64>, tensor<70x32xf32>) -> tensor<9x32xf32>
  return %b : tensor<9x32xf32>
}

// What is read at two places is picked by each of its readers, too, though neither reads more than there is.
// CPU-LABEL: @picked_at_two_places
// CPU: nn.kernel loop
// CPU-NEXT: nn.tanh
// CPU-COUNT-4: nn.gather
// CPU-NOT: nn.gather
// CPU: return
func.func @picked_at_two_places(%i: tensor<9xi64>, %j: tensor<9xi64>, %x: tensor<9x32xf32>, %u: tensor<32x8xf32>) -> (tensor<9xf32>, tensor<9x8xf32>) {
  %sent = nn.tanh %x : tensor<9x32xf32>
  %a = nn.gather %sent[%i] axis = 0 : (tensor<9x32xf32>, tensor<9xi64>) -> tensor<9x32xf32>
  %b = nn.gather %sent[%j] axis = 0 : (tensor<9x32xf32>, tensor<9xi64>) -> tensor<9x32xf32>
  %both = nn.mul %a, %b : tensor<9x32xf32>
  %sums = nn.reduce_sum %both dims = [1] : tensor<9x32xf32> -> tensor<9xf32>
  %less = nn.sub %a, %b : tensor<9x32xf32>
  %product = nn.dot %less, %u : (tensor<9x32xf32>, tensor<32x8xf32>) -> tensor<9x8xf32>
  return %sums, %product : tensor<9xf32>, tensor<9x8xf32>
}

// What is expensive stays apart on a GPU, where few rows look at all updates, each for itself.
// CHECK-LABEL: @expensive_updates
// CHECK: nn.kernel loop
// CHECK: nn.exp
// CHECK: nn.kernel scatter
// CHECK-NEXT: nn.scatter_add
// CHECK: return
// CPU-LABEL: @expensive_updates
// CPU: nn.kernel scatter
// CPU-NEXT: nn.exp
// CPU-NEXT: nn.scatter_add
// CPU: return
func.func @expensive_updates(%to: tensor<70xi64>, %x: tensor<70x32xf32>) -> tensor<2x32xf32> {
  %e = nn.exp %x : tensor<70x32xf32>
  %y = nn.scatter_add [%to] %e axis = 0 : (tensor<70xi64>, tensor<70x32xf32>) -> tensor<2x32xf32>
  return %y : tensor<2x32xf32>
}

// Rows that are picked twice and more are picked by each of their readers.
// CPU-LABEL: @picked_twice
// CPU: nn.kernel loop
// CPU-NEXT: nn.tanh
// CPU-COUNT-2: nn.gather
// CPU-NOT: nn.gather
// CPU: return
func.func @picked_twice(%from: tensor<70xi64>, %x: tensor<9x32xf32>, %u: tensor<32x8xf32>) -> (tensor<70xf32>, tensor<70xf32>) {
  %sent = nn.tanh %x : tensor<9x32xf32>
  %rows = nn.gather %sent[%from] axis = 0 : (tensor<9x32xf32>, tensor<70xi64>) -> tensor<70x32xf32>
  %sums = nn.reduce_sum %rows dims = [1] : tensor<70x32xf32> -> tensor<70xf32>
  %product = nn.dot %rows, %u : (tensor<70x32xf32>, tensor<32x8xf32>) -> tensor<70x8xf32>
  %others = nn.reduce_sum %product dims = [1] : tensor<70x8xf32> -> tensor<70xf32>
  return %sums, %others : tensor<70xf32>, tensor<70xf32>
}

// Of an argument, which the step may update, rows are picked once, also through a view of it.
// CPU-LABEL: @picked_of_an_argument
// CPU-COUNT-1: nn.gather
// CPU-NOT: nn.gather
// CPU: return
func.func @picked_of_an_argument(%from: tensor<70xi64>, %x: tensor<288xf32>, %u: tensor<32x8xf32>) -> (tensor<70xf32>, tensor<70xf32>) {
  %table = nn.reshape %x : tensor<288xf32> -> tensor<9x32xf32>
  %rows = nn.gather %table[%from] axis = 0 : (tensor<9x32xf32>, tensor<70xi64>) -> tensor<70x32xf32>
  %sums = nn.reduce_sum %rows dims = [1] : tensor<70x32xf32> -> tensor<70xf32>
  %product = nn.dot %rows, %u : (tensor<70x32xf32>, tensor<32x8xf32>) -> tensor<70x8xf32>
  %others = nn.reduce_sum %product dims = [1] : tensor<70x8xf32> -> tensor<70xf32>
  return %sums, %others : tensor<70xf32>, tensor<70xf32>
}
