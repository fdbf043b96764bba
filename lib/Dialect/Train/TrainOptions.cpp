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
    return refuse("{0}: '{1}' is none of {2}{3}", flag, text, llvm::join(choices, ", "), suggestName(text, choices));
  value = text.str();
  return llvm::Error::success();
}

llvm::Error train::parsePatterns(StringRef text, std::vector<NamePattern> &patterns) {
  SmallVector<NameItem> items;
  if (std::optional<TextFault> fault = splitNames(text, ',', items))
    return refuse("{0} in '{1}' (column {2})", fault->message, text, countColumns(text, fault->column));
  for (const NameItem &item : items)
    patterns.emplace_back(item.text, item.isQuoted);
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
  if (llvm::Error error = parsePatterns(patterns, rule.patterns))
    return refuse("group: {0}", llvm::toString(std::move(error)));
  for (StringRef assignment : llvm::split(options, ',')) {
    auto [name, value] = assignment.split('=');
    if (name.trim().empty() || value.trim().empty())
      return refuse("group: '{0}' in '{1}' is not of the form option=value", assignment, text);
    std::string option = name.trim().str();
    llvm::replace(option, '-', '_');
    if (rule.options.count(option))
      return refuse("group: '{0}' is given twice in '{1}'", option, text);
    if (llvm::Error error = parseNumber("group: " + option, value, rule.options[option]))
      return error;
  }
  return llvm::Error::success();
}

bool train::matchesLayer(const NamePattern &pattern, StringRef name) {
  if (pattern.matches(name))
    return true;
  return pattern.getText().find_first_of(".*") == StringRef::npos &&
         llvm::any_of(llvm::split(name, '.'), [&](StringRef component) { return pattern.matches(component); });
}

bool GroupRule::matches(StringRef name) const {
  return llvm::any_of(patterns, [&](const NamePattern &pattern) { return matchesLayer(pattern, name); });
}

std::string train::describeUnmatched(const NamePattern &pattern) {
  std::string text = ("pattern '" + pattern.getText() + "'").str();
  return pattern.getFault().empty() ? text + " matches nothing" : text + ": " + pattern.getFault().str();
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
    SmallVector<StringRef> numbers;
    value.split(numbers, ',');
    if (numbers.size() != 2)
      return refuse("--betas takes two numbers, as in --betas=0.9,0.999; '{0}' has {1}", value, numbers.size());
    if (llvm::Error error = parseNumber("--betas", numbers[0], options["beta1"]))
      return error;
    return parseNumber("--betas", numbers[1], options["beta2"]);
  }
  if (name == "group") {
    for (StringRef text : llvm::split(value, ';'))
      if (llvm::Error error = parseGroup(text.trim(), groups.emplace_back()))
        return error;
    return llvm::Error::success();
  }
  return parseNumber(name, value.empty() ? "1" : value, options[name]);
}

/// The flag that sets an option; empty for what only groups set.
static std::string flagOf(StringRef option) {
  if (option == "beta1" || option == "beta2")
    return "--betas";
  if (option == "lr_scale")
    return "";
  std::string flag = "--" + option.str();
  llvm::replace(flag, '_', '-');
  return flag;
}

/// Flags that set what an optimizer has, each once.
static std::string listFlags(const OptimizerInfo &info) {
  SmallVector<std::string> flags;
  for (const OptimizerOption &option : info.options)
    if (std::string flag = flagOf(option.name); !flag.empty() && !llvm::is_contained(flags, flag))
      flags.push_back(std::move(flag));
  return llvm::join(flags, ", ");
}

/// What a group may set.
static std::string listGroupOptions(const OptimizerInfo &info) {
  SmallVector<StringRef> names = {"lr"};
  for (const OptimizerOption &option : info.options)
    names.push_back(option.name);
  return llvm::join(names, ", ");
}

static llvm::Error checkOptions(MLIRContext *context, const OptimizerInfo &info, StringRef asked, bool isGroup,
                                const std::map<std::string, double> &options) {
  for (const auto &[name, value] : options) {
    if (!info.findOption(name)) {
      std::string known = isGroup ? listGroupOptions(info) : listFlags(info);
      // PyTorch's SGD is two updates here.
      if (!isGroup && info.name == "sgd")
        known += ", and with --momentum " + listFlags(*findOptimizer(context, "momentum"));
      if (isGroup)
        return refuse("group: {0} has no option '{1}'; it has {2}", asked, name, known);
      SmallVector<std::string> having;
      for (StringRef other : listOptimizers(context))
        if (findOptimizer(context, other)->findOption(name))
          having.push_back(other == "momentum" ? "sgd with --momentum" : other.str());
      const std::string whose = having.empty() ? "" : " is of " + llvm::join(having, ", ") + "; it";
      return refuse("{0}{1} has no effect on --optimizer={2}, which takes {3}", flagOf(name), whose, asked, known);
    }
    const std::string flag = isGroup ? "group: " + name : flagOf(name);
    bool isDecay = StringRef(name).starts_with("beta") || name == "momentum";
    if (isDecay && (value < 0.0 || value >= 1.0))
      return refuse("{0}: {1} must lie in [0, 1), found {2}", flag, name, value);
    if (value < 0.0)
      return refuse("{0}: {1} must not be negative, found {2}", flag, name, value);
  }
  return llvm::Error::success();
}

/// As PyTorch's SGD has it.
static llvm::Error checkNesterov(const std::map<std::string, double> &options) {
  auto get = [&](const char *name) { return options.count(name) ? options.at(name) : 0.0; };
  if (get("nesterov") == 0.0 || (get("momentum") > 0.0 && get("dampening") == 0.0))
    return llvm::Error::success();
  if (get("dampening") != 0.0)
    return refuse("--nesterov and --dampening={0} do not go together: Nesterov momentum has no dampening",
                  get("dampening"));
  return refuse("--nesterov needs a momentum above 0, as in --momentum=0.9");
}

llvm::Error TrainOptions::finish(MLIRContext *context) {
  const std::string asked = optimizer;
  if (optimizer == "sgd" && options.count("momentum") && options["momentum"] == 0.0)
    if (llvm::Error error = checkNesterov(options))
      return error;
  if (optimizer == "sgd" && options.count("momentum")) {
    if (options["momentum"] != 0.0) {
      optimizer = "momentum";
    } else { // PyTorch's spelling of none.
      for (const char *name : {"momentum", "dampening", "nesterov"})
        options.erase(name);
    }
  }
  std::optional<OptimizerInfo> info = findOptimizer(context, optimizer);
  if (!info) {
    SmallVector<StringRef> known = listOptimizers(context);
    return refuse("optimizer: '{0}' is none of {1}{2}", optimizer, llvm::join(known, ", "),
                  suggestName(optimizer, known));
  }
  if (optimizer == "sgd" && options.count("nesterov"))
    if (llvm::Error error = checkNesterov(options))
      return error;
  if (llvm::Error error = checkOptions(context, *info, asked, /*isGroup=*/false, options))
    return error;
  if (optimizer == "momentum")
    if (llvm::Error error = checkNesterov(resolve(context, nullptr)))
      return error;
  if (schedule.lr < 0.0)
    return refuse("lr must not be negative, found {0}", schedule.lr);
  if (schedule.minLr < 0.0 || schedule.minLr > schedule.lr)
    return refuse("min_lr must lie between 0 and lr = {0}, found {1}", schedule.lr, schedule.minLr);
  if (schedule.kind != "constant" && schedule.totalSteps <= schedule.warmupSteps)
    return refuse("schedule {0} decays until total_steps, which must exceed "
                  "warmup_steps = {1}, found {2}",
                  schedule.kind, schedule.warmupSteps, schedule.totalSteps);
  for (GroupRule &rule : groups) {
    if (auto lr = rule.options.find("lr"); lr != rule.options.end()) {
      if (schedule.lr == 0.0 && lr->second != 0.0)
        return refuse("group: lr={0} is a part of --lr, which is 0: give --lr a rate and other groups lr=0",
                      lr->second);
      rule.options["lr_scale"] = schedule.lr == 0.0 ? 1.0 : lr->second / schedule.lr;
      rule.options.erase("lr");
    }
    if (llvm::Error error = checkOptions(context, *info, asked, /*isGroup=*/true, rule.options))
      return error;
    if (optimizer == "momentum")
      if (llvm::Error error = checkNesterov(resolve(context, &rule)))
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
