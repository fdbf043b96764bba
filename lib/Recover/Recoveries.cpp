//===- Recoveries.cpp - what exporters lost, in order ----------------------------===//
//
// Ordered tables: the evidence that a rule needs, what it puts back or finds, and what is said of the names that it
// returns. The tables of docs/import.md are printed from them.
//
//===----------------------------------------------------------------------===//

#include "Recoveries.h"

#include "Aliases.h"
#include "Angles.h"
#include "AssignedParts.h"
#include "BlockModes.h"
#include "CosineBounds.h"
#include "Detached.h"
#include "DetachedImages.h"
#include "DroppedEpsilons.h"
#include "EvaluatedDropout.h"
#include "GuardedZeros.h"
#include "HiddenRows.h"
#include "KeptDimensions.h"
#include "LabelSmoothing.h"
#include "LookupFrequency.h"
#include "LostDraws.h"
#include "LostDropout.h"
#include "LostPlaces.h"
#include "NegativePositions.h"
#include "PoolDivisors.h"
#include "RepeatedLayers.h"
#include "ScatterMeans.h"
#include "ScatterSums.h"
#include "SignedDistances.h"
#include "StraightThrough.h"
#include "Windows.h"
#include "WrittenDropout.h"
#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include "lowtide/Recover/Recover.h"

#include "onnx/onnx_pb.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace lowtide;
using ::onnx::GraphProto;

using Names = std::vector<std::string>;

namespace {
struct Recovery {
  Recovered (*apply)(GraphProto &graph);
  const char *evidence, *restores;
  /// Of names that came back, and of names about which the file does not tell enough; none: nothing is to be said.
  std::optional<FindingKind> restored, unknown;
};

/// An operation that means something else than the operators that stand for it, and that nothing can be put back for.
struct LostMeaning {
  bool (*holds)(const ::onnx::NodeProto &node, const Signature &signature);
  const char *evidence, *words, *remedy;
};
} // namespace

/// A rule that returns names of what came back.
template <Names (*rule)(GraphProto &)> static Recovered restores(GraphProto &graph) { return {rule(graph), {}}; }
/// A rule that returns names of what the file does not tell enough about.
template <auto rule> static Recovered finds(GraphProto &graph) { return {{}, rule(graph)}; }
/// A rule of which nothing is to be said: what it writes means the same as in the program, in any case.
template <void (*rule)(GraphProto &)> static Recovered rewrites(GraphProto &graph) {
  rule(graph);
  return {};
}

/// Whether a value is one of whole numbers, which have no gradient: by its stated type, or that of what it moves.
static bool isWhole(const GraphProto &graph, llvm::StringRef value) {
  for (const auto *values : {&graph.input(), &graph.value_info()})
    for (const auto &info : *values)
      if (info.name() == value && info.type().tensor_type().elem_type())
        return !isFloatType(info.type().tensor_type().elem_type());
  for (const ::onnx::TensorProto &tensor : graph.initializer())
    if (tensor.name() == value)
      return !isFloatType(tensor.data_type());
  for (const ::onnx::NodeProto &node : graph.node()) {
    if (node.output_size() != 1 || node.output(0) != value)
      continue;
    if (node.op_type() == "Cast")
      return llvm::any_of(node.attribute(), [](const auto &attribute) {
        return attribute.name() == "to" && !isFloatType(int32_t(attribute.i()));
      });
    return llvm::is_contained(
               {"Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"},
               node.op_type()) &&
           node.input_size() && isWhole(graph, node.input(0));
  }
  return false;
}

/// Differences and quotients of a value and itself: programs write `x - x.detach()`, never `x - x`.
static Names findSelfDifferences(GraphProto &graph) {
  Names found;
  for (const ::onnx::NodeProto &node : graph.node())
    if ((node.op_type() == "Sub" || node.op_type() == "Div") && node.input_size() == 2 &&
        node.input(0) == node.input(1) && !isWhole(graph, node.input(0)))
      found.push_back(node.output(0));
  return found;
}

/// Results of operations that read what a norm's call made of its running statistics: the exporter writes norms without
/// those results, and lets who reads them read the buffers, or copies of the buffers.
static Names findEarlyStatistics(GraphProto &graph) {
  Names found;
  const Signature signature(graph);
  if (!signature.isPresent())
    return found;
  llvm::StringSet<> produced;
  llvm::StringMap<std::string> copied;
  for (const ::onnx::NodeProto &node : graph.node())
    if (node.op_type() == "Identity" && node.output(0).starts_with("getitem"))
      copied[node.output(0)] = node.input(0);
    else
      produced.insert(node.output().begin(), node.output().end());
  auto isGone = [&](llvm::StringRef name) {
    return name.starts_with("getitem") && !produced.contains(name) && !signature.findPlaceholder(name);
  };
  for (const ::onnx::NodeProto &node : graph.node()) {
    const std::vector<std::string> operands = findProgramOperands(node);
    auto isEarly = [&](std::string input) {
      for (auto copy = copied.find(input); copy != copied.end(); copy = copied.find(input))
        input = copy->second;
      const SignatureEntry *entry = signature.findTarget(input);
      return entry && entry->kind == SignatureEntry::Buffer && entry->mutated &&
             llvm::is_contained({"running_mean", "running_var"}, leafOf(entry->target)) &&
             !llvm::is_contained(operands, entry->placeholder);
    };
    if (node.op_type() != "BatchNormalization" && node.op_type() != "Identity" && node.output_size() &&
        llvm::any_of(node.input(), isEarly) && llvm::any_of(operands, isGone))
      found.push_back(node.output(0));
  }
  return found;
}

/// Batch norms of PyTorch's old exporter of which no running statistic is kept, or nothing but it: what it writes for
/// an average over all batches, in training form and otherwise.
static Names findCumulativeNorms(GraphProto &graph) {
  Names found;
  for (const ::onnx::NodeProto &node : graph.node()) {
    if (node.op_type() != "BatchNormalization" || node.input_size() != 5 || !node.output_size() ||
        !llvm::StringRef(node.input(4)).ends_with("running_var") || !findProgramNote(node).empty())
      continue;
    double momentum = 0.9;
    bool isTraining = node.output_size() > 1;
    for (const auto &attribute : node.attribute())
      if (attribute.name() == "momentum")
        momentum = attribute.f();
      else if (attribute.name() == "training_mode")
        isTraining = attribute.i() != 0;
    if (std::string norm = moduleOf(node.input(4)).str();
        momentum == (isTraining ? 0 : 1) && !llvm::is_contained(found, norm))
      found.push_back(norm);
  }
  return found;
}

/// Results of operations within the program's own functions with a backward pass.
static Names findOwnFunctions(GraphProto &graph) {
  Names found;
  for (const ::onnx::NodeProto &node : graph.node())
    if (node.op_type() != "Constant" && node.output_size() && isOfOwnFunction(node))
      found.push_back(node.output(0));
  return found;
}

/// Float tensors that operators `ops` of onnxruntime read and that `isOf` takes for those its fusions made.
static Names findFused(const GraphProto &graph, llvm::ArrayRef<llvm::StringRef> ops,
                       bool (*isOf)(llvm::StringRef name)) {
  llvm::StringSet<> read;
  for (const ::onnx::NodeProto &node : graph.node())
    if (node.domain() == "com.microsoft" && llvm::is_contained(ops, node.op_type()))
      read.insert(node.input().begin(), node.input().end());
  Names found;
  for (const ::onnx::TensorProto &tensor : graph.initializer())
    if (llvm::StringRef name = tensor.name(); read.contains(name) && !name.contains('.') && isOf(name))
      found.push_back(tensor.name());
  return found;
}

/// Weights and biases of queries, keys and values that fusions of onnxruntime, or of onnx-simplifier, joined and gave
/// names of their own.
static Names findJoinedProjections(GraphProto &graph) {
  return findFused(graph, {"Attention", "MultiHeadAttention"}, [](llvm::StringRef name) {
    return name.ends_with("qkv_weight") || name.ends_with("qkv_bias") || name.starts_with("_v_");
  });
}

/// Weights of convolutions whose channels onnxruntime moved to the end.
static Names findChannelsLast(GraphProto &graph) {
  return findFused(graph, {"NhwcConv"}, [](llvm::StringRef name) { return name.ends_with("_weight_NHWC"); });
}

/// What the program detaches, one step after the other of a chain that was merged.
static Names restoreAllDetached(GraphProto &graph) {
  splitSteps(graph);
  return restoreDetached(graph);
}

static const Recovery operations[] = {
    {rewrites<restorePlaces>,
     "nodes without notes among nodes with notes, all of whose readers are of one module, or which read tensors of the "
     "file alone (the `Split` of an attention's `in_proj_bias`)",
     "the module of their readers; one for each of several",
     {},
     {}},
    {rewrites<restoreHiddenRows>,
     "attention whose mask is of truth values, hidden by the lowest finite number",
     "−∞: a query that sees no key has zeros for weights",
     {},
     {}},
    {rewrites<restoreCosineBounds>,
     "a cosine whose product of lengths is bounded; `clamp_min` of a copy of a length (`clone`)",
     "the bound of each length, with the gradient of the length",
     {},
     {}},
    {rewrites<restoreAngles>,
     "`Atan` of a quotient, moved by π where its divisor is negative",
     "`atan2`: the smaller coordinate is divided by the larger one",
     {},
     {}},
    {rewrites<restoreGuardedZeros>,
     "`sinc` and `xlogy` in notes, with a value of their own at zero",
     "the gradient at zero",
     {},
     {}},
    {rewrites<restoreKeptDimensions>,
     "`Squeeze` of `squeeze(dim)` in notes, along a dimension that is stated to be of another size than one",
     "the dimension",
     {},
     {}},
    {rewrites<restoreWrittenDropout>, "a mask of random numbers below c, divided by c", "`Dropout`", {}, {}},
    {finds<restoreAttentionDropout>,
     "`dropout_p` of `scaled_dot_product_attention`",
     "`Dropout` of the weights; an `Attention` node holds none",
     {},
     FindingKind::AttentionDropoutLost},
    {finds<findEvaluatedDropout>,
     "an evaluated result of an operation with several, where the number of a dropout is gone or elements are −0",
     "",
     {},
     FindingKind::DropoutEvaluated},
    {detachBlocks, "stack traces of code that the exporter put in place of a block with a mode",
     "`detach` of what the blocks made, where parameters outside have gradients without them",
     FindingKind::BlockWithoutGradient, FindingKind::BlockModeUnknown},
    {finds<restoreAllDetached>, "readers that name a value `detach`", "`detach`", {}, FindingKind::DetachLost},
    {restores<detachAssignedParts>,
     "who writes into a part of a buffer that the program assigns names a copy that is gone",
     "`detach` of what is written",
     FindingKind::AssignedPartsDetached,
     {}},
    {restores<splitDetached>,
     "readers that name a value that was merged with a detached one",
     "the value without `detach`",
     FindingKind::DetachedApart,
     {}},
    {finds<restoreDetachedImages>,
     "`detach` among the operations that made an evaluated tensor",
     "`detach` of the tensor, where each of them reads one value",
     {},
     FindingKind::DetachLost},
    {finds<findAliases>,
     "readers that name a value `alias`, in a program whose operations were decomposed",
     "",
     {},
     FindingKind::DetachPerhapsAlias},
    {restores<restoreStraightThrough>,
     "no notes; `h + (q − h)` or `q + h − h`, one of the two made of the other, or q without a gradient",
     "`detach` of the difference",
     FindingKind::StraightThrough,
     {}},
    {finds<findJoinedProjections>,
     "`com.microsoft.Attention`, `MultiHeadAttention` with `…_qkv_weight`, `…_qkv_bias`, `_v_7`",
     "",
     {},
     FindingKind::ProjectionsJoined},
    {finds<findChannelsLast>, "`com.microsoft.NhwcConv` with `…_weight_NHWC`", "", {}, FindingKind::ChannelsLast},
    {finds<findNegativePositions>,
     "no notes; positions of several dimensions added up, negative ones among them",
     "",
     {},
     FindingKind::NegativePositions},
    {restores<restoreWindows>,
     "no notes; slices at regular steps with constant operands, joined along a new dimension that counts from the end",
     "windows in front of their elements, as `unfold` has them",
     FindingKind::WindowsRestored,
     {}},
    {finds<findSignedDistances>,
     "no notes; a root of a sum of odd powers of differences",
     "",
     {},
     FindingKind::SignedDistances},
    {finds<findCumulativeNorms>,
     "no notes; a batch norm's momentum of 0 in training form, of 1 in inference form",
     "",
     {},
     FindingKind::NormsCumulative},
    {finds<findEarlyStatistics>,
     "readers of running statistics that name what a norm's call made of them",
     "",
     {},
     FindingKind::StatisticsEarly},
    {finds<findOwnFunctions>,
     "stack traces, or a name, of a `torch.autograd.Function`",
     "",
     {},
     FindingKind::OwnBackwardLost},
    {restores<restoreScatterMeans>,
     "`scatter_reduce` with `mean` in notes",
     "a count of what was scattered, and the quotient",
     FindingKind::ScatterMeansRestored,
     {}},
    {rewrites<restoreScatterSums>,
     "no notes; `ScatterElements` onto zeros, which is only added to something; of equal elements, to zeros",
     "the sum of what meets at one place (`index_add`, and `scatter_add` below opset 16)",
     {},
     {}},
    {restores<restorePoolDivisors>,
     "`divisor_override` in notes",
     "the factor kernel size / divisor",
     FindingKind::PoolDivisorsRestored,
     {}},
    {restores<restoreLostReductions>,
     "readers, or the program's outputs, name the sum or mean of a loss",
     "the sum or mean over all dimensions",
     FindingKind::ReductionsRestored,
     {}},
    {restores<restoreDroppedEpsilons>,
     "`Log`, `Sqrt`, `Pow`, `Reciprocal`, quotients and roots of products that name a sum which is gone, also where "
     "elements move in between",
     "the addition of 1e-8; of 1e-12 in a root of a product, as `cosine_embedding_loss` has it",
     FindingKind::EpsilonsRestored,
     {}},
};

static const Recovery afterParameters[] = {
    // Copies of modules, which are apart now, draw for themselves.
    {restoreDraws, "readers name a value that is gone, computed of a `Dropout` or of a batch norm in training form",
     "the nodes from the draw on, once more", FindingKind::DrawsApart, FindingKind::DrawsUnknown},
    // Two draws are apart now, whose difference is one of two values.
    {finds<findSelfDifferences>, "`x − x`, `x / x`", "", {}, FindingKind::SelfDifferences},
    {restoreLookupFrequency, "`scale_grad_by_freq` in notes", "the division of each row's gradient by its look-ups",
     FindingKind::LookUpFrequencyRestored, FindingKind::LookUpFrequencyLost},
    {finds<findDetachedTwins>,
     "readers name a value that is gone, next to a detached one",
     "",
     {},
     FindingKind::DetachedTwins},
    {finds<findRepeatedLayers>,
     "readers name a value that is gone, of a layer that ran on the same values",
     "",
     {},
     FindingKind::LayersRepeated},
    {restores<restoreLabelSmoothing>,
     "`label_smoothing` of `cross_entropy_loss` in notes",
     "the smoothed loss",
     FindingKind::LabelSmoothingRestored,
     {}},
};

/// Whether the layer's parameters are listed with a projection (`weight_hr_l0`).
static bool projectsState(const ::onnx::NodeProto &node, const Signature &signature) {
  if (node.op_type() != "LSTM")
    return false;
  const std::vector<std::string> operands = findProgramOperands(node);
  return llvm::any_of(signature.getEntries(), [&](const SignatureEntry &entry) {
    return leafOf(entry.target).starts_with("weight_hr_l") && llvm::is_contained(operands, entry.placeholder);
  });
}

template <bool (*holds)(const ::onnx::NodeProto &)>
static bool ofNode(const ::onnx::NodeProto &node, const Signature &) {
  return holds(node);
}

static const LostMeaning lostMeanings[] = {
    {projectsState, "`weight_hr_l0` among an `LSTM`'s parameters",
     "the program's LSTM projects its state (proj_size), for which ONNX has no word: the file holds another layer",
     "use an LSTM without proj_size and a linear layer after it, or write its steps with linear layers, and export "
     "again"},
    {[](const ::onnx::NodeProto &node, const Signature &) { return isMeanOfScatter(node) && node.output_size() != 0; },
     "`scatter_reduce` with `mean` in notes, in a form that cannot be counted",
     "the program takes means of what is scattered to one place (scatter_reduce), and its exporter wrote an operator "
     "that does not",
     "write sums and counts (scatter_add) and their quotient, and export again"},
    {ofNode<shortensRows>, "`max_norm` of an embedding in notes",
     "the program keeps the rows of this embedding below a length (max_norm) and writes them back before it reads "
     "them, which is no part of a training step",
     "export without max_norm; compute what shortens the rows from the embedding's result where it should be trained "
     "through"},
    {ofNode<lacksDivisor>, "`divisor_override` in notes, with `ceil_mode`",
     "the program divides what it pools by a number of its own (divisor_override), and its exporter wrote averages "
     "without a word",
     "pool without divisor_override, multiply by kernel size / divisor, and export again"},
};

static void warn(const Names &names, std::optional<FindingKind> kind, Report &report) {
  assert((kind || names.empty()) && "a rule returns names of which nothing is said");
  if (!names.empty())
    report.add({*kind, names.front(), names});
}

static void apply(llvm::ArrayRef<Recovery> rules, GraphProto &graph, Report &report) {
  for (const Recovery &rule : rules) {
    const Recovered names = rule.apply(graph);
    warn(names.restored, rule.restored, report);
    warn(names.unknown, rule.unknown, report);
  }
}

/// What the program's operations mean beyond the operators that the exporter wrote, and what cannot be put back.
static void reportLostMeanings(const GraphProto &graph, Report &report) {
  const Signature signature(graph);
  for (const LostMeaning &meaning : lostMeanings) {
    llvm::StringSet<> known; // some operations are several nodes each
    for (const ::onnx::NodeProto &node : graph.node())
      if (meaning.holds(node, signature) && known.insert(findProgramNote(node)).second)
        report.errorAt(FailureKind::Unsupported, nodeLabel(node), meaning.words, meaning.remedy);
  }
}

void lowtide::restoreOperations(GraphProto &graph, Report &report) {
  apply(operations, graph, report);
  reportLostMeanings(graph, report);
}

void lowtide::restoreAfterParameters(GraphProto &graph, Report &report) { apply(afterParameters, graph, report); }

/// The kinds of findings of a rule.
static std::string describeFindings(const Recovery &rule) {
  std::string text;
  for (const auto &[kind, what] :
       {std::pair(rule.restored, "what is put back"), std::pair(rule.unknown, "what is not")})
    if (kind)
      text += (text.empty() ? "" : ", and ") + llvm::formatv("{0} (`{1}`, {2})", what, stringifyFindingKind(*kind),
                                                             stringifyCertainty(getCertainty(*kind)))
                                                   .str();
  return text.empty() ? "nothing" : "a warning names " + text;
}

void lowtide::printRecoveries(llvm::raw_ostream &os) {
  auto print = [&](llvm::ArrayRef<Recovery> rules) {
    for (const Recovery &rule : rules)
      os << "| " << rule.evidence << " | " << (*rule.restores ? rule.restores : "–") << " | " << describeFindings(rule)
         << " |\n";
  };
  os << "| evidence | what is put back | what is said |\n| --- | --- | --- |\n";
  print(operations);
  for (const LostMeaning &meaning : lostMeanings)
    os << "| " << meaning.evidence << " | – | refused: " << meaning.words << " |\n";
  print(afterParameters);
}
