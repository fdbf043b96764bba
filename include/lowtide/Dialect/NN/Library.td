// nn: forms of contractions that a vendor's library computes in one call.
#ifndef LOWTIDE_NN_LIBRARY
#define LOWTIDE_NN_LIBRARY

include "lowtide/Dialect/NN/NNBase.td"

def NN_DotEpilogueOp : NN_Op<"dot_epilogue", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<LibraryCallInterface>,
                                              DeclareOpInterfaceMethods<DecomposableInterface>]> {
  let summary = "matrix product with what a library adds to it and applies to it before it is written";
  let description = [{
    z = op(a) · op(b) + addend, operands as of `nn.dot`; `addend` has z's shape, or one value per column (then the product
    has no batch). y = f(z), where `epilogue` names f: "none", "relu", "gelu" (the tanh form), "dgelu": z times the
    derivative of that gelu at `input`, or "drelu": z where the bit of `input` is set, else 0. With two results the second
    is z, for derivatives the sums of y's columns; "bgrad" and "bgrad_a", which leave z as it is, bring those of op(b)'s
    columns and of op(a)'s rows. Of "relu" it may be the bits of z > 0 instead, the lowest of a byte first, each row filled up
    to a multiple of 128. Made by `nn-library-forms`, after differentiation; the generated path is its decomposition.
  }];
  let family = "Contraction";
  let precision = "Low";
  let batch = "Contract";
  let flops = [{ return ::lowtide::nn::dotEpilogueFlops(*this); }];
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b, Optional<NN_FloatTensor>:$addend,
                       Optional<NN_Tensor>:$input, StrAttr:$epilogue, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs NN_FloatTensor:$y, Optional<NN_Tensor>:$z);
  let assemblyFormat = [{
    $epilogue $a `,` $b (`addend` $addend^)? (`input` $input^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

// The forward op, nn.attention, is in Loss.td: whoever does not call a library has it, too.
def NN_AttentionGradOp : NN_Op<"attention_grad", [DeclareOpInterfaceMethods<LibraryCallInterface>,
                                                  DeclareOpInterfaceMethods<DecomposableInterface>]> {
  let summary = "cotangents of q, k and v of an nn.attention, given that of its o";
  let description = [{
    q, k, v, mask, scale and causal as the forward op has them, o and lse as it made them, grad_o the cotangent of o. The
    probabilities come from lse again, so that nothing of the size of the scores is kept. Stands for the derivative as
    simpler ops where nothing needs the cotangent of mask or gave one of lse, and where the target's library takes it
    (train-differentiate); its decomposition is that derivative.
  }];
  let family = "Attention";
  let precision = "Low";
  let operandPrecision = "i < 4 || i == 5 ? Low : High";
  let resultPrecision = "Low";
  let batch = "Pointwise";
  let split = "Attention";
  let flops = [{ return ::lowtide::nn::attentionGradFlops(*this); }];
  let arguments = (ins NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v, NN_FloatTensor:$o, NN_FloatTensor:$lse,
                       NN_FloatTensor:$grad_o, Optional<NN_FloatTensor>:$mask, F64Attr:$scale, UnitAttr:$causal);
  let results = (outs NN_FloatTensor:$dq, NN_FloatTensor:$dk, NN_FloatTensor:$dv);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $o `,` $lse `,` $grad_o (`mask` $mask^)? `scale` `=` $scale (`causal` $causal^)? attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif
