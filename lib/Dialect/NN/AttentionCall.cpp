//===- AttentionCall.cpp - attention as a library's call --------*- C++ -*-===//
//
// The calls "attention" and "attention_grad" of the plan (docs/artifact.md), and the form that a mask takes for them.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/LibraryForms.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

/// The attributes of the call for either op.
template <typename Op> static DictionaryAttr getAttentionAttributes(Op op) {
  Builder builder(op.getContext());
  auto q = op.getQ().getType(), v = op.getV().getType();
  SmallVector<NamedAttribute> attributes;
  std::pair<StringRef, int64_t> numbers[] = {
      {"batch", q.getDimSize(0)},       {"heads", q.getDimSize(1)},   {"key_heads", op.getK().getType().getDimSize(1)},
      {"rows", q.getDimSize(2)},        {"columns", v.getDimSize(2)}, {"depth", q.getDimSize(3)},
      {"value_depth", v.getDimSize(3)}, {"causal", op.getCausal()}};
  for (auto [name, value] : numbers)
    attributes.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(value)));
  attributes.push_back(builder.getNamedAttr("scale", op.getScaleAttr()));
  appendCallTypes(builder, q, q, attributes);
  if (op.getMask()) {
    attributes.push_back(builder.getNamedAttr("mask", builder.getDenseI64ArrayAttr(op.getMask().getType().getShape())));
    Type element = op.getMask().getType().getElementType();
    if (element != q.getElementType()) {
      std::string name;
      llvm::raw_string_ostream(name) << element;
      attributes.push_back(builder.getNamedAttr("mask_dtype", builder.getStringAttr(name)));
    }
  }
  return DictionaryAttr::get(op.getContext(), attributes);
}

template <typename Op> static bool hasCall(Op op) {
  auto q = op.getQ().getType();
  // Tiles of scores are f32's.
  return isCallType(q, q) && !q.getElementType().isF64() && q.getNumElements() > 0 &&
         op.getV().getType().getNumElements() > 0;
}

namespace {
/// A model from outside of the record, so that NN.h, which nearly every file includes, does not depend on how libraries
/// are called.
struct AttentionCall : LibraryCallInterface::ExternalModel<AttentionCall, AttentionOp> {
  /// Whether a user hands on the numbers as they are: to what is around it, to another memory, or to a later place.
  static bool isHandedOn(Operation *user) {
    auto facts = dyn_cast<FactsInterface>(user);
    const Aliasing aliasing = facts ? facts.getFacts().aliasing : Aliasing::None;
    return user->hasTrait<OpTrait::IsTerminator>() || aliasing == Aliasing::Moved ||
           (aliasing == Aliasing::View && user->getResult(0).getType() == user->getOperand(0).getType());
  }
  /// A derivative that is written out computes the scores again as the forward op written out does, and shares them:
  /// then so is this.
  static bool isSharedWithParts(AttentionOp op) {
    return llvm::any_of(op.getLse().getUsers(),
                        [](Operation *user) { return !isa<AttentionGradOp, KernelOp>(user) && !isHandedOn(user); });
  }
  StringRef getCallee(Operation *op) const {
    auto attention = cast<AttentionOp>(op);
    return hasCall(attention) && !isSharedWithParts(attention) ? "attention" : "";
  }
  DictionaryAttr getCallAttributes(Operation *op) const { return getAttentionAttributes(cast<AttentionOp>(op)); }
};
} // namespace

void nn::registerAttentionCall(MLIRContext *context) { AttentionOp::attachInterface<AttentionCall>(*context); }

StringRef AttentionGradOp::getCallee() { return hasCall(*this) ? "attention_grad" : ""; }

DictionaryAttr AttentionGradOp::getCallAttributes() { return getAttentionAttributes(*this); }

/// The same for either op, whose mask it has.
template <typename Op> static bool formAttentionOf(Op op, llvm::function_ref<bool(LibraryCallInterface)> isTaken) {
  auto call = cast<LibraryCallInterface>(op.getOperation());
  if (isTaken(call))
    return true;
  if (!op.getMask())
    return false;
  OpBuilder builder(op);
  auto q = op.getQ().getType();
  auto given = cast<TypedValue<RankedTensorType>>(op.getMask());
  ArrayRef<int64_t> shape = given.getType().getShape();
  Expr mask = cast(Expr(builder, op.getLoc(), given), q.getElementType());
  mask = broadcastTo(mask, {shape[0], shape[1], q.getDimSize(2), op.getV().getType().getDimSize(2)});
  if (mask.get() == given)
    return false;
  op.getMaskMutable().assign(mask.get());
  if (isTaken(call))
    return true;
  op.getMaskMutable().assign(given);
  for (Operation *made = op->getPrevNode(); made && made->use_empty() && isa<CastOp, BroadcastOp, ReshapeOp>(made);) {
    Operation *before = made->getPrevNode();
    made->erase();
    made = before;
  }
  return false;
}

bool nn::formAttention(Operation *op, llvm::function_ref<bool(LibraryCallInterface)> isTaken) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return formAttentionOf(attention, isTaken);
  if (auto gradient = dyn_cast<AttentionGradOp>(op))
    return formAttentionOf(gradient, isTaken);
  return false;
}
