//===- BatchRules.cpp - how nn ops treat the samples of a batch -*- C++ -*-===//
//
// Samples are followed like an index of a summation convention: the label of the dimension that counts them says where
// else they are counted, and whether they vanish in a sum.
//
//===----------------------------------------------------------------------===//

#include "BatchLabels.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/RowNumbers.h"
#include "lowtide/Dialect/NN/Scatter.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

LabelTable nn::identities(Operation *op) {
  LabelTable table;
  for (Value operand : op->getOperands())
    table.operands.push_back(identity(operand));
  for (Value result : op->getResults())
    table.results.push_back(identity(result));
  return table;
}

static Labels allClosed(Value value) { return Labels(typeOf(value).getRank(), closed); }

static LabelTable closedTable(Operation *op) {
  LabelTable table;
  for (Value operand : op->getOperands())
    table.operands.push_back(allClosed(operand));
  for (Value result : op->getResults())
    table.results.push_back(allClosed(result));
  return table;
}

/// The dimension of `value` with that label at which `position` fits; nothing if it has none.
static std::optional<BatchPosition> find(Value value, ArrayRef<int64_t> labels, int64_t label,
                                         const BatchPosition &position, int64_t samples) {
  for (auto [dim, own] : llvm::enumerate(labels))
    if (own == label && typeOf(value).getDimSize(dim) == position.outer * samples * position.inner)
      return position.at(int64_t(dim));
  return std::nullopt;
}

LogicalResult nn::follow(const LabelTable &table, BatchSplit &split, Names names) {
  std::optional<BatchPosition> first;
  int64_t label = closed;
  for (auto [i, position] : llvm::enumerate(split.operands)) {
    if (!position)
      continue;
    if (position->dim < 0)
      return split.refuse("computes with the number of the first sample");
    if (position->named && names == Names::Refused)
      return split.refuse("computes with the numbers of rows that data select");
    int64_t own = table.operands[i][position->dim];
    if (own == closed)
      return split.refuse("looks at all samples together");
    if (!first) {
      first = position;
      label = own;
    } else if (own != label || position->outer != first->outer || position->inner != first->inner) {
      return split.refuse("combines each sample with every other");
    } else if (position->selection != first->selection) {
      return split.refuse("combines rows that data select with others");
    }
  }
  if (!first)
    return success();
  for (auto [i, operand] : llvm::enumerate(split.op->getOperands()))
    split.required[i] = find(operand, table.operands[i], label, *first, split.samples);
  for (auto [i, result] : llvm::enumerate(split.op->getResults())) {
    if (auto position = find(result, table.results[i], label, *first, split.samples)) {
      if (names == Names::Kept)
        position->named = first->named, position->namedSelection = first->namedSelection;
      split.results[i] = {BatchSplit::Kind::Rows, *position};
    } else if (llvm::is_contained(table.summed, label))
      split.results[i].kind = BatchSplit::Kind::Sum;
    else
      return split.refuse("looks at all samples together");
  }
  return success();
}

LogicalResult nn::splitUnknown(Operation *, BatchSplit &split) {
  return split.refuse("does not say what it does with samples");
}

LogicalResult nn::splitConstant(Operation *, BatchSplit &) { return success(); }

LogicalResult nn::splitElementwise(Operation *op, BatchSplit &split) { return follow(identities(op), split); }

LogicalResult nn::splitAdditive(Operation *op, BatchSplit &split) {
  return split.allSums ? split.answerSums() : follow(identities(op), split);
}

/// The integer that all elements of `value` are; nothing if they are no constant.
static std::optional<int64_t> constantOf(Value value) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat() ||
      !isa<IntegerType>(elements.getElementType()))
    return std::nullopt;
  return elements.getSplatValue<APInt>().getSExtValue();
}

LogicalResult nn::splitDiv(Operation *op, BatchSplit &split) {
  const auto &number = split.operands[0];
  std::optional<int64_t> divisor = number && number->named ? constantOf(op->getOperand(1)) : std::nullopt;
  if (!divisor || *divisor <= 0 || number->named % *divisor)
    return follow(identities(op), split);
  if (failed(follow(identities(op), split, Names::Kept)))
    return failure();
  split.results[0].position.named /= *divisor;
  return success();
}

LogicalResult nn::splitRem(Operation *op, BatchSplit &split) {
  const auto &number = split.operands[0];
  std::optional<int64_t> divisor = number && number->named ? constantOf(op->getOperand(1)) : std::nullopt;
  const bool isWithin = divisor && *divisor > 0 && number->named % *divisor == 0;
  return follow(identities(op), split, isWithin ? Names::Dropped : Names::Refused);
}

LogicalResult nn::splitSelect(Operation *op, BatchSplit &split) {
  // Numbers of rows, and in place of some a number that no row has.
  for (auto [i, other] : {std::pair(1, 2), std::pair(2, 1)}) {
    const auto &number = split.operands[i];
    std::optional<int64_t> none = number && number->named ? constantOf(op->getOperand(other)) : std::nullopt;
    if (!none || *none < split.samples * number->named)
      continue;
    if (failed(follow(identities(op), split, Names::Dropped)))
      return failure();
    split.results[0].position = *number;
    return success();
  }
  return follow(identities(op), split);
}

LogicalResult nn::splitCast(Operation *op, BatchSplit &split) {
  Type from = typeOf(op->getOperand(0)).getElementType(), to = typeOf(op->getResult(0)).getElementType();
  bool widens = isa<FloatType>(from) && isa<FloatType>(to) && from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth();
  if (split.allSums && widens)
    return split.answerSums();
  const bool hasNumbers = isa<IntegerType>(to) && to.getIntOrFloatBitWidth() >= 32;
  return follow(identities(op), split, hasNumbers ? Names::Kept : Names::Refused);
}

//===-- indexing ----------------------------------------------------------===//

/// Labels of the data operand: dimensions after the axis come after those of the indices, the axis is closed.
static Labels indexedLabels(Value data, int64_t axis, int64_t indexRank) {
  Labels labels = identity(data);
  for (int64_t dim = axis + 1; dim < int64_t(labels.size()); ++dim)
    labels[dim] += indexRank - 1;
  labels[axis] = closed;
  return labels;
}

static Labels indexLabels(Value indices, int64_t axis) {
  int64_t rank = typeOf(indices).getRank();
  return llvm::to_vector(llvm::seq<int64_t>(axis, axis + rank));
}

LogicalResult nn::splitSelectRows(Operation *op, BatchSplit &split) {
  if (!split.operands[0])
    return success();
  const BatchPosition &from = *split.operands[0];
  if (from.outer != 1)
    return split.refuse("selects among several times all samples");
  split.required[0] = from;
  auto select = cast<SelectRowsOp>(op);
  const int64_t rows = select.getRows().getType().getNumElements() / split.samples;
  split.results[0] = {BatchSplit::Kind::Rows, {0, 1, rows, select.getCondition(), rows, from.selection}};
  split.results[1] = {BatchSplit::Kind::Rows, {0, 1, from.inner, select.getCondition()}};
  return success();
}

/// How indices say which rows an op reads or writes: each of them a row (`Rows`), or an element of a row of its own
/// place
/// (`Elements`), where they stand in the dimension of the rows.
enum class Naming : uint8_t { Rows, Elements };

/// Where what is read or written at `number` counts its rows.
static BatchPosition namedFrom(const BatchPosition &number, int64_t axis, Naming naming) {
  return number.at(naming == Naming::Rows ? axis + number.dim : number.dim);
}

/// Whether rows of other parts would be noticed: floats that are read at `numbers` of a tensor with `extent` rows, too,
/// are NaN where a part has no such row.
static bool areNoticed(Value numbers, int64_t extent) {
  return llvm::any_of(numbers.getUsers(), [&](Operation *user) {
    if (!isa<GatherOp, GatherElementsOp>(user) || user->getOperand(1) != numbers)
      return false;
    RankedTensorType table = typeOf(user->getOperand(0));
    return isa<FloatType>(table.getElementType()) && table.getDimSize(integerAttr(user, "axis")) == extent;
  });
}

/// Numbers in operand `indices` of rows of all samples, `extent` in all, of which each sample has its own, as the op
/// needs them; nothing if they are none.
static std::optional<BatchPosition> numbersOfSamples(BatchSplit &split, unsigned indices, int64_t extent) {
  Value numbers = split.op->getOperand(indices);
  const auto &position = split.operands[indices];
  DenseElementsAttr constant;
  matchPattern(numbers, m_Constant(&constant));
  if (!split.canRenumber || (!constant && !areNoticed(numbers, extent)) ||
      (position && (position->dim < 0 || position->named || position->selection)))
    return std::nullopt;
  auto numbersAt = [&](BatchPosition at) -> std::optional<BatchPosition> {
    const int64_t rows = getRowsOfSample(numbers, at, split.samples).value_or(0);
    if (rows <= 0 || extent % (split.samples * rows))
      return std::nullopt;
    at.renumbered = rows;
    at.rowBlocks = extent / (split.samples * rows);
    return constant && !areOwnRows(constant, at, split.samples) ? std::nullopt : std::optional(at);
  };
  if (position)
    return numbersAt(*position);
  // The same numbers in every batch.
  for (auto [dim, own] : llvm::enumerate(typeOf(numbers).getShape()))
    if (own % split.samples == 0)
      if (auto found = numbersAt({.dim = int64_t(dim), .inner = own / split.samples}))
        return found;
  return std::nullopt;
}

/// Numbers in operand `indices` of rows of a tensor that counts `extent` of them in dimension `axis`; nothing if they
/// are none.
static std::optional<BatchPosition> rowNumbers(BatchSplit &split, unsigned indices, int64_t axis, int64_t extent,
                                               Naming naming) {
  const auto &number = split.operands[indices];
  std::optional<BatchPosition> found = number && number->named ? *number : numbersOfSamples(split, indices, extent);
  return found && (naming == Naming::Rows || found->dim == axis) ? found : std::nullopt;
}

/// Where what has these rows in dimension `axis` counts them.
static BatchPosition rowsOf(const BatchPosition &number, int64_t axis) {
  if (number.named)
    return {axis, 1, number.named, number.namedSelection};
  return {axis, number.rowBlocks, number.renumbered};
}

/// Reading the rows of operand 0 that numbers name, which may be numbers of others; whether it is that.
static bool readsRows(BatchSplit &split, int64_t axis, Naming naming) {
  const auto &rows = split.operands[0];
  if (!rows || rows->dim != axis)
    return false;
  auto number = rowNumbers(split, 1, axis, typeOf(split.op->getOperand(0)).getDimSize(axis), naming);
  if (!number || !(rows->at(axis) == rowsOf(*number, axis)))
    return false;
  split.required = {rows, number};
  BatchPosition taken = namedFrom(*number, axis, naming);
  taken.named = rows->named;
  taken.namedSelection = rows->namedSelection;
  split.results[0] = {BatchSplit::Kind::Rows, taken};
  return true;
}

/// Updates at rows that numbers name: the operands are the tensor that has these rows, if there is one, numbers,
/// updates. Nothing if they are no numbers of rows of samples.
static std::optional<LogicalResult> splitWrittenRows(BatchSplit &split, int64_t axis, Naming naming) {
  const unsigned updates = split.operands.size() - 1, indices = updates - 1;
  auto number = rowNumbers(split, indices, axis, typeOf(split.op->getResult(0)).getDimSize(axis), naming);
  if (!number)
    return std::nullopt;
  const BatchPosition rows = rowsOf(*number, axis), update = namedFrom(*number, axis, naming);
  if ((indices && split.operands[0] && !(*split.operands[0] == rows)) ||
      (split.operands[updates] && !(*split.operands[updates] == update)))
    return number->renumbered
               ? std::nullopt
               : std::optional<LogicalResult>(split.refuse("writes to other rows than those that data select"));
  if (indices)
    split.required[0] = rows;
  split.required[indices] = number;
  split.required[updates] = update;
  split.results[0] = {BatchSplit::Kind::Rows, rows};
  return success();
}

LogicalResult nn::splitGather(Operation *op, BatchSplit &split) {
  int64_t axis = integerAttr(op, "axis"), rank = typeOf(op->getOperand(1)).getRank();
  if (readsRows(split, axis, Naming::Rows))
    return success();
  return follow({{indexedLabels(op->getOperand(0), axis, rank), indexLabels(op->getOperand(1), axis)},
                 {identity(op->getResult(0))},
                 {}},
                split);
}

LogicalResult nn::splitGatherElements(Operation *op, BatchSplit &split) {
  if (readsRows(split, integerAttr(op, "axis"), Naming::Elements))
    return success();
  LabelTable table = identities(op);
  table.operands[0][integerAttr(op, "axis")] = closed;
  return follow(table, split);
}

/// Values that meet are no sum: the dimensions that indices decide are looked at as a whole.
LogicalResult nn::splitScatter(Operation *op, BatchSplit &split) {
  int64_t axis = integerAttr(op, "axis"), rank = typeOf(op->getOperand(1)).getRank();
  if (auto written = splitWrittenRows(split, axis, Naming::Rows))
    return *written;
  LabelTable table = {
      {indexedLabels(op->getOperand(0), axis, rank), allClosed(op->getOperand(1)), identity(op->getOperand(2))},
      {indexedLabels(op->getResult(0), axis, rank)},
      {}};
  for (int64_t dim = axis; dim < axis + rank; ++dim)
    table.operands[2][dim] = closed;
  return follow(table, split);
}

LogicalResult nn::splitScatterElements(Operation *op, BatchSplit &split) {
  if (auto written = splitWrittenRows(split, integerAttr(op, "axis"), Naming::Elements))
    return *written;
  LabelTable table = identities(op);
  for (Labels &labels : table.operands)
    labels[integerAttr(op, "axis")] = closed;
  table.results[0][integerAttr(op, "axis")] = closed;
  return follow(table, split);
}

LogicalResult nn::splitScatterAdd(Operation *op, BatchSplit &split) {
  int64_t axis = integerAttr(op, "axis"), rank = typeOf(op->getOperand(0)).getRank();
  if (auto written = splitWrittenRows(split, axis, Naming::Rows))
    return *written;
  Labels indices = indexLabels(op->getOperand(0), axis);
  return follow({{indices, identity(op->getOperand(1))}, {indexedLabels(op->getResult(0), axis, rank)}, indices},
                split);
}

LogicalResult nn::splitScatterElementsAdd(Operation *op, BatchSplit &split) {
  LabelTable table = identities(op);
  int64_t axis = integerAttr(op, "axis");
  if (auto written = splitWrittenRows(split, axis, Naming::Elements))
    return *written;
  table.results[0][axis] = closed;
  table.summed = {axis};
  return follow(table, split);
}

//===-- reductions and normalizations -------------------------------------===//

static LabelTable reductionTable(Operation *op, ArrayRef<int64_t> dims) {
  LabelTable table = identities(op);
  table.results[0].clear();
  for (int64_t label : table.operands[0])
    if (!llvm::is_contained(dims, label))
      table.results[0].push_back(label);
  return table;
}

LogicalResult nn::splitReduceSum(Operation *op, BatchSplit &split) {
  if (split.allSums)
    return split.answerSums();
  LabelTable table = reductionTable(op, arrayAttr(op, "dims"));
  table.summed = llvm::to_vector(arrayAttr(op, "dims"));
  return follow(table, split);
}

LogicalResult nn::splitReduce(Operation *op, BatchSplit &split) {
  return follow(reductionTable(op, arrayAttr(op, "dims")), split);
}

LogicalResult nn::splitAlong(Operation *op, BatchSplit &split) {
  int64_t dim = integerAttr(op, "dim");
  LabelTable table = identities(op);
  if (typeOf(op->getResult(0)).getRank() != typeOf(op->getOperand(0)).getRank())
    table = reductionTable(op, dim);
  table.operands[0][dim] = closed;
  return follow(table, split);
}

LogicalResult nn::splitNormalization(Operation *op, BatchSplit &split) {
  LabelTable table = identities(op);
  int64_t axis = integerAttr(op, "axis");
  for (auto [i, labels] : llvm::enumerate(table.operands)) {
    if (i)
      labels.assign(labels.size(), closed);
    else
      for (int64_t dim = axis; dim < int64_t(labels.size()); ++dim)
        labels[dim] = closed;
  }
  return follow(table, split);
}

/// Samples stand in dimension 0 of the first `rowOperands` operands, or in the dimension of the channels, of which each
/// has its own statistics: all other operands and results have one value for each channel.
static LogicalResult splitStatistics(Operation *op, BatchSplit &split, unsigned firstRows, unsigned rowOperands,
                                     BatchSplit::Kind others) {
  constexpr int64_t channel = 1;
  LabelTable table = closedTable(op);
  for (auto [i, labels] : llvm::enumerate(table.operands)) {
    labels[0] = channel;
    if (i >= firstRows && i < firstRows + rowOperands)
      labels[0] = 0, labels[1] = channel;
  }
  for (auto [labels, result] : llvm::zip_equal(table.results, op->getResults())) {
    labels[0] = channel;
    if (typeOf(result).getRank() > 1)
      labels[0] = 0, labels[1] = channel;
  }
  table.summed = {0};
  if (failed(follow(table, split)))
    return failure();
  for (BatchSplit::Result &result : split.results)
    if (result.kind == BatchSplit::Kind::Sum)
      result.kind = others;
  return success();
}

LogicalResult nn::splitBatchNorm(Operation *op, BatchSplit &split) {
  return splitStatistics(op, split, 0, 1, BatchSplit::Kind::Statistic);
}

LogicalResult nn::splitBatchNormGrad(Operation *op, BatchSplit &split) {
  return splitStatistics(op, split, 0, 2, BatchSplit::Kind::Sum);
}

LogicalResult nn::splitUnbiasedVariance(Operation *op, BatchSplit &split) {
  return splitStatistics(op, split, 1, 1, BatchSplit::Kind::Statistic);
}

//===-- losses, attention, products ---------------------------------------===//

LogicalResult nn::splitCrossEntropy(Operation *op, BatchSplit &split) {
  LabelTable table = identities(op);
  table.operands[0][1] = closed;
  Labels perSample = identity(op->getOperand(0));
  perSample.erase(perSample.begin() + 1);
  table.operands[1] = perSample;
  if (op->getNumOperands() > 2)
    table.operands[2] = {closed};
  table.results.assign(2, perSample);
  return follow(table, split);
}

LogicalResult nn::splitLossHead(Operation *op, BatchSplit &split) {
  if (auto gradient = dyn_cast<LinearCrossEntropyGradOp>(op); gradient && gradient.getWeightSum())
    return split.refuse("adds onto sums of other rows");
  LabelTable table = closedTable(op);
  auto head = cast<RowsInterface>(op);
  for (OpOperand *operand : head.getRowOperands())
    table.operands[operand->getOperandNumber()][0] = 0;
  for (OpResult result : head.getRowResults())
    table.results[result.getResultNumber()][0] = 0;
  table.summed = {0};
  return follow(table, split);
}

LogicalResult nn::splitAttention(Operation *op, BatchSplit &split) {
  LabelTable table = closedTable(op);
  for (Labels &labels : table.operands)
    labels[0] = 0;
  for (Labels &labels : table.results)
    labels[0] = 0;
  return follow(table, split);
}

LogicalResult nn::splitDot(Operation *op, BatchSplit &split) {
  auto dot = cast<DotOp>(op);
  LabelTable table = identities(op);
  int64_t rank = dot.getY().getType().getRank(), m = rank, k = rank + 1, n = rank + 2;
  auto setLast = [&](Labels &labels, int64_t first, int64_t second, bool swapped) {
    labels[rank - 2] = swapped ? second : first;
    labels[rank - 1] = swapped ? first : second;
  };
  setLast(table.operands[0], m, k, dot.getTransposeA());
  setLast(table.operands[1], k, n, dot.getTransposeB());
  setLast(table.results[0], m, n, false);
  table.summed = {k};
  return follow(table, split);
}

/// Filters of each sample: groups of channels are those of one sample after another, and so are rows of the filter.
static std::optional<LogicalResult> splitGroups(Operation *op, BatchSplit &split, unsigned filter) {
  auto counts = [&](Value value, unsigned at, const std::optional<BatchPosition> &position) {
    const int64_t channels = op->hasAttr("channels_last") ? typeOf(value).getRank() - 1 : 1;
    return position && position->dim == (at == filter ? 0 : channels);
  };
  bool any = false;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    any |= counts(operand, unsigned(i), split.operands[i]);
  if (!any || !mayTakeAttributes(split) || integerAttr(op, "groups") % split.samples)
    return std::nullopt;
  LabelTable table = closedTable(op);
  auto label = [&](Labels &labels, unsigned at) {
    (at == filter ? labels.front() : op->hasAttr("channels_last") ? labels.back() : labels[1]) = 0;
  };
  for (auto [i, labels] : llvm::enumerate(table.operands))
    label(labels, unsigned(i));
  label(table.results[0], op->getNumOperands());
  for (auto [i, position] : llvm::enumerate(split.operands)) {
    if (!position)
      continue;
    if (!counts(op->getOperand(i), unsigned(i), position) || position->outer != 1)
      return split.refuse("combines each sample with every other");
  }
  // So many channels each as a tensor has.
  auto own = [&](Value value, const Labels &labels) {
    const int64_t dim = llvm::find(labels, 0) - labels.begin();
    return BatchPosition{dim, 1, typeOf(value).getDimSize(dim) / split.samples};
  };
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    split.required[i] = own(operand, table.operands[i]);
  split.results[0] = {BatchSplit::Kind::Rows, own(op->getResult(0), table.results[0])};
  return success();
}

LogicalResult nn::splitConvolution(Operation *op, BatchSplit &split) {
  if (auto grouped = splitGroups(op, split, 1))
    return *grouped;
  LabelTable table = closedTable(op);
  table.operands[0][0] = table.results[0][0] = 0;
  return follow(table, split);
}

LogicalResult nn::splitFilterGrad(Operation *op, BatchSplit &split) {
  if (auto grouped = splitGroups(op, split, 2))
    return *grouped;
  LabelTable table = closedTable(op);
  table.operands[0][0] = table.operands[1][0] = 0;
  table.summed = {0};
  return follow(table, split);
}

LogicalResult nn::splitPooling(Operation *op, BatchSplit &split) {
  LabelTable table = closedTable(op);
  for (SmallVector<Labels> *side : {&table.operands, &table.results})
    for (Labels &labels : *side)
      labels[0] = 0, (op->hasAttr("channels_last") ? labels.back() : labels[1]) = 1;
  return follow(table, split);
}

LogicalResult nn::splitRandom(Operation *op, BatchSplit &split) {
  auto random = cast<RandomUniformOp>(op);
  int64_t dim = random.getBatchDim();
  for (unsigned i = 0; i < 2; ++i)
    if (split.operands[i])
      return split.refuse("computes with the number of the first sample");
  std::optional<BatchPosition> row = split.operands[2];
  if (!row || dim < 0)
    return success();
  if (row->dim != BatchPosition::firstSample || random.getY().getType().getDimSize(dim) != split.samples)
    return split.refuse("draws for another number of samples than the batch has");
  split.required[2] = row;
  split.results[0] = {BatchSplit::Kind::Rows, {dim, 1, 1}};
  return success();
}
