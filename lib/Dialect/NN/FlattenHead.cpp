//===- FlattenHead.cpp - what lies between logits and their loss ----------===//
//
// Brings what is computed of a head's product, row by row or element by element, to rows and classes: reshapes and
// transposes sink towards the loss, and what takes some rows rises above the product, where it saves the others.
// Then rows are one dimension, and what lies between can be computed for some of them after others.
//
//===----------------------------------------------------------------------===//

#include "HeadRows.h"
#include "lowtide/Dialect/NN/Patterns.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static SmallVector<int64_t> without(ArrayRef<int64_t> list, int64_t place) {
  SmallVector<int64_t> rest(list);
  rest.erase(rest.begin() + place);
  return rest;
}

/// `chosen` [rows, chosen…] of classes of logits [rows…, classes, rows…], which are dimension `classes` of `logits`:
/// with the chosen ones in their place.
static Expr placeChosen(Expr chosen, ArrayRef<int64_t> logits, int64_t classes) {
  SmallVector<int64_t> apart = without(logits, classes);
  const int64_t numRowDims = apart.size();
  llvm::append_range(apart, chosen.shape().drop_front());
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, classes));
  llvm::append_range(order, llvm::seq<int64_t>(numRowDims, apart.size()));
  llvm::append_range(order, llvm::seq<int64_t>(classes, numRowDims));
  return transpose(reshape(chosen, apart), order);
}

/// What `value`, of the view's shape, is as rows and classes.
static Expr flatten(Expr at, Value value, const HeadView &view, bool always) {
  const int64_t rows = view.getNumRows(), classes = view.getNumClasses();
  if (std::optional<HeadView> own = HeadView::get(value, always); own && own->hasSameMoves(view))
    return at.with(own->rows);
  if (Expr splat = resizeSplat(at, value, {rows, classes}))
    return splat;
  auto spread = value.getDefiningOp<BroadcastOp>();
  std::optional<int64_t> classDim = view.findClassDim();
  if (!spread || !classDim)
    return view.undo(at.with(value));
  Expr source = at.with(spread.getX());
  ArrayRef<int64_t> dims = spread.getDims();
  if (dims.empty())
    return broadcast(source, {rows, classes}, {});
  if (dims == ArrayRef<int64_t>{*classDim})
    return broadcast(source, {rows, classes}, {1});
  if (llvm::is_contained(dims, *classDim))
    return view.undo(at.with(value));
  SmallVector<int64_t> rowDims = llvm::map_to_vector(dims, [&](int64_t dim) { return dim - (dim > *classDim); });
  Expr perRow = reshape(broadcast(source, without(view.shape(), *classDim), rowDims), {rows});
  return broadcast(perRow, {rows, classes}, {0});
}

namespace {

/// f(reshape(rows), …) → reshape(f(rows, …)), for f element by element. Moves that undo one another are left out.
struct SinkThroughElements : OpTraitRewritePattern<OpTrait::Elementwise> {
  SinkThroughElements(MLIRContext *context, bool always) : OpTraitRewritePattern(context), always(always) {}
  bool always;

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    // An operand that is rows and classes already leaves nothing to do, whatever the others are.
    std::optional<HeadView> view;
    bool isUndone = false;
    for (OpOperand &operand : op->getOpOperands()) {
      std::optional<HeadView> own = HeadView::get(operand.get(), always);
      if (!own)
        continue;
      if (own->isPlain() && !own->ops.empty()) {
        isUndone = true;
        rewriter.replaceAllUsesWith(operand.get(), own->rows);
      }
      if (!view || own->isPlain())
        view = own;
    }
    if (isUndone)
      return success();
    auto hasShape = [&](Type type) { return cast<RankedTensorType>(type).getShape() == view->shape(); };
    if (!view || view->isPlain() || !llvm::all_of(op->getOperandTypes(), hasShape) ||
        !llvm::all_of(op->getResultTypes(), hasShape) || !feedsLoss(op->getResult(0)))
      return rewriter.notifyMatchFailure(op, "no elements of logits under another shape");
    Expr at(rewriter, op->getLoc(), view->rows);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(flatten(at, operand, *view, always));
    Operation *flat = rewriter.clone(*op);
    flat->setOperands(operands);
    SmallVector<Value> results;
    for (Value result : flat->getResults()) {
      result.setType(typeOf(result).clone({view->getNumRows(), view->getNumClasses()}));
      results.push_back(view->redo(at.with(result)));
    }
    rewriter.replaceOp(op, results);
    return success();
  }
};

/// The loss of logits whose classes are the last dimension.
struct FlattenLoss : OpRewritePattern<SoftmaxCrossEntropyOp> {
  FlattenLoss(MLIRContext *context, bool always) : OpRewritePattern(context), always(always) {}
  bool always;

  LogicalResult matchAndRewrite(SoftmaxCrossEntropyOp op, PatternRewriter &rewriter) const override {
    std::optional<HeadView> view = HeadView::get(op.getLogits(), always);
    if (!view || view->isPlain() || view->findClassDim() != 1)
      return rewriter.notifyMatchFailure(op, "no logits under another shape");
    Expr at(rewriter, op.getLoc(), view->rows);
    Expr labels = reshape(at.with(op.getLabels()), {view->getNumRows()});
    auto type = op.getLoss().getType().clone(labels.shape());
    auto flat = SoftmaxCrossEntropyOp::create(rewriter, op.getLoc(), type, type, view->rows, labels, op.getWeights(),
                                              op.getIgnoreIndexAttr());
    ArrayRef<int64_t> perSample = op.getLabels().getType().getShape();
    rewriter.replaceOp(op, {reshape(at.with(flat.getLoss()), perSample), reshape(at.with(flat.getLse()), perSample)});
    return success();
  }
};

/// A reduction over the classes: first of each row, then of what is left.
struct FlattenReduction : OpInterfaceRewritePattern<ReductionInterface> {
  FlattenReduction(MLIRContext *context, bool always) : OpInterfaceRewritePattern(context), always(always) {}
  bool always;

  LogicalResult matchAndRewrite(ReductionInterface op, PatternRewriter &rewriter) const override {
    if (op->getNumOperands() != 1 || op->getNumResults() != 1 || !op->hasAttr("dims"))
      return rewriter.notifyMatchFailure(op, "not of one tensor");
    std::optional<HeadView> view = HeadView::get(op->getOperand(0), always);
    std::optional<int64_t> classes = view ? view->findClassDim() : std::nullopt;
    ArrayRef<int64_t> dims = op.getReducedDims();
    if (!classes || !llvm::is_contained(dims, *classes) || (view->isPlain() && dims.size() == 1))
      return rewriter.notifyMatchFailure(op, "not over the classes of logits under another shape");
    Expr at(rewriter, op->getLoc(), view->rows);
    auto reduce = [&](Value value, ArrayRef<int64_t> over, ArrayRef<int64_t> shape) {
      Operation *copy = rewriter.clone(*op);
      copy->setOperands(value);
      copy->setAttr("dims", rewriter.getDenseI64ArrayAttr(over));
      copy->getResult(0).setType(typeOf(copy->getResult(0)).clone(shape));
      return at.with(copy->getResult(0));
    };
    Expr perRow = reduce(view->rows, {1}, {view->getNumRows()});
    SmallVector<int64_t> rest;
    for (int64_t dim : dims)
      if (dim != *classes)
        rest.push_back(dim - (dim > *classes));
    ArrayRef<int64_t> result = typeOf(op->getResult(0)).getShape();
    Expr shaped = reshape(perRow, rest.empty() ? SmallVector<int64_t>(result) : without(view->shape(), *classes));
    rewriter.replaceOp(op, (rest.empty() ? shaped : reduce(shaped, rest, result)).get());
    return success();
  }
};

/// What labels pick of the classes.
struct FlattenPicked : OpRewritePattern<GatherElementsOp> {
  FlattenPicked(MLIRContext *context, bool always) : OpRewritePattern(context), always(always) {}
  bool always;

  LogicalResult matchAndRewrite(GatherElementsOp op, PatternRewriter &rewriter) const override {
    std::optional<HeadView> view = HeadView::get(op.getX(), always);
    std::optional<int64_t> classes = view ? view->findClassDim() : std::nullopt;
    if (!classes || view->isPlain() || int64_t(op.getAxis()) != *classes)
      return rewriter.notifyMatchFailure(op, "not among the classes of logits under another shape");
    Expr at(rewriter, op.getLoc(), view->rows);
    ArrayRef<int64_t> from = op.getX().getType().getShape(), to = op.getY().getType().getShape();
    if (without(from, *classes) != without(to, *classes))
      return rewriter.notifyMatchFailure(op, "of some rows");
    SmallVector<int64_t> classesLast;
    for (int64_t dim = 0; dim < int64_t(to.size()); ++dim)
      if (dim != *classes)
        classesLast.push_back(dim);
    classesLast.push_back(*classes);
    Expr indices = reshape(transpose(at.with(op.getIndices()), classesLast), {view->getNumRows(), to[*classes]});
    rewriter.replaceOp(op, placeChosen(gatherElements(at, indices, 1), from, *classes).get());
    return success();
  }
};

/// Some of the classes of logits under another shape, of all rows: the blank's of a transducer, those of two words.
template <typename Op> struct FlattenChosen : OpRewritePattern<Op> {
  FlattenChosen(MLIRContext *context, bool always) : OpRewritePattern<Op>(context), always(always) {}
  bool always;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    std::optional<HeadView> view = HeadView::get(op.getX(), always);
    std::optional<int64_t> classes = view ? view->findClassDim() : std::nullopt;
    if (!classes || view->isPlain() || !choosesClasses(op, *classes))
      return rewriter.notifyMatchFailure(op, "not some classes of logits under another shape");
    Expr chosen = choose(op, Expr(rewriter, op.getLoc(), view->rows), *classes); // [rows, chosen…]
    rewriter.replaceOp(op, placeChosen(chosen, op.getX().getType().getShape(), *classes).get());
    return success();
  }

private:
  static bool choosesClasses(SliceOp op, int64_t classes) {
    ArrayRef<int64_t> from = op.getX().getType().getShape(), to = op.getY().getType().getShape();
    return from[classes] != to[classes] && without(from, classes) == without(to, classes);
  }
  static bool choosesClasses(GatherOp op, int64_t classes) {
    return int64_t(op.getAxis()) == classes && !op.getUntrainedRow();
  }
  static Expr choose(SliceOp op, Expr rows, int64_t classes) {
    return slice(rows, {0, op.getStarts()[classes]}, {rows.dim(0), op.getY().getType().getDimSize(classes)},
                 {1, op.getStrides()[classes]});
  }
  static Expr choose(GatherOp op, Expr rows, int64_t) { return gather(rows, rows.with(op.getIndices()), 1); }
};

/// softmax, log_softmax over the classes.
template <typename Op> struct FlattenAlong : OpRewritePattern<Op> {
  FlattenAlong(MLIRContext *context, bool always) : OpRewritePattern<Op>(context), always(always) {}
  bool always;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    std::optional<HeadView> view = HeadView::get(op.getX(), always);
    std::optional<int64_t> classes = view ? view->findClassDim() : std::nullopt;
    if (!classes || view->isPlain() || op.getDim() != uint64_t(*classes) || !feedsLoss(op.getY()))
      return rewriter.notifyMatchFailure(op, "not over the classes of logits under another shape");
    Operation *flat = rewriter.clone(*op);
    flat->setOperands(view->rows);
    flat->setAttr("dim", rewriter.getI64IntegerAttr(1));
    flat->getResult(0).setType(typeOf(op.getY()).clone(typeOf(view->rows).getShape()));
    rewriter.replaceOp(op, view->redo(Expr(rewriter, op.getLoc(), flat->getResult(0))).get());
    return success();
  }
};

/// reshape(f(x, …)) → f(reshape(x), …) of what meets a head's rows, such as a teacher's probabilities: f row by row.
struct RaiseReshape : OpRewritePattern<ReshapeOp> {
  RaiseReshape(MLIRContext *context, bool always) : OpRewritePattern(context), always(always) {}
  bool always;

  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    const RankedTensorType from = op.getX().getType(), to = op.getY().getType();
    Operation *producer = op.getX().getDefiningOp();
    if (!producer || from.getRank() < 2 || to.getRank() != 2 || from.getShape().back() != to.getDimSize(1) ||
        !keepsRows(producer, from.getRank() - 1) || producer->getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "no rows of what is made row by row");
    auto hasShape = [&](Type type) { return cast<RankedTensorType>(type).getShape() == from.getShape(); };
    if (!llvm::all_of(producer->getOperandTypes(), hasShape) || HeadView::get(op.getX(), always) ||
        !meetsHead(op.getY(), always))
      return rewriter.notifyMatchFailure(op, "does not meet the rows of a head");
    HeadView view;
    view.rows = op.getY();
    view.moves.push_back({llvm::to_vector(to.getShape()), llvm::to_vector(from.getShape()), {}});
    rewriter.setInsertionPoint(producer);
    Expr at(rewriter, producer->getLoc(), producer->getOperand(0));
    SmallVector<Value> operands;
    for (Value operand : producer->getOperands())
      operands.push_back(flatten(at, operand, view, always));
    Operation *flat = rewriter.clone(*producer);
    flat->setOperands(operands);
    if (flat->hasAttr("dim"))
      flat->setAttr("dim", rewriter.getI64IntegerAttr(1));
    flat->getResult(0).setType(typeOf(producer->getResult(0)).clone(to.getShape()));
    rewriter.replaceOp(op, flat->getResult(0));
    // Others read it under its own shape.
    rewriter.replaceOp(producer, reshape(at.with(flat->getResult(0)), from.getShape()).get());
    return success();
  }
};

/// Some rows of logits that nothing else reads, or other rows: of what they are made of.
template <typename Op> struct RaiseRows : OpRewritePattern<Op> {
  RaiseRows(MLIRContext *context, bool always) : OpRewritePattern<Op>(context), always(always) {}
  bool always;

  /// Which rows: in `from` they lie before, in `to` after.
  struct Choice {
    SmallVector<int64_t> from, to;
    /// x [from…, rest…] → [to…, rest…]
    llvm::function_ref<Expr(Expr)> take;
    int64_t count() const { return std::accumulate(to.begin(), to.end(), int64_t(1), std::multiplies<>()); }
  };

  bool isReadHereOnly(Value value) const {
    if (!isHeadRows(value, always))
      return true;
    Operation *op = value.getDefiningOp();
    return llvm::hasSingleElement(llvm::SmallPtrSet<Operation *, 4>(value.user_begin(), value.user_end())) &&
           (isa<DotOp>(op) || llvm::all_of(op->getOperands(), [&](Value v) { return isReadHereOnly(v); }));
  }

  /// Rows of logits that `op` chooses for a loss; nothing where it does something else.
  template <typename Chooser> std::optional<int64_t> countChosen(Operation *op) const {
    auto chooser = dyn_cast<Chooser>(op);
    std::optional<HeadView> view = chooser ? HeadView::get(chooser.getX(), always) : std::nullopt;
    std::optional<int64_t> classes = view ? view->findClassDim() : std::nullopt;
    if (!classes || !findClasses(chooser, *classes) || !feedsLoss(chooser.getY()))
      return std::nullopt;
    return chooser.getY().getType().getNumElements() / std::max<int64_t>(view->getNumClasses(), 1);
  }

  /// Whether all that reads the logits chooses rows for a loss, not more in all than there are: one loss of the chosen
  /// answers, another of the rejected ones.
  bool isReadByRows(const HeadView &view) const {
    llvm::SmallSetVector<Operation *, 8> made;
    made.insert(view.ops.begin(), view.ops.end());
    SmallVector<Value> worklist{view.rows};
    while (!worklist.empty()) {
      Value at = worklist.pop_back_val();
      if (isHeadRows(at, always) && made.insert(at.getDefiningOp()) && !isa<DotOp>(at.getDefiningOp()))
        llvm::append_range(worklist, at.getDefiningOp()->getOperands());
    }
    int64_t chosen = 0;
    for (Operation *op : made)
      for (Operation *user : op->getResult(0).getUsers()) {
        if (made.contains(user))
          continue;
        std::optional<int64_t> count = countChosen<SliceOp>(user);
        count = count ? count : countChosen<GatherOp>(user);
        if (!count)
          return false;
        chosen += *count;
      }
    return chosen <= view.getNumRows();
  }

  /// The rows of `value` [rows, …] that are chosen.
  static Expr chooseRows(Expr value, const Choice &choice) {
    SmallVector<int64_t> apart(choice.from), result{choice.count()};
    llvm::append_range(apart, value.shape().drop_front());
    llvm::append_range(result, value.shape().drop_front());
    return reshape(choice.take(reshape(value, apart)), result);
  }

  Expr chooseHead(Expr value, const Choice &choice) const {
    Operation *op = value.get().getDefiningOp();
    const SmallVector<int64_t> shape{choice.count(), value.dim(1)};
    if (Expr splat = resizeSplat(value, value, shape))
      return splat;
    if (auto spread = dyn_cast_if_present<BroadcastOp>(op)) {
      const bool hasRows = !spread.getDims().empty() && spread.getDims()[0] == 0;
      Expr source = value.with(spread.getX());
      if (!hasRows || spread.getDims().size() == 1)
        return broadcast(hasRows ? chooseRows(source, choice) : source, shape, spread.getDims());
    }
    if (!op || !isHeadRows(value, always))
      return chooseRows(value, choice);
    if (auto product = dyn_cast<DotOp>(op))
      return value.with(DotOp::create(value.getBuilder(), op->getLoc(), value.type().clone(shape),
                                      chooseRows(value.with(product.getA()), choice), product.getB(),
                                      product.getTransposeA(), product.getTransposeB()));
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(chooseHead(value.with(operand), choice));
    Operation *copy = value.getBuilder().clone(*op);
    copy->setOperands(operands);
    copy->getResult(0).setType(value.type().clone(shape));
    return value.with(copy->getResult(0));
  }

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    std::optional<HeadView> view = HeadView::get(op.getX(), always);
    std::optional<int64_t> classes = view ? view->findClassDim() : std::nullopt;
    std::optional<int64_t> chosenClasses = classes ? findClasses(op, *classes) : std::nullopt;
    if (!chosenClasses || !feedsLoss(op.getY()))
      return rewriter.notifyMatchFailure(op, "no rows of logits");
    const bool isAlone = isReadHereOnly(view->rows) &&
                         llvm::all_of(view->ops, [](Operation *op) { return op->getResult(0).hasOneUse(); });
    if (!isAlone && !isReadByRows(*view))
      return rewriter.notifyMatchFailure(op, "the logits are read elsewhere");
    ArrayRef<int64_t> result = op.getY().getType().getShape();
    auto take = [&](Expr x) { return takeRows(op, x, *classes); };
    Choice choice{without(op.getX().getType().getShape(), *classes), without(result, *chosenClasses), take};
    Expr rows = chooseHead(Expr(rewriter, op.getLoc(), view->rows), choice);
    SmallVector<int64_t> shape(choice.to), order;
    shape.push_back(view->getNumClasses());
    for (int64_t dim = 0; dim < int64_t(result.size()); ++dim)
      order.push_back(dim == *chosenClasses ? int64_t(result.size()) - 1 : dim - (dim > *chosenClasses));
    rewriter.replaceOp(op, transpose(reshape(rows, shape), order).get());
    return success();
  }

private:
  /// Where the result of `op` counts the classes that its operand counts at `classes`; nothing where it chooses among
  /// these, or has more rows than its operand.
  static std::optional<int64_t> findClasses(SliceOp op, int64_t classes) {
    ArrayRef<int64_t> from = op.getX().getType().getShape(), to = op.getY().getType().getShape();
    return from[classes] == to[classes] && from != to ? std::optional(classes) : std::nullopt;
  }
  static std::optional<int64_t> findClasses(GatherOp op, int64_t classes) {
    const int64_t axis = int64_t(op.getAxis());
    if (axis == classes || op.getUntrainedRow() ||
        op.getY().getType().getNumElements() > op.getX().getType().getNumElements())
      return std::nullopt;
    return axis < classes ? classes + op.getIndices().getType().getRank() - 1 : classes;
  }

  /// What `op` does to rows x, without the classes that it counts at `classes`.
  static Expr takeRows(SliceOp op, Expr x, int64_t classes) {
    SmallVector<int64_t> starts = without(op.getStarts(), classes), strides = without(op.getStrides(), classes),
                         sizes = without(op.getY().getType().getShape(), classes);
    for (int64_t extent : x.shape().drop_front(starts.size())) {
      starts.push_back(0);
      strides.push_back(1);
      sizes.push_back(extent);
    }
    return slice(x, starts, sizes, strides);
  }
  static Expr takeRows(GatherOp op, Expr x, int64_t classes) {
    const int64_t axis = int64_t(op.getAxis());
    return gather(x, x.with(op.getIndices()), axis - (axis > classes));
  }
};

} // namespace

void nn::addHeadFlattening(RewritePatternSet &patterns, bool always) {
  patterns.add<SinkThroughElements, FlattenLoss, FlattenReduction, FlattenPicked, FlattenChosen<SliceOp>,
               FlattenChosen<GatherOp>, FlattenAlong<SoftmaxOp>, FlattenAlong<LogSoftmaxOp>, RaiseRows<SliceOp>,
               RaiseRows<GatherOp>>(patterns.getContext(), always);
  addReshapeRaising(patterns, always);
  addHeadUnstacking(patterns, always);
  addHeadTurning(patterns, always);
}

void nn::addReshapeRaising(RewritePatternSet &patterns, bool always) {
  patterns.add<RaiseReshape>(patterns.getContext(), always);
}
