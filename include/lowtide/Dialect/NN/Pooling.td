// nn: pooling over windows, and its derivatives.
#ifndef LOWTIDE_NN_POOLING
#define LOWTIDE_NN_POOLING

include "lowtide/Dialect/NN/NNBase.td"

// input: [N, C, d…]; output: [N, C, e…], e as for convolution; windows of extent `kernel`. `channels_last`: C is the last
// dimension of every tensor.
class NN_Pooling<string mnemonic, dag operands, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat(traits, [DeclareOpInterfaceMethods<ElementInterface>])> {
  let split = "Pooling";
  let order = "Windowed";
  let family = "Pooling";
  let batch = "Pointwise";
  let arguments = !con(operands, (ins DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
      DenseI64ArrayAttr:$pads_begin, DenseI64ArrayAttr:$pads_end, DenseI64ArrayAttr:$dilations,
      UnitAttr:$count_include_pad, UnitAttr:$channels_last));
  let hasVerifier = 1;
  let assemblyFormat = [{
    operands `kernel` `=` $kernel `strides` `=` $strides `pads` `=` $pads_begin `,` $pads_end `dilations` `=`
    $dilations attr-dict `:` functional-type(operands, results)
  }];
  let flops = [{ return ::lowtide::nn::poolingFlops(getOperation()); }];
}

def NN_MaxPoolOp : NN_Pooling<"max_pool", (ins NN_Tensor:$x), [DeclareOpInterfaceMethods<DifferentiableInterface>]> {
  let summary = "largest element of each window; padding does not count";
  let onnx = "MaxPool";
  let results = (outs NN_Tensor:$y);
}
def NN_MaxPoolGradOp : NN_Pooling<"max_pool_grad", (ins NN_FloatTensor:$x, NN_FloatTensor:$y, NN_FloatTensor:$dy),
    [AllTypesMatch<["x", "dx"]>]> {
  let summary = "cotangent of max_pool's operand: each window's goes to the first of its largest elements";
  let results = (outs NN_FloatTensor:$dx);
}
def NN_AvgPoolOp : NN_Pooling<"avg_pool", (ins NN_FloatTensor:$x), [DeclareOpInterfaceMethods<DifferentiableInterface>]> {
  let summary = "mean of each window, of its elements inside the input or (count_include_pad) of all of it";
  let onnx = "AveragePool";
  let results = (outs NN_FloatTensor:$y);
}
def NN_AvgPoolGradOp : NN_Pooling<"avg_pool_grad", (ins NN_FloatTensor:$dy),
    [DeclareOpInterfaceMethods<DifferentiableInterface>]> {
  let summary = "cotangent of avg_pool's operand: avg_pool transposed";
  let results = (outs NN_FloatTensor:$dx);
}

#endif
