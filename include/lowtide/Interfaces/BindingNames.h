//===- BindingNames.h - what bindings are called ----------------*- C++ -*-===//
//
// The attribute that holds a binding, and the names that the runtime knows: step scalars and gradients.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide-rt/StepNames.h"
#include "llvm/ADT/StringRef.h"

namespace lowtide {

/// Name of the argument and result attribute that holds a binding.
inline constexpr llvm::StringLiteral bindingAttrName = "train.binding";

} // namespace lowtide
