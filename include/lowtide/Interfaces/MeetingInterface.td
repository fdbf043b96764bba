// What a scatter does beyond adding to zeros. Few files ask: OpInterfaces.td has what all of them do.
#ifndef LOWTIDE_INTERFACES_MEETING
#define LOWTIDE_INTERFACES_MEETING

include "mlir/IR/OpBase.td"

def MeetingInterface : OpInterface<"MeetingInterface"> {
  let description = [{
    A ScatterInterface whose result starts as one of its operands, and whose updates meet what is there in another way
    than by addition, one after the other in the updates' row-major order.
  }];
  let cppNamespace = "::lowtide";
  let methods = [
    InterfaceMethod<"Number of the operand that the result starts as; it has the result's type.", "unsigned",
      "getInitialOperand", (ins)>,
    InterfaceMethod<"Emits what is at a place after `update` has met `there`, scalars of one type.", "::mlir::Value",
      "emitCombine", (ins "::lowtide::ScalarBuilder &":$builder, "::mlir::Value":$there, "::mlir::Value":$update)>,
  ];
}

#endif
