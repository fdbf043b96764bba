// nn: losses whose derivative must not save what it can compute; and attention, which shares the reason.
#ifndef LOWTIDE_NN_LOSS
#define LOWTIDE_NN_LOSS

include "lowtide/Dialect/NN/Normalization.td"

def NN_SoftmaxCrossEntropyOp : NN_Composite<"softmax_cross_entropy"> {
  let split = "CrossEntropy";
  let summary = "per-sample cross-entropy of logits [N, C, d…] with integer labels [N, d…]";
  let description = [{
    loss = weights[label] · (lse - logits[label]), 0 where the label is `ignore_index`; lse is the logarithm of the sum
    of exp(logits) over dimension 1. Sums and means over samples are written around it.
  }];
  let family = "Loss";
  let batch = "Pointwise";
  let flops = [{ return 16 * ::lowtide::nn::countElements(getLogits().getType()); }];
  let onnx = "SoftmaxCrossEntropyLoss";
  let arguments = (ins NN_FloatTensor:$logits, NN_IntTensor:$labels, Optional<NN_FloatTensor>:$weights,
                       OptionalAttr<I64Attr>:$ignore_index);
  let results = (outs NN_FloatTensor:$loss, NN_FloatTensor:$lse);
  let assemblyFormat = [{
    $logits `,` $labels (`weights` $weights^)? (`ignore_index` `=` $ignore_index^)? attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def NN_AttentionOp : NN_Composite<"attention"> {
  let split = "Attention";
  let summary = "softmax(scale · q kᵀ + mask) v for each head";
  let description = [{
    q: [B, H, T, D]; k: [B, K, S, D]; v: [B, K, S, E], H a multiple of K: heads h · H/K … share key head h.
    mask is added to the scores; each of its 4 dimensions is 1 or as in [B, H, T, S]. `causal` lets row t see columns ≤ t.
    o: [B, H, T, E]; lse: [B, H, T], the logarithm of each row's sum, from which the derivative recomputes the
    probabilities. With q, k, v and o of 16 bits, scores and probabilities are rounded to their type, everything between
    the products is f32, and lse is f32.
  }];
  let family = "Attention";
  let precision = "Low";
  let operandPrecision = "i < 3 ? Low : High";
  let resultPrecision = "i == 0 ? Low : High";
  let batch = "Pointwise";
  let flops = [{ return ::lowtide::nn::attentionFlops(*this); }];
  let onnx = "Attention";
  let arguments = (ins NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v, Optional<NN_FloatTensor>:$mask,
                       F64Attr:$scale, UnitAttr:$causal);
  let results = (outs NN_FloatTensor:$o, NN_FloatTensor:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`mask` $mask^)? `scale` `=` $scale (`causal` $causal^)? attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif
