//===- RecurrentRules.cpp - LSTM, GRU and RNN as scans --------------------===//
//
// A recurrent layer is a scan for each direction, whose round is one step. The products with the input are one product
// for all steps, before it.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Dialect/NN/Scan.h"
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
  Expr runs;                                // [T, B]: whether a sequence has that step; null: all have
  SmallVector<Function> functions;
  double clip;
  Expr outputs; // [T, B, H]

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

  /// Next h and c from a step's products with the input.
  std::pair<Expr, Expr> step(Expr x) {
    if (gates == 4)
      return lstm(x, n.attr("input_forget", 0));
    return {gates == 3 ? gru(x, n.attr("linear_before_reset", 0)) : rnn(x), Expr()};
  }

  /// Writes the scan; the members become what they are after it.
  void run() {
    SmallVector<Value> slices{inputs}, states{h}, reads;
    if (runs)
      slices.push_back(runs);
    if (c)
      states.push_back(c);
    // The same in every step.
    const SmallVector<Expr *> weights = llvm::to_vector(llvm::make_filter_range(
        ArrayRef<Expr *>{&recurrent, &recurrentBias, &peepholes}, [](Expr *weight) { return bool(*weight); }));
    for (Expr *weight : weights)
      reads.push_back(*weight);
    const Shape row{1, batch, hidden};
    auto scan = nn::ScanOp::create(n.builder, n.getLoc(), time, backwards, slices, states, reads,
                                   TypeRange(Type(h.type().clone(row))));
    OpBuilder inside = OpBuilder::atBlockEnd(scan.getBlock());
    auto arguments = scan.getBlock()->getArguments();
    auto at = [&](OpBuilder &builder, Value value) { return Expr(builder, n.getLoc(), value); };
    for (auto [weight, argument] : llvm::zip_equal(weights, arguments.take_back(reads.size())))
      *weight = at(inside, argument);
    h = at(inside, arguments[slices.size()]);
    if (c)
      c = at(inside, arguments[slices.size() + 1]);
    auto [nextH, nextC] = step(nn::reshape(at(inside, arguments[0]), {batch, gates * hidden}));
    Expr output = nextH;
    if (runs) { // a sequence that has ended, or not begun, keeps its state
      Expr isRunning = nn::broadcast(nn::reshape(at(inside, arguments[1]), {batch}), {batch, hidden}, {0});
      output = nn::select(isRunning, nextH, nextH.like(0.0));
      nextH = nn::select(isRunning, nextH, h);
      if (nextC)
        nextC = nn::select(isRunning, nextC, c);
    }
    SmallVector<Value> handedOn{nextH};
    if (nextC)
      handedOn.push_back(nextC);
    nn::NextOp::create(inside, n.getLoc(), handedOn, ValueRange(nn::reshape(output, row).get()));
    h = at(n.builder, scan->getResult(0));
    if (c)
      c = at(n.builder, scan->getResult(1));
    outputs = at(n.builder, scan->getResults().back());
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
  Expr runs;
  if (lengths) {
    Expr steps = nn::iota(n.builder, n.getLoc(), lengths.type().clone({time, batch}), 0);
    runs = nn::greater(nn::broadcast(lengths, {time, batch}, {1}), steps);
  }
  SmallVector<Expr> outputs, lastH, lastC;
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
                  runs,
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
    outputs.push_back(run.outputs);
    lastH.push_back(run.h);
    if (run.c)
      lastC.push_back(run.c);
  }
  // [T, D, B, H] and [D, B, H]; with the batch in front [B, T, D, H] and [B, D, H].
  Expr y = stack(outputs, 1), h = stack(lastH, 0);
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
