//===- RandomSteps.h - training steps for property tests --------*- C++ -*-===//
//
// Valid steps of random shape: a forward graph with skips and branches, its
// backward pass, updates in place.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Model/Timeline.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string_view>

namespace lowtide::solve {

/// Random steps that a property is tried on: all of them in `tools/dev check --full`, which sets LOWTIDE_TESTS=full, a
/// third elsewhere.
inline unsigned countTrials(unsigned all) {
  const char *tests = std::getenv("LOWTIDE_TESTS");
  return tests && std::string_view(tests) == "full" ? all : all / 3;
}

/// Builds a step operation by operation.
class StepBuilder {
public:
  StepGraph graph;

  uint32_t argument(uint64_t bytes) {
    graph.values.push_back({bytes, -1, true, false});
    return graph.values.size() - 1;
  }

  /// One result; may be written over the first operand of its size where `inPlace`.
  uint32_t operation(std::vector<uint32_t> reads, uint64_t bytes, double seconds, bool inPlace = false,
                     uint64_t workspace = 0) {
    StepOperation op;
    op.reads = std::move(reads);
    op.writes = {uint32_t(graph.values.size())};
    op.overwrites.emplace_back();
    if (inPlace)
      for (uint32_t read : op.reads)
        if (graph.values[read].producer >= 0 && graph.values[read].bytes == bytes)
          op.overwrites[0].push_back(read);
    op.seconds = seconds;
    op.flops = uint64_t(seconds * 1000);
    op.workspaceBytes = workspace;
    graph.values.push_back({bytes, int32_t(graph.operations.size()), false, false});
    graph.operations.push_back(std::move(op));
    return graph.values.size() - 1;
  }

  /// Updates `param` in place.
  void update(uint32_t param, uint32_t gradient) {
    uint32_t result = operation({param, gradient}, graph.values[param].bytes, 1);
    graph.values[result].placed = true;
    graph.operations.back().updates = {param};
  }
};

/// A chain of `layers` blocks with saved values, weights and updates: y = f(x, w), z = g(y).
inline StepGraph chainStep(unsigned layers, uint64_t bytes) {
  StepBuilder b;
  std::vector<uint32_t> weights, inputs, hidden;
  uint32_t x = b.argument(bytes);
  for (unsigned i = 0; i < layers; ++i) {
    weights.push_back(b.argument(bytes));
    inputs.push_back(x);
    uint32_t y = b.operation({x, weights.back()}, bytes, 10);
    hidden.push_back(y);
    x = b.operation({y}, bytes, 1);
    b.graph.operations[b.graph.operations.size() - 2].isForward = true;
    b.graph.operations.back().isForward = true;
  }
  uint32_t d = b.operation({x}, bytes, 1);
  for (unsigned i = layers; i-- > 0;) {
    uint32_t dy = b.operation({d, hidden[i]}, bytes, 1, true);
    uint32_t dw = b.operation({inputs[i], dy}, bytes, 10);
    d = b.operation({dy, weights[i]}, bytes, 10);
    b.update(weights[i], dw);
  }
  return std::move(b.graph);
}

/// Random forward operations, then a backward operation per forward operand that reads cotangent and some operands.
inline StepGraph randomStep(std::mt19937_64 &random, unsigned count) {
  StepBuilder b;
  auto pick = [&](unsigned n) { return unsigned(random() % n); };
  auto bytes = [&] { return uint64_t(1 + pick(16)) * (pick(3) ? 64 : 1000); };
  std::vector<uint32_t> values{b.argument(bytes())}, weights, weightReaders;
  struct Forward {
    std::vector<uint32_t> reads;
    uint32_t result;
    int weight;
  };
  std::vector<Forward> forward;
  for (unsigned i = 0; i < count; ++i) {
    Forward f;
    f.weight = -1;
    unsigned reads = 1 + pick(3);
    for (unsigned k = 0; k < reads; ++k) {
      unsigned back = 1 + (pick(4) ? pick(std::min<unsigned>(values.size(), 3)) : pick(values.size()));
      uint32_t value = values[values.size() - back];
      if (std::find(f.reads.begin(), f.reads.end(), value) == f.reads.end())
        f.reads.push_back(value);
    }
    if (pick(2)) {
      f.weight = pick(4) || weights.empty() ? int(weights.size()) : int(pick(weights.size()));
      if (f.weight == int(weights.size()))
        weights.push_back(b.argument(bytes()));
    }
    std::vector<uint32_t> reads2 = f.reads;
    if (f.weight >= 0)
      reads2.push_back(weights[f.weight]);
    f.result = b.operation(reads2, bytes(), 1 + pick(20), pick(2), pick(3) ? 0 : pick(2000));
    StepOperation &op = b.graph.operations.back();
    op.isForward = true;
    // A running statistic, updated by the same kernel: it runs again without.
    if (pick(6) == 0) {
      StepOperation rerun = op;
      op.reruns = {uint32_t(b.graph.reruns.size())};
      b.graph.reruns.push_back(std::move(rerun));
      b.graph.values.push_back({64, -1, true, false});
      uint32_t state = b.graph.values.size() - 1;
      op.reads.push_back(state);
      op.updates.push_back(state);
      op.writes.push_back(b.graph.values.size());
      op.overwrites.emplace_back();
      b.graph.values.push_back({64, int32_t(b.graph.operations.size()) - 1, true, false});
    } else if (pick(4) == 0) {
      // A second result that is made of the first: both run again apart, or as one, which takes less time.
      const uint32_t second = b.graph.values.size();
      b.graph.values.push_back({bytes(), int32_t(b.graph.operations.size()) - 1, false, false});
      StepOperation first = op, rest;
      rest.reads = {f.result};
      rest.writes = {second};
      rest.overwrites.emplace_back();
      rest.seconds = 1 + pick(3);
      rest.isForward = true;
      op.writes.push_back(second);
      op.overwrites.emplace_back();
      op.seconds += pick(2);
      for (StepOperation *part : {&first, &rest}) {
        op.reruns.push_back(b.graph.reruns.size());
        b.graph.reruns.push_back(std::move(*part));
      }
      values.push_back(second);
    }
    values.push_back(f.result);
    forward.push_back(f);
  }
  std::vector<uint32_t> cotangent(b.graph.values.size(), 0), weightGradient(weights.size(), 0);
  std::vector<char> has(b.graph.values.size(), false), hasWeight(weights.size(), false);
  cotangent[values.back()] = b.operation({values.back()}, b.graph.values[values.back()].bytes, 1);
  has[values.back()] = true;
  for (auto f = forward.rbegin(); f != forward.rend(); ++f) {
    if (!has[f->result])
      continue;
    auto contribute = [&](std::vector<uint32_t> reads, uint64_t size, uint32_t *sum, bool before) {
      uint32_t d = b.operation(std::move(reads), size, 1 + pick(20), pick(2), pick(4) ? 0 : pick(2000));
      *sum = before ? b.operation({*sum, d}, size, 1, true) : d;
    };
    for (uint32_t read : f->reads) {
      if (b.graph.values[read].producer < 0)
        continue;
      std::vector<uint32_t> reads{cotangent[f->result]};
      if (pick(2))
        reads.push_back(f->result);
      if (pick(2))
        reads.push_back(read);
      if (f->weight >= 0)
        reads.push_back(weights[f->weight]);
      contribute(reads, b.graph.values[read].bytes, &cotangent[read], has[read]);
      has[read] = true;
    }
    if (f->weight >= 0) {
      contribute({cotangent[f->result], f->reads[0]}, b.graph.values[weights[f->weight]].bytes,
                 &weightGradient[f->weight], hasWeight[f->weight]);
      hasWeight[f->weight] = true;
    }
  }
  for (unsigned w = 0; w < weights.size(); ++w)
    if (hasWeight[w])
      b.update(weights[w], weightGradient[w]);
  // An output or two.
  for (unsigned i = pick(3); i-- > 0;) {
    uint32_t value = values[pick(values.size())];
    b.graph.values[value].kept = b.graph.values[value].producer >= 0;
  }
  return std::move(b.graph);
}

} // namespace lowtide::solve
