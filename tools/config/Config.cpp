//===- Config.cpp - flags from environment and JSON -------------*- C++ -*-===//
//
// Sets options of a parsed CLI11 command that the command line did not set.
//
//===----------------------------------------------------------------------===//

#include <vector>

#include "Choices.h"
#include "Config.h"
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

using namespace lowtide::config;

static constexpr size_t maxConfigBytes = 1 << 20;

Config::Config(CLI::App &command, Sections sections) : command(command), sections(std::move(sections)) {
  for (const CLI::Option *option : command.get_options())
    if (option->count() > 0)
      origins[option->get_single_name()] = "command line";
}

bool Config::set(CLI::Option &option, const std::vector<std::string> &values, const std::string &origin,
                 std::string &error) {
  if (origins.count(option.get_single_name()))
    return true; // an earlier source has set it
  try {
    for (const std::string &value : values)
      option.add_result(value);
    option.run_callback();
  } catch (const CLI::Error &e) {
    error = origin + ": " + e.what();
    return false;
  }
  origins[option.get_single_name()] = origin;
  return true;
}

bool Config::applyEnvironment(std::string &error) {
  for (CLI::Option *option : command.get_options()) {
    if (option->get_lnames().empty())
      continue;
    std::string variable = "LOWTIDE_";
    for (char c : option->get_lnames()[0])
      variable += c == '-' ? '_' : static_cast<char>(std::toupper(c));
    if (const char *value = std::getenv(variable.c_str()))
      if (!set(*option, {value}, variable, error))
        return false;
  }
  return true;
}

size_t lowtide::config::editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t next = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = row[j];
      row[j] = next;
    }
  }
  return row[b.size()];
}

static unsigned jsonDepth(const std::string &text) {
  unsigned depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted && (text[i] == '[' || text[i] == '{'))
      deepest = std::max(deepest, ++depth);
    else if (!quoted && (text[i] == ']' || text[i] == '}') && depth > 0)
      --depth;
  }
  return deepest;
}

/// A name in the grammar of --loss: in quotes, whatever it holds.
static std::string quoted(const std::string &name) {
  std::string text = "'";
  for (char c : name)
    text += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
  return text + "'";
}

/// "cross_entropy('logits', 'labels', reduction='sum')" from {"kind": "cross_entropy", "logits": "logits", "labels":
/// "labels", "reduction": "sum"}; what is missing is an error of the grammar.
static std::string lossText(const nlohmann::json &loss) {
  const std::vector<std::vector<std::string>> operands = {
      {"logits", "probabilities", "log_probabilities", "predictions", "output"}, {"labels", "targets", "target"}};
  std::set<std::string> known = {"kind"};
  std::string text = loss.contains("kind") && loss["kind"].is_string() ? loss["kind"].get<std::string>() : "";
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string name;
    for (const std::string &key : operands[i])
      if (name.empty() && loss.contains(key) && loss[key].is_string() && known.insert(key).second)
        name = quoted(loss[key].get<std::string>());
    text += (i == 0 ? "(" : ", ") + name;
  }
  for (auto &[key, value] : loss.items())
    if (!known.count(key))
      text += ", " + key + "=" + (value.is_string() ? quoted(value.get<std::string>()) : value.dump());
  return text + ")";
}

/// Values of a flag: a list's items, an object's pairs as NAME=VALUE, or the one value.
static std::vector<std::string> flagValues(const nlohmann::json &value) {
  auto text = [](const nlohmann::json &item) { return item.is_string() ? item.get<std::string>() : item.dump(); };
  std::vector<std::string> values;
  if (value.is_object())
    for (auto &[name, item] : value.items())
      values.push_back(name + "=" + text(item));
  else if (value.is_array())
    for (const auto &item : value)
      values.push_back(text(item));
  else
    values.push_back(text(value));
  return values;
}

/// Flags that are written as lists but are one value: betas = [0.9, 0.95].
static std::vector<std::string> joined(std::vector<std::string> values) {
  std::string text;
  for (const std::string &value : values)
    text += (text.empty() ? "" : ",") + value;
  return {text};
}

bool Config::applyEntry(const std::string &key, const nlohmann::json &value, const std::string &path,
                        std::string &error) {
  std::string flag = key;
  std::replace(flag.begin(), flag.end(), '_', '-');
  if (value.is_object() && sections.others.count(flag))
    return true;
  // Sections group flags: {"optimizer": {"kind": "adamw", "lr": 3e-4}} is --optimizer=adamw --lr=3e-4.
  if (value.is_object() && sections.own.count(flag)) {
    if (flag == "loss")
      return applyEntry("loss", lossText(value), path, error);
    for (auto &[inner, item] : value.items())
      if (!applyEntry(inner == "kind" ? flag : flag + "." + inner, item, path + ", section '" + key + "'", error))
        return false;
    return true;
  }
  if (value == "auto")
    return true;
  if (auto other = sections.flags.find(flag); other != sections.flags.end())
    flag = other->second;
  else if (size_t dot = flag.find('.'); dot != std::string::npos)
    flag = flag.substr(dot + 1);
  CLI::Option *option = command.get_option_no_throw("--" + flag);
  if (!option)
    option = command.get_option_no_throw(flag); // a positional argument
  if (!option) {
    const std::string written = key.substr(key.find('.') + 1);
    if (sections.ignoresOtherKeys && key == written)
      return true;
    std::vector<std::string> known;
    for (const CLI::Option *candidate : command.get_options())
      for (const std::string &name : candidate->get_lnames())
        known.push_back(name);
    error = path + ": unknown key '" + written + "'" + suggest(flag, known);
    return false;
  }
  std::vector<std::string> values = flagValues(value);
  return set(*option, isList(*option) ? values : joined(values), path, error);
}

bool Config::applyFile(const std::string &path, std::string &error) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file.good() && text.empty()) {
    error = "cannot read configuration file '" + path + "'";
    return false;
  }
  if (text.size() > maxConfigBytes || jsonDepth(text) > 64) {
    error = "configuration file '" + path + "' is over 1 MiB or nested deeper than 64";
    return false;
  }
  auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  if (!json.is_object()) {
    error = "configuration file '" + path + "' is not a JSON object";
    return false;
  }
  for (auto &[key, value] : json.items())
    if (key != "$schema" && !applyEntry(key, value, path, error))
      return false;
  return true;
}

std::string Config::findOrigin(const std::string &flag) const {
  auto origin = origins.find(flag);
  return origin == origins.end() ? "" : origin->second;
}

void Config::print(std::ostream &out) const {
  for (const CLI::Option *option : command.get_options()) {
    if (option->get_lnames().empty() || option->get_lnames()[0] == "help" ||
        option->get_lnames()[0].rfind("print-", 0) == 0)
      continue;
    std::string value;
    for (const std::string &item : option->results())
      value += (value.empty() ? "" : ",") + item;
    if (value.empty())
      value = option->get_default_str();
    const std::string origin = findOrigin(option->get_single_name());
    out << option->get_lnames()[0] << " = " << (value.empty() ? "(unset)" : value) << "    # "
        << (origin.empty() ? "default" : origin) << "\n";
  }
}
