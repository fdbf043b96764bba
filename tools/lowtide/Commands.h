//===- Commands.h - the commands that compile -------------------*- C++ -*-===//
//
// From options to a request, and from what the compiler returns to a file, a line and an exit code.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Options.h"

namespace lowtide::driver {

/// `lowtide compile`: writes what --emit asks for. Returns an exit code.
int compileModel(const Options &options);
/// The artifact of `options`, of which nothing is said that is no error or warning. Returns an exit code.
int compileQuietly(const Options &options);
/// `lowtide check`. Returns an exit code.
int checkModel(const Options &options);
/// `lowtide fit`. Returns an exit code: 4 where the step does not fit what was asked for.
int fitModel(const Options &options);

} // namespace lowtide::driver
