//===- Methods.h - the methods that look for plans --------------*- C++ -*-===//
//
// The rows of the portfolio by name, as --without-methods knows them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string_view>
#include <vector>

namespace lowtide::solve {

/// What a method is called, and what it does, in a few words.
struct MethodName {
  std::string_view name, summary;
};

/// All methods, in the order in which they are asked.
std::vector<MethodName> listMethods();

} // namespace lowtide::solve
