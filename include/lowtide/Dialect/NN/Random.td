// nn: random numbers that depend on nothing but seed, step, op and the sample's global row.
#ifndef LOWTIDE_NN_RANDOM
#define LOWTIDE_NN_RANDOM

include "lowtide/Dialect/NN/NNBase.td"

def NN_RandomUniformOp : NN_Op<"random_uniform", [DeclareOpInterfaceMethods<ElementInterface>]> {
  let split = "Random";
  let summary = "uniform numbers in [0, 1), multiples of 2^-24";
  let description = [{
    Philox4x32-10 (Salmon et al., SC 2011), first word; key = seed, counter = (element, step, op_id). The element's
    number is (row + index in batch_dim) · elements per row + position in the row, so that a batch split in two draws
    what the whole batch would. batch_dim -1: no dimension counts samples.
  }];
  let family = "Random";
  let batch = "Pointwise";
  let flopsPerElement = 80;
  let onnx = "Dropout,RandomUniformLike,Bernoulli";
  let arguments = (ins NN_IntTensor:$seed, NN_IntTensor:$step, NN_IntTensor:$row, I64Attr:$op_id, I64Attr:$batch_dim);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = [{
    $seed `,` $step `,` $row `op` `=` $op_id `batch_dim` `=` $batch_dim attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif
