//===- OnnxLibrary.cpp - calls into ONNX's own library
//------------------------------===//
//
// The only file of the importer that is compiled with exceptions.
//
//===----------------------------------------------------------------------===//

#include "OnnxLibrary.h"

#include "onnx/defs/parser.h"
#include "onnx/inliner/inliner.h"
#include "onnx/version_converter/convert.h"

#include <exception>

template <typename Call> static std::string guard(Call call) {
  try {
    return call();
  } catch (const std::exception &error) {
    std::string what = error.what();
    return what.empty() ? "unknown error" : what;
  } catch (...) {
    return "unknown error";
  }
}

std::string lowtide::inlineLocalFunctions(::onnx::ModelProto &model) {
  return guard([&] {
    ::onnx::inliner::InlineLocalFunctions(model, /*convert_version=*/false);
    if (model.functions_size())
      ::onnx::inliner::InlineLocalFunctions(model, /*convert_version=*/true);
    return std::string();
  });
}

std::string lowtide::convertOpset(::onnx::ModelProto &model, int version) {
  return guard([&] {
    model = ::onnx::version_conversion::ConvertVersion(model, version);
    return std::string();
  });
}

std::string lowtide::parseModelText(const std::string &text, ::onnx::ModelProto &model) {
  return guard([&] {
    ::onnx::OnnxParser parser(text.c_str());
    auto status = parser.Parse(model);
    return status.IsOK() ? std::string() : status.ErrorMessage();
  });
}
