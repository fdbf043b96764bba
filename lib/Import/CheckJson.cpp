//===- CheckJson.cpp - what a model file holds, for programs ---------------------------===//

#include "lowtide/Import/Check.h"

#include "OperatorGroups.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace lowtide;
namespace json = llvm::json;

static json::Array toJson(ArrayRef<int64_t> dims) {
  json::Array list;
  for (int64_t dim : dims)
    list.push_back(dim);
  return list;
}

/// Symbols are strings, unknown dimensions null.
static json::Object toJson(const ::onnx::ValueInfoProto &value) {
  const auto &type = value.type().tensor_type();
  json::Array shape;
  for (const auto &dim : type.shape().dim()) {
    if (dim.has_dim_value())
      shape.push_back(dim.dim_value());
    else if (!dim.dim_param().empty())
      shape.push_back(json::fixUTF8(dim.dim_param()));
    else
      shape.push_back(nullptr);
  }
  return json::Object{
      {"name", json::fixUTF8(value.name())}, {"type", elementTypeName(type.elem_type())}, {"shape", std::move(shape)}};
}

static json::Object toJson(const InitializerInfo &info) {
  json::Object object{{"name", json::fixUTF8(info.name)},
                      {"initializer", json::fixUTF8(info.tensor)},
                      {"role", stringifyRole(info.role)},
                      {"certainty", stringifyCertainty(info.certainty)},
                      {"reason", json::fixUTF8(info.reason.describe())},
                      {"type", elementTypeName(info.dataType)},
                      {"shape", toJson(info.dims)},
                      {"bytes", static_cast<int64_t>(info.bytes)}};
  json::Array tied;
  for (const std::string &name : info.tied)
    tied.push_back(json::fixUTF8(name));
  if (!tied.empty())
    object["tied"] = std::move(tied);
  if (!info.transposed.empty())
    object["transposed"] = toJson(info.transposed);
  if (info.sourceShape)
    object["source_shape"] = toJson(*info.sourceShape);
  if (info.sourceRows)
    object["source_rows"] = toJson({info.sourceRows->first, info.sourceRows->second});
  return object;
}

/// "--dim batch=8" → what to type; sizes are examples.
static json::Object toJson(const CheckAdvice &advice) {
  json::Array dims;
  for (const std::string &flag : advice.unbound)
    dims.push_back(json::fixUTF8(flag));
  json::Object missing{{"dimensions", std::move(dims)}};
  if (advice.lacksLoss)
    missing["loss"] =
        json::Object{{"suggestion", advice.loss.empty() ? json::Value(nullptr) : json::fixUTF8(advice.loss)}};
  return json::Object{{"missing", std::move(missing)},
                      {"compile", json::fixUTF8(advice.compile)},
                      {"run", json::fixUTF8(advice.run)},
                      {"data", json::fixUTF8(advice.data)}};
}

FailureKind lowtide::reportModelAsJson(OnnxFile &file, const ImportOptions &options, ArrayRef<RefusedNodes> refused,
                                       ArrayRef<CodedWeight> coded, json::Object cost, const CheckAdvice *advice,
                                       llvm::raw_ostream &os) {
  json::Array inputs, outputs, unbound, initializers, operators;
  for (const auto &input : file.getModel().graph().input())
    if (!file.findInitializer(input.name()))
      inputs.push_back(toJson(input));
  for (const auto &output : file.getModel().graph().output())
    outputs.push_back(toJson(output));
  for (const std::string &flag : findUnboundDims(file, options))
    unbound.push_back(json::fixUTF8(flag));
  FailureOr<std::vector<InitializerInfo>> infos = classifyInitializers(file, options);
  if (succeeded(infos))
    for (const InitializerInfo &info : *infos)
      if (!info.viewOf)
        initializers.push_back(toJson(info));
  json::Array findings;
  for (const Finding &finding : file.getReport().getFindings()) {
    json::Array names;
    for (const std::string &name : finding.names)
      names.push_back(json::fixUTF8(name));
    findings.push_back(json::Object{{"kind", stringifyFindingKind(finding.kind)},
                                    {"certainty", stringifyCertainty(finding.getCertainty())},
                                    {"names", std::move(names)},
                                    {"where", json::fixUTF8(finding.where)},
                                    {"message", json::fixUTF8(finding.describe())},
                                    {"remedy", json::fixUTF8(finding.describeRemedy())}});
  }
  for (const OperatorGroup &group : groupOperators(file.getModel())) {
    json::Array reasons;
    for (const RefusedNodes &nodes : refused)
      if (nodes.domain == group.domain && nodes.name == group.name)
        reasons.push_back(json::Object{{"reason", json::fixUTF8(nodes.reason)},
                                       {"nodes", static_cast<int64_t>(nodes.places.size())},
                                       {"first", json::fixUTF8(nodes.places.front())}});
    json::Object object{{"domain", json::fixUTF8(group.domain)},
                        {"name", json::fixUTF8(group.name)},
                        {"version", group.version},
                        {"nodes", static_cast<int64_t>(group.places.size())},
                        {"supported", reasons.empty()}};
    if (!reasons.empty())
      object["refused"] = std::move(reasons);
    operators.push_back(std::move(object));
  }
  json::Object report{{"file", json::fixUTF8(file.getHeadline())},
                      {"opset", file.getOpset()},
                      {"inputs", std::move(inputs)},
                      {"outputs", std::move(outputs)},
                      {"unbound_dimensions", std::move(unbound)},
                      {"initializers", std::move(initializers)},
                      {"findings", std::move(findings)},
                      {"operators", std::move(operators)}};
  json::Array codes;
  for (const CodedWeight &weight : coded)
    codes.push_back(json::Object{{"name", json::fixUTF8(weight.name)},
                                 {"shape", toJson(weight.dims)},
                                 {"bytes_before", static_cast<int64_t>(weight.bytesBefore)},
                                 {"bytes", static_cast<int64_t>(weight.bytes)},
                                 {"largest_error", weight.largestError},
                                 {"rms_error", weight.rmsError}});
  if (!codes.empty())
    report["frozen_weights"] = std::move(codes);
  if (!cost.empty())
    report["step"] = std::move(cost);
  if (advice)
    report["to_train"] = toJson(*advice);
  os << llvm::formatv("{0:2}", json::Value(std::move(report))) << "\n";
  if (file.getFailure() != FailureKind::None)
    return file.getFailure();
  return refused.empty() ? FailureKind::None : FailureKind::Unsupported;
}
