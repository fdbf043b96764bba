//===- CodedValues.h - numbers that were made of codes ----------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_CODEDVALUES_H
#define LOWTIDE_LIB_RECOVER_CODEDVALUES_H

#include "onnx/onnx_pb.h"

#include <string>

namespace lowtide {

/// Whether f32 `tensor`, of two dimensions or more, holds codes of at most 8 bits times scales: along one of its outer
/// dimensions, each line, or each block of one, holds whole multiples of one number. Codes of five sizes at least.
bool holdsScaledCodes(const ::onnx::TensorProto &tensor, const std::string &bytes);

/// Whether the tensor may hold such codes as they are, by its first numbers, if they are in the file.
bool mayHoldCodes(const ::onnx::TensorProto &tensor);

/// Whether it holds such codes as they are: whole numbers.
bool holdsCodes(const ::onnx::TensorProto &tensor, const std::string &bytes);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_CODEDVALUES_H
