//===- StateDictionary.h - what the exporting module saves -----------------------===//

#ifndef LOWTIDE_RECOVER_STATEDICTIONARY_H
#define LOWTIDE_RECOVER_STATEDICTIONARY_H

#include "lowtide/Recover/ModelView.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace lowtide {

/// Module attribute: entries of the exporting module's `state_dict()` that are neither parameters nor states of the
/// step, one dictionary each:
///   name                       a constant tensor that the model takes as an argument
///   name, value                a constant that became part of the text
///   name, value, follows       a counter: from `value` on, it counts how often the step updates the state `follows`
inline constexpr llvm::StringLiteral savedAttrName = "onnx.saved";

/// The entries, as far as the file holds them; warns about those that it does not hold.
mlir::ArrayAttr listSavedConstants(ModelView &model, llvm::ArrayRef<InitializerInfo> infos, mlir::MLIRContext *context);

} // namespace lowtide

#endif // LOWTIDE_RECOVER_STATEDICTIONARY_H
