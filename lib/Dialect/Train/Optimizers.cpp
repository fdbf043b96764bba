//===- Optimizers.cpp - what all optimizer records share -------*- C++ -*-===//
//
// Syntax, verification and construction of updates, and the definitions
// generated from the records.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/Optimizers.h"
#include "lowtide/Dialect/Train/LossScaling.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include <cmath>

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
  return OptimizerInfo{op->getStringRef().drop_front(strlen("train.")), interface->getOptions(), interface->getTraits(),
                       interface->listSlots};
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

int64_t ParamShape::findDim(int64_t fromBack) const {
  const int64_t dim = getRank() - fromBack;
  return permutation.empty() ? dim : llvm::find(permutation, dim) - permutation.begin();
}

RankedTensorType train::getSlotType(const StateSlot &slot, const ParamShape &shape, RankedTensorType wide) {
  SmallVector<int64_t> dims(shape.dims);
  switch (slot.shape) {
  case SlotShape::Param:
    break;
  case SlotShape::Scalar:
    dims.clear();
    break;
  case SlotShape::Rows:
    dims[shape.findDim(1)] = 1;
    break;
  case SlotShape::Columns:
    dims[shape.findDim(2)] = 1;
    break;
  }
  return wide.clone(dims);
}

/// Types of an update's state.
static SmallVector<Type> listSlotTypes(ArrayRef<StateSlot> slots, const ParamShape &shape, RankedTensorType wide) {
  return llvm::map_to_vector(slots, [&](const StateSlot &slot) -> Type { return getSlotType(slot, shape, wide); });
}

Operation *train::buildUpdate(OpBuilder &builder, Location loc, const OptimizerInfo &optimizer,
                              const UpdateOperands &operands, const std::map<std::string, double> &options,
                              bool onnxConvention) {
  OperationState state(loc, ("train." + optimizer.name).str());
  state.addOperands({operands.param, operands.grad, operands.lr, operands.step});
  state.addOperands(operands.state);
  for (const OptimizerOption &option : optimizer.options)
    if (double value = options.at(option.name.str()); value != 0.0 || !option.isSwitch)
      state.addAttribute(option.name, builder.getF64FloatAttr(value));
  if (onnxConvention)
    state.addAttribute("onnx_convention", builder.getUnitAttr());
  if (operands.permutation)
    state.addAttribute("permutation", operands.permutation);
  state.addTypes(operands.param.getType());
  state.addTypes(llvm::map_to_vector(operands.state, [](Value slot) { return slot.getType(); }));
  return builder.create(state);
}

UpdateOperands train::getUpdateOperands(OptimizerInterface update) {
  OperandRange operands = update->getOperands();
  return {operands[0], operands[1], operands[2], operands[3], SmallVector<Value>(operands.drop_front(firstState)), {}};
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

double train::readOption(const std::map<std::string, double> &options, StringRef name, double fallback) {
  auto found = options.find(name.str());
  return found == options.end() ? fallback : found->second;
}

static std::map<std::string, double> readOptions(ArrayRef<NamedAttribute> attributes) {
  std::map<std::string, double> options;
  for (NamedAttribute attribute : attributes)
    if (auto value = dyn_cast<FloatAttr>(attribute.getValue()))
      options[attribute.getName().str()] = value.getValueAsDouble();
  return options;
}

SmallVector<StateSlot> train::listSlots(OptimizerInterface update) {
  return update.listSlots(readOptions(update->getAttrs()), getParamShape(update.getOperation()));
}

ParamShape train::getParamShape(RankedTensorType param, Attribute permutation) {
  auto order = dyn_cast_if_present<DenseI64ArrayAttr>(permutation);
  bool isOne = order && isPermutationVector(order.asArrayRef()) && order.size() == param.getRank();
  return {param.getShape(), isOne ? order.asArrayRef() : ArrayRef<int64_t>()};
}

ParamShape train::getParamShape(Operation *op) {
  return getParamShape(cast<RankedTensorType>(op->getOperand(0).getType()), op->getAttr("permutation"));
}

// train.adamw %w gradient %g lr %lr step %t state %m, %v {…} : tensor<4xf32>,
// tensor<f32>, tensor<i64>
ParseResult train::parseOptimizer(OpAsmParser &parser, OperationState &result,
                                  decltype(OptimizerInfo::listSlots) listSlots) {
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
  Type gradType = type;
  SmallVector<Type> slotTypes;
  const SMLoc where = parser.getNameLoc();
  if (tensor && tensor.hasStaticShape()) {
    RankedTensorType wide = getStateType(tensor);
    gradType = wide;
    ParamShape shape = getParamShape(tensor, result.attributes.get("permutation"));
    slotTypes = listSlotTypes(listSlots(readOptions(result.attributes), shape), shape, wide);
  }
  if (slotTypes.size() != state.size() && tensor && tensor.hasStaticShape())
    return parser.emitError(where, "keeps ") << slotTypes.size() << " state tensors, but has " << state.size();
  if (parser.resolveOperand(grad, gradType, result.operands) || parser.resolveOperand(lr, lrType, result.operands) ||
      parser.resolveOperand(step, stepType, result.operands) ||
      parser.resolveOperands(state, slotTypes, where, result.operands))
    return failure();
  result.addTypes(type);
  result.addTypes(slotTypes);
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

LogicalResult train::verifyOptimizer(OptimizerInterface op) {
  auto param = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  if (!param || !param.hasStaticShape() || !isa<FloatType>(param.getElementType()))
    return op->emitOpError("updates a float tensor of static shape, not ") << op->getOperand(0).getType();
  auto lr = dyn_cast<RankedTensorType>(op->getOperand(2).getType());
  if (!lr || lr.getRank() != 0 || !isa<FloatType>(lr.getElementType()))
    return op->emitOpError("takes the learning rate as a float scalar (rank 0), not ") << op->getOperand(2).getType();
  auto step = dyn_cast<RankedTensorType>(op->getOperand(3).getType());
  if (!step || step.getRank() != 0 || !step.getElementType().isInteger(64))
    return op->emitOpError("takes the step as tensor<i64>, not ") << op->getOperand(3).getType();
  const ParamShape shape = getParamShape(op);
  if (auto permutation = op->getAttrOfType<DenseI64ArrayAttr>("permutation");
      permutation && shape.permutation.empty() && shape.getRank() != 0)
    return op->emitOpError("has a permutation that is none of ") << shape.getRank() << " dimensions";
  // Who leaves parameters to another optimizer takes hidden matrices alone.
  if (!op.getTraits().fallback.empty() && shape.getRank() < 2)
    return op->emitOpError("updates matrices, not ") << param;
  if (op->hasAttr("onnx_convention") && !op.getTraits().isInOnnx)
    return op->emitOpError("is no optimizer of ONNX");
  for (const OptimizerOption &option : op.getOptions())
    if (double value = op.getOption(option.name); !op->hasAttr("onnx_convention") && !option.isValid(value))
      return op->emitOpError("option ") << option.name << " " << option.rule << ", found " << value;
  const RankedTensorType wide = getStateType(param);
  const SmallVector<StateSlot> slots = listSlots(op);
  if (op->getNumOperands() != firstState + slots.size() || op->getNumResults() != 1 + slots.size())
    return op->emitOpError("keeps ") << slots.size() << " state tensors, but has " << op->getNumOperands() - firstState
                                     << " as operands and " << op->getNumResults() - 1 << " as results";
  SmallVector<Type> results{param};
  llvm::append_range(results, listSlotTypes(slots, shape, wide));
  for (auto [type, expected] : llvm::zip_equal(op->getResultTypes(), results))
    if (type != expected)
      return op->emitOpError("result of type ") << type << " for a parameter of type " << param;
  results.front() = wide; // the gradient's
  for (auto [i, expected] : llvm::enumerate(results)) {
    const unsigned operand = i == 0 ? 1 : firstState + i - 1;
    if (op->getOperand(operand).getType() != expected)
      return op->emitOpError("operand ") << operand << " has type " << op->getOperand(operand).getType()
                                         << ", the parameter " << param;
  }
  return success();
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

// --- shared arithmetic ---

nn::Expr train::lerp(nn::Expr start, nn::Expr end, double weight) {
  return weight < 0.5 ? start + (end - start) * weight : end - (end - start) * (1.0 - weight);
}

nn::Expr train::lerp(nn::Expr start, nn::Expr end, nn::Expr weight) {
  nn::Expr near = spreadScalar(weight, start.type()), far = spreadScalar(1.0 - weight, start.type());
  nn::Expr isNear = nn::broadcast(nn::less(weight, 0.5), start.shape(), {});
  return nn::select(isNear, start + (end - start) * near, end - (end - start) * far);
}

nn::Expr train::norm(nn::Expr x) { return nn::sqrt(nn::sum(x * x, llvm::to_vector(llvm::seq<int64_t>(0, x.rank())))); }

nn::Expr train::stretch(nn::Expr x, ArrayRef<int64_t> shape) { return nn::broadcastTo(x, shape); }

double train::getEpsilon(Type elementType) {
  const auto digits = static_cast<int>(cast<FloatType>(elementType).getFPMantissaWidth());
  return std::ldexp(1.0, 1 - digits);
}

nn::Expr train::orthogonalize(nn::Expr x, std::array<double, 3> coefficients, double steps, double eps) {
  const auto [a, b, c] = coefficients;
  Type wide = x.elementType();
  Type narrow = wide.isF64() ? wide : Type(BFloat16Type::get(wide.getContext()));
  auto widen = [&](nn::Expr value) { return nn::cast(value, wide); };
  auto round = [&](nn::Expr value) { return nn::cast(value, narrow); };
  const bool isTall = x.dim(0) > x.dim(1);
  x = round(x);
  nn::Expr size = nn::max(widen(round(norm(widen(x)))), eps);
  x = round(widen(x) / nn::broadcast(size, x.shape(), {}));
  for (int i = 0; i < static_cast<int>(steps); ++i) {
    nn::Expr gram = nn::dot(x, x, /*transposeA=*/isTall, /*transposeB=*/!isTall);
    nn::Expr polynomial = round(widen(gram) * b + widen(nn::dot(gram, gram)) * c);
    nn::Expr turned = isTall ? nn::dot(x, polynomial) : nn::dot(polynomial, x);
    x = round(widen(x) * a + widen(turned));
  }
  return x;
}

uint64_t train::countOrthogonalizationFlops(ArrayRef<int64_t> shape, double steps) {
  const auto few = static_cast<uint64_t>(std::min(shape[0], shape[1]));
  const auto many = static_cast<uint64_t>(std::max(shape[0], shape[1]));
  const uint64_t products = 2 * (2 * few * few * many) + 2 * few * few * few;
  return static_cast<uint64_t>(steps) * (products + 3 * few * few + 2 * few * many) + 3 * few * many;
}

#include "lowtide/Dialect/Train/OptimizerInterface.cpp.inc"

#define GET_OP_CLASSES
#include "lowtide/Dialect/Train/TrainOps.cpp.inc"
