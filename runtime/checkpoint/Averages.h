//===- Averages.h - averaged weights in the place of weights ---------------===//
//
// A step may keep averages of what it trains (lowtide compile --ema): state `<parameter>.ema`, and `ema_updates`, how
// many updates they have seen.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_AVERAGES_H
#define LOWTIDE_RUNTIME_CHECKPOINT_AVERAGES_H

#include "runtime/Session.h"

#include <string>
#include <vector>

namespace lowtide::rt {

class Averages {
public:
  /// Fails if the artifact keeps none. The session is bound.
  static Expected<Averages> find(Session &session);

  /// Puts the averages where the weights are, each rounded once if the weight's type is narrower. Before the first
  /// update the weights are their own average.
  Status enter();
  /// Puts the weights back.
  Status leave();
  /// Writes the averages as a state dictionary of the exporting framework, with its buffers after `steps` steps.
  Status write(const std::string &path, int64_t steps);

private:
  struct Pair {
    Tensor weight, average;
    std::vector<uint8_t> kept; ///< the weight, while the average is in its place
  };
  explicit Averages(Session &session) : session_(&session) {}

  Session *session_;
  std::vector<Pair> pairs_;
  Tensor updates_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_AVERAGES_H
