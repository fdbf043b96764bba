//===- InventedNames.cpp - names that exporters and optimizers invent -------------===//

#include "Classifier.h"

#include "ElementFunctions.h"
#include "LostNotes.h"
#include "Unfold.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;

/// `val_12`: a step within an operation, as PyTorch's current exporter numbers them; `_v_12`: what onnxsim evaluated;
/// `scalar_tensor_default_1`, `full_2`: numbers of the program.
static bool isNumberedValue(StringRef name) {
  unsigned number;
  // What onnxslim fuses: `val_12_weight`.
  if (StringRef stem = name; (stem.consume_back("_weight") || stem.consume_back("_bias")) && isNameOfValue(name))
    return true;
  if ((name.consume_front("val_") || name.consume_front("_v_")) && !name.getAsInteger(10, number))
    return true;
  return StringSwitch<bool>(operationName(name))
      .Cases({"scalar_tensor_default", "scalar_tensor", "lift_fresh_copy", "full", "full_like",
              "convert_element_type_default"},
             true)
      .Cases({"fill", "zeros_like", "ones_like", "new_full", "new_zeros", "new_ones", "linspace"}, true)
      .Default(false);
}

/// `Gemm_output_0`; not Keras's `attention_output_1/kernel`.
static bool isNumberedOutput(StringRef name) {
  StringRef number = name.rsplit("_output_").second;
  return !number.empty() && all_of(number, isDigit);
}

bool lowtide::isInventedName(StringRef name) {
  return name.contains("::") || name.starts_with("/") || name.starts_with("const_fold_opt") ||
         name.starts_with("Constant_") || name.starts_with("ortshared_") || name.starts_with("_inlfunc_") ||
         isNumberedOutput(name) || isNumberedValue(name) || all_of(name, isDigit);
}
