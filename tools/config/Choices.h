//===- Choices.h - words that a flag takes ----------------------*- C++ -*-===//
//
// What a flag can be set to, and which word was meant by another.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
} // namespace CLI

namespace lowtide::config {

/// "; did you mean 'adamw'?" with the nearest of `known`, empty where none is near; capitals and dashes in front do not
/// count.
std::string suggest(const std::string &word, const std::vector<std::string> &known);

/// One of `values`; the message names the one that was meant.
CLI::Validator choice(std::vector<std::string> values);

/// A flag that takes lists: each time it is given, one text; the texts are taken apart by whoever reads them.
CLI::Option *addList(CLI::App &command, const std::string &flag, std::vector<std::string> &texts,
                     const std::string &help);
/// Whether a flag was made by `addList`.
bool isList(const CLI::Option &option);

} // namespace lowtide::config
