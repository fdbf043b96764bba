//===- Windows.cpp - windows over spatial dimensions ------------*- C++ -*-===//
//
// What convolutions and pooling share: checks and index arithmetic of windows with strides, padding and dilations.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Windows.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

/// Bound on every window attribute and kernel extent: sums and products of two stay in 64 bits.
static constexpr int64_t windowLimit = int64_t(1) << 30;

Window nn::getWindow(Operation *op) {
  auto get = [&](StringRef name) {
    return SmallVector<int64_t>(op->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef());
  };
  return {get("strides"), get("pads_begin"), get("pads_end"), get("dilations")};
}

LogicalResult nn::verifyWindow(Operation *op, ArrayRef<int64_t> input, ArrayRef<int64_t> kernel,
                               ArrayRef<int64_t> output) {
  Window window = getWindow(op);
  auto check = [&](StringRef name, ArrayRef<int64_t> values, int64_t lowest) -> LogicalResult {
    if (values.size() != input.size())
      return op->emitOpError() << name << " must have one entry for each of the " << input.size()
                               << " spatial dimensions, found " << values.size();
    for (int64_t value : values)
      if (value < lowest || value > windowLimit)
        return op->emitOpError() << name << " entry " << value << " is outside [" << lowest << ", " << windowLimit
                                 << "]";
    return success();
  };
  if (failed(check("strides", window.strides, 1)) || failed(check("pads_begin", window.padsBegin, 0)) ||
      failed(check("pads_end", window.padsEnd, 0)) || failed(check("dilations", window.dilations, 1)) ||
      failed(check("kernel", kernel, 1)))
    return failure();
  for (int64_t extent : input)
    if (extent > (int64_t(1) << 40))
      return op->emitOpError("spatial extent ") << extent << " is above " << (int64_t(1) << 40);
  SmallVector<int64_t> expected = windowedShape(input, kernel, window);
  for (size_t i = 0; i < expected.size(); ++i)
    if (output[i] != expected[i])
      return op->emitOpError("spatial dimension ")
             << i << " of the output has extent " << output[i] << ", expected " << expected[i];
  return success();
}

static void require(ScalarBuilder &b, WindowPosition &position, Value condition) {
  position.inside = position.inside ? b.logicalAnd(position.inside, condition) : condition;
}

WindowPosition nn::inputPosition(ScalarBuilder &b, const Window &window, ArrayRef<int64_t> input, ValueRange output,
                                 ValueRange tap) {
  WindowPosition position;
  for (auto [i, extent] : llvm::enumerate(input)) {
    Value start = b.mul(output[i], b.index(window.strides[i]));
    Value at = b.add(start, b.mul(tap[i], b.index(window.dilations[i])));
    if (window.padsBegin[i] > 0) {
      at = b.sub(at, b.index(window.padsBegin[i]));
      require(b, position, b.compare(Compare::GE, at, b.index(0)));
    }
    if (window.padsBegin[i] > 0 || window.padsEnd[i] > 0)
      require(b, position, b.compare(Compare::LT, at, b.index(extent)));
    position.index.push_back(at);
  }
  return position;
}

/// Without gaps between taps, those that a window has on a position are `stride` apart.
static bool jumpsTaps(const Window &window, size_t dim) { return window.dilations[dim] == 1; }

SmallVector<int64_t> nn::countWindows(const Window &window, ArrayRef<int64_t> kernel) {
  SmallVector<int64_t> counts(kernel);
  for (auto [i, count] : llvm::enumerate(counts))
    if (jumpsTaps(window, i))
      count = llvm::divideCeil(count, window.strides[i]);
  return counts;
}

WindowPosition nn::outputPosition(ScalarBuilder &b, const Window &window, ArrayRef<int64_t> kernel,
                                  ArrayRef<int64_t> input, ArrayRef<int64_t> output, ValueRange index,
                                  ValueRange number, SmallVectorImpl<Value> &tap) {
  WindowPosition position;
  for (auto [i, extent] : llvm::enumerate(output)) {
    const int64_t stride = window.strides[i], last = (input[i] - 1 + window.padsBegin[i]) / stride;
    Value padded = b.add(index[i], b.index(window.padsBegin[i])), at;
    if (jumpsTaps(window, i)) {
      Value newest = stride == 1 ? padded : b.div(padded, b.index(stride));
      Value first = stride == 1 ? b.index(0) : b.rem(padded, b.index(stride));
      tap.push_back(b.add(first, b.mul(number[i], b.index(stride))));
      at = b.sub(newest, number[i]);
      if (kernel[i] % stride != 0)
        require(b, position, b.compare(Compare::LT, tap.back(), b.index(kernel[i])));
      if (kernel[i] > stride)
        require(b, position, b.compare(Compare::GE, at, b.index(0)));
    } else {
      tap.push_back(number[i]);
      at = b.sub(padded, b.mul(number[i], b.index(window.dilations[i])));
      require(b, position, b.compare(Compare::GE, at, b.index(0)));
      if (stride > 1) {
        require(b, position, b.compare(Compare::EQ, b.rem(at, b.index(stride)), b.index(0)));
        at = b.div(at, b.index(stride));
      }
    }
    if (last >= extent)
      require(b, position, b.compare(Compare::LT, at, b.index(extent)));
    position.index.push_back(at);
  }
  return position;
}

Value nn::readInside(ElementBuilder &b, const WindowPosition &position, Value otherwise,
                     llvm::function_ref<Value(ElementBuilder &)> then) {
  if (!position.inside)
    return then(b);
  return b.guarded(position.inside, otherwise.getType(), then, [&](ElementBuilder &) { return otherwise; });
}
