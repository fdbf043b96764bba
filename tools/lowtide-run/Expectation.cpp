//===- Expectation.cpp - losses of a recorded run --------------------------===//

#include "Expectation.h"

#include "runtime/Json.h"
#include "runtime/MappedFile.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace lowtide::run {

using namespace rt;

static Status readList(const nlohmann::json &loss, const std::string &key, std::vector<double> &values) {
  if (!loss.contains(key) || !loss[key].is_array())
    return badInput("has no list loss." + key);
  for (const nlohmann::json &value : loss[key]) {
    if (!value.is_number())
      return badInput("loss." + key + " holds something that is no number");
    values.push_back(value.get<double>());
  }
  return Status::ok();
}

Expected<Expectation> Expectation::open(const std::string &path, const std::string &key, const std::string &rule) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeStatus();
  Expected<nlohmann::json> json = parseJson(file->text());
  if (!json)
    return json.takeStatus().at(path);
  Expectation expectation;
  std::vector<double> f32;
  auto read = [&]() -> Status {
    if (!json->is_object() || !json->contains("loss") || !(*json)["loss"].is_object())
      return badInput("has no object 'loss'");
    const nlohmann::json &loss = (*json)["loss"];
    LOWTIDE_TRY(readList(loss, "f64", expectation.loss_));
    LOWTIDE_TRY(readList(loss, key + "_tolerance", expectation.tolerance_));
    if (rule == "f64")
      LOWTIDE_TRY(readList(loss, "f32_tolerance", f32));
    return Status::ok();
  };
  if (Status status = read(); !status.isOk())
    return std::move(status).at(path);
  if (expectation.tolerance_.size() != expectation.loss_.size() ||
      (rule == "f64" && f32.size() != expectation.loss_.size()))
    return badInput("losses and tolerances have different lengths", path);
  if (rule == "f64")
    for (size_t i = 0; i < f32.size(); ++i)
      expectation.tolerance_[i] = std::max(1e-6 * std::fabs(expectation.loss_[i]), f32[i] / 10);
  return expectation;
}

void Expectation::check(int64_t step, double loss) {
  if (step < 0 || step >= steps())
    return;
  ++judged_;
  size_t i = static_cast<size_t>(step);
  double distance = std::fabs(loss - loss_[i]);
  double ratio = distance == 0 ? 0 : distance / tolerance_[i];
  if (std::isnan(ratio))
    ratio = INFINITY;
  if (ratio > worst_ || worstStep_ < 0)
    worst_ = ratio, worstStep_ = step;
  if (ratio > 1 && firstBad_ < 0)
    firstBad_ = step, badLoss_ = loss;
}

std::string Expectation::report() const {
  char text[256];
  if (judged_ == 0)
    return "no step of this run is in the record";
  if (firstBad_ < 0) {
    std::snprintf(text, sizeof text,
                  "%lld steps within the record; worst |loss − recorded| / tolerance %.3g at step %lld",
                  static_cast<long long>(judged_), worst_, static_cast<long long>(worstStep_ + 1));
    return text;
  }
  size_t i = static_cast<size_t>(firstBad_);
  std::snprintf(text, sizeof text,
                "step %lld leaves the record: loss %.9g, recorded %.9g, tolerance %.3g; worst ratio %.3g at step %lld",
                static_cast<long long>(firstBad_ + 1), badLoss_, loss_[i], tolerance_[i], worst_,
                static_cast<long long>(worstStep_ + 1));
  return text;
}

} // namespace lowtide::run
