//===- TrainSparseUpdates.cpp - tables are updated where they were read ---===//
//
// The gradient of a table that a step looks rows up in is a sum of few rows among zeros. It need not exist:
//
//   1. The gradient of a parameter is taken apart: sums of scatters along dimension 0, and casts.
//   2. Each place of the batch finds the first place that names the same row: by the smallest number of a place that
//      lands in a table of one number per row.
//   3. The sums of a row are made at its first place, in the order in which the table's would be, and read from there.
//   4. The optimizer updates the rows that are named, places of one row alike, and they are written over the table's.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/Scatter.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Optimizers.h"
#include "lowtide/Support/Failure.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace lowtide {
#define GEN_PASS_DEF_TRAINSPARSEUPDATES
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;
using nn::Expr;

/// Gradients of fewer bytes stay whole, unsaid.
static constexpr uint64_t smallestGradient = 64 << 10;
/// Copies of a row for each place of the batch: its sum, the row, its gradient, the new row.
static constexpr uint64_t copiesPerPlace = 4;

static RankedTensorType getType(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {
/// The gradient of a table, taken apart.
struct RowGradient {
  /// From the scatters to the gradient, in order: sums and casts, which make zeros of zeros.
  llvm::SmallSetVector<Operation *, 8> ops;
  SmallVector<nn::ScatterAddOp> scatters;
  /// Why it is no sum of rows; empty: it is one.
  StringRef reason;
  /// Whether rows are scattered anywhere in it.
  bool hasRows = false;

  explicit RowGradient(Value gradient) { visit(gradient); }

private:
  void visit(Value value);
  void decline(StringRef why) {
    if (reason.empty())
      reason = why;
  }
};
} // namespace

/// Whether a loop adds up rows that are scattered in it.
static bool addsUpRows(RepeatInterface loop, unsigned result) {
  Operation *terminator = loop->getRegion(0).front().getTerminator();
  SmallVector<Value> worklist{terminator->getOperand(result)};
  llvm::SmallDenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *maker = value.getDefiningOp();
    if (!maker || !seen.insert(value).second)
      continue;
    if (isa<ScatterInterface>(maker))
      return true;
    if (maker->hasTrait<OpTrait::Elementwise>())
      llvm::append_range(worklist, maker->getOperands());
  }
  return false;
}

void RowGradient::visit(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return decline("it is no sum of rows");
  if (ops.contains(op))
    return;
  if (auto scatter = dyn_cast<nn::ScatterAddOp>(op); scatter && scatter.getAxis() == 0) {
    hasRows = true;
    scatters.push_back(scatter);
    ops.insert(op);
  } else if (auto sum = dyn_cast<nn::AddOp>(op)) {
    visit(sum.getA());
    visit(sum.getB_());
    ops.insert(op);
  } else if (auto widening = dyn_cast<nn::CastOp>(op)) {
    visit(widening.getX());
    ops.insert(op);
  } else if (auto loop = dyn_cast<RepeatInterface>(op)) {
    hasRows |= addsUpRows(loop, cast<OpResult>(value).getResultNumber());
    decline("micro-batches add it up");
  } else if (auto facts = dyn_cast<FactsInterface>(op); facts && facts.getFacts().family == OpFamily::Optimizer) {
    // Unscaled or clipped, all gradients of the step together.
    RowGradient before(op->getOperand(cast<OpResult>(value).getResultNumber()));
    hasRows |= before.hasRows;
    decline("clipping or loss scaling reads it as a whole");
  } else {
    decline("the table is also read as a whole");
  }
}

namespace {
class SparseUpdate {
public:
  SparseUpdate(train::OptimizerInterface update, bool isLazy)
      : update(update), isLazy(isLazy), whole(train::getUpdateOperands(update)), gradient(whole.grad) {}

  /// Whether the gradient has rows at all, which a remark may be about.
  bool isTable() const { return gradient.hasRows; }
  Value getTable() const { return whole.param; }
  int64_t countRows() const { return getType(whole.param).getDimSize(0); }
  int64_t countPlaces() const;
  uint64_t getGradientBytes() const { return getTensorBytes(whole.grad.getType()).value_or(0); }
  /// Why the gradient stays whole; empty: it need not.
  std::string findObstacle();
  void rewrite();

private:
  Expr sumRows(OpBuilder &b, Expr first);

  train::OptimizerInterface update;
  bool isLazy;
  train::UpdateOperands whole;
  RowGradient gradient;
};
} // namespace

int64_t SparseUpdate::countPlaces() const {
  int64_t places = 0;
  for (nn::ScatterAddOp scatter : gradient.scatters)
    places += scatter.getIndices().getType().getNumElements();
  return places;
}

std::string SparseUpdate::findObstacle() {
  if (!gradient.reason.empty())
    return gradient.reason.str();
  if (!isa<BlockArgument>(whole.param))
    return "what is updated is no argument of the step";
  for (Operation *op : gradient.ops)
    for (Operation *user : op->getUsers())
      if (user != update && !gradient.ops.contains(user))
        return "it is read elsewhere, too";
  StringRef name = update->getName().stripDialect();
  const train::RowRule rule = update.getRowRule();
  if (rule == train::RowRule::Whole) {
    const bool decays = update->hasAttr("weight_decay") && update.getOption("weight_decay") != 0.0;
    return decays ? "weight decay changes every row" : (name + " has no update of rows alone").str();
  }
  if (rule == train::RowRule::Lazy && !isLazy)
    return (name + " changes every row; --sparse-updates=lazy updates those alone that a batch names").str();
  const uint64_t rows = countRows(), places = countPlaces();
  const uint64_t bytes = rows * sizeof(int32_t) + places * copiesPerPlace * (getGradientBytes() / rows);
  if (bytes >= getGradientBytes())
    return ("rows for " + Twine(places) + " places of a batch would take " + formatBytes(bytes)).str();
  return "";
}

/// The gradient's sums, each at the first place of its row (`first`, for each place), zeros at the other places.
Expr SparseUpdate::sumRows(OpBuilder &b, Expr first) {
  IRMapping sums;
  int64_t before = 0;
  for (Operation *op : gradient.ops) {
    SmallVector<int64_t> shape(getType(op->getResult(0)).getShape());
    shape[0] = countPlaces();
    if (auto scatter = dyn_cast<nn::ScatterAddOp>(op)) {
      SmallVector<int64_t> own(shape);
      own[0] = scatter.getIndices().getType().getNumElements();
      Expr updates = nn::reshape(Expr(b, op->getLoc(), scatter.getUpdates()), own);
      sums.map(scatter.getY(), nn::scatterAdd(nn::slice(first, {before}, {own[0]}), updates, shape, 0).get());
      before += own[0];
    } else {
      b.clone(*op, sums)->getResult(0).setType(getType(op->getResult(0)).clone(shape));
    }
  }
  return Expr(b, update.getLoc(), sums.lookup(whole.grad));
}

void SparseUpdate::rewrite() {
  OpBuilder b(update);
  Location loc = update.getLoc();
  const int64_t rows = countRows(), places = countPlaces();
  Type i64 = b.getI64Type(), word = b.getI32Type();

  // Places of all scatters, one after the other.
  SmallVector<Expr> parts;
  for (nn::ScatterAddOp scatter : gradient.scatters) {
    Expr indices(b, loc, scatter.getIndices());
    parts.push_back(nn::cast(nn::reshape(indices, {indices.type().getNumElements()}), i64));
  }
  Expr at = parts.size() == 1 ? parts.front() : nn::concat(parts, 0);
  Expr numbers = nn::iota(b, loc, RankedTensorType::get({places}, word), 0);
  Expr none = nn::splat(b, loc, RankedTensorType::get({rows}, word), double(places));
  Expr owner = nn::scatter(nn::ScatterKind::min, none, at, numbers, 0);
  // A place outside of the table adds nothing to it, nor to the rows.
  Expr isInside = nn::logicalAnd(nn::greaterEqual(at, 0.0), nn::less(at, double(rows)));
  Expr found = nn::gather(owner, at, 0);
  Expr first = nn::select(isInside, found, found.like(-1.0));

  auto pick = [&](Value tensor) { return nn::gather(Expr(b, loc, tensor), at, 0).get(); };
  train::UpdateOperands named{pick(whole.param), nn::gather(sumRows(b, first), first, 0).get(), whole.lr,
                              whole.step,        llvm::map_to_vector(whole.state, pick),        {}};
  Operation *updated = train::buildRowUpdate(b, update, named);
  SmallVector<Value> tensors{whole.param};
  llvm::append_range(tensors, whole.state);
  SmallVector<Value> written;
  for (auto [tensor, row] : llvm::zip_equal(tensors, updated->getResults()))
    written.push_back(nn::scatter(nn::ScatterKind::set, Expr(b, loc, tensor), at, Expr(b, loc, row), 0).get());
  update->replaceAllUsesWith(written);
  update->erase();
  for (Operation *op : llvm::reverse(gradient.ops))
    op->erase();
}

namespace {
struct TrainSparseUpdates : StepPass<lowtide::impl::TrainSparseUpdatesBase<TrainSparseUpdates>> {
  using StepPass::StepPass;

  void visit(func::FuncOp step, train::OptimizerInterface op) {
    SparseUpdate update(op, sparseUpdates == "lazy");
    if (!update.isTable() || update.getGradientBytes() < smallestGradient)
      return;
    std::string name = "a table", obstacle = update.findObstacle();
    if (auto argument = dyn_cast<BlockArgument>(update.getTable()))
      if (auto binding = dyn_cast_or_null<train::ParamAttr>(train::getArgBinding(step, argument.getArgNumber())))
        name = binding.getName().getValue().str();
    if (!obstacle.empty()) {
      // Who asks for lazy rules is told where there are none.
      InFlightDiagnostic said = sparseUpdates == "lazy" ? step.emitWarning("@") : step.emitRemark("@");
      said << step.getSymName() << ": " << name << " keeps its gradient of " << formatBytes(update.getGradientBytes())
           << " whole: " << obstacle;
      return;
    }
    step.emitRemark("@") << step.getSymName() << ": " << name << " is updated in the " << update.countPlaces() << " of "
                         << update.countRows() << " rows that a batch names";
    update.rewrite();
    ++numTables;
  }

  void runOnSteps() override {
    if (failed(checkOption(getOperation(), "sparse-updates", sparseUpdates)))
      return signalPassFailure();
    if (sparseUpdates == "off")
      return;
    for (auto step : getOperation().getOps<func::FuncOp>())
      for (auto update : llvm::to_vector(step.getBody().getOps<train::OptimizerInterface>()))
        visit(step, update);
  }
};
} // namespace
