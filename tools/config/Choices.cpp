//===- Choices.cpp - words that a flag takes --------------------*- C++ -*-===//

#include "Choices.h"
#include "Config.h"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>

using namespace lowtide;

static std::string plain(std::string word) {
  word.erase(0, word.find_first_not_of('-') == std::string::npos ? 0 : word.find_first_not_of('-'));
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word;
}

std::string config::suggest(const std::string &word, const std::vector<std::string> &known) {
  const std::string wanted = plain(word);
  std::string nearest;
  // What was begun is meant before what looks like it: 'a100' is a100-40gb rather than a10.
  for (const std::string &name : known)
    if (nearest.empty() && wanted.size() > 2 && plain(name).rfind(wanted + "-", 0) == 0)
      nearest = name;
  if (!nearest.empty())
    return "; did you mean '" + nearest + "'?";
  // Of few letters few may differ: '--steps' is no '--eps'.
  size_t best = SIZE_MAX;
  for (const std::string &name : known) {
    const size_t most = std::max<size_t>(1, (std::min(wanted.size(), plain(name).size()) + 1) / 3);
    if (size_t distance = editDistance(wanted, plain(name)); distance < best && distance <= most)
      best = distance, nearest = name;
  }
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

CLI::Validator config::choice(std::vector<std::string> values) {
  std::string list;
  for (const std::string &value : values)
    list += (list.empty() ? "" : ",") + value;
  return CLI::Validator(
      [values = std::move(values)](std::string &text) {
        if (std::find(values.begin(), values.end(), text) != values.end())
          return std::string();
        std::string known;
        for (const std::string &value : values)
          known += (known.empty() ? "" : ", ") + value;
        return "'" + text + "' is none of " + known + suggest(text, values);
      },
      "{" + list + "}");
}

CLI::Option *config::addList(CLI::App &command, const std::string &flag, std::vector<std::string> &texts,
                             const std::string &help) {
  // One text a time: what stands after it is the next argument, and brackets in it are its own.
  return command.add_option(flag, texts, help)->expected(1)->take_all()->allow_extra_args(false);
}

bool config::isList(const CLI::Option &option) {
  return option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
}
