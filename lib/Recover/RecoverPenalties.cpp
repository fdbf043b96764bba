//===- RecoverPenalties.cpp - what a program adds to its loss for its weights -------===//
//
// `c · Σ w²` of all parameters, lengths of rows, how far two layers are apart or a matrix is from orthogonal: a number
// that depends on no input, which the exporter evaluates. The notes name parameters and operations, not the factors:
// what has the number with the plainest factors is what the program computes.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "Expressions.h"
#include "Unfold.h"
#include "lowtide/Support/StableSort.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringMap.h"

#include <array>
#include <cmath>
#include <functional>
#include <tuple>

using namespace llvm;
using namespace lowtide;
using ::onnx::TensorProto;

/// Rows and columns of the largest matrix that is multiplied with itself to compare a number.
static constexpr int64_t largestSide = 512;

namespace {
/// How often the notes name an operation.
using Counts = std::array<int, 9>;
enum { Square, Sum, Mean, Absolute, Norm, Times, Minus, Product, Bound, NumCounts };
static_assert(NumCounts == std::tuple_size<Counts>::value);

/// What is measured at a time: a parameter, two of them, or all, joined.
struct Item {
  SmallVector<const TensorProto *, 2> tensors;
  std::vector<Numbers> leaves;
  bool isJoined = false;
};

/// Steps that make a number of an item; of `EyeLike`, the identity. The operations that they are.
struct Measure {
  std::function<SmallVector<Step, 8>(const Item &)> make;
  Counts operations;
};

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

/// Counts of operations; nullopt: something else is among them.
static std::optional<Counts> countOperations(ArrayRef<StringRef> operations) {
  static const std::pair<const char *, int> known[] = {
      {"pow", Square},     {"square", Square},   {"mse_loss", NumCounts},  {"sum", Sum},
      {"mean", Mean},      {"abs", Absolute},    {"norm", Norm},           {"linalg_vector_norm", Norm},
      {"mul", Times},      {"div", Times},       {"sub", Minus},           {"rsub", Minus},
      {"mm", Product},     {"matmul", Product},  {"clamp_min", Bound},     {"add", NumCounts},
      {"val", NumCounts},  {"eye", NumCounts},   {"eq", NumCounts},        {"ones", NumCounts},
      {"full", NumCounts}, {"where", NumCounts}, {"zeros_like", NumCounts}};
  Counts counts = {};
  for (StringRef operation : operations) {
    const auto *found = find_if(known, [&](const auto &each) { return operation == each.first; });
    if (found == std::end(known) && !operation.contains("lifted_tensor"))
      return std::nullopt;
    if (found == std::end(known))
      continue; // a number that the sum begins with
    if (operation == "mse_loss") {
      ++counts[Square];
      ++counts[Mean];
    } else if (found->second != NumCounts) {
      ++counts[size_t(found->second)];
    }
  }
  return counts;
}

//===----------------------------------------------------------------------===//
// Measures
//===----------------------------------------------------------------------===//

namespace {
/// Adds steps to those of an item, of which `value` is the last.
struct Builder {
  SmallVector<Step, 8> steps;
  unsigned value, numLeaves;
  SmallVector<int64_t> dims;

  explicit Builder(const Item &item)
      : value(0), numLeaves(unsigned(item.leaves.size())), dims(item.leaves.front().dims) {}

  unsigned add(Step step) {
    steps.push_back(std::move(step));
    return value = numLeaves + unsigned(steps.size()) - 1;
  }
  void apply(const char *function) { add({Step::Function, function, {value}}); }
  unsigned combine(const char *op, unsigned a, unsigned b) { return add({Step::Pairs, op, {a, b}}); }
  void flatten() {
    dims = {sizeOf(dims)};
    Step step{Step::View, "Reshape", {value}};
    step.dims = dims;
    add(std::move(step));
  }
  /// Over `axes`, or over all.
  unsigned reduce(const char *op, std::optional<SmallVector<int64_t>> axes = std::nullopt, bool keepsDims = false) {
    Step step{Step::Reduce, op, {value}};
    step.axes = axes ? *axes : to_vector(seq<int64_t>(0, int64_t(dims.size())));
    step.keepsDims = keepsDims;
    int64_t count = 1;
    for (int64_t axis : step.axes)
      count *= dims[size_t(axis)];
    step.number = double(count);
    if (!keepsDims)
      for (int64_t axis : reverse(step.axes))
        dims.erase(dims.begin() + axis);
    return add(std::move(step));
  }
};
} // namespace

using Begin = std::function<void(Builder &)>;

/// All ways to make a number of what `begin` made.
static void addEnds(std::vector<Measure> &measures, const Begin &begin, Counts before, size_t rank) {
  auto add = [&](std::initializer_list<int> operations, std::function<void(Builder &)> end) {
    Counts counts = before;
    for (int operation : operations)
      ++counts[size_t(operation)];
    measures.push_back({[begin, end = std::move(end)](const Item &item) {
                          Builder builder(item);
                          begin(builder);
                          end(builder);
                          return std::move(builder.steps);
                        },
                        counts});
  };
  auto square = [](Builder &b) { b.combine("Mul", b.value, b.value); };
  for (int isMean : {false, true}) {
    const char *op = isMean ? "ReduceMean" : "ReduceSum";
    const int last = isMean ? Mean : Sum;
    for (int squares : {Square, Times})
      add({squares, last}, [square, op](Builder &b) { square(b), b.reduce(op); });
    add({Absolute, last}, [op](Builder &b) { b.apply("abs"), b.reduce(op); });
    // Lengths, along some of the dimensions.
    for (unsigned set = 1; rank > 1 && rank <= 4 && set + 1 < 1u << rank; ++set) {
      SmallVector<int64_t> axes;
      for (size_t axis = 0; axis != rank; ++axis)
        if (set >> axis & 1)
          axes.push_back(int64_t(axis));
      add({Norm, last}, [axes, op](Builder &b) { b.reduce("ReduceL2", axes), b.reduce(op); });
    }
  }
  add({Norm}, [](Builder &b) { b.reduce("ReduceL2"); });
  add({Norm}, [](Builder &b) { b.apply("abs"), b.reduce("ReduceSum"); });
  for (int squares : {Square, Times})
    add({Norm, squares}, [square](Builder &b) { square(b), b.reduce("ReduceSum"); });
}

/// w · wᵀ, of rows or columns, perhaps less the identity.
static Begin multiply(bool ofColumns, bool isLessOne) {
  return [=](Builder &b) {
    const int64_t rows = b.dims.front(), columns = sizeOf(b.dims) / rows;
    Step view{Step::View, "Reshape", {b.value}};
    view.dims = {rows, columns};
    b.add(std::move(view));
    if (ofColumns)
      b.add({Step::Turn, "Transpose", {b.value}, {1, 0}});
    Step product{Step::Product, "MatMul", {b.value, b.value}};
    product.turnsSecond = true;
    unsigned each = b.add(std::move(product));
    b.dims.assign(2, ofColumns ? columns : rows);
    if (isLessOne)
      b.combine("Sub", each, b.add({Step::Function, "EyeLike", {each}}));
  };
}

/// The cosine of what two parameters hold along `axes`; without, of all.
static Begin compare(std::optional<SmallVector<int64_t>> axes) {
  return [=](Builder &b) {
    const SmallVector<int64_t> dims = b.dims;
    auto scale = [&](unsigned leaf) {
      b.value = leaf;
      b.dims = dims;
      const unsigned length = b.reduce("ReduceL2", axes, true);
      return b.combine("Div", leaf, length);
    };
    const unsigned left = scale(0), right = scale(1);
    b.combine("Mul", left, right);
    b.reduce("ReduceSum", axes);
  };
}

static std::vector<Measure> findMeasures(ArrayRef<Item> items, const Counts &counts) {
  std::vector<Measure> measures;
  const Item &item = items.front();
  const size_t rank = item.leaves.front().dims.size();
  const bool hasEqualRanks = all_of(items, [&](const Item &i) { return i.leaves.front().dims.size() == rank; });
  const size_t ends = hasEqualRanks && !item.isJoined ? rank : 1;
  if (item.leaves.size() == 2) {
    Counts apart = {};
    ++apart[Minus];
    addEnds(measures, [](Builder &b) { b.combine("Sub", 0, 1); }, apart, ends);
    // PyTorch divides both by their lengths, each bounded.
    Counts cosine = {};
    cosine[Norm] = cosine[Bound] = 2;
    cosine[Times] = 3;
    cosine[Sum] = 1;
    measures.push_back({[](const Item &of) {
                          Builder b(of);
                          compare(std::nullopt)(b);
                          return std::move(b.steps);
                        },
                        cosine});
    for (bool isMean : {false, true}) {
      Counts all = cosine;
      ++all[isMean ? Mean : Sum];
      for (size_t axis = 0; rank > 1 && hasEqualRanks && axis != rank; ++axis)
        measures.push_back({[axis, isMean](const Item &of) {
                              Builder b(of);
                              compare(SmallVector<int64_t>{int64_t(axis)})(b);
                              b.reduce(isMean ? "ReduceMean" : "ReduceSum");
                              return std::move(b.steps);
                            },
                            all});
    }
    Counts dot = {};
    dot[Times] = dot[Sum] = 1;
    measures.push_back({[](const Item &of) {
                          Builder b(of);
                          b.combine("Mul", 0, 1);
                          b.reduce("ReduceSum");
                          return std::move(b.steps);
                        },
                        dot});
    return measures;
  }
  if (counts[Product] == 0) {
    addEnds(measures, [](Builder &) {}, {}, ends);
    return measures;
  }
  const bool isSmall = all_of(items, [](const Item &i) {
    const ArrayRef<int64_t> dims = i.leaves.front().dims;
    return dims.size() > 1 && dims.front() <= largestSide && sizeOf(dims) / dims.front() <= largestSide;
  });
  for (bool ofColumns : {false, true})
    for (bool isLessOne : {false, true}) {
      Counts products = {};
      ++products[Product];
      products[Minus] = isLessOne;
      if (isSmall && !item.isJoined)
        addEnds(measures, multiply(ofColumns, isLessOne), products, 1);
    }
  return measures;
}

/// What the steps give of the item; nullopt: they do not fit it.
static std::optional<double> measure(const Item &item, ArrayRef<Step> steps) {
  std::vector<Numbers> values = item.leaves;
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
  const Numbers &last = values.back();
  return last.values.size() == 1 && std::isfinite(last.values.front()) ? std::optional(last.values.front())
                                                                       : std::nullopt;
}

static std::optional<double> measureAll(const Measure &each, ArrayRef<Item> items) {
  double total = 0;
  for (const Item &item : items) {
    std::optional<double> value = measure(item, each.make(item));
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
  Penalties(double goal, Counts counts, int divisor) : goal(goal), counts(counts), divisor(divisor) {}

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
  auto elsewhere = [](const Fit &of) {
    double total = 0;
    for (auto [term, factor] : zip(of.terms, of.factors)) {
      std::vector<Item> items(term.items.begin(), term.items.end());
      for (Item &item : items)
        for (Numbers &leaf : item.leaves)
          for (auto [i, x] : enumerate(leaf.values))
            x += 0.1 + 0.01 * double(i % 7) - 0.03 * double(i % 3);
      total += factor * measureAll(*term.measure, items).value_or(NAN);
    }
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
    const std::optional<double> total = measureAll(each, items);
    const bool hasFactor = matches(each.operations, items.size(), 1);
    auto [factor, digits] = asWritten(total && *total != 0 ? goal * divisor / *total : NAN);
    if (!std::isnan(factor) && (factor == 1 || hasFactor))
      found({{{&each, items, *total}}, {factor / divisor}, digits});
  }
}

void Penalties::tryTwo(ArrayRef<Item> items) {
  kept.push_back(findMeasures(items, counts));
  const std::vector<Measure> &measures = kept.back();
  auto add = [&](const Measure &one, ArrayRef<Item> first, const Measure &other, ArrayRef<Item> second) {
    const std::optional<double> a = measureAll(one, first), b = measureAll(other, second);
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

static Item makeItem(const UnfoldingGraph &graph, ArrayRef<const TensorProto *> tensors) {
  Item item;
  for (const TensorProto *tensor : tensors) {
    const std::vector<float> values = valuesOf(graph, *tensor);
    item.tensors.push_back(tensor);
    item.leaves.push_back({{values.begin(), values.end()}, {tensor->dims().begin(), tensor->dims().end()}});
  }
  return item;
}

/// All parameters as one vector.
static Item join(ArrayRef<Item> items) {
  Item joined;
  joined.isJoined = true;
  joined.leaves.emplace_back();
  for (const Item &item : items) {
    joined.tensors.append(item.tensors);
    llvm::append_range(joined.leaves.front().values, item.leaves.front().values);
  }
  joined.leaves.front().dims = {int64_t(joined.leaves.front().values.size())};
  return joined;
}

/// Each parameter with the one of its name in the other module, or the two that there are; empty: they are no pairs.
static std::vector<Item> pair(const UnfoldingGraph &graph, ArrayRef<const TensorProto *> tensors) {
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
    pairs.push_back(makeItem(graph, {tensors[i], tensors[other]}));
  }
  return pairs;
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
  if (held.size() != 1 || held.front() == 0 || !counts || has("detach"))
    return false;
  SmallVector<const TensorProto *> tensors;
  for (const SignatureEntry *entry : evaluated.parameters) {
    tensors.push_back(findElements(graph, *entry, moved));
    if (!tensors.back() || valuesOf(graph, *tensors.back()).empty() || tensors.back()->dims_size() > 4)
      return false;
  }
  // Matrices in front.
  sortStably(tensors,
             [](const TensorProto *a, const TensorProto *b) { return (a->dims_size() > 1) > (b->dims_size() > 1); });
  std::vector<Item> items;
  for (const TensorProto *tensor : tensors)
    items.push_back(makeItem(graph, {tensor}));
  // One for each, in one tensor, of which the sum or mean is taken.
  int divisor = 1;
  if (has("stack") && (*counts)[Sum] + (*counts)[Mean] > 0) {
    const bool isMean = (*counts)[Mean] > 0;
    --(*counts)[isMean ? Mean : Sum];
    divisor = isMean ? int(items.size()) : 1;
  }
  Penalties penalties(held.front(), *counts, divisor);
  std::vector<Item> joined, pairs;
  if (has("cat")) {
    joined.push_back(join(items));
    penalties.tryOne(joined, findMeasures(joined, *counts));
  } else {
    penalties.tryOne(items, findMeasures(items, *counts));
    if (items.size() % 2 == 0 && ((*counts)[Minus] || (*counts)[Bound] || (*counts)[Times])) {
      pairs = pair(graph, tensors);
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
