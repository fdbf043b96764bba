//===- Adapters.cpp - the rules of --lora -----------------------*- C++ -*-===//

#include "lowtide/Dialect/Train/Adapters.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace lowtide;
using namespace lowtide::train;

template <typename... Args> static llvm::Error refuse(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Args>(args)...).str());
}

double AdapterRule::getScale() const {
  return alpha / (isRankStabilized ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
}

static llvm::Error readOption(StringRef text, AdapterRule &rule, llvm::StringSet<> &given) {
  static constexpr StringRef known[] = {"r", "alpha", "dropout", "rslora", "dora"};
  auto [name, value] = text.split('=');
  name = name.trim(), value = value.trim();
  if (!llvm::is_contained(known, name))
    return refuse("lora: '{0}' in '{1}' is no option; there are r=16, alpha=32, dropout=0.05, rslora and dora{2}", name,
                  rule.text, suggestName(name, known));
  if (!given.insert(name).second)
    return refuse("lora: '{0}' is given twice in '{1}'", name, rule.text);
  if (name == "rslora" || name == "dora") {
    bool &isSet = name == "dora" ? rule.isDecomposed : rule.isRankStabilized;
    isSet = value.empty() || value == "true" || value == "1";
    if (!isSet && value != "false" && value != "0")
      return refuse("lora: {0} stands alone, or is true or false; found '{1}'", name, value);
    return llvm::Error::success();
  }
  if (name == "r") {
    if (value.getAsInteger(10, rule.rank) || rule.rank < 1)
      return refuse("lora: r is a rank, a whole number from 1 on; found '{0}'", value);
    return llvm::Error::success();
  }
  double &number = name == "alpha" ? rule.alpha : rule.dropout;
  if (value.getAsDouble(number) || !std::isfinite(number))
    return refuse("lora: {0} is a number; found '{1}'", name, value);
  if (name == "alpha" && number <= 0.0)
    return refuse("lora: alpha must be above 0, found {0}", value);
  if (name == "dropout" && (number < 0.0 || number >= 1.0))
    return refuse("lora: dropout is a part of the pair's input, from 0 to below 1; found {0}", value);
  return llvm::Error::success();
}

static llvm::Error readRule(StringRef text, AdapterRule &rule) {
  rule.text = text.str();
  auto [patterns, options] = text.rsplit(':');
  if (patterns.trim().empty() || options.trim().empty())
    return refuse("lora: '{0}' is not of the form LAYER,LAYER:r=16,alpha=32", text);
  SmallVector<NameItem> items;
  if (std::optional<TextFault> fault = splitNames(patterns, ',', items))
    return refuse("lora: {0} in '{1}' (column {2})", fault->message, patterns, countColumns(patterns, fault->column));
  for (const NameItem &item : items)
    rule.patterns.emplace_back(item.text, item.isQuoted);
  llvm::StringSet<> given;
  for (StringRef option : llvm::split(options, ','))
    if (llvm::Error error = readOption(option, rule, given))
      return error;
  if (!given.contains("r"))
    return refuse("lora: '{0}' says no rank: add r=16, for example", text);
  if (!given.contains("alpha"))
    rule.alpha = static_cast<double>(rule.rank);
  return llvm::Error::success();
}

llvm::Expected<std::vector<AdapterRule>> train::parseAdapterRules(StringRef text) {
  std::vector<AdapterRule> rules;
  for (StringRef one : llvm::split(text, ';')) {
    if (llvm::Error error = readRule(one.trim(), rules.emplace_back()))
      return error;
    for (auto [name, member] :
         {std::pair("rslora", &AdapterRule::isRankStabilized), std::pair("dora", &AdapterRule::isDecomposed)}) {
      const AdapterRule &first = rules.front(), &last = rules.back();
      if (first.*member != last.*member)
        return refuse("lora: {0} stands in '{1}' and not in '{2}': PEFT's files have one answer for all layers", name,
                      (last.*member ? last : first).text, (last.*member ? first : last).text);
    }
  }
  return rules;
}

StringRef train::getLayerOf(StringRef parameter) {
  const size_t end = parameter.find_last_of("./");
  return end == StringRef::npos || end == 0 ? parameter : parameter.take_front(end);
}
