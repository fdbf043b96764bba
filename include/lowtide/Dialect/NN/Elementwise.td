// nn: elementwise ops. One record states scalar body and derivative.
#ifndef LOWTIDE_NN_ELEMENTWISE
#define LOWTIDE_NN_ELEMENTWISE

include "lowtide/Dialect/NN/NNBase.td"

// --- arithmetic ---

def NN_AddOp : NN_Binary<"add", "dy", "dy"> {
  let split = "Additive";
  let summary = "sum";
  let onnx = "Add";
  let body = [{ return b.add(a, b_); }];
}
def NN_SubOp : NN_Binary<"sub", "dy", "-dy"> {
  let split = "Additive";
  let summary = "difference";
  let onnx = "Sub";
  let body = [{ return b.sub(a, b_); }];
}
def NN_MulOp : NN_Binary<"mul", "dy * b_", "dy * a"> {
  let summary = "product";
  let onnx = "Mul";
  let body = [{ return b.mul(a, b_); }];
}
def NN_DivOp : NN_Binary<"div", "dy / b_", "-(dy * y / b_)"> {
  let split = "Div";
  let summary = "quotient";
  let onnx = "Div";
  let flopsPerElement = 4;
  let body = [{ return b.div(a, b_, isUnsignedElement(getA())); }];
}
def NN_NegOp : NN_Unary<"neg", "-dy", NN_Tensor> {
  let split = "Additive";
  let summary = "negation";
  let onnx = "Neg";
  let body = [{ return b.neg(x); }];
}

// --- exponentials ---

def NN_ExpOp : NN_Unary<"exp", "dy * y"> {
  let summary = "natural exponential";
  let onnx = "Exp";
  let precision = "High";
  let resultPrecision = "High";
  let flopsPerElement = 12;
  let body = [{ return b.exp(x); }];
}
def NN_LogOp : NN_Unary<"log", "dy / x"> {
  let summary = "natural logarithm";
  let onnx = "Log";
  let precision = "High";
  let resultPrecision = "High";
  let flopsPerElement = 15;
  let body = [{ return b.log(x); }];
}
def NN_TanhOp : NN_Unary<"tanh", "dy * (1.0 - y * y)"> {
  let summary = "hyperbolic tangent";
  let onnx = "Tanh";
  let flopsPerElement = 15;
  let body = [{ return b.tanh(x); }];
}

// --- activations ---

def NN_ReluOp : NN_Unary<"relu", "select(greater(y, 0.0), dy, dy.like(0.0))"> {
  let summary = "max(x, 0); NaN stays NaN";
  let onnx = "Relu";
  let body = [{ return b.max(x, b.constant(x.getType(), 0.0)); }];
}

// --- comparison and choice ---

def NN_ComparePredicate : I32EnumAttr<"ComparePredicate", "comparison", [
    I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
    I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]> {
  let cppNamespace = "::lowtide::nn";
}
def NN_CompareOp : NN_Elementwise<"compare", ["a", "b_"], [], [SameTypeOperands, SameOperandsAndResultShape]> {
  let summary = "elementwise comparison; comparisons with NaN are false, except ne";
  let onnx = "Equal,Less,LessOrEqual,Greater,GreaterOrEqual";
  let arguments = (ins NN_ComparePredicate:$predicate, NN_Tensor:$a, NN_Tensor:$b_);
  let results = (outs NN_BoolTensor:$y);
  let assemblyFormat = "$predicate $a `,` $b_ attr-dict `:` type($a) `->` type($y)";
  let body = [{ return b.compare(static_cast<::lowtide::Compare>(getPredicate()), a, b_, isUnsignedElement(getA())); }];
}
def NN_SelectOp : NN_Elementwise<"select", ["c", "a", "b_"],
    ["", "select(c, dy, dy.like(0.0))", "select(c, dy.like(0.0), dy)"],
    [AllTypesMatch<["a", "b_", "y"]>, SameOperandsAndResultShape]> {
  let split = "Select";
  let summary = "c ? a : b";
  let onnx = "Where";
  let arguments = (ins NN_BoolTensor:$c, NN_Tensor:$a, NN_Tensor:$b_);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$c `,` $a `,` $b_ attr-dict `:` type($c) `,` type($a)";
  let body = [{ return b.select(c, a, b_); }];
}

def NN_StopGradientOp : NN_Elementwise<"stop_gradient", ["x"], [""],
    [SameOperandsAndResultType, DeclareOpInterfaceMethods<DecomposableInterface>]> {
  let split = "Additive";
  let summary = "x, through which no cotangent passes: what a program detaches";
  let description = [{Means something until the step is differentiated, and is x in `nn-decompose`.}];
  let flopsPerElement = 0;
  let arguments = (ins NN_Tensor:$x);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let body = "return x;";
}

def NN_CastOp : NN_Elementwise<"cast", ["x"], ["cast(dy, x.elementType())"], [SameOperandsAndResultShape]> {
  let split = "Cast";
  let summary = "conversion of the element type: float → integer truncates, anything → bool is != 0";
  let onnx = "Cast,CastLike";
  // Integers above 256 are no bf16.
  let resultPrecision = "::llvm::isa<::mlir::FloatType>(getX().getType().getElementType()) ? Follow : High";
  let arguments = (ins NN_Tensor:$x);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  let body = [{ return b.cast(x, scalarType(getY()), isUnsignedElement(getX()), isUnsignedElement(getY())); }];
}

#endif
