//===- Parameters.cpp - who is a parameter ----------------------------------------===//
//
// For every initializer: parameter, state or constant.
//  1. What the exporter wrote down decides, where it wrote anything (ParametersFromSignature.cpp).
//  2. Otherwise names and the operators that read do (ParametersFromNames.cpp).
//  3. The user's lists overrule both (ParametersOverrides.cpp).
//
//===----------------------------------------------------------------------===//

#include "Classifier.h"
#include "CodedValues.h"
#include "FewBits.h"
#include "LossWeights.h"
#include "PaddingRow.h"
#include "TableValues.h"
#include "TiedModules.h"
#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cstring>

using namespace mlir;
using namespace lowtide;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

StringRef lowtide::stringifyRole(InitializerRole role) {
  switch (role) {
  case InitializerRole::Parameter:
    return "parameter";
  case InitializerRole::State:
    return "state";
  case InitializerRole::Constant:
    return "constant";
  }
  return "";
}

int64_t InitializerInfo::getNumElements() const { return checkedElements(dims).value_or(0); }

bool lowtide::fillsBias(const ModelView &file, const TensorFacts &facts) {
  // PyTorch's exporter names what modules hold, and nothing else.
  StringRef name = facts.tensor->name();
  if (file.getModel().producer_name() == "pytorch" && !isInventedName(name) && !moduleOf(name).empty())
    return false;
  const std::string bytes = file.tryReadInitializer(facts.tensor->name()).value_or("?");
  return facts.tensor->dims_size() == 0 && llvm::all_of(bytes, [](char byte) { return byte == 0; }) &&
         llvm::all_of(facts.uses,
                      [](const InitializerUse &use) { return operandLeaf(*use.node, use.operand) == "bias"; });
}

/// The same for the fused operators of onnxruntime.
static StringRef fusedOperandLeaf(StringRef op, int operand) {
  struct Leaf {
    StringRef op;
    int operand;
    StringRef leaf;
  };
  static constexpr Leaf leaves[] = {
      {"FusedConv", 1, "weight"},
      {"FusedConv", 2, "bias"},
      {"NhwcConv", 1, "weight"},
      {"NhwcConv", 2, "bias"},
      {"FusedGemm", 1, "weight"},
      {"FusedGemm", 2, "bias"},
      {"FusedMatMul", 1, "weight"},
      {"TransposeMatMul", 1, "weight"},
      {"FusedMatMulActivation", 1, "weight"},
      {"BiasGelu", 1, "bias"},
      {"FastGelu", 1, "bias"},
      {"BiasSplitGelu", 1, "bias"},
      {"BiasAdd", 1, "bias"},
      {"SimplifiedLayerNormalization", 1, "weight"},
      {"SkipLayerNormalization", 2, "weight"},
      {"SkipLayerNormalization", 3, "bias"},
      {"SkipLayerNormalization", 4, "bias"},
      {"SkipSimplifiedLayerNormalization", 2, "weight"},
      {"SkipSimplifiedLayerNormalization", 3, "bias"},
      {"GroupNorm", 1, "weight"},
      {"GroupNorm", 2, "bias"},
      {"SkipGroupNorm", 1, "weight"},
      {"SkipGroupNorm", 2, "bias"},
      {"SkipGroupNorm", 4, "bias"},
      {"Attention", 1, "in_proj_weight"},
      {"Attention", 2, "in_proj_bias"},
      {"MultiHeadAttention", 3, "in_proj_bias"},
      {"EmbedLayerNormalization", 2, "word_embeddings"},
      {"EmbedLayerNormalization", 3, "position_embeddings"},
      {"EmbedLayerNormalization", 4, "token_type_embeddings"},
      {"EmbedLayerNormalization", 5, "weight"},
      {"EmbedLayerNormalization", 6, "bias"},
  };
  for (const Leaf &leaf : leaves)
    if (leaf.op == op && leaf.operand == operand)
      return leaf.leaf;
  return "";
}

StringRef lowtide::operandLeaf(const NodeProto &node, int operand) {
  if (node.domain() == "com.microsoft")
    return fusedOperandLeaf(node.op_type(), operand);
  if (!node.domain().empty() && node.domain() != "ai.onnx")
    return "";
  // Operators whose operands are, in this order, data, weight, bias.
  bool layer =
      llvm::StringSwitch<bool>(node.op_type())
          .Cases({"Conv", "ConvTranspose", "Gemm", "LayerNormalization", "GroupNormalization", "InstanceNormalization",
                  "BatchNormalization", "RMSNormalization", "SimplifiedLayerNormalization"},
                 true)
          .Default(false);
  if (layer && operand == 1)
    return "weight";
  if (layer && operand == 2)
    return "bias";
  if (node.op_type() == "BatchNormalization")
    return operand == 3 ? "running_mean" : operand == 4 ? "running_var" : "";
  if (node.op_type() == "Gather")
    return operand == 0 ? "weight" : "";
  if (node.op_type() == "LSTM" || node.op_type() == "GRU" || node.op_type() == "RNN")
    return operand == 1 ? "weight_ih_l0" : operand == 2 ? "weight_hh_l0" : operand == 3 ? "bias_l0" : "";
  if (node.op_type() == "MatMul" || node.op_type() == "PRelu")
    return operand == 1 ? "weight" : "";
  if (node.op_type() == "Add")
    return "bias";
  return "";
}

bool lowtide::isRunningStatistic(const InitializerUse &use) {
  return operandLeaf(*use.node, use.operand).starts_with("running_");
}

bool lowtide::standsForWeight(const InitializerUse &use, const Signature &signature) {
  StringRef role = operandLeaf(*use.node, use.operand);
  // A group norm is written as an instance norm of its groups with ones and zeros, and its own weight after it.
  if (use.node->op_type() == "InstanceNormalization" && (role == "weight" || role == "bias") &&
      StringRef(findProgramOperator(*use.node)).contains("group_norm"))
    return true;
  std::vector<std::string> operands = findProgramOperands(*use.node);
  // A norm that reads one value, which may be a parameter itself, has no scale and no shift.
  if ((role == "weight" || role == "bias") && operands.size() == 1 &&
      StringRef(use.node->op_type()).ends_with("Normalization") &&
      StringRef(findProgramOperator(*use.node)).contains("norm"))
    return true;
  // Besides its value, an instance norm without a scale reads its running statistics, if it keeps any.
  if (use.node->op_type() == "InstanceNormalization" && (role == "weight" || role == "bias") &&
      findProgramOperator(*use.node) == "aten.instance_norm.default" &&
      llvm::all_of(llvm::drop_begin(operands, std::min<size_t>(operands.size(), 1)), [&](const std::string &operand) {
        const SignatureEntry *entry = signature.findPlaceholder(operand);
        return entry && entry->kind == SignatureEntry::Buffer &&
               llvm::is_contained({"running_mean", "running_var"}, leafOf(entry->target));
      }))
    return true;
  return use.node->op_type() == "BatchNormalization" && (role == "weight" || role == "bias") && !operands.empty() &&
         llvm::none_of(operands, [&](const std::string &operand) {
           const SignatureEntry *entry = signature.findPlaceholder(operand);
           return entry && entry->kind == SignatureEntry::Parameter;
         });
}

/// Two tensors may not go by one name: later ones are told apart by their
/// initializer.
static void makeNamesUnique(std::vector<InitializerInfo> &infos) {
  llvm::StringSet<> names;
  // Another view of a parameter, which may be in front of it, does not take its name.
  for (bool isView : {false, true})
    for (InitializerInfo &info : infos) {
      if (info.viewOf.has_value() != isView)
        continue;
      std::string base = info.name;
      for (unsigned i = 1; !names.insert(info.name).second; ++i)
        info.name = i == 1 ? base + "@" + info.tensor : base + "@" + info.tensor + "#" + std::to_string(i);
    }
}

/// Whether it is looked up or added, and no weight of a layer: filters begin with formulas, too, and are trained.
static bool isTable(const InitializerInfo &info) {
  return llvm::none_of(info.uses, [](const InitializerUse &use) {
    StringRef op = use.node->op_type();
    return op != "Gather" && op != "Add" && !operandLeaf(*use.node, use.operand).empty();
  });
}

/// Whether convolutions read it as their filter, and nothing else reads it.
static bool isFilter(const InitializerInfo &info) {
  return !info.uses.empty() && llvm::all_of(info.uses, [](const InitializerUse &use) {
    return use.node->op_type() == "Conv" && use.operand == 1;
  });
}

/// Whether it multiplies other values element by element, and nothing else reads it.
static bool isFactor(const InitializerInfo &info) {
  return !info.uses.empty() &&
         llvm::all_of(info.uses, [](const InitializerUse &use) { return use.node->op_type() == "Mul"; });
}

/// Whether the exporter evaluated it.
static bool isEvaluated(const InitializerInfo &info) {
  return info.reason.is(RoleReason::FoldedWeight) || info.reason.is(RoleReason::EvaluatedParameter);
}

static bool isAny(const InitializerInfo &) { return true; }

/// Programs keep some tables as parameters that they do not train (`requires_grad=False`), which no file tells: those
/// of sinusoids, filters that count bins, of which detectors take the mean of a distribution, powers of positions, of
/// which forecasters add up trends, masks of weights, and permutations. What was trained would hold something else.
static void freezeTables(ModelView &file, std::vector<InitializerInfo> &infos, FindingKind kind, RoleReason reason,
                         bool (*isKept)(const InitializerInfo &),
                         bool (*holds)(const TensorProto &, const std::string &)) {
  SmallVector<StringRef> frozen;
  for (auto [i, info] : llvm::enumerate(infos)) {
    bool isViewed = info.viewOf || llvm::any_of(infos, [&](const InitializerInfo &other) { return other.viewOf == i; });
    if (info.role != InitializerRole::Parameter || isViewed || !isKept(info) ||
        !holds(*file.findInitializer(info.tensor), file.tryReadInitializer(info.tensor).value_or("")))
      continue;
    info.role = InitializerRole::Constant;
    info.certainty = Certainty::Assumed;
    info.reason = reason;
    frozen.push_back(info.name);
  }
  if (!frozen.empty())
    file.getReport().add(
        {kind, frozen.front().str(), {frozen.begin(), frozen.end()}, {{"name", frozen.front().str()}}});
}

/// The same of what only weighs losses: weights of classes, say, that loss modules of a program hold as parameters.
static void freezeLossWeights(ModelView &file, std::vector<InitializerInfo> &infos) {
  const llvm::StringSet<> weights = findLossWeights(file.getModel().graph());
  auto isTrained = [&](const InitializerInfo &info) {
    return info.role == InitializerRole::Parameter && !weights.contains(info.tensor);
  };
  // A number that is all there is to train, such as a temperature of entropies, is no weight of something else.
  if (llvm::none_of(infos, isTrained))
    return;
  for (InitializerInfo &info : infos) {
    if (info.role != InitializerRole::Parameter || isTrained(info))
      continue;
    info.role = InitializerRole::Constant;
    info.certainty = Certainty::Assumed;
    info.reason = RoleReason::WeighsLosses;
    file.getReport().add({FindingKind::LossWeightNotTrained,
                          info.name,
                          {},
                          {{"initializer", quoteName(info.name)}, {"name", info.name}}});
  }
}

/// What was taken apart by an assumption is said.
static void reportAssumed(ModelView &file, ArrayRef<InitializerInfo> infos) {
  std::vector<std::string> names;
  std::string where;
  for (const InitializerInfo &info : infos) {
    if (!info.unfolded || !info.unfolded->isAssumed)
      continue;
    where = where.empty() ? info.unfolded->tensor : where;
    names.push_back(info.name);
  }
  if (!names.empty())
    file.getReport().add({FindingKind::TakenApart, where, names});
}

/// What exporters merged and the file does not tell apart, unless it is frozen.
static LogicalResult reportDoubts(ModelView &file, ArrayRef<InitializerInfo> infos) {
  bool isFatal = false;
  for (const UnfoldedDoubt &doubt : file.getUnfolded().doubts) {
    Finding finding = doubt.finding;
    const bool isFrozen = llvm::any_of(infos, [&](const InitializerInfo &info) {
      return info.tensor == finding.where && info.role != InitializerRole::Parameter;
    });
    if (isFrozen)
      continue;
    const bool hasNotes = Signature(file.getModel().graph()).isPresent();
    const bool isHeld = llvm::any_of(infos, [&](const InitializerInfo &info) { return info.tensor == finding.where; });
    finding.places.emplace_back("optimize=False or do_constant_folding=False",
                                (hasNotes ? "optimize=False" : "do_constant_folding=False") +
                                    (isHeld ? ", or freeze it: --frozen " + finding.where : std::string()));
    if (doubt.isFatal)
      file.getReport().errorAt(FailureKind::Unsupported, finding.where, finding.describe(), finding.describeRemedy());
    else
      file.getReport().add(std::move(finding));
    isFatal |= doubt.isFatal;
  }
  return failure(isFatal);
}

LogicalResult lowtide::applyChoices(ModelView &model, const RoleChoices &choices, std::vector<InitializerInfo> &infos) {
  if (failed(applyOverrides(model, choices, infos)))
    return failure();
  makeNamesUnique(infos);
  return success();
}

FailureOr<std::vector<InitializerInfo>> lowtide::recoverRoles(ModelView &model, const RoleChoices &choices) {
  std::vector<TensorFacts> facts = collectTensorFacts(model);
  Signature signature(model.getModel().graph());
  const llvm::StringSet<> ofFewBits = findFewBits(facts, model.getModel().graph(), [&](const TensorProto &tensor) {
    return model.tryReadInitializer(tensor.name());
  });
  std::vector<InitializerInfo> infos;
  if (!signature.isPresent()) {
    classifyByName(model, facts, ofFewBits, infos);
  } else {
    std::vector<TensorFacts> others;
    auto isPart = [&](const TensorFacts &fact) { return ofFewBits.contains(fact.tensor->name()); };
    llvm::copy_if(facts, std::back_inserter(others), [&](const TensorFacts &fact) { return !isPart(fact); });
    if (failed(classifyBySignature(model, signature, others, choices, infos)))
      return failure();
    for (const TensorFacts &fact : llvm::make_filter_range(facts, isPart))
      infos.push_back(describeFewBits(fact));
  }
  reportScales(model, facts, ofFewBits);
  freezeTables(model, infos, FindingKind::SinusoidsNotTrained, RoleReason::Sinusoids, isTable, holdsSinusoids);
  freezeTables(model, infos, FindingKind::CountsNotTrained, RoleReason::Counts, isFilter, holdsCounts);
  freezeTables(model, infos, FindingKind::PowersNotTrained, RoleReason::Powers, isAny, holdsPowers);
  freezeTables(model, infos, FindingKind::ChoicesNotTrained, RoleReason::Choices, isFactor, holdsMask);
  freezeTables(model, infos, FindingKind::ChoicesNotTrained, RoleReason::Choices, isAny, holdsPermutation);
  freezeTables(model, infos, FindingKind::CodesNotTrained, RoleReason::Codes, isEvaluated, holdsScaledCodes);
  freezeLossWeights(model, infos);
  if (signature.isPresent()) {
    reportTakenRows(model, facts, signature, infos);
    reportEvaluatedTies(model, infos);
  }
  if (failed(applyChoices(model, choices, infos)))
    return failure();
  for (InitializerInfo &info : infos) {
    if (const UnfoldedSource *source = model.findUnfolded(info.tensor);
        source && info.role == InitializerRole::Parameter && !info.reason.is(RoleReason::UserSaid)) {
      info.unfolded = source;
      info.certainty = source->isAssumed ? Certainty::Assumed : Certainty::Inferred;
      info.reason = {RoleReason::TakenApart, {source->how}};
    }
  }
  reportOutsideLookups(model, infos);
  reportAssumed(model, infos);
  if (failed(reportDoubts(model, infos)))
    return failure();
  return infos;
}
