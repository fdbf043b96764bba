//===- Session.h - load, bind, step ----------------------------------------===//
//
// A session owns the arenas of one artifact. After `bind` it allocates nothing: a step executes the plan and returns.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_SESSION_H
#define LOWTIDE_RUNTIME_SESSION_H

#include "runtime/Artifact.h"
#include "runtime/devices/Cpu/MachineCode.h"
#include "runtime/devices/Cpu/Memory.h"
#include "runtime/devices/Cpu/Program.h"
#include "runtime/devices/Cpu/ThreadPool.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lowtide::rt {

struct BindOptions {
  /// 0: as many as the machine has cores. Never more than Plan.threads_max (if that is not 0).
  unsigned threads = 0;
  /// Fills the transient arenas with NaN patterns before every step: what is read undefined shows.
  bool poison = false;
  /// Parameters whose weights are not in the artifact: random by this seed; without one, `bind` refuses them.
  bool randomInit = false;
  /// Draws anew even the parameters whose weights are there.
  bool randomInitAll = false;
  uint64_t randomSeed = 0;
};

/// The numbers that the runtime writes before each step, into the SCALAR bindings of these names that the entry has.
struct StepScalars {
  double lr = 0;    ///< `lr`: learning rate of this step
  int64_t step = 0; ///< `step`: counted from 0
  int64_t seed = 0; ///< `seed` of the run
  int64_t row = 0;  ///< `row`: number of the first sample of this batch since the start of the run
};

/// A binding with its memory.
struct Tensor {
  const plan::Binding *binding = nullptr;
  uint8_t *data = nullptr;
  uint64_t bytes() const { return binding->slice().bytes(); }
};

class Session {
public:
  /// Maps, checks and proves an artifact.
  static Expected<std::unique_ptr<Session>> load(const std::string &path);
  static Expected<std::unique_ptr<Session>> create(std::unique_ptr<Artifact> artifact);

  /// Allocates the arenas, loads the machine code, sets parameters and state to their initial values.
  Status bind(const BindOptions &options);

  /// Executes an entry once on what its bindings hold now.
  Status step(const std::string &entry);
  Status writeScalars(const std::string &entry, const StepScalars &scalars);

  /// A binding of an entry with its memory; fails if there is none of that name.
  Expected<Tensor> tensor(const std::string &entry, const std::string &name) const;
  /// All bindings of an entry of one kind, in the order of the plan.
  std::vector<Tensor> tensors(const std::string &entry, plan::Binding::Kind kind) const;
  /// What outlives the steps, over all entries, by name: parameters, state, constants.
  std::vector<Tensor> persistent() const;
  /// The value of a METRIC with one element, as a double.
  Expected<double> metric(const std::string &entry, const std::string &name) const;

  const Artifact &artifact() const { return *artifact_; }
  const plan::Plan &plan() const { return artifact_->plan(); }
  uint64_t plannedBytes() const;
  /// Counted by the allocator, not read from the plan.
  uint64_t allocatedBytes() const { return memory_.allocatedBytes(); }
  uint64_t allocations() const { return memory_.allocations(); }
  unsigned threads() const { return pool_ ? pool_->threads() : 0; }
  /// The prepared program of an entry, for profiles.
  Program *program(const std::string &entry);

private:
  explicit Session(std::unique_ptr<Artifact> artifact) : artifact_(std::move(artifact)) {}
  Status initialize(const BindOptions &options);
  uint8_t *address(const plan::Slice &slice) const { return arenas_[slice.arena()] + slice.offset(); }

  std::unique_ptr<Artifact> artifact_;
  Memory memory_;
  std::vector<uint8_t *> arenas_;
  std::unique_ptr<MachineCode> code_;
  std::vector<KernelFunction> kernels_;
  std::unique_ptr<ThreadPool> pool_;
  std::map<std::string, std::unique_ptr<Program>> programs_;
  bool poison_ = false;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_SESSION_H
