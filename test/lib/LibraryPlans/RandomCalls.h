//===- RandomCalls.h - calls of libraries as no model has them -------------===//
#ifndef LOWTIDE_TEST_LIB_LIBRARYPLANS_RANDOMCALLS_H
#define LOWTIDE_TEST_LIB_LIBRARYPLANS_RANDOMCALLS_H

#include "plan.pb.h"

#include <cstdint>

namespace lowtide::test {

/// A convolution or an attention, forward or a derivative, of sizes around every limit of the library table
/// (LibraryTable.h), on both sides of it. It can be read (calls/CallKind.h), and has neither operands nor results. The
/// same `seed`, the same call.
plan::Call randomCall(uint64_t seed);

} // namespace lowtide::test

#endif // LOWTIDE_TEST_LIB_LIBRARYPLANS_RANDOMCALLS_H
