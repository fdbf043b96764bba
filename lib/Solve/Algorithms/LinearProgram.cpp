//===- LinearProgram.cpp - what prices prove ------------------------------===//
#include "lowtide/Solve/Algorithms/LinearProgram.h"

#include <cmath>

namespace lowtide::solve {

void LinearRows::append(const LinearRows &other) {
  const int32_t first = int32_t(indices.size());
  rows.insert(rows.end(), other.rows.begin(), other.rows.end());
  indices.insert(indices.end(), other.indices.begin(), other.indices.end());
  entries.insert(entries.end(), other.entries.begin(), other.entries.end());
  for (size_t i = 1; i < other.starts.size(); ++i)
    starts.push_back(first + other.starts[i]);
}

double boundByPrices(const LinearProgram &program, const std::vector<double> &prices) {
  std::vector<double> reduced(program.columns.size());
  for (size_t j = 0; j < reduced.size(); ++j)
    reduced[j] = program.columns[j].cost;
  double bound = 0;
  for (size_t i = 0; i < program.rows.size(); ++i) {
    const double price = i < prices.size() ? prices[i] : 0;
    const double side = price > 0 ? program.rows[i].lower : program.rows[i].upper;
    // A price on a side that is not there says nothing.
    if (price == 0 || !std::isfinite(side) || !std::isfinite(price))
      continue;
    bound += price * side;
    for (int32_t at = program.starts[i]; at < program.starts[i + 1]; ++at)
      reduced[program.indices[at]] -= price * program.entries[at];
  }
  for (size_t j = 0; j < reduced.size(); ++j)
    bound += reduced[j] > 0 ? reduced[j] * program.columns[j].lower : reduced[j] * program.columns[j].upper;
  return bound;
}

} // namespace lowtide::solve
