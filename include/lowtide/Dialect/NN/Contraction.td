// nn: dense contractions.
#ifndef LOWTIDE_NN_CONTRACTION
#define LOWTIDE_NN_CONTRACTION

include "lowtide/Dialect/NN/NNBase.td"

def NN_DotOp : NN_Op<"dot", [DeclareOpInterfaceMethods<ElementInterface>,
    DeclareOpInterfaceMethods<DifferentiableInterface>, DeclareOpInterfaceMethods<LibraryCallInterface>]> {
  let split = "Dot";
  let summary = "batched matrix product over the last two dimensions";
  let description = [{
    a: [B…, M, K], or [B…, K, M] with `transpose_a`; b: [B…, K, N], or [B…, N, K] with `transpose_b`; y: [B…, M, N].
    Leading dimensions are equal in a, b and y.
  }];
  let family = "Contraction";
  let precision = "Low";
  let batch = "Contract";
  let onnx = "MatMul,Gemm";
  let arguments = (ins NN_Tensor:$a, NN_Tensor:$b, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$a `,` $b attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let flops = [{ return ::lowtide::nn::dotFlops(*this); }];
}

#endif
