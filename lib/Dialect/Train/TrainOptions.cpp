//===- TrainOptions.cpp - what the user chose about training ---*- C++ -*-===//
//
// Parsing and checking of optimizer, schedule and parameter groups.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/TrainOptions.h"
#include "OptionParsing.h"
#include "lowtide/Dialect/Train/Optimizers.h"
#include "lowtide/Support/DeclaredOptions.h"
#include "lowtide/Support/OptionChoices.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::train;

namespace {
/// A flag that sets several options of an optimizer, as PyTorch's tuples do.
struct ListFlag {
  StringRef name;
  std::vector<StringRef> options;
  StringRef example, count;
};
} // namespace

static const std::vector<ListFlag> &listListFlags() {
  static const std::vector<ListFlag> flags{
      {"betas", {"beta1", "beta2"}, "0.9,0.999", "two"},
      {"etas", {"etaminus", "etaplus"}, "0.5,1.2", "two"},
      {"step_sizes", {"step_size_min", "step_size_max"}, "1e-6,50", "two"},
      {"ns_coefficients", {"ns_a", "ns_b", "ns_c"}, "3.4445,-4.775,2.0315", "three"}};
  return flags;
}

/// Muon's factors on the learning rate, in the order of their numbers.
static constexpr llvm::StringLiteral adjustments[] = {"original", "match_rms_adamw", "spectral_unclamped"};

static std::string dashed(StringRef name) {
  std::string flag = name.str();
  llvm::replace(flag, '_', '-');
  return flag;
}

/// An option of an optimizer, as a flag or a rule has it: a number, or one of the option's words.
static llvm::Error parseSetting(StringRef where, StringRef option, StringRef text, double &value) {
  if (option == "adjust_lr_fn") {
    SmallVector<StringRef> choices(std::begin(adjustments), std::end(adjustments));
    std::string choice;
    if (llvm::Error error = parseChoice(where, text, choices, choice))
      return error;
    value = static_cast<double>(llvm::find(choices, choice) - choices.begin());
    return llvm::Error::success();
  }
  const std::string flag = dashed(option);
  const bool isSwitch = llvm::any_of(DeclaredOptions, [&](const DeclaredOption &declared) {
    return declared.name == flag && !declared.switchValue.empty();
  });
  if (isSwitch && (isOn(text) || isOff(text))) {
    value = isOn(text) ? 1.0 : 0.0;
    return llvm::Error::success();
  }
  llvm::Error error = parseNumber(where, text, value);
  if (!error || !isSwitch)
    return error;
  llvm::consumeError(std::move(error));
  return refuse("{0}: '{1}' is neither {2} nor {3}", where, text, switchedOn[0], switchedOff[0]);
}

llvm::Error train::parsePatterns(StringRef text, std::vector<NamePattern> &patterns) {
  SmallVector<NameItem> items;
  if (std::optional<TextFault> fault = splitNames(text, ',', items))
    return refuse("{0} in '{1}' (column {2})", fault->message, text, countColumns(text, fault->column));
  for (const NameItem &item : items)
    patterns.emplace_back(item.text, item.isQuoted);
  return llvm::Error::success();
}

// option=value,option=value
static llvm::Error parseOptions(StringRef flag, StringRef text, StringRef options, std::string *optimizer,
                                std::map<std::string, std::string> *layouts, std::map<std::string, double> &values) {
  for (StringRef assignment : llvm::split(options, ',')) {
    auto [name, value] = assignment.split('=');
    if (name.trim().empty() || value.trim().empty())
      return refuse("{0}: '{1}' in '{2}' is not of the form option=value", flag, assignment, text);
    std::string option = name.trim().str();
    llvm::replace(option, '-', '_');
    if (option == "optimizer" && optimizer) {
      *optimizer = value.trim().str();
      continue;
    }
    if (layouts && (option == "moments" || option == "master")) {
      if (!layouts->try_emplace(option, value.trim().str()).second)
        return refuse("{0}: '{1}' is given twice in '{2}'", flag, option, text);
      continue;
    }
    for (const ListFlag &list : listListFlags())
      if (list.name == option)
        return refuse("{0}: '{1}' in '{2}' are {3} options here, as in {4}=…", flag, option, text, list.count,
                      llvm::join(list.options, "=…,"));
    if (values.count(option))
      return refuse("{0}: '{1}' is given twice in '{2}'", flag, option, text);
    if (llvm::Error error = parseSetting((flag + ": " + option).str(), option, value.trim(), values[option]))
      return error;
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
  if (llvm::Error error = parsePatterns(patterns, rule.patterns))
    return refuse("group: {0}", llvm::toString(std::move(error)));
  return parseOptions("group", text, options, &rule.optimizer, &rule.layouts, rule.options);
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
    return parseChoice(name, value, llvm::to_vector_of<StringRef>(conventions), convention);
  if (ScheduleOptions::hasFlag(name))
    return schedule.set(name, value);
  if (name == "fallback") {
    auto [other, settings] = value.split(':');
    fallback = other.trim().str();
    return settings.empty() ? llvm::Error::success()
                            : parseOptions("fallback", value, settings, nullptr, nullptr, fallbackOptions);
  }
  for (const ListFlag &list : listListFlags()) {
    if (list.name != name)
      continue;
    SmallVector<StringRef> numbers;
    value.split(numbers, ',');
    std::string text = "--" + dashed(name);
    if (numbers.size() != list.options.size())
      return refuse("{0} takes {1} numbers, as in {0}={2}; '{3}' has {4}", text, list.count, list.example, value,
                    numbers.size());
    for (auto [option, number] : llvm::zip_equal(list.options, numbers))
      if (llvm::Error error = parseNumber(text, number, options[option.str()]))
        return error;
    return llvm::Error::success();
  }
  if (name == "group") {
    for (StringRef text : llvm::split(value, ';'))
      if (llvm::Error error = parseGroup(text.trim(), groups.emplace_back()))
        return error;
    return llvm::Error::success();
  }
  return parseSetting("--" + dashed(name), name, value.empty() ? "1" : value, options[name]);
}

/// The flag that sets an option; empty for what only groups set.
static std::string flagOf(StringRef option) {
  for (const ListFlag &list : listListFlags())
    if (llvm::is_contained(list.options, option))
      return "--" + dashed(list.name);
  return option == "lr_scale" ? "" : "--" + dashed(option);
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

/// `asked`: as the user wrote the optimizer. `other`: the one that takes the parameters that `info` does not; null:
/// none.
static llvm::Error checkOptions(MLIRContext *context, const OptimizerInfo &info, const OptimizerInfo *other,
                                StringRef asked, StringRef where, const std::map<std::string, double> &options) {
  const bool isFlag = where.empty();
  for (const auto &[name, value] : options) {
    const OptimizerOption *option = info.findOption(name);
    if (!option && other)
      option = other->findOption(name);
    if (!option) {
      std::string known = isFlag ? listFlags(info) : listGroupOptions(info);
      // PyTorch's SGD is two updates here.
      if (info.name == "sgd") {
        const OptimizerInfo momentum = *findOptimizer(context, "momentum");
        known += isFlag ? ", and with --momentum " + listFlags(momentum)
                        : ", and with momentum=0.9 " + listGroupOptions(momentum);
      }
      if (!isFlag)
        return refuse("{0}: {1} has no option '{2}'; it has {3}", where, asked, name, known);
      SmallVector<std::string> having;
      for (StringRef candidate : listOptimizers(context))
        if (findOptimizer(context, candidate)->findOption(name))
          having.push_back(candidate == "momentum" ? "sgd with --momentum" : candidate.str());
      const std::string whose = having.empty() ? "" : " is of " + llvm::join(having, ", ") + "; it";
      return refuse("{0}{1} has no effect on --optimizer={2}, which takes {3}", flagOf(name), whose, asked, known);
    }
    if (!option->isValid(value))
      return refuse("{0}: {1} {2}, found {3}", isFlag ? flagOf(name) : where.str() + ": " + name, name, option->rule,
                    value);
  }
  return llvm::Error::success();
}

/// What ONNX's convention has no formula for.
static llvm::Error checkConvention(MLIRContext *context, const OptimizerInfo &info,
                                   const std::map<std::string, double> &values) {
  if (!info.traits.isInOnnx) {
    SmallVector<StringRef> known = listOptimizers(context);
    llvm::erase_if(known, [&](StringRef name) { return !findOptimizer(context, name)->traits.isInOnnx; });
    return refuse(
        "--convention=onnx: ONNX has no optimizer {0}; with PyTorch's convention it is there, and ONNX's has {1}",
        info.name, llvm::join(known, ", "));
  }
  for (const OptimizerOption &option : info.options)
    if (option.isSwitch && values.at(option.name.str()) != 0.0)
      return refuse("{0} is PyTorch's: ONNX's formula of {1} has none; leave out --convention=onnx",
                    flagOf(option.name), info.name);
  return llvm::Error::success();
}

/// "none of adagrad, …; did you mean 'adamw'?"
static llvm::Error refuseName(MLIRContext *context, StringRef flag, StringRef name) {
  SmallVector<StringRef> known = listOptimizers(context);
  return refuse("{0}: '{1}' is none of {2}{3}", flag, name, llvm::join(known, ", "), suggestName(name, known));
}

/// A learning rate of its own becomes a part of the scheduled one; `rate`: what it was.
static llvm::Error scaleRate(StringRef where, const ScheduleOptions &schedule, std::map<std::string, double> &options,
                             std::optional<double> &rate) {
  const double base = schedule.lr;
  auto lr = options.find("lr");
  if (lr == options.end())
    return llvm::Error::success();
  if (schedule.endsAtOneRate() && base == schedule.minLr && lr->second != base)
    return refuse("{0}: the fall of lr={1} to --min-lr={2} cannot be told from that of --lr={2}, which is none: give "
                  "--lr a rate above it",
                  where, lr->second, base);
  if (base == 0.0 && lr->second != 0.0)
    return refuse("{0}: lr={1} is a part of --lr, which is 0: give --lr a rate and other groups lr=0", where,
                  lr->second);
  rate = lr->second;
  options["lr_scale"] = base == 0.0 ? 1.0 : lr->second / base;
  options.erase("lr");
  return llvm::Error::success();
}

/// Whether an option of some optimizer is on or off, and nothing between.
static bool isSwitch(MLIRContext *context, StringRef name) {
  return llvm::any_of(listOptimizers(context), [&](StringRef optimizer) {
    const OptimizerInfo info = *findOptimizer(context, optimizer);
    const OptimizerOption *option = info.findOption(name);
    return option && option->isValid(0.0) && option->isValid(1.0) && !option->isValid(0.5);
  });
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

/// PyTorch's SGD is two updates here: `momentum` where its options name one, which PyTorch spells 0 for none.
static llvm::Error chooseUpdate(std::string &optimizer, std::map<std::string, double> &options) {
  auto momentum = options.find("momentum");
  if (optimizer != "sgd" || momentum == options.end())
    return llvm::Error::success();
  if (momentum->second != 0.0) {
    optimizer = "momentum";
    return llvm::Error::success();
  }
  if (llvm::Error error = checkNesterov(options))
    return error;
  for (const char *name : {"momentum", "dampening", "nesterov"})
    options.erase(name);
  return llvm::Error::success();
}

llvm::Error TrainOptions::finish(MLIRContext *context) {
  const std::string asked = optimizer;
  if (llvm::Error error = chooseUpdate(optimizer, options))
    return error;
  if (llvm::Error error = chooseUpdate(fallback, fallbackOptions))
    return error;
  std::optional<OptimizerInfo> info = findOptimizer(context, optimizer), other;
  if (!info)
    return refuseName(context, "optimizer", optimizer);
  if (optimizer == "sgd" && options.count("nesterov"))
    if (llvm::Error error = checkNesterov(options))
      return error;
  if (!fallback.empty() && info->traits.fallback.empty())
    return refuse("--fallback has no effect on --optimizer={0}, which updates every parameter itself", asked);
  if (fallback.empty())
    fallback = info->traits.fallback.str();
  if (!fallback.empty()) {
    other = findOptimizer(context, fallback);
    if (!other)
      return refuseName(context, "fallback", fallback);
    if (!other->traits.fallback.empty())
      return refuse("fallback: {0} does not update every parameter, either; as in --fallback=adamw", fallback);
  }
  // Off is what an optimizer without such a switch does.
  for (const auto &[name, value] : std::map<std::string, double>(options))
    if (value == 0.0 && !info->findOption(name) && !(other && other->findOption(name)) && isSwitch(context, name))
      options.erase(name);
  if (llvm::Error error = checkOptions(context, *info, other ? &*other : nullptr, asked, "", options))
    return error;
  if (llvm::Error error = schedule.finish())
    return error;
  if (llvm::Error error = scaleRate("fallback", schedule, fallbackOptions, fallbackRate))
    return error;
  if (other)
    if (llvm::Error error = checkOptions(context, *other, nullptr, fallback, "fallback", fallbackOptions))
      return error;
  if (optimizer == "momentum")
    if (llvm::Error error = checkNesterov(resolve(context, optimizer, nullptr)))
      return error;
  if (convention == "onnx")
    if (llvm::Error error = checkConvention(context, *info, resolve(context, optimizer, nullptr)))
      return error;
  for (GroupRule &rule : groups)
    if (llvm::Error error = checkGroup(context, rule, asked))
      return error;
  return llvm::Error::success();
}

llvm::Error TrainOptions::checkGroup(MLIRContext *context, GroupRule &rule, StringRef asked) {
  if (llvm::Error error = scaleRate("group", schedule, rule.options, rule.rate))
    return error;
  if (rule.options.count("momentum") && (rule.optimizer.empty() ? asked : StringRef(rule.optimizer)) == "sgd") {
    rule.optimizer = "sgd";
    if (llvm::Error error = chooseUpdate(rule.optimizer, rule.options))
      return error;
  } else if (rule.optimizer == asked) {
    rule.optimizer = optimizer; // with what all have
  }
  const bool isOther = !rule.optimizer.empty() && rule.optimizer != optimizer;
  std::optional<OptimizerInfo> info = findOptimizer(context, isOther ? rule.optimizer : optimizer), other;
  if (!info)
    return refuseName(context, "group: optimizer", rule.optimizer);
  if (rule.optimizer.empty() && !fallback.empty())
    other = findOptimizer(context, fallback);
  if (!rule.optimizer.empty())
    rule.optimizer = info->name.str();
  if (llvm::Error error =
          checkOptions(context, *info, other ? &*other : nullptr, isOther ? info->name : asked, "group", rule.options))
    return error;
  const std::map<std::string, double> values = resolve(context, info->name, &rule);
  if (info->name == "momentum")
    if (llvm::Error error = checkNesterov(values))
      return error;
  return convention == "onnx" ? checkConvention(context, *info, values) : llvm::Error::success();
}

StringRef TrainOptions::chooseOptimizer(const GroupRule *rule, bool isHiddenMatrix) const {
  if (rule && !rule->optimizer.empty())
    return rule->optimizer;
  return fallback.empty() || isHiddenMatrix ? optimizer : fallback;
}

std::map<std::string, double> TrainOptions::resolve(MLIRContext *context, StringRef name, const GroupRule *rule) const {
  std::map<std::string, double> resolved;
  const std::optional<OptimizerInfo> info = findOptimizer(context, name);
  for (const OptimizerOption &option : info->options)
    resolved[option.name.str()] = convention == "onnx" ? option.onnxDefault : option.torchDefault;
  auto apply = [&](const std::map<std::string, double> &values) {
    for (const auto &[option, value] : values)
      if (auto found = resolved.find(option); found != resolved.end())
        found->second = value;
  };
  apply(options);
  if (name == fallback)
    apply(fallbackOptions);
  if (rule)
    apply(rule->options);
  return resolved;
}

std::optional<double> TrainOptions::findRate(StringRef name, const GroupRule *rule) const {
  if (rule && rule->options.count("lr_scale"))
    return rule->rate;
  return name == fallback && fallbackOptions.count("lr_scale") ? fallbackRate : std::nullopt;
}

const GroupRule *TrainOptions::findGroup(ArrayRef<StringRef> names) const {
  auto found = llvm::find_if(groups, [&](const GroupRule &rule) {
    return llvm::any_of(names, [&](StringRef name) { return rule.matches(name); });
  });
  return found == groups.end() ? nullptr : &*found;
}

DictionaryAttr TrainOptions::getOptimizerAttr(MLIRContext *context) const {
  Builder b(context);
  NamedAttrList attributes;
  attributes.set("kind", b.getStringAttr(optimizer));
  attributes.set("convention", b.getStringAttr(convention));
  auto add = [&](StringRef owner, StringRef prefix) {
    const std::map<std::string, double> values = resolve(context, owner, nullptr);
    const std::optional<OptimizerInfo> info = findOptimizer(context, owner);
    for (const OptimizerOption &option : info->options) {
      const double value = values.at(option.name.str());
      const bool isDefault = option.isSwitch ? value == 0.0 : option.name == "lr_scale" && value == 1.0;
      if (!isDefault)
        attributes.set((prefix + option.name).str(), b.getF64FloatAttr(value));
    }
  };
  add(optimizer, "");
  if (!fallback.empty())
    add(fallback, fallback + ".");
  return attributes.getDictionary(context);
}
