//===- Session.h - load, bind, step ----------------------------------------===//
//
// A session owns the arenas of one artifact. After `bind` it allocates nothing: a step executes the plan and returns.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_SESSION_H
#define LOWTIDE_RUNTIME_SESSION_H

#include "runtime/Artifact.h"
#include "runtime/MemorySpaces.h"
#include "runtime/OriginalNumbers.h"
#include "runtime/devices/Device.h"
#include "runtime/devices/Spill/FileQueue.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
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
  /// cuda-emulated: 0: everything in the order of the program; else streams, graph nodes, blocks and warps take turns
  /// as this seed has it. No result depends on it.
  uint64_t schedule = 0;
  /// CPU: the folder of the file in which values of a step wait, if the plan has one; empty: the system's for temporary
  /// files.
  std::string spill = {};
  /// How bytes get there and back.
  FileTraffic traffic = FileTraffic::Any;
  /// CUDA: which of the visible GPUs, from 0.
  unsigned gpu = 0;
};

/// The numbers that the runtime writes before each step, into the SCALAR bindings of these names that the entry has.
struct StepScalars {
  double lr = 0;    ///< `lr`: learning rate of this step
  int64_t step = 0; ///< `step`: counted from 0
  int64_t seed = 0; ///< `seed` of the run
  int64_t row = 0;  ///< `row`: number of the first sample of this batch since the start of the run
};

/// A binding with its memory as the host sees it: on a device with memory of its own, what `step` left there is seen
/// after `download` (metrics: after `settle`), and what the host wrote there after `upload` (batch arrays and
/// scalars: `step` takes them).
struct Tensor {
  const plan::Binding *binding = nullptr;
  uint8_t *data = nullptr;
  /// Of a parameter whose f32 numbers are stored in two halves (Halves.h): `data` are the bf16 ones, these the others.
  /// The binding is that of the f32 numbers then, which `read` and `write` alone have in one piece.
  uint8_t *low = nullptr;
  /// Of a frozen weight in 16 bits whose f32 numbers the artifact keeps: `data` are the rounded ones, and the binding
  /// is that of the f32 numbers.
  OriginalNumbers *original = nullptr;
  /// Where the memory is; null: nothing has to be brought.
  Device *device = nullptr;
  /// Whether `data` are the numbers of the binding, one after the other.
  bool isWhole() const { return !low && !original; }
  /// Of the numbers, however they are stored.
  uint64_t bytes() const { return binding->slice().bytes(); }
  /// The host is about to touch the memory (Device::bring), by the members below or itself.
  Status bring(HostAccess access) const;
  /// The numbers of the binding; `room` holds them where they lie nowhere in one piece.
  std::span<const uint8_t> view(std::vector<uint8_t> &room) const;
  std::vector<uint8_t> read() const;
  /// `from`: bytes() bytes.
  void write(const uint8_t *from) const;
};

class Session {
public:
  /// Maps, checks and proves an artifact.
  static Expected<std::unique_ptr<Session>> load(const std::string &path);
  static Expected<std::unique_ptr<Session>> create(std::unique_ptr<Artifact> artifact);

  /// Allocates the arenas, loads the machine code, sets parameters and state to their initial values.
  Status bind(const BindOptions &options);

  bool isBound() const { return bound_; }
  /// Sets parameters and state to their initial values again, as `bind` did.
  Status restart(const BindOptions &options);

  /// Executes an entry once on what its bindings hold now. A device may still be at it when this returns. Where steps
  /// leave their updates for the next one (plan.Binding.pending), any other entry is executed after these.
  Status step(const std::string &entry);
  /// Executes an entry instruction by instruction, where the device can (Device::observe).
  Status observe(const std::string &entry, const Observer &seen);
  /// Waits until all but the newest `lag` steps are done; metrics then are those of the newest of these.
  Status settle(unsigned lag = 0) const;
  /// How far `lag` may go: 0 on the CPU, where `step` returns when it is done.
  unsigned depth() const { return device_->depth(); }
  /// Brings what outlives the steps, and the outputs of `entry` (if it is not empty), to where the host reads
  /// it; updates that a step has left for the next one are made before.
  Status download(const std::string &entry = {}) const;
  /// Hands parameters and state that the host has written to the device. An update that is pending then is dropped.
  Status upload();
  /// Gives everything back; says what went wrong with that. Nothing else may be called after it.
  Status close() { return device_->close(); }
  /// The numbers of step `step` of a run: its learning rate by the plan's schedule, its place in the run.
  StepScalars scalarsOf(const std::string &entry, int64_t step, int64_t seed) const;
  Status writeScalars(const std::string &entry, const StepScalars &scalars);
  /// Writes the scalar of that name (lowtide-rt/StepNames.h) where the entry has it: a real number, or an integer.
  /// Fails with Usage if this runtime knows no scalar of that name, or it takes the other kind of number.
  Status writeScalar(const std::string &entry, std::string_view name, double value);
  Status writeScalar(const std::string &entry, std::string_view name, int64_t value);

  /// A binding of an entry with its memory; fails if there is none of that name. A parameter comes before a number of
  /// the step that is called like it.
  Expected<Tensor> tensor(const std::string &entry, const std::string &name) const;
  /// Binding `index` of an entry of this session, which is bound.
  Tensor tensorAt(const plan::Entry &entry, size_t index) const;
  /// All bindings of an entry of one kind, in the order of the plan.
  std::vector<Tensor> tensors(const std::string &entry, plan::Binding::Kind kind) const;
  /// What outlives the steps, over all entries, by name: parameters, state, constants. Halves are one f32 parameter,
  /// and weights in 16 bits whose f32 numbers are kept are f32.
  std::vector<Tensor> persistent() const;
  /// The host is about to touch a part of a tensor's bytes.
  Status bring(std::span<const uint8_t> part, HostAccess access) const {
    return device_->bring(part.data(), part.size(), access);
  }
  /// The host is done with a tensor for now: what of a file's bytes it has read or written leaves memory.
  Status leave(const Tensor &tensor) const;
  /// The same of a part of its bytes.
  Status leave(std::span<const uint8_t> part) const { return device_->leave(part.data(), part.size()); }
  /// The value of a METRIC with one element, as a double, as of the last `settle`.
  Expected<double> metric(const std::string &entry, const std::string &name) const;

  const Artifact &artifact() const { return *artifact_; }
  const plan::Plan &plan() const { return artifact_->plan(); }
  /// Of the plan's arenas in a space; a device budget is for those of the device.
  uint64_t plannedBytes(plan::Arena::Space space = plan::Arena::DEVICE) const {
    return countPlannedBytes(plan(), space);
  }
  /// Counted by the allocator, not read from the plan; none when the session is closed.
  uint64_t allocatedBytes(plan::Arena::Space space = plan::Arena::DEVICE) const {
    return device_->allocatedBytes(space);
  }
  uint64_t allocations() const { return device_->allocations(); }
  unsigned threads() const { return device_->threads(); }
  /// Where a slice of the plan lies in the host's view.
  const uint8_t *at(const plan::Slice &slice) const { return address(slice); }
  /// Counters of checkpoints (FrameworkTensor.h) that began elsewhere than the plan says: their value before step 0.
  std::map<std::string, int64_t> &counters() { return counters_; }
  const std::map<std::string, int64_t> &counters() const { return counters_; }
  /// For profiles and reports.
  Device &device() const { return *device_; }

private:
  using ScalarWriter = std::function<void(const plan::Binding &binding, uint8_t *to)>;
  Status writeScalar(const std::string &entry, std::string_view name, bool isReal, const ScalarWriter &write);
  /// Runs an entry on the device, after pending updates if it does not make them itself.
  template <typename Run> Status run(const std::string &entry, Run run);
  /// Makes the updates that a step has left for the next one.
  Status flush() const;
  static Status brokenUpdate();
  Session(std::unique_ptr<Artifact> artifact, std::unique_ptr<Device> device)
      : artifact_(std::move(artifact)), device_(std::move(device)) {}
  void joinBindings();
  Status findOriginals();
  Status initialize(const BindOptions &options);
  uint8_t *address(const plan::Slice &slice) const { return device_->hostArenas()[slice.arena()] + slice.offset(); }

  std::unique_ptr<Artifact> artifact_;
  std::unique_ptr<Device> device_; ///< goes before the artifact, which it reads
  bool bound_ = false;
  std::map<std::string, int64_t> counters_;
  /// Whether a step has left its updates for the next one, and whether one failed while it made them.
  mutable bool hasPending_ = false, isBroken_ = false;
  /// A parameter in halves: the binding of its f32 numbers, and that of the lower halves.
  struct Joined {
    plan::Binding binding;
    const plan::Binding *low;
  };
  std::map<std::string, Joined> joined_; ///< by name
  /// By name. A tensor that `persistent` returns may change the numbers, as it does those in memory.
  mutable std::map<std::string, OriginalNumbers> originals_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_SESSION_H
