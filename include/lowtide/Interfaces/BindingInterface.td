// What a step's arguments and results are bound to, as analyses and passes may ask it.
#ifndef LOWTIDE_INTERFACES_BINDINGINTERFACE
#define LOWTIDE_INTERFACES_BINDINGINTERFACE

include "mlir/IR/Interfaces.td"

def BindingInterface : AttrInterface<"BindingInterface"> {
  let description = [{The binding of an argument or result of a step (attribute `train.binding`).}];
  let cppNamespace = "::lowtide";
  let methods = [
    InterfaceMethod<"Name of what it is bound to.", "::mlir::StringAttr", "getName", (ins)>,
    InterfaceMethod<"What it is bound to.", "::lowtide::BindingKind", "getBindingKind", (ins)>,
    InterfaceMethod<"State without a file: the value of every element before the first step.", "double",
      "getInitialValue", (ins), [{}], [{ return 0.0; }]>,
    InterfaceMethod<"Whether the first bytes are in the model file.", "bool", "isFromFile", (ins), [{}], [{
      return $_attr.getBindingKind() == ::lowtide::BindingKind::Param ||
             $_attr.getBindingKind() == ::lowtide::BindingKind::Constant;
    }]>,
    InterfaceMethod<"State that a step leaves for an update which the next one makes: part of no checkpoint.", "bool",
      "isPending", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<"Dimension that counts samples; -1 when none does.", "int64_t", "getBatchDim", (ins), [{}],
      [{ return -1; }]>,
  ];
}

#endif
