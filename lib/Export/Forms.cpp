//===- Forms.cpp - all families' ONNX forms -------------------------------===//
//
// Registration.
//
//===----------------------------------------------------------------------===//

#include "Forms.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Export/Export.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace lowtide;

void lowtide::registerOnnxForms(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    attachActivationForms(context);
    attachMovementForms(context);
    attachReductionForms(context);
    attachContractionForms(context);
    attachPoolingForms(context);
    attachIndexingForms(context);
  });
  registry.addExtension(+[](MLIRContext *context, train::TrainDialect *) { attachOptimizerForms(context); });
}
