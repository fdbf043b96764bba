//===- OpInterfaces.cpp - what a pass may ask an op -------------*- C++ -*-===//
//
// Definitions that TableGen generates for the interfaces.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Interfaces/OpInterfaces.h"
#include "lowtide/Interfaces/BindingInterface.h"
#include "lowtide/Interfaces/MeetingInterface.h"

#include "lowtide/Interfaces/BindingInterface.cpp.inc"
#include "lowtide/Interfaces/MeetingInterface.cpp.inc"
#include "lowtide/Interfaces/OpInterfaces.cpp.inc"
