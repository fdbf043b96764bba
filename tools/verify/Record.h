//===- Record.h - what another program computed of one batch ----------------===//
//
// Reads record.npz (docs/verify.md): a batch, and what the exporting framework makes of it.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_TOOLS_VERIFY_RECORD_H
#define LOWTIDE_TOOLS_VERIFY_RECORD_H

#include "runtime/data/Dataset.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lowtide::verify {

/// Dense, row-major numbers; integers are converted.
struct Array {
  std::vector<int64_t> dims;
  std::vector<double> values;

  /// The largest absolute value; 0 of an empty array. A NaN is the largest of all.
  double largest() const;
};
using Arrays = std::map<std::string, Array>;

/// The numbers of `array` as doubles.
Array widen(const rt::HostArray &array);

/// A training run of some steps on one batch. Names are those of the framework's state dictionary.
struct Record {
  /// Reads and checks a file. Fails with BadInput where an array is missing, misnamed or not of numbers, and with the
  /// reader's status where the file is no archive of arrays.
  static rt::Expected<Record> open(const std::string &path);
  /// The same of a file that holds a batch and outputs of it, and no training run.
  static rt::Expected<Record> openOutputs(const std::string &path);

  rt::Dataset batch;          ///< arrays of one batch by name, each as a step reads it
  Arrays parameters;          ///< before the first step; may be empty: those of the model file
  Arrays buffers;             ///< before the first step; may be empty
  Arrays gradients;           ///< of step 0; a parameter without one is not trained
  Arrays buffersAfter;        ///< after one step
  std::vector<double> losses; ///< before each of the steps; at least one
  /// Outputs of modules in the first step, in the order in which the modules returned.
  std::vector<std::pair<std::string, Array>> outputs;

  std::string optimizer;                      ///< as --optimizer has it; empty: not said
  std::map<std::string, std::string> options; ///< its options as flags have them: weight_decay → 0.01
  double clipNorm = 0, clipValue = 0;         ///< 0: gradients are not limited
  std::string producer;                       ///< "torch 2.15.0"; may be empty
};

} // namespace lowtide::verify

#endif // LOWTIDE_TOOLS_VERIFY_RECORD_H
