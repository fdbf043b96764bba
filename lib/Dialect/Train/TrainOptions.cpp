//===- TrainOptions.cpp - what the user chose about training ---*- C++ -*-===//
//
// Parsing and checking of optimizer, schedule and parameter groups.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/TrainOptions.h"
#include "lowtide/Dialect/Train/Optimizers.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::train;

template <typename... Args> static llvm::Error refuse(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Args>(args)...).str());
}

static llvm::Error parseNumber(StringRef flag, StringRef text, double &value) {
  if (text.trim().getAsDouble(value) || !std::isfinite(value))
    return refuse("{0}: '{1}' is not a finite number", flag, text);
  return llvm::Error::success();
}

static llvm::Error parseCount(StringRef flag, StringRef text, int64_t &value) {
  if (text.trim().getAsInteger(10, value) || value < 0)
    return refuse("{0}: '{1}' is not a number of steps", flag, text);
  return llvm::Error::success();
}

static llvm::Error parseChoice(StringRef flag, StringRef text, ArrayRef<StringRef> choices, std::string &value) {
  if (!llvm::is_contained(choices, text))
    return refuse("{0}: '{1}' is none of {2}", flag, text, llvm::join(choices, ", "));
  value = text.str();
  return llvm::Error::success();
}

llvm::Error train::checkPattern(StringRef pattern) {
  llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
  if (!glob || pattern.empty()) {
    std::string reason = glob ? "is empty" : llvm::toString(glob.takeError());
    return refuse("pattern '{0}': {1}", pattern, reason);
  }
  return llvm::Error::success();
}

// bias,*.ln*:weight_decay=0,lr_scale=0.1
static llvm::Error parseGroup(StringRef text, GroupRule &rule) {
  auto [patterns, options] = text.rsplit(':');
  if (patterns.empty() || options.empty())
    return refuse("group: '{0}' is not of the form "
                  "pattern,pattern:option=value,option=value",
                  text);
  rule.text = text.str();
  for (StringRef pattern : llvm::split(patterns, ',')) {
    if (llvm::Error error = checkPattern(pattern.trim()))
      return refuse("group: {0}", llvm::toString(std::move(error)));
    rule.patterns.push_back(pattern.trim().str());
  }
  for (StringRef assignment : llvm::split(options, ',')) {
    auto [name, value] = assignment.split('=');
    std::string option = name.trim().str();
    llvm::replace(option, '-', '_');
    if (llvm::Error error = parseNumber("group: " + option, value, rule.options[option]))
      return error;
  }
  return llvm::Error::success();
}

bool GroupRule::matches(StringRef name) const {
  return llvm::any_of(patterns, [&](const std::string &pattern) {
    llvm::GlobPattern glob = llvm::cantFail(llvm::GlobPattern::create(pattern));
    if (glob.match(name))
      return true;
    return StringRef(pattern).find_first_of(".*") == StringRef::npos &&
           llvm::any_of(llvm::split(name, '.'), [&](StringRef component) { return glob.match(component); });
  });
}

llvm::Error TrainOptions::set(StringRef flag, StringRef value) {
  std::string name = flag.ltrim('-').str();
  llvm::replace(name, '-', '_');
  if (name == "optimizer") {
    optimizer = value.str();
    return llvm::Error::success();
  }
  if (name == "convention")
    return parseChoice(name, value, {"torch", "onnx"}, convention);
  if (name == "schedule")
    return parseChoice(name, value, {"constant", "linear", "cosine"}, schedule.kind);
  if (name == "lr")
    return parseNumber(name, value, schedule.lr);
  if (name == "min_lr")
    return parseNumber(name, value, schedule.minLr);
  if (name == "warmup_steps")
    return parseCount(name, value, schedule.warmupSteps);
  if (name == "total_steps")
    return parseCount(name, value, schedule.totalSteps);
  if (name == "betas") {
    auto [first, second] = value.split(',');
    if (llvm::Error error = parseNumber(name, first, options["beta1"]))
      return error;
    return parseNumber(name, second, options["beta2"]);
  }
  if (name == "group") {
    for (StringRef text : llvm::split(value, ';'))
      if (llvm::Error error = parseGroup(text.trim(), groups.emplace_back()))
        return error;
    return llvm::Error::success();
  }
  return parseNumber(name, value.empty() ? "1" : value, options[name]);
}

static llvm::Error checkOptions(const OptimizerInfo &info, const std::map<std::string, double> &options) {
  for (const auto &[name, value] : options) {
    if (!info.findOption(name)) {
      SmallVector<StringRef> known;
      for (const OptimizerOption &option : info.options)
        known.push_back(option.name);
      return refuse("{0} has no option '{1}'; it has {2}", info.name, name, llvm::join(known, ", "));
    }
    bool isDecay = StringRef(name).starts_with("beta") || name == "momentum";
    if (isDecay && (value < 0.0 || value >= 1.0))
      return refuse("{0}: {1} must lie in [0, 1), found {2}", info.name, name, value);
    if (value < 0.0)
      return refuse("{0}: {1} must not be negative, found {2}", info.name, name, value);
  }
  return llvm::Error::success();
}

llvm::Error TrainOptions::finish(MLIRContext *context) {
  if (optimizer == "sgd" && options.count("momentum")) {
    if (options["momentum"] != 0.0) {
      optimizer = "momentum";
    } else { // PyTorch's spelling of none.
      for (const char *name : {"momentum", "dampening", "nesterov"})
        options.erase(name);
    }
  }
  std::optional<OptimizerInfo> info = findOptimizer(context, optimizer);
  if (!info)
    return refuse("optimizer: '{0}' is none of {1}", optimizer, llvm::join(listOptimizers(context), ", "));
  if (llvm::Error error = checkOptions(*info, options))
    return error;
  if (schedule.lr <= 0.0)
    return refuse("lr must be positive, found {0}", schedule.lr);
  if (schedule.minLr < 0.0 || schedule.minLr > schedule.lr)
    return refuse("min_lr must lie between 0 and lr = {0}, found {1}", schedule.lr, schedule.minLr);
  if (schedule.kind != "constant" && schedule.totalSteps <= schedule.warmupSteps)
    return refuse("schedule {0} decays until total_steps, which must exceed "
                  "warmup_steps = {1}, found {2}",
                  schedule.kind, schedule.warmupSteps, schedule.totalSteps);
  for (GroupRule &rule : groups) {
    if (auto lr = rule.options.find("lr"); lr != rule.options.end()) {
      rule.options["lr_scale"] = lr->second / schedule.lr;
      rule.options.erase("lr");
    }
    if (llvm::Error error = checkOptions(*info, rule.options))
      return error;
  }
  return llvm::Error::success();
}

std::map<std::string, double> TrainOptions::resolve(MLIRContext *context, const GroupRule *rule) const {
  std::map<std::string, double> resolved;
  const std::optional<OptimizerInfo> info = findOptimizer(context, optimizer);
  for (const OptimizerOption &option : info->options)
    resolved[option.name.str()] = convention == "onnx" ? option.onnxDefault : option.torchDefault;
  for (const auto &[name, value] : options)
    resolved[name] = value;
  if (rule)
    for (const auto &[name, value] : rule->options)
      resolved[name] = value;
  return resolved;
}

const GroupRule *TrainOptions::findGroup(StringRef parameter) const {
  auto found = llvm::find_if(groups, [&](const GroupRule &rule) { return rule.matches(parameter); });
  return found == groups.end() ? nullptr : &*found;
}

DictionaryAttr TrainOptions::getOptimizerAttr(MLIRContext *context) const {
  Builder b(context);
  NamedAttrList attributes;
  attributes.set("kind", b.getStringAttr(optimizer));
  attributes.set("convention", b.getStringAttr(convention));
  for (const auto &[name, value] : resolve(context, nullptr))
    if (name != "lr_scale")
      attributes.set(name, b.getF64FloatAttr(value));
  return attributes.getDictionary(context);
}

DictionaryAttr TrainOptions::getScheduleAttr(MLIRContext *context) const {
  Builder b(context);
  NamedAttrList attributes;
  attributes.set("kind", b.getStringAttr(schedule.kind));
  attributes.set("lr", b.getF64FloatAttr(schedule.lr));
  attributes.set("warmup_steps", b.getI64IntegerAttr(schedule.warmupSteps));
  attributes.set("total_steps", b.getI64IntegerAttr(schedule.totalSteps));
  attributes.set("min_lr", b.getF64FloatAttr(schedule.minLr));
  return attributes.getDictionary(context);
}
