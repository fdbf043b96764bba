//===- JsonText.h - what is looked at before JSON is parsed ----------------===//
#ifndef LOWTIDE_RUNTIME_JSONTEXT_H
#define LOWTIDE_RUNTIME_JSONTEXT_H

#include "runtime/Status.h"

#include <string_view>

namespace lowtide::rt {

/// Refuses text over 100 MB and text nested deeper than 64, which would exhaust a recursive parser.
Status checkJsonText(std::string_view text);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_JSONTEXT_H
