//===- PenaltyMeasures.cpp - how programs measure their weights ---------------------===//

#include "PenaltyMeasures.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <cmath>
#include <tuple>

using namespace llvm;
using namespace lowtide;
using namespace lowtide::penalty;

/// Rows and columns of the largest matrix that is multiplied with itself to compare a number.
static constexpr int64_t largestSide = 512;
/// Elements of the largest parameter whose neighbours are compared.
static constexpr int64_t mostTaken = int64_t(1) << 16;

std::optional<penalty::Counts> penalty::countOperations(ArrayRef<StringRef> operations) {
  static const std::pair<const char *, int> known[] = {
      {"pow", Square},     {"square", Square}, {"sum", Sum},
      {"mean", Mean},      {"abs", Absolute},  {"norm", Norm},
      {"mul", Times},      {"div", Times},     {"linalg_vector_norm", Norm},
      {"sub", Minus},      {"rsub", Minus},    {"mm", Product},
      {"matmul", Product}, {"sqrt", Root},     {"clamp_min", Bound}};
  static const StringRef others[] = {"add", "val", "eye", "eq", "ones", "full", "where", "zeros_like", "expand_as"};
  Counts counts = {};
  for (StringRef operation : operations) {
    const auto *found = find_if(known, [&](const auto &each) { return operation == each.first; });
    if (found != std::end(known)) {
      ++counts[size_t(found->second)];
    } else if (operation == "mse_loss" || operation == "l1_loss") {
      ++counts[operation == "l1_loss" ? Absolute : Square];
      ++counts[Mean];
    } else if (!is_contained(others, operation) && !operation.contains("lifted_tensor")) {
      return std::nullopt; // not a number that the sum begins with, either
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
  /// The value less a number, or the number less the value.
  unsigned subtract(double number, bool numberFirst = false) {
    Step step{Step::Pairs, "Sub", {value}};
    step.number = number;
    step.numberFirst = numberFirst;
    return add(std::move(step));
  }
  unsigned scale(double number) {
    Step step{Step::Pairs, "Mul", {value}};
    step.number = number;
    return add(std::move(step));
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
  // Powers of sizes; a length, times the root of how many numbers it is of.
  add({Absolute, Square, Sum}, [square](Builder &b) {
    const unsigned of = b.value;
    b.apply("abs");
    const unsigned size = b.value;
    b.value = of;
    square(b);
    b.combine("Mul", size, b.value);
    b.reduce("ReduceSum");
  });
  add({Norm, Times}, [](Builder &b) {
    const double count = double(sizeOf(b.dims));
    b.reduce("ReduceL2");
    b.scale(std::sqrt(count));
  });
  add({Norm}, [](Builder &b) { b.reduce("ReduceL2"); });
  add({Norm}, [](Builder &b) { b.apply("abs"), b.reduce("ReduceSum"); });
  for (int squares : {Square, Times})
    add({Norm, squares}, [square](Builder &b) { square(b), b.reduce("ReduceSum"); });
}

namespace {
/// What is left of the products of each with each: all, all less the identity, or those with others.
enum class Left { All, LessOne, Others };
} // namespace

/// w · wᵀ, of rows or columns, perhaps each divided by its length.
static Begin multiply(bool ofColumns, bool areNormalized, Left left) {
  return [=](Builder &b) {
    const int64_t rows = b.dims.front(), columns = sizeOf(b.dims) / rows;
    Step view{Step::View, "Reshape", {b.value}};
    view.dims = {rows, columns};
    b.add(std::move(view));
    if (ofColumns)
      b.add({Step::Turn, "Transpose", {b.value}, {1, 0}});
    b.dims.assign({ofColumns ? columns : rows, ofColumns ? rows : columns});
    if (areNormalized) {
      const unsigned matrix = b.value, lengths = b.reduce("ReduceL2", SmallVector<int64_t>{1}, true);
      b.combine("Div", matrix, lengths);
    }
    Step product{Step::Product, "MatMul", {b.value, b.value}};
    product.turnsSecond = true;
    const unsigned each = b.add(std::move(product));
    b.dims[1] = b.dims[0];
    if (left == Left::All)
      return;
    const unsigned one = b.add({Step::Function, "EyeLike", {each}});
    if (left == Left::LessOne)
      b.combine("Sub", each, one);
    else
      b.combine("Mul", each, b.subtract(1, true));
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

/// `w[1:] - w[:-1]` along a dimension.
static Begin subtractNeighbours(size_t axis) {
  return [=](Builder &b) {
    SmallVector<int64_t> dims = b.dims;
    if (axis >= dims.size() || dims[axis] < 2 || sizeOf(dims) > mostTaken)
      return;
    int64_t inner = 1;
    for (int64_t dim : ArrayRef(dims).drop_front(axis + 1))
      inner *= dim;
    const int64_t size = dims[axis]--;
    auto take = [&](int64_t begin) {
      Step step{Step::Take, "Gather", {0}};
      step.dims = dims;
      step.size = sizeOf(b.dims);
      for (int64_t at = 0, e = sizeOf(dims); at != e; ++at)
        step.axes.push_back(at / (inner * (size - 1)) * inner * size + at % (inner * (size - 1)) + begin * inner);
      return b.add(std::move(step));
    };
    const unsigned later = take(1), earlier = take(0);
    b.combine("Sub", later, earlier);
    b.dims = dims;
  };
}

static Counts of(std::initializer_list<std::pair<int, int>> operations) {
  Counts result = {};
  for (auto [operation, count] : operations)
    result[size_t(operation)] += count;
  return result;
}

/// Of two parameters: differences, products and cosines.
static std::vector<Measure> findPairMeasures(const Counts &counts, size_t rank, size_t ends) {
  std::vector<Measure> measures;
  auto add = [&](Counts operations, Begin make) {
    measures.push_back({[make = std::move(make)](const Item &item) {
                          Builder b(item);
                          make(b);
                          return std::move(b.steps);
                        },
                        operations});
  };
  // A loss takes the difference itself.
  for (int minus : {0, 1})
    addEnds(measures, [](Builder &b) { b.combine("Sub", 0, 1); }, of({{Minus, minus}}), ends);
  add(of({{Times, 1}, {Sum, 1}}), [](Builder &b) {
    b.combine("Mul", 0, 1);
    b.reduce("ReduceSum");
  });
  if (counts[Product] == 1 && rank == 2)
    for (int turned : {-1, 0, 1})
      addEnds(
          measures,
          [=](Builder &b) {
            unsigned left = 0;
            if (turned == 0)
              left = b.add({Step::Turn, "Transpose", {0}, {1, 0}});
            Step product{Step::Product, "MatMul", {left, 1}};
            product.turnsSecond = turned == 1;
            b.add(std::move(product));
            b.dims.assign(2, 0);
          },
          of({{Product, 1}}), 1);
  // PyTorch divides both by their lengths, each bounded.
  const Counts cosine = of({{Norm, 2}, {Bound, 2}, {Times, 3}, {Sum, 1}});
  for (int isRest : {0, 1}) {
    Counts one = cosine;
    one[Minus] += isRest;
    auto turn = [isRest](Builder &b) {
      if (isRest)
        b.subtract(1, true);
    };
    add(one, [turn](Builder &b) { compare(std::nullopt)(b), turn(b); });
    for (int last : {Mean, Sum}) {
      Counts all = one;
      ++all[size_t(last)];
      for (size_t axis = 0; rank > 1 && ends == rank && axis != rank; ++axis)
        add(all, [=](Builder &b) {
          compare(SmallVector<int64_t>{int64_t(axis)})(b), turn(b);
          b.reduce(last == Mean ? "ReduceMean" : "ReduceSum");
        });
    }
  }
  return measures;
}

std::vector<Measure> penalty::findMeasures(ArrayRef<Item> items, const Counts &counts) {
  const Item &item = items.front();
  const size_t rank = item.leaves.front().dims.size();
  const bool hasEqualRanks = all_of(items, [&](const Item &i) { return i.leaves.front().dims.size() == rank; });
  const size_t ends = hasEqualRanks && !item.isJoined ? rank : 1;
  if (item.leaves.size() == 2)
    return findPairMeasures(counts, rank, ends);
  std::vector<Measure> measures;
  if (counts[Part] != 0) {
    for (size_t axis = 0; hasEqualRanks && !item.isJoined && axis != rank; ++axis)
      addEnds(measures, subtractNeighbours(axis), of({{Minus, 1}, {Part, 2}}), rank);
    return measures;
  }
  if (counts[Product] == 0) {
    addEnds(measures, [](Builder &) {}, {}, ends);
    // How far lengths or sums along a dimension are from one.
    for (int op : {Norm, Sum})
      for (size_t axis = 0; counts[Minus] && ends > 1 && axis != rank; ++axis) {
        Counts lessOne = {};
        ++lessOne[size_t(op)];
        ++lessOne[Minus];
        addEnds(
            measures,
            [=](Builder &b) {
              b.reduce(op == Norm ? "ReduceL2" : "ReduceSum", SmallVector<int64_t>{int64_t(axis)});
              b.subtract(1);
            },
            lessOne, 1);
      }
    return measures;
  }
  const bool isSmall = all_of(items, [](const Item &i) {
    const ArrayRef<int64_t> dims = i.leaves.front().dims;
    return dims.size() > 1 && dims.front() <= largestSide && sizeOf(dims) / dims.front() <= largestSide;
  });
  for (bool ofColumns : {false, true})
    for (Left left : {Left::All, Left::LessOne, Left::Others})
      for (int normalizations : {0, 1, 2}) {
        Counts products = {};
        ++products[Product];
        products[Minus] = left != Left::All;
        products[Times] = (left == Left::Others) + normalizations;
        products[Norm] = products[Bound] = normalizations;
        if (isSmall && !item.isJoined)
          addEnds(measures, multiply(ofColumns, normalizations != 0, left), products, 1);
      }
  return measures;
}

std::vector<Measure> penalty::findRoots(size_t numParameters) {
  Counts squares = {};
  squares[Square] = squares[Sum] = int(numParameters);
  squares[Root] = 1;
  return {{[](const Item &item) {
             Builder b(item);
             b.reduce("ReduceL2");
             return std::move(b.steps);
           },
           squares}};
}

std::vector<Measure> penalty::findDivergences() {
  // The number that a parameter is multiplied with, and the function that makes a deviation of that; null: itself.
  static constexpr std::pair<double, const char *> deviations[] = {
      {1, "exp"}, {1, "softplus"}, {0.5, "exp"}, {1, nullptr}};
  std::vector<Measure> measures;
  for (auto [factor, function] : deviations)
    for (const char *last : {"ReduceSum", "ReduceMean"})
      measures.push_back({[factor = factor, function = function, last](const Item &item) {
                            Builder b(item);
                            b.value = 1;
                            if (factor != 1)
                              b.scale(factor);
                            if (function)
                              b.apply(function);
                            const unsigned sigma = b.value, square = b.combine("Mul", sigma, sigma);
                            const unsigned mean = b.combine("Mul", 0, 0);
                            b.combine("Add", square, mean);
                            b.subtract(1);
                            const unsigned half = b.scale(0.5);
                            b.value = sigma;
                            b.apply("log");
                            b.combine("Sub", half, b.value);
                            b.reduce(last);
                            return std::move(b.steps);
                          },
                          {}});
  return measures;
}

std::vector<Measure> penalty::findEntropies() {
  std::vector<Measure> measures;
  for (bool isMean : {false, true})
    measures.push_back({[=](const Item &item) {
                          Builder b(item);
                          const SmallVector<int64_t> last{int64_t(b.dims.size()) - 1};
                          const unsigned chance = b.add({Step::Normalize, "Softmax", {0}, last});
                          const unsigned logarithm = b.add({Step::Normalize, "LogSoftmax", {0}, last});
                          b.combine("Mul", chance, logarithm);
                          b.reduce("ReduceSum", last);
                          if (!b.dims.empty())
                            b.reduce(isMean ? "ReduceMean" : "ReduceSum");
                          return std::move(b.steps);
                        },
                        {}});
  return measures;
}
