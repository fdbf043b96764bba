//===- OptionTable.h - every option of a request, once ----------*- C++ -*-===//
//
// Name, help, check, group and meaning of each: flags, the configuration file with its schema, and the reference pages
// come from these rows, which come from the records of Support/DeclaredOptions.td.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Compiler/Request.h"
#include "lowtide/Support/OptionCheck.h"
#include <variant>

namespace lowtide {

/// What an option decides, of a model whose file may decide that already.
enum class OptionRole { None, Forward, Update, Rate };

/// Where the value goes; nothing: `setOption` alone knows.
using OptionField =
    std::variant<std::monostate, std::string Request::*, int64_t Request::*, double Request::*, bool Request::*,
                 std::vector<std::string> Request::*, std::map<std::string, std::string> Request::*>;

/// One option. Its default is the field's.
struct OptionRow {
  std::string name;  ///< without dashes in front: "micro-batches"
  std::string group; ///< in the help and in the configuration file: "memory"
  std::string stage; ///< the last stage that it shapes; empty: none, or all
  OptionRole role = OptionRole::None;
  OptionField field = {};
  std::string text; ///< the help
  std::vector<OptionCheck> checks = {};
  /// Takes no value: its value then; empty: it takes one.
  std::string switchValue = {};
  /// A value is optional, and this one where there is none.
  std::string implicitValue = {};
  /// A list whose texts are taken apart at commas; other lists are taken apart by whoever reads them.
  bool isSplit = false;
};

/// All of them, in the order of the help.
const std::vector<OptionRow> &listOptions();

/// Sets an option by its name, as the command line does; lists get one more. Returns what is wrong with name or value;
/// empty: nothing.
std::string setOption(Request &request, const std::string &name, const std::string &value);

} // namespace lowtide
