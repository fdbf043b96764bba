// nn: reductions over dimensions.
#ifndef LOWTIDE_NN_REDUCTION
#define LOWTIDE_NN_REDUCTION

include "lowtide/Dialect/NN/NNBase.td"

// Reduced dimensions vanish from the result. `initial` and `combine`: scalar bodies with `b` a ScalarBuilder, `type`,
// `accumulator`, `element`. `derivative`: expression for the cotangent of x; `spread(e)` undoes the reduction's shape.
class NN_Reduction<string mnemonic, string initial, string combine, string derivative, Type type = NN_Tensor>
    : NN_Op<mnemonic, [DeclareOpInterfaceMethods<ElementInterface>, DeclareOpInterfaceMethods<ReductionInterface>,
                       DeclareOpInterfaceMethods<DifferentiableInterface>]> {
  let family = "Reduction";
  let precision = "High";
  let batch = "Contract";
  let split = "Reduce";
  let order = "Reduce";
  let arguments = (ins type:$x, DenseI64ArrayAttr:$dims);
  let results = (outs type:$y);
  let assemblyFormat = "$x `dims` `=` $dims attr-dict `:` type($x) `->` type($y)";
  let hasVerifier = 1;
  let flops = [{ return ::lowtide::nn::countElements(getX().getType()); }];
  let definitions = [{
    ::llvm::ArrayRef<int64_t> $cppClass::getReducedDims() { return getDims(); }
    ::mlir::Value $cppClass::emitInitial(::lowtide::ScalarBuilder &b, ::mlir::Type type) { return }] # initial # [{; }
    ::mlir::Value $cppClass::emitCombine(::lowtide::ScalarBuilder &b, ::mlir::Value accumulator,
                                         ::mlir::Value element) { return }] # combine # [{; }
    ::mlir::Value $cppClass::emitElement(::lowtide::ElementBuilder &b, unsigned, ::mlir::ValueRange index) {
      return ::lowtide::nn::emitReductionElement(getOperation(), b, index);
    }
    ::llvm::LogicalResult $cppClass::differentiate(::lowtide::GradientBuilder &g) {
      using namespace ::lowtide::nn;
      [[maybe_unused]] Expr x = g.operand(0), y = g.result(0), dy = g.cotangent(0);
      [[maybe_unused]] auto spread = [&](Expr e) { return unreduce(e, getX().getType(), getDims()); };
  }] # !if(!empty(derivative), "", "if (g.needs(0)) g.set(0, " # derivative # ");") # [{
      return ::mlir::success();
    }
    ::llvm::LogicalResult $cppClass::verify() { return ::lowtide::nn::verifyReduction(getOperation(), getX(), getY(), getDims()); }
  }];
}

def NN_ReduceSumOp : NN_Reduction<"reduce_sum", "b.constant(type, 0.0)", "b.add(accumulator, element)", "spread(dy)"> {
  let split = "ReduceSum";
  let summary = "sum over dimensions";
  let onnx = "ReduceSum";
}
def NN_ReduceMaxOp : NN_Reduction<"reduce_max", "lowestValue(b, type, isUnsignedElement(getX()))", "b.max(accumulator, element, isUnsignedElement(getX()))",
    // Ties share the cotangent equally, as PyTorch's amax does.
    "select(equal(x, spread(y)), spread(dy / sum(cast(equal(x, spread(y)), x.elementType()), getDims())), x.like(0.0))"> {
  let summary = "largest element over dimensions; NaN if any is NaN";
  let onnx = "ReduceMax";
}
def NN_ReduceMinOp : NN_Reduction<"reduce_min", "highestValue(b, type, isUnsignedElement(getX()))",
    "b.min(accumulator, element, isUnsignedElement(getX()))",
    "select(equal(x, spread(y)), spread(dy / sum(cast(equal(x, spread(y)), x.elementType()), getDims())), x.like(0.0))"> {
  let summary = "smallest element over dimensions; NaN if any is NaN";
  let onnx = "ReduceMin";
}
def NN_ReduceProdOp : NN_Reduction<"reduce_prod", "b.constant(type, 1.0)", "b.mul(accumulator, element)",
    "productGradient(x, y, dy, getDims())"> {
  let summary = "product over dimensions";
  let onnx = "ReduceProd";
}
def NN_ReduceAnyOp : NN_Reduction<"reduce_any", "b.constantInt(type, 0)", "b.logicalOr(accumulator, element)", "",
    NN_BoolTensor> {
  let summary = "whether any element is true";
}
def NN_ReduceAllOp : NN_Reduction<"reduce_all", "b.constantInt(type, 1)", "b.logicalAnd(accumulator, element)", "",
    NN_BoolTensor> {
  let summary = "whether all elements are true";
}

#endif
