//===- CallAttributes.h - the attributes of library calls, read and checked ===//
//
// One reading of Call.attributes for everybody: verifier, workspace query, executor. The attributes are described in
// docs/artifact.md.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CALLS_CALLATTRIBUTES_H
#define LOWTIDE_RUNTIME_CALLS_CALLATTRIBUTES_H

#include "plan.pb.h"
#include "runtime/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lowtide::rt {

/// Whether a call with this operand type goes through conversions to f32.
inline bool isNarrow(plan::DType dtype) { return dtype == plan::F16 || dtype == plan::BF16; }

/// Larger counts are refused everywhere, so that sums and products of a few of them cannot wrap afterwards.
inline constexpr int64_t maxCount = int64_t(1) << 40;

/// A call that is wrong.
inline Status refuseCall(std::string message) { return {StatusCode::VerifyFailed, std::move(message)}; }

/// The attributes of a call by name; remembers which were asked for, so that unknown ones can be refused. A value that
/// is absent leaves what it was given, unless it is required.
class CallAttributes {
public:
  explicit CallAttributes(const plan::Call &call);

  bool has(const char *name) const;
  /// From `low` to `maxCount`.
  Status integer(const char *name, int64_t &value, int64_t low, bool required);
  Status flag(const char *name, bool &value);
  Status real(const char *name, double &value);
  Status text(const char *name, std::string &value);
  /// At most 16 numbers, each from `low` to `maxCount`.
  Status list(const char *name, std::vector<int64_t> &values, int64_t low, bool required);
  /// Of operands, f32 where it is not stated, and of results: theirs, or f32 for 16-bit operands.
  Status dtypes(plan::DType &operands, plan::DType &result);
  Status allUsed() const;

private:
  const plan::Attribute *find(const char *name);

  const plan::Call &call_;
  std::vector<bool> used_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CALLS_CALLATTRIBUTES_H
