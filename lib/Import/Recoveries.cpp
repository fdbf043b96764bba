//===- Recoveries.cpp - what exporters lost, in order ----------------------------===//
//
// Two ordered tables: what puts something back, or finds what cannot be, and what is said of the names that it returns.
//
//===----------------------------------------------------------------------===//

#include "Recoveries.h"

#include "Angles.h"
#include "CosineBounds.h"
#include "Detached.h"
#include "DroppedEpsilons.h"
#include "Evidence.h"
#include "HiddenRows.h"
#include "LabelSmoothing.h"
#include "LookupFrequency.h"
#include "LostDraws.h"
#include "LostDropout.h"
#include "LostPlaces.h"
#include "NegativePositions.h"
#include "PoolDivisors.h"
#include "RepeatedLayers.h"
#include "ScatterMeans.h"
#include "SignedDistances.h"
#include "StraightThrough.h"
#include "TensorData.h"
#include "WellFormed.h"
#include "WrittenDropout.h"

#include "onnx/onnx_pb.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace lowtide;
using ::onnx::GraphProto;

using Names = std::vector<std::string>;

namespace {
struct Recovery {
  Names (*apply)(GraphProto &graph);
  /// Of the fact that something is gone, and of what is put in its place.
  Certainty certainty;
  /// Of the names, in the place of {0}.
  const char *words;
  const char *remedy;
};
} // namespace

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

/// Results of operations within the program's own functions with a backward pass.
static Names findOwnFunctions(GraphProto &graph) {
  Names found;
  for (const ::onnx::NodeProto &node : graph.node())
    if (node.op_type() != "Constant" && node.output_size() && isOfOwnFunction(node))
      found.push_back(node.output(0));
  return found;
}

static const Recovery operations[] = {
    {restoreAttentionDropout, Certainty::Stated,
     "the program drops attention weights, and the file does not hold them: attention trains without dropout in {0}",
     "export with optimize=False and an opset_version below 23"},
    {detachBlocks, Certainty::Assumed,
     "the program computes {0} in a block of torch.autocast or torch.no_grad, and the file does not tell which: "
     "gradients flow through",
     "write .detach() where there are none, and export again"},
    {[](GraphProto &graph) {
       splitSteps(graph);
       return restoreDetached(graph);
     },
     Certainty::Assumed,
     "the program detaches values, and the file does not tell which they are: gradients flow through {0}",
     "export with optimize=False"},
    {splitDetached, Certainty::Assumed,
     "the program computes {0} like values after a detach that the exporter removed, and the two were merged: it is "
     "taken not to be detached there, and in a difference of two values, to detach the other",
     "export with optimize=False"},
    {findSelfDifferences, Certainty::Assumed,
     "a value and itself are subtracted or divided, as where the program detaches one of the two and its exporter does "
     "not tell: no gradient flows through {0}",
     "export with dynamo=True and optimize=False"},
    {restoreStraightThrough, Certainty::Assumed,
     "the program adds to a value the difference to it of what is made of it, as straight-through estimators do, and "
     "its exporter does not tell that the difference is detached; it is taken to be: {0}",
     "export with dynamo=True, whose notes tell"},
    {findNegativePositions, Certainty::Inferred,
     "the program indexes by several tensors, one of them with negative positions, and its exporter added them up as "
     "if "
     "they counted from the start: other elements are read than the program reads (onnxruntime reads the same) for {0}",
     "count positions from the start, or export with dynamo=True"},
    {[](GraphProto &graph) { return findSignedDistances(graph); }, Certainty::Assumed,
     "roots of sums of powers of differences, as the exporter writes distances (cdist, pairwise_distance), without "
     "their "
     "absolute values, which count at these orders: {0}",
     "write (a - b).abs(), or export with dynamo=True"},
    {findOwnFunctions, Certainty::Inferred,
     "the program computes {0} in a torch.autograd.Function, and no file holds its backward pass: the gradient is that "
     "of "
     "its forward pass",
     "write it with .detach(): h.detach() * (1 + s) - h * s turns the gradient of h round"},
    {restoreScatterMeans, Certainty::Stated,
     "the program takes means of what is scattered to one place (scatter_reduce), and its exporter wrote an operator "
     "that does not; they are put back: {0}",
     "write sums and counts (scatter_add) and their quotient"},
    {restorePoolDivisors, Certainty::Stated,
     "the program divides what it pools by a number of its own (divisor_override), and its exporter wrote averages "
     "without a word; it is put back: {0}",
     "pool without divisor_override, and multiply by kernel size / divisor"},
    {restoreLostReductions, Certainty::Inferred,
     "the exporter took losses that are not reduced for numbers and dropped what reduces them; they are reduced over "
     "all dimensions again: {0}",
     "export with optimize=False to keep the program's own reduction"},
    {restoreDroppedEpsilons, Certainty::Assumed,
     "the exporter dropped the addition of a number of at most 1e-8 in front of operations that need it at zero; 1e-8 "
     "is added again: {0}",
     "export with optimize=False to keep the program's own number"},
};

static const Recovery afterParameters[] = {
    {[](GraphProto &graph) { return findDetachedTwins(graph); }, Certainty::Assumed,
     "the exporter merged what the program detaches with what it computes alike of other values, and the file does not "
     "tell what is detached in {0}",
     "export with optimize=False"},
    {[](GraphProto &graph) { return findRepeatedLayers(graph); }, Certainty::Assumed,
     "the program runs layers again on the same values, and the exporter merged the two runs: gradients flow through "
     "both, unless one is without gradients (torch.no_grad), which the file does not tell: {0}",
     "write .detach() in place of torch.no_grad(), and export with optimize=False"},
    {restoreLabelSmoothing, Certainty::Stated,
     "the exporter left the program's label smoothing out of cross-entropies, and the file alone gives other losses; "
     "it is put back: {0}",
     "export with label_smoothing=0 to train without it"},
};

static void warn(const Names &names, Certainty certainty, const char *words, const char *remedy, Report &report) {
  if (!names.empty())
    report.warningAt(names.front(), certainty, llvm::formatv(words, llvm::join(names, ", ")).str(), remedy, names);
}

static void apply(llvm::ArrayRef<Recovery> rules, GraphProto &graph, Report &report) {
  for (const Recovery &rule : rules)
    warn(rule.apply(graph), rule.certainty, rule.words, rule.remedy, report);
}

/// Whether the layer's parameters are listed with a projection (`weight_hr_l0`).
static bool projectsState(const ::onnx::NodeProto &lstm, const Signature &signature) {
  const std::vector<std::string> operands = findProgramOperands(lstm);
  return llvm::any_of(signature.getEntries(), [&](const SignatureEntry &entry) {
    return leafOf(entry.target).starts_with("weight_hr_l") && llvm::is_contained(operands, entry.placeholder);
  });
}

/// What the program's operations mean beyond the operators that the exporter wrote, and what cannot be put back.
static void reportLostMeanings(const GraphProto &graph, Report &report) {
  llvm::StringSet<> shortened; // embeddings are several nodes each
  const Signature signature(graph);
  for (const ::onnx::NodeProto &node : graph.node()) {
    if (node.op_type() == "LSTM" && projectsState(node, signature))
      report.errorAt(FailureKind::Unsupported, nodeLabel(node),
                     "the program's LSTM projects its state (proj_size), for which ONNX has no word: the file holds "
                     "another layer",
                     "use an LSTM without proj_size and a linear layer after it, or write its steps with linear "
                     "layers, and export again");
    if (isMeanOfScatter(node) && node.output_size())
      report.errorAt(
          FailureKind::Unsupported, nodeLabel(node),
          "the program takes means of what is scattered to one place (scatter_reduce), and its exporter wrote "
          "an operator that does not",
          "write sums and counts (scatter_add) and their quotient, and export again");
    if (shortensRows(node) && shortened.insert(findProgramNote(node)).second)
      report.errorAt(FailureKind::Unsupported, nodeLabel(node),
                     "the program keeps the rows of this embedding below a length (max_norm) and writes them back "
                     "before it reads them, which is no part of a training step",
                     "export without max_norm; compute what shortens the rows from the embedding's result where it "
                     "should be trained through");
    if (lacksDivisor(node))
      report.errorAt(FailureKind::Unsupported, nodeLabel(node),
                     "the program divides what it pools by a number of its own (divisor_override), and its exporter "
                     "wrote averages without a word",
                     "pool without divisor_override, multiply by kernel size / divisor, and export again");
  }
}

void lowtide::restoreOperations(GraphProto &graph, Report &report) {
  restorePlaces(graph);
  restoreHiddenRows(graph);
  restoreCosineBounds(graph);
  restoreAngles(graph);
  restoreWrittenDropout(graph);
  apply(operations, graph, report);
  reportLostMeanings(graph, report);
}

void lowtide::restoreAfterParameters(GraphProto &graph, Report &report) {
  // Copies of modules, which are apart now, draw for themselves.
  const LostDraws draws = restoreDraws(graph);
  warn(draws.restored, Certainty::Inferred,
       "the exporter merged what the program computes of several draws of dropout, or of several runs of a batch norm; "
       "they are drawn apart again: {0}",
       "export with optimize=False", report);
  warn(draws.unknown, Certainty::Assumed,
       "the exporter merged what the program computes of dropped or normalized values, and the file does not tell "
       "whether of several draws, or of several runs of a batch norm: one is made for {0}",
       "export with optimize=False", report);
  const LookupFrequency frequency = restoreLookupFrequency(graph);
  warn(frequency.restored, Certainty::Stated,
       "the program divides gradients of embeddings by how often a row is looked up (scale_grad_by_freq), for which "
       "ONNX has no word; that is put back: {0}",
       "export with scale_grad_by_freq=False to train without it", report);
  warn(frequency.lost, Certainty::Stated,
       "the program divides gradients by how often a row is looked up (scale_grad_by_freq), for which ONNX has no "
       "word, and the file does not tell where rows are: it is trained without that in {0}",
       "export with scale_grad_by_freq=False to train so everywhere", report);
  apply(afterParameters, graph, report);
}
