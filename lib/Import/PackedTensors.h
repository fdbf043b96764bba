//===- PackedTensors.h - tensors whose elements share bytes -----*- C++ -*-===//
#pragma once

#include "onnx/onnx_pb.h"

namespace lowtide {

/// Initializers of 4 and 2 bits (ONNX's int4, uint4, int2, uint2) become arrays of bytes, and nodes of the standard
/// that take them apart: [codes of a byte, the first in its low bits] → int8 or uint8 of the tensor's shape. Those of
/// floats in 8 and 4 bits become positions in a table of the numbers that codes stand for, f32; a few numbers are
/// written out. The file's own bytes stay as they are. Source: onnx.proto, TensorProto.DataType and `int32_data`.
void unpackInitializers(::onnx::GraphProto &graph, int64_t opset);

} // namespace lowtide
