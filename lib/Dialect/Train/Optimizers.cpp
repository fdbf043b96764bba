//===- Optimizers.cpp - what all optimizer records share -------*- C++ -*-===//
//
// Syntax, verification and construction of updates, and the definitions
// generated from the records.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/Optimizers.h"
#include "lowtide/Dialect/Train/LossScaling.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::train;

/// Operands before the state: param, grad, lr, step.
static constexpr unsigned firstState = 4;

const OptimizerOption *OptimizerInfo::findOption(StringRef option) const {
  for (const OptimizerOption &candidate : options)
    if (candidate.name == option)
      return &candidate;
  return nullptr;
}

std::optional<OptimizerInfo> train::findOptimizer(MLIRContext *context, StringRef name) {
  std::optional<RegisteredOperationName> op = RegisteredOperationName::lookup(("train." + name).str(), context);
  if (!op)
    return std::nullopt;
  auto *interface = op->getInterface<OptimizerInterface>();
  if (!interface)
    return std::nullopt;
  return OptimizerInfo{op->getStringRef().drop_front(strlen("train.")), interface->getSlots(), interface->getOptions()};
}

SmallVector<StringRef> train::listOptimizers(MLIRContext *context) {
  SmallVector<StringRef> names;
  for (RegisteredOperationName op : context->getRegisteredOperations())
    if (op.hasInterface<OptimizerInterface>())
      names.push_back(op.getStringRef().drop_front(strlen("train.")));
  llvm::sort(names);
  return names;
}

RankedTensorType train::getStateType(Type param) {
  auto type = cast<RankedTensorType>(param);
  auto element = dyn_cast<FloatType>(type.getElementType());
  if (!element || element.getWidth() >= 32)
    return type;
  return RankedTensorType::get(type.getShape(), Float32Type::get(type.getContext()));
}

Operation *train::buildUpdate(OpBuilder &builder, Location loc, const OptimizerInfo &optimizer,
                              const UpdateOperands &operands, const std::map<std::string, double> &options,
                              bool onnxConvention) {
  OperationState state(loc, ("train." + optimizer.name).str());
  state.addOperands({operands.param, operands.grad, operands.lr, operands.step});
  state.addOperands(operands.state);
  for (const OptimizerOption &option : optimizer.options)
    state.addAttribute(option.name, builder.getF64FloatAttr(options.at(option.name.str())));
  if (onnxConvention)
    state.addAttribute("onnx_convention", builder.getUnitAttr());
  state.addTypes(operands.param.getType());
  state.addTypes(SmallVector<Type>(operands.state.size(), getStateType(operands.param.getType())));
  return builder.create(state);
}

UpdateOperands train::getUpdateOperands(OptimizerInterface update) {
  OperandRange operands = update->getOperands();
  return {operands[0], operands[1], operands[2], operands[3], SmallVector<Value>(operands.drop_front(firstState))};
}

Operation *train::buildRowUpdate(OpBuilder &builder, OptimizerInterface update, const UpdateOperands &rows) {
  OperationState state(update.getLoc(), update->getName());
  state.addOperands({rows.param, rows.grad, rows.lr, rows.step});
  state.addOperands(rows.state);
  state.addAttributes(update->getAttrs());
  state.addAttribute("rows", builder.getUnitAttr());
  state.addTypes(rows.param.getType());
  state.addTypes(SmallVector<Type>(rows.state.size(), getStateType(rows.param.getType())));
  return builder.create(state);
}

// --- records ---

// train.adamw %w gradient %g lr %lr step %t state %m, %v {…} : tensor<4xf32>,
// tensor<f32>, tensor<i64>
ParseResult train::parseOptimizer(OpAsmParser &parser, OperationState &result, size_t slots) {
  OpAsmParser::UnresolvedOperand param, grad, lr, step;
  SmallVector<OpAsmParser::UnresolvedOperand> state;
  Type type, lrType, stepType;
  if (parser.parseOperand(param) || parser.parseKeyword("gradient") || parser.parseOperand(grad) ||
      parser.parseKeyword("lr") || parser.parseOperand(lr) || parser.parseKeyword("step") || parser.parseOperand(step))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("state")) && parser.parseOperandList(state))
    return failure();
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(type) || parser.parseComma() ||
      parser.parseType(lrType) || parser.parseComma() || parser.parseType(stepType) ||
      parser.resolveOperand(param, type, result.operands))
    return failure();
  auto tensor = dyn_cast<RankedTensorType>(type);
  Type stateType = tensor ? Type(getStateType(tensor)) : type;
  if (parser.resolveOperand(grad, stateType, result.operands) || parser.resolveOperand(lr, lrType, result.operands) ||
      parser.resolveOperand(step, stepType, result.operands) ||
      parser.resolveOperands(state, stateType, result.operands))
    return failure();
  result.addTypes(type);
  result.addTypes(SmallVector<Type>(slots, stateType));
  return success();
}

void train::printOptimizer(OpAsmPrinter &printer, Operation *op) {
  printer << ' ' << op->getOperand(0) << " gradient " << op->getOperand(1) << " lr " << op->getOperand(2) << " step "
          << op->getOperand(3);
  if (op->getNumOperands() > firstState)
    printer << " state " << op->getOperands().drop_front(firstState);
  printer.printOptionalAttrDict(op->getAttrs());
  printer << " : " << op->getOperand(0).getType() << ", " << op->getOperand(2).getType() << ", "
          << op->getOperand(3).getType();
}

LogicalResult train::verifyOptimizer(Operation *op, size_t slots) {
  auto param = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  if (!param || !param.hasStaticShape() || !isa<FloatType>(param.getElementType()))
    return op->emitOpError("updates a float tensor of static shape, not ") << op->getOperand(0).getType();
  auto lr = dyn_cast<RankedTensorType>(op->getOperand(2).getType());
  if (!lr || lr.getRank() != 0 || !isa<FloatType>(lr.getElementType()))
    return op->emitOpError("takes the learning rate as a float scalar (rank 0), not ") << op->getOperand(2).getType();
  auto step = dyn_cast<RankedTensorType>(op->getOperand(3).getType());
  if (!step || step.getRank() != 0 || !step.getElementType().isInteger(64))
    return op->emitOpError("takes the step as tensor<i64>, not ") << op->getOperand(3).getType();
  if (op->getNumOperands() != firstState + slots || op->getNumResults() != 1 + slots)
    return op->emitOpError("keeps ") << slots << " state tensors, but has " << op->getNumOperands() - firstState
                                     << " as operands and " << op->getNumResults() - 1 << " as results";
  RankedTensorType wide = getStateType(param);
  for (auto [i, type] : llvm::enumerate(op->getResultTypes()))
    if (type != (i == 0 ? param : wide))
      return op->emitOpError("result of type ") << type << " for a parameter of type " << param;
  for (unsigned i = 1; i < op->getNumOperands(); ++i)
    if ((i == 1 || i >= firstState) && op->getOperand(i).getType() != wide)
      return op->emitOpError("operand ") << i << " has type " << op->getOperand(i).getType() << ", the parameter "
                                         << param;
  return success();
}

uint64_t train::countUpdateFlops(Operation *op, uint64_t flopsPerElement) {
  return flopsPerElement * cast<RankedTensorType>(op->getOperand(0).getType()).getNumElements();
}

nn::Expr train::effectiveLearningRate(OpBuilder &builder, Operation *op) {
  nn::Expr lr = nn::cast(nn::Expr(builder, op->getLoc(), op->getOperand(2)), builder.getF64Type());
  double scale = cast<OptimizerInterface>(op).getOption("lr_scale");
  return scale == 1.0 ? lr : lr * scale;
}

nn::Expr train::updateNumber(OpBuilder &builder, Operation *op) {
  return nn::cast(nn::Expr(builder, op->getLoc(), op->getOperand(3)), builder.getF64Type());
}

nn::Expr train::spreadScalar(nn::Expr scalar, RankedTensorType type) {
  return nn::broadcast(nn::cast(scalar, type.getElementType()), type.getShape(), {});
}

#include "lowtide/Dialect/Train/OptimizerInterface.cpp.inc"

#define GET_OP_CLASSES
#include "lowtide/Dialect/Train/TrainOps.cpp.inc"
