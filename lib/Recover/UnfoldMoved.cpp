//===- UnfoldMoved.cpp - elements of a parameter in other places -----------------===//
//
// A kernel that is read once as it is and once mirrored, a weight whose rows are taken by index: exporters evaluate the
// second, and the file holds both. Trained as they stand, the two would part. Operations that only move elements are
// told by their names, and where each element comes from by the values, where no two of the parameter are equal.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>

using namespace llvm;
using namespace lowtide;
using ::onnx::TensorProto;

/// Turns dimensions; where nothing else is done, a matrix is a view of the parameter (ParametersFromSignature.cpp).
static bool turnsDimensions(StringRef operation) {
  return StringSwitch<bool>(operation)
      .Cases({"t", "transpose", "permute", "movedim", "moveaxis", "swapaxes", "swapdims", "numpy_t", "mt"}, true)
      .Default(false);
}

/// Whether each element of the result is one of the operand, and stays the same one whatever the values are. `getitem`
/// is also what a maximum gives.
static bool rearranges(StringRef operation) {
  if (StringSwitch<bool>(operation).Cases({"getitem", "detach", "_to_copy", "to"}, true).Default(false))
    return false;
  return turnsDimensions(operation) || movesElements(operation) || isGather(operation) ||
         StringSwitch<bool>(operation)
             .Cases({"flip", "fliplr", "flipud", "roll", "rot90", "unflatten", "expand_as", "broadcast_to"}, true)
             .Cases({"repeat_interleave", "diagonal", "unfold", "as_strided", "lifted_tensor"}, true)
             .Default(false);
}

/// The order of dimensions by which the tensor is the parameter's transpose; empty: none is.
static SmallVector<int64_t> findOrder(const TensorProto &whole, const TensorProto &tensor, ArrayRef<int64_t> indices) {
  const size_t rank = size_t(whole.dims_size());
  SmallVector<int64_t> order = to_vector(seq<int64_t>(0, rank)), strides(rank, 1);
  if (rank != size_t(tensor.dims_size()) || rank > 5)
    return {};
  for (size_t axis = rank - 1; axis > 0; --axis)
    strides[axis - 1] = strides[axis] * whole.dims(int(axis));
  do {
    auto isThere = [&](size_t element) {
      int64_t left = int64_t(element), from = 0;
      for (size_t axis = rank; axis-- > 0; left /= tensor.dims(int(axis)))
        from += left % tensor.dims(int(axis)) * strides[size_t(order[axis])];
      return from == indices[element];
    };
    if (all_of(seq<size_t>(0, rank), [&](size_t i) { return tensor.dims(int(i)) == whole.dims(int(order[i])); }) &&
        all_of(seq<size_t>(0, indices.size()), isThere))
      return order;
  } while (std::next_permutation(order.begin(), order.end()));
  return {};
}

bool lowtide::unfoldMoved(UnfoldingGraph &graph, const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  const TensorProto *whole =
      evaluated.parameters.size() == 1 ? graph.find(evaluated.parameters.front()->target) : nullptr;
  if (!whole || whole == &tensor || whole->data_type() != tensor.data_type() || graph.isRemoved(whole->name()) ||
      graph.isRemoved(tensor.name()))
    return false;
  // Parts of operations are called `val`, and the program's own tensors have a module's name.
  SmallVector<StringRef> operations{operationName(tensor.name())};
  for (StringRef from : evaluated.foldedFrom)
    if (from != whole->name() && !from.contains('.'))
      operations.push_back(operationName(from));
  erase(operations, "val");
  // Matrices that are turned are views.
  if ((all_of(operations, turnsDimensions) && tensor.dims_size() < 3) || !all_of(operations, rearranges))
    return false;
  if (unfoldPiece(graph, evaluated))
    return true;
  const std::string bytes = graph.read(*whole).value_or(""), values = graph.read(tensor).value_or("");
  const size_t width = findElementType(tensor.data_type())->bytes;
  const SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  if (bytes.empty() || values.empty() || (bytes == values && llvm::equal(dims, whole->dims())))
    return false;
  StringMap<int64_t> places;
  for (size_t at = 0; at < bytes.size(); at += width)
    if (!places.try_emplace(StringRef(bytes).substr(at, width), int64_t(at / width)).second)
      return false;
  std::vector<int64_t> indices;
  for (size_t at = 0; at < values.size(); at += width) {
    auto place = places.find(StringRef(values).substr(at, width));
    if (place == places.end())
      return false;
    indices.push_back(place->second);
  }
  graph.setModule(moduleOf(whole->name()));
  if (const SmallVector<int64_t> order = findOrder(*whole, tensor, indices); !order.empty()) {
    graph.addNode("Transpose", {whole->name()}, tensor.name());
    graph.setAttribute("perm", order);
    graph.remove(tensor);
    return true;
  }
  std::string flat = graph.addNode("Reshape", {whole->name(), graph.addIntegers({1}, {-1})});
  graph.addNode("Gather", {flat, graph.addIntegers(dims, indices)}, tensor.name());
  graph.setAttribute("axis", int64_t(0));
  graph.remove(tensor);
  return true;
}
