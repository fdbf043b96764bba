//===- ExportNames.h - what goes back into a model file ---------*- C++ -*-===//
//
// Names of the entries that compute the file's images of parameters, which the runtime knows, too.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide-rt/ExportNames.h"
