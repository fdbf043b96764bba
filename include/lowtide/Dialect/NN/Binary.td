// nn: elementwise functions of two operands beyond the four operations; logic and bits.
#ifndef LOWTIDE_NN_BINARY
#define LOWTIDE_NN_BINARY

include "lowtide/Dialect/NN/NNBase.td"

// --- extrema and powers ---

// Ties share the cotangent equally, as PyTorch's maximum and minimum do.
def NN_MaxOp : NN_Binary<"max", "extremumGradient(a, b_, dy)", "extremumGradient(b_, a, dy)"> {
  let summary = "the larger; NaN if either is NaN";
  let onnx = "Max";
  let body = [{ return b.max(a, b_, isUnsignedElement(getA())); }];
}
def NN_MinOp : NN_Binary<"min", "extremumGradient(a, b_, dy, true)", "extremumGradient(b_, a, dy, true)"> {
  let summary = "the smaller; NaN if either is NaN";
  let onnx = "Min";
  let body = [{ return b.min(a, b_, isUnsignedElement(getA())); }];
}
def NN_PowOp : NN_Binary<"pow", "powBaseGradient(a, b_, y, dy)", "powExponentGradient(a, b_, y, dy)"> {
  let summary = "a to the power b";
  let onnx = "Pow";
  let precision = "High";
  let resultPrecision = "High";
  let flopsPerElement = 40;
  let body = [{ return b.pow(a, b_); }];
}

// --- remainders: a - y is a whole multiple of b ---

def NN_RemOp : NN_Binary<"rem", "dy", "-(dy * ((a - y) / b_))"> {
  let split = "Rem";
  let summary = "remainder with the sign of the dividend (fmod)";
  let onnx = "Mod";
  let flopsPerElement = 6;
  let body = [{ return b.rem(a, b_, isUnsignedElement(getA())); }];
}
def NN_ModOp : NN_Binary<"mod", "dy", "-(dy * ((a - y) / b_))"> {
  let summary = "remainder with the sign of the divisor";
  let onnx = "Mod";
  let flopsPerElement = 8;
  let body = [{
    bool isUnsigned = isUnsignedElement(getA());
    ::mlir::Value r = b.rem(a, b_, isUnsigned);
    if (isUnsigned)
      return r;
    ::mlir::Value wrongSide = b.logicalXor(b.compare(Compare::LT, r, 0.0), b.compare(Compare::LT, b_, 0.0));
    ::mlir::Value adjust = b.logicalAnd(b.compare(Compare::NE, r, 0.0), wrongSide);
    return b.select(adjust, b.add(r, b_), r);
  }];
}

// --- bits; on i1, logic ---

class NN_Bitwise<string mnemonic, string function> : NN_Binary<mnemonic, "", "", NN_IntTensor> {
  let body = "return b." # function # "(a, b_);";
}
def NN_AndOp : NN_Bitwise<"and", "logicalAnd"> {
  let summary = "bitwise and";
  let onnx = "And,BitwiseAnd";
}
def NN_OrOp : NN_Bitwise<"or", "logicalOr"> {
  let summary = "bitwise or";
  let onnx = "Or,BitwiseOr";
}
def NN_XorOp : NN_Bitwise<"xor", "logicalXor"> {
  let summary = "bitwise exclusive or";
  let onnx = "Xor,BitwiseXor";
}
def NN_NotOp : NN_Unary<"not", "", NN_IntTensor> {
  let summary = "bitwise complement";
  let onnx = "Not,BitwiseNot";
  let body = [{ return b.logicalNot(x); }];
}
def NN_ShiftLeftOp : NN_Bitwise<"shift_left", "shiftLeft"> {
  let summary = "a · 2^b, modulo the width; 0 when b is not below the width";
  let onnx = "BitShift";
}
def NN_ShiftRightOp : NN_Bitwise<"shift_right", "shiftRight"> {
  let summary = "the bits of a moved down by b, zeros above; 0 when b is not below the width";
  let onnx = "BitShift";
}

#endif
