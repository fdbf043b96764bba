//===- Diagnosis.cpp - why the loss of a step is not finite ----------------===//

#include "Diagnosis.h"

#include "StepTrace.h"
#include "Undo.h"

#include "runtime/Element.h"
#include "runtime/checkpoint/Finite.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

namespace {

/// The search for an instruction repeats the steps of the run; so many seconds of it are worth the answer.
constexpr double mostSeconds = 60;

bool isIndex(plan::DType dtype) {
  switch (dtype) {
  case plan::I64:
  case plan::I32:
  case plan::I16:
  case plan::I8:
  case plan::U8:
  case plan::U16:
  case plan::U32:
  case plan::U64:
    return true;
  default:
    return false;
  }
}

/// The first of `count` steps 1, 2, … at which `fails`, if it fails from there on and at `count`.
template <typename Fails> uint64_t firstFailing(uint64_t count, Fails &&fails) {
  uint64_t good = 0, bad = count;
  while (bad - good > 1) {
    const uint64_t middle = good + (bad - good) / 2;
    (fails(middle) ? bad : good) = middle;
  }
  return bad;
}

} // namespace

Expected<Epochs::Step> Diagnosis::feed(int64_t step) {
  Expected<Epochs::Step> at = run_.prepare(step);
  if (at)
    batch_ = run_.session.tensors(*at->entry, plan::Binding::BATCH);
  return at;
}

Expected<double> Diagnosis::lossOf(const std::string &entry) {
  LOWTIDE_TRY(run_.session.step(entry));
  LOWTIDE_TRY(run_.session.settle());
  return run_.session.metric(entry, run_.loss);
}

/// Executes the entry on other batch arrays (parallel to batch_; those that are empty stay), from finite parameters.
bool Diagnosis::gives(const std::string &entry, const std::vector<Bytes> &values, bool &isFinite) {
  if (!run_.startAnew().isOk())
    return false;
  for (size_t i = 0; i < batch_.size(); ++i)
    if (!values[i].empty())
      std::memcpy(batch_[i].data, values[i].data(), values[i].size());
  Expected<double> loss = lossOf(entry);
  isFinite = loss && std::isfinite(*loss);
  return bool(loss);
}

/// "[3] of row 35 (sample 3 of the batch)".
std::string Diagnosis::place(const Epochs::Step &at, const Tensor &tensor, uint64_t element) const {
  const plan::Binding &binding = *tensor.binding;
  const bool hasSamples = binding.batch_dim() == 0 && binding.dims_size() > 0;
  std::string index;
  uint64_t rest = element, sample = 0;
  for (int d = binding.dims_size(); d-- > 0;) {
    const uint64_t extent = static_cast<uint64_t>(std::max<int64_t>(binding.dims(d), 1)), here = rest % extent;
    rest /= extent;
    if (d == 0 && hasSamples)
      sample = here;
    else
      index = std::to_string(here) + (index.empty() ? "" : ", ") + index;
  }
  std::string text = index.empty() ? "" : "at [" + index + "] ";
  if (!hasSamples)
    return text + "of the whole array";
  if (at.feeder->rows() == 0)
    return text + "in sample " + std::to_string(sample) + " of the batch";
  const int64_t row = at.feeder->sourceRow(at.epoch, at.firstRow + static_cast<int64_t>(sample));
  return text + "in row " + std::to_string(row) + " of the data (sample " + std::to_string(sample) + " of the batch)";
}

std::string Diagnosis::findInput(int64_t step) {
  Expected<Epochs::Step> at = feed(step);
  if (!at)
    return {};
  for (const Tensor &tensor : batch_) {
    const plan::Binding &binding = *tensor.binding;
    if (std::optional<uint64_t> found = firstNotFinite(binding.dtype(), tensor.data, tensor.bytes())) {
      const double value = loadElement(binding.dtype(), tensor.data + *found * elementBytes(binding.dtype()));
      return "array '" + printable(binding.name()) + "' holds " +
             (std::isnan(value) ? "nan"
              : value > 0       ? "inf"
                                : "-inf") +
             " " + place(*at, tensor, *found);
    }
  }
  return {};
}

/// By trying: an array of integers is to blame if the loss is finite without it. Which element is found by halving, and
/// so is the greatest, or smallest, number that would have done there.
std::string Diagnosis::findIndex(int64_t step) {
  Expected<Epochs::Step> at = feed(step);
  if (!at ||
      std::none_of(batch_.begin(), batch_.end(), [](const Tensor &tensor) { return isIndex(tensor.binding->dtype()); }))
    return {};
  auto copies = [&] {
    std::vector<Bytes> values;
    for (const Tensor &tensor : batch_)
      values.emplace_back(tensor.data, tensor.data + tensor.bytes());
    return values;
  };
  const std::vector<Bytes> given = copies();
  // What is known to be good: integers of a step that went well, or zeros. Inputs that are not finite are out of the
  // way.
  std::vector<std::vector<Bytes>> neutrals;
  for (int64_t other : {step - 1, step + 1})
    if (other >= run_.firstStep)
      if (Expected<Epochs::Step> there = feed(other); there && *there->entry == *at->entry)
        neutrals.push_back(copies());
  neutrals.emplace_back();
  for (const Bytes &bytes : given)
    neutrals.back().emplace_back(bytes.size());
  if (at = feed(step); !at)
    return {};
  for (std::vector<Bytes> &neutral : neutrals) {
    for (size_t i = 0; i < batch_.size(); ++i)
      if (const plan::DType dtype = batch_[i].binding->dtype(); !isIndex(dtype)) {
        neutral[i] = given[i];
        const uint64_t size = elementBytes(dtype);
        while (std::optional<uint64_t> bad = firstNotFinite(dtype, neutral[i].data(), neutral[i].size()))
          std::memset(neutral[i].data() + *bad * size, 0, size);
      }
    bool isFinite = false;
    if (!gives(*at->entry, neutral, isFinite) || !isFinite)
      continue;
    for (size_t i = 0; i < batch_.size(); ++i) {
      std::vector<Bytes> values = neutral;
      values[i] = given[i];
      if (isIndex(batch_[i].binding->dtype()) && gives(*at->entry, values, isFinite) && !isFinite)
        return explainIndex(*at, i, neutral, given[i]);
    }
    return {};
  }
  return {};
}

std::string Diagnosis::explainIndex(const Epochs::Step &at, size_t number, std::vector<Bytes> neutral,
                                    const Bytes &given) {
  const Tensor &tensor = batch_[number];
  const plan::DType dtype = tensor.binding->dtype();
  const uint64_t size = elementBytes(dtype);
  bool isFinite = true;
  auto fails = [&](const Bytes &bytes) {
    std::vector<Bytes> values = neutral;
    values[number] = bytes;
    return gives(*at.entry, values, isFinite) && !isFinite;
  };
  const uint64_t element = firstFailing(given.size() / size,
                                        [&](uint64_t count) {
                                          Bytes bytes = neutral[number];
                                          std::memcpy(bytes.data(), given.data(), count * size);
                                          return fails(bytes);
                                        }) -
                           1;
  auto valueIn = [&](const Bytes &from) {
    return static_cast<int64_t>(loadElement(dtype, from.data() + element * size));
  };
  Bytes bytes = neutral[number];
  std::memcpy(bytes.data() + element * size, given.data() + element * size, size);
  if (!fails(bytes) && isFinite)
    return "array '" + printable(tensor.binding->name()) + "' holds nothing in this batch that counts, such as " +
           std::to_string(valueIn(given)) + " " + place(at, tensor, element) + ": the loss is a mean of none";
  bytes = neutral[number];
  const int64_t bad = valueIn(given), good = valueIn(bytes);
  const uint64_t distance = bad > good ? static_cast<uint64_t>(bad) - static_cast<uint64_t>(good)
                                       : static_cast<uint64_t>(good) - static_cast<uint64_t>(bad);
  const std::string what = "array '" + printable(tensor.binding->name()) + "' holds " + std::to_string(bad) + " " +
                           place(at, tensor, element) + ", which is out of range";
  if (run_.secondsPerStep * 64 > mostSeconds)
    return what;
  const uint64_t steps = firstFailing(distance, [&](uint64_t far) {
    storeInteger(dtype, bytes.data() + element * size,
                 bad > good ? good + static_cast<int64_t>(far) : good - static_cast<int64_t>(far));
    return fails(bytes);
  });
  const int64_t limit = bad > good ? good + static_cast<int64_t>(steps - 1) : good - static_cast<int64_t>(steps - 1);
  return what + ": the " + (bad > good ? "greatest" : "smallest") + " number that gives a loss there is " +
         std::to_string(limit);
}

std::string Diagnosis::findInstruction(int64_t step) {
  if (static_cast<double>(step - run_.firstStep) * run_.secondsPerStep > mostSeconds)
    return "to find where, the " + std::to_string(step - run_.firstStep) +
           " steps since the last checkpoint would be repeated: more of them (--checkpoint-every) make that quick";
  if (!run_.goBack().isOk() || !run_.session.download().isOk())
    return {};
  if (Expected<std::optional<NotFinite>> found = findNotFinite(run_.session, /*withNan=*/true); found && *found)
    return (*found)->str() +
           (run_.firstStep < step ? " before step " + std::to_string(run_.firstStep + 1) : " from the start");
  Undo undo(run_.session);
  // The loss may be finite in the step whose update was not.
  int64_t failing = run_.firstStep;
  for (; failing < step; ++failing) {
    Expected<Epochs::Step> at = undo.keep().isOk() ? feed(failing) : Expected<Epochs::Step>(Status(StatusCode::Io, ""));
    if (!at || !lossOf(*at->entry) || !run_.session.download().isOk())
      return {};
    Expected<std::optional<NotFinite>> found = findNotFinite(run_.session);
    if (!found)
      return {};
    if (*found)
      break;
  }
  if (failing < step ? !undo.restore().isOk() : !undo.keep().isOk())
    return {};
  // What is not finite in a sound step either (masks) is learnt from one with the parameters of the start.
  std::optional<StepTrace> trace;
  for (int64_t other : {failing, failing + 1, failing - 1}) {
    if (other < 0 || !run_.startAnew().isOk())
      continue;
    Expected<Epochs::Step> at = feed(other);
    if (!at)
      continue;
    const std::string entry = *at->entry;
    trace.emplace(run_.session, entry);
    const bool isLearned = trace->learn().isOk();
    Expected<double> loss = run_.session.metric(entry, run_.loss);
    Expected<std::optional<NotFinite>> found = findNotFinite(run_.session);
    if (isLearned && loss && std::isfinite(*loss) && found && !*found)
      break;
    trace.reset();
  }
  if (!undo.restore().isOk())
    return {};
  Expected<Epochs::Step> at = feed(failing);
  if (!at)
    return {};
  if (!trace || trace->entry() != *at->entry)
    trace.emplace(run_.session, *at->entry);
  Expected<std::string> found = trace->find();
  if (!found || found->empty())
    return {};
  return (failing < step ? "the update of step " + std::to_string(failing + 1) + " was not finite: " : "") + *found;
}

std::string Diagnosis::causeOf(int64_t step) {
  std::string cause = findIndex(step);
  if (cause.empty())
    cause = findInput(step);
  return cause.empty() ? findInstruction(step) : cause;
}
