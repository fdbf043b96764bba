//===- Feeder.h - batches from a data set ----------------------------------===//
#ifndef LOWTIDE_RUNTIME_DATA_FEEDER_H
#define LOWTIDE_RUNTIME_DATA_FEEDER_H

#include "runtime/Session.h"
#include "runtime/data/BatchStream.h"
#include "runtime/data/Dataset.h"

namespace lowtide::rt {

/// A share of a batch, for threads that write one together: samples part · n / parts up to the next share's.
struct Share {
  unsigned part = 0, parts = 1;
};

/// Writes the BATCH bindings of one entry from a data set, or a slot of memory from which `deliver` copies them.
///
/// Step i takes rows (i mod (N / batch)) · batch … of every array; with shuffling, these positions of a permutation of
/// the rows that depends on seed and epoch alone. Rows beyond the last whole batch are left out, unless
/// the artifact has an entry for them (`feedRows`).
class Feeder {
public:
  /// What data must have at least; fewer rows than a batch are for `feedAgain`.
  enum class Least { OneBatch, OneRow };

  /// Matches bindings and arrays by name; says what is missing, of another type or shape. `notes` gets a line for every
  /// conversion and for arrays that no binding asked for.
  static Expected<Feeder> create(const Dataset &dataset, const Session &session, const std::string &entry,
                                 std::optional<uint64_t> shuffleSeed, std::vector<std::string> &notes,
                                 Least least = Least::OneBatch);

  /// Writes the batch of step `step`. Allocates nothing. Fails where a value does not fit what the step reads, with its
  /// row and file.
  Status feed(int64_t step) const {
    int64_t perEpoch = synthetic_ ? 0 : rows_ / batch_;
    return feedRows(step, perEpoch ? step / perEpoch : 0, perEpoch ? step % perEpoch * batch_ : 0);
  }
  /// Writes the batch that begins at row `first` of an epoch; `step` only matters for synthetic data and for a program,
  /// whose batches come in order. `slot`: `batchBytes` bytes of memory; null: the bindings themselves.
  Status feedRows(int64_t step, int64_t epoch, int64_t first, uint8_t *slot = nullptr, Share share = {}) const;
  /// Copies a batch from its slot into the bindings.
  void deliver(const uint8_t *slot) const;
  /// Bytes of a slot.
  uint64_t batchBytes() const { return batchBytes_; }
  /// Writes a batch that holds the `count` rows from row `first` on, in order and unshuffled, again and again until it
  /// is full.
  Status feedAgain(int64_t first, int64_t count) const;

  /// The row of the data that stands at position `row` of an epoch.
  int64_t sourceRow(int64_t epoch, int64_t row) const;
  /// Samples in the data; 0 for synthetic data, programs, and where no array counts samples.
  int64_t rows() const { return isEndless() ? 0 : rows_; }
  int64_t batch() const { return batch_; }
  /// Batches until the data repeat; 0 for synthetic data and programs.
  int64_t stepsPerEpoch() const { return isEndless() ? 0 : rows_ / batch_; }

private:
  struct Column {
    Tensor tensor;
    DataArray array;
    Conversion conversion;
    int64_t rowElements = 0; ///< of one sample
    int64_t samples = 0;     ///< per batch; 0: the array is the same in every step
    int64_t pieces = 1;      ///< of one sample: in the batch, those of other samples lie between them
    int64_t inPlace = 0;     ///< samples of an array that has them where the batch has them; 0: it has them first
    int64_t shift = 0;       ///< tokens: 1 for the targets
    uint64_t offset = 0;     ///< in a slot
    Scale scale;             ///< of a program's array, whose type is known when it comes
  };

  bool isEndless() const { return synthetic_ || stream_ || rows_ == INT64_MAX; }
  void addColumn(Column column);
  Status addStream(const Dataset &dataset, const std::vector<Tensor> &tensors, std::vector<std::string> &notes);
  Status copyStream(int64_t step, uint8_t *slot) const;
  uint8_t *target(const Column &column, uint8_t *slot) const {
    return slot ? slot + column.offset : column.tensor.data;
  }
  Status addArrays(const Dataset &dataset, const std::vector<Tensor> &tensors, std::vector<std::string> &notes);
  Status addArray(const Tensor &tensor, const DataArray &array, const Dataset &dataset,
                  std::vector<std::string> &notes);
  Status addShards(const std::vector<Tensor> &tensors, const std::vector<DataArray::Part> &shards);
  void synthesize(const Column &column, int64_t step, uint8_t *to) const;
  Status copyTokens(const Column &column, int64_t row, uint8_t *to) const;
  Status copyRows(const Column &column, int64_t row, int64_t rows, uint8_t *to) const;
  /// One row where the model has dimensions before the one that counts samples.
  Status copyPieces(const Column &column, int64_t row, uint8_t *batch, int64_t sample) const;
  /// Rows `row` … of a column become sample `sample` … of a batch; tokens or array.
  Status copy(const Column &column, int64_t row, int64_t rows, uint8_t *batch, int64_t sample) const;

  std::vector<Column> columns_;
  bool readsTokens_ = false;
  int64_t rows_ = INT64_MAX, batch_ = 1;
  std::optional<uint64_t> shuffle_;
  std::optional<uint64_t> synthetic_;
  std::shared_ptr<BatchStream> stream_;
  uint64_t batchBytes_ = 0;
};

/// Position `index` of a pseudorandom permutation of [0, count) that depends on `seed` alone.
uint64_t permuted(uint64_t index, uint64_t count, uint64_t seed);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DATA_FEEDER_H
