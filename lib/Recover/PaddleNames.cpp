//===- PaddleNames.cpp - names in files that paddle2onnx wrote -------------------===//

#include "PaddleNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;

bool lowtide::isOfPaddle(const ::onnx::GraphProto &graph) {
  // `PaddlePaddle Graph in PIR mode`; of older versions `Model from PaddlePaddle.` Tools that write the file again keep
  // the names of values.
  return StringRef(graph.name()).contains("PaddlePaddle") || any_of(graph.node(), [](const auto &node) {
           return any_of(node.output(), [](StringRef output) { return output.starts_with("p2o."); });
         });
}

bool lowtide::isPaddleValue(StringRef name) {
  return name.starts_with("p2o.") || name.starts_with("helper.") || name.starts_with("auto.");
}

bool lowtide::isMovedInPaddle(StringRef name) {
  // `p2o.pd_op.reshape.0.0`; of older versions `p2o.Reshape.0`.
  if (!name.consume_front("p2o."))
    return false;
  name.consume_front("pd_op.");
  return StringSwitch<bool>(name.split('.').first)
      .CasesLower({"reshape", "reshape2", "unsqueeze", "squeeze", "transpose"}, true)
      .Default(false);
}
