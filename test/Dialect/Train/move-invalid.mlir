// RUN: lowtide-opt %s --split-input-file --verify-diagnostics

func.func @shape(%x: tensor<4xf32>) -> tensor<2xf32, #train.space<file>> {
  // expected-error @below {{changes 'tensor<4xf32>' to 'tensor<2xf32, #train.space<file>>'; a move keeps shape and element type}}
  %0 = train.move %x : tensor<4xf32> to tensor<2xf32, #train.space<file>>
  return %0 : tensor<2xf32, #train.space<file>>
}

// -----

func.func @type(%x: tensor<4xf32>) -> tensor<4xf16, #train.space<file>> {
  // expected-error @below {{a move keeps shape and element type}}
  %0 = train.move %x : tensor<4xf32> to tensor<4xf16, #train.space<file>>
  return %0 : tensor<4xf16, #train.space<file>>
}

// -----

func.func @within(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{moves from space device to space device; one of the two, and only one, is the device}}
  %0 = train.move %x : tensor<4xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @outside(%x: tensor<4xf32, #train.space<host>>) -> tensor<4xf32, #train.space<file>> {
  // expected-error @below {{moves from space host to space file; one of the two, and only one, is the device}}
  %0 = train.move %x : tensor<4xf32, #train.space<host>> to tensor<4xf32, #train.space<file>>
  return %0 : tensor<4xf32, #train.space<file>>
}

// -----

// expected-error @below {{'device' names no other memory than the device: host_pinned, host, file}}
func.func @device(%x: tensor<4xf32, #train.space<device>>)

// -----

// expected-error @below {{'tape' names no other memory than the device: host_pinned, host, file}}
func.func @tape(%x: tensor<4xf32, #train.space<tape>>)
