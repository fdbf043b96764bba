//===- Layouts.cpp - how state is stored ------------------------*- C++ -*-===//
//
// Codecs by name, and the definitions generated from their records.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/Layouts.h"
#include "lowtide/Dialect/NN/Expr.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::train;

static constexpr llvm::StringLiteral encodePrefix = "train.encode_", decodePrefix = "train.decode_";

bool CodecInfo::takes(int64_t elements) const {
  return elements >= smallest && (block == 0 || (elements > 0 && elements % block == 0));
}

uint64_t CodecInfo::countBytes(int64_t elements) const {
  uint64_t bytes = 0;
  for (const StoredPart &part : parts)
    bytes += static_cast<uint64_t>(part.ofBlock ? elements / block : elements) * part.bytes;
  return bytes;
}

static const CodecInfo *getCodec(RegisteredOperationName op) {
  auto *interface = op.getInterface<CodecInterface>();
  return interface ? &interface->getCodec() : nullptr;
}

const CodecInfo *train::findCodec(MLIRContext *context, StringRef name, CodecUse use) {
  std::optional<RegisteredOperationName> op = RegisteredOperationName::lookup((encodePrefix + name).str(), context);
  const CodecInfo *codec = op ? getCodec(*op) : nullptr;
  return codec && codec->use == use ? codec : nullptr;
}

SmallVector<StringRef> train::listCodecs(MLIRContext *context, CodecUse use) {
  SmallVector<StringRef> names;
  for (RegisteredOperationName op : context->getRegisteredOperations())
    if (op.getStringRef().starts_with(encodePrefix))
      if (const CodecInfo *codec = getCodec(op); codec && codec->use == use)
        names.push_back(codec->name);
  llvm::sort(names);
  return names;
}

StringRef train::describe(Exactness exactness) {
  switch (exactness) {
  case Exactness::Exact:
    return "exact";
  case Exactness::Rounding:
    return "rounding";
  case Exactness::Lossy:
    return "lossy";
  }
  llvm_unreachable("every class has a name");
}

static RankedTensorType getPartType(Builder &b, const CodecInfo &codec, const StoredPart &part,
                                    ArrayRef<int64_t> shape) {
  return RankedTensorType::get(part.ofBlock ? shape.take_front() : shape, part.element(b));
}

Value train::buildDecode(OpBuilder &builder, Location loc, const CodecInfo &codec, ValueRange parts, bool nonNegative) {
  OperationState state(loc, (decodePrefix + codec.name).str());
  state.addOperands(parts);
  if (nonNegative)
    state.addAttribute("non_negative", builder.getUnitAttr());
  state.addTypes(cast<RankedTensorType>(parts.front().getType()).clone(builder.getF32Type()));
  return builder.create(state)->getResult(0);
}

SmallVector<Value> train::buildEncode(OpBuilder &builder, Location loc, const CodecInfo &codec, Value x,
                                      bool nonNegative, const Draws &draws) {
  OperationState state(loc, (encodePrefix + codec.name).str());
  state.addOperands(x);
  if (drawsNumbers(builder.getContext(), codec)) {
    state.addOperands({draws.seed, draws.step});
    state.addAttribute("stream", builder.getI64IntegerAttr(draws.stream));
  }
  if (nonNegative)
    state.addAttribute("non_negative", builder.getUnitAttr());
  for (const StoredPart &part : codec.parts)
    state.addTypes(getPartType(builder, codec, part, cast<RankedTensorType>(x.getType()).getShape()));
  return SmallVector<Value>(builder.create(state)->getResults());
}

bool train::drawsNumbers(MLIRContext *context, const CodecInfo &codec) {
  std::optional<RegisteredOperationName> op =
      RegisteredOperationName::lookup((encodePrefix + codec.name).str(), context);
  return llvm::any_of(op->getAttributeNames(), [](StringAttr name) { return name == "stream"; });
}

// --- records ---

LogicalResult train::verifyCodec(Operation *op, const CodecInfo &codec) {
  const bool isEncode = op->getName().getStringRef().starts_with(encodePrefix);
  auto wide = dyn_cast<RankedTensorType>(isEncode ? op->getOperand(0).getType() : op->getResult(0).getType());
  if (!wide || !wide.hasStaticShape() || !isa<FloatType>(wide.getElementType()))
    return op->emitOpError("stores a float tensor of static shape");
  if (codec.block && (wide.getRank() != 2 || wide.getDimSize(1) != codec.block))
    return op->emitOpError("takes blocks of ")
           << codec.block << " elements, a tensor of [blocks, " << codec.block << "], not " << wide;
  auto stored = isEncode ? TypeRange(op->getResultTypes()) : TypeRange(op->getOperandTypes());
  if (stored.size() != codec.parts.size())
    return op->emitOpError("stores ") << codec.parts.size() << " tensors, found " << stored.size();
  Builder b(op->getContext());
  for (auto [part, type] : llvm::zip_equal(codec.parts, stored)) {
    RankedTensorType wanted = getPartType(b, codec, part, wide.getShape());
    auto found = dyn_cast<RankedTensorType>(type);
    // Floats may have been widened.
    const bool areFloats = found && isa<FloatType>(found.getElementType()) && isa<FloatType>(wanted.getElementType());
    if (!found || found.getShape() != wanted.getShape() ||
        (found.getElementType() != wanted.getElementType() && !areFloats))
      return op->emitOpError("stores ") << wide << " in " << wanted << ", found " << type;
  }
  return success();
}

uint64_t train::countCodecFlops(Operation *op) {
  uint64_t elements = 0;
  for (Type type :
       llvm::concat<const Type>(llvm::to_vector(op->getOperandTypes()), llvm::to_vector(op->getResultTypes())))
    elements = std::max<uint64_t>(elements, cast<RankedTensorType>(type).getNumElements());
  constexpr uint64_t flopsPerElement = 4, flopsOfBlocks = 50;
  return elements * (cast<CodecInterface>(op).getCodec().block ? flopsOfBlocks : flopsPerElement);
}

double train::initialCode(double initial, bool nonNegative) {
  ArrayRef<float> numbers =
      nn::getCodeNumbers(nonNegative ? nn::CodeMap::dynamic_unsigned : nn::CodeMap::dynamic_signed);
  return static_cast<double>(llvm::find(numbers, initial == 0.0 ? 0.0F : 1.0F) - numbers.begin());
}

nn::Expr train::drawHalves(nn::Expr x, nn::Expr seed, nn::Expr step, int64_t stream) {
  OpBuilder &b = x.getBuilder();
  nn::Expr row = nn::splat(b, x.getLoc(), RankedTensorType::get({}, b.getI64Type()), 0.0);
  nn::Expr uniform = nn::randomUniform(x.type(), seed, step, row, stream, /*batchDim=*/-1);
  return nn::cast(uniform * 65536.0, b.getI32Type());
}

#include "lowtide/Dialect/Train/LayoutInterface.cpp.inc"

#define GET_OP_CLASSES
#include "lowtide/Dialect/Train/Layouts.cpp.inc"
