//===- ExportStep.cpp - a step as an ONNX graph ---------------------------===//
//
// One walk over a copy of the step, its short loops written out. A long loop is a `Loop`; each other op is written in
// the first of these ways that it has:
//
// 1. its own form (OnnxFormInterface), where the standard has its operator;
// 2. its decomposition, whose ops are written in turn;
// 3. its element description, as scalar code on whole tensors.
//
//===----------------------------------------------------------------------===//

#include "CastPairs.h"
#include "Outline.h"
#include "UnrollRounds.h"
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Dialect/ONNX/ONNX.h"
#include "lowtide/Dialect/Train/LowerScans.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Export/Export.h"
#include "lowtide/Export/FormBuilder.h"
#include "lowtide/Interfaces/BindingInterface.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "lowtide/Interfaces/RepeatSyntax.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowtide;

namespace {
class StepWriter {
public:
  StepWriter(OpBuilder &builder, func::FuncOp model, const ExportOptions &options)
      : builder(builder), options(options), outliner(model) {}

  void bind(Value from, Value to) { tensors[from] = to; }
  Value lookup(Value value) const { return tensors.lookup(value); }

  LogicalResult writeBlock(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
      Block *written = builder.getInsertionBlock();
      Operation *last = written->empty() ? nullptr : &written->back();
      const bool isAgain = op.hasAttr(recomputedAttrName);
      if (failed(write(&op)))
        return failure();
      for (Operation *node = last ? last->getNextNode() : &written->front(); isAgain && node;
           node = node->getNextNode())
        node->setDiscardableAttr(recomputedAttrName, builder.getUnitAttr());
    }
    return success();
  }

private:
  LogicalResult write(Operation *op) {
    if (isOpTriviallyDead(op))
      return success();
    if (op->hasTrait<OpTrait::ConstantLike>())
      return writeConstant(op);
    if (auto loop = dyn_cast<RepeatInterface>(op))
      return writeLoop(loop);
    if (auto facts = dyn_cast<FactsInterface>(op); facts && facts.getFacts().family == OpFamily::Fusion)
      return writeGroup(op);
    if (isSameBytes(op))
      return writeIdentity(op);
    if (isa<train::OptimizerInterface>(op))
      nameGradient(op);
    std::string reason = "it has neither an ONNX form, nor a decomposition, nor an element description";
    FormBuilder form(builder, op, [this](Value value) { return lookup(value); });
    form.previewOptimizers = options.previewOptimizers;
    if (auto own = dyn_cast<OnnxFormInterface>(op); own && succeeded(own.writeOnnx(form)))
      return finish(form);
    if (auto composite = dyn_cast<DecomposableInterface>(op))
      return writeDecomposition(composite);
    Block *block = builder.getInsertionBlock();
    Operation *last = block->empty() ? nullptr : &block->back();
    if (isa<ElementInterface>(op) && succeeded(writeByElements(form, reason))) {
      outliner.outline(block, last, op->getName().stripDialect(), form.getResults());
      return finish(form);
    }
    return op->emitError("unsupported: ") << op->getName() << " cannot be written as ONNX: " << reason;
  }

  /// An update's gradient becomes a tensor that says whose it is: readers see it, and the step that is read back can be
  /// scaled and clipped.
  void nameGradient(Operation *update) {
    Value gradient = update->getOperand(1);
    auto param = dyn_cast<BlockArgument>(lookup(update->getOperand(0)));
    if (!param || lookup(gradient).getType() != gradient.getType())
      return;
    auto model = dyn_cast<func::FuncOp>(param.getOwner()->getParentOp());
    if (!model)
      return;
    auto binding = model.getArgAttrOfType<BindingInterface>(param.getArgNumber(), bindingAttrName);
    if (!binding || binding.getBindingKind() != BindingKind::Param)
      return;
    FormBuilder form(builder, update, [this](Value value) { return lookup(value); });
    Value named = form.node("Identity", lookup(gradient), gradient.getType());
    named.getDefiningOp()->setDiscardableAttr(gradientAttrName, binding.getName());
    bind(gradient, named);
  }

  /// An op that names its first operand anew, as the anchor of a recomputation does.
  static bool isSameBytes(Operation *op) {
    auto facts = dyn_cast<FactsInterface>(op);
    return facts && facts.getFacts().aliasing == Aliasing::View && op->getNumResults() == 1 &&
           op->getOperand(0).getType() == op->getResult(0).getType();
  }

  LogicalResult writeIdentity(Operation *op) {
    FormBuilder form(builder, op, [this](Value value) { return lookup(value); });
    form.set(0, form.node("Identity", form.in(0), form.outType(0)));
    return finish(form);
  }

  LogicalResult finish(FormBuilder &form) {
    for (auto [result, tensor] : llvm::zip(form.op->getResults(), form.getResults())) {
      if (!tensor && result.use_empty())
        continue;
      if (!tensor || tensor.getType() != result.getType())
        return form.op->emitError("the ONNX form of ")
               << form.op->getName() << " gives " << (tensor ? tensor.getType() : Type()) << " for a result of type "
               << result.getType();
      bind(result, tensor);
    }
    return success();
  }

  /// A splat stays one number for the operators that broadcast.
  LogicalResult writeConstant(Operation *op) {
    DenseElementsAttr values;
    if (!matchPattern(op, m_Constant(&values)))
      return op->emitError("unsupported: ") << op->getName() << " cannot be written as ONNX: its value is not dense";
    if (values.isSplat())
      values = values.resizeSplat(RankedTensorType::get({}, values.getElementType()));
    bind(op->getResult(0), onnx::ConstantOp::create(builder, op->getLoc(), values));
    return success();
  }

  /// A group of ops (a kernel) is its body.
  LogicalResult writeGroup(Operation *op) {
    Block &body = op->getRegion(0).front();
    for (auto [argument, operand] : llvm::zip(body.getArguments(), op->getOperands()))
      bind(argument, lookup(operand));
    if (failed(writeBlock(body)))
      return failure();
    for (auto [result, value] : llvm::zip(op->getResults(), body.getTerminator()->getOperands()))
      bind(result, lookup(value));
    return success();
  }

  /// A tensor with its dimension 0 in the opposite order.
  static Value backwards(FormBuilder &form, Value x) {
    ArrayRef<int64_t> shape = tensorType(x).getShape();
    SmallVector<int64_t> starts(shape.size(), 0), ends(shape), steps(shape.size(), 1);
    starts[0] = shape[0] - 1, ends[0] = -shape[0] - 1, steps[0] = -1;
    return form.slice(x, starts, ends, steps, shape);
  }

  /// Rounds as a `Loop`. Slices are taken apart before it, so that a round's parts have the round's number along a
  /// dimension of their own; rows are what its body yields besides what it carries.
  LogicalResult writeLoop(RepeatInterface loop) {
    FormBuilder form(builder, loop, [this](Value value) { return lookup(value); });
    Block &body = loop->getRegion(0).front();
    Operation *next = body.getTerminator();
    const int64_t rounds = loop.getRounds();
    const unsigned sliced = loop.getNumSliced(), carried = loop.getNumCarried();
    auto withRounds = [&](Type part) {
      auto type = cast<RankedTensorType>(part);
      SmallVector<int64_t> shape(type.getShape());
      shape.insert(shape.begin(), rounds);
      return RankedTensorType::get(shape, type.getElementType());
    };
    SmallVector<Value> slices;
    for (unsigned i = 0; i < sliced; ++i)
      slices.push_back(form.reshape(form.in(i), withRounds(body.getArgument(i).getType()).getShape()));
    Value last = isReversed(loop) ? form.scalarInt(builder.getI64Type(), rounds - 1) : Value();
    SmallVector<Value> inputs{form.scalarInt(builder.getI64Type(), rounds),
                              onnx::NoneOp::create(builder, loop.getLoc(), builder.getNoneType())};
    auto number = RankedTensorType::get({}, builder.getI64Type()),
         flag = RankedTensorType::get({}, builder.getI1Type());
    SmallVector<Type> given{number, flag}, made;
    for (unsigned i = 0; i < carried; ++i) {
      inputs.push_back(form.in(sliced + i));
      given.push_back(inputs.back().getType());
      made.push_back(inputs.back().getType());
    }
    for (Value rows : next->getOperands().drop_front(carried))
      made.push_back(withRounds(rows.getType()));
    auto node = onnx::NodeOp::create(
        builder, loop.getLoc(), made, "Loop", "", exportOpset, builder.getDictionaryAttr({}),
        builder.getStrArrayAttr(SmallVector<StringRef>(made.size(), "")), builder.getStrArrayAttr({"body"}), inputs, 1);
    {
      OpBuilder::InsertionGuard guard(builder);
      SmallVector<Location> places(given.size(), loop.getLoc());
      Block *round = builder.createBlock(&node.getBodies()[0], {}, given, places);
      Value part = round->getArgument(0);
      if (last)
        part = form.node("Sub", {last, part}, number);
      for (unsigned i = 0; i < sliced; ++i)
        bind(body.getArgument(i), form.node("Gather", {slices[i], part}, body.getArgument(i).getType()));
      for (unsigned i = 0; i < carried; ++i)
        bind(body.getArgument(sliced + i), round->getArgument(2 + i));
      if (failed(writeBlock(body)))
        return failure();
      // Each output is a tensor of the round's own.
      SmallVector<Value> yielded{form.node("Identity", round->getArgument(1), flag)};
      for (Value value : next->getOperands()) {
        Value tensor = form.expand(lookup(value), cast<RankedTensorType>(value.getType()).getShape());
        yielded.push_back(form.node("Identity", tensor, tensor.getType()));
      }
      onnx::YieldOp::create(builder, loop.getLoc(), yielded);
    }
    for (auto [i, result] : llvm::enumerate(loop->getResults())) {
      Value made = node.getResult(i);
      if (i >= carried && last) // the first round's rows are the last ones
        made = backwards(form, made);
      form.set(i, i < carried ? made : form.reshape(made, cast<RankedTensorType>(result.getType()).getShape()));
    }
    return finish(form);
  }

  /// The parts take the op's place in the copy, and are written.
  LogicalResult writeDecomposition(DecomposableInterface op) {
    Block *block = op->getBlock();
    Operation *before = op->getPrevNode(), *after = op->getNextNode();
    OpBuilder inside(op);
    FailureOr<SmallVector<Value>> values = op.decompose(inside);
    if (failed(values))
      return op->emitError("cannot decompose ") << op->getName();
    op->replaceAllUsesWith(*values);
    op->erase();
    for (Operation *part = before ? before->getNextNode() : &block->front(); part != after;) {
      Operation *next = part->getNextNode();
      if (failed(write(part)))
        return failure();
      part = next;
    }
    return success();
  }

  OpBuilder &builder;
  const ExportOptions &options;
  Outliner outliner;
  llvm::DenseMap<Value, Value> tensors;
};

/// Gives every result a tensor of its own, which can bear its name.
class ResultWriter {
public:
  explicit ResultWriter(OpBuilder &builder) : builder(builder) {}

  Value own(Value tensor, RankedTensorType type, Location loc) {
    bool isNode = tensor.getDefiningOp<onnx::NodeOp>() != nullptr;
    if (isNode && tensor.getType() == type && taken.insert(tensor).second)
      return tensor;
    bool isSmaller = tensor.getType() != type;
    SmallVector<Value> inputs{tensor};
    if (isSmaller) {
      auto shape = RankedTensorType::get({type.getRank()}, builder.getI64Type());
      inputs.push_back(onnx::ConstantOp::create(builder, loc, DenseElementsAttr::get(shape, type.getShape())));
    }
    auto copy =
        onnx::NodeOp::create(builder, loc, type, isSmaller ? "Expand" : "Identity", "", exportOpset,
                             builder.getDictionaryAttr({}), builder.getStrArrayAttr({""}), ArrayAttr(), inputs, 0);
    return copy.getResult(0);
  }

private:
  OpBuilder &builder;
  llvm::DenseSet<Value> taken;
};
} // namespace

/// The function with the step's arguments and their attributes.
static func::FuncOp declareModel(func::FuncOp step, StringRef name) {
  OpBuilder builder(step->getContext());
  builder.setInsertionPointAfter(step);
  auto model = func::FuncOp::create(builder, step.getLoc(), name, step.getFunctionType());
  for (NamedAttribute attribute : step->getDiscardableAttrs())
    model->setAttr(attribute.getName(), attribute.getValue());
  model->setAttr("lowtide.entry", builder.getStringAttr(step.getSymName()));
  if (step.getArgAttrsAttr())
    model.setAllArgAttrs(step.getArgAttrsAttr());
  if (step.getResAttrsAttr())
    model.setAllResultAttrs(step.getResAttrsAttr());
  Block *entry = model.addEntryBlock();
  for (auto [to, from] : llvm::zip(entry->getArguments(), step.getArguments()))
    to.setLoc(from.getLoc());
  return model;
}

static void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    for (Region &region : op.getRegions())
      eraseDead(region.front());
    if (isOpTriviallyDead(&op))
      op.erase();
  }
}

/// The oldest operator set that has all operators with the types that the model uses them with.
static void setOpset(func::FuncOp model) {
  auto isBf16 = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getElementType().isBF16();
  };
  Builder builder(model.getContext());
  int64_t opset = exportOpset;
  model.walk([&](onnx::NodeOp node) {
    if (!llvm::is_contained({"Cast", "Reshape", "Identity"}, node.getOpType()) &&
        llvm::any_of(node.getResultTypes(), isBf16))
      opset = exportOpsetForBf16;
  });
  SmallVector<func::FuncOp> functions = {model};
  for (auto function : model->getParentOfType<ModuleOp>().getOps<func::FuncOp>())
    if (function != model && function->hasAttr(onnxFunctionAttrName))
      functions.push_back(function);
  for (func::FuncOp function : functions)
    function.walk([&](onnx::NodeOp node) {
      if (node.getOpType() == "BitCast")
        opset = exportOpsetForBits;
    });
  for (func::FuncOp function : functions) {
    function.walk([&](onnx::NodeOp node) {
      if (node.getDomain().empty())
        node.setVersion(opset);
    });
    function->setAttr("onnx.opset", builder.getI64IntegerAttr(opset));
  }
}

FailureOr<func::FuncOp> lowtide::exportStep(func::FuncOp step, StringRef name, const ExportOptions &options) {
  for (Type type : llvm::concat<const Type>(step.getArgumentTypes(), step.getResultTypes()))
    if (auto tensor = dyn_cast<RankedTensorType>(type); !tensor || !tensor.hasStaticShape())
      return step.emitError("unsupported: a step with a value of type ") << type << " cannot be written as ONNX";
  OwningOpRef<func::FuncOp> copy = step.clone();
  train::lowerScans(*copy);
  unrollRounds(*copy, options.maxUnrolledRounds);
  if (options.bf16AsCastPairs)
    castAroundBf16(*copy);
  func::FuncOp model = declareModel(step, name);
  OpBuilder builder = OpBuilder::atBlockEnd(&model.getBody().front());
  StepWriter writer(builder, model, options);
  for (auto [from, to] : llvm::zip(copy->getArguments(), model.getArguments()))
    writer.bind(from, to);
  Block &body = copy->getBody().front();
  if (failed(writer.writeBlock(body))) {
    model.erase();
    return failure();
  }
  ResultWriter results(builder);
  SmallVector<Value> values;
  for (auto [value, type] : llvm::zip(body.getTerminator()->getOperands(), step.getResultTypes()))
    values.push_back(results.own(writer.lookup(value), cast<RankedTensorType>(type), value.getLoc()));
  func::ReturnOp::create(builder, step.getLoc(), values);
  // A decomposition may compute more than is asked for.
  eraseDead(model.getBody().front());
  setOpset(model);
  return model;
}
