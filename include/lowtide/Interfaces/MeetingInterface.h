//===- MeetingInterface.h - scatters that do more than add ------*- C++ -*-===//
//
// Asked by what generates code for scatters, after ScatterInterface.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/OpInterfaces.h"

#include "lowtide/Interfaces/MeetingInterface.h.inc"
