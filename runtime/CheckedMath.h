//===- CheckedMath.h - byte and element arithmetic that cannot wrap --------===//
//
// Every size that comes from a file goes through these; a wrap is an answer, not an accident.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CHECKEDMATH_H
#define LOWTIDE_RUNTIME_CHECKEDMATH_H

#include <cstdint>
#include <optional>

namespace lowtide::rt {

/// An unsigned 64-bit count that remembers whether any step on the way to it wrapped.
class Checked {
public:
  constexpr Checked(uint64_t value = 0) : value_(value) {}
  /// Negative numbers count as a wrap.
  static constexpr Checked fromSigned(int64_t value) {
    Checked result(static_cast<uint64_t>(value));
    result.wrapped_ = value < 0;
    return result;
  }

  friend constexpr Checked operator+(Checked a, Checked b) {
    Checked r;
    r.wrapped_ = __builtin_add_overflow(a.value_, b.value_, &r.value_) | a.wrapped_ | b.wrapped_;
    return r;
  }
  friend constexpr Checked operator*(Checked a, Checked b) {
    Checked r;
    r.wrapped_ = __builtin_mul_overflow(a.value_, b.value_, &r.value_) | a.wrapped_ | b.wrapped_;
    return r;
  }
  Checked &operator+=(Checked b) { return *this = *this + b; }
  Checked &operator*=(Checked b) { return *this = *this * b; }

  /// The number, or nothing if it does not fit below 2^63.
  constexpr std::optional<uint64_t> get() const {
    if (wrapped_ || value_ >> 63)
      return std::nullopt;
    return value_;
  }
  /// True when the number is known and at most `limit`.
  constexpr bool atMost(uint64_t limit) const { return !wrapped_ && value_ <= limit; }

private:
  uint64_t value_ = 0;
  bool wrapped_ = false;
};

/// `value` rounded up to a multiple of `alignment` (a power of two); the caller knows that it does not wrap.
constexpr uint64_t alignUp(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

constexpr bool isPowerOfTwo(uint64_t value) { return value && !(value & (value - 1)); }

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKEDMATH_H
