// nn: values that meet at positions which a tensor of indices names. Sums that start from zeros are in Indexing.td.
#ifndef LOWTIDE_NN_SCATTER
#define LOWTIDE_NN_SCATTER

include "lowtide/Dialect/NN/NNBase.td"
include "lowtide/Interfaces/MeetingInterface.td"

def NN_ScatterKind : I32EnumAttr<"ScatterKind", "what becomes of values that meet", [
    I32EnumAttrCase<"set", 0>, I32EnumAttrCase<"mul", 1>, I32EnumAttrCase<"max", 2>, I32EnumAttrCase<"min", 3>,
    I32EnumAttrCase<"add", 4>]> {
  let cppNamespace = "::lowtide::nn";
}

// Updates that land in one place meet x's value there, one after the other in row-major order. Largest and smallest take
// 16-bit floats as they are; products and sums are made in f32.
class NN_Scatter<string mnemonic, string rule>
    : NN_Op<mnemonic, [DeclareOpInterfaceMethods<ElementInterface>, DeclareOpInterfaceMethods<DifferentiableInterface>,
                       DeclareOpInterfaceMethods<ScatterInterface>, DeclareOpInterfaceMethods<MeetingInterface>]> {
  let family = "Indexing";
  let split = rule;
  let operandPrecision = "::lowtide::nn::isArithmetic(getKind()) ? High : Follow";
  let flops = [{ return ::lowtide::nn::countElements(getUpdates().getType()); }];
  let onnx = "ScatterElements";
  let arguments = (ins NN_ScatterKind:$kind, NN_Tensor:$x, NN_IntTensor:$indices, NN_Tensor:$updates, I64Attr:$axis);
  let results = (outs NN_Tensor:$y);
  let hasVerifier = 1;
  let assemblyFormat = "$kind $updates `into` $x `[` $indices `]` `axis` `=` $axis attr-dict `:` functional-type(operands, results)";
  let definitions = [{
    unsigned $cppClass::getUpdatesOperand() { return 2; }
    unsigned $cppClass::getInitialOperand() { return 0; }
    ::mlir::Value $cppClass::emitCombine(::lowtide::ScalarBuilder &b, ::mlir::Value there, ::mlir::Value update) {
      return ::lowtide::nn::emitMeeting(b, getKind(), there, update, ::lowtide::nn::isUnsignedElement(getX()));
    }
  }];
}

def NN_ScatterOp : NN_Scatter<"scatter", "Scatter"> {
  let summary = "x, where updates[a…, i…, b…] meets y[a…, indices[i…], b…]: the largest, the smallest, the product, the sum, or the last";
  let description = [{
    Cotangents of largest and smallest values are shared evenly among all that equal the result, x's own value included, as
    PyTorch's scatter_reduce does. Of `set`, every update gets the cotangent of its place, as PyTorch's scatter does.
  }];
}

def NN_ScatterElementsOp : NN_Scatter<"scatter_elements", "ScatterElements"> {
  let summary = "x, where updates[i] meets y[i with indices[i] at `axis`]: see nn.scatter";
}

#endif
