//===- Progress.cpp - what a run shows and writes while it goes ------------===//

#include "Progress.h"

#include <cmath>
#include <unistd.h>

namespace lowtide::run {

using namespace rt;
using Json = nlohmann::ordered_json;

std::string bytesText(uint64_t bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
  return text;
}

static std::string rateText(double perSecond) {
  char text[32];
  if (perSecond >= 1e6)
    std::snprintf(text, sizeof text, "%.2fM", perSecond / 1e6);
  else if (perSecond >= 1e3)
    std::snprintf(text, sizeof text, "%.1fk", perSecond / 1e3);
  else
    std::snprintf(text, sizeof text, "%.1f", perSecond);
  return text;
}

/// printf shows the sign of a nan, which says nothing.
static double withoutNanSign(double value) { return std::isnan(value) ? std::fabs(value) : value; }

static Json numberOf(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

static void addMeans(Json &to, const EvaluationReport &means, const std::string &prefix) {
  if (means.loss)
    to[prefix + "loss"] = numberOf(*means.loss);
  for (const auto &[name, value] : means.metrics)
    to[prefix + name] = numberOf(value);
}

Expected<std::unique_ptr<Progress>> Progress::create(const Options &options, const Session &session,
                                                     double itemsPerStep, const char *itemName, const LogStart &start) {
  std::unique_ptr<Progress> progress(new Progress(options, session, itemsPerStep, itemName));
  if (!options.logJsonl.empty())
    LOWTIDE_TRY(progress->openJsonl(start));
  if (!options.tensorboard.empty()) {
    auto board = TensorBoard::create(options.tensorboard);
    if (!board)
      return board.takeStatus();
    progress->board_ = std::move(*board);
    if (Status status = progress->board_->begin(start.resumedAfter); !status.isOk())
      progress->board_.reset(), progress->giveUp(std::move(status));
  }
  return progress;
}

Status Progress::openJsonl(const LogStart &start) {
  const plan::Plan &plan = session_.plan();
  Json header = {{"lowtide_run", 1},
                 {"producer", plan.producer()},
                 {"target", plan.target()},
                 {"entry", options_.entry},
                 {"run", start.run.empty() ? Json(nullptr) : Json(start.run)},
                 {"resumed_after", start.resumedAfter ? Json(*start.resumedAfter) : Json(nullptr)},
                 {"threads", session_.threads()},
                 {"plan_sha256", session_.artifact().planDigest()},
                 {"model_sha256", plan.model_digest()},
                 {"planned_bytes", session_.plannedBytes()},
                 {"allocated_bytes", session_.allocatedBytes()}};
  auto log = StepLog::open(options_.logJsonl, std::move(header), start);
  if (!log)
    return log.takeStatus();
  jsonl_ = std::move(*log);
  // Of a run that goes on nothing changes before its first step is done.
  if (Status status = start.resumedAfter ? Status::ok() : jsonl_->begin(); !status.isOk())
    jsonl_.reset(), giveUp(std::move(status));
  return Status::ok();
}

void Progress::writeJsonl(const Json &line) {
  if (!jsonl_)
    return;
  Status status = jsonl_->write(line);
  if (const std::string note = jsonl_->takeNote(); !note.empty())
    this->line("note", note);
  if (!status.isOk())
    jsonl_.reset(), giveUp(std::move(status));
}

void Progress::giveUp(Status failure) {
  line("error", failure.str() + ": this log ends here, the run goes on");
  if (failure_.isOk())
    failure_ = std::move(failure);
}

Progress::Progress(const Options &options, const Session &session, double itemsPerStep, const char *itemName)
    : options_(options), session_(session), itemsPerStep_(itemsPerStep), itemName_(itemName),
      terminal_(::isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (open_)
    std::fputc('\n', stderr);
}

void Progress::show(const StepReport &step) {
  std::string rate = rateText(itemsPerStep_ / step.seconds), norm;
  if (step.gradNorm) {
    char number[48];
    std::snprintf(number, sizeof number, "  grad_norm %.4g", withoutNanSign(*step.gradNorm));
    norm = number;
  }
  if (step.lossScale) {
    char number[48];
    std::snprintf(number, sizeof number, "  scale %.6g", *step.lossScale);
    norm += number;
  }
  if (step.skipped && *step.skipped > 0)
    norm += "  skipped " + std::to_string(static_cast<int64_t>(*step.skipped));
  if (!step.isEvaluation) {
    char number[48];
    std::snprintf(number, sizeof number, "  lr %.2g", step.lr);
    norm += number;
  }
  if (step.evaluation)
    norm += "  " + step.evaluation->text("eval_");
  std::string waits, moves;
  auto wait = [&](const char *what, double seconds) {
    char number[48];
    std::snprintf(number, sizeof number, "%s%s %.2f", waits.empty() ? " (" : ", ", what, seconds * 1e3);
    waits += number;
  };
  if (step.dataSeconds)
    wait("data", *step.dataSeconds);
  if (step.transfers) {
    if (step.transfers->waitedNanoseconds)
      wait("copies", static_cast<double>(*step.transfers->waitedNanoseconds) / 1e9);
    moves = "  away " + bytesText(step.transfers->fromDevice) + ", back " + bytesText(step.transfers->toDevice);
  }
  if (!waits.empty())
    waits += ")";
  char loss[96], milliseconds[48];
  const int length = std::snprintf(loss, sizeof loss, "%lld/%lld", static_cast<long long>(step.step),
                                   static_cast<long long>(step.lastStep));
  if (step.hasLoss)
    std::snprintf(loss + length, sizeof loss - static_cast<size_t>(length), "  loss %.4f", withoutNanSign(step.loss));
  std::snprintf(milliseconds, sizeof milliseconds, "/s  %.*f ms", step.seconds < 0.1 ? 2 : 0, step.seconds * 1e3);
  // As long as it gets: metrics of an evaluation are any number.
  const std::string text = (step.isEvaluation ? "batch " : "step ") + (loss + norm) + "  " + rate + " " + itemName_ +
                           milliseconds + waits + moves + "  peak " + bytesText(session_.allocatedBytes()) + "/" +
                           bytesText(session_.plannedBytes());
  if (terminal_) {
    std::fprintf(stderr, "\r%s\x1b[K", text.c_str());
    open_ = true;
    if (step.step == step.lastStep) {
      std::fputc('\n', stderr);
      open_ = false;
    }
  } else {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  std::fflush(stderr);
}

void Progress::report(const StepReport &step) {
  auto now = std::chrono::steady_clock::now();
  bool last = step.step == step.lastStep;
  bool due = terminal_ ? now - lastShown_ >= std::chrono::milliseconds(100) : step.step % options_.logEvery == 0;
  if (!options_.quiet && (due || last || step.evaluation)) {
    show(step);
    lastShown_ = now;
  }
  if (jsonl_)
    writeJsonl(lineOf(step));
  if (board_)
    if (Status status = logBoard(step); !status.isOk())
      board_.reset(), giveUp(std::move(status));
}

StepLog::Json Progress::lineOf(const StepReport &step) const {
  Json line = {{"step", step.step},
               {"loss", std::isfinite(step.loss) ? Json(step.loss) : Json(nullptr)},
               {"grad_norm", step.gradNorm && std::isfinite(*step.gradNorm) ? Json(*step.gradNorm) : Json(nullptr)},
               {"lr", step.isEvaluation ? Json(nullptr) : Json(step.lr)},
               {std::string(itemName_) + "_per_s", itemsPerStep_ / step.seconds},
               {"step_ms", step.seconds * 1e3},
               {"peak_bytes", session_.allocatedBytes()},
               {"finite", !step.hasLoss || std::isfinite(step.loss)},
               {"ckpt", step.checkpoint.empty() ? Json(nullptr) : Json(step.checkpoint)}};
  if (step.dataSeconds)
    line["data_ms"] = *step.dataSeconds * 1e3;
  if (step.transfers) {
    line["from_device_bytes"] = step.transfers->fromDevice;
    line["to_device_bytes"] = step.transfers->toDevice;
    if (step.transfers->waitedNanoseconds)
      line["copies_ms"] = static_cast<double>(*step.transfers->waitedNanoseconds) / 1e6;
  }
  if (step.lossScale)
    line["loss_scale"] = *step.lossScale;
  if (step.growthTracker)
    line["growth_tracker"] = static_cast<int64_t>(*step.growthTracker);
  if (step.skipped)
    line["skipped_steps"] = static_cast<int64_t>(*step.skipped);
  if (step.evaluation) {
    line["eval_rows"] = step.evaluation->rows;
    addMeans(line, *step.evaluation, "eval_");
  }
  return line;
}

Status Progress::logBoard(const StepReport &step) {
  if (step.hasLoss)
    LOWTIDE_TRY(board_->scalar("loss", step.step, step.loss));
  if (!step.isEvaluation)
    LOWTIDE_TRY(board_->scalar("lr", step.step, step.lr));
  if (step.evaluation)
    LOWTIDE_TRY(logMeans(step.step, *step.evaluation));
  LOWTIDE_TRY(board_->scalar("step_ms", step.step, step.seconds * 1e3));
  if (step.dataSeconds)
    LOWTIDE_TRY(board_->scalar("data_ms", step.step, *step.dataSeconds * 1e3));
  if (step.transfers && step.transfers->waitedNanoseconds)
    LOWTIDE_TRY(board_->scalar("copies_ms", step.step, static_cast<double>(*step.transfers->waitedNanoseconds) / 1e6));
  if (step.skipped)
    LOWTIDE_TRY(board_->scalar("skipped_steps", step.step, *step.skipped));
  if (step.gradNorm)
    LOWTIDE_TRY(board_->scalar("grad_norm", step.step, *step.gradNorm));
  if (step.lossScale)
    LOWTIDE_TRY(board_->scalar("loss_scale", step.step, *step.lossScale));
  return Status::ok();
}

Status Progress::logMeans(int64_t step, const EvaluationReport &means) {
  if (means.loss)
    LOWTIDE_TRY(board_->scalar("eval/loss", step, *means.loss));
  for (const auto &[name, value] : means.metrics)
    LOWTIDE_TRY(board_->scalar("eval/" + name, step, value));
  return Status::ok();
}

void Progress::reportEvaluation(const EvaluationReport &means) {
  std::string rows = std::to_string(means.rows) + " rows";
  if (means.leftOut)
    rows += " (" + std::to_string(means.leftOut) + " more were left out)";
  const std::string numbers = means.text();
  line("eval", numbers.empty() ? rows : rows + ": " + numbers);
  if (jsonl_) {
    Json json = {{"rows", means.rows}, {"left_out", means.leftOut}, {"seconds", means.seconds}};
    addMeans(json, means, "");
    writeJsonl(Json{{"eval", json}});
  }
  if (board_)
    if (Status status = logMeans(0, means); !status.isOk())
      board_.reset(), giveUp(std::move(status));
}

void Progress::endLine() {
  if (open_)
    std::fputc('\n', stderr);
  open_ = false;
}

void Progress::line(const char *kind, const std::string &text) {
  endLine();
  std::fprintf(stderr, "%s: %s\n", kind, text.c_str());
}

} // namespace lowtide::run
