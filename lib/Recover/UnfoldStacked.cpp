//===- UnfoldStacked.cpp - a value that was made of a parameter once, read part by part ------===//
//
// `b = table[:, positions]`, and head i adds `b[i]`; `g = gate.sigmoid()`, and branch i is multiplied by `g[i]`. The
// exporter evaluates each part, and neither the parameter nor `b` is in the file. All parts name the value that they
// are taken of. It is put together again, and the rules for a value that was evaluated whole go on from there. Which
// part is which, the index tells where the file still has it; otherwise they are taken to be read in their order. They
// are taken to be along the first dimension.
//
// Learned keys and values are one parameter, too (`k, v = self.mem_kv`), of which each is repeated for every sample.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

#include <cstring>
#include <set>

using namespace llvm;
using namespace lowtide;
using ::onnx::TensorProto;

/// Whether an operation takes what is at one index of a dimension, which is gone from the result.
static bool takesOne(StringRef name) { return is_contained({"select", "getitem", "unbind"}, operationName(name)); }

/// Whether an operation gives rows at positions, or a function of each element that has an inverse.
static bool makesValue(StringRef name) {
  const ElementFunction *function = findElementFunction(operationName(name));
  return isGather(name) || (function && function->inverse);
}

/// The value of the program that one part was taken of; empty: none, or what else was done is not known.
static StringRef findWhole(const Evaluated &evaluated) {
  StringRef whole;
  bool takes = takesOne(evaluated.tensor->name());
  auto isViewed = [](StringRef name) {
    return isView(name) || is_contained({"val", "unsqueeze", "squeeze"}, operationName(name));
  };
  if (!takes && !isViewed(evaluated.tensor->name()))
    return "";
  bool computes = false; // positions, or something else
  for (StringRef name : evaluated.foldedFrom) {
    if (takesPart(name) && (!takesOne(name) || takes))
      return "";
    takes |= takesOne(name);
    computes |= name != evaluated.parameters.front()->target && !takesOne(name) && !makesValue(name) && !isViewed(name);
    if (!makesValue(name))
      continue;
    if (!whole.empty())
      return "";
    whole = name;
  }
  return takes && (!computes || isGather(whole)) ? whole : "";
}

/// The index at which the part was taken: the only operand of its own, where the file holds it.
static std::optional<int64_t> findIndex(const UnfoldingGraph &graph, const Evaluated &part,
                                        const std::set<std::string> &shared) {
  const std::string *own = nullptr;
  for (const std::string &name : part.foldedFrom)
    if (!shared.count(name) && operationName(name) == "val") {
      if (own)
        return std::nullopt;
      own = &name;
    }
  const TensorProto *index = own ? graph.find(*own) : nullptr;
  if (!index || index->data_type() != TensorProto::INT64 || operationName(part.tensor->name()) != "select")
    return std::nullopt;
  const std::string bytes = graph.read(*index).value_or("");
  int64_t value = -1;
  if (bytes.size() == sizeof(value))
    std::memcpy(&value, bytes.data(), sizeof(value));
  return value >= 0 ? std::optional(value) : std::nullopt;
}

/// Each element as the number of its first occurrence; the second is how many there are.
static std::pair<std::vector<int64_t>, int64_t> numberElements(StringRef bytes, size_t width) {
  StringMap<int64_t> seen;
  std::vector<int64_t> numbers;
  for (size_t at = 0; at != bytes.size(); at += width)
    numbers.push_back(seen.try_emplace(bytes.substr(at, width), int64_t(seen.size())).first->second);
  return {numbers, int64_t(seen.size())};
}

/// Whether all parts read their rows at the same positions, some of them several times.
static bool readSamePositions(ArrayRef<std::string> parts, size_t width) {
  const auto [first, count] = numberElements(parts.front(), width);
  return count > 1 && count < int64_t(first.size()) &&
         all_of(
             parts,
             [&, &first = first](const std::string &part) { return numberElements(part, width).first == first; });
}

/// Whether attention reads the part, which it scaled before.
static bool isScaled(const UnfoldingGraph &graph, StringRef part) {
  return any_of(graph.getGraph().node(), [&](const ::onnx::NodeProto &node) {
    return node.op_type() == "MatMul" && is_contained(node.input(), part) && mayScale(part, node);
  });
}

/// Puts the value `whole` together of all its parts; nullopt: they do not tell it.
static std::optional<Evaluated> stack(UnfoldingGraph &graph, StringRef whole, ArrayRef<const Evaluated *> parts,
                                      std::vector<StackedPart> &stacked) {
  const TensorProto &first = *parts.front()->tensor;
  const SmallVector<int64_t> dims(first.dims().begin(), first.dims().end());
  std::set<std::string> shared(parts.front()->foldedFrom.begin(), parts.front()->foldedFrom.end());
  std::vector<std::string> bytes;
  for (const Evaluated *part : parts) {
    const TensorProto &tensor = *part->tensor;
    if (tensor.data_type() != first.data_type() ||
        SmallVector<int64_t>(tensor.dims().begin(), tensor.dims().end()) != dims || isScaled(graph, tensor.name()))
      return std::nullopt;
    std::erase_if(shared, [&](const std::string &name) { return !is_contained(part->foldedFrom, name); });
    bytes.push_back(graph.read(tensor).value_or(""));
    if (bytes.back().empty())
      return std::nullopt;
  }
  if (isGather(whole) && !readSamePositions(bytes, findElementType(first.data_type())->bytes))
    return std::nullopt;
  // Their places, and whether the file tells all of them.
  SmallVector<std::pair<int64_t, size_t>> order;
  std::set<int64_t> places;
  for (auto [i, part] : enumerate(parts))
    if (std::optional<int64_t> place = findIndex(graph, *part, shared)) {
      order.push_back({*place, i});
      places.insert(*place);
    }
  const bool isKnown = places.size() == parts.size();
  if (!isKnown) {
    order.clear();
    for (auto [i, part] : enumerate(parts)) {
      SmallVector<StringRef> takes;
      for (StringRef name : part->foldedFrom)
        if (takesOne(name))
          takes.push_back(name);
      order.push_back({operationNumber(takes.empty() ? StringRef(part->tensor->name()) : takes.front()), i});
    }
  }
  llvm::sort(order);
  const std::string &name = parts.front()->parameters.front()->target;
  // Which dimension they are along is told of numbers alone.
  const bool isGuess = !isKnown || order.back().first + 1 != int64_t(order.size()) || !dims.empty();
  std::string data;
  for (auto [i, at] : enumerate(order)) {
    data += bytes[at.second];
    stacked.push_back({parts[at.second]->tensor->name(), whole.str(), name, int64_t(i), isGuess});
  }
  SmallVector<int64_t> all(dims);
  all.insert(all.begin(), int64_t(parts.size()));
  shared.erase(whole.str());
  const std::vector<std::string> foldedFrom(shared.begin(), shared.end());
  graph.addEvaluated(whole, all, first.data_type(), std::move(data), foldedFrom);
  return Evaluated{graph.find(whole), foldedFrom, parts.front()->parameters};
}

std::vector<StackedPart> lowtide::stackParts(UnfoldingGraph &graph, std::vector<Evaluated> &images,
                                             StringMap<Evaluated> &evaluated) {
  MapVector<const SignatureEntry *, SmallVector<const Evaluated *>> groups;
  for (const Evaluated &image : images)
    for (const SignatureEntry *entry : image.parameters)
      groups[entry].push_back(&image);
  StringSet<> values;
  for (const auto &node : graph.getGraph().node())
    values.insert(node.output().begin(), node.output().end());
  std::vector<StackedPart> stacked;
  for (const auto &[entry, parts] : groups) {
    const std::string whole = findWhole(*parts.front()).str();
    auto isPart = [&](const Evaluated *image) {
      return image->parameters.size() == 1 && !graph.isRemoved(image->tensor->name()) && findWhole(*image) == whole;
    };
    if (parts.size() < 2 || whole.empty() || graph.find(entry->target) || graph.find(whole) || values.contains(whole) ||
        !all_of(parts, isPart))
      continue;
    if (std::optional<Evaluated> together = stack(graph, whole, parts, stacked))
      evaluated[whole] = std::move(*together);
  }
  StringSet<> taken;
  for (const StackedPart &part : stacked)
    taken.insert(part.tensor);
  llvm::erase_if(images, [&](const Evaluated &image) { return taken.contains(image.tensor->name()); });
  return stacked;
}

void lowtide::takeStackedParts(UnfoldingGraph &graph, ArrayRef<StackedPart> parts) {
  for (const StackedPart &part : parts) {
    if (part.isGuess)
      graph.assume(part.parameter,
                   "; the parts of " + part.whole +
                       " are taken to be all, along its first dimension, in the order in which they are read");
    const TensorProto &tensor = *graph.find(part.tensor);
    const SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
    const std::string row =
        graph.addNode("Slice", {part.whole, graph.addIntegers({1}, {part.place}),
                                graph.addIntegers({1}, {part.place + 1}), graph.addIntegers({1}, {0})});
    graph.addNode("Reshape", {row, graph.addIntegers({int64_t(dims.size())}, dims)}, part.tensor);
    graph.remove(tensor);
  }
}

/// The number of the result that the tensor was made of, if it is one of several results of an operation on a
/// parameter, repeated along its first dimension and not changed otherwise.
static std::optional<unsigned> findRepeatedPart(const UnfoldingGraph &graph, const Evaluated &image) {
  const TensorProto &tensor = *image.tensor;
  StringRef part;
  if (!is_contained({"expand", "repeat"}, operationName(tensor.name())) || image.parameters.size() != 1 ||
      tensor.dims_size() < 2 || tensor.dims(0) < 2)
    return std::nullopt;
  for (StringRef name : image.foldedFrom) {
    const StringRef operation = operationName(name);
    if (operation == "getitem" && part.empty())
      part = name;
    else if (name != image.parameters.front()->target &&
             !is_contained({"val", "unsqueeze", "unbind", "expand", "repeat"}, operation))
      return std::nullopt;
  }
  const std::string bytes = graph.read(tensor).value_or("");
  const size_t row = bytes.size() / size_t(tensor.dims(0));
  StringRef all = bytes;
  if (part.empty() || bytes.empty() || all.drop_front(row) != all.drop_back(row))
    return std::nullopt;
  return operationNumber(part);
}

void lowtide::unfoldRepeatedParts(UnfoldingGraph &graph, std::vector<Evaluated> &images) {
  MapVector<const SignatureEntry *, std::vector<std::pair<unsigned, const Evaluated *>>> groups;
  StringSet<> others;
  for (const Evaluated &image : images)
    if (std::optional<unsigned> number = findRepeatedPart(graph, image))
      groups[image.parameters.front()].push_back({*number, &image});
    else
      for (const SignatureEntry *entry : image.parameters)
        others.insert(entry->target);
  StringSet<> taken;
  for (auto &[entry, parts] : groups) {
    llvm::sort(parts, llvm::less_first());
    const TensorProto &first = *parts.front().second->tensor;
    SmallVector<int64_t> dims(first.dims().begin(), first.dims().end());
    // All results of the operation, one after the other.
    bool areAll = parts.size() > 1 && !others.contains(entry->target) && !graph.find(entry->target);
    for (auto [i, part] : enumerate(parts))
      areAll = areAll && part.first == parts.front().first + i && equal(part.second->tensor->dims(), first.dims()) &&
               part.second->tensor->data_type() == first.data_type();
    if (!areAll)
      continue;
    std::string bytes;
    for (const auto &[number, part] : parts) {
      const std::string whole = graph.read(*part->tensor).value_or("");
      bytes += whole.substr(0, whole.size() / size_t(dims.front()));
    }
    SmallVector<int64_t> stacked(dims);
    stacked.front() = int64_t(parts.size());
    graph.addInitializer(entry->target, stacked, first.data_type(), std::move(bytes),
                         {first.name(),
                          "the exporter evaluated each of its parts, repeated for every sample; with dimensions of one "
                          "around them, its shape is another",
                          true});
    graph.setModule(moduleOf(entry->target));
    for (auto [i, part] : enumerate(parts)) {
      const std::string slice =
          graph.addNode("Slice", {entry->target, graph.addIntegers({1}, {int64_t(i)}),
                                  graph.addIntegers({1}, {int64_t(i) + 1}), graph.addIntegers({1}, {0})});
      graph.addNode("Expand", {slice, graph.addIntegers({int64_t(dims.size())}, dims)}, part.second->tensor->name());
      graph.remove(*part.second->tensor);
      taken.insert(part.second->tensor->name());
    }
  }
  llvm::erase_if(images, [&](const Evaluated &image) { return taken.contains(image.tensor->name()); });
}
