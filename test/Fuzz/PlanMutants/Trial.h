//===- Trial.h - one mutant, from its seed to what became of it ------------===//
#ifndef LOWTIDE_TEST_FUZZ_PLANMUTANTS_TRIAL_H
#define LOWTIDE_TEST_FUZZ_PLANMUTANTS_TRIAL_H

#include "Base.h"
#include "GuardedRun.h"
#include "Mutations.h"

#include <atomic>

namespace lowtide::fuzz {

enum Outcome : unsigned {
  RefusedAtLoad, ///< by the digests' neighbours: parser, verifier, sizes
  RefusedAtBind, ///< by what holds machine code and memory
  Equal,         ///< executed, with the bits of the plan that it was made from
  OtherValues,   ///< executed, every byte where it belongs
  NotRun,        ///< proved; too long or too large to be executed here
  Defect,        ///< none of these
  outcomes
};

/// Where a trial is, for whoever finds it dead.
enum Phase : unsigned { Mutating, Loading, Binding, Guarded, GuardedAgain, Stepping, phases };

/// What the process that tries and the one that watches share.
struct Board {
  static constexpr size_t maxKinds = 64;
  std::atomic<uint64_t> seed, done;
  std::atomic<uint32_t> kind, phase;
  std::atomic<uint64_t> counts[maxKinds][outcomes];
  char story[256]; ///< names of the mutations
};

struct TrialResult {
  Outcome outcome = Defect;
  size_t kind = 0;  ///< of the first mutation
  std::string said; ///< the refusal, or the defect, in words
};

class Trial {
public:
  explicit Trial(std::vector<std::unique_ptr<Base>> bases) : bases_(std::move(bases)) {}
  /// What the bases themselves compute, by the instrument and by the runtime; says what is wrong with one.
  rt::Status rehearse();
  /// Kind, phase and story of the board are kept up to date.
  TrialResult run(uint64_t seed, Board &board);
  const Base &baseOf(uint64_t seed) const { return *bases_[Dice(seed).below(bases_.size())]; }
  /// The artifact of the last run.
  std::span<const uint8_t> file() const { return file_; }

private:
  TrialResult execute(Base &base, const plan::Plan &plan, std::span<const uint8_t> file, uint64_t &signature,
                      std::atomic<uint32_t> &phase);

  std::vector<std::unique_ptr<Base>> bases_;
  std::vector<uint64_t> signatures_;
  GuardedMemory memory_;
  std::span<const uint8_t> file_;
};

} // namespace lowtide::fuzz

#endif // LOWTIDE_TEST_FUZZ_PLANMUTANTS_TRIAL_H
