// nn: elementwise functions of one operand.
#ifndef LOWTIDE_NN_MATH
#define LOWTIDE_NN_MATH

include "lowtide/Dialect/NN/NNBase.td"

// A function of one float that the scalar vocabulary knows by name; 16-bit operands compute in f32.
class NN_MathFunction<string mnemonic, string text, string onnxName, int cost, string derivative, string function = mnemonic>
    : NN_Unary<mnemonic, derivative> {
  let summary = text;
  let onnx = onnxName;
  let precision = "High";
  // Its range is not bounded.
  let resultPrecision = "High";
  let flopsPerElement = cost;
  let body = "return b." # function # "(x);";
}

// The same of a function whose range is small: its result may be kept as its operand is.
class NN_BoundedFunction<string mnemonic, string text, string onnxName, int cost, string derivative>
    : NN_MathFunction<mnemonic, text, onnxName, cost, derivative> {
  let resultPrecision = "Follow";
}

// --- sign and rounding ---

def NN_AbsOp : NN_Unary<"abs", "dy * sign(x)", NN_Tensor> {
  let summary = "absolute value";
  let onnx = "Abs";
  let body = [{ return isUnsignedElement(getX()) ? x : b.abs(x); }];
}
def NN_SignOp : NN_Unary<"sign", "", NN_Tensor> {
  let summary = "-1, 0 or 1; NaN stays NaN";
  let onnx = "Sign";
  let flopsPerElement = 2;
  let body = [{
    ::mlir::Type type = x.getType();
    bool isUnsigned = isUnsignedElement(getX());
    ::mlir::Value nonPositive = isUnsigned ? x : b.select(b.compare(Compare::LT, x, 0.0), b.constant(type, -1.0), x);
    return b.select(b.compare(Compare::GT, x, b.constant(type, 0.0), isUnsigned), b.constant(type, 1.0), nonPositive);
  }];
}
def NN_FloorOp : NN_MathFunction<"floor", "largest integer not above x", "Floor", 1, "">;
def NN_CeilOp : NN_MathFunction<"ceil", "smallest integer not below x", "Ceil", 1, "">;
def NN_RoundOp : NN_MathFunction<"round", "nearest integer, halves to even", "Round", 1, "">;

// --- exponentials and roots ---

def NN_Expm1Op : NN_MathFunction<"expm1", "exp(x) - 1", "", 15, "dy * (y + 1.0)">;
def NN_Log1pOp : NN_MathFunction<"log1p", "log(1 + x)", "", 18, "dy / (x + 1.0)">;
def NN_SqrtOp : NN_MathFunction<"sqrt", "square root", "Sqrt", 4, "dy * 0.5 / y">;
def NN_RsqrtOp : NN_MathFunction<"rsqrt", "1 / sqrt(x)", "", 6, "dy * -0.5 * y * y * y">;
def NN_ReciprocalOp : NN_Unary<"reciprocal", "-(dy * y * y)"> {
  let summary = "1 / x";
  let onnx = "Reciprocal";
  let flopsPerElement = 4;
  let body = [{ return b.div(1.0, x); }];
}
def NN_ErfOp : NN_BoundedFunction<"erf", "error function", "Erf", 20, "dy * 1.1283791670955126 * exp(-(x * x))">;

// --- trigonometric and hyperbolic ---

def NN_SinOp : NN_BoundedFunction<"sin", "sine", "Sin", 15, "dy * cos(x)">;
def NN_CosOp : NN_BoundedFunction<"cos", "cosine", "Cos", 15, "-(dy * sin(x))">;
def NN_TanOp : NN_MathFunction<"tan", "tangent", "Tan", 20, "dy * (y * y + 1.0)">;
def NN_AsinOp : NN_BoundedFunction<"asin", "inverse sine", "Asin", 20, "dy * rsqrt(1.0 - x * x)">;
def NN_AcosOp : NN_BoundedFunction<"acos", "inverse cosine", "Acos", 20, "-(dy * rsqrt(1.0 - x * x))">;
def NN_AtanOp : NN_BoundedFunction<"atan", "inverse tangent", "Atan", 20, "dy / (x * x + 1.0)">;
def NN_SinhOp : NN_MathFunction<"sinh", "hyperbolic sine", "Sinh", 20, "dy * cosh(x)">;
def NN_CoshOp : NN_MathFunction<"cosh", "hyperbolic cosine", "Cosh", 20, "dy * sinh(x)">;
def NN_AsinhOp : NN_MathFunction<"asinh", "inverse hyperbolic sine", "Asinh", 20, "dy * rsqrt(x * x + 1.0)">;
def NN_AcoshOp : NN_MathFunction<"acosh", "inverse hyperbolic cosine", "Acosh", 20, "dy * rsqrt(x * x - 1.0)">;
def NN_AtanhOp : NN_MathFunction<"atanh", "inverse hyperbolic tangent", "Atanh", 20, "dy / (1.0 - x * x)">;

// --- tests ---

class NN_Test<string mnemonic, string function>
    : NN_Elementwise<mnemonic, ["x"], [], [SameOperandsAndResultShape]> {
  let arguments = (ins NN_FloatTensor:$x);
  let results = (outs NN_BoolTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  let body = "return b." # function # "(x);";
}
def NN_IsNaNOp : NN_Test<"is_nan", "isNaN"> {
  let summary = "whether x is NaN";
  let onnx = "IsNaN";
}
def NN_IsInfOp : NN_Test<"is_inf", "isInf"> {
  let summary = "whether x is infinite, of either sign";
  let onnx = "IsInf";
}

#endif
