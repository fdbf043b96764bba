//===- ConfigSchema.cpp - a JSON schema out of flags ------------*- C++ -*-===//
//
// What editors check a configuration file against while it is written; the tools themselves read it by their flags.
//
//===----------------------------------------------------------------------===//

#include <vector>

#include "Choices.h"
#include "Config.h"
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

using namespace lowtide;
using namespace lowtide::config;
using Json = nlohmann::ordered_json;

/// The values that a flag lists ("TEXT:{train,eval}"); empty: any.
static std::vector<std::string> choicesOf(const CLI::Option &option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos)
    return choices;
  std::string word;
  for (size_t i = open + 1; i <= close; ++i)
    if (type[i] == ',' || i == close)
      choices.push_back(std::move(word)), word.clear();
    else
      word += type[i];
  return choices;
}

/// A value of a flag, written as a number where it is one.
static Json typedDefault(const CLI::Option &option) {
  Json value = Json::parse(option.get_default_str(), nullptr, /*allow_exceptions=*/false);
  return value.is_number() ? value : Json(option.get_default_str());
}

static Json describe(const CLI::Option &option) {
  Json schema;
  schema["description"] = option.get_description();
  const bool isList = config::isList(option);
  if (option.get_items_expected_max() == 0) {
    std::vector<std::string> words = choicesOf(option);
    if (words.empty())
      schema["type"] = "boolean";
    else
      schema["enum"] = words;
    return schema;
  }
  if (!option.get_default_str().empty() && !isList)
    schema["default"] = typedDefault(option);
  std::vector<std::string> choices = choicesOf(option);
  if (!choices.empty() && !isList) {
    choices.push_back("auto");
    schema["enum"] = choices;
  } else if (isList) {
    // {"batch": 8} and ["batch=8"] say the same.
    schema["type"] = {"array", "object", "string"};
  } else {
    schema["type"] = {"number", "string", "array"};
  }
  return schema;
}

static std::string keyOf(std::string flag) {
  std::replace(flag.begin(), flag.end(), '-', '_');
  return flag;
}

void Config::printSchema(std::ostream &out, const std::string &title) const {
  Json flags = Json::object();
  for (const CLI::Option *option : command.get_options())
    for (const std::string &name : option->get_lnames())
      if (name != "help" && name != "help-all" && name != "config" && name.rfind("print-", 0) != 0)
        flags[keyOf(name)] = describe(*option);
  Json properties = {{"$schema", {{"type", "string"}}}};
  properties.update(flags);
  for (const std::string &section : sections.own) {
    // A section may hold every flag, and keys that have another name there.
    Json inside = flags;
    inside["kind"] = {{"type", "string"}};
    for (const auto &[key, flag] : sections.flags)
      if (key.rfind(section + ".", 0) == 0)
        inside[key.substr(section.size() + 1)] =
            flags.contains(keyOf(flag)) ? flags[keyOf(flag)] : Json{{"type", "string"}};
    Json object = {{"type", "object"}, {"properties", inside}};
    // "loss": {"kind": "mse", "output": …, "target": …} is one flag; its parts have names of their own.
    // Elsewhere an unknown key may only ask for nothing.
    object["additionalProperties"] = section == "loss" ? Json(true) : Json{{"const", "auto"}};
    const std::string key = keyOf(section);
    properties[key] = properties.contains(key) ? Json{{"anyOf", {properties[key], object}}} : object;
  }
  for (const std::string &section : sections.others) {
    const Json object = {{"type", "object"}, {"description", "read by the runtime"}};
    const std::string key = keyOf(section);
    properties[key] = properties.contains(key) ? Json{{"anyOf", {properties[key], object}}} : object;
  }
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", title},
                 {"type", "object"},
                 {"additionalProperties", false},
                 {"properties", properties}};
  out << schema.dump(2) << "\n";
}
