//===- Check.h - what a model file holds, in words ------------------------------===//
//
// The report of `lowtide check`: versions, inputs, who is a parameter and why,
// what must be bound, and every operator that cannot be compiled.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_IMPORT_CHECK_H
#define LOWTIDE_IMPORT_CHECK_H

#include "lowtide/Import/Import.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace lowtide {

/// Nodes of one operator that cannot be compiled for one reason.
struct RefusedNodes {
  std::string domain, name;
  int64_t version = 0;
  /// Half a sentence.
  std::string reason;
  /// For each node the module that it came from, or its own name.
  std::vector<std::string> places;
};

/// The end of the report: two command lines that work.
struct CheckAdvice {
  /// Flags for dimensions without a size; their sizes are examples.
  std::vector<std::string> unbound;
  /// Whether the file has no loss; one that may be meant, empty where none was found.
  bool lacksLoss = false;
  std::string loss;
  std::string compile, run;
  /// "labels [N] i64, x [N,8] f32"; empty where the model reads no data.
  std::string data;
};

/// A frozen matrix that --frozen-weights would hold in codes, and what that changes.
struct CodedWeight {
  std::string name;
  std::vector<int64_t> dims; ///< as the exporting framework has it
  uint64_t bytesBefore = 0, bytes = 0;
  double largestError = 0; ///< relative to the largest number
  double rmsError = 0;     ///< relative to the root mean square of the numbers
};

/// A line for each, with its errors.
void printCoded(llvm::ArrayRef<CodedWeight> coded, llvm::StringRef codec, llvm::raw_ostream &os);

void printAdvice(const CheckAdvice &advice, llvm::raw_ostream &os);

/// Prints the report about loaded `file` to `os`. Bad input: the evidence about
/// parameters is contradictory; unsupported: nodes are refused.
FailureKind reportModel(OnnxFile &file, const ImportOptions &options, llvm::ArrayRef<RefusedNodes> refused,
                        llvm::raw_ostream &os);

/// The same facts as one JSON object, with what one step costs (empty: unknown), and the advice where there is one.
FailureKind reportModelAsJson(OnnxFile &file, const ImportOptions &options, llvm::ArrayRef<RefusedNodes> refused,
                              llvm::ArrayRef<CodedWeight> coded, llvm::json::Object cost, const CheckAdvice *advice,
                              llvm::raw_ostream &os);

} // namespace lowtide

#endif // LOWTIDE_IMPORT_CHECK_H
