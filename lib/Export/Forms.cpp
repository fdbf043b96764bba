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
    attachStorageForms(context);
  });
  registry.addExtension(+[](MLIRContext *context, train::TrainDialect *) { attachOptimizerForms(context); });
}

Value lowtide::writeScatterSum(FormBuilder &form, Value indices, Value updates, RankedTensorType type, int64_t axis) {
  Type element = type.getElementType(), sum = element.isF16() || element.isBF16() ? form.builder.getF32Type() : element;
  auto sums = cast<RankedTensorType>(type.clone(sum));
  Value added = form.node("ScatterElements", {form.filled(sums, 0.0), indices, form.cast(updates, sum)}, sums,
                          {form.attr("axis", axis), form.attr("reduction", "add")});
  return form.cast(added, element);
}
