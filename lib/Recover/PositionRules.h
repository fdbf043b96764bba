//===- PositionRules.h - how models number pairs of positions --------------------===//

#ifndef LOWTIDE_LIB_RECOVER_POSITIONRULES_H
#define LOWTIDE_LIB_RECOVER_POSITIONRULES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <vector>

namespace lowtide {

/// `rows` says for each position (row-major in `dims`) which of `numRows` rows it reads; -1: none. Where the positions
/// are pairs (query, key), and one of the rules by which models number such pairs makes the same pairs equal, rows are
/// renumbered as that rule does; unread numbers are left out. `name` is the table's, where it is known: it decides
/// between rules. Returns what such models call their table, empty if no rule was found.
llvm::StringRef orderRows(llvm::ArrayRef<int64_t> dims, std::vector<int64_t> &rows, int64_t numRows,
                          llvm::StringRef name);

/// The rows of a table of relative positions called `name` that the side × side pairs (query, key) read by the rule of
/// the models that call theirs so, and their number in `numRows`; empty: no rule has that name.
std::vector<int64_t> numberPairs(int64_t side, llvm::StringRef name, int64_t &numRows);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_POSITIONRULES_H
