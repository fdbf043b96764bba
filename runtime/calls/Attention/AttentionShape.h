//===- AttentionShape.h - attention and its derivative, read --------------===//
#ifndef LOWTIDE_RUNTIME_CALLS_ATTENTION_ATTENTIONSHAPE_H
#define LOWTIDE_RUNTIME_CALLS_ATTENTION_ATTENTIONSHAPE_H

#include "runtime/calls/CallAttributes.h"
#include "runtime/calls/CallKind.h"

#include <array>
#include <cstdint>
#include <memory>

namespace lowtide::rt {

/// Where the elements of a tensor of four dimensions lie in its bytes. Both count elements.
struct TensorLayout {
  int64_t offset = 0; ///< of the first element
  std::array<int64_t, 4> strides{};
  bool isStated = false; ///< an operand may be a part of what is read then
};

/// softmax(scale · q kᵀ + mask) v for each head, and the cotangents of q, k, v. q: [batch, heads, rows, depth];
/// k: [batch, keyHeads, columns, depth]; v: [batch, keyHeads, columns, valueDepth]; o as q with valueDepth; lse, the
/// logarithm of the sum of each row's exponentials: [batch, heads, rows], f32. Packed, in that order, unless `layouts`
/// say otherwise.
struct AttentionShape {
  enum Tensor { Q, K, V, O, GradO, GradQ, GradK, GradV, numTensors };

  bool isGradient = false;
  plan::DType dtype = plan::F32; ///< of all but lse and mask
  int64_t batch = 0, heads = 0, keyHeads = 0, rows = 0, columns = 0, depth = 0, valueDepth = 0;
  double scale = 1.0;
  bool isCausal = false; ///< row t sees columns ≤ t
  bool hasMask = false;
  std::array<int64_t, 4> mask{1, 1, 1, 1}; ///< each 1 or as in [batch, heads, rows, columns]
  plan::DType maskDtype = plan::F32;       ///< `dtype` or f32
  std::array<TensorLayout, numTensors> layouts;
  bool sharesResult = false; ///< the cotangents of q, k and v are parts of one result

  /// q, k, v (o, lse, the cotangent of o) (mask); o and lse, or the cotangents of q, k and v, in one result or three.
  int reads() const { return (isGradient ? 6 : 3) + hasMask; }
  int writes() const { return !isGradient ? 2 : sharesResult ? 1 : 3; }
  std::array<int64_t, 4> dims(Tensor tensor) const;
  uint64_t elements(Tensor tensor) const;
  /// The layout in which nothing is said.
  void pack(Tensor tensor);
  /// Whether each element of each result is written once: a result without gaps, or parts of rows that fill one.
  bool fillsResults() const;
  /// Elements from the beginning of the bytes to one past the last one that the layout reaches.
  uint64_t span(Tensor tensor) const;
  uint64_t rowCount() const { return static_cast<uint64_t>(batch * heads * rows); }
  uint64_t maskElements() const { return static_cast<uint64_t>(mask[0] * mask[1] * mask[2] * mask[3]); }
};

/// Whether the callee is "attention" or "attention_grad".
bool isAttention(const plan::Call &call);
Expected<AttentionShape> readAttention(const plan::Call &call);
std::span<const LibraryRule> getAttentionRules();
const LibraryRule *declineAttention(const AttentionShape &shape);
/// Samples whose derivative of an attention is one call of the library: the most that a workspace has room for, a part
/// of the batch without rest. All of them where it has room for none: engines may need less than was counted.
int64_t samplesAtOnce(const AttentionShape &shape, uint64_t workspaceBytes);
/// Bytes at the front of it that hold an attention's Σ o · do for each row.
uint64_t attentionDotBytes(const AttentionShape &shape);

std::unique_ptr<PreparedCall> prepareAttention(const AttentionShape &shape, const CallOperands &operands);

namespace cuda {
Expected<std::unique_ptr<LibraryCall>> prepareCudnnAttention(Libraries &libraries, const AttentionShape &shape,
                                                             const CallAddresses &addresses);
} // namespace cuda

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CALLS_ATTENTION_ATTENTIONSHAPE_H
