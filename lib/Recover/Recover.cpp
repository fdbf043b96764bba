//===- Recover.cpp - what the importer asks of recovery ---------------------------===//

#include "lowtide/Recover/Recover.h"

#include "FewBits.h"
#include "ModulePaths.h"
#include "Prefixes.h"
#include "Recoveries.h"
#include "ShapeSources.h"
#include "Unfold.h"

#include "lowtide/OnnxModel/NodeOrder.h"
#include "lowtide/Recover/Evidence.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::ModelProto;

ModelView::~ModelView() = default;

const UnfoldedSource *ModelView::findUnfolded(StringRef name) const {
  const StringMap<UnfoldedSource> &sources = getUnfolded().sources;
  auto found = sources.find(name);
  return found == sources.end() ? nullptr : &found->second;
}

/// Tools that take files apart or put them together sign them with their own names. Where values still go by the names
/// of PyTorch's exporters, PyTorch is the producer: what it means by an operator (running variances) does not change.
static void restoreProducer(ModelProto &model) {
  const std::string signer = model.producer_name();
  if (signer == "pytorch" || signer == "tf2onnx")
    return;
  const bool isExtracted = signer == "onnx.utils.extract_model" && isOfCurrentExporter(model.graph());
  if (!isExtracted && llvm::none_of(model.graph().node(), namesItsValue) &&
      llvm::none_of(model.graph().node(), [](const ::onnx::NodeProto &node) {
        return node.output_size() && findEvaluatedOperator(node.output(0)) == node.op_type();
      }))
    return;
  model.set_producer_name("pytorch");
  model.set_producer_version(signer.empty() ? signer : "by " + signer);
}

StringMap<std::string> lowtide::restoreNames(ModelProto &model) {
  StringMap<std::string> originals = removePrefixes(*model.mutable_graph());
  restoreProducer(model);
  return originals;
}

UnfoldedTensors lowtide::recoverProgram(GraphProto &graph, TensorReader read, Report &report) {
  ModulePaths(graph).annotate(graph);
  dropShapeSources(graph);
  restoreOperations(graph, report);
  UnfoldedTensors unfolded = [&] {
    WithoutScales without(graph, read);
    return unfoldInitializers(graph, read);
  }();
  restoreAfterParameters(graph, report);
  // What was put in front may read a parameter's copy, or a loss.
  sortNodes(graph, /*depth=*/0);
  return unfolded;
}
