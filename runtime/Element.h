//===- Element.h - single elements of any type -----------------------------===//
#ifndef LOWTIDE_RUNTIME_ELEMENT_H
#define LOWTIDE_RUNTIME_ELEMENT_H

#include "plan.pb.h"
#include "runtime/Verify.h"

#include <cstdint>

namespace lowtide::rt {

/// One element as a double; bf16 and f16 are widened, integers converted.
double loadElement(plan::DType dtype, const void *from);
/// A double as one element; rounded to nearest even.
void storeElement(plan::DType dtype, void *to, double value);
/// An integer as one element; exact for integer types.
void storeInteger(plan::DType dtype, void *to, int64_t value);
/// Sets all elements of `bytes` bytes.
void fillElements(plan::DType dtype, void *to, uint64_t bytes, double value);

/// "F32", "I64", …: the spelling of safetensors.
const char *dtypeName(plan::DType dtype);
plan::DType dtypeFromName(std::string_view name);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_ELEMENT_H
