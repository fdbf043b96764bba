//===- Device.h - what a session needs of a machine ------------------------===//
//
// A session speaks to the host's view of the arenas alone: memory in which every binding has its bytes. On the CPU this
// is where the step computes; a device with memory of its own keeps a mirror, and says here when the two are brought
// together.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_DEVICE_H
#define LOWTIDE_RUNTIME_DEVICES_DEVICE_H

#include "runtime/Artifact.h"
#include "runtime/devices/InstructionTime.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace lowtide::rt {

struct BindOptions;

using Observer = std::function<bool(const plan::Instruction &instruction, uint64_t round)>;

/// What copies between the device and the memories in which values of a step wait did: in all runs of all entries so
/// far, or in some of them.
struct Transfers {
  uint64_t fromDevice = 0, toDevice = 0;     ///< bytes
  std::optional<uint64_t> waitedNanoseconds; ///< that computation waited for them; a GPU does not tell
  const char *way = "";                      ///< what moves bytes to a file and back; empty: no file

  bool isNone() const { return !fromDevice && !toDevice; }

  /// Adds so many runs that each move the bytes of `one`.
  void addRuns(const Transfers &one, uint64_t runs) {
    fromDevice += runs * one.fromDevice, toDevice += runs * one.toDevice;
  }

  /// What came on top of `before`, an earlier state of the same device.
  Transfers since(const Transfers &before) const {
    Transfers more{fromDevice - before.fromDevice, toDevice - before.toDevice, waitedNanoseconds, way};
    if (more.waitedNanoseconds)
      *more.waitedNanoseconds -= before.waitedNanoseconds.value_or(0);
    return more;
  }

  /// Adds what `since` said of a step.
  void add(const Transfers &step) {
    fromDevice += step.fromDevice, toDevice += step.toDevice, way = step.way;
    if (step.waitedNanoseconds)
      waitedNanoseconds = waitedNanoseconds.value_or(0) + *step.waitedNanoseconds;
  }
};

/// What the host is about to do with bytes of its view.
enum class HostAccess { Read, Change, Overwrite };

class Device {
public:
  virtual ~Device() = default;

  /// Allocates the arenas, loads the machine code, prepares every entry. The one place where memory is taken.
  virtual Status bind(const BindOptions &options) = 0;

  /// Base addresses of the arenas as the host sees them, parallel to Plan.arenas; empty before `bind`. Null: transient
  /// values lie in a file, which the host does not see.
  virtual std::span<uint8_t *const> hostArenas() const = 0;

  /// Hands what the host wrote into PARAMS and STATE arenas to the device.
  virtual Status upload() { return Status::ok(); }
  /// Waits for all steps and makes the host's view of PARAMS and STATE arenas, and of the OUTPUT bindings of `entry`
  /// (may be null), current.
  virtual Status download(const plan::Entry *entry) { return Status::ok(); }

  /// The host is about to touch bytes of its view. Those of a file are read for that, whole pages (but for what is all
  /// to be overwritten), and are memory until `leave` or the next step; before, nothing may touch them.
  virtual Status bring(const uint8_t *, uint64_t, HostAccess) { return Status::ok(); }
  /// The host is done with bytes of its view for now: those of a file are written, if they were not only to be read,
  /// and leave memory.
  virtual Status leave(const uint8_t *, uint64_t) { return Status::ok(); }

  /// Executes an entry once on what the host's view of its BATCH and SCALAR bindings holds; they may be overwritten as
  /// soon as it returns. Allocates nothing. May return before the step is done: then `depth()` is not 0.
  virtual Status run(const plan::Entry &entry) = 0;
  /// The same, instruction by instruction: `seen` is called after each that is not a repeat, in the order in which they
  /// are executed, with the round of the innermost repeat around it; the entry ends early where it returns false.
  /// Unsupported on devices that take a step as a whole.
  virtual Status observe(const plan::Entry &entry, const Observer &seen);
  /// Waits until all but the newest `lag` steps are done; METRIC bindings, and state that belongs to the step as a
  /// whole, then hold what the newest of those wrote.
  virtual Status settle(unsigned lag) { return Status::ok(); }
  /// How many steps may be under way at once, beyond the one that the caller has settled.
  virtual unsigned depth() const { return 0; }

  /// Releases everything; the first failure of it, if there was one. The destructor does the same in silence.
  virtual Status close() { return Status::ok(); }

  /// Bytes of a memory space that are taken now, counted by what allocates them; calls of that so far.
  virtual uint64_t allocatedBytes(plan::Arena::Space space) const = 0;
  virtual uint64_t allocations() const = 0;
  /// Bytes of a device with memory of its own that nothing has taken; nothing where that cannot be told.
  virtual std::optional<uint64_t> freeBytes() const { return {}; }
  /// What the device took besides the arenas, in words; may be empty.
  virtual std::string besides() const { return {}; }
  /// What the user should know of where values wait, a sentence; may be empty.
  virtual std::string warning() const { return {}; }
  /// What libraries chose when the device was bound, one line per call of the plan; a function of the plan and of the
  /// libraries' versions.
  virtual std::vector<std::string> choices() const { return {}; }
  /// Those libraries, by name and version.
  virtual std::vector<std::string> libraries() const { return {}; }
  virtual unsigned threads() const { return 0; }

  virtual Transfers transfers() const { return {}; }

  /// From now on every run of the entry measures its instructions so, or none does.
  virtual void measure(const plan::Entry &entry, Measuring how) = 0;
  virtual std::vector<InstructionTime> times(const plan::Entry &entry) const = 0;
  virtual uint64_t measuredRuns(const plan::Entry &entry) const = 0;
};

/// Bytes that one run of an entry copies; it has waited for nothing yet.
Transfers countTransfers(const plan::Plan &plan, const plan::Entry &entry);

/// The device that the target of the artifact names ("cpu…", "reference", "cuda:…", "cuda-emulated"); says in words
/// what this machine or this runtime lacks. The artifact must outlive it.
Expected<std::unique_ptr<Device>> createDevice(const Artifact &artifact);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_DEVICE_H
