// nn: positions of extrema, running sums.
#ifndef LOWTIDE_NN_ORDERING
#define LOWTIDE_NN_ORDERING

include "lowtide/Dialect/NN/NNBase.td"

class NN_ArgExtremum<string mnemonic> : NN_Op<mnemonic, [DeclareOpInterfaceMethods<ElementInterface>]> {
  let split = "Along";
  let family = "Reduction";
  let batch = "Contract";
  let flops = [{ return ::lowtide::nn::countElements(getX().getType()); }];
  let arguments = (ins NN_Tensor:$x, I64Attr:$dim, UnitAttr:$select_last);
  let results = (outs NN_IntTensor:$y);
  let assemblyFormat = "$x `dim` `=` $dim attr-dict `:` type($x) `->` type($y)";
  let hasVerifier = 1;
}
def NN_ArgMaxOp : NN_ArgExtremum<"argmax"> {
  let summary = "index of the first (or last) largest element along `dim`, which vanishes";
  let onnx = "ArgMax";
}
def NN_ArgMinOp : NN_ArgExtremum<"argmin"> {
  let summary = "index of the first (or last) smallest element along `dim`, which vanishes";
  let onnx = "ArgMin";
}

def NN_CumSumOp : NN_Op<"cumsum", [DeclareOpInterfaceMethods<ElementInterface>,
    DeclareOpInterfaceMethods<DifferentiableInterface>, AllTypesMatch<["x", "y"]>]> {
  let split = "Along";
  let summary = "running sum along `dim`; `exclusive` leaves the element itself out, `reverse` runs from the end";
  let family = "Reduction";
  let precision = "High";
  let batch = "Couples";
  let onnx = "CumSum";
  let arguments = (ins NN_Tensor:$x, I64Attr:$dim, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x `dim` `=` $dim attr-dict `:` type($x)";
  let hasVerifier = 1;
}

#endif
