// Sums over many columns in 16 bits, and what is made of them beside: a thread reads eight neighbours as 16 bytes, and writes
// what it makes of them so. Few columns have a thread each.
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90 --emit=ptx | FileCheck %s

// CHECK: .visible .entry column_0(
// CHECK: .maxntid 128, 1, 1
// CHECK: ld.global{{(.nc)?}}.v4
// CHECK-NOT: ld.global{{(.nc)?}}.b16
// CHECK: st.global.v4
// CHECK: .visible .entry column_1(
// CHECK-NOT: .v4
// CHECK: ld.global{{(.nc)?}}.b16

func.func @eval(%x: tensor<128x130x256xbf16> {train.binding = #train.batch<"x">},
                %z: tensor<130x256xbf16> {train.binding = #train.batch<"z">})
    -> (tensor<128x256xf32> {train.binding = #train.output<"s">}, tensor<128x130x256xbf16> {train.binding = #train.output<"y">},
        tensor<256xbf16> {train.binding = #train.output<"t">}) {
  %s, %y = nn.kernel column (%a = %x) : (tensor<128x130x256xbf16>) -> (tensor<128x256xf32>, tensor<128x130x256xbf16>) {
    %c = nn.cast %a : tensor<128x130x256xbf16> -> tensor<128x130x256xf32>
    %r = nn.reduce_sum %c dims = [1] : tensor<128x130x256xf32> -> tensor<128x256xf32>
    %b = nn.broadcast %r dims = [0, 2] : tensor<128x256xf32> -> tensor<128x130x256xf32>
    %d = nn.sub %c, %b : tensor<128x130x256xf32>
    %w = nn.cast %d : tensor<128x130x256xf32> -> tensor<128x130x256xbf16>
    nn.yield %r, %w : tensor<128x256xf32>, tensor<128x130x256xbf16>
  }
  %t = nn.kernel column (%a = %z) : (tensor<130x256xbf16>) -> (tensor<256xbf16>) {
    %r = nn.reduce_sum %a dims = [0] : tensor<130x256xbf16> -> tensor<256xbf16>
    nn.yield %r : tensor<256xbf16>
  }
  return %s, %y, %t : tensor<128x256xf32>, tensor<128x130x256xbf16>, tensor<256xbf16>
}
