//===- RepeatSyntax.cpp - text and rules that loops share -----------------===//
//
// Parsing, printing, building and verification of ops with rounds.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Interfaces/RepeatSyntax.h"

using namespace mlir;
using namespace lowtide;

static constexpr llvm::StringLiteral roundsName = "rounds", reversedName = "reversed",
                                     sizesName = "operandSegmentSizes";

bool lowtide::isReversed(Operation *loop) { return loop->hasAttr(reversedName); }

static RankedTensorType withRows(RankedTensorType type, int64_t rows) {
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = rows;
  return RankedTensorType::get(shape, type.getElementType());
}

RankedTensorType lowtide::getWholeOfRounds(RankedTensorType part, int64_t rounds) {
  return withRows(part, part.getDimSize(0) * rounds);
}

RankedTensorType lowtide::getPartOfRounds(RankedTensorType whole, int64_t rounds) {
  return withRows(whole, whole.getDimSize(0) / rounds);
}

ParseResult lowtide::parseRepeat(OpAsmParser &parser, OperationState &result, ArrayRef<StringRef> keywords) {
  IntegerAttr rounds;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<int32_t> sizes;
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseAttribute(rounds, parser.getBuilder().getI64Type(), roundsName, result.attributes))
    return failure();
  if (succeeded(parser.parseOptionalKeyword(reversedName)))
    result.addAttribute(reversedName, parser.getBuilder().getUnitAttr());
  for (StringRef keyword : keywords) {
    const size_t before = operands.size();
    if (succeeded(parser.parseOptionalKeyword(keyword)) &&
        parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&]() -> ParseResult {
          return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                         parser.parseOperand(operands.emplace_back()));
        }))
      return failure();
    sizes.push_back(int32_t(operands.size() - before));
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseColonType(type))
    return failure();
  if (type.getNumInputs() != operands.size())
    return parser.emitError(loc) << operands.size() << " operands, but " << type.getNumInputs() << " types";
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    argument.type = type.getInput(i);
    auto tensor = dyn_cast<RankedTensorType>(argument.type);
    if (int32_t(i) < sizes.front() && tensor && tensor.getRank() && rounds.getInt() > 0)
      argument.type = getPartOfRounds(tensor, rounds.getInt());
  }
  result.addAttribute(sizesName, parser.getBuilder().getDenseI32ArrayAttr(sizes));
  result.addTypes(type.getResults());
  return failure(parser.resolveOperands(operands, type.getInputs(), loc, result.operands) ||
                 parser.parseRegion(*result.addRegion(), arguments));
}

void lowtide::printRepeat(OpAsmPrinter &p, Operation *op, ArrayRef<StringRef> keywords, ArrayRef<unsigned> sizes) {
  p << ' ' << cast<IntegerAttr>(op->getAttr(roundsName)).getInt();
  if (isReversed(op))
    p << ' ' << reversedName;
  Block &block = op->getRegion(0).front();
  unsigned first = 0;
  for (auto [keyword, size] : llvm::zip_equal(keywords, sizes)) {
    if (size) {
      p << ' ' << keyword << '(';
      llvm::interleaveComma(llvm::seq(first, first + size), p, [&](unsigned i) {
        p.printRegionArgument(block.getArgument(i), {}, /*omitType=*/true);
        p << " = " << op->getOperand(i);
      });
      p << ')';
    }
    first += size;
  }
  p.printOptionalAttrDictWithKeyword(op->getAttrs(), {roundsName, reversedName, sizesName});
  p << " : ";
  p.printFunctionalType(op->getOperandTypes(), op->getResultTypes());
  p << ' ';
  p.printRegion(op->getRegion(0), /*printEntryBlockArgs=*/false);
}

void lowtide::buildRepeat(OpBuilder &builder, OperationState &state, int64_t rounds, bool reversed,
                          ArrayRef<ValueRange> lists, TypeRange rows) {
  state.addAttribute(roundsName, builder.getI64IntegerAttr(rounds));
  if (reversed)
    state.addAttribute(reversedName, builder.getUnitAttr());
  Block &block = state.addRegion()->emplaceBlock();
  SmallVector<int32_t> sizes;
  for (auto [i, list] : llvm::enumerate(lists)) {
    sizes.push_back(int32_t(list.size()));
    state.addOperands(list);
    for (Value value : list)
      block.addArgument(i ? value.getType() : getPartOfRounds(cast<RankedTensorType>(value.getType()), rounds),
                        value.getLoc());
    if (i == 1)
      state.addTypes(list.getTypes());
  }
  state.addAttribute(sizesName, builder.getDenseI32ArrayAttr(sizes));
  for (Type row : rows)
    state.addTypes(getWholeOfRounds(cast<RankedTensorType>(row), rounds));
}

LogicalResult lowtide::verifyRepeat(Operation *op, int64_t rounds, unsigned numSliced) {
  Block &block = op->getRegion(0).front();
  if (rounds < 1)
    return op->emitOpError("runs ") << rounds << " rounds";
  if (block.getNumArguments() != op->getNumOperands())
    return op->emitOpError("needs one block argument per operand");
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || !type.hasStaticShape())
      return op->emitOpError("operand ") << i << " is no static tensor";
    if (i < numSliced && (type.getRank() == 0 || type.getDimSize(0) % rounds))
      return op->emitOpError("operand ") << i << " of type " << type << " has no dimension 0 that " << rounds
                                         << " rounds share evenly";
    Type expected = i < numSliced ? getPartOfRounds(type, rounds) : type;
    if (block.getArgument(i).getType() != expected)
      return op->emitOpError("block argument ") << i << " must be " << expected;
  }
  return success();
}

LogicalResult lowtide::verifyRounds(Operation *op, int64_t rounds, unsigned numSliced, unsigned numCarried,
                                    StringRef terminator) {
  Block &block = op->getRegion(0).front();
  Operation *next = block.empty() ? nullptr : &block.back();
  if (!next || next->getName().getStringRef() != terminator)
    return op->emitOpError("must end with ") << terminator;
  const unsigned handedOn = unsigned(next->getAttrOfType<DenseI32ArrayAttr>(sizesName)[0]);
  if (handedOn != numCarried || next->getNumOperands() != op->getNumResults())
    return next->emitOpError("hands on ")
           << handedOn << " + " << next->getNumOperands() - handedOn << " values; the loop carries " << numCarried
           << " and has " << op->getNumResults() << " results";
  for (auto [i, value] : llvm::enumerate(next->getOperands())) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    const bool carried = i < numCarried;
    if (!type || !type.hasStaticShape() || (!carried && type.getRank() == 0))
      return next->emitOpError("operand ") << i << " is no static tensor" << (carried ? "" : " with rows");
    if (Type started = carried ? op->getOperand(numSliced + i).getType() : Type(); started && type != started)
      return next->emitOpError("carries on ") << type << " where the loop started with " << started;
    if (Type expected = carried ? type : getWholeOfRounds(type, rounds); op->getResult(i).getType() != expected)
      return op->emitOpError("result ") << i << " must be " << expected;
  }
  return success();
}
