//===- CommandLine.h - reads the arguments of a tool ------------*- C++ -*-===//
//
// What CLI11 reads without a word, or refuses in words of its own: flags without a value, unknown flags and commands.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace CLI {
class App;
} // namespace CLI

namespace lowtide::config {

/// Reads the arguments into the options of `app` and of its commands. Throws CLI::ParseError in words for a user:
/// unknown flags and commands with the nearest known one, "--save=" and a flag at the end for want of their value, a
/// switch that is given what is neither true nor false. Help and version are CLI11's own exceptions.
void parse(CLI::App &app, int argc, const char *const *argv);

} // namespace lowtide::config
