// One kernel per emitter as a GPU gets it. The listing in docs/cuda.md shows this file's first function.
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90 --emit=kernels | FileCheck %s --check-prefix=GPU
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90 --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_80 --emit=ptx | FileCheck %s --check-prefix=SM80
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=SM90A
// RUN: not lowtide compile %s --from=fitted --target=cuda-emulated --emit=ptx 2>&1 | FileCheck %s --check-prefix=HOST

// HOST: --emit=ptx needs a GPU to write for
// SM80: .target sm_80
// SM90A: .target sm_90a

// GPU: gpu.module @kernels
// GPU: gpu.func @row_0(%arg0: !llvm.ptr {llvm.align = 16 : i64}, {{.*}}) kernel attributes {known_block_size = array<i32: 128, 1, 1>}
// GPU: gpu.thread_id x
// GPU: gpu.shuffle xor
// GPU: gpu.shuffle idx
// GPU: gpu.func @column_1
// GPU: gpu.barrier
// GPU: gpu.func @loop_2
// GPU: gpu.func @loop_3
// GPU: gpu.barrier

// PTX: .target sm_90
// A row of 1024 floats: 16-byte loads, quads and segments by shuffles, 16-byte stores, nothing contracted.
// PTX: .visible .entry row_0(
// PTX-NOT: .local
// PTX: ld.global{{(.nc)?}}.v4
// PTX-NOT: {{(add|mul)}}.f32
// PTX: add.rn.f32
// PTX: shfl.sync.bfly.b32
// PTX: shfl.sync.idx.b32
// PTX: st.global.v4
// Groups of 64 rows meet in shared memory.
// PTX: .visible .entry column_1(
// PTX: st.shared
// PTX: bar.sync
// PTX: ld.shared
// bf16: eight elements are 16 bytes.
// PTX: .visible .entry loop_2(
// PTX: ld.global{{(.nc)?}}.v4
// PTX: st.global.v4
// A tile of 32 x 32 floats, read and written by 16 bytes.
// PTX: .visible .entry loop_3(
// PTX: ld.global{{(.nc)?}}.v4
// PTX: st.shared
// PTX: bar.sync
// PTX: ld.shared
// PTX: st.global.v4

func.func @eval(%x: tensor<512x1024xf32> {train.binding = #train.batch<"x">},
                %b: tensor<512x1024xbf16> {train.binding = #train.batch<"b">})
    -> (tensor<512x1024xf32> {train.binding = #train.output<"y">}, tensor<1024xf32> {train.binding = #train.output<"s">},
        tensor<512x1024xbf16> {train.binding = #train.output<"c">},
        tensor<1024x512xf32> {train.binding = #train.output<"t">}) {
  %y = nn.kernel row (%a = %x) : (tensor<512x1024xf32>) -> (tensor<512x1024xf32>) {
    %q = nn.mul %a, %a : tensor<512x1024xf32>
    %s = nn.reduce_sum %q dims = [1] : tensor<512x1024xf32> -> tensor<512xf32>
    %r = nn.rsqrt %s : tensor<512xf32>
    %w = nn.broadcast %r dims = [0] : tensor<512xf32> -> tensor<512x1024xf32>
    %n = nn.mul %a, %w : tensor<512x1024xf32>
    nn.yield %n : tensor<512x1024xf32>
  }
  %s = nn.kernel column (%a = %x) : (tensor<512x1024xf32>) -> (tensor<1024xf32>) {
    %s = nn.reduce_sum %a dims = [0] : tensor<512x1024xf32> -> tensor<1024xf32>
    nn.yield %s : tensor<1024xf32>
  }
  %c = nn.kernel loop (%a = %b) : (tensor<512x1024xbf16>) -> (tensor<512x1024xbf16>) {
    %t = nn.mul %a, %a : tensor<512x1024xbf16>
    %e = nn.add %t, %a : tensor<512x1024xbf16>
    nn.yield %e : tensor<512x1024xbf16>
  }
  %t = nn.kernel loop (%a = %x) : (tensor<512x1024xf32>) -> (tensor<1024x512xf32>) {
    %t = nn.transpose %a [1, 0] : tensor<512x1024xf32> -> tensor<1024x512xf32>
    nn.yield %t : tensor<1024x512xf32>
  }
  return %y, %s, %c, %t : tensor<512x1024xf32>, tensor<1024xf32>, tensor<512x1024xbf16>, tensor<1024x512xf32>
}
