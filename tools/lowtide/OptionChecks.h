//===- OptionChecks.h - options that do not go together ---------*- C++ -*-===//
//
// What no single flag's check can see: that another one takes its effect away.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Config.h"
#include "Options.h"
#include "llvm/ADT/StringRef.h"

namespace lowtide::driver {

/// Whether every option that was given, wherever, can have an effect; prints an error if not.
bool checkTogether(const Options &options, const config::Config &config);

/// Notes whether `lowtide fit` is asked of one budget.
void noteFitQuestion(Options &options, const config::Config &config);

/// Notes which flags say what the forward pass is, how parameters are updated and at which rate: a model file may hold
/// that already.
void noteModelFlags(Options &options, const config::Config &config);

} // namespace lowtide::driver
