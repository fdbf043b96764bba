//===- Conversion.h - numbers as files have them, as steps read them -------===//
#ifndef LOWTIDE_RUNTIME_DATA_CONVERSION_H
#define LOWTIDE_RUNTIME_DATA_CONVERSION_H

#include "plan.pb.h"
#include "runtime/Status.h"

#include <cstdint>
#include <string>

namespace lowtide::rt {

/// A factor as it was written: 1/255 divides by 255, which its rounded quotient would not do.
struct Scale {
  double numerator = 1, denominator = 1;
  bool isOne() const { return numerator == denominator; }
  double of(double value) const { return value * numerator / denominator; }
  /// "0.5", "1/255".
  static Expected<Scale> parse(const std::string &text);
  std::string str() const;
};

/// Elements of one type as elements of another. Integers become integers that hold them, and floats; floats become
/// floats, rounded to nearest even; no float becomes an integer.
class Conversion {
public:
  Conversion() = default;
  /// Fails, without a place, where no such conversion is offered; the reason says what to type.
  static Expected<Conversion> create(plan::DType from, plan::DType to, Scale scale = {});

  /// Whether bytes stay as they are.
  bool isCopy() const { return function_ == nullptr; }
  /// Converts `count` elements. Returns how many: fewer, where the next one does not fit (an integer out of range, a
  /// finite number beyond the largest of the target).
  int64_t convert(const uint8_t *from, uint8_t *to, int64_t count) const;

  plan::DType from() const { return from_; }
  plan::DType to() const { return to_; }
  const Scale &scale() const { return scale_; }

private:
  using Function = int64_t (*)(const uint8_t *from, uint8_t *to, int64_t count, const Conversion &conversion);
  static Function select(plan::DType from, plan::DType to);

  plan::DType from_ = plan::DTYPE_UNSPECIFIED, to_ = plan::DTYPE_UNSPECIFIED;
  Scale scale_;
  Function function_ = nullptr;
};

/// "int64": the type alone.
std::string describe(plan::DType dtype);
/// One element as text: integers exactly.
std::string elementText(plan::DType dtype, const uint8_t *from);
/// Whether a type holds fractions.
bool isFloat(plan::DType dtype);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DATA_CONVERSION_H
