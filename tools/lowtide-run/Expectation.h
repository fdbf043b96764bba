//===- Expectation.h - losses of a recorded run ----------------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_EXPECTATION_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_EXPECTATION_H

#include "runtime/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lowtide::run {

/// Recorded losses and how far each step may be from them.
class Expectation {
public:
  /// `file`: {"loss": {"f64": […], "f32_tolerance": […], "bf16": […], "bf16_tolerance": […] …}}. `key`: f32 compares
  /// with the f64 losses within f32_tolerance, bf16 and f16 likewise with theirs. `rule`: "band", or "f64" (1e-6
  /// relative, or a tenth of the f32 tolerance where that is larger).
  static rt::Expected<Expectation> open(const std::string &file, const std::string &key, const std::string &rule);

  int64_t steps() const { return static_cast<int64_t>(loss_.size()); }
  /// Takes the loss of a step; steps beyond the record are not judged.
  void check(int64_t step, double loss);

  bool held() const { return firstBad_ < 0; }
  /// One sentence about the first step that left, or about the worst ratio if none did.
  std::string report() const;
  /// Worst |loss − recorded| / tolerance.
  double worst() const { return worst_; }
  int64_t judged() const { return judged_; }

private:
  std::vector<double> loss_, tolerance_;
  double worst_ = 0, badLoss_ = 0;
  int64_t worstStep_ = -1, firstBad_ = -1, judged_ = 0;
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_EXPECTATION_H
