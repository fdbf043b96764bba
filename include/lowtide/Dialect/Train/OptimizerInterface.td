// What an optimizer op tells the pass that adds updates.
#ifndef LOWTIDE_TRAIN_OPTIMIZERINTERFACE
#define LOWTIDE_TRAIN_OPTIMIZERINTERFACE

include "mlir/IR/OpBase.td"

def OptimizerInterface : OpInterface<"OptimizerInterface"> {
  let description = [{
    An optimizer's update of one parameter. The static methods describe the optimizer before any op of it exists, so
    that a pass can build one by name.
  }];
  let cppNamespace = "::lowtide::train";
  let methods = [
    StaticInterfaceMethod<"State tensors kept per parameter, in operand order.",
      "::llvm::ArrayRef<::lowtide::train::StateSlot>", "getSlots", (ins)>,
    StaticInterfaceMethod<"Numbers that the user may set, in attribute order.",
      "::llvm::ArrayRef<::lowtide::train::OptimizerOption>", "getOptions", (ins)>,
    InterfaceMethod<"What this update does to rows of its parameter whose gradient is zero.",
      "::lowtide::train::RowRule", "getRowRule", (ins)>,
    InterfaceMethod<"The value of an option on this update; it is declared by the record.",
      "double", "getOption", (ins "::llvm::StringRef":$name), [{}],
      [{ return ::llvm::cast<::mlir::FloatAttr>($_op->getAttr(name)).getValueAsDouble(); }]>,
  ];
}

#endif
