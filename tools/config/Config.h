//===- Config.h - flags from environment and JSON ---------------*- C++ -*-===//
//
// Fills flags that the command line left open, from LOWTIDE_* variables and a JSON file, and remembers the origin.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <iosfwd>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace lowtide::config {

/// Levenshtein distance, for "did you mean".
size_t editDistance(const std::string &a, const std::string &b);

/// One file serves compiler and runtime: which of its sections a tool reads, which are other tools', and the flags of
/// keys that have another name ("checkpoint.dir" → "save"). A key without a section is the flag of that name.
struct Sections {
  std::set<std::string> own, others;
  std::map<std::string, std::string> flags;
  /// Whether keys without a section belong to another tool when they are no flag of this one.
  bool ignoresOtherKeys = false;
};

/// Sees a parsed command; earlier sources win over later ones.
class Config {
public:
  Config(CLI::App &command, Sections sections);

  /// LOWTIDE_WEIGHT_DECAY=0.1 sets --weight-decay. Unknown LOWTIDE_* names are left alone: other tools have theirs.
  bool applyEnvironment(std::string &error);
  /// JSON object with flag names as keys, alone or grouped in sections (`//` comments allowed). Unknown keys are errors
  /// with the nearest name; "auto" leaves a flag at its default.
  bool applyFile(const std::string &path, std::string &error);
  /// Where the value of a flag came from ("command line", a variable's name, a file's); empty: it has its default.
  std::string findOrigin(const std::string &flag) const;
  /// The merged result, a key per line, with the origin of each value.
  void print(std::ostream &out) const;
  /// JSON schema of the file that applyFile reads; `title` names the tool.
  void printSchema(std::ostream &out, const std::string &title) const;

private:
  bool applyEntry(const std::string &key, const nlohmann::json &value, const std::string &path, std::string &error);
  bool set(CLI::Option &option, const std::vector<std::string> &values, const std::string &origin, std::string &error);

  CLI::App &command;
  const Sections sections;
  std::map<std::string, std::string> origins; // key → where its value came from
};

} // namespace lowtide::config
