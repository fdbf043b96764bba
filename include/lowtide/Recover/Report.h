//===- Report.h - collected errors about one file
//--------------------------------===//
//
// Errors are located at the node or tensor that they are about, all are
// collected up to a limit, and the first decides of which kind the failure is.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_RECOVER_REPORT_H
#define LOWTIDE_RECOVER_REPORT_H

#include "lowtide/Recover/Findings.h"
#include "lowtide/Support/Failure.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/Twine.h"

namespace lowtide {

class Report {
public:
  Report(mlir::MLIRContext &context, llvm::StringRef path, unsigned maxErrors);
  ~Report();

  /// An error about the file as a whole.
  void error(FailureKind kind, const llvm::Twine &message, const llvm::Twine &remedy = "");
  /// An error at `where`, the name of a node, a tensor or a graph.
  void errorAt(FailureKind kind, llvm::StringRef where, const llvm::Twine &message, const llvm::Twine &remedy = "");
  /// Warns. Without names the finding is about its place.
  void add(Finding finding);
  /// All that was warned about, each once.
  llvm::ArrayRef<Finding> getFindings() const { return findings; }

  /// From now on errors are counted and not printed.
  void mute() { muted = true; }
  bool hasErrors() const { return numErrors != 0; }
  unsigned getNumErrors() const { return numErrors; }
  FailureKind getFirst() const { return first; }
  /// Prints how many errors were not printed, if any.
  void finish();

private:
  mlir::Location locate(llvm::StringRef where);

  mlir::MLIRContext &context;
  std::string path;
  unsigned maxErrors;
  unsigned numErrors = 0;
  FailureKind first = FailureKind::None;
  bool muted = false;
  std::vector<Finding> findings;
};

} // namespace lowtide

#endif // LOWTIDE_RECOVER_REPORT_H
