//===- TrainingInfo.h - a step in ONNX's own terms --------------*- C++ -*-===//
#pragma once

#include "onnx/onnx_pb.h"
#include <string>

namespace lowtide {

/// Parts a step, written as one graph, into the inference graph and a TrainingInfoProto: the graph computes what the
/// user asked of the model, the algorithm the rest, and update_binding says what replaces which initializer. Optimizer
/// state becomes initializers of the algorithm. Returns what stands in the way; empty: nothing.
std::string partTrainingInfo(::onnx::ModelProto &model);

} // namespace lowtide
