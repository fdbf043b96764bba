//===- Dataset.h - the user's arrays, and how they become batches ----------===//
#ifndef LOWTIDE_RUNTIME_DATA_DATASET_H
#define LOWTIDE_RUNTIME_DATA_DATASET_H

#include "runtime/Session.h"
#include "runtime/data/HostArray.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lowtide::rt {

/// Named arrays, token shards, or numbers made up on the spot.
struct Dataset {
  std::map<std::string, HostArray> arrays;
  std::vector<HostArray> shards;     ///< of tokens, in order
  std::optional<uint64_t> synthetic; ///< seed

  /// `spec`: comma-separated files, `name=file`, or `synthetic[:seed]`. By content: .npz (all its arrays), .npy and idx
  /// (named by `name=`, else by the file), token shards (`*` in the last part of the path names several).
  static Expected<Dataset> open(const std::string &spec);
};

/// Writes the BATCH bindings of one entry from a data set.
///
/// Step i takes rows (i mod (N / batch)) · batch … of every array; with shuffling, these positions of a permutation of
/// the rows that depends on seed and epoch alone. Rows beyond the last whole batch are left out, unless
/// the artifact has an entry for them (`feedRows`).
class Feeder {
public:
  /// Matches bindings and arrays by name; says what is missing, of another type or shape. `notes` gets a line for every
  /// conversion and for arrays that nobody asked for.
  static Expected<Feeder> create(const Dataset &dataset, const Session &session, const std::string &entry,
                                 std::optional<uint64_t> shuffleSeed, std::vector<std::string> &notes);

  /// Writes the batch of step `step`. Allocates nothing.
  void feed(int64_t step) const {
    int64_t perEpoch = synthetic_ ? 0 : rows_ / batch_;
    feedRows(step, perEpoch ? step / perEpoch : 0, perEpoch ? step % perEpoch * batch_ : 0);
  }
  /// Writes the batch that begins at row `first` of an epoch; `step` only matters for synthetic data.
  void feedRows(int64_t step, int64_t epoch, int64_t first) const;
  /// Samples in the data; 0 for synthetic data.
  int64_t rows() const { return synthetic_ ? 0 : rows_; }
  /// The row of the data that stands at position `row` of an epoch.
  int64_t sourceRow(int64_t epoch, int64_t row) const;
  /// Batches until the data repeat; 0 for synthetic data.
  int64_t stepsPerEpoch() const { return synthetic_ ? 0 : rows_ / batch_; }

private:
  enum class Conversion { None, ToF64, ToI64, Rounded, ImageToF32, ImageToF64, ImageRounded, TokensToI64, TokensToI32 };
  struct Column {
    Tensor tensor;
    HostArray array;
    Conversion conversion = Conversion::None;
    int64_t rowElements = 0; ///< of one sample
    int64_t samples = 0;     ///< per batch; 0: the array is the same in every step
    int64_t shift = 0;       ///< tokens: 1 for the targets
    std::vector<int64_t> shardStarts;
    int64_t vocabulary = 0; ///< synthetic integers lie below this
  };

  Status addArray(const Tensor &tensor, const HostArray &array, std::vector<std::string> &notes);
  Status addShards(const std::vector<Tensor> &tensors, const std::vector<HostArray> &shards);
  void synthesize(const Column &column, int64_t step) const;
  void copyTokens(const Column &column, int64_t row, uint8_t *to) const;
  void copyRow(const Column &column, int64_t row, uint8_t *to, int64_t elements) const;

  std::vector<Column> columns_;
  std::vector<HostArray> shards_;
  int64_t rows_ = 0, batch_ = 1;
  std::optional<uint64_t> shuffle_;
  std::optional<uint64_t> synthetic_;
};

/// Position `index` of a pseudorandom permutation of [0, count) that depends on `seed` alone.
uint64_t permuted(uint64_t index, uint64_t count, uint64_t seed);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DATA_DATASET_H
