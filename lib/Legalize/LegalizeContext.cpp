//===- LegalizeContext.cpp - state of one legalization --------------------===//
//
// The walk over nodes: rule lookup, constant folding after each rule, collected refusals.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Dialect/NN/ConstantFold.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Import/FunctionBody.h"
#include "lowtide/Legalize/FunctionBodies.h"
#include "lowtide/Legalize/Rules.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace lowtide;

static constexpr const char *noRule = "there is no rule for this operator";

const Meaning &LegalizeContext::lookup(Value graphValue) const {
  static const Meaning none;
  auto it = values.find(graphValue);
  return it == values.end() ? none : it->second;
}

DenseElementsAttr LegalizeContext::constantOf(Value value) {
  DenseElementsAttr attr;
  if (value && matchPattern(value, m_Constant(&attr)))
    return attr;
  return {};
}

void LegalizeContext::foldFrom(Operation *before, MutableArrayRef<Meaning> results) {
  Block *block = builder.getInsertionBlock();
  Block::iterator it = before ? std::next(before->getIterator()) : block->begin();
  DenseMap<Value, Value> folded;
  SmallVector<Operation *> dead;
  for (Operation &op : llvm::make_early_inc_range(llvm::make_range(it, block->end()))) {
    if (isa<nn::ConstantOp>(op))
      continue;
    FailureOr<SmallVector<Attribute>> values = nn::foldConstant(&op);
    if (mlir::failed(values))
      continue;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(&op);
    for (auto [result, value] : llvm::zip(op.getResults(), *values)) {
      Value constant = nn::ConstantOp::create(builder, op.getLoc(), cast<RankedTensorType>(result.getType()),
                                              cast<ElementsAttr>(value));
      folded[result] = constant;
      selected.replace(result, constant);
      result.replaceAllUsesWith(constant);
    }
    dead.push_back(&op);
  }
  auto follow = [&](Value &value) {
    if (auto found = folded.find(value); found != folded.end())
      value = found->second;
  };
  for (Meaning &meaning : results) {
    follow(meaning.tensor);
    if (meaning.sequence)
      for (Value &value : *meaning.sequence)
        follow(value);
  }
  for (Operation *op : llvm::reverse(dead))
    op->erase();
}

void LegalizeContext::legalizeBlock(Block &block) {
  for (Operation &op : block) {
    if (auto constant = dyn_cast<onnx::ConstantOp>(op)) {
      auto type = cast<RankedTensorType>(constant.getResult().getType());
      bind(constant.getResult(), {nn::ConstantOp::create(builder, op.getLoc(), type, constant.getValue()), {}});
    } else if (auto node = dyn_cast<onnx::NodeOp>(op)) {
      legalizeNode(node);
    }
  }
}

void LegalizeContext::judgeByName(onnx::NodeOp node) {
  if (!options.refusals)
    return;
  StringRef domain = node.getDomain(), op = node.getOpType();
  if (std::optional<std::string> reason = RuleTable::get().findRefusal(domain, op))
    collect(node, FailureKind::Unsupported, *reason);
  else if (!RuleTable::get().find(domain, op) && !hasFunctionBody(domain, op, node.getVersion()))
    collect(node, FailureKind::Unsupported, noRule);
}

/// What is wrong with an operation from `op` on, in its verifier's words.
static std::optional<std::string> findFault(Operation *op) {
  std::optional<std::string> fault;
  for (; op && !fault; op = op->getNextNode()) {
    ScopedDiagnosticHandler quiet(op->getContext(), [&](Diagnostic &diagnostic) {
      if (!fault)
        fault = diagnostic.str();
      return success();
    });
    if (succeeded(verify(op)))
      fault.reset();
  }
  return fault;
}

void LegalizeContext::legalizeNode(onnx::NodeOp node) {
  // What depends on a node that has been refused is not worth a second message.
  for (unsigned i = 0; i < node.getInputs().size(); ++i)
    if (node.hasInput(i) && !lookup(node.getInputs()[i]))
      return judgeByName(node);
  NodeView view(node, *this, builder);
  Block *block = builder.getInsertionBlock();
  Operation *last = block->empty() ? nullptr : &block->back();
  size_t known = failures.size();
  if (std::optional<std::string> reason = RuleTable::get().findRefusal(node.getDomain(), node.getOpType()))
    return collect(node, FailureKind::Unsupported, *reason);
  Rule rule = RuleTable::get().find(node.getDomain(), node.getOpType());
  LogicalResult status = rule ? rule(view) : failure();
  bool isRefused = !rule || (failures.size() > known && failures.back().kind == FailureKind::Unsupported);
  if (mlir::failed(status) && isRefused) {
    // What the rules do not take, the standard may define by what they take.
    std::vector<FailedNode> refused(failures.begin() + known, failures.end());
    failures.resize(known);
    view.results.assign(node.getNumResults(), Meaning());
    status = expandFunctionBody(view);
    if (mlir::failed(status) && rule) {
      failures.resize(known);
      llvm::append_range(failures, refused);
    } else if (mlir::failed(status) && failures.size() == known) {
      return collect(node, FailureKind::Unsupported, noRule);
    }
  }
  if (mlir::failed(status)) {
    if (failures.size() == known)
      collect(node, FailureKind::BadInput, "its operands do not fit together");
    return;
  }
  // Rules ask what they need to know; what types mean to each other the made operations know best.
  Operation *first = last ? last->getNextNode() : block->empty() ? nullptr : &block->front();
  if (std::optional<std::string> fault = findFault(first))
    return collect(node, FailureKind::BadInput, "its operands do not fit together: " + *fault);
  if (!selected.isEmpty() && mlir::failed(selected.follow(view, first)))
    return;
  foldFrom(last, view.results);
  for (auto [i, meaning] : llvm::enumerate(view.results)) {
    if (!meaning && !node.getResult(i).use_empty() && failures.size() == known)
      return collect(node, FailureKind::Unsupported, ("its result " + Twine(i) + " is not computed").str());
    if (!meaning)
      continue;
    // A shape that the file states is a promise: one that does not hold makes the file unreliable as a whole.
    auto stated = dyn_cast<RankedTensorType>(node.getResult(i).getType());
    // Nothing depends on one of a result that nothing reads: PyTorch's exporter states the sequence of an LSTM as its
    // end.
    bool isOther = stated && stated.hasStaticShape() && meaning.tensor && stated != meaning.tensor.getType() &&
                   !node.getResult(i).use_empty();
    // A number of rows that data select is that of the data which the exporter saw.
    bool isDoubtful = (isOther && selected.has(meaning.tensor)) ||
                      llvm::any_of(node.getInputs(), [&](Value input) { return misstated.contains(input); });
    // Exporters that move dimensions leave the old shapes behind, which runtimes only warn about.
    auto actual = meaning.tensor ? cast<RankedTensorType>(meaning.tensor.getType()) : RankedTensorType();
    // So does one who names dynamic sizes of inputs alone: outputs have those of the example.
    bool isOutput = isOther && stated.getRank() == actual.getRank() &&
                    llvm::any_of(node.getResult(i).getUsers(),
                                 [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); });
    bool isMoved = isOther && stated.getElementType() == actual.getElementType() &&
                   (isOutput || stated.getNumElements() == actual.getNumElements());
    if (isMoved && !isDoubtful && !view.ignoresStatedShape && misstated.empty())
      emitWarning(node.getLoc()) << "'" << node.getOpType() << "': its result " << i << " is stated to be " << stated
                                 << " and is " << actual << "; shapes after it are taken from the operators";
    if (isDoubtful || isMoved || (isOther && view.ignoresStatedShape)) {
      misstated.insert(node.getResult(i));
    } else if (isOther) {
      std::string text;
      llvm::raw_string_ostream(text) << "its result " << i << " is stated to be " << stated << " and is "
                                     << meaning.tensor.getType();
      return collect(node, FailureKind::BadInput, text);
    }
    bind(node.getResult(i), std::move(meaning));
  }
}

FailureOr<SmallVector<Meaning>> LegalizeContext::legalizeBody(onnx::NodeOp node, OwningOpRef<ModuleOp> body,
                                                              ValueRange operands) {
  constexpr unsigned maxDepth = 8;
  constexpr uint64_t maxNodes = 100'000;
  auto function = body->lookupSymbol<func::FuncOp>("model");
  Block &block = function.getBody().front();
  if (block.getNumArguments() != operands.size())
    return mlir::failure();
  bodyNodes += block.getOperations().size();
  if (bodyDepth == maxDepth || bodyNodes > maxNodes) {
    collect(node, FailureKind::Unsupported,
            bodyDepth == maxDepth ? "the functions that define it are nested deeper than " + std::to_string(maxDepth)
                                  : "the functions that define operators of this model make more than " +
                                        std::to_string(maxNodes) + " nodes");
    return mlir::failure();
  }
  for (auto [argument, operand] : llvm::zip(block.getArguments(), operands))
    bind(argument, {operand, {}});
  bodies.push_back(std::move(body));
  size_t known = failures.size();
  ++bodyDepth;
  legalizeBlock(block);
  --bodyDepth;
  if (failures.size() > known) {
    FailedNode first = failures[known];
    failures.resize(known);
    collect(node, first.kind,
            "in the function that defines it, '" + first.node.getOpType().str() + "': " + first.reason);
    return mlir::failure();
  }
  SmallVector<Meaning> results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(lookup(value));
  return results;
}

Value LegalizeContext::scalar(StringRef name) {
  Value &value = scalars[name];
  if (!value) {
    auto type = RankedTensorType::get({}, builder.getI64Type());
    unsigned index = function.getNumArguments();
    auto binding = train::ScalarAttr::get(builder.getContext(), builder.getStringAttr(name));
    auto attrs = builder.getDictionaryAttr(builder.getNamedAttr(bindingAttrName, binding));
    (void)function.insertArgument(index, type, attrs, function.getLoc());
    value = function.getArgument(index);
  }
  return value;
}

BlockArgument LegalizeContext::argumentOf(Value value) const {
  while (value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argument.getOwner()->getParentOp() == func::FuncOp(function).getOperation() ? argument : BlockArgument();
    Operation *op = value.getDefiningOp();
    if (!isa<nn::CastOp, nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp>(op))
      return {};
    value = op->getOperand(0);
  }
  return {};
}

void LegalizeContext::updateState(BlockArgument state, Value value) {
  for (StateUpdate &update : updates)
    if (update.state == state) {
      update.value = value;
      ++update.count;
      return;
    }
  updates.push_back({state, value});
}

Value LegalizeContext::currentState(BlockArgument state) const {
  for (const StateUpdate &update : updates)
    if (update.state == state)
      return update.value;
  return state;
}

StringRef LegalizeContext::roleOf(Value value) const {
  BlockArgument argument = argumentOf(value);
  if (!argument)
    return "";
  auto role = func::FuncOp(function).getArgAttrOfType<StringAttr>(argument.getArgNumber(), "onnx.role");
  return role ? role.getValue() : "";
}

LogicalResult LegalizeContext::readFrozenNorms() {
  if (options.frozenNorms.empty())
    return success();
  if (llvm::Error error = train::parsePatterns(options.frozenNorms, frozenNorms))
    return emitError(UnknownLoc::get(builder.getContext())) << "--freeze-norm: " << llvm::toString(std::move(error));
  metNorms.resize(frozenNorms.size());
  return success();
}

bool LegalizeContext::isFrozenNorm(ArrayRef<std::string> names) {
  if (frozenNorms.empty())
    return false;
  bool isFrozen = false;
  if (!llvm::is_contained(normNames, names.back()))
    normNames.push_back(names.back());
  for (auto [pattern, isMet] : llvm::zip_equal(frozenNorms, metNorms))
    if (llvm::any_of(names, [&](StringRef name) { return train::matchesLayer(pattern, name); }))
      isMet = isFrozen = true;
  return isFrozen;
}

LogicalResult LegalizeContext::checkFrozenNorms() const {
  LogicalResult result = success();
  for (auto [pattern, isMet] : llvm::zip_equal(frozenNorms, metNorms))
    if (!isMet) {
      InFlightDiagnostic error = emitError(UnknownLoc::get(builder.getContext()))
                                 << "--freeze-norm: " << train::describeUnmatched(pattern) << " among the batch norms";
      error.attachNote() << (normNames.empty() ? "the model has none" : "the model has " + llvm::join(normNames, ", "));
      result = failure();
    }
  return result;
}

void LegalizeContext::rewind(const Mark &to) {
  failures.resize(to.failures);
  updates = to.updates;
  numRandom = to.numRandom;
  numDropouts = to.numDropouts;
  selected = to.selected;
}

bool LegalizeContext::isAt(const Mark &mark) const {
  auto isSame = [](const StateUpdate &a, const StateUpdate &b) { return a.value == b.value && a.count == b.count; };
  return failures.size() == mark.failures && numRandom == mark.numRandom && numDropouts == mark.numDropouts &&
         llvm::equal(updates, mark.updates, isSame);
}

void LegalizeContext::collect(onnx::NodeOp node, FailureKind kind, std::string reason) {
  failures.push_back({node, kind, std::move(reason)});
}

FailureKind LegalizeContext::report() {
  if (options.refusals) {
    for (FailedNode &failure : failures) {
      auto name = dyn_cast<NameLoc>(failure.node.getLoc());
      options.refusals->push_back({failure.node.getDomain().str(), failure.node.getOpType().str(),
                                   static_cast<int64_t>(failure.node.getVersion()), failure.reason,
                                   name ? name.getName().str() : failure.node.getNodeLabel().str(),
                                   failure.kind == FailureKind::BadInput});
    }
    return failures.empty() ? FailureKind::None : failures.front().kind;
  }
  constexpr unsigned maxNamed = 8;
  llvm::MapVector<std::pair<StringRef, StringRef>, SmallVector<FailedNode *>> groups;
  for (FailedNode &failure : failures)
    groups[{failure.node.getOpType(), failure.reason}].push_back(&failure);
  for (auto &[key, nodes] : groups) {
    onnx::NodeOp first = nodes.front()->node;
    bool unsupported = nodes.front()->kind == FailureKind::Unsupported;
    std::string domain = first.getDomain().empty() ? "" : (first.getDomain() + ".").str();
    InFlightDiagnostic diag = emitError(first.getLoc());
    diag << (unsupported ? "unsupported: " : "") << "'" << domain << key.first << "' (opset " << first.getVersion()
         << "): " << key.second;
    if (nodes.size() > 1)
      diag << "; " << nodes.size() << " nodes";
    for (FailedNode *failure : ArrayRef(nodes).take_front(maxNamed))
      diag.attachNote(failure->node.getLoc()) << "at '" << failure->node.getNodeLabel() << "'";
    if (nodes.size() > maxNamed)
      diag.attachNote(first.getLoc()) << "and " << nodes.size() - maxNamed << " more";
  }
  return failures.empty() ? FailureKind::None : failures.front().kind;
}
