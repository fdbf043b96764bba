//===- UnfoldPieces.cpp - parts of a parameter that the file holds as well -------===//
//
// A table of positions is read whole, and its first row once more by itself: exporters evaluate the row and keep both.
// Trained as they stand, the two would part. Which part it is, the values tell: it is along one dimension of the
// parameter, and nowhere else.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::TensorProto;

bool lowtide::takesPart(StringRef name) {
  return StringSwitch<bool>(operationName(name))
      .Cases({"slice", "select", "narrow", "split", "split_with_sizes", "chunk", "getitem", "unbind"}, true)
      .Default(false);
}

namespace {
/// Indices [begin, end) of one dimension.
struct Part {
  int64_t axis, begin, end;
};
} // namespace

/// Where `part` is in `whole`, whose data are `bytes`; nullopt: nowhere, or in several places.
static std::optional<Part> findPart(const TensorProto &whole, StringRef bytes, StringRef part) {
  size_t width = findElementType(whole.data_type())->bytes;
  std::optional<Part> found;
  size_t outer = 1, inner = bytes.size();
  for (int axis = 0; axis != whole.dims_size(); ++axis) {
    size_t size = size_t(whole.dims(axis));
    inner /= size;
    size_t length = part.size() / (outer * inner);
    if (size > 1 && length && length < size && length * outer * inner == part.size() && inner >= width)
      for (size_t begin = 0; begin + length <= size; ++begin) {
        bool isThere = true;
        for (size_t o = 0; isThere && o != outer; ++o)
          isThere = bytes.substr((o * size + begin) * inner, length * inner) ==
                    part.substr(o * length * inner, length * inner);
        if (isThere && found)
          return std::nullopt;
        if (isThere)
          found = Part{axis, int64_t(begin), int64_t(begin + length)};
      }
    outer *= size;
  }
  return found;
}

bool lowtide::unfoldPiece(UnfoldingGraph &graph, const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  const TensorProto *whole =
      evaluated.parameters.size() == 1 ? graph.find(evaluated.parameters.front()->target) : nullptr;
  if (!whole || whole->data_type() != tensor.data_type() || graph.isRemoved(whole->name()) ||
      (!takesPart(tensor.name()) && none_of(evaluated.foldedFrom, takesPart)))
    return false;
  std::string bytes = graph.read(*whole).value_or(""), values = graph.read(tensor).value_or("");
  std::optional<Part> part = bytes.empty() || values.empty() ? std::nullopt : findPart(*whole, bytes, values);
  if (!part)
    return false;
  graph.setModule(moduleOf(whole->name()));
  std::string value =
      graph.addNode("Slice", {whole->name(), graph.addIntegers({1}, {part->begin}), graph.addIntegers({1}, {part->end}),
                              graph.addIntegers({1}, {part->axis})});
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  graph.addNode("Reshape", {value, graph.addIntegers({int64_t(dims.size())}, dims)}, tensor.name());
  graph.remove(tensor);
  return true;
}
