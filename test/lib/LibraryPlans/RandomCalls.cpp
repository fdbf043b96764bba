//===- RandomCalls.cpp - calls of libraries as no model has them -----------===//

#include "RandomCalls.h"

#include <algorithm>
#include <random>
#include <vector>

namespace lowtide::test {
namespace {

class Draw {
public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  plan::Call call() {
    if (of({0, 1}))
      drawConv();
    else
      drawAttention();
    return std::move(call_);
  }

private:
  using List = std::vector<int64_t>;

  int64_t of(const List &values) { return values[random_() % values.size()]; }
  plan::Attribute &add(const char *name) {
    plan::Attribute *attribute = call_.add_attributes();
    attribute->set_name(name);
    return *attribute;
  }
  void set(const char *name, int64_t value) { add(name).set_i(value); }
  void set(const char *name, const char *value) { add(name).set_s(value); }
  void set(const char *name, const List &values) {
    add(name).mutable_ints()->mutable_values()->Add(values.begin(), values.end());
  }

  void drawConv();
  void drawAttention();

  std::mt19937_64 random_;
  plan::Call call_;
};

void Draw::drawConv() {
  const char *kinds[] = {"conv", "conv_input_grad", "conv_filter_grad"}, *types[] = {"f32", "f16", "bf16"};
  call_.set_callee(kinds[of({0, 1, 2})]);
  const List sizes = {1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 32, 64};
  int64_t groups = of({1, 1, 1, 2, 4, 8, 32}), channels = of(sizes), outChannels = of(sizes);
  if (of({0, 0, 1})) // depthwise
    groups = of({3, 8, 16, 32, 33}), channels = 1, outChannels = of({1, 1, 2});
  const int64_t batch = of({1, 2, 3, 8}), spatial = of({1, 2, 2, 2, 3});
  List input = {batch, channels * groups}, filter = {outChannels * groups, channels},
       output = {batch, outChannels * groups}, strides, begins, ends, dilations;
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t taps = of({1, 2, 3, 3, 4, 5, 7}), dilation = of({1, 1, 1, 2, 3}), reach = dilation * (taps - 1) + 1;
    const int64_t stride = of({1, 1, 2, 2, 3, 4}), begin = of({0, 1, 1, 2, 3});
    const int64_t end = of({begin, begin, 0, 1, 2});
    const int64_t size = std::max({of({1, 2, 5, 7, 8, 14, 16, 33, 64}), reach - begin - end, int64_t(1)});
    input.push_back(size), filter.push_back(taps), output.push_back((size + begin + end - reach) / stride + 1);
    strides.push_back(stride), begins.push_back(begin), ends.push_back(end), dilations.push_back(dilation);
  }
  set("input", input), set("filter", filter), set("output", output), set("strides", strides);
  set("pads_begin", begins), set("pads_end", ends), set("dilations", dilations), set("groups", groups);
  set("dtype", types[of({0, 1, 2})]);
  if (of({0, 1}))
    set("channels_last", 1);
}

void Draw::drawAttention() {
  const bool isGradient = of({0, 1});
  call_.set_callee(isGradient ? "attention_grad" : "attention");
  const int64_t batch = of({1, 2, 3}), keyHeads = of({1, 2, 3, 4}), heads = keyHeads * of({1, 1, 1, 2, 3, 4});
  const int64_t rows = of({1, 2, 3, 7, 16, 48, 64, 65, 100, 128, 197, 256, 1000});
  const int64_t columns = of({rows, rows, 2, 3, 64, 77, 128, 200, 1024});
  const int64_t depth = of({4, 8, 16, 24, 32, 40, 48, 60, 64, 64, 72, 80, 96, 104, 112, 120, 128, 136, 192});
  const int64_t valueDepth = of({depth, depth, depth, 8, 16, 32, 64, 128});
  set("batch", batch), set("heads", heads), set("key_heads", keyHeads), set("rows", rows), set("columns", columns);
  set("depth", depth), set("value_depth", valueDepth), set("dtype", of({0, 1}) ? "f16" : "bf16");
  if (of({0, 1}))
    set("causal", 1);
  if (of({0, 0, 1})) {
    set("mask", List{of({1, batch}), of({1, heads}), of({1, rows, rows}), of({1, columns, columns})});
    if (of({0, 0, 1}))
      set("mask_dtype", "f32");
  }
  if (of({0, 1}))
    return;
  // Heads side by side in each row.
  auto interleave = [&](const char *name, int64_t count, int64_t length, int64_t size) {
    set(name, List{0, count * length * size, size, count * size, 1});
  };
  interleave("q_layout", heads, rows, depth), interleave("k_layout", keyHeads, columns, depth);
  interleave("v_layout", keyHeads, columns, valueDepth), interleave("o_layout", heads, rows, valueDepth);
  if (isGradient) {
    interleave("grad_o_layout", heads, rows, valueDepth), interleave("grad_q_layout", heads, rows, depth);
    interleave("grad_k_layout", keyHeads, columns, depth), interleave("grad_v_layout", keyHeads, columns, valueDepth);
  }
}

} // namespace

plan::Call randomCall(uint64_t seed) { return Draw(seed).call(); }

} // namespace lowtide::test
