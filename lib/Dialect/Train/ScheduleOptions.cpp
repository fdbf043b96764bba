//===- ScheduleOptions.cpp - the learning rate over time --------*- C++ -*-===//
//
// One row a schedule: which flags it has, and what they may be.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/ScheduleOptions.h"
#include "OptionParsing.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::train;

namespace {
/// A number that some schedules have.
struct Setting {
  StringRef name;
  double initial;
  bool isCount;
  bool (*isValid)(double value);
  StringRef rule;
};

struct Kind {
  StringRef name;
  bool needsEnd;    ///< total_steps must be given
  bool warmsUp;     ///< takes warmup_steps
  bool hasLeast;    ///< takes min_lr
  bool hasOneLeast; ///< min_lr is PyTorch's eta_min: the same of all groups, whatever rates they start from
  std::vector<StringRef> settings; ///< besides; "milestones" and "curve" too
  std::vector<StringRef> curves;
};
} // namespace

static bool isPositive(double value) { return value > 0.0; }
static bool isAny(double) { return true; }

static const std::vector<Setting> &listSettings() {
  static const std::vector<Setting> settings{
      {"power", 1.0, false, isPositive, "must be above 0"},
      {"step_size", 0.0, true, isPositive, "must be a number of steps above 0"},
      {"gamma", 0.1, false, isPositive, "must be above 0"},
      {"timescale", 0.0, true, isAny, ""}, // 0: warmup_steps, or 10000 without
      {"pct_start", 0.3, false, [](double value) { return value >= 0.0 && value < 1.0; }, "must lie in [0, 1)"},
      {"div_factor", 25.0, false, isPositive, "must be above 0"},
      {"final_div_factor", 1e4, false, isPositive, "must be above 0"},
      {"restart_steps", 0.0, true, isPositive, "must be a number of steps above 0"},
      {"restart_mult", 1.0, true, isPositive, "must be a whole number above 0"},
      {"decay_steps", 0.0, true, isPositive, "must be a number of steps above 0"}};
  return settings;
}

static const std::vector<Kind> &listKinds() {
  static const std::vector<Kind> kinds{
      {"constant", false, true, false, false, {}, {}},
      {"linear", true, true, true, false, {}, {}},
      {"cosine", true, true, true, true, {}, {}},
      {"polynomial", true, true, true, false, {"power"}, {}},
      {"step", false, true, false, false, {"step_size", "gamma"}, {}},
      {"multistep", false, true, false, false, {"milestones", "gamma"}, {}},
      {"exponential", false, true, false, false, {"gamma"}, {}},
      {"inverse-sqrt", false, true, false, false, {"timescale"}, {}},
      {"one-cycle",
       true,
       false,
       false,
       false,
       {"pct_start", "div_factor", "final_div_factor", "curve"},
       {"cosine", "linear"}},
      {"cosine-restarts", false, true, true, true, {"restart_steps", "restart_mult"}, {}},
      {"wsd", true, true, true, false, {"decay_steps", "curve"}, {"cosine", "linear", "1-sqrt"}}};
  return kinds;
}

static const Setting *findSetting(StringRef name) {
  auto found = llvm::find_if(listSettings(), [&](const Setting &setting) { return setting.name == name; });
  return found == listSettings().end() ? nullptr : &*found;
}

static const Kind &findKind(StringRef name) {
  return *llvm::find_if(listKinds(), [&](const Kind &kind) { return kind.name == name; });
}

static std::string nameFlag(StringRef name) {
  std::string flag = ("--" + name).str();
  llvm::replace(flag, '_', '-');
  return flag;
}

SmallVector<StringRef> train::listSchedules() {
  return llvm::map_to_vector(listKinds(), [](const Kind &kind) { return kind.name; });
}

bool ScheduleOptions::hasFlag(StringRef name) {
  return findSetting(name) ||
         llvm::is_contained({"schedule", "lr", "warmup_steps", "total_steps", "min_lr", "milestones", "curve"}, name);
}

llvm::Error ScheduleOptions::set(StringRef name, StringRef value) {
  if (name == "schedule")
    return parseChoice(name, value, listSchedules(), kind);
  if (name == "lr")
    return parseNumber(name, value, lr);
  if (name == "min_lr")
    return parseNumber(name, value, minLr);
  if (name == "warmup_steps")
    return parseCount(name, value, warmupSteps);
  if (name == "total_steps")
    return parseCount(name, value, totalSteps);
  if (name == "curve")
    return parseChoice(name, value, {"cosine", "linear", "1-sqrt"}, curve);
  if (name == "milestones") {
    milestones.clear();
    for (StringRef text : llvm::split(value, ','))
      if (llvm::Error error = parseCount(name, text, milestones.emplace_back()))
        return error;
    return llvm::Error::success();
  }
  if (!findSetting(name)->isCount)
    return parseNumber(nameFlag(name), value, options[name.str()]);
  int64_t count = 0;
  if (llvm::Error error = parseCount(nameFlag(name), value, count))
    return error;
  options[name.str()] = static_cast<double>(count);
  return llvm::Error::success();
}

llvm::Error ScheduleOptions::finish() {
  const Kind &own = findKind(kind);
  auto refuseFlag = [&](StringRef name) {
    SmallVector<std::string> having, flags;
    for (const Kind &other : listKinds())
      if (llvm::is_contained(other.settings, name))
        having.push_back(other.name.str());
    for (StringRef setting : own.settings)
      flags.push_back(nameFlag(setting));
    return refuse("{0} is of --schedule={1}; it has no effect on --schedule={2}{3}", nameFlag(name),
                  llvm::join(having, ", "), kind, flags.empty() ? "" : ", which takes " + llvm::join(flags, ", "));
  };
  if (lr < 0.0)
    return refuse("lr must not be negative, found {0}", lr);
  if (minLr < 0.0 || minLr > lr)
    return refuse("min_lr must lie between 0 and lr = {0}, found {1}", lr, minLr);
  for (const auto &[name, value] : options) {
    if (!llvm::is_contained(own.settings, StringRef(name)))
      return refuseFlag(name);
    if (const Setting *setting = findSetting(name); !setting->isValid(value))
      return refuse("{0}: {1} {2}, found {3}", nameFlag(name), name, setting->rule, value);
  }
  if (!milestones.empty() && !llvm::is_contained(own.settings, StringRef("milestones")))
    return refuseFlag("milestones");
  if (!llvm::is_sorted(milestones))
    return refuse("--milestones are steps in ascending order, as in --milestones=1000,3000");
  if (kind == "multistep" && milestones.empty())
    return refuse("schedule multistep needs the steps at which the rate falls, as in --milestones=1000,3000");
  if (!curve.empty() && own.curves.empty())
    return refuseFlag("curve");
  if (!curve.empty() && !llvm::is_contained(own.curves, StringRef(curve)))
    return refuse("--curve={0} is none of schedule {1}: it has {2}", curve, kind, llvm::join(own.curves, ", "));
  if (!own.warmsUp && warmupSteps != 0)
    return refuse("--warmup-steps has no effect on --schedule={0}, which warms up over --pct-start of its steps", kind);
  if (!own.hasLeast && minLr != 0.0)
    return refuse("--min-lr has no effect on --schedule={0}", kind);
  if (own.needsEnd && totalSteps <= warmupSteps)
    return refuse("schedule {0} decays until --total-steps, which must exceed --warmup-steps={1}, found {2}", kind,
                  warmupSteps, totalSteps);
  for (StringRef name : own.settings)
    if (const Setting *setting = findSetting(name)) {
      const double value = options.try_emplace(name.str(), setting->initial).first->second;
      if (!setting->isValid(value))
        return refuse("schedule {0} needs {1}: {2} {3}", kind, nameFlag(name), name, setting->rule);
    }
  if (kind == "inverse-sqrt" && options["timescale"] == 0.0)
    options["timescale"] = warmupSteps ? static_cast<double>(warmupSteps) : 10000.0;
  if (kind == "wsd" && options["decay_steps"] > static_cast<double>(totalSteps - warmupSteps))
    return refuse("schedule wsd: --decay-steps={0} exceeds the {1} steps between warm-up and --total-steps",
                  options["decay_steps"], totalSteps - warmupSteps);
  const double rise = kind == "one-cycle" ? options["pct_start"] * static_cast<double>(totalSteps) : 2.0;
  if (rise != 0.0 && rise <= 1.0)
    return refuse("schedule one-cycle: --pct-start={0} of --total-steps={1} is no more than one step",
                  options["pct_start"], totalSteps);
  if (!own.curves.empty() && curve.empty())
    curve = own.curves.front().str();
  return llvm::Error::success();
}

bool ScheduleOptions::endsAtOneRate() const { return minLr != 0.0 && findKind(kind).hasOneLeast; }

DictionaryAttr ScheduleOptions::getAttr(MLIRContext *context) const {
  Builder b(context);
  NamedAttrList attributes;
  attributes.set("kind", b.getStringAttr(kind));
  attributes.set("lr", b.getF64FloatAttr(lr));
  attributes.set("warmup_steps", b.getI64IntegerAttr(warmupSteps));
  attributes.set("total_steps", b.getI64IntegerAttr(totalSteps));
  attributes.set("min_lr", b.getF64FloatAttr(minLr));
  for (const auto &[name, value] : options)
    if (findSetting(name)->isCount)
      attributes.set(name, b.getI64IntegerAttr(static_cast<int64_t>(value)));
    else
      attributes.set(name, b.getF64FloatAttr(value));
  if (!milestones.empty())
    attributes.set("milestones", b.getDenseI64ArrayAttr(milestones));
  if (!curve.empty())
    attributes.set("curve", b.getStringAttr(curve));
  return attributes.getDictionary(context);
}
