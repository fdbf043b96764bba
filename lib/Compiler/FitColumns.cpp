//===- FitColumns.cpp - a table over two budgets ----------------*- C++ -*-===//
//
// Every cell is planned as `lowtide compile` would plan it with the budgets of its row and its column.
//
//===----------------------------------------------------------------------===//

#include "FitColumns.h"
#include "Compilation.h"
#include "Offload.h"
#include "TrainRematerialize.h"
#include "lowtide/Analysis/RefusedBudget.h"
#include "lowtide/Support/ByteUnit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace lowtide;

FitColumns FitColumns::take(Request &request) {
  FitColumns columns;
  for (auto [flag, given] : {std::pair("--host-budget", &request.hostBudget), {"--disk-budget", &request.diskBudget}}) {
    if (given->empty())
      continue;
    llvm::Expected<std::vector<ByteCount>> counts = parseByteCounts(*given);
    if (!counts) { // `Compilation::checkOtherMemory` says so
      llvm::consumeError(counts.takeError());
      continue;
    }
    const bool isList = counts->size() > 1;
    if (isList && !columns.isEmpty())
      continue;
    *given = counts->back().text;
    if (isList)
      columns = {flag, given == &request.diskBudget, std::move(*counts)};
  }
  return columns;
}

std::string FitColumns::describe() const {
  return flag + "=" +
         llvm::join(llvm::map_range(budgets, [](const ByteCount &count) { return StringRef(count.text); }), ",");
}

Failure Compilation::checkColumns(const FitRequest &request, const FitColumns &columns) {
  if (columns.isEmpty())
    return {};
  const std::string one = "give one budget, as in " + columns.flag + "=" + columns.budgets.back().text;
  if (request.room)
    return refuse(FailureKind::Usage,
                  columns.flag + ": a list makes a table; --device-budget and --card ask for one answer", {one});
  if (request.baselines || request.bound)
    return refuse(FailureKind::Usage,
                  std::string(request.baselines ? "--baselines" : "--bound") +
                      " has no effect on a table over a list of " + columns.flag,
                  {one});
  return {};
}

/// Lines at most: each cell is a compilation.
static constexpr unsigned maxRows = 8;

FailureOr<ColumnTable> Compilation::fitColumns(ModuleOp steps, uint64_t largestBytes, const FitRequest &request,
                                               const FitColumns &columns) {
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  FitStageOptions stage = fitStageOptions();
  stage.solved = makeSolvedSteps(options.withoutMethods);
  stage.flips = false;
  stage.bound = false;
  const CostModel costs = CostModel::get(target);
  auto plan = [&](size_t column, uint64_t budget) {
    const ByteCount &other = columns.budgets[column];
    (columns.isFile ? stage.diskBudget : stage.hostBudget) = other.bytes ? std::to_string(other.bytes) : "";
    stage.deviceBudget = std::to_string(budget);
    module = steps.clone();
    return fitSteps(stage);
  };
  ColumnTable table{columns};
  const std::string &fixed = columns.isFile ? options.hostBudget : options.diskBudget;
  table.flags = columns.describe();
  if (!fixed.empty())
    table.flags += (columns.isFile ? " --host-budget=" : " --disk-budget=") + fixed;
  for (size_t column = 0; column < columns.budgets.size(); ++column) {
    std::optional<RefusedBudget> refused;
    if (plan(column, 1))
      refused = getRefusedBudget(*module);
    if (!refused)
      return failure();
    table.smallestBytes.push_back(refused->smallestBytes);
  }
  // An entry without a table may need more than those that have one.
  const uint64_t low = *llvm::min_element(table.smallestBytes),
                 high = std::max(*llvm::max_element(table.smallestBytes), largestBytes);
  const ByteUnit unit = ByteUnit::get(high, /*typable=*/true);
  const unsigned count = std::min(request.fitRows, maxRows);
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t exact = i + 1 == count ? high : low + uint64_t(double(high - low) * i / (count - 1));
    ColumnTable::Row row{unit.roundUp(exact)};
    for (size_t column = 0; column < columns.budgets.size(); ++column) {
      ColumnTable::Cell &cell = row.cells.emplace_back();
      cell.deviceBudget = row.budgetBytes;
      cell.column = column;
      if (Failure failure = plan(column, row.budgetBytes)) {
        if (failure.kind != FailureKind::Budget)
          return mlir::failure();
        continue;
      }
      // What trains is what the table is of.
      auto step = module->lookupSymbol<func::FuncOp>("train");
      if (!step)
        step = *module->getOps<func::FuncOp>().begin();
      const std::optional<StepEstimate> estimate = StepEstimate::get(step);
      cell.seconds = estimate ? estimate->seconds : costs.getSeconds(step.getBody().front());
    }
    table.rows.push_back(std::move(row));
  }
  table.takeSmallerPlans();
  return table;
}

void ColumnTable::takeSmallerPlans() {
  // Here and not where the planner chooses: what it tries with a memory depends on how many bytes of it there are, and
  // one compile knows no smaller budgets that somebody may have asked about.
  for (auto [i, row] : llvm::enumerate(rows))
    for (auto [column, cell] : llvm::enumerate(row.cells)) {
      auto take = [&cell](const Cell &smaller) {
        if (smaller.seconds && (!cell.seconds || *smaller.seconds < *cell.seconds))
          cell = smaller;
      };
      if (i)
        take(rows[i - 1].cells[column]);
      if (column)
        take(row.cells[column - 1]);
    }
  for (size_t column = 1; column < smallestBytes.size(); ++column)
    smallestBytes[column] = std::min(smallestBytes[column], smallestBytes[column - 1]);
}

static double percentOver(double seconds, double wholeSeconds) {
  return wholeSeconds > 0 ? 100 * (seconds / wholeSeconds - 1) : 0;
}

void ColumnTable::printText(llvm::raw_ostream &os, double wholeSeconds) const {
  const ByteUnit unit = ByteUnit::get(rows.back().budgetBytes, /*typable=*/true);
  const std::string none = "does not fit";
  size_t width = none.size();
  for (const ByteCount &budget : columns.budgets)
    width = std::max(width, budget.text.size());
  for (uint64_t bytes : smallestBytes)
    width = std::max(width, unit.text(bytes).size());
  auto print = [&](const std::string &text) { os << "  " << llvm::right_justify(text, width); };
  os << "with " << flags << "\n"
     << "  time over no recomputation, by --device-budget and, from left to right, " << columns.flag << "\n\n"
     << "  --device-budget";
  for (const ByteCount &budget : columns.budgets)
    print(budget.text);
  for (const Row &row : rows) {
    os << llvm::format("\n  %15s", unit.text(row.budgetBytes).c_str());
    for (const Cell &cell : row.cells)
      print(cell.seconds
                ? llvm::formatv("{0}", llvm::format("%+.1f %%", percentOver(*cell.seconds, wholeSeconds))).str()
                : none);
  }
  // Rounded up: they can be typed.
  os << "\n  smallest budget";
  for (uint64_t bytes : smallestBytes)
    print(unit.text(unit.roundUp(bytes)));
  os << "\n";
}

void ColumnTable::printJson(llvm::json::OStream &json, double wholeSeconds) const {
  json.attribute("flag", flags);
  json.attributeArray("columns", [&] {
    for (auto [budget, smallest] : llvm::zip_equal(columns.budgets, smallestBytes))
      json.object([&] {
        json.attribute("budget_bytes", budget.bytes);
        json.attribute("smallest_bytes", smallest);
      });
  });
  json.attributeArray("rows", [&] {
    for (const Row &row : rows)
      json.object([&] {
        json.attribute("device_budget_bytes", row.budgetBytes);
        json.attributeArray("cells", [&] {
          for (const Cell &cell : row.cells)
            json.object([&] {
              json.attribute("fits", cell.seconds.has_value());
              if (!cell.seconds)
                return;
              json.attribute("time_percent", percentOver(*cell.seconds, wholeSeconds));
              json.attributeObject("planned_for", [&] {
                json.attribute("device_budget_bytes", cell.deviceBudget);
                json.attribute("budget_bytes", columns.budgets[cell.column].bytes);
              });
            });
        });
      });
  });
}
