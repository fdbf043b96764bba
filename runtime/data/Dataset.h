//===- Dataset.h - the user's arrays, as one set of rows -------------------===//
#ifndef LOWTIDE_RUNTIME_DATA_DATASET_H
#define LOWTIDE_RUNTIME_DATA_DATASET_H

#include "runtime/data/BatchStream.h"
#include "runtime/data/Conversion.h"
#include "runtime/data/HostArray.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lowtide::rt {

/// An array whose rows lie in one file or in several, one after the other.
struct DataArray {
  struct Part {
    HostArray array;
    int64_t firstRow = 0;
    std::string file;
  };
  std::vector<Part> parts; ///< of one type and, but for the first dimension, of one shape

  plan::DType dtype() const { return parts[0].array.dtype; }
  /// The first counts the rows of all parts.
  std::vector<int64_t> dims() const;
  int64_t rows() const;
  /// The part that holds a row.
  const Part &partOf(int64_t row) const;
};

/// Named arrays, token shards, numbers made up on the spot, or what a program writes.
struct Dataset {
  std::map<std::string, DataArray> arrays;
  std::vector<DataArray::Part> shards; ///< of tokens, in order
  std::optional<uint64_t> synthetic;   ///< seed
  std::shared_ptr<BatchStream> stream; ///< batches of a program; null: there is none
  std::map<std::string, Scale> scales; ///< by array
  bool isBatch = false;                ///< `arrays` are those of one batch, each as a step reads it

  /// `spec`: `pipe:COMMAND` (BatchStream.h), or comma-separated files, `name=file`, or `synthetic[:seed]`; `*`, `?` and
  /// `[…]` in a path name all files that match, sorted. By content: .npz (all its arrays), .npy and idx (named by
  /// `name=`, else by the file), token shards. An array that several files have is one array: its rows follow one
  /// another in the order of the files. `scales`: comma-separated `array:factor`.
  ///
  /// Values stay where they are in the files, which are mapped; compressed ones are inflated, if memory is free for
  /// them.
  static Expected<Dataset> open(const std::string &spec, const std::string &scales = {});

  /// The files that `spec` names; none where it cannot be read.
  static std::vector<std::string> listFiles(const std::string &spec);
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DATA_DATASET_H
