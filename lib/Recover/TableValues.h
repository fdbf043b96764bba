//===- TableValues.h - tables that no training made ------------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_TABLEVALUES_H
#define LOWTIDE_LIB_RECOVER_TABLEVALUES_H

#include "onnx/onnx_pb.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace lowtide {

/// The numbers of f32 data.
std::vector<float> asFloats(llvm::StringRef bytes);

enum class Formula { None, Mask, Wave, Polynomial, Geometric };

/// What formula wrote the f32 `tensor`, whose data are `bytes`. None also where all elements are equal, which says
/// nothing.
Formula findFormula(const ::onnx::TensorProto &tensor, const std::string &bytes);
/// What it writes: "a mask", "sinusoids or ramps", "powers or polynomials", "geometric series".
llvm::StringRef describeFormula(Formula formula);

/// Whether f32 `tensor` holds sines of positions along some dimension, a good part of which turn visibly.
bool holdsSinusoids(const ::onnx::TensorProto &tensor, const std::string &bytes);

/// Whether f32 or f16 `tensor` holds 0, 1, 2 … and nothing else, at least eight numbers.
bool holdsCounts(const ::onnx::TensorProto &tensor, const std::string &bytes);

/// Whether f32 `tensor` holds 1, x, x², … of evenly spaced x, one power after the other along one of its two
/// dimensions: three powers of four positions at least.
bool holdsPowers(const ::onnx::TensorProto &tensor, const std::string &bytes);

/// Whether f32 `tensor` holds zeros and ones alone, both of them: four numbers at least.
bool holdsMask(const ::onnx::TensorProto &tensor, const std::string &bytes);
/// Whether f32 `tensor` is a square matrix with one 1 in each row and each column and zeros elsewhere, and not the
/// identity, which layers begin as: three rows at least.
bool holdsPermutation(const ::onnx::TensorProto &tensor, const std::string &bytes);

/// Whether an f32 matrix looks like what arithmetic makes of a random one: symmetric, with each number several times
/// but for its sign, or with zeros scattered among numbers that differ.
bool seemsComputed(const ::onnx::TensorProto &tensor, const std::string &bytes);

/// Whether every output channel of a convolution's weight is the same filter, of numbers that differ: a blur or an edge
/// detector, which no one trains.
bool repeatsFilter(const ::onnx::TensorProto &tensor, const std::string &bytes);

/// Whether f32 `tensor` holds numbers as only chance or training makes them: many, all different, in no order.
bool followsNoRule(const ::onnx::TensorProto &tensor, const std::string &bytes);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_TABLEVALUES_H
