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
    StaticInterfaceMethod<"State tensors kept for a parameter under these options, in operand order; an option that is not there has its default.",
      "::llvm::SmallVector<::lowtide::train::StateSlot>", "listSlots",
      (ins "const ::std::map<::std::string, double> &":$options, "const ::lowtide::train::ParamShape &":$shape)>,
    StaticInterfaceMethod<"Numbers that the user may set, in attribute order.",
      "::llvm::ArrayRef<::lowtide::train::OptimizerOption>", "getOptions", (ins)>,
    StaticInterfaceMethod<"What it is apart from its arithmetic.",
      "::lowtide::train::OptimizerTraits", "getTraits", (ins)>,
    InterfaceMethod<"What this update does to rows of its parameter whose gradient is zero.",
      "::lowtide::train::RowRule", "getRowRule", (ins)>,
    InterfaceMethod<"The value of an option on this update; it is declared by the record. A switch that is off may be absent.",
      "double", "getOption", (ins "::llvm::StringRef":$name), [{}], [{
        auto value = ::llvm::cast_if_present<::mlir::FloatAttr>($_op->getAttr(name));
        return value ? value.getValueAsDouble() : 0.0;
      }]>,
  ];
}

def GradientsInterface : OpInterface<"GradientsInterface"> {
  let description = [{
    An op between the gradients of a step and its updates that changes each gradient element by element: result i is
    gradient i, changed. Its further operands are numbers for all gradients, its further results are of all of them.
  }];
  let cppNamespace = "::lowtide::train";
  let methods = [
    InterfaceMethod<"The gradients, the first operands.", "::mlir::OperandRange", "getGradients", (ins), [{}],
      [{ return $_op.getGrads(); }]>,
  ];
}

#endif
