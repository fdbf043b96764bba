// The nn dialect: pure tensor mathematics on static shapes. Base classes of its records.
#ifndef LOWTIDE_NN_BASE
#define LOWTIDE_NN_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "lowtide/Interfaces/OpInterfaces.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::lowtide::nn";
  let summary = "pure tensor mathematics, static shapes";
  let hasConstantMaterializer = 1;
  // Constant folding evaluates scalar bodies.
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let hasCanonicalizer = 1;
  let description = [{
    Operands and results are ranked tensors with static shapes. Nothing broadcasts by itself: `nn.broadcast` does.
    Randomness has explicit seed, step and row operands. Every op is pure.
  }];
}

// Every record states these facts; passes read them through FactsInterface and the other interfaces.
class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, !listconcat(traits, [Pure, DeclareOpInterfaceMethods<BatchInterface>,
        DeclareOpInterfaceMethods<OrderInterface>,
        DeclareOpInterfaceMethods<FactsInterface, ["getOperandPrecision", "getResultPrecision"]>])> {
  string family = "Elementwise";
  string precision = "Follow";
  // C++ expressions in `i`: the policy of operand i, and how result i may be kept (PrecisionPolicy, OpFacts.h).
  string operandPrecision = "getFacts().precision";
  string resultPrecision = "::lowtide::getStoragePolicy(getFacts().family)";
  string aliasing = "None";
  string batch = "Unknown";
  // What it does with samples, exactly: a function of Dialect/NN/BatchRules.h.
  string split = "Unknown";
  // How it passes on orders of storage: a function of Dialect/NN/OrderRules.h.
  string order = "Natural";
  int flopsPerElement = 1;
  // ONNX operators that this op implements directly.
  string onnx = "";
  // C++ body of getFlops(); default: flopsPerElement × elements of all results.
  code flops = [{ return getFacts().flopsPerElement * ::lowtide::nn::countResultElements(getOperation()); }];
  // Further definitions of the record.
  code definitions = "";

  let extraClassDefinition = [{
    const ::lowtide::OpFacts &$cppClass::getFacts() {
      static const ::lowtide::OpFacts facts{::lowtide::OpFamily::}] # family # [{,
        ::lowtide::PrecisionPolicy::}] # precision # [{, ::lowtide::Aliasing::}] # aliasing # [{,
        ::lowtide::BatchRule::}] # batch # ", " # flopsPerElement # ", \"" # onnx # [{"};
      return facts;
    }
    uint64_t $cppClass::getFlops() {}] # flops # [{}
    ::lowtide::PrecisionPolicy $cppClass::getOperandPrecision([[maybe_unused]] unsigned i) {
      using enum ::lowtide::PrecisionPolicy;
      return }] # operandPrecision # [{;
    }
    ::lowtide::PrecisionPolicy $cppClass::getResultPrecision([[maybe_unused]] unsigned i) {
      using enum ::lowtide::PrecisionPolicy;
      return }] # resultPrecision # [{;
    }
    ::llvm::LogicalResult $cppClass::splitBatch(::lowtide::BatchSplit &split) {
      return ::lowtide::nn::split}] # split # [{(getOperation(), split);
    }
    ::llvm::LogicalResult $cppClass::passOrder(::lowtide::OrderFlow &flow) {
      return ::lowtide::nn::order}] # order # [{(getOperation(), flow);
    }
  }] # definitions;
}

def NN_Tensor : StaticShapeTensorOf<[AnyFloat, AnyInteger]>;
def NN_FloatTensor : StaticShapeTensorOf<[AnyFloat]>;
def NN_BoolTensor : StaticShapeTensorOf<[I1]>;
def NN_IntTensor : StaticShapeTensorOf<[AnyInteger]>;

// An elementwise op of equal shapes. `body` is the scalar body: C++ that returns an mlir::Value, with `b` a
// ScalarBuilder and the operands' scalars under the names of the arguments. Derivatives are C++ expressions of type
// nn::Expr, with operands and result as Expr under their names (result: `y`, its cotangent: `dy`); empty means zero.
class NN_Elementwise<string mnemonic, list<string> names, list<string> derivatives, list<Trait> traits>
    : NN_Op<mnemonic, !listconcat(traits, [Elementwise, DeclareOpInterfaceMethods<ElementInterface>,
                                           DeclareOpInterfaceMethods<DifferentiableInterface>])> {
  let family = "Elementwise";
  let aliasing = "InPlace";
  let batch = "Pointwise";
  let split = "Elementwise";
  let order = "Elementwise";
  code body = "";
  let definitions = [{
    ::mlir::Value $cppClass::emitElement(::lowtide::ElementBuilder &b, unsigned, ::mlir::ValueRange index) {
  }] # !interleave(!foreach(i, !range(!size(names)),
        "[[maybe_unused]] ::mlir::Value " # names[i] # " = b.operand(" # i # ", index);"), "\n") # body # [{
    }
    ::llvm::LogicalResult $cppClass::differentiate(::lowtide::GradientBuilder &g) {
      using namespace ::lowtide::nn;
      [[maybe_unused]] Expr y = g.result(0), dy = g.cotangent(0);
  }] # !interleave(!foreach(i, !range(!size(names)),
        "[[maybe_unused]] Expr " # names[i] # " = g.operand(" # i # ");"), "\n")
     # !interleave(!foreach(i, !range(!size(derivatives)),
        !if(!empty(derivatives[i]), "", "if (g.needs(" # i # ")) g.set(" # i # ", " # derivatives[i] # ");")), "\n") # [{
      return ::mlir::success();
    }
  }];
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

class NN_Unary<string mnemonic, string derivative, Type type = NN_FloatTensor>
    : NN_Elementwise<mnemonic, ["x"], [derivative], [SameOperandsAndResultType]> {
  let arguments = (ins type:$x);
  let results = (outs type:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

class NN_Binary<string mnemonic, string dA, string dB, Type type = NN_Tensor>
    : NN_Elementwise<mnemonic, ["a", "b_"], [dA, dB], [SameOperandsAndResultType]> {
  let arguments = (ins type:$a, type:$b_);
  let results = (outs type:$y);
  let assemblyFormat = "$a `,` $b_ attr-dict `:` type($a)";
}

#endif
