//===- LinearSolver.cpp - linear and integer programs by HiGHS ------------===//
//
// HiGHS (Huangfu and Hall 2018) through its C interface, loaded when it is
// first asked for. Where it is not found, nothing is solved and callers say so.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Algorithms/LinearProgram.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <dlfcn.h>

namespace lowtide::solve {

namespace {

// As highs_c_api.h of HiGHS 1.15 has them.
using HighsInt = int32_t;
constexpr HighsInt statusError = -1, continuousVariable = 0, integerVariable = 1, minimize = 1, byRows = 2;
constexpr HighsInt modelEmpty = 6, modelOptimal = 7, modelInfeasible = 8;

struct Highs {
  const char *(*version)();
  void *(*create)();
  void (*destroy)(void *);
  double (*getInfinity)(const void *);
  HighsInt (*setBool)(void *, const char *, HighsInt);
  HighsInt (*setInt)(void *, const char *, HighsInt);
  HighsInt (*setDouble)(void *, const char *, double);
  HighsInt (*setString)(void *, const char *, const char *);
  HighsInt (*passLp)(void *, HighsInt, HighsInt, HighsInt, HighsInt, HighsInt, double, const double *, const double *,
                     const double *, const double *, const double *, const HighsInt *, const HighsInt *,
                     const double *);
  HighsInt (*passMip)(void *, HighsInt, HighsInt, HighsInt, HighsInt, HighsInt, double, const double *, const double *,
                      const double *, const double *, const double *, const HighsInt *, const HighsInt *,
                      const double *, const HighsInt *);
  HighsInt (*run)(void *);
  HighsInt (*getModelStatus)(const void *);
  HighsInt (*getSolution)(const void *, double *, double *, double *, double *);
  HighsInt (*getDoubleInfo)(const void *, const char *, double *);
  bool isComplete = false;
};

/// The environment's LOWTIDE_HIGHS and nothing else; where it is not set, what set-up installed, then what the system
/// has.
Highs load() {
  const char *named = std::getenv("LOWTIDE_HIGHS");
  const bool isNamed = named && *named;
  void *library = dlopen(isNamed ? named : LOWTIDE_HIGHS, RTLD_NOW | RTLD_LOCAL);
  if (!library && !isNamed)
    library = dlopen("libhighs.so.1", RTLD_NOW | RTLD_LOCAL);
  Highs highs = {};
  if (!library)
    return highs;
  highs.isComplete = true;
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    highs.isComplete &= function != nullptr;
  };
  find(highs.version, "Highs_version");
  find(highs.create, "Highs_create");
  find(highs.destroy, "Highs_destroy");
  find(highs.getInfinity, "Highs_getInfinity");
  find(highs.setBool, "Highs_setBoolOptionValue");
  find(highs.setInt, "Highs_setIntOptionValue");
  find(highs.setDouble, "Highs_setDoubleOptionValue");
  find(highs.setString, "Highs_setStringOptionValue");
  find(highs.passLp, "Highs_passLp");
  find(highs.passMip, "Highs_passMip");
  find(highs.run, "Highs_run");
  find(highs.getModelStatus, "Highs_getModelStatus");
  find(highs.getSolution, "Highs_getSolution");
  find(highs.getDoubleInfo, "Highs_getDoubleInfoValue");
  return highs;
}

const Highs &getHighs() {
  static const Highs highs = load();
  return highs;
}

/// How HiGHS is asked.
enum class Method { Simplex, FirstOrderSteps, WholeNumbers };

LinearSolution solveBy(Method method, const LinearProgram &program, double seconds) {
  LinearSolution solution;
  const Highs &api = getHighs();
  const HighsInt numColumns = program.columns.size(), numRows = program.rows.size(),
                 numEntries = program.entries.size();
  std::vector<double> cost, columnLower, columnUpper, rowLower, rowUpper;
  for (const LinearProgram::Column &column : program.columns) {
    cost.push_back(column.cost);
    columnLower.push_back(column.lower);
    columnUpper.push_back(column.upper);
  }
  void *highs = api.create();
  const double infinity = api.getInfinity(highs);
  for (const LinearProgram::Row &row : program.rows) {
    rowLower.push_back(std::isfinite(row.lower) ? row.lower : -infinity);
    rowUpper.push_back(std::isfinite(row.upper) ? row.upper : infinity);
  }
  std::vector<HighsInt> integrality;
  for (const LinearProgram::Column &column : program.columns)
    integrality.push_back(column.isContinuous ? continuousVariable : integerVariable);
  api.setBool(highs, "output_flag", 0);
  api.setInt(highs, "threads", 1);
  api.setDouble(highs, "time_limit", seconds);
  if (method == Method::WholeNumbers) {
    api.setDouble(highs, "mip_rel_gap", 1e-6);
  } else if (method == Method::FirstOrderSteps) {
    // PDLP (Applegate et al. 2021) is near the optimum of a large program when simplex has hardly begun. Of a program
    // that was presolved a solver that is stopped has no prices, and so no bound.
    api.setString(highs, "solver", "pdlp");
    api.setDouble(highs, "pdlp_optimality_tolerance", 1e-4);
    api.setString(highs, "presolve", "off");
  }
  const HighsInt status =
      method == Method::WholeNumbers
          ? api.passMip(highs, numColumns, numRows, numEntries, byRows, minimize, 0, cost.data(), columnLower.data(),
                        columnUpper.data(), rowLower.data(), rowUpper.data(), program.starts.data(),
                        program.indices.data(), program.entries.data(), integrality.data())
          : api.passLp(highs, numColumns, numRows, numEntries, byRows, minimize, 0, cost.data(), columnLower.data(),
                       columnUpper.data(), rowLower.data(), rowUpper.data(), program.starts.data(),
                       program.indices.data(), program.entries.data());
  if (status != statusError && api.run(highs) != statusError) {
    const HighsInt model = api.getModelStatus(highs);
    if (model == modelOptimal || model == modelEmpty)
      solution.state = LinearSolution::State::Optimal;
    else if (model == modelInfeasible)
      solution.state = LinearSolution::State::Infeasible;
    std::vector<double> values(numColumns), reduced(numColumns), activity(numRows), prices(numRows);
    api.getSolution(highs, values.data(), reduced.data(), activity.data(), prices.data());
    if (method == Method::WholeNumbers)
      api.getDoubleInfo(highs, "mip_dual_bound", &solution.bound);
    else
      solution.bound = boundByPrices(program, prices);
    if (solution.state != LinearSolution::State::Infeasible)
      solution.values = std::move(values);
  }
  api.destroy(highs);
  return solution;
}

} // namespace

bool hasLinearSolver() { return getHighs().isComplete; }

std::string getLinearSolverName() {
  return hasLinearSolver() ? std::string("HiGHS ") + getHighs().version() : std::string();
}

LinearSolution solveLinearProgram(LinearProgram program, const LinearOptions &options, const FindCuts &findCuts,
                                  const FindCuts &findWholeCuts) {
  LinearSolution solution;
  if (!hasLinearSolver())
    return solution;
  const auto begin = std::chrono::steady_clock::now();
  auto run = [&](Method method, double shareOfTime) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    return solveBy(method, program, std::max(shareOfTime * options.seconds - passed.count(), 0.0));
  };
  Method method = Method::Simplex;
  if (!options.integral || findCuts)
    solution = run(method, options.simplexShare);
  if (!options.integral && solution.state == LinearSolution::State::Stopped) {
    method = Method::FirstOrderSteps;
    solution = run(method, 1);
  }
  // Appends what the solution violates; false: nothing, or there is none to ask about.
  auto cut = [&](const FindCuts &find) {
    const LinearRows rows =
        find && solution.state == LinearSolution::State::Optimal ? find(solution.values) : LinearRows();
    program.append(rows);
    return !rows.rows.empty();
  };
  auto runAgain = [&](Method method, double shareOfTime) {
    LinearSolution next = run(method, shareOfTime);
    next.bound = std::max(next.bound, solution.bound);
    solution = std::move(next);
  };
  // Anew: presolve gains more from the cuts than dual simplex from the last basis.
  while (cut(findCuts))
    runAgain(method, options.integral ? 0.5 : 1);
  if (!options.integral || solution.state == LinearSolution::State::Infeasible)
    return solution;
  do
    runAgain(Method::WholeNumbers, 1);
  while (cut(findWholeCuts));
  return solution;
}

} // namespace lowtide::solve
