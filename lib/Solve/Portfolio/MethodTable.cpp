//===- MethodTable.cpp - the rows of all methods --------------------------===//
#include "../Methods/Method.h"
#include "lowtide/Solve/Portfolio/Methods.h"

#include <algorithm>

namespace lowtide::solve {

const std::vector<MethodRow> &listMethodRows() {
  static const std::vector<MethodRow> all = [] {
    std::vector<MethodRow> rows;
#define LOWTIDE_METHODS_OF(SOURCE)                                                                                     \
  for (const MethodRow &row : list##SOURCE##Rows())                                                                    \
    rows.push_back(row);
#include "lowtide/Solve/Methods.inc"
#undef LOWTIDE_METHODS_OF
    std::sort(rows.begin(), rows.end(), [](const MethodRow &a, const MethodRow &b) {
      return std::pair(a.rank, std::string_view(a.name)) < std::pair(b.rank, std::string_view(b.name));
    });
    return rows;
  }();
  return all;
}

std::vector<MethodName> listMethods() {
  std::vector<MethodName> names;
  for (const MethodRow &row : listMethodRows())
    names.push_back({row.name, row.summary});
  return names;
}

} // namespace lowtide::solve
