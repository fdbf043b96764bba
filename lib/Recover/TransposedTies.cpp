//===- TransposedTies.cpp - matrices that the file also holds transposed ---------===//

#include "Classifier.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/Hashing.h"

#include <cstring>
#include <map>

using namespace mlir;
using namespace lowtide;

/// Whether `a`, read by rows, equals `b`, read by columns; both are matrices of the same element type.
static bool isTransposeOf(ModelView &file, const InitializerInfo &a, const InitializerInfo &b) {
  std::optional<std::string> left = file.tryReadInitializer(a.tensor), right = file.tryReadInitializer(b.tensor);
  if (!left || !right || left->size() != right->size())
    return false;
  size_t rows = a.dims[0], columns = a.dims[1], width = findElementType(a.dataType)->bytes;
  for (size_t i = 0; i != rows; ++i)
    for (size_t j = 0; j != columns; ++j)
      if (std::memcmp(&(*left)[(i * columns + j) * width], &(*right)[(j * rows + i) * width], width) != 0)
        return false;
  return true;
}

/// Whether two matrices hold the same, element by element.
static bool areEqual(ModelView &file, const InitializerInfo &a, const InitializerInfo &b) {
  std::optional<std::string> left = file.tryReadInitializer(a.tensor);
  return left && a.dims == b.dims && left == file.tryReadInitializer(b.tensor);
}

/// A number that a matrix shares with its transpose.
static uint64_t sumOfElements(ModelView &file, const InitializerInfo &info) {
  std::string bytes = file.tryReadInitializer(info.tensor).value_or("");
  size_t width = findElementType(info.dataType)->bytes;
  uint64_t sum = 0;
  for (size_t at = 0; at + width <= bytes.size(); at += width)
    sum += llvm::hash_value(StringRef(&bytes[at], width));
  return sum;
}

void lowtide::findTransposedTies(ModelView &file, std::vector<InitializerInfo> &infos) {
  std::map<std::pair<int64_t, int64_t>, SmallVector<size_t>> byShape;
  auto isMatrix = [&](const InitializerInfo &info) {
    return info.role == InitializerRole::Parameter && info.dims.size() == 2 && info.dims[0] > 1 && info.dims[1] > 1 &&
           findElementType(info.dataType)->bytes;
  };
  // Data in other files are large, and read where a name tells that the exporter evaluated the matrix.
  auto mayBeView = [&](const InitializerInfo &info) {
    return isMatrix(info) && !info.viewOf && (file.isEmbedded(info.tensor) || isInventedName(info.tensor));
  };
  for (auto [i, info] : llvm::enumerate(infos))
    if (isMatrix(info))
      byShape[{info.dims[0], info.dims[1]}].push_back(i);
  std::map<size_t, uint64_t> sums;
  auto sumOf = [&](size_t i) {
    auto [at, isNew] = sums.try_emplace(i, 0);
    if (isNew)
      at->second = sumOfElements(file, infos[i]);
    return at->second;
  };
  // A cleaner that transposes a transposed matrix again leaves the tie's own numbers.
  for (auto [i, folded] : llvm::enumerate(infos)) {
    if (!mayBeView(folded) || !isInventedName(folded.tensor) || !folded.transposed.empty())
      continue;
    for (size_t j : byShape[{folded.dims[0], folded.dims[1]}]) {
      const InitializerInfo &whole = infos[j];
      if (whole.viewOf || isInventedName(whole.tensor) || !whole.transposed.empty() ||
          whole.dataType != folded.dataType || sumOf(i) != sumOf(j) ||
          isConstantValued(file, *file.findInitializer(whole.tensor)).value_or(true) || !areEqual(file, folded, whole))
        continue;
      folded.viewOf = j;
      folded.transposed = {0, 1};
      folded.certainty = Certainty::Inferred;
      folded.reason = {RoleReason::SameValues, {whole.name}};
      break;
    }
  }
  for (auto [i, folded] : llvm::enumerate(infos)) {
    if (!mayBeView(folded))
      continue;
    auto others = byShape.find({folded.dims[1], folded.dims[0]});
    if (others == byShape.end())
      continue;
    for (size_t j : others->second) {
      const InitializerInfo &whole = infos[j];
      // Of two that nothing tells apart, the first is the parameter.
      if (i == j || whole.viewOf || !whole.transposed.empty() || (folded.transposed.empty() && j > i) ||
          whole.tensor == folded.tensor || whole.dataType != folded.dataType || sumOf(i) != sumOf(j) ||
          isConstantValued(file, *file.findInitializer(whole.tensor)).value_or(true) ||
          !isTransposeOf(file, folded, whole))
        continue;
      // Two parameters that began as one symmetric matrix, an identity: a tie would be one tensor of one name.
      if (!isInventedName(folded.tensor) && !isInventedName(whole.tensor) && areEqual(file, folded, whole))
        continue;
      folded.viewOf = j;
      folded.transposed = {1, 0};
      folded.sourceShape = SmallVector<int64_t>{folded.dims[1], folded.dims[0]};
      folded.certainty = Certainty::Inferred;
      folded.reason = {RoleReason::TransposedValues, {whole.name}};
      break;
    }
  }
}
