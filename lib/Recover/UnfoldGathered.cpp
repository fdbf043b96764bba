//===- UnfoldGathered.cpp - tables read at constant positions --------------------===//
//
// A table of relative positions (T5, Swin), read at positions that depend on no input, becomes one large tensor in
// which rows of the table occur many times. Trained as it stands, the copies part. Which of them are copies is seen in
// the values: whole rows that agree bit by bit.
//  1. Some dimensions of the tensor run along a row (features), the others over positions. Of all ways to divide them,
//     the right one leaves the fewest different numbers, but for those of a large table that agree by chance.
//  2. Equal rows are one row of the table. Rows of one repeated number could be equal by accident: then nothing is
//  done.
//  3. Without notes, only a table whose positions follow a known rule is taken for one, and no formula wrote it.
//  4. The order of the rows in the table is that of a known rule of positions if the tensor follows one, and that of
//     their first occurrence otherwise.
// Positions that a mask added a huge negative number to hold no row. Those that it added a small one to (windows that
// were shifted: -100) hold the row of the same pair in another window, if it is bit by bit what the sum gives.
//
//===----------------------------------------------------------------------===//

#include "Classifier.h"
#include "ElementFunctions.h"
#include "PositionRules.h"
#include "TableValues.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Support/StableSort.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>
#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

namespace {
/// The tensor as a table read at positions.
struct Gathering {
  /// Dimensions of the tensor that are not one, in its order: over positions, and along a row.
  SmallVector<int64_t> positionAxes, featureAxes;
  /// For each position (row-major) the row of the table; -1: masked.
  std::vector<int64_t> rows;
  int64_t numRows = 0, width = 0;
  /// The rows are the last dimension of the parameter (`table[:, positions]`), and not its first.
  bool readsColumns = false;
  bool isMasked() const { return is_contained(rows, -1); }
  int64_t countNumbers() const { return numRows * width; }
};
} // namespace

static SmallVector<int64_t> dimsOf(const TensorProto &tensor, ArrayRef<int64_t> axes) {
  return map_to_vector(axes, [&](int64_t axis) { return tensor.dims(int(axis)); });
}

static SmallVector<int64_t> stridesOf(ArrayRef<int64_t> dims) {
  SmallVector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * dims[i];
  return strides;
}

/// Offsets of all elements along `axes`, row-major.
static std::vector<int64_t> offsetsOf(ArrayRef<int64_t> dims, ArrayRef<int64_t> axes) {
  SmallVector<int64_t> strides = stridesOf(dims);
  std::vector<int64_t> offsets = {0};
  for (int64_t axis : axes) {
    std::vector<int64_t> next;
    next.reserve(offsets.size() * size_t(dims[axis]));
    for (int64_t offset : offsets)
      for (int64_t i = 0; i != dims[axis]; ++i)
        next.push_back(offset + i * strides[axis]);
    offsets = std::move(next);
  }
  return offsets;
}

/// Added by masks: no weight comes near it, and softmax makes nothing of it.
static bool isMaskValue(StringRef element, int32_t type) {
  float value = 0;
  if (type != TensorProto::FLOAT)
    return false;
  std::memcpy(&value, element.data(), sizeof(value));
  return value <= -1e4f;
}

/// Divides the dimensions by bits of `features`. Fails where equal rows prove nothing.
static std::optional<Gathering> divide(ArrayRef<int64_t> dims, unsigned features, StringRef bytes, int32_t type) {
  Gathering result;
  for (auto [axis, dim] : enumerate(dims))
    if (dim != 1)
      (features >> axis & 1 ? result.featureAxes : result.positionAxes).push_back(int64_t(axis));
  std::vector<int64_t> along = offsetsOf(dims, result.featureAxes);
  result.width = int64_t(along.size());
  size_t size = findElementType(type)->bytes;
  StringMap<int64_t> numbers;
  std::string row;
  for (int64_t start : offsetsOf(dims, result.positionAxes)) {
    row.clear();
    unsigned masked = 0;
    for (int64_t offset : along) {
      StringRef element = bytes.substr(size_t(start + offset) * size, size);
      masked += isMaskValue(element, type);
      row += element;
    }
    if (masked && masked != along.size())
      return std::nullopt;
    if (masked) {
      result.rows.push_back(-1);
      continue;
    }
    auto [at, isNew] = numbers.try_emplace(row, result.numRows);
    result.numRows += isNew;
    result.rows.push_back(at->second);
    if (!isNew && along.size() > 1 && hasEqualElements(row, size))
      return std::nullopt;
  }
  // Short rows agree by accident: a few of them prove nothing, and a table that is read at positions has many.
  int64_t read = int64_t(result.rows.size()) - int64_t(llvm::count(result.rows, -1));
  bool isShort = along.size() * size <= sizeof(float);
  if (isShort && result.numRows < read && 4 * result.numRows > 3 * read)
    return std::nullopt;
  return result;
}

/// How many of so many random numbers may agree bit by bit: of f32, a few among some thousands.
static double countAccidents(int64_t numbers, int32_t type) {
  const int mantissa = type == TensorProto::DOUBLE     ? 52
                       : type == TensorProto::FLOAT16  ? 10
                       : type == TensorProto::BFLOAT16 ? 7
                                                       : 23;
  // Of a small table, one number that agrees tells of positions that overlap.
  return numbers < 64 ? 0 : 1 + std::ldexp(double(numbers) * double(numbers), 1 - mantissa);
}

/// The division with the fewest different numbers, or one of longer rows that leaves as many but for accidents.
static std::optional<Gathering> findGathering(const TensorProto &tensor, StringRef bytes) {
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  const int32_t type = tensor.data_type();
  unsigned axes = 0;
  for (auto [axis, dim] : enumerate(dims))
    axes |= dim != 1 ? 1u << axis : 0u;
  if (dims.size() > 6)
    return std::nullopt;
  std::vector<Gathering> divisions;
  for (unsigned features = 0; features != 1u << dims.size(); ++features)
    if (!(features & ~axes) && features != axes)
      if (std::optional<Gathering> found = divide(dims, features, bytes, type); found && found->numRows)
        divisions.push_back(std::move(*found));
  if (divisions.empty())
    return std::nullopt;
  sortStably(divisions, [](const Gathering &a, const Gathering &b) { return a.width > b.width; });
  const int64_t fewest = llvm::min_element(divisions, [](const Gathering &a, const Gathering &b) {
                           return a.countNumbers() < b.countNumbers();
                         })->countNumbers();
  // Rows of which none is read twice prove nothing.
  return *llvm::find_if(divisions, [&](const Gathering &each) {
    const int64_t more = each.countNumbers() - fewest;
    return more == 0 ||
           (each.numRows < int64_t(each.rows.size()) && double(more) <= countAccidents(each.countNumbers(), type));
  });
}

/// Whether the operation reads rows at positions, which have to be computed, and does not only repeat all of them.
static bool readsPositions(StringRef name) {
  return isGather(name) && !is_contained({"expand", "repeat", "tile"}, operationName(name));
}

/// Whether programs compute no positions by the operation.
static bool makesNoPositions(StringRef name) {
  return is_contained({"exp", "sigmoid", "tanh", "softplus", "sin", "cos"}, operationName(name));
}

/// Whether the exporter's notes allow that rows were gathered or repeated, and nothing else was done to them. What was
/// computed on the way to the positions cannot be told from it, but the last operation can, and functions that make no
/// positions were of the rows. Where rows are only repeated, there are no positions.
static bool mayGather(const Evaluated &evaluated) {
  StringRef last = operationName(evaluated.tensor->name());
  const bool masks = last == "add" || last == "masked_fill" || last == "where";
  const bool hasPositions = readsPositions(last) || any_of(evaluated.foldedFrom, readsPositions);
  auto isOfRows = [&](StringRef name) {
    if (name == evaluated.parameters.front()->target || movesElements(name) || isGather(name))
      return false;
    return makesNoPositions(name) || (!hasPositions && (!masks || isElementOperation(operationName(name))));
  };
  return (movesElements(last) || masks) && (isGather(last) || any_of(evaluated.foldedFrom, isGather)) &&
         none_of(evaluated.foldedFrom, isOfRows);
}

/// Whether `rows` are `times` times the same.
static bool isRepeated(ArrayRef<int64_t> rows, int64_t times) {
  size_t part = rows.size() / size_t(times);
  return rows.drop_front(part) == rows.drop_back(part);
}

/// Makes `tensor` of parameter `name`, whose rows `found` says, and of what a mask added at each position.
static void replace(UnfoldingGraph &graph, const TensorProto &tensor, StringRef bytes, const Gathering &gathering,
                    const std::string &name, StringRef module, bool isAssumed, ArrayRef<float> mask = {}) {
  const Gathering *found = &gathering;
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end()), perm;
  SmallVector<int64_t> positionDims = dimsOf(tensor, found->positionAxes);
  const bool isLast = found->readsColumns;
  UnfoldedPart part{name, dimsOf(tensor, found->featureAxes),
                    std::vector<int64_t>(bytes.size() / findElementType(tensor.data_type())->bytes, -1)};
  part.dims.insert(isLast ? part.dims.end() : part.dims.begin(), found->numRows);
  std::vector<int64_t> along = offsetsOf(dims, found->featureAxes);
  const bool adds = any_of(mask, [](float added) { return added != 0; });
  for (auto [position, start] : enumerate(offsetsOf(dims, found->positionAxes)))
    if (const int64_t row = found->rows[position]; row >= 0 && !(adds && mask[position] != 0))
      for (auto [i, offset] : enumerate(along))
        part.map[size_t(start + offset)] = isLast ? int64_t(i) * found->numRows + row : row * found->width + int64_t(i);
  graph.setModule(module);
  graph.addParts(tensor, bytes, part, "its rows were repeated by the exporter in", isAssumed);

  std::vector<int64_t> read = found->rows;
  for (int64_t &row : read)
    row = std::max<int64_t>(row, 0);
  std::string value = graph.addNode("Gather", {part.name, graph.addIntegers(positionDims, read)});
  if (isLast)
    graph.setAttribute("axis", int64_t(found->featureAxes.size()));
  // Gather puts positions where the rows were; the tensor may have them elsewhere.
  SmallVector<int64_t> order(isLast ? found->featureAxes : found->positionAxes);
  order.append(isLast ? found->positionAxes : found->featureAxes);
  SmallVector<int64_t> axes(order);
  llvm::sort(axes);
  for (int64_t axis : axes)
    perm.push_back(int64_t(find(order, axis) - order.begin()));
  if (!is_sorted(perm)) {
    value = graph.addNode("Transpose", {value});
    graph.setAttribute("perm", perm);
  }
  bool masked = found->isMasked();
  value = graph.addNode("Reshape", {value, graph.addIntegers({int64_t(dims.size())}, dims)},
                        masked || adds ? StringRef() : StringRef(tensor.name()));
  if (masked)
    graph.addMasked(tensor, bytes, part.map, value);
  else if (adds) {
    SmallVector<int64_t> shape(dims);
    for (int64_t axis : found->featureAxes)
      shape[size_t(axis)] = 1;
    graph.addNode("Add", {value, graph.addNumbers(shape, mask)}, tensor.name());
  }
  graph.remove(tensor);
}

/// The size of the batch, where the file fixes it: the first dimension of all inputs; 0: it has none.
static int64_t findBatch(const ::onnx::GraphProto &graph) {
  int64_t batch = 0;
  for (const auto &input : graph.input()) {
    const auto &shape = input.type().tensor_type().shape();
    if (!shape.dim_size() || (batch && shape.dim(0).dim_value() != batch))
      return 0;
    batch = shape.dim(0).dim_value();
  }
  return batch;
}

/// A table of relative positions of one window, of one column for each head: the heads are in front of the pairs.
static std::optional<Gathering> asTable(ArrayRef<int64_t> dims, StringRef name) {
  while (!dims.empty() && dims.front() == 1)
    dims = dims.drop_front();
  if (dims.size() != 3 || dims[1] != dims[2])
    return std::nullopt;
  Gathering result;
  result.rows = numberPairs(dims[1], name, result.numRows);
  if (result.rows.empty())
    return std::nullopt;
  result.width = dims[0];
  return result;
}

/// Whether a table was looked up at positions that are one number: kinds of tokens that the program did not give.
static bool readsOneRow(const Evaluated &evaluated) {
  auto isOneNumber = [](StringRef name) {
    return is_contained({"zeros", "ones", "full", "new_zeros", "new_ones", "new_full", "zeros_like", "ones_like"},
                        operationName(name));
  };
  return operationName(evaluated.tensor->name()) == "embedding" && any_of(evaluated.foldedFrom, isOneNumber) &&
         all_of(evaluated.foldedFrom, [&](StringRef name) {
           return name == evaluated.parameters.front()->target || isOneNumber(name) || operationName(name) == "val" ||
                  is_contained({"expand", "_to_copy", "unsqueeze"}, operationName(name));
         });
}

/// One number everywhere: values do not tell which elements are the same one of the parameter. A token is repeated for
/// each sample, and a table of relative positions is read by a rule that its name tells.
static bool unfoldUniform(UnfoldingGraph &graph, const Evaluated &evaluated, StringRef bytes) {
  const TensorProto &tensor = *evaluated.tensor;
  const std::string &name = evaluated.parameters.front()->target;
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  std::optional<Gathering> found;
  if (!dims.empty() && dims.front() > 1 && dims.front() == findBatch(graph.getGraph()) &&
      operationName(tensor.name()) == "expand") {
    found.emplace();
    found->rows.assign(size_t(dims.front()), 0);
    found->numRows = 1;
  } else if (any_of(evaluated.foldedFrom, [](StringRef from) { return operationName(from) == "index"; })) {
    found = asTable(dims, name);
  } else if (dims.size() > 1 && readsOneRow(evaluated)) {
    found.emplace();
    found->numRows = 1;
    found->width = dims.back();
    found->rows.assign(bytes.size() / findElementType(tensor.data_type())->bytes / size_t(dims.back()), 0);
    for (size_t axis = 0; axis + 1 != dims.size(); ++axis)
      found->positionAxes.push_back(int64_t(axis));
    found->featureAxes.push_back(int64_t(dims.size()) - 1);
    replace(graph, tensor, bytes, *found, name, moduleOf(name), true);
    return true;
  }
  if (!found)
    return false; // Folds.cpp says so
  // One token, which is repeated for each place as well (`mask_token.expand(samples, places, -1)`).
  const bool isToken = found->numRows == 1 && StringRef(name).ends_with("token");
  if (isToken)
    found->rows.assign(size_t(checkedElements(ArrayRef(dims).drop_back()).value_or(0)), 0);
  size_t first = size_t(llvm::find_if(dims, [](int64_t dim) { return dim != 1; }) - dims.begin());
  for (size_t axis = first; axis != dims.size(); ++axis) {
    // A token's repetitions are its first dimension, a table's pairs the two after the heads.
    bool isPosition = isToken ? axis + 1 != dims.size() : found->numRows == 1 ? axis == 0 : axis != first;
    if (dims[axis] != 1 || isPosition)
      (isPosition ? found->positionAxes : found->featureAxes).push_back(int64_t(axis));
  }
  if (found->numRows == 1)
    found->width = int64_t(bytes.size() / findElementType(tensor.data_type())->bytes) / int64_t(found->rows.size());
  replace(graph, tensor, bytes, *found, name, moduleOf(name), true);
  return true;
}

/// Puts the rows in the order of a known rule, also where all pairs are repeated for each sample. Returns whether the
/// order is a guess: distances are counted from queries to keys here and the other way there, and rows that follow no
/// rule are numbered as they occur.
static bool orderPairs(ArrayRef<int64_t> dims, Gathering &gathering, StringRef name) {
  std::vector<int64_t> &rows = gathering.rows;
  size_t pairs = rows.size();
  for (; dims.size() > 2 && isRepeated(ArrayRef(rows).take_front(pairs), dims.front()); dims = dims.drop_front())
    pairs /= size_t(dims.front());
  std::vector<int64_t> ordered(rows.begin(), rows.begin() + pairs), numbers(size_t(gathering.numRows), -1);
  StringRef table = orderRows(dims, ordered, gathering.numRows, name);
  // Pairs in one dimension are told by the name of their table only.
  if (int64_t side = dims.size() == 1 ? int64_t(std::sqrt(double(dims[0]))) : 0; side && side * side == dims[0]) {
    std::vector<int64_t> square(ordered);
    table = orderRows({side, side}, square, gathering.numRows, name);
    if (!table.empty() && name.ends_with(table))
      ordered = std::move(square);
    else
      table = "";
  }
  for (size_t i = 0; i != pairs; ++i)
    if (rows[i] >= 0)
      numbers[size_t(rows[i])] = ordered[i];
  for (int64_t &row : rows)
    row = row < 0 ? row : numbers[size_t(row)];
  return (table.empty() && gathering.numRows > 1) || (table == "relative_positions" && !name.ends_with(table));
}

/// Whether an operation reads the tensor that changes its elements first: a step of it made the tensor.
static bool isStepOfReader(const UnfoldingGraph &graph, StringRef tensor) {
  return any_of(graph.getGraph().node(),
                [&](const NodeProto &node) { return is_contained(node.input(), tensor) && mayScale(tensor, node); });
}

/// Whether nodes assign the tensor at places (`x[i] = token`), and nothing else reads it: the exporter repeats what is
/// assigned, by operations that go by no name of the program.
static bool isAssigned(const UnfoldingGraph &graph, const Evaluated &evaluated) {
  const std::string &tensor = evaluated.tensor->name();
  if (operationName(tensor) != "val" || any_of(evaluated.foldedFrom, [&](const std::string &name) {
        return name != evaluated.parameters.front()->target && operationName(name) != "val";
      }))
    return false;
  bool isRead = false;
  for (const NodeProto &node : graph.getGraph().node())
    for (auto [number, input] : enumerate(node.input())) {
      if (input != tensor)
        continue;
      if (node.op_type() != "ScatterND" || number != 2)
        return false;
      isRead = true;
    }
  return isRead;
}

/// Whether the program viewed the parameter in another shape, or turned its dimensions, and the rows have several:
/// which shape it has, the file does not tell.
static bool isOfUnknownShape(const Evaluated &evaluated, const Gathering &gathering) {
  auto views = [](StringRef name) { return turnsDimensions(name) || isView(name); };
  return gathering.featureAxes.size() > 1 && (views(evaluated.tensor->name()) || any_of(evaluated.foldedFrom, views));
}

/// Whether the program read columns, `table[:, positions]`: what runs along a row is in front, and nothing turned it.
static bool readsColumns(const Evaluated &evaluated, const Gathering &gathering) {
  auto indexes = [](StringRef name) { return is_contained({"index", "index_select"}, operationName(name)); };
  const StringRef last = evaluated.tensor->name();
  return !gathering.featureAxes.empty() && gathering.featureAxes.back() < gathering.positionAxes.front() &&
         (indexes(last) || any_of(evaluated.foldedFrom, indexes)) && !turnsDimensions(last) &&
         none_of(evaluated.foldedFrom, turnsDimensions);
}

/// Of a sum with a mask that adds one number, far below every row: the rows, with a huge negative number where the mask
/// adds its own. Empty: there is no such mask.
static std::string hideMasked(StringRef bytes) {
  std::vector<float> values = asFloats(bytes);
  float largest = 0;
  for (float value : values)
    largest = std::max(largest, std::fabs(value));
  if (largest < 16 || largest > 1e4f)
    return "";
  for (float &value : values)
    if (value < -largest / 2)
      value = -1e30f;
  return std::string(reinterpret_cast<const char *>(values.data()), bytes.size());
}

/// Gives the pairs of positions that a mask added a number to the row that the same pair reads in a window where it
/// added none. Returns that number by position (row-major); nullopt: the sum is another one.
static std::optional<std::vector<float>> subtractMask(ArrayRef<int64_t> dims, Gathering &gathering, StringRef bytes) {
  const std::vector<float> values = asFloats(bytes);
  const std::vector<int64_t> along = offsetsOf(dims, gathering.featureAxes);
  const std::vector<int64_t> starts = offsetsOf(dims, gathering.positionAxes);
  if (gathering.positionAxes.size() < 3)
    return std::nullopt;
  const size_t pairs = size_t(dims[gathering.positionAxes.back()] * dims[gathering.positionAxes.rbegin()[1]]);
  std::vector<int64_t> read(pairs, -1);
  for (auto [i, row] : enumerate(gathering.rows))
    if (row >= 0 && read[i % pairs] < 0)
      read[i % pairs] = int64_t(i);
  std::vector<float> mask(starts.size(), 0.0f);
  for (auto [i, row] : enumerate(gathering.rows)) {
    const int64_t from = read[i % pairs];
    if (from < 0)
      return std::nullopt;
    if (row >= 0)
      continue;
    const size_t start = size_t(starts[i]), base = size_t(starts[size_t(from)]);
    mask[i] = std::round(values[start] - values[base]);
    if (any_of(along, [&](int64_t at) { return values[start + size_t(at)] != values[base + size_t(at)] + mask[i]; }))
      return std::nullopt;
    row = gathering.rows[size_t(from)];
  }
  return mask;
}

/// Positions were repeated for each sample, and the rows looked up there with them: what one sample reads is put back,
/// as if the exporter had evaluated no more. Which rows these are, is seen from that.
static bool unfoldSamples(UnfoldingGraph &graph, const Evaluated &evaluated, StringRef bytes) {
  const TensorProto &tensor = *evaluated.tensor;
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end()), one(dims);
  if (dims.size() != 3 || dims.front() < 2 ||
      !is_contained({"embedding", "index_select"}, operationName(tensor.name())))
    return false;
  const size_t sample = bytes.size() / size_t(dims.front()), row = sample / size_t(dims[1]);
  StringSet<> rows;
  for (size_t at = 0; at != sample; at += row)
    rows.insert(bytes.substr(at, row));
  if (bytes.drop_front(sample) != bytes.drop_back(sample) || rows.size() != size_t(dims[1]))
    return false;
  one.front() = 1;
  const std::string name = tensor.name() + "@sample";
  graph.setModule(moduleOf(evaluated.parameters.front()->target));
  graph.addNode("Expand", {name, graph.addIntegers({3}, dims)}, tensor.name());
  graph.addEvaluated(name, one, tensor.data_type(), bytes.take_front(sample).str(), evaluated.foldedFrom);
  graph.remove(tensor);
  return true;
}

bool lowtide::unfoldGathered(UnfoldingGraph &graph, const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  if (evaluated.parameters.size() != 1)
    return false;
  const bool assigns = isAssigned(graph, evaluated);
  if ((!mayGather(evaluated) && !assigns) || isStepOfReader(graph, tensor.name()))
    return false;
  std::optional<std::string> bytes = graph.read(tensor);
  if (!bytes || bytes->empty())
    return false;
  if (unfoldSamples(graph, evaluated, *bytes))
    return true;
  // A table is taken out of a sum with numbers of the program if pairs of positions read it by a known rule.
  const bool isSum = operationName(tensor.name()) == "add" && tensor.data_type() == TensorProto::FLOAT;
  const std::string hidden = isSum ? hideMasked(*bytes) : "";
  std::optional<Gathering> found = findGathering(tensor, hidden.empty() ? *bytes : hidden);
  if (!found || (!found->isMasked() && found->numRows == int64_t(found->rows.size())))
    return false; // each row once: the tensor is the parameter in another order
  std::vector<float> mask;
  if (!hidden.empty()) {
    std::optional<std::vector<float>> added =
        subtractMask(SmallVector<int64_t>(tensor.dims().begin(), tensor.dims().end()), *found, *bytes);
    if (!added)
      return false;
    mask = std::move(*added);
  }
  const bool needsRule = isSum && !found->isMasked();
  if (!movesElements(tensor.name()) && !found->isMasked() && !needsRule && !assigns)
    return false;
  // One number everywhere may be one entry of the parameter, repeated, or many that began equal.
  if (found->numRows == 1 && found->width == 1)
    return !isSum && unfoldUniform(graph, evaluated, *bytes);
  found->readsColumns = readsColumns(evaluated, *found);
  const std::string &name = evaluated.parameters.front()->target;
  const bool isUnordered = orderPairs(dimsOf(tensor, found->positionAxes), *found, name);
  if (needsRule && isUnordered)
    return false;
  // What was added may itself be a function of the distance: it stays in the table.
  const bool isGuess = needsRule || isUnordered || isOfUnknownShape(evaluated, *found);
  replace(graph, tensor, *bytes, *found, name, moduleOf(name), isGuess, mask);
  return true;
}

bool lowtide::unfoldPositions(UnfoldingGraph &graph, const NodeProto &node, int operand) {
  const TensorProto *tensor = graph.find(node.input(operand));
  // Added to scores, or before it is shaped for that.
  if ((node.op_type() != "Add" && node.op_type() != "Reshape") || !tensor || graph.isRemoved(tensor->name()) ||
      tensor->dims_size() < (node.op_type() == "Add" ? 3 : 2) || tensor->data_type() != TensorProto::FLOAT)
    return false;
  std::optional<std::string> bytes = graph.read(*tensor);
  if (!bytes || bytes->empty() || findFormula(*tensor, *bytes) != Formula::None)
    return false;
  std::optional<Gathering> found = findGathering(*tensor, *bytes);
  if (!found || found->isMasked() || found->featureAxes.size() > 1 || 3 * found->numRows > int64_t(found->rows.size()))
    return false;
  SmallVector<int64_t> pairs = dimsOf(*tensor, found->positionAxes);
  if (int64_t side = pairs.size() == 1 ? int64_t(std::sqrt(double(pairs[0]))) : 0; side && side * side == pairs[0])
    pairs = {side, side};
  StringRef table = orderRows(pairs, found->rows, found->numRows, "");
  if (table.empty())
    return false;
  std::string module = findModulePath(node).value_or("");
  std::string name = module + (module.empty() ? "" : ".") + table.str();
  if (graph.find(name))
    name += "@" + tensor->name();
  replace(graph, *tensor, *bytes, *found, name, module, true);
  return true;
}
