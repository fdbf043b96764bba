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

#include <array>
#include <exception>
#include <map>
#include <vector>

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

namespace {
/// Writes a function's default attributes into calls that leave them out: the inliner drops what refers to them.
class CallDefaults {
public:
  explicit CallDefaults(const ::onnx::ModelProto &model) {
    for (const auto &function : model.functions())
      for (const auto &attribute : function.attribute_proto())
        defaults[{function.domain(), function.name(), function.overload()}].push_back(attribute);
  }

  void writeInto(::onnx::ModelProto &model) const {
    if (defaults.empty())
      return;
    for (auto &function : *model.mutable_functions())
      for (auto &node : *function.mutable_node())
        writeInto(node);
    for (auto &node : *model.mutable_graph()->mutable_node())
      writeInto(node);
  }

private:
  void writeInto(::onnx::NodeProto &node) const {
    for (auto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        for (auto &inner : *attribute.mutable_g()->mutable_node())
          writeInto(inner);
      for (auto &graph : *attribute.mutable_graphs())
        for (auto &inner : *graph.mutable_node())
          writeInto(inner);
    }
    auto callee = defaults.find({node.domain(), node.op_type(), node.overload()});
    if (callee == defaults.end())
      return;
    for (const auto &attribute : callee->second) {
      bool isGiven = false;
      for (const auto &given : node.attribute())
        isGiven |= given.name() == attribute.name();
      if (!isGiven)
        *node.add_attribute() = attribute;
    }
  }

  std::map<std::array<std::string, 3>, std::vector<::onnx::AttributeProto>> defaults;
};
} // namespace

std::string lowtide::inlineLocalFunctions(::onnx::ModelProto &model) {
  return guard([&] {
    CallDefaults(model).writeInto(model);
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

bool lowtide::hasSchemaFunction(const std::string &domain, const std::string &name, int version) {
  bool has = false;
  std::string error = guard([&] {
    const auto *schema = ::onnx::OpSchemaRegistry::Schema(name, version, domain);
    has = schema && (schema->HasFunction() || schema->HasContextDependentFunction());
    return std::string();
  });
  return error.empty() && has;
}

/// The schema's defaults as attributes, which bodies refer to by name.
static void addDefaults(::onnx::NodeProto &node, const ::onnx::ModelProto &model) {
  int version = 0;
  for (const auto &opset : model.opset_import())
    if (opset.domain() == node.domain())
      version = static_cast<int>(opset.version());
  const auto *schema = ::onnx::OpSchemaRegistry::Schema(node.op_type(), version, node.domain());
  if (!schema)
    return;
  for (const auto &[name, attribute] : schema->attributes()) {
    bool isPresent = false;
    for (const auto &given : node.attribute())
      isPresent |= given.name() == name;
    if (isPresent || attribute.default_value.type() == ::onnx::AttributeProto::UNDEFINED)
      continue;
    *node.add_attribute() = attribute.default_value;
    node.mutable_attribute(node.attribute_size() - 1)->set_name(name);
  }
}

// The names are copies: the caller has them of the node that the library replaces.
bool lowtide::inlineSchemaFunction(::onnx::ModelProto &model, std::string domain, std::string name) {
  bool isGone = false;
  std::string error = guard([&] {
    for (auto &node : *model.mutable_graph()->mutable_node())
      if (node.op_type() == name && node.domain() == domain)
        addDefaults(node, model);
    auto only = ::onnx::inliner::FunctionIdSet::Create({{domain, name}});
    ::onnx::inliner::InlineSelectedFunctions(model, *only, ::onnx::OpSchemaRegistry::Instance());
    isGone = true;
    for (const auto &node : model.graph().node())
      isGone &= node.op_type() != name || node.domain() != domain;
    return std::string();
  });
  return error.empty() && isGone;
}

std::string lowtide::parseModelText(const std::string &text, ::onnx::ModelProto &model) {
  return guard([&] {
    ::onnx::OnnxParser parser(text.c_str());
    auto status = parser.Parse(model);
    return status.IsOK() ? std::string() : status.ErrorMessage();
  });
}
