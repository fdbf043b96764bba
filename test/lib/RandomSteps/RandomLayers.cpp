//===- RandomLayers.cpp - layers that a random graph is made of -*- C++ -*-===//
//
// Each family takes a value whose first dimension counts samples and returns another one. Sizes stay small and values
// near one, so that a difference in bits is never hidden behind infinities.
//
//===----------------------------------------------------------------------===//
#include "GraphBuilder.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace lowtide::test;
using llvm::ArrayRef;
using llvm::StringRef;

/// Elements beyond which nothing grows.
static constexpr int64_t largest = 3000;

static int64_t rowElements(const TensorShape &shape) { return shape.elements() / shape.dims[0]; }

// --- elementwise ---

static Use addUnary(GraphBuilder &b, Use x) {
  static const StringRef names[] = {"tanh", "relu", "sigmoid", "gelu", "gelu_tanh", "silu", "softplus", "elu", "abs",
                                    "neg",  "sin",  "cos",     "erf",  "atan",      "relu", "tanh",     "gelu"};
  StringRef name = b.random.pick(ArrayRef(names));
  return b.unary(name, x, name == "elu" ? "{alpha = 0.75}" : "");
}

/// A function with a bounded domain, on values that are brought into it first.
static Use addGuarded(GraphBuilder &b, Use x) {
  Use bounded = b.random.chance(50) ? b.unary("tanh", x) : b.unary("sin", x);
  switch (b.random.below(8)) {
  case 0:
    return b.unary("exp", bounded);
  case 1:
    return b.unary("expm1", bounded);
  case 2:
    return b.unary("asinh", bounded);
  case 3:
    return b.unary(b.random.chance(50) ? "asin" : "atanh", b.withConstant("mul", bounded, 0.75));
  case 4:
    return b.unary("tan", bounded);
  case 5:
    return b.withConstant("pow", b.withConstant("add", b.unary("abs", bounded), 0.5), 1.5);
  case 6:
    return b.unary("log1p", b.binary("mul", bounded, bounded));
  default: {
    static const StringRef names[] = {"sqrt", "rsqrt", "log", "reciprocal"};
    Use positive = b.withConstant("add", b.binary("mul", bounded, bounded), 0.5);
    return b.unary(b.random.pick(ArrayRef(names)), positive);
  }
  }
}

/// Something with the shape of `x`: another value, or a smaller tensor repeated.
static Use partnerFor(GraphBuilder &b, Use x, ArrayRef<Use> pool) {
  llvm::SmallVector<Use> same;
  for (Use other : pool)
    if (b.shape(other) == b.shape(x))
      same.push_back(other);
  if (!same.empty() && b.random.chance(60))
    return b.random.pick(ArrayRef(same));
  Dims dims = b.shape(x).dims;
  int64_t rank = b.rank(x);
  Use small = b.random.chance(50) || rank < 3 ? b.param({dims[rank - 1]}, 0.5) : b.param({dims[1], 1}, 0.5);
  if (b.rank(small) == 1)
    return b.broadcast(small, dims, {rank - 1});
  // [C, 1] against [B, C, …]: a size of one is repeated too.
  return b.broadcast(small, dims, {1, 2});
}

static Use addBinary(GraphBuilder &b, Use x, ArrayRef<Use> pool) {
  Use other = partnerFor(b, x, pool);
  switch (b.random.below(7)) {
  case 0:
    return b.binary("sub", x, other);
  case 1:
    return b.binary("mul", x, b.unary("tanh", other));
  case 2:
    return b.binary("max", x, other);
  case 3:
    return b.binary("min", x, other);
  case 4:
    return b.binary("div", x, b.withConstant("add", b.binary("mul", other, other), 1));
  default:
    return b.binary("add", x, other);
  }
}

static Use addChoice(GraphBuilder &b, Use x, ArrayRef<Use> pool) {
  static const StringRef predicates[] = {"lt", "le", "gt", "ge", "ne"};
  Use other = partnerFor(b, x, pool);
  if (b.random.chance(25)) // leaves a mask of floats behind
    return b.binary("mul", x, b.cast(b.compare("gt", x, other), "f32"));
  Use condition = b.compare(b.random.pick(ArrayRef(predicates)), x, other);
  if (b.random.chance(30))
    condition = b.op("not $0 : " + b.shape(condition).text(), {condition}, {b.shape(condition)});
  return b.select(condition, x, b.random.chance(50) ? other : b.constant(b.shape(x), 0.125));
}

/// Integers on the way: where no gradient flows.
static Use addRounding(GraphBuilder &b, Use x) {
  static const StringRef names[] = {"floor", "ceil", "round", "sign"};
  // What saturates is whole in f32 and only nearly so in f64: a step beside it, both round to the same.
  auto beside = [&](Use value) { return b.withConstant("add", value, 0.3); };
  if (b.random.chance(50))
    return b.binary("add", x, b.withConstant("mul", b.unary(b.random.pick(ArrayRef(names)), beside(x)), 0.25));
  Use whole = b.cast(beside(b.withConstant("mul", b.unary("tanh", x), 7)), b.random.chance(50) ? "i32" : "i64");
  Use odd = b.withConstant("and", whole, 3);
  return b.binary("add", x, b.withConstant("mul", b.cast(odd, "f32"), 0.125));
}

static Use addDropout(GraphBuilder &b, Use x) {
  Use seed = b.scalar("seed"), step = b.scalar("step"), row = b.scalar("row");
  TensorShape type = b.shape(x);
  Use uniform = b.op("random_uniform $0, $1, $2 op = " + std::to_string(++b.randomOps) +
                         " batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> " + type.text(),
                     {seed, step, row}, {type});
  double rate = b.random.chance(50) ? 0.25 : 0.5;
  Use keep = b.compare("ge", uniform, b.constant(type, rate));
  return b.select(keep, b.withConstant("mul", x, 1 / (1 - rate)), b.constant(type, 0));
}

/// A stretch in another type.
static Use addCast(GraphBuilder &b, Use x) {
  static const StringRef types[] = {"bf16", "f16", "bf16", "f64"};
  Use narrow = b.cast(x, b.random.pick(ArrayRef(types)));
  if (b.rank(x) == 2 && b.shape(narrow).element != "f64" && b.random.chance(40)) {
    int64_t outputs = b.random.between(1, 24);
    Use weight = b.cast(b.param({b.dim(x, 1), outputs}, b.scaleFor(b.dim(x, 1))), b.shape(narrow).element);
    narrow = b.dot(narrow, weight);
  } else {
    static const StringRef names[] = {"tanh", "relu", "neg", "abs"};
    narrow = b.unary(b.random.pick(ArrayRef(names)), narrow);
  }
  return b.cast(narrow, "f32");
}

// --- contractions ---

Use lowtide::test::addLinear(GraphBuilder &b, Use x, int64_t outputs) {
  Dims dims = b.shape(x).dims;
  int64_t inputs = dims.back();
  bool stored = b.random.chance(40); // as PyTorch keeps it: [outputs, inputs]
  Use weight = b.param(stored ? Dims{outputs, inputs} : Dims{inputs, outputs}, b.scaleFor(inputs));
  Use y = b.dot(b.reshape(x, {b.shape(x).elements() / inputs, inputs}), weight, false, stored);
  dims.back() = outputs;
  if (b.random.chance(60)) {
    Dims flat = b.shape(y).dims;
    y = b.binary("add", y, b.broadcast(b.param({outputs}, 0.1), flat, {1}));
  }
  return b.reshape(y, dims);
}

/// [B, T, D] with itself: scores, softmax, mixture.
static Use addMixture(GraphBuilder &b, Use x) {
  double scale = 1 / std::sqrt(static_cast<double>(b.dim(x, 2)));
  Use scores = b.withConstant("mul", b.dot(x, x, false, true), scale);
  if (b.random.chance(40)) { // causal
    TensorShape square{{b.dim(x, 1), b.dim(x, 1)}, "i64"};
    Use row = b.op("iota dim = 0 : " + square.text(), {}, {square});
    Use column = b.op("iota dim = 1 : " + square.text(), {}, {square});
    Use seen = b.broadcast(b.compare("le", column, row), b.shape(scores).dims, {1, 2});
    scores = b.select(seen, scores, b.constant(b.shape(scores), -1e9));
  }
  Use mixed = b.unary("softmax", scores, "dim = 2");
  return b.dot(mixed, x);
}

static Use addAttention(GraphBuilder &b, Use x) {
  int64_t batch = b.dim(x, 0), time = b.dim(x, 1), heads = b.random.chance(50) ? 2 : 1, size = b.random.between(2, 6);
  int64_t keyHeads = b.random.chance(30) ? 1 : heads;
  auto project = [&](int64_t count) {
    Use y = b.reshape(addLinear(b, x, count * size), {batch, time, count, size});
    return b.transpose(y, {0, 2, 1, 3});
  };
  Use q = project(heads), k = project(keyHeads), v = project(keyHeads);
  std::string types = "(" + b.shape(q).text() + ", " + b.shape(k).text() + ", " + b.shape(v).text() + ")";
  TensorShape out = b.shape(q), lse{{batch, heads, time}, "f32"};
  Use o = b.op(std::string("attention $0, $1, $2 scale = 0.5") + (b.random.chance(50) ? " causal" : "") + " : " +
                   types + " -> (" + out.text() + ", " + lse.text() + ")",
               {q, k, v}, {out, lse});
  return b.reshape(b.transpose(o, {0, 2, 1, 3}), {batch, time, heads * size});
}

// --- images ---

static std::string windowText(int64_t stride, int64_t pad, int64_t dilation) {
  return "strides = " + listText({stride, stride}) + " pads = " + listText({pad, pad}) + ", " + listText({pad, pad}) +
         " dilations = " + listText({dilation, dilation});
}

static Use addConv(GraphBuilder &b, Use x, bool keep) {
  Dims dims = b.shape(x).dims;
  int64_t size = b.random.chance(30) ? 1 : 3, stride = !keep && b.random.chance(30) ? 2 : 1, dilation = 1;
  int64_t groups = dims[1] % 2 == 0 && b.random.chance(25) ? 2 : 1;
  int64_t channels = keep ? dims[1] : groups * b.random.between(1, 5);
  int64_t pad = size / 2;
  auto extent = [&](int64_t n) { return (n + 2 * pad - dilation * (size - 1) - 1) / stride + 1; };
  TensorShape out{{dims[0], channels, extent(dims[2]), extent(dims[3])}, "f32"};
  int64_t inputs = dims[1] / groups;
  Use filter = b.param({channels, inputs, size, size}, b.scaleFor(inputs * size * size));
  return b.op("conv $0, $1 " + windowText(stride, pad, dilation) + " groups = " + std::to_string(groups) + " : (" +
                  b.shape(x).text() + ", " + b.shape(filter).text() + ") -> " + out.text(),
              {x, filter}, {out});
}

static Use addTransposedConv(GraphBuilder &b, Use x) {
  Dims dims = b.shape(x).dims;
  int64_t channels = b.random.between(1, 4), stride = 2, size = 2;
  TensorShape out{{dims[0], channels, dims[2] * stride, dims[3] * stride}, "f32"};
  if (out.elements() > largest)
    return x;
  Use filter = b.param({dims[1], channels, size, size}, b.scaleFor(dims[1]));
  return b.op("conv_input_grad $0, $1 " + windowText(stride, 0, 1) + " groups = 1 : (" + b.shape(x).text() + ", " +
                  b.shape(filter).text() + ") -> " + out.text(),
              {x, filter}, {out});
}

static Use addPool(GraphBuilder &b, Use x) {
  Dims dims = b.shape(x).dims;
  if (dims[2] < 3 || dims[3] < 3)
    return x;
  bool overlap = b.random.chance(40);
  int64_t size = overlap ? 3 : 2, stride = overlap && b.random.chance(50) ? 1 : 2, pad = overlap ? 1 : 0;
  auto extent = [&](int64_t n) { return (n + 2 * pad - size) / stride + 1; };
  TensorShape out{{dims[0], dims[1], extent(dims[2]), extent(dims[3])}, "f32"};
  bool mean = b.random.chance(40);
  return b.op(std::string(mean ? "avg_pool" : "max_pool") + " $0 kernel = " + listText({size, size}) + " " +
                  windowText(stride, pad, 1) + (mean && b.random.chance(50) ? " {count_include_pad}" : "") + " : (" +
                  b.shape(x).text() + ") -> " + out.text(),
              {x}, {out});
}

// --- norms and reductions ---

static Use addNorm(GraphBuilder &b, Use x) {
  int64_t axis = b.rank(x) - 1, size = b.dim(x, axis);
  TensorShape statistics{Dims(b.shape(x).dims.begin(), b.shape(x).dims.end() - 1), "f32"};
  Use scale = b.param({size}, 0);
  std::string tail =
      " axis = " + std::to_string(axis) + " epsilon = 1.0e-5 : (" + b.shape(x).text() + ", " + b.shape(scale).text();
  if (b.random.chance(40))
    return b.op("rms_norm $0, $1" + tail + ") -> (" + b.shape(x).text() + ", " + statistics.text() + ")", {x, scale},
                {b.shape(x), statistics});
  Use bias = b.param({size}, 0.1);
  return b.op("layer_norm $0, $1, $2" + tail + ", " + b.shape(bias).text() + ") -> (" + b.shape(x).text() + ", " +
                  statistics.text() + ", " + statistics.text() + ")",
              {x, scale, bias}, {b.shape(x), statistics, statistics});
}

/// With running statistics now and then.
static Use addBatchNorm(GraphBuilder &b, Use x) {
  TensorShape channels{{b.dim(x, 1)}, "f32"};
  Use scale = b.param(channels.dims, 0), bias = b.param(channels.dims, 0.1);
  Use y =
      b.op("batch_norm $0, $1, $2 epsilon = 1.0e-5 : (" + b.shape(x).text() + ", " + channels.text() + ", " +
               channels.text() + ") -> (" + b.shape(x).text() + ", " + channels.text() + ", " + channels.text() + ")",
           {x, scale, bias}, {b.shape(x), channels, channels});
  if (b.random.chance(60)) {
    Node state;
    state.kind = Node::Kind::State;
    state.results.push_back(channels);
    Use running{b.graph.add(state), 0};
    Use next = b.binary("add", b.withConstant("mul", running, 0.9),
                        b.withConstant("mul", Use{y.node, unsigned(b.random.between(1, 2))}, 0.1));
    b.graph.updates.push_back({running.node, next});
  }
  return y;
}

/// Statistics over some dimensions, repeated and put against the value: softmax, normalization and gating by hand.
static Use addReduction(GraphBuilder &b, Use x, bool acrossSamples) {
  llvm::SmallVector<int64_t> reduced, left;
  for (int64_t i = 0; i < b.rank(x); ++i)
    (i == 0 ? acrossSamples : reduced.empty() || b.random.chance(50)) ? reduced.push_back(i) : left.push_back(i);
  if (reduced.empty())
    return x;
  int64_t count = b.shape(x).elements();
  for (int64_t i : left)
    count /= b.dim(x, i);
  auto repeat = [&](Use statistic) { return b.broadcast(statistic, b.shape(x).dims, left); };
  switch (b.random.below(5)) {
  case 0:
    return b.binary("sub", x, repeat(b.reduce("reduce_max", x, reduced)));
  case 1:
    return b.binary("sub", x, repeat(b.reduce("reduce_min", x, reduced)));
  case 2: {
    Use e = b.unary("exp", b.binary("sub", x, repeat(b.reduce("reduce_max", x, reduced))));
    return b.binary("div", e, repeat(b.reduce("reduce_sum", e, reduced)));
  }
  case 3: {
    Use mean = b.withConstant("mul", b.reduce("reduce_sum", x, reduced), 1.0 / static_cast<double>(count));
    Use centered = b.binary("sub", x, repeat(mean));
    Use variance = b.withConstant("mul", b.reduce("reduce_sum", b.binary("mul", centered, centered), reduced),
                                  1.0 / static_cast<double>(count));
    return b.binary("mul", centered, repeat(b.unary("rsqrt", b.withConstant("add", variance, 1e-3))));
  }
  default: {
    Use mean = b.withConstant("mul", b.reduce("reduce_sum", x, reduced), 1.0 / static_cast<double>(count));
    return b.binary("mul", x, repeat(b.unary("sigmoid", mean)));
  }
  }
}

static Use addSoftmax(GraphBuilder &b, Use x) {
  std::string dim = "dim = " + std::to_string(b.random.between(1, b.rank(x) - 1));
  return b.random.chance(60) ? b.unary("softmax", x, dim) : b.unary("log_softmax", x, dim);
}

static Use addRunningSum(GraphBuilder &b, Use x) {
  int64_t dim = b.random.between(1, b.rank(x) - 1);
  Use sum = b.unary("cumsum", x, "dim = " + std::to_string(dim) + (b.random.chance(50) ? "" : " {exclusive, reverse}"));
  return b.withConstant("mul", sum, 1.0 / static_cast<double>(b.dim(x, dim)));
}

// --- views and indices ---

static Use addReshape(GraphBuilder &b, Use x) {
  Dims dims = b.shape(x).dims;
  int64_t row = rowElements(b.shape(x));
  if (dims.size() == 2) {
    for (int64_t part : {b.random.between(2, 6), int64_t(4), int64_t(3), int64_t(2)})
      if (row % part == 0 && row > part) {
        if (row / part >= 9 && row / part % 3 == 0 && b.random.chance(60))
          return b.reshape(x, {dims[0], part, row / part / 3, 3});
        return b.reshape(x, {dims[0], part, row / part});
      }
    return b.reshape(x, {dims[0], row, 1});
  }
  if (dims.size() == 3 && b.random.chance(50))
    return b.reshape(x, {dims[0], dims[1] * dims[2]});
  if (dims.size() == 4)
    return b.reshape(x, b.random.chance(50) ? Dims{dims[0], row} : Dims{dims[0], dims[1], dims[2] * dims[3]});
  return b.reshape(x, {dims[0], row});
}

static Use addTranspose(GraphBuilder &b, Use x) {
  llvm::SmallVector<int64_t> permutation(b.rank(x));
  for (int64_t i = 0; i < b.rank(x); ++i)
    permutation[i] = i;
  for (int64_t i = b.rank(x) - 1; i > 1; --i)
    std::swap(permutation[i], permutation[b.random.between(1, i)]);
  return b.transpose(x, permutation);
}

static Use addSlice(GraphBuilder &b, Use x) {
  Dims to = b.shape(x).dims;
  llvm::SmallVector<int64_t> starts(to.size(), 0), strides(to.size(), 1);
  int64_t at = b.random.between(1, b.rank(x) - 1), extent = to[at];
  if (extent < 2)
    return x;
  starts[at] = b.random.below(extent / 2 + 1);
  strides[at] = b.random.chance(30) ? 2 : 1;
  to[at] = std::max<int64_t>(1, (extent - starts[at]) / strides[at] - b.random.below(2));
  if (starts[at] + (to[at] - 1) * strides[at] >= extent)
    return x;
  return b.slice(x, starts, strides, to);
}

/// Halves, changed on their own and put together again.
static Use addSplit(GraphBuilder &b, Use x, ArrayRef<Use> pool) {
  int64_t at = b.random.between(1, b.rank(x) - 1), extent = b.dim(x, at);
  if (extent < 2)
    return x;
  Dims first = b.shape(x).dims, second = first;
  llvm::SmallVector<int64_t> zero(first.size(), 0), starts = zero, ones(first.size(), 1);
  first[at] = b.random.between(1, extent - 1);
  second[at] = extent - first[at];
  starts[at] = first[at];
  Use low = b.slice(x, zero, ones, first), high = b.slice(x, starts, ones, second);
  if (first == second && b.random.chance(50))
    return b.binary("mul", low, b.unary("sigmoid", high)); // gated linear unit
  low = addUnary(b, low);
  return b.random.chance(50) ? b.concat({low, high}, at) : b.concat({b.unary("neg", high), low}, at);
}

static Use addPad(GraphBuilder &b, Use x) {
  TensorShape out = b.shape(x);
  llvm::SmallVector<int64_t> low(out.dims.size(), 0), high = low, interior = low;
  int64_t at = b.random.between(1, b.rank(x) - 1);
  low[at] = b.random.below(3);
  high[at] = b.random.below(3);
  interior[at] = b.random.chance(20) ? 1 : 0;
  out.dims[at] += low[at] + high[at] + interior[at] * (out.dims[at] - 1);
  if (out.elements() > largest)
    return x;
  return b.op("pad $0 low = " + listText(low) + " high = " + listText(high) + " interior = " + listText(interior) +
                  " : " + b.shape(x).text() + " -> " + out.text(),
              {x}, {out});
}

static Use addReverse(GraphBuilder &b, Use x) {
  std::string dims = listText({b.random.between(1, b.rank(x) - 1)}), type = b.shape(x).text();
  return b.op("reverse $0 dims = " + dims + " : " + type + " -> " + type, {x}, {b.shape(x)});
}

static Use addConcat(GraphBuilder &b, Use x, ArrayRef<Use> pool) {
  int64_t at = b.random.between(1, b.rank(x) - 1);
  for (size_t i = pool.size(); i-- > 0;) {
    TensorShape other = b.shape(pool[i]), same = b.shape(x);
    if (other.rank() != same.rank() || pool[i] == x)
      continue;
    other.dims[at] = same.dims[at];
    if (other == same && b.shape(pool[i]).elements() + same.elements() <= largest)
      return b.concat({x, pool[i]}, at);
  }
  return x;
}

/// Rows of a table chosen by the user's integers.
static Use addEmbedding(GraphBuilder &b, Use x) {
  if (b.rank(x) == 4)
    return x;
  int64_t time = b.rank(x) == 3 ? b.dim(x, 1) : b.random.between(2, 6), size = b.shape(x).dims.back();
  int64_t rows = b.random.between(3, 20);
  Use table = b.param({rows, size}, 1);
  Use indices = b.batchArray({b.batch, time}, b.random.chance(80) ? "i64" : "i32", 0, static_cast<double>(rows));
  Use y = b.gather(table, indices, 0);
  if (b.rank(x) == 3)
    return b.binary("add", x, y);
  return b.binary("mul", x, b.withConstant("mul", b.reduce("reduce_sum", y, {1}), 0.5));
}

/// Elements chosen by integers: the user's, or where the largest is.
static Use addChosen(GraphBuilder &b, Use x) {
  int64_t at = b.random.between(1, b.rank(x) - 1);
  if (b.random.chance(50)) {
    TensorShape indices{{}, "i64"}, out = b.shape(x);
    for (int64_t i = 0; i < b.rank(x); ++i)
      if (i != at)
        indices.dims.push_back(b.dim(x, i));
    Use best = b.op("argmax $0 dim = " + std::to_string(at) + " : " + b.shape(x).text() + " -> " + indices.text(), {x},
                    {indices});
    out.dims[at] = 1;
    best = b.reshape(best, out.dims);
    return b.op("gather_elements $0[$1] axis = " + std::to_string(at) + " : (" + b.shape(x).text() + ", " +
                    b.shape(best).text() + ") -> " + out.text(),
                {x, best}, {out});
  }
  TensorShape out = b.shape(x);
  out.dims[at] = b.random.between(1, 4);
  Use indices = b.batchArray(out.dims, "i64", 0, static_cast<double>(b.dim(x, at)));
  return b.op("gather_elements $0[$1] axis = " + std::to_string(at) + " : (" + b.shape(x).text() + ", " +
                  b.shape(indices).text() + ") -> " + out.text(),
              {x, indices}, {out});
}

// --- what is drawn ---

Use lowtide::test::addKeepingLayer(GraphBuilder &b, Use x, ArrayRef<Use> pool) {
  int64_t rank = b.rank(x);
  switch (b.random.below(14)) {
  case 0:
  case 1:
    return addUnary(b, x);
  case 2:
    return addGuarded(b, x);
  case 3:
    return addBinary(b, x, pool);
  case 4:
    return addChoice(b, x, pool);
  case 5:
    return addRounding(b, x);
  case 6:
    return addDropout(b, x);
  case 7:
  case 8:
    return rank == 4 ? addConv(b, x, /*keep=*/true) : addLinear(b, x, b.shape(x).dims.back());
  case 9:
    return addNorm(b, x);
  case 10:
    return addReduction(b, x, /*acrossSamples=*/b.random.chance(15));
  case 11:
    return addSoftmax(b, x);
  case 12:
    return rank == 3 ? addMixture(b, x) : addRunningSum(b, x);
  default:
    return rank > 1 && b.random.chance(35) ? addBatchNorm(b, x) : addUnary(b, x);
  }
}

Use lowtide::test::addRandomLayer(GraphBuilder &b, Use x, ArrayRef<Use> pool) {
  int64_t rank = b.rank(x);
  if (b.shape(x).elements() > largest / 2 && b.random.chance(60)) // back to a moderate size
    return rank == 4 ? addPool(b, x) : rank == 3 ? addSlice(b, x) : addLinear(b, x, b.random.between(2, 16));
  if (b.random.chance(25)) { // residual block
    Use y = x;
    for (int64_t i = b.random.between(1, 4); i > 0; --i)
      y = addKeepingLayer(b, y, pool);
    return b.binary("add", x, y);
  }
  switch (b.random.below(16)) {
  case 0:
  case 1:
    return rank == 4 ? addConv(b, x, /*keep=*/false) : addLinear(b, x, b.random.between(1, 32));
  case 2:
    return rank == 3 ? addAttention(b, x) : rank == 4 ? addTransposedConv(b, x) : addReshape(b, x);
  case 3:
    return rank == 4 ? addPool(b, x) : addReshape(b, x);
  case 4:
    return addTranspose(b, x);
  case 5:
    return addSlice(b, x);
  case 6:
    return addSplit(b, x, pool);
  case 7:
    return addPad(b, x);
  case 8:
    return addReverse(b, x);
  case 9:
    return addConcat(b, x, pool);
  case 10:
    return addEmbedding(b, x);
  case 11:
    return addChosen(b, x);
  case 12:
    return addCast(b, x);
  default:
    return addKeepingLayer(b, x, pool);
  }
}
