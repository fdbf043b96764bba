//===- ShrinkFunctions.cpp - what is inside a function shrinks --*- C++ -*-===//
//
// Every change is tried on a copy of the module: it stays if the copy is legal and still interesting. Which operation
// it is does not matter; all that is asked for is a type, a constant of it, and the verifier.
//
// This is a pass and no set of patterns for MLIR's `reduction-tree`: that one folds operations as it applies patterns,
// untested, and cannot go on where that takes away what was interesting, as it does next to a constant.
//
//===----------------------------------------------------------------------===//

#include "ShrinkFunctions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Reducer/Tester.h"
#include <set>

using namespace mlir;
using namespace lowtide;

/// The values of an attribute in a type of other extents: its first ones; null where there are too few.
static Attribute resize(DenseElementsAttr values, ShapedType type) {
  if (values.isSplat())
    return values.resizeSplat(type);
  if (type.getNumElements() > values.getNumElements())
    return {};
  SmallVector<Attribute> first(values.value_begin<Attribute>(),
                               std::next(values.value_begin<Attribute>(), type.getNumElements()));
  return DenseElementsAttr::get(type, first);
}

/// Makes every extent `from` an extent `to`, in all types and constants of a function.
static void resize(func::FuncOp function, int64_t from, int64_t to) {
  auto resized = [&](RankedTensorType type) {
    SmallVector<int64_t> shape(type.getShape());
    std::replace(shape.begin(), shape.end(), from, to);
    return RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
  };
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](RankedTensorType type) { return Type(resized(type)); });
  replacer.addReplacement([&](DenseElementsAttr values) -> std::optional<std::pair<Attribute, WalkResult>> {
    auto type = dyn_cast<RankedTensorType>(values.getType());
    Attribute other = type ? resize(values, resized(type)) : Attribute();
    return std::pair<Attribute, WalkResult>(other ? other : Attribute(values), WalkResult::skip());
  });
  replacer.recursivelyReplaceElementsIn(function, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
}

/// A constant of a type that an operation's dialect can write, all zeros or, of booleans, false; null: there is none.
static Operation *createZero(OpBuilder &builder, Operation *op, Type type) {
  TypedAttr zero = builder.getZeroAttr(type);
  return zero ? op->getDialect()->materializeConstant(builder, zero, type, op->getLoc()) : nullptr;
}

namespace {

/// Shrinks a function as far as it stays interesting.
class Shrinking {
public:
  explicit Shrinking(const Tester &tester) : tester(tester) {}

  bool run(func::FuncOp function) const {
    bool isSmaller = false;
    while (dropOperation(function) || dropResult(function) || dropArgument(function) || shrinkDimension(function))
      isSmaller = true;
    return isSmaller;
  }

private:
  /// Applies `change` to the function if a copy with it is legal and interesting. `change` says whether it changed
  /// anything.
  bool attempt(func::FuncOp function, llvm::function_ref<bool(func::FuncOp)> change) const {
    auto module = function->getParentOfType<ModuleOp>();
    IRMapping map;
    OwningOpRef<ModuleOp> copy = cast<ModuleOp>(module->clone(map));
    auto other = cast<func::FuncOp>(map.lookup(function.getOperation()));
    {
      ScopedDiagnosticHandler silent(module.getContext(), [](Diagnostic &) { return success(); });
      if (!change(other) || failed(verify(*copy)))
        return false;
    }
    if (tester.isInteresting(*copy).first != Tester::Interestingness::True)
      return false;
    change(function);
    return true;
  }

  /// Calls `visit` with the operations of a function that may be dropped, last ones first, numbered; stops at true.
  static bool forEach(func::FuncOp function, llvm::function_ref<bool(Operation *, unsigned)> visit) {
    SmallVector<Operation *> all;
    function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) { all.push_back(op); });
    for (unsigned i = all.size(); i-- > 0;)
      if (!all[i]->hasTrait<OpTrait::IsTerminator>() && visit(all[i], i))
        return true;
    return false;
  }

  static Operation *find(func::FuncOp function, unsigned number) {
    Operation *found = nullptr;
    function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (number-- == 0)
        found = op;
      return found ? WalkResult::interrupt() : WalkResult::advance();
    });
    return found;
  }

  /// An operation less: one without readers, or one whose results become an operand, or zeros.
  bool dropOperation(func::FuncOp function) const {
    return forEach(function, [&](Operation *op, unsigned number) {
      if (op->use_empty())
        return attempt(function, [&](func::FuncOp in) { return find(in, number)->erase(), true; });
      for (unsigned i = 0; i < op->getNumOperands(); ++i)
        if (op->getNumResults() == 1 && op->getOperand(i).getType() == op->getResult(0).getType() &&
            attempt(function, [&](func::FuncOp in) {
              Operation *own = find(in, number);
              own->getResult(0).replaceAllUsesWith(own->getOperand(i));
              return own->erase(), true;
            }))
          return true;
      return !op->hasTrait<OpTrait::ConstantLike>() && attempt(function, [&](func::FuncOp in) {
        Operation *own = find(in, number);
        OpBuilder builder(own);
        for (OpResult result : own->getResults()) {
          Operation *zero = result.use_empty() ? nullptr : createZero(builder, own, result.getType());
          if (!result.use_empty() && !zero)
            return false;
          if (zero)
            result.replaceAllUsesWith(zero->getResult(0));
        }
        return own->erase(), true;
      });
    });
  }

  bool dropResult(func::FuncOp function) const {
    for (unsigned i = function.getNumResults(); i-- > 0;)
      if (attempt(function, [&](func::FuncOp in) {
            in.getBody().front().getTerminator()->eraseOperand(i);
            return succeeded(in.eraseResult(i));
          }))
        return true;
    return false;
  }

  bool dropArgument(func::FuncOp function) const {
    for (unsigned i = function.getNumArguments(); i-- > 0;)
      if (function.getArgument(i).use_empty() &&
          attempt(function, [&](func::FuncOp in) { return succeeded(in.eraseArgument(i)); }))
        return true;
    return false;
  }

  /// One extent less: 1, 2 or half of it, wherever it stands.
  bool shrinkDimension(func::FuncOp function) const {
    std::set<int64_t, std::greater<>> extents;
    auto note = [&](Type type) {
      if (auto tensor = dyn_cast<RankedTensorType>(type))
        extents.insert(tensor.getShape().begin(), tensor.getShape().end());
    };
    for (Type type : function.getArgumentTypes())
      note(type);
    function.walk([&](Operation *op) { llvm::for_each(op->getResultTypes(), note); });
    for (int64_t extent : extents)
      for (int64_t smaller : {int64_t(1), int64_t(2), extent / 2})
        if (smaller > 0 && smaller < extent &&
            attempt(function, [&](func::FuncOp in) { return resize(in, extent, smaller), true; }))
          return true;
    return false;
  }

  const Tester &tester;
};

class ShrinkFunctions : public PassWrapper<ShrinkFunctions, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ShrinkFunctions)
  ShrinkFunctions() = default;
  ShrinkFunctions(const ShrinkFunctions &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "shrink-functions"; }
  StringRef getDescription() const override { return "drop operations of functions and make extents smaller"; }

  void runOnOperation() override {
    const Tester tester(test, arguments);
    if (tester.isInteresting(getOperation()).first != Tester::Interestingness::True) {
      getOperation().emitError("the module is not interesting: '") << test << "' has to end with 1 for it";
      return signalPassFailure();
    }
    // What was dropped in one function may have been all that held another up.
    bool isSmaller = true;
    while (isSmaller) {
      isSmaller = false;
      for (auto function : getOperation().getOps<func::FuncOp>())
        isSmaller |= !function.isExternal() && Shrinking(tester).run(function);
    }
  }

private:
  Option<std::string> test{*this, "test", llvm::cl::desc("Program that ends with 1 for an interesting file")};
  ListOption<std::string> arguments{*this, "test-arg", llvm::cl::desc("Arguments of the program, before the file")};
};

} // namespace

void lowtide::registerShrinkFunctions() { PassRegistration<ShrinkFunctions>(); }
