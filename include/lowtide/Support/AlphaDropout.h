//===- AlphaDropout.h - dropout that keeps mean and variance ----------------------===//

#ifndef LOWTIDE_SUPPORT_ALPHADROPOUT_H
#define LOWTIDE_SUPPORT_ALPHADROPOUT_H

#include <cmath>

namespace lowtide {

/// What SELU comes to far below zero is minus this number, which alpha dropout puts in place of what it drops.
inline constexpr double seluLimit = 1.7580993408473766;

/// The factor of alpha dropout with this ratio that keeps the variance of what has a mean of zero and a variance of
/// one.
/// \p ratio in [0, 1).
inline double alphaDropoutScale(double ratio, double alpha = seluLimit) {
  return 1 / std::sqrt((alpha * alpha * ratio + 1) * (1 - ratio));
}

} // namespace lowtide

#endif // LOWTIDE_SUPPORT_ALPHADROPOUT_H
