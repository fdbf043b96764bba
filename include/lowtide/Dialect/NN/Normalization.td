// nn: softmax and the normalizations, defined by their decomposition.
#ifndef LOWTIDE_NN_NORMALIZATION
#define LOWTIDE_NN_NORMALIZATION

include "lowtide/Dialect/NN/NNBase.td"

// An op whose meaning is an expression of simpler ones; the derivative saves little and is an expression too.
class NN_Composite<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat(traits, [DeclareOpInterfaceMethods<DecomposableInterface>,
                                           DeclareOpInterfaceMethods<DifferentiableInterface>])> {
  let precision = "High";
}

class NN_SoftmaxLike<string mnemonic> : NN_Composite<mnemonic, [AllTypesMatch<["x", "y"]>]> {
  let split = "Along";
  let family = "Normalization";
  let batch = "Pointwise";
  let flopsPerElement = 16;
  let arguments = (ins NN_FloatTensor:$x, I64Attr:$dim);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x `dim` `=` $dim attr-dict `:` type($x)";
  let hasVerifier = 1;
}
def NN_SoftmaxOp : NN_SoftmaxLike<"softmax"> {
  let summary = "exp(x) divided by its sum along `dim`";
  let onnx = "Softmax";
}
def NN_LogSoftmaxOp : NN_SoftmaxLike<"log_softmax"> {
  let summary = "x minus the logarithm of the sum of exp(x) along `dim`";
  let resultPrecision = "High";
  let onnx = "LogSoftmax";
}

def NN_LayerNormOp : NN_Composite<"layer_norm", [AllTypesMatch<["x", "y"]>]> {
  let split = "Normalization";
  let summary = "(x - mean) · rstd · scale + bias over the dimensions from `axis` on";
  let description = [{
    scale and bias have the shape of x from `axis` on; mean and rstd = 1/√(variance + epsilon) the shape before it.
  }];
  let family = "Normalization";
  let resultPrecision = "i == 0 ? Follow : High";
  let batch = "Pointwise";
  let flopsPerElement = 8;
  let onnx = "LayerNormalization";
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$scale, NN_FloatTensor:$bias, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs NN_FloatTensor:$y, NN_FloatTensor:$mean, NN_FloatTensor:$rstd);
  let assemblyFormat = [{
    $x `,` $scale `,` $bias `axis` `=` $axis `epsilon` `=` $epsilon attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def NN_RMSNormOp : NN_Composite<"rms_norm", [AllTypesMatch<["x", "y"]>]> {
  let split = "Normalization";
  let summary = "x · rstd · scale over the dimensions from `axis` on; rstd = 1/√(mean of squares + epsilon)";
  let family = "Normalization";
  let resultPrecision = "i == 0 ? Follow : High";
  let batch = "Pointwise";
  let flopsPerElement = 5;
  let onnx = "RMSNormalization,com.microsoft.SimplifiedLayerNormalization";
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$scale, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs NN_FloatTensor:$y, NN_FloatTensor:$rstd);
  let assemblyFormat = [{
    $x `,` $scale `axis` `=` $axis `epsilon` `=` $epsilon attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def NN_BatchNormOp : NN_Composite<"batch_norm", [AllTypesMatch<["x", "y"]>]> {
  let split = "BatchNorm";
  let summary = "normalization of each channel (dimension 1) by the statistics of this batch";
  let description = [{
    y = (x - mean) / √(variance + epsilon) · scale + bias; mean and variance (divided by n, not n - 1) of all elements of
    a channel are results, from which the caller updates running statistics.
  }];
  let family = "Normalization";
  let resultPrecision = "i == 0 ? Follow : High";
  let batch = "Couples";
  let flopsPerElement = 8;
  let onnx = "BatchNormalization";
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$scale, NN_FloatTensor:$bias, F64Attr:$epsilon);
  let results = (outs NN_FloatTensor:$y, NN_FloatTensor:$mean, NN_FloatTensor:$variance);
  let assemblyFormat = [{
    $x `,` $scale `,` $bias `epsilon` `=` $epsilon attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def NN_BatchNormGradOp : NN_Op<"batch_norm_grad", [DeclareOpInterfaceMethods<DecomposableInterface>,
    AllTypesMatch<["x", "dy", "dx"]>, AllTypesMatch<["scale", "mean", "variance", "dscale", "dbias"]>]> {
  let summary = "cotangents of batch_norm's operands, given that of y";
  let description = [{
    An op of its own so that a step on parts of a batch can keep to the statistics of each part.
  }];
  let split = "BatchNormGrad";
  let family = "Normalization";
  let precision = "High";
  let batch = "Couples";
  let flops = [{ return 12 * ::lowtide::nn::countElements(getX().getType()); }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$dy, NN_FloatTensor:$scale, NN_FloatTensor:$mean,
                       NN_FloatTensor:$variance, F64Attr:$epsilon);
  let results = (outs NN_FloatTensor:$dx, NN_FloatTensor:$dscale, NN_FloatTensor:$dbias);
  let assemblyFormat = [{
    $x `,` $dy `,` $scale `,` $mean `,` $variance `epsilon` `=` $epsilon attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def NN_UnbiasedVarianceOp : NN_Op<"unbiased_variance", [DeclareOpInterfaceMethods<DecomposableInterface>,
    AllTypesMatch<["variance", "y"]>]> {
  let summary = "variance · n / (n - 1), for the n elements that each channel (dimension 1) of x has";
  let description = [{
    What batch_norm says of x, as running statistics keep it. An op of its own so that a step on parts of a batch counts the
    elements of each part. Of one element it is the variance itself.
  }];
  let split = "UnbiasedVariance";
  let family = "Normalization";
  let precision = "High";
  let batch = "Couples";
  let flops = [{ return ::lowtide::nn::countElements(getVariance().getType()); }];
  let arguments = (ins NN_FloatTensor:$variance, NN_FloatTensor:$x);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$variance `,` $x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif
