//===- TakenElements.h - operations that take elements by their places --------------===//

#ifndef LOWTIDE_LIB_RECOVER_TAKENELEMENTS_H
#define LOWTIDE_LIB_RECOVER_TAKENELEMENTS_H

#include "Expressions.h"

namespace lowtide {

/// Ways to apply an operation, each in one step or two.
using Forms = std::vector<llvm::SmallVector<Step, 2>>;

/// How many places those of such an operation hold together.
int64_t countTakenPlaces(llvm::StringRef name, const Numbers &of);

/// Adds the ways in which `name` (`roll`, `flip`, `select`, `tril`, `triu`, `embedding`) may take elements of value
/// `operand`, whose numbers are `of`; `goal`: the dimensions of what is looked for.
void addTakeForms(Forms &forms, llvm::StringRef name, unsigned operand, const Numbers &of,
                  llvm::ArrayRef<int64_t> goal);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_TAKENELEMENTS_H
