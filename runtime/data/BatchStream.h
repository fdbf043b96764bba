//===- BatchStream.h - batches that a program writes into a pipe -----------===//
#ifndef LOWTIDE_RUNTIME_DATA_BATCHSTREAM_H
#define LOWTIDE_RUNTIME_DATA_BATCHSTREAM_H

#include "runtime/data/Conversion.h"
#include "runtime/data/HostArray.h"

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace lowtide::rt {

/// Runs a program of the user, and reads batches from its standard output: for each batch, every batch array of the
/// step in the order of the plan, as `numpy.save` writes it. Batches come in order, once; one thread reads at a time.
class BatchStream {
public:
  /// `command` goes to the shell when the first batch is asked for. Where it holds `{step}`, that is replaced by the
  /// first step that is asked for, and the program begins there; without it, the batches before are read and dropped.
  explicit BatchStream(std::string command) : command_(std::move(command)) {}
  /// Ends the program.
  ~BatchStream();
  BatchStream(const BatchStream &) = delete;
  BatchStream &operator=(const BatchStream &) = delete;

  /// What a step reads as one array.
  struct Wanted {
    const std::string &name;
    plan::DType dtype;
    std::span<const int64_t> dims;
    Scale scale;
  };

  /// Goes to the batch of step `step`, which must not lie before the last one. `arrays`: how many a batch has.
  Status seek(int64_t step, size_t arrays);
  /// Reads the next array of this batch; fails where it is another one, does not fit, or where the program has ended.
  Status read(const Wanted &wanted, uint8_t *to);
  /// Makes `read` and `seek` fail from now on, in whatever thread they wait.
  void interrupt() { interrupted_ = true; }

private:
  Status start(int64_t step);
  Status fill(uint8_t *to, uint64_t bytes);
  Expected<NpyHeader> readHeader();
  Status skip();
  /// The reason why there are no more bytes.
  Status ended();
  void finish();
  std::string place() const;

  std::string command_;
  std::atomic<bool> interrupted_ = false;
  int pipe_ = -1;
  pid_t program_ = -1;
  int64_t batch_ = -1;           ///< the one that is read now; -1: none yet
  size_t arrays_ = 0, next_ = 0; ///< of this batch: how many it has, and how many were read
  std::vector<uint8_t> header_, values_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DATA_BATCHSTREAM_H
