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
      .Case<ParamAttr, StateAttr, ConstantAttr, BatchAttr, ScalarAttr, MetricAttr, OutputAttr, GradientAttr>(
          [](auto attribute) { return attribute.getName(); })
      .Default(StringAttr());
}

bool train::isBinding(Attribute attribute) { return attribute && getBindingName(attribute); }

Attribute train::getArgBinding(FunctionOpInterface step, unsigned arg) { return step.getArgAttr(arg, bindingAttrName); }

Attribute train::getResultBinding(FunctionOpInterface step, unsigned result) {
  return step.getResultAttr(result, bindingAttrName);
}

SmallVector<StringRef> train::listNames(FunctionOpInterface step, unsigned arg) {
  SmallVector<StringRef> names = {getBindingName(getArgBinding(step, arg)).getValue()};
  if (auto tied = step.getArgAttrOfType<ArrayAttr>(arg, "onnx.tied"))
    for (auto name : tied.getAsRange<StringAttr>())
      if (!llvm::is_contained(names, name.getValue()))
        names.push_back(name.getValue());
  return names;
}

train::BindingIndex::BindingIndex(FunctionOpInterface step) {
  auto add = [](Numbers &numbers, Attribute binding, unsigned number) {
    if (isBinding(binding))
      numbers.try_emplace({binding.getTypeID(), getBindingName(binding).getValue()}, number);
  };
  for (unsigned i = 0, e = step.getNumArguments(); i < e; ++i)
    add(args, getArgBinding(step, i), i);
  for (unsigned i = 0, e = step.getNumResults(); i < e; ++i)
    add(results, getResultBinding(step, i), i);
}

std::optional<unsigned> train::BindingIndex::findGradient(StringAttr parameter) const {
  return findResult<GradientAttr>(gradientName(parameter.getValue()));
}

std::optional<unsigned> train::BindingIndex::find(const Numbers &numbers, Numbers::key_type key) {
  auto found = numbers.find(key);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

int64_t train::countSamples(FunctionOpInterface step) {
  for (unsigned i = 0; i < step.getNumArguments(); ++i)
    if (auto batch = dyn_cast_or_null<BatchAttr>(getArgBinding(step, i)); batch && batch.getDim() >= 0)
      return cast<RankedTensorType>(step.getArgumentTypes()[i]).getDimSize(batch.getDim());
  return 0;
}

static DictionaryAttr nameBinding(Attribute binding) {
  MLIRContext *context = binding.getContext();
  return DictionaryAttr::get(context, NamedAttribute(StringAttr::get(context, bindingAttrName), binding));
}

Value train::appendArg(func::FuncOp step, Type type, Attribute binding, Location loc) {
  unsigned position = step.getNumArguments();
  if (failed(step.insertArgument(position, type, nameBinding(binding), loc)))
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
  (void)step.insertResult(position, value.getType(), nameBinding(binding));
  terminator->insertOperands(position, value);
}

Value train::SignatureGrowth::appendArg(Type type, Attribute binding, Location loc) {
  argAttrs.push_back(nameBinding(binding));
  return step.getBody().front().addArgument(type, loc);
}

void train::SignatureGrowth::appendResult(Value value, Attribute binding) {
  results.push_back(value);
  resultAttrs.push_back(nameBinding(binding));
}

void train::SignatureGrowth::replace(Value was, Value now) {
  was.replaceAllUsesWith(now);
  llvm::replace(results, was, now);
}

void train::SignatureGrowth::setArgAttr(unsigned arg, StringRef name, Attribute value) {
  argChanges.push_back({arg, StringAttr::get(step.getContext(), name), value});
}

void train::SignatureGrowth::setResultAttr(unsigned result, StringRef name, Attribute value) {
  resultChanges.push_back({result, StringAttr::get(step.getContext(), name), value});
}

void train::SignatureGrowth::finish() {
  Operation *terminator = step.getBody().back().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), results);
  SmallVector<DictionaryAttr> allArgs, allResults;
  step.getAllArgAttrs(allArgs);
  step.getAllResultAttrs(allResults);
  step.setType(
      FunctionType::get(step.getContext(), step.getBody().front().getArgumentTypes(), terminator->getOperandTypes()));
  llvm::append_range(allArgs, argAttrs);
  llvm::append_range(allResults, resultAttrs);
  auto change = [](MutableArrayRef<DictionaryAttr> all, SmallVectorImpl<AttrChange> &changes) {
    for (const AttrChange &each : changes) {
      NamedAttrList attributes(all[each.number]);
      if (each.value)
        attributes.set(each.name, each.value);
      else
        attributes.erase(each.name);
      all[each.number] = attributes.getDictionary(each.name.getContext());
    }
    changes.clear();
  };
  change(allArgs, argChanges);
  change(allResults, resultChanges);
  step.setAllArgAttrs(allArgs);
  step.setAllResultAttrs(allResults);
  argAttrs.clear();
  results.clear();
  resultAttrs.clear();
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
