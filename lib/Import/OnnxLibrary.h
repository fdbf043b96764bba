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
/// Whether the schema of an operator has a function, for all or for some types.
bool hasSchemaFunction(const std::string &domain, const std::string &name, int version);
/// Puts the function that the schema of `name` has in the place of the graph's
/// nodes of that operator; false when there is none for their types.
bool inlineSchemaFunction(::onnx::ModelProto &model, std::string domain, std::string name);
/// Parses ONNX's text format.
std::string parseModelText(const std::string &text, ::onnx::ModelProto &model);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_ONNXLIBRARY_H
