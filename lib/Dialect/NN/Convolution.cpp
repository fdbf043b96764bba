//===- Convolution.cpp - nn.conv and its two transposes ---------*- C++ -*-===//
//
// Verifier, cost, element descriptions, derivatives and library calls of the three convolutions. They are one trilinear
// form in (input, filter, output), each op giving one from the other two; so derivatives are each other.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/RecordSupport.h"
#include "lowtide/Dialect/NN/Windows.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

namespace {
/// The shapes of the trilinear form, channels first, whichever two of them are operands.
struct Shapes {
  SmallVector<int64_t> tensors[3];
  ArrayRef<int64_t> input() const { return tensors[0]; }
  ArrayRef<int64_t> filter() const { return tensors[1]; }
  ArrayRef<int64_t> output() const { return tensors[2]; }
  ArrayRef<int64_t> inputSpatial() const { return input().drop_front(2); }
  ArrayRef<int64_t> kernel() const { return filter().drop_front(2); }
  ArrayRef<int64_t> outputSpatial() const { return output().drop_front(2); }
};
} // namespace

static Shapes getShapes(Operation *op) {
  auto shape = [&](Value x) { return channelsFirst<int64_t>(op, cast<RankedTensorType>(x.getType()).getShape()); };
  auto a = shape(op->getOperand(0)), b = shape(op->getOperand(1)), y = shape(op->getResult(0));
  if (isa<ConvOp>(op))
    return {{a, b, y}};
  if (isa<ConvInputGradOp>(op))
    return {{y, b, a}};
  return {{a, y, b}};
}

static int64_t getGroups(Operation *op) { return op->getAttrOfType<IntegerAttr>("groups").getInt(); }

LogicalResult nn::verifyConvolution(Operation *op) {
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (cast<RankedTensorType>(type).getRank() < 3)
      return op->emitOpError("input, filter and output must have one rank from 3 to 5");
  Shapes s = getShapes(op);
  size_t rank = s.input().size();
  if (rank < 3 || rank > 5 || s.filter().size() != rank || s.output().size() != rank)
    return op->emitOpError("input, filter and output must have one rank from 3 to 5");
  Type element = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
  if (cast<RankedTensorType>(op->getOperand(1).getType()).getElementType() != element)
    return op->emitOpError("operands must have the same element type");
  int64_t groups = getGroups(op);
  if (groups < 1 || s.input()[1] % groups != 0 || s.output()[1] % groups != 0)
    return op->emitOpError("groups ") << groups << " must divide input channels " << s.input()[1]
                                      << " and output channels " << s.output()[1];
  if (s.filter()[1] != s.input()[1] / groups || s.filter()[0] != s.output()[1])
    return op->emitOpError("filter must be ")
           << s.output()[1] << " x " << s.input()[1] / groups << ", found " << s.filter()[0] << " x " << s.filter()[1];
  if (s.input()[0] != s.output()[0])
    return op->emitOpError("batch is ") << s.input()[0] << " in the input, " << s.output()[0] << " in the output";
  return verifyWindow(op, s.inputSpatial(), s.kernel(), s.outputSpatial());
}

uint64_t nn::convolutionFlops(Operation *op) {
  Shapes s = getShapes(op);
  uint64_t flops = 2;
  for (int64_t extent : s.output())
    flops *= extent;
  for (int64_t extent : s.filter().drop_front())
    flops *= extent;
  return flops;
}

StringRef nn::convolutionCallee(Operation *op, StringRef name) {
  auto isEmpty = [](ArrayRef<int64_t> shape) { return llvm::is_contained(shape, 0); };
  Shapes s = getShapes(op);
  bool taken = isCallType(op->getOperand(0).getType(), op->getResult(0).getType()) && !isEmpty(s.input()) &&
               !isEmpty(s.filter()) && !isEmpty(s.output());
  return taken ? name : "";
}

DictionaryAttr nn::convolutionAttributes(Operation *op) {
  Builder b(op->getContext());
  Shapes s = getShapes(op);
  SmallVector<NamedAttribute> attributes{b.getNamedAttr("input", b.getDenseI64ArrayAttr(s.input())),
                                         b.getNamedAttr("filter", b.getDenseI64ArrayAttr(s.filter())),
                                         b.getNamedAttr("output", b.getDenseI64ArrayAttr(s.output())),
                                         b.getNamedAttr("groups", b.getI64IntegerAttr(getGroups(op)))};
  for (StringRef name : {"strides", "pads_begin", "pads_end", "dilations"})
    attributes.push_back(b.getNamedAttr(name, op->getAttr(name)));
  if (hasChannelsLast(op))
    attributes.push_back(b.getNamedAttr("channels_last", b.getI64IntegerAttr(1)));
  appendCallTypes(b, op->getOperand(0).getType(), op->getResult(0).getType(), attributes);
  return b.getDictionaryAttr(attributes);
}

/// `channel` of group `group` among `perGroup`, with the arithmetic left out where there is one group.
static Value channelOf(ScalarBuilder &b, Value group, int64_t perGroup, Value channel) {
  return group ? b.add(b.mul(group, b.index(perGroup)), channel) : channel;
}

static SmallVector<Value> joined(std::initializer_list<Value> front, ValueRange back) {
  SmallVector<Value> result(front);
  llvm::append_range(result, back);
  return result;
}

static SmallVector<int64_t> joined(int64_t front, ArrayRef<int64_t> back) {
  SmallVector<int64_t> result{front};
  llvm::append_range(result, back);
  return result;
}

/// Sums over a box the products of two operands' elements, in the accumulator's type.
static Value sumProducts(
    Operation *op, ElementBuilder &b, ArrayRef<int64_t> box,
    llvm::function_ref<WindowPosition(ElementBuilder &, ValueRange)> locate,
    llvm::function_ref<std::pair<SmallVector<Value>, SmallVector<Value>>(ElementBuilder &, ValueRange, ValueRange)>
        read) {
  Type type = accumulatorType(op->getResult(0));
  Value zero = b.constant(type, 0.0);
  Value total = b.loop(box, zero, [&](ElementBuilder &inner, ValueRange sums, ValueRange at) {
    WindowPosition position = locate(inner, at);
    Value next = readInside(inner, position, sums[0], [&](ElementBuilder &there) {
      auto [left, right] = read(there, at, position.index);
      Value product = there.mul(there.cast(there.operand(0, asStored<Value>(op, left)), type),
                                there.cast(there.operand(1, asStored<Value>(op, right)), type));
      return there.add(sums[0], product);
    });
    return SmallVector<Value>{next};
  })[0];
  return b.cast(total, scalarType(op->getResult(0)));
}

//===-- y[n, o, e] = Σ over c, k of x[n, c, e·stride + k] w[o, c, k] --------===//

Value ConvOp::emitElement(ElementBuilder &b, unsigned, ValueRange stored) {
  SmallVector<Value> indices = channelsFirst<Value>(*this, llvm::to_vector(stored));
  ValueRange index = indices;
  Shapes s = getShapes(*this);
  Window window = getWindow(*this);
  int64_t groups = getGroups();
  Value group = groups == 1 ? Value() : b.div(index[1], b.index(s.output()[1] / groups), true);
  return sumProducts(
      *this, b, s.filter().drop_front(),
      [&](ElementBuilder &at, ValueRange box) {
        return inputPosition(at, window, s.inputSpatial(), index.drop_front(2), box.drop_front());
      },
      [&](ElementBuilder &at, ValueRange box, ValueRange position) {
        Value channel = channelOf(at, group, s.filter()[1], box[0]);
        return std::pair(joined({index[0], channel}, position), joined({index[1]}, box));
      });
}

LogicalResult ConvOp::differentiate(GradientBuilder &g) {
  if (getChannelsLast())
    return emitOpError("has its channels last; gradients are taken channels first");
  Expr x = g.wideOperand(0), w = g.wideOperand(1), dy = g.cotangent(0);
  Window window = getWindow(*this);
  if (g.needs(0))
    g.set(0, convInputGrad(dy, w, x.shape(), window, getGroups()));
  if (g.needs(1))
    g.set(1, convFilterGrad(x, dy, w.shape(), window, getGroups()));
  return success();
}

//===-- x[n, c, d] = Σ over o, k of y[n, o, (d - k) / stride] w[o, c, k] ----===//

Value ConvInputGradOp::emitElement(ElementBuilder &b, unsigned, ValueRange stored) {
  SmallVector<Value> indices = channelsFirst<Value>(*this, llvm::to_vector(stored));
  ValueRange index = indices;
  Shapes s = getShapes(*this);
  Window window = getWindow(*this);
  int64_t groups = getGroups(), perGroup = s.output()[1] / groups;
  Value group, channel = index[1];
  if (groups > 1) {
    group = b.div(index[1], b.index(s.filter()[1]), true);
    channel = b.rem(index[1], b.index(s.filter()[1]), true);
  }
  SmallVector<Value> tap;
  return sumProducts(
      *this, b, joined(perGroup, countWindows(window, s.kernel())),
      [&](ElementBuilder &at, ValueRange box) {
        tap.clear();
        return outputPosition(at, window, s.kernel(), s.inputSpatial(), s.outputSpatial(), index.drop_front(2),
                              box.drop_front(), tap);
      },
      [&](ElementBuilder &at, ValueRange box, ValueRange position) {
        Value out = channelOf(at, group, perGroup, box[0]);
        return std::pair(joined({index[0], out}, position), joined({out, channel}, tap));
      });
}

LogicalResult ConvInputGradOp::differentiate(GradientBuilder &g) {
  if (getChannelsLast())
    return emitOpError("has its channels last; gradients are taken channels first");
  Expr dy = g.wideOperand(0), w = g.wideOperand(1), dx = g.cotangent(0);
  Window window = getWindow(*this);
  if (g.needs(0))
    g.set(0, conv(dx, w, window, getGroups()));
  if (g.needs(1))
    g.set(1, convFilterGrad(dx, dy, w.shape(), window, getGroups()));
  return success();
}

//===-- w[o, c, k] = Σ over n, e of x[n, c, e·stride + k] y[n, o, e] --------===//

Value ConvFilterGradOp::emitElement(ElementBuilder &b, unsigned, ValueRange stored) {
  SmallVector<Value> indices = channelsFirst<Value>(*this, llvm::to_vector(stored));
  ValueRange index = indices;
  Shapes s = getShapes(*this);
  Window window = getWindow(*this);
  int64_t groups = getGroups();
  Value group = groups == 1 ? Value() : b.div(index[0], b.index(s.output()[1] / groups), true);
  return sumProducts(
      *this, b, joined(s.input()[0], s.outputSpatial()),
      [&](ElementBuilder &at, ValueRange box) {
        return inputPosition(at, window, s.inputSpatial(), box.drop_front(), index.drop_front(2));
      },
      [&](ElementBuilder &at, ValueRange box, ValueRange position) {
        Value channel = channelOf(at, group, s.filter()[1], index[1]);
        return std::pair(joined({box[0], channel}, position), joined({box[0], index[0]}, box.drop_front()));
      });
}

LogicalResult ConvFilterGradOp::differentiate(GradientBuilder &g) {
  if (getChannelsLast())
    return emitOpError("has its channels last; gradients are taken channels first");
  Expr x = g.wideOperand(0), dy = g.wideOperand(1), dw = g.cotangent(0);
  Window window = getWindow(*this);
  if (g.needs(0))
    g.set(0, convInputGrad(dy, dw, x.shape(), window, getGroups()));
  if (g.needs(1))
    g.set(1, conv(x, dw, window, getGroups()));
  return success();
}
