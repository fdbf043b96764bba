//===- NNWiden.cpp - computes in a wider float type -------------*- C++ -*-===//
//
// Replaces float element types by another throughout a module.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

namespace lowtide {
#define GEN_PASS_DEF_NNWIDEN
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using lowtide::OptionCheck;

static FloatType parseFloat(MLIRContext *context, StringRef name) {
  Builder b(context);
  return llvm::StringSwitch<FloatType>(name)
      .Case("f64", b.getF64Type())
      .Case("f32", b.getF32Type())
      .Case("f16", b.getF16Type())
      .Case("bf16", b.getBF16Type())
      .Default({});
}

/// The whole number of which `value` is the reciprocal, rounded to f32: a mean has it as its factor; 0: there is none.
static double findDivisor(const APFloat &value) {
  // Up to here neighbours differ in f32.
  constexpr double most = 1 << 23;
  if (&value.getSemantics() != &APFloat::IEEEsingle() || !value.isFiniteNonZero())
    return 0;
  const double number = value.convertToFloat(), divisor = std::round(1 / number);
  return std::abs(divisor) < most && float(1 / divisor) == float(number) ? divisor : 0;
}

/// The same numbers in another float type. One number for all elements that stands for 1/n is 1/n there, too: what a
/// mean takes away would not cancel.
static DenseElementsAttr convertElements(DenseElementsAttr dense, FloatType to) {
  if (dense.isSplat() && to.isF64())
    if (double divisor = findDivisor(dense.getSplatValue<APFloat>()))
      return DenseElementsAttr::get(dense.getType().clone(to), 1 / divisor);
  return cast<DenseFPElementsAttr>(dense).mapValues(to, [&](const APFloat &value) {
    APFloat converted = value;
    bool losesInfo;
    converted.convert(to.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    return converted.bitcastToAPInt();
  });
}

namespace {
struct NNWiden : lowtide::StepPass<lowtide::impl::NNWidenBase<NNWiden>> {
  using StepPass::StepPass;

  /// What names no type; what is none to widen is said below.
  LogicalResult checkNames() {
    const OptionCheck types{OptionCheck::Kind::Words, {"f32", "f64", "f16", "bf16"}};
    if (failed(lowtide::checkOption(getOperation(), "to", to, types)))
      return failure();
    return success(llvm::all_of(
        from, [&](StringRef name) { return succeeded(lowtide::checkOption(getOperation(), "from", name, types)); }));
  }

  void runOnSteps() override {
    if (failed(checkNames()))
      return signalPassFailure();
    FloatType target = parseFloat(&getContext(), to);
    // All at once: an update's operands have one type between them, before and after.
    llvm::SmallPtrSet<Type, 4> sources;
    const SmallVector<StringRef> widened =
        from.empty() ? SmallVector<StringRef>{"f32"} : SmallVector<StringRef>(from.begin(), from.end());
    for (StringRef name : widened) {
      FloatType source = parseFloat(&getContext(), name);
      if (source.getWidth() > target.getWidth()) {
        getOperation().emitError("cannot widen ") << name << " to " << to;
        return signalPassFailure();
      }
      sources.insert(source);
    }
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](RankedTensorType type) -> std::optional<Type> {
      if (!sources.contains(type.getElementType()))
        return std::nullopt;
      return RankedTensorType::get(type.getShape(), target, type.getEncoding());
    });
    replacer.addReplacement([&](DenseElementsAttr dense) -> std::optional<std::pair<Attribute, WalkResult>> {
      if (!sources.contains(dense.getElementType()))
        return std::nullopt;
      return std::make_pair(convertElements(dense, target), WalkResult::skip());
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
    if (failed(lowtide::checkTypesAgree(getOperation(),
                                        "widening " + llvm::join(widened, " and ") + " to " + to +
                                            " leaves types that do not agree: name all types of the step in from")))
      signalPassFailure();
  }
};
} // namespace
