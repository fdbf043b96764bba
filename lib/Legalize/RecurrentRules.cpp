//===- RecurrentRules.cpp - LSTM, GRU and RNN, unrolled -------------------===//
//
// Lengths are static, so that a recurrent layer is its steps, one after the other. The products with the input are one
// product for all steps.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/Rules.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

using Function = Expr (*)(Expr);

Expr softsign(Expr x) { return x / (nn::abs(x) + 1.0); }

Function findFunction(StringRef name) {
  return llvm::StringSwitch<Function>(name.lower())
      .Case("sigmoid", nn::sigmoid)
      .Case("tanh", nn::tanh)
      .Case("relu", nn::relu)
      .Case("softsign", softsign)
      .Case("softplus", nn::softplus)
      .Default(nullptr);
}

/// One direction of a layer: its operands without the dimension of directions.
struct Direction {
  NodeView &n;
  bool backwards;
  int64_t time, batch, hidden, gates;
  /// [T, B, gates · H]: products of all inputs with the weights, with the input's bias.
  Expr inputs;
  Expr recurrent, recurrentBias, peepholes; // [gates · H, H], [gates · H], [3 · H]
  Expr h, c;                                // [B, H]; c of an LSTM only
  Expr lengths;                             // [B] or null
  SmallVector<Function> functions;
  double clip;
  SmallVector<Expr> outputs; // by time, [B, H]

  Expr limit(Expr x) {
    if (clip <= 0.0)
      return x;
    x = nn::select(nn::less(x, -clip), x.like(-clip), x);
    return nn::select(nn::greater(x, clip), x.like(clip), x);
  }
  /// Gate `i` of [B, gates · H].
  Expr gate(Expr all, int64_t i) { return sliceDim(all, 1, i * hidden, hidden); }
  Expr peephole(int64_t i) { return nn::broadcast(sliceDim(peepholes, 0, i * hidden, hidden), {batch, hidden}, {1}); }
  Expr recurrence(Expr state, int64_t first, int64_t count) {
    Expr product = nn::dot(state, sliceDim(recurrent, 0, first * hidden, count * hidden), false, true);
    if (!recurrentBias)
      return product;
    return product + nn::broadcast(sliceDim(recurrentBias, 0, first * hidden, count * hidden), product.shape(), {1});
  }

  /// Next h and c of an LSTM; gates in the order i, o, f, c.
  std::pair<Expr, Expr> lstm(Expr x, bool couples) {
    Expr all = x + recurrence(h, 0, 4), zi = gate(all, 0), zo = gate(all, 1), zf = gate(all, 2), zc = gate(all, 3);
    if (peepholes) {
      zi = zi + peephole(0) * c;
      zf = zf + peephole(2) * c;
    }
    Expr i = functions[0](limit(zi)), f = couples ? 1.0 - i : functions[0](limit(zf));
    Expr next = f * c + i * functions[1](limit(zc));
    if (peepholes)
      zo = zo + peephole(1) * next;
    return {functions[0](limit(zo)) * functions[2](next), next};
  }

  /// Next h of a GRU; gates in the order z, r, h.
  Expr gru(Expr x, bool resetsLate) {
    Expr zr = sliceDim(x, 1, 0, 2 * hidden) + recurrence(h, 0, 2), candidate = gate(x, 2);
    Expr z = functions[0](limit(gate(zr, 0))), r = functions[0](limit(gate(zr, 1)));
    candidate = candidate + (resetsLate ? r * recurrence(h, 2, 1) : recurrence(r * h, 2, 1));
    return (1.0 - z) * functions[1](limit(candidate)) + z * h;
  }

  Expr rnn(Expr x) { return functions[0](limit(x + recurrence(h, 0, 1))); }

  void run() {
    outputs.resize(time);
    bool couples = n.attr("input_forget", 0), resetsLate = n.attr("linear_before_reset", 0);
    for (int64_t i = 0; i < time; ++i) {
      int64_t t = backwards ? time - 1 - i : i;
      Expr x = nn::reshape(sliceDim(inputs, 0, t, 1), {batch, gates * hidden}), nextC = c, nextH;
      if (gates == 4)
        std::tie(nextH, nextC) = lstm(x, couples);
      else
        nextH = gates == 3 ? gru(x, resetsLate) : rnn(x);
      outputs[t] = nextH;
      if (lengths) { // a sequence that has ended, or not begun, keeps its state
        Expr runs = nn::broadcast(nn::greater(lengths, double(t)), {batch, hidden}, {0});
        outputs[t] = nn::select(runs, nextH, nextH.like(0.0));
        nextH = nn::select(runs, nextH, h);
        if (nextC)
          nextC = nn::select(runs, nextC, c);
      }
      h = nextH;
      c = nextC;
    }
  }
};

/// Tensors [d…] to one tensor with a new dimension.
Expr stack(ArrayRef<Expr> list, int64_t dim) {
  SmallVector<Expr> parts;
  for (Expr x : list)
    parts.push_back(unsqueeze(x, dim));
  return parts.size() == 1 ? parts.front() : nn::concat(parts, dim);
}

template <int64_t Gates> LogicalResult recurrent(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  Expr x = n.in(0), weights = n.in(1), recurrence = n.in(2);
  bool batchFirst = n.attr("layout", 0);
  if (x.rank() != 3 || weights.rank() != 3 || recurrence.rank() != 3 || !isFloat(x))
    return n.reject("float operands of rank 3 are expected");
  std::string direction = n.attrString("direction", "forward");
  int64_t directions = direction == "bidirectional" ? 2 : 1, hidden = recurrence.dim(2);
  if (batchFirst)
    x = nn::transpose(x, {1, 0, 2});
  int64_t time = x.dim(0), batch = x.dim(1), width = x.dim(2);
  if (weights.shape() != ArrayRef<int64_t>{directions, Gates * hidden, width} ||
      recurrence.shape() != ArrayRef<int64_t>{directions, Gates * hidden, hidden} ||
      n.attr("hidden_size", hidden) != hidden ||
      (n.has(3) && n.in(3).shape() != ArrayRef<int64_t>{directions, 2 * Gates * hidden}))
    return n.reject("weights, recurrence and bias do not fit together");
  if (time < 1)
    return n.reject("there are no steps");
  SmallVector<int64_t> state{directions, batch, hidden};
  if (batchFirst)
    std::swap(state[0], state[1]);
  for (unsigned i : {5u, 6u})
    if (n.has(i) && n.in(i).shape() != ArrayRef(state))
      return n.reject("operand " + Twine(i) + ", an initial state, must have " + Twine(hidden) +
                      " elements for each direction and sample; ONNX has no projections (proj_size)");

  SmallVector<StringRef> names;
  if (Gates == 4)
    names = {"Sigmoid", "Tanh", "Tanh"};
  else if (Gates == 3)
    names = {"Sigmoid", "Tanh"};
  else
    names = {"Tanh"};
  size_t perDirection = names.size();
  if (auto given = dyn_cast_or_null<ArrayAttr>(n.op.getNodeAttr("activations"))) {
    names.clear();
    for (Attribute name : given)
      names.push_back(cast<StringAttr>(name).getValue());
  } else if (directions == 2) {
    for (size_t i = 0; i < perDirection; ++i)
      names.push_back(StringRef(names[i]));
  }
  if (names.size() != perDirection * directions)
    return n.reject("there are " + Twine(names.size()) + " activations");
  if (n.hasAttr("activation_alpha") || n.hasAttr("activation_beta"))
    return n.refuse("activations with parameters of their own");

  Expr lengths = n.has(4) ? nn::cast(n.in(4), n.builder.getI64Type()) : Expr();
  if (std::optional<Shape> known = n.constantInts(4);
      known && llvm::all_of(*known, [&](int64_t l) { return l == time; }))
    lengths = {};
  SmallVector<SmallVector<Expr>> byTime(time);
  SmallVector<Expr> lastH, lastC;
  for (int64_t d = 0; d < directions; ++d) {
    auto part = [&](Expr e) {
      Shape shape(e.shape().drop_front());
      return nn::reshape(sliceDim(e, 0, d, 1), shape);
    };
    auto start = [&](unsigned i) {
      if (!n.has(i))
        return n.splat(x.elementType(), {batch, hidden}, 0.0);
      return part(batchFirst ? nn::transpose(n.in(i), {1, 0, 2}) : n.in(i));
    };
    Expr rows = nn::dot(nn::reshape(x, {time * batch, width}), part(weights), false, true), recurrentBias;
    if (n.has(3)) {
      Expr bias = part(n.in(3));
      rows = rows + nn::broadcast(sliceDim(bias, 0, 0, Gates * hidden), rows.shape(), {1});
      recurrentBias = sliceDim(bias, 0, Gates * hidden, Gates * hidden);
    }
    Direction run{n,
                  direction == "reverse" || d == 1,
                  time,
                  batch,
                  hidden,
                  Gates,
                  nn::reshape(rows, {time, batch, Gates * hidden}),
                  part(recurrence),
                  recurrentBias,
                  Gates == 4 && n.has(7) ? part(n.in(7)) : Expr(),
                  start(5),
                  Gates == 4 ? start(6) : Expr(),
                  lengths,
                  {},
                  n.attrFloat("clip", 0.0),
                  {}};
    for (size_t i = 0; i < perDirection; ++i) {
      Function function = findFunction(names[d * perDirection + i]);
      if (!function)
        return n.refuse("activation '" + names[d * perDirection + i] + "'");
      run.functions.push_back(function);
    }
    run.run();
    for (int64_t t = 0; t < time; ++t)
      byTime[t].push_back(run.outputs[t]);
    lastH.push_back(run.h);
    if (run.c)
      lastC.push_back(run.c);
  }
  // [T, D, B, H] and [D, B, H]; with the batch in front [B, T, D, H] and [B, D, H].
  SmallVector<Expr> steps;
  for (SmallVector<Expr> &both : byTime)
    steps.push_back(stack(both, 0));
  Expr y = stack(steps, 0), h = stack(lastH, 0);
  n.set(0, batchFirst ? nn::transpose(y, {2, 0, 1, 3}) : y);
  n.set(1, batchFirst ? nn::transpose(h, {1, 0, 2}) : h);
  if (Gates == 4) {
    Expr c = stack(lastC, 0);
    n.set(2, batchFirst ? nn::transpose(c, {1, 0, 2}) : c);
  }
  return success();
}

} // namespace

void lowtide::addRecurrentRules(RuleTable &t) {
  t.add("LSTM", recurrent<4>);
  t.add("GRU", recurrent<3>);
  t.add("RNN", recurrent<1>);
}
