//===- Bindings.cpp - what a step's arguments and results are bound to -*- C++
//-*-===//
//
// Reads and writes the bindings of a step.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/Bindings.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::train;

StringAttr train::getBindingName(Attribute binding) {
  return llvm::TypeSwitch<Attribute, StringAttr>(binding)
      .Case<ParamAttr, StateAttr, ConstantAttr, BatchAttr, ScalarAttr, MetricAttr, OutputAttr>(
          [](auto attribute) { return attribute.getName(); })
      .Default(StringAttr());
}

bool train::isBinding(Attribute attribute) { return attribute && getBindingName(attribute); }

Attribute train::getArgBinding(FunctionOpInterface step, unsigned arg) { return step.getArgAttr(arg, bindingAttrName); }

Attribute train::getResultBinding(FunctionOpInterface step, unsigned result) {
  return step.getResultAttr(result, bindingAttrName);
}

Value train::appendArg(func::FuncOp step, Type type, Attribute binding, Location loc) {
  unsigned position = step.getNumArguments();
  auto attributes = DictionaryAttr::get(step.getContext(),
                                        NamedAttribute(StringAttr::get(step.getContext(), bindingAttrName), binding));
  if (failed(step.insertArgument(position, type, attributes, loc)))
    return {};
  return step.getArgument(position);
}

Value train::getOrAppendScalar(func::FuncOp step, StringRef name, RankedTensorType type) {
  if (std::optional<unsigned> found = findArg<ScalarAttr>(step, name))
    return step.getArgument(*found);
  MLIRContext *context = step.getContext();
  return appendArg(step, type, ScalarAttr::get(context, StringAttr::get(context, name)), step.getLoc());
}

void train::appendResult(func::FuncOp step, Value value, Attribute binding) {
  Operation *terminator = step.getBody().back().getTerminator();
  unsigned position = terminator->getNumOperands();
  auto attributes = DictionaryAttr::get(step.getContext(),
                                        NamedAttribute(StringAttr::get(step.getContext(), bindingAttrName), binding));
  (void)step.insertResult(position, value.getType(), attributes);
  terminator->insertOperands(position, value);
}

void train::eraseResults(func::FuncOp step, llvm::function_ref<bool(Attribute)> drop) {
  llvm::BitVector dropped(step.getNumResults());
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    dropped[i] = drop(getResultBinding(step, i));
  step.getBody().back().getTerminator()->eraseOperands(dropped);
  (void)step.eraseResults(dropped);
}

LogicalResult train::moveEntry(ModuleOp from, StringRef name, ModuleOp into, StringRef entryName) {
  auto step = from.lookupSymbol<func::FuncOp>(name);
  if (!step)
    return from.emitError("there is no function @") << name;
  Operation *taken = into.lookupSymbol(entryName);
  if (taken && taken != step) {
    InFlightDiagnostic diagnostic = step.emitError("the module already has an entry point @") << entryName;
    diagnostic.attachNote(taken->getLoc()) << "here";
    return diagnostic;
  }
  step->moveBefore(into.getBody(), into.getBody()->end());
  step.setSymName(entryName);
  return success();
}
