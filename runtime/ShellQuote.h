//===- ShellQuote.h - arguments of commands that a message advises --*- C++ -*-===//
//
// Advice is typed, or pasted: names of files, arrays and layers hold blanks, brackets and quotes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>

namespace lowtide::rt {

/// An argument as a shell takes it: in quotes unless every character is plain.
inline std::string quoteForShell(std::string_view argument) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+";
  if (!argument.empty() && argument.find_first_not_of(plain) == std::string_view::npos)
    return std::string(argument);
  std::string quoted = "'";
  for (char c : argument)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

} // namespace lowtide::rt
