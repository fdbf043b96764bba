//===- NamedFunctions.cpp - functions of parameters in files without notes ---------===//
//
// No note says what an evaluated tensor was made of. Where the file holds the parameter as well (`mix` and `1 - mix`, a
// weight and the lengths of its rows that `normalize` divides by, two weights and their difference), the values tell:
// they are what the function gives, and differ among each other, so that they are not so by chance.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "Expressions.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <cmath>
#include <map>
#include <set>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

namespace {
/// Functions of parameters in a file without notes.
class Images {
public:
  Images(UnfoldingGraph &graph, GraphProto &proto, ArrayRef<const TensorProto *> parameters)
      : graph(graph), proto(proto) {
    for (const TensorProto *tensor : parameters)
      add(tensor->name(), *tensor);
    // Merged parameters keep their names by copies.
    for (const NodeProto &node : proto.node())
      if (const TensorProto *tensor = node.op_type() == "Identity" ? graph.find(node.input(0)) : nullptr)
        if (is_contained(parameters, tensor))
          add(node.output(0), *tensor);
  }

  /// Whether nodes compute the image from now on.
  bool unfold(const TensorProto &image);
  /// The same of all parameters of a program, or several, as one vector: what a penalty measures.
  bool unfoldJoined(const TensorProto &image);
  /// Images of `tensor` are looked for, too, under this name.
  void add(const std::string &name, const TensorProto &tensor) {
    if (tensor.data_type() == TensorProto::FLOAT)
      named[elementsOf(tensor)].push_back({name, &tensor});
  }

private:
  struct Named {
    std::string name;
    const TensorProto *tensor;
  };
  struct Match {
    const Named *parameter = nullptr;
    const ElementFunction *function = nullptr;
    double number = 0;
    /// In place of a function of each element: one after the other, of the parameters and of what they give.
    std::vector<Step> steps;
    const Named *other = nullptr; ///< a second parameter
  };

  /// A way to make lengths or sums of a tensor, and what it makes.
  struct Reduction {
    std::vector<Step> steps;
    Numbers made;
  };

  static int64_t elementsOf(const TensorProto &tensor) {
    return checkedElements({tensor.dims().data(), size_t(tensor.dims_size())}).value_or(0);
  }
  ArrayRef<float> valuesOnce(const TensorProto &tensor) {
    auto [at, isNew] = held.try_emplace(&tensor);
    if (isNew)
      at->second = valuesOf(graph, tensor);
    return at->second;
  }
  ArrayRef<Reduction> reduceOnce(const TensorProto &tensor, int64_t elements);
  Match find(const TensorProto &image, std::optional<std::string> module);
  Match findReduction(const TensorProto &image, std::optional<std::string> module);
  Match findPair(const TensorProto &image);
  void compute(const TensorProto &image, StringRef value, const Match &match);

  UnfoldingGraph &graph;
  GraphProto &proto;
  std::map<int64_t, std::vector<Named>> named;
  std::map<const TensorProto *, std::vector<float>> held;
  std::map<std::pair<const TensorProto *, int64_t>, std::vector<Reduction>> reduced;
};
} // namespace

/// What the image is to a reader in `module`: a function of a parameter of that module rather than of another's.
Images::Match Images::find(const TensorProto &image, std::optional<std::string> module) {
  // `/block/Sub_output_0` says which operator; `onnx::Mul_12`, which one reads it.
  StringRef op = findEvaluatedOperator(image.name());
  ArrayRef<float> values = valuesOnce(image);
  Match found;
  for (const Named &parameter : named[elementsOf(image)]) {
    ArrayRef<float> of = valuesOnce(*parameter.tensor);
    bool isOwn = moduleOf(parameter.name) == module;
    if (of.empty() || of.size() != values.size() || (found.function && !isOwn))
      continue;
    for (const ElementFunction &function : elementFunctions()) {
      bool isNamed = op.empty() || op == function.operators().back();
      std::optional<double> number = isNamed ? matchFunction(function, of, values) : std::nullopt;
      // The other part of a mixture is one even where the numbers alone would not tell. Ones may as well be 1 + g of
      // another parameter of zeros, unless their name tells.
      bool isRest = number == 1 && function.other == ElementFunction::NumberFirst &&
                    StringRef(function.ops[0]) == "Sub" && (!op.empty() || of.front() != 0);
      if (!number || !(isTelling(function, of, values) || (isOwn && isRest)))
        continue;
      found = {&parameter, &function, *number};
      if (isOwn)
        return found;
      break;
    }
  }
  return found;
}

/// Sums of elements, of their sizes or squares over some dimensions, and lengths: all ways to make them.
static std::vector<std::vector<Step>> findReductions(ArrayRef<int64_t> dims, int64_t elements) {
  std::vector<std::vector<Step>> found;
  for (unsigned set = 1; dims.size() <= 4 && set < 1u << dims.size(); ++set) {
    SmallVector<int64_t> axes;
    int64_t left = 1;
    for (size_t axis = 0; axis != dims.size(); ++axis)
      if (set >> axis & 1)
        axes.push_back(int64_t(axis));
      else
        left *= dims[axis];
    if (left != elements)
      continue;
    auto reduce = [&](const char *op, unsigned of) {
      Step step{Step::Reduce, op, {of}, axes};
      step.keepsDims = true;
      return step;
    };
    found.push_back({reduce("ReduceL2", 0)});
    found.push_back({Step{Step::Function, "abs", {0}}, reduce("ReduceSum", 1)});
    found.push_back({Step{Step::Pairs, "Mul", {0, 0}}, reduce("ReduceSum", 1)});
    found.push_back({reduce("ReduceSum", 0)});
  }
  return found;
}

/// What `tensor` gives of so many elements; of a tensor without values nothing. Each image is compared with it.
ArrayRef<Images::Reduction> Images::reduceOnce(const TensorProto &tensor, int64_t elements) {
  auto [at, isNew] = reduced.try_emplace({&tensor, elements});
  ArrayRef<float> of = isNew ? valuesOnce(tensor) : ArrayRef<float>();
  if (of.empty())
    return at->second;
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  for (std::vector<Step> &steps : findReductions(dims, elements)) {
    std::vector<Numbers> made{{{of.begin(), of.end()}, dims}};
    for (const Step &step : steps)
      made.push_back(*evaluate(step, made));
    at->second.push_back({std::move(steps), std::move(made.back())});
  }
  return at->second;
}

/// Whether there are more than `count` different values.
static bool differ(ArrayRef<float> values, size_t count) {
  std::set<float> seen;
  return any_of(values, [&](float value) { return seen.insert(value).second && seen.size() > count; });
}

/// What the image is to a reader in `module`, as lengths of a parameter's rows or the like. A number by itself is only
/// known as one of a parameter of that module.
Images::Match Images::findReduction(const TensorProto &image, std::optional<std::string> module) {
  ArrayRef<float> values = valuesOnce(image);
  // A length of zero has no gradient that nodes would compute.
  if (is_contained(values, 0.0f))
    return {};
  const bool areDifferent = differ(values, 1);
  if (!areDifferent && (values.size() != 1 || !std::isnan(asWritten(values.front()).first)))
    return {};
  Match found;
  for (const auto &[elements, parameters] : named)
    for (const Named &parameter : parameters) {
      const bool isOwn = moduleOf(parameter.name) == module;
      if (elements <= int64_t(values.size()) || elements > largestCompared || (!areDifferent && !isOwn) ||
          (found.parameter && !isOwn))
        continue;
      for (const auto &[steps, last] : reduceOnce(*parameter.tensor, int64_t(values.size()))) {
        if (!all_of(zip(last.values, values),
                    [&](auto pair) { return isEvaluated(std::get<0>(pair), std::get<1>(pair), last.scale); }))
          continue;
        found = {&parameter, nullptr, 0, steps};
        if (isOwn)
          return found;
        break;
      }
    }
  return found;
}

/// Whether there are several values, of which so many are no other two tensors' by chance.
static bool differ(ArrayRef<float> values) { return differ(values, 2); }

/// What the image is as a difference, sum, product or quotient of two parameters of the same dimensions, whose values
/// differ: two layers that a loss compares.
Images::Match Images::findPair(const TensorProto &image) {
  static constexpr const char *pairs[] = {"Sub", "Add", "Mul", "Div"};
  const StringRef made = findEvaluatedOperator(image.name());
  ArrayRef<float> values = valuesOnce(image);
  auto dimsOf = [](const Named &of) { return ArrayRef(of.tensor->dims().data(), size_t(of.tensor->dims_size())); };
  if (!differ(values))
    return {};
  for (const Named &parameter : named[elementsOf(image)])
    for (const Named &other : named[elementsOf(image)]) {
      if (&other == &parameter || dimsOf(parameter) != dimsOf(other))
        continue;
      ArrayRef<float> a = valuesOnce(*parameter.tensor), b = valuesOnce(*other.tensor);
      for (const char *op : pairs) {
        auto isMade = [&](size_t i) {
          const double x = a[i], y = b[i];
          const StringRef name = op;
          const double expected = name == "Sub" ? x - y : name == "Add" ? x + y : name == "Mul" ? x * y : x / y;
          return float(expected) == values[i];
        };
        if ((!made.empty() && made != op) || a.size() != values.size() || b.size() != values.size() ||
            !all_of(seq<size_t>(0, values.size()), isMade) || !differ(a) || !differ(b))
          continue;
        return {&parameter, nullptr, 0, {Step{Step::Pairs, op, {0, 1}}}, &other};
      }
    }
  return {};
}

/// Lets nodes compute `value`, of the dimensions of `image`.
void Images::compute(const TensorProto &image, StringRef value, const Match &match) {
  const std::string &parameter = match.parameter->name;
  graph.setModule(moduleOf(parameter));
  SmallVector<std::string> made{parameter};
  if (match.other)
    made.push_back(match.other->name);
  if (match.function)
    made.push_back(addFunction(graph, *match.function, match.number, parameter));
  for (const Step &step : match.steps)
    made.push_back(addStep(graph, step, made));
  SmallVector<int64_t> dims(image.dims().begin(), image.dims().end());
  graph.addNode("Reshape", {made.back(), graph.addIntegers({int64_t(dims.size())}, dims)}, value);
}

bool Images::unfold(const TensorProto &image) {
  if (elementsOf(image) > largestCompared || image.data_type() != TensorProto::FLOAT || valuesOnce(image).empty())
    return false;
  struct Reader {
    int node, operand;
    Match match;
  };
  std::vector<Reader> readers;
  int numNodes = proto.node_size();
  // Merged images keep their names by copies, too.
  StringSet<> names;
  names.insert(image.name());
  for (const NodeProto &node : proto.node())
    if (node.op_type() == "Identity" && node.input(0) == image.name())
      names.insert(node.output(0));
  for (int i = 0; i != numNodes; ++i)
    for (auto [operand, name] : enumerate(proto.node(i).input()))
      if (names.contains(name) && proto.node(i).op_type() != "Identity") {
        const std::optional<std::string> module = findModulePath(proto.node(i));
        readers.push_back({i, int(operand), find(image, module)});
        if (Match &match = readers.back().match; !match.parameter)
          match = findReduction(image, module);
        if (Match &match = readers.back().match; !match.parameter)
          match = findPair(image);
        if (!readers.back().match.parameter)
          return false;
      }
  // The first reader's value keeps the image's name: graphs within the graph may read it, too.
  std::map<const Named *, std::string> computed;
  for (const Reader &reader : readers) {
    auto [value, isNew] = computed.try_emplace(reader.match.parameter);
    if (isNew) {
      value->second = computed.size() == 1 ? image.name() : (image.name() + "@" + reader.match.parameter->name);
      compute(image, value->second, reader.match);
    }
    proto.mutable_node(reader.node)->set_input(reader.operand, value->second);
  }
  if (!readers.empty())
    graph.remove(image);
  return !readers.empty();
}

bool Images::unfoldJoined(const TensorProto &image) {
  ArrayRef<float> values = valuesOnce(image);
  if (image.dims_size() != 1 || values.empty())
    return false;
  std::vector<const Named *> parts;
  for (size_t at = 0; at != values.size();) {
    // The longest that fits: a vector of equal numbers may begin a matrix, too.
    const Named *found = nullptr;
    for (const auto &[elements, parameters] : named)
      for (const Named &parameter : parameters) {
        if (size_t(elements) > values.size() - at || elements == 0 || is_contained(parts, &parameter))
          continue;
        ArrayRef<float> of = valuesOnce(*parameter.tensor);
        if (of == values.slice(at, size_t(elements)) && (!found || elementsOf(*found->tensor) < elements))
          found = &parameter;
      }
    if (!found)
      return false;
    parts.push_back(found);
    at += size_t(elementsOf(*found->tensor));
  }
  if (parts.size() < 2 || none_of(parts, [&](const Named *part) { return differ(valuesOnce(*part->tensor)); }))
    return false;
  SmallVector<std::string> flat;
  for (const Named *part : parts) {
    graph.setModule(moduleOf(part->name));
    flat.push_back(graph.addNode("Reshape", {part->name, graph.addIntegers({1}, {-1})}));
  }
  graph.addNode("Concat", flat, image.name());
  graph.setAttribute("axis", int64_t(0));
  graph.remove(image);
  return true;
}

void lowtide::recoverFunctions(UnfoldingGraph &graph, GraphProto &proto, ArrayRef<const TensorProto *> evaluated,
                               ArrayRef<const TensorProto *> parameters) {
  Images images(graph, proto, parameters);
  for (const TensorProto *image : evaluated)
    // What is no image may be a parameter itself, of which there are images.
    if (!images.unfold(*image) && !images.unfoldJoined(*image))
      images.add(image->name(), *image);
}
