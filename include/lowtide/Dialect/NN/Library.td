// nn: forms of contractions that a vendor's library computes in one call.
#ifndef LOWTIDE_NN_LIBRARY
#define LOWTIDE_NN_LIBRARY

include "lowtide/Dialect/NN/NNBase.td"

def NN_DotEpilogueOp : NN_Op<"dot_epilogue", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<LibraryCallInterface>,
                                              DeclareOpInterfaceMethods<DecomposableInterface>]> {
  let summary = "matrix product with what a library adds to it and applies to it before it is written";
  let description = [{
    z = op(a) · op(b) + addend, operands as of `nn.dot`; `addend` has z's shape, or one value per column (then the product
    has no batch). y = f(z), where `epilogue` names f: "none", "relu", "gelu" (the tanh form), or "dgelu": z times the
    derivative of that gelu at `input`. With two results the second is z. Made by `nn-library-forms`, behind
    differentiation; the generated path is its decomposition.
  }];
  let family = "Contraction";
  let precision = "Low";
  let batch = "Contract";
  let flops = [{ return ::lowtide::nn::dotEpilogueFlops(*this); }];
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b, Optional<NN_FloatTensor>:$addend,
                       Optional<NN_FloatTensor>:$input, StrAttr:$epilogue, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs NN_FloatTensor:$y, Optional<NN_FloatTensor>:$z);
  let assemblyFormat = [{
    $epilogue $a `,` $b (`addend` $addend^)? (`input` $input^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif
