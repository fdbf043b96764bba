//===- IrMutations.cpp - what may be wrong in a module ----------*- C++ -*-===//

#include "IrMutations.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"

#include <cmath>

using namespace mlir;

namespace lowtide::fuzz {
namespace {

SmallVector<Operation *> opsOf(ModuleOp module) {
  SmallVector<Operation *> ops;
  module->walk([&](Operation *op) {
    if (op != module.getOperation())
      ops.push_back(op);
  });
  return ops;
}

Operation *anyOp(ModuleOp module, Dice &dice) {
  SmallVector<Operation *> ops = opsOf(module);
  return ops.empty() ? nullptr : dice.pick(ops);
}

SmallVector<Value> valuesOf(ModuleOp module) {
  SmallVector<Value> values;
  module->walk([&](Operation *op) {
    llvm::append_range(values, op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::append_range(values, block.getArguments());
  });
  return values;
}

/// Another value of the type; null where there is none.
Value likeOf(ModuleOp module, Value value, Dice &dice) {
  SmallVector<Value> others = valuesOf(module);
  llvm::erase_if(others, [&](Value other) { return other == value || other.getType() != value.getType(); });
  return others.empty() ? Value() : dice.pick(others);
}

int64_t changed(int64_t number, Dice &dice) {
  static constexpr int64_t edges[] = {
      0,         1,        -1, 2, 3, 64, 1 << 16, INT32_MAX, int64_t(1) << 32, int64_t(1) << 40, int64_t(1) << 62,
      INT64_MAX, INT64_MIN};
  switch (dice.below(6)) {
  case 0:
    return number + 1;
  case 1:
    return number - 1;
  case 2:
    return int64_t(uint64_t(number) * 2);
  case 3:
    return number / 2;
  case 4:
    return -number;
  default:
    return edges[dice.below(std::size(edges))];
  }
}

//--- Types

Type otherElement(MLIRContext *context, Dice &dice) {
  Builder builder(context);
  const Type types[] = {builder.getF32Type(),
                        builder.getF64Type(),
                        builder.getF16Type(),
                        builder.getBF16Type(),
                        builder.getI1Type(),
                        builder.getIntegerType(8),
                        builder.getI32Type(),
                        builder.getI64Type(),
                        builder.getIntegerType(8, false),
                        builder.getIntegerType(64, false),
                        builder.getIndexType(),
                        ComplexType::get(builder.getF32Type()),
                        builder.getIntegerType(4),
                        builder.getIntegerType(128)};
  return types[dice.below(std::size(types))];
}

Type changedType(Type type, Dice &dice) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return dice.oneIn(4) ? Type(RankedTensorType::get({2, 3}, Float32Type::get(type.getContext())))
                         : otherElement(type.getContext(), dice);
  if (dice.oneIn(4)) {
    Type element = otherElement(type.getContext(), dice);
    return TensorType::isValidElementType(element) ? tensor.clone(element) : Type(tensor);
  }
  SmallVector<int64_t> shape(tensor.getShape());
  switch (dice.below(8)) {
  case 0:
    shape.push_back(1);
    break;
  case 1:
    if (!shape.empty())
      shape.erase(shape.begin() + dice.below(shape.size()));
    break;
  case 2:
    if (!shape.empty())
      std::swap(shape.front(), shape[dice.below(shape.size())]);
    break;
  case 3:
    if (!shape.empty())
      shape[dice.below(shape.size())] = 0;
    break;
  case 4:
    if (!shape.empty())
      shape[dice.below(shape.size())] = ShapedType::kDynamic;
    break;
  case 5:
    return dice.oneIn(4) ? Type(UnrankedTensorType::get(tensor.getElementType())) : Type(tensor.getElementType());
  default:
    if (!shape.empty()) {
      int64_t &dim = shape[dice.below(shape.size())];
      dim = std::max<int64_t>(changed(dim, dice), 0);
    }
  }
  return RankedTensorType::get(shape, tensor.getElementType(), tensor.getEncoding());
}

bool changeTypeOfValue(ModuleOp module, Dice &dice) {
  SmallVector<Value> values = valuesOf(module);
  if (values.empty())
    return false;
  Value value = dice.pick(values);
  value.setType(changedType(value.getType(), dice));
  return true;
}

/// A type is another one everywhere: in signatures and attributes too.
bool changeTypeEverywhere(ModuleOp module, Dice &dice) {
  SmallVector<Value> values = valuesOf(module);
  if (values.empty())
    return false;
  Type from = dice.pick(values).getType(), to = changedType(from, dice);
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](Type type) -> std::optional<Type> { return type == from ? to : type; });
  // Constants keep their elements: one that repeats an element has it as often as the type says.
  replacer.addReplacement([&](DenseElementsAttr elements) -> std::optional<std::pair<Attribute, WalkResult>> {
    auto shaped = dyn_cast<ShapedType>(to);
    if (elements.getType() == from && elements.isSplat() && shaped && shaped.hasStaticShape() &&
        shaped.getElementType() == elements.getElementType())
      return std::pair<Attribute, WalkResult>(elements.resizeSplat(shaped), WalkResult::skip());
    return std::pair<Attribute, WalkResult>(elements, WalkResult::skip());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
  return true;
}

//--- Operations

bool eraseOp(ModuleOp module, Dice &dice) {
  Operation *op = anyOp(module, dice);
  if (!op)
    return false;
  for (Value result : op->getResults()) {
    if (result.use_empty())
      continue;
    Value other = likeOf(module, result, dice);
    if (!other || other.getDefiningOp() == op || op->isAncestor(other.getParentBlock()->getParentOp()))
      return false;
    result.replaceAllUsesWith(other);
  }
  op->dropAllDefinedValueUses();
  op->erase();
  return true;
}

bool replaceOperand(ModuleOp module, Dice &dice) {
  Operation *op = anyOp(module, dice);
  if (!op || !op->getNumOperands())
    return false;
  OpOperand &operand = op->getOpOperand(dice.below(op->getNumOperands()));
  if (op->getNumOperands() > 1 && dice.oneIn(2)) {
    OpOperand &other = op->getOpOperand(dice.below(op->getNumOperands()));
    Value value = other.get();
    if (dice.oneIn(4) || value.getType() == operand.get().getType()) {
      other.set(operand.get());
      operand.set(value);
      return true;
    }
  }
  Value other = likeOf(module, operand.get(), dice);
  if (other)
    operand.set(other);
  return bool(other);
}

bool changeOperandCount(ModuleOp module, Dice &dice) {
  Operation *op = anyOp(module, dice);
  if (!op || !op->getNumOperands())
    return false;
  const auto at = unsigned(dice.below(op->getNumOperands()));
  if (dice.oneIn(2))
    op->eraseOperand(at);
  else
    op->insertOperands(at, op->getOperand(at));
  return true;
}

bool duplicateOp(ModuleOp module, Dice &dice) {
  Operation *op = anyOp(module, dice);
  if (!op || op->hasTrait<OpTrait::IsTerminator>())
    return false;
  Operation *copy = op->clone();
  op->getBlock()->getOperations().insertAfter(op->getIterator(), copy);
  if (dice.oneIn(2))
    for (auto [old, fresh] : llvm::zip(op->getResults(), copy->getResults()))
      old.replaceUsesWithIf(fresh, [&](OpOperand &use) { return use.getOwner() != copy && dice.oneIn(2); });
  return true;
}

bool moveOp(ModuleOp module, Dice &dice) {
  Operation *op = anyOp(module, dice), *to = anyOp(module, dice);
  if (!op || op->isAncestor(to))
    return false;
  dice.oneIn(4) || op->getBlock() == to->getBlock() ? op->moveBefore(to) : op->moveBefore(&op->getBlock()->front());
  return true;
}

/// The op becomes one of another name with the same operands and results.
bool renameOp(ModuleOp module, Dice &dice) {
  Operation *op = anyOp(module, dice), *other = anyOp(module, dice);
  if (!op || op->getNumRegions() || op->hasTrait<OpTrait::IsTerminator>())
    return false;
  OperationState state(op->getLoc(), other->getName());
  state.addOperands(op->getOperands());
  state.addTypes(op->getResultTypes());
  state.addAttributes(dice.oneIn(2) ? op->getAttrs() : other->getAttrs());
  for (unsigned i = 0; i < other->getNumRegions(); ++i)
    state.addRegion();
  if (other->getNumSuccessors())
    return false;
  OpBuilder builder(op);
  Operation *renamed = builder.create(state);
  op->replaceAllUsesWith(renamed->getResults());
  op->erase();
  return true;
}

//--- Attributes

Attribute changedAttr(Attribute attr, Dice &dice) {
  Builder builder(attr.getContext());
  if (auto integer = dyn_cast<IntegerAttr>(attr)) {
    if (integer.getType().isSignlessInteger(1))
      return builder.getBoolAttr(integer.getValue().isZero());
    const unsigned bits = integer.getValue().getBitWidth();
    return IntegerAttr::get(
        integer.getType(),
        APInt(64, uint64_t(changed(integer.getValue().sextOrTrunc(64).getSExtValue(), dice))).sextOrTrunc(bits));
  }
  if (auto number = dyn_cast<FloatAttr>(attr)) {
    static const double numbers[] = {0, -0.0, 1, -1, 0.5, 1e300, -1e-300, 65536, HUGE_VAL, std::nan("")};
    return FloatAttr::get(number.getType(), numbers[dice.below(std::size(numbers))]);
  }
  if (auto text = dyn_cast<StringAttr>(attr)) {
    static constexpr const char *known[] = {"",     "forward",   "train",      "gradient", "eval", "fuse",
                                            "row",  "column",    "loop",       "mean",     "sum",  "f32",
                                            "bf16", "x86-64-v3", "cuda:sm_90", "loss",     "w"};
    return builder.getStringAttr(dice.oneIn(2) ? changeText(text.str(), dice) : known[dice.below(std::size(known))]);
  }
  if (auto numbers = dyn_cast<DenseI64ArrayAttr>(attr)) {
    SmallVector<int64_t> list(numbers.asArrayRef());
    if (list.empty() || dice.oneIn(4))
      list.push_back(int64_t(dice.below(4)));
    else if (dice.oneIn(4))
      list.pop_back();
    else
      dice.pick(list) = changed(dice.pick(list), dice);
    return builder.getDenseI64ArrayAttr(list);
  }
  if (auto list = dyn_cast<ArrayAttr>(attr)) {
    SmallVector<Attribute> elements(list.getValue());
    if (elements.empty())
      return builder.getArrayAttr({builder.getI64IntegerAttr(1)});
    Attribute &one = dice.pick(elements);
    switch (dice.below(3)) {
    case 0:
      elements.pop_back();
      break;
    case 1:
      elements.push_back(one);
      break;
    default:
      one = changedAttr(one, dice);
    }
    return builder.getArrayAttr(elements);
  }
  if (auto dictionary = dyn_cast<DictionaryAttr>(attr)) {
    NamedAttrList list(dictionary);
    if (list.empty())
      return attr;
    const NamedAttribute one = *std::next(list.begin(), long(dice.below(list.getAttrs().size())));
    if (dice.oneIn(3))
      list.erase(one.getName());
    else
      list.set(one.getName(), changedAttr(one.getValue(), dice));
    return list.getDictionary(attr.getContext());
  }
  if (auto type = dyn_cast<TypeAttr>(attr))
    return TypeAttr::get(changedType(type.getValue(), dice));
  if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attr))
    return FlatSymbolRefAttr::get(attr.getContext(), dice.oneIn(2) ? "forward" : "absent");
  // An attribute of ours: what it is made of changes.
  SmallVector<Attribute> parts;
  attr.walkImmediateSubElements([&](Attribute part) { parts.push_back(part); }, [](Type) {});
  Attribute from = parts.empty() ? Attribute() : dice.pick(parts);
  if (!from)
    return attr;
  Attribute to = changedAttr(from, dice);
  if (to.getTypeID() != from.getTypeID())
    return attr;
  return attr.replaceImmediateSubElements(
      llvm::map_to_vector(parts, [&](Attribute part) { return part == from ? to : part; }), [&] {
        SmallVector<Type> types;
        attr.walkImmediateSubElements([](Attribute) {}, [&](Type type) { types.push_back(type); });
        return types;
      }());
}

bool changeAttribute(ModuleOp module, Dice &dice) {
  for (int tries = 0; tries < 20; ++tries) {
    Operation *op = dice.oneIn(16) ? module.getOperation() : anyOp(module, dice);
    if (!op || op->getAttrs().empty())
      continue;
    const NamedAttribute attr = op->getAttrs()[dice.below(op->getAttrs().size())];
    if (isa<SymbolOpInterface>(op) && attr.getName() == SymbolTable::getSymbolAttrName() && !dice.oneIn(8))
      continue;
    switch (dice.below(6)) {
    case 0:
      op->removeAttr(attr.getName());
      return true;
    case 1: { // as another op has it
      Operation *other = anyOp(module, dice);
      if (other->getAttrs().empty())
        continue;
      op->setAttr(attr.getName(), other->getAttrs()[dice.below(other->getAttrs().size())].getValue());
      return true;
    }
    default:
      op->setAttr(attr.getName(), changedAttr(attr.getValue(), dice));
      return true;
    }
  }
  return false;
}

/// What is said of an argument or a result of a function.
bool changeArgumentAttribute(ModuleOp module, Dice &dice) {
  SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
  if (functions.empty())
    return false;
  func::FuncOp function = dice.pick(functions);
  const bool ofResults = dice.oneIn(3);
  const unsigned count = ofResults ? function.getNumResults() : function.getNumArguments();
  if (!count)
    return false;
  auto get = [&](unsigned i) { return ofResults ? function.getResultAttrDict(i) : function.getArgAttrDict(i); };
  auto set = [&](unsigned i, DictionaryAttr attrs) {
    ofResults ? function.setResultAttrs(i, attrs) : function.setArgAttrs(i, attrs);
  };
  const auto at = unsigned(dice.below(count)), other = unsigned(dice.below(count));
  DictionaryAttr mine = get(at), theirs = get(other);
  auto empty = DictionaryAttr::get(module.getContext());
  switch (dice.below(4)) {
  case 0:
    set(at, theirs ? theirs : empty);
    return true;
  case 1:
    set(at, empty);
    return true;
  default:
    if (!mine || mine.empty())
      return false;
    set(at, cast<DictionaryAttr>(changedAttr(mine, dice)));
    return true;
  }
}

//--- Functions and blocks

bool changeFunctions(ModuleOp module, Dice &dice) {
  SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
  if (functions.empty())
    return false;
  func::FuncOp function = dice.pick(functions);
  static constexpr const char *names[] = {"forward", "train", "gradient", "eval", "model", "before", "after"};
  switch (dice.below(7)) {
  case 0: // only declared
    function.eraseBody();
    function.setPrivate();
    return true;
  case 1:
    function.erase();
    return true;
  case 2: {
    func::FuncOp copy = function.clone();
    copy.setName(names[dice.below(std::size(names))]);
    module.push_back(copy);
    return true;
  }
  case 3:
    function.setName(names[dice.below(std::size(names))]);
    return true;
  case 4:
    function.setPrivate();
    return true;
  case 5: { // two blocks
    if (function.isDeclaration())
      return false;
    Block &block = function.front();
    Block *rest = block.splitBlock(std::next(block.begin(), long(dice.below(block.getOperations().size()))));
    OpBuilder builder = OpBuilder::atBlockEnd(&block);
    cf::BranchOp::create(builder, function.getLoc(), rest);
    return true;
  }
  default: { // a result more, or less
    if (function.isDeclaration() || !function.getNumResults())
      return false;
    const auto at = unsigned(dice.below(function.getNumResults()));
    Operation *terminator = function.back().getTerminator();
    if (terminator->getNumOperands() != function.getNumResults())
      return false;
    if (dice.oneIn(2)) {
      (void)function.eraseResult(at);
      terminator->eraseOperand(at);
    } else {
      (void)function.insertResult(at, function.getResultTypes()[at], function.getResultAttrDict(at));
      terminator->insertOperands(at, terminator->getOperand(at));
    }
    return true;
  }
  }
}

bool changeBlock(ModuleOp module, Dice &dice) {
  SmallVector<Block *> blocks;
  module->walk([&](Block *block) { blocks.push_back(block); });
  Block *block = dice.pick(blocks);
  switch (dice.below(4)) {
  case 0: // nothing in it but what ends it
    if (block == module.getBody())
      return false;
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
      if (!op.hasTrait<OpTrait::IsTerminator>() && op.use_empty())
        op.erase();
    return true;
  case 1:
    block->addArgument(Float32Type::get(module.getContext()), module.getLoc());
    return true;
  case 2:
    if (!block->getNumArguments() || !block->getArgument(0).use_empty())
      return false;
    block->eraseArgument(0);
    return true;
  default: // no end
    if (block == module.getBody() || block->empty() || !block->back().use_empty())
      return false;
    block->back().erase();
    return true;
  }
}

constexpr IrMutation all[] = {
    {"erase an op", eraseOp},
    {"replace an operand", replaceOperand},
    {"other number of operands", changeOperandCount},
    {"duplicate an op", duplicateOp},
    {"move an op", moveOp},
    {"rename an op", renameOp},
    {"change an attribute", changeAttribute},
    {"change what arguments are", changeArgumentAttribute},
    {"change a type", changeTypeOfValue},
    {"change a type everywhere", changeTypeEverywhere},
    {"change functions", changeFunctions},
    {"change a block", changeBlock},
};

} // namespace

llvm::ArrayRef<IrMutation> irMutations() { return all; }

std::string changeText(std::string text, Dice &dice) {
  if (text.empty())
    return "x";
  const size_t at = dice.below(text.size());
  switch (dice.below(5)) {
  case 0:
    text.erase(at, 1 + dice.below(8));
    return text;
  case 1:
    text.insert(at, text.substr(dice.below(text.size()), 1 + dice.below(16)));
    return text;
  case 2:
    text[at] = "<>()[]{}:,x?%@#!-0129\" "[dice.below(23)];
    return text;
  case 3: { // a number
    size_t digit = text.find_first_of("0123456789", at);
    if (digit == std::string::npos)
      return text + "1";
    size_t end = text.find_first_not_of("0123456789", digit);
    static constexpr const char *numbers[] = {"0",
                                              "1",
                                              "-1",
                                              "2147483648",
                                              "4294967296",
                                              "4611686018427387904",
                                              "9223372036854775807",
                                              "18446744073709551616",
                                              "?"};
    return text.replace(digit, (end == std::string::npos ? text.size() : end) - digit,
                        numbers[dice.below(std::size(numbers))]);
  }
  default: { // a line goes
    size_t begin = text.rfind('\n', at), end = text.find('\n', at);
    if (begin == std::string::npos || end == std::string::npos)
      return text;
    return text.erase(begin, end - begin);
  }
  }
}

} // namespace lowtide::fuzz
