//===- Claims.cpp - parameters that a file holds twice, or not for certain --------===//

#include "Classifier.h"

#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace lowtide;

static bool holdEqualData(const ModelView &file, const InitializerInfo &a, const InitializerInfo &b) {
  std::optional<std::string> first = file.tryReadInitializer(a.tensor), second = file.tryReadInitializer(b.tensor);
  return a.dataType == b.dataType && first && second && *first == *second;
}

static SmallVector<int64_t> dropUnits(ArrayRef<int64_t> dims) {
  SmallVector<int64_t> rest;
  llvm::copy_if(dims, std::back_inserter(rest), [](int64_t dim) { return dim != 1; });
  return rest;
}

bool lowtide::hasEqualUnfolded(const ModelView &file, const TensorFacts &fact, const SignatureEntry &entry) {
  if (!file.findUnfolded(entry.target) || isConstantValued(file, *fact.tensor) != std::optional<bool>(true))
    return false;
  const ::onnx::TensorProto *tensor = file.findInitializer(entry.target);
  if (!tensor || tensor == fact.tensor || tensor->data_type() != fact.tensor->data_type() ||
      !llvm::equal(tensor->dims(), fact.tensor->dims()))
    return false;
  const std::optional<std::string> first = file.tryReadInitializer(fact.tensor->name());
  return first && first == file.tryReadInitializer(entry.target);
}

/// Whether the user gave the tensor another name: then it is not what it was taken for. One that has the parameter's
/// own name is the parameter, whatever it is called.
static bool isRenamed(const RoleChoices &choices, const InitializerInfo &info) {
  return info.tensor != info.name && llvm::any_of(choices.renames, [&](const auto &rename) {
           return rename.first == info.tensor && rename.second != info.name;
         });
}

LogicalResult lowtide::checkClaims(ModelView &file, const Signature &signature, const RoleChoices &choices,
                                   std::vector<InitializerInfo> &infos) {
  llvm::StringMap<size_t> owners;
  // Tensors in the parameter's own form first: the others are views of them.
  for (bool transposed : {false, true})
    for (auto [i, info] : llvm::enumerate(infos)) {
      if (info.role != InitializerRole::Parameter || !signature.findTarget(info.name) || info.viewOf ||
          info.transposed.empty() == transposed || isRenamed(choices, info))
        continue;
      auto [at, isNew] = owners.try_emplace(info.name, i);
      if (isNew)
        continue;
      InitializerInfo &primary = infos[at->second];
      if (!info.transposed.empty() && primary.transposed.empty() && info.sourceShape == primary.dims) {
        info.viewOf = at->second;
        info.reason.add({RoleReason::ViewOf, {primary.tensor}});
        continue;
      }
      // Evaluated anew for each call of a layer, or with dimensions of one besides.
      const bool isReshaped = info.dims != primary.dims;
      if (info.transposed == primary.transposed && (!isReshaped || info.transposed.empty()) &&
          dropUnits(info.dims) == dropUnits(primary.dims) && holdEqualData(file, info, primary)) {
        // The one that goes by the parameter's name is the parameter, the other one was merged with something else; by
        // neither name, the one without dimensions of one.
        const bool isWhole =
            info.tensor == info.name || (primary.tensor != primary.name && info.dims.size() < primary.dims.size());
        InitializerInfo &view = isWhole ? primary : info, &whole = isWhole ? info : primary;
        view.viewOf = isWhole ? i : at->second;
        if (!isReshaped)
          view.transposed = llvm::to_vector(llvm::seq<int64_t>(0, view.dims.size()));
        view.reason.add({RoleReason::SameAs, {whole.tensor}});
        at->second = *view.viewOf;
        continue;
      }
      file.getReport().errorAt(
          FailureKind::Unsupported, info.tensor,
          "parameter " + quoteName(info.name) + " is in the file twice, as " + quoteName(primary.tensor) + " and as " +
              quoteName(info.tensor) + ": trained as they stand, the two would part",
          "export with optimize=False, or freeze one: --rename " + info.tensor + "=<name> --frozen <name>");
      return failure();
    }
  return success();
}

bool lowtide::isOfFloats(const SignatureEntry *entry) {
  return entry->kind == SignatureEntry::Parameter || leafOf(entry->target).starts_with("running_");
}

void lowtide::reportManyClaims(ModelView &file, const TensorFacts &fact, const std::optional<std::string> &module,
                               ArrayRef<const SignatureEntry *> entries) {
  const std::string &tensor = fact.tensor->name();
  const std::string names =
      llvm::join(llvm::map_range(entries, [](const SignatureEntry *entry) { return entry->target; }), ", ");
  const bool isNoteless = isInventedName(tensor) && fact.foldedFrom.empty();
  file.getReport().errorAt(
      FailureKind::Unsupported, tensor,
      "initializer " + quoteName(tensor) + " is read in module " + quoteName(module.value_or("?")) +
          " and could be any of " + names + " there: " +
          (isNoteless ? "the exporter evaluated it, and a cleaner removed the note of what it was evaluated from"
                      : "the exporter merged tensors of equal value"),
      isNoteless ? "compile the exporter's own file, or export with optimize=False"
                 : "say which: --rename " + tensor + "@" + module.value_or("") + "=" + entries.front()->target +
                       ", or export with optimize=False");
}

void lowtide::reportUnnoted(ModelView &file, ArrayRef<TensorFacts> facts, ArrayRef<InitializerInfo> infos) {
  llvm::StringSet<> constants;
  for (const InitializerInfo &info : infos)
    if (info.role == InitializerRole::Constant && info.reason.is(RoleReason::Unlisted))
      constants.insert(info.tensor);
  std::vector<std::string> names;
  for (const TensorFacts &fact : facts) {
    const std::string &name = fact.tensor->name();
    if (!constants.contains(name) || !isInventedName(name) || !isFloatType(fact.tensor->data_type()) ||
        fact.getNumElements() < 2 || llvm::all_of(fact.uses, isSetting))
      continue;
    // Without data, matrices are taken to differ.
    if (!isConstantValued(file, *fact.tensor).value_or(fact.tensor->dims_size() < 2))
      names.push_back(name);
  }
  if (!names.empty())
    file.getReport().add({FindingKind::EvaluatedNotTrained,
                          names.front(),
                          names,
                          {{"number", std::to_string(names.size())},
                           {"export with do_constant_folding=False",
                            "compile the exporter's own file, or export with optimize=False"}}});
}
