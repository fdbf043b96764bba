//===- MergedTensors.cpp - tensors that began equal, in files without notes ------===//
//
// Of tensors that hold the same numbers, exporters keep one. Freshly made layers are full of them: norms, biases, and
// whole layers that were cloned.
//  1. PyTorch's old exporter leaves `Identity` nodes, named like the initializers that they replace. Tensors that are
//     shared on purpose have one name and no copy: a named copy was a tensor of its own. In files of others, one with
//     equal elements was.
//  2. A copy with an invented name (a transposed weight) was one if other modules read it. A module that is called
//  again
//     is the same module; and one whose other tensors are its own, with numbers of their own, reads a weight that is
//     tied.
//  3. Cleaners remove copies. Where a file holds no two equal initializers, and modules of one kind read one
//     initializer, or several modules one that is constant, each had its own. Where nothing tells the modules and no
//     weight matrix is read twice, each reader of a constant vector had its own.
//
//===----------------------------------------------------------------------===//

#include "MergedTensors.h"
#include "MadeByLayers.h"

#include "PaddleNames.h"
#include "TensorFlowNames.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/StringExtras.h"

#include <limits>
#include <map>

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;

/// Larger tensors are not compared.
static constexpr uint64_t largestCompared = uint64_t(1) << 16;

/// Elements of the largest tensors of which onnxruntime keeps one.
static constexpr int64_t largestMergedByRuntime = 8;

StringRef MergedTensors::copyName(const InitializerUse &use) const {
  const NodeProto &node = *use.node;
  if (node.op_type() != "Identity" || !node.domain().empty() || node.output_size() != 1 ||
      outputs.contains(node.output(0)))
    return "";
  StringRef name = node.output(0);
  // `/layer/Identity_output_0` is a module that does nothing, `onnx::MatMul_7` was an initializer.
  if (isInventedName(name) ? !name.starts_with("onnx::") : !(isPyTorch || name.contains('.')))
    return "";
  return name;
}

/// `/e/e.0_1/Gemm` is the second call of `e.0`.
std::string MergedTensors::moduleOfNode(const NodeProto &node) const {
  std::string path = findModulePath(node).value_or("");
  if (path.empty() || modules.contains(path))
    return path;
  // Modules whose only weight was transposed have no tensor of their name.
  auto isModule = [&](const std::string &name) { return modules.contains(name) || calledModules.contains(name); };
  std::string called;
  SmallVector<StringRef> parts;
  StringRef(path).split(parts, '.');
  for (StringRef part : parts) {
    auto [stem, number] = part.rsplit('_');
    std::string prefix = called + (called.empty() ? "" : ".");
    bool isNumbered = !stem.empty() && !number.empty() && all_of(number, isDigit);
    called =
        prefix + (isNumbered && !modules.contains(prefix + part.str()) && isModule(prefix + stem.str()) ? stem.str()
                                                                                                        : part.str());
  }
  return called;
}

SmallVector<std::string> MergedTensors::modulesOf(ArrayRef<InitializerUse> uses) const {
  SmallVector<std::string> found;
  for (const InitializerUse &use : uses)
    if (std::string module = moduleOfNode(*use.node); !is_contained(found, module))
      found.push_back(module);
  return found;
}

/// Elements of the largest tensors that are in the file only once, whatever numbers they hold; 0: there are none. What
/// a cleaner evaluated after the exporter may be in it as often as it was evaluated.
int64_t MergedTensors::findLargestDeduplicated(ArrayRef<TensorFacts> facts) const {
  StringSet<> seen;
  bool areAll = true;
  const bool isCurrent = isOfCurrentExporter(file.getModel().graph());
  for (const TensorFacts &fact : facts) {
    StringRef name = fact.tensor->name();
    if (!fact.isUsed() || !isFloatType(fact.tensor->data_type()) || fact.getNumElements() < 2 ||
        file.findUnfolded(name) ||
        (isInventedName(name) ? !name.starts_with("onnx::") : isCurrent && !name.contains('.')) ||
        checkedBytes(fact.getNumElements(), fact.tensor->data_type()).value_or(largestCompared + 1) > largestCompared ||
        !file.isEmbedded(fact.tensor->name()))
      continue;
    std::string key = file.tryReadInitializer(fact.tensor->name()).value_or("");
    for (int64_t dim : fact.tensor->dims())
      key += "," + std::to_string(dim);
    if (seen.insert(key).second)
      continue;
    if (fact.getNumElements() <= largestMergedByRuntime)
      return 0;
    areAll = false;
  }
  return areAll ? std::numeric_limits<int64_t>::max() : largestMergedByRuntime;
}

/// Whether some layer is applied twice: several operators of one kind read one matrix.
bool MergedTensors::hasRepeatedLayers(ArrayRef<TensorFacts> facts) const {
  return any_of(facts, [&](const TensorFacts &fact) {
    if (!isFloatType(fact.tensor->data_type()) || fact.tensor->dims_size() < 2 || fact.uses.size() < 2)
      return false;
    const InitializerUse &first = fact.uses.front();
    // A mask that every layer adds is no layer.
    if (operandLeaf(*first.node, first.operand) != "weight")
      return false;
    return any_of(drop_begin(fact.uses),
                  [&](const InitializerUse &use) {
                    return use.operand == first.operand && use.node->op_type() == first.node->op_type();
                  }) &&
           !isConstantValued(file, *fact.tensor).value_or(false);
  });
}

MergedTensors::MergedTensors(const ModelView &file, ArrayRef<TensorFacts> facts)
    : file(file), paths(file.getModel().graph()),
      isPyTorch(file.getModel().producer_name() == "pytorch" || isOfCurrentExporter(file.getModel().graph())),
      isFromTensorFlow(isOfTensorFlow(file.getModel().graph())), isFromPaddle(isOfPaddle(file.getModel().graph())),
      keepsNoName(lowtide::isEvaluatedWhole(file, facts)) {
  const ::onnx::GraphProto &graph = file.getModel().graph();
  for (const auto &output : graph.output())
    outputs.insert(output.name());
  for (const NodeProto &node : graph.node()) {
    for (const std::string &output : node.output())
      producers[output] = &node;
    for (const std::string &input : node.input())
      readers[input].push_back(&node);
  }
  auto noteModules = [&](StringSet<> &set, StringRef name) {
    names.insert(name);
    for (StringRef path = moduleOf(name); !path.empty(); path = moduleOf(path))
      set.insert(path);
  };
  for (const NodeProto &node : graph.node())
    if (std::optional<std::string> path = findModulePath(node))
      for (StringRef module = *path; !module.empty(); module = moduleOf(module))
        calledModules.insert(module);
  bool hasCopies = false;
  for (const TensorFacts &fact : facts) {
    if (fact.uses.size() == 1 && leafOf(fact.tensor->name()) == "bias" && fact.uses[0].node->output_size()) {
      const auto &[node, operand] = fact.uses[0];
      biasedModules[node->op_type() == "Add" ? node->input(1 - operand) : node->output(0)] =
          moduleOf(fact.tensor->name()).str();
    }
    if (!isInventedName(fact.tensor->name())) {
      noteModules(modules, fact.tensor->name());
      if (isFloatType(fact.tensor->data_type()) && file.isEmbedded(fact.tensor->name()) &&
          !isConstantValued(file, *fact.tensor).value_or(true))
        modulesWithWeights.insert(moduleOf(fact.tensor->name()));
    }
    for (const InitializerUse &use : fact.uses)
      if (StringRef name = copyName(use); !name.empty()) {
        hasCopies = true;
        reads[name];
        if (!isInventedName(name))
          noteModules(modules, name);
      }
  }
  if (hasCopies)
    forEachRead(graph, [&](StringRef name, InitializerUse use) {
      if (auto found = reads.find(name); found != reads.end())
        found->second.push_back(use);
    });
  else if ((largestDeduplicated = findLargestDeduplicated(facts)))
    repeatsLayers = hasRepeatedLayers(facts);
}

std::optional<std::string> MergedTensors::findModuleOfBias(const NodeProto &layer) const {
  auto module = layer.output_size() ? biasedModules.find(layer.output(0)) : biasedModules.end();
  return module == biasedModules.end() ? std::nullopt : std::optional(module->second);
}

/// Whether the tensor is a vector of equal elements that is added to products, and nothing else: a part of a joint bias
/// that began as zeros.
bool MergedTensors::isPartOfBias(const TensorFacts &copy) const {
  return copy.tensor->dims_size() == 1 && !copy.uses.empty() && isConstantValued(file, *copy.tensor).value_or(false) &&
         llvm::all_of(copy.uses, [&](const InitializerUse &use) {
           const NodeProto *product = use.node->op_type() == "Add" && use.node->input_size() == 2
                                          ? findProducer(use.node->input(1 - use.operand))
                                          : nullptr;
           return product && product->op_type() == "MatMul";
         });
}

/// Whether what no layer reads as its own was evaluated from the owner's tensor (its elements in one row, of which the
/// norm is a penalty): numbers are not the same by chance.
bool MergedTensors::isEvaluatedPart(const TensorFacts &copy) const {
  return copy.getNumElements() > 1 && !isConstantValued(file, *copy.tensor).value_or(true) &&
         llvm::all_of(copy.uses, [](const InitializerUse &use) { return operandLeaf(*use.node, use.operand).empty(); });
}

/// Whether the copy, whose name tells nothing, is the owner's tensor by the program's own will.
bool MergedTensors::isTied(const TensorFacts &copy, const TensorFacts &owner) const {
  if (isPartOfBias(copy))
    return false;
  SmallVector<std::string> readers = modulesOf(copy.uses), owners = modulesOf(owner.uses);
  for (const std::string &module : readers)
    if (is_contained(owners, module) || modulesWithWeights.contains(module))
      return true;
  return false;
}

/// `layers.0.fc` and `layers.1.fc`: the same but for numbers.
static bool isSibling(StringRef a, StringRef b) { return a != b && withoutNumbers(a) == withoutNumbers(b); }

/// Whether `use` in `module` reads what was not the initializer `own` of module `home` when the program began.
bool MergedTensors::isMergedReader(const MergedTensor &own, StringRef home, StringRef module,
                                   const InitializerUse &use) const {
  const TensorFacts &fact = own.facts;
  if (module == home || module.empty() || fact.getNumElements() > largestDeduplicated)
    return false;
  // A single number is a module's own where it bears the module's name.
  if (fact.getNumElements() < 2 && (home.empty() || isInventedName(fact.tensor->name())))
    return false;
  if (isConstantValued(file, *fact.tensor).value_or(false))
    return true;
  // A module with numbers of its own reads what is tied.
  return isSibling(home, module) && !modulesWithWeights.contains(module) &&
         any_of(fact.uses, [&](const InitializerUse &other) {
           return moduleOfNode(*other.node) == home && other.operand == use.operand &&
                  other.node->op_type() == use.node->op_type();
         });
}

/// What the program calls the weight or bias that `use` reads, by the layer's other one; empty: it has no name either.
std::string MergedTensors::findNamedTwin(const InitializerUse &use) const {
  const StringRef leaf = operandLeaf(*use.node, use.operand);
  const int other = use.operand == 1 ? 2 : 1;
  if ((leaf != "weight" && leaf != "bias") || other >= use.node->input_size())
    return "";
  const StringRef twin = use.node->input(other), expected = leaf == "weight" ? "bias" : "weight";
  auto found = readers.find(twin);
  if (leafOf(twin) != expected || isInventedName(twin) || found == readers.end() || found->second.size() != 1)
    return "";
  std::string name = (moduleOf(twin) + "." + leaf).str();
  return moduleOf(twin).empty() || names.contains(name) ? "" : name;
}

/// Each reader of a constant vector but the first gets a tensor of its own.
void MergedTensors::splitNodes(MergedTensor &own, std::vector<MergedTensor> &parts) const {
  const TensorFacts &fact = own.facts;
  if (!isPyTorch || fact.getNumElements() > largestDeduplicated || repeatsLayers || isInventedName(own.name) ||
      count_if(fact.tensor->dims(), [](int64_t dim) { return dim != 1; }) != 1 || fact.getNumElements() < 2 ||
      !isConstantValued(file, *fact.tensor).value_or(false) || any_of(fact.uses, [](const InitializerUse &use) {
        return findModulePath(*use.node) || !use.node->output_size();
      }))
    return;
  for (const InitializerUse &use : drop_begin(fact.uses)) {
    const std::string named = findNamedTwin(use);
    MergedTensor other{
        named.empty() ? own.name + "@" + use.node->output(0) : named, {fact.tensor, {use}, false, {}}, {use}, {}, true};
    other.reason = {RoleReason::ReadByOperator, {own.name}};
    parts.push_back(std::move(other));
  }
  own.facts.uses.truncate(1);
  own.uses = own.facts.uses;
}

/// tf2onnx keeps one of all equal tensors. Numbers by chance are equal where the program reads one variable twice;
/// equal ones, a variable of each scope that reads them.
void MergedTensors::splitScopes(MergedTensor &own, std::vector<MergedTensor> &parts) const {
  const TensorFacts &fact = own.facts;
  if (!isFromTensorFlow || fact.getNumElements() < 2 || !isConstantValued(file, *fact.tensor).value_or(false))
    return;
  StringRef name = fact.tensor->name(), home = scopeOf(name);
  std::map<std::string, MergedTensor> others;
  SmallVector<InitializerUse> kept;
  for (const InitializerUse &use : fact.uses) {
    StringRef scope = scopeOf(use.node->name());
    // A bias is called like the operation that adds it.
    if (scope.empty() || scope == home || scope == scopeOf(home)) {
      kept.push_back(use);
      continue;
    }
    MergedTensor &other = others[scope.str()];
    if (other.uses.empty()) {
      other.name = (scope + "/" + name.rsplit('/').second).str();
      other.facts = {fact.tensor, {}, false, {}};
      other.reason = {RoleReason::ReadInScope, {name.str()}};
      other.isAssumed = true;
    }
    other.uses.push_back(use);
    other.facts.uses.push_back(use);
  }
  if (kept.empty())
    return; // its name tells nothing
  own.uses = own.facts.uses = kept;
  for (auto &[scope, other] : others)
    parts.push_back(std::move(other));
}

/// Takes the readers in other modules out of `own`.
void MergedTensors::splitReaders(MergedTensor &own, std::vector<MergedTensor> &parts) const {
  StringRef name = own.facts.tensor->name();
  SmallVector<std::string> readers = modulesOf(own.facts.uses);
  if (own.facts.getNumElements() > largestDeduplicated || readers.size() < 2)
    return;
  bool isInvented = isInventedName(name);
  std::string home = isInvented ? readers.front() : moduleOf(name).str();
  if (!is_contained(readers, home))
    return; // who owns it does not read it: it was given away
  std::map<std::string, MergedTensor> others;
  SmallVector<InitializerUse> kept;
  for (const InitializerUse &use : own.facts.uses) {
    std::string module = moduleOfNode(*use.node);
    if (!isMergedReader(own, home, module, use)) {
      kept.push_back(use);
      continue;
    }
    MergedTensor &other = others[module];
    if (other.uses.empty()) {
      other.name = isInvented ? name.str() : module + "." + leafOf(name).str();
      other.facts = {own.facts.tensor, {}, false, {}};
      other.reason = {RoleReason::ReadInModule, {name.str()}};
      other.isAssumed = true;
    }
    other.uses.push_back(use);
    other.facts.uses.push_back(use);
  }
  own.uses = own.facts.uses = kept;
  for (auto &[module, other] : others)
    parts.push_back(std::move(other));
}

std::vector<MergedTensor> MergedTensors::split(const TensorFacts &fact) const {
  MergedTensor own{fact.tensor->name(), {fact.tensor, {}, fact.isGraphOutput, fact.foldedFrom}, {}, {}, false};
  std::vector<MergedTensor> parts;
  for (const InitializerUse &use : fact.uses)
    if (copyName(use).empty()) {
      own.facts.uses.push_back(use);
      own.uses.push_back(use);
    }
  for (const InitializerUse &use : fact.uses) {
    StringRef name = copyName(use);
    if (name.empty())
      continue;
    if (!isPyTorch && !isConstantValued(file, *fact.tensor).value_or(fact.tensor->dims_size() < 2)) {
      own.uses.push_back(use);
      own.facts.uses.append(reads.lookup(name));
      continue;
    }
    MergedTensor copy{name.str(), {fact.tensor, reads.lookup(name), false, {}}, {use}, {}, false};
    if (copy.facts.uses.empty())
      continue;
    if (isInventedName(name)) {
      // A transposed weight of another module that was copied as well.
      MergedTensor *twin = isTied(copy.facts, own.facts) || isEvaluatedPart(copy.facts) ? &own : nullptr;
      for (MergedTensor &part : parts)
        if (!twin && isTied(copy.facts, part.facts) && !modulesWithWeights.contains(modulesOf(copy.facts.uses).front()))
          twin = &part;
      if (twin) {
        twin->facts.uses.append(copy.facts.uses);
        twin->uses.push_back(use);
        continue;
      }
      copy.isAssumed = true;
    }
    copy.reason = {copy.isAssumed ? RoleReason::ReadElsewhere : RoleReason::KeptByCopy, {fact.tensor->name()}};
    parts.push_back(std::move(copy));
  }
  splitReaders(own, parts);
  splitNodes(own, parts);
  splitScopes(own, parts);
  if (own.facts.isUsed())
    parts.insert(parts.begin(), std::move(own));
  return parts;
}
