//===- ImportFlags.cpp - texts of import flags
//----------------------------------------===//

#include "lowtide/Import/ImportFlags.h"

#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/Support/NameList.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace lowtide;

/// Calls `take` with each item's name and what stands after its last '='; the first fault ends it.
static std::string forEachBinding(StringRef flag, StringRef text, StringRef example,
                                  llvm::function_ref<std::string(const std::string &name, StringRef value)> take) {
  SmallVector<NameItem> items;
  if (std::optional<TextFault> fault = splitNames(text, ',', items))
    return (flag + " " + quoteName(text) + ": " + fault->message + " (column " +
            Twine(countColumns(text, fault->column)) + "); " + example)
        .str();
  for (const NameItem &item : items) {
    auto [name, value] = StringRef(item.text).rsplit('=');
    SmallVector<NameItem> unquoted;
    const bool isName = !name.empty() && !splitNames(name, '\0', unquoted) && unquoted.size() == 1;
    std::string fault =
        isName && !value.trim().empty() ? take(unquoted.front().text, value.trim()) : "expected " + example.str();
    if (!fault.empty())
      return (flag + " " + quoteName(item.text) + ": " + fault).str();
  }
  return "";
}

std::string lowtide::parseDimFlag(StringRef text, ImportOptions &options) {
  const StringRef example = "a name and a size, as in --dim batch=8";
  return forEachBinding("--dim", text, example, [&](const std::string &name, StringRef size) -> std::string {
    int64_t value;
    if (size.getAsInteger(10, value) || value < 1)
      return "expected " + example.str() + ", not " + quoteName(size);
    auto [at, isNew] = options.dims.try_emplace(name, value);
    if (!isNew && at->second != value)
      return quoteName(name) + " is given twice, as " + std::to_string(at->second) + " and as " + std::to_string(value);
    return "";
  });
}

std::string lowtide::parseShapeFlag(StringRef text, ImportOptions &options) {
  const StringRef example = "an input and its sizes, as in --shape tokens=8x64";
  return forEachBinding("--shape", text, example, [&](const std::string &name, StringRef dims) -> std::string {
    std::vector<int64_t> shape;
    if (dims != "scalar")
      for (StringRef dim : llvm::split(dims, 'x')) {
        int64_t value = 0;
        if (dim.trim().getAsInteger(10, value) || value < 1)
          return "expected " + example.str() + ", not " + quoteName(dims);
        shape.push_back(value);
      }
    if (!options.shapes.try_emplace(name, shape).second)
      return quoteName(name) + " is given twice";
    return "";
  });
}

std::string lowtide::parseRenameFlag(StringRef text, ImportOptions &options) {
  const StringRef example = "an initializer and a name, as in --rename val_9=fc.weight";
  return forEachBinding("--rename", text, example, [&](const std::string &from, StringRef to) -> std::string {
    SmallVector<NameItem> unquoted;
    if (std::optional<TextFault> fault = splitNames(to, '\0', unquoted))
      return fault->message;
    options.renames.emplace_back(from, unquoted.front().text);
    return "";
  });
}

std::string lowtide::parseSetFlag(StringRef text, ImportOptions &options) {
  auto [name, value] = text.rsplit('=');
  if (name.empty() || value.empty())
    return "--set " + quoteName(text) + ": expected an input and its value, as in --set use_cache_branch=false";
  auto [at, isNew] = options.fixed.try_emplace(name.str(), value.str());
  if (!isNew && at->second != value)
    return "--set: " + quoteName(name) + " is given twice, as " + at->second + " and as " + value.str();
  return "";
}
