//===- Request.h - what is asked of the compiler ----------------*- C++ -*-===//
//
// Everything that decides what is made of a model, as plain data: no paths of outputs, and nothing about printing.
// Options have the names and the words of the command line's flags, by which messages call them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Support/OptionChoices.h"
#include "lowtide/Support/OptionValues.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

/// The stages in order: onnx 0, nn 1, train 2, fitted 3, plan 4, and what is made of a plan (artifact, kernels, ptx) 5;
/// -1: none.
int getStageNumber(llvm::StringRef name);

/// Words that `Request::schedule` takes.
std::vector<std::string> listSchedules();

/// The step once more, otherwise: its entries stand next to the others and share their parameters and state. The batch
/// has to be a symbol of the model.
struct EntryVariant {
  std::string name;           ///< "last": its entries are `train_last` and `eval_last`
  int64_t batch = 0;          ///< samples; 0: as many as the others have
  int64_t parts = 0;          ///< of the batch; 0: the fewest that are no larger than those of the others
  std::string precision = {}; ///< as `Request::precision`; empty: the same
};

/// What is made of a model: the values of its options, and what no option says alone.
struct Request : OptionValues {
  std::vector<EntryVariant> variants; // entries for other batches, parts or precisions
  /// One --params or --frozen, as written.
  struct Selection {
    bool trains;
    std::string text;
  };
  std::vector<Selection> selections; // in order: a later one wins
  // flags of the forward pass, of updates and of the rate that were given → how a message names them: "eps" → "--eps",
  // "--eps (LOWTIDE_EPS)"
  std::map<std::string, std::string> forwardFlags, updateFlags, rateFlags;
  // whether a target, by name or by file, and threadsMax were given: without, a stage's text keeps its own
  bool givesTarget = false, givesThreads = false;
  std::vector<std::string> watched; // values that become outputs of the model

  /// Frozen matrices are held in codes of few bits.
  bool codesFrozen() const { return isCodedStorage(frozenWeights); }
};

/// What a step costs at which budget, or whether it fits one.
struct FitRequest : Request {
  /// The bytes that there are, all told; nothing: a table of budgets.
  std::optional<ByteSize> room;
  std::string roomTitle;     // whose bytes they are
  unsigned fitRows = 17;     // lines of the table
  bool baselines = false;    // other methods next to its plans
  unsigned boundRows = 5;    // of these lines, those with a bound
  unsigned roundingRows = 5; // and those with a rounded linear program of their own
};

} // namespace lowtide
