// nn: ops that move elements without computing.
#ifndef LOWTIDE_NN_MOVEMENT
#define LOWTIDE_NN_MOVEMENT

include "lowtide/Dialect/NN/NNBase.td"

class NN_Movement<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat(traits, [DeclareOpInterfaceMethods<ElementInterface>,
                                           DeclareOpInterfaceMethods<DifferentiableInterface>])> {
  let family = "Movement";
  let batch = "Movement";
  let flopsPerElement = 0;
}

def NN_ConstantOp : NN_Op<"constant", [ConstantLike, DeclareOpInterfaceMethods<ElementInterface>,
    AllTypesMatch<["value", "y"]>]> {
  let split = "Constant";
  let order = "Constant";
  let summary = "a small constant tensor (a splat, or few elements); weights never are constants";
  let family = "Constant";
  let batch = "Pointwise";
  let flopsPerElement = 0;
  let arguments = (ins ElementsAttr:$value);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def NN_BroadcastOp : NN_Movement<"broadcast"> {
  let split = "Broadcast";
  let order = "Broadcast";
  let summary = "repeats elements: dimension i of x becomes dimension dims[i] of y";
  let description = [{
    `dims` is strictly ascending; dimension i of x is 1 or equals dimension dims[i] of y. Derivative: sum over the
    repeated dimensions.
  }];
  let onnx = "Expand";
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$dims);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x `dims` `=` $dims attr-dict `:` type($x) `->` type($y)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_ReshapeOp : NN_Movement<"reshape"> {
  let split = "Reshape";
  let order = "Reshape";
  let summary = "the same elements in row-major order under another shape";
  let aliasing = "View";
  let onnx = "Reshape,Flatten,Squeeze,Unsqueeze";
  let arguments = (ins NN_Tensor:$x);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_TransposeOp : NN_Movement<"transpose"> {
  let split = "Transpose";
  let order = "Transpose";
  let summary = "permutes dimensions: dimension i of y is dimension permutation[i] of x";
  let onnx = "Transpose";
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x $permutation attr-dict `:` type($x) `->` type($y)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif
