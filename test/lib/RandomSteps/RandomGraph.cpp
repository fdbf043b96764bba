//===- RandomGraph.cpp - training graphs that no one thought of ------*- C++ -*-===//
//
// Inputs, layers on values drawn from what is there, and a loss that reads the last of them and some others.
//
//===----------------------------------------------------------------------===//
#include "RandomGraph.h"
#include "GraphBuilder.h"
#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace lowtide::test;
using llvm::ArrayRef;
using llvm::StringRef;

/// A number from a value: its sum times a factor.
static Use sumUp(GraphBuilder &b, Use x, double factor) {
  llvm::SmallVector<int64_t> all(b.rank(x));
  std::iota(all.begin(), all.end(), 0);
  return b.withConstant("mul", b.reduce("reduce_sum", x, all), factor);
}

static double meanFactor(GraphBuilder &b, Use x) { return 1.0 / static_cast<double>(b.shape(x).elements()); }

/// What is added to a cross-entropy: smoothed labels, log-sum-exps that are to stay small.
static Use addToCrossEntropy(GraphBuilder &b, Use loss, Use logits, Use lse) {
  if (b.random.chance(20)) {
    Use spread = b.reduce("reduce_sum", b.unary("log_softmax", logits, "dim = 1"), {1});
    loss = b.binary("sub", loss, sumUp(b, spread, 0.1 * meanFactor(b, logits)));
  }
  if (b.random.chance(20))
    loss = b.binary("add", loss, sumUp(b, b.binary("mul", lse, lse), 0.01 * meanFactor(b, lse)));
  return loss;
}

/// Cross-entropy of classes that a linear layer makes; as a sum, a mean, or a mean over what is not ignored.
static Use addCrossEntropy(GraphBuilder &b, Use x, bool lossHead) {
  if (b.rank(x) != 2)
    x = b.reshape(x, {b.shape(x).elements() / b.shape(x).dims.back(), b.shape(x).dims.back()});
  // A head is recognised where there are more classes than features.
  int64_t rows = b.dim(x, 0), classes = lossHead ? b.dim(x, 1) + b.random.between(1, 40) : b.random.between(2, 20);
  Use logits = addLinear(b, x, classes);
  bool ignore = b.random.chance(40);
  Use labels = b.batchArray({b.batch, rows / b.batch}, "i64", ignore ? -1 : 0, static_cast<double>(classes));
  labels = b.reshape(labels, {rows});
  TensorShape perRow{{rows}, "f32"};
  Use losses = b.op(std::string("softmax_cross_entropy $0, $1") + (ignore ? " ignore_index = -1" : "") + " : (" +
                        b.shape(logits).text() + ", " + b.shape(labels).text() + ") -> (" + perRow.text() + ", " +
                        perRow.text() + ")",
                    {logits, labels}, {perRow, perRow});
  Use lse{losses.node, 1};
  if (!ignore || b.random.chance(30)) {
    Use loss = sumUp(b, losses, b.random.chance(70) ? meanFactor(b, losses) : 0.125);
    return addToCrossEntropy(b, loss, logits, lse);
  }
  Use valid = b.cast(b.compare("ne", labels, b.constant(b.shape(labels), -1)), "f32");
  // One is added so that a batch of ignored labels is no division by zero.
  Use count = b.withConstant("add", b.reduce("reduce_sum", valid, {0}), 1);
  Use loss = b.binary("div", b.reduce("reduce_sum", losses, {0}), count);
  return addToCrossEntropy(b, loss, logits, lse);
}

static Use addLossTerm(GraphBuilder &b, Use x, bool lossHead) {
  switch (lossHead ? 0 : b.random.below(5)) {
  case 0:
  case 1:
    return addCrossEntropy(b, x, lossHead);
  case 2: {
    Use difference = b.binary("sub", x, b.batchArray(b.shape(x).dims, "f32", -1, 1));
    return sumUp(b, b.binary("mul", difference, difference), meanFactor(b, x));
  }
  case 3: { // binary cross-entropy with logits
    Use targets = b.batchArray(b.shape(x).dims, "f32", 0, 1);
    return sumUp(b, b.binary("sub", b.unary("softplus", x), b.binary("mul", x, targets)), meanFactor(b, x));
  }
  default:
    return sumUp(b, b.unary("abs", x), meanFactor(b, x));
  }
}

static StepSettings makeSettings(RandomNumbers &random, uint64_t seed) {
  StepSettings settings;
  static const StringRef optimizers[] = {"sgd", "sgd", "momentum", "adagrad", "adam", "adamw", "adamw"};
  settings.seed = seed;
  settings.optimizer = random.pick(ArrayRef(optimizers)).str();
  settings.lr = settings.optimizer[0] == 'a' ? "0.002" : "0.05";
  if (random.chance(20)) {
    static const StringRef precisions[] = {"mixed-bf16", "mixed-f16", "bf16", "f16"};
    settings.precision = random.pick(ArrayRef(precisions)).str();
  }
  if (random.chance(StringRef(settings.precision).ends_with("f16") ? 50 : 8))
    settings.lossScale = random.chance(60) ? "dynamic" : "1024";
  if (random.chance(12))
    settings.clipNorm = 0.5;
  if (random.chance(15))
    settings.microBatches = random.chance(70) ? 2 : 4;
  settings.lossHead = random.chance(15);
  return settings;
}

/// The first values: what the user brings.
static llvm::SmallVector<Use> addInputs(GraphBuilder &b) {
  llvm::SmallVector<Use> inputs;
  for (int64_t i = b.random.chance(30) ? 2 : 1; i > 0; --i)
    switch (b.random.below(4)) {
    case 0:
      inputs.push_back(b.batchArray({b.batch, b.random.between(2, 24)}, "f32", -1, 1));
      break;
    case 1:
      inputs.push_back(b.batchArray({b.batch, b.random.between(2, 8), b.random.between(2, 12)}, "f32", -1, 1));
      break;
    case 2:
      inputs.push_back(b.batchArray({b.batch, b.random.between(1, 4), b.random.between(4, 9), b.random.between(4, 9)},
                                    "f32", -1, 1));
      break;
    default: { // tokens
      int64_t rows = b.random.between(4, 30), size = b.random.between(2, 12);
      Use tokens = b.batchArray({b.batch, b.random.between(2, 8)}, "i64", 0, static_cast<double>(rows));
      inputs.push_back(b.gather(b.param({rows, size}, 1), tokens, 0));
    }
    }
  return inputs;
}

StepGraph lowtide::test::makeRandomGraph(uint64_t seed, StepSettings &settings) {
  RandomNumbers random(seed);
  settings = makeSettings(random, seed);
  StepGraph graph;
  GraphBuilder b(graph, random, 4 * random.between(1, 2));
  llvm::SmallVector<Use> pool = addInputs(b);
  int64_t layers = random.chance(80) ? random.between(2, 10) : random.between(10, 24);
  // One that is trained in any case.
  if (b.rank(pool.back()) < 4)
    pool.push_back(addLinear(b, pool.back(), random.between(2, 24)));
  for (int64_t i = 0; i < layers; ++i) {
    Use x = random.chance(70) ? pool.back() : random.pick(ArrayRef(pool));
    Use y = addRandomLayer(b, x, pool);
    if (!(y == x))
      pool.push_back(y);
  }
  // A parameter between the last value and the loss; then terms of the last and of some that nothing read.
  Use last = addLinear(b, pool.back(), random.between(1, 12));
  graph.loss = addLossTerm(b, last, settings.lossHead);
  for (size_t i = 0; i + 1 < pool.size(); ++i)
    if (!graph.isUsed(pool[i].node) && random.chance(70)) {
      Use term = addLossTerm(b, pool[i], false);
      graph.loss = b.binary("add", graph.loss, b.withConstant("mul", term, 0.25));
    }
  if (random.chance(15))
    graph.outputs.push_back(last);
  if (random.chance(80))
    graph.removeDead();
  return graph;
}
