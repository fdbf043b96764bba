//===- Json.h - JSON from files that anyone may have written ---------------===//
#ifndef LOWTIDE_RUNTIME_JSON_H
#define LOWTIDE_RUNTIME_JSON_H

#include "runtime/Status.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace lowtide::rt {

/// Parses JSON of at most 100 MB and depth 64; the depth is looked at before the recursive parser sees the bytes.
Expected<nlohmann::json> parseJson(std::string_view text);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_JSON_H
