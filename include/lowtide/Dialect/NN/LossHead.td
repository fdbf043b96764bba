// nn: the loss of a classifier with many classes, without its logits.
#ifndef LOWTIDE_NN_LOSSHEAD
#define LOWTIDE_NN_LOSSHEAD

include "lowtide/Dialect/NN/NNBase.td"

// x: [N, C]; weight: [V, C], or [C, V] with `class_last`; bias: [V]; labels: [N], integers.
class NN_LossHead<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat(traits, [DeclareOpInterfaceMethods<DecomposableInterface>,
                                           DeclareOpInterfaceMethods<RowsInterface>])> {
  let family = "Loss";
  let precision = "Low";
  let batch = "Pointwise";
  let split = "LossHead";
  let hasVerifier = 1;
}

def NN_LinearCrossEntropyOp : NN_LossHead<"linear_cross_entropy",
    [DeclareOpInterfaceMethods<DifferentiableInterface>]> {
  let summary = "per-sample cross-entropy of the logits x · weightᵀ + bias with integer labels";
  let description = [{
    The logits are as large as N · V and are no result, so that the op can be computed for some rows after others
    (`train-chunk-loss-head`). The loss is 0 where the label is `ignore_index`; it may be wider than x and weight, and the
    logits are computed in its type. lse: the logarithm of the sum of exp(logits) over the classes, whatever the label; with
    sums of logits, which are products with sums of weights, it makes label smoothing.
  }];
  let flops = [{ return ::lowtide::nn::lossHeadFlops(getOperation(), 1); }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$weight, Optional<NN_FloatTensor>:$bias, NN_IntTensor:$labels,
                       UnitAttr:$class_last, OptionalAttr<I64Attr>:$ignore_index);
  let results = (outs NN_FloatTensor:$loss, NN_FloatTensor:$lse);
  let assemblyFormat = [{
    $x `,` $weight (`bias` $bias^)? `labels` $labels (`class_last` $class_last^)? (`ignore_index` `=` $ignore_index^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

def NN_LinearCrossEntropyGradOp : NN_LossHead<"linear_cross_entropy_grad", [AttrSizedOperandSegments]> {
  let summary = "linear_cross_entropy and the cotangents of its operands, given those of its results";
  let description = [{
    Without `dlse` nothing that was differentiated reads lse. dweight and dbias are sums over rows, added up tile after tile: `tile` rows at a time (it divides N; 0: all at once),
    starting from `weight_sum` and `bias_sum` where they are given. Bits do not depend on how many rows are computed
    together as long as they are whole tiles. Both may be f32 where weight and bias have 16 bits, so that loops can add up.
  }];
  // Cotangents and sums of them stay f32; dx is what x is.
  let operandPrecision = "i < (getBias() ? 3u : 2u) ? Low : High";
  let resultPrecision = "i == 2 ? Low : High";
  let flops = [{ return ::lowtide::nn::lossHeadFlops(getOperation(), 3); }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$weight, Optional<NN_FloatTensor>:$bias, NN_IntTensor:$labels,
                       NN_FloatTensor:$dloss, Optional<NN_FloatTensor>:$dlse,
                       Optional<NN_FloatTensor>:$weight_sum, Optional<NN_FloatTensor>:$bias_sum,
                       UnitAttr:$class_last, OptionalAttr<I64Attr>:$ignore_index,
                       DefaultValuedAttr<I64Attr, "0">:$tile);
  let results = (outs NN_FloatTensor:$loss, NN_FloatTensor:$lse, NN_FloatTensor:$dx, NN_FloatTensor:$dweight,
                      Optional<NN_FloatTensor>:$dbias);
  let assemblyFormat = [{
    $x `,` $weight (`bias` $bias^)? `labels` $labels `dloss` $dloss (`dlse` $dlse^)? (`onto` $weight_sum^)? (`bias_onto` $bias_sum^)?
    (`class_last` $class_last^)? (`ignore_index` `=` $ignore_index^)? (`tile` `=` $tile^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

#endif
