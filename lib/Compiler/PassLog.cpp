//===- PassLog.cpp - log lines of passes ------------------------*- C++ -*-===//
//
// Times passes as the pass manager runs them; the manager's own adaptors between operations have no name and no line.
//
//===----------------------------------------------------------------------===//

#include "PassLog.h"
#include "Diagnostics.h"
#include "Stopwatch.h"
#include "mlir/IR/Operation.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/Support/FormatVariadic.h"
#include <vector>

using namespace mlir;
using namespace lowtide;

namespace {

class PassLog : public PassInstrumentation {
public:
  PassLog(DiagnosticCollector &log, std::string area) : log(log), area(std::move(area)) {}

  void runBeforePass(Pass *, Operation *) override { watches.emplace_back(); }
  void runAfterPass(Pass *pass, Operation *op) override { finish(pass, op, ""); }
  void runAfterPassFailed(Pass *pass, Operation *op) override { finish(pass, op, "failed, "); }

private:
  void finish(Pass *pass, Operation *op, const char *outcome) {
    const std::string time = watches.back().text();
    watches.pop_back();
    if (pass->getArgument().empty())
      return;
    int64_t operations = 0;
    op->walk([&](Operation *) { ++operations; });
    auto symbol = op->getAttrOfType<StringAttr>("sym_name");
    log.log(LogLevel::Debug, area,
            llvm::formatv("{0}{1}: {2}{3}, {4} operations", pass->getArgument(), symbol ? " @" + symbol.str() : "",
                          outcome, time, operations)
                .str());
  }

  DiagnosticCollector &log;
  const std::string area;
  std::vector<Stopwatch> watches; // passes inside adaptors nest
};

} // namespace

std::unique_ptr<PassInstrumentation> lowtide::logPasses(DiagnosticCollector &log, std::string area) {
  return std::make_unique<PassLog>(log, std::move(area));
}
