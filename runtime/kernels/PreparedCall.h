//===- PreparedCall.h - a library call, ready to be executed by tasks ------===//
#ifndef LOWTIDE_RUNTIME_KERNELS_PREPAREDCALL_H
#define LOWTIDE_RUNTIME_KERNELS_PREPAREDCALL_H

#include "plan.pb.h"
#include "runtime/Status.h"

#include <cstdint>
#include <memory>
#include <span>

namespace lowtide::rt {

/// Addresses of a call's operands.
struct CallOperands {
  std::span<const void *const> reads;
  std::span<void *const> writes;
  void *workspace = nullptr;
};

/// A call with addresses filled in. It runs in phases, one after the other; the tasks of a phase are independent of
/// each other and may run on any thread in any order. Their number and work depend on the shape alone. `run` allocates
/// nothing.
class PreparedCall {
public:
  virtual ~PreparedCall() = default;
  virtual int phases() const { return 1; }
  virtual int64_t tasks(int phase) const = 0;
  virtual void run(int phase, int64_t task) const noexcept = 0;
};

/// Prepares a call that the verifier has accepted.
Expected<std::unique_ptr<PreparedCall>> prepareCall(const plan::Call &call, const CallOperands &operands);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_KERNELS_PREPAREDCALL_H
