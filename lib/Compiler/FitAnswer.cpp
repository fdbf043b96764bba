//===- FitAnswer.cpp - whether a step fits, and what makes it fit -*- C++ -*-===//
//
// A fit into a room that is given.
//  1. What the step needs without recomputation, and what no plan is below: said at once, for nothing is searched. A
//     budget may ask for further forms of the step: they are looked at where its own is above the budget, until one is
//     not.
//  2. The same of its variations: more micro-batches, 16 bits, both; optimizer state in fewer bits.
//  3. Where it does not fit as it is, plans within the budget: first of the step itself, then of the variations.
//  4. The largest batch that fits, by bisection between batches that were tried, and by what they lack.
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"
#include "Offload.h"
#include "PlanLayout.h"
#include "StepFacts.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/RefusedBudget.h"
#include "lowtide/Dialect/Train/Target.h"
#include "lowtide/Solve/Model/Timeline.h"
#include "lowtide/Support/ByteUnit.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <chrono>

using namespace mlir;
using namespace lowtide;

Failure Compilation::lowerVariation(const Variation &variation) {
  if (!variation.batch && variation.parts == options.microBatches && variation.precision.empty() &&
      variation.moments.empty()) {
    module = given->clone();
    return {};
  }
  samples = variation.batch;
  wholeSamples = countSamples(*given);
  Failure failure;
  auto imported = importOnnx(*file, initializers, importOptions(failure));
  samples = 0;
  if (failure || failed(imported))
    return failure ? failure : FailureKind::BadInput;
  module = std::move(*imported);
  train::setTarget(*module, target);
  if ((failure = makeGraph()) || (failure = makeSteps(variation.parts, variation.precision, variation.moments)))
    return failure;
  return addVariants(variation);
}

Compilation::Needs Compilation::findNeeds(const Variation &variation,
                                          llvm::function_ref<bool(const Needs &)> isEnough) {
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  FitStageOptions stage = fitStageOptions();
  stage.deviceBudget = "";
  if (lowerVariation(variation))
    return {};
  OwningOpRef<ModuleOp> steps = module->clone();
  Needs needs = countNeeds(stage);
  if (!needs.isLowered || isEnough(needs))
    return needs;
  // A budget may ask for another form, of which fewer bytes are alive.
  module = steps->clone();
  for (const StepForm &form : listFurtherForms(stage)) {
    if (isEnough(needs))
      break;
    form.take(stage);
    module = steps->clone();
    if (const Needs other = countNeeds(stage); other.isLowered)
      needs.leastBytes = std::min(needs.leastBytes, other.leastBytes);
  }
  return needs;
}

Compilation::Needs Compilation::countNeeds(const FitStageOptions &stage) {
  Needs needs;
  if (runFitStage(stage))
    return needs;
  auto steps = llvm::to_vector(module->getOps<func::FuncOp>());
  FailureOr<PlanLayout> layout = PlanLayout::compute(steps, target);
  StepFacts facts(*module);
  if (failed(layout) || failed(facts.update(target)))
    return needs;
  for (func::FuncOp step : steps) {
    FailureOr<StepProblem> problem = StepProblem::pose(step, facts.getTable(), CostModel::get(target));
    if (failed(problem))
      return needs;
    const solve::StepGraph &graph = problem->getGraph();
    std::optional<solve::Timeline> timeline = solve::evaluate(graph, solve::originalSchedule(graph));
    if (!timeline)
      return needs;
    if (needs.largest.empty() || timeline->peakBytes > needs.wholeBytes)
      needs.largest = step.getSymName().str();
    needs.wholeBytes = std::max(needs.wholeBytes, timeline->peakBytes);
    needs.leastBytes = std::max(needs.leastBytes, solve::findLowerBound(graph).bytes);
    if (step.getSymName() == "train" || step.getSymName().starts_with("train_"))
      needs.trainBytes = std::max(needs.trainBytes, timeline->peakBytes + layout->getStaticBytes().sum());
    if (step.getSymName() == "train" || needs.seconds == 0)
      needs.seconds = timeline->seconds;
  }
  const uint64_t statics = needs.staticBytes = layout->getStaticBytes().sum();
  needs.wholeBytes += statics;
  needs.leastBytes += statics;
  needs.isLowered = true;
  return needs;
}

Compilation::Planned Compilation::planWithin(const Variation &variation, uint64_t budget, FormsAsked asked) {
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  FitStageOptions stage = fitStageOptions();
  stage.deviceBudget = std::to_string(budget);
  if (lowerVariation(variation))
    return {};
  if (fitSteps(stage, asked)) {
    const std::optional<RefusedBudget> refused = getRefusedBudget(*module);
    return {std::nullopt, refused ? refused->smallestBytes : 0};
  }
  auto step = module->lookupSymbol<func::FuncOp>("train");
  if (!step)
    step = *module->getOps<func::FuncOp>().begin();
  // Where values wait in another memory, lanes have their say.
  if (const std::optional<StepEstimate> estimate = StepEstimate::get(step))
    return {estimate->seconds};
  return {CostModel::get(target).getSeconds(step.getBody().front())};
}

/// Batches that are tried at most while the largest is looked for, and how long.
static constexpr unsigned maxTrials = 12;
static constexpr std::chrono::seconds maxTime(120);

namespace lowtide {

/// The question and what is known of its answer.
class FitAnswer {
public:
  FitAnswer(Compilation &compilation, const ByteSize &size, StringRef title, StoredBytes stored, int64_t batch)
      : compilation(compilation), size(size), title(title.str()), stored(std::move(stored)), batch(batch),
        isSymbolic(compilation.file && compilation.options.shapes.empty()) {}

  void find();
  bool fits() const { return ways.front().fits(); }
  void printText(llvm::raw_ostream &os) const;
  void printJson(llvm::raw_ostream &os) const;

private:
  using Clock = std::chrono::steady_clock;

  /// A variation and what is known of it.
  struct Way {
    Compilation::Variation variation;
    Compilation::Needs needs;
    bool isPlanned = false;
    /// With recomputation within the budget; nothing: no plan was found.
    std::optional<double> plannedSeconds;
    uint64_t budget;

    /// With a little room, for no arena is packed to the last byte.
    uint64_t getRoomyBytes() const { return needs.wholeBytes + needs.wholeBytes / 128; }
    bool isWhole() const { return needs.isLowered && getRoomyBytes() <= budget; }
    bool fits() const { return isWhole() || plannedSeconds; }
    double getSeconds() const { return isWhole() ? needs.seconds : plannedSeconds.value_or(0); }
  };

  void say(const llvm::Twine &text, bool isNews = false) {
    if (Listener *listener = compilation.diagnostics.getListener())
      listener->progress(("fit: " + text).str(), isNews);
  }
  std::string describe(const Compilation::Variation &variation) const;
  std::string flagsOf(const Way &way) const;
  /// The forms of a step in which it is measured, after the one that it has without a budget.
  enum class Further {
    None,     ///< whether it fits as it is
    Deciding, ///< until one may fit: whether a plan may
    All,      ///< what no plan is below
  };
  Way measure(Compilation::Variation variation, Further further = Further::Deciding);
  void plan(Way &way);
  /// How far the numbers of a step are from those of the step that was asked for; 0: they are the same.
  int rank(const Way &way) const;
  const Way *findCheapest() const;
  /// A plan within the budget could be the cheapest way: recomputation only adds time.
  bool mayBeCheapest(const Way &way) const;
  /// A batch that was tried.
  struct Trial {
    bool fits;
    uint64_t bytes; ///< what it takes, about; 0: not known
  };
  /// The largest batch that fits; 0: none from 1 on. `known` does where it is not 0, and the answer may be `guess`.
  int64_t findLargest(llvm::function_ref<Trial(int64_t)> attempt, int64_t known, int64_t guess);
  void findLargestBatches();
  double percentOf(const Way &way) const {
    const double whole = ways.front().needs.seconds;
    return whole > 0 ? 100 * (way.getSeconds() / whole - 1) : 0;
  }

  /// Another memory, in which values may wait, and its flag.
  bool hasOther() const { return !compilation.options.hostBudget.empty() || !compilation.options.diskBudget.empty(); }
  std::string describeOther(const char *before) const {
    return hasOther() ? before + compilation.describeOtherMemory() : "";
  }
  bool mayFit(const Way &way) const { return hasOther() || way.needs.leastBytes <= budget; }
  bool hasTime() const { return Clock::now() - start < maxTime; }

  Compilation &compilation;
  const Clock::time_point start = Clock::now();
  /// The budget as it was asked for, and in bytes.
  const ByteSize size;
  uint64_t budget = 0;
  const std::string title;
  const StoredBytes stored;
  const int64_t batch;
  /// The batch is a symbol of the file, so that it can be another.
  bool isSymbolic;
  /// The step itself first.
  std::vector<Way> ways;
  /// Without and with recomputation; nothing: not looked for.
  std::optional<int64_t> largestWhole, largestPlanned;
  /// What the smallest batch takes however it is planned; nothing: some batch fits, or none was looked for.
  std::optional<uint64_t> smallestBytes;
  /// The search for them ended before its time.
  bool isCut = false;
};

} // namespace lowtide

std::string FitAnswer::describe(const Compilation::Variation &variation) const {
  return "batch " + std::to_string(variation.batch ? variation.batch : batch) + ", " + std::to_string(variation.parts) +
         (variation.parts == 1 ? " part, " : " parts, ") +
         (variation.precision.empty() ? compilation.options.precision : variation.precision) +
         (variation.moments.empty() ? "" : ", moments in " + variation.moments);
}

std::string FitAnswer::flagsOf(const Way &way) const {
  std::string flags;
  if (way.variation.batch && way.variation.batch != batch)
    flags += " --batch=" + std::to_string(way.variation.batch);
  if (way.variation.parts != compilation.options.microBatches)
    flags += " --micro-batches=" + std::to_string(way.variation.parts);
  if (!way.variation.precision.empty() && way.variation.precision != compilation.options.precision)
    flags += " --precision=" + way.variation.precision;
  if (!way.variation.moments.empty())
    flags += " --moments=" + way.variation.moments;
  if (!way.isWhole())
    flags += " --device-budget=" + (budget >> 20 ? std::to_string(budget >> 20) + "MiB" : std::to_string(budget)) +
             describeOther(" ");
  return flags.empty() ? "as it is" : StringRef(flags).ltrim().str();
}

FitAnswer::Way FitAnswer::measure(Compilation::Variation variation, Further further) {
  say("measuring " + describe(variation));
  Compilation::Needs needs = compilation.findNeeds(variation, [&](const Compilation::Needs &needs) {
    // A part is of what the step itself needs, which is measured first.
    const uint64_t room = ways.empty() ? size.resolve(needs.wholeBytes) : budget;
    // Where values may wait elsewhere, no bound of the device's memory alone decides.
    return further == Further::None || (further == Further::Deciding && (hasOther() || needs.leastBytes <= room));
  });
  return {std::move(variation), needs, false, std::nullopt, budget};
}

void FitAnswer::plan(Way &way) {
  if (way.isPlanned || way.isWhole() || !way.needs.isLowered)
    return;
  way.isPlanned = true;
  // Whatever is recomputed, and nothing waits elsewhere.
  if (way.needs.leastBytes > budget && !hasOther())
    return;
  say("planning " + describe(way.variation) + " within " + formatBytes(budget));
  way.plannedSeconds = compilation.planWithin(way.variation, budget, Compilation::FormsAsked::ForSeconds).seconds;
}

int FitAnswer::rank(const Way &way) const {
  const bool isOtherPrecision =
      !way.variation.precision.empty() && way.variation.precision != compilation.options.precision;
  const bool isOtherBatch = way.variation.batch && way.variation.batch != batch;
  // What is stored in fewer bits is another step too, codes more so.
  const StringRef moments = way.variation.moments;
  const int codec = moments.empty() ? 0 : moments == "bf16" ? 4 : 8;
  return (isOtherPrecision ? 1 : 0) + (isOtherBatch ? 2 : 0) + codec;
}

const FitAnswer::Way *FitAnswer::findCheapest() const {
  // What changes no number comes before what does; of those, the fastest.
  const Way *best = nullptr;
  for (const Way &way : ways)
    if (way.fits() && (!best || std::pair(rank(way), way.getSeconds()) < std::pair(rank(*best), best->getSeconds())))
      best = &way;
  return best;
}

bool FitAnswer::mayBeCheapest(const Way &way) const {
  const Way *best = findCheapest();
  return !best || std::pair(rank(way), way.needs.seconds) < std::pair(rank(*best), best->getSeconds());
}

int64_t FitAnswer::findLargest(llvm::function_ref<Trial(int64_t)> attempt, int64_t known, int64_t guess) {
  const int64_t parts = compilation.options.microBatches;
  auto count = [&](int64_t units) { return units * parts; };
  const uint64_t statics = ways.front().needs.staticBytes;
  int64_t low = known / parts, high = 0; // in parts of one sample: low fits, high does not (0: not known)
  auto getStep = [&] { return std::max<int64_t>(1, low / 64); };
  int64_t next = guess / parts;
  bool isGuess = next > low, mayGuess = true;
  if (!isGuess)
    next = std::max<int64_t>(1, low * 2);
  for (unsigned trials = 0; trials < maxTrials && hasTime() && (high == 0 || high - low > getStep()); ++trials) {
    const Trial trial = attempt(count(next));
    (trial.fits ? low : high) = next;
    if (high == 1)
      return 0;
    const bool wasGuess = std::exchange(isGuess, false);
    if (wasGuess) {
      // A good one: only the next batch up does not fit, or the next one down does.
      next = trial.fits ? low + getStep() : high - getStep();
    } else if (!trial.fits && budget > statics && trial.bytes > budget && std::exchange(mayGuess, false)) {
      // What is alive for a while grows with the batch. A second guess would be no better.
      isGuess = true;
      next = int64_t(double(next) * double(budget - statics) / double(trial.bytes - statics));
    } else {
      next = high == 0 ? low * 2 : low + (high - low) / 2;
    }
    if (high)
      next = std::clamp(next, low + 1, std::max(low + 1, high - 1));
  }
  isCut |= high == 0 || high - low > 1;
  return count(low);
}

void FitAnswer::findLargestBatches() {
  const Way &given = ways.front();
  if (!isSymbolic || !batch || !given.needs.isLowered)
    return;
  // Bytes grow with the batch about as a line does: one more point gives its slope.
  const int64_t parts = compilation.options.microBatches,
                other = batch > parts ? batch / 2 / parts * parts : batch + parts;
  if (other < 1)
    return;
  const Way point = measure({{"", other, parts}}, Further::None);
  isSymbolic = point.needs.isLowered; // a batch that the exporter fixed is no other
  if (!isSymbolic)
    return;
  const double slope =
      std::max(1.0, (double(given.needs.wholeBytes) - double(point.needs.wholeBytes)) / double(batch - other));
  const int64_t guess =
      std::max<int64_t>(1, batch + int64_t((double(budget) - double(given.needs.wholeBytes)) / slope));
  largestWhole = findLargest(
      [&](int64_t size) -> Trial {
        const Way way = measure({{"", size, parts}}, Further::None);
        return {way.isWhole(), way.getRoomyBytes()};
      },
      given.isWhole() ? batch : 0, guess);
  // A plan of any form is enough here: how fast it is is not asked.
  largestPlanned = findLargest(
      [&](int64_t size) -> Trial {
        const Compilation::Variation variation{{"", size, parts}};
        say("planning " + describe(variation) + " within " + formatBytes(budget));
        const Compilation::Planned planned =
            compilation.planWithin(variation, budget, Compilation::FormsAsked::ForFirst);
        return {planned.seconds.has_value(), planned.smallestBytes};
      },
      std::max(*largestWhole, given.fits() ? batch : 0), /*guess=*/0);
  if (!*largestPlanned)
    smallestBytes = measure({{"", parts, parts}}, Further::All).needs.leastBytes;
}

void FitAnswer::find() {
  const int64_t parts = compilation.options.microBatches;
  ways.push_back(measure({{"", 0, parts}}));
  const Compilation::Needs first = ways.front().needs;
  ways.front().budget = budget = size.resolve(first.wholeBytes);
  say("first answer: " + formatBytes(first.wholeBytes) + " without recomputation, " +
          (first.leastBytes > budget && !hasOther() ? "no plan is below "
                                                    : "with it no plan of these kernels is below ") +
          formatBytes(first.leastBytes) + "; there are " + formatBytes(budget),
      /*isNews=*/true);
  if (!compilation.file || compilation.holdsStep)
    return plan(ways.front()); // what a text or a step holds stays as it is
  for (int64_t more : {2, 4, 8})
    if (batch && batch % (parts * more) == 0)
      ways.push_back(measure({{"", 0, parts * more}}));
  if (compilation.options.precision == "f32") {
    ways.push_back(measure({{"", 0, parts, "mixed-bf16"}}));
    if (batch && batch % (parts * 4) == 0)
      ways.push_back(measure({{"", 0, parts * 4, "mixed-bf16"}}));
  }
  // Where the state of updates alone is in the way; nothing chooses these but who types them.
  if (compilation.options.moments == "f32" && compilation.options.precision != "f64" && !ways.front().isWhole())
    for (const char *codec : {"bf16", "int8"})
      if (Way way = measure({{"", 0, parts}, codec}); way.needs.wholeBytes < first.wholeBytes)
        ways.push_back(std::move(way));
  plan(ways.front());
  if (!ways.front().isWhole())
    for (Way &way : llvm::drop_begin(ways))
      if (mayBeCheapest(way) && hasTime())
        plan(way);
  findLargestBatches();
  if (!findCheapest() && largestPlanned && *largestPlanned) {
    ways.push_back(measure({{"", *largestPlanned, parts}}));
    plan(ways.back());
  }
}

void FitAnswer::printText(llvm::raw_ostream &os) const {
  uint64_t largest = 0;
  for (const Way &way : ways)
    largest = std::max(largest, way.needs.wholeBytes);
  // In the unit of a budget a hundred times as large, two digits would be too few.
  const ByteUnit ofBudget = ByteUnit::get(std::max(largest, budget));
  const ByteUnit unit = budget / 100 > largest ? ByteUnit::get(largest) : ofBudget;
  if (!stored.isEmpty())
    stored.print(os);
  os << title << ": " << ofBudget.text(budget) << " for the step\n\n"
     << llvm::format("  %7s  %13s  %-10s  %12s  %12s  %8s  %s\n", "batch", "micro-batches", "precision",
                     ("needs, " + std::string(unit.name)).c_str(), "at least", "time", "fits");
  for (const Way &way : ways) {
    const auto &variation = way.variation;
    os << llvm::format("  %7lld  %13lld  %-10s", (long long)(variation.batch ? variation.batch : batch),
                       (long long)variation.parts,
                       (variation.precision.empty() ? compilation.options.precision : variation.precision).c_str());
    if (!way.needs.isLowered) {
      os << "             -             -         -  not compiled\n";
      continue;
    }
    os << llvm::format("  %12s  %12s", unit.number(way.needs.wholeBytes).c_str(),
                       unit.number(way.needs.leastBytes).c_str());
    os << (way.fits() ? llvm::formatv("  {0,6:F1} %", percentOf(way)).str() : std::string("         -"));
    os << "  "
       << (way.isWhole()                       ? "yes"
           : way.plannedSeconds                ? "with recomputation" + describeOther(" and ")
           : !mayFit(way)                      ? "no"
           : way.isPlanned && compilation.file ? "no plan found"
                                               : "not planned")
       << (variation.moments.empty() ? "" : ", --moments=" + variation.moments) << "\n";
  }
  os << "\nneeds: alive at once without recomputation; at least: whatever is recomputed, in other forms of the step "
        "only where its own cannot fit; time: estimated, over the step as it is\n";
  const Compilation::Needs &first = ways.front().needs;
  if (!ways.front().isWhole() && first.trainBytes && first.trainBytes < first.wholeBytes)
    os << "@" << first.largest << " needs the most, often for outputs of the file: " << unit.text(first.trainBytes)
       << " without it (--entries=train); --outputs=none leaves out the outputs alone\n";
  const Way *cheapest = findCheapest();
  if (fits())
    os << "yes: " << flagsOf(*cheapest)
       << llvm::formatv(", time {0}{1:F1} %\n", percentOf(*cheapest) < 0 ? "" : "+", percentOf(*cheapest));
  else if (cheapest)
    os << "no; the cheapest way to yes: " << flagsOf(*cheapest)
       << llvm::formatv(", time {0}{1:F1} %\n", percentOf(*cheapest) < 0 ? "" : "+", percentOf(*cheapest));
  else
    os << "no: nothing that was tried fits\n";
  if (smallestBytes)
    os << "no batch fits: a batch of " << compilation.options.microBatches << " takes at least "
       << unit.text(*smallestBytes) << "\n";
  else if (largestWhole)
    os << "largest batch" << (isCut ? ", at least: " : ": ") << *largestWhole << " without recomputation, "
       << *largestPlanned << " with it\n";
  else if (!isSymbolic)
    os << "the batch is fixed, so no other one was tried\n";
}

void FitAnswer::printJson(llvm::raw_ostream &os) const {
  const Way *cheapest = findCheapest();
  llvm::json::OStream json(os, 2);
  json.object([&] {
    if (!stored.isEmpty())
      json.attribute("stored", stored.toJson());
    json.attribute("budget_bytes", budget);
    json.attribute("fits", fits());
    json.attributeArray("ways", [&] {
      for (const Way &way : ways)
        json.object([&] {
          json.attribute("batch", way.variation.batch ? way.variation.batch : batch);
          json.attribute("micro_batches", way.variation.parts);
          json.attribute("precision",
                         way.variation.precision.empty() ? compilation.options.precision : way.variation.precision);
          if (!way.variation.moments.empty())
            json.attribute("moments", way.variation.moments);
          if (!way.needs.isLowered)
            return;
          json.attribute("whole_bytes", way.needs.wholeBytes);
          json.attribute("lower_bound_bytes", way.needs.leastBytes);
          json.attribute("fits", way.fits());
          json.attribute("recomputes", !way.isWhole() && way.fits());
          if (way.fits())
            json.attribute("time_percent", percentOf(way));
          json.attribute("cheapest", &way == cheapest);
          if (way.fits())
            json.attribute("flags", flagsOf(way));
        });
    });
    if (largestWhole) {
      json.attribute("largest_batch", *largestWhole);
      json.attribute("largest_batch_recomputed", *largestPlanned);
      json.attribute("largest_batch_is_exact", !isCut);
      if (smallestBytes)
        json.attribute("smallest_batch_bytes", *smallestBytes);
    }
  });
  os << "\n";
}

Failure Compilation::answerFit(const ByteSize &budget, StringRef title, FitResult &result) {
  StoredBytes stored = countStored();
  given = std::move(module);
  FitAnswer answer(*this, budget, title, std::move(stored), countSamples(*given));
  answer.find();
  if (Listener *listener = diagnostics.getListener())
    listener->endProgress();
  llvm::raw_string_ostream text(result.text), json(result.json);
  answer.printText(text);
  answer.printJson(json);
  result.fits = answer.fits();
  return {};
}
