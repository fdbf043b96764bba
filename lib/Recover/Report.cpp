//===- Report.cpp - collected errors about one file
//------------------------------===//

#include "lowtide/Recover/Report.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace lowtide;

Report::Report(MLIRContext &context, StringRef path, unsigned maxErrors)
    : context(context), path(path.str()), maxErrors(maxErrors) {}

Report::~Report() { finish(); }

Location Report::locate(StringRef where) {
  return NameLoc::get(StringAttr::get(&context, where.empty() ? StringRef(path) : where.take_front(256)));
}

void Report::errorAt(FailureKind kind, StringRef where, const Twine &message, const Twine &remedy) {
  if (first == FailureKind::None)
    first = kind;
  if (++numErrors > maxErrors || muted)
    return;
  // A flag has no place in the file.
  const bool isFlag = kind == FailureKind::Usage && where.empty();
  InFlightDiagnostic diag = mlir::emitError(isFlag ? Location(UnknownLoc::get(&context)) : locate(where))
                            << message.str();
  if (std::string note = remedy.str(); !note.empty())
    diag.attachNote() << note;
}

void Report::error(FailureKind kind, const Twine &message, const Twine &remedy) { errorAt(kind, "", message, remedy); }

void Report::add(Finding finding) {
  if (finding.names.empty() && !finding.where.empty())
    finding.names.push_back(finding.where);
  {
    InFlightDiagnostic diag = mlir::emitWarning(locate(finding.where)) << finding.describe();
    if (std::string note = finding.describeRemedy(); !note.empty())
      diag.attachNote() << note;
  }
  if (!llvm::is_contained(findings, finding))
    findings.push_back(std::move(finding));
}

void Report::finish() {
  if (numErrors > maxErrors && !muted)
    mlir::emitError(locate("")) << (numErrors - maxErrors) << " more errors";
  numErrors = std::min(numErrors, maxErrors);
}
