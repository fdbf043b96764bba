//===- Kernel.cpp - nn.kernel: syntax and verification ----------*- C++ -*-===//
//
// The region op that code generation turns into one machine kernel.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Dialect/NN/RecordSupport.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

uint64_t nn::countFlops(Region &region) {
  uint64_t flops = 0;
  for (Operation &op : region.getOps())
    if (auto facts = dyn_cast<FactsInterface>(op))
      flops += facts.getFlops();
  return flops;
}

YieldOp KernelOp::getYield() { return cast<YieldOp>(getBlock()->getTerminator()); }

bool KernelOp::isEmpty() {
  return getNumResults() && llvm::all_of(getResultTypes(), [](Type type) {
           auto tensor = dyn_cast<RankedTensorType>(type);
           return tensor && llvm::is_contained(tensor.getShape(), 0);
         });
}

void KernelOp::build(OpBuilder &builder, OperationState &state, Emitter emitter, ValueRange operands,
                     TypeRange results) {
  state.addAttribute(getEmitterAttrName(state.name), EmitterAttr::get(builder.getContext(), emitter));
  state.addOperands(operands);
  state.addTypes(results);
  Block &block = state.addRegion()->emplaceBlock();
  for (Value operand : operands)
    block.addArgument(operand.getType(), operand.getLoc());
}

static ParseResult parseEmitter(OpAsmParser &parser, OperationState &result) {
  FailureOr<Emitter> emitter = FieldParser<Emitter>::parse(parser);
  if (failed(emitter))
    return failure();
  result.addAttribute(KernelOp::getEmitterAttrName(result.name), EmitterAttr::get(parser.getContext(), *emitter));
  return success();
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  auto parseCapture = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()));
  };
  FunctionType type;
  SMLoc operandsLoc;
  if (parseEmitter(parser, result) || parser.getCurrentLocation(&operandsLoc) ||
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseCapture) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseColonType(type))
    return failure();
  if (type.getNumInputs() != operands.size())
    return parser.emitError(operandsLoc) << operands.size() << " operands, but " << type.getNumInputs() << " types";
  for (auto [argument, inputType] : llvm::zip(arguments, type.getInputs()))
    argument.type = inputType;
  result.addTypes(type.getResults());
  return failure(parser.resolveOperands(operands, type.getInputs(), operandsLoc, result.operands) ||
                 parser.parseRegion(*result.addRegion(), arguments));
}

void KernelOp::print(OpAsmPrinter &p) {
  p << ' ' << stringifyEmitter(getEmitter()) << " (";
  llvm::interleaveComma(llvm::zip(getBlock()->getArguments(), getOperands()), p, [&](auto capture) {
    p.printRegionArgument(std::get<0>(capture), {}, /*omitType=*/true);
    p << " = " << std::get<1>(capture);
  });
  p << ')';
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getEmitterAttrName()});
  p << " : ";
  p.printFunctionalType(getOperandTypes(), getResultTypes());
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verify() {
  if (getBlock()->getArgumentTypes() != getOperandTypes())
    return emitOpError("needs one block argument per operand, of the same type");
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  auto yield = dyn_cast_or_null<YieldOp>(getBlock()->empty() ? nullptr : &getBlock()->back());
  if (!yield)
    return emitOpError("must end with nn.yield");
  if (yield.getOperandTypes() != getResultTypes())
    return yield.emitOpError("yields other types than the kernel's results");
  return success();
}
