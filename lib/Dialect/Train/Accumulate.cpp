//===- Accumulate.cpp - train.accumulate: syntax and verification *- C++ -*-===//
//
// The loop over parts of a batch.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/Train.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::train;

static RankedTensorType withRows(RankedTensorType type, int64_t rows) {
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = rows;
  return RankedTensorType::get(shape, type.getElementType());
}

RankedTensorType AccumulateOp::getWhole(RankedTensorType part, int64_t rounds) {
  return withRows(part, part.getDimSize(0) * rounds);
}

RankedTensorType AccumulateOp::getPart(RankedTensorType whole, int64_t rounds) {
  return withRows(whole, whole.getDimSize(0) / rounds);
}

NextOp AccumulateOp::getNext() { return cast<NextOp>(getBlock()->getTerminator()); }

const OpFacts &AccumulateOp::getFacts() {
  static const OpFacts facts{OpFamily::Repeat, PrecisionPolicy::Follow, Aliasing::None, BatchRule::Unknown, 0, ""};
  return facts;
}

uint64_t AccumulateOp::getFlops() {
  uint64_t flops = 0;
  for (Operation &op : *getBlock())
    if (auto facts = dyn_cast<FactsInterface>(op))
      flops += facts.getFlops();
  return flops * static_cast<uint64_t>(getRounds());
}

unsigned AccumulateOp::getNumSliced() { return getSliced().size(); }
unsigned AccumulateOp::getNumCarried() { return getCarried().size(); }

void AccumulateOp::build(OpBuilder &builder, OperationState &state, int64_t rounds, ValueRange sliced,
                         ValueRange carried, TypeRange rows) {
  state.addAttribute(getRoundsAttrName(state.name), builder.getI64IntegerAttr(rounds));
  state.addOperands(sliced);
  state.addOperands(carried);
  state.addAttribute(getOperandSegmentSizesAttrName(state.name),
                     builder.getDenseI32ArrayAttr({int32_t(sliced.size()), int32_t(carried.size())}));
  Block &block = state.addRegion()->emplaceBlock();
  for (Value value : sliced)
    block.addArgument(getPart(cast<RankedTensorType>(value.getType()), rounds), value.getLoc());
  for (Value value : carried) {
    block.addArgument(value.getType(), value.getLoc());
    state.addTypes(value.getType());
  }
  for (Type row : rows)
    state.addTypes(getWhole(cast<RankedTensorType>(row), rounds));
}

ParseResult AccumulateOp::parse(OpAsmParser &parser, OperationState &result) {
  IntegerAttr rounds;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  int32_t sizes[2] = {0, 0};
  auto parseList = [&](StringRef keyword, int32_t &size) -> ParseResult {
    if (failed(parser.parseOptionalKeyword(keyword)))
      return success();
    return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&]() -> ParseResult {
      ++size;
      return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                     parser.parseOperand(operands.emplace_back()));
    });
  };
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseAttribute(rounds, parser.getBuilder().getI64Type(), "rounds", result.attributes) ||
      parseList("slices", sizes[0]) || parseList("carries", sizes[1]) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseColonType(type))
    return failure();
  if (type.getNumInputs() != operands.size())
    return parser.emitError(loc) << operands.size() << " operands, but " << type.getNumInputs() << " types";
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    argument.type = type.getInput(i);
    auto tensor = dyn_cast<RankedTensorType>(argument.type);
    if (int32_t(i) < sizes[0] && tensor && tensor.getRank() && rounds.getInt() > 0)
      argument.type = getPart(tensor, rounds.getInt());
  }
  result.addAttribute(getOperandSegmentSizesAttrName(result.name), parser.getBuilder().getDenseI32ArrayAttr(sizes));
  result.addTypes(type.getResults());
  return failure(parser.resolveOperands(operands, type.getInputs(), loc, result.operands) ||
                 parser.parseRegion(*result.addRegion(), arguments));
}

void AccumulateOp::print(OpAsmPrinter &p) {
  p << ' ' << getRounds();
  auto printList = [&](StringRef keyword, OperandRange operands, unsigned first) {
    if (operands.empty())
      return;
    p << ' ' << keyword << '(';
    llvm::interleaveComma(llvm::enumerate(operands), p, [&](auto entry) {
      p.printRegionArgument(getBlock()->getArgument(first + entry.index()), {}, /*omitType=*/true);
      p << " = " << entry.value();
    });
    p << ')';
  };
  printList("slices", getSliced(), 0);
  printList("carries", getCarried(), getSliced().size());
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getRoundsAttrName(), getOperandSegmentSizesAttrName()});
  p << " : ";
  p.printFunctionalType(getOperandTypes(), getResultTypes());
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult AccumulateOp::verify() {
  if (getRounds() < 1)
    return emitOpError("runs ") << getRounds() << " rounds";
  if (getBlock()->getNumArguments() != getNumOperands())
    return emitOpError("needs one block argument per operand");
  for (auto [i, operand] : llvm::enumerate(getOperands())) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || !type.hasStaticShape())
      return emitOpError("operand ") << i << " is no static tensor";
    if (i < getNumSliced() && (type.getRank() == 0 || type.getDimSize(0) % getRounds()))
      return emitOpError("operand ") << i << " of type " << type << " has no dimension 0 that " << getRounds()
                                     << " rounds share evenly";
    Type expected = i < getNumSliced() ? getPart(type, getRounds()) : type;
    if (getBlock()->getArgument(i).getType() != expected)
      return emitOpError("block argument ") << i << " must be " << expected;
  }
  return success();
}

LogicalResult AccumulateOp::verifyRegions() {
  auto next = dyn_cast_or_null<NextOp>(getBlock()->empty() ? nullptr : &getBlock()->back());
  if (!next)
    return emitOpError("must end with train.next");
  if (next.getCarried().size() != getCarried().size() ||
      next.getCarried().size() + next.getRows().size() != getNumResults())
    return next.emitOpError("hands on ") << next.getCarried().size() << " + " << next.getRows().size()
                                         << " values; the loop carries " << getCarried().size() << " and has "
                                         << getNumResults() << " results";
  for (auto [i, value] : llvm::enumerate(next.getOperands())) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    bool carried = i < getNumCarried();
    if (!type || !type.hasStaticShape() || (!carried && type.getRank() == 0))
      return next.emitOpError("operand ") << i << " is no static tensor" << (carried ? "" : " with rows");
    if (carried && type != getCarried()[i].getType())
      return next.emitOpError("carries on ") << type << " where the loop started with " << getCarried()[i].getType();
    if (getResult(i).getType() != (carried ? type : getWhole(type, getRounds())))
      return emitOpError("result ") << i << " must be " << (carried ? type : getWhole(type, getRounds()));
  }
  return success();
}
