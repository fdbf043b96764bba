//===- ParametersFromSignature.cpp - parameters by the exporter's notes -----------===//
//
// The program's signature lists every parameter and buffer. The exporter's optimizer then merged tensors of equal value
// and folded others into new ones, so the signature's entries and the file's initializers no longer match one to one:
//  1. An initializer's own claim is its name, if the signature lists it, or the one entry that it was folded from.
//  2. Each use is given to the entry that it really reads. The original operation's operands say so (`fx_node`); where
//     they are missing, the module that the use is in. By modules alone, only a tensor whose elements are all equal
//     can have been merged by accident; others are ties.
//  3. Entries that no use claims are other names of a tied tensor, or unused.
// A use that several entries could claim, or an entry that two tensors claim, is refused.
//
//===----------------------------------------------------------------------===//

#include "Classifier.h"
#include "FoldedNorms.h"
#include "LostAssignments.h"
#include "ProgramNames.h"
#include "StatisticChains.h"
#include "TiedTables.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Support/StableSort.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace mlir;
using namespace lowtide;

namespace {
class SignatureClassifier {
public:
  SignatureClassifier(ModelView &file, const Signature &signature, ArrayRef<TensorFacts> facts,
                      const RoleChoices &choices, std::vector<InitializerInfo> &infos)
      : file(file), signature(signature), facts(facts), choices(choices), infos(infos),
        chains(file.getModel().graph(), signature), programNames(file.getModel().graph(), signature) {}

  LogicalResult run();

private:
  using Entry = const SignatureEntry *;

  void findMissing();
  Entry findOwnClaim(const TensorFacts &fact) const;
  FailureOr<Entry> findOwner(const TensorFacts &fact, Entry own, const InitializerUse &use);
  Entry findStateOfModule(Entry own, const InitializerUse &use) const;
  Entry findRenamed(const TensorFacts &fact, const InitializerUse &use) const;
  LogicalResult classify(const TensorFacts &fact);
  InitializerInfo describe(const TensorFacts &fact, Entry own, Entry owner, bool merged);
  InitializerInfo describeUnclaimed(const TensorFacts &fact) const;
  InitializerInfo *findTie(Entry entry);
  void findTies();
  void reportFoldedBatchNorms();
  void reportDropped();
  void separatePieces();
  /// Whether all elements are equal; nullopt where the data cannot be read.
  std::optional<bool> isUniform(const TensorFacts &fact);
  std::string findProgramName(const TensorFacts &fact, Entry own, const InitializerUse &use);
  bool isForeignNumber(const TensorFacts &fact, Entry own, const InitializerUse &use);
  LogicalResult checkBlindUses();
  LogicalResult checkMergedParts(const TensorFacts &fact, Entry own);
  void indexUses();

  ModelView &file;
  const Signature &signature;
  ArrayRef<TensorFacts> facts;
  const RoleChoices &choices;
  std::vector<InitializerInfo> &infos;
  const StatisticChains chains;
  const ProgramNames programNames;
  /// Entries that no initializer carries by name or was folded from.
  SmallVector<Entry> missing;
  llvm::DenseSet<Entry> isMissing, claimed;
  llvm::StringMap<SmallVector<Entry>> missingByModule;
  llvm::DenseMap<const ::onnx::TensorProto *, std::optional<bool>> uniform;
  /// Uses in nodes about which nothing is known, given to the tensor's own entry.
  SmallVector<std::pair<const TensorFacts *, Entry>> blindUses;
  /// Parameters by the modules that read them, and by the parents of their own modules.
  llvm::StringMap<SmallVector<size_t>> readIn, below;
  /// What the graph's nodes compute.
  llvm::StringSet<> values;
  /// Modules whose batch norm the exporter folded away.
  llvm::StringSet<> foldedNorms;
};
} // namespace

void SignatureClassifier::findMissing() {
  llvm::StringSet<> present;
  for (const TensorFacts &fact : facts) {
    present.insert(fact.tensor->name());
    for (const std::string &name : fact.foldedFrom)
      present.insert(name);
  }
  for (const SignatureEntry &entry : signature.getEntries())
    if (!present.contains(entry.target)) {
      missing.push_back(&entry);
      missingByModule[moduleOf(entry.target)].push_back(&entry);
      isMissing.insert(&entry);
    }
}

std::optional<bool> SignatureClassifier::isUniform(const TensorFacts &fact) {
  auto [at, isNew] = uniform.try_emplace(fact.tensor);
  if (isNew)
    at->second = isConstantValued(file, *fact.tensor);
  return at->second;
}

SignatureClassifier::Entry SignatureClassifier::findOwnClaim(const TensorFacts &fact) const {
  if (Entry entry = signature.findTarget(fact.tensor->name()))
    return entry;
  // Whole numbers were evaluated from its shape.
  if (!isFloatType(fact.tensor->data_type()))
    return nullptr;
  Entry parameter = nullptr;
  for (const std::string &name : fact.foldedFrom)
    if (Entry entry = signature.findTarget(name); entry && entry->kind == SignatureEntry::Parameter) {
      if (parameter)
        return nullptr; // several: it is none of them
      parameter = entry;
    }
  return parameter;
}

/// `--rename tensor@module=name`.
SignatureClassifier::Entry SignatureClassifier::findRenamed(const TensorFacts &fact, const InitializerUse &use) const {
  std::optional<std::string> module = findModulePath(*use.node);
  if (!module)
    return nullptr;
  std::string key = fact.tensor->name() + "@" + *module;
  for (const auto &[from, to] : choices.renames)
    if (from == key)
      return signature.findTarget(to);
  return nullptr;
}

/// Whether `use` reads a number of the graph that happens to equal the parameter (the zeros that stand for a missing
/// bias, merged with a norm's bias): the use is outside of the parameter's module, and its operation does not read it.
bool SignatureClassifier::isForeignNumber(const TensorFacts &fact, Entry own, const InitializerUse &use) {
  std::optional<std::string> module = findModulePath(*use.node);
  // A batch norm that runs again reads what the run before made of the statistic.
  if (isRunningStatistic(use) && !own->assigned.empty() && operandLeaf(*use.node, use.operand) == leafOf(own->target))
    return false;
  if (fact.uses.size() < 2 || !module || *module == moduleOf(own->target) || fact.tensor->name() != own->target ||
      isUniform(fact) != std::optional<bool>(true) || isRewritten(*use.node))
    return false;
  if (!findProgramOperands(*use.node).empty())
    return true;
  // Without the operation: its module has a parameter, but none for this operand.
  StringRef role = operandLeaf(*use.node, use.operand);
  return !role.empty() && signature.hasModule(*module) && !signature.findTarget(*module + "." + role.str());
}

/// The running statistic of its module that `use` reads although its operation names none: a layer that is called again
/// reads what the call before made of it. Null: it is the tensor's own, or none.
SignatureClassifier::Entry SignatureClassifier::findStateOfModule(Entry own, const InitializerUse &use) const {
  if (!isRunningStatistic(use))
    return nullptr;
  const std::string role = operandLeaf(*use.node, use.operand).str();
  if (Entry state = chains.find(*use.node, role))
    return state;
  std::optional<std::string> module = findModulePath(*use.node);
  if (!module)
    return nullptr;
  Entry state = signature.findTarget(module->empty() ? role : *module + "." + role);
  bool readsOwn = own && llvm::is_contained(findProgramOperands(*use.node), own->placeholder) &&
                  own->kind == SignatureEntry::Buffer;
  return state && state != own && isMissing.contains(state) && !readsOwn ? state : nullptr;
}

/// The entry that `use` of the tensor reads; null: none.
FailureOr<SignatureClassifier::Entry> SignatureClassifier::findOwner(const TensorFacts &fact, Entry own,
                                                                     const InitializerUse &use) {
  if (Entry renamed = findRenamed(fact, use))
    return renamed;
  std::vector<std::string> operands = findProgramOperands(*use.node);
  std::optional<std::string> module = findModulePath(*use.node);
  if (Entry state = findStateOfModule(own, use))
    return state;
  const StringRef role = operandLeaf(*use.node, use.operand);
  // A value that was evaluated, where just that is read: what a norm scales, not its weight.
  if (!fact.foldedFrom.empty() && !signature.findTarget(fact.tensor->name()) && role.empty() &&
      programNames.find(*use.node, use.operand) == fact.tensor->name())
    return own;
  SmallVector<Entry> candidates;
  bool ownIsThere = false;
  auto consider = [&](Entry entry) {
    ownIsThere |= entry && entry == own;
    if (entry && isMissing.contains(entry) && !llvm::is_contained(candidates, entry))
      candidates.push_back(entry);
  };
  // One that came back from what was evaluated of it (`exp(s)`) may have been merged where it is read as it is.
  for (const std::string &operand : operands)
    if (Entry entry = signature.findPlaceholder(operand); entry && entry != own && hasEqualUnfolded(file, fact, *entry))
      candidates.push_back(entry);
    else
      consider(entry);
  // An operation that reads no entry itself may still work on what its module's parameter became.
  if (candidates.empty() && !ownIsThere && module) {
    // Another value of the program, made in the same way of another parameter.
    bool readsLost =
        own && fact.tensor->name() != own->target &&
        llvm::any_of(operands,
                     [&](StringRef name) {
                       return operationName(name) == operationName(fact.tensor->name()) && !values.contains(name);
                     }) &&
        !llvm::is_contained(operands, fact.tensor->name());
    ownIsThere = own && *module == moduleOf(own->target) && !readsLost;
    if (operands.empty())
      for (Entry entry : missingByModule.lookup(*module))
        consider(entry);
    else if (!ownIsThere && own && fact.tensor->name() != own->target && isUniform(fact).value_or(false))
      // What it reads was evaluated, too: only the module tells.
      for (Entry entry : missingByModule.lookup(*module))
        if (readsLost || leafOf(entry->target) == leafOf(own->target))
          consider(entry);
  }
  // Its own entry is read, unless the operand is known to be another: a batch norm's `running_var` may equal `weight`.
  if (standsForWeight(use, signature))
    return nullptr;
  if (ownIsThere && (role == leafOf(own->target) ||
                     llvm::none_of(candidates, [&](Entry entry) { return leafOf(entry->target) == role; })))
    return own;
  if (candidates.empty()) {
    if (own && operands.empty() && !module)
      blindUses.push_back({&fact, own});
    return own && isForeignNumber(fact, own, use) ? nullptr : own;
  }
  // Every use of a tied tensor reads one entry, also where its module has a name of its own for it. An operation that
  // reads another entry reads another parameter, which began with the same values.
  bool readsOther =
      !operands.empty() && !ownIsThere && own && !isRewritten(*use.node) && fact.getNumElements() <= largestMerged;
  // Otherwise, values that differ cannot be equal by accident: such a tensor is shared on purpose. Without data,
  // matrices are taken to differ: they are drawn at random, vectors start as ones or zeros. Without a claim of its own,
  // and a note of where it came from, a tensor may still be the evaluated form of what its operation reads.
  if (!readsOther && !isUniform(fact).value_or(fact.tensor->dims_size() < 2) &&
      (own || !fact.foldedFrom.empty() || isRewritten(*use.node)))
    return own;
  // A tensor of one element without a claim is a number of the graph; whole numbers are no parameter or statistic.
  if (!isFloatType(fact.tensor->data_type()))
    llvm::erase_if(candidates, isOfFloats);
  if (candidates.empty() || (!own && fact.getNumElements() == 1))
    return own;

  auto narrow = [&](StringRef leaf) {
    SmallVector<Entry> kept;
    for (Entry entry : candidates)
      if (leafOf(entry->target) == leaf)
        kept.push_back(entry);
    if (!kept.empty())
      candidates = kept;
  };
  if (candidates.size() > 1)
    narrow(role);
  if (candidates.size() > 1 && own)
    narrow(leafOf(own->target));
  if (candidates.size() == 1) {
    // Where only the module speaks, the name must fit, too.
    if (operands.empty() && leafOf(candidates[0]->target) != role &&
        !(own && leafOf(candidates[0]->target) == leafOf(own->target)))
      return own;
    return candidates[0];
  }
  reportManyClaims(file, fact, module, candidates);
  return failure();
}

InitializerInfo SignatureClassifier::describe(const TensorFacts &fact, Entry own, Entry owner, bool merged) {
  InitializerRole role = InitializerRole::Constant;
  if (owner->kind == SignatureEntry::Parameter)
    role = InitializerRole::Parameter;
  else if (owner->mutated)
    role = InitializerRole::State;
  if (role == InitializerRole::Parameter && !isFloatType(fact.tensor->data_type()))
    role = InitializerRole::Constant;
  StringRef kind = owner->kind == SignatureEntry::Parameter ? "parameter"
                   : owner->kind == SignatureEntry::Buffer  ? "buffer"
                                                            : "constant";
  if (owner != own) {
    bool direct = signature.findTarget(fact.tensor->name());
    InitializerInfo info = makeInfo(fact, owner->target, role, Certainty::Inferred,
                                    own ? Reason(RoleReason::OfItsModule, {kind.str(), fact.tensor->name()})
                                        : Reason(RoleReason::InOtherForm, {kind.str()}));
    if (!direct)
      describeFold(fact, signature, info);
    return info;
  }
  if (fact.tensor->name() == owner->target) {
    Reason listed(RoleReason::Listed, {kind.str()});
    if (merged)
      listed.add(RoleReason::OthersMerged);
    return makeInfo(fact, owner->target, role, Certainty::Stated, std::move(listed));
  }
  std::string fault = findFoldFault(file, fact, signature);
  InitializerInfo info =
      makeInfo(fact, owner->target, role, Certainty::Stated, {RoleReason::FoldedFrom, {owner->target}});
  describeFold(fact, signature, info);
  if (!fault.empty()) {
    info.certainty = Certainty::Assumed;
    info.reason.add({RoleReason::Fault, {fault}});
    file.getReport().add({FindingKind::FoldedFromOne,
                          fact.tensor->name(),
                          {owner->target},
                          {{"initializer", quoteName(fact.tensor->name())},
                           {"parameter", quoteName(owner->target)},
                           {"what differs", fault},
                           {"name", owner->target}}});
  }
  return info;
}

/// A tensor that no entry of the signature claims.
InitializerInfo SignatureClassifier::describeUnclaimed(const TensorFacts &fact) const {
  const std::string &name = fact.tensor->name();
  SmallVector<StringRef> sources;
  for (const std::string &source : fact.foldedFrom)
    if (Entry entry = signature.findTarget(source); entry && entry->kind == SignatureEntry::Parameter)
      sources.push_back(source);
  if (!sources.empty() && isFloatType(fact.tensor->data_type())) {
    std::string names = llvm::join(sources, ", ");
    if (!joinsZeros(fact) && findFoldFault(file, fact, signature).empty())
      return makeInfo(fact, name, InitializerRole::Parameter, Certainty::Inferred, {RoleReason::Joined, {names}});
    file.getReport().add({FindingKind::FoldedFromSeveral,
                          name,
                          {sources.begin(), sources.end()},
                          {{"initializer", quoteName(name)}, {"name", name}}});
    return makeInfo(fact, name, InitializerRole::Parameter, Certainty::Assumed, {RoleReason::Combined, {names}});
  }
  if (llvm::any_of(fact.uses, isRunningStatistic))
    return makeInfo(fact, name, InitializerRole::State, Certainty::Inferred, RoleReason::RunningStatistic);
  // The rewriter that folds a batch norm into a convolution invents the convolution's bias.
  if (StringRef(name).ends_with("_bias") && !fact.uses.empty() && isFloatType(fact.tensor->data_type()) &&
      StringRef(fact.uses[0].node->op_type()).starts_with("Conv") && fact.uses[0].operand == 2 &&
      fact.foldedFrom.empty() && isConstantValued(file, *fact.tensor) != std::optional<bool>(true))
    return makeInfo(fact, name, InitializerRole::Parameter, Certainty::Assumed, RoleReason::FoldedNormBias);
  if (!fact.foldedFrom.empty())
    return makeInfo(fact, name, InitializerRole::Constant, Certainty::Stated, RoleReason::FoldedFromConstants);
  return makeInfo(fact, name, InitializerRole::Constant, Certainty::Inferred, RoleReason::Unlisted);
}

/// What the program calls the tensor where `use` reads it; empty: not known.
std::string SignatureClassifier::findProgramName(const TensorFacts &fact, Entry own, const InitializerUse &use) {
  std::string lost;
  for (const std::string &operand : findProgramOperands(*use.node)) {
    if (operand == fact.tensor->name() || operand == own->placeholder)
      return operand;
    // A whole parameter that is gone, not a part: beside it, the operation may read parts of values.
    if (Entry other = signature.findPlaceholder(operand);
        other && isMissing.contains(other) && leafOf(other->target) == leafOf(own->target))
      return operand;
    if (takesPart(operand) && !values.contains(operand))
      lost = operand;
  }
  return lost;
}

/// Parts of parameters that began equal are one tensor of the file. Nothing tells whether the program read one again.
LogicalResult SignatureClassifier::checkMergedParts(const TensorFacts &fact, Entry own) {
  if (!own || own->kind != SignatureEntry::Parameter || fact.uses.size() < 2 ||
      isUniform(fact) != std::optional<bool>(true))
    return success();
  llvm::SetVector<std::string, std::vector<std::string>, std::set<std::string>> names;
  for (const InitializerUse &use : fact.uses)
    // Statistics of a layer that runs again are a result of its first run, and no part of a parameter.
    if (!isRunningStatistic(use) && !standsForWeight(use, signature))
      names.insert(findProgramName(fact, own, use));
  names.remove("");
  if (names.size() < 2 || llvm::none_of(names, takesPart))
    return success();
  file.getReport().errorAt(FailureKind::Unsupported, fact.tensor->name(),
                           "initializer " + quoteName(fact.tensor->name()) + " stands for " + llvm::join(names, ", ") +
                               " of the program, parts of parameters that began equal and that the exporter merged: "
                               "trained as it stands, they would stay equal",
                           "export with optimize=False");
  return failure();
}

LogicalResult SignatureClassifier::classify(const TensorFacts &fact) {
  Entry own = findOwnClaim(fact);
  if (failed(checkMergedParts(fact, own)))
    return failure();
  llvm::MapVector<Entry, SmallVector<InitializerUse>> byOwner;
  if (own && fact.isGraphOutput)
    byOwner[own];
  for (const InitializerUse &use : fact.uses) {
    FailureOr<Entry> owner = findOwner(fact, own, use);
    if (failed(owner))
      return failure();
    byOwner[*owner].push_back(use);
  }
  if (byOwner.empty() && fact.isGraphOutput)
    byOwner[nullptr];
  for (auto &[owner, uses] : byOwner) {
    InitializerInfo info;
    if (owner)
      info = describe(fact, own, owner, byOwner.size() > 1);
    else if (own)
      info = makeInfo(fact, fact.tensor->name() + "@constant", InitializerRole::Constant, Certainty::Inferred,
                      {RoleReason::MergedNumber, {own->target}});
    else
      info = describeUnclaimed(fact);
    info.uses.assign(uses.begin(), uses.end());
    // Running statistics that the program does not mention as assigned: exported in inference mode.
    if (info.role == InitializerRole::Constant && llvm::any_of(info.uses, isRunningStatistic))
      info.role = InitializerRole::State;
    if (owner)
      claimed.insert(owner);
    infos.push_back(std::move(info));
  }
  return success();
}

void SignatureClassifier::indexUses() {
  for (auto [i, info] : llvm::enumerate(infos)) {
    if (info.role != InitializerRole::Parameter || !signature.findTarget(info.name))
      continue;
    StringRef own = moduleOf(info.name);
    if (StringRef parent = moduleOf(own); !parent.empty())
      below[parent].push_back(i);
    llvm::StringSet<> modules;
    for (const InitializerUse &use : info.uses)
      if (auto module = findModulePath(*use.node); module && *module != own && modules.insert(*module).second)
        readIn[*module].push_back(i);
  }
}

/// The parameter that unclaimed `entry` is another name of; null if it seems unused.
InitializerInfo *SignatureClassifier::findTie(Entry entry) {
  StringRef module = moduleOf(entry->target);
  // A use in the entry's own module: `wte` reads what `lm_head` owns. Failing that, a child's parameter: `cls.bias` is
  // `cls.decoder.bias`.
  for (const auto *index : {&readIn, &below}) {
    SmallVector<size_t> fitting;
    for (size_t i : index->lookup(module))
      if (leafOf(infos[i].name) == leafOf(entry->target))
        fitting.push_back(i);
    // Of several children, the one whose weight goes by another name, too: `head.decoder`, and not `head.dense`.
    if (fitting.size() > 1)
      llvm::erase_if(fitting, [&](size_t i) {
        std::string weight = (moduleOf(infos[i].name) + ".weight").str();
        return llvm::none_of(infos, [&](const InitializerInfo &info) { return llvm::is_contained(info.tied, weight); });
      });
    if (!fitting.empty())
      return fitting.size() == 1 ? &infos[fitting.front()] : nullptr;
  }
  return findTiedTable(signature, *entry, infos);
}

/// Names of the signature that no use claims are other names of tensors.
void SignatureClassifier::findTies() {
  // Ties of biases are found by those of weights, and a table that nothing calls by its other names.
  SmallVector<Entry> entries(missing);
  auto rankOf = [&](Entry entry) {
    return leafOf(entry->target) != "weight" ? 1 : readIn.contains(moduleOf(entry->target)) ? 0 : 2;
  };
  sortStably(entries, [&](Entry a, Entry b) { return rankOf(a) < rankOf(b); });
  for (Entry entry : entries) {
    if (claimed.contains(entry) || entry->kind != SignatureEntry::Parameter ||
        foldedNorms.contains(moduleOf(entry->target)))
      continue;
    InitializerInfo *tie = findTie(entry);
    if (!tie)
      continue;
    if (tie->tied.empty())
      tie->tied.push_back(tie->name);
    tie->tied.push_back(entry->target);
    claimed.insert(entry);
  }
  // The framework goes by the first name of a tie. Other forms of the tensor (its transpose) go by that name, too.
  for (InitializerInfo &info : infos) {
    if (info.tied.empty())
      continue;
    llvm::sort(info.tied, [&](const std::string &a, const std::string &b) {
      return signature.getOrder(a) < signature.getOrder(b);
    });
    std::string owner = info.name;
    std::vector<std::string> names = info.tied;
    for (InitializerInfo &form : infos)
      if (form.name == owner) {
        form.name = names.front();
        form.reason.add(RoleReason::Tied);
        form.tied = form.tied.empty() ? names : form.tied;
      }
  }
}

void SignatureClassifier::reportFoldedBatchNorms() {
  SmallVector<StringRef> modules;
  for (Entry entry : missing) {
    if (claimed.contains(entry) || leafOf(entry->target) != "running_mean" ||
        normalizesSamples(file.getModel().graph(), entry->placeholder))
      continue;
    StringRef module = moduleOf(entry->target);
    Entry weight = signature.findTarget((module.empty() ? "weight" : module + ".weight").str());
    // Programs keep running means of their own, too, which they assign.
    if (weight ? isMissing.contains(weight) && !claimed.contains(weight) : !entry->mutated)
      modules.push_back(module);
  }
  foldedNorms.insert(modules.begin(), modules.end());
  reportFoldedNorms(file, signature, {modules.begin(), modules.end()},
                    "export with optimize=False: torch.onnx.export(…, dynamo=True, optimize=False)");
}

/// Parameters that the optimizer dropped, for what they did has no effect as long as they hold their first values, and
/// those that the program does not read under these names.
void SignatureClassifier::reportDropped() {
  bool isOptimized = llvm::any_of(facts, [](const TensorFacts &fact) { return !fact.foldedFrom.empty(); }) ||
                     llvm::any_of(file.getModel().graph().node(), isRewritten);
  SmallVector<StringRef> names;
  for (Entry entry : missing)
    if (!claimed.contains(entry) && entry->kind == SignatureEntry::Parameter &&
        !foldedNorms.contains(moduleOf(entry->target)))
      names.push_back(entry->target);
  if (names.empty())
    return;
  // A program that does not use a parameter loses no operation by that.
  std::vector<std::string> lost = findLostOperations(file.getModel().graph(), signature);
  std::string operations =
      lost.empty()
          ? ""
          : "; operations are gone that did nothing to the first values of what they read: " + llvm::join(lost, ", ");
  file.getReport().add({isOptimized || !lost.empty() ? FindingKind::ParametersLost : FindingKind::ParametersUnread,
                        names.front().str(),
                        {names.begin(), names.end()},
                        {{"operations that are gone", operations}}});
}

/// Merged tensors can be taken apart only where each use can be told from the others.
LogicalResult SignatureClassifier::checkBlindUses() {
  for (auto [fact, own] : blindUses) {
    if (fact->uses.size() < 2 || isUniform(*fact) != std::optional<bool>(true))
      continue;
    for (Entry entry : missing) {
      if (claimed.contains(entry) || entry->kind != SignatureEntry::Parameter ||
          leafOf(entry->target) != leafOf(own->target) || foldedNorms.contains(moduleOf(entry->target)))
        continue;
      file.getReport().errorAt(
          FailureKind::Unsupported, fact->tensor->name(),
          "initializer " + quoteName(fact->tensor->name()) +
              " was merged with others by the exporter, and a node that reads it does not say where it "
              "came from: parameter " +
              quoteName(entry->target) + " is nowhere else in the file",
          "export with optimize=False");
      return failure();
    }
  }
  return success();
}

/// Parts of one parameter, of which the file holds each by itself, are trained each by itself: the same, as long as no
/// two hold the same element.
void SignatureClassifier::separatePieces() {
  llvm::StringMap<const TensorFacts *> byTensor;
  for (const TensorFacts &fact : facts)
    byTensor[fact.tensor->name()] = &fact;
  llvm::MapVector<StringRef, SmallVector<size_t>> groups;
  for (auto [i, info] : llvm::enumerate(infos))
    if (info.role == InitializerRole::Parameter && signature.findTarget(info.name))
      groups[signature.findTarget(info.name)->target].push_back(i);
  for (auto &[name, members] : groups) {
    SmallVector<const TensorFacts *> tensors =
        llvm::map_to_vector(members, [&](size_t i) { return byTensor.lookup(infos[i].tensor); });
    if (members.size() < 2 || llvm::is_contained(tensors, nullptr) || !areDisjointPieces(file, tensors, signature))
      continue;
    for (size_t i : members) {
      infos[i].name = (name + "@" + infos[i].tensor).str();
      infos[i].reason = {RoleReason::Piece, {name.str()}};
    }
  }
}

LogicalResult SignatureClassifier::run() {
  findMissing();
  for (const ::onnx::NodeProto &node : file.getModel().graph().node())
    for (const std::string &output : node.output())
      values.insert(output);
  for (const TensorFacts &fact : facts)
    if (fact.isUsed() && failed(classify(fact)))
      return failure();
  reportFoldedBatchNorms();
  reportLostAssignments(file, signature, foldedNorms);
  indexUses();
  findTies();
  reportDropped();
  if (failed(checkBlindUses()))
    return failure();
  separatePieces();
  reportUnnoted(file, facts, infos);
  return success(succeeded(checkClaims(file, signature, choices, infos)) &&
                 succeeded(checkJoined(file, signature, facts, infos)));
}

LogicalResult lowtide::classifyBySignature(ModelView &file, const Signature &signature, ArrayRef<TensorFacts> facts,
                                           const RoleChoices &choices, std::vector<InitializerInfo> &infos) {
  return SignatureClassifier(file, signature, facts, choices, infos).run();
}
