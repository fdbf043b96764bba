// nn: activations that are records because their derivative needs the operand only.
#ifndef LOWTIDE_NN_ACTIVATION
#define LOWTIDE_NN_ACTIVATION

include "lowtide/Dialect/NN/NNBase.td"

class NN_Activation<string mnemonic, string derivative, int cost> : NN_Unary<mnemonic, derivative> {
  let precision = "High";
  let flopsPerElement = cost;
}

def NN_SigmoidOp : NN_Activation<"sigmoid", "dy * y * (1.0 - y)", 16> {
  let summary = "1 / (1 + exp(-x))";
  let onnx = "Sigmoid";
  let body = [{ return emitSigmoid(b, x); }];
}
def NN_GeluOp : NN_Activation<"gelu", "geluGradient(x, dy)", 24> {
  let summary = "x times the normal distribution function of x";
  let onnx = "Gelu,com.microsoft.Gelu";
  let body = [{
    return b.mul(b.mul(x, 0.5), b.add(b.erf(b.mul(x, 0.70710678118654752)), 1.0));
  }];
}
def NN_GeluTanhOp : NN_Activation<"gelu_tanh", "geluTanhGradient(x, dy)", 24> {
  let summary = "x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))";
  let onnx = "Gelu,com.microsoft.FastGelu";
  let body = [{
    ::mlir::Value cubic = b.mul(b.mul(b.mul(x, x), x), 0.044715);
    ::mlir::Value t = b.tanh(b.mul(b.add(x, cubic), 0.79788456080286536));
    return b.mul(b.mul(x, 0.5), b.add(t, 1.0));
  }];
}
def NN_SiluOp : NN_Activation<"silu", "siluGradient(x, dy)", 17> {
  let summary = "x · sigmoid(x)";
  let onnx = "Swish";
  let body = [{ return b.mul(x, emitSigmoid(b, x)); }];
}
def NN_SoftplusOp : NN_Activation<"softplus", "dy * sigmoid(x)", 32> {
  let summary = "log(1 + exp(x)), without overflow";
  let onnx = "Softplus";
  let body = [{
    ::mlir::Value zero = b.constant(x.getType(), 0.0);
    return b.add(b.max(x, zero), b.log1p(b.exp(b.neg(b.abs(x)))));
  }];
}
def NN_EluOp : NN_Activation<"elu", "eluGradient(x, dy, getAlpha().convertToDouble())", 16> {
  let summary = "x where positive, else alpha · (exp(x) - 1)";
  let onnx = "Elu";
  let arguments = (ins NN_FloatTensor:$x, DefaultValuedAttr<F64Attr, "1.0">:$alpha);
  let body = [{
    ::mlir::Value negative = b.mul(b.expm1(x), getAlpha().convertToDouble());
    return b.select(b.compare(Compare::GT, x, 0.0), x, negative);
  }];
}

#endif
