//===- RecoverPenalties.cpp - what a program adds to its loss for its weights -------===//
//
// `c · Σ w²` of all parameters, lengths of rows, how far two layers are apart or a matrix is from orthogonal: a number
// that depends on no input, which the exporter evaluates. The notes name parameters and operations, not the factors:
// what has the number with the plainest factors is what the program computes.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "PenaltyMeasures.h"
#include "Unfold.h"
#include "lowtide/Support/StableSort.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace llvm;
using namespace lowtide;
using namespace lowtide::penalty;
using ::onnx::TensorProto;

namespace {
/// A measure, summed over items.
struct Term {
  const Measure *measure;
  ArrayRef<Item> items;
  double value;
};

/// Terms with their factors.
struct Fit {
  SmallVector<Term, 2> terms;
  SmallVector<double, 2> factors;
  int digits = 0;
};
} // namespace

/// The values of an item; empty: they cannot be read. `isElsewhere`: others.
static std::vector<Numbers> read(const UnfoldingGraph &graph, const Item &item, bool isElsewhere) {
  std::vector<Numbers> leaves = item.leaves;
  for (auto [i, tensor] : enumerate(item.tensors)) {
    const std::vector<float> values = valuesOf(graph, *tensor);
    if (values.empty())
      return {};
    llvm::append_range(leaves[item.isJoined ? 0 : i].values, values);
  }
  for (Numbers &leaf : leaves)
    for (size_t i = 0; isElsewhere && i != leaf.values.size(); ++i)
      leaf.values[i] += 0.1 + 0.01 * double(i % 7) - 0.03 * double(i % 3);
  return leaves;
}

/// What the steps give of an item's values; nullopt: they do not fit them.
static std::optional<double> measure(std::vector<Numbers> values, ArrayRef<Step> steps) {
  for (const Step &step : steps) {
    std::optional<Numbers> result;
    if (StringRef(step.op) == "EyeLike") {
      result = values[step.operands[0]];
      const int64_t side = result->dims.back();
      for (auto [at, value] : enumerate(result->values))
        value = int64_t(at) / side == int64_t(at) % side;
    } else {
      result = evaluate(step, values);
    }
    if (!result)
      return std::nullopt;
    values.push_back(std::move(*result));
  }
  if (values.empty())
    return std::nullopt;
  const Numbers &last = values.back();
  return last.values.size() == 1 && std::isfinite(last.values.front()) ? std::optional(last.values.front())
                                                                       : std::nullopt;
}

static std::optional<double> measureAll(const UnfoldingGraph &graph, const Measure &each, ArrayRef<Item> items,
                                        bool isElsewhere = false) {
  double total = 0;
  for (const Item &item : items) {
    std::optional<double> value = measure(read(graph, item, isElsewhere), each.make(item));
    if (!value)
      return std::nullopt;
    total += *value;
  }
  return total;
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// How exactly an exporter adds up in f32, and how exactly a factor has to be known to be told from others.
static constexpr double precision = 1e-6, mostUncertain = 2e-5;

/// Factors that programs write most: one digit, and a few of two.
static constexpr double plainNumbers[] = {1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 7.5, 8, 9};

static bool isPlain(double number, double uncertainty) {
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(number) * (1 + uncertainty))));
  return any_of(plainNumbers,
                [&](double plain) { return std::abs(std::abs(number) / unit - plain) <= uncertainty * plain; });
}

/// The factors of two terms that add up to `goal`; more than one pair: none is certain.
static SmallVector<std::pair<double, double>> findFactors(double goal, double first, double second) {
  SmallVector<std::pair<double, double>> found;
  for (int exponent = -8; exponent <= 2; ++exponent)
    for (double plain : plainNumbers) {
      const double one = plain * std::pow(10.0, exponent), rest = goal - one * first, other = rest / second;
      const double uncertainty = precision * std::max(std::abs(goal), std::abs(one * first)) / std::abs(rest);
      if (other > 1e-9 && other < 1e3 && uncertainty <= mostUncertain && isPlain(other, uncertainty))
        found.emplace_back(one, asWritten(other).first);
    }
  return found;
}

namespace {
/// Looks for what has the number.
class Penalties {
public:
  Penalties(const UnfoldingGraph &graph, double goal, Counts counts, int divisor)
      : graph(graph), goal(goal), counts(counts), divisor(divisor) {}

  /// One measure of all items, with one factor.
  void tryOne(ArrayRef<Item> items, std::vector<Measure> measures);
  /// Two measures of all items, or one of each half, with a factor each.
  void tryTwo(ArrayRef<Item> items);

  std::optional<Fit> best;
  bool isOnly = true;
  std::vector<std::vector<Measure>> kept; ///< that `best` and others point to

private:
  bool matches(Counts operations, size_t numItems, int factors) const;
  bool computesSame(const Fit &fit) const;
  void found(Fit fit);

  const UnfoldingGraph &graph;
  double goal;
  Counts counts;
  int divisor; ///< of the number: how many were stacked for their mean
};
} // namespace

/// Whether the notes name so many operations, and `factors` multiplications besides; one may have none.
bool Penalties::matches(Counts operations, size_t numItems, int factors) const {
  for (size_t i = 0; i != NumCounts; ++i) {
    const int needed = operations[i] * int(numItems), left = counts[i] - needed;
    if (i == Times ? left < factors : left != 0)
      return false;
  }
  return true;
}

/// Whether the fit gives what the best one gives, on other values as well.
bool Penalties::computesSame(const Fit &fit) const {
  auto elsewhere = [&](const Fit &of) {
    double total = 0;
    for (auto [term, factor] : zip(of.terms, of.factors))
      total += factor * measureAll(graph, *term.measure, term.items, true).value_or(NAN);
    return total;
  };
  return isEvaluated(elsewhere(fit), elsewhere(*best));
}

void Penalties::found(Fit fit) {
  if (!best || fit.digits < best->digits) {
    best = std::move(fit);
    isOnly = true;
  } else if (fit.digits == best->digits && !computesSame(fit)) {
    isOnly = false;
  }
}

void Penalties::tryOne(ArrayRef<Item> items, std::vector<Measure> measures) {
  kept.push_back(std::move(measures));
  for (const Measure &each : kept.back()) {
    if (!matches(each.operations, items.size(), 0))
      continue;
    const std::optional<double> total = measureAll(graph, each, items);
    if (!total || *total == 0)
      continue;
    const bool hasFactor = matches(each.operations, items.size(), 1);
    int64_t elements = 0;
    for (const Item &item : items)
      elements += sizeOf(item.leaves.front().dims);
    // Perhaps divided by how many numbers there are.
    for (int64_t by : {int64_t(divisor), hasFactor && items.size() > 1 ? elements : int64_t(divisor)}) {
      auto [factor, digits] = asWritten(goal * double(by) / *total);
      if (!std::isnan(factor) && (factor == 1 || hasFactor))
        found({{{&each, items, *total}}, {factor / double(by)}, digits});
    }
  }
}

void Penalties::tryTwo(ArrayRef<Item> items) {
  kept.push_back(findMeasures(items, counts));
  const std::vector<Measure> &measures = kept.back();
  auto add = [&](const Measure &one, ArrayRef<Item> first, const Measure &other, ArrayRef<Item> second) {
    const std::optional<double> a = measureAll(graph, one, first), b = measureAll(graph, other, second);
    if (!a || !b || *a == 0 || *b == 0)
      return;
    for (auto [factor, rest] : findFactors(goal, *a, *b))
      found({{{&one, first, *a}, {&other, second, *b}}, {factor, rest}, 8});
  };
  for (const Measure &one : measures) {
    for (const Measure &other : measures) {
      Counts both = one.operations;
      for (size_t i = 0; i != NumCounts; ++i)
        both[i] += other.operations[i];
      if (&one < &other && matches(both, items.size(), 2))
        add(one, items, other, items);
      if (&one != &other && items.size() == 2 && matches(both, 1, 2))
        add(one, items.take_front(1), other, items.drop_front(1));
    }
    if (!matches(one.operations, items.size(), 2))
      continue;
    // Matrices and vectors, which are in this order, or the first and the second parameter.
    const size_t half = size_t(count_if(items, [](const Item &i) { return i.leaves.front().dims.size() > 1; }));
    const size_t at = half != items.size() && half != 0 ? half : items.size() == 2 ? 1 : 0;
    if (at != 0)
      add(one, items.take_front(at), one, items.drop_front(at));
  }
}

//===----------------------------------------------------------------------===//
// Items, and nodes
//===----------------------------------------------------------------------===//

static Item makeItem(ArrayRef<const TensorProto *> tensors) {
  Item item;
  for (const TensorProto *tensor : tensors) {
    item.tensors.push_back(tensor);
    item.leaves.push_back({{}, {tensor->dims().begin(), tensor->dims().end()}});
  }
  return item;
}

/// All parameters as one vector.
static Item join(ArrayRef<Item> items) {
  Item joined;
  joined.isJoined = true;
  int64_t elements = 0;
  for (const Item &item : items) {
    joined.tensors.append(item.tensors);
    elements += sizeOf(item.leaves.front().dims);
  }
  joined.leaves.push_back({{}, {elements}});
  return joined;
}

/// Each parameter with the one of its name in the other module, or the two that there are; empty: they are no pairs.
static std::vector<Item> pair(ArrayRef<const TensorProto *> tensors) {
  std::vector<Item> pairs;
  SmallVector<bool> isTaken(tensors.size(), false);
  for (size_t i = 0; i != tensors.size(); ++i) {
    if (isTaken[i])
      continue;
    size_t other = 0;
    for (size_t j = i + 1; j != tensors.size(); ++j)
      if (!isTaken[j] &&
          ArrayRef(tensors[i]->dims().data(), size_t(tensors[i]->dims_size())) ==
              ArrayRef(tensors[j]->dims().data(), size_t(tensors[j]->dims_size())) &&
          (tensors.size() == 2 || leafOf(tensors[i]->name()) == leafOf(tensors[j]->name()))) {
        if (other)
          return {};
        other = j;
      }
    if (!other)
      return {};
    isTaken[i] = isTaken[other] = true;
    pairs.push_back(makeItem({tensors[i], tensors[other]}));
  }
  return pairs;
}

/// Each mean with what makes its deviation, as their names tell; empty: not all are so.
static std::vector<Item> pairMeans(ArrayRef<const TensorProto *> tensors) {
  auto isDeviation = [](const TensorProto *tensor) {
    const StringRef leaf = leafOf(tensor->name());
    return any_of(ArrayRef<StringRef>{"rho", "var", "sigma", "std", "scale"},
                  [&](StringRef word) { return leaf.contains(word); });
  };
  std::vector<Item> pairs;
  for (const TensorProto *mean : tensors) {
    if (isDeviation(mean))
      continue;
    const TensorProto *found = nullptr;
    for (const TensorProto *other : tensors)
      if (isDeviation(other) && moduleOf(other->name()) == moduleOf(mean->name()) &&
          ArrayRef(other->dims().data(), size_t(other->dims_size())) ==
              ArrayRef(mean->dims().data(), size_t(mean->dims_size()))) {
        if (found)
          return {};
        found = other;
      }
    if (!found)
      return {};
    pairs.push_back(makeItem({mean, found}));
  }
  return 2 * pairs.size() == tensors.size() ? pairs : std::vector<Item>();
}

static std::string addNodes(UnfoldingGraph &graph, const Item &item, ArrayRef<Step> steps) {
  SmallVector<std::string> names;
  for (const TensorProto *tensor : item.tensors)
    names.push_back(item.isJoined ? graph.addNode("Reshape", {tensor->name(), graph.addIntegers({1}, {-1})})
                                  : tensor->name());
  if (item.isJoined) {
    const std::string joined = graph.addNode("Concat", names);
    graph.setAttribute("axis", int64_t(0));
    names = {joined};
  }
  for (const Step &step : steps)
    names.push_back(StringRef(step.op) == "EyeLike" ? graph.addNode("EyeLike", {names[step.operands[0]]})
                                                    : addStep(graph, step, names));
  return names.back();
}

static void write(UnfoldingGraph &graph, const TensorProto &image, const Fit &fit) {
  std::string result;
  for (auto [term, factor] : zip(fit.terms, fit.factors)) {
    std::string total;
    for (const Item &item : term.items) {
      graph.setModule(moduleOf(item.tensors.front()->name()));
      const std::string each = addNodes(graph, item, term.measure->make(item));
      total = total.empty() ? each : graph.addNode("Add", {total, each});
    }
    total = graph.addNode("Mul", {total, graph.addNumber(float(factor))});
    result = result.empty() ? total : graph.addNode("Add", {result, total});
  }
  const SmallVector<int64_t> dims(image.dims().begin(), image.dims().end());
  graph.addNode("Reshape", {result, graph.addIntegers({int64_t(dims.size())}, dims)}, image.name());
  graph.remove(image);
}

bool lowtide::unfoldPenalty(UnfoldingGraph &graph, const Evaluated &evaluated, ArrayRef<StringRef> operations,
                            ArrayRef<const Evaluated *> moved) {
  const std::vector<float> held = valuesOf(graph, *evaluated.tensor);
  std::optional<Counts> counts = countOperations(operations);
  auto has = [&](StringRef name) {
    return any_of(evaluated.foldedFrom, [&](StringRef from) { return operationName(from) == name; });
  };
  const bool hasLogarithms =
      (has("log") && (has("pow") || has("square") || has("mul"))) || (has("log_softmax") && has("mul"));
  if (held.size() != 1 || held.front() == 0 || (!counts && !hasLogarithms) || has("detach"))
    return false;
  SmallVector<const TensorProto *> tensors;
  for (const SignatureEntry *entry : evaluated.parameters) {
    tensors.push_back(findElements(graph, *entry, moved));
    if (!tensors.back() || tensors.back()->data_type() != TensorProto::FLOAT || tensors.back()->dims_size() > 4)
      return false;
  }
  if (!counts) {
    std::vector<Item> special;
    const bool isEntropy = has("softmax") || has("log_softmax");
    if (isEntropy)
      for (const TensorProto *tensor : tensors)
        special.push_back(makeItem({tensor}));
    else
      special = pairMeans(tensors);
    Counts factors = {};
    factors[Times] = 1;
    Penalties penalties(graph, held.front(), factors, 1);
    if (!special.empty() && all_of(tensors, [](const TensorProto *tensor) { return tensor->dims_size() > 0; }))
      penalties.tryOne(special, isEntropy ? findEntropies() : findDivergences());
    if (!penalties.best || !penalties.isOnly)
      return false;
    write(graph, *evaluated.tensor, *penalties.best);
    return true;
  }
  (*counts)[Part] = int(count_if(evaluated.foldedFrom, [](StringRef from) { return operationName(from) == "slice"; }));
  // Matrices in front.
  sortStably(tensors,
             [](const TensorProto *a, const TensorProto *b) { return (a->dims_size() > 1) > (b->dims_size() > 1); });
  std::vector<Item> items;
  for (const TensorProto *tensor : tensors)
    items.push_back(makeItem({tensor}));
  // One for each, in one tensor, of which the sum or mean is taken.
  int divisor = 1;
  if (has("stack") && (*counts)[Sum] + (*counts)[Mean] > 0) {
    const bool isMean = (*counts)[Mean] > 0;
    --(*counts)[isMean ? Mean : Sum];
    divisor = isMean ? int(items.size()) : 1;
  }
  Penalties penalties(graph, held.front(), *counts, divisor);
  std::vector<Item> joined, pairs;
  if (has("cat")) {
    joined.push_back(join(items));
    penalties.tryOne(joined, findMeasures(joined, *counts));
  } else if ((*counts)[Root] == 1) {
    joined.push_back(join(items));
    penalties.tryOne(joined, findRoots(items.size()));
  } else {
    penalties.tryOne(items, findMeasures(items, *counts));
    if (items.size() % 2 == 0) {
      pairs = pair(tensors);
      if (!pairs.empty())
        penalties.tryOne(pairs, findMeasures(pairs, *counts));
    }
    if (!penalties.best && divisor == 1 && (*counts)[Times] >= 2)
      penalties.tryTwo(items);
  }
  if (!penalties.best || !penalties.isOnly)
    return false;
  write(graph, *evaluated.tensor, *penalties.best);
  return true;
}
