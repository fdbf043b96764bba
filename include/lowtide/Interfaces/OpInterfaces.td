// What a pass may ask an op. Every fact about an op lives in its record and is answered through these.
#ifndef LOWTIDE_INTERFACES_OPINTERFACES
#define LOWTIDE_INTERFACES_OPINTERFACES

include "mlir/IR/OpBase.td"

def FactsInterface : OpInterface<"FactsInterface"> {
  let description = [{The static facts of an op: family, precision policy, aliasing, batch behaviour, ONNX origins, cost.}];
  let cppNamespace = "::lowtide";
  let methods = [
    InterfaceMethod<"Facts that hold for every instance of the op.", "const ::lowtide::OpFacts &", "getFacts", (ins)>,
    InterfaceMethod<"Floating-point operations of this instance (an FMA counts two).", "uint64_t", "getFlops", (ins)>,
    InterfaceMethod<"What mixed precision does with operand `operand`.", "::lowtide::PrecisionPolicy",
      "getOperandPrecision", (ins "unsigned":$operand), [{}], [{ return $_op.getFacts().precision; }]>,
    InterfaceMethod<"How result `result` may be kept: High in f32 only, anything else in 16 bits too.",
      "::lowtide::PrecisionPolicy", "getResultPrecision", (ins "unsigned":$result), [{}],
      [{ return ::lowtide::getStoragePolicy($_op.getFacts().family); }]>,
  ];
}

def ElementInterface : OpInterface<"ElementInterface"> {
  let description = [{
    The op's value, element by element: emits the scalar code of one element of one result at a given index, pulling
    operand elements through the builder. Every emitter (loop, row, column, reference; CPU, CUDA, emulated) and the
    constant folder read this one description.
  }];
  let cppNamespace = "::lowtide";
  let methods = [
    InterfaceMethod<"Emits result `result` at `index` (index-typed values, one per dimension of the result).",
      "::mlir::Value", "emitElement",
      (ins "::lowtide::ElementBuilder &":$builder, "unsigned":$result, "::mlir::ValueRange":$index)>,
  ];
}

def ReductionInterface : OpInterface<"ReductionInterface"> {
  let description = [{
    An op that combines the elements of operand 0 over some dimensions with an associative function. Emitters fix the
    order (docs/rationale/kernels.md): the same bits come out of a fused and of a lone reduction.
  }];
  let cppNamespace = "::lowtide";
  let methods = [
    InterfaceMethod<"Reduced dimensions of operand 0, ascending.", "::llvm::ArrayRef<int64_t>", "getReducedDims", (ins)>,
    InterfaceMethod<"Neutral element, as a scalar of the accumulator's type.", "::mlir::Value", "emitInitial",
      (ins "::lowtide::ScalarBuilder &":$builder, "::mlir::Type":$type)>,
    InterfaceMethod<"Combines accumulator and element.", "::mlir::Value", "emitCombine",
      (ins "::lowtide::ScalarBuilder &":$builder, "::mlir::Value":$accumulator, "::mlir::Value":$element)>,
  ];
}

def ScatterInterface : OpInterface<"ScatterInterface"> {
  let description = [{
    An op that adds the elements of one operand into a zero-filled result at computed positions. The order of additions
    is the updates' row-major order; its element description computes the same sums by search. Dimensions that
    `emitTarget` passes through unchanged may be divided among threads, the others may not.
  }];
  let cppNamespace = "::lowtide";
  let methods = [
    InterfaceMethod<"Number of the operand whose elements are added.", "unsigned", "getUpdatesOperand", (ins)>,
    InterfaceMethod<"Emits whether the update at `updateIndex` lands in the result, and the index where it does "
                    "(in bounds in any case, so that it may be computed before the test).",
      "::mlir::Value", "emitTarget",
      (ins "::lowtide::ElementBuilder &":$builder, "::mlir::ValueRange":$updateIndex,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$target)>,
    InterfaceMethod<"For each dimension of the result, the dimension of the updates that it copies; -1 where an index "
                    "decides.", "::llvm::SmallVector<int64_t>", "getPassedDims", (ins)>,
  ];
}

def DifferentiableInterface : OpInterface<"DifferentiableInterface"> {
  let description = [{Reverse-mode derivative: writes the cotangents of the operands, given those of the results.}];
  let cppNamespace = "::lowtide";
  let methods = [
    InterfaceMethod<"Sets operand cotangents in `gradient` for the operands that need one. Leaving one unset means zero.",
      "::llvm::LogicalResult", "differentiate", (ins "::lowtide::GradientBuilder &":$gradient)>,
  ];
}

def DecomposableInterface : OpInterface<"DecomposableInterface"> {
  let description = [{
    Structured lowering: the op written as simpler ops of the dialect, the ones that emitters read. The order of
    arithmetic in the decomposition is the op's definition.
  }];
  let cppNamespace = "::lowtide";
  let methods = [
    InterfaceMethod<"Builds the decomposition before the op; returns a value per result.",
      "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose", (ins "::mlir::OpBuilder &":$builder)>,
  ];
}

def RowsInterface : OpInterface<"RowsInterface"> {
  let description = [{
    An op that treats the rows of its operands, their dimension 0, one by one. Operands that have no rows are read for each
    of them; results that have none are sums over rows.
  }];
  let cppNamespace = "::lowtide";
  let methods = [
    InterfaceMethod<"The operands that have rows.", "::llvm::SmallVector<::mlir::OpOperand *>", "getRowOperands", (ins)>,
    InterfaceMethod<"The results that have rows: the first ones.", "::mlir::ResultRange", "getRowResults", (ins)>,
  ];
}

def RepeatInterface : OpInterface<"RepeatInterface"> {
  let description = [{
    An op that runs the one block of its region several times. Its first operands are *sliced*: round k sees part k of
    dimension 0, as the first block arguments. The others are *carried*: the first round sees the operand, each further
    round what the terminator of the round before hands on. The terminator's operands are first what is carried, then
    *rows*; the results are what the last round carries out, then the rows of all rounds one after another along
    dimension 0. The body may read values from around the op.
  }];
  let cppNamespace = "::lowtide";
  let methods = [
    InterfaceMethod<"How often the block runs.", "int64_t", "getRounds", (ins)>,
    InterfaceMethod<"Number of sliced operands.", "unsigned", "getNumSliced", (ins)>,
    InterfaceMethod<"Number of carried values.", "unsigned", "getNumCarried", (ins)>,
  ];
}

def BatchInterface : OpInterface<"BatchInterface"> {
  let description = [{What an op does with the samples of a batch (Interfaces/BatchSplit.h).}];
  let cppNamespace = "::lowtide";
  let methods = [
    InterfaceMethod<"Answers for this op where samples are counted; fails, with a reason, where an answer is unknown.",
      "::llvm::LogicalResult", "splitBatch", (ins "::lowtide::BatchSplit &":$split)>,
  ];
}

def OrderInterface : OpInterface<"OrderInterface"> {
  let description = [{What an op does with tensors that are stored in another order (Interfaces/DimensionOrder.h).}];
  let cppNamespace = "::lowtide";
  let methods = [
    InterfaceMethod<"Answers for this op: completes the orders, and builds the op where a builder is given. Fails where "
                    "no answer follows from what is known.",
      "::llvm::LogicalResult", "passOrder", (ins "::lowtide::OrderFlow &":$flow)>,
  ];
}

def LibraryCallInterface : OpInterface<"LibraryCallInterface"> {
  let description = [{
    An op that a vendor library computes: callee and attributes of the plan's `call` (runtime/plan.proto). The op's
    element description remains its definition and its fallback.
  }];
  let cppNamespace = "::lowtide";
  let methods = [
    InterfaceMethod<"Name of the library routine; empty when no library takes this instance (dtype, rank).",
      "::llvm::StringRef", "getCallee", (ins)>,
    InterfaceMethod<"Attributes of the call: i64, f64, string and i64-array attributes by name.",
      "::mlir::DictionaryAttr", "getCallAttributes", (ins)>,
  ];
}

#endif
