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
      .Cases({"fill", "zeros", "ones", "zeros_like", "ones_like", "new_full", "new_zeros", "new_ones", "linspace"},
             true)
      .Default(false);
}

/// `Gemm_output_0`; not Keras's `attention_output_1/kernel`.
static bool isNumberedOutput(StringRef name) {
  StringRef number = name.rsplit("_output_").second;
  return !number.empty() && all_of(number, isDigit);
}

/// `Mu_Mulcst`, `Ad_Addcst1`: numbers that skl2onnx writes operations with, as those of a scaler; what it learned of
/// layers is called `coefficient`, `intercepts`.
static bool isAlgebraNumber(StringRef name) {
  name = name.rtrim("0123456789");
  auto [abbreviation, operation] = name.split('_');
  return abbreviation.size() == 2 && operation.consume_back("cst") && operation.starts_with(abbreviation);
}

/// Of names that no program gives.
static constexpr StringLiteral inventedPrefixes[] = {
    "/",              // PyTorch's old exporter: /net/Gather_output_0
    "const_fold_opt", // tf2onnx
    "Constant_",      // nodes without a name
    "ortshared_",     // ONNX Runtime, of equal numbers
    "_inlfunc_",      // ONNX's inliner of functions
};

bool lowtide::isInventedName(StringRef name) {
  return name.contains("::") || any_of(inventedPrefixes, [&](StringRef prefix) { return name.starts_with(prefix); }) ||
         isNumberedOutput(name) || isNumberedValue(name) || isAlgebraNumber(name) || all_of(name, isDigit);
}
