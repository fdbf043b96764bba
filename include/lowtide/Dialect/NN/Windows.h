//===- Windows.h - windows over spatial dimensions --------------*- C++ -*-===//
//
// What convolutions and pooling share: checks and index arithmetic of windows with strides, padding and dilations.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Interfaces/ScalarBuilder.h"

namespace lowtide::nn {

/// The op's attributes strides, pads_begin, pads_end, dilations.
Window getWindow(mlir::Operation *op);

/// Whether dimension 1 of the tensors of a convolution or pooling is stored as the last one.
inline bool hasChannelsLast(mlir::Operation *op) { return op->hasAttr("channels_last"); }
/// One entry per dimension, as the op has them and as they would be channels first.
template <typename T> llvm::SmallVector<T> channelsFirst(mlir::Operation *op, llvm::ArrayRef<T> stored) {
  llvm::SmallVector<T> list(stored);
  if (hasChannelsLast(op))
    std::rotate(list.begin() + 1, list.end() - 1, list.end());
  return list;
}
/// The other way round.
template <typename T> llvm::SmallVector<T> asStored(mlir::Operation *op, llvm::ArrayRef<T> first) {
  llvm::SmallVector<T> list(first);
  if (hasChannelsLast(op))
    std::rotate(list.begin() + 1, list.begin() + 2, list.end());
  return list;
}

/// Checks lengths and ranges of the window attributes, and that `output` results from moving `kernel` over `input`
/// (spatial dimensions only).
llvm::LogicalResult verifyWindow(mlir::Operation *op, llvm::ArrayRef<int64_t> input, llvm::ArrayRef<int64_t> kernel,
                                 llvm::ArrayRef<int64_t> output);

/// A position and whether it exists; `inside` is null when it always does.
struct WindowPosition {
  llvm::SmallVector<mlir::Value> index;
  mlir::Value inside;
};

/// Position in the input that tap `tap` of the window at `output` sees.
WindowPosition inputPosition(ScalarBuilder &b, const Window &window, llvm::ArrayRef<int64_t> input,
                             mlir::ValueRange output, mlir::ValueRange tap);
/// How many windows see a position at most, in each dimension.
llvm::SmallVector<int64_t> countWindows(const Window &window, llvm::ArrayRef<int64_t> kernel);
/// Window number `number`, of so many, that sees `input`: its position in the output, and in `tap` the tap that sees
/// it. Taps ascend with the number.
WindowPosition outputPosition(ScalarBuilder &b, const Window &window, llvm::ArrayRef<int64_t> kernel,
                              llvm::ArrayRef<int64_t> input, llvm::ArrayRef<int64_t> output, mlir::ValueRange index,
                              mlir::ValueRange number, llvm::SmallVectorImpl<mlir::Value> &tap);
/// `then` where `position` exists, else `otherwise`.
mlir::Value readInside(ElementBuilder &b, const WindowPosition &position, mlir::Value otherwise,
                       llvm::function_ref<mlir::Value(ElementBuilder &)> then);

} // namespace lowtide::nn
