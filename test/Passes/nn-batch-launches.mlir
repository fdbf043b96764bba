// Casts of biases stand in front of what reads them: they come up to the first one, into one launch. What is as large as a
// matrix does not.
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90 --no-weights --emit=plan -q -o - | FileCheck %s
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --nn-batch-launches 2>%t.said | FileCheck %s --check-prefix=PASS
// RUN: FileCheck %s --check-prefix=SAID --input-file=%t.said

// SAID: remark: @train: 3 kernels share 1 launch
// PASS: func.func @train
// PASS: nn.kernel batch ({{.*}}) : (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>) -> (tensor<512xbf16>, tensor<512xbf16>, tensor<512xbf16>) {
// PASS-COUNT-3: nn.cast
// PASS-NEXT: nn.yield
// PASS: func.func @eval
// PASS-NOT: "batch"

// CHECK: plan.kernel @batch{{.*}} "3 {{.*}} loop: cast"
// CHECK: plan.program @train
// CHECK: plan.launch @batch{{.*}} reads [@params{{[^,]*}}, @params{{[^,]*}}, @params
// CHECK-NEXT: plan.call "gemm"
// CHECK-NEXT: plan.launch @loop
// CHECK-NEXT: plan.call "gemm"
// CHECK-NEXT: plan.launch @loop
// CHECK-NEXT: plan.call "gemm"
// CHECK-NEXT: plan.launch @loop
// CHECK: plan.program @eval
// CHECK: plan.launch @loop
// CHECK-NEXT: plan.call "gemm"
// CHECK-NEXT: plan.launch @loop
// CHECK-NEXT: plan.call "gemm"

func.func @train(%x: tensor<512x512xbf16> {train.binding = #train.batch<"x">},
                 %a: tensor<512xf32> {train.binding = #train.param<"a">}, %b: tensor<512xf32> {train.binding = #train.param<"b">},
                 %c: tensor<512xf32> {train.binding = #train.param<"c">})
    -> (tensor<512x512xf32> {train.binding = #train.output<"y">}) {
  %ca = nn.kernel loop (%v = %a) : (tensor<512xf32>) -> (tensor<512xbf16>) {
    %w = nn.cast %v : tensor<512xf32> -> tensor<512xbf16>
    nn.yield %w : tensor<512xbf16>
  }
  %d = nn.dot %x, %x : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
  %e = nn.kernel loop (%v = %d, %u = %ca) : (tensor<512x512xbf16>, tensor<512xbf16>) -> (tensor<512x512xbf16>) {
    %s = nn.broadcast %u dims = [1] : tensor<512xbf16> -> tensor<512x512xbf16>
    %w = nn.add %v, %s : tensor<512x512xbf16>
    nn.yield %w : tensor<512x512xbf16>
  }
  %cb = nn.kernel loop (%v = %b) : (tensor<512xf32>) -> (tensor<512xbf16>) {
    %w = nn.cast %v : tensor<512xf32> -> tensor<512xbf16>
    nn.yield %w : tensor<512xbf16>
  }
  %f = nn.dot %e, %e : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
  %g = nn.kernel loop (%v = %f, %u = %cb) : (tensor<512x512xbf16>, tensor<512xbf16>) -> (tensor<512x512xbf16>) {
    %s = nn.broadcast %u dims = [1] : tensor<512xbf16> -> tensor<512x512xbf16>
    %w = nn.add %v, %s : tensor<512x512xbf16>
    nn.yield %w : tensor<512x512xbf16>
  }
  %cc = nn.kernel loop (%v = %c) : (tensor<512xf32>) -> (tensor<512xbf16>) {
    %w = nn.cast %v : tensor<512xf32> -> tensor<512xbf16>
    nn.yield %w : tensor<512xbf16>
  }
  %h = nn.dot %g, %g : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
  %i = nn.kernel loop (%v = %h, %u = %cc) : (tensor<512x512xbf16>, tensor<512xbf16>) -> (tensor<512x512xbf16>) {
    %s = nn.broadcast %u dims = [1] : tensor<512xbf16> -> tensor<512x512xbf16>
    %w = nn.add %v, %s : tensor<512x512xbf16>
    nn.yield %w : tensor<512x512xbf16>
  }
  // The step needs more bytes here than while casts wait to be read.
  %j = nn.dot %i, %i : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xf32>
  return %j : tensor<512x512xf32>
}

func.func @eval(%x: tensor<512x512xf32> {train.binding = #train.batch<"x">}, %z: tensor<512x512xf32> {train.binding = #train.batch<"z">})
    -> (tensor<512x512xbf16> {train.binding = #train.output<"y">}) {
  %a = nn.kernel loop (%v = %x) : (tensor<512x512xf32>) -> (tensor<512x512xbf16>) {
    %w = nn.cast %v : tensor<512x512xf32> -> tensor<512x512xbf16>
    nn.yield %w : tensor<512x512xbf16>
  }
  %d = nn.dot %a, %a : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
  %b = nn.kernel loop (%v = %z) : (tensor<512x512xf32>) -> (tensor<512x512xbf16>) {
    %w = nn.cast %v : tensor<512x512xf32> -> tensor<512x512xbf16>
    nn.yield %w : tensor<512x512xbf16>
  }
  %e = nn.dot %d, %b : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
  return %e : tensor<512x512xbf16>
}
