//===- ONNX.cpp - the `onnx` dialect
//---------------------------------------------===//
//
// Verifiers, folders and effects of the dialect that holds what the file said.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/ONNX/ONNX.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowtide::onnx;

#include "lowtide/Dialect/ONNX/ONNXDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "lowtide/Dialect/ONNX/ONNXTypes.cpp.inc"
#define GET_OP_CLASSES
#include "lowtide/Dialect/ONNX/ONNXOps.cpp.inc"

void ONNXDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "lowtide/Dialect/ONNX/ONNXTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "lowtide/Dialect/ONNX/ONNXOps.cpp.inc"
      >();
}

Operation *ONNXDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  if (isa<UnitAttr>(value) && isa<NoneType>(type))
    return NoneOp::create(builder, loc, type);
  if (ConstantOp::isBuildableWith(value, type))
    return ConstantOp::create(builder, loc, cast<ElementsAttr>(value));
  return nullptr;
}

//===----------------------------------------------------------------------===//
// NodeOp
//===----------------------------------------------------------------------===//

bool NodeOp::hasInput(unsigned index) {
  return index < getInputs().size() && !isa<NoneType>(getInputs()[index].getType());
}

StringRef NodeOp::getNodeLabel() {
  for (auto name : getOutputs().getAsRange<StringAttr>())
    if (!name.getValue().empty())
      return name.getValue();
  return getOpType();
}

/// Operators of the standard that draw random numbers: two equal nodes give
/// different values.
static bool drawsRandomNumbers(StringRef operatorName) {
  return llvm::StringSwitch<bool>(operatorName)
      .Cases({"Dropout", "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
              "RandomUniformLike"},
             true)
      .Default(false);
}

void NodeOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  // Operators outside of the standard may do anything; subgraphs may hold
  // random operators.
  bool standard = getDomain().empty() || getDomain() == "ai.onnx";
  if (!standard || !getBodies().empty() || drawsRandomNumbers(getOpType()))
    effects.emplace_back(MemoryEffects::Write::get());
}

LogicalResult NodeOp::verify() {
  if (getOpType().empty())
    return emitOpError("has an empty operator name");
  if (getVersion() < 1)
    return emitOpError("has operator set version ") << getVersion() << ", expected at least 1";
  if (getOutputs().size() != getNumResults())
    return emitOpError("names ") << getOutputs().size() << " outputs but has " << getNumResults() << " results";
  size_t numSubgraphs = getSubgraphs() ? getSubgraphs()->size() : 0;
  if (numSubgraphs != getBodies().size())
    return emitOpError("names ") << numSubgraphs << " subgraphs but has " << getBodies().size() << " regions";
  for (Region &body : getBodies())
    if (!isa_and_present<YieldOp>(body.front().empty() ? nullptr : &body.front().back()))
      return emitOpError("has a subgraph that does not end in 'onnx.yield'");
  return success();
}

//===----------------------------------------------------------------------===//
// ConstantOp, NoneOp
//===----------------------------------------------------------------------===//

bool ConstantOp::isBuildableWith(Attribute value, Type type) {
  auto elements = dyn_cast<ElementsAttr>(value);
  return elements && elements.getShapedType() == type;
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

OpFoldResult NoneOp::fold(FoldAdaptor) { return UnitAttr::get(getContext()); }
