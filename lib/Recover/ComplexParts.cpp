//===- ComplexParts.cpp - parameters that a program reads as complex numbers -------===//
//
// `view_as_complex(w)` reads pairs of numbers. ONNX has real ones only: exporters write products in steps, of slices of
// the last dimension, and evaluate the slices of a parameter. Both are in the file, each by itself, and the notes of
// both name the parameter, the view and the bounds of the slice: [0, 1) of real parts, [1, 2) of imaginary ones.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "Unfold.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

namespace {
struct Parts {
  const TensorProto *real = nullptr, *imaginary = nullptr;
  bool isUnclear = false;
};
} // namespace

/// The bounds of a slice that the notes name and the file still holds.
static bool isWithin(const UnfoldingGraph &graph, ArrayRef<std::string> made, int64_t bound) {
  return any_of(made, [&](const std::string &name) {
    const TensorProto *tensor = graph.find(name);
    const std::string bytes =
        tensor && tensor->data_type() == TensorProto::INT64 ? graph.read(*tensor).value_or("") : "";
    int64_t value = 0;
    if (bytes.size() != sizeof(value))
      return false;
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value == bound;
  });
}

/// Whether `name` is the real part, for the difference of products begins with that of two real parts; nullopt: nothing
/// tells.
static std::optional<bool> isRealInProduct(const UnfoldingGraph &graph, StringRef name) {
  StringMap<const NodeProto *> makers;
  for (const NodeProto &node : graph.getGraph().node())
    for (const std::string &output : node.output())
      makers[output] = &node;
  for (const NodeProto &node : graph.getGraph().node()) {
    if (node.op_type() != "Sub" || node.input_size() != 2 ||
        !StringRef(findProgramOperator(node)).starts_with("aten.mul."))
      continue;
    for (int side : {0, 1}) {
      const NodeProto *product = makers.lookup(node.input(side));
      if (product && product->op_type() == "Mul" && findProgramNote(*product) == findProgramNote(node) &&
          is_contained(product->input(), name))
        return side == 0;
    }
  }
  return std::nullopt;
}

static void join(UnfoldingGraph &graph, const SignatureEntry &entry, const Parts &parts) {
  const std::vector<float> real = valuesOf(graph, *parts.real), imaginary = valuesOf(graph, *parts.imaginary);
  SmallVector<int64_t> dims(parts.real->dims().begin(), parts.real->dims().end());
  if (real.empty() || real.size() != imaginary.size() || dims.empty() || dims.back() != 1 ||
      !llvm::equal(dims, parts.imaginary->dims()))
    return;
  dims.back() = 2;
  std::string bytes;
  for (auto [x, y] : zip(real, imaginary)) {
    const float pair[] = {x, y};
    bytes.append(reinterpret_cast<const char *>(pair), sizeof(pair));
  }
  const TensorProto *held = graph.find(entry.target);
  if (held && graph.read(*held) != bytes)
    return;
  if (!held)
    graph.addInitializer(entry.target, dims, TensorProto::FLOAT, std::move(bytes),
                         {parts.real->name(), "the exporter evaluated its real and its imaginary parts", false});
  graph.setModule(moduleOf(entry.target));
  for (auto [tensor, at] : {std::pair(parts.real, int64_t(0)), std::pair(parts.imaginary, int64_t(1))}) {
    graph.addNode("Slice",
                  {entry.target, graph.addIntegers({1}, {at}), graph.addIntegers({1}, {at + 1}),
                   graph.addIntegers({1}, {int64_t(dims.size()) - 1})},
                  tensor->name());
    graph.remove(*tensor);
  }
}

void lowtide::unfoldComplexParts(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature) {
  MapVector<const SignatureEntry *, Parts> found;
  for (const auto &value : proto.value_info()) {
    const TensorProto *tensor = graph.find(value.name());
    if (!tensor || tensor->data_type() != TensorProto::FLOAT || operationName(value.name()) != "val")
      continue;
    const std::vector<std::string> made = findFoldedFrom(value);
    const SignatureEntry *entry = nullptr;
    bool isComplex = false, isOthers = false;
    for (const std::string &name : made)
      if (const SignatureEntry *of = signature.findTarget(name)) {
        isOthers |= entry || of->kind != SignatureEntry::Parameter;
        entry = of;
      } else if (operationName(name) == "view_as_complex") {
        isComplex = true;
      } else {
        isOthers |= operationName(name) != "val";
      }
    if (!entry || !isComplex || isOthers)
      continue;
    Parts &parts = found[entry];
    const bool isFirst = isWithin(graph, made, 0), isSecond = isWithin(graph, made, 2);
    std::optional<bool> isReal = isFirst != isSecond ? isFirst : isRealInProduct(graph, value.name());
    const TensorProto *&part = isReal.value_or(true) ? parts.real : parts.imaginary;
    parts.isUnclear |= !isReal || part;
    part = tensor;
  }
  for (const auto &[entry, parts] : found)
    if (!parts.isUnclear && parts.real && parts.imaginary)
      join(graph, *entry, parts);
}
