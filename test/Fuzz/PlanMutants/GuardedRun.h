//===- GuardedRun.h - a plan, executed so that nothing goes unseen ---------===//
//
// The instrument that says whether a proof was worth something. It shares no code with the verifier. Every instruction
// is given copies of its operands, each between two pages that cannot be touched, and results full of a pattern; then
// its results go back to where they belong. Each byte of every arena knows which write it comes from.
//
// Seen are: a byte outside the operands (a signal, or a pattern that has changed); a read of bytes that nothing has
// written, or that another value, or another round, has; a result that is not written whole, or that depends on what
// was there before or on the order of the tasks (two runs with other patterns, placed at the other guard, tasks in the
// opposite order, must give equal bits).
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_TEST_FUZZ_PLANMUTANTS_GUARDEDRUN_H
#define LOWTIDE_TEST_FUZZ_PLANMUTANTS_GUARDEDRUN_H

#include "plan.pb.h"
#include "runtime/devices/FakeCuda/BlockRunner.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lowtide::fuzz {

/// Memory between guard pages, kept from use to use.
class GuardedMemory {
public:
  ~GuardedMemory();
  /// `bytes` bytes whose end (or start) lies at a guard, at a multiple of `alignment`. Pages are the caller's until
  /// `release`.
  uint8_t *take(uint64_t bytes, uint64_t alignment, bool atEnd);
  /// Whether nothing near the pieces that were taken, but outside of them, was written. Gives all of them back.
  bool release();

private:
  struct Block {
    uint8_t *pages = nullptr; ///< without the guards
    uint64_t bytes = 0;
    bool used = false;
  };
  struct Piece {
    Block *block;
    uint8_t *data;
    uint64_t bytes;
  };
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Piece> pieces_;
};

class GuardedRun {
public:
  struct Manner {
    uint8_t pattern;   ///< of everything undefined
    bool atEnd;        ///< operands end at a guard; otherwise they start after one
    bool tasksForward; ///< the order of tasks, or blocks
  };

  /// `kernels`: addresses parallel to Plan.kernels. `arenas`: what the bindings hold when the step starts.
  GuardedRun(const plan::Plan &plan, std::span<void *const> kernels, std::vector<std::vector<uint8_t>> arenas,
             GuardedMemory &memory, Manner manner);

  /// Executes an entry. What was wrong, in words, or nothing.
  std::string run(const plan::Entry &entry);
  /// Of every result that was written, in order: what two runs are compared by.
  const std::vector<uint64_t> &results() const { return results_; }
  /// Of result `number`: which instruction wrote it, in words.
  std::string describeResult(size_t number) const;
  const std::vector<std::vector<uint8_t>> &arenas() const { return arenas_; }
  /// Which bytes are defined.
  bool isDefined(uint32_t arena, uint64_t byte) const { return tags_[arena][byte] != 0; }
  /// Instructions that an entry executes, at most `most` + 1.
  static uint64_t count(const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions, uint64_t most);

private:
  using Instructions = google::protobuf::RepeatedPtrField<plan::Instruction>;
  using Slices = google::protobuf::RepeatedPtrField<plan::Slice>;
  struct Write {
    uint64_t value = 0; ///< value number
    uint64_t time = 0;
  };
  struct Round {
    uint64_t entered, started;
  };

  std::string runAll(const Instructions &instructions, uint64_t round);
  std::string runOne(const plan::Instruction &instruction, uint64_t round);
  std::string runRepeat(const plan::Repeat &repeat);
  std::string launch(const plan::Launch &launch, void *const *arguments, uint8_t *scratch);
  std::string call(const plan::Call &call, std::span<void *const> reads, std::span<void *const> writes);
  std::string withOperands(const plan::Instruction &instruction, const Slices &reads, const Slices &writes,
                           const plan::Slice *scratch);
  /// Whether all bytes hold the value, written by someone who is not of an earlier round.
  std::string check(const plan::Slice &slice);
  void tag(const plan::Slice &slice, uint64_t value);
  void undefine(const plan::Slice &slice);
  bool isGpu() const { return gpu_; }

  const plan::Plan &plan_;
  std::span<void *const> kernels_;
  std::vector<std::vector<uint8_t>> arenas_;
  std::vector<std::vector<uint32_t>> tags_; ///< per byte: index into writes_, 0 = undefined
  std::vector<Write> writes_;
  std::vector<Round> rounds_;
  std::vector<uint64_t> results_;
  std::vector<std::pair<const plan::Instruction *, int>> writers_; ///< of each result: instruction, number within it
  GuardedMemory &memory_;
  Manner manner_;
  uint64_t time_ = 0;
  bool gpu_ = false;
  rt::cuda::fake::BlockRunner blocks_;
};

} // namespace lowtide::fuzz

#endif // LOWTIDE_TEST_FUZZ_PLANMUTANTS_GUARDEDRUN_H
