//===- TrainEncodeFrozen.cpp - frozen matrices in few bits ------*- C++ -*-===//
//
// 1. Which constants: matrices that every function that binds them reads in products alone, and that are not the last
//    ones before the loss. By structure, never by the sizes of a batch: all entries of an artifact have the same
//    answer.
// 2. Each becomes codes and scales, out of which the function computes the matrix where it begins.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Storage.h"
#include "lowtide/Dialect/NN/WeightReads.h"
#include "lowtide/Dialect/Train/Adapters.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Support/DiagnosticFigures.h"
#include "lowtide/Support/Failure.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace lowtide {
#define GEN_PASS_DEF_TRAINENCODEFROZEN
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

/// Numbers of a block, which share a scale; matrices of fewer numbers stay as they are.
static constexpr int64_t blockSize = 64, smallestMatrix = 4096;

/// Whether another product reads what is made of this one's result.
static bool leadsToProduct(Operation *product) {
  llvm::SmallPtrSet<Operation *, 32> seen;
  SmallVector<Operation *> open(product->user_begin(), product->user_end());
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!seen.insert(op).second)
      continue;
    auto facts = dyn_cast<FactsInterface>(op);
    if (facts && llvm::is_contained({OpFamily::Contraction, OpFamily::Convolution, OpFamily::Attention},
                                    facts.getFacts().family))
      return true;
    open.append(op->user_begin(), op->user_end());
  }
  return false;
}

/// Why a matrix stays as it is; nothing: it does not.
enum class Stays { No, IsRead, IsHead, IsSmall, IsNarrow };

static Stays judge(BlockArgument argument) {
  auto type = cast<RankedTensorType>(argument.getType());
  if (!type.getElementType().isF32())
    return Stays::IsNarrow;
  const nn::WeightReads reads = nn::findWeightReads(argument);
  if (!reads.others.empty() || reads.products.empty() ||
      !llvm::all_of(reads.products, [](const nn::WeightRead &read) { return read.kind == nn::WeightKind::Matrix; }))
    return Stays::IsRead;
  if (!llvm::all_of(reads.products, [](const nn::WeightRead &read) { return leadsToProduct(read.product); }))
    return Stays::IsHead;
  return type.getNumElements() < smallestMatrix || type.getNumElements() % blockSize ? Stays::IsSmall : Stays::No;
}

static bool isFrozenMatrix(func::FuncOp step, BlockArgument argument) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  return isa_and_nonnull<train::ConstantAttr>(train::getArgBinding(step, argument.getArgNumber())) && type &&
         type.hasStaticShape() && type.getRank() == 2 && isa<FloatType>(type.getElementType()) &&
         !argument.use_empty() && step.getArgAttr(argument.getArgNumber(), "onnx.initializer");
}

/// code · scale; codes: [blocks, 64].
static nn::Expr decodeInt8(nn::Expr codes, nn::Expr scales) {
  return nn::cast(codes, scales.elementType()) * nn::broadcast(scales, codes.shape(), {0});
}

/// The number of a code · scale; codes: [blocks, 64].
static nn::Expr decodeFp8(nn::Expr codes, nn::Expr scales) {
  return nn::fromCode(nn::CodeMap::e4m3, codes, scales.elementType()) * nn::broadcast(scales, codes.shape(), {0});
}

/// The number of a code · scale; bytes: [blocks, 32]. All in one shape, [blocks, 32, 2]: it is one kernel.
static nn::Expr decodeNf4(nn::Expr bytes, nn::Expr scales) {
  const SmallVector<int64_t> shape = {bytes.dim(0), bytes.dim(1), 2};
  nn::Expr both = nn::broadcast(bytes, shape, {0, 1});
  // The high bits hold the first code.
  auto bits = DenseElementsAttr::get(RankedTensorType::get({2}, bytes.elementType()), ArrayRef<uint8_t>({4, 0}));
  nn::Expr shift = nn::broadcast(nn::constant(bytes.getBuilder(), bytes.getLoc(), bits), shape, {2});
  nn::Expr codes = nn::logicalAnd(nn::shiftRight(both, shift), both.like(15));
  return nn::fromCode(nn::CodeMap::nf4, codes, scales.elementType()) * nn::broadcast(scales, shape, {0});
}

namespace {
/// How a function holds and decodes a matrix; runtime/FewBits.h has the rules of encoding.
struct FrozenCodec {
  StringLiteral name;
  int64_t blockBytes;                          ///< of the codes of a block
  IntegerType::SignednessSemantics signedness; ///< of a byte of codes
  nn::Expr (*decode)(nn::Expr codes, nn::Expr scales);
};
} // namespace

static const FrozenCodec codecs[] = {{"int8", blockSize, IntegerType::Signless, decodeInt8},
                                     {"nf4", blockSize / 2, IntegerType::Unsigned, decodeNf4},
                                     {"fp8", blockSize, IntegerType::Unsigned, decodeFp8}};

namespace {
struct TrainEncodeFrozen : StepPass<lowtide::impl::TrainEncodeFrozenBase<TrainEncodeFrozen>> {
  using StepPass::StepPass;

  void runOnSteps() override {
    if (failed(checkOption(getOperation(), "frozen-weights", frozenWeights)))
      return signalPassFailure();
    kind = llvm::find_if(codecs, [&](const FrozenCodec &known) { return known.name == StringRef(frozenWeights); });
    // Types are train-autocast's.
    if (kind == std::end(codecs))
      return;
    llvm::MapVector<Attribute, Stays> found;
    for (func::FuncOp step : getOperation().getOps<func::FuncOp>())
      for (BlockArgument argument : step.getArguments())
        if (isFrozenMatrix(step, argument)) {
          Stays &reason =
              found.try_emplace(train::getArgBinding(step, argument.getArgNumber()), Stays::No).first->second;
          reason = reason == Stays::No ? judge(argument) : reason;
        }
    for (func::FuncOp step : getOperation().getOps<func::FuncOp>())
      encode(step, found);
    if (llvm::none_of(found, [](const auto &entry) { return entry.second == Stays::No; }))
      return refuse(found);
    releasePairs();
  }

private:
  /// Nothing is held in codes: a flag without effect is a mistake.
  void refuse(const llvm::MapVector<Attribute, Stays> &found) {
    InFlightDiagnostic error =
        emitError(UnknownLoc::get(&getContext()))
        << "--frozen-weights=" << frozenWeights
        << " has no effect: " << (found.empty() ? "no matrix of the model is frozen" : "no frozen matrix can be coded");
    auto list = [&](Stays reason, StringRef text) {
      SmallVector<StringRef> names;
      for (const auto &[binding, why] : found)
        if (why == reason)
          names.push_back(train::getBindingName(binding).getValue());
      if (names.empty())
        return;
      Diagnostic &note = error.attachNote() << text << ": " << names.front();
      if (names.size() > 1)
        note << " and " << names.size() - 1 << " more";
    };
    if (found.empty())
      error.attachNote() << "--lora='PATTERN:r=16' freezes a model and trains pairs, --frozen=PATTERN freezes weights";
    list(Stays::IsRead, "read by more than products");
    list(Stays::IsHead, "no product comes after it");
    list(Stays::IsNarrow, "the file does not hold it in f32; export the module as module.float()");
    list(Stays::IsSmall,
         ("not in whole blocks of " + Twine(blockSize) + " numbers, at least " + Twine(smallestMatrix) + " of them")
             .str());
    error.report();
    setFailure(getOperation(), FailureKind::Usage);
    signalPassFailure();
  }

  void encode(func::FuncOp step, const llvm::MapVector<Attribute, Stays> &found) {
    int64_t before = 0, after = 0, count = 0;
    const unsigned arguments = step.getNumArguments();
    train::SignatureGrowth growth(step);
    for (unsigned i = 0; i < arguments; ++i) {
      BlockArgument argument = step.getArgument(i);
      auto it = found.find(train::getArgBinding(step, i));
      if (it == found.end() || it->second != Stays::No || !isFrozenMatrix(step, argument))
        continue;
      const int64_t numbers = cast<RankedTensorType>(argument.getType()).getNumElements();
      encode(step, growth, argument);
      ++count;
      before += numbers * 4;
      after += numbers / blockSize * (kind->blockBytes + int64_t(sizeof(float)));
    }
    growth.finish();
    numCoded += count;
    if (!count)
      return;
    InFlightDiagnostic remark = step.emitRemark("@")
                                << step.getSymName() << ": " << count << " frozen matrices in " << frozenWeights << ": "
                                << before << " bytes → " << after << " bytes";
    attachFigures(remark, {{"frozen_bytes_before", before}, {"frozen_bytes", after}});
  }

  void encode(func::FuncOp step, train::SignatureGrowth &growth, BlockArgument argument) {
    const unsigned number = argument.getArgNumber();
    auto binding = cast<train::ConstantAttr>(train::getArgBinding(step, number));
    auto whole = cast<RankedTensorType>(argument.getType());
    Builder b(&getContext());
    // Blocks lie in the framework's order: what a quantizer of the module itself makes.
    auto permutation = step.getArgAttrOfType<DenseI64ArrayAttr>(number, "onnx.transposed");
    const bool isTransposed = permutation && permutation.asArrayRef() == ArrayRef<int64_t>({1, 0});
    SmallVector<int64_t> dims(whole.getShape());
    if (isTransposed)
      std::swap(dims[0], dims[1]);
    const SmallVector<OpOperand *> uses = llvm::map_to_vector(argument.getUses(), [](OpOperand &use) { return &use; });
    const int64_t blocks = whole.getNumElements() / blockSize;
    auto scaleName = b.getStringAttr(binding.getName().getValue() + ".scale");
    NamedAttrList facts;
    facts.set("codec", b.getStringAttr(frozenWeights));
    facts.set("coded_dims", b.getDenseI64ArrayAttr(dims));
    if (isTransposed)
      facts.set("coded_transposed", b.getUnitAttr());

    Value scale = growth.appendArg(RankedTensorType::get({blocks}, b.getF32Type()),
                                   train::ConstantAttr::get(&getContext(), scaleName), argument.getLoc());
    const unsigned scaleNumber = cast<BlockArgument>(scale).getArgNumber();
    growth.setArgAttr(scaleNumber, "onnx.initializer", step.getArgAttr(number, "onnx.initializer"));
    growth.setArgAttr(scaleNumber, train::codedAttrName, facts.getDictionary(&getContext()));
    facts.set("scales", scaleName);
    growth.setArgAttr(number, train::codedAttrName, facts.getDictionary(&getContext()));
    if (isTransposed)
      growth.setArgAttr(number, "onnx.transposed", {});
    if (!step.getArgAttr(number, "onnx.source_shape"))
      growth.setArgAttr(number, "onnx.source_shape", b.getDenseI64ArrayAttr(dims));
    argument.setType(
        RankedTensorType::get({blocks, kind->blockBytes}, IntegerType::get(&getContext(), 8, kind->signedness)));

    OpBuilder builder = OpBuilder::atBlockBegin(&step.getBody().front());
    nn::Expr codes(builder, argument.getLoc(), argument), factors = codes.with(scale);
    nn::Expr matrix = nn::reshape(kind->decode(codes, factors), dims);
    if (isTransposed)
      matrix = nn::transpose(matrix, {1, 0});
    for (OpOperand *use : uses)
      use->set(matrix.get());
    coded[binding.getName()] = isTransposed;
  }

  /// Pairs cannot be merged into codes: the artifact says no more whose they are, only which dimension inputs have in
  /// the framework's order.
  void releasePairs() {
    auto pairs = getOperation()->getAttrOfType<ArrayAttr>(train::adaptersAttrName);
    if (!pairs)
      return;
    Builder b(&getContext());
    SmallVector<Attribute> changed(pairs.begin(), pairs.end());
    for (Attribute &pair : changed) {
      NamedAttrList facts(cast<DictionaryAttr>(pair));
      auto weight = coded.find(cast<DictionaryAttr>(pair).get("weight"));
      if (weight == coded.end())
        continue;
      if (weight->second)
        facts.set("input_dim", b.getI64IntegerAttr(1 - cast<IntegerAttr>(facts.get("input_dim")).getInt()));
      facts.set("weight", b.getStringAttr(""));
      pair = facts.getDictionary(&getContext());
    }
    getOperation()->setAttr(train::adaptersAttrName, b.getArrayAttr(changed));
  }

  const FrozenCodec *kind = std::end(codecs);
  /// Names of what is held in codes, and whether these are of the transposed matrix.
  llvm::DenseMap<Attribute, bool> coded;
};
} // namespace
