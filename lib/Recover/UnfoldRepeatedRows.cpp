//===- UnfoldRepeatedRows.cpp - tables that cleaners read, tokens that they repeated ----===//
//
// Cleaners evaluate what no input changes: a table of positions that is read at 0, 1, 2 …, a token that is repeated
// for each sample. They keep the result's name, which tells the operation, and in files of PyTorch's old exporter the
// module. Trained as it stands, a token would be one for each sample.
//  1. Rows that a module looked up, which computes nothing else, are rows of its weight.
//  2. What an operation repeated, and no module tells its name, is what the file holds, once.
// Numbers that agree bit by bit along a whole row, or in all of a dimension, are the same ones, unless they are one
// number all over: those may have begun equal. What a formula wrote is no parameter, and is left as it is.
//
//===----------------------------------------------------------------------===//

#include "Classifier.h"
#include "TableValues.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

static constexpr size_t elementBytes = sizeof(float);

/// Whether the operation that gave the value of this name repeats elements.
static bool repeats(StringRef name, bool isCurrent) {
  StringRef op = findEvaluatedOperator(name);
  return op == "Expand" || op == "Tile" || op == "Gather" || (isCurrent && isGather(name));
}

/// Whether it may hand on what another one repeated, as a conversion does.
static bool moves(StringRef name) {
  return is_contained({"Cast", "Unsqueeze", "Squeeze", "Reshape", "Transpose", "Slice"}, findEvaluatedOperator(name));
}

static SmallVector<int64_t> dimsOf(const TensorProto &tensor) {
  return SmallVector<int64_t>(tensor.dims().begin(), tensor.dims().end());
}

/// Whether all parts of the data along dimension `axis` are the same.
static bool isRepeatedAlong(ArrayRef<int64_t> dims, size_t axis, StringRef bytes) {
  const size_t size = size_t(dims[axis]), inner = size_t(*checkedElements(dims.drop_front(axis + 1))) * elementBytes;
  for (size_t start = 0; start != bytes.size(); start += size * inner) {
    StringRef whole = bytes.substr(start, size * inner);
    if (whole.drop_front(inner) != whole.drop_back(inner))
      return false;
  }
  return true;
}

/// The first part of the data along dimension `axis`.
static std::string takeFirst(ArrayRef<int64_t> dims, size_t axis, StringRef bytes) {
  const size_t size = size_t(dims[axis]), inner = size_t(*checkedElements(dims.drop_front(axis + 1))) * elementBytes;
  std::string first;
  for (size_t start = 0; start != bytes.size(); start += size * inner)
    first += bytes.substr(start, inner);
  return first;
}

static TensorProto withDims(const TensorProto &tensor, ArrayRef<int64_t> dims) {
  TensorProto other;
  other.set_data_type(tensor.data_type());
  for (int64_t dim : dims)
    other.add_dims(dim);
  return other;
}

/// Whether a few numbers are all different, and neither grow nor fall, as those of a token of each head.
static bool differInNoOrder(StringRef bytes) {
  std::vector<float> values = asFloats(bytes);
  if (values.size() < 3 || is_sorted(values) || std::is_sorted(values.rbegin(), values.rend()))
    return false;
  llvm::sort(values);
  return std::adjacent_find(values.begin(), values.end()) == values.end();
}

namespace {
/// A table of which the file holds rows that were read.
struct Table {
  int64_t width = 0;
  std::string bytes;
  StringMap<int64_t> rows; ///< their numbers, by their bytes
  /// Who holds rows, and for each of its rows the table's.
  std::vector<std::pair<const TensorProto *, std::vector<int64_t>>> readings;
};

class RepeatedRows {
public:
  RepeatedRows(UnfoldingGraph &graph, const GraphProto &proto);
  /// Takes what is known of the tensor, and whether it is a table's.
  bool addToTable(const TensorProto &tensor);
  /// Makes the tables, and of them what was read there.
  void unfoldTables();
  /// Lets what was repeated be there once.
  void unfoldRepeated(const TensorProto &tensor);

private:
  std::optional<std::string> readNumbers(const TensorProto &tensor) const;
  std::string findTableName(const TensorProto &tensor) const;

  UnfoldingGraph &graph;
  bool isCurrent;
  int64_t samples;
  StringSet<> computing; ///< modules that nodes or initializers of the file belong to, and those around them
  MapVector<std::string, Table, std::map<std::string, unsigned>> tables;
};
} // namespace

RepeatedRows::RepeatedRows(UnfoldingGraph &graph, const GraphProto &proto)
    : graph(graph), isCurrent(isOfCurrentExporter(proto)), samples(countSamples(proto)) {
  auto add = [&](StringRef module) {
    for (; !module.empty() && computing.insert(module).second; module = moduleOf(module))
      ;
  };
  for (const NodeProto &node : proto.node()) {
    add(graph.getPaths().find(findModulePath(node).value_or("")));
    for (const std::string &output : node.output())
      add(graph.getPaths().findOfValue(output).value_or(""));
  }
  for (const TensorProto &tensor : proto.initializer())
    if (!isInventedName(tensor.name()))
      add(moduleOf(tensor.name()));
}

/// The data, unless a formula wrote them, or they are one number.
std::optional<std::string> RepeatedRows::readNumbers(const TensorProto &tensor) const {
  if (tensor.data_type() != TensorProto::FLOAT || tensor.dims_size() < 2 || graph.isRemoved(tensor.name()))
    return std::nullopt;
  std::optional<std::string> bytes = graph.read(tensor);
  if (!bytes || hasEqualElements(*bytes, elementBytes) || findFormula(tensor, *bytes) != Formula::None)
    return std::nullopt;
  return bytes;
}

/// What the table is called, of which a module that does nothing else read rows; empty: it does more, or its table is
/// there.
std::string RepeatedRows::findTableName(const TensorProto &tensor) const {
  if (findEvaluatedOperator(tensor.name()) != "Gather")
    return "";
  const std::string module = graph.getPaths().findOfValue(tensor.name()).value_or("");
  return module.empty() || computing.contains(module) ? "" : module + ".weight";
}

bool RepeatedRows::addToTable(const TensorProto &tensor) {
  const std::string name = findTableName(tensor);
  std::optional<std::string> bytes = name.empty() ? std::nullopt : readNumbers(tensor);
  if (!bytes)
    return false;
  SmallVector<int64_t> dims = dimsOf(tensor);
  // The same for each sample, a row of one number (of padding) among them.
  if (dims.size() > 2 && dims[0] > 1 && isRepeatedAlong(dims, 0, *bytes))
    bytes = takeFirst(dims, 0, *bytes);
  const int64_t width = dims.back();
  Table table = tables.lookup(name);
  if (table.width && table.width != width)
    return false;
  table.width = width;
  std::vector<int64_t> read;
  StringSet<> even; // rows of one number
  for (StringRef rest = *bytes; !rest.empty(); rest = rest.drop_front(size_t(width) * elementBytes)) {
    StringRef row = rest.take_front(size_t(width) * elementBytes);
    auto [at, isNew] = table.rows.try_emplace(row, int64_t(table.rows.size()));
    if (!isNew && hasEqualElements(row, elementBytes))
      return false;
    if (isNew)
      table.bytes += row;
    read.push_back(at->second);
  }
  table.readings.emplace_back(&tensor, std::move(read));
  tables[name] = std::move(table);
  return true;
}

void RepeatedRows::unfoldTables() {
  for (auto &[name, table] : tables) {
    const std::string &first = table.readings.front().first->name();
    graph.addInitializer(name, {int64_t(table.rows.size()), table.width}, TensorProto::FLOAT, table.bytes,
                         {first, "a cleaner read its rows, and left them in " + first, true});
    graph.setModule(moduleOf(name));
    for (auto &[tensor, rows] : table.readings) {
      const SmallVector<int64_t> dims = dimsOf(*tensor);
      const size_t once = rows.size();
      for (size_t i = once; i != size_t(*checkedElements(ArrayRef(dims).drop_back())); ++i)
        rows.push_back(rows[i % once]);
      graph.addNode("Gather", {name, graph.addIntegers(ArrayRef(dims).drop_back(), rows)}, tensor->name());
      graph.remove(*tensor);
    }
  }
}

void RepeatedRows::unfoldRepeated(const TensorProto &tensor) {
  const bool mayMove = moves(tensor.name());
  if (!mayMove && !repeats(tensor.name(), isCurrent))
    return;
  std::optional<std::string> bytes = readNumbers(tensor);
  if (!bytes)
    return;
  SmallVector<int64_t> dims = dimsOf(tensor), whole(dims);
  for (size_t axis = 0; axis != dims.size(); ++axis) {
    // A parameter may begin with equal rows, and be moved: samples are equal for another reason.
    const bool isOfSamples = axis == 0 && dims[0] == samples && dims.size() > 2;
    if (dims[axis] < 2 || (mayMove && !isOfSamples) || !isRepeatedAlong(dims, axis, *bytes))
      continue;
    bytes = takeFirst(dims, axis, *bytes);
    dims[axis] = 1;
  }
  if (dims == whole || !(followsNoRule(withDims(tensor, dims), *bytes) || (!mayMove && differInNoOrder(*bytes))))
    return;
  const std::string once = tensor.name() + "@once";
  graph.addInitializer(once, dims, TensorProto::FLOAT, *bytes,
                       {tensor.name(), "it was repeated in " + tensor.name(), false});
  graph.setModule(graph.getPaths().findOfValue(tensor.name()).value_or(""));
  graph.addNode("Expand", {once, graph.addIntegers({int64_t(whole.size())}, whole)}, tensor.name());
  graph.remove(tensor);
}

void lowtide::unfoldRepeatedRows(UnfoldingGraph &graph, GraphProto &proto) {
  RepeatedRows rows(graph, proto);
  SmallVector<const TensorProto *> others;
  for (const TensorProto *tensor : map_to_vector(proto.initializer(), [](const TensorProto &t) { return &t; }))
    if (!rows.addToTable(*tensor))
      others.push_back(tensor);
  rows.unfoldTables();
  for (const TensorProto *tensor : others)
    rows.unfoldRepeated(*tensor);
}
