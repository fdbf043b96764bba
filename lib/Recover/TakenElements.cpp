//===- TakenElements.cpp - operations that take elements by their places -----------===//

#include "TakenElements.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <algorithm>
#include <numeric>

using namespace llvm;
using namespace lowtide;

/// How many rows at each end of a table a first token may be.
static constexpr int64_t likelyRows = 32;

int64_t lowtide::countTakenPlaces(StringRef name, const Numbers &of) {
  const int64_t size = sizeOf(of.dims), lengths = std::accumulate(of.dims.begin(), of.dims.end(), int64_t(0));
  if (name == "roll")
    return size * (size + lengths);
  if (name == "embedding")
    return of.dims.size() == 2 ? 2 * likelyRows * (of.dims[0] + of.dims[1]) : 0;
  return size * (name == "tril" || name == "triu" ? lengths : int64_t(of.dims.size()));
}

/// One row of a table for each sample, as a decoder's first token is: among the first and the last rows, where programs
/// keep such tokens. A row that the table holds twice tells nothing.
static void addRowForms(Forms &forms, unsigned operand, const Numbers &table, ArrayRef<int64_t> goal) {
  if (table.dims.size() != 2)
    return;
  const int64_t rows = table.dims[0], width = table.dims[1], samples = goal.empty() ? 1 : goal.front();
  auto rowAt = [&](int64_t row) { return ArrayRef(table.values).slice(size_t(row * width), size_t(width)); };
  std::vector<SmallVector<int64_t>> shapes{{samples, width}, {samples, 1, width}, {1, width}, {1, 1, width}, {width}};
  if (goal.size() > 2) {
    shapes.emplace_back(goal.drop_back());
    shapes.back().push_back(width);
  }
  for (int64_t row = 0; row != rows; ++row) {
    if (row == likelyRows)
      row = std::max(row, rows - likelyRows);
    if (any_of(seq<int64_t>(0, rows), [&](int64_t other) { return other != row && rowAt(other) == rowAt(row); }))
      continue;
    for (auto [i, dims] : enumerate(shapes)) {
      if (is_contained(ArrayRef(shapes).take_front(i), dims))
        continue;
      Step step{Step::Take, "Gather", {operand}};
      step.dims = dims;
      step.size = rows * width;
      for (int64_t at = 0, e = sizeOf(dims); at != e; ++at)
        step.axes.push_back(row * width + at % width);
      forms.push_back({step});
    }
  }
}

void lowtide::addTakeForms(Forms &forms, StringRef name, unsigned operand, const Numbers &of, ArrayRef<int64_t> goal) {
  if (name == "embedding")
    return addRowForms(forms, operand, of, goal);
  const ArrayRef<int64_t> dims(of.dims);
  const int64_t size = sizeOf(dims);
  auto add = [&](ArrayRef<int64_t> result, function_ref<int64_t(int64_t)> from) {
    Step step{Step::Take, "Gather", {operand}};
    step.dims.assign(result.begin(), result.end());
    for (int64_t at = 0, e = sizeOf(result); at != e; ++at)
      step.axes.push_back(from(at));
    step.size = size;
    forms.push_back({step});
  };
  if (name == "tril" || name == "triu") {
    if (dims.size() < 2)
      return;
    const int64_t rows = dims[dims.size() - 2], columns = dims.back();
    for (int64_t diagonal = 1 - rows; diagonal != columns; ++diagonal)
      add(dims, [&](int64_t at) {
        const int64_t distance = at % columns - at / columns % rows - diagonal;
        return (name == "tril" ? distance <= 0 : distance >= 0) ? at : -1;
      });
    return;
  }
  if (name == "roll") // over all, as one
    for (int64_t shift = 1; dims.size() != 1 && shift < size; ++shift)
      add(dims, [&](int64_t at) { return (at + size - shift) % size; });
  int64_t inner = 1;
  for (size_t axis = dims.size(); axis-- > 0; inner *= dims[axis]) {
    const int64_t length = dims[axis];
    auto move = [&](int64_t at, int64_t place) { return at + (place - at / inner % length) * inner; };
    if (name == "flip")
      add(dims, [&](int64_t at) { return move(at, length - 1 - at / inner % length); });
    for (int64_t shift = 1; name == "roll" && shift < length; ++shift)
      add(dims, [&](int64_t at) { return move(at, (at / inner + length - shift) % length); });
    SmallVector<int64_t> rest(dims);
    rest.erase(rest.begin() + ptrdiff_t(axis));
    for (int64_t place = 0; name == "select" && place != length; ++place)
      add(rest, [&](int64_t at) { return (at / inner * length + place) * inner + at % inner; });
  }
}
