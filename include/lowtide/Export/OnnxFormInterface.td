// How an op is written as nodes of an ONNX model.
#ifndef LOWTIDE_EXPORT_ONNXFORMINTERFACE
#define LOWTIDE_EXPORT_ONNXFORMINTERFACE

include "mlir/IR/OpBase.td"

def OnnxFormInterface : OpInterface<"OnnxFormInterface"> {
  let description = [{
    The op as ONNX operators. Families attach it to the ops whose form is an operator of its own (lib/Export). An op
    without it is written by its decomposition or, element by element, by its element description.
  }];
  let cppNamespace = "::lowtide";
  let methods = [
    InterfaceMethod<"Writes nodes and sets every result that is used. Fails, without a diagnostic, for an instance that "
                    "the operators cannot express; then the op is written as if it had no form.",
      "::llvm::LogicalResult", "writeOnnx", (ins "::lowtide::FormBuilder &":$form)>,
  ];
}

#endif
