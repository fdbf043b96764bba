//===- FoldedOrder.cpp - the order of a folded tensor's dimensions ----------------===//
//
// `GatherND` and `ScatterND` index the first dimensions. The exporter transposes a parameter that the program indexes
// elsewhere, `w[:, i]`, and its optimizer evaluates that. Which dimensions went to the front, the program's operation
// says, in the notes of the node that reads the tensor. A transposition of the program's own exchanges both dimensions
// of a matrix; of more than two it is not noted which.
//
//===----------------------------------------------------------------------===//

#include "Classifier.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;

using Order = SmallVector<int64_t>;

bool lowtide::turnsDimensions(StringRef name) {
  return is_contained(
      {"t", "transpose", "permute", "numpy_t", "movedim", "moveaxis", "swapaxes", "swapdims", "adjoint"},
      operationName(name));
}

/// Dimensions with an index, then those without one.
static std::optional<Order> bringToFront(ArrayRef<bool> isIndexed, int64_t rank) {
  if (int64_t(isIndexed.size()) > rank)
    return std::nullopt;
  Order order;
  for (bool indexed : {true, false})
    for (int64_t dim = 0; dim < rank; ++dim)
      if ((dim < int64_t(isIndexed.size()) && isIndexed[dim]) == indexed)
        order.push_back(dim);
  return order;
}

/// Values that are written at indices: their dimensions that stand for the indices come first, unless the indices are
/// apart, which puts them first in the program. Of more than two dimensions it is not noted which these are.
static std::optional<Order> orderOfValues(ArrayRef<bool> isIndexed, int64_t rank) {
  auto isSet = [](bool indexed) { return indexed; };
  const auto first = find_if(isIndexed, isSet);
  const auto past = find_if_not(llvm::make_range(first, isIndexed.end()), isSet);
  Order order = to_vector(seq<int64_t>(0, rank));
  if (first == isIndexed.begin() || std::any_of(past, isIndexed.end(), isSet))
    return order;
  if (rank != 2)
    return std::nullopt;
  std::swap(order[0], order[1]);
  return order;
}

static Order exchange(int64_t rank, int64_t left, int64_t right) {
  Order order = to_vector(seq<int64_t>(0, rank));
  std::swap(order[left], order[right]);
  return order;
}

/// The order in which the exporter hands dimensions to the operand of a node; nullopt: nothing tells.
static std::optional<Order> findOrderAt(const InitializerUse &use, int64_t rank) {
  const StringRef type = use.node->op_type();
  if (std::optional<SmallVector<bool>> isIndexed = findProgramIndices(*use.node)) {
    if (use.operand == 0 && (type == "GatherND" || type == "ScatterND"))
      return bringToFront(*isIndexed, rank);
    if ((use.operand == 2 && type == "ScatterND") || (use.operand == 0 && type == "Expand"))
      return orderOfValues(*isIndexed, rank);
    return std::nullopt;
  }
  if (std::optional<std::pair<int64_t, int64_t>> dims = findProgramDiagonal(*use.node, rank)) {
    Order order = to_vector(make_filter_range(seq<int64_t>(0, rank),
                                              [&](int64_t dim) { return dim != dims->first && dim != dims->second; }));
    order.append({dims->first, dims->second});
    return order;
  }
  if (std::optional<int64_t> dim = findProgramSlicedDim(*use.node, rank);
      dim && type == "ScatterND" && use.operand != 1)
    return exchange(rank, 0, *dim);
  return std::nullopt;
}

std::optional<Order> lowtide::findFoldedOrder(const TensorFacts &facts, const Signature &signature) {
  const int64_t rank = facts.tensor->dims_size();
  const StringRef last = facts.tensor->name();
  if (facts.foldedFrom.empty() || rank < 2)
    return std::nullopt;
  Order order = to_vector(seq<int64_t>(0, rank));
  auto follow = [&](StringRef name) {
    if (signature.findTarget(name) || operationName(name) == "val" ||
        is_contained({"clone", "contiguous", "alias", "detach", "lift_fresh_copy"}, operationName(name)))
      return true;
    if (rank != 2 || !turnsDimensions(name))
      return false;
    std::swap(order[0], order[1]);
    return true;
  };
  if (!all_of(facts.foldedFrom, follow) || !follow(last))
    return std::nullopt;
  if (operationName(last) != "val")
    return order;

  std::optional<Order> handed;
  for (const InitializerUse &use : facts.uses) {
    std::optional<Order> here = findOrderAt(use, rank);
    if (!here || (handed && handed != here))
      return std::nullopt;
    handed = here;
  }
  if (!handed)
    return std::nullopt;
  return to_vector(map_range(*handed, [&](int64_t dim) { return order[dim]; }));
}

std::optional<Order> lowtide::assumeFoldedOrder(const TensorFacts &facts) {
  const int64_t rank = facts.tensor->dims_size();
  const bool isProduct = !facts.uses.empty() && all_of(facts.uses, [](const InitializerUse &use) {
    return StringRef(use.node->op_type()) == "MatMul";
  });
  if (rank < 3 || facts.foldedFrom.size() != 1 || operationName(facts.tensor->name()) != "transpose" || !isProduct)
    return std::nullopt;
  return exchange(rank, rank - 2, rank - 1);
}
