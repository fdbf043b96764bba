//===- PlanFuzz.cpp - the verifier against hostile plans -------------------===//
//
// The bytes are a `plan` section whose digest was right: the parser and the verifier stand alone against it.
//
//===----------------------------------------------------------------------===//
#include "runtime/Artifact.h"
#include "runtime/Verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto plan = lowtide::rt::parsePlan({reinterpret_cast<const char *>(data), size});
  if (!plan)
    return 0;
  lowtide::rt::VerifyReport report;
  (void)lowtide::rt::verifyPlan(*plan, &report).isOk();
  return 0;
}
