// RUN: lowtide-opt %s | lowtide-opt | FileCheck %s

// CHECK-LABEL: func.func @there_and_back
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>, %[[S:.*]]: tensor<4xbf16, #train.space<host>>
// CHECK: %[[F:.*]] = train.move %[[X]] : tensor<2x3xf32> to tensor<2x3xf32, #train.space<file>>
// CHECK: train.move %[[F]] : tensor<2x3xf32, #train.space<file>> to tensor<2x3xf32>
// CHECK: train.move %[[S]] : tensor<4xbf16, #train.space<host>> to tensor<4xbf16>
// CHECK: train.move %[[X]] : tensor<2x3xf32> to tensor<2x3xf32, #train.space<host_pinned>>
func.func @there_and_back(%x: tensor<2x3xf32>, %s: tensor<4xbf16, #train.space<host>>)
    -> (tensor<2x3xf32>, tensor<4xbf16>, tensor<2x3xf32, #train.space<host_pinned>>) {
  %f = train.move %x : tensor<2x3xf32> to tensor<2x3xf32, #train.space<file>>
  %b = train.move %f : tensor<2x3xf32, #train.space<file>> to tensor<2x3xf32>
  %h = train.move %s : tensor<4xbf16, #train.space<host>> to tensor<4xbf16>
  %p = train.move %x : tensor<2x3xf32> to tensor<2x3xf32, #train.space<host_pinned>>
  return %b, %h, %p : tensor<2x3xf32>, tensor<4xbf16>, tensor<2x3xf32, #train.space<host_pinned>>
}
