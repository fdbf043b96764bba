//===- FoldedNorms.cpp - batch norms that cleaners folded away --------------------===//
//
// A batch norm in evaluation form scales and shifts what the layer before it gives: cleaners multiply its weight into
// that layer's. The layer then gives what is called after the norm, or has weights that are called after the fold.
//
//===----------------------------------------------------------------------===//

#include "FoldedNorms.h"

#include "LostNotes.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;

/// A layer, perhaps with what onnxruntime fused into it.
static bool isLayer(const NodeProto &node) {
  StringRef op = node.op_type();
  if (node.domain() == "com.microsoft")
    op.consume_front("Fused");
  else if (!node.domain().empty())
    return false;
  return is_contained({"Conv", "ConvTranspose", "Gemm", "MatMul"}, op);
}

/// onnx-simplifier's name of what it evaluated.
static bool isNumbered(StringRef name) { return name.consume_front("_v_") && !name.empty() && all_of(name, isDigit); }

/// What PyTorch's current exporter calls a batch norm's result.
static bool isNormResult(StringRef name) {
  StringRef operation = operationName(name);
  return operation == "batch_norm" || operation.starts_with("_native_batch_norm");
}

static void insert(std::vector<std::string> &list, StringRef name) {
  if (!name.empty() && !is_contained(list, name))
    list.push_back(name.str());
}

FoldedNorms lowtide::findFoldedNorms(const ModelProto &model) {
  const GraphProto &graph = model.graph();
  FoldedNorms found;
  StringSet<> tensors;
  for (const auto &tensor : graph.initializer())
    tensors.insert(tensor.name());
  // In files of the current exporter, results are called after operators, and `getitem` is one of several. Dropout
  // gives such a value as well, which only onnxruntime does not call so when it takes dropout away.
  const bool isCurrent = isOfCurrentExporter(graph), isOfRuntime = findCleaner(model) == Cleaner::OnnxRuntime;
  for (const NodeProto &node : graph.node()) {
    if (!isLayer(node) || node.output_size() != 1 || node.input_size() < 2)
      continue;
    StringRef result = node.output(0), weight = node.input(1);
    bool fusedByRule = any_of(node.metadata_props(), [](const auto &prop) {
      return prop.key() == "pkg.onnxscript.rewriter.rule_name" && StringRef(prop.value()).contains("BatchNorm");
    });
    if (findEvaluatedOperator(result) == "BatchNormalization") {
      std::string module = findScope(result).value_or("");
      insert(found.certain, module.empty() ? result : StringRef(module));
    } else if (fusedByRule || isNormResult(result) || weight.starts_with("ConvBnFusion_") ||
               (isCurrent && operationName(result) == "getitem" &&
                (isOfRuntime || StringRef(node.op_type()).contains("Conv")))) {
      insert(found.certain, result);
    } else if (StringRef(node.op_type()).starts_with("Conv") && tensors.contains(weight) && isNumbered(weight)) {
      std::string module = findScope(node.name()).value_or("");
      insert(found.likely, module.empty() ? result : StringRef(module));
    }
  }
  return found;
}

static void warnOfFolded(ModelView &file, const std::vector<std::string> &modules, StringRef remedy) {
  if (!modules.empty())
    file.getReport().add({FindingKind::NormsFolded,
                          modules.front(),
                          modules,
                          {{"batch normalizations were",
                            std::to_string(modules.size()) +
                                (modules.size() == 1 ? " batch normalization was" : " batch normalizations were")},
                           {"export in training form", remedy.str()}}});
}

/// The module of the running statistics that the node's note reads: its scope names the module of the caller where the
/// exporter put code in place of a block with a mode. Statistics that belong to no module tell none.
static std::string findNormModule(const NodeProto &node, const Signature &signature) {
  for (const std::string &operand : findProgramOperands(node)) {
    const SignatureEntry *entry = signature.findPlaceholder(operand);
    if (entry && leafOf(entry->target) == "running_mean" && !moduleOf(entry->target).empty())
      return moduleOf(entry->target).str();
  }
  return findModulePath(node).value_or("");
}

bool lowtide::normalizesSamples(const GraphProto &graph, StringRef statistic) {
  return any_of(graph.node(), [&](const NodeProto &node) {
    return node.op_type() == "InstanceNormalization" && is_contained(findProgramOperands(node), statistic);
  });
}

void lowtide::reportFoldedNorms(ModelView &file, const Signature &signature, std::vector<std::string> modules,
                                StringRef remedy) {
  for (const NodeProto &node : file.getModel().graph().node())
    if (isLayer(node) && StringRef(findProgramOperator(node)).contains("batch_norm"))
      insert(modules, findNormModule(node, signature));
  warnOfFolded(file, modules, remedy);
}

void lowtide::reportFoldedNorms(ModelView &file) {
  FoldedNorms folded = findFoldedNorms(file.getModel());
  constexpr StringLiteral remedy =
      "clean a file that was exported in training form (training=TrainingMode.TRAINING, or "
      "optimize=False), or train the file as the exporter wrote it";
  warnOfFolded(file, folded.certain, remedy);
  if (!folded.likely.empty())
    file.getReport().add({FindingKind::NormsPerhapsFolded,
                          folded.likely.front(),
                          folded.likely,
                          {{"export in training form", remedy.str()}}});
}
