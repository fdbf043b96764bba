//===- RecoverExpressions.cpp - what several operations made of parameters ---------===//
//
// `w · log w` of a learned distribution, `w @ w @ w` next to w, a learned first state or a first token's row that a
// cell's weights multiply: exporters evaluate what depends on parameters alone. The notes name the parameters and the
// operations, but neither their order nor their operands. All ways to apply each operation once are tried on the first
// values. What gives the tensor is what the program computes, as long as all that give it agree on other values, too.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "Expressions.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Support/StableSort.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

using namespace llvm;
using namespace lowtide;
using ::onnx::TensorProto;

/// Operations of the longest expression, multiplications and steps of all that are tried, and elements of a leaf, and
/// of one next to a look-up, which may be its table.
static constexpr size_t mostOperations = 8;
static constexpr int64_t mostCost = int64_t(1) << 26, mostTries = 50000, largestLeaf = int64_t(1) << 20,
                         largestTable = int64_t(1) << 24;

/// How likely some number agrees with another by chance; how likely it is a number of one digit times another; and how
/// likely any of all that are tried may be.
static constexpr double chanceOfNumber = 8e-6, chanceOfDigit = 2e-4, mostChance = 0.02;

/// Operations that give their operand.
static bool givesOperand(StringRef operation) { return is_contained({"clone", "contiguous", "alias"}, operation); }

/// Steps of `F.normalize(w)` that leave a length as it is: a bound far below it, and one length for each element.
static bool isStepOfNormalize(StringRef operation) {
  return is_contained({"clamp", "clamp_min", "expand", "expand_as"}, operation);
}

/// Operations that make the positions of a look-up out of nothing.
static bool makesPositions(StringRef operation) {
  return is_contained({"ones", "zeros", "full", "new_ones", "new_zeros", "new_full", "fill", "full_like", "ones_like",
                       "zeros_like", "lift_fresh_copy", "_to_copy", "to"},
                      operation);
}

/// Whether a look-up is among what made the tensor.
static bool hasLookUp(const Evaluated &evaluated) {
  return operationName(evaluated.tensor->name()) == "embedding" ||
         any_of(evaluated.foldedFrom, [](StringRef name) { return operationName(name) == "embedding"; });
}

namespace {
class Search {
public:
  Search(UnfoldingGraph &graph, const Evaluated &evaluated) : graph(graph), tensor(*evaluated.tensor) {
    isReady = findLeaves(evaluated);
  }

  /// Lets nodes compute the tensor; false: nothing gives it, or several things that differ.
  bool run();

private:
  bool findLeaves(const Evaluated &evaluated);
  bool addLeaf(const TensorProto &leaf, bool isOptional, int64_t largest);
  void visit();
  void apply(size_t at, ArrayRef<unsigned> operands);
  void solve(StringRef operation, unsigned operand);
  bool matches(const Numbers &result);
  double chanceOfAll(size_t count) const;
  void found();
  std::vector<double> evaluateElsewhere() const;
  void write(ArrayRef<Step> expression);

  UnfoldingGraph &graph;
  const TensorProto &tensor;
  std::vector<double> goal;
  SmallVector<int64_t> dims;
  size_t numDistinct = 0;
  bool isReady = false, isOnly = true;
  SmallVector<std::string> names;    ///< of leaves
  SmallVector<unsigned> turned;      ///< leaves of which the file holds the transpose, by that one's name
  SmallVector<StringRef> operations; ///< in the program's order, as far as numbers tell
  bool hasNumbers = false;           ///< constants are among the notes
  bool knowsLast = false;            ///< the last of them is the last in the program
  // What is being tried.
  std::vector<Numbers> values;
  SmallVector<unsigned> uses;
  SmallVector<Step> steps;
  SmallVector<bool> isDone;
  size_t previous = 0; ///< the operation that was applied last
  unsigned newest = 0; ///< the first value that it gave
  int64_t cost = 0, tries = 0;
  double chance = 0; ///< that something gives the tensor and is not what the program computes
  // What gave the tensor.
  std::optional<SmallVector<Step>> best;
  std::vector<double> elsewhere;
};
} // namespace

bool Search::addLeaf(const TensorProto &leaf, bool isOptional, int64_t largest) {
  if (std::accumulate(leaf.dims().begin(), leaf.dims().end(), int64_t(1), std::multiplies<>()) > largest)
    return false;
  const std::vector<float> held = valuesOf(graph, leaf);
  if (held.empty())
    return false;
  Numbers numbers{{held.begin(), held.end()}, {leaf.dims().begin(), leaf.dims().end()}};
  for (double x : numbers.values)
    numbers.scale = std::max(numbers.scale, std::abs(x));
  values.push_back(std::move(numbers));
  uses.push_back(isOptional);
  names.push_back(leaf.name());
  return true;
}

/// Parameters, and values made of them that nodes compute again: what these were made of is not looked for.
bool Search::findLeaves(const Evaluated &evaluated) {
  const std::vector<float> held = valuesOf(graph, tensor);
  goal.assign(held.begin(), held.end());
  dims.assign(tensor.dims().begin(), tensor.dims().end());
  numDistinct = std::set<double>(goal.begin(), goal.end()).size();
  if (goal.empty() || int64_t(goal.size()) > largestLeaf)
    return false;
  StringSet<> within;
  SmallVector<const TensorProto *> computed;
  for (const auto &value : graph.getGraph().value_info())
    if (const TensorProto *leaf = is_contained(evaluated.foldedFrom, value.name()) && graph.isRemoved(value.name())
                                      ? graph.find(value.name())
                                      : nullptr) {
      computed.push_back(leaf);
      for (const std::string &from : findFoldedFrom(value))
        within.insert(from);
    }
  const bool looksUp = hasLookUp(evaluated);
  const int64_t largest = looksUp ? largestTable : largestLeaf;
  for (const SignatureEntry *entry : evaluated.parameters) {
    const TensorProto *leaf = graph.find(entry->target), *image = leaf ? nullptr : findTurned(graph, entry->target);
    if (image) {
      if (!addLeaf(*image, within.contains(entry->target), largest))
        return false;
      values.back() = *evaluate(Step{Step::Turn, "Transpose", {0}, {1, 0}}, values.back());
      turned.push_back(unsigned(names.size() - 1));
      continue;
    }
    if (!leaf || graph.isRemoved(entry->target) || !addLeaf(*leaf, within.contains(entry->target), largest))
      return false;
  }
  for (const TensorProto *leaf : computed)
    if (!addLeaf(*leaf, within.contains(leaf->name()), largest))
      return false;
  SmallVector<StringRef> found;
  // Exporters write softplus in steps, each with a quotient, and one of them is called like the whole.
  int64_t steps = count_if(evaluated.foldedFrom, [](StringRef name) { return name.starts_with("self_scaled"); });
  auto isLeaf = [&](StringRef name) {
    return is_contained(names, name) ||
           any_of(evaluated.parameters, [&](const SignatureEntry *entry) { return entry->target == name; });
  };
  for (StringRef name : evaluated.foldedFrom)
    if (!isLeaf(name) && !within.contains(name) && operationName(name) != "val" && !name.starts_with("scalar_tensor") &&
        !isStepOfSoftplus(name) && (operationName(name) != "softplus" || steps-- > 0))
      found.push_back(name);
  hasNumbers = any_of(evaluated.foldedFrom,
                      [](StringRef name) { return operationName(name) == "val" || name.starts_with("scalar_tensor"); });
  knowsLast = operationName(tensor.name()) != "val";
  sortStably(found, [](StringRef a, StringRef b) { return operationNumber(a) < operationNumber(b); });
  if (knowsLast)
    found.push_back(tensor.name());
  const bool normalizes = any_of(found, [](StringRef name) { return operationName(name) == "linalg_vector_norm"; }) &&
                          any_of(found, [](StringRef name) { return operationName(name) == "div"; });
  for (StringRef name : found)
    if (StringRef operation = operationName(name); !givesOperand(operation) &&
                                                   !(normalizes && isStepOfNormalize(operation)) &&
                                                   !(looksUp && makesPositions(operation))) {
      // A buffer of the program has a module's name, or is no operation that is known.
      if (countOperands(operation).second == 0)
        return false;
      operations.push_back(operation);
    }
  isDone.assign(operations.size(), false);
  return !operations.empty() && operations.size() <= mostOperations;
}

/// That `count` elements agree by chance; those that are equal count once.
double Search::chanceOfAll(size_t count) const { return std::pow(chanceOfNumber, double(std::min<size_t>(count, 3))); }

bool Search::matches(const Numbers &result) {
  chance += chanceOfAll(numDistinct);
  return result.values.size() == goal.size() && all_of(zip(result.values, goal), [&](auto pair) {
           return std::isfinite(std::get<0>(pair)) && isEvaluated(std::get<0>(pair), std::get<1>(pair), result.scale);
         });
}

/// What the steps give where leaves have other values.
std::vector<double> Search::evaluateElsewhere() const {
  std::vector<Numbers> others(values.begin(), values.begin() + ptrdiff_t(names.size()));
  for (Numbers &leaf : others)
    for (auto [i, x] : enumerate(leaf.values))
      x += 0.1 + 0.01 * double((i + leaf.values.size()) % 7);
  for (const Step &step : steps) {
    std::optional<Numbers> result = evaluate(step, others);
    if (!result)
      return {};
    others.push_back(std::move(*result));
  }
  return std::move(others.back().values);
}

void Search::found() {
  std::vector<double> here = evaluateElsewhere();
  if (!best) {
    best.emplace(steps.begin(), steps.end());
    elsewhere = std::move(here);
    return;
  }
  isOnly &= here.size() == elsewhere.size() && all_of(zip(here, elsewhere), [](auto pair) {
              return isEvaluated(std::get<0>(pair), std::get<1>(pair), 1);
            });
}

/// A last operation with a number that is not among those that are tried.
void Search::solve(StringRef operation, unsigned operand) {
  const Numbers &of = values[operand];
  if (of.values.size() != goal.size())
    return;
  const std::vector<float> from(of.values.begin(), of.values.end()), to(goal.begin(), goal.end());
  for (const ElementFunction &function : elementFunctions()) {
    const StringRef op = function.ops[0];
    if (operation != function.operation || !function.takesNumber() || op == "Pow")
      continue;
    std::optional<double> number = matchFunction(function, from, to);
    auto [written, digits] = asWritten(number.value_or(NAN));
    chance += chanceOfDigit * chanceOfAll(numDistinct - 1);
    if (std::isnan(written) || digits > (numDistinct > 1 ? 3 : 1))
      continue;
    Step step{Step::Pairs, function.ops[0], {operand}};
    step.number = written;
    step.numberFirst = function.other == ElementFunction::NumberFirst;
    steps.push_back(step);
    found();
    steps.pop_back();
  }
}

void Search::apply(size_t at, ArrayRef<unsigned> operands) {
  // Of two operations of which none reads the other, the order makes no difference.
  if (!steps.empty() && at < previous && all_of(operands, [&](unsigned operand) { return operand < newest; }))
    return;
  // The last one reads all that is left.
  if (llvm::count(isDone, false) == 0 &&
      any_of(seq<unsigned>(0, values.size()), [&](unsigned i) { return uses[i] == 0 && !is_contained(operands, i); }))
    return;
  const StringRef operation = operations[at];
  cost += countPlaces(operation, values[operands.front()]);
  if (cost > mostCost)
    return;
  const auto before = std::pair(previous, newest);
  for (unsigned operand : operands)
    ++uses[operand];
  std::tie(previous, newest) = std::pair(at, unsigned(values.size()));
  for (const SmallVector<Step, 2> &form : findForms(operation, operands, values, dims)) {
    const size_t first = values.size();
    for (const Step &step : form) {
      cost += costOf(step, values);
      if (++tries > mostTries || cost > mostCost)
        break;
      // A number needs one among the notes. What is no number, or zero everywhere, gives nothing that is told apart.
      const bool isNumbered = step.kind == Step::Pairs && step.number;
      std::optional<Numbers> result = isNumbered && !hasNumbers ? std::nullopt : evaluate(step, values);
      if (!result || !all_of(result->values, [](double x) { return std::isfinite(x); }) ||
          all_of(result->values, [](double x) { return x == 0; }))
        break;
      values.push_back(std::move(*result));
      uses.push_back(&step != &form.back());
      steps.push_back(step);
    }
    if (values.size() == first + form.size())
      visit();
    steps.truncate(steps.size() - (values.size() - first));
    uses.truncate(first);
    values.resize(first);
  }
  if (llvm::count(isDone, false) == 0 && operands.size() == 1 &&
      none_of(uses, [](unsigned count) { return count == 0; }))
    solve(operation, operands.front());
  std::tie(previous, newest) = before;
  for (unsigned operand : operands)
    --uses[operand];
}

void Search::visit() {
  if (tries > mostTries || cost > mostCost)
    return;
  const size_t left = size_t(llvm::count(isDone, false));
  const size_t unused = size_t(llvm::count(uses, 0u));
  if (left == 0) {
    // All that was made is needed.
    if (unused == 1 && uses.back() == 0 && matches(values.back()))
      found();
    return;
  }
  size_t joined = 1;
  for (auto [operation, done] : zip(operations, isDone))
    if (!done)
      joined += countOperands(operation).second - 1;
  if (unused > joined)
    return;
  for (size_t at = 0; at != operations.size(); ++at) {
    const StringRef operation = operations[at];
    // Of one kind, the program's order is known.
    const bool isFirst =
        none_of(seq<size_t>(0, at), [&](size_t i) { return !isDone[i] && operations[i] == operation; });
    if (isDone[at] || !isFirst || (knowsLast && at + 1 == operations.size() && left != 1))
      continue;
    isDone[at] = true;
    const auto [fewest, most] = countOperands(operation);
    const unsigned count = unsigned(values.size());
    for (unsigned a = 0; a != count; ++a) {
      if (fewest == 1)
        apply(at, {a});
      for (unsigned b = isSymmetric(operation) ? a : 0; most >= 2 && b != count; ++b) {
        if (fewest <= 2)
          apply(at, {a, b});
        for (unsigned c = 0; most >= 3 && c != count; ++c)
          apply(at, {a, b, c});
      }
    }
    isDone[at] = false;
  }
}

void Search::write(ArrayRef<Step> expression) {
  graph.setModule(moduleOf(names.front()));
  SmallVector<std::string> made(names);
  for (unsigned leaf : turned)
    made[leaf] = graph.addNode("Transpose", {names[leaf]});
  for (const Step &step : expression)
    made.push_back(addStep(graph, step, made));
  graph.addNode("Reshape", {made.back(), graph.addIntegers({int64_t(dims.size())}, dims)}, tensor.name());
  graph.remove(tensor);
}

bool Search::run() {
  if (!isReady)
    return false;
  visit();
  // What was not tried might give it, too.
  if (!best || !isOnly || tries > mostTries || cost > mostCost || chance > mostChance)
    return false;
  write(*best);
  return true;
}

bool lowtide::recoverExpression(UnfoldingGraph &graph, const Evaluated &evaluated) {
  return Search(graph, evaluated).run();
}
