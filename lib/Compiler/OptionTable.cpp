//===- OptionTable.cpp - every option of a request, once --------*- C++ -*-===//
//
// Rows are made of the records (Support/DeclaredOptions.td).
//
//===----------------------------------------------------------------------===//

#include "lowtide/Compiler/OptionTable.h"
#include "DeclaredChecks.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Support/DeclaredOptions.h"
#include "lowtide/Support/OptionChoices.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace lowtide;

namespace {
/// What a record says of its row.
struct DeclaredRow {
  const char *name, *group, *stage;
  OptionRole role;
  OptionField field;
  const char *switchValue, *implicitValue;
  bool isSplit;
};
} // namespace

#include "lowtide/Support/OptionRows.inc"

static std::vector<OptionRow> makeRows() {
  // Words of some checks are those of records.
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<nn::NNDialect, train::TrainDialect>();
  std::vector<OptionRow> rows;
  for (const DeclaredRow &row : declaredRows) {
    const auto *option = llvm::find_if(DeclaredOptions, [&](const auto &option) { return option.name == row.name; });
    rows.push_back({row.name, row.group, row.stage, row.role, row.field, std::string(option->help),
                    listChecks(row.name, context), row.switchValue, row.implicitValue, row.isSplit});
  }
  return rows;
}

const std::vector<OptionRow> &lowtide::listOptions() {
  static const std::vector<OptionRow> rows = makeRows();
  return rows;
}

namespace {

/// Puts a text that was checked into a field; whether it is of the field's type.
struct FieldWriter {
  Request &request;
  const OptionRow &row;
  const std::string &value;

  bool operator()(std::monostate) const {
    if (row.name == "last-batch") {
      EntryVariant last{"last"};
      if (llvm::StringRef(value).getAsInteger(10, last.batch))
        return false;
      request.variants.push_back(std::move(last));
      return true;
    }
    request.selections.push_back({row.name == "params", value});
    return true;
  }
  bool operator()(std::string Request::*field) const {
    request.*field = value;
    return true;
  }
  bool operator()(int64_t Request::*field) const { return !llvm::StringRef(value).getAsInteger(10, request.*field); }
  bool operator()(double Request::*field) const { return !llvm::StringRef(value).getAsDouble(request.*field); }
  bool operator()(bool Request::*field) const {
    request.*field = isOn(value);
    return request.*field || isOff(value);
  }
  bool operator()(std::vector<std::string> Request::*field) const {
    // The default is no beginning of a list.
    if (request.*field == Request().*field)
      (request.*field).clear();
    if (!row.isSplit && row.name != "entries") {
      (request.*field).push_back(value);
      return true;
    }
    for (llvm::StringRef item : llvm::split(value, ','))
      (request.*field).push_back(item.str());
    return true;
  }
  bool operator()(std::map<std::string, std::string> Request::*field) const {
    std::string key = row.name;
    std::replace(key.begin(), key.end(), '-', '_');
    (request.*field)[key] = value;
    return true;
  }
};

} // namespace

std::string lowtide::setOption(Request &request, const std::string &name, const std::string &value) {
  const auto row = llvm::find_if(listOptions(), [&](const OptionRow &row) { return row.name == name; });
  if (row == listOptions().end())
    return "there is no option '" + name + "'";
  for (const OptionCheck &check : row->checks)
    if (std::string fault = check.findFault(value); !fault.empty())
      return name + ": " + fault;
  if (!std::visit(FieldWriter{request, *row, value}, row->field))
    return name + ": '" + value + "' is not of its type";
  request.givesTarget |= name == "target" || name == "target-file";
  request.givesThreads |= name == "threads-max";
  if (row->role == OptionRole::Forward)
    request.forwardFlags[name] = "--" + name;
  if (row->role == OptionRole::Update)
    request.updateFlags[name] = "--" + name;
  if (row->role == OptionRole::Rate)
    request.rateFlags[name] = "--" + name;
  return "";
}
