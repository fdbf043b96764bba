//===- Adapters.cpp - low-rank pairs in PEFT's files, and merged -----------===//

#include "runtime/checkpoint/Adapters.h"

#include "runtime/Element.h"
#include "runtime/Json.h"
#include "runtime/MappedFile.h"
#include "runtime/ShellQuote.h"
#include "runtime/Verify.h"
#include "runtime/checkpoint/FolderListing.h"
#include "runtime/checkpoint/FrameworkTensor.h"
#include "runtime/checkpoint/InitialState.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/OutputFile.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/data/Conversion.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

namespace lowtide::rt {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Dims = std::vector<int64_t>;

/// A pair and its weight in a session; a weight of few bits is no tensor. Without magnitudes the last three are none.
struct Pair {
  const plan::Adapter *facts = nullptr;
  Tensor weight, a, b;
  Tensor magnitude, norm, normed;
  int64_t rank() const { return a.binding->dims(0); }
  int64_t outputs() const { return b.binding->dims(0); }
  /// Whether a stored weight is [inputs, outputs].
  bool isInFirst() const { return facts->kind() != plan::Adapter::CONVOLUTION && facts->input_dim() == 0; }
};

Dims dimsOf(const plan::Binding &binding) { return {binding.dims().begin(), binding.dims().end()}; }

/// Shapes that a pair of this rank has for such a weight; empty: no weight of this kind.
std::pair<Dims, Dims> pairDims(const plan::Adapter &adapter, const Dims &weight, int64_t rank) {
  if (adapter.kind() == plan::Adapter::CONVOLUTION) {
    if (weight.size() < 3)
      return {};
    Dims a = weight, b(weight.size(), 1);
    a[0] = rank, b[0] = weight[0], b[1] = rank;
    return {a, b};
  }
  const int64_t in = adapter.input_dim();
  if (weight.size() != 2 || in < 0 || in > 1)
    return {};
  return {{rank, weight[static_cast<size_t>(in)]}, {weight[static_cast<size_t>(1 - in)], rank}};
}

/// Dimensions of the weight that a pair is for, where the artifact holds none: it is unpacked from codes. None: of no
/// weight.
Dims impliedDims(const plan::Adapter &adapter, Dims a, const Dims &b) {
  if (a.size() < 2 || b.size() != a.size())
    return {};
  const int64_t in = a[1], out = b[0];
  if (adapter.kind() != plan::Adapter::CONVOLUTION)
    return adapter.input_dim() == 0 ? Dims{in, out} : Dims{out, in};
  a[0] = out;
  return a;
}

/// Whether magnitudes and norms are of the outputs of the pair, and of a weight that the pair fits.
bool fitsMagnitudes(const Session &session, const Pair &pair) {
  const int64_t outputs = pair.outputs();
  Dims dims = {outputs};
  if (outputs < 1 || dimsOf(*pair.norm.binding) != dims)
    return false;
  if (pair.facts->kind() == plan::Adapter::CONVOLUTION) {
    dims.assign(static_cast<size_t>(pair.b.binding->dims_size()), 1);
    dims[1] = outputs;
  }
  if (dimsOf(*pair.magnitude.binding) != dims)
    return false;
  const plan::ParameterSource *source = findSource(session.plan(), pair.normed.binding->name());
  const bool isCoded = findCoded(session, pair.normed, source).has_value();
  if (!isCoded && !isFloat(pair.normed.binding->dtype()))
    return false;
  auto [a, b] = pairDims(*pair.facts, isCoded ? codedDims(*source) : dimsOf(*pair.normed.binding), pair.rank());
  return a == dimsOf(*pair.a.binding) && b == dimsOf(*pair.b.binding);
}

/// The pairs of a session; refuses a plan whose bindings do not fit what it says of them.
Expected<std::vector<Pair>> findPairs(const Session &session) {
  std::map<std::string, Tensor> tensors;
  for (const Tensor &tensor : session.persistent())
    tensors[tensor.binding->name()] = tensor;
  std::vector<Pair> pairs;
  for (const plan::Adapter &facts : session.plan().adapters()) {
    auto bad = [&](const std::string &what) {
      return badInput("the plan's adapter of '" + printable(facts.module()) + "' " + what);
    };
    Pair pair;
    pair.facts = &facts;
    const bool isDecomposed = !facts.magnitude().empty();
    for (auto [name, tensor, isNeeded] :
         {std::tuple(&facts.weight(), &pair.weight, !facts.weight().empty()), std::tuple(&facts.a(), &pair.a, true),
          std::tuple(&facts.b(), &pair.b, true), std::tuple(&facts.magnitude(), &pair.magnitude, isDecomposed),
          std::tuple(&facts.norm(), &pair.norm, isDecomposed),
          std::tuple(&facts.norm_of(), &pair.normed, isDecomposed)}) {
      if (!isNeeded)
        continue;
      auto found = tensors.find(*name);
      if (found == tensors.end() || (tensor != &pair.normed && !isFloat(found->second.binding->dtype())))
        return bad("names '" + printable(*name) + "', which is no float tensor of the artifact");
      *tensor = found->second;
    }
    const int64_t rank = pair.a.binding->dims_size() ? pair.rank() : 0;
    const Dims weight = facts.weight().empty() ? impliedDims(facts, dimsOf(*pair.a.binding), dimsOf(*pair.b.binding))
                                               : dimsOf(*pair.weight.binding);
    auto [a, b] = pairDims(facts, weight, rank);
    if (rank < 1 || a.empty() || dimsOf(*pair.a.binding) != a || dimsOf(*pair.b.binding) != b)
      return bad(facts.weight().empty() ? "is no pair of one rank"
                                        : "does not fit its weight " + describe(pair.weight.binding->dtype(), weight));
    if (isDecomposed && !fitsMagnitudes(session, pair))
      return bad("has magnitudes or norms that do not fit its outputs");
    pairs.push_back(pair);
  }
  return pairs;
}

/// ‖W‖ of each output of the weight that a pair is of.
Expected<std::vector<double>> computeNorms(const Session &session, const Pair &pair) {
  std::vector<double> norms(static_cast<size_t>(pair.outputs()));
  const plan::ParameterSource *source = findSource(session.plan(), pair.normed.binding->name());
  auto add = [&](uint64_t count, auto number) {
    const uint64_t outputs = norms.size(), inputs = count / outputs;
    for (uint64_t i = 0; i < count; ++i) {
      const double value = number(i);
      norms[pair.isInFirst() ? i % outputs : i / inputs] += value * value;
    }
  };
  if (const std::optional<CodedTensor> coded = findCoded(session, pair.normed, source)) {
    LOWTIDE_TRY(coded->bring(HostAccess::Read));
    const std::vector<float> numbers = coded->decode();
    add(numbers.size(), [&](uint64_t i) { return double(numbers[i]); });
    LOWTIDE_TRY(session.leave(coded->codes));
    LOWTIDE_TRY(session.leave(coded->scales));
  } else {
    LOWTIDE_TRY(pair.normed.bring(HostAccess::Read));
    std::vector<uint8_t> room;
    const std::span<const uint8_t> bytes = pair.normed.view(room);
    const plan::DType dtype = pair.normed.binding->dtype();
    const uint64_t size = elementBytes(dtype);
    add(bytes.size() / size, [&](uint64_t i) { return loadElement(dtype, bytes.data() + i * size); });
    LOWTIDE_TRY(session.leave(pair.normed));
  }
  for (double &norm : norms)
    norm = std::sqrt(norm);
  return norms;
}

/// The module of a parameter: all of its name but the last part.
std::string moduleOf(const std::string &name) {
  const size_t end = name.find_last_of("./");
  return end == std::string::npos ? name : name.substr(0, end);
}

/// Whether PEFT applies what is said of `target` to the module `name`.
bool isTarget(const std::string &name, const std::string &target) {
  return name == target || (name.size() > target.size() + 1 && name.ends_with("." + target));
}

/// A whole number as one.
Json numberJson(double value) {
  const bool isWhole = value == std::floor(value) && std::fabs(value) < 1e15;
  return isWhole ? Json(static_cast<int64_t>(value)) : Json(value);
}

/// Names as a list, or as an expression for exactly these where a list would mean other modules, too.
Json targetsJson(const std::vector<Pair> &pairs, const plan::Plan &plan) {
  std::set<std::string> names, others;
  for (const Pair &pair : pairs)
    names.insert(pair.facts->module());
  for (const plan::ParameterSource &source : plan.sources())
    for (int i = -1; i < source.tied_names_size(); ++i)
      if (std::string module = moduleOf(i < 0 ? source.name() : source.tied_names(i)); !names.count(module))
        others.insert(module);
  bool isExact = true;
  for (const std::string &name : names)
    for (const std::string &other : others)
      isExact &= !isTarget(other, name);
  if (isExact)
    return names;
  std::string expression;
  for (const std::string &name : names) {
    expression += expression.empty() ? "" : "|";
    for (char c : name)
      expression += (std::string(".[](){}*+?^$|\\").find(c) == std::string::npos ? "" : "\\") + std::string(1, c);
  }
  return expression;
}

/// Whether the exporting framework keeps the weight as [inputs, outputs].
bool isFanInFanOut(const Pair &pair, const plan::Plan &plan) {
  if (pair.facts->kind() != plan::Adapter::LINEAR)
    return false;
  const plan::ParameterSource *source = findSource(plan, pair.facts->weight());
  const auto in = static_cast<int>(pair.facts->input_dim());
  return (source && source->permutation_size() == 2 ? source->permutation(in) : in) == 0;
}

/// `trainsBiases`: of layers that have a pair.
Json configJson(const std::vector<Pair> &pairs, const std::set<std::string> &saved, bool trainsBiases,
                const plan::Plan &plan) {
  const Pair &first = pairs.front();
  Json ranks = Json::object(), alphas = Json::object();
  double dropout = 0;
  bool isTurned = true;
  for (const Pair &pair : pairs) {
    if (pair.rank() != first.rank())
      ranks[pair.facts->module()] = pair.rank();
    if (pair.facts->alpha() != first.facts->alpha())
      alphas[pair.facts->module()] = numberJson(pair.facts->alpha());
    dropout = std::max(dropout, pair.facts->dropout());
    isTurned &= pair.facts->kind() != plan::Adapter::LINEAR || isFanInFanOut(pair, plan);
  }
  Json config = {{"peft_type", "LORA"}, {"base_model_name_or_path", nullptr}, {"task_type", nullptr}};
  config["r"] = first.rank();
  config["lora_alpha"] = numberJson(first.facts->alpha());
  config["lora_dropout"] = dropout;
  config["use_rslora"] = first.facts->rslora();
  config["use_dora"] = !first.facts->magnitude().empty();
  config["bias"] = trainsBiases ? "lora_only" : "none";
  config["init_lora_weights"] = true;
  config["inference_mode"] = true;
  config["fan_in_fan_out"] = isTurned;
  config["target_modules"] = targetsJson(pairs, plan);
  config["rank_pattern"] = ranks;
  config["alpha_pattern"] = alphas;
  config["modules_to_save"] = saved.empty() ? Json(nullptr) : Json(saved);
  return config;
}

/// What a configuration says of one module: its own number, or the one of all.
double patternNumber(const nlohmann::json &config, const char *pattern, const char *all, const std::string &module,
                     double otherwise) {
  if (auto found = config.find(pattern); found != config.end() && found->is_object())
    for (const auto &[target, value] : found->items())
      if (value.is_number() && isTarget(module, target))
        return value.get<double>();
  auto found = config.find(all);
  return found != config.end() && found->is_number() ? found->get<double>() : otherwise;
}

/// What makes pairs mean something else than weights of the model file plus scale · B · A.
Status checkVariant(const nlohmann::json &config, const std::string &path) {
  // These change the base as they draw the pairs; PEFT does it again when it loads them.
  if (auto found = config.find("init_lora_weights"); found != config.end() && found->is_string()) {
    const std::string initial = found->get<std::string>();
    for (const char *kind : {"pissa", "corda", "olora", "loftq", "lora_ga"})
      if (initial.starts_with(kind))
        return badInput("init_lora_weights is " + found->dump() +
                            ": these pairs belong to weights that PEFT changed when it drew them, not to the model "
                            "file's; PEFT's save_pretrained with path_initial_model_for_weight_conversion=… writes "
                            "pairs for those",
                        path);
  }
  for (const char *key :
       {"alora_invocation_tokens", "arrow_config", "kasa_config", "layer_replication", "lora_bias", "monteclora_config",
        "target_parameters", "trainable_token_indices", "use_bdlora", "use_qalora"}) {
    auto found = config.find(key);
    if (found == config.end() || found->is_null() || found->empty() || *found == nlohmann::json(false))
      continue;
    return badInput(std::string(key) + " is set: such an adapter is more than pairs of matrices and magnitudes, and "
                                       "only these can be loaded; merge it into the model with PEFT, and export that",
                    path);
  }
  return Status::ok();
}

/// Whether pairs that were trained under a configuration mean the same in this session.
Status checkConfig(const std::vector<Pair> &pairs, const nlohmann::json &config, const std::string &path) {
  auto isSet = [&](const char *key) {
    auto found = config.find(key);
    return found != config.end() && found->is_boolean() && found->get<bool>();
  };
  auto type = config.find("peft_type");
  if (type == config.end() || !type->is_string() || type->get<std::string>() != "LORA")
    return badInput("is of no LoRA adapter: peft_type is " + (type == config.end() ? "missing" : type->dump()), path);
  LOWTIDE_TRY(checkVariant(config, path));
  if (isSet("use_dora") != !pairs.front().facts->magnitude().empty())
    return badInput(isSet("use_dora") ? "has magnitudes (use_dora), the artifact has none: compile with --lora='…,dora'"
                                      : "has no magnitudes (use_dora), the artifact trains some: compile without dora",
                    path);
  for (const Pair &pair : pairs) {
    const std::string &module = pair.facts->module();
    plan::Adapter theirs = *pair.facts;
    theirs.set_alpha(patternNumber(config, "alpha_pattern", "lora_alpha", module, pair.facts->alpha()));
    theirs.set_rslora(isSet("use_rslora"));
    const double scale = adapterScale(theirs, pair.rank()), ours = adapterScale(*pair.facts, pair.rank());
    if (std::fabs(scale - ours) > 1e-9 * std::fabs(ours)) {
      const std::string alpha = numberJson(theirs.alpha()).dump();
      return badInput("multiplies the pair of '" + printable(module) + "' by " + numberJson(scale).dump() +
                          ", the artifact by " + numberJson(ours).dump() + ": compile with --lora='…:r=" +
                          std::to_string(pair.rank()) + ",alpha=" + alpha + (theirs.rslora() ? ",rslora'" : "'"),
                      path);
    }
  }
  return Status::ok();
}

} // namespace

std::string baseLayerName(const std::string &name) {
  const std::string module = moduleOf(name);
  return module == name ? name : module + ".base_layer" + name.substr(module.size());
}

double adapterScale(const plan::Adapter &adapter, int64_t rank) {
  const auto size = static_cast<double>(rank);
  return adapter.alpha() / (adapter.rslora() ? std::sqrt(size) : size);
}

Status writeAdapter(const Session &session, const std::string &folder) {
  Expected<std::vector<Pair>> pairs = findPairs(session);
  if (!pairs)
    return pairs.takeStatus();
  if (pairs->empty())
    return {StatusCode::Internal, "no pair is trained", folder};
  const plan::Plan &plan = session.plan();
  std::set<std::string> ofPairs, saved, modules, biases;
  std::vector<SafetensorsEntry> entries;
  for (const Pair &pair : *pairs) {
    modules.insert(pair.facts->module());
    for (const Tensor *tensor : {&pair.a, &pair.b, &pair.magnitude}) {
      if (!tensor->binding)
        continue;
      const std::string &name = tensor->binding->name();
      entries.push_back(frameworkEntry(adapterPrefix + name, *tensor, findSource(plan, name)));
      ofPairs.insert(name);
    }
  }
  const std::vector<Tensor> persistent = session.persistent();
  for (const Tensor &tensor : persistent)
    if (const std::string &name = tensor.binding->name();
        tensor.binding->kind() == plan::Binding::PARAM && !ofPairs.count(name)) {
      // A layer that has a pair cannot be saved whole, too; PEFT has a switch for its bias.
      const bool isBias = name.ends_with(".bias") && modules.count(moduleOf(name));
      isBias ? biases.insert(name) : saved.insert(moduleOf(name));
      if (isBias)
        entries.push_back(frameworkEntry(adapterPrefix + baseLayerName(name), tensor, findSource(plan, name)));
    }
  // PEFT saves such modules whole.
  for (const Tensor &tensor : persistent) {
    const std::string &name = tensor.binding->name();
    const plan::ParameterSource *source = findSource(plan, name);
    const bool isSaved = tensor.binding->kind() == plan::Binding::PARAM || (source && source->saved());
    if (!isSaved || ofPairs.count(name) || biases.count(name) || !saved.count(moduleOf(name)))
      continue;
    const std::optional<CodedTensor> coded = findCoded(session, tensor, source);
    entries.push_back(coded ? codedEntry(adapterPrefix + name, *coded, *source)
                            : frameworkEntry(adapterPrefix + name, tensor, source));
  }
  LOWTIDE_TRY(writeSafetensors(folder + "/" + adapterFiles[0], entries, {{"format", "pt"}}));
  return writeFile(folder + "/" + adapterFiles[1], configJson(*pairs, saved, !biases.empty(), plan).dump(2) + "\n");
}

bool isAdapterPath(const std::string &path) {
  std::error_code error;
  return fs::is_directory(path, error) || fs::path(path).filename() == adapterFiles[0];
}

/// A folder without an adapter; where it holds checkpoints, which file of theirs holds weights.
static Status refuseFolder(const std::string &path) {
  std::error_code error;
  std::string text = std::string("holds no adapter of PEFT (") + adapterFiles[0] + ")", newest = path;
  if (const std::string latest = readPointer(path, latestPointer); !latest.empty())
    newest = (fs::path(path) / latest).string();
  if (const std::string file = (fs::path(newest) / checkpointFiles[0]).string(); fs::exists(file, error))
    text += ": --init=" + quoteForShell(file) +
            " starts from the weights of a checkpoint, --resume=" + quoteForShell(path) + " goes on from it";
  return {StatusCode::Usage, text, path};
}

Status loadAdapter(Session &session, const std::string &path, std::vector<std::string> &notes) {
  std::error_code error;
  const bool isFolder = fs::is_directory(path, error);
  const fs::path folder = isFolder ? fs::path(path) : fs::path(path).parent_path();
  const std::string config = (folder / adapterFiles[1]).string();
  if (isFolder && !fs::exists(folder / adapterFiles[0], error))
    return refuseFolder(path);
  Expected<std::vector<Pair>> pairs = findPairs(session);
  if (!pairs)
    return pairs.takeStatus();
  if (pairs->empty())
    return {StatusCode::Usage, "the artifact has no low-rank pairs to load into: compile with --lora", path};
  if (isFolder || fs::exists(config, error)) {
    Expected<MappedFile> file = MappedFile::open(config);
    if (!file)
      return file.takeStatus();
    Expected<nlohmann::json> json = parseJson(file->text());
    if (!json)
      return json.takeStatus().at(config);
    LOWTIDE_TRY(checkConfig(*pairs, *json, config));
  }
  return loadAdapterTensors(session, isFolder ? (folder / adapterFiles[0]).string() : path, notes);
}

Status initializeNorms(const Session &session, bool withMagnitudes) {
  const auto &adapters = session.plan().adapters();
  if (std::all_of(adapters.begin(), adapters.end(), [](const plan::Adapter &each) { return each.magnitude().empty(); }))
    return Status::ok();
  Expected<std::vector<Pair>> pairs = findPairs(session);
  if (!pairs)
    return pairs.takeStatus();
  for (const Pair &pair : *pairs) {
    if (!pair.norm.binding)
      continue;
    Expected<std::vector<double>> norms = computeNorms(session, pair);
    if (!norms)
      return norms.takeStatus();
    for (const Tensor *tensor : {&pair.norm, &pair.magnitude}) {
      if (tensor == &pair.magnitude && !withMagnitudes)
        continue;
      const uint64_t size = elementBytes(tensor->binding->dtype());
      std::vector<uint8_t> bytes(tensor->bytes());
      for (size_t i = 0; i < norms->size(); ++i)
        storeElement(tensor->binding->dtype(), bytes.data() + i * size, (*norms)[i]);
      LOWTIDE_TRY(tensor->bring(HostAccess::Overwrite));
      tensor->write(bytes.data());
      LOWTIDE_TRY(session.leave(*tensor));
    }
  }
  return Status::ok();
}

Expected<std::vector<MergedWeight>> mergeAdapters(const Session &session) {
  Expected<std::vector<Pair>> pairs = findPairs(session);
  if (!pairs)
    return pairs.takeStatus();
  std::vector<MergedWeight> merged;
  for (const Pair &pair : *pairs) {
    if (pair.facts->weight().empty())
      return Status(StatusCode::Unsupported, "the pair of '" + printable(pair.facts->module()) +
                                                 "' cannot be merged: its weight is held in few bits, which the sum "
                                                 "would not fit. Use --save, and PEFT");
    if (pair.facts->shares_weight())
      return Status(StatusCode::Unsupported, "the pair of '" + printable(pair.facts->module()) +
                                                 "' cannot be merged: something reads the weight '" +
                                                 printable(pair.facts->weight()) +
                                                 "' without it, and would read the merged one. Use --save, and PEFT");
    const plan::Binding &binding = *pair.weight.binding;
    for (const Tensor *tensor : {&pair.weight, &pair.a, &pair.b, &pair.magnitude})
      if (tensor->binding)
        LOWTIDE_TRY(tensor->bring(HostAccess::Read));
    MergedWeight result{&binding, pair.weight.read()};
    const std::vector<uint8_t> a = pair.a.read(), b = pair.b.read();
    const std::vector<uint8_t> magnitudes = pair.magnitude.binding ? pair.magnitude.read() : std::vector<uint8_t>();
    const plan::DType dtype = binding.dtype(), pairType = pair.a.binding->dtype(), otherType = pair.b.binding->dtype();
    const uint64_t element = elementBytes(dtype), ofA = elementBytes(pairType), ofB = elementBytes(otherType);
    const auto rank = static_cast<uint64_t>(pair.rank()), outs = static_cast<uint64_t>(pair.outputs());
    const uint64_t ins = pair.a.bytes() / ofA / rank;
    // Where an input and an output meet in the stored weight.
    const bool isInFirst = pair.isInFirst();
    const double scale = adapterScale(*pair.facts, pair.rank());
    std::vector<double> row(ins);
    for (uint64_t out = 0; out < outs; ++out) {
      std::fill(row.begin(), row.end(), 0.0);
      for (uint64_t r = 0; r < rank; ++r) {
        const double factor = loadElement(otherType, b.data() + (out * rank + r) * ofB);
        for (uint64_t in = 0; in < ins; ++in)
          row[in] += factor * loadElement(pairType, a.data() + (r * ins + in) * ofA);
      }
      auto at = [&](uint64_t in) {
        return result.bytes.data() + (isInFirst ? in * outs + out : out * ins + in) * element;
      };
      double square = 0.0, factor = 1.0;
      for (uint64_t in = 0; in < ins; ++in) {
        row[in] = loadElement(dtype, at(in)) + scale * row[in];
        square += row[in] * row[in];
      }
      if (!magnitudes.empty()) {
        const plan::DType type = pair.magnitude.binding->dtype();
        factor = loadElement(type, magnitudes.data() + out * elementBytes(type)) / std::sqrt(square);
      }
      for (uint64_t in = 0; in < ins; ++in)
        storeElement(dtype, at(in), factor * row[in]);
    }
    merged.push_back(std::move(result));
  }
  return merged;
}

} // namespace lowtide::rt
