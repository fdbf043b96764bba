//===- BufferNames.cpp - names of what no optimizer sees -------------------------===//

#include "BufferNames.h"

#include "LossWeights.h"
#include "Makers.h"
#include "TableValues.h"

#include "lowtide/OnnxModel/TensorData.h"

#include "onnx/onnx_pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace lowtide;

/// Names that are those of buffers in well-known programs, and no words that one calls what is learned.
static bool isKnownBuffer(StringRef leaf) {
  static constexpr StringLiteral names[] = {
      // rotary and other positions
      "inv_freq", "original_inv_freq", "position_ids", "freqs_cis", "freqs_cos", "freqs_sin", "cos_cached",
      "sin_cached", "rope_cos", "rope_sin", "relative_position_index", "relative_coords_table",
      "relative_coordinates_log", "rel_coords_log", "inv_timescales", "sinusoid_freq", "freq_inv", "pos_embed_sin",
      "pos_embed_cos", "slope_rate", "query_decay", "key_decay", "diagonal_decay", "embed_scale",
      // masks
      "masked_bias", "causal_mask", "attn_mask",
      // numbers that describe data, images, sounds
      "num_batches_tracked", "pixel_mean", "pixel_std", "image_mean", "image_std", "imagenet_mean", "imagenet_std",
      "latent_mean", "latent_std", "norm_mean", "norm_std", "std_bias", "std_scale", "anchor_grid", "hann_window",
      "mel_basis", "mel_filters", "dct_mat",
      // moving averages and power iterations
      "running_mean", "running_var", "cluster_size", "embed_avg", "weight_u", "_u", "_v",
      // biases that nothing trains, or a rule of its own
      "final_logits_bias", "e_score_correction_bias", "empty_weight", "gradient_clipping",
      // random features and schedules of diffusion
      "projection_matrix", "alphas_cumprod", "alphas_cumprod_prev", "sqrt_alphas_cumprod",
      "sqrt_one_minus_alphas_cumprod", "log_one_minus_alphas_cumprod", "sqrt_recip_alphas_cumprod",
      "sqrt_recipm1_alphas_cumprod", "posterior_variance", "posterior_log_variance_clipped", "posterior_mean_coef1",
      "posterior_mean_coef2"};
  return llvm::is_contained(names, leaf);
}

/// Words for buffers that programs also learn under: a mask of features, anchors, frequencies, weights of classes.
static bool isBufferWord(StringRef leaf) {
  static constexpr StringLiteral words[] = {
      "freqs", "alibi",        "slopes",        "bands",      "periods",     "mask",       "tril",
      "triu",  "mean",         "std",           "pos_weight", "anchors",     "window",     "ema",
      "queue", "class_weight", "class_weights", "normalizer", "weight_mask", "blur_kernel"};
  return llvm::is_contained(words, leaf);
}

bool lowtide::isBufferLeaf(StringRef leaf) { return isKnownBuffer(leaf) || isBufferWord(leaf); }

bool lowtide::isPowerIteration(const ModelView &file, const TensorFacts &facts, StringRef name) {
  const ::onnx::TensorProto &tensor = *facts.tensor;
  StringRef stem = name.drop_back(std::min<size_t>(name.size(), 2));
  if (tensor.dims_size() != 1 || stem.empty() || !(name.ends_with("_u") || name.ends_with("_v")) ||
      any_of(facts.uses, [](const InitializerUse &use) { return use.node->op_type() == "Add"; }))
    return false;
  const ::onnx::TensorProto *other = file.findInitializer((stem + (name.ends_with("_u") ? "_v" : "_u")).str());
  return (other && other->dims_size() == 1) || file.findInitializer((stem + "_orig").str());
}

namespace {
/// What values a graph's inputs are, but for their place, their type, and numbers that they are measured by.
class Inputs {
public:
  explicit Inputs(const ::onnx::GraphProto &graph) : makers(graph) {
    for (const auto &input : graph.input())
      names.insert(input.name());
  }

  bool measures(const ::onnx::NodeProto &node) const {
    return any_of(node.input(), [&](const std::string &operand) { return isInput(operand, mostSteps); });
  }

private:
  static constexpr int mostSteps = 6;

  bool isInput(StringRef value, int steps) const {
    if (names.contains(value))
      return true;
    const ::onnx::NodeProto *node = makers.find(value);
    return node && steps > 0 && node->input_size() &&
           is_contained({"Add", "Sub", "Mul", "Div", "Cast", "Transpose", "Reshape", "Unsqueeze", "Clip"},
                        node->op_type()) &&
           any_of(node->input(), [&](const std::string &operand) { return isInput(operand, steps - 1); });
  }

  StringSet<> names;
  const Makers makers;
};
} // namespace

static bool holdsTwoNumbers(ArrayRef<float> values) {
  const auto *other = find_if(values, [&](float value) { return value != values.front(); });
  return other != values.end() &&
         all_of(values, [&](float value) { return value == values.front() || value == *other; });
}

/// Whether values look like what programs write into buffers: two numbers (a mask), whole numbers, mostly zeros, a
/// vector that grows or falls, or reads the same from its end (a window), and what formulas tell.
static bool looksWritten(const ModelView &file, const ::onnx::TensorProto &tensor) {
  std::string bytes = file.tryReadInitializer(tensor.name()).value_or("");
  if (tensor.data_type() != ::onnx::TensorProto::FLOAT || bytes.size() < 2 * sizeof(float))
    return true; // one number tells nothing
  std::vector<float> values = asFloats(bytes);
  if (all_equal(values)) // as parameters begin
    return false;
  if (findFormula(tensor, bytes) != Formula::None || holdsTwoNumbers(values) ||
      all_of(values, [](float value) { return value == std::floor(value); }) ||
      2 * static_cast<size_t>(llvm::count(values, 0.0F)) >= values.size())
    return true;
  if (count_if(tensor.dims(), [](int64_t dim) { return dim != 1; }) != 1)
    return false;
  return is_sorted(values) || std::is_sorted(values.rbegin(), values.rend()) ||
         (values.size() > 2 && equal(values, reverse(values)));
}

void lowtide::reportBufferWords(ModelView &file, ArrayRef<InitializerInfo> infos) {
  const Inputs inputs(file.getModel().graph());
  const StringSet<> lossWeights = findLossWeights(file.getModel().graph());
  auto weighsLoss = [](const InitializerUse &use) {
    return use.operand == 2 && StringRef(use.node->op_type()).ends_with("Loss");
  };
  std::vector<std::string> names;
  for (const InitializerInfo &info : infos) {
    StringRef leaf = leafOf(info.name);
    if (!info.reason.is(RoleReason::BufferName) || info.role != InitializerRole::Constant || !isBufferWord(leaf))
      continue;
    const bool isMoment = leaf == "mean" || leaf == "std";
    const bool isConfirmed =
        isMoment ? any_of(info.uses, [&](const InitializerUse &use) { return inputs.measures(*use.node); })
                 : lossWeights.contains(info.tensor) || any_of(info.uses, weighsLoss) ||
                       looksWritten(file, *file.findInitializer(info.tensor));
    if (!isConfirmed)
      names.push_back(info.name);
  }
  if (!names.empty())
    file.getReport().add({FindingKind::BufferWordsNotTrained, names.front(), names, {{"name", names.front()}}});
}

/// Whether tensors are listed in another order than their exporter's: onnxruntime puts the last one in the place of
/// each that it removes. It signs what it writes with the operator sets that it knows.
static bool hasOrderOfRuntime(const ModelView &file) {
  return any_of(file.getModel().opset_import(), [](const auto &set) { return set.domain() == "com.microsoft.nchwc"; });
}

/// Whether layers tell of the order in which modules register what they hold: a weight before its bias, a norm's scale
/// before its statistics. Scripted modules list tensors in the order of use, traced ones from the last one on.
static bool hasOrderOfModules(const ModelView &file, ArrayRef<TensorFacts> facts) {
  StringMap<size_t> places;
  for (auto [at, fact] : enumerate(facts))
    places[fact.tensor->name()] = at;
  unsigned inOrder = 0, turned = 0;
  for (const ::onnx::NodeProto &node : file.getModel().graph().node()) {
    auto isAfter = [&](int operand) -> std::optional<bool> { // whether it is listed after the weight of its module
      if (operand >= node.input_size() || moduleOf(node.input(1)) != moduleOf(node.input(operand)))
        return std::nullopt;
      auto weight = places.find(node.input(1)), other = places.find(node.input(operand));
      if (weight == places.end() || other == places.end() || weight == other)
        return std::nullopt;
      return weight->second < other->second;
    };
    if (node.op_type() == "BatchNormalization" && isAfter(3) == false)
      return false;
    if (operandLeaf(node, 1) == "weight" && operandLeaf(node, 2) == "bias")
      if (std::optional<bool> after = isAfter(2))
        ++(*after ? inOrder : turned);
  }
  return inOrder >= turned;
}

StringSet<> lowtide::findBuffersByOrder(const ModelView &file, ArrayRef<TensorFacts> facts) {
  StringSet<> buffers, modules;
  // The current one lists what it evaluated as well, and in another order.
  if (file.getModel().producer_name() != "pytorch" || isOfCurrentExporter(file.getModel().graph()) ||
      hasOrderOfRuntime(file) || !hasOrderOfModules(file, facts))
    return buffers;
  for (const TensorFacts &fact : facts) {
    StringRef name = fact.tensor->name();
    if (isInventedName(name))
      continue;
    if (!isFloatType(fact.tensor->data_type()) || any_of(fact.uses, isRunningStatistic))
      modules.insert(moduleOf(name));
    else if (modules.contains(moduleOf(name)))
      buffers.insert(name);
  }
  return buffers;
}
