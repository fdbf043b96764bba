//===- Comparison.cpp - a training step next to a record of it --------------===//

#include "Comparison.h"
#include "Names.h"

#include "lowtide-rt/StepNames.h"
#include "runtime/Element.h"
#include "runtime/checkpoint/FrameworkTensor.h"
#include "runtime/data/Feeder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::verify;

namespace {

/// What is below this part of the largest gradient of all is what is left where terms cancel.
constexpr double cancellation = 1e-12;
/// What is below this part of its module's largest gradient is zero in exact numbers: a bias of keys, one in front of a
/// norm. Constants that a file rounds to f32 leave more of it than f64 does, and no more than `remainder` tolerances.
constexpr double vanishing = 1e-9, remainder = 1e-2;
constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

Expected<Array> read(const SafetensorsEntry &entry) {
  std::vector<uint8_t> bytes;
  Status status = entry.write([&](const void *data, size_t size) {
    const auto *from = static_cast<const uint8_t *>(data);
    bytes.insert(bytes.end(), from, from + size);
    return Status::ok();
  });
  if (!status.isOk())
    return status;
  HostArray array;
  array.dtype = entry.dtype;
  array.dims = entry.dims;
  array.bytes = bytes;
  return widen(array);
}

/// One comparison: `truth` is cut to what the file holds of it.
Row compareArrays(const std::string &name, Array truth, const Array &ours, double tolerance, double floor,
                  bool isGradient, const Array *gradient = nullptr) {
  Row row;
  row.name = name;
  const std::vector<int64_t> recorded = truth.dims;
  if (gradient)
    keepReadRows(truth, ours, *gradient);
  if (!cutToSize(truth, ours, isGradient)) {
    row.verdict = Verdict::Differs;
    row.difference = nothing;
    row.detail = "is " + describe(plan::F64, ours.dims) + ", recorded " + describe(plan::F64, recorded);
    return row;
  }
  row.largest = truth.largest();
  for (size_t i = 0; i < truth.values.size(); ++i) {
    const double difference = std::fabs(ours.values[i] - truth.values[i]);
    // The same infinity, or NaN on both sides.
    const bool isSame =
        ours.values[i] == truth.values[i] || (std::isnan(ours.values[i]) && std::isnan(truth.values[i]));
    if (!isSame && !(difference <= row.difference))
      row.difference = difference;
    if (std::isnan(row.difference))
      break;
  }
  // Next to a NaN that both have, only what is equal agrees.
  if (row.difference != 0 && !(row.difference <= std::max(tolerance * row.largest, floor)))
    row.verdict = Verdict::Differs;
  return row;
}

/// Runs the two entries and keeps what the record is about.
class Proof {
public:
  Proof(Session &session, const Record &record, const ComparisonOptions &options)
      : session_(session), record_(record), options_(options) {}

  Expected<Comparison> run();
  Expected<Arrays> runOutputs(const std::string &entry);

private:
  /// Parameters and buffers as the framework has them, after `steps` steps.
  Expected<Arrays> readState(int64_t steps);
  Status start();
  Status runGradient();
  Status runSteps();
  void judgeGradients();
  void judgeBuffers(const Arrays &before, const Arrays &after);
  Row judgeGradient(const std::string &name, const Array *truth, const Array *ours, double floor) const;
  double scaleAround(const std::string &name, double gradient) const;
  Status feed(const std::string &entry, int64_t step);

  Session &session_;
  const Record &record_;
  const ComparisonOptions options_;
  Comparison result_;
  Arrays gradients_, atStart_, afterOne_;
  std::set<std::string> constants_; ///< of the step, by the framework's names
  std::vector<std::string> unread_;
};

std::vector<std::string> namesOf(const Arrays &arrays) {
  std::vector<std::string> names;
  for (const auto &[name, array] : arrays)
    names.push_back(name);
  return names;
}

Expected<Arrays> Proof::readState(int64_t steps) {
  LOWTIDE_TRY(session_.download());
  std::vector<SafetensorsEntry> entries;
  for (const Tensor &tensor : session_.persistent()) {
    const plan::ParameterSource *source = findSource(session_.plan(), tensor.binding->name());
    if (tensor.binding->kind() == plan::Binding::CONSTANT) {
      if (source)
        constants_.insert(source->name());
    } else if (tensor.binding->kind() == plan::Binding::PARAM || source) {
      entries.push_back(frameworkEntry(tensor.binding->name(), tensor, source));
    }
  }
  addSavedEntries(session_, steps, entries);
  Arrays arrays;
  for (const SafetensorsEntry &entry : entries) {
    Expected<Array> array = read(entry);
    if (!array)
      return array.takeStatus();
    arrays[entry.name] = std::move(*array);
  }
  return arrays;
}

/// Starts from the record's values, and notes where the file has others.
Status Proof::start() {
  Expected<Arrays> state = readState(0);
  if (!state)
    return state.takeStatus();
  Arrays recorded = record_.parameters;
  recorded.insert(record_.buffers.begin(), record_.buffers.end());
  atStart_ = joinParts(std::move(*state), recorded);
  const std::map<std::string, std::string> pairs = pairNames(namesOf(recorded), namesOf(atStart_));
  for (const auto &[name, own] : pairs) {
    const Array &truth = recorded.at(name);
    auto gradient = record_.gradients.find(name);
    Row row = compareArrays(name, truth, atStart_.at(own), 1e-6, 0, false,
                            gradient == record_.gradients.end() ? nullptr : &gradient->second);
    if (row.verdict == Verdict::Agrees)
      continue;
    row.verdict = Verdict::OtherStart;
    result_.starts.push_back(std::move(row));
    for (const Tensor &tensor : session_.persistent()) {
      const plan::ParameterSource *source = findSource(session_.plan(), tensor.binding->name());
      const bool isTied = source && std::find(source->tied_names().begin(), source->tied_names().end(), own) !=
                                        source->tied_names().end();
      if (tensor.binding->name() != own && !isTied)
        continue;
      const plan::DType dtype = tensor.binding->dtype();
      std::vector<uint8_t> bytes(truth.values.size() * elementBytes(dtype));
      for (size_t i = 0; i < truth.values.size(); ++i)
        storeElement(dtype, bytes.data() + i * elementBytes(dtype), truth.values[i]);
      HostArray array;
      array.dtype = dtype;
      array.dims = truth.dims;
      array.bytes = bytes;
      if (fitsShape(array, *tensor.binding, source))
        LOWTIDE_TRY(restore(array, tensor, source));
    }
  }
  return session_.upload();
}

Status Proof::feed(const std::string &entry, int64_t step) {
  unread_.clear();
  Expected<Feeder> feeder = Feeder::create(record_.batch, session_, entry, std::nullopt, unread_);
  if (!feeder)
    return feeder.takeStatus();
  if (feeder->rows() && feeder->rows() != feeder->batch())
    return {StatusCode::Usage, "the record's batch has " + std::to_string(feeder->rows()) +
                                   " samples, the step takes " + std::to_string(feeder->batch())};
  LOWTIDE_TRY(session_.writeScalars(entry, session_.scalarsOf(entry, step, 0)));
  LOWTIDE_TRY(feeder->feed(0));
  return Status::ok();
}

Status Proof::runGradient() {
  LOWTIDE_TRY(feed("gradient", 0));
  LOWTIDE_TRY(session_.step("gradient"));
  LOWTIDE_TRY(session_.download("gradient"));
  for (const Tensor &tensor : session_.tensors("gradient", plan::Binding::GRADIENT)) {
    const std::string &name = tensor.binding->name();
    const std::string parameter(gradientParameter(name));
    Expected<Array> array = read(frameworkEntry(name, tensor, findSource(session_.plan(), parameter)));
    if (!array)
      return array.takeStatus();
    gradients_[parameter] = std::move(*array);
  }
  return Status::ok();
}

Status Proof::runSteps() {
  for (size_t step = 0; step < record_.losses.size(); ++step) {
    LOWTIDE_TRY(feed("train", static_cast<int64_t>(step)));
    LOWTIDE_TRY(session_.step("train"));
    LOWTIDE_TRY(session_.settle());
    Expected<double> loss = session_.metric("train", "loss");
    if (!loss)
      return loss.takeStatus();
    Array truth, ours;
    truth.values = {record_.losses[step]}, ours.values = {*loss};
    result_.losses.push_back(compareArrays("step " + std::to_string(step), truth, ours, options_.tolerance, 0, false));
    if (step == 0) {
      Expected<Arrays> state = readState(1);
      if (!state)
        return state.takeStatus();
      afterOne_ = std::move(*state);
    }
  }
  return Status::ok();
}

/// The largest recorded gradient in the smallest module around `name` in which one is larger than `gradient`, its own.
double Proof::scaleAround(const std::string &name, double gradient) const {
  double most = gradient;
  for (std::string module = name; most <= gradient && !module.empty();) {
    const size_t dot = module.rfind('.');
    module.resize(dot == std::string::npos ? 0 : dot);
    for (const auto &[other, array] : record_.gradients)
      if (module.empty() || other.rfind(module + ".", 0) == 0)
        most = std::max(most, array.largest());
  }
  return most;
}

Row Proof::judgeGradient(const std::string &name, const Array *truth, const Array *ours, double floor) const {
  Row row;
  row.name = name;
  row.largest = truth ? truth->largest() : 0;
  row.difference = nothing;
  // Nothing comes from it on either side.
  const bool isIdle = (!truth || !(truth->largest() > floor)) && (!ours || !(ours->largest() > floor));
  if (truth && ours) {
    const double scale = scaleAround(name, row.largest);
    if (!(row.largest > vanishing * scale))
      floor = std::max(floor, remainder * options_.tolerance * scale);
    return compareArrays(name, *truth, *ours, options_.tolerance, floor, true, truth);
  }
  const bool isKnown = !pairNames({name}, {constants_.begin(), constants_.end()}).empty() ||
                       !pairNames({name}, namesOf(atStart_)).empty();
  if (isIdle) {
    row.verdict = Verdict::Unused;
    row.detail = ours || isKnown ? "" : absentText;
    return row;
  }
  if (ours) {
    row.verdict = Verdict::NotRecorded;
    row.detail = record_.parameters.count(name) ? "the record has no gradient of it" : "the record has none";
    return row;
  }
  row.verdict = isKnown ? Verdict::NotTrained : Verdict::Missing;
  row.detail = row.verdict == Verdict::NotTrained ? "a constant of the step" : "no tensor of the file is known by it";
  return row;
}

void Proof::judgeGradients() {
  double most = 0;
  for (const auto &[name, gradient] : record_.gradients)
    most = std::max(most, gradient.largest());
  const double floor = cancellation * most;
  const Arrays ours = joinParts(gradients_, record_.gradients);
  std::set<std::string> recorded;
  for (const auto &[name, parameter] : record_.parameters)
    recorded.insert(name);
  for (const auto &[name, gradient] : record_.gradients)
    recorded.insert(name);
  std::map<std::string, std::string> pairs = pairNames({recorded.begin(), recorded.end()}, namesOf(ours));
  std::set<std::string> left;
  for (const auto &[name, gradient] : ours)
    left.insert(name);
  // A tied parameter has one gradient: the record has it by one of its names, the step by another.
  for (const std::string &name : recorded) {
    if (pairs.count(name))
      continue;
    for (const plan::ParameterSource &source : session_.plan().sources())
      if (ours.count(source.name()) &&
          std::find(source.tied_names().begin(), source.tied_names().end(), name) != source.tied_names().end())
        pairs[name] = source.name();
  }
  for (const auto &[name, own] : pairs)
    left.erase(own);
  for (const std::string &name : recorded) {
    auto truth = record_.gradients.find(name);
    auto own = pairs.find(name);
    result_.gradients.push_back(judgeGradient(name, truth == record_.gradients.end() ? nullptr : &truth->second,
                                              own == pairs.end() ? nullptr : &ours.at(own->second), floor));
  }
  for (const std::string &name : left)
    result_.gradients.push_back(judgeGradient(name, nullptr, &ours.at(name), floor));
}

/// What of a running mean is rounding: where it is zero in exact numbers, as after another norm, deviations tell.
double floorOfMean(const std::string &name, const Array &mean, const Arrays &buffers, double tolerance) {
  constexpr std::string_view leaf = "running_mean";
  if (!name.ends_with(leaf))
    return 0;
  auto variance = buffers.find(name.substr(0, name.size() - leaf.size()) + "running_var");
  const double scale = variance == buffers.end() ? 0 : std::sqrt(variance->second.largest());
  return mean.largest() > vanishing * scale ? 0 : remainder * tolerance * scale;
}

void Proof::judgeBuffers(const Arrays &before, const Arrays &after) {
  const std::map<std::string, std::string> pairs = pairNames(namesOf(after), namesOf(afterOne_));
  for (const auto &[name, truth] : after) {
    auto own = pairs.find(name);
    if (own != pairs.end()) {
      const double floor = floorOfMean(name, truth, after, options_.tolerance);
      result_.buffers.push_back(
          compareArrays(name, truth, afterOne_.at(own->second), options_.tolerance, floor, false));
      continue;
    }
    auto old = before.find(name);
    const bool changes = old == before.end() || old->second.values != truth.values;
    // Counters that no step reads; files of older exporters do not hold them.
    const bool isCounter = name.ends_with("num_batches_tracked");
    Row row;
    row.name = name;
    row.largest = truth.largest();
    row.difference = nothing;
    row.verdict = changes && !isCounter ? Verdict::Missing : Verdict::Unused;
    row.detail = changes && !isCounter ? "the record's step changes it" : absentText;
    result_.buffers.push_back(std::move(row));
  }
}

Expected<Comparison> Proof::run() {
  result_.producer = record_.producer;
  BindOptions bind;
  bind.threads = options_.threads;
  LOWTIDE_TRY(session_.bind(bind));
  LOWTIDE_TRY(start());
  LOWTIDE_TRY(runGradient());
  LOWTIDE_TRY(runSteps());
  judgeGradients();
  judgeBuffers(record_.buffers, record_.buffersAfter);
  // Running statistics that only the step writes: files of PyTorch's old exporter begin with them moved.
  std::erase_if(result_.starts, [&](const Row &row) {
    auto before = record_.buffers.find(row.name), after = record_.buffersAfter.find(row.name);
    return before != record_.buffers.end() && after != record_.buffersAfter.end() &&
           before->second.values != after->second.values;
  });
  return std::move(result_);
}

Expected<Arrays> Proof::runOutputs(const std::string &entry) {
  LOWTIDE_TRY(session_.bind({}));
  LOWTIDE_TRY(start());
  LOWTIDE_TRY(feed(entry, 0));
  LOWTIDE_TRY(session_.step(entry));
  LOWTIDE_TRY(session_.download(entry));
  Arrays outputs;
  for (const Tensor &tensor : session_.tensors(entry, plan::Binding::OUTPUT)) {
    std::string name = tensor.binding->name();
    Expected<Array> array = read(frameworkEntry(name, tensor, nullptr));
    if (!array)
      return array.takeStatus();
    // An output that goes by an argument's name has an addition.
    if (name.ends_with("@output"))
      name.resize(name.size() - std::string("@output").size());
    outputs[name] = std::move(*array);
  }
  return outputs;
}

} // namespace

const char *verify::verdictText(Verdict verdict) {
  switch (verdict) {
  case Verdict::Agrees:
    return "agrees";
  case Verdict::Unused:
    return "unused";
  case Verdict::Differs:
    return "differs";
  case Verdict::OtherStart:
    return "other start";
  case Verdict::Missing:
    return "missing";
  case Verdict::NotTrained:
    return "not trained";
  case Verdict::NotRecorded:
    return "not recorded";
  }
  return "";
}

bool verify::isGood(Verdict verdict) { return verdict == Verdict::Agrees || verdict == Verdict::Unused; }

bool Comparison::agrees() const {
  for (const std::vector<Row> *rows : {&gradients, &starts, &buffers, &losses})
    if (!std::all_of(rows->begin(), rows->end(), [](const Row &row) { return isGood(row.verdict); }))
      return false;
  return true;
}

Expected<Comparison> verify::compare(Session &session, const Record &record, const ComparisonOptions &options) {
  for (const char *entry : {"train", "gradient"})
    if (!session.artifact().entry(entry))
      return Status(StatusCode::Usage, std::string("the artifact has no entry '") + entry + "'");
  return Proof(session, record, options).run();
}

Expected<Arrays> verify::runOutputs(Session &session, const Record &record, const std::string &entry) {
  return Proof(session, record, {}).runOutputs(entry);
}

std::vector<Row> verify::compareOutputs(const std::map<std::string, std::vector<const Array *>> &ours,
                                        const Record &record, double tolerance) {
  std::vector<std::string> recorded, known;
  for (const auto &[module, output] : record.outputs)
    recorded.push_back(module);
  for (const auto &[module, values] : ours)
    known.push_back(module);
  const std::map<std::string, std::string> pairs = pairNames(recorded, known);
  std::vector<Row> rows;
  for (const auto &[module, truth] : record.outputs) {
    Row best;
    best.name = module;
    best.verdict = Verdict::Missing;
    best.difference = nothing;
    best.largest = truth.largest();
    auto own = pairs.find(module);
    for (const Array *value : own == pairs.end() ? std::vector<const Array *>{} : ours.at(own->second)) {
      if (value->values.size() != truth.values.size())
        continue;
      Array flat = truth;
      flat.dims = value->dims; // a reshape changes no number
      Row row = compareArrays(module, flat, *value, tolerance, 0, false);
      if (best.verdict == Verdict::Missing || row.difference < best.difference)
        best = std::move(row);
    }
    rows.push_back(std::move(best));
  }
  return rows;
}
