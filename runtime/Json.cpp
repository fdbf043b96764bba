//===- Json.cpp - JSON from files that anyone may have written -------------===//

#include "runtime/Json.h"
#include "runtime/JsonText.h"

namespace lowtide::rt {

Status checkJsonText(std::string_view text) {
  constexpr size_t maxBytes = 100'000'000;
  constexpr int maxDepth = 64;
  if (text.size() > maxBytes)
    return badInput("JSON of " + std::to_string(text.size()) + " bytes; at most 100 MB are accepted");
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > maxDepth)
        return badInput("JSON nested deeper than 64");
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return Status::ok();
}

Expected<nlohmann::json> parseJson(std::string_view text) {
  if (Status status = checkJsonText(text); !status.isOk())
    return status;
  nlohmann::json value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded())
    return badInput("not valid JSON");
  return value;
}

} // namespace lowtide::rt
