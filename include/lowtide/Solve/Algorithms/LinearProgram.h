//===- LinearProgram.h - linear and integer programs ------------*- C++ -*-===//
//
// A program as rows and columns, and its solution by HiGHS where that is
// installed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace lowtide::solve {

/// lower ≤ rows · x ≤ upper.
struct LinearRows {
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  struct Row {
    double lower, upper;
  };

  std::vector<Row> rows;
  // Entries by row: those of row i are starts[i] … starts[i + 1] - 1.
  std::vector<int32_t> starts{0}, indices;
  std::vector<double> entries;

  /// An entry of the row that `endRow` closes; a column occurs once in a row.
  void addEntry(int32_t column, double value) {
    indices.push_back(column);
    entries.push_back(value);
  }
  void endRow(double lower, double upper) {
    rows.push_back({lower, upper});
    starts.push_back(int32_t(indices.size()));
  }
  void append(const LinearRows &other);
};

/// Minimize Σ cost · x under the rows and lower ≤ x ≤ upper. Every column has finite bounds.
struct LinearProgram : LinearRows {
  struct Column {
    double cost, lower, upper;
    /// Takes any number in integer programs too.
    bool isContinuous = false;
  };

  std::vector<Column> columns;

  int32_t addColumn(double cost, double lower, double upper) {
    columns.push_back({cost, lower, upper});
    return int32_t(columns.size()) - 1;
  }
};

struct LinearOptions {
  /// Columns take whole numbers only, but for those that are continuous.
  bool integral = false;
  /// What is known when the time is over is the answer.
  double seconds = 120;
  /// When this share of the time is over and simplex is not at its end, first-order steps take the rest, to four
  /// digits.
  double simplexShare = 0.5;
};

struct LinearSolution {
  enum class State {
    /// `values` are a best solution.
    Optimal,
    /// Nothing satisfies the rows.
    Infeasible,
    /// Time was over, or the solver gave up: only `bound` holds, and `values`, if any, are the last ones.
    Stopped,
  };
  State state = State::Stopped;
  std::vector<double> values;
  /// No solution costs less. Of a linear program, it is counted anew from the rows' prices, whatever these are worth:
  /// it holds for every solver and tolerance.
  double bound = -LinearProgram::infinity;
};

/// Whether a solver is there.
bool hasLinearSolver();
/// Its name and version; empty without one.
std::string getLinearSolverName();

/// Rows that a solution violates, and that hold for all that counts: cuts. None: there are no more.
using FindCuts = std::function<LinearRows(const std::vector<double> &values)>;

/// Solves on one thread, deterministically as long as the time suffices. Without a solver: Stopped. With `findCuts` the
/// relaxation is solved again with the cuts of its solution, as long as there are any, and with `findWholeCuts` the
/// integer program.
LinearSolution solveLinearProgram(LinearProgram program, const LinearOptions &options = {},
                                  const FindCuts &findCuts = {}, const FindCuts &findWholeCuts = {});

/// Σ over rows of price · side, plus what the columns can save at these prices: a lower bound for any `prices`
/// (Lagrange).
double boundByPrices(const LinearProgram &program, const std::vector<double> &prices);

} // namespace lowtide::solve
