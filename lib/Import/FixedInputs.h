//===- FixedInputs.h - inputs that the user gives a value for good ---------------===//

#ifndef LOWTIDE_LIB_IMPORT_FIXEDINPUTS_H
#define LOWTIDE_LIB_IMPORT_FIXEDINPUTS_H

#include "lowtide/Import/Import.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace lowtide {

/// Fails, with an error, where `--set` names what is no input of the model.
llvm::LogicalResult checkFixedInputs(OnnxFile &file, const ImportOptions &options);

/// `text` (a number, `true` or `false`) in every element of `type`; fails, with an error, where that holds no such
/// value.
mlir::FailureOr<mlir::DenseElementsAttr> buildFixedInput(OnnxFile &file, llvm::StringRef input, llvm::StringRef text,
                                                         mlir::RankedTensorType type);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_FIXEDINPUTS_H
