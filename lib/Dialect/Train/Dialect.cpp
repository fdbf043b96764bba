//===- Dialect.cpp - registers the train dialect ----------------*- C++ -*-===//
//
// The dialect and its attributes.
//
//===----------------------------------------------------------------------===//

#include "TargetSyntax.h"
#include "lowtide/Dialect/Train/Layouts.h"
#include "lowtide/Dialect/Train/Target.h"
#include "lowtide/Dialect/Train/Train.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "lowtide/Dialect/Train/TrainDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "lowtide/Dialect/Train/TrainAttrs.cpp.inc"

void lowtide::train::TrainDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "lowtide/Dialect/Train/TrainOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "lowtide/Dialect/Train/Layouts.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "lowtide/Dialect/Train/TrainAttrs.cpp.inc"
      >();
}

LogicalResult lowtide::train::TrainDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned number,
                                                                     NamedAttribute attribute) {
  auto batch = dyn_cast<BatchAttr>(attribute.getValue());
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!batch || !function)
    return success();
  Type type = function.getArgumentTypes()[number];
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (batch.getDim() == -1 || (tensor && batch.getDim() >= 0 && batch.getDim() < tensor.getRank()))
    return success();
  // A body that lacks the argument is an error of the function's own verifier, which comes later.
  const bool hasArgument = !function.isExternal() && number < function.getFunctionBody().getNumArguments();
  Location loc = hasArgument ? function.getArgument(number).getLoc() : op->getLoc();
  return emitError(loc, "batch array ") << batch.getName() << ": " << type << " has no dimension " << batch.getDim()
                                        << " that counts samples; where none does, write #train.batch<"
                                        << batch.getName() << ", dim = -1>";
}

LogicalResult lowtide::train::TrainDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != targetAttrName)
    return success();
  if (!isa<ModuleOp>(op))
    return op->emitError() << targetAttrName << " belongs to a module: all its steps have one target";
  if (!isa<TargetAttr>(attribute.getValue()))
    return op->emitError() << targetAttrName << " is " << attribute.getValue()
                           << "; it is a #train.target<…>, as --train-set-target=target=NAME writes it";
  return success();
}

Attribute lowtide::train::StateAttr::parse(AsmParser &parser, Type) {
  StringAttr name;
  FloatAttr initial;
  bool fromFile = false, pending = false;
  if (parser.parseLess() || parser.parseAttribute(name))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("from_file"))) {
      fromFile = true;
      continue;
    }
    if (succeeded(parser.parseOptionalKeyword("pending"))) {
      pending = true;
      continue;
    }
    double value;
    if (parser.parseKeyword("initial") || parser.parseEqual() || parser.parseFloat(value))
      return {};
    initial = parser.getBuilder().getF64FloatAttr(value);
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), name, initial, fromFile, pending);
}

void lowtide::train::StateAttr::print(AsmPrinter &printer) const {
  printer << '<' << getName();
  if (getInitial()) {
    printer << ", initial = ";
    printer.printFloat(getInitial().getValue());
  }
  if (getFromFile())
    printer << ", from_file";
  if (getPending())
    printer << ", pending";
  printer << '>';
}
