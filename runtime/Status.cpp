//===- Status.cpp - printing of names that come from files -----------------===//

#include "runtime/Status.h"

#include <cstdio>

std::string lowtide::rt::printable(std::string_view name) {
  constexpr size_t limit = 128;
  std::string text;
  for (unsigned char c : name.substr(0, limit)) {
    if (c >= 0x20 && c != 0x7f) {
      text += static_cast<char>(c);
      continue;
    }
    char escaped[5];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", c);
    text += escaped;
  }
  if (name.size() > limit)
    text += "…";
  return text;
}
