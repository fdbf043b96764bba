// RUN: lowtide-opt %s -split-input-file -verify-diagnostics

func.func @slice(%x: tensor<5xf32>) {
  // expected-error @+1 {{dimension 0: 3 elements from 1 in steps of 2 exceed extent 5}}
  %0 = nn.slice %x starts = [1] strides = [2] : tensor<5xf32> -> tensor<3xf32>
  return
}

// -----

func.func @pad(%x: tensor<5xf32>) {
  // expected-error @+1 {{result dimension 0 has extent 8, expected 7}}
  %0 = nn.pad %x low = [1] high = [1] interior = [0] : tensor<5xf32> -> tensor<8xf32>
  return
}

// -----

func.func @pad_overflow(%x: tensor<5xf32>) {
  // expected-error @+1 {{interior entry 9223372036854775807 is outside}}
  %0 = nn.pad %x low = [1] high = [1] interior = [9223372036854775807] : tensor<5xf32> -> tensor<8xf32>
  return
}

// -----

func.func @concat(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{extents along dim 1 add up to 6, result has 5}}
  %0 = nn.concat %x, %x dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @gather(%x: tensor<2x3xf32>, %i: tensor<4xui8>) {
  // expected-error @+1 {{indices must be signed integers}}
  %0 = nn.gather %x[%i] axis = 0 : (tensor<2x3xf32>, tensor<4xui8>) -> tensor<4x3xf32>
  return
}

// -----

func.func @scatter(%i: tensor<4xi64>, %u: tensor<4x2xf32>) {
  // expected-error @+1 {{updates must have the result's shape with the indices' in the place of dimension 0}}
  %0 = nn.scatter_add [%i] %u axis = 0 : (tensor<4xi64>, tensor<4x2xf32>) -> tensor<7x3xf32>
  return
}

// -----

func.func @conv(%x: tensor<1x3x8x8xf32>, %w: tensor<4x2x3x3xf32>) {
  // expected-error @+1 {{filter must be 4 x 3, found 4 x 2}}
  %0 = nn.conv %x, %w strides = [1, 1] pads = [0, 0], [0, 0] dilations = [1, 1] groups = 1 : (tensor<1x3x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32>
  return
}

// -----

func.func @stride(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+1 {{strides entry 0 is outside [1, 1073741824]}}
  %0 = nn.conv %x, %w strides = [0, 1] pads = [0, 0], [0, 0] dilations = [1, 1] groups = 1 : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  return
}

// -----

func.func @layer_norm(%x: tensor<2x3xf32>, %c: tensor<2xf32>) {
  // expected-error @+1 {{scale must be 'tensor<3xf32>', found 'tensor<2xf32>'}}
  %0:3 = nn.layer_norm %x, %c, %c axis = 1 epsilon = 1.0e-5 : (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @labels(%x: tensor<2x3xf32>, %l: tensor<3xi64>) {
  // expected-error @+1 {{labels must have the logits' shape without dimension 1}}
  %0:2 = nn.softmax_cross_entropy %x, %l : (tensor<2x3xf32>, tensor<3xi64>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @heads(%q: tensor<1x3x4x8xf32>, %k: tensor<1x2x4x8xf32>) {
  // expected-error @+1 {{the 3 heads of q must be a multiple of the heads of k and v}}
  %0:2 = nn.attention %q, %k, %k scale = 1.0 : (tensor<1x3x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x3x4x8xf32>, tensor<1x3x4xf32>)
  return
}

// -----

func.func @cotangent(%q: tensor<1x2x4x8xf32>, %lse: tensor<1x2x4xf32>, %d: tensor<1x2x4x4xf32>) {
  // expected-error @+1 {{grad_o must have the type of o}}
  %0:3 = nn.attention_grad %q, %q, %q, %q, %lse, %d scale = 1.0 : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>)
  return
}

// -----

func.func @scan_uneven(%x: tensor<5x2xf32>) {
  // expected-error @+1 {{operand 0 of type 'tensor<5x2xf32>' has no dimension 0 that 2 rounds share evenly}}
  %y = nn.scan 2 slices(%a = %x) : (tensor<5x2xf32>) -> tensor<4x2xf32> {
    nn.next rows(%a : tensor<2x2xf32>)
  }
  return
}

// -----

func.func @scan_state(%x: tensor<4x2xf32>, %h: tensor<2xf32>) {
  %last = nn.scan 2 slices(%a = %x) carries(%s = %h) : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<2xf32> {
    // expected-error @+1 {{carries on 'tensor<2x2xf32>' where the loop started with 'tensor<2xf32>'}}
    nn.next carries(%a : tensor<2x2xf32>)
  }
  return
}

// -----

func.func @scan_outside(%x: tensor<4x2xf32>, %h: tensor<2x2xf32>) {
  // expected-note @+1 {{required by region isolation constraints}}
  %y = nn.scan 2 slices(%a = %x) : (tensor<4x2xf32>) -> tensor<4x2xf32> {
    // expected-error @+1 {{using value defined outside the region}}
    %b = nn.add %a, %h : tensor<2x2xf32>
    nn.next rows(%b : tensor<2x2xf32>)
  }
  return
}

// -----

func.func @reduction_of_other_type(%x: tensor<4x2xbf16>) {
  // expected-error @+1 {{result has element type 'f32', the operand 'bf16': cast the operand}}
  %y = nn.reduce_sum %x dims = [1] : tensor<4x2xbf16> -> tensor<4xf32>
  return
}
