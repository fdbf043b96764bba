//===- CentralDifferences.cpp - checks derivatives of one op ----*- C++ -*-===//
//
// See the header.
//
//===----------------------------------------------------------------------===//

#include "CentralDifferences.h"
#include "lowtide/Dialect/NN/ConstantFold.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Scan.h"
#include "lowtide/Dialect/Train/Differentiate.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::test;

Workbench::Workbench(unsigned seed) : builder(&context), random(seed) {
  context.loadDialect<nn::NNDialect>();
  builder.setInsertionPointToEnd(&block);
}

nn::Expr Workbench::input(ArrayRef<int64_t> shape, Range range) {
  auto type = RankedTensorType::get(shape, builder.getF64Type());
  std::uniform_real_distribution<double> draw(range.low, range.high);
  std::vector<double> values(type.getNumElements());
  for (double &value : values)
    value = draw(random);
  // A list of one value would be taken for a splat, which folds differently: that is wanted too.
  return nn::constant(builder, builder.getUnknownLoc(), DenseElementsAttr::get(type, ArrayRef<double>(values)));
}

nn::Expr Workbench::indices(ArrayRef<int64_t> shape, ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get(shape, builder.getI64Type());
  return nn::constant(builder, builder.getUnknownLoc(), DenseElementsAttr::get(type, values));
}

/// The rounds of a scan, one after the other; what stands for its results.
static SmallVector<Value> writeRounds(nn::ScanOp scan) {
  OpBuilder builder(scan.getContext());
  builder.setInsertionPointAfter(scan);
  auto at = [&](Value value) { return nn::Expr(builder, scan.getLoc(), value); };
  nn::NextOp next = scan.getNext();
  const unsigned sliced = scan.getNumSliced(), carried = scan.getNumCarried();
  const int64_t rounds = scan.getRounds();
  SmallVector<Value> handed(scan.getCarried());
  SmallVector<SmallVector<nn::Expr>> rows(next.getRows().size(), SmallVector<nn::Expr>(rounds));
  for (int64_t k = 0; k < rounds; ++k) {
    const int64_t part = scan.getReversed() ? rounds - 1 - k : k;
    IRMapping mapping;
    for (auto [argument, whole] : llvm::zip(scan.getBlock()->getArguments(), scan.getSliced())) {
      auto type = cast<RankedTensorType>(argument.getType());
      SmallVector<int64_t> starts(type.getRank(), 0);
      starts[0] = part * type.getDimSize(0);
      mapping.map(argument, nn::slice(at(whole), starts, type.getShape()).get());
    }
    mapping.map(scan.getBlock()->getArguments().slice(sliced, carried), handed);
    mapping.map(scan.getBlock()->getArguments().drop_front(sliced + carried), scan.getCaptured());
    for (Operation &op : scan.getBlock()->without_terminator())
      builder.clone(op, mapping);
    for (auto [to, value] : llvm::zip_equal(handed, next.getCarried()))
      to = mapping.lookup(value);
    for (auto [to, value] : llvm::zip_equal(rows, next.getRows()))
      to[part] = at(mapping.lookup(value));
  }
  for (SmallVector<nn::Expr> &parts : rows)
    handed.push_back(nn::concat(parts, 0));
  return handed;
}

Attribute Workbench::attribute(Value value) {
  if (Attribute found = known.lookup(value))
    return found;
  Operation *op = value.getDefiningOp();
  if (auto scan = dyn_cast<nn::ScanOp>(op)) {
    SmallVector<Value> &written = rounds[op];
    if (written.empty())
      written = writeRounds(scan);
    return known[value] = attribute(written[cast<OpResult>(value).getResultNumber()]);
  }
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands())
    operands.push_back(attribute(operand));
  FailureOr<SmallVector<Attribute>> folded = nn::foldConstant(op, operands);
  if (failed(folded))
    return {};
  for (auto [result, attribute] : llvm::zip(op->getResults(), *folded))
    known[result] = attribute;
  return known[value];
}

std::vector<double> Workbench::evaluate(Value value) {
  std::vector<double> elements;
  auto dense = dyn_cast_or_null<DenseElementsAttr>(attribute(value));
  if (!dense)
    return elements;
  if (isa<FloatType>(dense.getElementType()))
    for (APFloat element : dense.getValues<APFloat>())
      elements.push_back(FloatAttr::get(dense.getElementType(), element).getValueAsDouble());
  else
    for (APInt element : dense.getValues<APInt>())
      elements.push_back(static_cast<double>(element.getSExtValue()));
  return elements;
}

static bool isReal(Value value) { return cast<RankedTensorType>(value.getType()).getElementType().isF64(); }

double Workbench::combination(Operation *op, ArrayRef<std::vector<double>> factors) {
  double total = 0;
  for (auto [result, factor] : llvm::zip(op->getResults(), factors))
    if (isReal(result))
      for (auto [element, weight] : llvm::zip(evaluate(result), factor))
        total += element * weight;
  return total;
}

double Workbench::worstError(nn::Expr y, ArrayRef<nn::Expr> inputs, std::string &error,
                             llvm::function_ref<bool(GradientBuilder &)> form) {
  Operation *op = y.get().getDefiningOp();
  auto differentiable = dyn_cast<DifferentiableInterface>(op);
  if (!differentiable) {
    error = "the op has no derivative";
    return 0;
  }
  SmallVector<Value> cotangents;
  std::vector<std::vector<double>> factors;
  for (OpResult result : op->getResults()) {
    if (!isReal(result) || (form && result.getResultNumber() > 0)) {
      cotangents.push_back({});
      factors.emplace_back();
      continue;
    }
    cotangents.push_back(input(cast<RankedTensorType>(result.getType()).getShape()));
    factors.push_back(evaluate(cotangents.back()));
  }
  SmallVector<bool> needed;
  for (Value operand : op->getOperands())
    needed.push_back(llvm::any_of(inputs, [&](nn::Expr e) { return e.get() == operand; }));
  GradientBuilder gradient(builder, op, cotangents, needed);
  gradient.sweepBlock = [this](Block &inner, ArrayRef<Value> leaves,
                               ArrayRef<std::pair<Value, Value>> seeds) -> FailureOr<llvm::DenseMap<Value, Value>> {
    OpBuilder end(&context);
    end.setInsertionPointToEnd(&inner);
    train::ReverseSweep sweep(inner, end, leaves);
    if (failed(sweep.run(seeds)))
      return failure();
    llvm::DenseMap<Value, Value> found;
    for (Value leaf : leaves)
      if (Value cotangent = sweep.getCotangent(leaf))
        found[leaf] = cotangent;
    return found;
  };
  if (form ? !form(gradient) : failed(differentiable.differentiate(gradient))) {
    error = "differentiate failed";
    return 0;
  }
  double worst = 0;
  for (nn::Expr x : inputs) {
    std::vector<double> derivative(x.type().getNumElements(), 0.0);
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      if (op->getOperand(i) != x.get() || !gradient.get(i))
        continue;
      if (gradient.get(i).getType() != x.type()) {
        error = "the derivative of operand " + std::to_string(i) + " has another type than the operand";
        return 0;
      }
      std::vector<double> part = evaluate(gradient.get(i));
      if (part.size() != derivative.size()) {
        error = "the derivative of operand " + std::to_string(i) + " does not fold";
        return 0;
      }
      for (auto [sum, element] : llvm::zip(derivative, part))
        sum += element;
    }
    std::vector<double> values = evaluate(x);
    for (size_t i = 0; i < values.size(); ++i) {
      auto shifted = [&](double by) {
        std::vector<double> moved = values;
        moved[i] += by;
        known.clear();
        known[x] = DenseElementsAttr::get(x.type(), ArrayRef<double>(moved));
        return combination(op, factors);
      };
      constexpr double h = 1e-5;
      double difference = (shifted(h) - shifted(-h)) / (2 * h);
      double deviation = std::abs(derivative[i] - difference) / std::max(1.0, std::abs(difference));
      if (!(deviation <= worst)) // NaN counts as worst
        worst = deviation;
    }
    known.clear();
  }
  return worst;
}
