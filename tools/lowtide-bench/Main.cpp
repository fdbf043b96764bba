//===- Main.cpp - lowtide-bench: how fast a step is, and why ---------------===//
//
// ceilings → warm-up → timed steps → a few measured steps → where the time goes beside the ceilings. Links no LLVM.
//
//===----------------------------------------------------------------------===//

#include "Advice.h"
#include "Ceilings.h"
#include "CommandLine.h"
#include "NumberChecks.h"
#include "Products.h"

#include "runtime/Element.h"
#include "runtime/ExitCode.h"
#include "runtime/Json.h"
#include "runtime/LibraryTable.h"
#include "runtime/Workspace.h"
#include "runtime/checkpoint/OutputFile.h"
#include "runtime/data/Feeder.h"
#include "runtime/devices/Cuda/Survey.h"
#include "runtime/devices/InstructionCosts.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::bench;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

namespace {

const char *const help = R"(lowtide-bench: measure a compiled training step

  lowtide-bench step.tide
  lowtide-bench step.tide --data=data.npz --steps=200 --json=bench.json
  lowtide-bench --doctor

  --data=SPEC     as lowtide-run (default: synthetic)
  --entry=NAME    train (default), eval
  --steps=N       timed steps (default 100), after --warmup=N (default 10)
  --blocks=N      time N blocks of --steps steps, each as a whole, instead of single steps
  --profile=N     steps whose instructions are timed one by one (default 5; 0: none): a table of kernels
                  beside the ceilings, and what would help
  --threads=N     CPU: default all cores
  --json=FILE     everything as JSON
  --ceilings      no step: what the artifact's device copies and multiplies at best, in f32, f16 and bf16
  --products      no step: each matrix product of the entry by itself, the best of many runs (CPU)
  --write-target=FILE  with --ceilings: the same as a target for lowtide --target-file
  --doctor        what of CUDA this machine has
  --libraries     what calls cuBLASLt and cuDNN take, with the source of each row
)";

struct Options {
  std::string artifact, data = "synthetic", entry = "train", json, writeTarget;
  int64_t steps = 100, warmup = 10, blocks = 0, profile = 5;
  unsigned threads = 0;
  bool ceilings = false, products = false, doctor = false, libraries = false;
};

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

/// The smallest value that no fewer than so many of all do not exceed (nearest rank).
double quantile(std::vector<double> values, double at) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(at * static_cast<double>(values.size()));
  return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

/// Rows of the kernel table; what comes after them is one row.
constexpr size_t shownKernels = 20;

class Bench {
public:
  Bench(const Options &options, Session &session) : options_(options), session_(session) {}

  Status run(const BindOptions &bind);

private:
  Status step();
  Status timeSteps();
  Status timeBlocks();
  Status profile();
  Status readLoss(const char *name);
  double measuredSteps() const {
    return static_cast<double>(std::max<uint64_t>(session_.device().measuredRuns(*entry_), 1));
  }
  Json print(const InstructionCosts &costs, double total, const char *key) const;
  void report();
  void reportProfile(double stepMilliseconds);

  const Options &options_;
  Session &session_;
  std::optional<Feeder> feeder_;
  const plan::Entry *entry_ = nullptr;
  int64_t index_ = 0;                  ///< of the next step
  std::vector<double> stepSeconds_;    ///< of single steps, or of the mean step of each block
  std::vector<InstructionTime> times_; ///< of the measured steps
  Ceilings ceilings_;
  Json json_;
};

Status Bench::step() {
  LOWTIDE_TRY(session_.writeScalars(options_.entry, session_.scalarsOf(options_.entry, index_, 0)));
  if (feeder_)
    LOWTIDE_TRY(feeder_->feed(index_));
  ++index_;
  return session_.step(options_.entry);
}

/// Steps overlap with the host's work as in training: a step takes from the end of the one before to its own. The first
/// ones only fill the pipeline.
Status Bench::timeSteps() {
  const auto depth = static_cast<int64_t>(session_.depth());
  auto last = Clock::now();
  for (int64_t i = 0; i < options_.steps + depth; ++i) {
    LOWTIDE_TRY(step());
    LOWTIDE_TRY(session_.settle(session_.depth()));
    const auto now = Clock::now();
    if (i >= depth)
      stepSeconds_.push_back(seconds(now - last));
    last = now;
  }
  return session_.settle();
}

/// A block begins and ends with nothing under way: its time holds every copy and update of its steps.
Status Bench::timeBlocks() {
  for (int64_t block = 0; block < options_.blocks; ++block) {
    const auto begin = Clock::now();
    for (int64_t i = 0; i < options_.steps; ++i) {
      LOWTIDE_TRY(step());
      LOWTIDE_TRY(session_.settle(session_.depth()));
    }
    LOWTIDE_TRY(session_.settle());
    stepSeconds_.push_back(seconds(Clock::now() - begin) / static_cast<double>(options_.steps));
  }
  return Status::ok();
}

/// Times a few steps instruction by instruction.
Status Bench::profile() {
  session_.device().measure(*entry_, Measuring::Alone);
  for (int64_t i = 0; i < options_.profile; ++i)
    LOWTIDE_TRY(step());
  LOWTIDE_TRY(session_.settle());
  times_ = session_.device().times(*entry_);
  for (const InstructionTime &time : times_) {
    const double milliseconds = static_cast<double>(time.nanoseconds) / 1e6;
    // Of one run each: what is repeated within a step counts once.
    json_["instructions"].push_back({{"what", time.what},
                                     {"where", time.location},
                                     {"generated", time.generated},
                                     {"symbol", time.symbol},
                                     {"runs", static_cast<double>(time.runs) / measuredSteps()},
                                     {"milliseconds", time.runs ? milliseconds / static_cast<double>(time.runs) : 0},
                                     {"bytes", time.bytes},
                                     {"flops", time.flops}});
  }
  return Status::ok();
}

/// Steps that train nothing are no measurement: who reads the figures sees the loss.
Status Bench::readLoss(const char *name) {
  for (const Tensor &tensor : session_.tensors(options_.entry, plan::Binding::METRIC)) {
    if (tensor.binding->name() != "loss")
      continue;
    Expected<double> loss = session_.metric(options_.entry, "loss");
    if (!loss)
      return loss.takeStatus();
    json_[name] = std::isfinite(*loss) ? Json(*loss) : Json(nullptr);
  }
  return Status::ok();
}

/// Prints a row, and returns it; its name is under `key`.
Json Bench::print(const InstructionCosts &costs, double total, const char *key) const {
  const double seconds = costs.milliseconds / 1e3, rate = seconds > 0 ? costs.bytes / 1e9 / seconds : 0,
               flops = seconds > 0 ? costs.flops / 1e9 / seconds : 0;
  const std::string place = costs.location.empty() ? "" : "  [" + printable(costs.location) + "]";
  std::printf("%9.3f %5.1f %6llu %8.1f %5.0f %9.1f %5.0f  %s%s\n", costs.milliseconds,
              total > 0 ? 100 * costs.milliseconds / total : 0, static_cast<unsigned long long>(costs.count), rate,
              100 * rate / std::max(ceilings_.copyGBPerSecond, 1e-9), flops,
              100 * flops / std::max(ceilings_.gemmGFlops, 1e-9), printable(costs.name).c_str(), place.c_str());
  return {{key, costs.name},
          {"where", costs.location},
          {"generated", costs.generated},
          {"count", costs.count},
          {"milliseconds", costs.milliseconds},
          {"bytes", costs.bytes},
          {"flops", costs.flops},
          {"gb_per_s", rate},
          {"gflops", flops},
          {"floor_ms", floorMilliseconds(costs, ceilings_)}};
}

void Bench::report() {
  double median = quantile(stepSeconds_, 0.5), p10 = quantile(stepSeconds_, 0.1), p90 = quantile(stepSeconds_, 0.9),
         p99 = quantile(stepSeconds_, 0.99);
  const double mean = std::accumulate(stepSeconds_.begin(), stepSeconds_.end(), 0.0) / double(stepSeconds_.size());
  double batch = static_cast<double>(std::max<int64_t>(entry_->batch(), 1));
  std::printf("target    %s\n", session_.plan().target().c_str());
  std::printf("step      median %.3f ms, p10 %.3f, p90 %.3f, p99 %.3f; %.1f samples/s\n", median * 1e3, p10 * 1e3,
              p90 * 1e3, p99 * 1e3, batch / mean);
  std::printf("memory    planned %llu bytes, allocated %llu\n",
              static_cast<unsigned long long>(session_.plannedBytes()),
              static_cast<unsigned long long>(session_.allocatedBytes()));
  std::printf("ceilings  copy %.1f GB/s, gemm %.1f GFLOP/s, measured in this run\n", ceilings_.copyGBPerSecond,
              ceilings_.gemmGFlops);
  json_["target"] = session_.plan().target();
  json_["batch"] = entry_->batch();
  json_["step_ms"] = {{"median", median * 1e3}, {"p10", p10 * 1e3}, {"p90", p90 * 1e3}, {"p99", p99 * 1e3}};
  json_["samples_per_s"] = batch / mean;
  if (options_.blocks > 0) {
    Json each = Json::array();
    for (double time : stepSeconds_)
      each.push_back(time * 1e3);
    json_["blocks"] = {{"steps", options_.steps}, {"warmup", options_.warmup}, {"step_ms", each}};
  }
  json_["steps"] = stepSeconds_.size() * static_cast<size_t>(options_.blocks > 0 ? options_.steps : 1);
  json_["planned_bytes"] = session_.plannedBytes();
  json_["allocated_bytes"] = session_.allocatedBytes();
  json_["besides"] = session_.device().besides();
  json_["libraries"] = session_.device().libraries();
  json_["library_choices"] = session_.device().choices();
  json_["ceilings"] = {{"copy_gb_per_s", ceilings_.copyGBPerSecond}, {"gemm_gflops", ceilings_.gemmGFlops}};
  if (!times_.empty())
    reportProfile(median * 1e3);
}

void Bench::reportProfile(double stepMilliseconds) {
  const char *head = "\n       ms     %  count     GB/s copy%   GFLOP/s gemm%  ";
  const std::vector<InstructionCosts> kernels = sumByKernel(times_, measuredSteps());
  std::vector<InstructionCosts> kinds = sumByKind(times_, measuredSteps());
  const InstructionCosts all = sumOf(kinds);
  std::printf("%skernel or call  [the first place]\n", head);
  InstructionCosts rest;
  for (const InstructionCosts &kernel : kernels)
    if (json_["kernels"].size() < shownKernels)
      json_["kernels"].push_back(print(kernel, all.milliseconds, "kernel"));
    else
      rest.add(kernel);
  if (rest.count) {
    rest.name = std::to_string(kernels.size() - shownKernels) + " more";
    json_["kernels"].push_back(print(rest, all.milliseconds, "kernel"));
  }
  std::printf("%skind\n", head);
  for (InstructionCosts &kind : kinds) {
    kind.location.clear();
    json_["kinds"].push_back(print(kind, all.milliseconds, "kind"));
  }
  json_["kinds"].push_back(print(all, all.milliseconds, "kind"));
  // What a step cannot do without: every byte at the speed of a copy, every product at that of a large one.
  const double bytes = all.bytes / 1e6 / std::max(ceilings_.copyGBPerSecond, 1e-9),
               products = all.flops / 1e6 / std::max(ceilings_.gemmGFlops, 1e-9);
  std::printf(
      "\nfloors    the step moves %.3f GB (%.3f ms at the speed of a copy) and multiplies %.3f GFLOP (%.3f ms at "
      "that of a large product);\n          instructions take %.3f ms one by one, the step %.3f ms\n",
      all.bytes / 1e9, bytes, all.flops / 1e9, products, all.milliseconds, stepMilliseconds);
  json_["floor_ms"] = {{"bytes", bytes}, {"flops", products}, {"instructions", all.milliseconds}};
  MeasuredStep step{stepMilliseconds, kernels, ceilings_, entry_->batch(), 0, session_.device().freeBytes()};
  for (const plan::Arena &arena : session_.plan().arenas())
    step.transientBytes += isDeviceTransient(arena) ? arena.bytes() : 0;
  for (const std::string &line : advise(step)) {
    std::printf("advice    %s\n", line.c_str());
    json_["advice"].push_back(line);
  }
}

Status Bench::run(const BindOptions &bind) {
  entry_ = session_.artifact().entry(options_.entry);
  if (!entry_)
    return {StatusCode::Usage, "no entry '" + printable(options_.entry) + "'"};
  Expected<Ceilings> ceilings = measureCeilings(session_.plan().target(), multiplicationType(*entry_), bind);
  if (!ceilings)
    return ceilings.takeStatus().at("ceilings");
  ceilings_ = *ceilings;
  LOWTIDE_TRY(session_.bind(bind));
  if (!session_.tensors(options_.entry, plan::Binding::BATCH).empty()) {
    Expected<Dataset> dataset = Dataset::open(options_.data);
    if (!dataset)
      return dataset.takeStatus();
    std::vector<std::string> notes;
    Expected<Feeder> feeder = Feeder::create(*dataset, session_, options_.entry, std::nullopt, notes);
    if (!feeder)
      return feeder.takeStatus();
    feeder_.emplace(std::move(*feeder));
  }
  for (int64_t i = 0; i < std::max<int64_t>(1, options_.warmup); ++i) {
    LOWTIDE_TRY(step());
    if (i == 0) {
      LOWTIDE_TRY(session_.settle());
      LOWTIDE_TRY(readLoss("first_loss"));
    }
  }
  LOWTIDE_TRY(session_.settle());
  LOWTIDE_TRY(options_.blocks > 0 ? timeBlocks() : timeSteps());
  LOWTIDE_TRY(readLoss("last_loss"));
  if (options_.profile > 0)
    LOWTIDE_TRY(profile());
  report();
  if (!options_.json.empty())
    LOWTIDE_TRY(writeFile(options_.json, json_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"));
  return session_.close();
}

void printLibraries() {
  for (const LibraryRule *rule : libraryRules())
    std::printf("%-9s takes %s\n          source: %s; %s\n", rule->library, rule->takes, rule->source,
                rule->confirmed ? "confirmed on a GPU"
                : rule->planned ? "planned by the library itself; not confirmed on a GPU"
                                : "not confirmed on a GPU");
}

/// Measured ceilings as `lowtide compile --target-file` reads them. Plans count with one rate of products: that of f32
/// on a CPU, of 16 bits on a GPU, where most of a training step's are.
Json targetOf(const std::string &target, const Json &gemmGFlops, double copyGBPerSecond) {
  const size_t colon = target.find(':');
  const std::string kind = target.substr(0, colon);
  Json json = {{"name", kind + ":measured"}, {"kind", kind}};
  if (colon != std::string::npos)
    json["chip"] = target.substr(colon + 1);
  const char *counted = isGpu(target) ? "bf16" : "f32";
  json["estimates"] = {{"library_flops", gemmGFlops[counted].get<double>() * 1e9},
                       {"memory_bytes_per_second", copyGBPerSecond * 1e9}};
  for (const auto &[type, rate] : gemmGFlops.items())
    json["rates"][type] = rate.get<double>() * 1e9;
  return json;
}

/// What the device of a session can do at best: one copy and one product per type.
Status printCeilings(const Options &options, const Session &session, const BindOptions &bind) {
  Json json = {{"target", session.plan().target()}};
  double copy = 0;
  for (auto [name, type] : {std::pair("f32", plan::F32), std::pair("f16", plan::F16), std::pair("bf16", plan::BF16)}) {
    Expected<Ceilings> ceilings = measureCeilings(session.plan().target(), type, bind);
    if (!ceilings)
      return ceilings.takeStatus().at(std::string("ceilings in ") + name);
    copy = std::max(copy, ceilings->copyGBPerSecond);
    json["gemm_gflops"][name] = ceilings->gemmGFlops;
    std::printf("gemm      %.1f GFLOP/s in %s\n", ceilings->gemmGFlops, name);
  }
  json["copy_gb_per_s"] = copy;
  std::printf("copy      %.1f GB/s\n", copy);
  if (!options.json.empty())
    LOWTIDE_TRY(writeFile(options.json, json.dump(1) + "\n"));
  if (!options.writeTarget.empty())
    return writeFile(options.writeTarget, targetOf(session.plan().target(), json["gemm_gflops"], copy).dump(1) + "\n");
  return Status::ok();
}

Status printProducts(const Options &options, const Session &session) {
  const plan::Entry *entry = session.artifact().entry(options.entry);
  if (!entry)
    return {StatusCode::Usage, "no entry '" + printable(options.entry) + "'"};
  Expected<std::vector<Products>> measured = measureProducts(session.plan(), *entry, options.threads);
  if (!measured)
    return measured.takeStatus();
  Json json = {{"target", session.plan().target()}, {"entry", options.entry}, {"products", Json::array()}};
  std::printf("       ms  count   GFLOP/s  m×n×k\n");
  for (const Products &products : *measured) {
    const GemmShape &shape = products.shape;
    const double rate = products.gflop() / products.milliseconds * 1e3;
    std::string sizes = std::to_string(shape.m) + "×" + std::to_string(shape.n) + "×" + std::to_string(shape.k);
    sizes += std::string(shape.transposeA ? " Aᵀ" : "") + (shape.transposeB ? " Bᵀ" : "");
    if (shape.batchCount() > 1)
      sizes += " ×" + std::to_string(shape.batchCount());
    std::printf("%9.3f %6llu %9.1f  %s\n", products.milliseconds, static_cast<unsigned long long>(products.count), rate,
                sizes.c_str());
    json["products"].push_back({{"m", shape.m},
                                {"n", shape.n},
                                {"k", shape.k},
                                {"transpose_a", shape.transposeA},
                                {"transpose_b", shape.transposeB},
                                {"batch", shape.batchCount()},
                                {"dtype", dtypeName(shape.dtype)},
                                {"count", products.count},
                                {"milliseconds", products.milliseconds},
                                {"gflops", rate}});
  }
  return options.json.empty() ? Status::ok() : writeFile(options.json, json.dump(1) + "\n");
}

Status measure(const Options &options) {
  if (options.libraries) {
    printLibraries();
    return Status::ok();
  }
  if (options.doctor) {
    for (const cuda::Finding &finding : cuda::surveyCuda())
      std::printf("%-10s%s\n", finding.what.c_str(), finding.text.c_str());
    return Status::ok();
  }
  Expected<std::unique_ptr<Session>> session = Session::load(options.artifact);
  if (!session)
    return session.takeStatus();
  BindOptions bind;
  bind.threads = options.threads;
  bind.randomInit = true;
  if (options.products)
    return printProducts(options, **session);
  return options.ceilings ? printCeilings(options, **session, bind) : Bench(options, **session).run(bind);
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app{"lowtide-bench"};
  bool wantsHelp = false;
  app.set_help_flag();
  app.add_flag("-h,--help", wantsHelp);
  app.add_option("artifact", options.artifact);
  app.add_option("--data", options.data);
  app.add_option("--entry", options.entry);
  app.add_option("--steps", options.steps)->check(config::positive());
  app.add_option("--warmup", options.warmup)->check(config::nonNegative());
  app.add_option("--blocks", options.blocks)->check(config::nonNegative());
  app.add_option("--profile", options.profile)->check(config::nonNegative());
  app.add_option("--threads", options.threads);
  app.add_option("--json", options.json);
  auto *ceilings = app.add_flag("--ceilings", options.ceilings);
  app.add_option("--write-target", options.writeTarget)->needs(ceilings);
  app.add_flag("--products", options.products)->excludes(ceilings);
  app.add_flag("--doctor", options.doctor);
  app.add_flag("--libraries", options.libraries);
  try {
    config::parse(app, argc, argv);
  } catch (const CLI::ParseError &error) {
    std::fprintf(stderr, "error: %s\nnote: lowtide-bench -h shows how to call it\n", error.what());
    return 1;
  }
  if (wantsHelp || (options.artifact.empty() && !options.doctor && !options.libraries)) {
    std::fputs(help, wantsHelp ? stdout : stderr);
    return wantsHelp ? 0 : 1;
  }
  return exitCodeOf([&] { return measure(options); });
}
