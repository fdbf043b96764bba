//===- Status.h - how every failure of the runtime is told ----------------===//
//
// A failure is a value: what kind, what was found, and where. Nothing throws across an interface of the runtime.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_STATUS_H
#define LOWTIDE_RUNTIME_STATUS_H

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lowtide::rt {

/// What kind of failure; the numbers are the exit codes of the tools.
enum class StatusCode : int {
  Ok = 0,
  Usage = 1,        ///< the caller asked for something that makes no sense
  BadInput = 2,     ///< a file is damaged or not what it should be
  Unsupported = 3,  ///< understood, but not offered (a newer format, another machine)
  OverBudget = 4,   ///< does not fit the memory
  VerifyFailed = 5, ///< the plan cannot be proved
  Device = 6,       ///< the machine or a library failed
  NonFinite = 7,    ///< the loss, or what was trained, is not finite
  Io = 8,           ///< reading or writing a file failed
  LossMismatch = 9, ///< losses left the recorded run, or a step differs from its module
  Internal = 70     ///< a broken promise of our own
};

/// Result of an operation without a value: a code, a message in words, and the place it speaks of (file, entry,
/// instruction; may be empty).
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message, std::string where = {})
      : code_(code), message_(std::move(message)), where_(std::move(where)) {}

  static Status ok() { return {}; }
  bool isOk() const { return code_ == StatusCode::Ok; }
  StatusCode code() const { return code_; }
  const std::string &message() const { return message_; }
  const std::string &where() const { return where_; }

  /// The same failure, seen from further out: `place` is put in front of `where`.
  Status at(const std::string &place) && {
    if (!isOk())
      where_ = where_.empty() ? place : place + ": " + where_;
    return std::move(*this);
  }

  /// `where: message`, or `message` alone.
  std::string str() const { return where_.empty() ? message_ : where_ + ": " + message_; }

private:
  StatusCode code_ = StatusCode::Ok;
  std::string message_;
  std::string where_;
};

/// A value, or the status that says why there is none.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : value_(std::move(value)) {}
  Expected(Status status) : status_(std::move(status)) { assert(!status_.isOk() && "an error needs a reason"); }

  explicit operator bool() const { return value_.has_value(); }
  T &operator*() { return *value_; }
  const T &operator*() const { return *value_; }
  T *operator->() { return &*value_; }
  const T *operator->() const { return &*value_; }
  const Status &status() const { return status_; }
  Status &&takeStatus() { return std::move(status_); }

private:
  std::optional<T> value_;
  Status status_;
};

inline Status badInput(std::string message, std::string where = {}) {
  return {StatusCode::BadInput, std::move(message), std::move(where)};
}
inline Status ioError(std::string message, std::string where = {}) {
  return {StatusCode::Io, std::move(message), std::move(where)};
}

/// `name` with control characters escaped and cut at 128 bytes: names come from files that anyone may have written.
std::string printable(std::string_view name);

} // namespace lowtide::rt

/// Returns from the enclosing function when `expression` (a Status) is a failure.
#define LOWTIDE_TRY(expression)                                                                                        \
  do {                                                                                                                 \
    if (::lowtide::rt::Status status__ = (expression); !status__.isOk())                                               \
      return status__;                                                                                                 \
  } while (false)

#endif // LOWTIDE_RUNTIME_STATUS_H
