//===- Pooling.cpp - nn.max_pool, avg_pool and derivatives ------*- C++ -*-===//
//
// Verifiers, costs, element descriptions and derivatives of pooling.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/RecordSupport.h"
#include "lowtide/Dialect/NN/Windows.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

static LogicalResult verifyPooling(Operation *op, RankedTensorType input, RankedTensorType output,
                                   ArrayRef<int64_t> kernel) {
  if (input.getRank() < 3 || input.getRank() > 5 || output.getRank() != input.getRank())
    return op->emitOpError("input and output must have one rank from 3 to 5");
  if (input.getElementType() != output.getElementType())
    return op->emitOpError("input and output must have the same element type");
  SmallVector<int64_t> from = channelsFirst(op, input.getShape()), to = channelsFirst(op, output.getShape());
  if (ArrayRef(from).take_front(2) != ArrayRef(to).take_front(2))
    return op->emitOpError("input and output must agree in batch and channels");
  if (static_cast<int64_t>(kernel.size()) != input.getRank() - 2)
    return op->emitOpError("kernel must have one entry for each spatial dimension");
  return verifyWindow(op, ArrayRef(from).drop_front(2), kernel, ArrayRef(to).drop_front(2));
}

uint64_t nn::poolingFlops(Operation *op) {
  uint64_t flops = countElements(op->getResult(0).getType());
  for (int64_t extent : op->getAttrOfType<DenseI64ArrayAttr>("kernel").asArrayRef())
    flops *= extent;
  return flops;
}

/// The position in a tensor of `op` of the batch and channel of `index` (channels first) and of `spatial`.
static SmallVector<Value> at(Operation *op, ValueRange index, ValueRange spatial) {
  SmallVector<Value> result(index.take_front(2));
  llvm::append_range(result, spatial);
  return asStored<Value>(op, result);
}

/// Extents of the spatial dimensions.
static SmallVector<int64_t> spatialOf(Operation *op, RankedTensorType type) {
  return llvm::to_vector(ArrayRef(channelsFirst(op, type.getShape())).drop_front(2));
}

//===-- max_pool ----------------------------------------------------------===//

LogicalResult MaxPoolOp::verify() { return verifyPooling(*this, getX().getType(), getY().getType(), getKernel()); }

Value MaxPoolOp::emitElement(ElementBuilder &b, unsigned, ValueRange stored) {
  SmallVector<Value> indices = channelsFirst<Value>(*this, llvm::to_vector(stored));
  ValueRange index = indices;
  Window window = getWindow(*this);
  auto input = spatialOf(*this, getX().getType());
  bool isUnsigned = isUnsignedElement(getX());
  Value lowest = lowestValue(b, scalarType(getX()), isUnsigned);
  return b.loop(getKernel(), lowest, [&](ElementBuilder &inner, ValueRange best, ValueRange tap) {
    WindowPosition position = inputPosition(inner, window, input, index.drop_front(2), tap);
    return SmallVector<Value>{readInside(inner, position, best[0], [&](ElementBuilder &there) {
      return there.max(best[0], there.operand(0, at(*this, index, position.index)), isUnsigned);
    })};
  })[0];
}

LogicalResult MaxPoolOp::differentiate(GradientBuilder &g) {
  if (getChannelsLast())
    return emitOpError("has its channels last; gradients are taken channels first");
  if (!g.needs(0))
    return success();
  Expr x = g.operand(0);
  auto op = MaxPoolGradOp::create(g.builder, getLoc(), x.type(), x.get(), g.result(0).get(), g.cotangent(0).get(),
                                  getKernelAttr(), getStridesAttr(), getPadsBeginAttr(), getPadsEndAttr(),
                                  getDilationsAttr(), UnitAttr(), UnitAttr());
  g.set(0, x.with(op.getDx()));
  return success();
}

//===-- max_pool_grad -----------------------------------------------------===//

LogicalResult MaxPoolGradOp::verify() {
  if (getY().getType() != getDy().getType())
    return emitOpError("output and its cotangent must have the same type");
  return verifyPooling(*this, getX().getType(), getY().getType(), getKernel());
}

// x at `index` receives the cotangent of each window that sees it, attains its maximum there, and has no earlier
// element that does: the choice that PyTorch makes.
Value MaxPoolGradOp::emitElement(ElementBuilder &b, unsigned, ValueRange stored) {
  SmallVector<Value> indices = channelsFirst<Value>(*this, llvm::to_vector(stored));
  ValueRange index = indices;
  Window window = getWindow(*this);
  auto input = spatialOf(*this, getX().getType()), output = spatialOf(*this, getY().getType());
  ValueRange spatial = index.drop_front(2);
  Type type = accumulatorType(getDx());
  Value x = b.operand(0, stored), zero = b.constant(type, 0.0), yes = b.constantInt(b.builder.getI1Type(), 1);
  Value no = b.constantInt(b.builder.getI1Type(), 0);

  auto isBefore = [](ScalarBuilder &b, ValueRange left, ValueRange right) {
    Value before, equalSoFar;
    for (auto [l, r] : llvm::zip(left, right)) {
      Value less = b.compare(Compare::LT, l, r);
      before = before ? b.logicalOr(before, b.logicalAnd(equalSoFar, less)) : less;
      Value equal = b.compare(Compare::EQ, l, r);
      equalSoFar = equalSoFar ? b.logicalAnd(equalSoFar, equal) : equal;
    }
    return before;
  };
  Value total =
      b.loop(countWindows(window, getKernel()), zero, [&](ElementBuilder &inner, ValueRange sums, ValueRange number) {
        SmallVector<Value> tap;
        WindowPosition out = outputPosition(inner, window, getKernel(), input, output, spatial, number, tap);
        Value next = readInside(inner, out, sums[0], [&](ElementBuilder &there) {
          Value y = there.operand(1, at(*this, index, out.index));
          Value first = there.guarded(
              there.compare(Compare::EQ, x, y), no.getType(),
              [&](ElementBuilder &tie) {
                return tie.loop(getKernel(), yes, [&](ElementBuilder &other, ValueRange none, ValueRange otherTap) {
                  WindowPosition rival = inputPosition(other, window, input, out.index, otherTap);
                  Value earlier = isBefore(other, otherTap, tap);
                  rival.inside = rival.inside ? other.logicalAnd(rival.inside, earlier) : earlier;
                  return SmallVector<Value>{readInside(other, rival, none[0], [&](ElementBuilder &deep) {
                    Value differs = deep.compare(Compare::NE, deep.operand(0, at(*this, index, rival.index)), y);
                    return deep.logicalAnd(none[0], differs);
                  })};
                })[0];
              },
              [&](ElementBuilder &) { return no; });
          Value dy = there.cast(there.operand(2, at(*this, index, out.index)), type);
          return there.select(first, there.add(sums[0], dy), sums[0]);
        });
        return SmallVector<Value>{next};
      })[0];
  return b.cast(total, scalarType(getDx()));
}

//===-- avg_pool ----------------------------------------------------------===//

/// 1 / the number of elements that the window at `output` averages.
static Value emitWeight(ScalarBuilder &b, const Window &window, ArrayRef<int64_t> kernel, ArrayRef<int64_t> input,
                        bool countIncludePad, ValueRange output, Type type) {
  int64_t whole = 1;
  Value count;
  for (auto [i, taps] : llvm::enumerate(kernel)) {
    if (countIncludePad || (window.padsBegin[i] == 0 && window.padsEnd[i] == 0)) {
      whole *= taps;
      continue;
    }
    // Taps k with 0 ≤ start + k·dilation < extent.
    Value dilation = b.index(window.dilations[i]), zero = b.index(0);
    Value start = b.sub(b.mul(output[i], b.index(window.strides[i])), b.index(window.padsBegin[i]));
    auto roundedUp = [&](Value distance) {
      return b.max(b.div(b.add(distance, b.index(window.dilations[i] - 1)), dilation), zero);
    };
    Value first = roundedUp(b.sub(zero, start));
    Value end = b.min(b.index(taps), roundedUp(b.sub(b.index(input[i]), start)));
    Value inside = b.max(b.sub(end, first), zero);
    count = count ? b.mul(count, inside) : inside;
  }
  if (!count)
    return b.constant(type, 1.0 / static_cast<double>(whole));
  Value wide = b.cast(b.mul(count, b.index(whole)), b.builder.getI64Type());
  return b.div(1.0, b.cast(wide, type));
}

LogicalResult AvgPoolOp::verify() { return verifyPooling(*this, getX().getType(), getY().getType(), getKernel()); }

Value AvgPoolOp::emitElement(ElementBuilder &b, unsigned, ValueRange stored) {
  SmallVector<Value> indices = channelsFirst<Value>(*this, llvm::to_vector(stored));
  ValueRange index = indices;
  Window window = getWindow(*this);
  auto input = spatialOf(*this, getX().getType());
  Type type = accumulatorType(getY());
  Value total = b.loop(getKernel(), b.constant(type, 0.0), [&](ElementBuilder &inner, ValueRange sums, ValueRange tap) {
    WindowPosition position = inputPosition(inner, window, input, index.drop_front(2), tap);
    return SmallVector<Value>{readInside(inner, position, sums[0], [&](ElementBuilder &there) {
      return there.add(sums[0], there.cast(there.operand(0, at(*this, index, position.index)), type));
    })};
  })[0];
  Value weight = emitWeight(b, window, getKernel(), input, getCountIncludePad(), index.drop_front(2), type);
  return b.cast(b.mul(total, weight), scalarType(getY()));
}

LogicalResult AvgPoolOp::differentiate(GradientBuilder &g) {
  if (getChannelsLast())
    return emitOpError("has its channels last; gradients are taken channels first");
  if (!g.needs(0))
    return success();
  auto op = AvgPoolGradOp::create(g.builder, getLoc(), getX().getType(), g.cotangent(0).get(), getKernelAttr(),
                                  getStridesAttr(), getPadsBeginAttr(), getPadsEndAttr(), getDilationsAttr(),
                                  getCountIncludePadAttr(), UnitAttr());
  g.set(0, g.operand(0).with(op.getDx()));
  return success();
}

//===-- avg_pool_grad -----------------------------------------------------===//

LogicalResult AvgPoolGradOp::verify() {
  return verifyPooling(*this, getDx().getType(), getDy().getType(), getKernel());
}

Value AvgPoolGradOp::emitElement(ElementBuilder &b, unsigned, ValueRange stored) {
  SmallVector<Value> indices = channelsFirst<Value>(*this, llvm::to_vector(stored));
  ValueRange index = indices;
  Window window = getWindow(*this);
  auto input = spatialOf(*this, getDx().getType()), output = spatialOf(*this, getDy().getType());
  Type type = accumulatorType(getDx());
  Value zero = b.constant(type, 0.0);
  Value total =
      b.loop(countWindows(window, getKernel()), zero, [&](ElementBuilder &inner, ValueRange sums, ValueRange number) {
        SmallVector<Value> tap;
        WindowPosition out =
            outputPosition(inner, window, getKernel(), input, output, index.drop_front(2), number, tap);
        return SmallVector<Value>{readInside(inner, out, sums[0], [&](ElementBuilder &there) {
          Value weight = emitWeight(there, window, getKernel(), input, getCountIncludePad(), out.index, type);
          Value dy = there.cast(there.operand(0, at(*this, index, out.index)), type);
          return there.add(sums[0], there.mul(dy, weight));
        })};
      })[0];
  return b.cast(total, scalarType(getDx()));
}

LogicalResult AvgPoolGradOp::differentiate(GradientBuilder &g) {
  if (getChannelsLast())
    return emitOpError("has its channels last; gradients are taken channels first");
  if (!g.needs(0))
    return success();
  auto op =
      AvgPoolOp::create(g.builder, getLoc(), getDy().getType(), g.cotangent(0).get(), getKernelAttr(), getStridesAttr(),
                        getPadsBeginAttr(), getPadsEndAttr(), getDilationsAttr(), getCountIncludePadAttr(), UnitAttr());
  g.set(0, g.operand(0).with(op.getY()));
  return success();
}
