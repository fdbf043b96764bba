//===- OnnxLibrary.h - calls into ONNX's own library
//--------------------------------===//
//
// ONNX's library throws; the rest of the project is built without exceptions.
// Each call returns an empty string, or why it failed.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_LIB_IMPORT_ONNXLIBRARY_H
#define LOWTIDE_LIB_IMPORT_ONNXLIBRARY_H

#include "onnx/onnx_pb.h"

#include <string>

namespace lowtide {

/// Inlines all local functions.
std::string inlineLocalFunctions(::onnx::ModelProto &model);
/// Converts to opset `version`. Loses all metadata.
std::string convertOpset(::onnx::ModelProto &model, int version);
/// Parses ONNX's text format.
std::string parseModelText(const std::string &text, ::onnx::ModelProto &model);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_ONNXLIBRARY_H
