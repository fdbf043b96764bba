// Arrays of more elements than 32 bits count: their kernels index in 64 bits, those beside them in 32, in one module.
// RUN: split-file %s %t
// RUN: lowtide compile %t/emitters.mlir --from=fitted --target=cuda:sm_90 --emit=kernels | FileCheck %t/emitters.mlir --check-prefix=GPU
// RUN: lowtide compile %t/emitters.mlir --from=fitted --target=cuda:sm_90 --emit=ptx | FileCheck %t/emitters.mlir --check-prefix=PTX
// RUN: lowtide compile %t/emitters.mlir --from=fitted --target=cuda:sm_80 --no-weights -o %t/emitters.tide 2>&1 | FileCheck %t/emitters.mlir --check-prefix=CUBIN
// RUN: lowtide compile %t/far.mlir --from=fitted --target=cuda-emulated --no-weights -q -o %t/far.tide
// RUN: %python -c "import numpy, sys; numpy.save(sys.argv[1], numpy.array([10, 20, 30, 40]))" %t/x.npy
// RUN: lowtide-run %t/far.tide --entry=eval --data=x=%t/x.npy --steps=1 --dump-outputs=%t/y.safetensors
// RUN: %python -c "import numpy, sys; print(numpy.frombuffer(open(sys.argv[1], 'rb').read()[-32:], numpy.int64).tolist())" %t/y.safetensors | FileCheck %t/far.mlir

//--- emitters.mlir
// GPU: gpu.func @{{.*}}lowtide.wide_index}
// GPU: gpu.func @{{.*}}lowtide.wide_index}
// GPU: gpu.func @{{.*}}lowtide.wide_index}
// GPU: gpu.func @{{.*}}lowtide.wide_index}
// GPU: gpu.func @
// GPU-NOT: wide_index

// PTX: .visible .entry loop_4(
// PTX-NOT: setp.{{.*}}64
// PTX: .visible .entry column_0(
// PTX: setp.{{.*}}64
// PTX: .visible .entry cross_1(
// PTX: setp.{{.*}}64
// PTX: .visible .entry loop_2(
// PTX: setp.lt.u64
// CUBIN: wrote {{.*}}: 5 kernels

func.func @train(%x: tensor<4194304x1024xbf16> {train.binding = #train.batch<"x">})
    -> (tensor<4194304xf32> {train.binding = #train.output<"row">}, tensor<1024xf32> {train.binding = #train.output<"column">},
        tensor<4194304x1024xbf16> {train.binding = #train.output<"loop">}, tensor<1024x4194304xbf16> {train.binding = #train.output<"transpose">}) {
  %r = nn.kernel row (%a = %x) : (tensor<4194304x1024xbf16>) -> (tensor<4194304xf32>) {
    %f = nn.cast %a : tensor<4194304x1024xbf16> -> tensor<4194304x1024xf32>
    %m = nn.reduce_sum %f dims = [1] : tensor<4194304x1024xf32> -> tensor<4194304xf32>
    nn.yield %m : tensor<4194304xf32>
  }
  %s = nn.kernel column (%a = %x) : (tensor<4194304x1024xbf16>) -> (tensor<1024xf32>) {
    %f = nn.cast %a : tensor<4194304x1024xbf16> -> tensor<4194304x1024xf32>
    %s = nn.reduce_sum %f dims = [0] : tensor<4194304x1024xf32> -> tensor<1024xf32>
    nn.yield %s : tensor<1024xf32>
  }
  %c = nn.kernel loop (%a = %x) : (tensor<4194304x1024xbf16>) -> (tensor<4194304x1024xbf16>) {
    %t = nn.mul %a, %a : tensor<4194304x1024xbf16>
    nn.yield %t : tensor<4194304x1024xbf16>
  }
  %u = nn.kernel loop (%a = %x) : (tensor<4194304x1024xbf16>) -> (tensor<1024x4194304xbf16>) {
    %t = nn.transpose %a [1, 0] : tensor<4194304x1024xbf16> -> tensor<1024x4194304xbf16>
    nn.yield %t : tensor<1024x4194304xbf16>
  }
  return %r, %s, %c, %u : tensor<4194304xf32>, tensor<1024xf32>, tensor<4194304x1024xbf16>, tensor<1024x4194304xbf16>
}

func.func @eval(%b: tensor<512x1024xbf16> {train.binding = #train.batch<"b">}) -> (tensor<512x1024xbf16> {train.binding = #train.output<"small">}) {
  %z = nn.kernel loop (%a = %b) : (tensor<512x1024xbf16>) -> (tensor<512x1024xbf16>) {
    %t = nn.mul %a, %a : tensor<512x1024xbf16>
    nn.yield %t : tensor<512x1024xbf16>
  }
  return %z : tensor<512x1024xbf16>
}

//--- far.mlir
// The last four of an array that is nowhere stored.
// CHECK: [3000000006, 3000000017, 3000000028, 3000000039]
func.func @eval(%x: tensor<4xi64> {train.binding = #train.batch<"x">}) -> (tensor<4xi64> {train.binding = #train.output<"y">}) {
  %y = nn.kernel loop (%a = %x) : (tensor<4xi64>) -> (tensor<4xi64>) {
    %i = nn.iota dim = 0 : tensor<3000000000xi64>
    %s = nn.slice %i starts = [2999999996] strides = [1] : tensor<3000000000xi64> -> tensor<4xi64>
    %t = nn.add %s, %a : tensor<4xi64>
    nn.yield %t : tensor<4xi64>
  }
  return %y : tensor<4xi64>
}
