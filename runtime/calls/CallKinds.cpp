//===- CallKinds.cpp - the table of library calls -------------------------===//
//
// Names, reading and what depends on nothing but the kind.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/CallAttributes.h"
#include "runtime/calls/CallKind.h"

#include <algorithm>
#include <string>
#include <vector>

namespace lowtide::rt {

// Each folder defines one: `CallKind getGemmKind()`.
#define LOWTIDE_CALL_KIND(kind) CallKind get##kind##Kind();
#include "CallKinds.inc"
#undef LOWTIDE_CALL_KIND

std::span<const CallKind> callKinds() {
  static const std::vector<CallKind> kinds = {
#define LOWTIDE_CALL_KIND(kind) get##kind##Kind(),
#include "CallKinds.inc"
#undef LOWTIDE_CALL_KIND
  };
  return kinds;
}

Expected<std::unique_ptr<ReadCall>> readCall(const plan::Call &call) {
  for (const CallKind &kind : callKinds())
    if (std::find(kind.callees.begin(), kind.callees.end(), call.callee()) != kind.callees.end())
      return kind.read(call);
  std::string known;
  for (const CallKind &kind : callKinds())
    for (std::string_view callee : kind.callees)
      known += (known.empty() ? "" : ", ") + std::string(callee);
  return refuseCall("no library has a call '" + printable(call.callee()) + "'; there are " + known);
}

int overwritableRead(const plan::Call &call) {
  Expected<std::unique_ptr<ReadCall>> read = readCall(call);
  return read ? (*read)->overwritableRead() : -1;
}

} // namespace lowtide::rt
