//===- FitColumns.h - a table over two budgets ------------------*- C++ -*-===//
//
// What `lowtide fit` says where --host-budget or --disk-budget is a list: a column for each of its budgets.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Compiler/Request.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>
#include <string>
#include <vector>

namespace lowtide {

/// A list of budgets of another memory.
struct FitColumns {
  std::string flag;               ///< "--disk-budget"; empty: no list was given
  bool isFile = false;            ///< that memory is a file
  std::vector<ByteCount> budgets; ///< ascending

  /// Takes the list out of a request, which keeps its largest budget. Of two lists the second stays, for
  /// `Compilation::checkOtherMemory` to refuse.
  static FitColumns take(Request &request);
  bool isEmpty() const { return flag.empty(); }
  /// "--disk-budget=0,64KiB".
  std::string describe() const;
};

/// Estimated times of all entries' plans, by budgets of the device and of another memory.
struct ColumnTable {
  struct Cell {
    /// With its lanes; of @train, or the first entry. Nothing: no plan was found.
    std::optional<double> seconds;
    /// What its plan was made for: the cell's budgets, or smaller ones.
    uint64_t deviceBudget = 0;
    size_t column = 0;
  };
  struct Row {
    uint64_t budgetBytes = 0;
    std::vector<Cell> cells; ///< one a column
  };

  FitColumns columns;
  std::string flags;                   ///< of all other memories
  std::vector<uint64_t> smallestBytes; ///< of the device, by column
  std::vector<Row> rows;               ///< ascending

  /// No cell takes more time than one of smaller budgets, whose plan is within its own, and no column needs more of
  /// the device than one to its left.
  void takeSmallerPlans();
  /// Times are over `wholeSeconds`, which the step takes without a budget.
  void printText(llvm::raw_ostream &os, double wholeSeconds) const;
  /// Attributes of an object.
  void printJson(llvm::json::OStream &json, double wholeSeconds) const;
};

} // namespace lowtide
