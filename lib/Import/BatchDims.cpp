//===- BatchDims.cpp - which dimensions count samples -----------*- C++ -*-===//
//
// `--batch`, another batch of the same model, and what the file itself tells of the dimension that counts samples.
//
//===----------------------------------------------------------------------===//

#include "Dimensions.h"

#include "lowtide/OnnxModel/NodeNames.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace mlir;
using namespace lowtide;
using ::onnx::ValueInfoProto;

/// The symbol of the inputs, if they have one alone; otherwise empty.
std::string DimBinding::findOnlySymbol() const {
  std::string only;
  for (const ValueInfoProto *input : getInputs())
    for (const auto &dim : input->type().tensor_type().shape().dim()) {
      if (dim.has_dim_value() || dim.dim_param() == only)
        continue;
      if (!only.empty() || derived.count(dim.dim_param()))
        return "";
      only = dim.dim_param();
    }
  return only;
}

/// Symbols that inputs begin with, each once.
std::vector<std::string> DimBinding::listFirstSymbols() const {
  std::vector<std::string> first;
  for (const ValueInfoProto *input : getInputs())
    if (const auto &shape = input->type().tensor_type().shape(); shape.dim_size())
      if (const std::string &name = shape.dim(0).dim_param(); !name.empty() && !llvm::is_contained(first, name))
        first.push_back(name);
  return first;
}

void DimBinding::applyBatch(int64_t batch) {
  if (batch < 1)
    return usageError("--batch must be at least 1, got " + Twine(batch));
  const std::vector<std::string> first = listFirstSymbols();
  if (first.size() > 1) {
    std::string flags;
    for (const std::string &symbol : first)
      flags += " --dim " + symbol + (flags.empty() ? "=" + std::to_string(batch) : "=…");
    return usageError("--batch: the inputs begin with different symbols, " + quoteName(first[0]) + " and " +
                          quoteName(first[1]),
                      "bind each:" + flags);
  }
  std::string symbol = first.empty() ? "" : first.front();
  const ValueInfoProto *fixed = nullptr;
  bool nameless = false, fits = false, isElsewhere = false;
  for (const ValueInfoProto *input : getInputs()) {
    const auto &shape = input->type().tensor_type().shape();
    if (shape.dim_size() == 0)
      continue;
    const auto &dim = shape.dim(0);
    if (dim.has_dim_value()) {
      fixed = input;
      fits |= dim.dim_value() == batch;
      isElsewhere |= llvm::any_of(shape.dim(), [&](const auto &other) { return other.dim_value() == batch; });
      continue;
    }
    nameless |= dim.dim_param().empty();
  }
  // No input begins with a symbol: the batch may stand elsewhere.
  if (symbol.empty() && !nameless && !fits) {
    symbol = findOnlySymbol();
    bindsOnlySymbol = !symbol.empty();
  }
  // Outputs that begin with it say that an input may have it elsewhere.
  fits |= isElsewhere && llvm::any_of(file.getModel().graph().output(), [&](const ValueInfoProto &output) {
            const auto &shape = output.type().tensor_type().shape();
            return shape.dim_size() && shape.dim(0).dim_value() == batch;
          });
  // A batch that the exporter fixed can only be confirmed.
  if (fixed && symbol.empty() && !nameless && !fits)
    return usageError("--batch=" + Twine(batch) + ": input " + quoteName(fixed->name()) +
                          " has a fixed first dimension of " +
                          Twine(fixed->type().tensor_type().shape().dim(0).dim_value()),
                      "export the model with a dynamic batch, or use its own");
  batchSize = batch;
  if (!symbol.empty())
    bind(symbol, batch, "--batch");
}

void DimBinding::applyOtherBatch(int64_t batch, int64_t whole) {
  solve();
  if (!valid)
    return;
  // What is derived from symbols that are known now follows them.
  llvm::erase_if(equations, [&](const Equation &equation) {
    return derived.find(equation.name)->second.evaluate(symbols).has_value();
  });
  std::vector<std::string> counting = listFirstSymbols();
  if (std::string symbol = findBatchSymbol(); !symbol.empty())
    counting = {symbol}; // others begin with a length
  for (const std::string &name : counting)
    if (auto size = findSize(name); size && *size != whole && !derived.contains(name))
      return usageError("not every input begins with " + Twine(whole) + " rows: " + quoteName(name) + " is " +
                            Twine(*size) + ", and how many belong to " + Twine(batch) + " samples is not known",
                        "leave --last-batch out, with a batch that divides the samples of the data");
  if (llvm::any_of(counting, [&](const std::string &name) { return !derived.contains(name); })) {
    batchSize = batch;
    for (const std::string &name : counting)
      if (!derived.contains(name))
        symbols[name] = batch;
    return;
  }
  for (const std::string &name : counting)
    for (const std::string &symbol : derived.find(name)->second.getSymbols())
      symbols.erase(symbol);
  symbols.erase(findOnlySymbol());
  applyBatch(batch);
}

namespace {
using Dimension = ::onnx::TensorShapeProto::Dimension;

/// What inputs and outputs tell of the name of a dimension: a symbol, or a size.
struct BatchEvidence {
  StringRef name;
  /// How many begin with it, and how many inputs have it.
  int64_t first = 0, all = 0;
};
} // namespace

static const auto &dimsOf(const ValueInfoProto &value) { return value.type().tensor_type().shape().dim(); }

/// What most inputs and outputs begin with; of several, what the most inputs have, and of those the first. Labels and
/// logits speak against a table of positions, which begins with a length. `nameOf` is empty for what cannot count
/// samples.
static BatchEvidence findMostCommon(ArrayRef<const ValueInfoProto *> inputs, ArrayRef<const ValueInfoProto *> outputs,
                                    llvm::function_ref<StringRef(const Dimension &)> nameOf) {
  llvm::MapVector<StringRef, BatchEvidence> found;
  for (const ValueInfoProto *input : inputs)
    if (const auto &dims = dimsOf(*input); !dims.empty() && !nameOf(dims[0]).empty())
      found.insert({nameOf(dims[0]), {nameOf(dims[0])}});
  for (ArrayRef<const ValueInfoProto *> values : {inputs, outputs})
    for (const ValueInfoProto *value : values)
      if (const auto &dims = dimsOf(*value); !dims.empty() && found.count(nameOf(dims[0])))
        ++found[nameOf(dims[0])].first;
  for (auto &[name, evidence] : found)
    evidence.all = llvm::count_if(inputs, [&, &name = name](const ValueInfoProto *input) {
      return llvm::any_of(dimsOf(*input), [&](const Dimension &dim) { return nameOf(dim) == name; });
    });
  auto best = std::max_element(found.begin(), found.end(), [](const auto &a, const auto &b) {
    return std::pair(a.second.first, a.second.all) < std::pair(b.second.first, b.second.all);
  });
  return best == found.end() ? BatchEvidence() : best->second;
}

/// Outputs, unless one is a loss: then inputs hold the labels, which tell more.
static std::vector<const ValueInfoProto *> getTellingOutputs(const ::onnx::GraphProto &graph) {
  std::vector<const ValueInfoProto *> outputs;
  for (const ValueInfoProto &output : graph.output()) {
    if (output.type().tensor_type().has_shape() && dimsOf(output).empty())
      return {};
    outputs.push_back(&output);
  }
  return outputs;
}

/// The first dimension of an input that `matches`; −1: it has none.
static int64_t findDim(const ValueInfoProto &input, llvm::function_ref<bool(const Dimension &)> matches) {
  const auto &dims = dimsOf(input);
  auto found = llvm::find_if(dims, matches);
  return found == dims.end() ? -1 : found - dims.begin();
}

/// The symbol that counts samples. Where no input begins with one, the symbol that `--batch` binds. Empty: there is
/// none, or all that have it begin with it.
std::string DimBinding::findBatchSymbol() const {
  if (bindsOnlySymbol)
    return findOnlySymbol();
  const std::vector<const ValueInfoProto *> inputs = getInputs();
  auto nameOf = [&](const Dimension &dim) {
    return dim.has_dim_value() || derived.count(dim.dim_param()) ? StringRef() : StringRef(dim.dim_param());
  };
  const StringRef symbol = findMostCommon(inputs, getTellingOutputs(file.getModel().graph()), nameOf).name;
  const bool isElsewhere = llvm::any_of(inputs, [&](const ValueInfoProto *input) {
    return findDim(*input, [&](const Dimension &dim) { return nameOf(dim) == symbol; }) > 0;
  });
  return isElsewhere && !symbol.empty() ? symbol.str() : "";
}

/// The size that counts samples where all are fixed: what `--batch` states, or else what findMostCommon finds, if every
/// input has it. Otherwise the first input begins with its samples.
void DimBinding::findBatchLength(std::optional<int64_t> stated) {
  std::vector<const ValueInfoProto *> inputs = getInputs();
  llvm::erase_if(inputs, [](const ValueInfoProto *input) { return dimsOf(*input).empty(); });
  auto isFixed = [](const ValueInfoProto *input) {
    return llvm::all_of(dimsOf(*input), [](const Dimension &dim) { return dim.has_dim_value(); });
  };
  if (inputs.empty() || !llvm::all_of(inputs, isFixed))
    return;
  const int64_t first = dimsOf(*inputs.front())[0].dim_value();
  if (stated) {
    if (*stated != first)
      batchLength = stated;
    return;
  }
  llvm::StringMap<int64_t> sizes;
  auto nameOf = [&](const Dimension &dim) {
    return dim.has_dim_value() && dim.dim_value() > 1
               ? sizes.try_emplace(std::to_string(dim.dim_value()), dim.dim_value()).first->getKey()
               : StringRef();
  };
  const BatchEvidence found = findMostCommon(inputs, getTellingOutputs(file.getModel().graph()), nameOf);
  if (found.name.empty() || sizes.lookup(found.name) == first)
    return;
  const bool isCommon = found.all == int64_t(inputs.size());
  assumedLength = isCommon ? sizes.lookup(found.name) : first;
  if (isCommon)
    batchLength = assumedLength;
}

void DimBinding::reportAssumedBatch() const {
  if (!assumedLength)
    return;
  std::vector<std::string> shapes;
  std::vector<int64_t> sizes;
  std::string where, elsewhere;
  for (const ValueInfoProto *input : getInputs()) {
    if (dimsOf(*input).empty())
      continue;
    shapes.push_back(input->name() + " [" +
                     llvm::join(llvm::map_range(dimsOf(*input),
                                                [](const Dimension &dim) { return std::to_string(dim.dim_value()); }),
                                ",") +
                     "]");
    if (const int64_t size = dimsOf(*input)[0].dim_value(); size != *assumedLength && !llvm::is_contained(sizes, size))
      sizes.push_back(size);
    const std::optional<int64_t> dim = getBatchDim(*input);
    if (!dim || *dim <= 0)
      continue;
    if (where.empty())
      where = input->name();
    elsewhere += elsewhere.empty() ? " (dimension " : ", ";
    elsewhere += std::to_string(*dim) + " of '" + input->name() + "'";
  }
  std::string others;
  for (int64_t size : sizes)
    others += (others.empty() ? "" : " or ") + ("--batch=" + std::to_string(size));
  file.getReport().add({FindingKind::BatchAssumed,
                        where.empty() ? getInputs().front()->name() : where,
                        shapes,
                        {{"number", std::to_string(*assumedLength)},
                         {"elsewhere", elsewhere.empty() ? "" : elsewhere + ")"},
                         {"other sizes", others}}});
}

std::optional<int64_t> DimBinding::getBatchDim(const ValueInfoProto &value) const {
  if (!batchSymbol.empty())
    return findDim(value, [&](const Dimension &dim) { return !dim.has_dim_value() && dim.dim_param() == batchSymbol; });
  if (batchLength)
    return findDim(value, [&](const Dimension &dim) { return dim.dim_value() == *batchLength; });
  return std::nullopt;
}
