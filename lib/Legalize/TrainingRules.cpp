//===- TrainingRules.cpp - ai.onnx.preview.training -----------------------===//
//
// Optimizers become updates of the train dialect under ONNX's convention; Gradient is our own differentiation of the
// part of the graph between its inputs and its `y`.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Dialect/Train/Differentiate.h"
#include "lowtide/Dialect/Train/Optimizers.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;

/// An optimizer node: R and T, then lists of equal length: tensors, gradients, one for each kind of state.
static LogicalResult writeUpdates(NodeView &node, StringRef optimizer, std::map<std::string, double> options,
                                  double decayAfter = 0.0) {
  MLIRContext *context = node.builder.getContext();
  std::optional<train::OptimizerInfo> info = train::findOptimizer(context, optimizer);
  // PyTorch's switches are off, and all slots have the shape of their parameter.
  const size_t slots = info->listSlots({}, {}).size();
  unsigned lists = 2 + slots;
  if (node.size() < 2 + lists || (node.size() - 2) % lists != 0)
    return node.reject("it takes the rate, the step and " + Twine(lists) + " lists of equal length, but has " +
                       Twine(node.size()) + " operands");
  if (failed(node.need(node.size())))
    return failure();
  for (const train::OptimizerOption &option : info->options)
    options.try_emplace(option.name.str(), option.onnxDefault);
  nn::Expr rate = node.in(0), step = node.in(1);
  if (rate.type().getNumElements() != 1 || step.type().getNumElements() != 1)
    return node.reject("its rate and its step must be one number each");
  rate = nn::reshape(rate, {});
  step = nn::cast(nn::reshape(step, {}), node.builder.getI64Type());
  unsigned count = (node.size() - 2) / lists;
  for (unsigned i = 0; i < count; ++i) {
    auto operand = [&](unsigned list) { return node.in(2 + list * count + i); };
    train::UpdateOperands operands{operand(0), operand(1), rate, step, {}, {}};
    for (unsigned slot = 2; slot < lists; ++slot)
      operands.state.push_back(operand(slot));
    for (Value value : llvm::concat<Value>(SmallVector<Value>{operands.grad}, operands.state))
      if (value.getType() != operands.param.getType())
        return node.reject("tensor " + Twine(i) + " and its gradient or state differ in shape or type");
    Operation *update = train::buildUpdate(node.builder, node.getLoc(), *info, operands, options, /*onnx=*/true);
    nn::Expr updated = node.wrap(update->getResult(0));
    if (decayAfter != 0.0)
      updated = updated * (1.0 - decayAfter);
    node.set(i, updated);
    for (unsigned slot = 0; slot < slots; ++slot)
      if ((slot + 1) * count + i < node.numResults())
        node.set((slot + 1) * count + i, update->getResult(1 + slot));
  }
  return success();
}

static LogicalResult legalizeAdam(NodeView &node) {
  return writeUpdates(node, "adam",
                      {{"beta1", node.attrFloat("alpha", 0.9)},
                       {"beta2", node.attrFloat("beta", 0.999)},
                       {"eps", node.attrFloat("epsilon", 1e-6)},
                       {"weight_decay", node.attrFloat("norm_coefficient", 0.0)}},
                      node.attrFloat("norm_coefficient_post", 0.0));
}

static LogicalResult legalizeAdagrad(NodeView &node) {
  return writeUpdates(node, "adagrad",
                      {{"lr_decay", node.attrFloat("decay_factor", 0.0)},
                       {"eps", node.attrFloat("epsilon", 1e-6)},
                       {"weight_decay", node.attrFloat("norm_coefficient", 0.0)}});
}

static LogicalResult legalizeMomentum(NodeView &node) {
  std::string mode = node.attrString("mode", "");
  if (mode != "standard" && mode != "nesterov")
    return node.reject("its mode is '" + mode + "', not standard or nesterov");
  // beta is the part of the gradient that enters the buffer after the first step.
  return writeUpdates(node, "momentum",
                      {{"momentum", node.attrFloat("alpha", 0.9)},
                       {"dampening", 1.0 - node.attrFloat("beta", 1.0)},
                       {"nesterov", mode == "nesterov" ? 1.0 : 0.0},
                       {"weight_decay", node.attrFloat("norm_coefficient", 0.0)}});
}

/// Name of a value of the graph.
static StringRef graphName(Value value) {
  if (auto node = value.getDefiningOp<onnx::NodeOp>())
    return cast<StringAttr>(node.getOutputs()[cast<OpResult>(value).getResultNumber()]);
  auto argument = dyn_cast<BlockArgument>(value);
  auto model = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  if (!model)
    return "";
  for (StringRef key : {"onnx.input", "onnx.initializer"})
    if (auto name = model.getArgAttrOfType<StringAttr>(argument.getArgNumber(), key))
      return name;
  return "";
}

/// The value that the model's graph calls `name`; null when there is none before `node`.
static Value findGraphValue(onnx::NodeOp node, StringRef name) {
  for (Operation &op : llvm::make_range(node->getBlock()->begin(), node->getIterator()))
    for (Value result : op.getResults())
      if (graphName(result) == name)
        return result;
  for (Value argument : node->getBlock()->getArguments())
    if (graphName(argument) == name)
      return argument;
  return {};
}

static LogicalResult legalizeGradient(NodeView &node) {
  auto names = [&](StringRef key) {
    SmallVector<StringRef> list;
    if (auto attribute = dyn_cast_or_null<ArrayAttr>(node.op.getNodeAttr(key)))
      for (auto name : attribute.getAsRange<StringAttr>())
        list.push_back(name);
    return list;
  };
  SmallVector<StringRef> inputs = names("xs");
  const size_t wanted = inputs.size();
  llvm::append_range(inputs, names("zs"));
  std::string y = node.attrString("y", "");
  if (node.size() != inputs.size() || failed(node.need(node.size())))
    return node.reject("xs and zs name " + Twine(inputs.size()) + " tensors, but it has " + Twine(node.size()) +
                       " operands");
  for (auto [i, name] : llvm::enumerate(inputs))
    if (graphName(node.op.getInputs()[i]) != name)
      return node.refuse("operand " + Twine(i) + " is not the tensor '" + name +
                         "' that xs and zs name there: derivatives are taken where the graph computes them");
  Value target = findGraphValue(node.op, y);
  nn::Expr value = target ? node.wrap(node.context.lookup(target).tensor) : nn::Expr();
  if (!value)
    return node.reject("y names '" + y + "', which no node before it computes");
  SmallVector<Value> leaves;
  for (size_t i = 0; i < wanted; ++i)
    leaves.push_back(node.in(i));
  train::ReverseSweep sweep(*node.builder.getInsertionBlock(), node.builder, leaves);
  if (failed(sweep.run(value, [&](OpBuilder &) { return value.like(1.0).get(); })))
    return node.refuse("the part of the graph before '" + y + "' has no derivative");
  for (size_t i = 0; i < wanted; ++i) {
    Value gradient = sweep.getCotangent(leaves[i]);
    node.set(i, gradient ? gradient : Value(node.in(i).like(0.0)));
  }
  return success();
}

void lowtide::addTrainingRules(RuleTable &table) {
  table.add("ai.onnx.preview.training.Adam", legalizeAdam);
  table.add("ai.onnx.preview.training.Adagrad", legalizeAdagrad);
  table.add("ai.onnx.preview.training.Momentum", legalizeMomentum);
  table.add("ai.onnx.preview.training.Gradient", legalizeGradient);
}
