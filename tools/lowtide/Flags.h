//===- Flags.h - the flags of compile, check, fit and verify ----*- C++ -*-===//
//
// What the command line can set; the configuration file and LOWTIDE_* variables set the same.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Options.h"

namespace CLI {
class App;
} // namespace CLI

namespace lowtide::driver {

/// Flags of a command that reads a model; `logLevels` is what --log says.
void addModelCommandFlags(CLI::App &command, Options &options, std::string &logLevels);
/// Those of `lowtide compile` alone.
void addCompileFlags(CLI::App &compile, Options &options);
/// Those of `lowtide fit` alone.
void addFitFlags(CLI::App &fit, Options &options);
/// Those of `lowtide verify` alone.
void addVerifyFlags(CLI::App &verify, Options &options);

/// The short help: of the program, or of one of its commands. Null where a command has no page of its own.
const char *findHelpPage(const std::string &command);

} // namespace lowtide::driver
