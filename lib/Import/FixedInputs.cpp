//===- FixedInputs.cpp - inputs that the user gives a value for good -------------===//
//
// `--set use_cache_branch=false`: the input is a constant of the model from then on, and what it decides is decided.
//
//===----------------------------------------------------------------------===//

#include "FixedInputs.h"

#include "lowtide/OnnxModel/NodeNames.h"

#include "onnx/onnx_pb.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace lowtide;

LogicalResult lowtide::checkFixedInputs(OnnxFile &file, const ImportOptions &options) {
  std::vector<std::string> names;
  for (const auto &input : file.getModel().graph().input())
    if (!file.findInitializer(input.name()))
      names.push_back(input.name());
  for (const auto &[name, text] : options.fixed)
    if (!llvm::is_contained(names, name)) {
      file.getReport().error(FailureKind::Usage, "--set: the model has no input " + quoteName(name),
                             "inputs: " + llvm::join(names, ", "));
      return failure();
    }
  return success();
}

FailureOr<DenseElementsAttr> lowtide::buildFixedInput(OnnxFile &file, StringRef input, StringRef text,
                                                      RankedTensorType type) {
  Type element = type.getElementType();
  auto refuse = [&](StringRef expected) {
    std::string held;
    llvm::raw_string_ostream(held) << element;
    file.getReport().error(FailureKind::Usage, "--set " + input + "=" + text + ": the input holds " + held,
                           "type " + expected + ", as in --set " + input + "=" +
                               (element.isInteger(1) ? "false" : "1"));
    return failure();
  };
  const bool isTrue = text.equals_insensitive("true"), isFalse = text.equals_insensitive("false");
  if (element.isInteger(1)) {
    if (!isTrue && !isFalse && text != "1" && text != "0")
      return refuse("true or false");
    return DenseElementsAttr::get(type, isTrue || text == "1");
  }
  if (auto integer = dyn_cast<IntegerType>(element)) {
    int64_t value;
    bool fits = !text.getAsInteger(10, value);
    if (fits && integer.getWidth() < 64)
      fits = integer.isUnsigned() ? value >= 0 && llvm::isUIntN(integer.getWidth(), uint64_t(value))
                                  : llvm::isIntN(integer.getWidth(), value);
    if (!fits || (integer.isUnsigned() && value < 0))
      return refuse("a whole number that fits");
    return DenseElementsAttr::get(type, APInt(integer.getWidth(), uint64_t(value), /*isSigned=*/true));
  }
  double value;
  if (text.getAsDouble(value))
    return refuse("a number");
  return DenseElementsAttr::get(type, Builder(type.getContext()).getFloatAttr(element, value).getValue());
}
