// Terms of a sum that are scattered: on a CPU each adds to the one before it. On a GPU a kernel adds the other term in registers.
// RUN: lowtide-opt %s --train-set-target=target=cpu:x86-64-v3 --nn-decompose | FileCheck %s
// RUN: lowtide-opt %s --train-set-target=target=cpu:x86-64-v3 --nn-decompose=chain-scatters=false | FileCheck %s --check-prefix=APART
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --nn-decompose | FileCheck %s --check-prefix=APART

// APART-NOT: nn.scatter add
// APART-NOT: nn.scatter_elements add

// Whatever the order of the sums; the first in the text is the first.
// CHECK-LABEL: @three
// CHECK: %[[A:.*]] = nn.scatter_add[%arg0] %arg1
// CHECK: %[[B:.*]] = nn.scatter add %arg2 into %[[A]][%arg0]
// CHECK: %[[C:.*]] = nn.scatter add %arg3 into %[[B]][%arg0]
// CHECK-NOT: nn.add
// CHECK: return %[[C]]
func.func @three(%i: tensor<7xi64>, %u: tensor<7x4xf32>, %v: tensor<7x4xf32>, %w: tensor<7x4xf32>) -> tensor<5x4xf32> {
  %a = nn.scatter_add [%i] %u axis = 0 : (tensor<7xi64>, tensor<7x4xf32>) -> tensor<5x4xf32>
  %b = nn.scatter_add [%i] %v axis = 0 : (tensor<7xi64>, tensor<7x4xf32>) -> tensor<5x4xf32>
  %c = nn.scatter_add [%i] %w axis = 0 : (tensor<7xi64>, tensor<7x4xf32>) -> tensor<5x4xf32>
  %bc = nn.add %c, %b : tensor<5x4xf32>
  %y = nn.add %bc, %a : tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}

// A product is in memory: what is scattered is added to it.
// CHECK-LABEL: @onto_product
// CHECK: %[[P:.*]] = nn.dot
// CHECK: %[[Y:.*]] = nn.scatter add %arg1 into %[[P]][%arg0]
// CHECK-NOT: nn.add
// CHECK: return %[[Y]]
func.func @onto_product(%i: tensor<7xi64>, %u: tensor<7x4xf32>, %a: tensor<5x6xf32>, %b: tensor<6x4xf32>) -> tensor<5x4xf32> {
  %p = nn.dot %a, %b : (tensor<5x6xf32>, tensor<6x4xf32>) -> tensor<5x4xf32>
  %s = nn.scatter_add [%i] %u axis = 0 : (tensor<7xi64>, tensor<7x4xf32>) -> tensor<5x4xf32>
  %y = nn.add %p, %s : tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}

// What the sum's own kernel makes is not put in memory for it, nor is an argument written over, nor what others read.
// CHECK-LABEL: @alone
// CHECK-NOT: nn.scatter add
// CHECK: return
func.func @alone(%i: tensor<7xi64>, %u: tensor<7x4xf32>, %x: tensor<5x4xf32>) -> (tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>) {
  %made = nn.tanh %x : tensor<5x4xf32>
  %s = nn.scatter_add [%i] %u axis = 0 : (tensor<7xi64>, tensor<7x4xf32>) -> tensor<5x4xf32>
  %first = nn.add %made, %s : tensor<5x4xf32>
  %t = nn.scatter_add [%i] %u axis = 0 : (tensor<7xi64>, tensor<7x4xf32>) -> tensor<5x4xf32>
  %second = nn.add %x, %t : tensor<5x4xf32>
  %v = nn.scatter_add [%i] %u axis = 0 : (tensor<7xi64>, tensor<7x4xf32>) -> tensor<5x4xf32>
  %third = nn.add %v, %v : tensor<5x4xf32>
  return %first, %second, %third : tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>
}

// One index for each element: chained where it has updates for all positions of the other dimensions. What has fewer is in
// memory, so that the others are added to it.
// CHECK-LABEL: @elements
// CHECK: %[[SHORT:.*]] = nn.scatter_elements_add[%arg2] %arg3
// CHECK: %[[A:.*]] = nn.scatter_elements add %arg1 into %[[SHORT]][%arg0]
// CHECK: %[[B:.*]] = nn.scatter_elements add %arg1 into %[[A]][%arg0]
// CHECK: return %[[B]]
func.func @elements(%i: tensor<3x5xi64>, %u: tensor<3x5xf32>, %j: tensor<2x5xi64>, %v: tensor<2x5xf32>) -> tensor<3x4xf32> {
  %a = nn.scatter_elements_add [%i] %u axis = 1 : (tensor<3x5xi64>, tensor<3x5xf32>) -> tensor<3x4xf32>
  %b = nn.scatter_elements_add [%i] %u axis = 1 : (tensor<3x5xi64>, tensor<3x5xf32>) -> tensor<3x4xf32>
  %c = nn.scatter_elements_add [%j] %v axis = 1 : (tensor<2x5xi64>, tensor<2x5xf32>) -> tensor<3x4xf32>
  %ab = nn.add %a, %b : tensor<3x4xf32>
  %y = nn.add %ab, %c : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// A loop carries its sum in memory: what is scattered in a round is added to it there.
// CHECK-LABEL: @carried
// CHECK: train.accumulate 2 slices(%[[I:.*]] = %arg0, %[[U:.*]] = %arg1) carries(%[[C:.*]] = %
// CHECK-NEXT: %[[S:.*]] = nn.scatter add %[[U]] into %[[C]][%[[I]]]
// CHECK-NEXT: train.next carries(%[[S]]
func.func @carried(%i: tensor<8xi64>, %u: tensor<8x4xf32>) -> tensor<5x4xf32> {
  %zero = nn.constant dense<0.0> : tensor<5x4xf32>
  %r = train.accumulate 2 slices(%at = %i, %part = %u) carries(%c = %zero) : (tensor<8xi64>, tensor<8x4xf32>, tensor<5x4xf32>) -> (tensor<5x4xf32>) {
    %s = nn.scatter_add [%at] %part axis = 0 : (tensor<4xi64>, tensor<4x4xf32>) -> tensor<5x4xf32>
    %sum = nn.add %c, %s : tensor<5x4xf32>
    train.next carries(%sum : tensor<5x4xf32>)
  }
  return %r : tensor<5x4xf32>
}

// What is in a kernel already stays so.
// CHECK-LABEL: @kernel
// CHECK: nn.scatter_add
// CHECK-NEXT: nn.add
// CHECK: return
func.func @kernel(%i: tensor<7xi64>, %u: tensor<7x4xf32>, %x: tensor<5x4xf32>) -> tensor<5x4xf32> {
  %y = nn.kernel scatter (%at = %i, %part = %u, %whole = %x) : (tensor<7xi64>, tensor<7x4xf32>, tensor<5x4xf32>) -> tensor<5x4xf32> {
    %sum = nn.scatter_add [%at] %part axis = 0 : (tensor<7xi64>, tensor<7x4xf32>) -> tensor<5x4xf32>
    %both = nn.add %sum, %whole : tensor<5x4xf32>
    nn.yield %both : tensor<5x4xf32>
  }
  return %y : tensor<5x4xf32>
}
