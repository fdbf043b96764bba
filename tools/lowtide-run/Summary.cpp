//===- Summary.cpp - a run in figures --------------------------------------===//

#include "Summary.h"

#include "runtime/Json.h"
#include "runtime/checkpoint/OutputFile.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sys/resource.h>

namespace lowtide::run {

using namespace rt;
using Json = nlohmann::ordered_json;

static Json numbers(const std::vector<double> &values) {
  Json list = Json::array();
  for (double value : values)
    list.push_back(std::isfinite(value) ? Json(value) : Json(nullptr));
  return list;
}

void Summary::add(const StepReport &step) {
  losses_.push_back(step.loss);
  seconds_.push_back(step.seconds);
  if (step.dataSeconds)
    dataSeconds_ = dataSeconds_.value_or(0) + *step.dataSeconds;
  if (step.transfers)
    transfers_.add(*step.transfers);
  if (step.gradNorm)
    gradNorms_.push_back(*step.gradNorm);
  skipped_ = step.skipped;
  if (step.evaluation)
    evaluations_.emplace_back(step.step, *step.evaluation);
}

double Summary::medianSeconds() const {
  if (seconds_.empty())
    return 0;
  std::vector<double> sorted = seconds_;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<long>(sorted.size() / 2), sorted.end());
  return sorted[sorted.size() / 2];
}

Status Summary::write(const Expectation *expectation) const {
  if (options_.summary.empty())
    return Status::ok();
  Json arenas = Json::array();
  for (const plan::Arena &arena : session_.plan().arenas())
    arenas.push_back({{"name", arena.name()},
                      {"role", plan::Arena::Role_Name(arena.role())},
                      {"space", showSpace(arena.space())},
                      {"bytes", arena.bytes()}});
  struct rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const plan::Entry *entry = session_.artifact().entry(options_.entry);
  double total = std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
  Json json = {{"entry", options_.entry},
               {"target", session_.plan().target()},
               {"threads", session_.threads()},
               {"steps", losses_.size()},
               {"arenas", arenas},
               {"planned_bytes", session_.plannedBytes()},
               {"allocated_bytes", session_.allocatedBytes()},
               {"planned_pinned_bytes", session_.plannedBytes(plan::Arena::HOST_PINNED)},
               {"allocated_pinned_bytes", session_.allocatedBytes(plan::Arena::HOST_PINNED)},
               {"besides", session_.device().besides()},
               {"libraries", session_.device().libraries()},
               {"library_choices", session_.device().choices()},
               {"peak_live_bytes", entry->peak_live_bytes()},
               {"resident_bytes", static_cast<uint64_t>(usage.ru_maxrss) * 1024},
               {"steps_per_s", total > 0 ? static_cast<double>(seconds_.size()) / total : 0},
               {"median_step_ms", medianSeconds() * 1e3},
               {"min_step_ms", seconds_.empty() ? 0 : *std::min_element(seconds_.begin(), seconds_.end()) * 1e3},
               {"losses", numbers(losses_)},
               {"grad_norms", numbers(gradNorms_)}};
  if (!transfers_.isNone())
    json["moved"] = {{"from_device_bytes", transfers_.fromDevice},
                     {"to_device_bytes", transfers_.toDevice},
                     {"by", transfers_.way},
                     {"waited_ms", transfers_.waitedNanoseconds
                                       ? Json(static_cast<double>(*transfers_.waitedNanoseconds) / 1e6)
                                       : Json(nullptr)},
                     {"planned_file_bytes", session_.plannedBytes(plan::Arena::FILE)},
                     {"allocated_file_bytes", session_.allocatedBytes(plan::Arena::FILE)}};
  if (dataSeconds_)
    json["data_ms"] = *dataSeconds_ * 1e3;
  if (skipped_)
    json["skipped_steps"] = static_cast<int64_t>(*skipped_);
  if (!evaluations_.empty()) {
    Json list = Json::array();
    for (const auto &[step, means] : evaluations_) {
      Json one = {{"step", step ? Json(step) : Json(nullptr)}, {"rows", means.rows}, {"left_out", means.leftOut}};
      if (means.loss)
        one["loss"] = std::isfinite(*means.loss) ? Json(*means.loss) : Json(nullptr);
      for (const auto &[name, value] : means.metrics)
        one[name] = std::isfinite(value) ? Json(value) : Json(nullptr);
      list.push_back(one);
    }
    json["evaluations"] = list;
  }
  if (expectation) {
    json["expect_held"] = expectation->held() && expectation->judged() > 0;
    json["expect_steps"] = expectation->judged();
    json["expect_worst"] = std::isfinite(expectation->worst()) ? Json(expectation->worst()) : Json(nullptr);
    json["expect_report"] = expectation->report();
  }
  return writeFile(options_.summary, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

/// What a step moves to another memory and back, and how long it waits for that; empty: nothing.
std::string Summary::describeMoves() const {
  if (transfers_.isNone())
    return {};
  const uint64_t steps = losses_.size();
  std::string text = ", moved " + bytesText(transfers_.fromDevice / steps) + " away and " +
                     bytesText(transfers_.toDevice / steps) + " back a step";
  if (*transfers_.way)
    text += std::string(" by ") + transfers_.way;
  if (transfers_.waitedNanoseconds) {
    char number[64];
    std::snprintf(number, sizeof number, ", waited %.2f ms a step for copies",
                  static_cast<double>(*transfers_.waitedNanoseconds) / static_cast<double>(steps) / 1e6);
    text += number;
  }
  return text;
}

std::string Summary::text() const {
  char text[384];
  bool exact = session_.plannedBytes() == session_.allocatedBytes();
  std::string skipped =
      skipped_ && *skipped_ > 0 ? ", " + std::to_string(static_cast<int64_t>(*skipped_)) + " skipped" : "";
  std::string data;
  if (dataSeconds_) {
    char number[64];
    std::snprintf(number, sizeof number, ", waited %.1f ms for data", *dataSeconds_ * 1e3);
    data = number;
  }
  std::snprintf(text, sizeof text, "%zu steps%s, median %.2f ms%s%s; planned %llu bytes %s allocated %llu bytes",
                losses_.size(), skipped.c_str(), medianSeconds() * 1e3, data.c_str(), describeMoves().c_str(),
                static_cast<unsigned long long>(session_.plannedBytes()), exact ? "=" : "≠",
                static_cast<unsigned long long>(session_.allocatedBytes()));
  return text;
}

} // namespace lowtide::run
