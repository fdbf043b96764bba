//===- UnfoldSeveral.cpp - a parameter of which the file holds several functions ---===//
//
// `Normal(u, s.exp()).log_prob(x)` reads log(exp(s)) and 2 · exp(s)², both repeated for each sample; `w.softmax(0)[i]`
// reads one number after another. The exporter evaluates all of them, and the parameter is gone. One of the tensors
// gives it back where it has an inverse, and the others are computed from it: values that the program computes once go
// by one name in all of them, which tells the order of functions.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "TableValues.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Support/StableSort.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::TensorProto;

namespace {
/// A tensor that was evaluated from one parameter, and perhaps repeated for each sample.
struct Image {
  const Evaluated *evaluated;
  std::vector<float> values;   ///< of one sample
  SmallVector<int64_t> dims;   ///< of one sample
  SmallVector<StringRef> made; ///< values of the program between the parameter and the tensor, itself last
  bool isRepeated = false;

  const TensorProto &tensor() const { return *evaluated->tensor; }
};

/// Functions, one after the other, each with its number.
using Chain = SmallVector<std::pair<const ElementFunction *, double>>;

/// More orders than of these are not tried.
constexpr size_t mostFunctions = 4;
} // namespace

/// Whether an operation gives equal rows, one for each sample.
static bool repeatsRows(StringRef name) {
  return is_contained({"expand", "expand_as", "repeat", "tile", "broadcast_to"}, operationName(name));
}

static std::optional<Image> makeImage(const UnfoldingGraph &graph, const Evaluated &evaluated, int64_t samples) {
  const TensorProto &tensor = *evaluated.tensor;
  std::string bytes = tensor.data_type() == TensorProto::FLOAT ? graph.read(tensor).value_or("") : "";
  Image image{&evaluated, {}, {tensor.dims().begin(), tensor.dims().end()}, {}};
  bool repeats = repeatsRows(tensor.name());
  for (StringRef name : evaluated.foldedFrom)
    if (repeatsRows(name))
      repeats = true;
    else if (isGather(name) || isJoin(name)) // of one of them
      return std::nullopt;
    else if (name != evaluated.parameters.front()->target && !movesElements(name) &&
             !operationName(name).starts_with("scalar_tensor"))
      image.made.push_back(name);
  if (!movesElements(tensor.name()) && !repeatsRows(tensor.name()))
    image.made.push_back(tensor.name());
  if (repeats) {
    if (image.dims.size() < 2 || image.dims.front() != samples || samples < 2)
      return std::nullopt;
    const size_t row = bytes.size() / size_t(samples);
    if (StringRef(bytes).drop_front(row) != StringRef(bytes).drop_back(row))
      return std::nullopt;
    image.dims.erase(image.dims.begin());
    bytes.resize(row);
    image.isRepeated = true;
  }
  image.values = asFloats(bytes);
  if (image.values.empty() || image.made.empty() || image.made.size() > mostFunctions)
    return std::nullopt;
  return image;
}

/// The functions in the image's own order if it is certain, for there is one, or two of which one came last, and all
/// have inverses.
static std::optional<SmallVector<const ElementFunction *>> findInvertible(const Image &image) {
  if (image.made.size() > 2 || (image.made.size() == 2 && image.made.back() != image.tensor().name()))
    return std::nullopt;
  SmallVector<const ElementFunction *> functions;
  for (StringRef name : image.made) {
    functions.push_back(findElementFunction(operationName(name)));
    if (!functions.back() || !functions.back()->inverse)
      return std::nullopt;
  }
  return functions;
}

static std::vector<float> evaluate(ArrayRef<std::pair<const ElementFunction *, double>> chain,
                                   std::vector<float> values) {
  for (float &value : values) {
    double x = value;
    for (auto [function, number] : chain)
      x = function->evaluate(x, number);
    value = float(x);
  }
  return values;
}

/// The functions called `made`, in this order, that make `values` of `parameter`; one of them may take a number, which
/// is solved for. `digits` is that of the number.
static std::optional<Chain> matchOrder(ArrayRef<StringRef> made, ArrayRef<float> parameter, ArrayRef<float> values,
                                       int &digits) {
  for (size_t numbered = 0; numbered <= made.size(); ++numbered) { // the one that takes a number; none at last
    std::vector<float> between(parameter.begin(), parameter.end());
    Chain chain;
    bool fits = true;
    for (size_t i = 0; fits && i != std::min(numbered, made.size()); ++i) {
      const ElementFunction *function = findElementFunction(operationName(made[i]));
      fits = function && function->other != ElementFunction::Sum;
      if (fits) {
        chain.push_back({function, 0});
        between = evaluate(chain.back(), std::move(between));
      }
    }
    if (!fits)
      continue;
    std::vector<float> wanted(values.begin(), values.end());
    Chain after;
    for (size_t i = made.size(); fits && i-- > numbered + 1;) {
      const ElementFunction *function = findElementFunction(operationName(made[i]));
      fits = function && function->inverse;
      if (!fits)
        break;
      for (float &value : wanted)
        value = float(function->inverse(value));
      after.insert(after.begin(), {function, 0});
    }
    if (!fits)
      continue;
    if (numbered == made.size()) {
      if (!all_of(zip(between, wanted), [](auto p) { return isEvaluated(std::get<0>(p), std::get<1>(p)); }))
        continue;
      digits = 0;
      return chain;
    }
    // The largest element tells the number best; forward, all must fit.
    const size_t largest = size_t(
        std::max_element(between.begin(), between.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }) -
        between.begin());
    for (const ElementFunction &function : elementFunctions()) {
      if (!function.takesNumber() || operationName(made[numbered]) != function.operation)
        continue;
      auto [number, found] = asWritten(function.solve(between[largest], wanted[largest]));
      if (std::isnan(number))
        continue;
      Chain whole = chain;
      whole.push_back({&function, number});
      whole.append(after);
      if (!all_of(zip(evaluate(whole, parameter.vec()), values),
                  [](auto p) { return isEvaluated(std::get<0>(p), std::get<1>(p)); }))
        continue;
      digits = found;
      return whole;
    }
  }
  return std::nullopt;
}

/// What makes the image of the parameter; the functions that made `known` come first in it. nullopt: nothing does, or
/// several things that differ.
static std::optional<Chain> matchChain(const Image &image, ArrayRef<float> parameter, ArrayRef<StringRef> known) {
  SmallVector<StringRef> order(known.begin(), known.end());
  for (StringRef name : image.made)
    if (!is_contained(known, name) && name != image.tensor().name())
      order.push_back(name);
  if (is_contained(image.made, image.tensor().name()) && !is_contained(known, image.tensor().name()))
    order.push_back(image.tensor().name());
  if (order.size() != image.made.size())
    return std::nullopt; // not all of `known` is in it
  auto first = order.begin() + known.size();
  auto last = order.end() - (order.back() == image.tensor().name() && first != order.end());
  std::vector<float> moved(parameter.begin(), parameter.end());
  for (auto [i, value] : enumerate(moved))
    value += 0.1f + 0.01f * float(i % 7);
  std::optional<Chain> best;
  int fewest = 9;
  bool isOnly = true;
  std::sort(first, last);
  do {
    int digits = 9;
    std::optional<Chain> chain = matchOrder(order, parameter, image.values, digits);
    if (!chain || digits > fewest)
      continue;
    if (best && digits == fewest)
      isOnly &= all_of(zip(evaluate(*best, moved), evaluate(*chain, moved)),
                       [](auto p) { return isEvaluated(std::get<0>(p), std::get<1>(p)); });
    else
      isOnly = true;
    best = chain;
    fewest = digits;
  } while (std::next_permutation(first, last));
  return isOnly ? best : std::nullopt;
}

/// Lets nodes make the image's tensor of the parameter.
static void compute(UnfoldingGraph &graph, const Image &image, const std::string &parameter, const Chain &chain) {
  graph.setModule(moduleOf(parameter));
  std::string value = parameter;
  for (auto [function, number] : chain)
    value = addFunction(graph, *function, number, value);
  const TensorProto &tensor = image.tensor();
  const SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  const std::string rows =
      graph.addNode("Reshape", {value, graph.addIntegers({int64_t(image.dims.size())}, image.dims)});
  graph.addNode("Expand", {rows, graph.addIntegers({int64_t(dims.size())}, dims)}, tensor.name());
  graph.remove(tensor);
}

/// Adds parameter `name`, which the file does not hold, with `values`.
static void addParameter(UnfoldingGraph &graph, const std::string &name, ArrayRef<int64_t> dims, ArrayRef<float> values,
                         std::string how) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  graph.addInitializer(name, dims, TensorProto::FLOAT, std::move(bytes), {"", std::move(how), true});
}

bool lowtide::unfoldSeveral(UnfoldingGraph &graph, ArrayRef<const Evaluated *> evaluated, int64_t samples) {
  const std::string &name = evaluated.front()->parameters.front()->target;
  const TensorProto *held = graph.find(name);
  SmallVector<Image> images;
  for (const Evaluated *each : evaluated)
    if (std::optional<Image> image = makeImage(graph, *each, samples))
      images.push_back(std::move(*image));
    else
      return false;
  std::vector<float> parameter;
  SmallVector<int64_t> dims;
  SmallVector<StringRef> known;
  std::string how;
  if (held) {
    parameter = valuesOf(graph, *held);
  } else {
    const auto *base = find_if(images, [](const Image &image) { return bool(findInvertible(image)); });
    if (base == images.end() || (images.size() == 1 && !base->isRepeated))
      return false;
    parameter = base->values;
    for (const ElementFunction *function : reverse(*findInvertible(*base)))
      for (float &value : parameter)
        value = float(function->inverse(value));
    if (!all_of(parameter, [](float value) { return std::isfinite(value); }))
      return false;
    dims = base->dims;
    known = base->made;
    how = "the exporter evaluated functions of it, " + base->tensor().name() + " among them" +
          (base->isRepeated ? ", and repeated them for each sample" : "");
  }
  SmallVector<Chain> chains;
  for (const Image &image : images) {
    // What both compute, and go by one name: the first so many functions.
    SmallVector<StringRef> shared;
    for (StringRef value : known)
      if (is_contained(image.made, value))
        shared.push_back(value);
      else
        break;
    if (image.values.size() != parameter.size())
      return false;
    std::optional<Chain> chain = matchChain(image, parameter, shared);
    if (!chain)
      return false;
    chains.push_back(std::move(*chain));
  }
  if (!held)
    addParameter(graph, name, dims, parameter, std::move(how));
  for (auto [image, chain] : zip(images, chains))
    compute(graph, image, name, chain);
  return true;
}

/// The one dimension along which numbers add up to one; nullopt: none, or several.
static std::optional<int64_t> findNormalized(ArrayRef<float> values, ArrayRef<int64_t> dims) {
  std::optional<int64_t> found;
  size_t inner = 1;
  for (size_t axis = dims.size(); axis-- > 0; inner *= size_t(dims[axis])) {
    const size_t size = size_t(dims[axis]);
    std::vector<double> sums(values.size() / size, 0);
    for (auto [at, value] : enumerate(values))
      sums[at / (size * inner) * inner + at % inner] += value;
    if (size < 2 || !all_of(sums, [](double sum) { return std::abs(sum - 1) <= 1e-5; }))
      continue;
    if (found)
      return std::nullopt;
    found = int64_t(axis);
  }
  return found;
}

/// Distributions of a table: `w.softmax(-1)`.
static bool unfoldDistributions(UnfoldingGraph &graph, const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  const std::string &name = evaluated.parameters.front()->target;
  const SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  std::vector<float> values = valuesOf(graph, tensor);
  if (dims.size() < 2 || values.empty() || evaluated.parameters.size() != 1 ||
      !is_contained({"softmax", "_softmax"}, operationName(tensor.name())) ||
      !all_of(evaluated.foldedFrom, [&](StringRef from) { return from == name || operationName(from) == "val"; }))
    return false;
  const std::optional<int64_t> axis = findNormalized(values, dims);
  for (float &value : values)
    value = float(std::log(double(value)));
  if (!axis || !all_of(values, [](float value) { return std::isfinite(value); }))
    return false;
  addParameter(graph, name, dims, values,
               "the exporter evaluated its softmax, which tells it up to a number that is added to all elements of a "
               "distribution and changes no gradient");
  graph.setModule(moduleOf(name));
  graph.addNode("Softmax", {name}, tensor.name());
  graph.setAttribute("axis", *axis);
  graph.remove(tensor);
  return true;
}

bool lowtide::unfoldMixture(UnfoldingGraph &graph, ArrayRef<const Evaluated *> evaluated) {
  const std::string &name = evaluated.front()->parameters.front()->target;
  if (graph.find(name))
    return false;
  if (evaluated.size() == 1 && unfoldDistributions(graph, *evaluated.front()))
    return true;
  struct Part {
    const TensorProto *tensor;
    std::vector<float> values;
  };
  SmallVector<Part> parts;
  for (const Evaluated *each : evaluated) {
    SmallVector<StringRef> made;
    for (StringRef value : each->foldedFrom)
      if (value != name && !movesElements(value))
        made.push_back(value);
    if (!movesElements(each->tensor->name()))
      made.push_back(each->tensor->name());
    Part part{each->tensor, valuesOf(graph, *each->tensor)};
    if (made.size() != 1 || !is_contained({"softmax", "_softmax"}, operationName(made.front())) ||
        any_of(each->foldedFrom, repeatsRows) || repeatsRows(each->tensor->name()) || part.values.empty() ||
        (evaluated.size() > 1 && part.values.size() != 1))
      return false;
    parts.push_back(std::move(part));
  }
  // Parts are read in their order.
  sortStably(parts, [](const Part &a, const Part &b) {
    return operationNumber(a.tensor->name()) < operationNumber(b.tensor->name());
  });
  std::vector<float> values;
  double total = 0;
  for (const Part &part : parts)
    for (float value : part.values) {
      total += value;
      values.push_back(float(std::log(double(value))));
    }
  if (values.size() < 2 || std::abs(total - 1) > 1e-5 ||
      !all_of(values, [](float value) { return std::isfinite(value); }))
    return false;
  const int64_t count = int64_t(values.size());
  addParameter(graph, name, {count}, values,
               "the exporter evaluated its softmax, which tells it up to a number that is added to all elements and "
               "changes no gradient" +
                   std::string(parts.size() > 1 ? "; parts are taken to be read in their order" : ""));
  graph.setModule(moduleOf(name));
  const std::string mixture = graph.addNode("Softmax", {name});
  graph.setAttribute("axis", 0);
  for (auto [i, part] : enumerate(parts)) {
    const SmallVector<int64_t> dims(part.tensor->dims().begin(), part.tensor->dims().end());
    const std::string taken =
        parts.size() > 1 ? graph.addNode("Gather", {mixture, graph.addIntegers({1}, {int64_t(i)})}) : mixture;
    graph.addNode("Reshape", {taken, graph.addIntegers({int64_t(dims.size())}, dims)}, part.tensor->name());
    graph.remove(*part.tensor);
  }
  return true;
}
