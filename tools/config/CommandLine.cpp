//===- CommandLine.cpp - reads the arguments of a tool ----------*- C++ -*-===//

#include "CommandLine.h"
#include "Choices.h"
#include <CLI/CLI.hpp>
#include <map>

using namespace lowtide;

namespace {

bool isLongFlag(const std::string &argument) { return argument.size() > 2 && argument.rfind("--", 0) == 0; }

/// The app, and the command that the arguments name.
std::vector<const CLI::App *> listCommands(const CLI::App &app, int argc, const char *const *argv) {
  std::vector<const CLI::App *> commands = {&app};
  for (int i = 1; i < argc && commands.size() == 1; ++i)
    for (const CLI::App *command : app.get_subcommands({}))
      if (command->check_name(argv[i]))
        commands.push_back(command);
  return commands;
}

/// Of every flag that takes no value: refuses what is neither true nor false. CLI11 throws what is no error of its own.
void checkSwitches(CLI::App &command) {
  const CLI::Validator isSwitch(
      [](std::string &text) {
        for (const char *word : {"true", "on", "yes", "1", "false", "off", "no", "0"})
          if (text == word)
            return std::string();
        return "must be true or false, not '" + text + "'";
      },
      "");
  for (CLI::Option *option : command.get_options()) {
    // A flag whose value may be left out takes another one.
    const bool takesNone = option->get_items_expected_max() == 0 && !option->get_lnames().empty();
    if (takesNone && option->get_flag_value(option->get_lnames()[0], "") == "true")
      option->check(isSwitch);
  }
}

/// Refuses flags without their value, and second values of what takes one: CLI11 takes the argument after "--save=" for
/// its value, another flag even, and counts in place of saying what was given.
void checkValues(const CLI::App &app, int argc, const char *const *argv) {
  const auto commands = listCommands(app, argc, argv);
  auto find = [&](const std::string &flag) -> const CLI::Option * {
    for (const CLI::App *command : commands)
      if (const CLI::Option *option = command->get_option_no_throw(flag))
        return option;
    return nullptr;
  };
  std::map<const CLI::Option *, std::string> given;
  for (int i = 1; i < argc && std::string(argv[i]) != "--"; ++i) {
    const std::string argument = argv[i], flag = argument.substr(0, argument.find('='));
    const CLI::Option *option = argument.rfind("-", 0) == 0 ? find(flag) : nullptr;
    if (!option || option->get_items_expected_min() == 0)
      continue;
    const bool isEmpty = flag.size() + 1 == argument.size();
    const bool isAlone = flag == argument && (i + 1 == argc || isLongFlag(argv[i + 1]));
    if (isEmpty || isAlone)
      throw CLI::ParseError(argument + " has no value: write " + flag + (isLongFlag(flag) ? "=" : " ") +
                                "VALUE, or leave the flag out",
                            CLI::ExitCodes::ArgumentMismatch);
    i += flag == argument; // what follows is its value
    const std::string value = flag == argument ? argv[i] : argument.substr(flag.size() + 1);
    auto [first, isFirst] = given.emplace(option, value);
    if (!isFirst && option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw)
      throw CLI::ParseError(flag + " is given twice, as '" + first->second + "' and as '" + value + "': leave one out",
                            CLI::ExitCodes::ArgumentMismatch);
  }
}

/// The first argument that no flag and no command takes.
std::string describeExtras(const CLI::App &app) {
  const std::string whole = app.remaining(/*recurse=*/true).front(), word = whole.substr(0, whole.find('='));
  const auto commands = app.get_subcommands({});
  const auto named = app.get_subcommands();
  const bool isFlag = word.rfind("-", 0) == 0, isCommand = !isFlag && named.empty() && !commands.empty();
  std::vector<std::string> known;
  if (isCommand)
    for (const CLI::App *command : commands)
      known.push_back(command->get_name());
  if (isFlag)
    for (const CLI::Option *option : (named.empty() ? &app : named.front())->get_options())
      for (const std::string &name : option->get_lnames())
        known.push_back("--" + name);
  if (isFlag || isCommand)
    return (isFlag ? "unknown flag '" : "unknown command '") + word + "'" + config::suggest(word, known);
  return "too many arguments: '" + whole + "'" +
         (whole.find('=') == std::string::npos ? "" : "; a list is one argument, as in --dim batch=8,time=64");
}

} // namespace

void config::parse(CLI::App &app, int argc, const char *const *argv) {
  checkSwitches(app);
  for (CLI::App *command : app.get_subcommands({}))
    checkSwitches(*command);
  checkValues(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError &) {
    throw CLI::ParseError(describeExtras(app), CLI::ExitCodes::ExtrasError);
  }
}
